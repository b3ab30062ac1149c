//! The heap over offsets: the pool's core for memory the CPU cannot touch.

use core::ffi::c_void;
use core::ptr;

use super::abi;
use super::guard;
use super::handle::{self, Opaque};
use super::heap_block::{
    arenite_heap_block_t, arenite_heap_options_t, arenite_heap_stats_t, request, ARENITE_HEAP_FIND,
    ARENITE_POOL_HINT_UNKNOWN,
};
use super::options::zero;
use super::status::{arenite_failure_t, arenite_status_t, ARENITE_ERR_INTERNAL, ARENITE_OK};
use crate::error::{Error, Kind};
use crate::heap::Request;
use crate::runtime::{OffsetHeap, OffsetHeapConfig};

/// A heap over the offsets of one region, which it never touches: DMA, GPU or NPU memory, another process's, a file's.
/// Blocks are named by `arenite_heap_block_t`. Threads: any; no call needs the heap alone.
pub struct arenite_heap_t {
    _private: [u8; 0],
}

impl Opaque for arenite_heap_t {
    type Inner = OffsetHeap;
    const MAGIC: [u8; 4] = *b"heap";
    const NULL: &'static str = "the heap is null";
}

/// Creates a heap with everything free. Its records are in this process, 32 bytes for each block and each gap.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for less than 128 bytes; `ARENITE_ERR_CAPACITY` for 512 GiB or more;
/// `ARENITE_ERR_ALIGNMENT` for a base that is not a multiple of 128; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the
/// caller's until `arenite_heap_destroy`. `failure` may be null.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`; `out` is null or valid for one pointer write; `failure` is null or
/// writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_create(
    options: *const arenite_heap_options_t,
    out: *mut *mut arenite_heap_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read(options, "options is null") }?;
        zero(o.reserved)?;
        OffsetHeap::new(&OffsetHeapConfig {
            bytes: o.bytes,
            base: o.base,
            region: o.region,
            max_blocks: usize::try_from(o.max_blocks).unwrap_or(usize::MAX),
            large: o.large_bytes,
            find: o.flags & ARENITE_HEAP_FIND != 0,
        })
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Destroys a heap. Null is allowed. `ARENITE_ERR_BUSY` while blocks are live (their number is `needed` in the failure
/// record): nothing is destroyed then.
///
/// # Safety
/// `heap` is null or live, and used by nobody during and after the call; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_destroy(
    heap: *mut arenite_heap_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    if !heap.is_null() {
        let idle = |h: &OffsetHeap| match h.stats().0.blocks {
            0 => Ok(()),
            n => Err(Error::busy("blocks are live").needed(n)),
        };
        // SAFETY: the caller's contracts.
        let status = unsafe { handle::any_thread(heap, failure, idle) };
        // A poisoned heap is destroyed like any other.
        if status != ARENITE_OK && status != ARENITE_ERR_INTERNAL {
            return status;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(heap) }
}

/// The body of every call that hands out a block.
///
/// # Safety
/// As for [`arenite_heap_alloc`].
unsafe fn serve(
    heap: *const arenite_heap_t,
    request: Result<Request, Error>,
    out: *mut arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |h: &OffsetHeap| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(h.alloc(&request?)?.into());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(heap, failure, body) }
}

/// Allocates `bytes` bytes at a multiple of `alignment`: any power of two, 0 for 128. 0 bytes give a block of its own.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` with what was asked for and the largest free block;
/// `ARENITE_ERR_ALIGNMENT`; `ARENITE_ERR_NO_MEMORY` where there is no record left for the block.
///
/// # Safety
/// `heap` is null or live; `out` is null or valid for one write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_alloc(
    heap: *const arenite_heap_t,
    bytes: u64,
    alignment: u64,
    out: *mut arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { serve(heap, request(bytes, alignment, 0, ARENITE_POOL_HINT_UNKNOWN), out, failure) }
}

/// The same with what is known of the block's future, as for `arenite_pool_alloc_hint`: `headroom` bytes more that
/// `arenite_heap_resize` can use, and `hint`, one of `ARENITE_POOL_HINT_`.
///
/// # Safety
/// As for `arenite_heap_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_alloc_hint(
    heap: *const arenite_heap_t,
    bytes: u64,
    alignment: u64,
    headroom: u64,
    hint: u32,
    out: *mut arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { serve(heap, request(bytes, alignment, headroom, hint), out, failure) }
}

