//! Chains fused into one operator: convolution, batch norm, activation.

use super::{count, in_place, some_of, Case, Outcome, Pulled};
use crate::error::Error;
use crate::model::{Subgraph, TensorKind};

const HOW: &str = "Fold the multiply and add of a batch norm into the weights and bias, and let the converter fuse the \
                   activation (fused_activation_function in TFLite; the Conv + BatchNormalization and Conv + Activation \
                   fusions of ONNX Runtime's optimizer).";

/// Operators that compute a whole output and can finish it with something simple, TFLite's names and ONNX's.
const HEAVY: [&str; 9] = [
    "CONV_2D",
    "CONV_3D",
    "DEPTHWISE_CONV_2D",
    "TRANSPOSE_CONV",
    "FULLY_CONNECTED",
    "Conv",
    "ConvTranspose",
    "Gemm",
    "MatMul",
];
/// What a batch norm is, whole or in parts.
const AFFINE: [&str; 5] = ["ADD", "SUB", "MUL", "DIV", "BatchNormalization"];

fn one_of(list: &[&str], op: &str) -> bool {
    list.iter().any(|name| name.eq_ignore_ascii_case(op))
}

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let mut model = case.model.clone();
    let mut fused: Vec<String> = Vec::new();
    for (g, graph) in model.subgraphs.iter_mut().enumerate() {
        // Nodes move up as others go: each keeps the number that it has in the file.
        let mut numbers: Vec<usize> = (0..graph.nodes.len()).collect();
        while let Some((i, j)) = pair(graph) {
            let at = if g == 0 { String::new() } else { format!(" of subgraph {g}") };
            let told =
                format!("{} + {} (nodes {} and {}{at})", graph.nodes[i].op, graph.nodes[j].op, numbers[i], numbers[j]);
            fused.push(told);
            join(graph, (i, j));
            numbers.remove(j);
        }
    }
    if fused.is_empty() {
        return Ok(vec![Pulled::nothing("fuse", "does nothing here: no convolution or matrix product is followed by an operator that could be fused into it")]);
    }
    let why = format!("{} fused: {}", count(fused.len(), "pair"), some_of(&fused));
    Ok(vec![Pulled::new("fuse", case.edited(&model)?, why, HOW)])
}

/// A producer and the only reader of its output, which works element by element on that and constants.
fn pair(graph: &Subgraph) -> Option<(usize, usize)> {
    let mut readers: Vec<(u32, usize)> = vec![(0, 0); graph.tensors.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for &t in node.inputs.iter().filter(|&&t| t >= 0) {
            readers[t as usize] = (readers[t as usize].0 + 1, i);
        }
    }
    (0..graph.nodes.len()).find_map(|i| {
        let node = &graph.nodes[i];
        let heavy = one_of(&HEAVY, &node.op);
        let &[t] = &node.outputs[..] else { return None };
        if !heavy || t < 0 || graph.outputs.contains(&t) || readers[t as usize].0 != 1 {
            return None;
        }
        let j = readers[t as usize].1;
        let next = &graph.nodes[j];
        let &[u] = &next.outputs[..] else { return None };
        let simple = in_place::elementwise(&next.op) || one_of(&AFFINE, &next.op);
        let constant = |&x: &i32| x < 0 || x == t || graph.tensors[x as usize].kind == TensorKind::Const;
        let same = u >= 0 && graph.tensors[t as usize].bytes == graph.tensors[u as usize].bytes;
        (j > i && simple && same && !one_of(&["CAST"], &next.op) && next.inputs.iter().all(constant)).then_some((i, j))
    })
}

/// The producer writes what the reader wrote; the reader is gone.
fn join(graph: &mut Subgraph, (i, j): (usize, usize)) {
    let between = graph.nodes[i].outputs[0] as usize;
    graph.nodes[i].outputs = graph.nodes[j].outputs.clone();
    graph.tensors[between].kind = TensorKind::Unused;
    graph.nodes.remove(j);
}
