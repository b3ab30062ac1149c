//! Growth and fallback: what happens when the regions are full. Nothing here is on the fast path.

use core::ptr::NonNull;
use std::alloc::{GlobalAlloc, Layout, System};

use super::os::rest;
use super::pool::{Pool, MAX_REGIONS};
use super::pool_config::{Fallback, Growth, Refusal, Tail};
use super::pool_shards::thread_number;
use super::region::{page_size, Backing, Region};
use crate::error::Error;
use crate::heap::{Fault, Node, Request, Side, GRANULE, MAX_EXTRA};

/// Regions added for one request before it is refused: the first serves it unless other threads are quicker.
const ATTEMPTS: u32 = 4;
/// Times a thread gives up its core for another that adds a region, before it rests between looks.
const GROWTH_YIELDS: u32 = 50;
/// Looks altogether: a second or two, which a source under load may take and a source that waits for us never ends.
const GROWTH_LOOKS: u32 = 10_000;

/// A block the fallback served.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    bytes: usize,
    align: usize,
    /// The pool's tail behind the block.
    tail: usize,
}

impl Foreign {
    /// What the fallback is asked for.
    fn layout(&self) -> Option<Layout> {
        Layout::from_size_align(self.bytes.max(1).checked_add(self.tail)?, self.align).ok()
    }
}

/// The blocks served by the fallback, by address: what makes a bad free of one of them an error and not a crash.
///
/// A sorted array and not a map: growing it can fail without ending the process. It may grow under its lock, which is not
/// the pool's.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    table: Vec<(usize, Foreign)>,
    bytes: u64,
}

impl Outside {
    pub(crate) fn blocks(&self) -> u64 {
        self.table.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn position(&self, block: NonNull<u8>) -> Result<usize, usize> {
        self.table.binary_search_by_key(&(block.as_ptr() as usize), |entry| entry.0)
    }

    pub(crate) fn size(&self, block: NonNull<u8>) -> Option<usize> {
        self.layout(block).map(|(bytes, _)| bytes)
    }

    /// Bytes asked for and alignment.
    pub(crate) fn layout(&self, block: NonNull<u8>) -> Option<(usize, usize)> {
        let at = self.position(block).ok()?;
        Some((self.table[at].1.bytes, self.table[at].1.align))
    }

    /// False where the table cannot grow.
    fn insert(&mut self, block: NonNull<u8>, foreign: Foreign) -> bool {
        let (Err(at), Ok(())) = (self.position(block), self.table.try_reserve(1)) else { return false };
        self.table.insert(at, (block.as_ptr() as usize, foreign));
        self.bytes += foreign.bytes as u64;
        true
    }

    fn remove(&mut self, block: NonNull<u8>) -> Option<Foreign> {
        let at = self.position(block).ok()?;
        let (_, foreign) = self.table.remove(at);
        self.bytes -= foreign.bytes as u64;
        Some(foreign)
    }

    /// Gives every block back.
    ///
    /// # Safety
    /// Nobody uses any of them any more.
    pub(crate) unsafe fn release_all(&mut self, fallback: &Fallback) {
        self.bytes = 0;
        for (address, foreign) in core::mem::take(&mut self.table) {
            if let Some(block) = NonNull::new(address as *mut u8) {
                // SAFETY: the block was in the table, so it is live in the fallback; the rest is the contract.
                unsafe { give_back(fallback, block, foreign) };
            }
        }
    }
}

/// # Safety
/// `block` is live in the fallback and was made with `foreign`; nobody uses it any more.
unsafe fn give_back(fallback: &Fallback, block: NonNull<u8>, foreign: Foreign) {
    match fallback {
        Fallback::None => {}
        // SAFETY: as the contract says.
        Fallback::Pool(pool) => drop(unsafe { pool.free(block) }),
        Fallback::System => {
            if let Some(layout) = foreign.layout() {
                // SAFETY: the block came from the system with this layout.
                unsafe { System.dealloc(block.as_ptr(), layout) };
            }
        }
    }
}

impl Pool {
    /// The request did not fit at once: more records, another region, the fallback, or a refusal.
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_slow(
        &self,
        bytes: u64,
        align: u64,
        extra: u64,
        side: Side,
        fault: Fault,
    ) -> Result<NonNull<u8>, Refusal> {
        let asked = &Request { bytes, align, extra, side };
        let front = self.shared.debug.as_ref().map_or(0, |debug| debug.front(align));
        let padded = &asked.extra(extra.saturating_add(self.overhead()).saturating_add(front));
        let mut cause = fault.error();
        // No region could serve these, so none is added for them.
        if !padded.align.is_power_of_two() {
            return Err(self.refuse(Fault::Alignment.error(), asked));
        }
        if padded.extra > MAX_EXTRA {
            return Err(self.refuse(Error::capacity("tail, guard and headroom of a block are at most 16 MiB"), asked));
        }
        let retry = match fault {
            Fault::NoNode => self.more_nodes_everywhere(),
            _ => self.wait_for_trims() | self.shared.debug.as_ref().is_some_and(|debug| debug.flush(self)),
        };
        if retry {
            if let Ok(block) = self.try_alloc(padded) {
                return self.admit(block, asked);
            }
        }
        // A region of its own for every attempt: another thread may have filled the one just added.
        let attempts = if matches!(self.shared.config.growth, Growth::None) { 0 } else { ATTEMPTS };
        let mut seen = None;
        for _ in 0..attempts {
            let before = self.begin_growth();
            if seen != Some(before) {
                // Somebody else's region may have room for this request, too, also one that came just after it was refused.
                if let Ok(block) = self.try_alloc(padded) {
                    self.end_growth();
                    return self.admit(block, asked);
                }
            }
            let grown = self.grow(padded);
            seen = Some(self.end_growth());
            if let Err(error) = grown {
                cause = error;
                break;
            }
            if let Ok(block) = self.try_alloc(padded) {
                return self.admit(block, asked);
            }
        }
        // Areas that wait for the next frame of their plan are worth less than a block that somebody needs now.
        if self.release_idle_areas() {
            if let Ok(block) = self.try_alloc(padded) {
                return self.admit(block, asked);
            }
        }
        match self.ask_fallback(asked) {
            Some(block) => Ok(block),
            None => Err(self.refuse(cause, asked)),
        }
    }

