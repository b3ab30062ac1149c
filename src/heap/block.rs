//! The heap itself and its calls by handle and by offset; `carve` does the work on the records.

use super::bins::{Bins, ALL_ROWS};
use super::handle::{Fault, Handle};
use super::node::Node;
use super::spare::Spares;
use super::stats::Stats;
use super::store::Store;
use super::{pages, GRANULE};
use crate::error::Error;
use crate::units::Bytes;

/// Where a new block goes: by size, by end, or by what is known of its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Side {
    /// Large blocks (from [`Heap::set_large`] on) from below, the others from above: they stay out of each other's way.
    #[default]
    Auto,
    /// From below.
    Low,
    /// From above.
    High,
    /// The lowest place where the block fits, found by walking over the blocks by address and so slow: for a sequence
    /// that is being recorded, whose memory then stays close to what its plan will need. A heap of very many blocks is
    /// not walked to its end; what lies further is taken as by `Low`.
    Lowest,
    /// A workspace: freed by the operator that asks for it, before anything that stays is asked for. Goes as near to the
    /// lower end as it fits.
    Scratch,
    /// Freed within the frame: a tensor on its way to the next operators. Goes as near to its end as it fits: large blocks
    /// to the upper one, the others to the lower one.
    Short,
    /// Lives about as long as a frame, or longer. The other way round: large blocks to the lower end, the others to the upper.
    Long,
    /// In the middle of the largest free block. A hint that the block will grow: it then has the most room to do so where
    /// it is, without any of it being set aside.
    Grow,
}

/// What to allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes asked for. 0 is served like 1: a block of one granule with an offset of its own.
    pub bytes: Bytes,
    /// The alignment in bytes, any power of two; less than a granule counts as one.
    pub align: u64,
    /// Bytes the block must hold beyond `bytes`: an exclusive tail, guards, headroom for growth. At most [`super::MAX_EXTRA`].
    pub extra: Bytes,
    /// Which end of the free block it takes.
    pub side: Side,
}

impl Request {
    /// `bytes` bytes at a multiple of `align`.
    pub const fn new(bytes: Bytes, align: u64) -> Request {
        Request { bytes, align, extra: 0, side: Side::Auto }
    }

    /// The same with `extra` bytes beyond those asked for.
    #[must_use]
    pub const fn extra(mut self, extra: Bytes) -> Request {
        self.extra = extra;
        self
    }

    /// The same from the given side.
    #[must_use]
    pub const fn side(mut self, side: Side) -> Request {
        self.side = side;
        self
    }
}

/// Where in a free block a request goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Low,
    High,
    Middle,
}

/// Which free block a request goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The shortest that fits.
    Best,
    /// The nearest to the end, if it is near.
    Near,
    /// The longest.
    Largest,
    /// The one of the lowest address, however far it is.
    Lowest,
}

/// A request in granules.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) len: u32,
    pub(crate) align: u32,
    pub(crate) slack: u32,
    pub(crate) end: End,
    pub(crate) choice: Choice,
}

/// A coalescing heap over the offsets of one region.
///
/// ```text
/// region     [ used 3 ][ free 5 ][ used 1 ][ used 2 ][ free ................ ]
/// nodes        ^  prev/next by address: 3 <-> 5 <-> 1 <-> 2 <-> 4
/// bins       [len 7] -> 5        [len 900..927] -> 4      two bitmaps say which bins hold something
/// pages      page 0 -> 3 <-> 1   page 1 -> 2              used blocks by the page they start in (optional)
/// ```
///
/// `N` stores the nodes, `P` is the page directory (empty to work by handle only), `ROWS` the rows of bins: a region of
/// less than `16 << ROWS` granules needs no more, which saves 132 bytes a row on a small device.
///
/// Threads: none; the caller locks. All methods take constant steps except those that say otherwise.
// In this order, since what every call writes then lies in two lines of the cache and not in five: another processor has to
// fetch each of them when the lock goes over to it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Heap<N, P, const ROWS: usize = ALL_ROWS> {
    pub(super) spares: Spares,
    /// The node of the first block by address.
    pub(super) first: u32,
    /// That of the last one.
    pub(super) last: u32,
    pub(super) region: u32,
    pub(super) nodes: N,
    /// Granules.
    pub(super) total: u32,
    /// Blocks of so many granules are taken from below.
    pub(super) large: u32,
    pub(super) stats: Stats,
    pub(super) bins: Bins<ROWS>,
    pub(super) pages: P,
    /// The base address in granules, as far as alignments see it.
    pub(super) origin: u32,
    /// Bytes held by [`Heap::hold_largest`], which are nobody's: meanwhile the peak is kept higher by as much.
    pub(super) parked: u64,
}

