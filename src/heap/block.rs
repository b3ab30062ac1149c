//! The heap itself: carve a block out of free space, give it back, join it with its neighbours.

use super::bins::{Bins, ALL_ROWS};
use super::handle::{Fault, Handle};
use super::node::{Node, State};
use super::spare::Spares;
use super::stats::Stats;
use super::store::Store;
use super::{pages, GRANULE, NIL};
use crate::units::Bytes;

/// Which end of the free block a new block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Side {
    /// Large blocks (from [`Heap::set_large`] on) from below, the others from above: they stay out of each other's way.
    #[default]
    Auto,
    /// From below. A hint that the block lives long.
    Low,
    /// From above. A hint that the block lives shortly.
    High,
    /// The lowest place where the block fits, found by walking over the blocks by address and so slow: for a sequence
    /// that is being recorded, whose memory then stays close to what its plan will need. A heap of very many blocks is
    /// not walked to its end; what lies further is taken as by `Low`.
    Lowest,
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

/// A request in granules.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) len: u32,
    pub(crate) align: u32,
    pub(crate) slack: u32,
    pub(crate) high: bool,
    pub(crate) lowest: bool,
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
#[derive(Clone, Debug)]
pub struct Heap<N, P, const ROWS: usize = ALL_ROWS> {
    pub(super) nodes: N,
    pub(super) pages: P,
    pub(super) bins: Bins<ROWS>,
    pub(super) spares: Spares,
    /// The node of the first block by address.
    pub(super) first: u32,
    /// Granules.
    pub(super) total: u32,
    /// The base address in granules, as far as alignments see it.
    pub(super) origin: u32,
    /// Blocks of so many granules are taken from below.
    pub(super) large: u32,
    pub(super) region: u32,
    pub(super) stats: Stats,
    /// Bytes held by [`Heap::hold_largest`], which are nobody's and so count in no peak.
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
        whole.set_idle(State::Free);
        let mut bins = Bins::new();
        bins.insert(nodes.slice_mut(), 0);
        let bytes = u64::from(total) * GRANULE;
        let stats = Stats { total: bytes, free_blocks: 1, ..Stats::default() };
        // Alignments are at most 2^31 granules, so the low 32 bits of the base decide.
        let origin = (base / GRANULE) as u32;
        let large = total / 32;
        Ok(Heap { nodes, pages, bins, spares: Spares::new(), first: 0, total, origin, large, region, stats, parked: 0 })
    }

    /// Blocks of `bytes` and more are taken from below, smaller ones from above; at first a 32nd of
    /// the region (measured on six traces: 1.124 of the peak instead of 1.181 with one end). 0: all from below.
    pub fn set_large(&mut self, bytes: Bytes) {
        self.large = u32::try_from(bytes / GRANULE).unwrap_or(u32::MAX);
    }

    /// Retires a node after `limit` generations instead of 2^32 - 1: for tests of the wrap.
    #[doc(hidden)]
    pub fn set_generation_limit(&mut self, limit: u32) {
        self.spares.limit = limit;
    }

    /// The statistics.
    pub fn stats(&self) -> Stats {
        let s = &self.stats;
        Stats {
            free: s.total - s.live,
            blocks: s.allocs - s.frees,
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
        self.stats.max_steps = self.stats.max_steps.max(steps);
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
        let high = match r.side {
            Side::Auto => (len as u32) < self.large,
            Side::Low | Side::Lowest => false,
            Side::High => true,
        };
        let lowest = r.side == Side::Lowest;
        Ok(Shape { len: len as u32, align: align as u32, slack: (len * GRANULE - r.bytes) as u32, high, lowest })
    }

    /// Takes `shape` out of the free node `block`, which has room for it.
    #[inline]
    fn carve(&mut self, block: u32, shape: &Shape) -> Result<Handle, Fault> {
        let Node { start, len, generation, .. } = self.nodes.slice()[block as usize];
        let Some(at) = self.place(start, len, shape) else { return Err(Fault::NoSpace) };
        let lead = at - start;
        let tail = len - lead - shape.len;
        let worn = generation >= self.spares.limit;
        let needed = match (lead > 0, tail > 0) {
            (false, false) => usize::from(worn),
            (true, true) => 2,
            _ => 1,
        };
        if self.spares.available(&self.nodes) < needed {
            return Err(Fault::NoNode);
        }
        let used = match (lead > 0, tail > 0) {
            (false, false) => {
                self.bins.remove(self.nodes.slice_mut(), block);
                self.stats.free_blocks -= 1;
                if worn {
                    self.replace(block)
                } else {
                    block
                }
            }
            (false, true) => {
                // The free node keeps the rest: the used block's node then comes from the queue, which spreads the wear.
                self.resize_free(block, start + shape.len, tail);
                self.insert_before(block)
            }
            (true, false) => {
                self.resize_free(block, start, lead);
                self.insert_after(block)
            }
            (true, true) => {
                self.resize_free(block, start, lead);
                let used = self.insert_after(block);
                let rest = self.insert_after(used);
                self.make_free(rest, at + shape.len, tail);
                used
            }
        };
        let nodes = self.nodes.slice_mut();
        let node = &mut nodes[used as usize];
        node.start = at;
        node.len = shape.len;
        node.set_used(shape.slack, shape.align.trailing_zeros());
        let handle = Handle { region: self.region, granule: at, node: used, generation: node.generation };
        pages::insert(self.pages.as_mut(), nodes, used);
        let bytes = u64::from(shape.len) * GRANULE;
        self.stats.allocs += 1;
        self.account(bytes as i64, bytes as i64 - i64::from(shape.slack));
        Ok(handle)
    }

    /// Frees the used node `index` and joins it with its free neighbours. Returns the bytes that had been asked for.
    #[inline]
    pub(super) fn release(&mut self, index: u32) -> Bytes {
        let nodes = self.nodes.slice_mut();
        pages::remove(self.pages.as_mut(), nodes, index);
        let node = &mut nodes[index as usize];
        let (bytes, requested) = (node.bytes(), node.requested());
        node.generation += 1;
        let (prev, next) = (node.prev, node.next);
        if let Some(n) = nodes.get(next as usize).filter(|n| n.is_free()) {
            let (gained, after) = (n.len, n.next);
            self.bins.remove(nodes, next);
            self.spares.give(nodes, next);
            self.stats.free_blocks -= 1;
            let node = &mut nodes[index as usize];
            node.len += gained;
            node.next = after;
            if let Some(after) = nodes.get_mut(after as usize) {
                after.prev = index;
            }
        }
        if nodes.get(prev as usize).is_some_and(Node::is_free) {
            let Node { len, next, .. } = nodes[index as usize];
            self.spares.give(nodes, index);
            if let Some(next) = nodes.get_mut(next as usize) {
                next.prev = prev;
            }
            let before = &mut nodes[prev as usize];
            before.next = next;
            let (start, len) = (before.start, before.len + len);
            self.resize_free(prev, start, len);
        } else {
            nodes[index as usize].set_idle(State::Free);
            self.bins.insert(nodes, index);
            self.stats.free_blocks += 1;
        }
        self.stats.frees += 1;
        self.account(-(bytes as i64), -(requested as i64));
        requested
    }

    /// Adds to the live and requested bytes; sizes are below 2^40, so the sums fit.
    #[inline]
    pub(super) fn account(&mut self, live: i64, requested: i64) {
        let s = &mut self.stats;
        s.live = s.live.wrapping_add_signed(live);
        s.requested = s.requested.wrapping_add_signed(requested);
        s.peak_live = s.peak_live.max(s.live - self.parked);
        s.peak_requested = s.peak_requested.max(s.requested);
    }

    /// Gives a free node another extent. It stays where it is in the bin's list if the bin is the same.
    #[inline]
    pub(super) fn resize_free(&mut self, index: u32, start: u32, len: u32) {
        let nodes = self.nodes.slice_mut();
        let node = &mut nodes[index as usize];
        node.start = start;
        if super::bins::bin_of(node.len) == super::bins::bin_of(len) {
            node.len = len;
        } else {
            self.bins.remove(nodes, index);
            nodes[index as usize].len = len;
            self.bins.insert(nodes, index);
        }
    }

    /// Makes a fresh node a free block.
    pub(super) fn make_free(&mut self, index: u32, start: u32, len: u32) {
        let nodes = self.nodes.slice_mut();
        let node = &mut nodes[index as usize];
        node.start = start;
        node.len = len;
        node.set_idle(State::Free);
        self.bins.insert(nodes, index);
        self.stats.free_blocks += 1;
    }

    /// A fresh node linked after `index` by address. The caller has made sure that there is one.
    #[inline]
    pub(super) fn insert_after(&mut self, index: u32) -> u32 {
        let fresh = self.spares.take(&mut self.nodes).unwrap_or(NIL);
        let nodes = self.nodes.slice_mut();
        let next = nodes[index as usize].next;
        nodes[index as usize].next = fresh;
        let node = &mut nodes[fresh as usize];
        (node.prev, node.next) = (index, next);
        if let Some(next) = nodes.get_mut(next as usize) {
            next.prev = fresh;
        }
        fresh
    }

    /// A fresh node linked before `index` by address. The caller has made sure that there is one.
    #[inline]
    fn insert_before(&mut self, index: u32) -> u32 {
        let fresh = self.spares.take(&mut self.nodes).unwrap_or(NIL);
        let nodes = self.nodes.slice_mut();
        let prev = nodes[index as usize].prev;
        nodes[index as usize].prev = fresh;
        let node = &mut nodes[fresh as usize];
        (node.prev, node.next) = (prev, index);
        match nodes.get_mut(prev as usize) {
            Some(prev) => prev.next = fresh,
            None => self.first = fresh,
        }
        fresh
    }

    /// Retires a worn node and returns a fresh one in its place.
    #[cold]
    fn replace(&mut self, worn: u32) -> u32 {
        let fresh = self.insert_after(worn);
        self.unlink(worn);
        self.spares.give(self.nodes.slice_mut(), worn);
        fresh
    }

    /// Takes a node out of the chain by address.
    pub(super) fn unlink(&mut self, index: u32) {
        let nodes = self.nodes.slice_mut();
        let Node { prev, next, .. } = nodes[index as usize];
        match nodes.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        if let Some(next) = nodes.get_mut(next as usize) {
            next.prev = prev;
        }
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
