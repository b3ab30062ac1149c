//! How many parts of a graph a delegate would be given.
//!
//! TensorFlow Lite cuts a graph in rounds: the first node in order that may run decides whether the round is the
//! delegate's; then every node of that kind whose inputs are there joins, over and over, until none does. Each of the
//! delegate's rounds is one part, and every change of sides costs a copy.

use super::tensor::Subgraph;

impl Subgraph {
    /// The delegate's parts when the nodes run in `order` and it takes the nodes for which `taken` holds.
    pub fn partitions(&self, order: &[u32], taken: &dyn Fn(&str) -> bool) -> usize {
        let nodes: Vec<_> = order.iter().filter_map(|&n| self.nodes.get(n as usize)).collect();
        let kinds: Vec<bool> = nodes.iter().map(|n| taken(&n.op)).collect();
        // A tensor is there once all its writers ran.
        let mut writers = vec![0u32; self.tensors.len()];
        for &t in nodes.iter().flat_map(|n| &n.outputs).filter(|&&t| t >= 0) {
            writers[t as usize] += 1;
        }
        let mut done = vec![false; nodes.len()];
        let mut parts = 0;
        // Nodes that read a tensor, to look again at those alone that a finished node may have enabled.
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.tensors.len()];
        let mut waits = vec![0usize; nodes.len()];
        for (i, n) in nodes.iter().enumerate() {
            for &t in n.inputs.iter().filter(|&&t| t >= 0 && writers[t as usize] > 0) {
                readers[t as usize].push(i);
                waits[i] += 1;
            }
        }
        loop {
            let Some(first) = (0..nodes.len()).find(|&i| !done[i] && waits[i] == 0) else { return parts };
            let kind = kinds[first];
            parts += usize::from(kind);
            let mut open: Vec<usize> = (first..nodes.len()).filter(|&i| !done[i] && waits[i] == 0).collect();
            while let Some(i) = open.pop() {
                if done[i] || kinds[i] != kind {
                    continue;
                }
                done[i] = true;
                for &t in nodes[i].outputs.iter().filter(|&&t| t >= 0) {
                    writers[t as usize] = writers[t as usize].saturating_sub(1);
                    if writers[t as usize] == 0 {
                        for &r in &readers[t as usize] {
                            waits[r] = waits[r].saturating_sub(1);
                            if waits[r] == 0 {
                                open.push(r);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Whether running in `order` gives some delegate more parts than the order of the file: one that takes the built-in
    /// or the custom operators, or all but one kind or only one kind of operators. Custom operators also count by runs,
    /// which is what the runtime does when its clustering is off.
    pub fn splits(&self, order: &[u32]) -> bool {
        let given: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let mut ops: Vec<&str> = self.nodes.iter().map(|n| &*n.op).collect();
        ops.sort_unstable();
        ops.dedup();
        // Models have some thirty kinds; a file with thousands is no reason to take minutes.
        const KINDS: usize = 128;
        let grows = |taken: &dyn Fn(&str) -> bool| self.partitions(order, taken) > self.partitions(&given, taken);
        let custom = |op: &str| op.starts_with("CUSTOM:");
        self.runs(order) > self.runs(&given)
            || grows(&custom)
            || grows(&|op| !custom(op))
            || ops.iter().take(KINDS).any(|&kind| grows(&|op| op == kind) || grows(&|op| op != kind))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, Tensor};
    use super::*;

    fn graph(ops: &[(&str, &[i32], i32)]) -> Subgraph {
        let node = |&(op, inputs, output): &(&str, &[i32], i32)| Node {
            op: op.into(),
            inputs: inputs.to_vec(),
            outputs: vec![output],
            ..Node::default()
        };
        let nodes: Vec<_> = ops.iter().map(node).collect();
        Subgraph { nodes, tensors: vec![Tensor::default(); 9], ..Subgraph::default() }
    }

    #[test]
    fn rounds_take_all_that_may_run() {
        // Two branches from tensor 0, each ADD then MUL, joined by an ADD.
        let g = graph(&[("ADD", &[0], 1), ("MUL", &[1], 2), ("ADD", &[0], 3), ("MUL", &[3], 4), ("ADD", &[2, 4], 5)]);
        let add = |op: &str| op == "ADD";
        assert_eq!(g.partitions(&[0, 1, 2, 3, 4], &add), 2, "both first ADDs are one part");
        assert_eq!(g.partitions(&[0, 2, 1, 3, 4], &add), 2);
        assert_eq!(g.partitions(&[0, 1, 2, 3, 4], &|_| true), 1);
        assert_eq!(g.partitions(&[0, 1, 2, 3, 4], &|_| false), 0);
        assert!(!g.splits(&[2, 3, 0, 1, 4]));
    }

    #[test]
    fn what_comes_first_can_cost_a_part() {
        // A is free at the start and after B: B first lets both A run together.
        let g = graph(&[("B", &[0], 1), ("A", &[0], 2), ("A", &[1, 2], 3)]);
        let a = |op: &str| op == "A";
        assert_eq!(g.partitions(&[0, 1, 2], &a), 1);
        assert_eq!(g.partitions(&[1, 0, 2], &a), 2);
        assert!(g.splits(&[1, 0, 2]) && !g.splits(&[0, 1, 2]));
    }

    #[test]
    fn cycles_and_doubled_tensors_end() {
        let g = graph(&[("A", &[2], 1), ("B", &[1, 1], 2), ("A", &[0, 0], 3), ("B", &[3, 3], 3)]);
        assert_eq!(g.partitions(&[0, 1, 2, 3], &|op| op == "A"), 1);
    }
}
