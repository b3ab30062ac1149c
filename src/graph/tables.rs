//! Borrowed tensor and node tables: what every graph, whatever its host, is read through.

use crate::error::Error;
use crate::units::{Align, Bytes};

/// Where a tensor's memory comes from. The numbers are TfLite's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum Allocation {
    /// No memory.
    None = 0,
    /// Read-only data in the model file.
    MmapRo = 1,
    /// The reusable arena.
    #[default]
    ArenaRw = 2,
    /// The persistent arena: never reused, contents kept.
    ArenaRwPersistent = 3,
    /// Allocated by the runtime when its size is known.
    Dynamic = 4,
    /// Read-only, computed once while the graph is prepared.
    PersistentRo = 5,
    /// Memory the caller bound.
    Custom = 6,
    /// A C++ object.
    VariantObject = 7,
    /// Memory the CPU does not address.
    NonCpu = 8,
}

impl TryFrom<u32> for Allocation {
    type Error = Error;

    fn try_from(number: u32) -> Result<Allocation, Error> {
        Ok(match number {
            0 => Allocation::None,
            1 => Allocation::MmapRo,
            2 => Allocation::ArenaRw,
            3 => Allocation::ArenaRwPersistent,
            4 => Allocation::Dynamic,
            5 => Allocation::PersistentRo,
            6 => Allocation::Custom,
            7 => Allocation::VariantObject,
            8 => Allocation::NonCpu,
            _ => {
                return Err(Error::argument("the allocation type is none of 0 to 8").needed(u64::from(number)));
            }
        })
    }
}

/// Which inputs a node's first output may take over. The bits are those of TfLite's `inplace_operator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InPlace(pub u64);

impl InPlace {
    /// No sharing.
    pub const NONE: InPlace = InPlace(0);
    /// The node hands the bytes on unchanged (a reshape).
    pub const DATA_UNMODIFIED: u64 = 1;
    /// Input 0 may be shared; inputs 1 and 2 are the next two bits.
    pub const INPUT_0: u64 = 4;
    /// Input 1 may be shared.
    pub const INPUT_1: u64 = 8;
    /// Input 2 may be shared.
    pub const INPUT_2: u64 = 16;

    /// The first output may take over any input whose last use the node is: the kernel reads each element before it writes
    /// there. Not one of TfLite's bits.
    pub const ANY_INPUT: u64 = 1 << 32;

    /// Whether any dying input may be written over.
    pub const fn any_input(self) -> bool {
        self.0 & Self::ANY_INPUT != 0
    }

    /// Whether input `i` may be shared.
    pub const fn shares(self, i: usize) -> bool {
        i < 3 && self.0 & (Self::INPUT_0 << i) != 0
    }

    /// Whether the bytes are handed on unchanged.
    pub const fn unmodified(self) -> bool {
        self.0 & Self::DATA_UNMODIFIED != 0
    }

    /// What TFLite's own kernels declare, by operator name.
    pub fn of_tflite_op(name: &str) -> InPlace {
        match name {
            "ADD" | "SUB" | "MUL" | "DIV" => InPlace(Self::INPUT_0 | Self::INPUT_1),
            "SOFTMAX" | "DYNAMIC_UPDATE_SLICE" => InPlace(Self::INPUT_0),
            "RESHAPE" | "EXPAND_DIMS" | "SQUEEZE" | "BITCAST" => InPlace(Self::INPUT_0 | Self::DATA_UNMODIFIED),
            _ => Self::NONE,
        }
    }
}

/// Where a node's tensors may lie in one another, because its kernel looks at the pointers: it copies nothing where the
/// bytes are in place already, and copies as usual where they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum View {
    /// Nowhere.
    #[default]
    None,
    /// The outputs lie one after the other in an input, and their bytes are the input's: a reshape, a squeeze, a slice or
    /// a split along the outer dimension.
    Outputs {
        /// Which of the node's inputs.
        input: u32,
        /// The first output's first byte in it.
        offset: Bytes,
    },
    /// The inputs lie one after the other in the first output: a concatenation along the outer dimension.
    Inputs {
        /// The first input's first byte in it.
        offset: Bytes,
    },
}

