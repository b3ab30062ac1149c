//! Bounded search for large parts: the most promising sets of nodes of each size are carried on.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::part::Part;
use super::walk::Walk;
use crate::units::Bytes;

/// The best order found whose peak is below `below`, carrying `width` sets of each size; and the nodes looked at.
///
/// Among equals the one nearest to the given order goes first with `near`; without, another.
/// Below `floor` all peaks are equally good: there is no order with a lower one.
pub(crate) fn beam(
    part: &Part,
    width: usize,
    floor: Bytes,
    mut below: Bytes,
    effort: u64,
    near: bool,
) -> (Option<(Bytes, Vec<u32>)>, u64) {
    let mut spent = 0;
    let mut best: Option<(Bytes, Vec<u32>)> = None;
    // Sets by size. Settling takes several nodes at once, so a set may skip sizes.
    let mut layers: BTreeMap<usize, Vec<Walk<'_>>> = BTreeMap::new();
    let mut first = Walk::new(part);
    spent += first.settle(floor);
    layers.insert(first.path.len(), alloc::vec![first]);
    while let Some((_, mut layer)) = layers.pop_first() {
        layer.sort_by(|a, b| {
            let equal = || if near { a.path.cmp(&b.path) } else { a.done.cmp(&b.done) };
            rank(a, floor).cmp(&rank(b, floor)).then_with(equal)
        });
        let mut known = BTreeSet::new();
        layer.retain(|w| known.insert(w.done.clone()));
        layer.truncate(width);
        // Each with the set it starts from and the node, in the order in which equals are taken.
        let mut moves: Vec<((Bytes, Bytes), [usize; 2])> = Vec::new();
        for (i, walk) in layer.iter().enumerate() {
            if walk.complete() {
                if walk.peak < below || best.is_none() {
                    below = below.min(walk.peak);
                    best = Some((walk.peak, walk.path.clone()));
                }
                continue;
            }
            for &v in &walk.ready {
                let (during, after) = walk.look(v);
                let peak = walk.peak.max(during);
                if peak < below {
                    let step = if near { [i, v as usize] } else { [v as usize, i] };
                    moves.push(((peak.max(floor), after), step));
                }
            }
            spent += walk.ready.len() as u64;
        }
        if spent > effort {
            break;
        }
        moves.sort_unstable();
        let mut seen = BTreeSet::new();
        let mut taken = 0;
        for (_, step) in moves {
            let [i, v] = if near { step } else { [step[1], step[0]] };
            let v = v as u32;
            let mut set = layer[i].done.clone();
            set[v as usize / 64] |= 1 << (v % 64);
            if !seen.insert(set) {
                continue;
            }
            let mut walk = layer[i].clone();
            walk.run(v);
            let limit = walk.peak.max(floor);
            spent += walk.settle(limit);
            layers.entry(walk.path.len()).or_default().push(walk);
            taken += 1;
            if taken == width {
                break;
            }
        }
    }
    (best.filter(|(peak, _)| *peak <= below), spent)
}

fn rank(walk: &Walk<'_>, floor: Bytes) -> (Bytes, Bytes, Bytes) {
    (walk.peak.max(floor), walk.live, walk.peak)
}
