//! Many instances of one plan, of which some run at once.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi::{self, Versioned};
use super::arena::{arenite_source_t, source, ARENITE_SOURCE_SYSTEM, SYSTEM};
use super::guard;
use super::handle::{self, Opaque};
use super::plan::arenite_plan_t;
use super::pool::arenite_pool_t;
use super::session::write_address;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::instances::{Instances, InstancesConfig, Run};
use crate::runtime::Supply;

/// Instances of one plan: constants shared, persistent memory each, reusable arenas lent to those that run.
/// Threads: any.
pub struct arenite_instances_t {
    _private: [u8; 0],
}

impl Opaque for arenite_instances_t {
    type Inner = Instances;
    const MAGIC: [u8; 4] = *b"inst";
    const NULL: &'static str = "the instances are null";
}

/// An instance that has an arena until the run is destroyed. Threads: one at a time for calls that change it.
pub struct arenite_run_t {
    _private: [u8; 0],
}

impl Opaque for arenite_run_t {
    type Inner = Run;
    const MAGIC: [u8; 4] = *b"run ";
    const NULL: &'static str = "the run is null";
}

/// A run refuses other threads than the one that acquired or adopted it, with `ARENITE_ERR_BUSY`.
pub const ARENITE_INSTANCES_CHECK_THREADS: u32 = 1;

/// How many instances, and where their memory comes from.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_instances_options_t {
    /// `sizeof(arenite_instances_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_INSTANCES_` bits.
    pub flags: u32,
    /// Instances, at least 1.
    pub instances: u64,
    /// The most that run at once, at least 1.
    pub arenas: u64,
    /// For reusable arenas; a buffer holds one only. Callbacks may be called from any thread.
    pub main: arenite_source_t,
    /// For persistent memory; a buffer holds that of one instance only.
    pub persistent: arenite_source_t,
    /// Leases the reusable arenas from this pool, which it keeps alive; `main` is then all 0. Null for `main`.
    pub pool: *const arenite_pool_t,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or a source, which is
// plain data.
unsafe impl Versioned for arenite_instances_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        instances: 1,
        arenas: 1,
        main: SYSTEM,
        persistent: SYSTEM,
        pool: core::ptr::null(),
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_INSTANCES_CHECK_THREADS;
}

/// Creates instances of a plan. Persistent memory is taken and zeroed now, reusable arenas when they are first needed.
///
/// The plan may be destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`,
/// `ARENITE_ERR_CAPACITY`, `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_instances_destroy`;
/// buffers and callbacks are kept until that and the last run are destroyed.
///
/// # Safety
/// As `arenite_arena_create`; callbacks may be called from any thread; a pool in the options is live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_create(
    plan: *const arenite_plan_t,
    options: *const arenite_instances_options_t,
    out: *mut *mut arenite_instances_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `plan`.
        let plan = unsafe { handle::borrow(plan) }?;
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read(options, "the options are null") }?;
        let main = if o.pool.is_null() {
            Supply::Source(source(&o.main)?)
        } else if o.main.kind != ARENITE_SOURCE_SYSTEM {
            return Err(Error::argument("both a pool and a source are given for the reusable arenas"));
        } else {
            // SAFETY: the caller's contract on `pool`.
            Supply::Pool(Arc::clone(&*unsafe { handle::borrow(o.pool) }?))
        };
        let config = InstancesConfig {
            instances: abi::narrow(o.instances)?,
            arenas: abi::narrow(o.arenas)?,
            main,
            persistent: Supply::Source(source(&o.persistent)?),
            check_threads: o.flags & ARENITE_INSTANCES_CHECK_THREADS != 0,
        };
        Instances::new(plan.layout.clone(), config)
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Says where a constant is for all instances. Kept: referenced, not copied; it outlives them and every run.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY`. Any thread;
/// `failure` may be null.
///
/// # Safety
/// `instances` is null or live; `data` stays readable for `bytes`; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_bind_constant(
    instances: *const arenite_instances_t,
    subgraph: u32,
    tensor: u32,
    data: *const c_void,
    bytes: usize,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |i: &Instances| {
        let data = NonNull::new(data.cast_mut().cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?;
        i.bind_constant(subgraph as usize, tensor as usize, data, bytes)
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(instances, failure, body) }
}

/// Lends an arena to an instance. With `wait` 1 the call waits until one is free, with 0 it does not.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` where the instance runs already, or with `wait` 0 where all arenas are lent;
/// `ARENITE_ERR_ARGUMENT` where there is no such instance; `ARENITE_ERR_NO_MEMORY`. Any thread; `failure` may be null.
/// Ownership: `*out` is the caller's until `arenite_run_destroy`, and stays valid when the instances are destroyed before.
///
/// # Safety
/// `instances` is null or live; `out` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_acquire(
    instances: *const arenite_instances_t,
    instance: u64,
    wait: u32,
    out: *mut *mut arenite_run_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |i: &Instances| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "the pointer for the run is null") }?;
        let instance = abi::narrow(instance)?;
        let run = match wait {
            0 => i.try_acquire(instance),
            1 => i.acquire(instance),
            other => Err(Error::argument("wait is neither 0 nor 1").needed(other.into())),
        }?;
        out.write(handle::new(run)?);
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(instances, failure, body) }
}

