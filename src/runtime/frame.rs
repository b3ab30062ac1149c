//! Recorded frames on real memory: one plan per signature, several instances in flight, frees from any thread.

use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use super::frame_table::{Instance, Recording};
use super::pool::Pool;
use super::pool_config::Refusal;
use super::remote::{self, REMOTE};
use crate::error::Error;
use crate::heap::frame::{FramePlan, Replay};
use crate::heap::{Request, Side};

/// What the frames of a pool did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameStats {
    /// Frames begun.
    pub frames: u64,
    /// Frames recorded and planned.
    pub recorded: u64,
    /// Frames that were neither recorded nor replayed: too many in flight, or no memory for the frame's area.
    pub passed: u64,
    /// Requests served from a plan.
    pub served: u64,
    /// Requests of replayed frames that went to the general path: not what the plan expected.
    pub mismatched: u64,
    /// The same, because an earlier occupant of the bytes was still live.
    pub waiting: u64,
    /// The same, because the plan has no place for them.
    pub outside: u64,
    /// Plans held.
    pub plans: u32,
    /// Instances held, and the bytes of their areas.
    pub instances: u32,
    /// Bytes of those.
    pub area_bytes: u64,
}

enum Mode {
    /// The first frame of its signature: every request goes to the general path and is written down.
    Record(Arc<Recording>),
    /// Requests are served from the plan where it allows.
    Replay(Arc<Instance>, Replay),
    /// Neither.
    Pass,
}

/// One run of a repeating sequence of requests, from [`Pool::frame_begin`] to [`Frame::end`] (or drop).
///
/// Blocks may be freed by the frame's owner through the frame, which is fastest, or by any thread through
/// [`Pool::free`], also after the frame has ended.
///
/// ```text
/// owner                                     other threads
/// Frame::alloc ─> Replay (plain memory)     Pool::free ─> live[place]: k -> k | REMOTE
/// Frame::free  ─> live[place]: k -> 0                     list of k, counter + 1
///      └── sees the counter: takes the list, releases its blocks ──┘
/// ```
///
/// A remote free takes effect for the plan when the owner next calls; until then later blocks of those bytes go to the
/// general path, which is safe.
///
/// Threads: one at a time; a frame may be handed to another thread.
///
/// `P` is how the frame holds its pool: `&Pool`, or `Arc<Pool>` where the frame has to be kept.
pub struct Frame<P: Deref<Target = Pool>> {
    pool: P,
    signature: u64,
    mode: Mode,
}

impl Pool {
    /// Begins a frame. Frames of one signature are expected to make the same requests in the same order; the first one
    /// is recorded, the next ones are replayed, and one that no longer fits its plan twice in a row is recorded anew.
    ///
    /// Never fails: without memory for a plan or an area the frame works like the pool itself.
    pub fn frame_begin(&self, signature: u64) -> Frame<&Pool> {
        Frame::begin(self, signature)
    }
}

impl<P: Deref<Target = Pool>> Frame<P> {
    /// [`Pool::frame_begin`] for a pool held in another way than by reference.
    pub fn begin(pool: P, signature: u64) -> Frame<P> {
        pool.shared.open_frames.fetch_add(1, Ordering::Relaxed);
        let mode = match pool.enter_frame(signature) {
            super::frame_table::Entered::Record(recording) => Mode::Record(recording),
            super::frame_table::Entered::Replay(instance, replay) => Mode::Replay(instance, replay),
            super::frame_table::Entered::Pass => Mode::Pass,
        };
        Frame { pool, signature, mode }
    }

    /// Allocates as [`Pool::alloc`] does, from the plan where it allows.
    #[inline]
    pub fn alloc(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        if let Mode::Replay(instance, replay) = &mut self.mode {
            if instance.remote.load(Ordering::Relaxed) != 0 {
                instance.drain(replay);
            }
            let padded = (bytes as u64).saturating_add(self.pool.overhead());
            if align.is_power_of_two() {
                if let Some(slot) = replay.alloc(&instance.plan, padded, align as u64) {
                    let (place, offset) = instance.plan.place(slot);
                    instance.places[place as usize].live.store(slot + 1, Ordering::Release);
                    return Ok(instance.pointer(offset));
                }
            }
        }
        self.alloc_general(bytes, align)
    }

