//! What a pool can be told and what it tells: options, refusals, statistics.

use std::sync::Arc;

use super::pool::Pool;
use super::pool_debug::DebugOptions;
use super::region::RegionSource;
use crate::error::Error;
use crate::heap::Stats;

/// How a pool gets more memory once its regions are full.
#[derive(Clone, Copy, Debug, Default)]
pub enum Growth {
    /// Not at all.
    #[default]
    None,
    /// A region as large as the request that did not fit, or `at_least` bytes if that is more.
    Exact {
        /// Bytes.
        at_least: usize,
    },
    /// A region as large as everything taken from the source so far, or the request, or `first` bytes if that is more.
    Geometric {
        /// Bytes of the first region.
        first: usize,
    },
}

/// What a pool does with a request that neither fits nor may grow the pool.
#[derive(Clone, Debug, Default)]
pub enum Fallback {
    /// Refuses it.
    #[default]
    None,
    /// Passes it to another pool.
    Pool(Arc<Pool>),
    /// Passes it to the system's heap.
    System,
}

/// Room behind every block, for kernels that read or write past the end of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tail {
    /// None.
    #[default]
    None,
    /// So many bytes behind a block can be read, though they may be another block's: reserved once per region.
    Readable(usize),
    /// So many bytes behind a block are its own: added to every block.
    Exclusive(usize),
}

/// How to make a pool. [`PoolConfig::default`] takes memory from the system when it is first needed.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Where regions come from.
    pub source: RegionSource,
    /// Bytes of a region made at once; 0 for none.
    pub first_region: usize,
    /// How the pool grows.
    pub growth: Growth,
    /// The most bytes ever taken from the source at a time.
    pub cap: u64,
    /// Who serves what does not fit.
    pub fallback: Fallback,
    /// Room behind every block.
    pub tail: Tail,
    /// Live blocks per region at most, so that the records never grow; `None` lets them.
    pub max_blocks: Option<usize>,
    /// Locks the pool is divided among, 1 to 64; 1 by default.
    ///
    /// Each shard has regions of its own. A thread allocates from its own shard (threads are dealt over the shards as they
    /// first come), from another one where that is full, and only then from new memory, for its own shard; so the memory is
    /// shared, and a block may be freed by any thread. The first region and a lent buffer are divided evenly.
    ///
    /// Cost: a block has to fit into one shard's part, so the largest block of a pool that cannot grow is its size divided
    /// by the number of shards; free space is scattered over so many parts, and each shard's records and last region begin
    /// anew (32 bytes a block, at least 64 blocks). Statistics stay exact.
    pub shards: usize,
    /// Checks for the host's errors; all off by default.
    pub debug: DebugOptions,
    /// Frames are found by themselves, for hosts that cannot say where one begins and ends: each thread's requests are
    /// watched, and a sequence that repeats is served from a plan as with [`Pool::frame_begin`]. Free pages are given
    /// back as the pool's resident bytes pass what was ever live. Costs some hundred nanoseconds a call, and is off by default.
    pub auto_frames: bool,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig {
            source: RegionSource::Map,
            first_region: 0,
            growth: Growth::Geometric { first: 1 << 20 },
            cap: u64::MAX,
            fallback: Fallback::None,
            tail: Tail::None,
            max_blocks: None,
            shards: 1,
            debug: DebugOptions::default(),
            auto_frames: false,
        }
    }
}

/// Why a request was refused, with what was free at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}; {free} bytes free, {largest} in the largest block")]
pub struct Refusal {
    /// The kind and the reason; `needed` are the bytes asked for, `available` those of the largest free block.
    pub error: Error,
    /// Bytes free in all regions.
    pub free: u64,
    /// Bytes of the largest free block.
    pub largest: u64,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        refusal.error
    }
}

/// What a pool holds and did.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// The sums over the regions' heaps; peaks are sums of peaks.
    pub heap: Stats,
    /// Regions.
    pub regions: u32,
    /// Bytes taken from the source now.
    pub reserved: u64,
    /// Regions added because the others were full.
    pub grown: u64,
    /// Live blocks served by the fallback, and their bytes.
    pub fallback_blocks: u64,
    /// Bytes asked for in those.
    pub fallback_bytes: u64,
    /// Bytes copied because a block could not be resized where it was.
    pub moved_bytes: u64,
    /// Bytes given back by trims: pages discarded and regions released.
    pub trimmed_bytes: u64,
    /// Requests refused.
    pub refused: u64,
    /// Pointers that named no live block.
    pub bad: u64,
    /// Bytes of the largest free block.
    pub largest_free: u64,
}

impl PoolStats {
    /// Those of a pool without regions.
    pub const NONE: PoolStats = PoolStats {
        heap: Stats::NONE,
        regions: 0,
        reserved: 0,
        grown: 0,
        fallback_blocks: 0,
        fallback_bytes: 0,
        moved_bytes: 0,
        trimmed_bytes: 0,
        refused: 0,
        bad: 0,
        largest_free: 0,
    };
}
