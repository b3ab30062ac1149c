//! What an engine's kernels allow beyond TFLite's, by the names of operators.

use super::error::{quoted, Position, ReadError};
use super::tensor::{Node, Subgraph};
use super::Model;
use crate::graph::tables::{InPlace, View};

/// Operators that read each element before they write there, and no other after.
const ELEMENTWISE: [&str; 38] = [
    "ABS",
    "ADD",
    "CAST",
    "CEIL",
    "COS",
    "DEQUANTIZE",
    "DIV",
    "ELU",
    "EXP",
    "FLOOR",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "GELU",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOG",
    "LOGISTIC",
    "MAXIMUM",
    "MINIMUM",
    "MUL",
    "NEG",
    "POW",
    "PRELU",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "ROUND",
    "RSQRT",
    "SELECT_V2",
    "SIGN",
    "SIN",
    "SQRT",
    "SQUARE",
    "SQUARED_DIFFERENCE",
    "SUB",
    "TANH",
];
/// Operators that hand their first input's bytes on as they are.
const RESHAPES: [&str; 4] = ["BITCAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE"];

/// In what way an operator of this name can share.
fn form(op: &str) -> Option<&'static str> {
    match op {
        _ if ELEMENTWISE.contains(&op) => Some("any dying input"),
        _ if RESHAPES.contains(&op) => Some("view"),
        "SPLIT" | "SPLIT_V" => Some("views along the outer dimension"),
        "CONCATENATION" => Some("inputs within the output along the outer dimension"),
        _ => None,
    }
}

impl Model {
    /// Declares that the engine's kernels of these operators allow what their kind can share: element by element over any
    /// input whose last use they are; reshapes and splits as views; concatenation with its inputs inside the output.
    /// `all` stands for every operator that can. Splits and concatenations count where the shapes show that they are along
    /// the outer dimension. Returns how many nodes were declared.
    pub fn allow_in_place(&mut self, ops: &[String]) -> Result<usize, ReadError> {
        let names: Vec<String> = ops.iter().map(|o| o.trim().to_ascii_uppercase()).collect();
        if let Some(bad) = names.iter().find(|n| *n != "ALL" && form(n).is_none()) {
            let what = format!("operator {} has no form of sharing beyond TFLite's", quoted(bad));
            return Err(ReadError::new(Position::Whole, what));
        }
        let all = names.iter().any(|n| n == "ALL");
        let mut count = 0;
        for graph in &mut self.subgraphs {
            for n in 0..graph.nodes.len() {
                let op = graph.nodes[n].op.clone();
                if form(&op).is_some() && (all || names.iter().any(|name| **name == *op)) {
                    let view = view(graph, &graph.nodes[n]);
                    let node = &mut graph.nodes[n];
                    if ELEMENTWISE.contains(&&*op) {
                        // TFLite's own flags stay: a plan by them alone is what this one must beat.
                        let flags = node.inplace.unwrap_or_else(|| InPlace::of_tflite_op(&op));
                        node.inplace = Some(InPlace(flags.0 | InPlace::ANY_INPUT));
                    }
                    node.view = view;
                    count += usize::from(node.inplace.is_some() || view != View::None);
                }
            }
        }
        Ok(count)
    }
}

fn view(graph: &Subgraph, node: &Node) -> View {
    let shape = |t: &i32| graph.tensors.get(usize::try_from(*t).ok()?)?.shape.as_deref();
    // The dimension in which the part differs from the whole, if no dimension before it has more than one element.
    let outer = |whole: Option<&[i64]>, part: Option<&[i64]>| {
        let (Some(a), Some(b)) = (whole, part) else { return false };
        let differ: Vec<usize> = (0..a.len()).filter(|&i| a.len() == b.len() && a[i] != b[i]).collect();
        match differ[..] {
            [] => a == b,
            [i] => a[..i].iter().all(|&d| d == 1),
            _ => false,
        }
    };
    match &*node.op {
        op if RESHAPES.contains(&op) => View::Outputs { input: 0, offset: 0 },
        op @ ("SPLIT" | "SPLIT_V") => {
            let input = u32::from(op == "SPLIT");
            let whole = node.inputs.get(input as usize).and_then(shape);
            let fits = node.outputs.iter().all(|o| outer(whole, shape(o)));
            if fits {
                View::Outputs { input, offset: 0 }
            } else {
                View::None
            }
        }
        "CONCATENATION" => {
            let whole = node.outputs.first().and_then(shape);
            let fits = node.inputs.iter().all(|x| outer(whole, shape(x)));
            if fits {
                View::Inputs { offset: 0 }
            } else {
                View::None
            }
        }
        _ => View::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tensor;
    use super::*;

    fn model(op: &str, inputs: &[&[i64]], output: &[i64]) -> Model {
        let shapes = inputs.iter().chain([&output]);
        let tensors = shapes.map(|s| Tensor { shape: Some(s.to_vec()), ..Tensor::default() }).collect();
        let node = Node {
            op: op.into(),
            inputs: (0..inputs.len() as i32).collect(),
            outputs: vec![inputs.len() as i32],
            ..Node::default()
        };
        Model { subgraphs: vec![Subgraph { tensors, nodes: vec![node], ..Subgraph::default() }], ..Model::default() }
    }

    #[test]
    fn only_the_outer_dimension_counts() {
        let all = ["all".to_string()];
        for (op, inputs, output, found) in [
            ("CONCATENATION", &[&[1, 2, 3][..], &[1, 4, 3]][..], &[1, 6, 3][..], View::Inputs { offset: 0 }),
            ("CONCATENATION", &[&[2, 2, 3], &[2, 4, 3]], &[2, 6, 3], View::None),
            ("CONCATENATION", &[&[1, 1, 3], &[1, 1, 3]], &[1, 1, 6], View::Inputs { offset: 0 }),
            ("SPLIT", &[&[], &[4, 6]], &[2, 6], View::Outputs { input: 1, offset: 0 }),
            ("SPLIT", &[&[], &[4, 6]], &[4, 3], View::None),
            ("RESHAPE", &[&[4, 6]], &[24], View::Outputs { input: 0, offset: 0 }),
            ("CONV_2D", &[&[4, 6]], &[4, 6], View::None),
        ] {
            let mut m = model(op, inputs, output);
            m.allow_in_place(&all).unwrap();
            assert_eq!(m.subgraphs[0].nodes[0].view, found, "{op} {inputs:?}");
        }
        let mut m = model("RELU", &[&[4]], &[4]);
        assert_eq!(m.allow_in_place(&["tanh".into()]), Ok(0));
        assert_eq!(m.allow_in_place(&["relu".into()]), Ok(1));
        assert!(m.subgraphs[0].nodes[0].inplace.is_some_and(InPlace::any_input));
        assert!(m.allow_in_place(&["CONV_2D".into()]).is_err());
    }
}
