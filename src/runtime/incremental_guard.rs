//! Guard mode of the incremental arena: a zone behind every tensor, so that an overrun names the operator.

use super::incremental::IncrementalArena;
use super::zone::{damage, paint, zoned};
use crate::error::{Error, Subject};
use crate::graph::incremental::Arena;
use crate::graph::tables::{Allocation, Node, Tables, Tensor};

/// A graph whose tensors have their zones.
pub(super) struct Zoned<'a, T: ?Sized>(pub &'a T);

impl<T: Tables + ?Sized> Tables for Zoned<'_, T> {
    fn tensor_count(&self) -> usize {
        self.0.tensor_count()
    }

    fn tensor(&self, index: usize) -> Tensor {
        let mut t = self.0.tensor(index);
        if matches!(t.allocation, Allocation::ArenaRw | Allocation::ArenaRwPersistent) {
            t.bytes = t.bytes.map(zoned);
        }
        t
    }

    fn node_count(&self) -> usize {
        self.0.node_count()
    }

    fn node(&self, index: usize) -> Node<'_> {
        self.0.node(index)
    }

    fn inputs(&self) -> &[i32] {
        self.0.inputs()
    }

    fn outputs(&self) -> &[i32] {
        self.0.outputs()
    }

    fn variables(&self) -> &[i32] {
        self.0.variables()
    }
}

impl IncrementalArena {
    /// Call before each node runs, in order: prepares the zones of tensors that come alive there or were placed since.
    ///
    /// `Unsupported` without guard mode, `Stale` without memory.
    pub fn guard_before<T: Tables + ?Sized>(&mut self, graph: &T, node: i32) -> Result<(), Error> {
        for (t, zone, begins) in self.zones(graph, node)? {
            if begins || self.painted[t] != zone as usize {
                // SAFETY: the place was made for the tensor and its zone, and the memory is this arena's.
                unsafe { paint(zone) };
                self.painted[t] = zone as usize;
            }
        }
        Ok(())
    }

    /// Call after each node: checks the zones of everything alive there.
    ///
    /// `Argument` names the node and a tensor that was written past its end; `needed` is how many bytes past it the last
    /// damage lies. The next node is not blamed for it.
    pub fn guard_after<T: Tables + ?Sized>(&mut self, graph: &T, node: i32) -> Result<(), Error> {
        for (t, zone, _) in self.zones(graph, node)? {
            if self.painted[t] != zone as usize {
                continue; // the node was not announced
            }
            // SAFETY: the place was made for the tensor and its zone, which `guard_before` painted there.
            if let Some(bytes) = unsafe { damage(zone) } {
                let e = Error::argument("the node wrote past the end of a tensor").of(Subject::Node(node as u32));
                return Err(e.and(Subject::Tensor(t as u32)).needed(bytes));
            }
        }
        Ok(())
    }

    /// The tensors alive at a node that have their own bytes: each with its zone and whether its life begins there.
    fn zones<T: Tables + ?Sized>(&mut self, graph: &T, node: i32) -> Result<Vec<(usize, *mut u8, bool)>, Error> {
        if !self.guard {
            return Err(Error::unsupported("the incremental planner was created without guard mode"));
        }
        if !self.has_memory() {
            return Err(Error::stale("the arena has no memory: execute or acquire first"));
        }
        if node < 0 || node as usize >= graph.node_count() {
            let e = Error::argument("there is no such node").of(Subject::Node(node as u32));
            return Err(e.available(graph.node_count() as u64));
        }
        self.painted.resize(self.addresses.len(), 0);
        let mut out = Vec::new();
        for (t, &address) in self.addresses.iter().enumerate().take(graph.tensor_count()) {
            let Some(r) = self.record(t).filter(|r| r.size > 0 && address != 0) else { continue };
            let bytes = graph.tensor(t).bytes.unwrap_or(0);
            // One that has outgrown its place is refused by `resolve`, so nobody writes it.
            if r.first > node || node > r.last || bytes == 0 || zoned(bytes) > r.size {
                continue;
            }
            let begins = r.first == node && r.arena == Arena::Main;
            out.push((t, (address + bytes as usize) as *mut u8, begins));
        }
        Ok(out)
    }
}
