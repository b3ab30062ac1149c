//! The part each tensor plays in its graph.

use super::tensor::{Flags, Subgraph, TensorKind};

/// Operators that TFLite runs once when all they read is constant, keeping the result.
const ONCE: [&str; 2] = ["DEQUANTIZE", "DENSIFY"];

impl Subgraph {
    /// Sets every tensor's kind and the marks that follow from it. On entry a tensor of kind `Var` is a variable and
    /// one of kind `Const` has data in the file; every index was checked.
    pub(crate) fn classify(&mut self) {
        let n = self.tensors.len();
        let (mut written, mut read) = (vec![false; n], vec![false; n]);
        let (mut is_input, mut is_output) = (vec![false; n], vec![false; n]);
        mark(&self.inputs, &mut is_input);
        mark(&self.outputs, &mut is_output);
        for node in &self.nodes {
            mark(&node.inputs, &mut read);
            for &o in node.outputs.iter().filter(|&&o| o >= 0) {
                if std::mem::replace(&mut written[o as usize], true) {
                    self.tensors[o as usize].flags.set(Flags::REWRITTEN, true);
                }
            }
        }
        for (i, t) in self.tensors.iter_mut().enumerate() {
            // A tensor without bytes that nobody writes is an empty constant: it has no data to show for it.
            let constant = t.kind == TensorKind::Const || (!written[i] && t.file_bytes == Some(0));
            t.kind = match t.kind {
                TensorKind::Var => TensorKind::Var,
                _ if is_input[i] => TensorKind::Input,
                _ if written[i] => TensorKind::Inter,
                _ if constant => TensorKind::Const,
                _ if read[i] || is_output[i] => TensorKind::Undef,
                _ => TensorKind::Unused,
            };
            t.flags.set(Flags::UNKNOWN_DIM, t.has_unknown_dims());
            t.flags.set(Flags::UNSIZED, t.bytes.is_none());
        }
        // In execution order, so that a DENSIFY feeding a DEQUANTIZE is seen first.
        for node in self.nodes.iter().filter(|node| ONCE.contains(&&*node.op)) {
            let mut inputs = node.inputs.iter().filter(|&&t| t >= 0).peekable();
            let kept = |&t: &i32| matches!(self.tensors[t as usize].kind, TensorKind::Const | TensorKind::Persist);
            if inputs.peek().is_none() || !inputs.all(kept) {
                continue;
            }
            for &o in node.outputs.iter().filter(|&&o| o >= 0) {
                let t = &mut self.tensors[o as usize];
                if t.kind == TensorKind::Inter && !is_output[o as usize] {
                    t.kind = TensorKind::Persist;
                }
            }
        }
        let vars = self.tensors.iter().enumerate().filter(|(_, t)| t.kind == TensorKind::Var);
        self.variables = vars.map(|(i, _)| i as i32).collect();
    }
}

fn mark(list: &[i32], marks: &mut [bool]) {
    for &t in list.iter().filter(|&&t| t >= 0) {
        marks[t as usize] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tensor::{Node, Tensor};
    use super::*;

    #[test]
    fn parts_follow_from_who_reads_and_writes() {
        let tensor = |kind| Tensor { kind, file_bytes: Some(4), bytes: Some(4), ..Tensor::default() };
        let node = |op: &str, inputs: &[i32], outputs: &[i32]| Node {
            op: op.into(),
            inputs: inputs.into(),
            outputs: outputs.into(),
            ..Node::default()
        };
        let mut g = Subgraph { tensors: vec![tensor(TensorKind::Inter); 10], ..Subgraph::default() };
        g.tensors[1].kind = TensorKind::Const;
        g.tensors[2].kind = TensorKind::Var;
        g.tensors[9].file_bytes = Some(0);
        g.inputs = vec![0];
        g.outputs = vec![6];
        g.nodes = vec![
            node("DENSIFY", &[1], &[3]),
            node("DEQUANTIZE", &[3, -1], &[4]),
            node("ADD", &[0, 4, 7], &[5, 5]),
            node("DEQUANTIZE", &[1], &[6]),
        ];
        g.classify();
        use TensorKind::*;
        let kinds: Vec<_> = g.tensors.iter().map(|t| t.kind).collect();
        assert_eq!(kinds, [Input, Const, Var, Persist, Persist, Inter, Inter, Undef, Unused, Const]);
        assert!(g.tensors[5].flags.has(Flags::REWRITTEN));
        assert_eq!(g.variables, [2]);
    }
}
