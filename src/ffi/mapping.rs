//! A model file mapped read-only, for constants that are referenced where they are.

use core::ffi::{c_char, c_void};
use std::sync::Arc;

use super::abi;
use super::guard;
use super::handle::{self, Opaque};
use super::instances::arenite_instances_t;
use super::session::arenite_session_t;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::instances::Instances;
use crate::runtime::mapping::Mapping;
use crate::runtime::session::{Session, TensorId};

/// A file mapped read-only: one copy of the weights for all sessions and instances. Threads: any.
pub struct arenite_mapping_t {
    _private: [u8; 0],
}

impl Opaque for arenite_mapping_t {
    type Inner = Arc<Mapping>;
    const MAGIC: [u8; 4] = *b"mapp";
    const NULL: &'static str = "the mapping is null";
}

/// Maps the file at `path`. It must not be shortened while it is mapped: touching what is gone ends the process.
///
/// Where the system cannot map files it is read into memory. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the file
/// cannot be opened or mapped, with the reason in the record; `ARENITE_ERR_NULL`, `ARENITE_ERR_NO_MEMORY`. `failure` may be null.
/// Ownership: `*out` is the caller's until `arenite_mapping_destroy`.
///
/// # Safety
/// `path` is null or text that ends in a zero; `out` is null or valid for one pointer write; `failure` is null or writable for
/// its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_mapping_open(
    path: *const c_char,
    out: *mut *mut arenite_mapping_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `path`.
        let text = unsafe { abi::text(path) }.ok_or(Error::new(Kind::Null, "the path is null"))?;
        Mapping::open(&path_of(text)?).map(Arc::new)
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

#[cfg(unix)]
fn path_of(text: &[u8]) -> Result<std::path::PathBuf, Error> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(text).into())
}

#[cfg(not(unix))]
fn path_of(text: &[u8]) -> Result<std::path::PathBuf, Error> {
    core::str::from_utf8(text).map(Into::into).map_err(|_| Error::argument("the path is not UTF-8"))
}

/// Writes where the file's bytes are and how many. Valid until the mapping is destroyed and nothing is bound to it any more.
///
/// # Safety
/// `mapping` is null or live; both outputs are null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_mapping_data(
    mapping: *const arenite_mapping_t,
    out_data: *mut *const c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |m: &Arc<Mapping>| {
        // SAFETY: the caller's contracts on the outputs.
        let data = unsafe { guard::out(out_data, "out_data is null") }?;
        // SAFETY: as above.
        let bytes = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        data.write(m.base().as_ptr().cast_const().cast());
        bytes.write(m.bytes());
        Ok(())
    };
    // SAFETY: the caller's contract on `mapping`.
    unsafe { handle::shared(mapping, body) }
}

/// Says that a constant's data begins at byte `offset` of a mapped file, which the session keeps alive.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the tensor reaches past the end of the file; and as
/// `arenite_session_bind_constant`. `arenite_session_misaligned_constants` says which of them the kernels cannot use in place.
///
/// # Safety
/// `session` and `mapping` are null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_bind_mapped(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    mapping: *const arenite_mapping_t,
    offset: u64,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contract on `mapping`.
        let file = unsafe { handle::borrow(mapping) }?;
        s.bind_mapped(TensorId::new(subgraph, tensor), &file, offset)
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// The same for all instances at once. Any thread; `failure` may be null.
///
/// # Safety
/// `instances` and `mapping` are null or live; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_bind_mapped(
    instances: *const arenite_instances_t,
    subgraph: u32,
    tensor: u32,
    mapping: *const arenite_mapping_t,
    offset: u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |i: &Instances| {
        // SAFETY: the caller's contract on `mapping`.
        let file = unsafe { handle::borrow(mapping) }?;
        i.bind_mapped(subgraph as usize, tensor as usize, &file, offset)
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(instances, failure, body) }
}

/// Destroys a mapping; null is allowed. The file stays mapped until everything that is bound to it is destroyed.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `mapping` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_mapping_destroy(mapping: *mut arenite_mapping_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(mapping) }
}
