//! The best order of a part: cut, then beam, then exact search, within an effort.

use alloc::vec::Vec;

use super::beam::beam;
use super::dive::{Answer, Dive};
use super::part::Part;
use super::split::{slice, stretches};
use super::walk::Walk;
use crate::units::Bytes;

/// An order and how good it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub order: Vec<u32>,
    /// Its peak.
    pub peak: Bytes,
    /// No order has a lower one.
    pub bound: Bytes,
    /// Nodes looked at.
    pub spent: u64,
    /// Some stretch was left above its least peak because another is higher.
    pub spared: bool,
}

/// Sets of one size that the beam carries; fewer where so many would spend the effort.
const WIDTH: usize = 48;

/// Looks for the order of least peak. The given order is returned where nothing better is found.
///
/// With `thorough` every stretch between two cuts gets its least peak, otherwise those alone that decide the peak of the
/// whole; the rest keep the given order. With `near` equals are told apart by their distance from the given order; without,
/// another of them is found.
pub(crate) fn solve(part: &Part, effort: u64, thorough: bool, near: bool) -> Found {
    let n = part.spots.len();
    let mut out = Found { order: (0..n as u32).collect(), ..Found::default() };
    let mut walk = Walk::new(part);
    // A stretch with its peak in the given order and the bytes alive when it begins.
    let mut pieces = Vec::new();
    for range in stretches(part) {
        let live = walk.live;
        walk.peak = 0;
        range.clone().for_each(|v| walk.run(v as u32));
        pieces.push((walk.peak, range, live));
    }
    // The worst first: what it takes, the others need not stay below.
    pieces.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.start.cmp(&b.1.start)));
    let open = pieces.iter().filter(|p| p.1.len() > 1).count().max(1) as u64;
    for (peak, range, live) in pieces {
        if range.len() == 1 {
            out.peak = out.peak.max(peak);
            out.bound = out.bound.max(peak);
            continue;
        }
        let goal = if thorough { 0 } else { out.bound };
        if peak <= goal {
            out.peak = out.peak.max(peak);
            out.spared = true;
            continue;
        }
        let piece = slice(part, range.clone(), live);
        // Half of what is left, but never less than an equal share.
        let share = (effort.saturating_sub(out.spent) / 2).max(effort / open);
        let found = stretch(&piece, peak, goal, share, near);
        out.spent += found.spent;
        out.spared |= found.bound < found.peak && found.peak <= goal;
        out.peak = out.peak.max(found.peak);
        out.bound = out.bound.max(found.bound);
        for (at, v) in found.order.iter().enumerate() {
            out.order[range.start + at] = range.start as u32 + v;
        }
    }
    out
}

/// One stretch, whose given order has `peak`. A peak of `goal` is as good as any lower one.
fn stretch(part: &Part, peak: Bytes, goal: Bytes, effort: u64, near: bool) -> Found {
    let n = part.spots.len();
    let floor = part.floor();
    let mut best = Found { order: (0..n as u32).collect(), peak, bound: floor, spent: n as u64, spared: false };
    let target = floor.max(goal);
    if best.peak <= target {
        return best;
    }
    let keep = |order: Vec<u32>, peak: Bytes, best: &mut Found| {
        if peak < best.peak {
            (best.order, best.peak) = (order, peak);
        }
    };
    // A narrow beam finds most of what there is at once; a wide one pays only where effort is left.
    for width in [8, WIDTH] {
        if best.peak > target {
            let (found, spent) = beam(part, width, target, best.peak, effort / 4, near);
            best.spent += spent;
            if let Some((peak, order)) = found {
                keep(order, peak, &mut best);
            }
        }
    }
    let mirror = part.mirrored();
    for (backwards, side) in [(false, part), (true, &mirror)] {
        let mut dive = Dive::new(side, effort / 4);
        while best.peak > target {
            match dive.within(best.peak - 1) {
                Answer::Order(mut order) => {
                    if backwards {
                        order.iter_mut().for_each(|v| *v = n as u32 - 1 - *v);
                        order.reverse();
                    }
                    let peak = part.peak(&order);
                    keep(order, peak, &mut best);
                }
                Answer::None => {
                    best.bound = best.peak;
                    break;
                }
                Answer::Open => break,
            }
        }
        best.spent += dive.spent;
        if best.bound >= best.peak || best.peak <= target {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::part::tests::random;
    use super::*;

    /// The least peak over all orders, and the number of orders.
    fn brute(walk: &mut Walk<'_>, so_far: Bytes, best: &mut Bytes) -> u64 {
        if walk.complete() {
            *best = (*best).min(so_far);
            return 1;
        }
        let mut count = 0;
        for v in walk.ready.clone() {
            let during = walk.look(v).0;
            walk.run(v);
            count += brute(walk, so_far.max(during), best);
            walk.back();
        }
        count
    }

    #[test]
    fn every_order_of_small_parts_is_no_better() {
        let mut state = 5u64;
        let mut next = |k: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % k
        };
        let (mut orders, mut gained) = (0, 0);
        for round in 0..400 {
            let part = random(3 + round % 6, &mut next);
            let mut least = Bytes::MAX;
            orders += brute(&mut Walk::new(&part), 0, &mut least);
            let given: Vec<u32> = (0..part.spots.len() as u32).collect();
            for thorough in [false, true] {
                let found = solve(&part, 1 << 20, thorough, round % 2 == 0);
                assert_eq!((found.peak, found.bound), (least, least), "round {round}: {part:?}");
                assert_eq!(part.peak(&found.order), least);
            }
            gained += u32::from(least < part.peak(&given));
            // The exact search alone, in both directions, on both sides of the answer.
            for side in [part.clone(), part.mirrored()] {
                let mut dive = Dive::new(&side, u64::MAX);
                assert!(matches!(dive.within(least), Answer::Order(o) if side.peak(&o) == least));
                assert_eq!(dive.within(least - 1), Answer::None);
            }
            // Hardly any effort: still an order, never worse.
            let hurried = solve(&part, 8, false, true);
            assert!(hurried.peak <= part.peak(&given) && hurried.bound <= least);
            assert_eq!(part.peak(&hurried.order), hurried.peak);
        }
        assert!(orders > 10_000 && gained > 50, "{orders} orders, {gained} gained");
    }
}
