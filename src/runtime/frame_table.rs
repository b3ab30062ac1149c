//! Which plan belongs to which signature, which instances exist, and what is being recorded.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use super::frame::{FrameStats, SharedPlan};
use super::frame_area::{Area, Room};
use super::pool::Pool;
use super::pool_lock::Lock;
use crate::error::Error;
use crate::heap::frame::{FramePlan, Replay, ReplayStats};
use crate::planner::sequence::Sequence;

/// Plans kept; the least recently used one makes room.
const PLANS: usize = 16;
/// Instances of one plan.
const INSTANCES: usize = 16;
/// Frames in a row that do not fit their plan before it is recorded anew.
const MISSES: u32 = 2;
/// Blocks of a frame beyond which it is not recorded.
const MAX_BLOCKS: usize = 1 << 18;

/// Where a planned block starts, and who is there: together, so that a free looks at one line of the cache.
#[derive(Debug)]
pub(crate) struct Place {
    /// As in the plan's table.
    pub(crate) start: u32,
    /// One more than the live slot, 0 for none.
    pub(crate) live: AtomicU32,
}

/// The memory and the state of one frame in flight, or of one that may be entered again.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) plan: SharedPlan,
    /// At least as large as the plan.
    pub(crate) area: Area,
    /// The plan's table of places with who is live at each.
    pub(crate) places: Box<[Place]>,
    /// Slots other threads freed: a stack, linked through `next`, both one more than the slot. No lock, so that a fork
    /// cannot leave it taken.
    pub(crate) remote: AtomicU32,
    pub(crate) next: Box<[AtomicU32]>,
    /// The run, while no frame has it. Taken under the table's lock only.
    pub(super) parked: Lock<Option<Replay>>,
}

/// A frame being recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    state: Lock<RecordingState>,
}

#[derive(Debug, Default)]
struct RecordingState {
    sequence: Sequence,
    live: HashMap<usize, u32>,
    failed: bool,
}

impl Recording {
    fn allocated(&self, block: NonNull<u8>, bytes: u64, align: u64) {
        let mut state = self.state.lock();
        let full = state.sequence.blocks().len() >= MAX_BLOCKS || state.live.try_reserve(1).is_err();
        match state.sequence.alloc(bytes, align) {
            Ok(index) if !full => drop(state.live.insert(block.as_ptr() as usize, index)),
            _ => state.failed = true,
        }
    }

    /// The block is at another address now, with more bytes. False where it is none of the frame's.
    fn resized(&self, old: NonNull<u8>, new: NonNull<u8>, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let Some(index) = state.live.remove(&(old.as_ptr() as usize)) else { return false };
        // Into the room of the entry just removed.
        state.live.insert(new.as_ptr() as usize, index);
        state.sequence.grow(index, bytes).is_ok()
    }

    fn freed(&self, block: NonNull<u8>) {
        let mut state = self.state.lock();
        if let Some(index) = state.live.remove(&(block.as_ptr() as usize)) {
            let freed = state.sequence.free(index);
            debug_assert!(freed.is_ok());
        }
    }
}

#[derive(Debug)]
struct Entry {
    signature: u64,
    plan: Option<SharedPlan>,
    misses: u32,
    used: u64,
}

/// Everything about frames that the pool's threads share. Not touched between a frame's begin and its end.
#[derive(Debug, Default)]
pub(crate) struct FrameTable {
    entries: Vec<Entry>,
    instances: Vec<Arc<Instance>>,
    recordings: Vec<Arc<Recording>>,
    stats: FrameStats,
}

pub(crate) enum Entered {
    Record(Arc<Recording>),
    Replay(Arc<Instance>, Replay),
    Pass,
}

