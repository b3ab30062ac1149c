//! How a pool is made: sources, growth, fallback, tails, checks.

use core::mem::size_of;
use std::sync::Arc;

use super::abi::Versioned;
use super::arena::{
    arenite_source_t, ARENITE_SOURCE_BUFFER, ARENITE_SOURCE_CALLBACKS, ARENITE_SOURCE_MAP, ARENITE_SOURCE_SYSTEM,
};
use super::handle;
use super::pool::arenite_pool_t;
use crate::error::{Error, Kind};
use crate::runtime::source::Callbacks;
use crate::runtime::{DebugOptions, Fallback, Growth, PoolConfig, RegionSource, Tail};

/// Grows by as much as it has, the request, `growth_bytes` or 1 MiB, whichever is the most; a pool over a buffer does not
/// grow. The default.
pub const ARENITE_GROWTH_DEFAULT: u32 = 0;
/// Never grows.
pub const ARENITE_GROWTH_NONE: u32 = 1;
/// Grows by what the request needs, or by `growth_bytes` if that is more.
pub const ARENITE_GROWTH_EXACT: u32 = 2;
/// Grows by as much as it has, the request, or `growth_bytes`, whichever is the most.
pub const ARENITE_GROWTH_GEOMETRIC: u32 = 3;

/// A request that does not fit is refused. The default.
pub const ARENITE_FALLBACK_NONE: u32 = 0;
/// It is passed to the system's heap.
pub const ARENITE_FALLBACK_SYSTEM: u32 = 1;
/// It is passed to `fallback_pool`.
pub const ARENITE_FALLBACK_POOL: u32 = 2;

/// Nothing behind a block. The default.
pub const ARENITE_TAIL_NONE: u32 = 0;
/// `tail_bytes` behind a block can be read, though they may be another block's.
pub const ARENITE_TAIL_READABLE: u32 = 1;
/// `tail_bytes` behind a block are its own.
pub const ARENITE_TAIL_EXCLUSIVE: u32 = 2;

/// Regions from the system are aligned to 2 MiB and advised to use huge pages.
pub const ARENITE_POOL_HUGE_PAGES: u32 = 1;
/// Writes before a block's start and past its end are found when it is freed and by `arenite_pool_check`. The block then stays
/// live. With this flag, POISON, LEAKS, SANITIZER or a quarantine frames have no plans and are not counted.
pub const ARENITE_POOL_GUARDS: u32 = 2;
/// Freed blocks are filled, and writes to them found while they are in the quarantine (`quarantine_bytes`) and as they leave
/// it, by `arenite_pool_check`.
pub const ARENITE_POOL_POISON: u32 = 4;
/// Live blocks are listed by `arenite_pool_leaks`.
pub const ARENITE_POOL_LEAKS: u32 = 8;
/// Under AddressSanitizer or Valgrind, it reports a use after free and an overrun inside the pool.
pub const ARENITE_POOL_SANITIZER: u32 = 16;
/// Frames are found by themselves, for hosts that cannot say where one begins and ends: a sequence of requests that repeats
/// on a thread is served from a plan, and free pages are given back as the pool grows past what was ever live.
pub const ARENITE_POOL_AUTO_FRAMES: u32 = 32;

/// How a pool works.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_pool_options_t {
    /// `sizeof(arenite_pool_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_POOL_` bits.
    pub flags: u32,
    /// Where memory comes from. SYSTEM maps pages; a BUFFER (kept) is the first region, and where `growth` allows more they
    /// are as with SYSTEM; CALLBACKS may be called from any thread that uses the pool, and must not call it. MAP is refused.
    pub source: arenite_source_t,
    /// Bytes of a region made at once; 0 for none.
    pub first_region: usize,
    /// `ARENITE_GROWTH_`.
    pub growth: u32,
    /// `ARENITE_FALLBACK_`.
    pub fallback: u32,
    /// See `growth`.
    pub growth_bytes: usize,
    /// The most bytes ever taken from the source at a time; 0 for no limit.
    pub cap: u64,
    /// With FALLBACK_POOL; kept alive for as long as this pool.
    pub fallback_pool: *const arenite_pool_t,
    /// `ARENITE_TAIL_`.
    pub tail: u32,
    /// See `tail`.
    pub tail_bytes: u32,
    /// Live blocks per region at most, so that the pool's own records never grow; 0 lets them.
    pub max_blocks: usize,
    /// Bytes of freed blocks that are kept back before they are given out again; with 0 POISON finds nothing.
    pub quarantine_bytes: usize,
    /// Locks the pool is divided among, at most 64; 0 for one. A thread allocates from its own shard, from another where that
    /// is full, then from new memory; any thread may free. The first region and a buffer are divided evenly, and a block has
    /// to fit into one part: that, and records for each shard, is what it costs.
    pub shards: u32,
    /// 0.
    pub reserved: u32,
}

