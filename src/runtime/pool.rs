//! The pool: pointers on top of one heap per region, shared by any number of threads.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::frame_table::FrameTable;
use super::pool_auto::Streams;
use super::pool_config::{PoolConfig, Refusal, Tail};
use super::pool_debug::Debug;
use super::pool_fallback::Outside;
use super::pool_lock::{register, unregister, Guard, Lock};
use super::pool_shards::{Padded, MAX_SHARDS, SHARDED};
use super::pool_trace::Trace;
use super::region::{Backing, Region};
use crate::error::{Error, Kind};
use crate::heap::{Fault, Request, Side};

/// Regions a pool can have: few enough that finding the one a pointer belongs to takes constant steps.
pub(crate) const MAX_REGIONS: usize = 64;
/// Bytes that the parts of a lent buffer are multiples of.
const LEND_UNIT: usize = 64 << 10;
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
    /// Threads that add a region at the moment: one, or a few where that takes very long. In the first shard only.
    pub(crate) growing: u32,
    /// The process and the thread of the last of them.
    pub(crate) grower: (u32, u32),
    pub(crate) grown: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) trimmed_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) bad: u64,
}

impl Inner {
    /// One that can hold all its regions without allocating.
    fn reserved() -> Result<Inner, std::collections::TryReserveError> {
        let mut inner = Inner::default();
        inner.regions.try_reserve_exact(MAX_REGIONS)?;
        inner.bounds.try_reserve_exact(MAX_REGIONS)?;
        Ok(inner)
    }

    pub(crate) fn overlaps(&self, from: usize, bytes: usize) -> bool {
        self.bounds.iter().any(|&(base, held)| base < from.saturating_add(bytes) && from < base + held)
    }

    /// The region an address lies in, and its offset there. At most 64 steps, one as a rule.
    #[inline]
    pub(crate) fn locate(&self, address: usize) -> Option<(usize, u64)> {
        let hit = |&(base, bytes): &(usize, usize)| address.wrapping_sub(base) < bytes;
        let index = self.bounds.iter().position(hit)?;
        Some((index, (address - self.bounds[index].0) as u64))
    }