    #[cold]
    fn alloc_general(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        let mut request = Request::new(bytes as u64, align as u64);
        if let Mode::Record(_) = &self.mode {
            // The first run is the one that decides how much memory the process ever had.
            request = request.side(Side::Lowest);
        }
        let block = match self.pool.alloc_with(&request) {
            Err(_) if self.give_up_the_plan() => self.pool.alloc_with(&request)?,
            other => other?,
        };
        if let Mode::Record(recording) = &self.mode {
            let padded = (bytes as u64).saturating_add(self.pool.overhead());
            self.pool.watch_alloc(recording, block, padded, align as u64);
        }
        Ok(block)
    }

    /// Leaves the plan and gives its area back, if nothing in it is live: a frame that asks for other blocks than the plan
    /// foresees would else be refused the memory that the plan holds for it. Whether it did.
    #[cold]
    fn give_up_the_plan(&mut self) -> bool {
        let Mode::Replay(instance, replay) = &mut self.mode else { return false };
        instance.drain(replay);
        if replay.live() > 0 {
            return false;
        }
        if let Mode::Replay(instance, replay) = core::mem::replace(&mut self.mode, Mode::Pass) {
            self.pool.leave_replay(self.signature, &instance, replay);
        }
        self.pool.release_idle_areas();
        true
    }

