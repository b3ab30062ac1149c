//! A frame's plan from what is known of it before it first runs.

use core::mem::size_of;
use std::sync::Arc;

use super::abi;
use super::handle;
use super::options::zero;
use super::pool::{align, arenite_pool_t};
use super::status::{arenite_failure_t, arenite_status_t, ARENITE_NO_INDEX};
use crate::error::Error;
use crate::heap::frame::FramePlan;
use crate::planner::sequence::{Block, Sequence};
use crate::runtime::Pool;

/// One request of a frame, for `arenite_frame_plan`. An array element: it never grows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_frame_request_t {
    /// Bytes it will ask for.
    pub bytes: u64,
    /// The alignment it will ask for: any power of two, 0 for 128. A block aligned to more than 65536 gets no place.
    pub alignment: u64,
    /// The position, in the array, of the last request that is made before this one's block is freed: its own where no other
    /// is. `ARENITE_NO_INDEX` for a block that outlives the frame, which is served by the pool.
    pub last: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<arenite_frame_request_t>() == 24);

/// Plans the frames of a signature before the first one runs, so that already that one is served from the plan.
///
/// `requests` are all that a frame will make, in order. A resize that grows is a new request, and the free of the old block
/// comes right after it. `effort` is the number of search nodes to spend at most, 0 for those that the end of a recorded
/// frame spends. A plan that turns out wrong costs memory and time, never correctness: what does not match is served as
/// ever, and a frame that misses twice in a row is recorded anew.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for no requests, a block freed before it is allocated or after the last
/// request, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`, with the request as the failure's buffer where it is the fault of
/// one; `ARENITE_ERR_NO_MEMORY`.
///
/// # Safety
/// `pool` is null or live; `requests` is null or readable for `count`; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_frame_plan(
    pool: *const arenite_pool_t,
    signature: u64,
    requests: *const arenite_frame_request_t,
    count: u64,
    effort: u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |p: &Arc<Pool>| {
        // SAFETY: the caller's contract on `requests`.
        let requests = unsafe { abi::array(requests, count, "requests is null") }?;
        if requests.is_empty() {
            return Err(Error::argument("a frame makes at least one request"));
        }
        let mut sequence = Sequence::new();
        for (i, r) in requests.iter().enumerate() {
            if r.last != ARENITE_NO_INDEX && u64::from(r.last) >= count {
                let late = Error::argument("`last` is no position in the array of requests");
                return Err(late.buffer(i).needed(r.last.into()).available(count));
            }
            sequence.push(block(p, r).map_err(|e| e.buffer(i))?)?;
        }
        let plan = match effort {
            0 => FramePlan::new(&sequence),
            nodes => FramePlan::with_effort(&sequence, nodes),
        };
        p.frame_install(signature, plan?)
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(pool, failure, body) }
}

/// A request as frames of this pool see it.
fn block(pool: &Pool, r: &arenite_frame_request_t) -> Result<Block, Error> {
    zero(r.reserved)?;
    let align = if r.alignment == 0 { align(0) as u64 } else { r.alignment };
    if !align.is_power_of_two() {
        return Err(Error::alignment("the alignment is not a power of two").needed(align));
    }
    let bytes = r.bytes.checked_add(pool.overhead());
    let bytes = bytes.ok_or(Error::overflow("the request does not fit 64 bits").needed(r.bytes))?;
    Ok(Block { bytes, asked: bytes, align, last: (r.last != ARENITE_NO_INDEX).then_some(r.last) })
}
