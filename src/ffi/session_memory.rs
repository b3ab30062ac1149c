//! The session's single tensors: bound buffers, constants, scratch requests, guard zones.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::guard;
use super::handle;
use super::options::optional_align;
use super::session::{arenite_session_t, write_address};
use super::status::arenite_status_t;
use crate::error::{Error, Kind};
use crate::runtime::session::{Accept, Formula, ScratchId, Session, TensorId};
use crate::units::Align;

fn data_of(data: *const c_void) -> Result<NonNull<u8>, Error> {
    NonNull::new(data.cast_mut().cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))
}

/// Uses the caller's buffer for a tensor: an input, an output, a cache, any tensor that is not constant. The buffer is not in
/// the plan and is kept: it outlives the binding.
///
/// `accept_alignment` is 0 to require what the kernels ask for, or the lower alignment that the caller vouches for. The first
/// binding of a tensor needs a commit; another buffer for a bound tensor only changes the generation.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ALIGNMENT` with the tensor, the alignment `needed` and the remainder `available`;
/// `ARENITE_ERR_CAPACITY` where `bytes` is less than the tensor's; `ARENITE_ERR_ARGUMENT` for a constant.
///
/// # Safety
/// `session` is null or live; `data` stays readable and writable for `bytes` while it is bound.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_bind(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    data: *mut c_void,
    bytes: usize,
    accept_alignment: u32,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        let accept = optional_align(accept_alignment)?.map_or(Accept::Required, Accept::AtLeast);
        s.bind(TensorId::new(subgraph, tensor), data_of(data)?, bytes, accept)
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Gives a bound tensor back to the plan. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it is not bound.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_unbind(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.unbind(TensorId::new(subgraph, tensor))) }
}

/// Says where a constant's data is, for instance in the mapped model file. Kept: it is referenced, never written, may be shared
/// by any number of sessions and must outlive them.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY` where `bytes` is less
/// than its size. A misaligned address is no error; see `arenite_session_misaligned_constants`.
///
/// # Safety
/// `session` is null or live; `data` stays readable for `bytes` while the session lives.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_bind_constant(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    data: *const c_void,
    bytes: usize,
) -> arenite_status_t {
    let body = |s: &mut Session| s.bind_constant(TensorId::new(subgraph, tensor), data_of(data)?, bytes);
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Asks for scratch memory while a node runs and writes the request's number. `slot` tells several requests of one node apart.
///
/// Asking again for the same node and slot changes the request and gives the same number, so that a graph may be prepared any
/// number of times. `alignment` is a power of two up to 65536, or 0 for 128.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such node; `ARENITE_ERR_ALIGNMENT`.
///
/// # Safety
/// `session` is null or live; `out_scratch` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_request_scratch(
    session: *mut arenite_session_t,
    subgraph: u32,
    node: u32,
    slot: u32,
    bytes: u64,
    alignment: u32,
    out_scratch: *mut u32,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contract on `out_scratch`.
        let out = unsafe { guard::out(out_scratch, "out_scratch is null") }?;
        let align = optional_align(alignment)?.unwrap_or_default();
        out.write(s.request_scratch(subgraph, node, slot, bytes, align)?.0);
        Ok(())
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Says how many bytes of scratch a node needs, from the bytes of all `count` tensors of its subgraph (`ARENITE_NO_AMOUNT` for
/// an unknown size). Returns them, or `ARENITE_NO_AMOUNT` where it cannot say yet. Must not unwind or use the session.
pub type arenite_scratch_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, tensor_bytes: *const u64, count: u64) -> u64>;

/// A caller's formula.
struct Caller {
    call: unsafe extern "C" fn(user: *mut c_void, tensor_bytes: *const u64, count: u64) -> u64,
    user: *mut c_void,
}

// SAFETY: only the thread that has the session to itself calls it; whether that may be another thread than the one that
// passed it is the caller's choice.
unsafe impl Send for Caller {}
// SAFETY: as above.
unsafe impl Sync for Caller {}

impl Caller {
    fn ask(&self, sizes: &[Option<u64>]) -> Option<u64> {
        let plain: Vec<u64> = sizes.iter().map(|s| s.unwrap_or(u64::MAX)).collect();
        // SAFETY: the contract on the callback; `plain` lives during the call.
        let bytes = unsafe { (self.call)(self.user, plain.as_ptr(), plain.len() as u64) };
        (bytes != u64::MAX).then_some(bytes)
    }
}

/// As `arenite_session_request_scratch`, with a size that depends on shapes: every commit that has something to do asks
/// `formula`, which is kept with `user`.
///
/// # Safety
/// `session` is null or live; `formula` meets its contract while the session lives; `out_scratch` is null or valid for one
/// write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_request_scratch_by_shape(
    session: *mut arenite_session_t,
    subgraph: u32,
    node: u32,
    slot: u32,
    alignment: u32,
    formula: arenite_scratch_fn,
    user: *mut c_void,
    out_scratch: *mut u32,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contract on `out_scratch`.
        let out = unsafe { guard::out(out_scratch, "out_scratch is null") }?;
        let align: Align = optional_align(alignment)?.unwrap_or_default();
        let caller = Caller { call: formula.ok_or(Error::new(Kind::Null, "the formula is null"))?, user };
        let formula = Formula(Box::new(move |sizes| caller.ask(sizes)));
        out.write(s.request_scratch_by_shape(subgraph, node, slot, align, formula)?.0);
        Ok(())
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Changes the bytes of a scratch request before the next commit; a formula it had is forgotten.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_resize_scratch(
    session: *mut arenite_session_t,
    scratch: u32,
    bytes: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.resize_scratch(ScratchId(scratch), bytes)) }
}

/// Writes the address and size of a scratch request, to be used while its node runs; as `arenite_session_resolve`.
///
/// # Safety
/// `session` is null or live; `out_data` and `out_bytes` are null or valid for one write. `out_bytes` may be null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_resolve_scratch(
    session: *const arenite_session_t,
    scratch: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |s: &Session| {
        // SAFETY: the caller's contracts on the outputs.
        unsafe { write_address(out_data, out_bytes, || s.resolve_scratch(ScratchId(scratch))) }
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::shared(session, body) }
}

/// With `ARENITE_SESSION_GUARD`: call before each node runs, in order.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` without guard mode; `ARENITE_ERR_STALE`: commit first.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_guard_before(
    session: *mut arenite_session_t,
    subgraph: u32,
    node: u32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.guard_before(subgraph, node)) }
}

/// With `ARENITE_SESSION_GUARD`: call after each node.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the node wrote past the end of a tensor: the record names the node, the
/// tensor, and in `needed` how many bytes past the end the last damage lies. The next node is not blamed for it.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_guard_after(
    session: *mut arenite_session_t,
    subgraph: u32,
    node: u32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.guard_after(subgraph, node)) }
}
