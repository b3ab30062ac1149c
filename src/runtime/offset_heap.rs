//! A heap over offsets that any thread may use: for memory the CPU cannot touch.

use super::pool_lock::{register, unregister, Lock};
use crate::error::{Error, Kind};
use crate::heap::{pages_for, Extent, Fault, Handle, Heap, Node, Request, Stats, GRANULE};
use crate::units::Bytes;

/// Records reserved at first where they may grow.
const FIRST_NODES: usize = 64;

/// How an [`OffsetHeap`] works.
#[derive(Clone, Copy, Debug, Default)]
pub struct OffsetHeapConfig {
    /// Bytes of the region, rounded down to 128; less than 512 GiB.
    pub bytes: Bytes,
    /// Where it starts in the address space of whoever uses it, a multiple of 128: only alignments above 128 look at it.
    pub base: u64,
    /// Comes back in every handle.
    pub region: u32,
    /// Live blocks for which there are always records, which then never grow; 0 lets them.
    pub max_blocks: usize,
    /// Blocks of so many bytes are taken from below, smaller ones from above; 0 for a 32nd of the region.
    pub large: Bytes,
    /// Blocks are found by their offset, too ([`OffsetHeap::find`]): 4 bytes for every 4 KiB of the region.
    pub find: bool,
}

/// A coalescing heap over the offsets of one region, which it never touches: DMA, GPU and NPU memory, files, other
/// processes' memory.
///
/// Threads: any. Under its lock there is list work only; its records grow outside it. Survives a fork.
#[derive(Debug)]
pub struct OffsetHeap {
    // Boxed: a registered lock must not move.
    inner: Box<Lock<Heap<Vec<Node>, Vec<u32>>>>,
    fixed: bool,
}

impl OffsetHeap {
    /// A heap with everything free.
    ///
    /// `Argument` for less than 128 bytes; `Capacity` for 512 GiB or more; `Alignment` for a base that is not a
    /// multiple of 128; `NoMemory`.
    pub fn new(config: &OffsetHeapConfig) -> Result<OffsetHeap, Error> {
        if config.bytes < GRANULE {
            return Err(Error::argument("a heap has at least 128 bytes").needed(config.bytes));
        }
        let none = |bytes: u64| Error::no_memory("no memory for the heap's records").needed(bytes);
        let granules = config.bytes / GRANULE;
        // Between two blocks there is at most one gap, and the region ends once.
        let most = granules.saturating_add(1).min(1 << 32) as usize;
        let wanted = match config.max_blocks {
            0 => FIRST_NODES,
            blocks => blocks.saturating_mul(2).saturating_add(1),
        };
        let wanted = wanted.min(most);
        let nodes = reserve::<Node>(wanted).ok_or(none((wanted as u64).saturating_mul(32)))?;
        let mut pages = Vec::new();
        if config.find {
            let entries = pages_for(granules * GRANULE);
            pages = reserve::<u32>(entries).ok_or(none((entries as u64).saturating_mul(4)))?;
            pages.resize(entries, 0);
        }
        let mut heap =
            Heap::with_pages(config.region, config.base, config.bytes, nodes, pages).map_err(|fault| match fault {
                Fault::TooLarge => {
                    Error::capacity("a heap has less than 512 GiB").needed(config.bytes).available((1 << 39) - GRANULE)
                }
                Fault::Alignment => Error::alignment("the base is not a multiple of 128").needed(config.base),
                other => other.error(),
            })?;
        if config.large > 0 {
            heap.set_large(config.large);
        }
        let inner =
            super::region::try_box(Lock::new(heap)).ok_or(none(size_of::<Lock<Heap<Vec<Node>, Vec<u32>>>>() as u64))?;
        if !register(inner.raw()) {
            return Err(none(8));
        }
        Ok(OffsetHeap { inner, fixed: config.max_blocks > 0 })
    }

    /// Allocates. `Capacity` with what was asked for and the largest free block; `Alignment`; `NoMemory` where the
    /// records are used up and cannot grow. Nothing has changed then but the statistics.
    #[inline]
    pub fn alloc(&self, request: &Request) -> Result<Handle, Error> {
        loop {
            let mut heap = self.inner.lock();
            let fault = match heap.alloc_with(request) {
                Ok(handle) => return Ok(handle),
                Err(fault) => fault,
            };
            let (largest, capacity) = (heap.largest_free(), heap.node_capacity());
            drop(heap);
            if fault != Fault::NoNode || !self.grow(capacity) {
                return Err(fault.refusal(request, largest));
            }
        }
    }

    /// Frees a block and returns the bytes that had been asked for; `Argument` where the handle names no live block.
    #[inline]
    pub fn free(&self, handle: Handle) -> Result<Bytes, Error> {
        self.inner.lock().free(handle).map_err(Fault::error)
    }

    /// Resizes a block where it is, the handle stays good; as [`Heap::resize_in_place`].
    pub fn resize(&self, handle: Handle, bytes: Bytes, extra: Bytes) -> Result<(), Error> {
        loop {
            let mut heap = self.inner.lock();
            let (outcome, capacity) = (heap.resize_in_place(handle, bytes, extra), heap.node_capacity());
            drop(heap);
            match outcome {
                Err(e) if e.kind == Kind::NoMemory && self.grow(capacity) => {}
                outcome => return outcome,
            }
        }
    }

    /// The handle of the live block that starts at `offset`; `Unsupported` without [`OffsetHeapConfig::find`],
    /// `Argument` where none starts there.
    pub fn find(&self, offset: Bytes) -> Result<Handle, Error> {
        self.inner.lock().find_live(offset)
    }

    /// Bytes the block holds and bytes asked for; `Argument` for a bad handle.
    pub fn size(&self, handle: Handle) -> Result<(Bytes, Bytes), Error> {
        self.inner.lock().size(handle).ok_or(Fault::BadHandle.error())
    }

    /// The statistics, and the bytes of the largest free block.
    pub fn stats(&self) -> (Stats, Bytes) {
        let heap = self.inner.lock();
        (heap.stats(), heap.largest_free())
    }

    /// Checks the whole structure; other threads wait meanwhile. Linear in the number of blocks.
    pub fn check(&self) -> Result<(), Error> {
        self.inner.lock().check()
    }

    /// A hash of everything that decides what the heap does next: the same before and after a refused call.
    pub fn fingerprint(&self) -> u64 {
        self.inner.lock().fingerprint()
    }

    /// Shows every block in order of offset; other threads wait meanwhile.
    pub fn walk(&self, see: impl FnMut(Extent)) {
        self.inner.lock().walk(see);
    }

    /// Twice the records: allocated and released outside the lock. True where the caller should try again.
    #[cold]
    fn grow(&self, seen: usize) -> bool {
        if self.fixed {
            return false;
        }
        let Some(bigger) = seen.checked_mul(2).and_then(reserve::<Node>) else { return false };
        let mut heap = self.inner.lock();
        // Another thread may have been faster.
        let unused = match heap.node_capacity() {
            now if now > seen => bigger,
            _ => heap.more_nodes(bigger),
        };
        drop(heap);
        drop(unused);
        true
    }
}

impl Drop for OffsetHeap {
    fn drop(&mut self) {
        unregister(self.inner.raw());
    }
}

fn reserve<T>(count: usize) -> Option<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count).ok().map(|()| out)
}