    pub(crate) fn admit(&self, block: NonNull<u8>, asked: &Request) -> Result<NonNull<u8>, Refusal> {
        let Some(debug) = &self.shared.debug else { return Ok(block) };
        debug.allocated(self, block, asked.bytes as usize, asked.align).ok_or_else(|| self.no_record(asked))
    }

    /// The refusal where a checking pool has no memory for a block's record.
    #[cold]
    pub(crate) fn no_record(&self, asked: &Request) -> Refusal {
        self.refuse(Error::no_memory("the record of a block could not be allocated"), asked)
    }

    /// The refusal, with what is free now.
    pub(crate) fn refuse(&self, error: Error, asked: &Request) -> Refusal {
        let Refusal { error, free, largest } = self.refuse_as_is(error);
        let error = match error.kind {
            crate::error::Kind::Alignment => error.needed(asked.align),
            _ => error.needed(asked.bytes).available(largest),
        };
        Refusal { error, free, largest }
    }

    /// The same for an error that has its own amounts.
    pub(crate) fn refuse_as_is(&self, error: Error) -> Refusal {
        self.lock().refused += 1;
        let (mut free, mut largest) = (0, 0);
        for shard in self.shards() {
            for region in shard.lock().regions.iter().flatten() {
                free += region.heap.stats().free;
                largest = largest.max(region.heap.largest_free());
            }
        }
        Refusal { error, free, largest }
    }

    /// Where a trim holds free blocks for a moment, waits for its end. Returns whether it did.
    fn wait_for_trims(&self) -> bool {
        let mut waited = false;
        while self.shards().any(|shard| shard.lock().trimming > 0) {
            waited = true;
            std::thread::yield_now();
        }
        waited
    }

    /// Waits while another thread adds a region: a crowd that finds the pool full would else add one each. By time and not by
    /// turns alone, as many cores take a thousand turns in less than one page fault. Not for ever, as the source may wait for
    /// this thread, and not at all where this thread is inside the source. Returns how often the pool has grown. To be followed by [`Pool::end_growth`].
    fn begin_growth(&self) -> u64 {
        let (process, thread) = (std::process::id(), thread_number());
        for look in 1..=GROWTH_LOOKS {
            let mut inner = self.lock();
            if inner.grower.0 != process {
                // Whoever was growing is on the far side of a fork.
                inner.growing = 0;
            }
            if inner.growing == 0 || inner.grower.1 == thread || look == GROWTH_LOOKS {
                inner.grower = (process, thread);
                inner.growing += 1;
                return inner.grown;
            }
            drop(inner);
            if look <= GROWTH_YIELDS {
                std::thread::yield_now();
            } else {
                rest();
            }
        }
        unreachable!("the last look returns")
    }

