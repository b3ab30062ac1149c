//! Which subgraph runs which: entry points, cycles, and how long the whole run becomes.

use super::error::{Position, ReadError};
use super::ops::{CallKind, Effect};
use super::tensor::{Subgraph, TensorKind};
use super::Model;

/// Subgraphs may call each other this deeply.
pub const MAX_CALL_DEPTH: u32 = 64;

/// A run with its called subgraphs written out has at most this many steps. Two calls in each of 40 nested subgraphs
/// would be 2^40 steps from a file of some kilobytes.
pub const MAX_STEPS: u64 = 1 << 22;

impl Model {
    /// The subgraphs that are run from outside, ascending: the first, each signature's, and those that none calls.
    pub fn entries(&self) -> Vec<usize> {
        let mut entry = vec![true; self.subgraphs.len()];
        for node in self.subgraphs.iter().flat_map(|g| &g.nodes) {
            for &callee in &node.subgraphs {
                if let Some(e) = entry.get_mut(callee as usize) {
                    *e = false;
                }
            }
        }
        if let Some(first) = entry.first_mut() {
            *first = true;
        }
        for signature in &self.signatures {
            if let Some(e) = entry.get_mut(signature.subgraph as usize) {
                *e = true;
            }
        }
        (0..entry.len()).filter(|&k| entry[k]).collect()
    }

    /// The subgraphs in an order that puts callees before their callers.
    ///
    /// Refuses cycles, calls of subgraphs that do not exist, nesting deeper than [`MAX_CALL_DEPTH`] and runs longer
    /// than [`MAX_STEPS`].
    pub(crate) fn call_order(&self) -> Result<Vec<usize>, ReadError> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done { depth: u32, steps: u64 },
        }
        let refuse = |k: usize, what: String| Err(ReadError::new(Position::Whole, format!("subgraph {k}: {what}")));
        let n = self.subgraphs.len();
        let mut state = vec![State::New; n];
        let mut order = Vec::with_capacity(n);
        // The stack is explicit: a chain of calls as long as the file allows must not overflow the thread's own.
        let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
        for start in 0..n {
            if state[start] != State::New {
                continue;
            }
            state[start] = State::Open;
            stack.push((start, self.subgraphs[start].callees()));
            while let Some((k, pending)) = stack.last_mut() {
                let k = *k;
                if let Some(callee) = pending.pop() {
                    match state.get(callee) {
                        None => return refuse(k, format!("it calls subgraph {callee}, the model has {n}")),
                        Some(State::Open) => return refuse(k, format!("its call of subgraph {callee} closes a cycle")),
                        Some(State::Done { .. }) => {}
                        Some(State::New) => {
                            state[callee] = State::Open;
                            stack.push((callee, self.subgraphs[callee].callees()));
                        }
                    }
                    continue;
                }
                let (mut depth, mut steps) = (0, self.subgraphs[k].nodes.len() as u64);
                for &callee in self.subgraphs[k].nodes.iter().flat_map(|node| &node.subgraphs) {
                    if let State::Done { depth: d, steps: s } = state[callee as usize] {
                        depth = depth.max(d + 1);
                        steps = steps.saturating_add(s);
                    }
                }
                if depth > MAX_CALL_DEPTH {
                    return refuse(k, format!("calls are nested deeper than {MAX_CALL_DEPTH}"));
                }
                if steps > MAX_STEPS {
                    return refuse(
                        k,
                        format!("with its callees it has {steps} steps, at most {MAX_STEPS} are planned"),
                    );
                }
                state[k] = State::Done { depth, steps };
                order.push(k);
                stack.pop();
            }
        }
        Ok(order)
    }

    /// Gives every node the effect of its operator, its variable inputs and its callees.
    pub(crate) fn spread_effects(&mut self, callees_first: &[usize]) {
        let mut of_graph = vec![Effect::None; self.subgraphs.len()];
        for &k in callees_first {
            let Subgraph { tensors, nodes, .. } = &mut self.subgraphs[k];
            let is_var = |&&t: &&i32| t >= 0 && tensors[t as usize].kind == TensorKind::Var;
            for node in nodes {
                let mut effect = node.effect.max(Effect::of_op(&node.op));
                // A node that lists a variable may update it: cells do so without naming it as an output.
                if node.inputs.iter().chain(&node.outputs).any(|t| is_var(&t)) {
                    effect = Effect::Writes;
                }
                for &callee in &node.subgraphs {
                    effect = effect.max(of_graph[callee as usize]);
                }
                node.effect = effect;
                of_graph[k] = of_graph[k].max(effect);
            }
        }
    }
}

impl Subgraph {
    /// The subgraphs its nodes call, each once.
    fn callees(&self) -> Vec<usize> {
        let calls = self.nodes.iter().filter(|n| n.call != CallKind::None);
        let mut list: Vec<usize> = calls.flat_map(|n| n.subgraphs.iter().map(|&s| s as usize)).collect();
        list.sort_unstable();
        list.dedup();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::super::tensor::Node;
    use super::*;

    fn model(calls: &[&[&[u32]]]) -> Model {
        let graph = |nodes: &&[&[u32]]| Subgraph {
            nodes: nodes
                .iter()
                .map(|s| Node { op: "WHILE".into(), call: CallKind::Loop, subgraphs: s.to_vec(), ..Node::default() })
                .collect(),
            ..Subgraph::default()
        };
        Model { subgraphs: calls.iter().map(graph).collect(), ..Model::default() }
    }

    #[test]
    fn entries_are_what_nobody_calls_and_the_first() {
        let m = model(&[&[&[1, 2]], &[], &[], &[&[0]]]);
        assert_eq!(m.entries(), [0, 3]);
        assert_eq!(m.call_order().unwrap(), [2, 1, 0, 3]);
        assert!(Model::default().entries().is_empty());
    }

    #[test]
    fn cycles_depth_and_blow_up_are_refused() {
        assert!(model(&[&[&[0]]]).call_order().unwrap_err().what.contains("cycle"));
        assert!(model(&[&[&[1]], &[&[2]], &[&[1]]]).call_order().unwrap_err().what.contains("cycle"));
        assert!(model(&[&[&[1]]]).call_order().unwrap_err().what.contains("calls subgraph 1"));
        let chain = |n: u32, twice: usize| {
            let mut m = model(&vec![&[] as &[&[u32]]; n as usize]);
            for k in 0..n - 1 {
                let node = Node { call: CallKind::Loop, subgraphs: vec![k + 1], ..Node::default() };
                m.subgraphs[k as usize].nodes = vec![node; twice];
            }
            m
        };
        assert!(chain(60, 1).call_order().is_ok());
        assert!(chain(100_000, 1).call_order().unwrap_err().what.contains("nested"));
        assert!(chain(60, 2).call_order().unwrap_err().what.contains("steps"));
    }

    #[test]
    fn a_call_has_the_effects_of_its_callees() {
        let mut m = model(&[&[&[1], &[2]], &[&[2]], &[&[]], &[&[]]]);
        m.subgraphs[2].nodes[0].op = "ASSIGN_VARIABLE".into();
        m.subgraphs[0].nodes[1].subgraphs = vec![3];
        let order = m.call_order().unwrap();
        m.spread_effects(&order);
        assert_eq!((m.subgraphs[0].nodes[0].effect, m.subgraphs[1].nodes[0].effect), (Effect::Writes, Effect::Writes));
        assert_eq!(m.subgraphs[0].nodes[1].effect, Effect::None);
    }
}
