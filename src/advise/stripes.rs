//! Operators around the peak run in stripes of rows, so that the tensors between them are never whole: `split` for the
//! peak operator and its best neighbour, `tile` for longer chains and the peaks that come next.

use super::rows::{rows, spatial};
use super::{count, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::explain;
use crate::graph::liveness::Role;
use crate::graph::lower::lower;
use crate::model::{DType, Model, Subgraph, Tensor, TensorKind};
use crate::units::{add, round_up, Bytes};

/// Stripes to try; of equals the first are taken. Fewer stripes compute fewer rows twice, but where more chains follow,
/// a merged operator must not be the next peak itself.
const FEWEST: [u64; 3] = [2, 4, 8];
const MOST: [u64; 3] = [8, 4, 2];
/// Plans made at most, of a small model and of the largest; in between by the number of its tensors.
const PLANS: (usize, usize) = (240, 12);
const HOW: &str = "One custom operator computes them stripe after stripe with that scratch (TFLite: a temporary of its node; \
                   TFLite Micro: RequestScratchBufferInArena; ONNX Runtime: a custom op); rows that stripes share are \
                   computed again. Patch-based inference of MCUNet, TVM and Vela's cascading do so by themselves. Slicing \
                   and concatenating in the graph does not save it: the pieces and the whole would be alive together.";

/// Consecutive operators that run in stripes, each the only reader of what the one before writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chain {
    graph: usize,
    nodes: Vec<usize>,
}

/// A model with one chain merged.
struct Merged {
    model: Model,
    scratch: Bytes,
    /// Whether rows that stripes share are in the scratch: the shapes are known.
    exact: bool,
}

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let tensors: usize = case.model.subgraphs.iter().map(|g| g.tensors.len()).sum();
    let mut budget = ((1 << 19) / tensors.max(1)).clamp(PLANS.1, PLANS.0);
    let none = "does nothing here: the operator at the peak has no neighbour with which it could run in stripes";
    let Some((chain, parts, merged, outcome)) = best_pair(case, case.model, now, FEWEST, &mut budget)? else {
        return Ok(vec![Pulled::nothing("split", none), Pulled::nothing("tile", none)]);
    };
    let told = told(case.model, &chain, parts, merged.scratch);
    let halo = if merged.exact { "" } else { "; rows that stripes share are not counted, the shapes are unknown" };
    let why = format!("{told}{halo}");
    let split = Pulled { exact: merged.exact, ..Pulled::new("split", outcome, why, HOW) };
    Ok(vec![split, tile(case, now, &mut budget)?])
}

fn told(model: &Model, chain: &Chain, parts: u64, scratch: Bytes) -> String {
    let graph = &model.subgraphs[chain.graph];
    let ops: Vec<&str> = chain.nodes.iter().map(|&n| &*graph.nodes[n].op).collect();
    let (first, last) = (chain.nodes[0], chain.nodes[chain.nodes.len() - 1]);
    let place = if chain.graph == 0 { String::new() } else { format!(" of subgraph {}", chain.graph) };
    format!("{} (nodes {first} to {last}{place}) in {parts} stripes with {scratch} B of scratch", ops.join(", "))
}

/// Chains of any length at peak after peak, for as long as the arena shrinks.
fn tile(case: &Case<'_>, now: &Outcome, budget: &mut usize) -> Result<Pulled, Error> {
    let (mut model, mut outcome, mut exact) = (case.model.clone(), now.clone(), true);
    let mut done: Vec<String> = Vec::new();
    while let Some((mut chain, mut parts, mut merged, mut then)) = best_pair(case, &model, &outcome, MOST, budget)? {
        while let Some(longer) = longer(case, &model, &chain, &then, budget)? {
            (chain, parts, merged, then) = longer;
        }
        if then.arena >= outcome.arena {
            break;
        }
        done.push(told(&model, &chain, parts, merged.scratch));
        exact &= merged.exact;
        (model, outcome) = (merged.model, then);
    }
    if done.is_empty() {
        return Ok(Pulled::nothing("tile", "does nothing here: no chain of operators in stripes needs less"));
    }
    let why = format!("{}: {} (numbers after the merges before)", count(done.len(), "chain"), done.join("; then "));
    Ok(Pulled { exact, ..Pulled::new("tile", outcome, why, HOW) })
}