    fn end_growth(&self) -> u64 {
        let mut inner = self.lock();
        // Nothing to take away where the source itself has forked.
        inner.growing = inner.growing.saturating_sub(1);
        inner.grown
    }

    /// Reserves records for a region: allocated and released outside the lock, moved under it.
    pub(crate) fn more_nodes(&self, shard: usize, slot: usize) -> bool {
        let capacity = match &self.shard(shard).lock().regions[slot] {
            Some(region) if !region.fixed => {
                let most = region.bytes / GRANULE as usize + 2;
                (region.heap.node_capacity() < most).then(|| (region.heap.node_capacity() * 2).min(most))
            }
            _ => None,
        };
        let Some(capacity) = capacity else { return false };
        let mut bigger: Vec<Node> = Vec::new();
        if bigger.try_reserve_exact(capacity).is_err() {
            return false;
        }
        let mut inner = self.shard(shard).lock();
        let old = match &mut inner.regions[slot] {
            Some(region) => region.heap.more_nodes(bigger),
            None => bigger,
        };
        drop(inner);
        drop(old);
        true
    }

    fn more_nodes_everywhere(&self) -> bool {
        let mut any = false;
        for shard in 0..=self.shared.more.len() {
            let slots = self.shard(shard).lock().regions.len();
            any |= (0..slots).filter(|&slot| self.more_nodes(shard, slot)).count() > 0;
        }
        any
    }

    /// Adds a region for a request, if the cap allows one.
    fn grow(&self, padded: &Request) -> Result<(), Error> {
        let need = self.region_for(padded)?;
        let bytes = match self.shared.config.growth {
            Growth::None => need,
            Growth::Exact { at_least } => need.max(at_least),
            Growth::Geometric { first } => {
                let so_far = usize::try_from(self.lock().reserved).unwrap_or(usize::MAX);
                need.max(first).max(so_far.min(isize::MAX as usize))
            }
        };
        // Growing by less than the policy would like is better than not growing at all.
        let room = usize::try_from(self.shared.config.cap.saturating_sub(self.lock().reserved)).unwrap_or(usize::MAX);
        let bytes = bytes.min(room);
        if bytes < need {
            return Err(Error::capacity("the pool's cap is reached").needed(need as u64).available(room as u64));
        }
        let align = usize::try_from(padded.align).unwrap_or(1);
        let exact = bytes == need;
        let shard = self.own_shard();
        match self.add_region(shard, bytes, align) {
            Ok(()) => {}
            // The source would not give that much: try with what the request needs.
            Err(_) if !exact => self.add_region(shard, need, align)?,
            Err(error) => return Err(error),
        }
        self.lock().grown += 1;
        Ok(())
    }

    /// Bytes of a region in which the request fits wherever the source puts it.
    fn region_for(&self, padded: &Request) -> Result<usize, Error> {
        let overflow = Error::overflow("the request does not fit the address space").needed(padded.bytes);
        let page = page_size() as u64;
        let slack = if padded.align > page { padded.align } else { 0 };
        [padded.extra, slack, self.shared.region_tail as u64, 2 * GRANULE]
            .into_iter()
            .try_fold(padded.bytes, u64::checked_add)
            .and_then(|sum| sum.checked_next_multiple_of(page))
            .and_then(|sum| usize::try_from(sum).ok())
            .filter(|&sum| sum <= isize::MAX as usize)
            .ok_or(overflow)
    }

