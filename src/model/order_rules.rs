//! What must stay in order in a model, beyond what its tensors say.

use super::ops::{CallKind, Effect};
use super::tensor::{Node, Subgraph, TensorKind};
use super::Model;
use crate::graph::order::{Rules, State, Touch};

impl Model {
    /// The rules for [`order`](crate::graph::order::order): each resource's reads and writes, initialisers first, and
    /// everything that may have an effect in its order. Custom operators whose name is in `pure` have none.
    pub fn order_rules(&self, pure: &[String]) -> Rules {
        let mut rules = Rules::default();
        // Generators that step share one state of their own.
        let random = State::Resource(self.resources.len() as u32);
        for (k, graph) in (0u32..).zip(&self.subgraphs) {
            for (n, node) in (0u32..).zip(&graph.nodes) {
                if let Some((state, writes)) = touch(graph, node, random, pure) {
                    rules.touches.push(Touch { subgraph: k, node: n, state, writes });
                }
                if *node.op == *"CALL_ONCE" {
                    rules.before.extend((n + 1..graph.nodes.len() as u32).map(|later| (k, n, later)));
                }
            }
        }
        rules
    }

    /// Rules that keep runs of custom operators where they are among the others: a delegate takes over a run of nodes,
    /// and nodes of one kind between nodes of the other would split it.
    pub fn partition_rules(&self, subgraph: usize) -> Vec<(u32, u32, u32)> {
        let Some(graph) = self.subgraphs.get(subgraph) else { return Vec::new() };
        let mut rules = Vec::new();
        let custom: Vec<bool> = graph.nodes.iter().map(is_custom).collect();
        let (mut last, mut begin) = (0..0, 0);
        for n in 0..=custom.len() {
            if n == custom.len() || custom[n] != custom[begin] {
                // All of the run before come first, then all of this one.
                let pairs = last.clone().flat_map(|a| (begin..n).map(move |b| (a, b)));
                rules.extend(pairs.map(|(a, b)| (subgraph as u32, a as u32, b as u32)));
                (last, begin) = (begin..n, n);
            }
        }
        rules
    }
}

impl Subgraph {
    /// How many runs of nodes of one kind, built in or custom, there are when they run in `order`.
    pub fn runs(&self, order: &[u32]) -> usize {
        let kinds: Vec<bool> = order.iter().filter_map(|&n| self.nodes.get(n as usize)).map(is_custom).collect();
        kinds.chunk_by(|a, b| a == b).count()
    }
}

fn is_custom(node: &Node) -> bool {
    node.op.starts_with("CUSTOM:")
}

/// The state a node uses and whether it may change it.
fn touch(graph: &Subgraph, node: &Node, random: State, pure: &[String]) -> Option<(State, bool)> {
    let writes = node.effect == Effect::Writes;
    match &*node.op {
        "READ_VARIABLE" | "ASSIGN_VARIABLE" => {
            // A handle that comes from elsewhere may be any.
            let state = node.resource.map_or(State::World, State::Resource);
            return Some((state, *node.op == *"ASSIGN_VARIABLE"));
        }
        "RANDOM_STANDARD_NORMAL" | "RANDOM_UNIFORM" | "MULTINOMIAL" | "STABLEHLO_RNG_BIT_GENERATOR" => {
            return Some((random, true));
        }
        _ => {}
    }
    let of_op = Effect::of_op(&node.op);
    if node.call != CallKind::None || of_op != Effect::None {
        let name = node.op.strip_prefix("CUSTOM:").unwrap_or(&node.op);
        let declared = is_custom(node) && pure.iter().any(|p| p == name);
        return (node.effect != Effect::None && !declared).then_some((State::World, writes));
    }
    // What is left writes a variable, and those that list one keep their order anyway; unless it is none.
    let lists = node.inputs.iter().chain(&node.outputs);
    let variable = lists.filter(|&&t| t >= 0).any(|&t| graph.tensors[t as usize].kind == TensorKind::Var);
    (node.effect != Effect::None && !variable).then_some((State::World, writes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str) -> Node {
        Node { op: op.into(), effect: Effect::of_op(op), ..Node::default() }
    }

    #[test]
    fn effects_become_rules() {
        let mut nodes = vec![node("CALL_ONCE"), node("READ_VARIABLE"), node("ADD"), node("CUSTOM:A")];
        nodes.extend([node("CUSTOM:B"), node("RANDOM_UNIFORM"), node("ASSIGN_VARIABLE")]);
        nodes[1].resource = Some(0);
        let resources = vec![super::super::Resource::default()];
        let model = Model { subgraphs: vec![Subgraph { nodes, ..Subgraph::default() }], resources, ..Model::default() };
        let rules = model.order_rules(&["B".into()]);
        let found: Vec<_> = rules.touches.iter().map(|t| (t.node, t.state, t.writes)).collect();
        let (w, r) = (State::World, State::Resource);
        assert_eq!(found, [(0, w, true), (1, r(0), false), (3, w, true), (5, r(1), true), (6, w, true)]);
        assert_eq!(rules.before.len(), 6, "the initialiser comes first");
    }

    #[test]
    fn runs_of_custom_operators_are_counted_and_kept() {
        let nodes = ["ADD", "ADD", "CUSTOM:A", "ADD", "ADD"].map(node).to_vec();
        let model = Model { subgraphs: vec![Subgraph { nodes, ..Subgraph::default() }], ..Model::default() };
        assert_eq!(model.subgraphs[0].runs(&[0, 1, 2, 3, 4]), 3);
        assert_eq!(model.subgraphs[0].runs(&[2, 0, 1, 3, 4]), 2);
        assert_eq!(model.subgraphs[0].runs(&[]), 0);
        assert_eq!(model.partition_rules(0), [(0, 0, 2), (0, 1, 2), (0, 2, 3), (0, 2, 4)]);
    }
}
