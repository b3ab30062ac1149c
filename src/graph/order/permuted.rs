//! A graph whose nodes run in another order.

use super::super::tables::{Node, Tables, Tensor};

/// `graph` with its nodes in `order`.
#[derive(Clone, Copy, Debug)]
pub struct Permuted<'a, T: ?Sized> {
    /// The graph.
    pub graph: &'a T,
    /// Its nodes, each once, in the order to run.
    pub order: &'a [u32],
}

impl<T: Tables + ?Sized> Tables for Permuted<'_, T> {
    fn tensor_count(&self) -> usize {
        self.graph.tensor_count()
    }

    fn tensor(&self, index: usize) -> Tensor {
        self.graph.tensor(index)
    }

    fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    fn node(&self, index: usize) -> Node<'_> {
        self.graph.node(self.order[index] as usize)
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
