//! TFLite's planner life cycle over real memory.

use core::ffi::c_void;

use super::graph::arenite_graph_t;
use super::guard;
use super::handle::{self, Opaque};
use super::incremental_options::{arenite_incremental_options_t, read_incremental};
use super::session::write_address;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::Error;
use crate::graph::incremental::Arena;
use crate::graph::owned::Graph;
use crate::graph::tables::{Allocation, Tables};
use crate::runtime::incremental::IncrementalArena;

/// One graph whose tensors get their sizes while it runs, with the memory for it. Threads: one at a time for calls that
/// change it.
pub struct arenite_incremental_t {
    _private: [u8; 0],
}

pub(crate) struct IncrementalInner {
    pub(crate) graph: Graph,
    pub(crate) arena: IncrementalArena,
}

impl Opaque for arenite_incremental_t {
    type Inner = IncrementalInner;
    const MAGIC: [u8; 4] = *b"incr";
    const NULL: &'static str = "the incremental planner is null";
}

/// Creates an incremental planner for a copy of the graph (subgraph 0 of it), without a plan yet. `options` may be null.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_incremental_destroy`; caller's buffers and callbacks are kept until then.
///
/// # Safety
/// As `arenite_session_create`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_create(
    graph: *const arenite_graph_t,
    options: *const arenite_incremental_options_t,
    out: *mut *mut arenite_incremental_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `graph`.
        let g = unsafe { handle::borrow(graph) }?;
        // SAFETY: the caller's contract on `options`.
        let config = unsafe { read_incremental(options) }?;
        Ok(IncrementalInner { graph: g.graphs[0].clone(), arena: IncrementalArena::new(&config) })
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Replaces the copy of the graph, for instance when temporaries were added. Places stay; plan again where more changed than
/// sizes, kinds and added tensors.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it has fewer tensors or nodes than before.
///
/// # Safety
/// `incremental` and `graph` are null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_set_graph(
    incremental: *mut arenite_incremental_t,
    graph: *const arenite_graph_t,
) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        // SAFETY: the caller's contract on `graph`.
        let g = unsafe { handle::borrow(graph) }?;
        let (old, new) = (&i.graph, &g.graphs[0]);
        if new.tensor_count() < old.tensor_count() || new.node_count() < old.node_count() {
            return Err(Error::argument("the graph has fewer tensors or nodes than before"));
        }
        i.graph = new.clone();
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::exclusive(incremental, body) }
}

/// Gives a tensor another size in bytes and another kind (`kAreniteArenaRw` and so on). Nothing is placed before the next
/// execution of its node.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_set_tensor(
    incremental: *mut arenite_incremental_t,
    tensor: u32,
    bytes: u64,
    allocation_type: u32,
) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        let allocation = Allocation::try_from(allocation_type)?;
        let t = i.graph.tensor_mut(tensor as usize)?;
        (t.bytes, t.allocation) = (Some(bytes), allocation);
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, body) }
}

/// Finds lifetimes and in-place sharing, and forgets all places. TFLite's PlanAllocations.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a bad index and for a tensor that is written after its last use; there is
/// no plan then.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_plan(incremental: *mut arenite_incremental_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.plan(&i.graph)) }
}

/// Places the tensors of nodes `first` to `last`, both inclusive, that have no place or outgrew theirs, and takes the memory.
/// TFLite's ExecuteAllocations; `last` is -1 for a graph without nodes.
///
/// Nothing placed before moves or loses its contents, with or without a reset. Returns: `ARENITE_OK`;
/// `ARENITE_ERR_UNKNOWN_SIZE`, `ARENITE_ERR_OVERFLOW`, `ARENITE_ERR_CAPACITY`, `ARENITE_ERR_NO_MEMORY`: all places are as
/// before, and so is memory whose contents must survive.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_execute(
    incremental: *mut arenite_incremental_t,
    first: i32,
    last: i32,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.execute(&i.graph, first, last)) }
}

/// Forgets all places and keeps lifetimes and memory. TFLite's ResetAllocations. Persistent contents follow their tensors.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_reset(incremental: *mut arenite_incremental_t) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        i.arena.reset();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, body) }
}

