//! The peak operator and its neighbour run in stripes, so that the tensor between them is never whole.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::explain;
use crate::graph::liveness::Role;
use crate::graph::lower::lower;

/// Stripes.
const PARTS: u64 = 4;
const HOW: &str = "Slice the input along its height, run both operators per slice with the rows they overlap, and \
                   concatenate; MCUNet-style patch-based inference, TVM and Vela (cascading) do it by themselves.";

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "split";
    let entry = now.peak.0;
    let pins = case.entries.iter().position(|&e| e == entry).map_or(&[][..], |k| &case.pins[k]);
    let lowered = lower(&case.model.subgraphs, entry, &case.options, pins)?;
    let peak = explain::peak(&lowered.problem)?;
    let graph = &case.model.subgraphs[entry];
    let of_buffer = |b: u32| lowered.buffers[entry].iter().position(|&x| x == Some(b));
    let found = peak.buffers.iter().filter_map(|&b| of_buffer(b)).find_map(|t| {
        let own = &lowered.lives.own[entry][t];
        if own.role != Role::Intermediate || own.kept {
            return None;
        }
        let touches = |list: &[i32]| list.contains(&(t as i32));
        let mut readers = graph.nodes.iter().filter(|n| touches(&n.inputs));
        let writer = graph.nodes.iter().find(|n| touches(&n.outputs))?;
        let (reader, more) = (readers.next()?, readers.next());
        (more.is_none() && spatial(&writer.op) && spatial(&reader.op)).then_some((t, writer, reader))
    });
    let Some((t, writer, reader)) = found else {
        return Ok(vec![Pulled::nothing(
            LEVER,
            "does nothing here: no tensor at the peak lies between just two operators that could run in stripes",
        )]);
    };
    let mut model = case.model.clone();
    let bytes = model.subgraphs[entry].tensors[t].bytes.unwrap_or(0);
    model.subgraphs[entry].tensors[t].bytes = Some(bytes.div_ceil(PARTS));
    let outcome = case.edited(&model)?;
    let why = format!(
        "estimate, from the bound: {} and {} in {PARTS} stripes, so that tensor {t} between them ({bytes} B) is there by \
         the quarter; rows that stripes share are not counted",
        writer.op, reader.op
    );
    let bound = outcome.bound;
    Ok(vec![Pulled { arena: Some(bound), exact: false, ..Pulled::new(LEVER, outcome, why, HOW) }])
}

/// Whether a stripe of the output needs little more than a stripe of the input.
fn spatial(op: &str) -> bool {
    const NAMES: [&str; 12] = [
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "TRANSPOSE_CONV",
        "MAX_POOL_2D",
        "AVERAGE_POOL_2D",
        "PAD",
        "ADD",
        "SUB",
        "MUL",
        "Conv",
        "MaxPool",
        "AveragePool",
    ];
    NAMES.iter().any(|n| n.eq_ignore_ascii_case(op)) || super::in_place::elementwise(op)
}
