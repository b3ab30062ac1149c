//! The memory of frames in flight: areas, which plans take in turn.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

use super::frame::SharedPlan;
use super::frame_table::{Instance, Place};
use super::pool::Pool;
use super::pool_config::Growth;
use super::pool_lock::Lock;
use super::region::{advise_huge, HUGE};
use crate::heap::frame::Replay;
use crate::heap::{Handle, Request, Side};

/// A held block of the pool, large enough for any of several plans.
///
/// ```text
/// plan A    [################]               one area, made for the largest plan there is;
/// plan B    [########]                       a smaller one writes only its first pages
/// area      [################]
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) first: NonNull<u8>,
    pub(crate) bytes: usize,
    handle: Handle,
    /// Whether the system was asked for large pages.
    huge: bool,
}

// SAFETY: the pointer names the pool's memory, which is not bound to a thread.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    /// Whether plans of that size and alignment have room.
    pub(crate) fn fits(&self, room: Room) -> bool {
        self.bytes as u64 >= room.bytes && (self.first.as_ptr() as u64).is_multiple_of(room.align)
    }
}

/// The size and the alignment of an area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    bytes: u64,
    align: u64,
}

impl Room {
    pub(crate) fn of(plan: &SharedPlan) -> Room {
        Room { bytes: plan.bytes(), align: plan.align().bytes() }
    }

    pub(crate) fn both(self, other: Room) -> Room {
        Room { bytes: self.bytes.max(other.bytes), align: self.align.max(other.align) }
    }
}

impl Pool {
    /// The area of an idle frame of another plan.
    pub(super) fn take_area(&self, plan: &SharedPlan) -> Option<Area> {
        let lender = self.shared.frames.lock().lend(plan)?;
        Some(lender.area)
    }

    /// A new area. `None` where the pool has no room.
    pub(super) fn make_area(&self, room: Room) -> Option<Area> {
        let bytes = usize::try_from(room.bytes).ok()?;
        // Areas live long, so they are taken from below.
        let whole = bytes >= HUGE && self.has_addresses_to_spare();
        let align = if whole { room.align.max(HUGE as u64) } else { room.align };
        let request = Request::new(room.bytes, align).side(Side::Low);
        let first = self.alloc_untraced(&request).ok()?;
        let held = self.locate(first).and_then(|(mut inner, slot, offset)| {
            let region = inner.regions[slot].as_mut()?;
            let handle = region.heap.find(offset)?;
            // Held: a pointer to the frame's first block is not mistaken for the area itself.
            region.heap.hold(handle).ok()?;
            Some((handle, region.discardable()))
        });
        let Some((handle, ours)) = held else {
            // Served by the fallback, whose blocks cannot be held.
            // SAFETY: the block was made a moment ago and nobody has seen it.
            let freed = unsafe { self.free(first) };
            debug_assert!(freed.is_ok());
            return None;
        };
        // A plan at its peak fills its area, so large pages cost no memory; and fewer of them are looked up in a run.
        let huge = ours && advise_huge(first.as_ptr() as usize, bytes, true);
        Some(Area { first, bytes, handle, huge })
    }

    /// Whether an area may be larger than the plan it is made for: addresses that nobody writes must cost nothing.
    pub(super) fn has_addresses_to_spare(&self) -> bool {
        !matches!(self.shared.config.growth, Growth::None) && self.shared.config.cap == u64::MAX
    }

    /// A frame of `plan` in an area. Gives the area back where there is no memory for the frame's state.
    pub(super) fn occupy(&self, plan: &SharedPlan, area: Area) -> Option<(Arc<Instance>, Replay)> {
        let made = Instance::new(plan, area);
        if made.is_none() {
            self.release_area(&area);
        }
        made
    }

    pub(super) fn release_areas(&self, retired: Vec<Arc<Instance>>) {
        for instance in retired {
            self.release_area(&instance.area);
        }
    }

    pub(super) fn release_area(&self, area: &Area) {
        if area.huge {
            // What comes here next may be small blocks far apart.
            advise_huge(area.first.as_ptr() as usize, area.bytes, false);
        }
        let Some((mut inner, slot, _)) = self.locate(area.first) else { return };
        if let Some(region) = &mut inner.regions[slot] {
            let freed = region.heap.free_held(area.handle);
            debug_assert!(freed.is_ok(), "an area is held until here");
        }
    }
}

impl Instance {
    /// `None` where there is no memory for the frame's state.
    fn new(plan: &SharedPlan, area: Area) -> Option<(Arc<Instance>, Replay)> {
        let zeros = |n: usize| {
            let mut words = Vec::new();
            words.try_reserve_exact(n).ok()?;
            words.resize_with(n, || AtomicU32::new(0));
            Some(words.into_boxed_slice())
        };
        let mut places = Vec::new();
        places.try_reserve_exact(plan.starts().len()).ok()?;
        places.extend(plan.starts().iter().map(|&start| Place { start, live: AtomicU32::new(0) }));
        let instance = Instance {
            plan: plan.clone(),
            area,
            places: places.into_boxed_slice(),
            remote: AtomicU32::new(0),
            next: zeros(plan.len())?,
            parked: Lock::new(None),
        };
        Some((Arc::new(instance), Replay::new(plan).ok()?))
    }
}
