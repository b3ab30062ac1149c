//! Where blocks lie within a plan's bytes so that they are likely to be in the processor's cache.

use alloc::vec::Vec;

use crate::planner::{Problem, Span};
use crate::units::Bytes;

/// Buffers beyond which offsets stay as they are: the pass compares every pair.
const MOST: usize = 4096;
/// Buffers that were let go of last, which are looked at for a place.
const RECENT: usize = 24;

/// A buffer of the problem that has bytes.
struct Item {
    index: usize,
    span: Span,
    size: Bytes,
    align: Bytes,
    /// Bytes written and read before it is first written, and up to its last read.
    begins: u64,
    ends: u64,
}

/// Moves buffers, in the order of their first steps, to where the bytes were used last, as a heap would. The plan stays
/// valid and does not grow: every move is to bytes that are free all through the buffer's life, below the plan's end.
///
/// ```text
/// before  [ A ][ B ][ C ]        A read, let go of; D could take A's bytes or a gap that was last used long ago
/// after   [ D ][ B ][ C ]
/// ```
///
/// A plan by size has the same bytes as one by time and places a layer's output anywhere; measured with ONNX Runtime's
/// OCR models that is 5 % of a run, all of it in waiting for memory.
pub(super) fn warm(problem: &Problem, offsets: &mut [Bytes], total: Bytes) {
    let mut items = items(problem);
    if items.len() > MOST {
        return;
    }
    tick(&mut items);
    let before = (coldness(&items, offsets), offsets.to_vec());
    move_each(&items, offsets, total);
    // Each move is for the better, but a buffer moved may have been where a later one should be.
    if coldness(&items, offsets) > before.0 {
        offsets.copy_from_slice(&before.1);
    }
}

fn move_each(items: &[Item], offsets: &mut [Bytes], total: Bytes) {
    let by_end = by_end(items);
    let mut taken: Vec<(Bytes, Bytes)> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        taken.clear();
        let others = items.iter().enumerate().filter(|&(j, o)| j != i && overlap(o.span, item.span));
        taken.extend(others.map(|(_, o)| (offsets[o.index], offsets[o.index] + o.size)));
        taken.sort_unstable();
        let recent = || recent(items, &by_end, item);
        let mut best = (age(item, offsets[item.index], recent(), offsets), offsets[item.index]);
        let mut offer = |at: Bytes, gap: (Bytes, Bytes)| {
            let at = at.max(gap.0).next_multiple_of(item.align);
            if at + item.size <= gap.1 {
                best = best.min((age(item, at, recent(), offsets), at));
            }
        };
        let mut from = 0;
        for &(start, end) in taken.iter().chain(&[(total, total)]) {
            if start >= from + item.size {
                let gap = (from, start);
                offer(from, gap);
                offer((start - item.size) / item.align * item.align, gap);
                for before in recent() {
                    offer(offsets[before.index], gap);
                    offer((offsets[before.index] + before.size).saturating_sub(item.size), gap);
                }
            }
            from = from.max(end);
        }
        offsets[item.index] = best.1;
    }
}

fn items(problem: &Problem) -> Vec<Item> {
    let buffers = problem.buffers().iter().enumerate().filter(|(_, b)| b.spec.size > 0);
    buffers
        .map(|(index, b)| Item {
            index,
            span: problem.hull(index),
            size: b.spec.size,
            align: b.spec.align.bytes(),
            begins: 0,
            ends: 0,
        })
        .collect()
}

/// A clock that counts bytes: a buffer is written at its first step, and read at its last.
fn tick(items: &mut [Item]) {
    let mut events: Vec<(u32, bool, usize)> = Vec::with_capacity(2 * items.len());
    for (i, item) in items.iter().enumerate() {
        events.extend([(item.span.first, false, i), (item.span.last, true, i)]);
    }
    events.sort_unstable();
    let mut now = 0u64;
    for (_, ends, i) in events {
        let after = now.saturating_add(items[i].size);
        if ends {
            items[i].ends = after;
        } else {
            items[i].begins = now;
        }
        now = after;
    }
}

/// The items in the order of their last steps.
fn by_end(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (items[i].span.last, i));
    order
}

/// Those gone before an item comes, the latest first.
fn recent<'a>(items: &'a [Item], by_end: &'a [usize], item: &Item) -> impl Iterator<Item = &'a Item> {
    let gone = by_end.partition_point(|&i| items[i].span.last < item.span.first);
    by_end[..gone].iter().rev().take(RECENT).map(|&i| &items[i])
}

