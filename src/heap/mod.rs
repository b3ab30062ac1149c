//! Free space over offsets: a coalescing allocator that never touches the memory it manages.
//!
//! A [`Heap`] hands out ranges of a region in granules of 128 bytes. Its records (one [`Node`] of 32 bytes a block) live
//! outside the region, so the region may be memory the CPU cannot reach (DMA, GPU, NPU), and an overrun of a block can
//! never damage the heap. Nothing here allocates: the records live in a [`Store`], which is a `Vec` or a slice the
//! caller lends ([`Borrowed`]).
//!
//! * Blocks are named by a [`Handle`]; a stale, foreign or repeated one is refused, always.
//! * With a page directory ([`Heap::with_pages`]) a block is also found from its offset, which is how the pointer API works.
//! * Freed blocks are joined with their free neighbours at once; two free blocks are never adjacent.
//! * Every call looks at a constant number of nodes, except for one exhaustive scan before a request is refused; both
//!   are counted ([`Stats::max_steps`], [`Stats::exhaustive_scans`]).
//!
//! With `alloc`, the module `frame` turns a recorded sequence of requests into fixed offsets and replays it.
#![forbid(unsafe_code)]

mod bins;
mod block;
mod carve;
mod check;
#[cfg(feature = "alloc")]
pub mod frame;
mod handle;
mod hold;
mod node;
mod pages;
#[cfg(feature = "alloc")]
pub mod rehearsal;
mod resize;
mod search;
mod spare;
mod stats;
mod store;

pub use block::{Heap, Request, Side};
pub use check::Extent;
pub use handle::{Fault, Handle};
pub use node::Node;
pub use stats::Stats;
pub use store::{Borrowed, Store};

/// Bytes of one granule: the smallest block and the smallest alignment.
pub const GRANULE: u64 = 128;
/// The most [`Request::extra`] can be: 16 MiB less two granules.
pub const MAX_EXTRA: u64 = Node::MAX_SLACK + 1 - 2 * GRANULE;
/// Bytes of one page of the directory: 32 granules.
pub const PAGE: u64 = 4096;
/// Granules a page holds, and the longest chain of the directory.
pub(crate) const PAGE_GRANULES: u32 = (PAGE / GRANULE) as u32;
/// No node.
pub(crate) const NIL: u32 = u32::MAX;

/// The page directory's length in entries for a region of `bytes`: one `u32` for every 4 KiB begun.
pub const fn pages_for(bytes: u64) -> usize {
    bytes.div_ceil(PAGE) as usize
}
