//! A graph without called subgraphs as rows for the greedy rules, without a heap.

use super::inplace::{honoured, share, Share};
use super::liveness::{lifetimes, Home, Lifetime, Options, Pin};
use super::tables::Tables;
use crate::error::Error;
use crate::planner::greedy::Row;
use crate::units::Align;

/// What [`rows`] works in and gives back: slices of at least one entry per tensor.
#[derive(Debug)]
pub struct Workspace<'a> {
    /// Each tensor's own lifetime.
    pub lifetimes: &'a mut [Lifetime],
    /// Each tensor's root.
    pub shares: &'a mut [Share],
    /// Row `i` is tensor `i`.
    pub rows: &'a mut [Row],
}

/// Lifetimes, roots and rows of a flat graph, all over the caller's slices.
///
/// A tensor without arena bytes, and one that uses its root's bytes, becomes a row of 0 bytes, so that row `i` is
/// tensor `i`. The root's row lives as long as its whole chain. Place the rows with [`crate::planner::greedy::place`];
/// [`home_row`] says whose offset a tensor has.
///
/// Errors as [`lifetimes`]; also `Unsupported` for a node that runs subgraphs, which needs the heap.
pub fn rows<T: Tables + ?Sized>(
    graph: &T,
    options: &Options,
    pins: &[Pin],
    work: &mut Workspace<'_>,
) -> Result<(), Error> {
    let n = graph.tensor_count();
    if work.rows.len() < n {
        return Err(Error::capacity("the row array is too short (entries)")
            .needed(n as u64)
            .available(work.rows.len() as u64));
    }
    for i in 0..graph.node_count() {
        if !graph.node(i).call.subgraphs().is_empty() {
            return Err(Error::unsupported("a node that runs subgraphs needs the heap").node(i));
        }
    }
    lifetimes(graph, options, pins, work.lifetimes)?;
    share(graph, options, work.lifetimes, work.shares)?;
    let end = graph.node_count().saturating_sub(1) as u32;
    for t in 0..n {
        let tensor = graph.tensor(t);
        let (l, alias) = (work.lifetimes[t], home_row(graph, work.lifetimes, work.shares, t) != t);
        // An alias that is not honoured was released through its root, so TFLite never releases it.
        let dropped = !alias && work.shares[t].root as usize != t;
        work.rows[t] = Row {
            size: if l.home == Home::Arena && !alias { tensor.bytes.unwrap_or(0) } else { 0 },
            align: options.align.max(tensor.align.unwrap_or(Align::ONE)),
            first: l.first,
            last: if dropped { end } else { l.last },
            kept: l.kept || dropped,
            fixed: None,
        };
    }
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        let Some(align) = node.align else { continue };
        for &t in node.inputs.iter().chain(node.outputs).chain(node.temporaries).filter(|&&t| t >= 0) {
            let row = &mut work.rows[t as usize];
            row.align = row.align.max(align);
        }
    }
    for t in 0..n {
        // The root also carries the reads of aliases that were dropped, as TFLite counts them.
        let root = work.shares[t].root as usize;
        if root != t {
            let alias = work.rows[t];
            let honoured = home_row(graph, work.lifetimes, work.shares, t) == root;
            if !honoured && work.lifetimes[t].home != Home::Arena {
                continue;
            }
            let row = &mut work.rows[root];
            row.last = row.last.max(work.lifetimes[t].last);
            if honoured {
                row.first = row.first.min(alias.first);
                row.kept |= alias.kept;
                row.align = row.align.max(alias.align);
            }
        }
    }
    Ok(())
}

