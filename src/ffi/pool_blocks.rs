//! Blocks of a pool: allocate, resize, free.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::Arc;

use super::guard;
use super::handle;
use super::heap_block::request;
use super::pool::{align, arenite_pool_t};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::Error;
use crate::runtime::Pool;

/// The body of every call that hands out a block.
///
/// # Safety
/// `pool`, `out` and `failure` as for [`arenite_pool_alloc`].
unsafe fn serve(
    pool: *const arenite_pool_t,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
    make: impl FnOnce(&Pool) -> Result<NonNull<u8>, Error>,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(make(p)?.as_ptr().cast());
        Ok(())
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
    // SAFETY: the caller's contracts.
    unsafe { serve(pool, out, failure, |p| Ok(p.alloc(bytes, align(alignment))?)) }
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
    // SAFETY: the caller's contracts.
    unsafe { serve(pool, out, failure, |p| Ok(p.alloc_zeroed(bytes, align(alignment))?)) }
}

/// The same as `arenite_pool_alloc`, with what is known of the block's future: `headroom` bytes more that
/// `arenite_pool_realloc` will use (they count as live), and `hint`, one of `ARENITE_POOL_HINT_`. A wrong hint costs memory
/// and nothing else. Returns: as `arenite_pool_alloc`; `ARENITE_ERR_ARGUMENT` for another hint.
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
    hint: u32,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = |p: &Pool| {
        let request = request(bytes as u64, alignment as u64, headroom as u64, hint)?;
        Ok(p.alloc_with(&request)?)
    };
    // SAFETY: the caller's contracts.
    unsafe { serve(pool, out, failure, make) }
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
    let make = |p: &Pool| {
        // SAFETY: the caller's contract on `data`.
        Ok(unsafe { p.realloc_with(NonNull::new(data.cast::<u8>()), bytes, headroom) }?)
    };
    // SAFETY: the caller's contracts.
    unsafe { serve(pool, out, failure, make) }
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
    let make = |p: &Pool| {
        // SAFETY: the caller's contract on `data`.
        Ok(unsafe { p.realloc_zeroed(NonNull::new(data.cast::<u8>()), bytes) }?)
    };
    // SAFETY: the caller's contracts.
    unsafe { serve(pool, out, failure, make) }
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
