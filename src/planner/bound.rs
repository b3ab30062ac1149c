//! Lower bounds on the arena that hold for every plan of a problem.

use alloc::vec::Vec;

use super::problem::{Buffer, Problem};
use crate::error::Error;
use crate::units::{Align, Bytes, Step};

/// The lower bound of DESIGN.md section 3, with the step at which it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bound {
    /// No plan's arena is smaller, in unrounded bytes.
    pub bytes: Bytes,
    /// The first step at which the live buffers alone need that much; 0 for an empty problem.
    pub step: Step,
}

/// Over all steps, the largest of (a) the sum of live sizes and (b) for each alignment A present, the sum of live sizes
/// with alignment at least A, each rounded up to A, less the largest single padding among them.
///
/// (b) holds since those blocks start at multiples of A: stacked, each but the topmost costs its rounded size. Fixed
/// offsets add (c) the end of every fixed buffer. Alias classes count once; merge them first
/// ([`Problem::merge_aliases`]).
pub fn lower_bound(problem: &Problem) -> Result<Bound, Error> {
    let mut best = Bound::default();
    for (i, b) in problem.buffers().iter().enumerate() {
        if let (Some(at), true) = (b.spec.fixed, b.spec.size > 0) {
            let end = crate::units::add(at, b.spec.size)?;
            if end > best.bytes {
                best = Bound { bytes: end, step: problem.hull(i).first };
            }
        }
    }
    let found = match dense_peak(problem) {
        Some(found) => found,
        None => aligned_peak(problem, Align::ONE)?,
    };
    if found.bytes > best.bytes {
        best = found;
    }
    let mut seen = 0u64;
    for b in problem.buffers() {
        seen |= b.spec.align.bytes();
    }
    for align in (1..u64::BITS).filter_map(|k| Align::new(1 << k).ok()).filter(|a| seen & a.bytes() != 0) {
        // Where nothing is padded, (b) is a part of the sum (a).
        let padded = |b: &Buffer| b.spec.align >= align && !align.divides(b.spec.size);
        if problem.buffers().iter().any(padded) {
            let found = aligned_peak(problem, align)?;
            if found.bytes > best.bytes {
                best = found;
            }
        }
    }
    Ok(best)
}

/// The largest sum of live sizes, where steps are dense and no sum can leave 63 bits: without sorting.
fn dense_peak(problem: &Problem) -> Option<Bound> {
    let (mut spans, mut last, mut sum) = (0u64, 0u32, 0u64);
    let live = |i: &usize| problem.buffers()[*i].spec.size > 0;
    for i in (0..problem.len()).filter(live) {
        let own = problem.spans(i);
        spans += own.len() as u64;
        last = last.max(own[own.len() - 1].last);
        sum = sum.checked_add(problem.buffers()[i].spec.size.checked_mul(own.len() as u64)?)?;
    }
    if i64::try_from(sum).is_err() || u64::from(last) >= 8 * spans + 1024 {
        return None;
    }
    let mut change = alloc::vec![0i64; usize::try_from(last).ok()?.checked_add(2)?];
    for i in (0..problem.len()).filter(live) {
        let size = problem.buffers()[i].spec.size as i64;
        for s in problem.spans(i) {
            change[s.first as usize] += size;
            change[s.last as usize + 1] -= size;
        }
    }
    let (mut best, mut alive) = (Bound::default(), 0i64);
    for (step, &d) in change.iter().enumerate() {
        alive += d;
        if alive as Bytes > best.bytes {
            best = Bound { bytes: alive as Bytes, step: step as Step };
        }
    }
    Some(best)
}

/// An event of the sweep: at `step`, a block of `size` (rounded) with `padding` starts or, after its last step, ends.
struct Event {
    step: u64,
    start: bool,
    size: Bytes,
    padding: Bytes,
}

