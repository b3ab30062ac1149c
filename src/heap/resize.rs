//! Another size for a live block: in place, or down into the free block before it.

use super::block::{Heap, Request};
use super::handle::{Fault, Handle};
use super::node::{Node, State};
use super::store::Store;
use super::{pages, GRANULE, NIL};
use crate::error::Error;
use crate::units::Bytes;

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// Resizes a block without moving it: `Ok(true)`, and the handle stays good, or `Ok(false)` where the free space
    /// behind it does not suffice, with nothing changed.
    ///
    /// `extra` is as in [`Request::extra`]. A shrink always succeeds; where the rest cannot be recorded for want of a node
    /// it stays part of the block, or `Fault::NoNode` where it is 16 MiB or more. `Fault::BadHandle`, `TooLarge`.
    pub fn resize(&mut self, handle: Handle, bytes: Bytes, extra: Bytes) -> Result<bool, Fault> {
        let Some(index) = self.resolve(handle) else { return Err(self.bad(Fault::BadHandle)) };
        let shape = self.shape(&Request::new(bytes, 1).extra(extra))?;
        let Node { len, next, .. } = self.nodes.slice()[index as usize];
        let free_behind = self.nodes.slice().get(next as usize).filter(|n| n.is_free()).map_or(0, |n| n.len);
        if u64::from(shape.len) > u64::from(len) + u64::from(free_behind) {
            return Ok(false);
        }
        let (mut len_now, mut slack) = (shape.len, shape.slack);
        if shape.len < len && free_behind == 0 && self.spares.available(&self.nodes) == 0 {
            let kept = u64::from(len) * GRANULE - bytes;
            slack = u32::try_from(kept).ok().filter(|_| kept <= Node::MAX_SLACK).ok_or(Fault::NoNode)?;
            len_now = len;
        }
        self.set_end(index, len_now);
        self.set_request(index, len, slack);
        Ok(true)
    }

    /// [`Heap::resize`] with its errors: `Capacity` where the free space behind the block does not suffice, with the bytes
    /// it could have there; nothing has changed then.
    pub fn resize_in_place(&mut self, handle: Handle, bytes: Bytes, extra: Bytes) -> Result<(), Error> {
        let room = self.room(handle).unwrap_or(0);
        match self.resize(handle, bytes, extra) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::capacity("the block cannot grow where it is").needed(bytes).available(room)),
            Err(fault) => Err(fault.refusal(&Request::new(bytes, 1).extra(extra), room)),
        }
    }

    /// Bytes a block could hold where it is, with the free block behind it.
    fn room(&self, handle: Handle) -> Option<Bytes> {
        let nodes = self.nodes.slice();
        let node = &nodes[self.resolve(handle)? as usize];
        let behind = nodes.get(node.next as usize).filter(|n| n.is_free()).map_or(0, Node::bytes);
        Some(node.bytes() + behind)
    }

    /// Grows a block into the free space before and behind it, as far down as it goes (the free space is then behind it,
    /// for the next growth). Returns the new handle; its offset is lower by the returned number of bytes, and the old
    /// handle is stale.
    ///
    /// The caller then moves the contents down, and calls [`Heap::resize`] with the same size to give back what lies
    /// between the new end and the old one. `Ok(None)` where that does not suffice, with nothing changed. Errors as for `resize`.
    pub fn grow_down(&mut self, handle: Handle, bytes: Bytes, extra: Bytes) -> Result<Option<(Handle, Bytes)>, Fault> {
        let Some(index) = self.resolve(handle) else { return Err(self.bad(Fault::BadHandle)) };
        let shape = self.shape(&Request::new(bytes, 1).extra(extra))?;
        let nodes = self.nodes.slice();
        let Node { start, len, prev, next, .. } = nodes[index as usize];
        let free = |i: u32| nodes.get(i as usize).filter(|n| n.is_free());
        let (Some(before), false) = (free(prev), shape.len <= len) else { return Ok(None) };
        let align = 1u32 << nodes[index as usize].align_log2();
        // As far down as it goes, for the same copy: the space gained is then behind the block, for its next growth.
        let pad = self.origin.wrapping_add(before.start).wrapping_neg() & (align - 1);
        let Some(lowest) = before.start.checked_add(pad).filter(|&t| t < start) else { return Ok(None) };
        // What lies between the new end and the old one has to fit the record until the contents are moved.
        let most = ((bytes + Node::MAX_SLACK) / GRANULE) as u32 / align * align;
        let target = match (start + len).checked_sub(most) {
            Some(nearest) if nearest > lowest => {
                let Some(up) = (nearest - lowest).checked_next_multiple_of(align) else { return Ok(None) };
                lowest.saturating_add(up)
            }
            _ => lowest,
        };
        // The old contents stay owned until they are moved, so the end never drops below the old one.
        let room = u64::from(start) + u64::from(len) + u64::from(free(next).map_or(0, |n| n.len));
        let end = (u64::from(target) + u64::from(shape.len)).max(u64::from(start + len));
        if target >= start || end > room {
            return Ok(None);
        }
        let end = end as u32;
        let slack = u64::from(end - target) * GRANULE - bytes;
        if slack > Node::MAX_SLACK {
            return Ok(None);
        }
        self.set_end(index, end - start);
        let (lead, before_start) = (target - self.nodes.slice()[prev as usize].start, self.start_of(prev));
        if lead == 0 {
            self.drop_free(prev);
        } else {
            self.resize_free(prev, before_start, lead);
        }
        let nodes = self.nodes.slice_mut();
        pages::remove(self.pages.as_mut(), nodes, index);
        nodes[index as usize].start = target;
        nodes[index as usize].len = end - target;
        pages::insert(self.pages.as_mut(), nodes, index);
        // What is given back right after the move counts in no peak.
        let (peak, passing) = (self.stats.peak_live, u64::from(end - target - shape.len) * GRANULE);
        self.set_request(index, len, slack as u32);
        self.stats.peak_live = peak.max(self.stats.live - passing);
        Ok(Some((self.handle(index), u64::from(start - target) * GRANULE)))
    }

    fn start_of(&self, index: u32) -> u32 {
        self.nodes.slice()[index as usize].start
    }

    /// Records slack and length against the statistics; `old_len` is the length they know.
    fn set_request(&mut self, index: u32, old_len: u32, slack: u32) {
        let node = &mut self.nodes.slice_mut()[index as usize];
        let old_requested = i64::from(old_len) * GRANULE as i64 - i64::from(node.slack());
        let live = (i64::from(node.len) - i64::from(old_len)) * GRANULE as i64;
        node.set_used(slack, node.align_log2());
        let requested = node.requested() as i64 - old_requested;
        self.stats.resized += 1;
        self.account(live, requested);
    }

    /// Moves the end of a used block, taking from or giving to the free space behind it. The caller has made sure that
    /// there is enough, or a node for the rest.
    fn set_end(&mut self, index: u32, len: u32) {
        let Node { start, len: old, next, .. } = self.nodes.slice()[index as usize];
        if len == old {
            return;
        }
        let behind = self.nodes.slice().get(next as usize).filter(|n| n.is_free()).map(Node::end);
        match behind {
            Some(end) if end == start + len => self.drop_free(next),
            Some(end) => self.resize_free(next, start + len, end - (start + len)),
            None => {
                let rest = self.insert_after(index);
                debug_assert!(rest != NIL && self.nodes.slice()[rest as usize].state() == State::Spare);
                self.make_free(rest, start + len, old - len);
            }
        }
        self.nodes.slice_mut()[index as usize].len = len;
    }
}
