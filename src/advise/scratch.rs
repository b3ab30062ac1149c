//! Kernel scratch, where it is known: what the arena would be without it, and whose it is at the peak.

use super::{count, some_of, Case, Outcome, Pulled};
use crate::error::Error;

const HOW: &str =
    "Another kernel or a delegate (XNNPACK brings its own workspace), or tiles that need a smaller im2col.";

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let mut model = case.model.clone();
    let (mut bytes, mut users) = (0u64, Vec::new());
    for graph in &mut model.subgraphs {
        for node in &mut graph.nodes {
            let all = node.temporaries.iter().filter(|&&t| t >= 0);
            let own: u64 = all.filter_map(|&t| graph.tensors[t as usize].bytes).sum();
            if own > 0 {
                users.push((own, node.op.to_string()));
                bytes += own;
            }
            node.temporaries.clear();
        }
    }
    if users.is_empty() {
        return Ok(vec![Pulled::nothing(
            "scratch",
            "does nothing here: no kernel scratch is known (record a profile, or give --scratch)",
        )]);
    }
    users.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let names: Vec<String> = users.iter().map(|(b, op)| format!("{op} {b} B")).collect();
    let why = format!("no kernel asks for scratch ({bytes} B in {}: {})", count(users.len(), "node"), some_of(&names));
    Ok(vec![Pulled::new("scratch", case.edited(&model)?, why, HOW)])
}
