//! What the two heaps over offsets share: handles, options, hints, statistics.

use core::mem::size_of;

use super::abi::Versioned;
use crate::error::Error;
use crate::heap::{Handle, Request, Side, Stats, GRANULE};

/// Nothing is known of the block's lifetime.
pub const ARENITE_POOL_HINT_UNKNOWN: u32 = 0;
/// The block lives about as long as a frame, or longer: weights, outputs that are kept.
pub const ARENITE_POOL_HINT_LONG: u32 = 1;
/// It is freed within the frame: a tensor on its way to the next operators.
pub const ARENITE_POOL_HINT_SHORT: u32 = 2;
/// It is freed by the operator that asks for it: a workspace.
pub const ARENITE_POOL_HINT_SCRATCH: u32 = 3;
/// It will grow by `arenite_pool_realloc`: it is put where there is the most room, without any being set aside.
pub const ARENITE_POOL_HINT_GROWING: u32 = 4;

/// Blocks are found by their offset, too: 4 bytes more for every 4 KiB of the region.
pub const ARENITE_HEAP_FIND: u32 = 1;

/// Names one block of a heap. It goes stale when the block is freed and never names a later one. Its offset is
/// `arenite_heap_offset(block)`. A struct of zeros names no block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_heap_block_t {
    /// The region, as given in the heap's options.
    pub region: u32,
    /// The offset in units of 128 bytes.
    pub granule: u32,
    /// At most twice `max_blocks` and unique among live blocks: an index for a table of your own.
    pub node: u32,
    /// How often the record has been used; never 0.
    pub generation: u32,
}

const _: () = assert!(size_of::<arenite_heap_block_t>() == 16);

impl From<Handle> for arenite_heap_block_t {
    fn from(handle: Handle) -> Self {
        let [region, granule, node, generation] = handle.to_words();
        Self { region, granule, node, generation }
    }
}

impl From<arenite_heap_block_t> for Handle {
    fn from(block: arenite_heap_block_t) -> Self {
        Handle::from_words([block.region, block.granule, block.node, block.generation])
    }
}

/// How a heap works. `bytes` must be given.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_heap_options_t {
    /// `sizeof(arenite_heap_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_HEAP_` bits.
    pub flags: u32,
    /// Bytes of the region, rounded down to 128; less than 512 GiB.
    pub bytes: u64,
    /// Where the region starts in its device's address space, a multiple of 128: alignments above 128 are met by
    /// `base` + offset.
    pub base: u64,
    /// Live blocks for which there are always records, whatever gaps lie between them (where fewer do, there are some more);
    /// the records then never grow. 0 lets them grow, where their memory is not the caller's.
    pub max_blocks: u64,
    /// Blocks of so many bytes are taken from below, smaller ones from above; 0 for a 32nd of the region.
    pub large_bytes: u64,
    /// Comes back in every handle. Heaps with different numbers refuse each other's handles.
    pub region: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<arenite_heap_options_t>() == 48);

// SAFETY: `repr(C)` without padding, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_heap_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        bytes: 0,
        base: 0,
        max_blocks: 0,
        large_bytes: 0,
        region: 0,
        reserved: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_HEAP_FIND;
}

/// What a heap holds and did. `live_bytes + free_bytes = total_bytes` at every moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_heap_stats_t {
    /// `sizeof(arenite_heap_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Bytes of the region.
    pub total_bytes: u64,
    /// Bytes not handed out.
    pub free_bytes: u64,
    /// Bytes of the largest free block.
    pub largest_free: u64,
    /// Bytes handed out, rounded up to blocks.
    pub live_bytes: u64,
    /// Bytes asked for by the live blocks.
    pub requested_bytes: u64,
    /// The highest `live_bytes` so far.
    pub peak_live_bytes: u64,
    /// The highest `requested_bytes` so far.
    pub peak_requested_bytes: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Free blocks; no two are adjacent.
    pub free_blocks: u64,
    /// Blocks handed out so far.
    pub allocs: u64,
    /// Blocks freed so far.
    pub frees: u64,
    /// Requests refused.
    pub refused: u64,
    /// Handles and offsets that named no live block.
    pub bad_handles: u64,
    /// The most records any one call looked at, exhaustive scans apart.
    pub max_steps: u64,
    /// Requests that had to look at every candidate.
    pub exhaustive_scans: u64,
}

const _: () = assert!(size_of::<arenite_heap_stats_t>() == 8 + 15 * 8);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_heap_stats_t {
    const DEFAULT: Self = Self::of(&Stats::NONE, 0);
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

impl arenite_heap_stats_t {
    pub(super) const fn of(s: &Stats, largest_free: u64) -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            flags: 0,
            total_bytes: s.total,
            free_bytes: s.free,
            largest_free,
            live_bytes: s.live,
            requested_bytes: s.requested,
            peak_live_bytes: s.peak_live,
            peak_requested_bytes: s.peak_requested,
            blocks: s.blocks,
            free_blocks: s.free_blocks,
            allocs: s.allocs,
            frees: s.frees,
            refused: s.refused,
            bad_handles: s.bad,
            max_steps: s.max_steps as u64,
            exhaustive_scans: s.exhaustive_scans,
        }
    }
}

/// The offset of a block from the region's base, in bytes. Threads: any.
#[no_mangle]
#[must_use]
pub extern "C" fn arenite_heap_offset(block: arenite_heap_block_t) -> u64 {
    u64::from(block.granule) * GRANULE
}

/// A request as C makes it; 0 is the default alignment.
pub(super) fn request(bytes: u64, alignment: u64, headroom: u64, hint: u32) -> Result<Request, Error> {
    let side = match hint {
        ARENITE_POOL_HINT_UNKNOWN => Side::Auto,
        ARENITE_POOL_HINT_LONG => Side::Long,
        ARENITE_POOL_HINT_SHORT => Side::Short,
        ARENITE_POOL_HINT_SCRATCH => Side::Scratch,
        ARENITE_POOL_HINT_GROWING => Side::Grow,
        other => return Err(Error::argument("hint is not one of ARENITE_POOL_HINT_").needed(other.into())),
    };
    let alignment = if alignment == 0 { GRANULE } else { alignment };
    Ok(Request::new(bytes, alignment).extra(headroom).side(side))
}
