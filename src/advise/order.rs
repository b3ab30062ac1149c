//! Another execution order. The search for one is the graph's own; until it is there this lever says nothing.

use super::{Case, Outcome, Pulled};
use crate::error::Error;

pub(super) fn pull(_case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    Ok(Vec::new())
}
