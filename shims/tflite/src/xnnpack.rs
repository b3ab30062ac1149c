//! XNNPACK's memory in a library that is known: its packed weights and its workspace, which hold most tensors of a model
//! that runs with default delegates.
//!
//! XNNPACK takes an allocator when it is first initialised. TFLite passes none; a call that comes from a library whose
//! planner was recognised gets one over a pool of ours. All other calls, also those of other engines in the process, are
//! passed on as they are.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use arenite::runtime::{Fallback, Growth, Pool, PoolConfig};
use serde_json::{json, Value};

use crate::host;
use crate::settings::{say, settings, Choice};

/// `struct xnn_allocator`, unchanged since XNNPACK has one.
#[repr(C)]
struct Allocator {
    context: *mut c_void,
    allocate: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    reallocate: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    deallocate: unsafe extern "C" fn(*mut c_void, *mut c_void),
    aligned_allocate: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    aligned_deallocate: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

// SAFETY: functions and a null pointer.
unsafe impl Sync for Allocator {}

type Initialize = unsafe extern "C" fn(*const Allocator) -> c_int;
/// `xnn_status_unsupported_hardware`: callers go on without XNNPACK.
const UNSUPPORTED: c_int = 4;
/// Smaller blocks stay in the C library's heap, which mostly has room for them between its other blocks, in pages that are there
/// already: a process with Python in it keeps megabytes of such room.
const SMALL: usize = 1 << 20;
/// Alignment of every block.
const ALIGN: usize = 128;
/// After a freed block of this size it is seen whether pages should go back.
const LARGE: u64 = 1 << 20;
/// The most bytes of free pages that are kept for what comes next; never more than twice the largest block either. An
/// application that loads a model again and again would otherwise pay for fresh pages each time.
const KEPT: u64 = 64 << 20;

/// `xnn_initialize(const struct xnn_allocator *)`. Passes the caller's address on: the library that calls decides.
///
/// # Safety
/// As XNNPACK's own function.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[export_name = "xnn_initialize"]
pub unsafe extern "C" fn xnn_initialize(allocator: *const c_void) -> c_int {
    core::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym initialize)
}

/// `xnn_initialize(const struct xnn_allocator *)`. Passes the caller's address on: the library that calls decides.
///
/// # Safety
/// As XNNPACK's own function.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[export_name = "xnn_initialize"]
pub unsafe extern "C" fn xnn_initialize(allocator: *const c_void) -> c_int {
    core::arch::naked_asm!("mov x1, x30", "b {}", sym initialize)
}

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
unsafe extern "C" fn initialize(allocator: *const Allocator, caller: *const c_void) -> c_int {
    let found = std::panic::catch_unwind(|| {
        let host = host::at(caller)?;
        // Programs that link XNNPACK themselves come after this library in the global order.
        let own =
            host.symbol("xnn_initialize").filter(|p| !host::is_ours(*p)).or_else(|| host::next(c"xnn_initialize"))?;
        let s = settings();
        let known = host.layout.is_ok() && allocator.is_null() && !s.disable && s.xnnpack;
        Some((own as usize, known.then_some(if s.choice == Choice::Host { &WATCHED } else { &OURS })))
    });
    let Ok(Some((own, ours))) = found else {
        say("XNNPACK was called by a library that cannot be told; it is left out");
        return UNSUPPORTED;
    };
    // SAFETY: the symbol's documented signature.
    let own: Initialize = unsafe { transmute(own) };
    let allocator = ours.map_or(allocator, |a: &Allocator| a);
    // SAFETY: the caller's own argument, or a table that lives for ever.
    unsafe { own(allocator) }
}

static OURS: Allocator = Allocator {
    context: null_mut(),
    allocate,
    reallocate,
    deallocate,
    aligned_allocate,
    aligned_deallocate: deallocate,
};

/// The system's heap, as XNNPACK uses it by itself, counted.
static WATCHED: Allocator = Allocator {
    context: null_mut(),
    allocate: watched_allocate,
    reallocate: watched_reallocate,
    deallocate: watched_deallocate,
    aligned_allocate: watched_aligned,
    aligned_deallocate: watched_deallocate,
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);

fn count(bytes: usize) {
    let bytes = bytes as u64;
    ALLOCATIONS.fetch_add(1, Relaxed);
    LARGEST.fetch_max(bytes, Relaxed);
    PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

fn discount(bytes: usize) {
    LIVE.fetch_sub(bytes as u64, Relaxed);
}

/// What XNNPACK holds; null where it never asked.
pub fn report() -> Value {
    if ALLOCATIONS.load(Relaxed) == 0 {
        return Value::Null;
    }
    let ours = settings().choice != Choice::Host;
    json!({
        "memory": if ours { "pool" } else { "system" },
        "allocations": ALLOCATIONS.load(Relaxed),
        "live_bytes": LIVE.load(Relaxed),
        "peak_bytes": PEAK.load(Relaxed),
        "largest_bytes": LARGEST.load(Relaxed),
        "reserved_bytes": pool().filter(|_| ours).map(|p| p.stats().reserved),
    })
}

/// One pool for the process, as XNNPACK has one allocator.
fn pool() -> Option<&'static Pool> {
    static POOL: OnceLock<Option<Pool>> = OnceLock::new();
    POOL.get_or_init(|| {
        let growth = Growth::Exact { at_least: LARGE as usize };
        Pool::new(PoolConfig { growth, fallback: Fallback::System, ..PoolConfig::default() }).ok()
    })
    .as_ref()
}

