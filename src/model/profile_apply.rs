//! A model file with what a runtime recorded while it ran it: resolved sizes, kinds, and kernel scratch.

use super::error::{quoted, Position, ReadError};
use super::Model;
use crate::units::Bytes;

impl Model {
    /// This model, read from a file, with sizes, kinds and temporaries of `profile`, recorded from a runtime that ran the
    /// same file. Subgraphs that were not prepared while it was recorded stay as they are.
    ///
    /// Refused where nodes or tensors do not correspond: another model, or a runtime whose delegate had replaced nodes.
    pub fn with_profile(&self, profile: &Model) -> Result<Model, ReadError> {
        let mut out = self.clone();
        for (k, seen) in profile.subgraphs.iter().enumerate() {
            if seen.nodes.is_empty() && seen.tensors.is_empty() {
                continue;
            }
            let refuse = |what: String| {
                let why = "it is of another model, or was recorded with a delegate";
                Err(ReadError::new(Position::Whole, format!("{what}: {why}")))
            };
            let Some(graph) = out.subgraphs.get_mut(k) else {
                return refuse(format!("the profile has a subgraph {k}, the model has {}", self.subgraphs.len()));
            };
            if seen.nodes.len() != graph.nodes.len() || seen.tensors.len() < graph.tensors.len() {
                let (nodes, tensors) = (seen.nodes.len(), seen.tensors.len());
                return refuse(format!(
                    "subgraph {k} has {nodes} nodes and {tensors} tensors in the profile, {} and {} in the model",
                    graph.nodes.len(),
                    graph.tensors.len()
                ));
            }
            for (n, (node, old)) in graph.nodes.iter_mut().zip(&seen.nodes).enumerate() {
                if node.op != old.op || node.inputs != old.inputs || node.outputs != old.outputs {
                    let (a, b) = (quoted(&node.op), quoted(&old.op));
                    return refuse(format!("node {n} of subgraph {k} is {a} in the model and {b} in the profile"));
                }
                node.temporaries.clone_from(&old.temporaries);
            }
            for (tensor, old) in graph.tensors.iter_mut().zip(&seen.tensors) {
                tensor.bytes = old.bytes;
                tensor.kind = old.kind;
                tensor.shape.clone_from(&old.shape);
                tensor.resolved = true;
            }
            let known = graph.tensors.len();
            graph.tensors.extend_from_slice(&seen.tensors[known..]);
        }
        Ok(out)
    }

    /// Bytes of kernel scratch: the temporaries of all nodes, each once.
    pub fn scratch_bytes(&self) -> Bytes {
        let mut sum: Bytes = 0;
        for graph in &self.subgraphs {
            let mut seen = vec![false; graph.tensors.len()];
            for &t in graph.nodes.iter().flat_map(|n| &n.temporaries).filter(|&&t| t >= 0) {
                if !std::mem::replace(&mut seen[t as usize], true) {
                    sum = sum.saturating_add(graph.tensors[t as usize].bytes.unwrap_or(0));
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, Subgraph, Tensor, TensorKind};
    use super::*;

    fn model(extra: usize) -> Model {
        let tensor = |bytes| Tensor { bytes: Some(bytes), ..Tensor::default() };
        let mut nodes = vec![Node { op: "CONV_2D".into(), inputs: vec![0], outputs: vec![1], ..Node::default() }];
        let mut tensors = vec![tensor(4), tensor(8)];
        for i in 0..extra {
            nodes[0].temporaries.push(tensors.len() as i32);
            tensors.push(tensor(100 + i as u64));
        }
        Model { subgraphs: vec![Subgraph { nodes, tensors, ..Subgraph::default() }], ..Model::default() }
    }

    #[test]
    fn sizes_kinds_and_scratch_come_from_the_profile_and_the_rest_from_the_file() {
        let mut file = model(0);
        file.subgraphs[0].tensors[1].name = "y".into();
        let mut profile = model(2);
        profile.subgraphs[0].tensors[1].bytes = Some(80);
        profile.subgraphs[0].tensors[0].kind = TensorKind::Undef;
        profile.subgraphs.push(Subgraph::default());
        file.subgraphs.push(model(0).subgraphs.remove(0));
        let both = file.with_profile(&profile).unwrap();
        let g = &both.subgraphs[0];
        assert_eq!((g.tensors[1].bytes, &*g.tensors[1].name, g.tensors[0].kind), (Some(80), "y", TensorKind::Undef));
        assert_eq!((g.tensors.len(), &g.nodes[0].temporaries[..], both.scratch_bytes()), (4, &[2, 3][..], 201));
        assert_eq!(both.subgraphs[1], file.subgraphs[1], "not recorded");
        assert_eq!(file.scratch_bytes(), 0);
    }

    #[test]
    fn profiles_of_other_models_are_refused() {
        let file = model(0);
        let mut other = model(0);
        other.subgraphs[0].nodes[0].op = "ADD".into();
        assert!(file.with_profile(&other).unwrap_err().what.contains("node 0 of subgraph 0"));
        other.subgraphs[0].nodes.clear();
        assert!(file.with_profile(&other).unwrap_err().what.contains("delegate"));
        let mut more = model(0);
        more.subgraphs.push(model(0).subgraphs.remove(0));
        assert!(file.with_profile(&more).is_err());
    }
}
