//! Planned blocks that other threads free: marked where they are live, and put on a stack that the frame's owner takes whole.
//!
//! The primitives come from [`super::os`], so that a model checker can take their place.

use super::os::{AtomicU32, Ordering};

/// In a word of `live`: another thread has freed the block, and the owner has not seen it yet.
pub(crate) const REMOTE: u32 = 1 << 31;

/// Frees the block of `slot` from any thread: `live` is its place's word, `head` the stack, linked through `next`. False
/// where it is not live, or another thread was first.
pub(crate) fn put(live: &AtomicU32, head: &AtomicU32, next: &[AtomicU32], slot: u32) -> bool {
    // `AcqRel`: what the host wrote to the block comes before its next occupant, through the stack.
    let mark = live.compare_exchange(slot + 1, (slot | REMOTE) + 1, Ordering::AcqRel, Ordering::Relaxed);
    if mark.is_err() {
        return false;
    }
    // A slot is live once a run, and so at most once in the stack.
    let mut top = head.load(Ordering::Relaxed);
    loop {
        next[slot as usize].store(top, Ordering::Relaxed);
        match head.compare_exchange_weak(top, slot + 1, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => top = now,
        }
    }
}

/// Takes every slot off the stack, for the owner alone.
pub(crate) fn take(head: &AtomicU32, next: &[AtomicU32], mut each: impl FnMut(u32)) {
    let mut at = head.swap(0, Ordering::Acquire);
    while let Some(slot) = at.checked_sub(1) {
        at = next[slot as usize].load(Ordering::Relaxed);
        each(slot);
    }
}

/// Ends the life of a slot taken off the stack. False only where the host freed the block twice at once, from the owner's
/// thread and from another.
pub(crate) fn settle(live: &AtomicU32, slot: u32) -> bool {
    let marked = live.load(Ordering::Relaxed) == (slot | REMOTE) + 1;
    if marked {
        live.store(0, Ordering::Release);
    }
    marked
}
