//! Frames found by themselves: a pool whose host cannot say where a frame begins and ends.
//!
//! ```text
//! request ─> the thread's stream ─┬─ in a frame ──> place of the plan
//!                                 ├─ a known frame begins ──> its area is taken, the frame entered
//!                                 └─ neither ──> general path ──> the detector sees it ──> repeats? plan, enter
//! ```
//!
//! What was found is only ever a prediction; the replay's rule keeps a wrong one from doing harm. No two locks are held at
//! a time: the stream's is released before the pool is asked.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Once};

use super::frame::SharedPlan;
use super::pool::Pool;
use super::pool_config::Refusal;
use super::pool_lock::{register, Lock, RawLock};
use super::pool_shards::SHARDED;
use super::stream::{Active, Freed, Next, Stream};
use crate::error::Error;
use crate::heap::frame::{FramePlan, Repeat};
use crate::heap::{Request, Side};

/// Streams of a pool: threads whose numbers agree modulo this share one, which costs them frames, never safety.
const STREAMS: usize = 64;
/// Bytes asked for outside frames after which the areas of idle frames are given to the general path.
const PATIENCE: u64 = 4 << 20;
/// Bytes of a block that is not worth keeping for the next one: the most up to which glibc's `malloc` keeps any.
const VERY_LARGE: u64 = 32 << 20;
/// Bytes of a block whose pages are worth a system call.
const WORTHWHILE: usize = 256 << 10;

#[derive(Debug, Default)]
struct Slot {
    stream: Lock<Stream>,
    /// Blocks it wants to hear of, so that a free by another thread need not look into every stream.
    watched: AtomicU32,
}

/// The streams of a pool's threads.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Slot>,
    /// Bytes asked for since a frame was last left, outside any.
    outside: AtomicU64,
    pub(crate) resident: super::pool_resident::Governor,
}

impl Streams {
    pub(crate) fn new() -> Result<Streams, Error> {
        // Once, for all pools: a fork must not leave it taken either.
        static REGISTERED: Once = Once::new();
        let mut registered = true;
        REGISTERED.call_once(|| registered = register(USED.raw()));
        if !registered {
            return Err(Error::no_memory("the table of locks could not grow"));
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(STREAMS).map_err(|_| Error::no_memory("the pool's streams could not be allocated"))?;
        slots.resize_with(STREAMS, Slot::default);
        Ok(Streams { slots, outside: AtomicU64::new(0), resident: super::pool_resident::Governor::default() })
    }

    /// Every lock, for a fork.
    pub(crate) fn locks(&self) -> impl Iterator<Item = &RawLock> {
        self.slots.iter().map(|slot| slot.stream.raw())
    }
}

impl Slot {
    fn with<R>(&self, act: impl FnOnce(&mut Stream) -> R) -> R {
        let mut stream = self.stream.lock();
        let out = act(&mut stream);
        self.watched.store(stream.watched() as u32, Ordering::Relaxed);
        out
    }
}

/// Numbers of threads that have ended, and how many were ever given.
static USED: Lock<(Vec<usize>, usize)> = Lock::new((Vec::new(), 0));

/// A small number for this thread, given back when it ends; `None` while it is ending.
fn thread_number() -> Option<usize> {
    struct Number(usize);
    impl Drop for Number {
        fn drop(&mut self) {
            let mut used = USED.lock();
            if used.0.try_reserve(1).is_ok() {
                used.0.push(self.0);
            }
        }
    }
    fn take() -> Number {
        let mut used = USED.lock();
        Number(used.0.pop().unwrap_or_else(|| {
            used.1 += 1;
            used.1 - 1
        }))
    }
    std::thread_local!(static NUMBER: Number = take());
    NUMBER.try_with(|n| n.0).ok()
}

impl Pool {
    /// [`Pool::alloc_with`] of a pool that finds its frames.
    pub(crate) fn alloc_streamed(&self, streams: &Streams, request: &Request) -> Result<NonNull<u8>, Refusal> {
        let Some(slot) = thread_number().map(|n| &streams.slots[n % STREAMS]) else {
            return self.alloc_untraced(request);
        };
        // Headroom belongs to blocks that grow, which no plan foresees.
        if request.extra > 0 || !request.align.is_power_of_two() {
            return self.alloc_untraced(request);
        }
        let padded = request.bytes.saturating_add(self.overhead());
        let next = slot.with(|stream| {
            let next = stream.request(padded, request.align);
            if let Next::Planned(block) = next {
                let _ = stream.allocated(block, padded, request.align);
            }
            next
        });
        match next {
            Next::Planned(block) => return Ok(block),
            Next::General(over) => self.leave_stream(over),
            Next::Enter { over, signature, plan, position } => {
                self.leave_stream(over);
                if let Some(block) = self.enter_stream(slot, signature, plan, position, Some((padded, request.align))) {
                    return Ok(block);
                }
            }
        }
        self.make_room(streams, slot, request.bytes);
        let block = match self.alloc_untraced(&request.side(Side::Low)) {
            Err(_) if self.give_up_stream(slot) => self.alloc_untraced(&request.side(Side::Low))?,
            other => other?,
        };
        let repeat = slot.with(|stream| stream.allocated(block, padded, request.align));
        if let Some(repeat) = repeat {
            self.predict(slot, &repeat);
        }
        Ok(block)
    }

