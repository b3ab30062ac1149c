//! One range of addresses for all of the pool's regions, so that whose a pointer is takes one comparison and no lock.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arenite::runtime::source::Callbacks;

/// Addresses are handed out in these units, so that a returned range fits in one word with its size.
const UNIT: usize = 1 << 16;
const RETURNED: usize = 64;

static BASE: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// Ranges given back: start and size in units, 32 bits each; 0 for none. Words and no lock, so that a fork cannot leave
/// one taken.
static FREE: [AtomicU64; RETURNED] = [const { AtomicU64::new(0) }; RETURNED];

/// Reserves `bytes` bytes of addresses, or a smaller power of two where a limit leaves less than twice that many: what is
/// reserved here is lost to thread stacks and to the C library's own heaps. They cost no memory.
pub fn reserve(bytes: usize) -> bool {
    let mut bytes = bytes.checked_next_power_of_two().unwrap_or(1 << (usize::BITS - 1));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    while bytes >= 64 << 20 {
        let both = bytes.saturating_mul(2);
        // SAFETY: a fresh mapping without access, at an address of the system's choice.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), both, libc::PROT_NONE, flags, -1, 0) };
        if start != libc::MAP_FAILED {
            // SAFETY: the second half of the mapping just made, which nobody has an address in.
            unsafe { libc::munmap(start.wrapping_byte_add(bytes), bytes) };
            // From the first unit on; the mapping begins at a page.
            let base = (start as usize).next_multiple_of(UNIT);
            BYTES.store(bytes - UNIT, Ordering::Relaxed);
            BASE.store(base, Ordering::Release);
            return true;
        }
        bytes /= 2;
    }
    false
}

/// Whether an address lies in the reservation.
#[inline]
pub fn holds(address: *const c_void) -> bool {
    let base = BASE.load(Ordering::Relaxed);
    (address as usize).wrapping_sub(base) < BYTES.load(Ordering::Relaxed)
}

/// The functions a pool takes its regions from.
pub fn callbacks() -> Callbacks {
    Callbacks { allocate, deallocate, user: core::ptr::null_mut() }
}

unsafe extern "C" fn allocate(_user: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
    let Some(bytes) = bytes.checked_next_multiple_of(UNIT).filter(|_| align <= UNIT) else {
        return core::ptr::null_mut();
    };
    let Some(start) = returned(bytes).or_else(|| fresh(bytes)) else { return core::ptr::null_mut() };
    // SAFETY: the range is the caller's from here on, and part of our own mapping.
    let code = unsafe { libc::mprotect(start as *mut c_void, bytes, libc::PROT_READ | libc::PROT_WRITE) };
    if code != 0 {
        give_back(start, bytes);
        return core::ptr::null_mut();
    }
    start as *mut c_void
}

unsafe extern "C" fn deallocate(_user: *mut c_void, data: *mut c_void, bytes: usize, _align: usize) {
    let bytes = bytes.next_multiple_of(UNIT);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the range was handed out by `allocate` and is given up; mapping over it drops its pages and its commitment.
    let start = unsafe { libc::mmap(data, bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == data {
        give_back(data as usize, bytes);
    }
}

fn fresh(bytes: usize) -> Option<usize> {
    let (base, all) = (BASE.load(Ordering::Acquire), BYTES.load(Ordering::Relaxed));
    let take = |used: usize| used.checked_add(bytes).filter(|&end| end <= all);
    let at = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
    Some(base + at)
}

fn returned(bytes: usize) -> Option<usize> {
    let base = BASE.load(Ordering::Acquire);
    for word in &FREE {
        let range = word.load(Ordering::Acquire);
        let (start, held) = ((range >> 32) as usize * UNIT, (range as u32) as usize * UNIT);
        if held < bytes || word.compare_exchange(range, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            continue;
        }
        if held > bytes {
            give_back(base + start + bytes, held - bytes);
        }
        return Some(base + start);
    }
    None
}

/// Where the table is full the addresses are lost, not the memory.
fn give_back(start: usize, bytes: usize) {
    let offset = start - BASE.load(Ordering::Relaxed);
    let (Ok(from), Ok(held)) = (u32::try_from(offset / UNIT), u32::try_from(bytes / UNIT)) else { return };
    let range = u64::from(from) << 32 | u64::from(held);
    for word in &FREE {
        if word.compare_exchange(0, range, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_apart_writable_and_used_again() {
        assert!(reserve(256 << 20));
        let f = callbacks();
        // SAFETY: called as a pool does.
        let take = |bytes| unsafe { (f.allocate)(f.user, bytes, 4096) }.cast::<u8>();
        let (a, b) = (take(1 << 20), take(5000));
        assert!(holds(a.cast()) && holds(b.cast()) && !holds(core::ptr::null()));
        assert_eq!(b as usize - a as usize, 1 << 20);
        // SAFETY: the range is ours and holds a mebibyte.
        unsafe { a.write_bytes(7, 1 << 20) };
        // SAFETY: as `allocate` gave it.
        unsafe { (f.deallocate)(f.user, a.cast(), 1 << 20, 4096) };
        let c = take(1 << 19);
        assert_eq!(c, a, "the returned range is split");
        // SAFETY: the range is ours.
        assert_eq!(unsafe { c.read() }, 0, "and fresh");
        assert_eq!(take(1 << 19) as usize, a as usize + (1 << 19));
        assert!(take(1 << 30).is_null() && take(usize::MAX).is_null());
    }
}
