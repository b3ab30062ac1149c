//! `auto` and `exact`: heuristics, then search, with the best plan and the best bound known at every moment.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::eject;
use super::indexed;
use super::instance::Instance;
use super::options::{Options, Progress};
use super::order;
use super::schedule::{search, searchable};
use super::stream;
use super::valley::{self, ByRank, ByStart, Picker};
use super::window::{self, Index, Repack};
use super::Strategy;
use crate::error::Error;
use crate::planner::bound::lower_bound;
use crate::planner::conflict::Conflicts;
use crate::planner::greedy::Rule;
use crate::planner::plan::{Plan, Stats};
use crate::planner::problem::Problem;
use crate::units::{Align, Bytes};

/// The best plan so far and what is known about better ones.
pub(super) struct Best {
    /// In bytes, one per buffer of the instance.
    offsets: Vec<Bytes>,
    pub arena: Bytes,
    pub bound: Bytes,
    strategy: Strategy,
    /// Good enough not to search: the bound rounded up to the plan's alignment, or the capacity asked about.
    pub goal: Bytes,
    /// Good enough to end the heuristics: the bound itself where they cost next to nothing, else the goal.
    ideal: Bytes,
    pub stats: Stats,
    /// Elementary steps outside search: queries of the skyline, pairs and neighbours looked at.
    steps: u64,
}

impl Best {
    pub fn offer(&mut self, arena: Bytes, strategy: Strategy, offsets: impl FnOnce() -> Vec<Bytes>) {
        // An arena of 2^64 - 1 bytes is as large as the mark for none.
        if arena < self.arena || self.offsets.is_empty() {
            self.arena = arena;
            self.offsets = offsets();
            self.strategy = strategy;
            self.stats.nodes_to_best = self.stats.nodes;
        }
    }

    fn within(&self, limit: Bytes) -> bool {
        self.arena <= limit && (self.arena < Bytes::MAX || !self.offsets.is_empty())
    }

    pub fn done(&self) -> bool {
        self.within(self.goal)
    }

    fn ideal(&self) -> bool {
        self.within(self.ideal)
    }
}