/// Frees a block. The handle is stale from then on: no later block is ever named by it.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it names no live block of this heap (freed before, made up, of
/// a heap with another `region` number): nothing has changed then.
///
/// # Safety
/// `heap` is null or live; `failure` is null or writable for its `struct_size`. Any handle may be passed.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_free(
    heap: *const arenite_heap_t,
    block: arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(heap, failure, |h| h.free(block.into()).map(drop)) }
}

/// Resizes a block where it is: offset and handle stay. `headroom` bytes more are kept for the next growth.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the free space behind it does not suffice, with the bytes it could
/// have there: nothing has changed then, and the caller allocates anew and copies; `ARENITE_ERR_ARGUMENT` for a handle that
/// names no live block.
///
/// # Safety
/// As for `arenite_heap_free`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_resize(
    heap: *const arenite_heap_t,
    block: arenite_heap_block_t,
    bytes: u64,
    headroom: u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(heap, failure, |h| h.resize(block.into(), bytes, headroom)) }
}

/// Writes the handle of the live block that starts at `offset`.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where none starts there; `ARENITE_ERR_UNSUPPORTED` without
/// `ARENITE_HEAP_FIND`.
///
/// # Safety
/// `heap` is null or live; `out` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_find(
    heap: *const arenite_heap_t,
    offset: u64,
    out: *mut arenite_heap_block_t,
) -> arenite_status_t {
    let body = |h: &OffsetHeap| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(h.find(offset)?.into());
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(heap, ptr::null_mut(), body) }
}

/// Writes how many bytes a live block holds and how many were asked for; either pointer may be null.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a handle that names no live block.
///
/// # Safety
/// `heap` is null or live; `out_bytes` and `out_requested` are null or valid for one write each.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_size(
    heap: *const arenite_heap_t,
    block: arenite_heap_block_t,
    out_bytes: *mut u64,
    out_requested: *mut u64,
) -> arenite_status_t {
    let body = |h: &OffsetHeap| {
        let (bytes, requested) = h.size(block.into())?;
        let outputs = [(out_bytes, bytes), (out_requested, requested)];
        let mut checked = [None, None];
        for (place, (pointer, value)) in checked.iter_mut().zip(outputs) {
            if !pointer.is_null() {
                // SAFETY: the caller's contract on the outputs.
                *place = Some((unsafe { guard::out(pointer, "") }?, value));
            }
        }
        for (out, value) in checked.into_iter().flatten() {
            out.write(value);
        }
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(heap, ptr::null_mut(), body) }
}

/// Fills in the statistics. Set `struct_size` and `flags` of `out` first.
///
/// # Safety
/// `heap` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_stats(
    heap: *const arenite_heap_t,
    out: *mut arenite_heap_stats_t,
) -> arenite_status_t {
    let body = |h: &OffsetHeap| {
        let (stats, largest) = h.stats();
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &arenite_heap_stats_t::of(&stats, largest), "out is null") }
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(heap, ptr::null_mut(), body) }
}

/// Checks the whole structure; other threads wait meanwhile. `ARENITE_ERR_INTERNAL` where it is wrong.
///
/// # Safety
/// `heap` is null or live; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_check(
    heap: *const arenite_heap_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::any_thread(heap, failure, OffsetHeap::check) }
}

/// One block, as `arenite_heap_walk` shows it: `block` is null for a free one. Must not unwind or longjmp, and must not
/// call the heap.
pub type arenite_heap_walk_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        offset: u64,
        bytes: u64,
        requested: u64,
        block: *const arenite_heap_block_t,
    ),
>;

/// Shows every block in order of offset, free ones too. Other threads wait meanwhile.
///
/// # Safety
/// `heap` is null or live; `visit` is null or callable with `user`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_heap_walk(
    heap: *const arenite_heap_t,
    visit: arenite_heap_walk_fn,
    user: *mut c_void,
) -> arenite_status_t {
    let body = |h: &OffsetHeap| {
        let visit = visit.ok_or(Error::new(Kind::Null, "visit is null"))?;
        h.walk(|e| {
            let block = e.handle.map(arenite_heap_block_t::from);
            let block = block.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the caller's contract on `visit`.
            unsafe { visit(user, e.offset, e.bytes, e.requested, block) };
        });
        Ok(())
    };
    // SAFETY: the caller's contract; there is no failure record.
    unsafe { handle::any_thread(heap, ptr::null_mut(), body) }
}
