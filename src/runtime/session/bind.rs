//! Memory of the caller's for single tensors: bound buffers, constants, and the separate arena for inputs and outputs.

use core::ptr::NonNull;
use std::sync::Arc;

use super::overlay::TensorId;
use super::Session;
use crate::error::Error;
use crate::graph::lower::alignments;
use crate::graph::tables::{Allocation, Tables};
use crate::runtime::mapping::Mapping;
use crate::units::{Align, Bytes};

/// Which alignment a bound buffer must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Accept {
    /// The strictest of the plan's, the tensor's and that of every node that touches it.
    #[default]
    Required,
    /// This one, although it may be less than the kernels ask for: the caller knows better.
    AtLeast(Align),
}

/// A caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub id: TensorId,
    data: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the session never reads or writes through it; it hands the caller's own pointer back.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

impl Binding {
    pub fn address(&self) -> usize {
        self.data.as_ptr() as usize
    }
}

/// A mapped constant whose address misses what the kernels ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misaligned {
    /// The constant.
    pub id: TensorId,
    /// The alignment asked for.
    pub required: Align,
    /// How many bytes its address is past a multiple of that.
    pub remainder: u64,
    /// Bytes that an aligned copy takes, rounded up to the alignment.
    pub copy_bytes: Bytes,
}

impl Session {
    pub(super) fn binding(&self, id: TensorId) -> Option<&Binding> {
        self.bindings.binary_search_by_key(&id, |b| b.id).ok().map(|at| &self.bindings[at])
    }

    fn set_binding(&mut self, binding: Binding) {
        match self.bindings.binary_search_by_key(&binding.id, |b| b.id) {
            Ok(at) => self.bindings[at] = binding,
            Err(at) => self.bindings.insert(at, binding),
        }
    }

    /// The alignment the kernels ask of a tensor.
    ///
    /// `Argument` where there is no such tensor.
    pub fn required_align(&self, id: TensorId) -> Result<Align, Error> {
        self.check(id)?;
        let view = &self.views()[id.subgraph as usize];
        Ok(alignments(view, self.config.options.align)[id.tensor as usize])
    }

    /// Uses the caller's buffer for a tensor: an input, an output, a cache, any tensor that is not constant. The buffer
    /// is not in the plan, is never written by the session, and must outlive the binding.
    ///
    /// The first binding of a tensor makes the plan stale; another buffer for a bound tensor only changes the generation.
    /// `Alignment` names the tensor with the alignment `needed` and the remainder `available`; `Capacity` where `bytes` is
    /// less than the tensor's; `Argument` for a constant or a scratch request. Nothing changes on an error.
    pub fn bind(&mut self, id: TensorId, data: NonNull<u8>, bytes: usize, accept: Accept) -> Result<(), Error> {
        self.check(id)?;
        let (g, t) = (id.subgraph as usize, id.tensor as usize);
        let graph = &self.graphs[g];
        if t >= graph.tensor_count() {
            return Err(id.name(Error::argument("a scratch request cannot be bound")));
        }
        if !matches!(
            graph.tensor(t).allocation,
            Allocation::ArenaRw | Allocation::ArenaRwPersistent | Allocation::Custom
        ) {
            return Err(id.name(Error::argument("the tensor is constant or not the planner's, so it cannot be bound")));
        }
        let align = match accept {
            Accept::Required => self.required_align(id)?,
            Accept::AtLeast(align) => align,
        };
        let remainder = data.as_ptr() as u64 & (align.bytes() - 1);
        if remainder != 0 {
            return Err(id.name(
                Error::alignment("the bound buffer misses the alignment (bytes past it)")
                    .needed(align.bytes())
                    .available(remainder),
            ));
        }
        let binding = Binding { id, data, bytes };
        fits(&binding, self.bytes_of(id))?;
        if self.bytes_of(id).is_none() {
            self.set_size(id, bytes as u64);
        }
        let new = self.binding(id).is_none();
        self.set_binding(binding);
        if new && !self.sheets[g].elsewhere[t] {
            self.sheets[g].elsewhere[t] = true;
            (self.stale, self.restructured) = (true, true);
        } else if !self.stale {
            self.update_addresses();
        }
        Ok(())
    }

    /// Gives a bound tensor back to the plan; `Argument` where it is not bound.
    pub fn unbind(&mut self, id: TensorId) -> Result<(), Error> {
        self.check(id)?;
        let at = self.bindings.binary_search_by_key(&id, |b| b.id);
        let at = at.map_err(|_| id.name(Error::argument("the tensor is not bound")))?;
        self.bindings.remove(at);
        self.sheets[id.subgraph as usize].elsewhere[id.tensor as usize] = self.has_io_place(id);
        (self.stale, self.restructured) = (true, true);
        Ok(())
    }