type Found = (Chain, u64, Merged, Outcome);

/// The pair at the peak that needs least in stripes.
fn best_pair(
    case: &Case<'_>,
    model: &Model,
    now: &Outcome,
    parts: [u64; 3],
    budget: &mut usize,
) -> Result<Option<Found>, Error> {
    let entry = now.peak.0;
    let lowered = lower(&model.subgraphs, entry, &case.options, &case.pins_of(model, entry)?)?;
    let peak = explain::peak(&lowered.problem)?;
    let Some(at) = lowered.timeline.steps().get(peak.step as usize) else { return Ok(None) };
    let (g, n) = (at.subgraph as usize, at.node as usize);
    let lives = &lowered.lives.own[g];
    let inner = |t: usize| lives[t].role == Role::Intermediate && !lives[t].kept;
    let graph = &model.subgraphs[g];
    let before = graph.nodes[n].inputs.iter().filter_map(|&t| writer(graph, t, &inner)).map(|w| vec![w, n]);
    let after = reader(graph, n, &inner).map(|r| vec![n, r]);
    let chains: Vec<Chain> = before.chain(after).map(|nodes| Chain { graph: g, nodes }).collect();
    least(case, model, chains, parts, budget)
}

/// A chain with one operator more at either end that needs less than before.
fn longer(
    case: &Case<'_>,
    model: &Model,
    chain: &Chain,
    now: &Outcome,
    budget: &mut usize,
) -> Result<Option<Found>, Error> {
    let graph = &model.subgraphs[chain.graph];
    let inner = |t: usize| {
        let io = graph.inputs.iter().chain(&graph.outputs).any(|&x| x == t as i32);
        !io && graph.tensors[t].kind == TensorKind::Inter
    };
    let (first, last) = (chain.nodes[0], chain.nodes[chain.nodes.len() - 1]);
    let before = graph.nodes[first].inputs.iter().filter_map(|&t| writer(graph, t, &inner));
    let before = before.map(|w| [&[w][..], &chain.nodes].concat());
    let after = reader(graph, last, &inner).map(|r| [&chain.nodes[..], &[r]].concat());
    let chains: Vec<Chain> = before.chain(after).map(|nodes| Chain { graph: chain.graph, nodes }).collect();
    Ok(least(case, model, chains, MOST, budget)?.filter(|f| f.3.arena < now.arena))
}

fn least(
    case: &Case<'_>,
    model: &Model,
    chains: Vec<Chain>,
    parts: [u64; 3],
    budget: &mut usize,
) -> Result<Option<Found>, Error> {
    let mut best: Option<Found> = None;
    for chain in chains {
        for parts in parts {
            let Some(merged) = merge(case, model, &chain, parts)?.filter(|_| *budget > 0) else { continue };
            *budget -= 1;
            let outcome = case.edited(&merged.model)?;
            if best.as_ref().is_none_or(|b| outcome.arena < b.3.arena) {
                best = Some((chain.clone(), parts, merged, outcome));
            }
        }
    }
    Ok(best)
}

/// The node that writes `t` and nothing else, where one node alone reads it and both work row by row.
fn writer(graph: &Subgraph, t: i32, inner: &dyn Fn(usize) -> bool) -> Option<usize> {
    let inside = usize::try_from(t).ok().is_some_and(inner);
    let w = graph.nodes.iter().position(|n| n.outputs == [t]).filter(|_| inside)?;
    only_reader(graph, t).filter(|&r| r > w && spatial(&graph.nodes[w].op) && spatial(&graph.nodes[r].op)).map(|_| w)
}

