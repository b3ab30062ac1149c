//! Planning again with an older plan in hand, so that what did not have to move does not.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::check::{check, check_all, Violation};
use super::plan::{Plan, Stats};
use super::problem::Problem;
use super::strategy::{plan_with, Options, Progress};
use crate::error::Error;
use crate::units::Bytes;

/// What to do when the old offsets do not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keep {
    /// Plan afresh: the smallest arena matters.
    #[default]
    Arena,
    /// Move as few buffers as possible, even if the arena grows: pointers into it matter.
    Offsets,
}

/// A plan made with an older one in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replan {
    /// The plan.
    pub plan: Plan,
    /// Buffers of at least one byte whose offset differs from the old one, new buffers included.
    pub moved: u64,
}

/// Plans `problem`, whose first buffers had the offsets `old` before; further buffers are new.
///
/// Where the old offsets still pass [`check`], which is always so when nothing but sizes changed and they only shrank,
/// they are kept as they are, and the arena does not grow. Otherwise `keep` decides. Errors as for [`super::plan()`].
pub fn replan(
    problem: &Problem,
    old: &[Bytes],
    keep: Keep,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Replan, Error> {
    let n = problem.len();
    if old.len() >= n {
        if let Ok(arena) = check(problem, &old[..n]) {
            return finish(problem, old, old[..n].to_vec(), arena, options);
        }
    }
    if keep == Keep::Offsets && !problem.has_aliases() {
        if let Some((offsets, arena)) = patch(problem, old) {
            return finish(problem, old, offsets, arena, options);
        }
    }
    let plan = plan_with(problem, options, progress)?;
    let moved = moved(problem, old, &plan.offsets);
    Ok(Replan { plan, moved })
}

fn moved(problem: &Problem, old: &[Bytes], new: &[Bytes]) -> u64 {
    let size = |i: usize| problem.buffers()[i].spec.size;
    (0..problem.len()).filter(|&i| size(i) > 0 && old.get(i) != Some(&new[i])).count() as u64
}

fn finish(
    problem: &Problem,
    old: &[Bytes],
    offsets: Vec<Bytes>,
    arena_bytes: Bytes,
    options: &Options,
) -> Result<Replan, Error> {
    let (merged, _) = problem.merge_aliases()?;
    let lower_bound = super::bound::lower_bound(&merged)?.bytes;
    let align = problem.align();
    let moved = moved(problem, old, &offsets);
    let plan = Plan {
        offsets,
        arena_bytes,
        lower_bound,
        optimal: Plan::meets(arena_bytes, lower_bound, align),
        strategy: options.strategy,
        align,
        compared: false,
        stats: Stats::default(),
    };
    Ok(Replan { plan, moved })
}

/// The old offsets with as few changes as it takes, each changed buffer in the lowest gap that fits. `None` where a
/// fixed offset is in the way or a sum does not fit.
fn patch(problem: &Problem, old: &[Bytes]) -> Option<(Vec<Bytes>, Bytes)> {
    let n = problem.len();
    let spec = |i: usize| problem.buffers()[i].spec;
    let mut offsets: Vec<Bytes> = (0..n).map(|i| old.get(i).copied().unwrap_or(0)).collect();
    // Who has to move in any case, and who is in whose way.
    let mut moves: Vec<bool> = (0..n).map(|i| i >= old.len() && spec(i).size > 0).collect();
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (i, offset) in offsets.iter_mut().enumerate() {
        if let Some(at) = spec(i).fixed {
            *offset = at;
            moves[i] = false;
        } else if !spec(i).align.divides(*offset) || offset.checked_add(spec(i).size).is_none() {
            moves[i] = spec(i).size > 0;
            *offset = 0;
        }
    }
    for v in check_all(problem, &offsets, usize::MAX).violations {
        if let Violation::Overlap { a, b, .. } = v {
            if !moves[a as usize] && !moves[b as usize] {
                pairs.push((a, b));
            }
        }
    }
    // A small vertex cover: again and again the buffer in most others' way, the smaller of equals.
    let mut degree = alloc::vec![0u32; n];
    for &(a, b) in &pairs {
        degree[a as usize] += 1;
        degree[b as usize] += 1;
    }
    while !pairs.is_empty() {
        let worst = (0..n)
            .filter(|&i| degree[i] > 0 && spec(i).fixed.is_none())
            .max_by_key(|&i| (degree[i], core::cmp::Reverse(spec(i).size), i))?;
        moves[worst] = true;
        pairs.retain(|&(a, b)| {
            let gone = a as usize == worst || b as usize == worst;
            if gone {
                degree[a as usize] -= 1;
                degree[b as usize] -= 1;
            }
            !gone
        });
    }
    let mut movers: Vec<usize> = (0..n).filter(|&i| moves[i]).collect();
    movers.sort_by_key(|&i| (core::cmp::Reverse(spec(i).size), problem.hull(i).first, i));
    let mut placed: Vec<bool> = (0..n).map(|i| !moves[i] && spec(i).size > 0).collect();
    for &i in &movers {
        let mut blocks: Vec<(Bytes, Bytes)> = (0..n)
            .filter(|&o| placed[o] && problem.conflict(i, o))
            .map(|o| (offsets[o], offsets[o] + spec(o).size))
            .collect();
        blocks.sort_unstable();
        // Back to the old place if someone else's move made room there.
        if let Some(&at) = old.get(i) {
            let end = at.checked_add(spec(i).size);
            let free = end.is_some_and(|end| blocks.iter().all(|&(from, to)| to <= at || end <= from));
            if free && spec(i).align.divides(at) {
                offsets[i] = at;
                placed[i] = true;
                continue;
            }
        }
        let mut at = 0;
        for (from, to) in blocks {
            if at + spec(i).size <= from {
                break;
            }
            at = at.max(spec(i).align.round_up(to)?);
            at.checked_add(spec(i).size)?;
        }
        offsets[i] = at;
        placed[i] = true;
    }
    for i in (0..n).filter(|&i| spec(i).size == 0) {
        offsets[i] = spec(i).fixed.unwrap_or(0);
    }
    let arena = check(problem, &offsets).ok()?;
    Some((offsets, arena))
}
