//! The pool in the shape of the C library's allocator: a table of functions for engines that take one.

use core::ffi::{c_int, c_void};
use core::ptr::{null_mut, NonNull};
use std::sync::Arc;

use super::abi;
use super::handle;
use super::pool::arenite_pool_t;
use super::status::arenite_status_t;
use crate::error::Error;
use crate::runtime::Pool;

/// A pool as the C library's allocator. Each function takes `context` first and does what its namesake does, `errno`
/// included; none of them ends the process. Threads: any.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_allocator_t {
    /// `sizeof(arenite_allocator_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The pool, which has to outlive every copy of the table.
    pub context: *mut c_void,
    /// Null and `ENOMEM` where the pool refuses. Aligned to 128. 0 bytes give a block of their own.
    pub malloc: Option<unsafe extern "C" fn(context: *mut c_void, bytes: usize) -> *mut c_void>,
    /// Null and `ENOMEM` also where the product does not fit.
    pub calloc: Option<unsafe extern "C" fn(context: *mut c_void, count: usize, bytes: usize) -> *mut c_void>,
    /// Keeps the alignment. Null, and the block as it was, where the pool refuses (`ENOMEM`) or no live block starts there
    /// (`EINVAL`). 0 bytes keep a block: free it by `free`.
    pub realloc: Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void>,
    /// Null does nothing. A pointer that is no live block changes nothing and is counted in the pool's statistics.
    pub free: Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void)>,
    /// 0; `EINVAL` for an alignment that is no power of two or less than a pointer's; `ENOMEM`. `*out` is written on success.
    pub posix_memalign: Option<
        unsafe extern "C" fn(context: *mut c_void, out: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int,
    >,
    /// Any power of two, any size. Null and `EINVAL` or `ENOMEM`.
    pub aligned_alloc:
        Option<unsafe extern "C" fn(context: *mut c_void, alignment: usize, bytes: usize) -> *mut c_void>,
    /// Bytes that can be used at `data`; 0 for null and where no live block starts there.
    pub usable_size: Option<unsafe extern "C" fn(context: *mut c_void, data: *const c_void) -> usize>,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or an optional function
// pointer.
unsafe impl abi::Versioned for arenite_allocator_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        context: null_mut(),
        malloc: None,
        calloc: None,
        realloc: None,
        free: None,
        posix_memalign: None,
        aligned_alloc: None,
        usable_size: None,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Fills in a table of functions over a pool. Set `struct_size` and `flags` of `out` first.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`. Ownership: none changes hands; the pool has to outlive
/// the table.
///
/// # Safety
/// `pool` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_allocator(
    pool: *const arenite_pool_t,
    out: *mut arenite_allocator_t,
) -> arenite_status_t {
    let table = arenite_allocator_t {
        context: pool.cast_mut().cast(),
        malloc: Some(malloc),
        calloc: Some(calloc),
        realloc: Some(realloc),
        free: Some(free),
        posix_memalign: Some(posix_memalign),
        aligned_alloc: Some(aligned_alloc),
        usable_size: Some(usable_size),
        ..<arenite_allocator_t as abi::Versioned>::DEFAULT
    };
    // SAFETY: the caller's contract on `out`.
    let body = |_: &Arc<Pool>| unsafe { abi::fill(out, &table, "out is null") };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, null_mut(), body) }
}

/// Sets `errno`, as the C library's functions do.
fn fail(code: c_int) {
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    // SAFETY: asks for the location of this thread's `errno`.
    let errno = unsafe { libc::__errno_location() };
    #[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
    // SAFETY: as above.
    let errno = unsafe { libc::__error() };
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    // SAFETY: as above.
    let errno = unsafe { libc::__errno() };
    #[cfg(not(any(windows, target_os = "solaris", target_os = "illumos")))]
    // SAFETY: the location is this thread's alone.
    unsafe {
        errno.write(code)
    };
    #[cfg(any(windows, target_os = "solaris", target_os = "illumos"))]
    let _ = code;
}

/// Runs `make` on the pool; null and `errno` where it fails.
///
/// # Safety
/// `context` is a live pool's handle.
unsafe fn block(
    context: *mut c_void,
    make: impl FnOnce(&Pool) -> Result<NonNull<u8>, Error>,
) -> Result<*mut c_void, c_int> {
    let (mut made, mut code) = (null_mut::<c_void>(), libc::ENOMEM);
    let body = |p: &Arc<Pool>| {
        match make(p) {
            Ok(block) => made = block.as_ptr().cast(),
            Err(error) => {
                use crate::error::Kind::{Alignment, Argument};
                if matches!(error.kind, Alignment | Argument) {
                    code = libc::EINVAL;
                }
            }
        }
        Ok(())
    };
    // SAFETY: the contract; there is no failure record.
    let _ = unsafe { handle::any_thread(context.cast::<arenite_pool_t>(), null_mut(), body) };
    if made.is_null() {
        Err(code)
    } else {
        Ok(made)
    }
}

fn or_errno(result: Result<*mut c_void, c_int>) -> *mut c_void {
    result.unwrap_or_else(|code| {
        fail(code);
        null_mut()
    })
}

// SAFETY (all of these): `context` is the pool's handle, by the contract of the table; the rest is that of the C library's
// function of the same name, except that any pointer may be passed to `free` and `usable_size`.

unsafe extern "C" fn malloc(context: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the contract above.
    or_errno(unsafe { block(context, |p| Ok(p.alloc(bytes, 1)?)) })
}

unsafe extern "C" fn calloc(context: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    let overflow = Error::overflow("the product does not fit the address space");
    let bytes = count.checked_mul(bytes).ok_or(overflow);
    // SAFETY: the contract above.
    or_errno(unsafe { block(context, |p| Ok(p.alloc_zeroed(bytes?, 1)?)) })
}

unsafe extern "C" fn realloc(context: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void {
    let make = |p: &Pool| {
        // SAFETY: the contract above.
        Ok(unsafe { p.realloc(NonNull::new(data.cast::<u8>()), bytes) }?)
    };
    // SAFETY: the contract above.
    or_errno(unsafe { block(context, make) })
}

unsafe extern "C" fn free(context: *mut c_void, data: *mut c_void) {
    let body = |p: &Arc<Pool>| match NonNull::new(data.cast::<u8>()) {
        // SAFETY: the contract above.
        Some(block) => unsafe { p.free(block) },
        None => Ok(()),
    };
    // SAFETY: the contract above; there is no failure record.
    let _ = unsafe { handle::any_thread(context.cast::<arenite_pool_t>(), null_mut(), body) };
}

unsafe extern "C" fn posix_memalign(
    context: *mut c_void,
    out: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    if out.is_null() || !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: the contract above.
    match unsafe { block(context, |p| Ok(p.alloc(bytes, alignment)?)) } {
        Ok(made) => {
            // SAFETY: not null, and valid for one pointer write by the contract above.
            unsafe { out.write(made) };
            0
        }
        Err(code) => code,
    }
}

unsafe extern "C" fn aligned_alloc(context: *mut c_void, alignment: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the contract above.
    or_errno(unsafe { block(context, |p| Ok(p.alloc(bytes, alignment)?)) })
}

unsafe extern "C" fn usable_size(context: *mut c_void, data: *const c_void) -> usize {
    let mut bytes = 0;
    let body = |p: &Arc<Pool>| {
        bytes = NonNull::new(data.cast_mut().cast::<u8>()).and_then(|b| p.usable_size(b)).unwrap_or(0);
        Ok(())
    };
    // SAFETY: the contract above; there is no failure record.
    let _ = unsafe { handle::any_thread(context.cast::<arenite_pool_t>(), null_mut(), body) };
    bytes
}
