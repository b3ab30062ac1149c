//! The session: a graph with its plan and memory, whose shapes change between runs.

use core::ffi::c_void;

use super::abi;
use super::graph::arenite_graph_t;
use super::guard;
use super::handle::{self, Opaque};
use super::options::zero;
use super::session_options::{arenite_session_options_t, read_session};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::Error;
use crate::graph::set::Link;
use crate::runtime::session::{Session, TensorId};
use crate::units::Bytes;

/// A graph with its plan and memory. Sizes change, nothing happens until the commit. Threads: one at a time for calls that
/// change it.
pub struct arenite_session_t {
    _private: [u8; 0],
}

impl Opaque for arenite_session_t {
    type Inner = Session;
    const MAGIC: [u8; 4] = *b"sess";
    const NULL: &'static str = "the session is null";
}

/// Creates a session for a graph and everything attached to it, without memory yet. `options` may be null.
///
/// The graph may be changed or destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a bad index, with the
/// node or tensor in the record; `ARENITE_ERR_NULL`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_session_destroy`; caller's buffers and callbacks are kept until then.
///
/// # Safety
/// `graph` is null or live; `options` is null or a struct of its `struct_size`; buffers in it are used by nobody else while the
/// session lives and callbacks meet their contract; `out` is null or valid for one pointer write; `failure` is null or
/// writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_create(
    graph: *const arenite_graph_t,
    options: *const arenite_session_options_t,
    out: *mut *mut arenite_session_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `graph`.
        let g = unsafe { handle::borrow(graph) }?;
        // SAFETY: the caller's contract on `options`.
        let (config, entry) = unsafe { read_session(options, &g.pins) }?;
        Session::new(g.graphs.clone(), entry, config)
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Hands an output of one subgraph to a later one in the same bytes: `to` is that subgraph's input. For models that run one
/// after another, each called by a node of the graph.
///
/// What does not fit together is refused by the commit. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that does
/// not exist.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_link(
    session: *mut arenite_session_t,
    from_subgraph: u32,
    from_tensor: u32,
    to_subgraph: u32,
    to_tensor: u32,
) -> arenite_status_t {
    let link = Link { from: (from_subgraph, from_tensor), to: (to_subgraph, to_tensor) };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.add_link(link)) }
}

/// Gives a tensor another size in bytes. Nothing else happens before the commit; until then addresses are refused.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a constant and a tensor that does not exist.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_resize(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    bytes: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.resize(TensorId::new(subgraph, tensor), bytes)) }
}

/// Plans what changed (known shapes cost a look-up), makes the memory fit and updates all addresses. Does nothing where nothing
/// changed.
///
/// The reusable arena's contents are undefined after a commit that changed the generation; persistent tensors keep theirs.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_UNKNOWN_SIZE`, `ARENITE_ERR_CAPACITY` (the memory limit, or a bound buffer that became
/// too small), `ARENITE_ERR_OVERFLOW`, all with the tensor in the record and nothing changed; `ARENITE_ERR_NO_MEMORY`: the plan
/// before has its memory back, at possibly another address, unless not even that much is left
/// (`ARENITE_SESSION_KEEP_ON_FAILURE` avoids that). After a failure `arenite_session_revert` returns to the plan before.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_commit(session: *mut arenite_session_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, Session::commit) }
}

/// Takes back the sizes given since the last commit, so that its addresses are valid again.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where more than sizes changed or there is no memory.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_revert(session: *mut arenite_session_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, Session::revert) }
}

/// Writes the address and size of a tensor's bytes; null and 0 for a tensor without any.
///
/// Valid until `arenite_session_generation` changes. Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where something changed or the
/// memory was released: commit first; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
///
/// # Safety
/// `session` is null or live; `out_data` and `out_bytes` are null or valid for one write. `out_bytes` may be null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_resolve(
    session: *const arenite_session_t,
    subgraph: u32,
    tensor: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |s: &Session| {
        // SAFETY: the caller's contracts on the outputs.
        unsafe { write_address(out_data, out_bytes, || s.resolve(TensorId::new(subgraph, tensor))) }
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::shared(session, body) }
}