    fn is_constant(&self, id: TensorId) -> bool {
        let graph = &self.graphs[id.subgraph as usize];
        (id.tensor as usize) < graph.tensor_count() && graph.tensor(id.tensor as usize).allocation == Allocation::MmapRo
    }

    /// Says where a constant's data is, for instance in the mapped model file. It is referenced, not copied, may be shared
    /// by any number of sessions, and must outlive them. Its alignment is not checked here but reported by
    /// [`Session::misaligned_constants`].
    ///
    /// `Argument` for a tensor that is no constant, `Capacity` where `bytes` is less than the tensor's.
    pub fn bind_constant(&mut self, id: TensorId, data: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        self.check(id)?;
        if !self.is_constant(id) {
            return Err(id.name(Error::argument("the tensor is not a constant")));
        }
        let binding = Binding { id, data, bytes };
        fits(&binding, self.bytes_of(id))?;
        self.set_binding(binding);
        if !self.stale {
            self.update_addresses();
        }
        Ok(())
    }

    /// The same for data in a mapped file, from `offset` on; the session keeps the mapping alive.
    ///
    /// `Capacity` where the tensor's bytes reach past the end of the file.
    pub fn bind_mapped(&mut self, id: TensorId, file: &Arc<Mapping>, offset: u64) -> Result<(), Error> {
        self.check(id)?;
        let bytes = self.bytes_of(id).unwrap_or(0);
        let data = file.at(offset, bytes).map_err(|e| id.name(e))?;
        self.bind_constant(id, data, bytes as usize)?;
        if !self.mappings.iter().any(|m| Arc::ptr_eq(m, file)) {
            self.mappings.push(file.clone());
        }
        Ok(())
    }

    /// The bound constants whose address misses the alignment of the plan or of a node that reads them, and what an
    /// aligned copy of each would cost.
    pub fn misaligned_constants(&self) -> Vec<Misaligned> {
        let views = self.views();
        let mut out = Vec::new();
        for (g, view) in views.iter().enumerate() {
            let aligns = alignments(view, self.config.options.align);
            for b in self.bindings.iter().filter(|b| b.id.subgraph as usize == g && self.is_constant(b.id)) {
                let required = aligns[b.id.tensor as usize];
                let remainder = b.address() as u64 & (required.bytes() - 1);
                if remainder != 0 {
                    let bytes = self.bytes_of(b.id).unwrap_or(0);
                    let copy_bytes = required.round_up(bytes).unwrap_or(bytes);
                    out.push(Misaligned { id: b.id, required, remainder, copy_bytes });
                }
            }
        }
        out
    }

    /// Checks that every bound buffer still holds its tensor.
    pub(super) fn check_bindings(&self) -> Result<(), Error> {
        self.bindings.iter().try_for_each(|b| fits(b, self.bytes_of(b.id)))
    }

    /// Whether the tensor is an input or output with memory of its own.
    fn has_io_place(&self, id: TensorId) -> bool {
        let graph = &self.graphs[self.entry];
        self.io.is_some()
            && id.subgraph as usize == self.entry
            && graph.inputs().iter().chain(graph.outputs()).any(|&t| t == id.tensor as i32)
            && graph.tensor(id.tensor as usize).allocation == Allocation::ArenaRw
    }

    /// The inputs and outputs that need a place in the separate arena.
    pub(super) fn io_wants(&self) -> Vec<(TensorId, Bytes, Align)> {
        let Some((_, wish)) = self.config.io else { return Vec::new() };
        let graph = &self.graphs[self.entry];
        let aligns = alignments(&self.views()[self.entry], self.config.options.align);
        let mut out: Vec<(TensorId, Bytes, Align)> = Vec::new();
        for &t in graph.inputs().iter().chain(graph.outputs()).filter(|&&t| t >= 0) {
            let id = TensorId::new(self.entry as u32, t as u32);
            if self.has_io_place(id) && self.binding(id).is_none() && !out.iter().any(|o| o.0 == id) {
                out.push((id, self.bytes_of(id).unwrap_or(0), aligns[t as usize].max(wish)));
            }
        }
        out
    }
}

fn fits(binding: &Binding, bytes: Option<Bytes>) -> Result<(), Error> {
    match bytes {
        Some(bytes) if bytes > binding.bytes as u64 => Err(binding.id.name(
            Error::capacity("the bound buffer is shorter than the tensor")
                .needed(bytes)
                .available(binding.bytes as u64),
        )),
        _ => Ok(()),
    }
}
