//! Several memories: a fast small one, a slow large one, and who goes where.

use core::mem::size_of;

use alloc::vec::Vec;

use super::abi;
use super::handle;
use super::options::zero;
use super::plan::PlanInner;
use super::planner::{arenite_planner_t, PlannerInner, INVALID};
use super::status::{arenite_status_t, ARENITE_NO_AMOUNT, ARENITE_NO_INDEX};
use crate::error::{Error, Subject};
use crate::planner::regions::{plan_regions, Region, RegionPlan, Wish};
use crate::planner::Problem;

/// Every region is allowed.
pub const ARENITE_REGION_ANY: u32 = 0xFFFF_FFFF;

/// What a buffer wants of the regions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_region_wish_t {
    /// What it is worth to have the buffer in a region before the next one, in any unit: for instance reads and writes.
    pub benefit: u64,
    /// Bit r allows region r; `ARENITE_REGION_ANY` for all.
    pub allowed: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<arenite_region_wish_t>() == 16);

/// Where a buffer is, and why it is not where it would have been best.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_region_place_t {
    /// Offset from the base of its region.
    pub offset: u64,
    /// The region it got; of a buffer of 0 bytes the first it is allowed in.
    pub region: u32,
    /// The first region it is allowed in. Where that is another one than `region`, the buffer was spilled.
    pub wanted: u32,
    /// Of a spilled buffer a step of its life at which the wanted region is full, else `ARENITE_NO_INDEX`.
    pub step: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<arenite_region_place_t>() == 24);

/// The numbers of one region.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_region_usage_t {
    /// The highest end of any buffer in the region, unrounded.
    pub arena_bytes: u64,
    /// The buffers that are in the region cannot be placed in less.
    pub lower_bound: u64,
    /// How many buffers of at least one byte are in it.
    pub buffer_count: u64,
    /// How many wanted it and are in a later one.
    pub spilled_count: u64,
    /// The sum of the sizes of those.
    pub spilled_bytes: u64,
    /// The alignment its base must meet.
    pub alignment: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<arenite_region_usage_t>() == 48);

/// Assigns every added buffer to one of several memories and places it there.
///
/// `capacities` are the sizes of 1 to 32 regions in bytes, in order of preference (the fastest first);
/// `ARENITE_NO_AMOUNT` is a region without a limit. `wishes` has one entry per buffer, or is null with `wish_count` 0:
/// then every buffer may be anywhere with a benefit of 1. Where a region is full, the buffers with the least benefit per
/// byte and step go to the next one they are allowed in. Members of an alias class stay together: they are allowed where
/// all of them are, and their benefits add up.
///
/// `places` gets one entry per buffer, in the order they were added, and `usage` one per region; `usage` may be null.
/// The capacity in the planner's options plays no part.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` naming a buffer that no region it is allowed in has room for, with the
/// step and the bytes; `ARENITE_ERR_ARGUMENT` for counts that do not match, or a buffer that is allowed nowhere;
/// `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`. Threads: exclusive use of `planner`.
///
/// # Safety
/// `planner` is null or live; the arrays are readable or, `places` and `usage`, writable for their counts (`usage` for
/// `region_count`) and apart from each other.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_regions(
    planner: *mut arenite_planner_t,
    capacities: *const u64,
    region_count: u64,
    wishes: *const arenite_region_wish_t,
    wish_count: u64,
    places: *mut arenite_region_place_t,
    place_count: u64,
    usage: *mut arenite_region_usage_t,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `capacities`.
        let capacities = unsafe { abi::array(capacities, region_count, "capacities is null") }?;
        // SAFETY: the caller's contract on `wishes`.
        let wishes = unsafe { abi::array(wishes, wish_count, "wishes is null") }?;
        // SAFETY: the caller's contract on `places`.
        let places = unsafe { abi::array_mut(places, place_count, "places is null") }?;
        let usage_count = if usage.is_null() { 0 } else { region_count };
        // SAFETY: the caller's contract on `usage`.
        let usage = unsafe { abi::array_mut(usage, usage_count, "") }?;
        let n = p.problem.len();
        if places.len() != n {
            return Err(Error::argument("there must be one place per buffer").needed(n as u64).available(place_count));
        }
        if !wishes.is_empty() && wishes.len() != n {
            return Err(Error::argument("there must be one wish per buffer").needed(n as u64).available(wish_count));
        }
        for w in wishes {
            zero(w.reserved)?;
        }
        let limit = |&bytes: &u64| Region { capacity: (bytes != ARENITE_NO_AMOUNT).then_some(bytes) };
        let regions: Vec<Region> = capacities.iter().map(limit).collect();
        let classes = Classes::of(&p.problem, wishes)?;
        let found = plan_regions(&classes.merged, &regions, &classes.wishes, &p.options, &mut p.progress())
            .map_err(|e| classes.named(e))?;
        verify(&classes.merged, &found)?;
        let rows = classes.places(&p.problem, &found, regions.len());
        let totals = usage_of(&p.problem, &found, &rows);
        places.copy_from_slice(&rows);
        if !usage.is_empty() {
            usage.copy_from_slice(&totals);
        }
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// Alias classes as one buffer each.
struct Classes {
    merged: Problem,
    wishes: Vec<Wish>,
    map: Vec<(u32, u64)>,
}

