//! The functions that programs call. Each decides whose a block is and passes it on; the rules for sizes, alignments and
//! `errno` are those of the C library.

use core::ffi::{c_int, c_void};

use super::{next, pool, reserve};

/// Zeroed blocks from this size on get fresh pages instead of a fill: a program may never touch most of them.
const FRESH_PAGES: usize = 256 << 10;

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    if pool::wants(bytes) {
        let block = pool::alloc(bytes, 1);
        if !block.is_null() {
            return block;
        }
    }
    next::malloc(bytes)
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(bytes) = count.checked_mul(size).filter(|&bytes| pool::wants(bytes)) {
        let block = pool::alloc(bytes, 1);
        if !block.is_null() {
            // SAFETY: the block is new and holds that many bytes.
            unsafe { zero(block.cast(), bytes) };
            return block;
        }
    }
    next::calloc(count, size)
}

/// # Safety
/// `block` holds `bytes` bytes of private pages, and nobody else has it.
unsafe fn zero(block: *mut u8, bytes: usize) {
    let page = 4096;
    let start = block as usize;
    let (from, to) = (start.next_multiple_of(page), (start + bytes) / page * page);
    let mut kept = (bytes, 0);
    if bytes >= FRESH_PAGES {
        let errno = next::errno();
        // SAFETY: the pages lie in the block; private ones read as zeros from here on.
        if unsafe { libc::madvise(from as *mut c_void, to - from, libc::MADV_DONTNEED) } == 0 {
            kept = (from - start, start + bytes - to);
        }
        next::set_errno(errno);
    }
    // SAFETY: the front lies in the block.
    unsafe { block.write_bytes(0, kept.0) };
    // SAFETY: so does the back.
    let back = unsafe { block.add(bytes - kept.1) };
    // SAFETY: as above.
    unsafe { back.write_bytes(0, kept.1) };
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if reserve::holds(block) {
        // SAFETY: the caller's contract.
        unsafe { pool::free(block) }
    } else {
        // SAFETY: the caller's contract.
        unsafe { next::free(block) }
    }
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: any size is allowed.
        return unsafe { malloc(bytes) };
    }
    let ours = reserve::holds(block);
    if !ours && !pool::wants(bytes) {
        // SAFETY: the caller's contract.
        return unsafe { next::realloc(block, bytes) };
    }
    if ours && bytes == 0 {
        // SAFETY: the caller's contract. As glibc does.
        unsafe { free(block) };
        return core::ptr::null_mut();
    }
    if ours {
        // SAFETY: the caller's contract.
        let new = unsafe { pool::realloc(block, bytes) };
        if !new.is_null() {
            return new;
        }
    }
    // Across the boundary.
    let old = match pool::usable_size(block).filter(|_| ours) {
        Some(old) => old,
        // A block of ours that is not live: as for a bad free, nothing is done.
        None if ours => return core::ptr::null_mut(),
        // SAFETY: the caller's contract.
        None => unsafe { next::usable_size(block) },
    };
    let new = if ours {
        next::malloc(bytes)
    } else {
        // SAFETY: any size is allowed.
        unsafe { malloc(bytes) }
    };
    if !new.is_null() {
        // SAFETY: both hold the smaller size, and they are different blocks.
        unsafe { core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old.min(bytes)) };
        // SAFETY: the caller's contract.
        unsafe { free(block) };
    }
    new
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => {
            next::set_errno(libc::ENOMEM);
            core::ptr::null_mut()
        }
    }
}

/// A block of the pool for a request with an alignment, or null where it is not one for the pool.
fn aligned(align: usize, bytes: usize) -> *mut c_void {
    if align.is_power_of_two() && pool::wants(bytes) {
        pool::alloc(bytes, align)
    } else {
        core::ptr::null_mut()
    }
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if align.is_power_of_two() && align.is_multiple_of(size_of::<*mut c_void>()) {
        let block = aligned(align, bytes);
        if !block.is_null() {
            // SAFETY: the caller's contract.
            unsafe { out.write(block) };
            return 0;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { next::posix_memalign(out, align, bytes) }
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    let block = aligned(align, bytes);
    if block.is_null() {
        return next::aligned_alloc(align, bytes);
    }
    block
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    let block = aligned(align, bytes);
    if block.is_null() {
        return next::memalign(align, bytes);
    }
    block
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    let block = aligned(page(), bytes);
    if block.is_null() {
        return next::valloc(bytes);
    }
    block
}

/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    let block = bytes.checked_next_multiple_of(page()).map_or(core::ptr::null_mut(), |whole| aligned(page(), whole));
    if block.is_null() {
        return next::pvalloc(bytes);
    }
    block
}

fn page() -> usize {
    // SAFETY: a query without preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// # Safety
/// As in glibc.
#[no_mangle]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if reserve::holds(block) {
        return pool::usable_size(block).unwrap_or(0);
    }
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's contract.
    unsafe { next::usable_size(block) }
}

/// # Safety
/// As in glibc.
#[no_mangle]
pub unsafe extern "C" fn malloc_trim(keep: usize) -> c_int {
    let given = pool::trim(keep);
    c_int::from(given > 0) | next::trim(keep)
}
