//! Planning without a heap: lifetimes, in-place sharing and the greedy rules over the caller's workspace.

use core::ffi::c_void;
use core::mem::{align_of, size_of};
use core::ptr::NonNull;

use super::abi;
use super::guard;
use super::lite_tables::{arenite_lite_desc_t, LiteTables};
use super::options::{
    arenite_graph_options_t, optional_align, read_options, ARENITE_STRATEGY_FIRST_FIT, ARENITE_STRATEGY_GREEDY_BY_SIZE,
    ARENITE_STRATEGY_TFLM_GREEDY,
};
use super::status::{arenite_failure_t, arenite_status_t, ARENITE_NO_AMOUNT};
use crate::error::{Error, Kind};
use crate::graph::inplace::Share;
use crate::graph::liveness::Lifetime;
use crate::graph::rows::{home_row, rows, Workspace};
use crate::graph::tables::Tables;
use crate::planner::greedy::{place, place_with, workspace_words, Row, Rule};
use crate::units::{Align, DEFAULT_ALIGN};

/// The row is alive to the end of the run and beyond.
pub const ARENITE_ROW_KEPT: u32 = 1;
/// The row must be at `fixed_offset`.
pub const ARENITE_ROW_FIXED: u32 = 2;
/// With `ARENITE_ROW_FIXED`: it may overlap other rows with a fixed offset, and its offset may be misaligned, as whoever
/// gave it meant it. Rows without a fixed offset keep clear of it all the same.
pub const ARENITE_ROW_SHARED: u32 = 4;

/// A buffer with one lifetime, for `arenite_bare_place`. An array element: it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_row_t {
    /// Size in bytes, unrounded. A row of 0 bytes gets none.
    pub bytes: u64,
    /// The offset it must have, with `ARENITE_ROW_FIXED`.
    pub fixed_offset: u64,
    /// The first step at which it is alive.
    pub first: u32,
    /// The last step, inclusive.
    pub last: u32,
    /// Its offset will be a multiple of this: a power of two up to 65536, or 0 for 128.
    pub alignment: u32,
    /// `ARENITE_ROW_` bits.
    pub flags: u32,
}

const _: () = assert!(size_of::<arenite_row_t>() == 32);

fn rule(strategy: u32) -> Result<Rule, Error> {
    match strategy {
        ARENITE_STRATEGY_FIRST_FIT => Ok(Rule::FirstFit),
        ARENITE_STRATEGY_GREEDY_BY_SIZE => Ok(Rule::GreedyBySize),
        ARENITE_STRATEGY_TFLM_GREEDY => Ok(Rule::TflmGreedy),
        other => Err(Error::argument("strategy is not one of the three greedy ARENITE_STRATEGY_").needed(other.into())),
    }
}

/// Bytes per tensor of each array, and the slack for a workspace at any address.
/// The rules work on offsets in the workspace, so that the caller's stay as they were on an error.
const PER_TENSOR: usize =
    size_of::<Row>() + size_of::<u64>() + size_of::<Lifetime>() + size_of::<Share>() + 2 * size_of::<u32>();
const SLACK: usize = align_of::<Row>() - 1;

/// The same for rows, which are read where the caller keeps them.
const PER_ROW: usize = size_of::<u64>() + 2 * size_of::<u32>();

fn workspace_bytes(count: u64, each: usize) -> Result<usize, Error> {
    let overflow = Error::overflow("the workspace does not fit the address space").needed(count);
    let n = usize::try_from(count).map_err(|_| overflow)?;
    n.checked_mul(each).and_then(|b| b.checked_add(SLACK)).ok_or(overflow)
}

/// The caller's workspace, cut into arrays from the strictest alignment down.
struct Cut {
    next: NonNull<u8>,
}

impl Cut {
    /// # Safety
    /// `workspace` is null or writable for `bytes`, and nobody else uses it while the arrays live.
    unsafe fn new(workspace: *mut c_void, bytes: usize, needed: usize) -> Result<Cut, Error> {
        let base = NonNull::new(workspace.cast::<u8>()).ok_or(Error::new(Kind::Null, "the workspace is null"))?;
        if bytes < needed {
            return Err(Error::capacity("the workspace is too small").needed(needed as u64).available(bytes as u64));
        }
        let skip = base.as_ptr().align_offset(align_of::<Row>());
        // SAFETY: `skip` is at most `SLACK`, and the workspace is larger than that.
        Ok(Cut { next: unsafe { base.add(skip) } })
    }