/// Plans a problem without aliases.
pub(super) fn solve(
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Plan, Error> {
    solve_counted(problem, options, progress).map(|(plan, _)| plan)
}

/// The same, with the elementary steps spent outside search.
pub(super) fn solve_counted(
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Plan, u64), Error> {
    let bound = lower_bound(problem)?.bytes;
    let align = problem.align();
    let instance = Instance::new(problem);
    let rounded = align.round_up(bound).unwrap_or(bound);
    let goal = options.capacity.filter(|&c| c >= bound).unwrap_or(rounded);
    let cheap = options.capacity.is_none() && instance.len() <= CHEAP;
    let mut best = Best {
        offsets: Vec::new(),
        arena: Bytes::MAX,
        bound,
        strategy: Strategy::Auto,
        goal,
        ideal: if cheap { bound } else { goal },
        stats: Stats::default(),
        steps: 0,
    };
    let mut compared = false;
    let totals = instance.totals().ok_or(Error::overflow("the sizes alive at one step do not fit 64 bits"))?;
    // With gaps in lifetimes the hulls are planned, which is valid and a start.
    let skyline = options.rules.heuristics && instance.fixed.is_empty();
    // Past that, rounding up could wrap; nothing real is as large.
    let sane = |best: &Best| best.arena < 1 << 62;
    if skyline {
        let large = !searchable(&instance);
        // By area is the one that most often meets the bound at once, but on problems that take windows it is a worse start.
        let first: &[usize] = if large { &[0, BY_TIME] } else { &[2, 0, BY_TIME, 3, 4, 5] };
        let orders = valley_orders(&instance, &totals, first, &mut best);
        // Repacking where one of the first plans sticks out costs less than the other orders do.
        if large && !best.done() && orders && sane(&best) {
            windows(&instance, align, options, WINDOW_NODES / 2, &mut best, progress);
        }
        if large && !best.done() {
            valley_orders(&instance, &totals, &[2, 3, 4, 5], &mut best);
        }
    }
    if !best.ideal() {
        compared = greedy(problem, &instance, &mut best)?;
    }
    let sane = sane(&best);
    if sane && !best.done() && options.rules.heuristics && instance.len() > WINDOWS_FROM {
        windows(&instance, align, options, WINDOW_NODES, &mut best, progress);
    }
    if sane && !best.done() {
        search(&instance, &totals, align, options, &mut best, progress);
    }
    let mut offsets = alloc::vec![0; problem.len()];
    for (k, &i) in instance.source.iter().enumerate() {
        offsets[i as usize] = best.offsets[k];
    }
    let arena_bytes = if instance.len() == 0 { 0 } else { best.arena };
    let plan = Plan {
        offsets,
        arena_bytes,
        lower_bound: best.bound,
        optimal: Plan::meets(arena_bytes, best.bound, align),
        strategy: best.strategy,
        align,
        compared,
        stats: best.stats,
    };
    Ok((plan, best.steps))
}

/// Buffers up to which all heuristics are tried until the bound is met to the byte, so that `auto` is never above a greedy
/// rule by the padding of one buffer either.
const CHEAP: usize = 4096;

/// The number of the order of time among those of the skyline heuristic, which has no worst case.
const BY_TIME: usize = 1;
const _: () = assert!(order::VALLEY.len() == 5, "all orders are numbered in `solve`");

/// Tier 0: the skyline heuristic in some of its orders, by number ([`order::VALLEY`], that of time among them as the
/// second). False if none of them made a plan.
fn valley_orders(instance: &Instance, totals: &[u64], orders: &[usize], best: &mut Best) -> bool {
    let (n, sections) = (instance.len(), instance.sections());
    if n == 0 {
        return false;
    }
    let limit = |best: &Best| if best.arena == Bytes::MAX { u64::MAX } else { best.arena.div_ceil(instance.unit) };
    let peaks = order::peaks(instance, totals);
    // Shared by the orders: c n log n, and for small problems what takes some hundred milliseconds at most.
    let mut steps = (8 * n as u64 * u64::from(n.ilog2() + 1)).max(60_000_000);
    for &k in orders {
        let found = if k == BY_TIME {
            let mut by_start: Vec<u32> = (0..n as u32).collect();
            by_start.sort_unstable_by_key(|&i| {
                let h = instance.hull[i as usize];
                (h.lo, core::cmp::Reverse((instance.raw[i as usize], h.up)), instance.source[i as usize])
            });
            let mut picker = ByStart::new(by_start, &instance.hull, sections);
            let found = valley::run(instance, &instance.hull, &mut picker, limit(best), u64::MAX);
            best.steps += picker.steps();
            found
        } else {
            let sorted = order::sorted(instance, &order::VALLEY[k.saturating_sub(1)], &peaks);
            let mut picker = ByRank::new(sorted, &instance.hull, sections);
            let found = valley::run(instance, &instance.hull, &mut picker, limit(best), steps);
            best.steps += picker.steps();
            steps = steps.saturating_sub(picker.steps());
            found
        };
        if let Some(offsets) = found {
            if let Some(arena) = instance.arena(&offsets) {
                best.offer(arena, Strategy::Valley, || offsets.iter().map(|o| o * instance.unit).collect());
            }
        }
        if best.ideal() {
            break;
        }
    }
    !best.offsets.is_empty()
}

/// The greedy rules: those that look at pairs where the pairs can be listed, first fit in any case.
fn greedy(problem: &Problem, instance: &Instance, best: &mut Best) -> Result<bool, Error> {
    let pairs = Conflicts::count(problem);
    let listed = pairs <= indexed::LISTED_PAIRS;
    let affordable = listed || pairs <= 4 * instance.len() as u64 * u64::from(instance.len().max(1).ilog2() + 1);
    let conflicts = listed.then(|| Conflicts::of(problem));
    for strategy in [Strategy::GreedyBySize, Strategy::FirstFit, Strategy::TflmGreedy] {
        let rule = strategy.rule().expect("a greedy strategy");
        let placed = if affordable {
            best.steps += pairs;
            Some(indexed::place(problem, rule, conflicts.as_ref())?)
        } else if rule == Rule::FirstFit {
            stream::first_fit(problem)
        } else {
            None
        };
        let Some((offsets, arena)) = placed else { continue };
        best.offer(arena, strategy, || instance.source.iter().map(|&i| offsets[i as usize]).collect());
        if best.ideal() {
            break;
        }
    }
    if best.offsets.is_empty() && instance.len() > 0 {
        let (offsets, arena) = indexed::place(problem, Rule::FirstFit, None)?;
        best.offer(arena, Strategy::FirstFit, || instance.source.iter().map(|&i| offsets[i as usize]).collect());
    }
    Ok(affordable)
}

/// Buffers above which windows are tried before a search of the whole.
const WINDOWS_FROM: usize = 700;
/// Nodes spent on windows at most, whatever the effort: no budget may be a share of it, or more effort could be worse. A
/// window is small whatever the problem, so `auto`'s limit by the number of buffers does not apply.
const WINDOW_NODES: u64 = 300_000;
/// Neighbours that ejection may look at: some ten thousand moves where lifetimes are short.
const NEIGHBOURS: u64 = 15_000_000;

/// Tier 2: repacking what ends above a target, which is the bound at first, then half way from there to the best plan.
fn windows(
    instance: &Instance,
    align: Align,
    options: &Options,
    most: u64,
    best: &mut Best,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) {
    let step = align.bytes().max(instance.unit);
    let most = if searchable(instance) { most.min(30 * instance.len() as u64) } else { most };
    let budget = most.min(options.effort.unwrap_or(u64::MAX));
    let index = Index::of(instance);
    let mut offsets: Vec<u64> = best.offsets.iter().map(|o| o / instance.unit).collect();
    let mut low = best.goal;
    let mut neighbours = NEIGHBOURS;
    // Each step halves what is left; past a thousandth of a percent it is not worth the time.
    while best.arena > best.goal && best.arena - low >= step.max(best.arena >> 17) {
        let target = if low == best.goal { low } else { low + (best.arena - low) / 2 / step * step };
        let (spent, arena, lower) = (best.stats.nodes, best.arena, best.bound);
        let mut nodes = spent;
        let mut moved = offsets.clone();
        let before = neighbours;
        let ejected = eject::eject(instance, &index, target, &mut moved, &mut neighbours);
        best.steps += before - neighbours;
        if ejected {
            let arena = instance.arena(&moved).expect("within the target");
            offsets = moved;
            best.offer(arena, Strategy::Windows, || offsets.iter().map(|o| o * instance.unit).collect());
            continue;
        }
        let end =
            window::repack(instance, &index, options.rules, target, &mut offsets, (&mut nodes, budget), &mut |nodes| {
                progress(&Progress { nodes, arena_bytes: arena, lower_bound: lower }).is_break()
            });
        best.stats.nodes = nodes;
        if let Some(arena) = instance.arena(&offsets) {
            best.offer(arena, Strategy::Windows, || offsets.iter().map(|o| o * instance.unit).collect());
        }
        match end {
            Repack::Met => {}
            Repack::Stuck => low = if low == best.goal { low + 1 } else { target },
            Repack::Stopped => return,
        }
    }
}
