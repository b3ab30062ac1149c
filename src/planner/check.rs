//! The verifier. It shares no code with the strategies.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::problem::Problem;
use crate::units::{Bytes, Step};

/// What is wrong with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two buffers hold the same bytes at the same time.
    Overlap {
        /// The one with the lower index.
        a: u32,
        /// The other.
        b: u32,
        /// The first step at which both are alive.
        first: Step,
        /// The last step of that common stretch.
        last: Step,
        /// The first byte both hold.
        from: Bytes,
        /// One past the last byte both hold.
        to: Bytes,
    },
    /// An offset is not a multiple of the buffer's alignment.
    Misaligned {
        /// The buffer.
        buffer: u32,
        /// Its offset.
        offset: Bytes,
    },
    /// A fixed offset was not honoured.
    Moved {
        /// The buffer.
        buffer: u32,
        /// Where it should be.
        fixed: Bytes,
        /// Where it is.
        offset: Bytes,
    },
    /// An alias is not where its root's bytes are.
    Strayed {
        /// The alias.
        buffer: u32,
        /// Where it should be.
        expected: Bytes,
        /// Where it is.
        offset: Bytes,
    },
    /// Offset + size does not fit 64 bits.
    Wraps {
        /// The buffer.
        buffer: u32,
    },
    /// There is not exactly one offset per buffer.
    Count {
        /// Buffers.
        expected: u64,
        /// Offsets.
        given: u64,
    },
}

/// The outcome of [`check_all`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The violations found, at most as many as asked for.
    pub violations: Vec<Violation>,
    /// Whether more exist than were listed.
    pub truncated: bool,
    /// The highest end of any buffer.
    pub arena_bytes: Bytes,
}

/// `Ok` with the arena in bytes, or the first violation found. n log n.
pub fn check(problem: &Problem, offsets: &[Bytes]) -> Result<Bytes, Violation> {
    let report = check_all(problem, offsets, 1);
    match report.violations.first() {
        Some(v) => Err(*v),
        None => Ok(report.arena_bytes),
    }
}

/// Checks everything and lists up to `limit` violations, overlapping pairs in order of time.
///
/// A sweep over steps keeps the live buffers in a map ordered by offset. A valid plan costs n log n; each pair that
/// overlaps costs one step more.
pub fn check_all(problem: &Problem, offsets: &[Bytes], limit: usize) -> Report {
    let mut out = Report::default();
    let n = problem.len();
    if offsets.len() != n {
        let v = Violation::Count { expected: n as u64, given: offsets.len() as u64 };
        push(&mut out, limit, v);
        return out;
    }
    let mut ends = alloc::vec![0u64; n];
    let mut widest = 0;
    for (i, b) in problem.buffers().iter().enumerate() {
        let (buffer, offset, size) = (i as u32, offsets[i], b.spec.size);
        if size == 0 {
            continue;
        }
        match offset.checked_add(size) {
            Some(end) => ends[i] = end,
            None => {
                push(&mut out, limit, Violation::Wraps { buffer });
                ends[i] = u64::MAX;
            }
        }
        widest = widest.max(size);
        out.arena_bytes = out.arena_bytes.max(ends[i]);
        if offset % b.spec.align.bytes() != 0 {
            push(&mut out, limit, Violation::Misaligned { buffer, offset });
        }
        match (b.spec.fixed, problem.alias_of(i)) {
            (Some(fixed), _) if fixed != offset => {
                push(&mut out, limit, Violation::Moved { buffer, fixed, offset });
            }
            (_, Some(alias)) if problem.buffers()[alias.root as usize].spec.size > 0 => {
                let expected = offsets[alias.root as usize].saturating_add(alias.delta);
                if expected != offset {
                    push(&mut out, limit, Violation::Strayed { buffer, expected, offset });
                }
            }
            _ => {}
        }
    }
    overlaps(problem, offsets, &ends, limit, &mut out);
    out
}

fn push(out: &mut Report, limit: usize, violation: Violation) {
    if out.violations.len() < limit {
        out.violations.push(violation);
    } else {
        out.truncated = true;
    }
}

/// The class of a buffer: its root, or itself.
fn class(problem: &Problem, index: u32) -> u32 {
    problem.alias_of(index as usize).map_or(index, |a| a.root)
}

