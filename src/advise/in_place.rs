//! Operators that write over an input that dies there: switched on, and marks that TFLite does not set.

use super::{count, some_of, Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness::Options;
use crate::graph::lower::lower;
use crate::graph::tables::{InPlace, Node, Tables, Tensor};
use crate::model::Subgraph;

const HOW: &str = "Use kernels that read and write one buffer, and set inplace_operator in their registration \
                   (TfLiteRegistration), or MayInplace in an ONNX Runtime kernel definition.";

/// Operators whose every output element depends on the input element at the same place alone: TFLite's names, and ONNX's
/// in capitals where they differ.
const ELEMENTWISE: [&str; 47] = [
    "ABS",
    "ADD",
    "DIV",
    "MUL",
    "SUB",
    "CAST",
    "CEIL",
    "CLIP",
    "COS",
    "ELU",
    "ERF",
    "EXP",
    "FLOOR",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "GELU",
    "HARDSIGMOID",
    "HARDSWISH",
    "HARD_SWISH",
    "LEAKYRELU",
    "LEAKY_RELU",
    "LOG",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "LOGICAL_OR",
    "LOGISTIC",
    "MAXIMUM",
    "MINIMUM",
    "NEG",
    "POW",
    "PRELU",
    "QUANTIZE",
    "RECIPROCAL",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "ROUND",
    "RSQRT",
    "SIGMOID",
    "SIGN",
    "SIN",
    "SOFTPLUS",
    "SQRT",
    "SQUARE",
    "SQUARED_DIFFERENCE",
    "TANH",
];

/// Whether `op` works element by element.
pub(super) fn elementwise(op: &str) -> bool {
    ELEMENTWISE.iter().any(|e| e.eq_ignore_ascii_case(op))
}

/// A graph with the marks that are missing.
struct Marked<'a>(&'a Subgraph);

impl Tables for Marked<'_> {
    fn tensor_count(&self) -> usize {
        self.0.tensor_count()
    }

    fn tensor(&self, index: usize) -> Tensor {
        self.0.tensor(index)
    }

    fn node_count(&self) -> usize {
        self.0.node_count()
    }

    fn node(&self, index: usize) -> Node<'_> {
        let node = self.0.node(index);
        match node.inplace {
            InPlace::NONE if elementwise(&self.0.nodes[index].op) => {
                Node { inplace: InPlace(InPlace::INPUT_0 | InPlace::INPUT_1), ..node }
            }
            _ => node,
        }
    }

    fn inputs(&self) -> &[i32] {
        self.0.inputs()
    }

    fn outputs(&self) -> &[i32] {
        self.0.outputs()
    }
}

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let (on, flag) = (case.options.in_place, if case.options.in_place { "--no-in-place" } else { "--in-place" });
    let other = Case { options: Options { in_place: !on, ..case.options }, ..*case }.now()?;
    let switch = if on && other.arena >= now.arena {
        let more = other.arena - now.arena;
        Pulled::nothing("in-place", format!("on already: without it the arena takes {more} B more"))
    } else if on {
        let why = "the larger blocks of operators in place pack worse here than separate ones".into();
        Pulled::new("in-place", other, why, "Keep operators out of place (kTfLiteInplaceOpNone).").option(flag)
    } else {
        Pulled::new("in-place", other, "operators write over an input that dies there".into(), HOW).option(flag)
    };
    Ok(vec![switch, marks(case)?, kernels(case)?])
}

/// All that kernels of an engine's own may share, which is more than TFLite's marks can say.
fn kernels(case: &Case<'_>) -> Result<Pulled, Error> {
    const LEVER: &str = "in-place-kernels";
    const HOW: &str = "Kernels of your own that write over any input that dies, treat RESHAPE and SPLIT as views, and \
                       compute the inputs of a CONCATENATION inside its output; arenite's node tables take such marks, \
                       TFLite's do not.";
    if !case.options.in_place || case.options.keep_all {
        return Ok(Pulled::nothing(LEVER, "does nothing here: in-place sharing is off"));
    }
    let mut model = case.model.clone();
    if model.allow_in_place(&["all".into()]).is_err() {
        return Ok(Pulled::nothing(LEVER, "does nothing here: the model cannot be marked"));
    }
    let why = "elementwise operators over any input that dies, views of outputs and inputs along the outer dimension";
    Ok(Pulled::new(LEVER, case.edited(&model)?, why.into(), HOW).option("--inplace all"))
}

/// The marks that are missing, all at once.
fn marks(case: &Case<'_>) -> Result<Pulled, Error> {
    const LEVER: &str = "in-place-marks";
    let graphs: Vec<Marked> = case.model.subgraphs.iter().map(Marked).collect();
    let on = Case { options: Options { in_place: true, ..case.options }, ..*case };
    let mut ops: Vec<String> = Vec::new();
    for &entry in on.entries {
        let marked = lower(&graphs, entry, &on.options, &[])?;
        let plain = lower(&on.model.subgraphs, entry, &on.options, &[])?;
        for (g, graph) in on.model.subgraphs.iter().enumerate() {
            // What now has another root is what a new mark lets share.
            for (n, node) in graph.nodes.iter().enumerate().filter(|(_, n)| elementwise(&n.op)) {
                let Some(&t) = node.outputs.first().filter(|&&t| t >= 0) else { continue };
                if marked.roots[g][t as usize] != plain.roots[g][t as usize] {
                    ops.push(on.node(g, n));
                }
            }
        }
    }
    if ops.is_empty() {
        return Ok(Pulled::nothing(LEVER, "does nothing here: no unmarked operator could write over its input"));
    }
    let why = format!(
        "{} without an in-place mark could write over an input: {}",
        count(ops.len(), "operator"),
        some_of(&ops)
    );
    Ok(Pulled::new(LEVER, on.planned(&graphs, on.model)?, why, HOW))
}
