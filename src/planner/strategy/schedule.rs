//! Which question the exact search is asked next: with what order, for what arena, for how long.
//!
//! How long a search takes is heavy-tailed: most questions are answered within a few nodes a buffer or not in reasonable
//! time, and which ones is chaotic in order and arena. So there are several streams of questions, each with growing
//! budgets, and the one that has spent least, by its weight, goes on.
//!
//! Restarts: Gomes, Selman, Crato, Kautz, "Heavy-Tailed Phenomena in Satisfiability and Constraint Satisfaction Problems"
//! (2000); their budgets: Luby, Sinclair, Zuckerman, "Optimal Speedup of Las Vegas Algorithms" (1993).

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::anytime::Best;
use super::instance::Instance;
use super::options::{Options, Progress};
use super::order::{self, Order};
use super::search::{Cell, Outcome, Search};
use super::Strategy;
use crate::units::{Align, Bytes};

/// Whether the instance is small enough to be searched as a whole.
pub(super) fn searchable(instance: &Instance) -> bool {
    instance.len() <= Search::<i64>::MOST && instance.sections() <= usize::from(u16::MAX)
}

/// Tier 1: the exact search, in numbers as narrow as the arena allows.
pub(super) fn search(
    instance: &Instance,
    totals: &[u64],
    align: Align,
    options: &Options,
    best: &mut Best,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) {
    if !searchable(instance) {
        return;
    }
    let most = best.arena.div_ceil(instance.unit);
    if most < i16::LIMIT {
        turns::<i16>(instance, totals, align, options, best, progress);
    } else if most < i32::LIMIT {
        turns::<i32>(instance, totals, align, options, best, progress);
    } else if most < i64::LIMIT {
        turns::<i64>(instance, totals, align, options, best, progress);
    }
}

/// The smallest arena above `floor` that offsets in units can make.
fn attainable(instance: &Instance, floor: Bytes) -> Bytes {
    let unit = instance.unit;
    let above = |raw: Bytes| (raw % unit + unit - floor % unit) % unit;
    let least = instance.raw.iter().map(|&r| if above(r) == 0 { unit } else { above(r) }).min().unwrap_or(0);
    floor.saturating_add(least)
}

/// A sequence of questions.
struct Stream {
    /// Whether it asks for the bound itself, else for something between bound and best plan.
    low: bool,
    /// Whether it goes through the fixed orders, else through ever new ones.
    fixed: bool,
    weight: u64,
    asked: u32,
    spent: u64,
}

impl Stream {
    const fn new(low: bool, fixed: bool, weight: u64) -> Stream {
        Stream { low, fixed, weight, asked: 0, spent: 0 }
    }

    /// The next order, and its budget in nodes for each buffer.
    fn next(&mut self) -> (Order, u64) {
        let k = self.asked;
        self.asked += 1;
        if !self.fixed {
            return (Order::of_seed(k), 6 * luby(k + 1));
        }
        let (round, order) = (k / order::SEARCH.len() as u32, order::SEARCH[k as usize % order::SEARCH.len()]);
        // The same question again is worth it with more nodes only; the failed states of before are remembered.
        let budget = if self.low { (0..=round).fold(8, |b, _| b + b * 2 / 5) } else { 6 * luby(round + 1) };
        (order, budget)
    }
}

/// The sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 .., from `i` = 1.
fn luby(mut i: u32) -> u64 {
    loop {
        let whole = (u64::from(i) + 1).next_power_of_two();
        if u64::from(i) + 1 == whole {
            return whole / 2;
        }
        i -= (whole / 2 - 1) as u32;
    }
}

fn turns<V: Cell>(
    instance: &Instance,
    totals: &[u64],
    align: Align,
    options: &Options,
    best: &mut Best,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) {
    let n = instance.len() as u64;
    let step = align.bytes().max(instance.unit);
    let mut search = Search::<V>::new(instance, totals, options.rules);
    let effort = options.budget(instance.len());
    let mut streams: Vec<Stream> = Vec::from([Stream::new(true, true, 1), Stream::new(true, false, 1)]);
    if options.capacity.is_none() {
        streams.extend([Stream::new(false, true, 4), Stream::new(false, false, 4)]);
    }
    let mut tries = 0u32;
    loop {
        let stream = streams.iter_mut().min_by_key(|s| s.spent / s.weight).expect("some");
        let (order, budget) = match options.rules.order {
            Some(k) if usize::from(k) < order::SEARCH.len() => (order::SEARCH[usize::from(k)], u64::MAX),
            Some(k) => (Order::of_seed(u32::from(k)), u64::MAX),
            None => stream.next(),
        };
        let bottom = best.bound.next_multiple_of(step);
        let target = match options.capacity {
            Some(capacity) => capacity.max(best.bound),
            None if stream.low => bottom,
            None => {
                let top = (best.arena - 1) / step * step;
                let room = top.saturating_sub(bottom);
                // Targets spread evenly over the upper half of what is open (multiples of the golden ratio).
                tries = tries.wrapping_add(0x9e37_79b9);
                top - ((u128::from(room / 2) * u128::from(tries)) >> 32) as u64 / step * step
            }
        };
        let spent = best.stats.nodes;
        let (arena, lower) = (best.arena, best.bound);
        let budget = budget.saturating_mul(n).min(effort.saturating_sub(spent));
        let outcome = search.run(&order, target, budget, &mut |nodes| {
            progress(&Progress { nodes: spent + nodes, arena_bytes: arena, lower_bound: lower }).is_break()
        });
        // Setting up a question costs about as much as some nodes do.
        stream.spent += search.nodes() + 8;
        best.stats.nodes += search.nodes();
        match outcome {
            Outcome::Found => {
                let offsets = search.offsets();
                let arena = instance.arena(&offsets).expect("within the target");
                best.offer(arena, Strategy::Search, || offsets.iter().map(|o| o * instance.unit).collect());
            }
            Outcome::Infeasible => {
                best.bound = attainable(instance, target);
                best.stats.nodes_to_proof = best.stats.nodes;
                best.goal = best.goal.max(best.bound.next_multiple_of(step));
                if options.capacity.is_some() {
                    return;
                }
            }
            Outcome::Stopped => return,
            Outcome::Budget if best.stats.nodes >= effort => return,
            Outcome::Budget => {}
        }
        if best.done() {
            return;
        }
    }
}
