//! The `malloc` family behind this library: found by name, with a little memory for whoever asks while it is looked for.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void, CStr};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Bytes for start-up: the dynamic linker asks for a few hundred while it looks names up.
const EARLY: usize = 64 << 10;
/// Every early block is preceded by its size, and aligned to this.
const UNIT: usize = 64;

#[repr(C, align(64))]
struct Early(UnsafeCell<[u8; EARLY]>);

// SAFETY: every byte is handed out to one owner, once.
unsafe impl Sync for Early {}

static MEMORY: Early = Early(UnsafeCell::new([0; EARLY]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// 0: not looked for yet; 1: being looked for; 2: found.
static STATE: AtomicU32 = AtomicU32::new(0);

macro_rules! functions {
    ($($name:ident: $kind:ty = $text:literal;)*) => {
        /// The functions' addresses, null until they are found.
        struct Found { $($name: AtomicPtr<c_void>),* }

        static FOUND: Found = Found { $($name: AtomicPtr::new(core::ptr::null_mut())),* };

        fn find_all() {
            $(FOUND.$name.store(find($text), Ordering::Relaxed);)*
        }

        $(fn $name() -> Option<$kind> {
            if STATE.load(Ordering::Acquire) != 2 && !resolve() {
                return None;
            }
            let address = FOUND.$name.load(Ordering::Relaxed);
            if address.is_null() {
                return None;
            }
            // SAFETY: the address is that of the next library's function of this name, whose signature is the C standard's.
            Some(unsafe { core::mem::transmute::<*mut c_void, $kind>(address) })
        })*
    };
}

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
type Trim = unsafe extern "C" fn(usize) -> c_int;

functions! {
    malloc_fn: Malloc = c"malloc";
    calloc_fn: Calloc = c"calloc";
    realloc_fn: Realloc = c"realloc";
    free_fn: Free = c"free";
    memalign_fn: Memalign = c"memalign";
    aligned_alloc_fn: Memalign = c"aligned_alloc";
    posix_memalign_fn: PosixMemalign = c"posix_memalign";
    valloc_fn: Malloc = c"valloc";
    pvalloc_fn: Malloc = c"pvalloc";
    usable_size_fn: UsableSize = c"malloc_usable_size";
    trim_fn: Trim = c"malloc_trim";
}

fn find(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; looking it up has no other effect.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Looks the functions up, once. False where that is going on: the look-up itself asks for memory in some C libraries.
#[cold]
pub fn resolve() -> bool {
    if STATE.compare_exchange(0, 1, Ordering::Acquire, Ordering::Acquire).is_ok() {
        find_all();
        STATE.store(2, Ordering::Release);
    }
    STATE.load(Ordering::Acquire) == 2
}

fn no_memory() -> *mut c_void {
    set_errno(libc::ENOMEM);
    core::ptr::null_mut()
}

/// Memory for start-up, zeroed and never given back.
fn early(bytes: usize) -> *mut c_void {
    let Some(whole) = bytes.checked_next_multiple_of(UNIT).and_then(|b| b.checked_add(UNIT)).filter(|&b| b <= EARLY)
    else {
        return no_memory();
    };
    let at = USED.fetch_add(whole, Ordering::Relaxed);
    if at > EARLY - whole {
        USED.store(EARLY, Ordering::Relaxed);
        return no_memory();
    }
    let start = MEMORY.0.get().cast::<u8>();
    // SAFETY: `at + whole` is at most the buffer's size.
    let head = unsafe { start.add(at) };
    // SAFETY: the head is the block's own, and a multiple of 64 is aligned for a size.
    unsafe { head.cast::<usize>().write(bytes) };
    // SAFETY: the block goes on for at least one unit more.
    unsafe { head.add(UNIT) }.cast()
}

/// The size of an early block, if it is one.
pub fn early_size(block: *mut c_void) -> Option<usize> {
    let start = MEMORY.0.get() as usize;
    if (block as usize).wrapping_sub(start) >= EARLY {
        return None;
    }
    // SAFETY: every early block is preceded by a unit that holds its size.
    let head = unsafe { block.cast::<u8>().sub(UNIT) };
    // SAFETY: as above.
    Some(unsafe { head.cast::<usize>().read() })
}

/// The next `malloc`.
pub fn malloc(bytes: usize) -> *mut c_void {
    match malloc_fn() {
        // SAFETY: the C function takes any size.
        Some(f) => unsafe { f(bytes) },
        None => early(bytes),
    }
}

/// The next `calloc`.
pub fn calloc(count: usize, bytes: usize) -> *mut c_void {
    match (calloc_fn(), count.checked_mul(bytes)) {
        // SAFETY: the C function takes any sizes.
        (Some(f), _) => unsafe { f(count, bytes) },
        (None, Some(bytes)) => early(bytes),
        (None, None) => no_memory(),
    }
}

/// The next `realloc`.
///
/// # Safety
/// `block` is null, an early block, or one of the next library's; it is the caller's.
pub unsafe fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if let Some(old) = early_size(block) {
        let new = malloc(bytes);
        if !new.is_null() {
            // SAFETY: both hold the smaller size, and they are different blocks.
            unsafe { core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old.min(bytes)) };
        }
        return new;
    }
    match realloc_fn() {
        // SAFETY: the contract.
        Some(f) => unsafe { f(block, bytes) },
        None => early(bytes),
    }
}

/// The next `free`.
///
/// # Safety
/// As for [`realloc`].
pub unsafe fn free(block: *mut c_void) {
    if early_size(block).is_some() {
        return;
    }
    if let Some(f) = free_fn() {
        // SAFETY: the contract.
        unsafe { f(block) }
    }
}

/// The next `memalign`.
pub fn memalign(align: usize, bytes: usize) -> *mut c_void {
    match memalign_fn() {
        // SAFETY: the C function takes any sizes.
        Some(f) => unsafe { f(align, bytes) },
        None if align <= UNIT => early(bytes),
        None => no_memory(),
    }
}

/// The next `aligned_alloc`.
pub fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    match aligned_alloc_fn() {
        // SAFETY: the C function takes any sizes.
        Some(f) => unsafe { f(align, bytes) },
        None => memalign(align, bytes),
    }
}