    /// Plans a repetition and joins it where it is.
    #[cold]
    fn predict(&self, slot: &Slot, repeat: &Repeat) {
        let known = slot.with(|stream| stream.known(repeat.signature));
        let planned = known.or_else(|| self.frame_plan(repeat.signature));
        let planned = planned.or_else(|| FramePlan::new(&repeat.sequence).ok().map(Arc::new));
        let Some(plan) = planned else { return slot.with(Stream::rest) };
        slot.with(|stream| stream.learn(repeat.signature, &plan));
        if repeat.position > 0 {
            self.enter_stream(slot, repeat.signature, plan, repeat.position, None);
        }
    }

    /// Enters a frame at `position` and serves `request` from it.
    #[cold]
    fn enter_stream(
        &self,
        slot: &Slot,
        signature: u64,
        plan: SharedPlan,
        position: usize,
        request: Option<(u64, u64)>,
    ) -> Option<NonNull<u8>> {
        let Some((instance, replay)) = self.enter_planned(signature, plan) else {
            slot.with(Stream::rest);
            return None;
        };
        let (block, crowded) = slot.with(|stream| {
            // Another thread with the same number may have been quicker.
            if stream.is_active() {
                return (None, Some((instance, replay)));
            }
            stream.enter(signature, instance, replay, position);
            let block = request.and_then(|(bytes, align)| {
                let block = stream.serve(bytes, align)?;
                let _ = stream.allocated(block, bytes, align);
                Some(block)
            });
            (block, None)
        });
        if let Some((instance, replay)) = crowded {
            self.leave_planned(&instance, replay);
        }
        block
    }

    /// Leaves the frame in progress, and gives its area back if nothing in it is live: a request that it does not foresee
    /// would else be refused the memory that it holds. Whether there was one.
    #[cold]
    fn give_up_stream(&self, slot: &Slot) -> bool {
        let over = slot.with(Stream::abandon);
        let any = over.is_some();
        self.leave_stream(over);
        any && self.release_idle_areas()
    }

    fn leave_stream(&self, over: Option<Active>) {
        if let Some(active) = over {
            self.leave_planned(&active.instance, active.replay);
            if let Some(streams) = &self.shared.streams {
                self.govern_frame(&streams.resident);
            }
        }
    }

    /// Outside frames for a while: what idle frames hold is better used than fresh memory.
    fn make_room(&self, streams: &Streams, slot: &Slot, bytes: u64) {
        if slot.with(|stream| stream.is_active()) {
            streams.outside.store(0, Ordering::Relaxed);
        } else if streams.outside.fetch_add(bytes, Ordering::Relaxed) + bytes > PATIENCE {
            streams.outside.store(0, Ordering::Relaxed);
            self.release_idle_areas();
        }
        self.govern(&streams.resident, bytes);
    }

    /// A free, if the pool finds its frames and nothing else watches it. False where the block is none of its own.
    pub(crate) fn free_auto(&self, block: NonNull<u8>) -> bool {
        let alone = self.shared.watchers.load(Ordering::Relaxed) & !SHARDED == 1;
        match &self.shared.streams {
            Some(streams) if alone => self.free_streamed(streams, block) || self.release_general(block),
            _ => false,
        }
    }

