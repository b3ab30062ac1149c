//! Strategies: who decides the order of placement and how long to search.

mod indexed;

use super::bound::lower_bound;
use super::conflict::Conflicts;
use super::greedy::Rule;
use super::plan::{Plan, Stats};
use super::problem::Problem;
use crate::error::Error;

/// How a problem is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Order of first use, lowest gap.
    FirstFit,
    /// Exactly what TensorFlow Lite does.
    GreedyBySize,
    /// What TensorFlow Lite Micro does.
    TflmGreedy,
    /// A portfolio, stopping as soon as the bound is met.
    #[default]
    Auto,
}

impl Strategy {
    /// The name used by the command line, the C API and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::FirstFit => "first-fit",
            Strategy::GreedyBySize => "greedy-by-size",
            Strategy::TflmGreedy => "tflm-greedy",
            Strategy::Auto => "auto",
        }
    }

    /// All strategies, in the order of their numbers in the C API.
    pub const ALL: [Strategy; 4] = [Strategy::Auto, Strategy::FirstFit, Strategy::GreedyBySize, Strategy::TflmGreedy];

    /// The strategy of that name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// How to plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which strategy.
    pub strategy: Strategy,
}

/// Conflicting pairs up to which `auto` compares with the greedy rules (8 bytes of memory a pair).
const AFFORDABLE_PAIRS: u64 = 16_000_000;

/// Places every buffer of `problem`. Alias classes are placed as one block.
///
/// `Argument` where two fixed offsets collide (both named), `Overflow` where sizes do not fit 64 bits.
pub fn plan(problem: &Problem, options: &Options) -> Result<Plan, Error> {
    let (merged, map) = problem.merge_aliases()?;
    let mut plan = plan_merged(&merged, options)?;
    if problem.has_aliases() {
        plan.offsets = map.iter().map(|&(root, delta)| plan.offsets[root as usize] + delta).collect();
        for (i, b) in problem.buffers().iter().enumerate() {
            if b.spec.size == 0 {
                plan.offsets[i] = 0;
            }
        }
    }
    debug_assert!(super::check::check(problem, &plan.offsets).is_ok(), "a strategy made an invalid plan");
    Ok(plan)
}

fn plan_merged(problem: &Problem, options: &Options) -> Result<Plan, Error> {
    let bound = lower_bound(problem)?.bytes;
    let align = problem.align();
    let finish = |offsets, arena_bytes, strategy, compared| Plan {
        offsets,
        arena_bytes,
        lower_bound: bound,
        optimal: Plan::meets(arena_bytes, bound, align),
        strategy,
        align,
        compared,
        stats: Stats::default(),
    };
    let rule = match options.strategy {
        Strategy::FirstFit => Some(Rule::FirstFit),
        Strategy::GreedyBySize => Some(Rule::GreedyBySize),
        Strategy::TflmGreedy => Some(Rule::TflmGreedy),
        Strategy::Auto => None,
    };
    if let Some(rule) = rule {
        let (offsets, arena) = indexed::place(problem, rule, None)?;
        return Ok(finish(offsets, arena, options.strategy, false));
    }
    let affordable = Conflicts::count(problem) <= AFFORDABLE_PAIRS;
    let conflicts = affordable.then(|| Conflicts::of(problem));
    let mut best: Option<Plan> = None;
    for (rule, strategy) in [
        (Rule::GreedyBySize, Strategy::GreedyBySize),
        (Rule::FirstFit, Strategy::FirstFit),
        (Rule::TflmGreedy, Strategy::TflmGreedy),
    ] {
        let (offsets, arena) = indexed::place(problem, rule, conflicts.as_ref())?;
        if best.as_ref().is_none_or(|b| arena < b.arena_bytes) {
            best = Some(finish(offsets, arena, strategy, affordable));
        }
        if best.as_ref().is_some_and(|b| b.optimal) || !affordable {
            break;
        }
    }
    Ok(best.expect("the portfolio is not empty"))
}
