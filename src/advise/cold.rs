//! Tensors that lie idle while the peak operator runs, moved to a slower memory.

use super::{count, some_of, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::explain::{self, Peak};
use crate::graph::lower::{lower, Lowered};
use crate::graph::tables::Allocation;
use crate::model::{Model, TensorKind};
use crate::units::Bytes;

const LEVER: &str = "slow-region";
/// Peaks levelled at most.
const ROUNDS: usize = 64;
const HOW: &str = "Plan two regions, the fast one first (arenite_planner_regions; `arenite plan X.csv --region sram=N --region \
                   dram`, the column `regions` naming who must stay out). TFLite: SetCustomAllocationForTensor for these \
                   tensors; TFLite Micro: a second, non-persistent arena; ONNX Runtime: OrtMemoryInfo of the device.";

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let mut model = case.model.clone();
    let mut moved: Vec<(usize, usize)> = Vec::new();
    for _ in 0..ROUNDS {
        let cold = cold(case, &model)?;
        if cold.is_empty() {
            break;
        }
        for &(g, t) in &cold {
            model.subgraphs[g].tensors[t].kind = TensorKind::Outer;
        }
        moved.extend(cold);
    }
    if moved.is_empty() {
        let why = "does nothing here: the operator at the peak works on every tensor that is alive there";
        return Ok(vec![Pulled::nothing(LEVER, why)]);
    }
    moved.sort_unstable();
    let names: Vec<String> = moved.iter().map(|&(g, t)| named(&model, g, t)).collect();
    let why = format!(
        "{} idle at a peak in a slow memory of {} B: {}; {} B per run are read and written there",
        count(moved.len(), "tensor"),
        slow(case, &moved)?,
        some_of(&names),
        traffic(case.model, &moved)
    );
    let tensors = moved.iter().map(|&(g, t)| (g as u32, t as u32)).collect();
    Ok(vec![Pulled { tensors, ..Pulled::new(LEVER, case.edited(&model)?, why, HOW) }])
}

fn named(model: &Model, g: usize, t: usize) -> String {
    let name = &model.subgraphs[g].tensors[t].name;
    if g == 0 {
        format!("{t} {name:?}")
    } else {
        format!("{g}:{t} {name:?}")
    }
}

/// Tensors alive at the highest peak of any entry in the graph whose operator runs there, but not its own. What shares bytes
/// moves together.
fn cold(case: &Case<'_>, model: &Model) -> Result<Vec<(usize, usize)>, Error> {
    let mut highest: Option<(Lowered, Peak)> = None;
    for &entry in case.entries {
        let lowered = lower(&model.subgraphs, entry, &case.options, &case.pins_of(model, entry)?)?;
        let peak = explain::peak(&lowered.problem)?;
        if highest.as_ref().is_none_or(|h| peak.bytes > h.1.bytes) {
            highest = Some((lowered, peak));
        }
    }
    let Some((lowered, peak)) = highest else { return Ok(Vec::new()) };
    let Some(at) = lowered.timeline.steps().get(peak.step as usize) else { return Ok(Vec::new()) };
    let g = at.subgraph as usize;
    let node = &model.subgraphs[g].nodes[at.node as usize];
    let roots = &lowered.roots[g];
    let touched = node.inputs.iter().chain(&node.outputs).chain(&node.temporaries).filter(|&&t| t >= 0);
    let hot: Vec<u32> = touched.map(|&t| roots[t as usize]).collect();
    let alive: Vec<u32> =
        tensors_of(&lowered, g, &peak.buffers).map(|t| roots[t]).filter(|r| !hot.contains(r)).collect();
    let planned = |t: &usize| model.subgraphs[g].tensors[*t].allocation() == Allocation::ArenaRw;
    Ok((0..roots.len()).filter(planned).filter(|&t| alive.contains(&roots[t])).map(|t| (g, t)).collect())
}

fn tensors_of<'a>(lowered: &'a Lowered, g: usize, buffers: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
    let of = lowered.buffers[g].iter().enumerate();
    of.filter(|(_, b)| b.is_some_and(|b| buffers.contains(&b))).map(|(t, _)| t)
}

/// The arena that the moved tensors take by themselves.
fn slow(case: &Case<'_>, moved: &[(usize, usize)]) -> Result<Bytes, Error> {
    let mut model = case.model.clone();
    for (g, graph) in model.subgraphs.iter_mut().enumerate() {
        for (t, tensor) in graph.tensors.iter_mut().enumerate() {
            if tensor.allocation() == Allocation::ArenaRw && moved.binary_search(&(g, t)).is_err() {
                tensor.kind = TensorKind::Outer;
            }
        }
    }
    Ok(case.edited(&model)?.arena)
}

/// Bytes of every use of a moved tensor, each node counted once.
fn traffic(model: &Model, moved: &[(usize, usize)]) -> Bytes {
    let mut sum: Bytes = 0;
    for (g, graph) in model.subgraphs.iter().enumerate() {
        for t in graph.nodes.iter().flat_map(|n| n.inputs.iter().chain(&n.outputs)).filter(|&&t| t >= 0) {
            if moved.binary_search(&(g, *t as usize)).is_ok() {
                sum = sum.saturating_add(graph.tensors[*t as usize].bytes.unwrap_or(0));
            }
        }
    }
    sum
}
