//! Less kept alive: pins, and keeping everything.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness::Options;

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let mut out = Vec::new();
    if case.options.keep_all {
        let outcome = Case { options: Options { keep_all: false, ..case.options }, ..*case }.now()?;
        const HOW: &str = "Leave keep-all (preserve_all_tensors in TFLite) to debugging builds.";
        let why = "tensors are released after their last reader".into();
        out.push(Pulled::new("keep-all-off", outcome, why, HOW).option("without --keep-all"));
    }
    let all: usize = case.pins.iter().map(Vec::len).sum();
    if all == 0 {
        out.push(Pulled::nothing("unpin", "does nothing here: nothing is pinned"));
        return Ok(out);
    }
    let none = vec![Vec::new(); case.pins.len()];
    let outcome = Case { pins: &none, ..*case }.now()?;
    let mut each = Vec::new();
    for (k, list) in case.pins.iter().enumerate() {
        for (i, pin) in list.iter().enumerate() {
            let mut pins = case.pins.to_vec();
            pins[k].remove(i);
            let less = now.arena.saturating_sub(Case { pins: &pins, ..*case }.now()?.arena);
            let name = &case.model.subgraphs[case.entries[k]].tensors[pin.tensor as usize].name;
            each.push(format!("{} {name:?} alone {less} B", pin.tensor));
        }
    }
    let why =
        format!("nothing is pinned beyond its last reader; each of the {all} pins on its own: {}", each.join(", "));
    const HOW: &str = "Copy a tensor out while it is alive, or ask for it as a graph output, instead of pinning it.";
    out.push(Pulled::new("unpin", outcome, why, HOW).option("without --pin"));
    Ok(out)
}
