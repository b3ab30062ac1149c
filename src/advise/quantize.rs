//! Narrower activations: float16 and int8 instead of float32.

use super::{count, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::tables::Allocation;
use crate::model::DType;

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    Ok(vec![
        narrow(
            case,
            "fp16",
            DType::Float16,
            "Runs where the runtime computes in half precision: the GPU delegate, XNNPACK with \
             ForceFp16; in ONNX, convert_float_to_float16 with keep_io_types. Weight-only float16 does not change activations.",
        )?,
        narrow(
            case,
            "int8",
            DType::Int8,
            "TFLite converter: optimizations = [DEFAULT], representative_dataset, supported_ops = \
             TFLITE_BUILTINS_INT8; in ONNX, quantize_static. Weight-only (dynamic range) int8 does not change activations.",
        )?,
    ])
}

/// Every wider float activation as `to`; graph inputs and outputs stay as they are.
fn narrow(case: &Case<'_>, lever: &'static str, to: DType, how: &'static str) -> Result<Pulled, Error> {
    let mut model = case.model.clone();
    let (bits, mut changed) = (to.bits().unwrap_or(8), 0);
    for graph in &mut model.subgraphs {
        let io: Vec<i32> = graph.inputs.iter().chain(&graph.outputs).copied().collect();
        for (t, tensor) in graph.tensors.iter_mut().enumerate() {
            let float = matches!(tensor.dtype, DType::Float32 | DType::Float16);
            let Some(now) = tensor.dtype.bits().filter(|&b| float && b > bits) else { continue };
            if tensor.allocation() != Allocation::ArenaRw || io.contains(&(t as i32)) {
                continue;
            }
            tensor.bytes = tensor.bytes.map(|b| b.div_ceil(now / bits));
            tensor.dtype = to;
            changed += 1;
        }
    }
    if changed == 0 {
        return Ok(Pulled::nothing(lever, format!("does nothing here: no activation is wider than {}", to.name())));
    }
    let why = format!("{} as {}, graph inputs and outputs unchanged", count(changed, "float activation"), to.name());
    Ok(Pulled::new(lever, case.edited(&model)?, why, how))
}