    /// Frees as [`Pool::free`] does, and faster for a planned block of this frame.
    ///
    /// # Safety
    /// As for [`Pool::free`].
    #[inline]
    pub unsafe fn free(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        if let Mode::Replay(instance, replay) = &mut self.mode {
            if let Some(offset) = instance.offset(block) {
                if instance.remote.load(Ordering::Relaxed) != 0 {
                    instance.drain(replay);
                }
                let live = instance.live_at(offset);
                let slot = live.map_or(0, |live| live.load(Ordering::Relaxed));
                return match (live, slot.checked_sub(1)) {
                    (Some(live), Some(slot)) if slot & REMOTE == 0 && replay.free(&instance.plan, slot) => {
                        // After the release, so that no remote free can see the slot live once it is not.
                        live.store(0, Ordering::Release);
                        Ok(())
                    }
                    _ => Err(self.pool.bad_pointer()),
                };
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.pool.free(block) }
    }

    /// Another size for a block of the frame, contents kept. A smaller size keeps the block as it is. A block that grew
    /// while its frame was recorded has that room from the start when it is replayed, and grows where it is; beyond what
    /// was recorded it becomes another block.
    ///
    /// # Safety
    /// As for [`Pool::realloc`].
    pub unsafe fn realloc(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Refusal> {
        let wrong = |pool: &Pool| pool.refuse(pool.bad_pointer(), &Request::new(bytes as u64, align as u64));
        let (old, kept) = match self.planned(block) {
            // It was handed out for any size of as many granules, so all of it may be in use.
            Some((held, recorded)) => (recorded, held),
            None => self.pool.size_of(block).map(|size| (size.1, size.0)).ok_or_else(|| wrong(&self.pool))?,
        };
        // Compared with what was asked for, not with what the block holds, so that a recording and its replays agree.
        if bytes <= old {
            return Ok(block);
        }
        let new = match &self.mode {
            Mode::Record(recording) => {
                let new = self.pool.alloc_with(&Request::new(bytes as u64, align as u64).side(Side::Lowest))?;
                let padded = (bytes as u64).saturating_add(self.pool.overhead());
                self.pool.watch_resize(recording, block, new, padded, align as u64);
                new
            }
            _ => self.alloc(bytes, align)?,
        };
        // SAFETY: the new block is another one, so the ranges are apart; both hold the smaller size.
        unsafe { new.copy_from_nonoverlapping(block, kept.min(bytes)) };
        // SAFETY: the caller uses the new pointer only.
        match unsafe { self.free(block) } {
            Ok(()) => Ok(new),
            Err(error) => Err(self.pool.refuse(error, &Request::new(bytes as u64, align as u64))),
        }
    }

    /// Bytes that a planned block of this frame holds, and those that it was recorded with.
    fn planned(&self, block: NonNull<u8>) -> Option<(usize, usize)> {
        let Mode::Replay(instance, _) = &self.mode else { return None };
        let (slot, _) = instance.slot_at(block)?;
        let less = |bytes: u64| bytes.saturating_sub(self.pool.overhead()) as usize;
        Some((less(instance.plan.slot_bytes(slot)), less(instance.plan.blocks()[slot as usize].bytes)))
    }

    /// Whether requests are served from a plan.
    pub fn is_planned(&self) -> bool {
        matches!(self.mode, Mode::Replay(..))
    }

    /// Ends the frame. Blocks still live stay so. The first frame of a signature is planned here, which takes a while.
    pub fn end(self) {}
}

impl<P: Deref<Target = Pool>> Drop for Frame<P> {
    fn drop(&mut self) {
        match core::mem::replace(&mut self.mode, Mode::Pass) {
            Mode::Record(recording) => self.pool.leave_recording(self.signature, &recording),
            Mode::Replay(instance, replay) => self.pool.leave_replay(self.signature, &instance, replay),
            Mode::Pass => {}
        }
        self.pool.shared.open_frames.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Instance {
    /// The offset of an address in the area.
    #[inline]
    pub(crate) fn offset(&self, block: NonNull<u8>) -> Option<u64> {
        let offset = (block.as_ptr() as usize).wrapping_sub(self.area.first.as_ptr() as usize);
        (offset < self.area.bytes).then_some(offset as u64)
    }

    /// Who is live where a planned block starts; `None` where none does.
    #[inline]
    pub(crate) fn live_at(&self, offset: u64) -> Option<&AtomicU32> {
        let place = self.plan.find_place(offset, &self.places, |place| place.start)?;
        Some(&self.places[place as usize].live)
    }

    #[inline]
    pub(crate) fn pointer(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(offset < self.area.bytes as u64);
        // SAFETY: a plan's offsets lie inside the area, which is at least as large as the plan says.
        unsafe { self.area.first.add(offset as usize) }
    }

    /// The slot live at an address, from any thread.
    pub(crate) fn slot_at(&self, block: NonNull<u8>) -> Option<(u32, &AtomicU32)> {
        let live = self.live_at(self.offset(block)?)?;
        let slot = live.load(Ordering::Acquire).checked_sub(1)?;
        (slot & REMOTE == 0).then_some((slot, live))
    }

    /// Whether no frame has it and nothing of its last one is live. Called under the table's lock.
    pub(crate) fn is_idle(&self) -> bool {
        self.parked.lock().as_mut().is_some_and(|replay| {
            self.drain(replay);
            replay.live() == 0
        })
    }

    /// Frees a planned block from any thread. False where none starts there, or another thread freed it first.
    pub(crate) fn free_remote(&self, block: NonNull<u8>) -> bool {
        let Some((slot, live)) = self.slot_at(block) else { return false };
        remote::put(live, &self.remote, &self.next, slot)
    }

    /// Releases what other threads freed. Called by the owner.
    #[cold]
    pub(crate) fn drain(&self, replay: &mut Replay) {
        remote::take(&self.remote, &self.next, |slot| {
            if remote::settle(&self.places[self.plan.place(slot).0 as usize].live, slot) {
                replay.free(&self.plan, slot);
            }
        });
    }
}

/// The plan of a frame, shared by its instances.
pub(crate) type SharedPlan = Arc<FramePlan>;
