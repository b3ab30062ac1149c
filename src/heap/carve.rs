//! The work on the records: carve a block out of free space, give it back, join it with its neighbours.

use super::block::{Heap, Shape};
use super::handle::{Fault, Handle};
use super::node::Node;
use super::store::Store;
use super::{pages, GRANULE, NIL};
use crate::units::Bytes;

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// Takes `shape` out of the free node `block`, which has room for it.
    #[inline]
    pub(super) fn carve(&mut self, block: u32, shape: &Shape) -> Result<Handle, Fault> {
        let Node { start, len, .. } = self.nodes.slice()[block as usize];
        let Some(at) = self.place(start, len, shape) else { return Err(Fault::NoSpace) };
        let lead = at - start;
        let tail = len - lead - shape.len;
        let used = if lead == 0 && tail == 0 {
            self.take_whole(block)?
        } else if lead == 0 {
            // The free node keeps the rest: the used block's node then comes from the queue, which spreads the wear.
            let used = self.spares.take(&mut self.nodes).ok_or(Fault::NoNode)?;
            let nodes = self.nodes.slice_mut();
            let gap = &mut nodes[block as usize];
            gap.start = start + shape.len;
            let prev = gap.prev;
            gap.prev = used;
            let node = &mut nodes[used as usize];
            (node.prev, node.next) = (prev, block);
            match nodes.get_mut(prev as usize) {
                Some(prev) => prev.next = used,
                None => self.first = used,
            }
            self.bins.resize(nodes, block, tail);
            used
        } else {
            if tail > 0 && self.spares.available(&self.nodes) < 2 {
                return Err(Fault::NoNode);
            }
            let used = self.spares.take(&mut self.nodes).ok_or(Fault::NoNode)?;
            self.link_after(block, used);
            self.bins.resize(self.nodes.slice_mut(), block, lead);
            if tail > 0 {
                self.add_rest(used, at + shape.len, tail);
            }
            used
        };
        let nodes = self.nodes.slice_mut();
        let node = &mut nodes[used as usize];
        node.start = at;
        node.len = shape.len;
        node.set_used(shape.slack, shape.align.trailing_zeros());
        let handle = Handle { region: self.region, granule: at, node: used, generation: node.generation };
        pages::insert(self.pages.as_mut(), nodes, used);
        let bytes = u64::from(shape.len) * GRANULE;
        let s = &mut self.stats;
        s.allocs += 1;
        s.live += bytes;
        s.requested += bytes - u64::from(shape.slack);
        s.peak_live = s.peak_live.max(s.live);
        s.peak_requested = s.peak_requested.max(s.requested);
        Ok(handle)
    }

    /// Takes the whole of a free node.
    #[inline]
    fn take_whole(&mut self, block: u32) -> Result<u32, Fault> {
        let worn = self.nodes.slice()[block as usize].generation >= self.spares.limit;
        if worn && self.spares.available(&self.nodes) == 0 {
            return Err(Fault::NoNode);
        }
        self.bins.remove(self.nodes.slice_mut(), block);
        Ok(if worn { self.replace(block) } else { block })
    }

    /// Frees the used node `index` and joins it with its free neighbours. Returns the bytes that had been asked for.
    #[inline]
    pub(super) fn release(&mut self, index: u32) -> Bytes {
        let nodes = self.nodes.slice_mut();
        pages::remove(self.pages.as_mut(), nodes, index);
        let node = &mut nodes[index as usize];
        let (bytes, requested) = (node.bytes(), node.requested());
        node.generation += 1;
        let Node { prev, mut next, mut len, .. } = *node;
        if let Some(&Node { len: gained, next: after, .. }) = nodes.get(next as usize).filter(|n| n.is_free()) {
            self.bins.remove(nodes, next);
            self.spares.give(nodes, next);
            len += gained;
            next = after;
            match nodes.get_mut(after as usize) {
                Some(after) => after.prev = index,
                None => self.last = index,
            }
        }
        match nodes.get_mut(prev as usize) {
            Some(before) if before.is_free() => {
                before.next = next;
                let len = before.len + len;
                match nodes.get_mut(next as usize) {
                    Some(next) => next.prev = prev,
                    None => self.last = prev,
                }
                self.spares.give(nodes, index);
                self.bins.resize(nodes, prev, len);
            }
            _ => {
                let node = &mut nodes[index as usize];
                (node.len, node.next) = (len, next);
                self.bins.insert(nodes, index);
            }
        }
        let s = &mut self.stats;
        s.frees += 1;
        // Peaks cannot rise here.
        s.live -= bytes;
        s.requested -= requested;
        requested
    }

    /// Adds to the live and requested bytes; sizes are below 2^40, so the sums fit.
    #[inline]
    pub(super) fn account(&mut self, live: i64, requested: i64) {
        let s = &mut self.stats;
        s.live = s.live.wrapping_add_signed(live);
        s.requested = s.requested.wrapping_add_signed(requested);
        s.peak_live = s.peak_live.max(s.live);
        s.peak_requested = s.peak_requested.max(s.requested);
    }

    /// Gives a free node another extent.
    #[inline]
    pub(super) fn resize_free(&mut self, index: u32, start: u32, len: u32) {
        let nodes = self.nodes.slice_mut();
        nodes[index as usize].start = start;
        self.bins.resize(nodes, index, len);
    }

    /// Makes a fresh node a free block.
    pub(super) fn make_free(&mut self, index: u32, start: u32, len: u32) {
        let nodes = self.nodes.slice_mut();
        let node = &mut nodes[index as usize];
        node.start = start;
        node.len = len;
        self.bins.insert(nodes, index);
    }

    /// What an aligned block leaves behind it.
    #[inline(never)]
    fn add_rest(&mut self, used: u32, start: u32, len: u32) {
        let rest = self.insert_after(used);
        self.make_free(rest, start, len);
    }

    /// Takes a free node out of its bin, the chain and use.
    pub(super) fn drop_free(&mut self, index: u32) {
        self.bins.remove(self.nodes.slice_mut(), index);
        self.unlink(index);
        self.spares.give(self.nodes.slice_mut(), index);
    }

    /// A fresh node linked after `index` by address. The caller has made sure that there is one.
    pub(super) fn insert_after(&mut self, index: u32) -> u32 {
        let fresh = self.spares.take(&mut self.nodes).unwrap_or(NIL);
        self.link_after(index, fresh);
        fresh
    }

    #[inline]
    fn link_after(&mut self, index: u32, fresh: u32) {
        let nodes = self.nodes.slice_mut();
        let before = &mut nodes[index as usize];
        let next = before.next;
        before.next = fresh;
        let node = &mut nodes[fresh as usize];
        (node.prev, node.next) = (index, next);
        match nodes.get_mut(next as usize) {
            Some(next) => next.prev = fresh,
            None => self.last = fresh,
        }
    }

    /// Retires a worn node and returns a fresh one in its place.
    #[cold]
    fn replace(&mut self, worn: u32) -> u32 {
        let fresh = self.insert_after(worn);
        self.unlink(worn);
        self.spares.give(self.nodes.slice_mut(), worn);
        fresh
    }

    /// Takes a node out of the chain by address.
    fn unlink(&mut self, index: u32) {
        let nodes = self.nodes.slice_mut();
        let Node { prev, next, .. } = nodes[index as usize];
        match nodes.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        match nodes.get_mut(next as usize) {
            Some(next) => next.prev = prev,
            None => self.last = prev,
        }
    }
}