impl Pool {
    pub(crate) fn enter_frame(&self, signature: u64) -> Entered {
        // With guards or a quarantine every block has to be one of its own.
        if self.shared.debug.is_some() {
            return Entered::Pass;
        }
        // A trace has to show every request.
        if self.shared.trace.is_on() {
            self.shared.trace.frame(signature);
            return Entered::Pass;
        }
        let (plan, room) = {
            let mut table = self.shared.frames.lock();
            table.stats.frames += 1;
            let Some(at) = table.entry(signature) else {
                table.stats.passed += 1;
                return Entered::Pass;
            };
            if !table.reserve() {
                table.stats.passed += 1;
                return Entered::Pass;
            }
            let Some(plan) = table.entries[at].plan.clone() else {
                let recording = Arc::new(Recording::default());
                table.recordings.push(recording.clone());
                self.shared.watchers.fetch_add(1, Ordering::Relaxed);
                // Idle areas make room for what is recorded, which needs as much as they do.
                let retired = table.retire(true);
                drop(table);
                self.release_areas(retired);
                return Entered::Record(recording);
            };
            if let Some(entered) = table.resume(&plan) {
                return entered;
            }
            let count = table.instances.iter().filter(|i| Arc::ptr_eq(&i.plan, &plan)).count();
            if count >= INSTANCES || plan.bytes() == 0 {
                table.stats.passed += 1;
                return Entered::Pass;
            }
            let room = if self.has_addresses_to_spare() { table.room(&plan) } else { Room::of(&plan) };
            (plan, room)
        };
        let made = self.take_area(&plan).or_else(|| {
            // Those that are idle are too small.
            self.release_idle_areas();
            self.make_area(room).or_else(|| self.make_area(Room::of(&plan)))
        });
        let made = made.and_then(|area| self.occupy(&plan, area));
        let mut table = self.shared.frames.lock();
        match made {
            Some((instance, replay)) if table.reserve() => {
                table.instances.push(instance.clone());
                Entered::Replay(instance, replay)
            }
            other => {
                table.stats.passed += 1;
                drop(table);
                if let Some((instance, _)) = other {
                    self.release_area(&instance.area);
                }
                Entered::Pass
            }
        }
    }

    /// Enters a frame whose plan the caller has. `None` where too many are in flight or there is no memory for its area.
    ///
    /// The areas of idle frames are given back first: of frames that take turns on a thread, one is live at a time.
    pub(crate) fn enter_planned(&self, signature: u64, plan: SharedPlan) -> Option<(Arc<Instance>, Replay)> {
        let plan = {
            let mut table = self.shared.frames.lock();
            table.stats.frames += 1;
            let at = table.entry(signature)?;
            let plan = table.entries[at].plan.get_or_insert(plan).clone();
            if let Some(Entered::Replay(instance, replay)) = table.resume(&plan) {
                return Some((instance, replay));
            }
            let count = table.instances.iter().filter(|i| Arc::ptr_eq(&i.plan, &plan)).count();
            if count >= INSTANCES || plan.bytes() == 0 {
                table.stats.passed += 1;
                return None;
            }
            plan
        };
        self.release_idle_areas();
        let made = self.make_area(Room::of(&plan)).and_then(|area| self.occupy(&plan, area));
        if let Some((instance, _)) = &made {
            if let Some(streams) = &self.shared.streams {
                self.govern_area(&streams.resident, instance.area.first.as_ptr() as usize, instance.area.bytes);
            }
        }
        let mut table = self.shared.frames.lock();
        match made {
            Some((instance, replay)) if table.reserve() => {
                table.stats.recorded += 1;
                table.instances.push(instance.clone());
                Some((instance, replay))
            }
            other => {
                table.stats.passed += 1;
                drop(table);
                if let Some((instance, _)) = other {
                    self.release_area(&instance.area);
                }
                None
            }
        }
    }

    /// Leaves it.
    pub(crate) fn leave_planned(&self, instance: &Arc<Instance>, mut replay: Replay) {
        instance.drain(&mut replay);
        replay.finish(&instance.plan);
        let stats = replay.stats();
        let retired = {
            let mut table = self.shared.frames.lock();
            *instance.parked.lock() = Some(replay);
            table.add(&stats);
            table.retire(false)
        };
        self.release_areas(retired);
    }

    pub(crate) fn leave_recording(&self, signature: u64, recording: &Arc<Recording>) {
        {
            let mut table = self.shared.frames.lock();
            table.recordings.retain(|r| !Arc::ptr_eq(r, recording));
        }
        self.shared.watchers.fetch_sub(1, Ordering::Relaxed);
        let (sequence, failed) = {
            let mut state = recording.state.lock();
            (core::mem::take(&mut state.sequence), state.failed)
        };
        // Outside every lock: planning takes milliseconds.
        let Some(plan) = (!failed).then(|| FramePlan::new(&sequence).ok()).flatten() else { return };
        let retired = {
            let mut table = self.shared.frames.lock();
            table.stats.recorded += 1;
            table.install(signature, Arc::new(plan))
        };
        self.release_areas(retired);
    }

