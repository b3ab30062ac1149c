//! Execution orders, judged by the arena that results.
//!
//! Packing reaches the lower bound of most graphs, and the bound itself depends on the order in which nodes run: a node
//! that frees more than it makes wants to run early. [`order`] looks for the order of least peak among those that
//! [`Rules`] and the tables allow, then plans what it found: an order is taken only if the arena becomes smaller, and
//! smaller or equal under every other planner the caller names.
//!
//! Finding the least peak is NP-complete already for graphs with unit sizes (R. Sethi, "Complete register allocation
//! problems", SIAM J. Comput. 4, 1975). Networks however fall apart at nodes that everything passes through, and between
//! two of those dynamic programming over cuts is affordable (Liberis and Lane, "Neural networks on microcontrollers:
//! saving memory at inference via operator reordering", 2019; Ahn et al., "Ordering chaos: memory-aware scheduling of
//! irregularly wired neural networks for edge devices", MLSys 2020). Here that is an exact depth-first search over
//! downward closed sets, which proves its result, behind a beam for stretches that are too wide for it.

mod beam;
mod build;
mod dive;
mod judge;
mod part;
mod permuted;
mod rules;
mod solve;
mod split;
mod walk;

use alloc::vec::Vec;

use super::liveness;
use super::lower::lower;
use super::tables::Tables;
use crate::error::Error;
use crate::planner;
use crate::units::{round_up, Align, Bytes};

pub use judge::{Judge, Verdict};
pub use permuted::Permuted;
pub use rules::{Held, Rules, State, Touch, Why};

/// Nodes looked at unless asked otherwise: of the order of a second.
pub const EFFORT: u64 = 8_000_000;

/// How to look for an order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Lifetimes and planner by which an order is better.
    pub judge: Judge,
    /// Others by which it must not be worse.
    pub others: &'a [Judge],
    /// Nodes to look at; `None` is [`EFFORT`].
    pub effort: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Per subgraph its nodes in the order to run: the given order where nothing better was found.
    pub orders: Vec<Vec<u32>>,
    /// Whether any differs from the given order.
    pub changed: bool,
    /// The given order, by the judge and then by the others; the arena is the largest of any entry's.
    pub before: Vec<Verdict>,
    /// The orders found, likewise.
    pub after: Vec<Verdict>,
    /// No allowed order has a smaller arena, as far as is proven; 0 where nothing is. In multiples of the alignment.
    pub bound: Bytes,
    /// Whether the arena found equals that bound once rounded up to the alignment.
    pub proven: bool,
    /// What was held in place by something other than data.
    pub held: Vec<Held>,
    /// Orders whose peak was lower but whose arena, by the judge or another, was not.
    pub refused: u32,
    /// Nodes looked at.
    pub spent: u64,
}

/// Looks for better orders of all subgraphs that `entries` run, each entry on its own as one problem.
///
/// Errors as [`lower`] and [`planner::plan`]; `Argument` also for rules about nodes that do not exist and pairs against
/// the given order.
pub fn order<T: Tables>(
    graphs: &[T],
    entries: &[usize],
    rules: &Rules,
    options: &Options<'_>,
) -> Result<Outcome, Error> {
    let mut out =
        Outcome { orders: graphs.iter().map(|g| (0..g.node_count() as u32).collect()).collect(), ..Outcome::default() };
    let judges: Vec<Judge> = core::iter::once(options.judge).chain(options.others.iter().copied()).collect();
    let mut now = judge::all(graphs, &out.orders, entries, &judges)?;
    out.before = judge::largest(&now, judges.len());
    // Callees first: a caller's nodes weigh what the orders inside them take.
    let mut todo: Vec<(usize, usize)> = Vec::new();
    for &entry in entries {
        for k in build::reachable(graphs, entry) {
            if !todo.iter().any(|t| t.0 == k) {
                todo.push((k, entry));
            }
        }
    }
    let effort = options.effort.unwrap_or(EFFORT);
    let mut bounds = alloc::vec![0; graphs.len()];
    for (k, entry) in todo {
        let precedence = rules::precedence(&graphs[k], k as u32, rules)?;
        out.held.extend_from_slice(&precedence.held);
        if options.judge.lifetimes.keep_all {
            continue; // nothing is ever released, so no order is better
        }
        let present = permuted(graphs, &out.orders);
        let lowered = lower(&present, entry, &options.judge.lifetimes, &[])?;
        let built = build::build(graphs, k, entry, &lowered, &options.judge.lifetimes, &precedence)?;
        let given: Vec<u32> = (0..built.part.spots.len() as u32).collect();
        let peak = built.part.peak(&given);
        let mut tried: Vec<Vec<u32>> = Vec::new();
        let (mut spared, mut accepted, mut vetoed) = (true, false, false);
        for (thorough, near) in [(false, true), (true, true), (false, false), (true, false)] {
            if thorough && !spared {
                continue;
            }
            // Where a lower peak came to nothing another order of that peak may pack better.
            if !near && (accepted || !vetoed) {
                break;
            }
            let found = solve::solve(&built.part, effort.saturating_sub(out.spent) / 2, thorough, near);
            spared = found.spared;
            out.spent += found.spent;
            bounds[k] = bounds[k].max(found.bound);
            let nodes = built.nodes(&found.order);
            if !tried.contains(&nodes) && found.order != given {
                tried.push(nodes.clone());
                let was = core::mem::replace(&mut out.orders[k], nodes);
                let then = judge::all(graphs, &out.orders, entries, &judges)?;
                if judge::better(&then, &now, judges.len()) {
                    now = then;
                    (out.changed, accepted) = (true, true);
                } else {
                    out.refused += u32::from(found.peak < peak);
                    vetoed |= found.peak < peak;
                    out.orders[k] = was;
                }
            }
            // With the arena at its least for all orders nothing is left to gain.
            let arena = now.iter().step_by(judges.len()).map(|v| v.arena_bytes).max().unwrap_or(0);
            if entries.len() == 1 && k == entry && proven(arena, found.bound, options.judge.lifetimes.align)? {
                break;
            }
        }
        if let Some(least) = built.least(&graphs[k], &bounds) {
            let found = solve::solve(&least, effort.saturating_sub(out.spent) / 2, false, true);
            out.spent += found.spent;
            bounds[k] = found.bound;
        }
    }
    out.after = judge::largest(&now, judges.len());
    // What an engine declares beyond TFLite's sharing may apply in one order and not in another.
    if let ([entry], false) = (entries, graphs.iter().any(super::views::declared)) {
        out.bound = bounds[*entry];
        out.proven = proven(out.after[0].arena_bytes, out.bound, options.judge.lifetimes.align)?;
    }
    Ok(out)
}

fn proven(arena: Bytes, bound: Bytes, align: Align) -> Result<bool, Error> {
    Ok(round_up(arena, align)? <= bound)
}

/// The graphs in their orders.
pub fn permuted<'a, T: Tables>(graphs: &'a [T], orders: &'a [Vec<u32>]) -> Vec<Permuted<'a, T>> {
    graphs.iter().zip(orders).map(|(graph, order)| Permuted { graph, order }).collect()
}

impl Judge {
    /// Lifetimes and planner options together.
    pub const fn new(lifetimes: liveness::Options, plan: planner::Options) -> Judge {
        Judge { lifetimes, plan }
    }
}
