//! The pool: 128-byte-aligned memory for tensors, shared by any number of threads.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi;
use super::arena::ARENITE_SOURCE_BUFFER;
use super::guard;
use super::handle::{self, Opaque};
use super::pool_options::{arenite_pool_options_t, config};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::Pool;

/// A pool of memory. Threads: any; no call needs the pool alone.
pub struct arenite_pool_t {
    _private: [u8; 0],
}

impl Opaque for arenite_pool_t {
    type Inner = Arc<Pool>;
    const MAGIC: [u8; 4] = *b"pool";
    const NULL: &'static str = "the pool is null";
}

/// Creates a pool. `options` may be null: memory comes from the system as it is needed, without limit.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_NO_MEMORY`; `ARENITE_ERR_CAPACITY`
/// where the buffer is too small for one block, or `first_region` above `cap`, with the exact amount.
/// Ownership: `*out` is the caller's until `arenite_pool_destroy`; a buffer is kept until then. `failure` may be null.
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

/// An alignment from C; 0 is the default.
pub(super) fn align(alignment: usize) -> usize {
    if alignment == 0 {
        128
    } else {
        alignment
    }
}
