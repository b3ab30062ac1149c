//! Another size for a live block: in place, down into free space before it, or by moving it.

use core::ptr::NonNull;

use super::pool::Pool;
use super::pool_config::Refusal;
use crate::heap::{Fault, Request, Side};

/// What the heap could do without copying to another block.
enum Step {
    Done(NonNull<u8>),
    /// The block now starts lower; so many bytes of old contents have yet to be moved down.
    Down(NonNull<u8>, usize),
    /// It has to move; bytes that the host may have used and the alignment to keep.
    Move(usize, u64),
    Wrong,
    Failed(Fault),
}

impl Pool {
    /// Resizes a block, keeping its contents up to the smaller size and its alignment. What [`Pool::usable_size`] tells of
    /// the old block is kept, too: a host may have used it. Null allocates at 128; 0 bytes keep a block of their own.
    ///
    /// In place where it can be, then down into free space before the block, then elsewhere. On a [`Refusal`] the old
    /// block is untouched; kind `Argument` where no live block starts there.
    ///
    /// # Safety
    /// If `block` is live, nobody else uses it during the call, and on success only the returned pointer afterwards.
    pub unsafe fn realloc(&self, block: Option<NonNull<u8>>, bytes: usize) -> Result<NonNull<u8>, Refusal> {
        // SAFETY: the same contract.
        unsafe { self.realloc_with(block, bytes, 0) }
    }

    /// The same, with `headroom` bytes more reserved where the block has to grow: the next growths then need no copy.
    ///
    /// # Safety
    /// As for [`Pool::realloc`].
    pub unsafe fn realloc_with(
        &self,
        block: Option<NonNull<u8>>,
        bytes: usize,
        headroom: usize,
    ) -> Result<NonNull<u8>, Refusal> {
        let Some(old) = block else {
            return self.alloc_with(&Request::new(bytes as u64, 1).extra(headroom as u64));
        };
        if !self.shared.trace.is_on() {
            if let Some(streams) = &self.shared.streams {
                // SAFETY: the same contract.
                return unsafe { self.realloc_streamed(streams, old, bytes, headroom) };
            }
            // SAFETY: the same contract.
            return unsafe { self.realloc_untraced(old, bytes, headroom) };
        }
        let resizing = self.shared.trace.resizing(old);
        // SAFETY: the same contract.
        let outcome = unsafe { self.realloc_untraced(old, bytes, headroom) };
        self.shared.trace.resized(resizing, *outcome.as_ref().unwrap_or(&old), outcome.is_ok().then_some(bytes as u64));
        outcome
    }

    /// # Safety
    /// As for [`Pool::realloc`].
    pub(crate) unsafe fn realloc_untraced(
        &self,
        old: NonNull<u8>,
        bytes: usize,
        headroom: usize,
    ) -> Result<NonNull<u8>, Refusal> {
        let asked = Request::new(bytes as u64, 1);
        if self.shared.debug.is_some() {
            // Guards and tags belong to a block's address and size: debug builds of the host always move.
            let debug = self.shared.debug.as_ref();
            debug.map_or(Ok(()), |debug| debug.whole(old)).map_err(|error| self.refuse_as_is(error))?;
            let known = debug.and_then(|debug| debug.layout(old));
            let known = known.or_else(|| self.shared.outside.lock().layout(old).map(|(b, a)| (b, a as u64)));
            let (requested, align) = known.ok_or_else(|| self.refuse(self.bad_pointer(), &asked))?;
            let used = self.usable_size(old).unwrap_or(requested);
            // SAFETY: the caller's contract.
            return unsafe { self.move_block(old, used, bytes, headroom, align) };
        }
        let overhead = self.overhead();
        match self.resize_step(old, bytes as u64, headroom as u64) {
            Step::Done(block) => Ok(block),
            Step::Down(new, kept) => {
                // SAFETY: both ranges lie in the block, which holds the old contents and the new place; they may overlap.
                unsafe { new.copy_from(old, kept) };
                self.settle(new, bytes as u64);
                Ok(new)
            }
            // SAFETY: the caller's contract.
            Step::Move(used, align) => unsafe { self.move_block(old, used, bytes, headroom, align) },
            Step::Wrong => {
                // Taken out first: a guard inside `match` would be held while the block moves.
                let outside = self.shared.outside.lock().layout(old);
                let planned =
                    || self.planned_size(old).map(|(held, align)| ((held - overhead) as usize, align as usize));
                match outside.or_else(planned) {
                    // SAFETY: the caller's contract.
                    Some((used, align)) => unsafe { self.move_block(old, used, bytes, headroom, align as u64) },
                    None => Err(self.refuse(self.bad_pointer(), &asked)),
                }
            }
            Step::Failed(fault) => Err(self.refuse(fault.error(), &asked)),
        }
    }

