//! What a session needs, holds and has done.

use super::abi::{self, Versioned};
use super::guard;
use super::handle;
use super::session::arenite_session_t;
use super::status::arenite_status_t;
use crate::error::Error;
use crate::runtime::session::{AlignmentCost, Misaligned, NodeBytes, Session, TensorId, UpperBoundUse};
use crate::runtime::stats::resident_bytes;

/// The numbers of a session at one moment. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_session_stats_t {
    /// `sizeof(arenite_session_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Sum of all planned tensors: what one allocation per tensor would take.
    pub sum_bytes: u64,
    /// Bytes the plan needs, unrounded.
    pub planned_bytes: u64,
    /// No plan of these shapes is smaller.
    pub lower_bound: u64,
    /// Bytes held for the reusable arena.
    pub committed_bytes: u64,
    /// Bytes held for persistent tensors.
    pub persistent_bytes: u64,
    /// Bytes held for inputs and outputs of their own.
    pub io_bytes: u64,
    /// The most bytes ever held for the reusable arena.
    pub high_water: u64,
    /// Commits that did something.
    pub commits: u64,
    /// Plans made.
    pub plans: u64,
    /// Those that kept all offsets of the one before.
    pub plans_kept: u64,
    /// Commits that found their plan in the cache.
    pub cache_hits: u64,
    /// How often a memory source was asked or given something back.
    pub heap_calls: u64,
    /// The same since the last commit.
    pub heap_calls_since_commit: u64,
}

const _: () = assert!(core::mem::size_of::<arenite_session_stats_t>() == 112);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_session_stats_t {
    const DEFAULT: Self = Self {
        struct_size: 112,
        flags: 0,
        sum_bytes: 0,
        planned_bytes: 0,
        lower_bound: 0,
        committed_bytes: 0,
        persistent_bytes: 0,
        io_bytes: 0,
        high_water: 0,
        commits: 0,
        plans: 0,
        plans_kept: 0,
        cache_hits: 0,
        heap_calls: 0,
        heap_calls_since_commit: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Writes the numbers of a session.
///
/// # Safety
/// `session` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_stats(
    session: *const arenite_session_t,
    out: *mut arenite_session_stats_t,
) -> arenite_status_t {
    let body = |s: &Session| {
        let n = s.stats();
        let stats = arenite_session_stats_t {
            sum_bytes: n.sum_bytes,
            planned_bytes: n.planned_bytes,
            lower_bound: n.lower_bound,
            committed_bytes: n.committed_bytes,
            persistent_bytes: n.persistent_bytes,
            io_bytes: n.io_bytes,
            high_water: n.high_water,
            commits: n.commits,
            plans: n.plans,
            plans_kept: n.plans_kept,
            cache_hits: n.cache_hits,
            heap_calls: n.heap_calls,
            heap_calls_since_commit: n.heap_calls_since_commit,
            ..arenite_session_stats_t::DEFAULT
        };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "the pointer for the numbers is null") }
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::shared(session, body) }
}

/// Writes how many bytes of the process are in RAM (the resident set).
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` where the system does not say (anything but Linux).
///
/// # Safety
/// `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_process_resident_bytes(out_bytes: *mut u64) -> arenite_status_t {
    guard::call(|| {
        // SAFETY: the caller's contract.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        out.write(resident_bytes().ok_or(Error::unsupported("this system does not tell the resident set"))?);
        Ok(())
    })
}

/// Plans a tensor by the most bytes it can have; `arenite_session_report_use` then says how much of that was used.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_set_upper_bound(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    bytes: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.set_upper_bound(TensorId::new(subgraph, tensor), bytes)) }
}

/// Says how many bytes a tensor that is planned by its bound has in this run. Nothing is re-planned.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where that is more than the bound; `ARENITE_ERR_ARGUMENT` where it has none.
///
/// # Safety
/// `session` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_report_use(
    session: *mut arenite_session_t,
    subgraph: u32,
    tensor: u32,
    bytes: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(session, |s: &mut Session| s.report_use(TensorId::new(subgraph, tensor), bytes)) }
}

/// A row of a report about one tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_tensor_row_t {
    /// The subgraph.
    pub subgraph: u32,
    /// The tensor in it.
    pub tensor: u32,
    /// Upper bounds: the bytes planned. Misaligned constants: the alignment asked for.
    pub wanted: u64,
    /// Upper bounds: the most bytes used. Misaligned constants: how many bytes the address is past a multiple.
    pub found: u64,
    /// Upper bounds: 0. Misaligned constants: the bytes of an aligned copy.
    pub cost: u64,
}

