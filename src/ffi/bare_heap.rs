//! The heap over offsets with its records in the caller's memory: for devices without a heap of their own.

use core::ffi::c_void;
use core::mem::{align_of, size_of};
use core::ptr::NonNull;

use super::abi;
use super::guard;
use super::heap_block::{
    arenite_heap_block_t, arenite_heap_options_t, arenite_heap_stats_t, request, ARENITE_HEAP_FIND,
};
use super::options::zero;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::heap::{pages_for, Borrowed, Fault, Heap, Node, GRANULE};

/// Rows of bins: a region of less than 2^20 granules needs no more.
const ROWS: usize = 16;
/// The largest region, in bytes.
const MOST: u64 = (16 << ROWS) * GRANULE - GRANULE;

type Inner = Heap<Borrowed<'static, Node>, &'static mut [u32], ROWS>;

/// What lies at the start of the caller's memory; nodes and pages follow.
#[repr(C)]
struct Head {
    magic: u32,
    heap: Inner,
}

const MAGIC: u32 = u32::from_le_bytes(*b"bhea");
const SLACK: u64 = align_of::<Head>() as u64 - 1;
const _: () = assert!(align_of::<Head>() >= align_of::<Node>() && align_of::<Node>() >= align_of::<u32>());
const _: () = assert!(size_of::<Head>().is_multiple_of(align_of::<Node>()));

/// A heap over offsets that lives in the caller's memory and calls nobody. Threads: one at a time.
pub struct arenite_bare_heap_t {
    _private: [u8; 0],
}

/// How many nodes and pages, and the bytes for them and the head at any address.
fn extent(o: &arenite_heap_options_t) -> Result<(usize, usize, usize), Error> {
    zero(o.reserved)?;
    if o.bytes < GRANULE {
        return Err(Error::argument("a heap has at least 128 bytes").needed(o.bytes));
    }
    if o.bytes > MOST + GRANULE - 1 {
        return Err(Error::capacity("the region is too large for a heap without std").needed(o.bytes).available(MOST));
    }
    if o.max_blocks == 0 {
        return Err(Error::argument("max_blocks is 0: the records cannot grow in lent memory"));
    }
    let granules = o.bytes / GRANULE;
    // Between two blocks there is at most one gap, and the region ends once.
    let nodes = o.max_blocks.saturating_mul(2).saturating_add(1).min(granules + 1);
    let pages = if o.flags & ARENITE_HEAP_FIND != 0 { pages_for(granules * GRANULE) as u64 } else { 0 };
    // Both counts are below 2^21, so the sum is far below 2^32.
    let bytes = SLACK + size_of::<Head>() as u64 + nodes * size_of::<Node>() as u64 + pages * 4;
    Ok((nodes as usize, pages as usize, bytes as usize))
}

/// Runs `body` on the heap.
///
/// # Safety
/// `heap` is null or from `arenite_bare_heap_init`, whose memory is as it left it and used by nobody else; `failure` is null
/// or writable for its `struct_size`.
unsafe fn with(
    heap: *mut arenite_bare_heap_t,
    failure: *mut arenite_failure_t,
    body: impl FnOnce(&mut Inner) -> Result<(), Error>,
) -> arenite_status_t {
    let checked = || {
        let mut head = NonNull::new(heap.cast::<Head>()).ok_or(Error::new(Kind::Null, "the heap is null"))?;
        let wrong = Error::argument("the pointer is not a heap");
        if !head.is_aligned() {
            return Err(wrong);
        }
        // SAFETY: per the contract a head is there, and nobody else uses it.
        let head = unsafe { head.as_mut() };
        if head.magic != MAGIC {
            return Err(wrong);
        }
        body(&mut head.heap)
    };
    // SAFETY: the caller's contract on `failure`.
    unsafe { guard::call_with(failure, checked) }
}

/// Writes how many bytes of memory, at any address, `arenite_bare_heap_init` needs for these options: about 2.3 KiB, 64 bytes
/// for every block of `max_blocks`, and 4 for every 4 KiB of the region with `ARENITE_HEAP_FIND`.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for less than 128 bytes or no `max_blocks`; `ARENITE_ERR_CAPACITY` for
/// 128 MiB or more. Threads: any.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_bytes(
    options: *const arenite_heap_options_t,
    out_bytes: *mut usize,
) -> arenite_status_t {
    guard::call(|| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        // SAFETY: the caller's contract on `options`.
        let options = unsafe { abi::read(options, "options is null") }?;
        out.write(extent(&options)?.2);
        Ok(())
    })
}