/// The largest, over steps, of the sum of live rounded sizes less the largest padding, for buffers aligned to at least
/// `align`.
fn aligned_peak(problem: &Problem, align: Align) -> Result<Bound, Error> {
    let mut events: Vec<Event> = Vec::new();
    for (i, b) in problem.buffers().iter().enumerate() {
        if b.spec.size == 0 || b.spec.align < align {
            continue;
        }
        let size = crate::units::round_up(b.spec.size, align).map_err(|e| e.buffer(i))?;
        let padding = size - b.spec.size;
        for s in problem.spans(i) {
            events.push(Event { step: u64::from(s.first), start: true, size, padding });
            events.push(Event { step: u64::from(s.last) + 1, start: false, size, padding });
        }
    }
    // Ends before starts, so that [0,1] and [2,3] are never counted together.
    events.sort_unstable_by_key(|e| (e.step, e.start));
    let mut best = Bound::default();
    let mut live: u128 = 0;
    // Live paddings, counted by value: the largest is wanted after every step.
    let mut paddings: alloc::collections::BTreeMap<Bytes, u32> = alloc::collections::BTreeMap::new();
    let mut i = 0;
    while i < events.len() {
        let step = events[i].step;
        while i < events.len() && events[i].step == step {
            let e = &events[i];
            if e.start {
                live += u128::from(e.size);
                if e.padding > 0 {
                    *paddings.entry(e.padding).or_insert(0) += 1;
                }
            } else {
                live -= u128::from(e.size);
                if e.padding > 0 {
                    if let Some(count) = paddings.get_mut(&e.padding) {
                        *count -= 1;
                        if *count == 0 {
                            paddings.remove(&e.padding);
                        }
                    }
                }
            }
            i += 1;
        }
        let padding = paddings.last_key_value().map_or(0, |(&p, _)| p);
        let need = live.saturating_sub(u128::from(padding));
        if need > u128::from(best.bytes) {
            let step = step as Step;
            let bytes = u64::try_from(need).map_err(|_| {
                let why = Error::overflow("the sizes alive at one step do not fit 64 bits").at(step);
                most(problem, step).map_or(why, |i| why.buffer(i))
            })?;
            best = Bound { bytes, step };
        }
    }
    Ok(best)
}

/// The largest buffer alive at a step.
fn most(problem: &Problem, step: Step) -> Option<usize> {
    let alive = |&i: &usize| problem.spans(i).iter().any(|s| s.first <= step && step <= s.last);
    (0..problem.len()).filter(alive).rev().max_by_key(|&i| problem.buffers()[i].spec.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::problem::{BufferSpec, Span};

    #[test]
    fn alignment_counts_all_padding_but_the_topmost() {
        let a = Align::new(64).unwrap();
        let mut p = Problem::new();
        p.add_one(BufferSpec::new(65, a), 0, 1).unwrap();
        p.add_one(BufferSpec::new(1, a), 1, 2).unwrap();
        // 65 rounds to 128, 1 to 64; the padding of 63 on top need not exist.
        assert_eq!(lower_bound(&p).unwrap(), Bound { bytes: 129, step: 1 });
    }

    #[test]
    fn spans_with_a_gap_do_not_count_in_the_gap() {
        let mut p = Problem::new();
        p.add(BufferSpec::new(100, Align::ONE), &[Span::new(0, 0), Span::new(3, 3)]).unwrap();
        p.add_one(BufferSpec::new(60, Align::ONE), 1, 2).unwrap();
        assert_eq!(lower_bound(&p).unwrap().bytes, 100);
    }

    #[test]
    fn sums_past_64_bits_are_an_error_and_the_last_step_does_not_wrap() {
        let mut p = Problem::new();
        p.add_one(BufferSpec::new(u64::MAX, Align::ONE), 0, u32::MAX).unwrap();
        assert_eq!(lower_bound(&p).unwrap().bytes, u64::MAX);
        p.add_one(BufferSpec::new(1, Align::ONE), 7, 7).unwrap();
        let e = lower_bound(&p).unwrap_err();
        assert_eq!((e.kind, e.step), (crate::error::Kind::Overflow, Some(7)));
    }

    #[test]
    fn sums_without_sorting_are_those_of_the_sweep() {
        let mut x = 3u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..300 {
            let mut p = Problem::new();
            for i in 0..next(40) {
                let first = next(60) as u32;
                let last = first + next(9) as u32;
                let mut spans = alloc::vec![Span::new(first, last)];
                if i % 3 == 0 {
                    spans.push(Span::new(last + 2, last + 2 + next(4) as u32));
                }
                p.add(BufferSpec::new(next(50), Align::ONE), &spans).unwrap();
            }
            assert_eq!(dense_peak(&p), Some(aligned_peak(&p, Align::ONE).unwrap()));
        }
        let mut sparse = Problem::new();
        sparse.add_one(BufferSpec::new(1, Align::ONE), 0, u32::MAX).unwrap();
        assert_eq!(dense_peak(&sparse), None, "time as memory");
    }
}