    /// Takes a region from the source, outside the lock. The bytes count against the cap while they are being taken.
    pub(crate) fn add_region(&self, shard: usize, bytes: usize, align: usize) -> Result<(), Error> {
        let s = &self.shared;
        {
            let mut inner = self.lock();
            let room = s.config.cap.saturating_sub(inner.reserved);
            if bytes as u64 > room {
                return Err(Error::capacity("the pool's cap is reached").needed(bytes as u64).available(room));
            }
            inner.reserved += bytes as u64;
        }
        let align = align.clamp(1, page_size());
        let made = Region::from_source(0, &s.config.source, bytes, align, s.region_tail, s.config.max_blocks);
        let (region, reserved) = match made {
            Ok(region) => {
                let reserved = region.reserved() as u64;
                (Ok(region), reserved)
            }
            Err(error) => (Err(error), 0),
        };
        let settle = |reserved: u64| {
            let mut inner = self.lock();
            inner.reserved = inner.reserved - bytes as u64 + reserved;
        };
        let refused = match region {
            Ok(mut region) => {
                let mut held = self.lock_all();
                if held.iter().flatten().any(|inner| inner.overlaps(region.base, region.bytes)) {
                    drop(held);
                    settle(0);
                    // Not given back, either: that would free what is in use.
                    region.backing = Backing::Lent;
                    let twice = Error::no_memory("the memory source returned memory that the pool has already");
                    return Err(twice.needed(bytes as u64));
                }
                match &mut held[shard] {
                    Some(inner) => inner.insert(region).err(),
                    None => Some(region),
                }
            }
            Err(error) => {
                settle(0);
                return Err(error);
            }
        };
        settle(if refused.is_some() { 0 } else { reserved });
        match refused {
            None => Ok(()),
            // Dropped here, outside every lock.
            Some(_) => Err(Error::capacity("a pool has at most 64 regions").available(MAX_REGIONS as u64)),
        }
    }

    fn ask_fallback(&self, asked: &Request) -> Option<NonNull<u8>> {
        let (bytes, align) = (usize::try_from(asked.bytes).ok()?, usize::try_from(asked.align).ok()?);
        // Another heap keeps no tail for us, so it is part of the block.
        let tail = match self.shared.config.tail {
            Tail::None => 0,
            Tail::Readable(bytes) | Tail::Exclusive(bytes) => bytes,
        };
        let foreign = Foreign { bytes, align: align.max(GRANULE as usize), tail };
        let layout = foreign.layout()?;
        let block = match &self.shared.config.fallback {
            Fallback::None => None,
            Fallback::Pool(pool) => pool.alloc(layout.size(), layout.align()).ok(),
            // SAFETY: the layout is not empty.
            Fallback::System => NonNull::new(unsafe { System.alloc(layout) }),
        }?;
        if self.shared.outside.lock().insert(block, foreign) {
            return Some(block);
        }
        // SAFETY: the block was made a moment ago and nobody has seen it.
        unsafe { give_back(&self.shared.config.fallback, block, foreign) };
        None
    }

    /// Everything a free can be but a plain block of a region.
    #[cold]
    pub(crate) fn free_slow(&self, block: NonNull<u8>, bytes: Option<u64>) -> Result<(), Error> {
        let known = self.size_of(block);
        if let (Some((_, requested)), Some(bytes)) = (known, bytes) {
            // A planned block keeps its place when it gets smaller, and one that grew when it was recorded holds more than it
            // is handed out for: any size it has room for may be the one the host knows.
            let room = || usize::try_from(bytes).is_ok_and(|b| self.good_size(b).is_some_and(|held| held <= requested));
            if requested as u64 != bytes && !(room() && self.planned_size(block).is_some()) {
                self.lock().bad += 1;
                let wrong = Error::argument("the size does not match the block");
                return Err(wrong.needed(bytes).available(requested as u64));
            }
        }
        if self.shared.trace.is_on() {
            self.shared.trace.freed(block);
        }
        if self.shared.streams.as_ref().is_some_and(|streams| self.free_streamed(streams, block)) {
            return Ok(());
        }
        let foreign = self.shared.outside.lock().remove(block);
        if let Some(foreign) = foreign {
            // SAFETY: the block was in the table until now, so this call alone gives it back; the caller is done with it.
            unsafe { give_back(&self.shared.config.fallback, block, foreign) };
            return Ok(());
        }
        if let Some(debug) = &self.shared.debug {
            return debug.free(self, block);
        }
        self.watch_free(block);
        match self.release(block) || self.free_planned(block) {
            true => Ok(()),
            false => Err(self.bad_pointer()),
        }
    }

    /// Frees a block of a region. False where there is none.
    pub(crate) fn release(&self, block: NonNull<u8>) -> bool {
        let Some((mut inner, slot, offset)) = self.locate(block) else { return false };
        match &mut inner.regions[slot] {
            Some(region) => region.heap.try_free_at(offset).is_some(),
            None => false,
        }
    }
}