/// Makes a heap with everything free in `memory` (kept), which must not move. There is nothing to destroy.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the memory is too small, with the exact amount; and as
/// `arenite_bare_heap_bytes` and, for `base`, `ARENITE_ERR_ALIGNMENT`.
///
/// # Safety
/// `memory` is null or writable for `bytes` and used by nobody else while the heap is; `options` is null or a struct of its
/// `struct_size`; `out` is null or valid for one pointer write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_init(
    memory: *mut c_void,
    bytes: usize,
    options: *const arenite_heap_options_t,
    out: *mut *mut arenite_bare_heap_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = || {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read(options, "options is null") }?;
        let (node_count, page_count, needed) = extent(&o)?;
        let base = NonNull::new(memory.cast::<u8>()).ok_or(Error::new(Kind::Null, "the memory is null"))?;
        if bytes < needed {
            return Err(Error::capacity("the memory is too small").needed(needed as u64).available(bytes as u64));
        }
        if !o.base.is_multiple_of(GRANULE) {
            return Err(Error::alignment("the base is not a multiple of 128").needed(o.base));
        }
        let skip = base.as_ptr().align_offset(align_of::<Head>());
        // SAFETY: `skip` is at most `SLACK`, and the memory is larger than that.
        let head = unsafe { base.add(skip) }.cast::<Head>();
        // SAFETY: `extent` counted the head, so one past it is inside the memory.
        let first_node = unsafe { head.add(1) }.cast::<Node>();
        // SAFETY: and the nodes.
        let first_page = unsafe { first_node.add(node_count) }.cast::<u32>();
        for i in 0..node_count {
            // SAFETY: inside the nodes.
            let node = unsafe { first_node.add(i) };
            // SAFETY: writable and aligned, as the alignments fall from the head on.
            unsafe { node.write(Node::EMPTY) };
        }
        // SAFETY: writable per the contract and counted by `extent`.
        unsafe { first_page.write_bytes(0, page_count) };
        // SAFETY: just initialised, and nobody else's while the heap is used.
        let nodes = unsafe { core::slice::from_raw_parts_mut(first_node.as_ptr(), node_count) };
        // SAFETY: as above.
        let pages = unsafe { core::slice::from_raw_parts_mut(first_page.as_ptr(), page_count) };
        let mut heap =
            Heap::with_pages(o.region, o.base, o.bytes, Borrowed::new(nodes), pages).map_err(Fault::error)?;
        if o.large_bytes > 0 {
            heap.set_large(o.large_bytes);
        }
        // SAFETY: inside the memory, aligned, and apart from the nodes and pages.
        unsafe { head.write(Head { magic: MAGIC, heap }) };
        out.write(head.as_ptr().cast());
        Ok(())
    };
    // SAFETY: the caller's contract on `failure`.
    unsafe { guard::call_with(failure, body) }
}

/// Allocates as `arenite_heap_alloc_hint` does; `ARENITE_ERR_NO_MEMORY` where the records are used up.
///
/// # Safety
/// `heap` is null or from `arenite_bare_heap_init`, whose memory is as it left it and used by nobody else; `out` is null or
/// valid for one write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_alloc(
    heap: *mut arenite_bare_heap_t,
    bytes: u64,
    alignment: u64,
    headroom: u64,
    hint: u32,
    out: *mut arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |h: &mut Inner| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        let request = request(bytes, alignment, headroom, hint)?;
        let block = h.alloc_with(&request).map_err(|fault| fault.refusal(&request, h.largest_free()))?;
        out.write(block.into());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { with(heap, failure, body) }
}

/// Frees a block as `arenite_heap_free` does.
///
/// # Safety
/// `heap` and `failure` as for `arenite_bare_heap_alloc`. Any handle may be passed.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_free(
    heap: *mut arenite_bare_heap_t,
    block: arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { with(heap, failure, |h| h.free(block.into()).map(drop).map_err(Fault::error)) }
}

/// Resizes a block where it is, as `arenite_heap_resize` does.
///
/// # Safety
/// As for `arenite_bare_heap_free`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_resize(
    heap: *mut arenite_bare_heap_t,
    block: arenite_heap_block_t,
    bytes: u64,
    headroom: u64,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |h: &mut Inner| h.resize_in_place(block.into(), bytes, headroom);
    // SAFETY: the caller's contracts.
    unsafe { with(heap, failure, body) }
}

/// Writes the handle of the live block that starts at `offset`, as `arenite_heap_find` does.
///
/// # Safety
/// As for `arenite_bare_heap_alloc`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_find(
    heap: *mut arenite_bare_heap_t,
    offset: u64,
    out: *mut arenite_heap_block_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let body = |h: &mut Inner| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "out is null") }?;
        out.write(h.find_live(offset)?.into());
        Ok(())
    };
    // SAFETY: the caller's contracts.
    unsafe { with(heap, failure, body) }
}

/// Fills in the statistics. Set `struct_size` and `flags` of `out` first.
///
/// # Safety
/// `heap` as for `arenite_bare_heap_alloc`; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_stats(
    heap: *mut arenite_bare_heap_t,
    out: *mut arenite_heap_stats_t,
) -> arenite_status_t {
    let body = |h: &mut Inner| {
        let stats = arenite_heap_stats_t::of(&h.stats(), h.largest_free());
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &stats, "out is null") }
    };
    // SAFETY: the caller's contracts; there is no failure record.
    unsafe { with(heap, core::ptr::null_mut(), body) }
}

/// Checks the whole structure. Linear in the number of blocks. `ARENITE_ERR_INTERNAL` where it is wrong.
///
/// # Safety
/// As for `arenite_bare_heap_free`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_bare_heap_check(
    heap: *mut arenite_bare_heap_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { with(heap, failure, |h| h.check()) }
}
