//! State that outlives a run: resource variables, as VAR_HANDLE nodes name them.

use std::collections::HashMap;

use super::Model;
use crate::units::Bytes;

/// A resource variable. Every VAR_HANDLE with the same container and name means the same one, in any subgraph.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Resource {
    /// The name space.
    pub container: String,
    /// The name in it.
    pub name: String,
    /// The largest value any node stores or reads; `None` where no node tells.
    pub bytes: Option<Bytes>,
}

impl Model {
    /// Sizes the resources and tells the nodes that use one which it is. VAR_HANDLE nodes know theirs already.
    pub(crate) fn trace_resources(&mut self) {
        for graph in &mut self.subgraphs {
            let mut of_tensor: HashMap<i32, u32> = HashMap::new();
            for node in &mut graph.nodes {
                let value = match &*node.op {
                    "VAR_HANDLE" => {
                        if let (Some(&handle), Some(resource)) = (node.outputs.first(), node.resource) {
                            of_tensor.insert(handle, resource);
                        }
                        continue;
                    }
                    "ASSIGN_VARIABLE" => node.inputs.get(1),
                    "READ_VARIABLE" => node.outputs.first(),
                    _ => continue,
                };
                node.resource = node.inputs.first().and_then(|handle| of_tensor.get(handle)).copied();
                if let (Some(resource), Some(&value)) = (node.resource, value) {
                    let bytes = usize::try_from(value).ok().and_then(|t| graph.tensors[t].bytes);
                    let known = &mut self.resources[resource as usize].bytes;
                    *known = (*known).max(bytes);
                }
            }
        }
    }
}