/// The node that alone reads what `n` writes, likewise.
fn reader(graph: &Subgraph, n: usize, inner: &dyn Fn(usize) -> bool) -> Option<usize> {
    let &[t] = &graph.nodes[n].outputs[..] else { return None };
    writer(graph, t, inner)?;
    only_reader(graph, t)
}

fn only_reader(graph: &Subgraph, t: i32) -> Option<usize> {
    let mut readers = (0..graph.nodes.len()).filter(|&n| graph.nodes[n].inputs.contains(&t));
    let first = readers.next()?;
    let once = graph.nodes[first].inputs.iter().filter(|&&x| x == t).count() == 1;
    (once && readers.next().is_none()).then_some(first)
}

/// The chain as one node at the place of its last, with scratch for the stripes of two adjacent tensors. `None` where a
/// tensor between them has no known size, or where a tensor has fewer rows than there are stripes.
fn merge(case: &Case<'_>, model: &Model, chain: &Chain, parts: u64) -> Result<Option<Merged>, Error> {
    let graph = &model.subgraphs[chain.graph];
    let last = chain.nodes[chain.nodes.len() - 1];
    let (mut exact, mut stripes): (bool, Vec<Bytes>) = (true, Vec::new());
    let mut needed = None;
    // From the end: a stripe of the last output says how many rows of each tensor before are needed for it.
    for &n in chain.nodes.iter().rev() {
        let Some(&out) = graph.nodes[n].outputs.first() else { return Ok(None) };
        let tensor = &graph.tensors[out as usize];
        let (Some(bytes), height) = (tensor.bytes, rows(graph, n)) else { return Ok(None) };
        if n == last {
            if height.as_ref().is_some_and(|h| h.out < parts) {
                return Ok(None);
            }
            needed = height.as_ref().map(|h| h.out.div_ceil(parts));
        } else {
            let stripe = match (needed, &height) {
                (Some(rows), Some(h)) if h.out > 0 => (bytes / h.out).saturating_mul(rows.min(h.out)),
                _ => {
                    exact = false;
                    bytes.div_ceil(parts)
                }
            };
            stripes.push(round_up(stripe, case.options.align)?);
        }
        needed = needed.zip(height).map(|(rows, h)| h.needed(rows));
    }
    let scratch = match &stripes[..] {
        [one] => *one,
        many => many.windows(2).try_fold(0, |most: Bytes, w| add(w[0], w[1]).map(|sum| most.max(sum)))?,
    };
    let mut model = model.clone();
    let graph = &mut model.subgraphs[chain.graph];
    let between: Vec<i32> = chain.nodes.iter().filter(|&&n| n != last).map(|&n| graph.nodes[n].outputs[0]).collect();
    let mut merged = graph.nodes[last].clone();
    let mut inputs: Vec<i32> = Vec::new();
    let mut temporaries: Vec<i32> = Vec::new();
    for &n in &chain.nodes {
        inputs.extend(graph.nodes[n].inputs.iter().filter(|t| !between.contains(t)));
        temporaries.extend(&graph.nodes[n].temporaries);
    }
    for &t in &between {
        graph.tensors[t as usize].kind = TensorKind::Unused;
    }
    temporaries.push(graph.tensors.len() as i32);
    graph.tensors.push(Tensor {
        name: "stripes".into(),
        dtype: DType::UInt8,
        bytes: Some(scratch),
        kind: TensorKind::Inter,
        ..Tensor::default()
    });
    merged.op = chain.nodes.iter().map(|&n| &*graph.nodes[n].op).collect::<Vec<_>>().join("+").into();
    (merged.inputs, merged.temporaries) = (inputs, temporaries);
    graph.nodes[last] = merged;
    let mut gone: Vec<usize> = chain.nodes.iter().copied().filter(|&n| n != last).collect();
    gone.sort_unstable_by(|a, b| b.cmp(a));
    gone.into_iter().for_each(|n| drop(graph.nodes.remove(n)));
    Ok(Some(Merged { model, scratch, exact }))
}
