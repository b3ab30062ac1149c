//! Inputs and outputs in memory the caller has anyway.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::tables::Allocation;
use crate::model::TensorKind;

const HOW: &str = "TFLite: Interpreter::SetCustomAllocationForTensor; ONNX Runtime: IoBinding. Saves memory where the \
                   application holds these buffers already (a camera frame, a result vector); else the bytes only move.";

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let mut model = case.model.clone();
    let mut moved = 0;
    for &entry in case.entries {
        let graph = &mut model.subgraphs[entry];
        for t in graph.inputs.iter().chain(&graph.outputs).filter(|&&t| t >= 0) {
            let tensor = &mut graph.tensors[*t as usize];
            if tensor.allocation() == Allocation::ArenaRw {
                moved += tensor.bytes.unwrap_or(0);
                tensor.kind = TensorKind::Outer;
            }
        }
    }
    if moved == 0 {
        return Ok(vec![Pulled::nothing("caller-io", "does nothing here: no input or output is in the arena")]);
    }
    let why = format!("inputs and outputs ({moved} B) in buffers of the caller");
    Ok(vec![Pulled::new("caller-io", case.edited(&model)?, why, HOW)])
}
