//! A smaller batch.

use super::{count, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::tables::Allocation;

const HOW: &str =
    "Run the items one after the other: resize_tensor_input with a batch of 1 (TFLite), a batch dimension \
                   of 1 (ONNX).";

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "batch";
    // The batch is the first dimension where every input has the same.
    let mut firsts = case.entries.iter().flat_map(|&e| {
        let graph = &case.model.subgraphs[e];
        graph.inputs.iter().filter(|&&t| t >= 0).map(|&t| &graph.tensors[t as usize])
    });
    let first = |t: &crate::model::Tensor| t.shape.as_ref().filter(|s| s.len() > 1).and_then(|s| s.first().copied());
    let batch = firsts.next().and_then(first).filter(|&b| b > 1);
    let Some(batch) = batch.filter(|&b| firsts.all(|t| first(t) == Some(b))) else {
        return Ok(vec![Pulled::nothing(LEVER, "does nothing here: the inputs have no batch above 1")]);
    };
    let mut model = case.model.clone();
    let mut changed = 0;
    for tensor in model.subgraphs.iter_mut().flat_map(|g| &mut g.tensors) {
        if tensor.allocation() == Allocation::ArenaRw && first(tensor) == Some(batch) {
            tensor.bytes = tensor.bytes.map(|b| b / batch as u64);
            changed += 1;
        }
    }
    let why = format!("a batch of 1 instead of {batch}, {} times; {} shrink", batch, count(changed, "tensor"));
    Ok(vec![Pulled::new(LEVER, case.edited(&model)?, why, HOW)])
}
