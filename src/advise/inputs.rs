//! Inputs free after their last reader, or kept.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness::Options;

const LEVER: &str = "reuse-inputs";
const HOW: &str = "Fill the inputs before every run and let the planner reuse them: TFLite Micro does so by itself; \
                   TFLite keeps inputs unless preserve_inputs is off; here --reuse-inputs.";

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    if case.options.keep_all {
        return Ok(vec![Pulled::nothing(LEVER, "does nothing here: --keep-all keeps every tensor")]);
    }
    if case.options.reuse_inputs {
        let kept = Case { options: Options { reuse_inputs: false, ..case.options }, ..*case }.now()?;
        let more = kept.arena.saturating_sub(now.arena);
        let why = format!(
            "does nothing here: inputs are free after their last reader already; keeping them takes {more} B more"
        );
        return Ok(vec![Pulled::nothing(LEVER, why)]);
    }
    if case.options.inputs_reusable() {
        let why = "does nothing here: inputs are free after their last reader already, by the policy";
        return Ok(vec![Pulled::nothing(LEVER, why)]);
    }
    let outcome = Case { options: Options { reuse_inputs: true, ..case.options }, ..*case }.now()?;
    let why = "an input's bytes are free after its last reader instead of kept through the run".into();
    Ok(vec![Pulled::new(LEVER, outcome, why, HOW).option("--reuse-inputs")])
}