    /// The next array of `count` copies of `value`.
    ///
    /// # Safety
    /// The arrays cut so far and this one fit the workspace, in order of falling alignment.
    unsafe fn array<'a, T: Copy>(&mut self, count: usize, value: T) -> &'a mut [T] {
        let start = self.next.cast::<T>();
        for i in 0..count {
            // SAFETY: inside the array, which the contract places inside the workspace.
            let slot = unsafe { start.add(i) };
            // SAFETY: writable and aligned: arrays follow one another from the strictest alignment down.
            unsafe { slot.write(value) };
        }
        // SAFETY: one past the array, still inside the workspace or its end.
        self.next = unsafe { start.add(count) }.cast();
        // SAFETY: `count` values were just written there, and no other array overlaps them.
        unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), count) }
    }
}

const NO_ROW: Row = Row { size: 0, align: Align::ONE, first: 0, last: 0, kept: false, fixed: None };
const _: () = assert!(align_of::<Row>() >= align_of::<u64>() && align_of::<u64>() >= align_of::<Lifetime>());
const _: () = assert!(align_of::<Lifetime>() >= align_of::<Share>() && align_of::<Share>() >= align_of::<u32>());

/// Writes how many bytes of workspace `arenite_bare_plan` needs for `count` tensors, at any address.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`. Threads: any.
///
/// # Safety
/// `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_workspace_bytes(count: u64, out_bytes: *mut usize) -> arenite_status_t {
    guard::call(|| {
        // SAFETY: the caller's contract.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        out.write(workspace_bytes(count, PER_TENSOR)?);
        Ok(())
    })
}

/// Writes how many bytes of workspace `arenite_bare_place` needs for `count` rows, at any address: less than
/// `arenite_bare_workspace_bytes` says.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`. Threads: any.
///
/// # Safety
/// `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_place_bytes(count: u64, out_bytes: *mut usize) -> arenite_status_t {
    guard::call(|| {
        // SAFETY: the caller's contract.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        out.write(workspace_bytes(count, PER_ROW)?);
        Ok(())
    })
}

/// Plans an engine's graph without a heap: lifetimes, in-place sharing and one of the greedy rules.
///
/// `strategy` is `ARENITE_STRATEGY_FIRST_FIT`, `_GREEDY_BY_SIZE` or `_TFLM_GREEDY`; `options` may be null for the defaults.
/// `offsets` receives one offset per tensor, `ARENITE_NO_AMOUNT` for a tensor without bytes in the reusable arena. The
/// workspace is scratch, of any address; its contents mean nothing afterwards.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the workspace or `offsets` is too small;
/// `ARENITE_ERR_ARGUMENT` for an index out of range, named with its node; `ARENITE_ERR_OVERFLOW`. `offsets` and
/// `out_arena_bytes` are written only on `ARENITE_OK`. `failure` may be null. Threads: any.
///
/// # Safety
/// `desc` is null or a struct of its `struct_size` whose arrays are readable; `options` is null or a struct of its
/// `struct_size`; `workspace` is writable for `bytes`, `offsets` for `count`; `out_arena_bytes` is null or valid
/// for one write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_plan(
    desc: *const arenite_lite_desc_t,
    options: *const arenite_graph_options_t,
    strategy: u32,
    workspace: *mut c_void,
    bytes: usize,
    offsets: *mut u64,
    count: u64,
    out_arena_bytes: *mut u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = || {
        // SAFETY: the caller's contract on `out_arena_bytes`.
        let out = unsafe { guard::out(out_arena_bytes, "out_arena_bytes is null") }?;
        // SAFETY: the caller's contract on `desc`.
        let desc = unsafe { abi::read(desc, "the description is null") }?;
        // SAFETY: the caller's contract on the arrays.
        let graph = unsafe { LiteTables::new(&desc) }?;
        // SAFETY: the caller's contract on `options`.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the caller's contract on `offsets`.
        let offsets = unsafe { abi::array_mut(offsets, count, "offsets is null") }?;
        let (rule, n) = (rule(strategy)?, graph.tensor_count());
        if offsets.len() < n {
            return Err(Error::capacity("the offset array is too short (entries)").needed(n as u64).available(count));
        }
        // SAFETY: the caller's contract on `workspace`.
        let mut cut = unsafe { Cut::new(workspace, bytes, workspace_bytes(n as u64, PER_TENSOR)?) }?;
        // SAFETY: `Cut::new` checked the size of these arrays together.
        let table = unsafe { cut.array(n, NO_ROW) };
        // SAFETY: as above.
        let found = unsafe { cut.array(n, 0u64) };
        // SAFETY: as above.
        let lifetimes = unsafe { cut.array(n, Lifetime::default()) };
        // SAFETY: as above.
        let shares = unsafe { cut.array(n, Share::default()) };
        // SAFETY: as above.
        let words = unsafe { cut.array(workspace_words(n).unwrap_or(0), 0u32) };
        rows(&graph, &options, &[], &mut Workspace { lifetimes, shares, rows: table })?;
        let arena = place(rule, table, words, found)?;
        for (t, offset) in offsets[..n].iter_mut().enumerate() {
            let row = home_row(&graph, lifetimes, shares, t);
            *offset = if table[row].size > 0 { found[row] } else { ARENITE_NO_AMOUNT };
        }
        out.write(arena);
        Ok(())
    };
    // SAFETY: the caller's contract on `failure`.
    unsafe { guard::call_with(failure, body) }
}