    /// Whether no slot is left for a region.
    pub(crate) fn is_full(&self) -> bool {
        self.regions.len() == MAX_REGIONS && self.regions.iter().all(Option::is_some)
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
    /// The first shard: all there is as a rule. Apart from what every call reads before it takes the lock.
    pub(crate) inner: Padded,
    /// The other shards.
    pub(crate) more: Box<[Padded]>,
    pub(crate) outside: Lock<Outside>,
    /// Held through a whole trim, so that a fork waits for its end: in the child nobody would give the held blocks back.
    pub(crate) trims: Lock<()>,
    pub(crate) config: PoolConfig,
    pub(crate) debug: Option<Debug>,
    pub(crate) frames: Lock<FrameTable>,
    /// Frames begun and not ended.
    pub(crate) open_frames: AtomicU32,
    pub(crate) trace: Trace,
    /// What finds frames by itself, if the pool does.
    pub(crate) streams: Option<Streams>,
    /// Reasons for a call to look beyond the first shard: debug checks (1), streams (1), a trace (1), frames being recorded
    /// (1 each), more shards ([`SHARDED`]).
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
        let shards = config.shards.clamp(1, MAX_SHARDS);
        let mut more = Vec::new();
        more.try_reserve_exact(shards - 1).map_err(no_memory)?;
        for _ in 1..shards {
            more.push(Padded(Lock::new(Inner::reserved().map_err(no_memory)?)));
        }
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
            inner: Padded(Lock::new(Inner::reserved().map_err(no_memory)?)),
            more: more.into_boxed_slice(),
            outside: Lock::new(Outside::default()),
            trims: Lock::new(()),
            config,
            watchers: AtomicU32::new(
                u32::from(debug.is_some()) + u32::from(streams.is_some()) + if shards > 1 { SHARDED } else { 0 },
            ),
            debug,
            frames: Lock::new(FrameTable::default()),
            open_frames: AtomicU32::new(0),
            trace: Trace::default(),
            streams,
            overhead,
            region_tail,
        };
        let no_pool = Error::no_memory("the pool's record could not be allocated");
        let pool = Pool { shared: super::region::try_box(shared).ok_or(no_pool)? };
        if !pool.locks().all(register) {
            return Err(Error::no_memory("the table of locks could not grow"));
        }
        if first > 0 {
            for shard in 0..shards {
                pool.add_region(shard, first.div_ceil(shards), 1)?;
            }
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
    /// where it overlaps a region or cannot be one. Nothing of it is used then.
    ///
    /// # Safety
    /// As for [`Pool::over`].
    pub unsafe fn lend(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let end = (start.as_ptr() as usize).checked_add(bytes);
        if bytes > isize::MAX as usize || end.is_none() {
            return Err(Error::argument("the buffer ends past the address space").needed(bytes as u64));
        }
        let overlap = || Err(Error::argument("the buffer overlaps a region of the pool").needed(start.as_ptr() as u64));
        if self.shards().any(|shard| shard.lock().overlaps(start.as_ptr() as usize, bytes)) {
            return overlap();
        }
        let count = self.shared.more.len() + 1;
        let part = bytes / count / LEND_UNIT * LEND_UNIT;
        let count = if part == 0 { 1 } else { count };
        // All are made before one is used: a buffer is lent as a whole or not at all.
        let mut made = Vec::new();
        made.try_reserve_exact(count).map_err(|_| Error::no_memory("the region's records could not be allocated"))?;
        for shard in 0..count {
            let from = shard * part;
            let len = if shard + 1 == count { bytes - from } else { part };
            // SAFETY: `from` is less than `bytes`, or 0.
            let start = unsafe { start.add(from) };
            let s = &self.shared;
            made.push(Region::new(shard as u32, start, len, s.region_tail, s.config.max_blocks, Backing::Lent)?);
        }
        // Looked at again and added in one piece: another thread may be adding a region, too.
        let mut held = self.lock_all();
        if held.iter().flatten().any(|inner| inner.overlaps(start.as_ptr() as usize, bytes)) {
            return overlap();
        }
        let refusal = || Error::capacity("a pool has at most 64 regions").available(MAX_REGIONS as u64);
        if held.iter().flatten().take(count).any(|inner| inner.is_full()) {
            return Err(refusal());
        }
        for (inner, region) in held.iter_mut().flatten().zip(made) {
            inner.insert(region).map_err(|_| refusal())?;
        }
        Ok(())
    }

    /// Allocates `bytes` bytes at a multiple of `align`, any power of two.
    #[inline]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        match self.shared.watchers.load(Ordering::Relaxed) {
            0 | SHARDED => self.alloc_parts(bytes as u64, align as u64, 0, Side::Auto),
            _ => self.alloc_watched(&Request::new(bytes as u64, align as u64)),
        }
    }

    /// Allocates and fills with zeros.
    pub fn alloc_zeroed(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        let block = self.alloc(bytes, align)?;
        let known = self.zeroed_to(block, bytes);
        // SAFETY: the block is new, so it is ours alone, and holds that many bytes.
        unsafe { block.write_bytes(0, known) };
        Ok(block)
    }

    /// Allocates. `request.extra` is headroom for growth: it is counted, and a later [`Pool::realloc`] uses it.
    ///
    /// A [`Refusal`] has kind `Capacity` (it does not fit and nothing may grow), `NoMemory` (the source or the records
    /// were refused) or `Alignment`. The pool is then as it was.
    #[inline]
    pub fn alloc_with(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        match self.shared.watchers.load(Ordering::Relaxed) {
            0 | SHARDED => self.alloc_untraced(request),
            _ => self.alloc_watched(request),
        }
    }

    #[cold]
    fn alloc_watched(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        if let Some(streams) = self.shared.streams.as_ref().filter(|_| !self.shared.trace.is_on()) {
            return self.alloc_streamed(streams, request);
        }
        let block = self.alloc_untraced(request)?;
        if self.shared.trace.is_on() {
            self.shared.trace.allocated(block, request.bytes, request.align);
        }
        Ok(block)
    }

    #[inline]
    pub(crate) fn alloc_untraced(&self, request: &Request) -> Result<NonNull<u8>, Refusal> {
        let &Request { bytes, align, extra, side } = request;
        self.alloc_parts(bytes, align, extra, side)
    }

    // In words and not as a record: written in parts and read back whole, a record costs a stall as long as the search.
    fn alloc_parts(&self, bytes: u64, align: u64, extra: u64, side: Side) -> Result<NonNull<u8>, Refusal> {
        let mut padded = extra.saturating_add(self.shared.overhead);
        let debug = self.shared.debug.as_ref();
        if let Some(debug) = debug {
            padded = padded.saturating_add(debug.front(align));
            if !debug.has_room() {
                return Err(self.no_record(&Request { bytes, align, extra, side }));
            }
        }
        match self.try_parts(bytes, align, padded, side) {
            Ok(block) if debug.is_some() => self.admit(block, &Request { bytes, align, extra, side }),
            Ok(block) => Ok(block),
            Err(fault) => self.alloc_slow(bytes, align, extra, side, fault),
        }
    }

    /// One attempt in the regions there are.
    #[inline(never)]
    pub(crate) fn try_alloc(&self, request: &Request) -> Result<NonNull<u8>, Fault> {
        self.try_parts(request.bytes, request.align, request.extra, request.side)
    }

    #[inline]
    fn try_parts(&self, bytes: u64, align: u64, extra: u64, side: Side) -> Result<NonNull<u8>, Fault> {
        let request = Request { bytes, align, extra, side };
        if !self.shared.more.is_empty() {
            return self.try_sharded(&request);
        }
        let mut inner = self.shared.inner.0.lock();
        // Apart from the others, so that the compiler keeps the request in registers.
        let Some(Some(region)) = inner.regions.first_mut() else { return self.try_others(0, inner, 1, &request) };
        match region.heap.alloc_with(&request) {
            Ok(handle) => {
                let block = region.pointer(handle.offset());
                let low = region.heap.spare_nodes() < LOW_NODES && !region.fixed;
                drop(inner);
                if low {
                    self.more_nodes(0, 0);
                }
                Ok(block)
            }
            Err(fault) => match self.try_others(0, inner, 1, &Request { bytes, align, extra, side }) {
                Ok(block) => Ok(block),
                Err(other) => Err(worse(fault, other)),
            },
        }
    }

    /// The regions from `slot` on.
    #[inline(never)]
    pub(crate) fn try_others(
        &self,
        shard: usize,
        mut inner: Guard<'_, Inner>,
        slot: usize,
        request: &Request,
    ) -> Result<NonNull<u8>, Fault> {
        let mut worst = Fault::TooLarge;
        for slot in slot..inner.regions.len() {
            let Some(region) = &mut inner.regions[slot] else { continue };
            match region.heap.alloc_with(request) {
                Ok(handle) => {
                    let block = region.pointer(handle.offset());
                    let low = region.heap.spare_nodes() < LOW_NODES && !region.fixed;
                    drop(inner);
                    if low {
                        self.more_nodes(shard, slot);
                    }
                    return Ok(block);
                }
                Err(fault) => worst = worse(worst, fault),
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
            let mut inner = self.shared.inner.0.lock();
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
        if self.shared.watchers.load(Ordering::Relaxed) == SHARDED && self.release(block) {
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

    /// Gives every region back. With live blocks it returns the pool and `Busy`, with their number in `needed`.
    pub fn destroy(self) -> Result<(), (Pool, Error)> {
        match self.idle() {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// Whether nothing is live: lets go of everything the pool itself holds, plans included, and then `Busy` with the number
    /// of live blocks in `needed`, or of frames that have not ended.
    pub fn idle(&self) -> Result<(), Error> {
        self.leave_streams();
        self.frame_clear();
        if let Some(debug) = &self.shared.debug {
            debug.flush(self);
        }
        let live = self.stats();
        let open = u64::from(self.shared.open_frames.load(Ordering::Relaxed));
        match live.heap.blocks + live.fallback_blocks {
            0 if open > 0 => Err(Error::busy("frames of the pool have not ended").needed(open)),
            0 => Ok(()),
            blocks => Err(Error::busy("blocks of the pool are still live").needed(blocks)),
        }
    }

    /// The first shard, which also keeps what concerns them all: the bytes reserved.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Inner> {
        self.shared.inner.0.lock()
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

/// Which of two regions' faults to act on: records can be had more easily than space, so that is tried first.
pub(crate) fn worse(a: Fault, b: Fault) -> Fault {
    match (a, b) {
        (Fault::NoNode, _) | (_, Fault::NoNode) => Fault::NoNode,
        (Fault::TooLarge, other) | (other, Fault::TooLarge) => other,
        (_, later) => later,
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Writes what is still in the buffer; there is nobody to tell that it failed.
        let _ = self.trace_stop();
        self.locks().for_each(unregister);
        let config = &self.shared.config;
        // SAFETY: the pool is going away, and using a block past its pool's end is the caller's error by contract.
        unsafe { self.shared.outside.lock().release_all(&config.fallback) };
    }
}
