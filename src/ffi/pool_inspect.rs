//! Looking at a pool: statistics, checks, its blocks and leaks.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi::{self, Versioned};
use super::handle;
use super::pool::arenite_pool_t;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::{Pool, PoolStats};

/// What a pool holds and did. `live_bytes + free_bytes = total_bytes` at every moment. The areas of frames are live blocks,
/// whether or not a frame is using them.
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
/// `available` in the failure record) or to a freed one (`needed` is its address, or how many such blocks have left the
/// quarantine); `ARENITE_ERR_INTERNAL` where the records are wrong.
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
