//! The pool: 128-byte-aligned memory for tensors, shared by any number of threads.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi::{self, Versioned};
use super::arena::{arenite_source_t, ARENITE_SOURCE_BUFFER, ARENITE_SOURCE_CALLBACKS, ARENITE_SOURCE_SYSTEM};
use super::guard;
use super::handle::{self, Opaque};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::heap::{Request, Side};
use crate::runtime::source::Callbacks;
use crate::runtime::{DebugOptions, Fallback, Growth, Pool, PoolConfig, PoolStats, RegionSource, Tail};

/// A pool of memory. Threads: any; no call needs the pool alone.
pub struct arenite_pool_t {
    _private: [u8; 0],
}

impl Opaque for arenite_pool_t {
    type Inner = Arc<Pool>;
    const MAGIC: [u8; 4] = *b"pool";
    const NULL: &'static str = "the pool is null";
}

/// Grows by as much as it has, from the system; a pool over a buffer does not grow. The default.
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
/// Writes past a block's end are found when it is freed and by `arenite_pool_check`.
pub const ARENITE_POOL_GUARDS: u32 = 2;
/// Freed blocks are filled, and writes to them found when they leave the quarantine.
pub const ARENITE_POOL_POISON: u32 = 4;
/// Live blocks are listed by `arenite_pool_leaks`.
pub const ARENITE_POOL_LEAKS: u32 = 8;
/// Under AddressSanitizer, it reports a use after free and an overrun inside the pool.
pub const ARENITE_POOL_SANITIZER: u32 = 16;

/// Frames are found by themselves, for hosts that cannot say where one begins and ends: a sequence of requests that repeats
/// on a thread is served from a plan, and free pages are given back as the pool grows past what was ever live.
pub const ARENITE_POOL_AUTO_FRAMES: u32 = 32;

/// Anything may become of the block.
pub const ARENITE_LIFETIME_UNKNOWN: u32 = 0;
/// The block lives long.
pub const ARENITE_LIFETIME_LONG: u32 = 1;
/// The block lives shortly.
pub const ARENITE_LIFETIME_SHORT: u32 = 2;

/// How a pool works.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_pool_options_t {
    /// `sizeof(arenite_pool_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_POOL_` bits.
    pub flags: u32,
    /// Where memory comes from. SYSTEM maps pages; a BUFFER (kept) is the first region; CALLBACKS may be called from any
    /// thread that uses the pool, and must not call it.
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
    /// Bytes of freed blocks that are kept back before they are given out again.
    pub quarantine_bytes: usize,
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
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = FLAGS;
}

/// What a pool holds and did. `live_bytes + free_bytes = total_bytes` at every moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_pool_stats_t {
    /// `sizeof(arenite_pool_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Bytes of all regions.
    pub total_bytes: u64,
    /// Bytes not handed out.
    pub free_bytes: u64,
    /// Bytes of the largest free block.
    pub largest_free: u64,
    /// Bytes handed out, rounded up to blocks.
    pub live_bytes: u64,
    /// Bytes asked for by the live blocks.
    pub requested_bytes: u64,
    /// The highest `live_bytes` so far (summed over regions).
    pub peak_live_bytes: u64,
    /// The highest `requested_bytes` so far (summed over regions).
    pub peak_requested_bytes: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Regions.
    pub regions: u64,
    /// Bytes taken from the source now.
    pub reserved_bytes: u64,
    /// Regions added because the others were full.
    pub grown: u64,
    /// Live blocks served by the fallback.
    pub fallback_blocks: u64,
    /// Bytes of those.
    pub fallback_bytes: u64,
    /// Bytes copied because a block could not be resized where it was.
    pub moved_bytes: u64,
    /// Bytes given back by trims.
    pub trimmed_bytes: u64,
    /// Requests refused.
    pub refused: u64,
    /// Pointers that named no live block.
    pub bad_pointers: u64,
    /// The most records any one call looked at, exhaustive scans apart.
    pub max_steps: u64,
    /// Requests that had to look at every candidate.
    pub exhaustive_scans: u64,
}

