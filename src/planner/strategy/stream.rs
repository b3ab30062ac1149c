//! First fit in order of time, as an allocator would do it: the same offsets as the rule, without looking at pairs.
//!
//! In that order the placed buffers that conflict with the next one are exactly those still alive, so the free gaps between
//! live blocks are all that has to be known.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::planner::problem::Problem;
use crate::units::{Bytes, Step};

/// Offsets and arena by the first-fit rule, or `None` where a lifetime has gaps, an offset is fixed, a sum does not fit
/// or the gaps looked at exceed c n log n: the caller then has to do it pair by pair.
pub(crate) fn first_fit(problem: &Problem) -> Option<(Vec<Bytes>, Bytes)> {
    let n = problem.len();
    let spec = |i: u32| problem.buffers()[i as usize].spec;
    if (0..n as u32).any(|i| spec(i).fixed.is_some() || problem.spans(i as usize).len() > 1) {
        return None;
    }
    let mut order: Vec<u32> = (0..n as u32).filter(|&i| spec(i).size > 0).collect();
    order.sort_unstable_by_key(|&i| (problem.hull(i as usize).first, Reverse(spec(i).size), i));
    let mut offsets: Vec<Bytes> = alloc::vec![0; n];
    let mut arena = 0;
    let mut steps = 64 * (n as u64 + 1) * u64::from(n.max(2).ilog2());
    // Free bytes by start: the last gap has no end.
    let mut gaps: BTreeMap<Bytes, Bytes> = BTreeMap::from([(0, Bytes::MAX)]);
    let mut live: BinaryHeap<Reverse<(Step, u32)>> = BinaryHeap::new();
    for &i in &order {
        let life = problem.hull(i as usize);
        while let Some(&Reverse((last, o))) = live.peek() {
            if last >= life.first {
                break;
            }
            live.pop();
            let (mut from, mut to) = (offsets[o as usize], offsets[o as usize] + spec(o).size);
            if let Some(end) = gaps.remove(&to) {
                to = end;
            }
            if let Some((&start, &end)) = gaps.range(..from).next_back() {
                if end == from {
                    gaps.remove(&start);
                    from = start;
                }
            }
            gaps.insert(from, to);
        }
        let (size, align) = (spec(i).size, spec(i).align);
        let mut taken = None;
        for (&from, &to) in &gaps {
            steps = steps.checked_sub(1)?;
            let at = align.round_up(from)?;
            if at.checked_add(size)? <= to {
                taken = Some((from, at, to));
                break;
            }
        }
        let (from, at, to) = taken?;
        gaps.remove(&from);
        if from < at {
            gaps.insert(from, at);
        }
        if at + size < to {
            gaps.insert(at + size, to);
        }
        offsets[i as usize] = at;
        arena = arena.max(at + size);
        live.push(Reverse((life.last, i)));
    }
    Some((offsets, arena))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::greedy::{place, Row, Rule};
    use crate::planner::problem::BufferSpec;
    use crate::units::Align;

    #[test]
    fn the_same_offsets_as_the_rule() {
        let mut x = 5u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..500 {
            let n = 1 + next(50) as usize;
            let mut p = Problem::new();
            let mut rows = Vec::new();
            for _ in 0..n {
                let (first, align) = (next(30) as u32, Align::new(1 << next(7)).unwrap());
                let (last, size) = (first + next(9) as u32, next(300));
                rows.push(Row { size, align, first, last, kept: false, fixed: None });
                p.add_one(BufferSpec::new(size, align), first, last).unwrap();
            }
            let mut offsets = alloc::vec![0; n];
            let arena = place(Rule::FirstFit, &rows, &mut alloc::vec![0; 2 * n], &mut offsets).unwrap();
            assert_eq!(first_fit(&p), Some((offsets, arena)));
        }
    }
}
