//! Another strategy.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::planner::{Options as PlanOptions, Strategy};

/// Search nodes for a second try where the first left the question open.
const EFFORT: u64 = 5_000_000;

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "strategy";
    if now.optimal {
        let why = format!("does nothing here: the arena is proven the smallest (bound {} B)", now.bound);
        return Ok(vec![Pulled::nothing(LEVER, why)]);
    }
    let (plan, option) = match case.plan.strategy {
        Strategy::Auto | Strategy::Exact => (
            PlanOptions { effort: Some(EFFORT), ..PlanOptions::of(Strategy::Exact) },
            format!("--strategy exact --effort {EFFORT}"),
        ),
        _ => (PlanOptions::of(Strategy::Auto), "--strategy auto".into()),
    };
    let outcome = Case { plan, ..*case }.now()?;
    let why = format!("planned by {} instead of {}", plan.strategy.name(), case.plan.strategy.name());
    const HOW: &str = "Plan offline and ship the offsets: `arenite optimize` writes them into the file for TFLite \
                       Micro; an engine passes them to its own arena.";
    Ok(vec![Pulled::new(LEVER, outcome, why, HOW).option(option)])
}
