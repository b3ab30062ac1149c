//! What a model's plan says besides: scratch, resource variables, and what the reader should know.

use arenite::error::Error;
use arenite::graph::tables::Allocation;
use arenite::model::{Flags, Model};
use arenite::units::Bytes;
use arenite::view::Report;

/// Unresolved tensors named in the warning.
const NAMED: usize = 6;

/// The sum of what the nodes of the planned subgraphs ask for as scratch; `None` where nothing is known of any.
pub fn scratch_bytes(model: &Model, entries: &[usize]) -> Result<Option<Bytes>, Error> {
    let (mut seen, mut stack, mut sum) = (vec![false; model.subgraphs.len()], entries.to_vec(), None);
    while let Some(k) = stack.pop() {
        if k >= seen.len() || std::mem::replace(&mut seen[k], true) {
            continue;
        }
        let graph = &model.subgraphs[k];
        let mut scratch: Vec<i32> = graph.nodes.iter().flat_map(|n| &n.temporaries).copied().collect();
        scratch.sort_unstable();
        scratch.dedup();
        for tensor in scratch.iter().filter_map(|&t| graph.tensors.get(usize::try_from(t).ok()?)) {
            // What a kernel keeps from run to run is in the persistent arena, and counted there.
            if tensor.allocation() == Allocation::ArenaRw {
                sum = Some(arenite::units::add(sum.unwrap_or(0), tensor.bytes.unwrap_or(0))?);
            }
        }
        stack.extend(graph.nodes.iter().flat_map(|n| &n.subgraphs).map(|&k| k as usize));
    }
    Ok(sum)
}

/// The sizes of the resource variables that the planned subgraphs use.
pub fn resources(model: &Model, reports: &[Report]) -> Vec<Bytes> {
    let mut used = vec![false; model.resources.len()];
    for k in planned_subgraphs(reports) {
        for r in model.subgraphs[k].nodes.iter().filter_map(|n| n.resource) {
            if let Some(u) = used.get_mut(r as usize) {
                *u = true;
            }
        }
    }
    model.resources.iter().zip(used).filter(|r| r.1).filter_map(|r| r.0.bytes).collect()
}

fn planned_subgraphs(reports: &[Report]) -> Vec<usize> {
    let mut list: Vec<_> =
        reports.iter().flat_map(|r| &r.rows).filter_map(|r| r.subgraph.map(|k| k as usize)).collect();
    list.dedup();
    list.sort_unstable();
    list.dedup();
    list
}

/// What the reader should know.
pub fn warnings(model: &Model, reports: &[Report]) -> Vec<String> {
    // The reader's own note on unknown dimensions was made before any was set.
    let mut out: Vec<String> = model.warnings.iter().filter(|w| !w.contains("unknown dimensions")).cloned().collect();
    let planned = planned_subgraphs(reports);
    let open: Vec<_> = model.unresolved().into_iter().filter(|u| planned.binary_search(&u.subgraph).is_ok()).collect();
    if !open.is_empty() {
        let mut names: Vec<String> = open.iter().take(NAMED).map(|u| format!("{:?}", u.name)).collect();
        if open.len() > NAMED {
            names.push(format!("and {} more", open.len() - NAMED));
        }
        out.push(format!(
            "{} tensors have unknown dimensions, which count as 1 until --set gives their shape: {}",
            open.len(),
            names.join(", ")
        ));
    }
    let tensors = || planned.iter().flat_map(|&k| &model.subgraphs[k].tensors);
    let dynamic = tensors().filter(|t| t.flags.has(Flags::DYNAMIC) && t.bytes.is_some()).count();
    if dynamic > 0 {
        out.push(format!(
            "{dynamic} tensors are dynamic at run time, where TFLite gives them memory outside the arena; here they are \
             planned with the size of one run"
        ));
    }
    let unsized_ = reports.iter().flat_map(|r| &r.rows).filter(|r| r.size.is_none() && !r.spans.is_empty()).count();
    if unsized_ > 0 {
        out.push(format!("{unsized_} tensors have no known size and are not counted"));
    }
    let resources = model.resources.iter().filter(|r| r.bytes.is_none()).count();
    if resources > 0 {
        out.push(format!("{resources} resource variables have no known size and are not counted as persistent"));
    }
    // A graph table has the nodes of resource variables but not their names, so it does not tell how many there are.
    let mut nodes = planned.iter().flat_map(|&k| &model.subgraphs[k].nodes);
    if nodes.any(|n| &*n.op == "VAR_HANDLE" && n.resource.is_none()) {
        out.push("resource variables are not named in this file and are not counted as persistent".into());
    }
    out
}