/// The sum of all ages.
fn coldness(items: &[Item], offsets: &[Bytes]) -> u128 {
    let by_end = by_end(items);
    items.iter().map(|item| age(item, offsets[item.index], recent(items, &by_end, item), offsets)).sum()
}

fn overlap(a: Span, b: Span) -> bool {
    a.first <= b.last && b.first <= a.last
}

/// How long ago a buffer's bytes would have been used, summed over them. `recent` is those gone, the latest first; bytes of
/// none of them count as never used.
fn age<'a>(item: &Item, at: Bytes, recent: impl Iterator<Item = &'a Item>, offsets: &[Bytes]) -> u128 {
    // Stretches not accounted for yet. More than a few are not worth following.
    let mut open = [(0, 0); 8];
    let mut count = 1;
    open[0] = (at, at + item.size);
    let mut sum = 0;
    for before in recent {
        let (start, end) = (offsets[before.index], offsets[before.index] + before.size);
        let mut k = 0;
        while k < count {
            let (from, to) = open[k];
            let (low, high) = (from.max(start), to.min(end));
            if low < high {
                sum += u128::from(high - low) * u128::from(item.begins.saturating_sub(before.ends));
                match (from < low, high < to) {
                    (true, true) if count < open.len() => {
                        open[k] = (from, low);
                        open[count] = (high, to);
                        count += 1;
                    }
                    (true, true) | (true, false) => open[k] = (from, low),
                    (false, true) => open[k] = (high, to),
                    (false, false) => {
                        count -= 1;
                        open[k] = open[count];
                        continue;
                    }
                }
            }
            k += 1;
        }
    }
    let never: u64 = open[..count].iter().map(|(from, to)| to - from).sum();
    sum + u128::from(never) * (u128::from(item.begins) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::check::check;
    use crate::planner::sequence::Sequence;
    use crate::planner::{plan, Options, Strategy};
    use crate::units::DEFAULT_ALIGN;

    fn chain(n: u32, seed: u64) -> Problem {
        let mut s = Sequence::new();
        let (mut r, mut live) = (seed | 1, Vec::new());
        for _ in 0..n {
            r ^= r << 13;
            r ^= r >> 7;
            r ^= r << 17;
            live.push(s.alloc(1 + r % 100_000, 1 << ((r >> 32) % 10)).unwrap());
            while live.len() > 2 + (r >> 20) as usize % 3 {
                s.free(live.swap_remove((r >> 40) as usize % live.len())).unwrap();
            }
        }
        for block in live {
            s.free(block).unwrap();
        }
        s.problem(DEFAULT_ALIGN).unwrap()
    }

    #[test]
    fn a_warm_plan_is_valid_no_larger_and_warmer() {
        let (mut sum_cold, mut sum_warm) = (0, 0);
        for seed in 1..30 {
            let problem = chain(40 + seed as u32 * 7, seed * 7919);
            let cold = plan(&problem, &Options::of(Strategy::GreedyBySize)).unwrap();
            let mut offsets = cold.offsets.clone();
            warm(&problem, &mut offsets, cold.arena_bytes);
            let total = check(&problem, &offsets).unwrap();
            assert!(total <= cold.arena_bytes, "seed {seed}");
            let mut items = items(&problem);
            tick(&mut items);
            let (before, after) = (coldness(&items, &cold.offsets), coldness(&items, &offsets));
            assert!(after <= before, "seed {seed}");
            (sum_cold, sum_warm) = (sum_cold + before, sum_warm + after);
        }
        assert!(sum_warm < sum_cold, "{sum_warm} {sum_cold}");
    }

    #[test]
    fn a_block_takes_the_place_of_the_one_let_go_of_last() {
        let mut s = Sequence::new();
        let a = s.alloc(1000, 1).unwrap();
        let b = s.alloc(1000, 1).unwrap();
        s.free(a).unwrap();
        s.free(b).unwrap();
        let c = s.alloc(1000, 1).unwrap();
        s.free(c).unwrap();
        let problem = s.problem(DEFAULT_ALIGN).unwrap();
        let mut offsets = [0, 1024, 0];
        warm(&problem, &mut offsets, 2048);
        assert_eq!(offsets, [0, 1024, 1024]);
    }
}
