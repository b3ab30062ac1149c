//! The pool: pointers on top of one heap per region, shared by any number of threads.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::frame_table::FrameTable;
use super::pool_auto::Streams;
use super::pool_config::{PoolConfig, PoolStats, Refusal, Tail};
use super::pool_debug::Debug;
use super::pool_fallback::Outside;
use super::pool_lock::{register, unregister, Guard, Lock};
use super::pool_trace::Trace;
use super::region::{Backing, Region};
use crate::error::{Error, Kind};
use crate::heap::{Extent, Fault, Request};

/// Regions a pool can have: few enough that finding the one a pointer belongs to takes constant steps.
pub(crate) const MAX_REGIONS: usize = 64;
/// Spare nodes below which a region gets more, outside the lock.
const LOW_NODES: usize = 8;

/// What the lock protects.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    /// Base and bytes of each region, apart from the regions so that a look-up reads few cache lines; 0, 0 for none.
    bounds: Vec<(usize, usize)>,
    pub(crate) regions: Vec<Option<Box<Region>>>,
    /// Bytes taken from the source, those just being taken included.
    pub(crate) reserved: u64,
    /// Trims that hold free blocks at the moment.
    pub(crate) trimming: u32,
    pub(crate) grown: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) trimmed_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) bad: u64,
}

impl Inner {
    /// The region an address lies in, and its offset there. At most 64 steps, one as a rule.
    #[inline]
    pub(crate) fn locate(&self, address: usize) -> Option<(usize, u64)> {
        let hit = |&(base, bytes): &(usize, usize)| address.wrapping_sub(base) < bytes;
        let index = self.bounds.iter().position(hit)?;
        Some((index, (address - self.bounds[index].0) as u64))
    }

    /// Puts a region in a free slot. Returns it to the caller where there is none.
    pub(crate) fn insert(&mut self, region: Box<Region>) -> Result<usize, Box<Region>> {
        let bounds = (region.base, region.bytes);
        if let Some(slot) = self.regions.iter().position(Option::is_none) {
            self.regions[slot] = Some(region);
            self.bounds[slot] = bounds;
            return Ok(slot);
        }
        // Both vectors were reserved for all regions, so neither push allocates.
        if self.regions.len() == MAX_REGIONS {
            return Err(region);
        }
        self.regions.push(Some(region));
        self.bounds.push(bounds);
        Ok(self.regions.len() - 1)
    }

    /// Takes a region out.
    pub(crate) fn remove(&mut self, slot: usize) -> Option<Box<Region>> {
        self.bounds[slot] = (0, 0);
        self.regions[slot].take()
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inner: Lock<Inner>,
    pub(crate) outside: Lock<Outside>,
    /// Held through a whole trim, so that a fork waits for its end: in the child nobody would give the held blocks back.
    pub(crate) trims: Lock<()>,
    pub(crate) config: PoolConfig,
    pub(crate) debug: Option<Debug>,
    pub(crate) frames: Lock<FrameTable>,
    pub(crate) trace: Trace,
    /// What finds frames by itself, if the pool does.
    pub(crate) streams: Option<Streams>,
    /// Reasons for a call to look beyond the heap: debug checks (1), streams (1), a trace (1), frames being recorded (1 each).
    pub(crate) watchers: AtomicU32,
    /// Bytes added to every block: the exclusive tail and the guard.
    overhead: u64,
    /// Bytes kept unused at each region's end.
    pub(crate) region_tail: usize,
}

/// A pool of memory for tensors: 128-byte aligned, coalescing, shared by any number of threads.
///
/// ```text
/// alloc ──> lock ──> region 0's heap ─┬─ fits ──> unlock ──> base + offset
///                    region 1's heap ─┘
///                    none fits ──> unlock ──> new region (Growth) ──> other pool or system (Fallback) ──> Refusal
/// ```
///
/// Under the lock there is list work only: no system call, no copy, no fill. A block of 0 bytes has an address of its
/// own. Dropping the pool gives its regions back, whatever is still live in them; [`Pool::destroy`] refuses to.
///
/// Threads: every method may be called from any thread at any time. After a fork the child can go on using the pool.
#[derive(Debug)]
pub struct Pool {
    pub(crate) shared: Box<Shared>,
}

impl Pool {
    /// A pool that takes its memory from `config.source`. `NoMemory` where the first region or the records are refused.
    pub fn new(config: PoolConfig) -> Result<Pool, Error> {
        let no_memory = |_| Error::no_memory("the pool's table of regions could not be allocated");
        let mut inner = Inner::default();
        inner.regions.try_reserve_exact(MAX_REGIONS).map_err(no_memory)?;
        inner.bounds.try_reserve_exact(MAX_REGIONS).map_err(no_memory)?;
        let (tail, region_tail) = match config.tail {
            Tail::None => (0, 0),
            Tail::Readable(bytes) => (0, bytes),
            Tail::Exclusive(bytes) => (bytes as u64, 0),
        };
        if tail > 1 << 20 {
            return Err(Error::argument("the tail of a block is at most 1 MiB").needed(tail));
        }
        let debug = config.debug.any().then(|| Debug::new(config.debug));
        // With guards or a quarantine every block has to be one of its own, and no frame is served from a plan.
        let streams = (config.auto_frames && debug.is_none()).then(Streams::new).transpose()?;
        let overhead = tail + debug.as_ref().map_or(0, Debug::overhead);
        let first = config.first_region;
        let shared = Shared {
            inner: Lock::new(inner),
            outside: Lock::new(Outside::default()),
            trims: Lock::new(()),
            config,
            watchers: AtomicU32::new(u32::from(debug.is_some()) + u32::from(streams.is_some())),
            debug,
            frames: Lock::new(FrameTable::default()),
            trace: Trace::default(),
            streams,
            overhead,
            region_tail,
        };
        let no_pool = Error::no_memory("the pool's record could not be allocated");
        let pool = Pool { shared: super::region::try_box(shared).ok_or(no_pool)? };
        let s = &pool.shared;
        // The first one is the one under which others are taken.
        let locks = [s.trims.raw(), s.inner.raw(), s.outside.raw(), s.frames.raw(), s.trace.raw()];
        let debug_lock = pool.shared.debug.as_ref().map(Debug::raw);
        let stream_locks = s.streams.iter().flat_map(Streams::locks);
        if !locks.into_iter().chain(debug_lock).chain(stream_locks).all(register) {
            return Err(no_memory_for_locks());
        }
        if first > 0 {
            pool.add_region(first, 1)?;
        }
        Ok(pool)
    }