/// The caller's row as the rules take it.
fn row(given: &arenite_row_t) -> Result<Row, Error> {
    if given.first > given.last {
        return Err(Error::argument("a row ends before it begins"));
    }
    if given.flags & !(ARENITE_ROW_KEPT | ARENITE_ROW_FIXED | ARENITE_ROW_SHARED) != 0 {
        return Err(Error::argument("a row has an unknown flag").needed(given.flags.into()));
    }
    Ok(Row {
        size: given.bytes,
        align: optional_align(given.alignment)?.unwrap_or(DEFAULT_ALIGN),
        first: given.first,
        last: given.last,
        kept: given.flags & ARENITE_ROW_KEPT != 0,
        fixed: (given.flags & ARENITE_ROW_FIXED != 0).then_some(given.fixed_offset),
    })
}

/// Places rows without a heap by one of the greedy rules.
///
/// The workspace has at least `arenite_bare_place_bytes`. `offsets` receives one offset per row, 0 for a row of 0 bytes;
/// it must not overlap the workspace or the rows. Returns and the rest as `arenite_bare_plan`;
/// `ARENITE_ERR_ARGUMENT` also for a row that ends before it begins and for two fixed rows that collide without
/// `ARENITE_ROW_SHARED` (both named).
///
/// # Safety
/// `rows` is readable for `count`, `workspace` writable for `bytes`, `offsets` for `count`; `out_arena_bytes` is
/// null or valid for one write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_place(
    strategy: u32,
    rows: *const arenite_row_t,
    count: u64,
    workspace: *mut c_void,
    bytes: usize,
    offsets: *mut u64,
    out_arena_bytes: *mut u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = || {
        // SAFETY: the caller's contract on `out_arena_bytes`.
        let out = unsafe { guard::out(out_arena_bytes, "out_arena_bytes is null") }?;
        // SAFETY: the caller's contract on `rows`.
        let given = unsafe { abi::array(rows, count, "rows is null") }?;
        // SAFETY: the caller's contract on `offsets`.
        let offsets = unsafe { abi::array_mut(offsets, count, "offsets is null") }?;
        let rule = rule(strategy)?;
        for (i, g) in given.iter().enumerate() {
            row(g).map_err(|e| e.buffer(i).at(g.first))?;
        }
        // SAFETY: the caller's contract on `workspace`.
        let mut cut = unsafe { Cut::new(workspace, bytes, workspace_bytes(count, PER_ROW)?) }?;
        // SAFETY: `Cut::new` checked the size of these arrays together.
        let found = unsafe { cut.array(given.len(), 0u64) };
        // SAFETY: as above.
        let words = unsafe { cut.array(workspace_words(given.len()).unwrap_or(0), 0u32) };
        let shared = |i: usize| given[i].flags & ARENITE_ROW_SHARED != 0;
        let arena = place_with(rule, given.len(), (&|i| row(&given[i]).unwrap_or(NO_ROW), &shared), words, found)?;
        offsets.copy_from_slice(found);
        out.write(arena);
        Ok(())
    };
    // SAFETY: the caller's contract on `failure`.
    unsafe { guard::call_with(failure, body) }
}
