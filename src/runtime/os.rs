//! What the lock and the leases need of the processor and the system. The models in `tests/models` put others in their
//! place.

pub(crate) use core::hint::spin_loop as pause;
pub(crate) use core::sync::atomic::{AtomicU32, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

/// A number of looks at a lock. A model of the lock, which tries every order of steps, takes fewer.
pub(crate) const fn scaled(looks: u32) -> u32 {
    looks
}

/// The longest a thread stays parked before it looks again.
const PARK_NS: u32 = 100_000;

/// Sleeps while `word` is `expected`, until a [`wake`] or for a tenth of a millisecond.
#[cfg(target_os = "linux")]
pub(crate) fn park(word: &AtomicU32, expected: u32) {
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let limit = libc::timespec { tv_sec: 0, tv_nsec: PARK_NS as libc::c_long };
    // SAFETY: both live until the call returns; it reads them and sleeps until a wake or the limit.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, expected, &raw const limit) };
}

/// Keeps off a lock for a tenth of a millisecond or a little more.
pub(crate) fn rest() {
    std::thread::sleep(core::time::Duration::from_nanos(u64::from(PARK_NS)));
}

/// Wakes one thread parked on `word`.
#[cfg(target_os = "linux")]
#[cold]
pub(crate) fn wake(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake does not access the memory; the address is only compared with those of sleepers.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, 1) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn park(_word: &AtomicU32, _expected: u32) {
    std::thread::sleep(core::time::Duration::from_nanos(u64::from(PARK_NS)));
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn wake(_word: &AtomicU32) {}
