//! Repacking around what sticks out: for problems too large to search as a whole.
//!
//! Given a plan and a target, every buffer that ends above the target is taken with its neighbourhood in time; what lies
//! inside that window may move, what reaches across its edges stays as a fixed block, and the exact search asks whether
//! the window can be packed below the target. Nothing outside changes, so a plan only gets better.
//!
//! Large neighbourhood search: Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing
//! Problems" (1998).

use alloc::vec::Vec;

use super::instance::{Instance, Range};
use super::options::Rules;
use super::order;
use super::search::{Cell, Outcome, Search};
use crate::units::Bytes;

/// How a round of repacking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repack {
    /// No buffer ends above the target.
    Met,
    /// Some window could not be packed within its budget.
    Stuck,
    /// The caller's budget is spent or the caller asked to stop.
    Stopped,
}

/// Movable buffers in a window, from the first try to the last.
const SIZES: [usize; 3] = [40, 100, 240];
/// Search nodes for each order tried on a window, and the orders.
const NODES: u64 = 600;
const ORDERS: [usize; 3] = [0, 1, 2];
/// Sections a window may span: longer ones cost more than they are worth.
const WIDEST: u32 = 384;

/// Buffers by first section, with the latest end below each node of a tree, to find those that touch a window.
pub(crate) struct Index {
    by_start: Vec<u32>,
    first: Vec<u32>,
    latest: Vec<u32>,
    leaves: usize,
}

impl Index {
    pub fn of(instance: &Instance) -> Index {
        let n = instance.len();
        let mut first = alloc::vec![0u32; instance.sections() + 1];
        for h in &instance.hull {
            first[h.lo as usize + 1] += 1;
        }
        for s in 0..instance.sections() {
            first[s + 1] += first[s];
        }
        let mut next = first.clone();
        let mut by_start = alloc::vec![0u32; n];
        for (i, h) in instance.hull.iter().enumerate() {
            by_start[next[h.lo as usize] as usize] = i as u32;
            next[h.lo as usize] += 1;
        }
        let leaves = n.next_power_of_two();
        let mut latest = alloc::vec![0u32; 2 * leaves];
        for (k, &i) in by_start.iter().enumerate() {
            latest[leaves + k] = instance.hull[i as usize].up;
        }
        for k in (1..leaves).rev() {
            latest[k] = latest[2 * k].max(latest[2 * k + 1]);
        }
        Index { by_start, first, latest, leaves }
    }

    /// Buffers that start before section `to` and end after section `from`.
    pub fn touching(&self, from: u32, to: u32, out: &mut Vec<u32>) {
        out.clear();
        let end = self.first[to as usize] as usize;
        let mut stack = alloc::vec![(1usize, 0usize, self.leaves)];
        while let Some((k, lo, up)) = stack.pop() {
            if lo >= end || self.latest[k] <= from {
                continue;
            }
            if up - lo == 1 {
                out.push(self.by_start[lo]);
                continue;
            }
            let mid = (lo + up) / 2;
            stack.push((2 * k + 1, mid, up));
            stack.push((2 * k, lo, mid));
        }
    }
}

/// Tries to bring every buffer of the plan (offsets in units) below `target` bytes, spending at most `budget` nodes;
/// `nodes` counts them. `stop` as for [`Search::run`].
pub(super) fn repack(
    instance: &Instance,
    index: &Index,
    rules: Rules,
    target: Bytes,
    offsets: &mut [u64],
    (nodes, budget): (&mut u64, u64),
    stop: &mut dyn FnMut(u64) -> bool,
) -> Repack {
    let above = |i: u32, at: u64| at.saturating_mul(instance.unit).saturating_add(instance.raw[i as usize]) > target;
    let mut out: Vec<u32> = (0..instance.len() as u32).filter(|&i| above(i, offsets[i as usize])).collect();
    out.sort_unstable_by_key(|&i| (instance.hull[i as usize], i));
    for &i in &out {
        if !above(i, offsets[i as usize]) {
            continue;
        }
        let mut met = false;
        for size in SIZES {
            if *nodes >= budget || stop(*nodes) {
                return Repack::Stopped;
            }
            let before = *nodes;
            met = window(instance, index, rules, target, offsets, i, size, nodes);
            // Building a window costs about as much as some nodes do.
            *nodes = (*nodes).max(before + 20);
            if met {
                break;
            }
        }
        if !met {
            return Repack::Stuck;
        }
    }
    Repack::Met
}