    /// [`Pool::realloc`] for a block from [`Pool::alloc_zeroed`]: every byte past the old size is 0.
    ///
    /// # Safety
    /// As for [`Pool::realloc`].
    pub unsafe fn realloc_zeroed(&self, block: Option<NonNull<u8>>, bytes: usize) -> Result<NonNull<u8>, Refusal> {
        let old = match block {
            Some(block) => {
                let asked = Request::new(bytes as u64, 1);
                self.size_of(block).ok_or_else(|| self.refuse(self.bad_pointer(), &asked))?.1
            }
            None => 0,
        };
        // SAFETY: the same contract.
        let new = unsafe { self.realloc(block, bytes) }?;
        // The count is the size asked for, not the block's: a shrink leaves old bytes in the slack.
        let (from, to) = (old.min(bytes), self.zeroed_to(new, bytes));
        // SAFETY: `from` is inside the block, which holds `to` bytes.
        let grown = unsafe { new.add(from) };
        // SAFETY: `[from, to)` lies in the block, which is the caller's alone.
        unsafe { grown.write_bytes(0, to - from) };
        Ok(new)
    }

    /// Up to where a block of `bytes` zeroed bytes has to be zero. A planned block does not know what it was asked for, and
    /// takes all it holds for its old size when it grows: all of that, then.
    pub(crate) fn zeroed_to(&self, block: NonNull<u8>, bytes: usize) -> usize {
        match &self.shared.streams {
            Some(_) => self.usable_size(block).map_or(bytes, |usable| usable.max(bytes)),
            None => bytes,
        }
    }

    fn resize_step(&self, old: NonNull<u8>, bytes: u64, headroom: u64) -> Step {
        let overhead = self.overhead();
        let Some((mut inner, slot, offset)) = self.locate(old) else { return Step::Wrong };
        let Some(region) = &mut inner.regions[slot] else { return Step::Wrong };
        let Some(handle) = region.heap.find(offset) else { return Step::Wrong };
        let (used, align) = match (region.heap.size(handle), region.heap.align_of(handle)) {
            (Some((held, requested)), Some(align)) => {
                // Growing within headroom reserved before keeps what is left of it.
                if bytes > requested && bytes + overhead <= held {
                    let rest = held - bytes - overhead;
                    if region.heap.resize(handle, bytes, overhead + rest) == Ok(true) {
                        return Step::Done(old);
                    }
                }
                (held.saturating_sub(overhead).max(requested) as usize, align)
            }
            _ => return Step::Wrong,
        };
        // Headroom if it is there, without it if not.
        for extra in [overhead.saturating_add(headroom), overhead] {
            match region.heap.resize(handle, bytes, extra) {
                Ok(true) => return Step::Done(old),
                Ok(false) | Err(Fault::TooLarge) => {}
                Err(fault) => return Step::Failed(fault),
            }
        }
        match region.heap.grow_down(handle, bytes, overhead) {
            Ok(Some((moved, _))) => {
                let new = region.pointer(moved.offset());
                let kept = used.min(usize::try_from(bytes).unwrap_or(used));
                inner.moved_bytes += kept as u64;
                Step::Down(new, kept)
            }
            Ok(None) | Err(Fault::TooLarge) => Step::Move(used, align),
            Err(fault) => Step::Failed(fault),
        }
    }

    /// Gives back what alignment left over after a move down.
    fn settle(&self, block: NonNull<u8>, bytes: u64) {
        let overhead = self.overhead();
        let Some((mut inner, slot, offset)) = self.locate(block) else { return };
        let Some(region) = &mut inner.regions[slot] else { return };
        if let Some(handle) = region.heap.find(offset) {
            // Refused only where records have run out: the block then keeps the rest.
            let _ = region.heap.resize(handle, bytes, overhead);
        }
    }

    /// # Safety
    /// `old` is live with `used` bytes, and the caller's alone.
    unsafe fn move_block(
        &self,
        old: NonNull<u8>,
        used: usize,
        bytes: usize,
        headroom: usize,
        align: u64,
    ) -> Result<NonNull<u8>, Refusal> {
        let request = Request::new(bytes as u64, align);
        let new = match headroom {
            0 => self.alloc_untraced(&request)?,
            // It will grow again: where there is the most room, and without the headroom if need be.
            _ => match self.alloc_untraced(&request.extra(headroom as u64).side(Side::Grow)) {
                Err(_) => self.alloc_untraced(&request.side(Side::Grow))?,
                Ok(new) => new,
            },
        };
        let kept = used.min(bytes);
        // SAFETY: the new block is another one, so the ranges are apart; both hold `kept` bytes.
        unsafe { new.copy_from_nonoverlapping(old, kept) };
        self.lock().moved_bytes += kept as u64;
        // SAFETY: the contents have moved and the caller uses the new pointer only.
        let freed = unsafe { self.free(old) };
        debug_assert!(freed.is_ok(), "the old block was live a moment ago");
        Ok(new)
    }
}