/// The subgraphs a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Call<'a> {
    /// None.
    #[default]
    None,
    /// One of them (IF: then, else). They exclude each other.
    Branch(&'a [u32]),
    /// All of them, over and over (WHILE: condition, body).
    Loop(&'a [u32]),
    /// All of them, once, one after the other (CALL, CALL_ONCE, a composite's decomposition).
    Sequence(&'a [u32]),
}

impl<'a> Call<'a> {
    /// The subgraphs in the operator's own order.
    pub const fn subgraphs(self) -> &'a [u32] {
        match self {
            Call::None => &[],
            Call::Branch(s) | Call::Loop(s) | Call::Sequence(s) => s,
        }
    }
}

/// A tensor as planning sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tensor {
    /// Size in bytes, `None` while unknown.
    pub bytes: Option<Bytes>,
    /// Where its memory comes from.
    pub allocation: Allocation,
    /// The alignment it asks for on top of the plan's; `None` for no wish of its own.
    pub align: Option<Align>,
    /// Keeps its value between runs (TfLite's `is_variable`).
    pub variable: bool,
}

/// A node as planning sees it. Tensor lists hold indices; -1 stands for an absent optional tensor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node<'a> {
    /// Tensors read.
    pub inputs: &'a [i32],
    /// Tensors written.
    pub outputs: &'a [i32],
    /// Tensors alive during this node only.
    pub temporaries: &'a [i32],
    /// Which inputs the first output may take over.
    pub inplace: InPlace,
    /// Which of its tensors may lie in one another.
    pub view: View,
    /// The alignment the node's kernel asks of every tensor it touches.
    pub align: Option<Align>,
    /// Subgraphs it runs.
    pub call: Call<'a>,
}

/// One graph. Nodes are in execution order.
pub trait Tables {
    /// The number of tensors.
    fn tensor_count(&self) -> usize;
    /// Tensor `index`, below [`Tables::tensor_count`].
    fn tensor(&self, index: usize) -> Tensor;
    /// The number of nodes.
    fn node_count(&self) -> usize;
    /// Node `index`, below [`Tables::node_count`].
    fn node(&self, index: usize) -> Node<'_>;
    /// The graph's inputs.
    fn inputs(&self) -> &[i32];
    /// The graph's outputs.
    fn outputs(&self) -> &[i32];
    /// Tensors kept between runs besides those marked `variable`.
    fn variables(&self) -> &[i32] {
        &[]
    }
}

/// Checks every index of `graph` once, so that the analysis can trust them: tensors are -1 or below the count.
pub fn validate<T: Tables + ?Sized>(graph: &T) -> Result<(), Error> {
    let n = graph.tensor_count();
    if n > i32::MAX as usize || graph.node_count() > i32::MAX as usize {
        return Err(Error::overflow("a graph holds at most 2^31 - 1 tensors and nodes"));
    }
    let bad = |list: &[i32]| list.iter().copied().find(|&t| t < -1 || (t >= 0 && t as usize >= n));
    let refuse = |reason, t: i32| Error::argument(reason).needed(t as i64 as u64).available(n as u64);
    if let Some(t) = bad(graph.inputs()) {
        return Err(refuse("a graph input is not the index of a tensor", t));
    }
    if let Some(t) = bad(graph.outputs()) {
        return Err(refuse("a graph output is not the index of a tensor", t));
    }
    if let Some(t) = bad(graph.variables()).or_else(|| graph.variables().iter().copied().find(|&t| t < 0)) {
        return Err(refuse("a variable is not the index of a tensor", t));
    }
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        for (list, reason) in [
            (node.inputs, "a node input is not the index of a tensor"),
            (node.outputs, "a node output is not the index of a tensor"),
            (node.temporaries, "a temporary is not the index of a tensor"),
        ] {
            if let Some(t) = bad(list) {
                return Err(refuse(reason, t).node(i));
            }
        }
    }
    Ok(())
}
