//! Recorded frames: a sequence of requests that repeats is planned once and then served from fixed places.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use std::sync::Arc;

use super::abi::{self, Versioned};
use super::guard;
use super::handle::{self, Opaque};
use super::pool::{align, arenite_pool_t};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::heap::frame::FramePlan;
use crate::runtime::{Frame, FrameStats, Lock, Pool};

/// One run of a repeating sequence. Threads: any; as a rule one thread has it, and others free through the pool.
pub struct arenite_frame_t {
    _private: [u8; 0],
}

impl Opaque for arenite_frame_t {
    type Inner = Lock<Frame<Arc<Pool>>>;
    const MAGIC: [u8; 4] = *b"fram";
    const NULL: &'static str = "the frame is null";
}

/// What the frames of a pool did, up to the last that ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_frame_stats_t {
    /// `sizeof(arenite_frame_stats_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Frames begun.
    pub frames: u64,
    /// Frames recorded and planned.
    pub recorded: u64,
    /// Frames neither recorded nor replayed: too many in flight, nothing in the plan, or no memory for the frame's area.
    pub passed: u64,
    /// Requests served from a plan.
    pub served: u64,
    /// Requests that were not what the plan expected.
    pub mismatched: u64,
    /// Requests whose place was still taken by an earlier block.
    pub waiting: u64,
    /// Requests the plan has no place for.
    pub outside: u64,
    /// Plans held.
    pub plans: u64,
    /// Instances held.
    pub instances: u64,
    /// Bytes of their areas.
    pub area_bytes: u64,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_frame_stats_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        frames: 0,
        recorded: 0,
        passed: 0,
        served: 0,
        mismatched: 0,
        waiting: 0,
        outside: 0,
        plans: 0,
        instances: 0,
        area_bytes: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Begins a frame. Frames of one signature are expected to make the same requests in the same order: the first one is
/// recorded, the next ones are served from a plan, and a sequence that has changed is recorded anew.
///
/// The signature is any number the host derives from what decides the sequence: the model and its input shapes. Several
/// frames may be in flight, of one signature too. 16 plans are kept, and the least recently used makes room. A plan's area
/// stays for the next frame, and is given back before the pool refuses a request. More than 16 frames of a signature at once,
/// a sequence of more than 262144 requests, and a pool that is traced or has a debug flag are served without a plan.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_frame_end`; the pool cannot
/// be destroyed before that. `failure` may be null.
///
/// # Safety
/// `pool` is null or live; `out` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_begin(
    pool: *const arenite_pool_t,
    signature: u64,
    out: *mut *mut arenite_frame_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(handle::new(Lock::new(Frame::begin(Arc::clone(p), signature)))?);
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Ends a frame and destroys it. Blocks still live stay so and are freed through the pool. Null is allowed.
///
/// The first frame of a signature is planned here, which takes some milliseconds.
///
/// # Safety
/// `frame` is null or live, and used by nobody during and after the call.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_end(frame: *mut arenite_frame_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(frame) }
}

/// Allocates as `arenite_pool_alloc` does, from the frame's plan where it allows.
///
/// # Safety
/// `frame` is null or live; `out` and `failure` as for `arenite_pool_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_alloc(
    frame: *const arenite_frame_t,
    bytes: usize,
    alignment: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |f: &Lock<Frame<Arc<Pool>>>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(f.lock().alloc(bytes, align(alignment))?.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(frame, failure, body) }
}

/// Resizes a block of the frame as `arenite_pool_realloc` does, except that `data` must not be null and a smaller size changes
/// nothing; `alignment` is the one it was allocated with.
///
/// # Safety
/// As for `arenite_pool_realloc`; `data` is not null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_realloc(
    frame: *const arenite_frame_t,
    data: *mut c_void,
    bytes: usize,
    alignment: usize,
    out: *mut *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |f: &Lock<Frame<Arc<Pool>>>| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        let block = NonNull::new(data.cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?;
        // SAFETY: the caller's contract on `data`.
        let new = unsafe { f.lock().realloc(block, bytes, align(alignment)) }?;
        out.write(new.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(frame, failure, body) }
}

/// Frees a block as `arenite_pool_free` does, and faster for the frame's own. Null does nothing.
///
/// # Safety
/// As for `arenite_pool_free`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_free(
    frame: *const arenite_frame_t,
    data: *mut c_void,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |f: &Lock<Frame<Arc<Pool>>>| match NonNull::new(data.cast::<u8>()) {
        // SAFETY: the caller's contract on `data`.
        Some(block) => unsafe { f.lock().free(block) },
        None => Ok(()),
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(frame, failure, body) }
}

/// Saves the plan of a signature: writes as many bytes as `capacity` allows to `buffer`, and always how many there are.
///
/// Call with a capacity of 0 first. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no plan.
///
/// # Safety
/// `pool` is null or live; `buffer` is null or writable for `capacity` bytes; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_save(
    pool: *const arenite_pool_t,
    signature: u64,
    buffer: *mut c_void,
    capacity: usize,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        // SAFETY: the caller's contract on `buffer`.
        let buffer = unsafe { abi::array_mut(buffer.cast::<u8>(), capacity as u64, "buffer is null") }?;
        let plan = p.frame_plan(signature).ok_or(Error::argument("there is no plan of that signature"))?;
        let saved = plan.encode();
        let n = saved.len().min(buffer.len());
        buffer[..n].copy_from_slice(&saved[..n]);
        out.write(saved.len());
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}

/// Loads a saved plan for a signature. Nothing in it is trusted: `ARENITE_ERR_ARGUMENT` for anything that is not a valid
/// plan.
///
/// # Safety
/// `pool` is null or live; `saved` is null or readable for `bytes` bytes; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_load(
    pool: *const arenite_pool_t,
    signature: u64,
    saved: *const c_void,
    bytes: usize,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `saved`.
        let saved = unsafe { abi::array(saved.cast::<u8>(), bytes as u64, "saved is null") }?;
        p.frame_install(signature, FramePlan::decode(saved)?)
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// Fills in the statistics of a pool's frames. Set `struct_size` and `flags` of `out` first.
///
/// # Safety
/// `pool` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_stats(
    pool: *const arenite_pool_t,
    out: *mut arenite_frame_stats_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        let FrameStats { frames, recorded, passed, served, mismatched, waiting, outside, plans, instances, area_bytes } =
            p.frame_stats();
        let stats = arenite_frame_stats_t {
            frames,
            recorded,
            passed,
            served,
            mismatched,
            waiting,
            outside,
            plans: plans.into(),
            instances: instances.into(),
            area_bytes,
            ..arenite_frame_stats_t::DEFAULT
        };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "out is null") }
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(pool, core::ptr::null_mut(), body) }
}
