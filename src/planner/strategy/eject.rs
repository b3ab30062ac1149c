//! Moving what sticks out into gaps below, and out of the gaps what is in the way.
//!
//! A buffer that ends above the target goes to the tightest gap below it. Where there is none it takes the place of smaller
//! buffers, chosen so that as little as possible of bytes times time has to move, and those are placed the same way. Every
//! chain ends, since what is ejected is always smaller than what ejected it.
//!
//! Ejection chains: Glover, "Ejection chains, reference structures and alternating path methods" (1996).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;

use super::instance::Instance;
use super::window::Index;
use crate::units::Bytes;

/// Where a buffer is not placed.
const NOWHERE: u64 = u64::MAX;

/// Moves buffers of the plan (offsets in units) so that they end within `target` bytes, looking at no more than `effort`
/// neighbours in all. False if some still does not; the plan is valid only after true.
pub(super) fn eject(instance: &Instance, index: &Index, target: Bytes, offsets: &mut [u64], effort: &mut u64) -> bool {
    let weight = |i: u32| u128::from(instance.size[i as usize]) * u128::from(instance.life[i as usize]);
    let mut queue: BinaryHeap<(u128, u32)> = BinaryHeap::new();
    for i in 0..instance.len() as u32 {
        let end = offsets[i as usize].saturating_mul(instance.unit).saturating_add(instance.raw[i as usize]);
        if end > target {
            offsets[i as usize] = NOWHERE;
            queue.push((weight(i), i));
        }
    }
    let mut near: Vec<u32> = Vec::new();
    let mut blocks: Vec<(u64, u64, u32)> = Vec::new();
    while let Some((mine, i)) = queue.pop() {
        let k = i as usize;
        let hull = instance.hull[k];
        let Some(cap) = instance.cap(k, target) else { return false };
        if instance.fixed_of(k).is_some() {
            return false;
        }
        index.touching(hull.lo, hull.up, &mut near);
        let cost = near.len() as u64 + 8;
        if *effort < cost {
            return false;
        }
        *effort -= cost;
        blocks.clear();
        for &o in &near {
            let at = offsets[o as usize];
            if at != NOWHERE && (instance.starts.is_empty() || meet(instance, k, o as usize)) {
                blocks.push((at, at + instance.size[o as usize], o));
            }
        }
        blocks.sort_unstable();
        let (size, align) = (instance.size[k], instance.align_of(k));
        if let Some(at) = tightest(&blocks, size, align, cap) {
            offsets[k] = at;
            continue;
        }
        let Some(at) = cheapest(instance, &blocks, size, align, cap, mine, &weight) else { return false };
        for &(from, to, o) in &blocks {
            if from < at + size && at < to {
                offsets[o as usize] = NOWHERE;
                queue.push((weight(o), o));
            }
        }
        offsets[k] = at;
    }
    true
}

fn meet(instance: &Instance, a: usize, b: usize) -> bool {
    instance.ranges(a).iter().any(|x| instance.ranges(b).iter().any(|y| x.lo < y.up && y.lo < x.up))
}

/// The start of the smallest gap between `blocks`, ascending by offset, that takes `size` at or below `cap`.
fn tightest(blocks: &[(u64, u64, u32)], size: u64, align: u64, cap: u64) -> Option<u64> {
    let (mut cursor, mut best) = (0u64, None);
    for &(from, to, _) in blocks {
        let at = cursor.next_multiple_of(align);
        if at <= cap && at + size <= from && best.is_none_or(|(gap, _)| from - cursor < gap) {
            best = Some((from - cursor, at));
        }
        cursor = cursor.max(to);
    }
    let at = cursor.next_multiple_of(align);
    if at <= cap && best.is_none() {
        best = Some((0, at));
    }
    best.map(|b| b.1)
}

/// The offset at or below `cap` where the blocks in the way weigh least, all of them less than `mine`.
fn cheapest(
    instance: &Instance,
    blocks: &[(u64, u64, u32)],
    size: u64,
    align: u64,
    cap: u64,
    mine: u128,
    weight: &impl Fn(u32) -> u128,
) -> Option<u64> {
    let mut best: Option<(u128, u64)> = None;
    // Candidates rest on a block, on the base or below the top; `first` is the first block that may still be in the way.
    let mut first = 0;
    let ends = blocks.iter().map(|b| b.1).chain([0, cap / align * align]);
    let mut starts: Vec<u64> = ends.map(|e| e.next_multiple_of(align)).filter(|&at| at <= cap).collect();
    starts.sort_unstable();
    starts.dedup();
    // Blocks overlap each other in bytes where they do not in time, so those that end below a candidate are not all
    // before those that end above it.
    let mut reach: Vec<u64> = Vec::with_capacity(blocks.len());
    let mut most = 0;
    for b in blocks {
        most = most.max(b.1);
        reach.push(most);
    }
    for at in starts {
        while first < blocks.len() && reach[first] <= at {
            first += 1;
        }
        let mut sum = 0u128;
        let movable = blocks[first..].iter().take_while(|b| b.0 < at + size).all(|&(_, to, o)| {
            if to > at {
                sum += weight(o);
                weight(o) < mine && instance.fixed_of(o as usize).is_none() && best.is_none_or(|(least, _)| sum < least)
            } else {
                true
            }
        });
        if movable && best.is_none_or(|(least, _)| sum < least) {
            best = Some((sum, at));
        }
    }
    best.map(|b| b.1)
}
