//! Blocks that only their holder may free: a frame's area, free space worked on outside a lock.

use super::block::{Heap, Request, Side};
use super::handle::{Fault, Handle};
use super::node::Node;
use super::store::Store;
use crate::units::Bytes;

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// Keeps a live block from being freed or resized by anyone but the caller of [`Heap::free_held`]: its handle and its
    /// offset are refused until then. `Fault::BadHandle`.
    pub fn hold(&mut self, handle: Handle) -> Result<(), Fault> {
        let Some(index) = self.resolve(handle) else { return Err(self.bad(Fault::BadHandle)) };
        self.nodes.slice_mut()[index as usize].set_held(true);
        Ok(())
    }

    /// Frees a held block. `Fault::BadHandle` for any other.
    pub fn free_held(&mut self, handle: Handle) -> Result<Bytes, Fault> {
        let held = self.nodes.slice().get(handle.node as usize).is_some_and(|n| {
            n.is_held()
                && n.generation == handle.generation
                && n.start == handle.granule
                && self.region == handle.region
        });
        if !held {
            return Err(self.bad(Fault::BadHandle));
        }
        Ok(self.release(handle.node))
    }

    /// Holds the largest free block, so that its bytes can be worked on outside a lock; `None` where nothing is free or no
    /// node is left. It counts as live until [`Heap::release_largest`], but in no peak and no total.
    pub fn hold_largest(&mut self) -> Option<(Handle, Bytes)> {
        let bytes = self.largest_free();
        // While it is held, the peak is kept higher by as much, so that the others' blocks count as before.
        self.parked += bytes;
        self.stats.peak_live += bytes;
        let before = self.stats;
        let held = self.alloc_with(&Request::new(bytes, 1).side(Side::Low)).ok().filter(|_| bytes > 0);
        self.stats.refused = before.refused;
        let Some(handle) = held else {
            self.parked -= bytes;
            self.stats.peak_live -= bytes;
            return None;
        };
        self.stats.peak_requested = before.peak_requested;
        // It was asked for by nobody.
        self.stats.requested -= bytes;
        let node = &mut self.nodes.slice_mut()[handle.node as usize];
        node.set_held(true);
        Some((handle, bytes))
    }

    /// Lets go of a block held by [`Heap::hold_largest`]. `Fault::BadHandle` for any other.
    pub fn release_largest(&mut self, handle: Handle) -> Result<(), Fault> {
        let bytes = self.nodes.slice().get(handle.node as usize).filter(|n| n.is_held()).map_or(0, Node::bytes);
        if bytes > self.parked {
            return Err(self.bad(Fault::BadHandle));
        }
        self.stats.requested += bytes;
        match self.free_held(handle) {
            Ok(_) => {
                self.parked -= bytes;
                self.stats.peak_live -= bytes;
                self.stats.allocs -= 1;
                self.stats.frees -= 1;
                Ok(())
            }
            Err(fault) => {
                self.stats.requested -= bytes;
                Err(fault)
            }
        }
    }
}