/// The next `posix_memalign`.
///
/// # Safety
/// `out` is valid for a pointer write.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    match posix_memalign_fn() {
        // SAFETY: the contract.
        Some(f) => unsafe { f(out, align, bytes) },
        None => libc::ENOMEM,
    }
}

/// The next `valloc`.
pub fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the C function takes any size.
    valloc_fn().map_or_else(no_memory, |f| unsafe { f(bytes) })
}

/// The next `pvalloc`.
pub fn pvalloc(bytes: usize) -> *mut c_void {
    // SAFETY: the C function takes any size.
    pvalloc_fn().map_or_else(no_memory, |f| unsafe { f(bytes) })
}

/// The next `malloc_usable_size`.
///
/// # Safety
/// As for [`realloc`].
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    if let Some(bytes) = early_size(block) {
        return bytes;
    }
    // SAFETY: the contract.
    usable_size_fn().map_or(0, |f| unsafe { f(block) })
}

/// The next `malloc_trim`.
pub fn trim(keep: usize) -> c_int {
    // SAFETY: the C function takes any size.
    trim_fn().map_or(0, |f| unsafe { f(keep) })
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: a query without preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the C library's pointer to the thread's own variable is valid.
    unsafe { place.read() }
}

/// Sets it.
pub fn set_errno(code: c_int) {
    // SAFETY: a query without preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { place.write(code) };
}

/// Where the pool's records come from: the next library, so that no request of the pool's ends in the pool.
pub struct Records;

// SAFETY: blocks come from the next library with the alignment asked for, and go back to it.
unsafe impl GlobalAlloc for Records {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.align() {
            // What every `malloc` guarantees.
            0..=16 => malloc(layout.size()).cast(),
            align => memalign(align, layout.size()).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            return calloc(1, layout.size()).cast();
        }
        // SAFETY: the contract.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block holds that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the contract.
        unsafe { free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: the contract.
            return unsafe { realloc(block.cast(), bytes) }.cast();
        }
        // SAFETY: the contract makes the size valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: the contract: the size is not 0.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both hold the smaller size, and they are different blocks.
            unsafe { core::ptr::copy_nonoverlapping(block, new, layout.size().min(bytes)) };
            // SAFETY: the contract.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}
