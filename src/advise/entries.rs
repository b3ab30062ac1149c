//! One arena for all entry subgraphs: that is what a plan counts, so this tells what separate ones would take.

use super::{Case, Outcome, Pulled};
use crate::error::Error;

pub(super) fn pull(_case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "one-arena";
    if now.arenas.len() < 2 {
        return Ok(vec![Pulled::nothing(LEVER, "does nothing here: there is one entry")]);
    }
    let sum = now.arenas.iter().fold(0u64, |a, &b| a.saturating_add(b));
    let why = format!(
        "counted already: the {} entries run one at a time in one arena of {} B; an arena each would take {sum} B, {} B more",
        now.arenas.len(),
        now.arena,
        sum - now.arena
    );
    Ok(vec![Pulled::nothing(LEVER, why)])
}
