//! Guard zones, numbers and the dump of an incremental planner.

use core::ffi::c_char;
use core::mem::size_of;

use super::abi::{self, Versioned};
use super::guard;
use super::handle;
use super::incremental::{arenite_incremental_t, IncrementalInner};
use super::session_report::{arenite_node_row_t, write_rows};
use super::status::arenite_status_t;
use crate::error::{Error, Subject};

/// The numbers of an incremental planner at one moment. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_incremental_stats_t {
    /// `sizeof(arenite_incremental_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Sum of all tensors placed in the main arena: what one allocation per tensor would take.
    pub sum_bytes: u64,
    /// Bytes the main arena needs, unrounded.
    pub planned_bytes: u64,
    /// Bytes the main arena holds.
    pub committed_bytes: u64,
    /// Bytes the persistent arena holds.
    pub persistent_bytes: u64,
    /// The most bytes the main arena ever held, old and new counted where both had to be held.
    pub high_water: u64,
    /// How often a memory source was asked or given something back.
    pub heap_calls: u64,
    /// The same since the last execution.
    pub heap_calls_since_execute: u64,
}

const _: () = assert!(size_of::<arenite_incremental_stats_t>() == 64);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_incremental_stats_t {
    const DEFAULT: Self = Self {
        struct_size: 64,
        flags: 0,
        sum_bytes: 0,
        planned_bytes: 0,
        committed_bytes: 0,
        persistent_bytes: 0,
        high_water: 0,
        heap_calls: 0,
        heap_calls_since_execute: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Writes the numbers of an incremental planner.
///
/// # Safety
/// `incremental` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_stats(
    incremental: *const arenite_incremental_t,
    out: *mut arenite_incremental_stats_t,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        let n = i.arena.stats();
        let stats = arenite_incremental_stats_t {
            sum_bytes: n.sum_bytes,
            planned_bytes: n.planned_bytes,
            committed_bytes: n.committed_bytes,
            persistent_bytes: n.persistent_bytes,
            high_water: n.high_water,
            heap_calls: n.heap_calls,
            heap_calls_since_execute: n.heap_calls_since_execute,
            ..arenite_incremental_stats_t::DEFAULT
        };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "the pointer for the numbers is null") }
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Writes a row per node executed so far with the bytes of the main arena alive meanwhile: as many as `capacity` allows, and how
/// many there are.
///
/// # Safety
/// `incremental` is null or live; `rows` is writable for `capacity`; `out_count` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_node_bytes(
    incremental: *const arenite_incremental_t,
    rows: *mut arenite_node_row_t,
    capacity: u64,
    out_count: *mut u64,
) -> arenite_status_t {
    let row = |&(node, bytes): &(i32, u64)| arenite_node_row_t {
        subgraph: 0,
        node: node as u32,
        key: node as u64,
        bytes,
        without: 0,
    };
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contracts on `rows` and `out_count`.
        unsafe { write_rows(rows, capacity, out_count, || Ok(i.arena.node_bytes()), row) }
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// With `ARENITE_INCREMENTAL_GUARD`: call before each node runs, in order.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` without guard mode; `ARENITE_ERR_STALE` without memory;
/// `ARENITE_ERR_ARGUMENT` where there is no such node.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_guard_before(
    incremental: *mut arenite_incremental_t,
    node: i32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.guard_before(&i.graph, node)) }
}

/// With `ARENITE_INCREMENTAL_GUARD`: call after each node.
///
/// Returns as `arenite_incremental_guard_before`, and `ARENITE_ERR_ARGUMENT` where the node wrote past the end of a tensor: the
/// record names the node, the tensor, and in `needed` how many bytes past the end the last damage lies. The next node is not
/// blamed for it.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_guard_after(
    incremental: *mut arenite_incremental_t,
    node: i32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.guard_after(&i.graph, node)) }
}

/// Writes what is placed as text that ends in a zero: the arenas, each tensor's life span and bytes, the five fullest nodes.
/// TFLite's DumpDebugInfo.
///
/// At most `capacity` bytes are written, the text cut to fit; `*out_length` is the length of the whole text without its zero.
///
/// # Safety
/// `incremental` is null or live; `text` is writable for `capacity`; `out_length` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_dump(
    incremental: *const arenite_incremental_t,
    text: *mut c_char,
    capacity: u64,
    out_length: *mut u64,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contract on `out_length`.
        let length = unsafe { guard::out(out_length, "out_length is null") }?;
        // SAFETY: the caller's contract on `text`; any byte is a character.
        let to = unsafe { abi::array_mut(text.cast::<u8>(), capacity, "text is null") }?;
        let mut dump = String::new();
        i.arena.dump(&mut dump).map_err(|_| Error::internal("the dump was not written").of(Subject::None))?;
        if let Some(room) = to.len().checked_sub(1) {
            let n = room.min(dump.len());
            to[..n].copy_from_slice(&dump.as_bytes()[..n]);
            to[n] = 0;
        }
        length.write(dump.len() as u64);
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}