/// Forgets the places of main-arena tensors that begin after `node`; the rest stays, contents too. TFLite's
/// ResetAllocationsAfter.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_reset_after(
    incremental: *mut arenite_incremental_t,
    node: i32,
) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        i.arena.reset_after(node);
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, body) }
}

/// Gives the main arena's memory back and keeps the places. TFLite's ReleaseNonPersistentMemory.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_release(incremental: *mut arenite_incremental_t) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        i.arena.release();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, body) }
}

/// Takes the main arena's memory again, every tensor at its old offset; does nothing where it is held. TFLite's
/// AcquireNonPersistentMemory.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_acquire(incremental: *mut arenite_incremental_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.acquire()) }
}

/// Gives back what the main arena holds beyond what is placed; contents survive.
///
/// # Safety
/// `incremental` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_shrink_to_fit(
    incremental: *mut arenite_incremental_t,
) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(incremental, |i: &mut IncrementalInner| i.arena.shrink_to_fit()) }
}

/// Writes 1 where the main arena is committed, which it also is at 0 bytes, else 0. TFLite's HasNonPersistentMemory.
///
/// # Safety
/// `incremental` is null or live; `out` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_has_memory(
    incremental: *const arenite_incremental_t,
    out: *mut u32,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contract on `out`.
        unsafe { guard::out(out, "out is null") }?.write(i.arena.has_memory().into());
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Writes the address and size of a tensor's bytes; null and 0 for a tensor without any.
///
/// Valid until `arenite_incremental_generation` changes. Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where the tensor has
/// outgrown its place: execute its node first; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
///
/// # Safety
/// `incremental` is null or live; `out_data` and `out_bytes` are null or valid for one write. `out_bytes` may be null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_resolve(
    incremental: *const arenite_incremental_t,
    tensor: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contracts on the outputs.
        unsafe { write_address(out_data, out_bytes, || i.arena.resolve(&i.graph, tensor as usize)) }
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Writes a number that changes exactly when the address of a tensor does.
///
/// # Safety
/// `incremental` is null or live; `out_generation` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_generation(
    incremental: *const arenite_incremental_t,
    out_generation: *mut u64,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contract on `out_generation`.
        unsafe { guard::out(out_generation, "out_generation is null") }?.write(i.arena.generation());
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Writes how many bytes the main and the persistent arena hold. TFLite's GetAllocInfo.
///
/// # Safety
/// `incremental` is null or live; both outputs are null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_allocation_info(
    incremental: *const arenite_incremental_t,
    out_main_bytes: *mut usize,
    out_persistent_bytes: *mut usize,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contract on the outputs.
        let main = unsafe { guard::out(out_main_bytes, "out_main_bytes is null") }?;
        // SAFETY: as above.
        let persistent = unsafe { guard::out(out_persistent_bytes, "out_persistent_bytes is null") }?;
        let held = i.arena.allocation_info();
        main.write(held.0);
        persistent.write(held.1);
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Writes where the arena of tensors of a kind begins: the main arena for `kAreniteArenaRw`, the persistent one for
/// `kAreniteArenaRwPersistent`; null for all other kinds and while the arena holds no bytes. TFLite's BasePointer.
///
/// Valid until `arenite_incremental_generation` changes.
///
/// # Safety
/// `incremental` is null or live; `out_base` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_base(
    incremental: *const arenite_incremental_t,
    allocation_type: u32,
    out_base: *mut *mut c_void,
) -> arenite_status_t {
    let body = |i: &IncrementalInner| {
        // SAFETY: the caller's contract on `out_base`.
        let out = unsafe { guard::out(out_base, "out_base is null") }?;
        let arena = match Allocation::try_from(allocation_type)? {
            Allocation::ArenaRw => Some(Arena::Main),
            Allocation::ArenaRwPersistent => Some(Arena::Persistent),
            _ => None,
        };
        let base = arena.and_then(|a| i.arena.base(a));
        out.write(base.map_or(core::ptr::null_mut(), |b| b.as_ptr().cast()));
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::shared(incremental, body) }
}

/// Copies the record of the last failing call.
///
/// # Safety
/// `incremental` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_last_failure(
    incremental: *const arenite_incremental_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(incremental, out) }
}

/// Destroys an incremental planner and gives its memory back; null is allowed. All its addresses end.
///
/// # Safety
/// `incremental` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_incremental_destroy(incremental: *mut arenite_incremental_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(incremental) }
}