    pub(crate) fn leave_replay(&self, signature: u64, instance: &Arc<Instance>, mut replay: Replay) {
        instance.drain(&mut replay);
        replay.finish(&instance.plan);
        let (stats, fits) = (replay.stats(), replay.fits(&instance.plan));
        let retired = {
            let mut table = self.shared.frames.lock();
            *instance.parked.lock() = Some(replay);
            table.add(&stats);
            let entry = table.entries.iter_mut().find(|e| e.signature == signature);
            if let Some(entry) = entry.filter(|e| e.plan.as_ref().is_some_and(|p| Arc::ptr_eq(p, &instance.plan))) {
                entry.misses = if fits { 0 } else { entry.misses + 1 };
                if entry.misses >= MISSES {
                    // The next frame of this signature is recorded anew.
                    (entry.plan, entry.misses) = (None, 0);
                }
            }
            table.retire(false)
        };
        self.release_areas(retired);
    }

    /// Puts a plan in place before the first frame of its signature, or instead of the one there is.
    pub fn frame_install(&self, signature: u64, plan: FramePlan) -> Result<(), Error> {
        let retired = {
            let mut table = self.shared.frames.lock();
            if table.entry(signature).is_none() {
                return Err(Error::no_memory("the table of plans cannot grow"));
            }
            table.install(signature, Arc::new(plan))
        };
        self.release_areas(retired);
        Ok(())
    }

    /// The plan of a signature, to be saved with [`FramePlan::encode`].
    pub fn frame_plan(&self, signature: u64) -> Option<SharedPlan> {
        let table = self.shared.frames.lock();
        table.entries.iter().find(|e| e.signature == signature)?.plan.clone()
    }

    /// Statistics of all frames that have ended.
    pub fn frame_stats(&self) -> FrameStats {
        let table = self.shared.frames.lock();
        let plans = table.entries.iter().filter(|e| e.plan.is_some()).count() as u32;
        let area_bytes = table.instances.iter().map(|i| i.area.bytes as u64).sum();
        FrameStats { plans, instances: table.instances.len() as u32, area_bytes, ..table.stats }
    }

    /// Forgets every plan. The memory of instances in use or with live blocks is given back when they no longer are.
    pub fn frame_clear(&self) {
        let retired = {
            let mut table = self.shared.frames.lock();
            table.entries.clear();
            table.retire(false)
        };
        self.release_areas(retired);
    }

    /// Gives back the areas of instances of which nothing is live; their plans stay. Whether there were any.
    pub(crate) fn release_idle_areas(&self) -> bool {
        let retired = self.shared.frames.lock().retire(true);
        let any = !retired.is_empty();
        self.release_areas(retired);
        any
    }

    /// Writes down an allocation of a frame being recorded.
    pub(crate) fn watch_alloc(&self, recording: &Recording, block: NonNull<u8>, bytes: u64, align: u64) {
        // Under the table's lock, which a fork takes: a recording's own lock is then never left taken in the child.
        let _table = self.shared.frames.lock();
        recording.allocated(block, bytes, align);
    }

    /// Tells a recording that a block became a larger one. Called before the old one is freed.
    pub(crate) fn watch_resize(
        &self,
        recording: &Recording,
        old: NonNull<u8>,
        new: NonNull<u8>,
        bytes: u64,
        align: u64,
    ) {
        let _table = self.shared.frames.lock();
        // A block from before the frame: the frame asks for a new one in its place every time.
        if !recording.resized(old, new, bytes) {
            recording.allocated(new, bytes, align);
        }
    }

    /// Frees a planned block from any thread. False where there is none.
    pub(crate) fn free_planned(&self, block: NonNull<u8>) -> bool {
        let instance = self.shared.frames.lock().find(block);
        instance.is_some_and(|instance| instance.free_remote(block))
    }

