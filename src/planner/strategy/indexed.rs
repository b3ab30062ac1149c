//! The greedy rules of [`crate::planner::greedy`] over conflict lists: the same offsets, without the n^2 scan, and for
//! lifetimes of several spans.

use alloc::vec::Vec;

use crate::error::{Error, Subject};
use crate::planner::conflict::Conflicts;
use crate::planner::greedy::{key, Gap, Row, Rule};
use crate::planner::problem::Problem;
use crate::planner::strategy::instance::Instance;
use crate::planner::strategy::window::Index;
use crate::units::Bytes;

/// Offsets by `rule` and the arena they need. Without `conflicts` they are listed where
/// that is affordable, else looked up for each buffer, which needs no memory per pair.
pub(crate) fn place(
    problem: &Problem,
    rule: Rule,
    conflicts: Option<&Conflicts>,
) -> Result<(Vec<Bytes>, Bytes), Error> {
    if rule == Rule::FirstFit {
        if let Some(found) = super::stream::first_fit(problem) {
            return Ok(found);
        }
    }
    let n = problem.len();
    // The order looks at the first span's start only; conflicts look at all spans.
    let rows: Vec<Row> = (0..n)
        .map(|i| {
            let (spec, hull) = (&problem.buffers()[i].spec, problem.hull(i));
            Row {
                size: spec.size,
                align: spec.align,
                first: hull.first,
                last: hull.last,
                kept: spec.kept,
                fixed: spec.fixed,
            }
        })
        .collect();
    let mut order: Vec<((u128, u32), u32)> = (0..n as u32).map(|i| (key(rule, i, &rows[i as usize]), i)).collect();
    order.sort_unstable();
    let owned;
    let near = match conflicts {
        Some(c) => Near::Listed(c),
        None => match Conflicts::within(problem, LISTED_PAIRS) {
            Some(c) => {
                owned = c;
                Near::Listed(&owned)
            }
            None => Near::searched(problem),
        },
    };
    let mut found: Vec<u32> = Vec::new();
    // Sequence number of each placed buffer: TFLite keeps its list sorted by offset, equal offsets in order of
    // placement. The gap rules do not depend on the order among equal offsets, so only the offset is compared below.
    let mut placed = alloc::vec![false; n];
    let mut offsets: Vec<Bytes> = alloc::vec![0; n];
    let mut arena = 0;
    let mut blocks: Vec<(Bytes, Bytes)> = Vec::new();
    for &(_, index) in &order {
        let i = index as usize;
        let row = &rows[i];
        if row.size == 0 {
            continue;
        }
        let name = |e: Error| e.buffer(i).at(row.first);
        blocks.clear();
        let with = near.with(problem, i, &mut found);
        for &o in with {
            if placed[o as usize] {
                let o = o as usize;
                blocks.push((offsets[o], offsets[o] + rows[o].size));
            }
        }
        let offset = match row.fixed {
            Some(at) => {
                let end = crate::units::add(at, row.size).map_err(name)?;
                let hit = with.iter().copied().find(|&o| {
                    let k = o as usize;
                    placed[k] && offsets[k] < end && at < offsets[k] + rows[k].size
                });
                if let Some(other) = hit {
                    return Err(Error::argument("two fixed offsets collide")
                        .buffer(i)
                        .and(Subject::Buffer(other))
                        .at(row.first.max(rows[other as usize].first)));
                }
                at
            }
            None => {
                blocks.sort_unstable_by_key(|b| b.0);
                let mut gap = Gap::new(rule, row.size, row.align);
                for &(from, to) in &blocks {
                    if gap.pass(from, to).map_err(name)? {
                        break;
                    }
                }
                gap.offset().map_err(name)?
            }
        };
        offsets[i] = offset;
        placed[i] = true;
        arena = arena.max(crate::units::add(offset, row.size).map_err(name)?);
    }
    Ok((offsets, arena))
}

/// Conflicting pairs up to which they are listed, at 8 bytes each; past that they are searched for again and again.
pub(crate) const LISTED_PAIRS: u64 = 16_000_000;

/// What it takes to look conflicts up by time.
struct Lookup {
    instance: Instance,
    index: Index,
    /// Position in the instance of each buffer of the problem.
    place: Vec<u32>,
}

/// Who conflicts with whom.
enum Near<'a> {
    Listed(&'a Conflicts),
    Searched(alloc::boxed::Box<Lookup>),
}

impl Near<'_> {
    fn searched(problem: &Problem) -> Near<'static> {
        let instance = Instance::new(problem);
        let index = Index::of(&instance);
        let mut place = alloc::vec![u32::MAX; problem.len()];
        for (k, &i) in instance.source.iter().enumerate() {
            place[i as usize] = k as u32;
        }
        Near::Searched(alloc::boxed::Box::new(Lookup { instance, index, place }))
    }

    /// The buffers that conflict with `i`, which is not empty.
    fn with<'s>(&'s self, problem: &Problem, i: usize, found: &'s mut Vec<u32>) -> &'s [u32] {
        match self {
            Near::Listed(c) => c.with(i),
            Near::Searched(lookup) => {
                let Lookup { instance, index, place } = &**lookup;
                let hull = instance.hull[place[i] as usize];
                index.touching(hull.lo, hull.up, found);
                found.iter_mut().for_each(|k| *k = instance.source[*k as usize]);
                found.retain(|&o| o as usize != i && (instance.starts.is_empty() || problem.conflict(i, o as usize)));
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::greedy;
    use crate::planner::problem::BufferSpec;
    use crate::units::Align;

    #[test]
    fn the_same_offsets_as_over_slices() {
        let mut x = 7u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..300 {
            let n = 1 + next(40) as usize;
            let mut p = Problem::new();
            let mut rows = Vec::new();
            for _ in 0..n {
                let first = next(20) as u32;
                let row = Row {
                    size: next(200),
                    align: Align::new(1 << next(7)).unwrap(),
                    first,
                    last: first + next(8) as u32,
                    kept: next(4) == 0,
                    fixed: None,
                };
                p.add_one(BufferSpec::new(row.size, row.align).kept(row.kept), row.first, row.last).unwrap();
                rows.push(row);
            }
            for rule in [Rule::FirstFit, Rule::GreedyBySize, Rule::TflmGreedy] {
                let mut offsets = alloc::vec![0; n];
                let arena = greedy::place(rule, &rows, &mut alloc::vec![0; 2 * n], &mut offsets).unwrap();
                assert_eq!(place(&p, rule, None).unwrap(), (offsets, arena), "{rule:?}");
            }
        }
    }
}