/// Commits if necessary and then does what `arenite_session_resolve` does.
///
/// # Safety
/// As `arenite_session_resolve`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_ensure_allocated(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contracts on the outputs.
        unsafe { write_address(out_data, out_bytes, || s.ensure_allocated(TensorId::new(subgraph, tensor))) }
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Writes what `find` finds, and nothing on an error. `out_bytes` may be null.
///
/// # Safety
/// Both outputs are null or valid for one write.
pub(crate) unsafe fn write_address(
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
    find: impl FnOnce() -> Result<Option<(core::ptr::NonNull<u8>, usize)>, Error>,
) -> Result<(), Error> {
    // SAFETY: the caller's contract on `out_data`.
    let data = unsafe { guard::out(out_data, "out_data is null") }?;
    let bytes = if out_bytes.is_null() {
        None
    } else {
        // SAFETY: the caller's contract on `out_bytes`.
        Some(unsafe { guard::out(out_bytes, "") }?)
    };
    let found = find()?;
    data.write(found.map_or(core::ptr::null_mut(), |f| f.0.as_ptr().cast()));
    if let Some(bytes) = bytes {
        bytes.write(found.map_or(0, |f| f.1));
    }
    Ok(())
}

/// Writes a number that changes exactly when the address of a tensor does.
///
/// # Safety
/// `session` is null or live; `out_generation` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_generation(
    session: *const arenite_session_t,
    out_generation: *mut u64,
) -> arenite_status_t {
    let body = |s: &Session| {
        // SAFETY: the caller's contract on `out_generation`.
        unsafe { guard::out(out_generation, "out_generation is null") }?.write(s.generation());
        Ok(())
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::shared(session, body) }
}

/// Gives the reusable arena's memory back; persistent and bound memory stays. The next commit takes it again without
/// planning.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_release(session: *mut arenite_session_t) -> arenite_status_t {
    let body = |s: &mut Session| {
        s.release();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, body) }
}

/// Plans anew for the smallest arena, forgets reservations and holds no more than that needs. Errors as the commit.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_shrink_to_fit(session: *mut arenite_session_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, Session::shrink_to_fit) }
}

/// A size in a set of shapes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_shape_t {
    /// The set: rows of one set follow one another, and sets count up from 0.
    pub set: u32,
    /// The subgraph.
    pub subgraph: u32,
    /// The tensor in it.
    pub tensor: u32,
    /// 0.
    pub reserved: u32,
    /// Its bytes in this set.
    pub bytes: u64,
}

/// Plans several sets of shapes in advance and makes every later commit hold at least what the largest needs. Tensors that a
/// set does not name keep their size. The memory is taken by the next commit.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` for more sets than the cache keeps; `ARENITE_ERR_ARGUMENT` for a tensor that
/// does not exist and for sets out of order. Nothing is reserved on an error.
///
/// # Safety
/// `session` is null or live; `shapes` is readable for `count`; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_reserve(
    session: *mut arenite_session_t,
    shapes: *const arenite_shape_t,
    count: u64,
    out_bytes: *mut u64,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        // SAFETY: the caller's contract on `shapes`.
        let rows = unsafe { abi::array(shapes, count, "shapes is null") }?;
        let mut sets: Vec<Vec<(TensorId, Bytes)>> = Vec::new();
        for row in rows {
            zero(row.reserved)?;
            match (row.set as usize).checked_sub(sets.len()) {
                Some(0) => sets.push(Vec::new()),
                None if row.set as usize + 1 == sets.len() => {}
                _ => return Err(Error::argument("sets must count up from 0").needed(row.set.into())),
            }
            if let Some(set) = sets.last_mut() {
                set.push((TensorId::new(row.subgraph, row.tensor), row.bytes));
            }
        }
        let sets: Vec<&[(TensorId, Bytes)]> = sets.iter().map(|s| &s[..]).collect();
        out.write(s.reserve(&sets)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Copies the record of the last failing call on this session.
///
/// # Safety
/// `session` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_last_failure(
    session: *const arenite_session_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(session, out) }
}

/// Destroys a session and gives its memory back; null is allowed. All its addresses end.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `session` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_session_destroy(session: *mut arenite_session_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(session) }
}
