//! Scratch memory that operators ask for while they are prepared, planned with everything else.

use core::fmt;

use super::overlay::TensorId;
use super::Session;
use crate::error::{Error, Subject};
use crate::graph::tables::Tables;
use crate::units::{Align, Bytes};

/// A scratch request. It stays valid whatever is planned, and its number does not change when a node asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScratchId(pub u32);

/// A size that depends on shapes: from the bytes of all tensors of the node's subgraph (`None` for unknown) to the bytes
/// of the request, `None` where that cannot be said yet. Called by every commit that has something to do.
pub struct Formula(pub Box<SizeFn>);

/// What a [`Formula`] is made of.
pub type SizeFn = dyn Fn(&[Option<Bytes>]) -> Option<Bytes> + Send + Sync;

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Formula")
    }
}

#[derive(Debug)]
pub(super) struct Request {
    id: TensorId,
    node: u32,
    slot: u32,
    formula: Option<Formula>,
}

impl Session {
    /// Asks for `bytes` of scratch at a multiple of `align` while `node` of `subgraph` runs. `slot` tells several requests
    /// of one node apart.
    ///
    /// Asking again for the same node and slot changes the request and returns the same number, so that a graph may be
    /// prepared any number of times. `Argument` where there is no such node.
    pub fn request_scratch(
        &mut self,
        subgraph: u32,
        node: u32,
        slot: u32,
        bytes: Bytes,
        align: Align,
    ) -> Result<ScratchId, Error> {
        self.request(subgraph, node, slot, Some(bytes), align, None)
    }

    /// The same with a size that depends on shapes.
    pub fn request_scratch_by_shape(
        &mut self,
        subgraph: u32,
        node: u32,
        slot: u32,
        align: Align,
        formula: Formula,
    ) -> Result<ScratchId, Error> {
        self.request(subgraph, node, slot, None, align, Some(formula))
    }

    fn request(
        &mut self,
        subgraph: u32,
        node: u32,
        slot: u32,
        bytes: Option<Bytes>,
        align: Align,
        formula: Option<Formula>,
    ) -> Result<ScratchId, Error> {
        let none = Error::argument("there is no such subgraph").of(Subject::Subgraph(subgraph));
        let graph = self.graphs.get(subgraph as usize).ok_or(none)?;
        if node as usize >= graph.node_count() {
            let count = graph.node_count() as u64;
            return Err(Error::argument("there is no such node").of(Subject::Node(node)).available(count));
        }
        let own = graph.tensor_count();
        let sheet = &mut self.sheets[subgraph as usize];
        let known = self.requests.iter().position(|r| (r.id.subgraph, r.node, r.slot) == (subgraph, node, slot));
        if let Some(at) = known {
            let request = &mut self.requests[at];
            let index = request.id.tensor as usize;
            if sheet.scratch[index - own] != align {
                sheet.scratch[index - own] = align;
                (self.stale, self.restructured) = (true, true);
            }
            self.stale |= formula.is_some();
            request.formula = formula;
            let id = request.id;
            if let Some(bytes) = bytes {
                self.set_size(id, bytes);
            }
            return Ok(ScratchId(at as u32));
        }
        let tensor = sheet.add_scratch(graph, node as usize, bytes.unwrap_or(0), align)?;
        self.requests.push(Request { id: TensorId::new(subgraph, tensor), node, slot, formula });
        (self.stale, self.restructured) = (true, true);
        Ok(ScratchId(self.requests.len() as u32 - 1))
    }

    fn scratch(&self, id: ScratchId) -> Result<&Request, Error> {
        let count = self.requests.len() as u64;
        let none = Error::argument("there is no such scratch request").needed(id.0.into()).available(count);
        self.requests.get(id.0 as usize).ok_or(none)
    }

    /// Changes the bytes of a request before the next commit; a formula it had is forgotten.
    pub fn resize_scratch(&mut self, id: ScratchId, bytes: Bytes) -> Result<(), Error> {
        let tensor = self.scratch(id)?.id;
        self.requests[id.0 as usize].formula = None;
        self.set_size(tensor, bytes);
        Ok(())
    }

    /// The address and size of a request's bytes, to be used while its node runs; as [`Session::resolve`].
    pub fn resolve_scratch(&self, id: ScratchId) -> Result<Option<(core::ptr::NonNull<u8>, usize)>, Error> {
        let request = self.scratch(id)?;
        self.resolve(request.id).map_err(|e| e.node(request.node as usize))
    }

    /// How many requests there are.
    pub fn scratch_count(&self) -> usize {
        self.requests.len()
    }

    /// The tensor that stands for a request in errors and reports: its index is behind the graph's own tensors.
    pub fn scratch_tensor(&self, id: ScratchId) -> Result<TensorId, Error> {
        Ok(self.scratch(id)?.id)
    }

    /// Sets the sizes that formulas give. `UnknownSize` names the node whose formula cannot say.
    pub(super) fn evaluate_formulas(&mut self) -> Result<(), Error> {
        for r in &self.requests {
            let Some(formula) = &r.formula else { continue };
            let sheet = &mut self.sheets[r.id.subgraph as usize];
            let own = self.graphs[r.id.subgraph as usize].tensor_count();
            let bytes = (formula.0)(&sheet.sizes[..own]).ok_or(
                Error::unknown_size("the shape formula of the node's scratch request gives no size")
                    .node(r.node as usize),
            )?;
            sheet.sizes[r.id.tensor as usize] = Some(bytes);
        }
        Ok(())
    }
}
