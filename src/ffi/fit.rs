//! The capacity question: do so many bytes suffice, and if not, why not and who is left over?

use core::mem::size_of;

use super::abi::{self, Versioned};
use super::guard;
use super::handle;
use super::plan::{arenite_plan_t, PlanInner};
use super::planner::{arenite_planner_t, PlannerInner, INVALID};
use super::status::{arenite_status_t, ARENITE_NO_AMOUNT, ARENITE_NO_INDEX};
use crate::error::Error;
use crate::planner::capacity::{fit, Verdict};

/// The plan fits.
pub const ARENITE_FIT_YES: u32 = 1;
/// No plan fits: already the buffers alive at one step need more. Those are marked `ARENITE_FIT_ALIVE`.
pub const ARENITE_FIT_TOO_MUCH_ALIVE: u32 = 2;
/// No plan fits, although the bytes would suffice at every step: search has tried all that could be.
pub const ARENITE_FIT_NO_PACKING: u32 = 3;
/// The effort was spent, or the progress function ended the search, without an answer. Not an error.
pub const ARENITE_FIT_UNKNOWN: u32 = 4;

/// In the best plan the buffer ends above the capacity. All others can be placed as that plan says.
pub const ARENITE_FIT_OUTSIDE: u32 = 1;
/// The buffer is one of those whose bytes together prove `ARENITE_FIT_TOO_MUCH_ALIVE`.
pub const ARENITE_FIT_ALIVE: u32 = 2;

/// The answer to a capacity question. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_fit_t {
    /// `sizeof(arenite_fit_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// `ARENITE_FIT_YES`, `_TOO_MUCH_ALIVE`, `_NO_PACKING` or `_UNKNOWN`.
    pub verdict: u32,
    /// With `_TOO_MUCH_ALIVE` the step at which most is alive, else `ARENITE_NO_INDEX`.
    pub step: u32,
    /// With `_TOO_MUCH_ALIVE` the bytes needed at that step, else `ARENITE_NO_AMOUNT`.
    pub needed: u64,
    /// The arena of the best plan found; at most the capacity with `_YES`.
    pub arena_bytes: u64,
    /// No plan of this problem needs less.
    pub lower_bound: u64,
    /// How many buffers of the best plan end above the capacity.
    pub outside_count: u64,
    /// The sum of their sizes.
    pub outside_bytes: u64,
}

const _: () = assert!(size_of::<arenite_fit_t>() == 56);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_fit_t {
    const DEFAULT: Self = Self {
        struct_size: 56,
        flags: 0,
        verdict: ARENITE_FIT_UNKNOWN,
        step: ARENITE_NO_INDEX,
        needed: ARENITE_NO_AMOUNT,
        arena_bytes: 0,
        lower_bound: 0,
        outside_count: 0,
        outside_bytes: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Asks whether the added buffers can be placed in `capacity` bytes, and explains the answer.
///
/// This takes the place of the capacity in the planner's options. That the buffers do not fit is an answer and not an
/// error. `marks` gets the `ARENITE_FIT_OUTSIDE` and `ARENITE_FIT_ALIVE` bits of every buffer, in the order they were
/// added; it is null with `mark_count` 0, or `mark_count` is the number of buffers. `out_plan` gets the best plan found,
/// whatever the verdict, and may be null.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming two fixed offsets that collide, or for another `mark_count`;
/// `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out_plan` is the caller's until `arenite_plan_destroy`. Threads: exclusive use of `planner`.
///
/// # Safety
/// `planner` is null or live; `marks` is writable for `mark_count`; `out` is null or writable for its `struct_size`;
/// `out_plan` is null or valid for one pointer write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_fit(
    planner: *mut arenite_planner_t,
    capacity: u64,
    marks: *mut u32,
    mark_count: u64,
    out: *mut arenite_fit_t,
    out_plan: *mut *mut arenite_plan_t,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `out`, whose size and flags are refused before the search, not after it.
        unsafe { abi::fillable(out, "the pointer for the answer is null") }?;
        let out_plan = if out_plan.is_null() {
            None
        } else {
            // SAFETY: the caller's contract on `out_plan`.
            Some(unsafe { guard::out(out_plan, "") }?)
        };
        // SAFETY: the caller's contract on `marks`.
        let marks = unsafe { abi::array_mut(marks, mark_count, "marks is null") }?;
        if !marks.is_empty() && marks.len() != p.problem.len() {
            let e = Error::argument("there must be one mark per buffer");
            return Err(e.needed(p.problem.len() as u64).available(mark_count));
        }
        let found = fit(&p.problem, capacity, &p.options, &mut p.progress())?;
        PlanInner::verify(&p.problem, &found.plan.offsets).map_err(|_| INVALID)?;
        let mut answer = arenite_fit_t {
            verdict: match found.verdict {
                Verdict::Fits => ARENITE_FIT_YES,
                Verdict::TooMuchAlive { .. } => ARENITE_FIT_TOO_MUCH_ALIVE,
                Verdict::NoPacking => ARENITE_FIT_NO_PACKING,
                Verdict::Unknown => ARENITE_FIT_UNKNOWN,
            },
            arena_bytes: found.plan.arena_bytes,
            lower_bound: found.plan.lower_bound,
            outside_count: found.outside.len() as u64,
            outside_bytes: found.outside_bytes,
            ..arenite_fit_t::DEFAULT
        };
        if let Verdict::TooMuchAlive { step, needed } = found.verdict {
            (answer.step, answer.needed) = (step, needed);
        }
        // The plan's handle first: nothing is written where there is no memory for it.
        let plan = match out_plan {
            Some(place) => Some((place, handle::new(PlanInner::of_problem(&p.problem, found.plan)?)?)),
            None => None,
        };
        // SAFETY: the caller's contract on `out`; `fillable` has accepted the struct.
        unsafe { abi::fill(out, &answer, "") }?;
        if !marks.is_empty() {
            marks.fill(0);
            for &i in &found.outside {
                marks[i as usize] |= ARENITE_FIT_OUTSIDE;
            }
            for &i in &found.alive {
                marks[i as usize] |= ARENITE_FIT_ALIVE;
            }
        }
        if let Some((place, plan)) = plan {
            place.write(plan);
        }
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}
