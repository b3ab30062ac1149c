//! Tensors that live through the whole run, put beside the arena: that can only save what they are in the way of.

use super::{count, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness::Home;
use crate::graph::lower::lower;
use crate::model::TensorKind;

const HOW: &str = "TFLite Micro: AllocatePersistentBuffer, or is_variable; TFLite: kTfLiteArenaRwPersistent.";

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "persistent";
    let mut model = case.model.clone();
    let (mut moved, mut n) = (0, 0);
    // With several entries what lives through one of them would burden all others.
    if let &[entry] = case.entries {
        let lowered = lower(&case.model.subgraphs, entry, &case.options, &case.pins[0])?;
        for (t, own) in lowered.lives.own[entry].iter().enumerate() {
            if own.kept && own.first == 0 && own.home == Home::Arena && lowered.roots[entry][t] == t as u32 {
                let tensor = &mut model.subgraphs[entry].tensors[t];
                moved += case.options.align.round_up(tensor.bytes.unwrap_or(0)).unwrap_or(0);
                n += 1;
                tensor.kind = TensorKind::Persist;
            }
        }
    }
    if n == 0 {
        return Ok(vec![Pulled::nothing(
            LEVER,
            "does nothing here: no tensor of the arena lives through the whole run",
        )]);
    }
    let outcome = case.edited(&model)?;
    let arena = outcome.arena.saturating_add(moved);
    let why = format!(
        "{} that {} through the whole run ({moved} B) beside the arena, which is then {} B; both are counted, {} B now",
        count(n, "tensor"),
        if n == 1 { "lives" } else { "live" },
        outcome.arena,
        now.arena
    );
    Ok(vec![Pulled { arena: Some(arena), ..Pulled::new(LEVER, outcome, why, HOW) }])
}
