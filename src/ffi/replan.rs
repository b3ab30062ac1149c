//! Planning again with an older plan in hand.

use alloc::vec::Vec;

use super::guard;
use super::handle;
use super::plan::{arenite_plan_t, PlanInner};
use super::planner::{arenite_planner_t, PlannerInner};
use super::status::arenite_status_t;
use crate::error::Error;
use crate::planner::replan::{replan, Keep};
use crate::planner::{Buffer, Plan};

/// Where the old offsets do not hold any more, plan afresh: the smallest arena matters. The default.
pub const ARENITE_KEEP_ARENA: u32 = 0;
/// Move as few buffers as possible, even if the arena grows: pointers into it matter.
pub const ARENITE_KEEP_OFFSETS: u32 = 1;

/// Places every added buffer anew, with the plan that was made before sizes or lifetimes changed.
///
/// Buffers are matched by index, so the buffers of `old` come first, in the same order; further ones are new. Where the
/// old offsets still are a valid plan they are kept as they are: buffers that only shrank never need a larger arena.
/// Otherwise `keep` decides. `out_moved` gets the number of buffers of at least one byte whose offset is another than in
/// `old`, new ones included; 0 means that every pointer into the arena stays right.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown `keep`, for an `old` that is the plan of a graph, or naming
/// two fixed offsets that collide; `ARENITE_ERR_CAPACITY` as for `arenite_planner_plan`; `ARENITE_ERR_OVERFLOW`;
/// `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_plan_destroy`; `old` stays the caller's and is only read.
/// Threads: exclusive use of `planner`.
///
/// # Safety
/// `planner` and `old` are null or live; `out` is null or valid for one pointer write; `out_moved` is null or valid for one
/// write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_replan(
    planner: *mut arenite_planner_t,
    old: *const arenite_plan_t,
    keep: u32,
    out: *mut *mut arenite_plan_t,
    out_moved: *mut u64,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "the pointer for the plan is null") }?;
        // SAFETY: the caller's contract on `out_moved`.
        let out_moved = unsafe { guard::out(out_moved, "out_moved is null") }?;
        let keep = match keep {
            ARENITE_KEEP_ARENA => Keep::Arena,
            ARENITE_KEEP_OFFSETS => Keep::Offsets,
            other => return Err(Error::argument("keep is not one of ARENITE_KEEP_").needed(other.into())),
        };
        // SAFETY: the caller's contract on `old`.
        let old = unsafe { handle::borrow(old) }?;
        if !old.lifetimes.is_empty() {
            return Err(Error::argument("the old plan is that of a graph, not of added buffers"));
        }
        let plan = p.accept(&p.problem, again(p, &old.plan.offsets, keep)?)?;
        let differs =
            |(i, b): &(usize, &Buffer)| b.spec.size > 0 && old.plan.offsets.get(*i) != Some(&plan.offsets[*i]);
        let moved = p.problem.buffers().iter().enumerate().filter(differs).count() as u64;
        out.write(handle::new(PlanInner::of_problem(&p.problem, plan)?)?);
        out_moved.write(moved);
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// Plans with alias classes as one buffer each, so that these too can stay where they were.
fn again(p: &PlannerInner, old: &[u64], keep: Keep) -> Result<Plan, Error> {
    let (merged, map) = p.problem.merge_aliases()?;
    // A class has its root's offset, and classes are in the order of their roots: old ones come first.
    let roots = (0..p.problem.len()).filter(|&i| p.problem.alias_of(i).is_none());
    let old: Vec<u64> = roots.map_while(|i| old.get(i).copied()).collect();
    let plan = replan(&merged, &old, keep, &p.options, &mut p.progress())?.plan;
    let offset = |(b, &(class, delta)): (&Buffer, &(u32, u64))| match b.spec.size {
        0 => 0,
        _ => plan.offsets[class as usize] + delta,
    };
    let offsets = p.problem.buffers().iter().zip(&map).map(offset).collect();
    Ok(Plan { offsets, ..plan })
}