/// Repacks the neighbourhood of buffer `i`, widened until it holds about `size` movable buffers.
#[allow(clippy::too_many_arguments)]
fn window(
    instance: &Instance,
    index: &Index,
    rules: Rules,
    target: Bytes,
    offsets: &mut [u64],
    i: u32,
    size: usize,
    nodes: &mut u64,
) -> bool {
    let Range { lo, up } = instance.hull[i as usize];
    let sections = instance.sections() as u32;
    if up - lo > WIDEST {
        return false;
    }
    let mut near: Vec<u32> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let (mut from, mut to) = (lo, up);
    let mut margin = (up - lo).div_ceil(2).max(1);
    loop {
        from = from.saturating_sub(margin);
        to = (to + margin).min(sections);
        index.touching(from, to, &mut near);
        let inside = |i: &u32| {
            let h = instance.hull[*i as usize];
            h.lo >= from && h.up <= to && instance.fixed_of(*i as usize).is_none()
        };
        free.clear();
        free.extend(near.iter().copied().filter(inside));
        if free.len() >= size || (from == 0 && to == sections) || 2 * (to - from) > WIDEST {
            break;
        }
        margin = (to - from).div_ceil(4).max(1);
    }
    if free.len() > 2 * size && size != SIZES[0] || free.len() > 1000 {
        return false;
    }
    free.sort_unstable();
    // What reaches across the edges, cut off at the target; those of one range that touch are one block.
    let ceiling = target.div_ceil(instance.unit);
    let mut blocks: Vec<(Range, u64, u64)> = Vec::new();
    for &k in near.iter().filter(|k| free.binary_search(k).is_err()) {
        let at = offsets[k as usize];
        if at >= ceiling {
            continue;
        }
        let size = instance.size[k as usize].min(target / instance.unit - at.min(target / instance.unit));
        for r in instance.ranges(k as usize) {
            if size > 0 && r.lo < to && r.up > from {
                blocks.push((Range { lo: r.lo.max(from), up: r.up.min(to) }, at, size));
            }
        }
    }
    blocks.sort_unstable();
    blocks.dedup_by(|next, last| {
        let joins = next.0 == last.0 && next.1 <= last.1 + last.2;
        if joins {
            last.2 = last.2.max(next.1 + next.2 - last.1);
        }
        joins
    });
    if free.len() + blocks.len() > 1000 {
        return false;
    }
    let part = instance.window(&free, &blocks, from, to);
    let found = if ceiling < i16::LIMIT {
        solve::<i16>(&part, rules, target, nodes)
    } else if ceiling < i32::LIMIT {
        solve::<i32>(&part, rules, target, nodes)
    } else if ceiling < i64::LIMIT {
        solve::<i64>(&part, rules, target, nodes)
    } else {
        None
    };
    let Some(found) = found else { return false };
    for (k, &source) in part.source.iter().enumerate() {
        if source != u32::MAX {
            offsets[source as usize] = found[k];
        }
    }
    true
}

fn solve<V: Cell>(part: &Instance, rules: Rules, target: Bytes, nodes: &mut u64) -> Option<Vec<u64>> {
    let totals = part.totals()?;
    let mut search = Search::<V>::new(part, &totals, rules);
    for k in ORDERS {
        let outcome = search.run(&order::SEARCH[k], target, NODES.max(4 * part.len() as u64), &mut |_| false);
        *nodes += search.nodes();
        match outcome {
            Outcome::Found => return Some(search.offsets()),
            Outcome::Infeasible => return None,
            Outcome::Budget | Outcome::Stopped => {}
        }
    }
    None
}