/// What instances hold. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_instances_stats_t {
    /// `sizeof(arenite_instances_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Bytes of all reusable arenas, lent or free.
    pub committed_bytes: u64,
    /// Bytes of persistent memory over all instances.
    pub persistent_bytes: u64,
    /// The most bytes of reusable arenas that ever existed.
    pub high_water: u64,
    /// Arenas lent.
    pub running: u64,
    /// How often a pool or source was asked or given something back.
    pub heap_calls: u64,
    /// The most arenas lent at a time.
    pub peak: u64,
    /// Runs begun so far.
    pub runs: u64,
    /// Requests that had to wait for an arena, from the moment they do.
    pub waits: u64,
    /// Those refused because all arenas were lent or there was no memory.
    pub refused: u64,
}

const _: () = assert!(size_of::<arenite_instances_stats_t>() == 80);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_instances_stats_t {
    const DEFAULT: Self = Self {
        struct_size: 80,
        flags: 0,
        committed_bytes: 0,
        persistent_bytes: 0,
        high_water: 0,
        running: 0,
        heap_calls: 0,
        peak: 0,
        runs: 0,
        waits: 0,
        refused: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Writes what the instances hold at this moment. Any thread; `failure` may be null.
///
/// # Safety
/// `instances` is null or live; `out` and `failure` are null or writable for their `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_stats(
    instances: *const arenite_instances_t,
    out: *mut arenite_instances_stats_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |i: &Instances| {
        let s = i.stats();
        let stats = arenite_instances_stats_t {
            committed_bytes: s.committed_bytes as u64,
            persistent_bytes: s.persistent_bytes as u64,
            high_water: s.high_water as u64,
            running: s.running as u64,
            heap_calls: s.heap_calls,
            peak: s.peak as u64,
            runs: s.runs,
            waits: s.waits,
            refused: s.refused,
            ..arenite_instances_stats_t::DEFAULT
        };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "the pointer for the numbers is null") }
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(instances, failure, body) }
}

/// Gives arenas that are not lent back to their pool or source. Any thread; `failure` may be null.
///
/// # Safety
/// `instances` is null or live; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_instances_trim(
    instances: *const arenite_instances_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |i: &Instances| {
        i.trim();
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(instances, failure, body) }
}

/// Destroys instances; null is allowed. No call may be using them. Runs that are out keep their memory until they end.
///
/// # Safety
/// `instances` is null or live, no other call uses it, and it is not used again.
#[no_mangle]
pub unsafe extern "C" fn arenite_instances_destroy(instances: *mut arenite_instances_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(instances) }
}

/// Writes the address and size of a tensor's bytes for this run; null and 0 for a tensor without any.
///
/// Valid until the run is destroyed. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor;
/// `ARENITE_ERR_BUSY` where threads are checked and this one is not the owner.
///
/// # Safety
/// `run` is null or live; `out_data` and `out_bytes` are null or valid for one write. `out_bytes` may be null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_run_resolve(
    run: *const arenite_run_t,
    subgraph: u32,
    tensor: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |r: &Run| {
        // SAFETY: the caller's contracts on the outputs.
        unsafe { write_address(out_data, out_bytes, || r.resolve(subgraph as usize, tensor as usize)) }
    };
    // SAFETY: the caller's contract on `run`.
    unsafe { handle::shared(run, body) }
}

/// Makes the calling thread the owner of a run that was handed over to it.
///
/// # Safety
/// `run` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_run_adopt(run: *mut arenite_run_t) -> arenite_status_t {
    let body = |r: &mut Run| {
        r.adopt();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(run, body) }
}

/// Copies the record of the last failing call on this run.
///
/// # Safety
/// `run` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_run_last_failure(
    run: *const arenite_run_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(run, out) }
}

/// Ends a run and gives its arena back to the instances; null is allowed.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `run` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_run_destroy(run: *mut arenite_run_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(run) }
}
