//! Cutting a part where every order has the same nodes behind it, so that the stretches between are searched apart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::part::{Cell, Part, Spot};
use crate::units::Bytes;

/// The stretches of `part` between its cuts, in order; together they are all nodes.
///
/// A node is a cut if each other node comes before or after it in every order. In the given order that is: every node
/// ahead of it has a successor no later than the cut (so the cut is their only sink), and every node behind it has a
/// predecessor no earlier than the cut.
pub(crate) fn stretches(part: &Part) -> Vec<Range<usize>> {
    let n = part.spots.len();
    // The earliest predecessor allowed: for p, the smallest over later nodes of their latest predecessor.
    let mut behind = alloc::vec![usize::MAX; n + 1];
    for w in (0..n).rev() {
        let latest = part.spots[w].before.last().map_or(0, |&u| u as usize + 1);
        behind[w] = behind[w + 1].min(latest);
    }
    let mut out = Vec::new();
    let (mut start, mut ahead) = (0, 0);
    for p in 0..n {
        if ahead <= p && behind[p + 1] > p {
            if start < p {
                out.push(start..p);
            }
            out.push(p..p + 1);
            start = p + 1;
        }
        ahead = ahead.max(part.spots[p].after.first().map_or(usize::MAX, |&s| s as usize));
    }
    if start < n {
        out.push(start..n);
    }
    out
}

/// The nodes of `range` as a part of their own, where `live` bytes are alive when its first node begins. All nodes ahead
/// of the range must have run by then, and none behind it.
pub(crate) fn slice(part: &Part, range: Range<usize>, live: Bytes) -> Part {
    let local = |list: &[u32]| -> Vec<u32> {
        let inside = list.iter().filter(|&&v| range.contains(&(v as usize)));
        inside.map(|&v| v - range.start as u32).collect()
    };
    let mut index: BTreeMap<u32, u32> = BTreeMap::new();
    let mut out = Part { base: live, ..Part::default() };
    for spot in &part.spots[range.clone()] {
        let mut cells = Vec::with_capacity(spot.cells.len());
        for &c in &spot.cells {
            let next = out.cells.len() as u32;
            let at = *index.entry(c).or_insert(next);
            if at == next {
                let cell = &part.cells[c as usize];
                let born = cell.born || cell.users.first().is_some_and(|&u| (u as usize) < range.start);
                let kept = cell.kept || cell.users.last().is_some_and(|&u| (u as usize) >= range.end);
                if born {
                    out.base -= cell.bytes;
                }
                out.cells.push(Cell { bytes: cell.bytes, born, kept, users: local(&cell.users) });
            }
            cells.push(at);
        }
        out.spots.push(Spot { before: local(&spot.before), after: local(&spot.after), cells, extra: spot.extra });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::part::tests::random;
    use super::super::walk::Walk;
    use super::*;

    #[test]
    fn stretches_have_the_peaks_of_the_whole() {
        let mut state = 11u64;
        let mut next = |k: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % k
        };
        let mut cuts = 0;
        for _ in 0..200 {
            let part = random(7, &mut next);
            let ranges = stretches(&part);
            cuts += ranges.len() - 1;
            assert_eq!(ranges.iter().flat_map(|r| r.clone()).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
            let (mut walk, mut peak) = (Walk::new(&part), 0);
            for range in ranges {
                let piece = slice(&part, range.clone(), walk.live);
                assert_eq!(piece.at_start(), walk.live);
                let order: Vec<u32> = (0..range.len() as u32).collect();
                peak = peak.max(piece.peak(&order));
                range.for_each(|v| walk.run(v as u32));
            }
            assert_eq!(peak, walk.peak);
        }
        assert!(cuts > 10, "{cuts}");
    }
}