    /// A pool over the caller's buffer and nothing else, unless `config` says how to grow.
    ///
    /// The base may be any address; up to 127 bytes before the first multiple of 128 stay unused.
    ///
    /// # Safety
    /// `[start, start + bytes)` is valid for reads and writes and used by nobody else until the pool is gone.
    pub unsafe fn over(start: NonNull<u8>, bytes: usize, config: PoolConfig) -> Result<Pool, Error> {
        let pool = Pool::new(PoolConfig { first_region: 0, ..config })?;
        // SAFETY: the contract of this function is that of `lend`.
        unsafe { pool.lend(start, bytes) }?;
        Ok(pool)
    }

    /// Adds the caller's buffer as a region. `Capacity` where it is too small for a block or 64 regions exist, `Argument`
    /// where it overlaps a region.
    ///
    /// # Safety
    /// As for [`Pool::over`].
    pub unsafe fn lend(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let s = &self.shared;
        let region = Region::new(0, start, bytes, s.region_tail, s.config.max_blocks, Backing::Lent)?;
        let mut inner = s.inner.lock();
        let from = start.as_ptr() as usize;
        if inner.bounds.iter().any(|&(base, held)| base < from.saturating_add(bytes) && from < base + held) {
            return Err(Error::argument("the buffer overlaps a region of the pool").needed(from as u64));
        }
        let refused = inner.insert(region);
        drop(inner);
        match refused {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::capacity("a pool has at most 64 regions").available(MAX_REGIONS as u64)),
        }
    }

