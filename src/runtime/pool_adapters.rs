//! The pool as Rust's allocators: the global one for large blocks, and collections through `allocator-api2`.

use core::cell::Cell;
use core::ptr::NonNull;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

use super::pool::Pool;
use super::pool_config::PoolConfig;

/// A global allocator that serves blocks from a size up from a pool, and the rest from the system.
///
/// ```
/// use arenite::runtime::GlobalPool;
///
/// #[global_allocator]
/// static HEAP: GlobalPool = GlobalPool::new(64 << 10);
///
/// let tensor = vec![0u8; 1 << 20];
/// assert_eq!(tensor.as_ptr() as usize % 128, 0);
/// assert!(HEAP.pool().is_some_and(|pool| pool.stats().heap.requested >= 1 << 20));
/// ```
///
/// What the pool allocates for its own records comes from the system, too. Threads: any.
#[derive(Debug)]
pub struct GlobalPool {
    threshold: usize,
    pool: OnceLock<Option<Pool>>,
}

std::thread_local! {
    /// Whether this thread is inside the pool, so that its own requests go to the system. Constant and without a
    /// destructor: such a variable works at any time of a thread's life and allocates nothing.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl GlobalPool {
    /// Blocks of `threshold` bytes and more come from the pool, which is made when the first one is asked for.
    pub const fn new(threshold: usize) -> GlobalPool {
        GlobalPool { threshold, pool: OnceLock::new() }
    }

    /// The pool, once a block has been asked for; `None` before, or where it could not be made.
    pub fn pool(&self) -> Option<&Pool> {
        self.pool.get()?.as_ref()
    }

    /// Runs `work` with the pool, or returns `None` where the request has to go to the system.
    fn inside<R>(&self, make: bool, work: impl FnOnce(&Pool) -> Option<R>) -> Option<R> {
        if INSIDE.get() {
            return None;
        }
        INSIDE.set(true);
        let pool = match make {
            true => self.pool.get_or_init(|| Pool::new(PoolConfig::default()).ok()).as_ref(),
            false => self.pool(),
        };
        let result = pool.and_then(work);
        INSIDE.set(false);
        result
    }
}

// SAFETY: blocks are of the layout asked for, aligned and the caller's alone until freed; nothing unwinds; a block goes back
// to where it came from, since the pool knows its own addresses.
unsafe impl GlobalAlloc for GlobalPool {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= self.threshold {
            let block = self.inside(true, |pool| pool.alloc(layout.size(), layout.align()).ok());
            if let Some(block) = block {
                return block.as_ptr();
            }
        }
        // SAFETY: the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= self.threshold {
            let freed = self.inside(false, |pool| {
                let block = NonNull::new(block).filter(|&b| pool.owns(b))?;
                // SAFETY: the same contract.
                unsafe { pool.free(block) }.ok()
            });
            if freed.is_some() {
                return;
            }
        }
        // SAFETY: not of the pool, so the system's.
        unsafe { System.dealloc(block, layout) }
    }
    // `realloc` is the default one, which moves: a block that crosses the threshold changes its owner.
}

#[cfg(feature = "allocator-api2")]
mod collections {
    use core::ptr::NonNull;
    use std::alloc::Layout;

    use allocator_api2::alloc::{AllocError, Allocator};

    use super::Pool;

    /// What a layout without bytes gets: as the standard heap does, no memory at all.
    fn nothing(layout: Layout) -> NonNull<u8> {
        // An alignment is never 0.
        NonNull::new(core::ptr::without_provenance_mut(layout.align())).unwrap_or(NonNull::dangling())
    }

    // SAFETY: a block stays valid until it is freed, whichever copy of the reference frees it; a moved or cloned reference is
    // the same pool.
    unsafe impl Allocator for &Pool {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            let block = match layout.size() {
                0 => nothing(layout),
                bytes => self.alloc(bytes, layout.align()).map_err(|_| AllocError)?,
            };
            Ok(NonNull::slice_from_raw_parts(block, layout.size()))
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            if layout.size() > 0 {
                // SAFETY: the same contract.
                let freed = unsafe { self.free(block) };
                debug_assert!(freed.is_ok(), "the block was allocated by this pool");
            }
        }

        unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: the same contract.
            unsafe { relayout(self, block, old, new) }
        }

        unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: the same contract.
            unsafe { relayout(self, block, old, new) }
        }
    }

    /// In place where it can be, so that a shrink works in a full pool, too.
    ///
    /// # Safety
    /// The block is of this pool and of the layout `old`.
    unsafe fn relayout(pool: &Pool, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if new.align() <= old.align() && old.size() > 0 && new.size() > 0 {
            // SAFETY: the same contract; the pool keeps the alignment the block was made with.
            let moved = unsafe { pool.realloc(Some(block), new.size()) }.map_err(|_| AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(moved, new.size()));
        }
        let other = pool.allocate(new)?;
        // SAFETY: the new block is another one, or there is nothing to copy; both hold the smaller size.
        unsafe { other.cast::<u8>().copy_from_nonoverlapping(block, old.size().min(new.size())) };
        // SAFETY: the contents have moved.
        unsafe { pool.deallocate(block, old) };
        Ok(other)
    }
}

#[cfg(all(test, feature = "allocator-api2"))]
mod tests {
    use super::*;

    #[test]
    fn collections_live_in_the_pool() {
        let pool = Pool::new(PoolConfig::default()).unwrap();
        let mut numbers = allocator_api2::vec::Vec::new_in(&pool);
        (0..10_000u32).for_each(|i| numbers.push(i));
        assert!(numbers.iter().enumerate().all(|(i, &n)| i as u32 == n));
        assert!(pool.stats().heap.requested >= 40_000);
        drop(numbers);
        assert_eq!(pool.stats().heap.blocks, 0);
    }
}