/// The row whose offset tensor `t` has: its root's where the sharing is honoured, else its own.
pub fn home_row<T: Tables + ?Sized>(graph: &T, lifetimes: &[Lifetime], shares: &[Share], t: usize) -> usize {
    if honoured(graph, lifetimes, shares, t) {
        shares[t].root as usize
    } else {
        t
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tables::{Call, InPlace, Node, Tensor, View};
    use super::*;
    use crate::planner::greedy::{place, Rule};

    /// A graph for tests.
    pub(crate) struct Small {
        pub tensors: Vec<Tensor>,
        pub inputs: Vec<i32>,
        pub outputs: Vec<i32>,
        pub variables: Vec<i32>,
        pub ops: Vec<Op>,
    }

    #[derive(Clone, Default)]
    pub(crate) struct Op {
        pub inputs: Vec<i32>,
        pub outputs: Vec<i32>,
        pub temporaries: Vec<i32>,
        pub inplace: InPlace,
        pub view: View,
        pub branch: Vec<u32>,
        pub looped: Vec<u32>,
        pub sequence: Vec<u32>,
    }

    pub(crate) fn op(inputs: &[i32], outputs: &[i32]) -> Op {
        Op { inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..Op::default() }
    }

    impl Op {
        pub(crate) fn temporaries(mut self, list: &[i32]) -> Op {
            self.temporaries = list.to_vec();
            self
        }

        pub(crate) fn inplace(mut self, flags: InPlace) -> Op {
            self.inplace = flags;
            self
        }
    }

    impl Small {
        pub(crate) fn new(bytes: &[u64], inputs: &[i32], outputs: &[i32], ops: &[Op]) -> Small {
            let tensors = bytes.iter().map(|&b| Tensor { bytes: Some(b), ..Tensor::default() }).collect();
            Small {
                tensors,
                inputs: inputs.to_vec(),
                outputs: outputs.to_vec(),
                variables: Vec::new(),
                ops: ops.to_vec(),
            }
        }
    }

    impl Tables for Small {
        fn tensor_count(&self) -> usize {
            self.tensors.len()
        }
        fn tensor(&self, index: usize) -> Tensor {
            self.tensors[index]
        }
        fn node_count(&self) -> usize {
            self.ops.len()
        }
        fn node(&self, index: usize) -> Node<'_> {
            let op = &self.ops[index];
            let call = match (op.branch.is_empty(), op.looped.is_empty(), op.sequence.is_empty()) {
                (false, ..) => Call::Branch(&op.branch),
                (_, false, _) => Call::Loop(&op.looped),
                (.., false) => Call::Sequence(&op.sequence),
                _ => Call::None,
            };
            Node {
                inputs: &op.inputs,
                outputs: &op.outputs,
                temporaries: &op.temporaries,
                inplace: op.inplace,
                view: op.view,
                align: None,
                call,
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

    fn arena(graph: &Small, options: Options, pins: &[Pin]) -> (Vec<u64>, u64) {
        let n = graph.tensors.len();
        let align = Align::new(128).unwrap();
        let zero = Row { size: 0, align, first: 0, last: 0, kept: false, fixed: None };
        let (mut l, mut s, mut r) = (vec![Lifetime::default(); n], vec![Share::default(); n], vec![zero; n]);
        rows(graph, &options, pins, &mut Workspace { lifetimes: &mut l, shares: &mut s, rows: &mut r }).unwrap();
        let mut offsets = vec![0; n];
        let bytes = place(Rule::GreedyBySize, &r, &mut vec![0; 2 * n], &mut offsets).unwrap();
        (offsets, bytes)
    }

    #[test]
    fn br_02_input_is_shared_only_when_inputs_may_be_reused() {
        let g = Small::new(&[2048; 3], &[0], &[2], &[op(&[0], &[1]), op(&[1], &[2]), op(&[2], &[])]);
        let (o, bytes) = arena(&g, Options { reuse_inputs: true, ..Options::default() }, &[]);
        assert_eq!((o[0], bytes), (o[2], 4096));
        assert_eq!(arena(&g, Options::default(), &[]).1, 6144);
    }

    #[test]
    fn br_03_pinning_costs_one_tensor_and_keeping_all_costs_all() {
        let ops: Vec<_> = (0..5).map(|i| op(&[i - 1], &[i])).chain([op(&[4], &[])]).collect();
        let g = Small::new(&[4096; 5], &[], &[], &ops);
        assert_eq!(arena(&g, Options::default(), &[]).1, 8192);
        assert_eq!(arena(&g, Options::default(), &[Pin { tensor: 1, until: 5 }]).1, 12288);
        assert_eq!(arena(&g, Options { keep_all: true, ..Options::default() }, &[]).1, 20480);
    }

    #[test]
    fn br_05_br_12_br_15() {
        let g = Small::new(&[1024; 3], &[0], &[0], &[op(&[0], &[1]), op(&[1], &[2]), op(&[2], &[])]);
        assert_eq!(arena(&g, Options::default(), &[]).1, 3072, "BR-05");
        let mut g = Small::new(
            &[1 << 20, 1 << 20, 256 << 10, 256 << 10, 256 << 10],
            &[],
            &[],
            &[op(&[0], &[2]), op(&[2, 1], &[3]), op(&[3], &[4])],
        );
        for t in [0, 1] {
            g.tensors[t].allocation = crate::graph::tables::Allocation::MmapRo;
        }
        assert_eq!(arena(&g, Options::default(), &[]).1, 524_288, "BR-12: constants are not activations");
        let ops = [op(&[], &[0]), op(&[0], &[2]).temporaries(&[1]), op(&[2], &[])];
        let g = Small::new(&[1024, 2048, 1024], &[], &[], &ops);
        let (o, bytes) = arena(&g, Options::default(), &[]);
        assert_eq!(bytes, 4096, "BR-15");
        assert!(o[1] >= 1024 + o[0] || o[1] + 2048 <= o[0], "scratch and input");
        assert!(o[1] >= 1024 + o[2] || o[1] + 2048 <= o[2], "scratch and output");
    }

    #[test]
    fn a_chain_lives_as_long_as_its_last_reader() {
        let add = InPlace(InPlace::INPUT_0);
        let ops = [op(&[0], &[1]), op(&[1], &[2]).inplace(add), op(&[2], &[3]).inplace(add), op(&[3], &[4])];
        let g = Small::new(&[256; 5], &[0], &[4], &ops);
        let (_, bytes) = arena(&g, Options::default(), &[]);
        assert_eq!(bytes, 768, "input, chain and output");
    }
}
