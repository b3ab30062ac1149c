//! Leases: N instances of which K run at once hold K arenas, not N.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi::{self, Versioned};
use super::guard;
use super::handle::{self, Opaque};
use super::pool::{align, arenite_pool_t};
use super::status::{arenite_failure_t, arenite_status_t, ARENITE_ERR_INTERNAL, ARENITE_OK};
use crate::error::{Error, Kind};
use crate::runtime::{LeaseStats, Leases};

/// A set of equal areas of a pool, leased for an inference each. Threads: any.
pub struct arenite_lease_t {
    _private: [u8; 0],
}

impl Opaque for arenite_lease_t {
    type Inner = Leases;
    const MAGIC: [u8; 4] = *b"leas";
    const NULL: &'static str = "the lease set is null";
}

/// What the leases of a set did.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_lease_stats_t {
    /// `sizeof(arenite_lease_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Areas held, in use or idle.
    pub areas: u32,
    /// Areas in use.
    pub in_use: u32,
    /// The most areas in use at a time.
    pub peak: u32,
    /// 0.
    pub reserved: u32,
    /// Leases given so far.
    pub leases: u64,
    /// Requests that had to wait, from the moment they do.
    pub waits: u64,
    /// Requests refused.
    pub refused: u64,
}

// SAFETY: `repr(C)` without padding, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_lease_stats_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        areas: 0,
        in_use: 0,
        peak: 0,
        reserved: 0,
        leases: 0,
        waits: 0,
        refused: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Creates a set of at most `limit` areas of `bytes` bytes at a multiple of `alignment` (0 for 128). Takes no memory yet.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a limit of 0; `ARENITE_ERR_ALIGNMENT`; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_lease_destroy`; it keeps the pool alive. `failure` may be null.
///
/// # Safety
/// `pool` is null or live; `out` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_create(
    pool: *const arenite_pool_t,
    bytes: usize,
    alignment: usize,
    limit: u32,
    out: *mut *mut arenite_lease_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `pool`.
        let pool = unsafe { handle::borrow(pool) }?;
        Leases::new(Arc::clone(&pool), bytes, align(alignment), limit)
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Destroys a set and gives its areas back to the pool. Null is allowed. `ARENITE_ERR_BUSY` while an area is in use.
///
/// # Safety
/// `lease` is null or live, and used by nobody during and after the call.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_destroy(lease: *mut arenite_lease_t) -> arenite_status_t {
    if !lease.is_null() {
        let body = |l: &Leases| match l.stats().in_use {
            0 => Ok(()),
            n => Err(Error::busy("areas are in use").needed(n.into())),
        };
        // SAFETY: the caller's contract; there is no failure record.
        let status = unsafe { handle::any_thread(lease, core::ptr::null_mut(), body) };
        if status != ARENITE_OK && status != ARENITE_ERR_INTERNAL {
            return status;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(lease) }
}

/// Leases an area: writes its address, which is the caller's until `arenite_lease_return`. Contents are unspecified.
///
/// With `wait` not 0 the call waits for an area where all are in use, else it returns `ARENITE_ERR_BUSY`.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY`; `ARENITE_ERR_CAPACITY` or `ARENITE_ERR_NO_MEMORY` where the pool has none.
///
/// # Safety
/// `lease` is null or live; `out_data` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_acquire(
    lease: *const arenite_lease_t,
    wait: u32,
    out_data: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |l: &Leases| {
        // SAFETY: the caller's contract on `out_data`.
        let out = unsafe { guard::out(out_data, "out_data is null") }?;
        out.write(l.take(wait != 0)?.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(lease, failure, body) }
}

/// Returns an area to its set. `ARENITE_ERR_ARGUMENT` for a pointer that is no area in use.
///
/// # Safety
/// `lease` is null or live; an area at `data` is used by nobody any more.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_return(lease: *const arenite_lease_t, data: *mut c_void) -> arenite_status_t {
    let body = |l: &Leases| l.give_back(NonNull::new(data.cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?);
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(lease, core::ptr::null_mut(), body) }
}

/// Gives idle areas beyond `keep` back to the pool.
///
/// # Safety
/// `lease` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_trim(lease: *const arenite_lease_t, keep: u32) -> arenite_status_t {
    let body = |l: &Leases| {
        l.trim(keep as usize);
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(lease, core::ptr::null_mut(), body) }
}

/// Fills in the statistics. Set `struct_size` and `flags` of `out` first.
///
/// # Safety
/// `lease` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_lease_stats(
    lease: *const arenite_lease_t,
    out: *mut arenite_lease_stats_t,
) -> arenite_status_t {
    let body = |l: &Leases| {
        let LeaseStats { areas, in_use, peak, leases, waits, refused, .. } = l.stats();
        let stats =
            arenite_lease_stats_t { areas, in_use, peak, leases, waits, refused, ..arenite_lease_stats_t::DEFAULT };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "out is null") }
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(lease, core::ptr::null_mut(), body) }
}