    /// Bytes a planned block holds, overhead included, and its alignment.
    pub(crate) fn planned_size(&self, block: NonNull<u8>) -> Option<(u64, u64)> {
        let instance = self.shared.frames.lock().find(block)?;
        let (slot, _) = instance.slot_at(block)?;
        let recorded = instance.plan.blocks()[slot as usize];
        Some((instance.plan.slot_bytes(slot), recorded.align))
    }

    /// Tells the recordings that a block was freed. Called before the free, so that nobody can have the block anew.
    pub(crate) fn watch_free(&self, block: NonNull<u8>) {
        for recording in &self.shared.frames.lock().recordings {
            recording.freed(block);
        }
    }
}

impl FrameTable {
    /// Room for one more of each, so that no push under the lock allocates.
    fn reserve(&mut self) -> bool {
        self.recordings.try_reserve(1).is_ok() && self.instances.try_reserve(1).is_ok()
    }

    /// The entry of a signature, made if need be; the least recently used one makes room.
    fn entry(&mut self, signature: u64) -> Option<usize> {
        let now = self.stats.frames;
        let found = self.entries.iter().position(|e| e.signature == signature);
        let at = match found {
            Some(at) => at,
            None if self.entries.len() < PLANS => {
                self.entries.try_reserve(1).ok()?;
                self.entries.push(Entry { signature, plan: None, misses: 0, used: now });
                self.entries.len() - 1
            }
            None => {
                let oldest = (0..self.entries.len()).min_by_key(|&i| self.entries[i].used)?;
                self.entries[oldest] = Entry { signature, plan: None, misses: 0, used: now };
                oldest
            }
        };
        self.entries[at].used = now;
        Some(at)
    }

    fn add(&mut self, of: &ReplayStats) {
        self.stats.served += of.served;
        self.stats.mismatched += of.mismatched;
        self.stats.waiting += of.waiting;
        self.stats.outside += of.outside;
    }

    /// Takes an idle instance of a plan into use.
    fn resume(&mut self, plan: &SharedPlan) -> Option<Entered> {
        for instance in self.instances.iter().filter(|i| Arc::ptr_eq(&i.plan, plan)) {
            let mut parked = instance.parked.lock();
            let Some(replay) = parked.as_mut() else { continue };
            instance.drain(replay);
            if replay.restart(plan).is_ok() {
                let replay = parked.take()?;
                return Some(Entered::Replay(instance.clone(), replay));
            }
        }
        None
    }

    fn install(&mut self, signature: u64, plan: SharedPlan) -> Vec<Arc<Instance>> {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.signature == signature) {
            entry.plan = Some(plan);
            entry.misses = 0;
        }
        self.retire(false)
    }

    /// What to make an area for `plan` large enough for: every plan there is, so that one area serves them in turn. A page
    /// that no plan writes is not taken.
    fn room(&self, plan: &SharedPlan) -> Room {
        let plans = self.entries.iter().filter_map(|e| e.plan.as_ref());
        plans.map(Room::of).fold(Room::of(plan), Room::both)
    }

    /// Takes out the smallest idle instance in whose area a plan has room.
    pub(super) fn lend(&mut self, plan: &SharedPlan) -> Option<Arc<Instance>> {
        let room = Room::of(plan);
        let fits = |i: &Arc<Instance>| i.area.fits(room) && i.is_idle();
        let fitting = (0..self.instances.len()).filter(|&i| fits(&self.instances[i]));
        let at = fitting.min_by_key(|&i| self.instances[i].area.bytes)?;
        Some(self.instances.swap_remove(at))
    }

    /// Takes out the instances of which nothing is live: those whose plan is gone, or all.
    fn retire(&mut self, all: bool) -> Vec<Arc<Instance>> {
        let mut retired = Vec::new();
        if retired.try_reserve_exact(self.instances.len()).is_err() {
            // They wait for the next time.
            return retired;
        }
        let entries = &self.entries;
        self.instances.retain(|instance| {
            let current = entries.iter().any(|e| e.plan.as_ref().is_some_and(|p| Arc::ptr_eq(p, &instance.plan)));
            let idle = (all || !current) && instance.is_idle();
            if idle {
                retired.push(instance.clone());
            }
            !idle
        });
        retired
    }

    /// The instance an address lies in.
    fn find(&self, block: NonNull<u8>) -> Option<Arc<Instance>> {
        self.instances.iter().find(|i| i.offset(block).is_some()).cloned()
    }
}