fn take(bytes: usize, align: usize) -> *mut c_void {
    let align = align.max(ALIGN);
    if bytes < SMALL {
        return watch(from_heap(bytes, align));
    }
    let Some(pool) = pool() else { return null_mut() };
    match pool.alloc(bytes, align) {
        Ok(block) => {
            count(pool.usable_size(block).unwrap_or(bytes));
            block.as_ptr().cast()
        }
        Err(_) => null_mut(),
    }
}

fn from_heap(bytes: usize, align: usize) -> *mut c_void {
    let mut block = null_mut();
    // SAFETY: the output is writable; a bad alignment is an error code.
    let failed = unsafe { libc::posix_memalign(&raw mut block, align.max(size_of::<usize>()), bytes) };
    if failed == 0 {
        block
    } else {
        null_mut()
    }
}

/// Bytes of a block of the pool's; `None` for one of the heap's.
fn pooled(block: *mut c_void) -> Option<(&'static Pool, NonNull<u8>, usize)> {
    let (pool, block) = (pool()?, NonNull::new(block.cast::<u8>())?);
    Some((pool, block, pool.usable_size(block)?))
}

unsafe extern "C" fn allocate(_: *mut c_void, bytes: usize) -> *mut c_void {
    take(bytes, ALIGN)
}

unsafe extern "C" fn aligned_allocate(_: *mut c_void, align: usize, bytes: usize) -> *mut c_void {
    take(bytes, align)
}

unsafe extern "C" fn reallocate(_: *mut c_void, block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        return take(bytes, ALIGN);
    }
    let Some((pool, old, before)) = pooled(block).filter(|_| bytes >= SMALL) else {
        // SAFETY: XNNPACK passes a block that it got here and gives it up.
        return unsafe { move_to_new(block, bytes) };
    };
    // SAFETY: as above.
    match unsafe { pool.realloc(Some(old), bytes) } {
        Ok(new) => {
            discount(before);
            count(pool.usable_size(new).unwrap_or(bytes));
            new.as_ptr().cast()
        }
        Err(_) => null_mut(),
    }
}

/// A block of another size with the contents of `block`, which ends. Null, and `block` as it was, without memory.
///
/// # Safety
/// `block` was made here.
unsafe fn move_to_new(block: *mut c_void, bytes: usize) -> *mut c_void {
    let new = take(bytes, ALIGN);
    if !new.is_null() {
        // SAFETY: a live block of the heap's where it is not one of the pool's.
        let before = pooled(block).map_or_else(|| unsafe { libc::malloc_usable_size(block) }, |(.., before)| before);
        // SAFETY: both are live, apart, and as large.
        unsafe { core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), before.min(bytes)) };
        // SAFETY: the contract.
        unsafe { deallocate(null_mut(), block) };
    }
    new
}

unsafe extern "C" fn deallocate(_: *mut c_void, block: *mut c_void) {
    let Some((pool, block, bytes)) = pooled(block) else {
        // SAFETY: null or a block of the heap's that XNNPACK got here.
        return unsafe { watched_deallocate(null_mut(), block) };
    };
    // SAFETY: XNNPACK passes a block that it got here and does not use it any more.
    if unsafe { pool.free(block) }.is_ok() {
        discount(bytes);
        if bytes as u64 >= LARGE {
            pool.trim(LARGEST.load(Relaxed).saturating_mul(2).clamp(LARGE, KEPT));
        }
    }
}

fn watch(block: *mut c_void) -> *mut c_void {
    if !block.is_null() {
        // SAFETY: a live block of the system's heap.
        count(unsafe { libc::malloc_usable_size(block) });
    }
    block
}

unsafe extern "C" fn watched_allocate(_: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    watch(unsafe { libc::malloc(bytes) })
}

unsafe extern "C" fn watched_reallocate(_: *mut c_void, block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: null or a live block of the system's heap.
    let before = unsafe { libc::malloc_usable_size(block) };
    // SAFETY: XNNPACK passes a block that it got here and gives it up.
    let new = unsafe { libc::realloc(block, bytes) };
    if !new.is_null() {
        discount(before);
    }
    watch(new)
}

unsafe extern "C" fn watched_aligned(_: *mut c_void, align: usize, bytes: usize) -> *mut c_void {
    watch(from_heap(bytes, align))
}

unsafe extern "C" fn watched_deallocate(_: *mut c_void, block: *mut c_void) {
    // SAFETY: null or a live block of the system's heap.
    discount(unsafe { libc::malloc_usable_size(block) });
    // SAFETY: as above, and XNNPACK does not use it any more.
    unsafe { libc::free(block) }
}