impl Classes {
    fn of(problem: &Problem, given: &[arenite_region_wish_t]) -> Result<Classes, Error> {
        let (merged, map) = problem.merge_aliases()?;
        let mut wishes = alloc::vec![Wish { allowed: ARENITE_REGION_ANY, benefit: 0 }; merged.len()];
        for (i, &(class, _)) in map.iter().enumerate() {
            let own = given.get(i).map_or(Wish::default(), |w| Wish { allowed: w.allowed, benefit: w.benefit });
            let class = &mut wishes[class as usize];
            class.allowed &= own.allowed;
            class.benefit = class.benefit.saturating_add(own.benefit);
        }
        Ok(Classes { merged, wishes, map })
    }

    /// An error in terms of the buffers that were added.
    fn named(&self, mut e: Error) -> Error {
        if let Subject::Buffer(class) = e.subject {
            let first = self.map.iter().position(|m| m.0 == class);
            e.subject = Subject::Buffer(first.map_or(class, |i| i as u32));
        }
        e
    }

    fn places(&self, problem: &Problem, found: &RegionPlan, regions: usize) -> Vec<arenite_region_place_t> {
        let known = ARENITE_REGION_ANY >> (32 - regions);
        let row = |(i, &(class, delta)): (usize, &(u32, u64))| {
            let k = class as usize;
            let spill = found.spills.binary_search_by_key(&class, |s| s.buffer).ok().map(|at| found.spills[at]);
            let empty = problem.buffers()[i].spec.size == 0;
            arenite_region_place_t {
                offset: if empty { 0 } else { found.offsets[k] + delta },
                region: found.region[k],
                wanted: (self.wishes[k].allowed & known).trailing_zeros(),
                step: spill.map_or(ARENITE_NO_INDEX, |s| s.step),
                reserved: 0,
            }
        };
        self.map.iter().enumerate().map(row).collect()
    }
}

/// Every region's plan goes through the verifier before it is handed out.
fn verify(problem: &Problem, found: &RegionPlan) -> Result<(), Error> {
    for r in 0..found.plans.len() as u32 {
        let mut part = Problem::new();
        let mut offsets = Vec::new();
        for (i, b) in problem.buffers().iter().enumerate() {
            if b.spec.size > 0 && found.region[i] == r {
                part.add(b.spec, problem.spans(i))?;
                offsets.push(found.offsets[i]);
            }
        }
        PlanInner::verify(&part, &offsets).map_err(|_| INVALID)?;
    }
    Ok(())
}

fn usage_of(problem: &Problem, found: &RegionPlan, rows: &[arenite_region_place_t]) -> Vec<arenite_region_usage_t> {
    let mut out: Vec<arenite_region_usage_t> = found
        .plans
        .iter()
        .map(|plan| arenite_region_usage_t {
            arena_bytes: plan.arena_bytes,
            lower_bound: plan.lower_bound,
            buffer_count: 0,
            spilled_count: 0,
            spilled_bytes: 0,
            alignment: plan.align.max(crate::units::DEFAULT_ALIGN).bytes() as u32,
            reserved: 0,
        })
        .collect();
    for (b, row) in problem.buffers().iter().zip(rows).filter(|(b, _)| b.spec.size > 0) {
        out[row.region as usize].buffer_count += 1;
        if row.region != row.wanted {
            let wanted = &mut out[row.wanted as usize];
            wanted.spilled_count += 1;
            wanted.spilled_bytes = wanted.spilled_bytes.saturating_add(b.spec.size);
        }
    }
    out
}
