//! What an order is worth: the arenas that result from it.

use alloc::vec::Vec;

use super::super::liveness;
use super::super::lower::lower;
use super::super::tables::Tables;
use super::permuted;
use crate::error::Error;
use crate::planner::{self, plan};
use crate::units::Bytes;

/// Whose lifetimes and which planner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judge {
    /// Lifetimes, alignment and in-place sharing.
    pub lifetimes: liveness::Options,
    /// The planner.
    pub plan: planner::Options,
}

/// What one judge says of one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// The arena, unrounded.
    pub arena_bytes: Bytes,
    /// The lower bound of that order's problem.
    pub lower_bound: Bytes,
}

/// Per entry, by each judge in turn.
pub(crate) fn all<T: Tables>(
    graphs: &[T],
    orders: &[Vec<u32>],
    entries: &[usize],
    judges: &[Judge],
) -> Result<Vec<Verdict>, Error> {
    let graphs = permuted(graphs, orders);
    let mut out = Vec::with_capacity(entries.len() * judges.len());
    for &entry in entries {
        for judge in judges {
            let lowered = lower(&graphs, entry, &judge.lifetimes, &[])?;
            let plan = plan(&lowered.problem, &judge.plan)?;
            out.push(Verdict { arena_bytes: plan.arena_bytes, lower_bound: plan.lower_bound });
        }
    }
    Ok(out)
}

/// No entry is worse by any judge, and one at least is better by the first.
pub(crate) fn better(new: &[Verdict], old: &[Verdict], judges: usize) -> bool {
    let arenas = |v: &[Verdict]| v.iter().map(|v| v.arena_bytes).collect::<Vec<_>>();
    let (new, old) = (arenas(new), arenas(old));
    let worse = new.iter().zip(&old).any(|(n, o)| n > o);
    let gain = new.iter().zip(&old).step_by(judges.max(1)).any(|(n, o)| n < o);
    gain && !worse
}

/// By each judge, the verdict of the entry with the largest arena.
pub(crate) fn largest(verdicts: &[Verdict], judges: usize) -> Vec<Verdict> {
    let mut out = alloc::vec![Verdict::default(); judges];
    for row in verdicts.chunks(judges.max(1)) {
        for (best, v) in out.iter_mut().zip(row) {
            *best = (*best).max(*v);
        }
    }
    out
}