/// A row of a report about one node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_node_row_t {
    /// The subgraph.
    pub subgraph: u32,
    /// The node in it.
    pub node: u32,
    /// Live bytes: the step. Alignment costs: the alignment the node asks for.
    pub key: u64,
    /// Live bytes: bytes of the reusable arena alive. Alignment costs: bytes of the arena.
    pub bytes: u64,
    /// Live bytes: 0. Alignment costs: bytes of the arena if this node asked for nothing.
    pub without: u64,
}

/// The body of a report: finds, writes as many rows as fit, and the number of all there are.
///
/// # Safety
/// `rows` is writable for `capacity` rows; `out_count` is null or valid for one write.
pub(crate) unsafe fn write_rows<N, R: Copy>(
    rows: *mut R,
    capacity: u64,
    out_count: *mut u64,
    find: impl FnOnce() -> Result<Vec<N>, Error>,
    row: impl Fn(&N) -> R,
) -> Result<(), Error> {
    // SAFETY: the caller's contract on `out_count`.
    let count = unsafe { guard::out(out_count, "out_count is null") }?;
    // SAFETY: the caller's contract on `rows`.
    let rows = unsafe { abi::array_mut(rows, capacity, "rows is null") }?;
    let found = find()?;
    for (to, from) in rows.iter_mut().zip(&found) {
        *to = row(from);
    }
    count.write(found.len() as u64);
    Ok(())
}

/// The same as a call on a session.
///
/// # Safety
/// `session` is null or live; the rest as [`write_rows`].
unsafe fn report<N, R: Copy>(
    session: *const arenite_session_t,
    rows: *mut R,
    capacity: u64,
    out_count: *mut u64,
    find: impl FnOnce(&Session) -> Result<Vec<N>, Error>,
    row: impl Fn(&N) -> R,
) -> arenite_status_t {
    let body = |s: &Session| {
        // SAFETY: the caller's contracts on `rows` and `out_count`.
        unsafe { write_rows(rows, capacity, out_count, || find(s), row) }
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::shared(session, body) }
}

/// Writes a row for each tensor planned by an upper bound: as many as `capacity` allows, and how many there are.
///
/// # Safety
/// `session` is null or live; `rows` is writable for `capacity`; `out_count` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_upper_bounds(
    session: *const arenite_session_t,
    rows: *mut arenite_tensor_row_t,
    capacity: u64,
    out_count: *mut u64,
) -> arenite_status_t {
    let row = |b: &UpperBoundUse| arenite_tensor_row_t {
        subgraph: b.id.subgraph,
        tensor: b.id.tensor,
        wanted: b.bound,
        found: b.used,
        cost: 0,
    };
    // SAFETY: the caller's contract is that of `report`.
    unsafe { report(session, rows, capacity, out_count, |s| Ok(s.upper_bound_use()), row) }
}

/// Writes a row for each bound constant whose address misses what the kernels ask for, and what an aligned copy would cost.
///
/// # Safety
/// As `arenite_session_upper_bounds`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_misaligned_constants(
    session: *const arenite_session_t,
    rows: *mut arenite_tensor_row_t,
    capacity: u64,
    out_count: *mut u64,
) -> arenite_status_t {
    let row = |m: &Misaligned| arenite_tensor_row_t {
        subgraph: m.id.subgraph,
        tensor: m.id.tensor,
        wanted: m.required.bytes(),
        found: m.remainder,
        cost: m.copy_bytes,
    };
    // SAFETY: the caller's contract is that of `report`.
    unsafe { report(session, rows, capacity, out_count, |s| Ok(s.misaligned_constants()), row) }
}

/// Writes a row per step of the committed plan: the node that runs and the bytes alive meanwhile.
///
/// # Safety
/// As `arenite_session_upper_bounds`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_node_bytes(
    session: *const arenite_session_t,
    rows: *mut arenite_node_row_t,
    capacity: u64,
    out_count: *mut u64,
) -> arenite_status_t {
    let row = |n: &NodeBytes| arenite_node_row_t {
        subgraph: n.subgraph,
        node: n.node,
        key: n.step.into(),
        bytes: n.bytes,
        without: 0,
    };
    // SAFETY: the caller's contract is that of `report`.
    unsafe { report(session, rows, capacity, out_count, Session::node_bytes, row) }
}

/// Writes a row for each node that asks for more alignment than the plan, and what it costs: the arena is planned once more
/// without it.
///
/// # Safety
/// As `arenite_session_upper_bounds`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_alignment_costs(
    session: *const arenite_session_t,
    rows: *mut arenite_node_row_t,
    capacity: u64,
    out_count: *mut u64,
) -> arenite_status_t {
    let row = |c: &AlignmentCost| arenite_node_row_t {
        subgraph: c.subgraph,
        node: c.node,
        key: c.align.bytes(),
        bytes: c.arena_bytes,
        without: c.without,
    };
    // SAFETY: the caller's contract is that of `report`.
    unsafe { report(session, rows, capacity, out_count, Session::alignment_costs, row) }
}
