//! How many rows of its input an operator needs for some rows of its output.

use super::in_place::elementwise;
use crate::model::Subgraph;

/// Rows of a node's first input and of its output, and those of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub into: u64,
    pub out: u64,
    pub window: u64,
}

impl Rows {
    /// Rows of the input for `rows` of the output.
    pub fn needed(&self, rows: u64) -> u64 {
        let (into, out) = (self.into.max(1), self.out.max(1));
        // A transposed convolution has more rows after it than before.
        let reach = if out > into { rows.div_ceil(out / into) } else { (rows - 1) * into.div_ceil(out) + 1 };
        (reach + self.window - 1).min(into)
    }
}

/// Operators with a window, TFLite's names and ONNX's.
const WINDOW: [&str; 11] = [
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "TRANSPOSE_CONV",
    "MAX_POOL_2D",
    "AVERAGE_POOL_2D",
    "PAD",
    "MIRROR_PAD",
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
];

/// Whether a stripe of the output needs little more than a stripe of the input.
pub(super) fn spatial(op: &str) -> bool {
    WINDOW.iter().any(|n| n.eq_ignore_ascii_case(op)) || elementwise(op)
}

/// The rows of node `n`; `None` where a shape is unknown or has no rows.
pub(super) fn rows(graph: &Subgraph, n: usize) -> Option<Rows> {
    let node = &graph.nodes[n];
    // Only TFLite's names are in capitals throughout, and its tensors are NHWC; ONNX's are NCHW, kernels OIHW.
    let onnx = node.op.chars().any(|c| c.is_ascii_lowercase());
    let shape = |t: i32| graph.tensors.get(usize::try_from(t).ok()?)?.shape.as_deref();
    let height = |t: i32| match shape(t)? {
        s if s.len() == 4 => u64::try_from(s[if onnx { 2 } else { 1 }]).ok().filter(|&h| h > 0),
        _ => None,
    };
    let inputs = node.inputs.iter().copied();
    // TRANSPOSE_CONV lists the shape of its output and the kernel first.
    let data = if &*node.op == "TRANSPOSE_CONV" { inputs.clone().nth(2) } else { inputs.clone().next() }?;
    let (into, out) = (height(data)?, height(*node.outputs.first()?)?);
    let kernel = || inputs.clone().nth(1).and_then(height);
    let named = |list: &[&str]| list.iter().any(|name| name.eq_ignore_ascii_case(&node.op));
    let window = match () {
        () if named(&["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "Conv", "ConvTranspose"]) => kernel()?,
        // A pool's window is in its options, which tables do not hold: the usual ones.
        () if named(&["MAX_POOL_2D", "AVERAGE_POOL_2D", "MaxPool", "AveragePool"]) => into.div_ceil(out).max(3),
        () if named(&["PAD", "MIRROR_PAD"]) => 1,
        () => 1,
    };
    Some(Rows { into, out, window })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reaches_over_its_stripe() {
        // 3x3, stride 2: 7 rows out of 56 need 15 of 112.
        assert_eq!(Rows { into: 112, out: 56, window: 3 }.needed(7), 15);
        assert_eq!(Rows { into: 56, out: 56, window: 1 }.needed(14), 14);
        assert_eq!(Rows { into: 56, out: 56, window: 3 }.needed(56), 56, "no more than there are");
        // Twice as many rows after it.
        assert_eq!(Rows { into: 28, out: 56, window: 2 }.needed(14), 8);
    }
}