impl<N: Store<Node>, const ROWS: usize> Heap<N, [u32; 0], ROWS> {
    /// A heap over `bytes` bytes (rounded down to granules) without a directory: blocks are named by handle.
    ///
    /// Errors and parameters are those of [`Heap::with_pages`].
    pub fn new(region: u32, base: u64, bytes: Bytes, nodes: N) -> Result<Self, Fault> {
        Self::with_pages(region, base, bytes, nodes, [])
    }
}

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// The most nodes a call looks at, exhaustive scans apart.
    pub const STEP_LIMIT: u32 = 40;

    /// A heap over `bytes` bytes (rounded down to granules) that starts at address `base`, a multiple of 128; only
    /// alignments above 128 look at it, and memory without an address passes 0. `region` comes back in every handle.
    ///
    /// `pages` is empty or has [`super::pages_for`]`(bytes)` zeros. `nodes` needs one node for the region and up to two
    /// for every live block. `Fault::TooLarge` for less than a granule, for 512 GiB or more, or for more than `ROWS` rows
    /// of bins serve; `Fault::Alignment` for another base; `Fault::BadSize` for a directory of another length;
    /// `Fault::NoNode` where `nodes` has no room.
    pub fn with_pages(region: u32, base: u64, bytes: Bytes, mut nodes: N, pages: P) -> Result<Self, Fault> {
        let total = u32::try_from(bytes / GRANULE).map_err(|_| Fault::TooLarge)?;
        if total == 0 || total == u32::MAX || super::bins::bin_of(total) as usize >= ROWS * 32 {
            return Err(Fault::TooLarge);
        }
        if !base.is_multiple_of(GRANULE) {
            return Err(Fault::Alignment);
        }
        let entries = pages.as_ref().len();
        if entries != 0 && entries != super::pages_for(u64::from(total) * GRANULE) {
            return Err(Fault::BadSize);
        }
        if !nodes.slice().is_empty() || !nodes.push(Node::EMPTY) {
            return Err(Fault::NoNode);
        }
        let whole = &mut nodes.slice_mut()[0];
        whole.len = total;
        let mut bins = Bins::new();
        bins.insert(nodes.slice_mut(), 0);
        let bytes = u64::from(total) * GRANULE;
        let stats = Stats { total: bytes, ..Stats::default() };
        // Alignments are at most 2^31 granules, so the low 32 bits of the base decide.
        let origin = (base / GRANULE) as u32;
        let large = total / 32;
        Ok(Heap {
            spares: Spares::new(),
            first: 0,
            last: 0,
            region,
            nodes,
            total,
            large,
            stats,
            bins,
            pages,
            origin,
            parked: 0,
        })
    }

    /// Blocks of `bytes` and more are taken from below, smaller ones from above; at first a 32nd of
    /// the region (measured on six traces: 1.124 of the peak instead of 1.181 with one end). 0: all from below.
    pub fn set_large(&mut self, bytes: Bytes) {
        self.large = u32::try_from(bytes / GRANULE).unwrap_or(u32::MAX);
    }

    /// Retires a node after `limit` generations instead of 2^32 - 2: for tests of the wrap.
    #[doc(hidden)]
    pub fn set_generation_limit(&mut self, limit: u32) {
        self.spares.limit = limit;
    }

    /// The statistics.
    pub fn stats(&self) -> Stats {
        let s = &self.stats;
        let blocks = s.allocs - s.frees;
        // Every node is a block's, a gap's or out of use, so the gaps need no counter of their own.
        let linked = self.nodes.slice().len() as u64 - u64::from(self.spares.count) - u64::from(self.spares.retired);
        Stats {
            free: s.total - s.live,
            blocks,
            free_blocks: linked - blocks,
            peak_live: s.peak_live - self.parked,
            retired_nodes: u64::from(self.spares.retired),
            ..self.stats
        }
    }

    /// Nodes that can still be taken.
    pub fn spare_nodes(&self) -> usize {
        self.spares.available(&self.nodes)
    }

    /// `bytes` rounded up to what a block of them holds, or `None` where that does not fit 64 bits.
    pub const fn good_size(bytes: Bytes) -> Option<Bytes> {
        match bytes.checked_add(GRANULE - 1) {
            Some(sum) if bytes > 0 => Some(sum & !(GRANULE - 1)),
            Some(_) => Some(GRANULE),
            None => None,
        }
    }

    /// Allocates `bytes` bytes at a multiple of `align`.
    #[inline]
    pub fn alloc(&mut self, bytes: Bytes, align: u64) -> Result<Handle, Fault> {
        self.alloc_with(&Request::new(bytes, align))
    }

    /// Allocates. `Fault::TooLarge`, `NoSpace` (after an exhaustive scan), `NoNode` or `Alignment`; nothing has changed
    /// then but the statistics.
    #[inline]
    pub fn alloc_with(&mut self, request: &Request) -> Result<Handle, Fault> {
        let outcome = match self.shape(request) {
            Ok(shape) => match self.search(&shape) {
                Some(block) => self.carve(block, &shape),
                None => Err(Fault::NoSpace),
            },
            Err(fault) => Err(fault),
        };
        if outcome.is_err() {
            self.stats.refused += 1;
        }
        outcome
    }

    /// Frees a block and returns the bytes that had been asked for. `Fault::BadHandle` for a handle that is stale,
    /// foreign or made up.
    #[inline]
    pub fn free(&mut self, handle: Handle) -> Result<Bytes, Fault> {
        match self.resolve(handle) {
            Some(index) => Ok(self.release(index)),
            None => Err(self.bad(Fault::BadHandle)),
        }
    }

    /// Frees the block that starts at `offset`. Needs the directory. `Fault::BadOffset` where no live block starts there.
    #[inline]
    pub fn free_at(&mut self, offset: Bytes) -> Result<Bytes, Fault> {
        match self.lookup(offset) {
            Some(index) => Ok(self.release(index)),
            None => Err(self.bad(Fault::BadOffset)),
        }
    }

    /// Frees a block of which the caller knows the size it asked for. `Fault::BadSize` for another size.
    pub fn free_sized(&mut self, handle: Handle, bytes: Bytes) -> Result<(), Fault> {
        let Some(index) = self.resolve(handle) else { return Err(self.bad(Fault::BadHandle)) };
        if self.nodes.slice()[index as usize].requested() != bytes {
            return Err(self.bad(Fault::BadSize));
        }
        self.release(index);
        Ok(())
    }

    /// Frees the block that starts at `offset`, or returns `None` and counts nothing where no live block starts there: for
    /// callers that then look elsewhere. Needs the directory.
    #[inline]
    pub fn try_free_at(&mut self, offset: Bytes) -> Option<Bytes> {
        let index = self.lookup(offset)?;
        Some(self.release(index))
    }

    /// The handle of the live block that starts at `offset`. Needs the directory.
    #[inline]
    pub fn find(&mut self, offset: Bytes) -> Option<Handle> {
        let index = self.lookup(offset)?;
        Some(self.handle(index))
    }

    /// [`Heap::find`] with its error: `Unsupported` without the directory, `Argument` where no live block starts there.
    pub fn find_live(&mut self, offset: Bytes) -> Result<Handle, Error> {
        match self.find(offset) {
            Some(handle) => Ok(handle),
            None if self.pages.as_ref().is_empty() => {
                Err(Error::unsupported("the heap was made without look-up by offset"))
            }
            None => Err(self.bad(Fault::BadOffset).error().needed(offset)),
        }
    }

    /// Bytes the block holds and bytes asked for, or `None` for a bad handle.
    pub fn size(&self, handle: Handle) -> Option<(Bytes, Bytes)> {
        let node = &self.nodes.slice()[self.resolve(handle)? as usize];
        Some((node.bytes(), node.requested()))
    }

    /// The alignment in bytes the block was asked for with, or `None` for a bad handle.
    pub fn align_of(&self, handle: Handle) -> Option<u64> {
        let node = &self.nodes.slice()[self.resolve(handle)? as usize];
        Some(GRANULE << node.align_log2())
    }

    #[inline]
    pub(super) fn handle(&self, index: u32) -> Handle {
        let node = &self.nodes.slice()[index as usize];
        Handle { region: self.region, granule: node.start, node: index, generation: node.generation }
    }

    /// The node a handle names, if it names one.
    #[inline]
    pub(super) fn resolve(&self, handle: Handle) -> Option<u32> {
        let node = self.nodes.slice().get(handle.node as usize)?;
        let same = node.generation == handle.generation && node.start == handle.granule && self.region == handle.region;
        (node.is_used() && same).then_some(handle.node)
    }

    #[inline]
    fn lookup(&mut self, offset: Bytes) -> Option<u32> {
        if !offset.is_multiple_of(GRANULE) {
            return None;
        }
        let granule = u32::try_from(offset / GRANULE).ok()?;
        let (found, steps) = pages::find(self.pages.as_ref(), self.nodes.slice(), granule);
        self.count_steps(steps);
        found.filter(|&index| self.nodes.slice()[index as usize].is_used())
    }

    #[inline]
    pub(super) fn count_steps(&mut self, steps: u32) {
        if steps > self.stats.max_steps {
            self.stats.max_steps = steps;
        }
    }

    #[cold]
    pub(super) fn bad(&mut self, fault: Fault) -> Fault {
        self.stats.bad += 1;
        fault
    }

    /// A request in granules, with every way a size can be too large refused.
    #[inline]
    pub(super) fn shape(&self, r: &Request) -> Result<Shape, Fault> {
        if !r.align.is_power_of_two() {
            return Err(Fault::Alignment);
        }
        if r.bytes > self.stats.total || r.extra > super::MAX_EXTRA {
            return Err(Fault::TooLarge);
        }
        // Neither sum wraps: both terms are far below 2^63.
        let len = (r.bytes + r.extra).div_ceil(GRANULE).max(1);
        let align = (r.align / GRANULE).max(1);
        if len > u64::from(self.total) || align > 1 << 31 {
            return Err(Fault::TooLarge);
        }
        let large = (len as u32) >= self.large;
        let (end, choice) = match r.side {
            Side::Auto => (if large { End::Low } else { End::High }, Choice::Best),
            Side::Low => (End::Low, Choice::Best),
            Side::High => (End::High, Choice::Best),
            Side::Scratch => (End::Low, Choice::Near),
            Side::Short => (if large { End::High } else { End::Low }, Choice::Near),
            Side::Long => (if large { End::Low } else { End::High }, Choice::Near),
            Side::Lowest => (End::Low, Choice::Lowest),
            Side::Grow => (End::Middle, Choice::Largest),
        };
        let slack = (len * GRANULE - r.bytes) as u32;
        Ok(Shape { len: len as u32, align: align as u32, slack, end, choice })
    }
}

#[cfg(feature = "alloc")]
impl<P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<alloc::vec::Vec<Node>, P, ROWS> {
    /// Moves the nodes into `bigger`, an empty vector with more capacity reserved, and returns the old one, so that both
    /// the allocation and the release can happen outside a lock. Copies 32 bytes a node: not constant steps.
    pub fn more_nodes(&mut self, mut bigger: alloc::vec::Vec<Node>) -> alloc::vec::Vec<Node> {
        if bigger.is_empty() && bigger.capacity() > self.nodes.capacity() {
            bigger.extend_from_slice(&self.nodes);
            core::mem::swap(&mut self.nodes, &mut bigger);
        }
        bigger
    }

    /// Nodes the store can hold, used ones included.
    pub fn node_capacity(&self) -> usize {
        self.nodes.capacity()
    }
}