    /// Frees a block of the general path. The pages of a very large one go back at once, as those of any `malloc` do.
    fn release_general(&self, block: NonNull<u8>) -> bool {
        let freed = {
            let Some((mut inner, slot, offset)) = self.locate(block) else { return false };
            inner.regions[slot].as_mut().and_then(|region| region.heap.try_free_at(offset))
        };
        if freed.is_some_and(|bytes| bytes >= VERY_LARGE) {
            self.trim_pages();
        }
        freed.is_some()
    }

    /// [`Pool::realloc_with`] for a larger size: to the sequence it is a new block and a free, whether it had to move or not.
    ///
    /// # Safety
    /// As for [`Pool::realloc`].
    pub(crate) unsafe fn realloc_streamed(
        &self,
        streams: &Streams,
        old: NonNull<u8>,
        bytes: usize,
        headroom: usize,
    ) -> Result<NonNull<u8>, Refusal> {
        let slot = thread_number().map(|n| &streams.slots[n % STREAMS]);
        let Some((used, requested)) = self.size_of(old) else {
            return Err(self.refuse(self.bad_pointer(), &Request::new(bytes as u64, 1)));
        };
        let planned = self.planned_size(old).map(|(_, align)| align);
        if bytes <= requested && planned.is_some() {
            return Ok(old);
        }
        let in_frame = slot.is_some_and(|slot| slot.with(|stream| stream.is_active()));
        if planned.is_none() && (bytes <= requested || !in_frame) {
            // SAFETY: the caller's contract.
            let new = unsafe { self.realloc_untraced(old, bytes, headroom) }?;
            if let Some(slot) = slot.filter(|_| bytes > requested) {
                let padded = (bytes as u64).saturating_add(self.overhead());
                slot.with(|stream| {
                    if new == old {
                        let _ = stream.freed(old);
                    }
                    let _ = stream.allocated(new, padded, 1);
                });
            }
            return Ok(new);
        }
        let align = planned.unwrap_or_else(|| self.align_of(old));
        let new = self.alloc_streamed(streams, &Request::new(bytes as u64, align))?;
        // SAFETY: the new block is another one, so the ranges are apart; both hold the smaller size.
        unsafe { new.copy_from_nonoverlapping(old, used.min(bytes)) };
        // SAFETY: the caller uses the new pointer only.
        let freed = unsafe { self.free(old) };
        debug_assert!(freed.is_ok(), "the old block was live a moment ago");
        Ok(new)
    }

    fn align_of(&self, block: NonNull<u8>) -> u64 {
        let inside = self.locate(block).and_then(|(mut inner, slot, offset)| {
            let heap = &mut inner.regions[slot].as_mut()?.heap;
            heap.find(offset).and_then(|handle| heap.align_of(handle))
        });
        let outside = || self.shared.outside.lock().layout(block).map(|(_, align)| align as u64);
        inside.or_else(outside).unwrap_or(1)
    }

    /// Tells the streams of a free. True where a frame in progress has taken the block back.
    pub(crate) fn free_streamed(&self, streams: &Streams, block: NonNull<u8>) -> bool {
        let own = thread_number().map(|n| n % STREAMS);
        if let Some(freed) = own.and_then(|n| streams.slots[n].with(|stream| stream.freed(block))) {
            if freed == Freed::Replaced {
                if let Some((held, _)) = self.size_of(block).filter(|&(held, _)| held >= WORTHWHILE) {
                    self.discard_block(block, held);
                }
            }
            return freed == Freed::Planned;
        }
        let others = streams.slots.iter().enumerate().filter(|(n, _)| Some(*n) != own);
        for (_, slot) in others.filter(|(_, slot)| slot.watched.load(Ordering::Relaxed) > 0) {
            if let Some(freed) = slot.with(|stream| stream.freed(block)) {
                return freed == Freed::Planned;
            }
        }
        false
    }

    /// Ends every frame in progress, so that nothing is held for them.
    pub(crate) fn leave_streams(&self) {
        let Some(streams) = &self.shared.streams else { return };
        for slot in &streams.slots {
            let over = slot.with(Stream::abandon);
            self.leave_stream(over);
        }
    }
}
