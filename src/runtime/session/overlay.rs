//! A graph as the session plans it: the caller's graph with today's sizes, bindings and scratch requests laid over it.

use crate::error::{Error, Subject};
use crate::graph::owned::Graph;
use crate::graph::tables::{Allocation, Node, Tables, Tensor};
use crate::runtime::zone::zoned;
use crate::units::{Align, Bytes};

/// A tensor by subgraph and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId {
    /// The subgraph.
    pub subgraph: u32,
    /// The tensor in it.
    pub tensor: u32,
}

impl TensorId {
    /// Tensor `tensor` of subgraph `subgraph`.
    pub const fn new(subgraph: u32, tensor: u32) -> TensorId {
        TensorId { subgraph, tensor }
    }

    /// Names the tensor, and its subgraph where that is not the first.
    pub(crate) fn name(self, e: Error) -> Error {
        let e = e.of(Subject::Tensor(self.tensor));
        match self.subgraph {
            0 => e,
            g => e.and(Subject::Subgraph(g)),
        }
    }
}

/// What lies over one subgraph. Scratch requests are tensors behind the graph's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// Bytes of every tensor, scratch included.
    pub sizes: Vec<Option<Bytes>>,
    /// Tensors whose bytes are elsewhere.
    pub elsewhere: Vec<bool>,
    /// The alignments of scratch requests.
    pub scratch: Vec<Align>,
    /// For a node with scratch requests: its temporaries, the graph's own first. In order of node.
    pub temporaries: Vec<(u32, Vec<i32>)>,
}

impl Sheet {
    pub fn of(graph: &Graph) -> Sheet {
        let n = graph.tensor_count();
        Sheet {
            sizes: (0..n).map(|t| graph.tensor(t).bytes).collect(),
            elsewhere: vec![false; n],
            scratch: Vec::new(),
            temporaries: Vec::new(),
        }
    }

    /// Adds a scratch tensor to `node` and returns its index.
    pub fn add_scratch(&mut self, graph: &Graph, node: usize, bytes: Bytes, align: Align) -> Result<u32, Error> {
        let index = self.sizes.len();
        if index >= i32::MAX as usize {
            return Err(Error::overflow("a graph holds at most 2^31 - 1 tensors"));
        }
        self.sizes.push(Some(bytes));
        self.elsewhere.push(false);
        self.scratch.push(align);
        let at = match self.temporaries.binary_search_by_key(&(node as u32), |t| t.0) {
            Ok(at) => at,
            Err(at) => {
                self.temporaries.insert(at, (node as u32, graph.node(node).temporaries.to_vec()));
                at
            }
        };
        self.temporaries[at].1.push(index as i32);
        Ok(index as u32)
    }
}

/// One subgraph under its sheet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub graph: &'a Graph,
    pub sheet: &'a Sheet,
    /// Whether there is a guard zone behind every tensor.
    pub guard: bool,
    /// A node whose alignment is left out, to see what it costs.
    pub without: Option<u32>,
}

impl Tables for View<'_> {
    fn tensor_count(&self) -> usize {
        self.sheet.sizes.len()
    }

    fn tensor(&self, index: usize) -> Tensor {
        let own = self.graph.tensor_count();
        let mut t = if index < own {
            self.graph.tensor(index)
        } else {
            Tensor { align: Some(self.sheet.scratch[index - own]), ..Tensor::default() }
        };
        t.bytes = self.sheet.sizes[index];
        if self.sheet.elsewhere[index] {
            t.allocation = Allocation::Custom;
        } else if self.guard && matches!(t.allocation, Allocation::ArenaRw | Allocation::ArenaRwPersistent) {
            t.bytes = t.bytes.map(zoned);
        }
        t
    }

    fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    fn node(&self, index: usize) -> Node<'_> {
        let mut node = self.graph.node(index);
        if let Ok(at) = self.sheet.temporaries.binary_search_by_key(&(index as u32), |t| t.0) {
            node.temporaries = &self.sheet.temporaries[at].1;
        }
        if self.without == Some(index as u32) {
            node.align = None;
        }
        node
    }

    fn inputs(&self) -> &[i32] {
        self.graph.inputs()
    }

    fn outputs(&self) -> &[i32] {
        self.graph.outputs()
    }

    fn variables(&self) -> &[i32] {
        self.graph.variables()
    }
}