fn overlaps(problem: &Problem, offsets: &[Bytes], ends: &[Bytes], limit: usize, out: &mut Report) {
    // (step, is a start, buffer, last step): an end at `last + 1` comes before starts at that step.
    let mut events: Vec<(u64, bool, u32, Step)> = Vec::new();
    for (i, &end) in ends.iter().enumerate() {
        if end == 0 {
            continue;
        }
        for s in problem.spans(i) {
            events.push((u64::from(s.first), true, i as u32, s.last));
            events.push((u64::from(s.last) + 1, false, i as u32, s.last));
        }
    }
    events.sort_unstable();
    // Live buffers by (offset, buffer), with the last step of the live span. While the plan is valid the entry below a
    // new block is the only one that can reach into it; once blocks overlap, `reach` says how far below to look.
    let mut live: BTreeMap<(Bytes, u32), Step> = BTreeMap::new();
    let mut reach: Bytes = 0;
    let mut seen: alloc::collections::BTreeSet<(u32, u32)> = alloc::collections::BTreeSet::new();
    for &(step, start, i, last) in &events {
        let (from, to) = (offsets[i as usize], ends[i as usize]);
        if !start {
            live.remove(&(from, i));
            continue;
        }
        let mut hit = |other: u32, other_last: Step, out: &mut Report| {
            if class(problem, i) == class(problem, other) {
                return;
            }
            let pair = (i.min(other), i.max(other));
            if seen.insert(pair) {
                let v = Violation::Overlap {
                    a: pair.0,
                    b: pair.1,
                    first: step as Step,
                    last: last.min(other_last),
                    from: from.max(offsets[other as usize]),
                    to: to.min(ends[other as usize]),
                };
                push(out, limit, v);
            }
        };
        for (&(_, other), &other_last) in live.range((from, 0)..(to, 0)) {
            hit(other, other_last, out);
            reach = reach.max(ends[other as usize] - offsets[other as usize]).max(to - from);
        }
        for (&(at, other), &other_last) in live.range(..(from, 0)).rev() {
            if ends[other as usize] > from {
                hit(other, other_last, out);
                reach = reach.max(ends[other as usize] - at).max(to - from);
            } else if at.saturating_add(reach) <= from {
                break;
            }
        }
        live.insert((from, i), last);
        if out.truncated {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::problem::{BufferSpec, Span};
    use crate::units::Align;

    /// Pairs by definition.
    fn naive(p: &Problem, offsets: &[u64]) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        for a in 0..p.len() {
            for b in a + 1..p.len() {
                let size = |i: usize| p.buffers()[i].spec.size;
                let same = class(p, a as u32) == class(p, b as u32);
                let bytes = offsets[a] < offsets[b] + size(b) && offsets[b] < offsets[a] + size(a);
                if !same && size(a) > 0 && size(b) > 0 && bytes && p.conflict(a, b) {
                    out.push((a as u32, b as u32));
                }
            }
        }
        out
    }

    #[test]
    fn finds_exactly_the_pairs_of_the_definition() {
        let mut x = 99u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for round in 0..2000 {
            let mut p = Problem::new();
            let mut offsets = Vec::new();
            // Sparse rounds have few overlaps, dense ones many.
            let space = if round % 2 == 0 { 4000 } else { 200 };
            for i in 0..1 + next(14) as u32 {
                let first = next(12) as u32;
                let last = first + next(4) as u32;
                let mut spans = alloc::vec![Span::new(first, last)];
                if next(4) == 0 {
                    spans.push(Span::new(last + 2, last + 2 + next(5) as u32));
                }
                p.add(BufferSpec::new(next(90), Align::ONE), &spans).unwrap();
                offsets.push(next(space));
                if i > 2 && next(5) == 0 && p.alias(i, 0, 0).is_ok() {
                    offsets[i as usize] = offsets[0];
                }
            }
            let report = check_all(&p, &offsets, usize::MAX);
            let mut found: Vec<(u32, u32)> = report
                .violations
                .iter()
                .map(|v| match *v {
                    Violation::Overlap { a, b, first, last, from, to } => {
                        assert!(first <= last && from < to);
                        (a, b)
                    }
                    ref other => panic!("{other:?}"),
                })
                .collect();
            found.sort_unstable();
            assert_eq!(found, naive(&p, &offsets), "round {round}");
        }
    }

    #[test]
    fn says_what_else_is_wrong() {
        let mut p = Problem::new();
        p.add_one(BufferSpec::new(8, Align::new(8).unwrap()), 0, 0).unwrap();
        p.add_one(BufferSpec::new(8, Align::ONE).fixed_at(64), 0, 0).unwrap();
        p.add_one(BufferSpec::new(8, Align::ONE), 0, 0).unwrap();
        p.alias(2, 0, 0).unwrap();
        let found = check_all(&p, &[4, 32, u64::MAX], 9).violations;
        assert!(found.contains(&Violation::Misaligned { buffer: 0, offset: 4 }));
        assert!(found.contains(&Violation::Moved { buffer: 1, fixed: 64, offset: 32 }));
        assert!(found.contains(&Violation::Strayed { buffer: 2, expected: 4, offset: u64::MAX }));
        assert!(found.contains(&Violation::Wraps { buffer: 2 }));
        assert_eq!(check(&p, &[0]), Err(Violation::Count { expected: 3, given: 1 }));
        assert_eq!(check(&p, &[0, 64, 0]), Ok(72));
    }
}
