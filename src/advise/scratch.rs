//! Kernel scratch, recorded or given: whose it is at the peak, and what the arena would be without it.

use super::{count, some_of, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::explain;
use crate::graph::lower::lower;
use crate::model::Model;
use crate::units::Bytes;

const HOW: &str =
    "Another kernel (a direct convolution needs no im2col), a delegate that brings its own workspace (XNNPACK), \
                   or tiles that need a smaller im2col; TFLite: node->temporaries, TFLite Micro: \
                   RequestScratchBufferInArena.";

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "scratch";
    let mut users: Vec<(Bytes, usize, usize)> = Vec::new();
    for (g, graph) in case.model.subgraphs.iter().enumerate() {
        users.extend((0..graph.nodes.len()).map(|n| (own(case.model, g, n), g, n)).filter(|u| u.0 > 0));
    }
    if users.is_empty() {
        let why = "does nothing here: no kernel scratch is known (record a profile, or give --scratch)";
        return Ok(vec![Pulled::nothing(LEVER, why), Pulled::nothing("scratch-at-peak", why)]);
    }
    users.sort_by_key(|&(bytes, g, n)| (std::cmp::Reverse(bytes), g, n));
    let sum = users.iter().fold(0, |a: Bytes, u| a.saturating_add(u.0));
    let names: Vec<String> = users.iter().map(|&(b, g, n)| format!("{} {b} B", case.node(g, n))).collect();
    let why = format!("no kernel asks for scratch ({sum} B in {}: {})", count(users.len(), "node"), some_of(&names));
    let all = Pulled::new(LEVER, without(case, &users)?, why, HOW);
    Ok(vec![all, at_peak(case, now, &users)?])
}

/// Kernels changed at most, one after the other.
const ROUNDS: usize = 32;

/// Scratch of one node.
fn own(model: &Model, g: usize, n: usize) -> Bytes {
    let graph = &model.subgraphs[g];
    let bytes = |&t: &i32| usize::try_from(t).ok().and_then(|t| graph.tensors[t].bytes);
    graph.nodes[n].temporaries.iter().filter_map(bytes).fold(0, Bytes::saturating_add)
}

/// The plan without the scratch of some nodes.
fn without(case: &Case<'_>, users: &[(Bytes, usize, usize)]) -> Result<Outcome, Error> {
    let mut model = case.model.clone();
    for &(_, g, n) in users {
        model.subgraphs[g].nodes[n].temporaries.clear();
    }
    case.edited(&model)
}

/// Those whose scratch is alive at the peak, and at the next one once theirs is gone, and so on: the fewest kernels to
/// change for most of the gain.
fn at_peak(case: &Case<'_>, now: &Outcome, users: &[(Bytes, usize, usize)]) -> Result<Pulled, Error> {
    const LEVER: &str = "scratch-at-peak";
    let (mut outcome, mut gone): (Outcome, Vec<(Bytes, usize, usize)>) = (now.clone(), Vec::new());
    let mut at_first: Bytes = 0;
    for round in 0..users.len().min(ROUNDS) {
        let mut model = case.model.clone();
        for &(_, g, n) in &gone {
            model.subgraphs[g].nodes[n].temporaries.clear();
        }
        let lowered = lower(&model.subgraphs, outcome.peak.0, &case.options, &case.pins_of(&model, outcome.peak.0)?)?;
        let peak = explain::peak(&lowered.problem)?;
        let Some(at) = lowered.timeline.steps().get(peak.step as usize) else { break };
        let here = |u: &&(Bytes, usize, usize)| (u.1, u.2) == (at.subgraph as usize, at.node as usize);
        let Some(&user) = users.iter().find(here).filter(|u| !gone.contains(u)) else { break };
        if round == 0 {
            at_first = user.0;
        }
        gone.push(user);
        let then = without(case, &gone)?;
        if round > 0 && then.arena >= outcome.arena {
            gone.pop();
            break;
        }
        outcome = then;
    }
    if gone.is_empty() {
        let why = format!("does nothing here: no scratch is alive at the peak, {}", now.peak_text);
        return Ok(Pulled::nothing(LEVER, why));
    }
    let names: Vec<String> = gone.iter().map(|&(b, g, n)| format!("{} {b} B", case.node(g, n))).collect();
    let why = format!(
        "scratch is {at_first} of the {} B at the peak; without that of {}: {}",
        now.peak.2,
        count(gone.len(), "kernel"),
        some_of(&names)
    );
    Ok(Pulled::new(LEVER, outcome, why, HOW))
}