    /// Allocates `bytes` bytes at a multiple of `align`, any power of two.
    #[inline]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        self.alloc_with(&Request::new(bytes as u64, align as u64))
    }

    /// Allocates and fills with zeros.
    pub fn alloc_zeroed(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        let block = self.alloc(bytes, align)?;
        // SAFETY: the block is new, so it is ours alone, and holds `bytes` bytes.
        unsafe { block.write_bytes(0, bytes) };
        Ok(block)
    }

    /// Allocates. `request.extra` is headroom for growth: it is counted, and a later [`Pool::realloc`] uses it.
    ///
    /// A [`Refusal`] has kind `Capacity` (it does not fit and nothing may grow), `NoMemory` (the source or the records
    /// were refused) or `Alignment`. The pool is then as it was.
    #[inline]
    pub fn alloc_with(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        match self.shared.watchers.load(Ordering::Relaxed) {
            0 => self.alloc_untraced(request),
            _ => self.alloc_watched(request),
        }
    }

    #[cold]
    fn alloc_watched(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        if let Some(streams) = self.shared.streams.as_ref().filter(|_| !self.shared.trace.is_on()) {
            return self.alloc_streamed(streams, request);
        }
        let block = self.alloc_untraced(request)?;
        self.shared.trace.allocated(block, request.bytes, request.align);
        Ok(block)
    }

    #[inline]
    pub(crate) fn alloc_untraced(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        let mut request = *request;
        let asked = request;
        request.extra = request.extra.saturating_add(self.shared.overhead);
        let block = match self.try_alloc(&request) {
            Ok(block) => block,
            Err(fault) => return self.alloc_slow(&asked, &request, fault),
        };
        if let Some(debug) = &self.shared.debug {
            debug.allocated(self, block, asked.bytes as usize);
        }
        Ok(block)
    }

    /// One attempt in the regions there are.
    #[inline]
    pub(crate) fn try_alloc(&self, request: &Request) -> Result<NonNull<u8>, Fault> {
        let mut worst = Fault::TooLarge;
        let mut inner = self.shared.inner.lock();
        for slot in 0..inner.regions.len() {
            let Some(region) = &mut inner.regions[slot] else { continue };
            match region.heap.alloc_with(request) {
                Ok(handle) => {
                    let block = region.pointer(handle.offset());
                    let low = region.heap.spare_nodes() < LOW_NODES && !region.fixed;
                    drop(inner);
                    if low {
                        self.more_nodes(slot);
                    }
                    return Ok(block);
                }
                Err(Fault::TooLarge) => {}
                // Records can be had more easily than space, so that is tried first.
                Err(fault) => worst = if worst == Fault::NoNode { worst } else { fault },
            }
        }
        Err(worst)
    }

    /// Frees a block. `Argument` where no live block of this pool starts there: freed before, an interior pointer,
    /// foreign, never allocated. Nothing has changed then.
    ///
    /// # Safety
    /// If `block` is live, nobody uses it any more. Any other pointer is safe to pass.
    #[inline]
    pub unsafe fn free(&self, block: NonNull<u8>) -> Result<(), Error> {
        if self.shared.watchers.load(Ordering::Relaxed) == 0 {
            let mut inner = self.shared.inner.lock();
            if let Some((slot, offset)) = inner.locate(block.as_ptr() as usize) {
                if let Some(region) = &mut inner.regions[slot] {
                    if region.heap.try_free_at(offset).is_some() {
                        return Ok(());
                    }
                }
            }
        } else if self.free_auto(block) {
            return Ok(());
        }
        self.free_slow(block, None)
    }

    /// Frees a block of which the caller knows the bytes it asked for. `Argument` where those differ, too.
    ///
    /// # Safety
    /// As for [`Pool::free`].
    pub unsafe fn free_sized(&self, block: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        self.free_slow(block, Some(bytes as u64))
    }

    /// Bytes that can be used at `block`, at least those asked for; `None` where no live block starts there.
    pub fn usable_size(&self, block: NonNull<u8>) -> Option<usize> {
        self.size_of(block).map(|(held, _)| held)
    }

    /// Bytes usable and asked for.
    pub(crate) fn size_of(&self, block: NonNull<u8>) -> Option<(usize, usize)> {
        let (mut planned, mut found) = (false, None);
        {
            let mut inner = self.shared.inner.lock();
            if let Some((slot, offset)) = inner.locate(block.as_ptr() as usize) {
                if let Some(region) = &mut inner.regions[slot] {
                    found = region.heap.find(offset).and_then(|handle| region.heap.size(handle));
                    planned = found.is_none();
                }
            }
        }
        let usable = |held: u64| held.saturating_sub(self.shared.overhead);
        if let Some((held, requested)) = found {
            let guarded = self.shared.debug.as_ref().is_some_and(Debug::exact);
            let usable = if guarded { requested } else { usable(held).max(requested) };
            return Some((usable as usize, requested as usize));
        }
        if planned {
            let bytes = usable(self.planned_size(block)?.0) as usize;
            return Some((bytes, bytes));
        }
        self.shared.outside.lock().size(block).map(|bytes| (bytes, bytes))
    }

    /// Bytes the block of a region holds, overhead included.
    pub(crate) fn held(&self, block: NonNull<u8>) -> Option<usize> {
        let mut inner = self.lock();
        let (slot, offset) = inner.locate(block.as_ptr() as usize)?;
        let heap = &mut inner.regions[slot].as_mut()?.heap;
        let handle = heap.find(offset)?;
        heap.size(handle).map(|(held, _)| held as usize)
    }

    /// Whether the address lies in this pool's memory, or is a block its fallback served.
    pub fn owns(&self, address: NonNull<u8>) -> bool {
        let inside = self.shared.inner.lock().locate(address.as_ptr() as usize).is_some();
        inside || self.shared.outside.lock().size(address).is_some()
    }

    /// `bytes` rounded up to what a block holds: asking for so many costs no more. `None` where that does not fit.
    pub fn good_size(&self, bytes: usize) -> Option<usize> {
        let extra = self.shared.overhead;
        let held = (bytes as u64).checked_add(extra)?.max(1).checked_next_multiple_of(crate::heap::GRANULE)?;
        usize::try_from(held - extra).ok()
    }

    /// The statistics, summed over the regions. Looks at every block of the highest bins for the largest free one.
    pub fn stats(&self) -> PoolStats {
        let inner = self.shared.inner.lock();
        let mut out = PoolStats {
            reserved: inner.reserved,
            grown: inner.grown,
            moved_bytes: inner.moved_bytes,
            trimmed_bytes: inner.trimmed_bytes,
            refused: inner.refused,
            bad: inner.bad,
            ..PoolStats::default()
        };
        for region in inner.regions.iter().flatten() {
            out.regions += 1;
            out.heap.add(&region.heap.stats());
            out.largest_free = out.largest_free.max(region.heap.largest_free());
        }
        drop(inner);
        let outside = self.shared.outside.lock();
        (out.fallback_blocks, out.fallback_bytes) = (outside.blocks(), outside.bytes());
        out
    }

    /// Checks every region's structure and, with guards on, every block's guard. `Internal` names what is wrong with the
    /// structure, `Argument` an overrun block. Holds the lock while it walks.
    pub fn check(&self) -> Result<(), Error> {
        for region in self.shared.inner.lock().regions.iter().flatten() {
            region.heap.check()?;
        }
        self.shared.debug.as_ref().map_or(Ok(()), |debug| debug.check(self))
    }

    /// Shows every block, free or used, with its region's base address. Holds the lock: `see` must not call the pool.
    pub fn walk(&self, mut see: impl FnMut(usize, Extent)) {
        for region in self.shared.inner.lock().regions.iter().flatten() {
            region.heap.walk(|extent| see(region.base, extent));
        }
    }

    /// A hash of everything that decides what the pool does next: equal before and after a call that was refused.
    pub fn fingerprint(&self) -> u64 {
        let inner = self.shared.inner.lock();
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        inner
            .regions
            .iter()
            .flatten()
            .fold(mix(7, inner.reserved), |hash, region| mix(mix(hash, region.base as u64), region.heap.fingerprint()))
    }

    /// Gives every region back. With live blocks it returns the pool and `Busy`, with their number in `needed`.
    pub fn destroy(self) -> Result<(), (Pool, Error)> {
        match self.idle() {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// Whether nothing is live: lets go of everything the pool itself holds, plans included, and then `Busy` with the number
    /// of live blocks in `needed`; an unfinished frame counts as one.
    pub fn idle(&self) -> Result<(), Error> {
        self.leave_streams();
        self.frame_clear();
        if let Some(debug) = &self.shared.debug {
            debug.flush(self);
        }
        let live = self.stats();
        match live.heap.blocks + live.fallback_blocks {
            0 => Ok(()),
            blocks => Err(Error::busy("blocks of the pool are still live").needed(blocks)),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Inner> {
        self.shared.inner.lock()
    }

    pub(crate) fn overhead(&self) -> u64 {
        self.shared.overhead
    }

    /// Counts and reports a pointer that names no live block.
    #[cold]
    pub(crate) fn bad_pointer(&self) -> Error {
        self.lock().bad += 1;
        Error::new(Kind::Argument, "no live block of the pool starts there")
    }
}

fn no_memory_for_locks() -> Error {
    Error::no_memory("the table of locks could not grow")
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Writes what is still in the buffer; there is nobody to tell that it failed.
        let _ = self.trace_stop();
        unregister(self.shared.trims.raw());
        unregister(self.shared.inner.raw());
        unregister(self.shared.outside.raw());
        unregister(self.shared.frames.raw());
        unregister(self.shared.trace.raw());
        self.shared.streams.iter().flat_map(Streams::locks).for_each(unregister);
        if let Some(debug) = &self.shared.debug {
            unregister(debug.raw());
        }
        let config = &self.shared.config;
        // SAFETY: the pool is going away, and using a block past its pool's end is the caller's error by contract.
        unsafe { self.shared.outside.lock().release_all(&config.fallback) };
    }
}
