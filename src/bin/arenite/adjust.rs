//! Options that change a model or name parts of it: shapes, scratch, pins, subgraphs.

use arenite::graph::liveness::Pin;
use arenite::graph::timeline::Timeline;
use arenite::model::{CallKind, DType, Model, Subgraph, Tensor, TensorKind};
use arenite::units::Bytes;

use super::output::{Done, Failure};
use super::plan::Args;
use super::planned::named;

/// Applies `--set NAME=SHAPE`.
pub fn set_shape(model: &mut Model, set: &str) -> Done<()> {
    let refuse = || Failure::about(format!("--set {set}"), "expected NAME=SHAPE, for instance input=1,224,224,3");
    let (name, shape) = set.rsplit_once('=').ok_or_else(refuse)?;
    let dims = match shape.trim() {
        "" => Vec::new(),
        shape => shape
            .split([',', 'x'])
            .map(|d| d.trim().parse::<i64>().ok().filter(|&d| d >= 0))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(refuse)?,
    };
    model.set_shape(name, &dims).map_err(|e| Failure::about(format!("--set {set}"), e))?;
    Ok(())
}

/// `K:REST` where K is a number below the number of subgraphs, else the whole text.
fn subgraph_of<'a>(model: &Model, text: &'a str) -> (Option<usize>, &'a str) {
    match text.split_once(':') {
        Some((k, rest)) => match k.parse::<usize>() {
            Ok(k) if k < model.subgraphs.len() => (Some(k), rest),
            _ => (None, text),
        },
        None => (None, text),
    }
}

/// Adds a temporary to each node that was given scratch.
pub fn scratch(model: &mut Model, args: &Args) -> Done<()> {
    add_scratch(model, &args.scratch, args.subgraph).map(|_| ())
}

/// The same for a list of `NODE=BYTES`. Returns the sum.
pub fn add_scratch(model: &mut Model, list: &[String], subgraph: Option<u32>) -> Done<Option<Bytes>> {
    let mut sum = None;
    for given in list {
        let refuse = |what: String| Failure::about(format!("--scratch {given}"), what);
        let form = || refuse("expected NODE=BYTES, for instance 12=4096 or 1:12=64KiB".into());
        let (node, bytes) = given.rsplit_once('=').ok_or_else(form)?;
        let bytes = super::plan::size(bytes).map_err(&refuse)?;
        let (k, node) = subgraph_of(model, node);
        let k = k.or(subgraph.map(|k| k as usize)).unwrap_or(0);
        let node: usize = node.parse().map_err(|_| form())?;
        let Some(graph) = model.subgraphs.get_mut(k) else { continue };
        let (count, tensor) = (graph.nodes.len(), graph.tensors.len());
        let Some(target) = graph.nodes.get_mut(node) else {
            return Err(refuse(format!("there is no node {node} in subgraph {k}, which has {count}")));
        };
        target.temporaries.push(i32::try_from(tensor).map_err(|_| refuse("too many tensors".into()))?);
        graph.tensors.push(Tensor {
            name: format!("scratch of node {node}"),
            dtype: DType::UInt8,
            bytes: Some(bytes),
            kind: TensorKind::Inter,
            ..Tensor::default()
        });
        sum = Some(arenite::units::add(sum.unwrap_or(0), bytes).map_err(|e| refuse(e.to_string()))?);
    }
    Ok(sum)
}

/// The subgraphs to plan. One planned alone counts its calls as ordinary nodes.
pub fn entries(model: &mut Model, alone: Option<u32>) -> Done<Vec<usize>> {
    let Some(k) = alone else { return Ok(model.entries()) };
    let count = model.subgraphs.len();
    let Some(graph) = model.subgraphs.get_mut(k as usize) else {
        return Err(Failure::about(format!("--subgraph {k}"), format!("the model has {count} subgraphs, from 0")));
    };
    for node in &mut graph.nodes {
        node.call = CallKind::None;
        node.subgraphs.clear();
    }
    Ok(vec![k as usize])
}

/// A pin whose step is `None` lasts to the end.
pub type Until = (u32, Option<u32>);

/// Reads `--pin`: per entry, what to keep and until when.
pub fn pins(args: &Args, model: &Model, entries: &[usize]) -> Done<Vec<Vec<Until>>> {
    let mut out = vec![Vec::new(); entries.len()];
    for given in &args.pin {
        let refuse = |what: String| Failure::about(format!("--pin {given}"), what);
        let form = || refuse("expected TENSOR=STEP, for instance 12=40 or logits=end".into());
        let (tensor, step) = given.rsplit_once('=').ok_or_else(form)?;
        let until = match step {
            "end" => None,
            step => Some(step.parse::<u32>().map_err(|_| form())?),
        };
        let whole = entries.first().and_then(|&e| find(&model.subgraphs[e], tensor));
        let (entry, found) = match (whole, subgraph_of(model, tensor)) {
            (Some(t), _) => (0, Some(t)),
            (None, (Some(k), rest)) => {
                let entry = entries.iter().position(|&e| e == k);
                let entry = entry.ok_or_else(|| refuse(format!("subgraph {k} is not an entry of this plan")))?;
                (entry, find(&model.subgraphs[k], rest))
            }
            (None, (None, _)) => (0, None),
        };
        let Some(tensor) = found else { return Err(refuse(format!("there is no tensor {tensor:?} to keep"))) };
        if let Some(list) = out.get_mut(entry) {
            list.push((tensor, until));
        }
    }
    Ok(out)
}

/// A tensor by index or by name.
fn find(graph: &Subgraph, text: &str) -> Option<u32> {
    let by_index = text.parse::<u32>().ok().filter(|&t| (t as usize) < graph.tensors.len());
    by_index.or_else(|| graph.tensors.iter().position(|t| t.name == text).map(|t| t as u32))
}

/// The same with the last step of the entry filled in.
pub fn with_end(model: &Model, entry: usize, pins: &[Until], args: &Args) -> Done<Vec<Pin>> {
    if pins.is_empty() {
        return Ok(Vec::new());
    }
    let line = Timeline::of(&model.subgraphs, entry)
        .map_err(|e| Failure::about(super::planned::file(args), named(model, e)))?;
    Ok(pins.iter().map(|&(tensor, until)| Pin { tensor, until: until.unwrap_or(line.last()) }).collect())
}
