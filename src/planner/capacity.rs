//! Does a problem fit? And if not: why not, and what is left over?

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::bound::lower_bound;
use super::plan::Plan;
use super::problem::Problem;
use super::strategy::{plan_with, Options, Progress};
use crate::error::Error;
use crate::units::{Bytes, Step};

/// The answer to whether a capacity suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The plan fits.
    Fits,
    /// No plan fits: already the buffers alive at one step need more.
    TooMuchAlive {
        /// That step.
        step: Step,
        /// Bytes they need.
        needed: Bytes,
    },
    /// No plan fits, although at every step the bytes would suffice: search has tried all that could be.
    NoPacking,
    /// The effort was spent without an answer.
    Unknown,
}

/// A capacity question answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The answer.
    pub verdict: Verdict,
    /// The best plan found; larger than the capacity unless the verdict is [`Verdict::Fits`].
    pub plan: Plan,
    /// The buffers that prove [`Verdict::TooMuchAlive`]: those alive at that step, by size, largest first. Else empty.
    pub alive: Vec<u32>,
    /// Buffers of the plan that end above the capacity; all others can be placed as the plan says.
    pub outside: Vec<u32>,
    /// Sum of their sizes, in bytes.
    pub outside_bytes: Bytes,
}

/// Asks whether `problem` can be placed in `capacity` bytes. Running out of effort is an answer, not an error; errors
/// are those of [`super::plan()`].
pub fn fit(
    problem: &Problem,
    capacity: Bytes,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Fit, Error> {
    let options = Options { capacity: Some(capacity), ..*options };
    let plan = plan_with(problem, &options, progress)?;
    let spec = |i: u32| problem.buffers()[i as usize].spec;
    let outside: Vec<u32> = (0..problem.len() as u32)
        .filter(|&i| spec(i).size > 0 && plan.offsets[i as usize].saturating_add(spec(i).size) > capacity)
        .collect();
    let outside_bytes = outside.iter().fold(0u64, |sum, &i| sum.saturating_add(spec(i).size));
    let mut alive = Vec::new();
    let verdict = if plan.arena_bytes <= capacity {
        Verdict::Fits
    } else {
        let (merged, map) = problem.merge_aliases()?;
        let bound = lower_bound(&merged)?;
        if bound.bytes > capacity {
            let lives = |i: &u32| {
                let root = map[*i as usize].0 as usize;
                spec(*i).size > 0 && merged.spans(root).iter().any(|s| s.first <= bound.step && bound.step <= s.last)
            };
            alive = (0..problem.len() as u32).filter(lives).collect();
            alive.sort_by_key(|&i| (core::cmp::Reverse(spec(i).size), i));
            Verdict::TooMuchAlive { step: bound.step, needed: bound.bytes }
        } else if plan.lower_bound > capacity {
            Verdict::NoPacking
        } else {
            Verdict::Unknown
        }
    };
    Ok(Fit { verdict, plan, alive, outside, outside_bytes })
}