const FLAGS: u32 = ARENITE_POOL_HUGE_PAGES
    | ARENITE_POOL_GUARDS
    | ARENITE_POOL_POISON
    | ARENITE_POOL_LEAKS
    | ARENITE_POOL_SANITIZER
    | ARENITE_POOL_AUTO_FRAMES;

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or an optional function
// pointer.
unsafe impl Versioned for arenite_pool_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        source: arenite_source_t {
            kind: ARENITE_SOURCE_SYSTEM,
            reserved: 0,
            base: core::ptr::null_mut(),
            bytes: 0,
            allocate: None,
            deallocate: None,
            user: core::ptr::null_mut(),
        },
        first_region: 0,
        growth: ARENITE_GROWTH_DEFAULT,
        fallback: ARENITE_FALLBACK_NONE,
        growth_bytes: 0,
        cap: 0,
        fallback_pool: core::ptr::null(),
        tail: ARENITE_TAIL_NONE,
        tail_bytes: 0,
        max_blocks: 0,
        quarantine_bytes: 0,
        shards: 0,
        reserved: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = FLAGS;
}

/// # Safety
/// Pointers in `o` meet the contract of [`super::pool::arenite_pool_create`].
pub(super) unsafe fn config(o: &arenite_pool_options_t) -> Result<PoolConfig, Error> {
    super::options::zero(o.source.reserved)?;
    super::options::zero(o.reserved)?;
    if o.shards > 64 {
        return Err(Error::argument("a pool has at most 64 shards").needed(o.shards.into()).available(64));
    }
    let bit = |flag: u32| o.flags & flag != 0;
    let source = match (o.source.kind, o.source.allocate, o.source.deallocate) {
        (ARENITE_SOURCE_SYSTEM | ARENITE_SOURCE_BUFFER, ..) if bit(ARENITE_POOL_HUGE_PAGES) => RegionSource::MapHuge,
        (ARENITE_SOURCE_SYSTEM | ARENITE_SOURCE_BUFFER, ..) => RegionSource::Map,
        (ARENITE_SOURCE_CALLBACKS, Some(allocate), Some(deallocate)) => {
            RegionSource::Functions(Callbacks { allocate, deallocate, user: o.source.user })
        }
        (ARENITE_SOURCE_CALLBACKS, ..) => return Err(Error::new(Kind::Null, "a callback of the source is null")),
        (ARENITE_SOURCE_MAP, ..) => {
            return Err(
                Error::argument("a pool's source is SYSTEM, BUFFER or CALLBACKS, not MAP").needed(o.source.kind.into())
            )
        }
        (other, ..) => return Err(Error::argument("kind is not one of ARENITE_SOURCE_").needed(other.into())),
    };
    let growth = match o.growth {
        ARENITE_GROWTH_DEFAULT if o.source.kind == ARENITE_SOURCE_BUFFER => Growth::None,
        ARENITE_GROWTH_DEFAULT => Growth::Geometric { first: o.growth_bytes.max(1 << 20) },
        ARENITE_GROWTH_NONE => Growth::None,
        ARENITE_GROWTH_EXACT => Growth::Exact { at_least: o.growth_bytes },
        ARENITE_GROWTH_GEOMETRIC => Growth::Geometric { first: o.growth_bytes },
        other => return Err(Error::argument("growth is not one of ARENITE_GROWTH_").needed(other.into())),
    };
    let fallback = match o.fallback {
        ARENITE_FALLBACK_NONE => Fallback::None,
        ARENITE_FALLBACK_SYSTEM => Fallback::System,
        ARENITE_FALLBACK_POOL => {
            // SAFETY: the caller's contract on `fallback_pool`.
            let pool = unsafe { handle::borrow(o.fallback_pool) }.map_err(|e| match e.kind {
                Kind::Null => Error::new(Kind::Null, "fallback_pool is null"),
                _ => e,
            })?;
            Fallback::Pool(Arc::clone(&pool))
        }
        other => return Err(Error::argument("fallback is not one of ARENITE_FALLBACK_").needed(other.into())),
    };
    let tail = match o.tail {
        ARENITE_TAIL_NONE => Tail::None,
        ARENITE_TAIL_READABLE => Tail::Readable(o.tail_bytes as usize),
        ARENITE_TAIL_EXCLUSIVE => Tail::Exclusive(o.tail_bytes as usize),
        other => return Err(Error::argument("tail is not one of ARENITE_TAIL_").needed(other.into())),
    };
    Ok(PoolConfig {
        source,
        first_region: o.first_region,
        growth,
        cap: if o.cap == 0 { u64::MAX } else { o.cap },
        fallback,
        tail,
        max_blocks: (o.max_blocks > 0).then_some(o.max_blocks),
        shards: o.shards.max(1) as usize,
        debug: DebugOptions {
            guards: bit(ARENITE_POOL_GUARDS),
            poison: bit(ARENITE_POOL_POISON),
            quarantine: o.quarantine_bytes,
            leaks: bit(ARENITE_POOL_LEAKS),
            sanitizer: bit(ARENITE_POOL_SANITIZER),
        },
        auto_frames: bit(ARENITE_POOL_AUTO_FRAMES),
    })
}
