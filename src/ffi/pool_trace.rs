//! The trace recorder: every request of a pool as text that `arenite replay` reads.

use core::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use super::abi;
use super::handle;
use super::pool::arenite_pool_t;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::{Pool, TraceCallback};

/// Takes `bytes` bytes of a trace: whole lines, not terminated by 0, valid during the call. Called from whatever thread
/// uses the pool. Must not unwind or longjmp, and must not call the pool.
pub type arenite_trace_fn = Option<unsafe extern "C" fn(user: *mut c_void, text: *const u8, bytes: usize)>;

/// Writes every request from now on to a new file (an existing one is overwritten), until `arenite_pool_trace_stop` or the
/// pool's end. One event a line: `a ID BYTES ALIGNMENT`, `f ID`, `r ID NEWBYTES`; `# frame SIGNATURE` where a frame begins.
///
/// Meanwhile frames that begin are not served from their plans, so that nothing is missing. Blocks live already are left
/// out. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` where the file cannot be created.
///
/// # Safety
/// `pool` is null or live; `path` is null or text that ends in 0; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_trace_to_file(
    pool: *const arenite_pool_t,
    path: *const c_char,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `path`.
        let path = unsafe { abi::text(path) }.ok_or(Error::new(Kind::Null, "path is null"))?;
        p.trace_to_file(&file_name(path))
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// The same to a function, with `user` as its first argument. `ARENITE_ERR_NULL` without a function.
///
/// # Safety
/// `pool` is null or live; `write` is null or callable with `user` from any thread until the recording ends.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_trace_to(
    pool: *const arenite_pool_t,
    write: arenite_trace_fn,
    user: *mut c_void,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let write = write.ok_or(Error::new(Kind::Null, "write is null"))?;
        p.trace_to(TraceCallback { write, user })
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Ends a recording; blocks still live are written as freed, so that the trace can be replayed in a loop.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where nothing is being recorded; `ARENITE_ERR_NO_MEMORY` where the file
/// could not be written whole.
///
/// # Safety
/// `pool` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_pool_trace_stop(pool: *const arenite_pool_t) -> arenite_status_t {
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), |p| p.trace_stop()) }
}

#[cfg(unix)]
fn file_name(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn file_name(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