const _: () = assert!(size_of::<arenite_pool_stats_t>() == 8 + 20 * 8);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_pool_stats_t {
    const DEFAULT: Self = Self::of(&PoolStats::NONE);
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

impl arenite_pool_stats_t {
    const fn of(s: &PoolStats) -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            flags: 0,
            total_bytes: s.heap.total,
            free_bytes: s.heap.free,
            largest_free: s.largest_free,
            live_bytes: s.heap.live,
            requested_bytes: s.heap.requested,
            peak_live_bytes: s.heap.peak_live,
            peak_requested_bytes: s.heap.peak_requested,
            blocks: s.heap.blocks,
            free_blocks: s.heap.free_blocks,
            regions: s.regions as u64,
            reserved_bytes: s.reserved,
            grown: s.grown,
            fallback_blocks: s.fallback_blocks,
            fallback_bytes: s.fallback_bytes,
            moved_bytes: s.moved_bytes,
            trimmed_bytes: s.trimmed_bytes,
            refused: s.refused,
            bad_pointers: s.bad,
            max_steps: s.heap.max_steps as u64,
            exhaustive_scans: s.heap.exhaustive_scans,
        }
    }
}

/// # Safety
/// Pointers in `o` meet the contract of [`arenite_pool_create`].
unsafe fn config(o: &arenite_pool_options_t) -> Result<PoolConfig, Error> {
    super::options::zero(o.source.reserved)?;
    let bit = |flag: u32| o.flags & flag != 0;
    let source = match (o.source.kind, o.source.allocate, o.source.deallocate) {
        (ARENITE_SOURCE_SYSTEM | ARENITE_SOURCE_BUFFER, ..) if bit(ARENITE_POOL_HUGE_PAGES) => RegionSource::MapHuge,
        (ARENITE_SOURCE_SYSTEM | ARENITE_SOURCE_BUFFER, ..) => RegionSource::Map,
        (ARENITE_SOURCE_CALLBACKS, Some(allocate), Some(deallocate)) => {
            RegionSource::Functions(Callbacks { allocate, deallocate, user: o.source.user })
        }
        (ARENITE_SOURCE_CALLBACKS, ..) => return Err(Error::new(Kind::Null, "a callback of the source is null")),
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
            let pool = unsafe { handle::borrow(o.fallback_pool) }?;
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

/// Creates a pool. `options` may be null: memory comes from the system as it is needed, without limit.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_NO_MEMORY`; `ARENITE_ERR_CAPACITY`
/// where the buffer is too small for one block, with the exact amount. Ownership: `*out` is the caller's until
/// `arenite_pool_destroy`; a buffer is kept until then. `failure` may be null.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`; a buffer in it is writable for its size and used by nobody else while
/// the pool lives, callbacks meet their contract from any thread, `fallback_pool` is null or live; `out` is null or valid for
/// one pointer write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_create(
    options: *const arenite_pool_options_t,
    out: *mut *mut arenite_pool_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read_or_default(options) }?;
        // SAFETY: the caller's contract on the pointers in it.
        let pool = Pool::new(unsafe { config(&o) }?)?;
        if o.source.kind == ARENITE_SOURCE_BUFFER {
            let null = Error::new(Kind::Null, "the source's buffer is null");
            let base = NonNull::new(o.source.base.cast::<u8>()).ok_or(null)?;
            // SAFETY: the caller's contract on the buffer.
            unsafe { pool.lend(base, o.source.bytes) }?;
        }
        Ok(Arc::new(pool))
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Destroys a pool and gives its memory back. Null is allowed.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while blocks are live (their number is `needed` in the failure record) or a
/// frame has not ended: nothing is destroyed then. A pool that another one falls back on lives on until that one is gone.
///
/// # Safety
/// `pool` is null or live, and used by nobody during and after the call; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_destroy(
    pool: *mut arenite_pool_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    if !pool.is_null() {
        // SAFETY: the caller's contracts.
        let status = unsafe { handle::any_thread(pool, failure, |p| p.idle()) };
        // A poisoned pool is destroyed like any other.
        if status != super::status::ARENITE_OK && status != super::status::ARENITE_ERR_INTERNAL {
            return status;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(pool) }
}

/// Adds a buffer (kept) as a region. At most 64 regions.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where it is too small for one block or there are 64 regions.
///
/// # Safety
/// `pool` is null or live; `base` is null or writable for `bytes` bytes that nobody else uses while the pool lives;
/// `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_lend(
    pool: *const arenite_pool_t,
    base: *mut c_void,
    bytes: usize,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let base = NonNull::new(base.cast::<u8>()).ok_or(Error::new(Kind::Null, "base is null"))?;
        // SAFETY: the caller's contract on the buffer.
        unsafe { p.lend(base, bytes) }
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Allocates `bytes` bytes at a multiple of `alignment`: any power of two, 0 for 128.
///
/// Contents are unspecified. 0 bytes give a block with an address of its own.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` or `ARENITE_ERR_NO_MEMORY` with what was asked for and the largest free
/// block in the failure record; `ARENITE_ERR_ALIGNMENT`. Ownership: `*out` is the caller's until `arenite_pool_free`.
///
/// # Safety
/// `pool` is null or live; `out` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_alloc(
    pool: *const arenite_pool_t,
    bytes: usize,
    alignment: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(p.alloc(bytes, align(alignment))?.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// The same, filled with zeros.
///
/// # Safety
/// As for `arenite_pool_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_alloc_zeroed(
    pool: *const arenite_pool_t,
    bytes: usize,
    alignment: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(p.alloc_zeroed(bytes, align(alignment))?.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// The same as `arenite_pool_alloc`, with what is known of the block's future: `headroom` bytes more that
/// `arenite_pool_realloc` will use (they count as live), and `lifetime`, one of `ARENITE_LIFETIME_`.
///
/// # Safety
/// As for `arenite_pool_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_alloc_hint(
    pool: *const arenite_pool_t,
    bytes: usize,
    alignment: usize,
    headroom: usize,
    lifetime: u32,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        let side = match lifetime {
            ARENITE_LIFETIME_UNKNOWN => Side::Auto,
            ARENITE_LIFETIME_LONG => Side::Low,
            ARENITE_LIFETIME_SHORT => Side::High,
            other => return Err(Error::argument("lifetime is not one of ARENITE_LIFETIME_").needed(other.into())),
        };
        let request = Request::new(bytes as u64, align(alignment) as u64).extra(headroom as u64).side(side);
        out.write(p.alloc_with(&request)?.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Resizes a block: contents up to the smaller size and the alignment are kept. `data` may be null: allocates at 128.
///
/// `headroom` bytes more are reserved if it has to grow, so that the next growths need no copy. On failure the old block
/// is as it was. Returns: as `arenite_pool_alloc`; `ARENITE_ERR_ARGUMENT` where no live block starts at `data`.
///
/// # Safety
/// `pool` is null or live; a live block at `data` is used by nobody during the call and on success through `*out` only
/// afterwards; `out` and `failure` as for `arenite_pool_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_realloc(
    pool: *const arenite_pool_t,
    data: *mut c_void,
    bytes: usize,
    headroom: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        // SAFETY: the caller's contract on `data`.
        let new = unsafe { p.realloc_with(NonNull::new(data.cast::<u8>()), bytes, headroom) }?;
        out.write(new.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// The same for a block from `arenite_pool_alloc_zeroed`: every byte past the old size is 0.
///
/// # Safety
/// As for `arenite_pool_realloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_realloc_zeroed(
    pool: *const arenite_pool_t,
    data: *mut c_void,
    bytes: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        // SAFETY: the caller's contract on `data`.
        let new = unsafe { p.realloc_zeroed(NonNull::new(data.cast::<u8>()), bytes) }?;
        out.write(new.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Frees a block, whichever thread allocated it. Null does nothing.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where no live block of this pool starts at `data` (freed before, inside a
/// block, of another pool, never allocated), or with guards on where the block was written past its end. Nothing has
/// changed then.
///
/// # Safety
/// `pool` is null or live; a live block at `data` is used by nobody any more; `failure` as for `arenite_pool_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_free(
    pool: *const arenite_pool_t,
    data: *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| match NonNull::new(data.cast::<u8>()) {
        // SAFETY: the caller's contract on `data`.
        Some(block) => unsafe { p.free(block) },
        None => Ok(()),
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Frees a block of which the caller knows the size it asked for last: `ARENITE_ERR_ARGUMENT` for another one, too.
///
/// # Safety
/// As for `arenite_pool_free`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_free_sized(
    pool: *const arenite_pool_t,
    data: *mut c_void,
    bytes: usize,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| match NonNull::new(data.cast::<u8>()) {
        // SAFETY: the caller's contract on `data`.
        Some(block) => unsafe { p.free_sized(block, bytes) },
        None => Ok(()),
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Writes how many bytes can be used at `data`, at least those asked for.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where no live block starts there.
///
/// # Safety
/// `pool` is null or live; `out_bytes` is null or valid for one write. `data` is not read from.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_usable_size(
    pool: *const arenite_pool_t,
    data: *const c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        let block = NonNull::new(data.cast_mut().cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?;
        out.write(p.usable_size(block).ok_or(Error::argument("no live block of the pool starts there"))?);
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Writes 1 where the address lies in the pool's memory or is a block its fallback served, else 0.
///
/// # Safety
/// `pool` is null or live; `out_owns` is null or valid for one write. `data` is not read from.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_owns(
    pool: *const arenite_pool_t,
    data: *const c_void,
    out_owns: *mut u32,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out_owns`.
        let out = unsafe { guard::out(out_owns, "out_owns is null") }?;
        out.write(u32::from(NonNull::new(data.cast_mut().cast::<u8>()).is_some_and(|d| p.owns(d))));
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Writes `bytes` rounded up to what a block holds: asking for so many costs no more memory.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`.
///
/// # Safety
/// `pool` is null or live; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_good_size(
    pool: *const arenite_pool_t,
    bytes: usize,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        out.write(p.good_size(bytes).ok_or(Error::overflow("the rounded size does not fit the address space"))?);
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Gives back what is free beyond `keep` bytes: idle regions to their source, free pages to the system.
///
/// Other threads may go on using the pool. `out_bytes` may be null; else the bytes given back are written.
///
/// # Safety
/// `pool` is null or live; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_trim(
    pool: *const arenite_pool_t,
    keep: u64,
    out_bytes: *mut u64,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let out = if out_bytes.is_null() {
            None
        } else {
            // SAFETY: the caller's contract on `out_bytes`.
            Some(unsafe { guard::out(out_bytes, "") }?)
        };
        let given = p.trim(keep);
        if let Some(out) = out {
            out.write(given);
        }
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Fills in the statistics. Set `struct_size` and `flags` of `out` first.
///
/// # Safety
/// `pool` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_stats(
    pool: *const arenite_pool_t,
    out: *mut arenite_pool_stats_t,
) -> arenite_status_t {
    // SAFETY: the caller's contract on `out`.
    let body = |p: &Arc<Pool>| unsafe { abi::fill(out, &arenite_pool_stats_t::of(&p.stats()), "out is null") };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Checks the whole pool: its records, and with guards and poison on every block. Other threads wait meanwhile.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the host wrote past a block (its address is `needed`, its size
/// `available` in the failure record) or to a freed one; `ARENITE_ERR_INTERNAL` where the records are wrong.
///
/// # Safety
/// `pool` is null or live; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_check(
    pool: *const arenite_pool_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, |p| p.check()) }
}

/// One block, as `arenite_pool_walk` shows it. Must not unwind or longjmp, and must not call the pool.
pub type arenite_block_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, data: *mut c_void, bytes: usize, requested: usize, live: u32)>;

/// Shows every block of every region in order of address, free ones too (`live` 0). Other threads wait meanwhile.
///
/// # Safety
/// `pool` is null or live; `visit` is null or callable with `user`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_walk(
    pool: *const arenite_pool_t,
    visit: arenite_block_fn,
    user: *mut c_void,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let visit = visit.ok_or(Error::new(Kind::Null, "visit is null"))?;
        p.walk(|base, e| {
            let data = (base + e.offset as usize) as *mut c_void;
            // SAFETY: the caller's contract on `visit`.
            unsafe { visit(user, data, e.bytes as usize, e.requested as usize, u32::from(e.handle.is_some())) };
        });
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// One live block, as `arenite_pool_leaks` shows it. Must not unwind or longjmp.
pub type arenite_leak_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, data: *mut c_void, bytes: usize, tag: u64, sequence: u64)>;

/// Shows every live block, oldest first, of a pool with a debug flag set; without one it shows none.
///
/// # Safety
/// `pool` is null or live; `visit` is null or callable with `user`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_leaks(
    pool: *const arenite_pool_t,
    visit: arenite_leak_fn,
    user: *mut c_void,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let visit = visit.ok_or(Error::new(Kind::Null, "visit is null"))?;
        for leak in p.leaks() {
            // SAFETY: the caller's contract on `visit`.
            unsafe { visit(user, leak.address as *mut c_void, leak.bytes, leak.tag, leak.sequence) };
        }
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Names a live block for `arenite_pool_leaks`. Does nothing in a pool without a debug flag.
///
/// # Safety
/// `pool` is null or live. `data` is not read from.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_set_tag(
    pool: *const arenite_pool_t,
    data: *const c_void,
    tag: u64,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let block = NonNull::new(data.cast_mut().cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?;
        p.set_tag(block, tag);
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// An alignment from C; 0 is the default.
pub(super) fn align(alignment: usize) -> usize {
    if alignment == 0 {
        128
    } else {
        alignment
    }
}
