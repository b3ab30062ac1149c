//! Strategies: who decides the order of placement and how long to search.

mod anytime;
mod eject;
#[cfg(test)]
mod growth;
mod indexed;
mod instance;
mod options;
mod order;
mod schedule;
mod search;
mod sections;
mod stream;
mod valley;
mod window;

use core::ops::ControlFlow;

use super::bound::lower_bound;
use super::greedy::Rule;
use super::plan::{Plan, Stats};
use super::problem::Problem;
use crate::error::Error;

pub use options::{Options, Progress, Rules, AUTO_EFFORT};

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
    /// A portfolio, then bounded search, stopping as soon as the bound is met.
    #[default]
    Auto,
    /// Search until the plan is proven optimal or the effort is spent.
    Exact,
    /// An answer only, see [`Plan::strategy`]: `auto` or `exact` won with the skyline heuristic. Asked for, it is `auto`.
    Valley,
    /// An answer only: won by repacking parts of a large problem. Asked for, it is `auto`.
    Windows,
    /// An answer only: won by search of the whole. Asked for, it is `auto`.
    Search,
}

impl Strategy {
    /// The name used by the command line, the C API and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::FirstFit => "first-fit",
            Strategy::GreedyBySize => "greedy-by-size",
            Strategy::TflmGreedy => "tflm-greedy",
            Strategy::Auto => "auto",
            Strategy::Exact => "exact",
            Strategy::Valley => "valley",
            Strategy::Windows => "windows",
            Strategy::Search => "search",
        }
    }

    /// All strategies that can be asked for, in the order of their numbers in the C API.
    pub const ALL: [Strategy; 5] =
        [Strategy::Auto, Strategy::FirstFit, Strategy::GreedyBySize, Strategy::TflmGreedy, Strategy::Exact];

    /// The strategy of that name, if it can be asked for.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The greedy rule of that name, if it is one.
    pub(crate) const fn rule(self) -> Option<Rule> {
        match self {
            Strategy::FirstFit => Some(Rule::FirstFit),
            Strategy::GreedyBySize => Some(Rule::GreedyBySize),
            Strategy::TflmGreedy => Some(Rule::TflmGreedy),
            _ => None,
        }
    }
}

/// Places every buffer of `problem`. Alias classes are placed as one block.
///
/// `Argument` where two fixed offsets collide (both named), `Overflow` where sizes do not fit 64 bits.
pub fn plan(problem: &Problem, options: &Options) -> Result<Plan, Error> {
    plan_with(problem, options, &mut |_| ControlFlow::Continue(()))
}

/// The same, telling `progress` every few hundred search nodes where it stands. `Break` ends the search: the best plan so
/// far is returned, with the bound proven so far. A clock belongs there; the planner itself has none, so that what it
/// does within a given effort is the same everywhere.
pub fn plan_with(
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Plan, Error> {
    let plan = if problem.has_aliases() {
        let (merged, map) = problem.merge_aliases()?;
        let mut plan = plan_merged(&merged, options, progress)?;
        plan.offsets = map.iter().map(|&(root, delta)| plan.offsets[root as usize] + delta).collect();
        for (i, b) in problem.buffers().iter().enumerate() {
            if b.spec.size == 0 {
                plan.offsets[i] = 0;
            }
        }
        plan
    } else {
        plan_merged(problem, options, progress)?
    };
    debug_assert!(super::check::check(problem, &plan.offsets).is_ok(), "a strategy made an invalid plan");
    Ok(plan)
}

fn plan_merged(
    problem: &Problem,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Plan, Error> {
    let Some(rule) = options.strategy.rule() else {
        return anytime::solve(problem, options, progress);
    };
    let bound = lower_bound(problem)?.bytes;
    let align = problem.align();
    let (offsets, arena_bytes) = indexed::place(problem, rule, None)?;
    Ok(Plan {
        offsets,
        arena_bytes,
        lower_bound: bound,
        optimal: Plan::meets(arena_bytes, bound, align),
        strategy: options.strategy,
        align,
        compared: false,
        stats: Stats::default(),
    })
}
