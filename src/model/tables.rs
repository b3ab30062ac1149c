//! A model's graph as the tables the analysis reads.

use super::dtype::DType;
use super::ops::CallKind;
use super::tensor::{Subgraph, Tensor, TensorKind};
use crate::graph::tables::{self, Allocation, Call, InPlace, Tables};

impl Tensor {
    /// Where its memory comes from.
    ///
    /// A tensor of the runtime's own types gets no arena bytes; resources are counted in
    /// [`Model::resources`](super::Model::resources). One marked dynamic is planned, since its size is known here.
    pub fn allocation(&self) -> Allocation {
        match (self.kind, self.dtype) {
            (TensorKind::Const, _) => Allocation::MmapRo,
            (TensorKind::Input, _) if self.data.is_some() => Allocation::MmapRo,
            (TensorKind::Outer | TensorKind::Unused | TensorKind::Undef, _) => Allocation::None,
            (_, DType::Resource) => Allocation::None,
            (_, DType::String) => Allocation::Dynamic,
            (_, DType::Variant) => Allocation::VariantObject,
            (TensorKind::Var | TensorKind::Persist, _) => Allocation::ArenaRwPersistent,
            (TensorKind::Input | TensorKind::Inter, _) => Allocation::ArenaRw,
        }
    }
}

impl Tables for Subgraph {
    fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    fn tensor(&self, index: usize) -> tables::Tensor {
        let t = &self.tensors[index];
        tables::Tensor { bytes: t.bytes, allocation: t.allocation(), align: None, variable: t.kind == TensorKind::Var }
    }

    fn node_count(&self) -> usize {
        self.nodes.len()
    }

    fn node(&self, index: usize) -> tables::Node<'_> {
        let n = &self.nodes[index];
        tables::Node {
            inputs: &n.inputs,
            outputs: &n.outputs,
            temporaries: &n.temporaries,
            inplace: n.inplace.unwrap_or_else(|| InPlace::of_tflite_op(&n.op)),
            view: n.view,
            align: None,
            call: match n.call {
                CallKind::None => Call::None,
                CallKind::Branch => Call::Branch(&n.subgraphs),
                CallKind::Loop => Call::Loop(&n.subgraphs),
                CallKind::Sequence => Call::Sequence(&n.subgraphs),
            },
        }
    }

    fn inputs(&self) -> &[i32] {
        &self.inputs
    }

    fn outputs(&self) -> &[i32] {
        &self.outputs
    }
}
