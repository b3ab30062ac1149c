//! A graph that owns its tables: what a caller builds tensor by tensor, or copies from another engine's.

use alloc::vec::Vec;

use super::tables::{Call, InPlace, Node, Tables, Tensor, View};
use crate::error::Error;
use crate::units::Align;

/// How a node runs subgraphs; the owned form of [`Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CallKind {
    /// It runs none.
    #[default]
    None,
    /// One of them.
    Branch,
    /// All of them, over and over.
    Loop,
    /// All of them, once.
    Sequence,
}

/// A node to add: as [`Node`], with the kind of call apart from its subgraphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSpec<'a> {
    /// Tensors read; -1 for an absent one.
    pub inputs: &'a [i32],
    /// Tensors written.
    pub outputs: &'a [i32],
    /// Tensors alive during this node only.
    pub temporaries: &'a [i32],
    /// Which inputs the first output may take over.
    pub inplace: InPlace,
    /// Which of its tensors may lie in one another.
    pub view: View,
    /// The alignment the kernel asks of every tensor it touches.
    pub align: Option<Align>,
    /// How it runs `subgraphs`.
    pub call: CallKind,
    /// Subgraphs it runs.
    pub subgraphs: &'a [u32],
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// Ends of the node's inputs, outputs and temporaries in `lists`; it begins where the node before ends.
    ends: [usize; 3],
    /// End of its subgraphs in `calls`.
    calls: usize,
    inplace: InPlace,
    view: View,
    align: Option<Align>,
    call: CallKind,
}

/// Tensors and nodes in flat arrays.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    tensors: Vec<Tensor>,
    rows: Vec<Row>,
    lists: Vec<i32>,
    calls: Vec<u32>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    variables: Vec<i32>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// A copy of any host's tables, validated.
    pub fn copy_of<T: Tables + ?Sized>(tables: &T) -> Result<Graph, Error> {
        super::tables::validate(tables)?;
        let mut g = Graph::new();
        g.tensors.extend((0..tables.tensor_count()).map(|t| tables.tensor(t)));
        for i in 0..tables.node_count() {
            let n = tables.node(i);
            let call = match n.call {
                Call::None => CallKind::None,
                Call::Branch(_) => CallKind::Branch,
                Call::Loop(_) => CallKind::Loop,
                Call::Sequence(_) => CallKind::Sequence,
            };
            g.add_node(&NodeSpec {
                inputs: n.inputs,
                outputs: n.outputs,
                temporaries: n.temporaries,
                inplace: n.inplace,
                view: n.view,
                align: n.align,
                call,
                subgraphs: n.call.subgraphs(),
            })?;
        }
        g.inputs = tables.inputs().to_vec();
        g.outputs = tables.outputs().to_vec();
        g.variables = tables.variables().to_vec();
        Ok(g)
    }

    /// Adds a tensor and returns its index.
    pub fn add_tensor(&mut self, tensor: Tensor) -> Result<u32, Error> {
        if self.tensors.len() >= i32::MAX as usize {
            return Err(Error::overflow("a graph holds at most 2^31 - 1 tensors"));
        }
        self.tensors.push(tensor);
        Ok(self.tensors.len() as u32 - 1)
    }

    /// Adds a node at the end of the execution order and returns its index. Tensors may be added later than the nodes
    /// that use them: indices are checked when the graph is planned.
    pub fn add_node(&mut self, node: &NodeSpec<'_>) -> Result<u32, Error> {
        if self.rows.len() >= i32::MAX as usize {
            return Err(Error::overflow("a graph holds at most 2^31 - 1 nodes"));
        }
        if (node.call == CallKind::None) != node.subgraphs.is_empty() {
            return Err(Error::argument("a node runs subgraphs exactly where its kind of call is not none")
                .node(self.rows.len()));
        }
        let mut ends = [0; 3];
        for (end, list) in ends.iter_mut().zip([node.inputs, node.outputs, node.temporaries]) {
            self.lists.extend_from_slice(list);
            *end = self.lists.len();
        }
        self.calls.extend_from_slice(node.subgraphs);
        self.rows.push(Row {
            ends,
            calls: self.calls.len(),
            inplace: node.inplace,
            view: node.view,
            align: node.align,
            call: node.call,
        });
        Ok(self.rows.len() as u32 - 1)
    }

    /// Replaces the graph's inputs.
    pub fn set_inputs(&mut self, list: &[i32]) {
        self.inputs = list.to_vec();
    }

    /// Replaces the graph's outputs.
    pub fn set_outputs(&mut self, list: &[i32]) {
        self.outputs = list.to_vec();
    }

    /// Replaces the list of variables.
    pub fn set_variables(&mut self, list: &[i32]) {
        self.variables = list.to_vec();
    }

    /// A tensor to change; `Argument` where there is none of that index.
    pub fn tensor_mut(&mut self, index: usize) -> Result<&mut Tensor, Error> {
        let count = self.tensors.len() as u64;
        self.tensors.get_mut(index).ok_or(Error::argument("there is no such tensor").tensor(index).available(count))
    }
}

impl Tables for Graph {
    fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    fn tensor(&self, index: usize) -> Tensor {
        self.tensors[index]
    }

    fn node_count(&self) -> usize {
        self.rows.len()
    }

    fn node(&self, index: usize) -> Node<'_> {
        let (from, calls) = match index {
            0 => (0, 0),
            i => (self.rows[i - 1].ends[2], self.rows[i - 1].calls),
        };
        let row = &self.rows[index];
        let subgraphs = &self.calls[calls..row.calls];
        Node {
            inputs: &self.lists[from..row.ends[0]],
            outputs: &self.lists[row.ends[0]..row.ends[1]],
            temporaries: &self.lists[row.ends[1]..row.ends[2]],
            inplace: row.inplace,
            view: row.view,
            align: row.align,
            call: match row.call {
                CallKind::None => Call::None,
                CallKind::Branch => Call::Branch(subgraphs),
                CallKind::Loop => Call::Loop(subgraphs),
                CallKind::Sequence => Call::Sequence(subgraphs),
            },
        }
    }

    fn inputs(&self) -> &[i32] {
        &self.inputs
    }

    fn outputs(&self) -> &[i32] {
        &self.outputs
    }

    fn variables(&self) -> &[i32] {
        &self.variables
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::{op, Small};
    use super::*;

    #[test]
    fn a_copy_reads_like_the_original() {
        let mut looped = op(&[1, -1], &[2]);
        looped.looped = vec![1, 2];
        let small = Small::new(&[8, 16, 32], &[0], &[2], &[op(&[0], &[1]).temporaries(&[2, 1]), looped, op(&[], &[])]);
        let g = Graph::copy_of(&small).unwrap();
        assert_eq!(g.node_count(), 3);
        for i in 0..3 {
            let (a, b) = (small.node(i), g.node(i));
            assert_eq!((a.inputs, a.outputs, a.temporaries, a.call), (b.inputs, b.outputs, b.temporaries, b.call));
        }
        assert_eq!((g.inputs(), g.outputs(), g.tensor(1).bytes), (&[0][..], &[2][..], Some(16)));
        let bad = NodeSpec { subgraphs: &[1], ..NodeSpec::default() };
        assert!(Graph::new().add_node(&bad).is_err());
    }
}
