//! The pool's lock: spin briefly, then park; and what makes it survive a fork.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Looks at the lock before parking: a critical section of the pool is shorter than a trip to the kernel.
const SPINS: u32 = 100;
/// The longest a thread stays parked before it looks again.
const PARK_NS: libc::c_long = 200_000;

/// A lock of two words. Unlike the standard one it can be taken in a fork handler and released in the child.
///
/// Releasing it is a plain store, since an atomic exchange costs as much as a whole allocation here. The price: a release
/// may miss a thread that is just going to sleep (its count not yet seen, our store not yet visible to the kernel). That
/// thread wakes by itself after [`PARK_NS`], so nothing is ever lost but that time.
#[derive(Debug)]
pub(crate) struct RawLock {
    word: AtomicU32,
    parked: AtomicU32,
}

impl RawLock {
    pub(crate) const fn new() -> RawLock {
        RawLock { word: AtomicU32::new(FREE), parked: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slow();
        }
    }

    fn try_lock(&self) -> bool {
        self.word.load(Ordering::Relaxed) == FREE
            && self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        for _ in 0..SPINS {
            core::hint::spin_loop();
            if self.try_lock() {
                return;
            }
        }
        self.parked.fetch_add(1, Ordering::SeqCst);
        while !self.try_lock() {
            park(&self.word, TAKEN);
        }
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        self.word.store(FREE, Ordering::Release);
        if self.parked.load(Ordering::Relaxed) != 0 {
            wake(&self.word);
        }
    }

    /// Releases the lock in a forked child, where whoever was parked does not exist.
    fn reset(&self) {
        self.parked.store(0, Ordering::Relaxed);
        self.word.store(FREE, Ordering::Release);
    }
}

#[cfg(target_os = "linux")]
fn park(word: &AtomicU32, expected: u32) {
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let limit = libc::timespec { tv_sec: 0, tv_nsec: PARK_NS };
    // SAFETY: both live until the call returns; it reads them and sleeps until a wake or the limit.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, expected, &raw const limit) };
}

#[cfg(target_os = "linux")]
#[cold]
fn wake(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake does not access the memory; the address is only compared with those of sleepers.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, 1) };
}

#[cfg(not(target_os = "linux"))]
fn park(_word: &AtomicU32, _expected: u32) {
    std::thread::sleep(core::time::Duration::from_nanos(PARK_NS as u64 / 10));
}

#[cfg(not(target_os = "linux"))]
fn wake(_word: &AtomicU32) {}

/// A value behind a [`RawLock`].
#[derive(Debug)]
pub(crate) struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and one guard exists at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { raw: RawLock::new(), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.raw.lock();
        Guard(self)
    }

    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Lock::new(T::default())
    }
}

/// Holds the lock until it is dropped.
pub(crate) struct Guard<'a, T>(&'a Lock<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, so nobody else has a reference.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock and is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.raw.unlock();
    }
}

/// Every lock that a fork has to take first: a child must never see one that a vanished thread holds.
///
/// No code takes two of them at once but a trim, whose lock is registered before its pool's others. So taking them all in
/// the order of registration cannot deadlock.
static REGISTRY: Lock<Vec<Registered>> = Lock::new(Vec::new());

struct Registered(*const RawLock);

// SAFETY: the pointer is used under the registry's lock only, and removed there before the lock it names goes away.
unsafe impl Send for Registered {}

/// Makes `lock` survive a fork until [`unregister`] is called for it. Returns false where memory has run out.
pub(crate) fn register(lock: &RawLock) -> bool {
    install_handlers();
    let mut registry = REGISTRY.lock();
    if registry.try_reserve(1).is_err() {
        return false;
    }
    registry.push(Registered(lock));
    true
}

/// To be called before `lock` moves or goes away.
pub(crate) fn unregister(lock: &RawLock) {
    REGISTRY.lock().retain(|l| !core::ptr::eq(l.0, lock));
}

#[cfg(unix)]
fn install_handlers() {
    use std::sync::Once;
    static ONCE: Once = Once::new();

    extern "C" fn prepare() {
        REGISTRY.raw.lock();
        for_each(RawLock::lock);
    }
    extern "C" fn parent() {
        for_each(RawLock::unlock);
        REGISTRY.raw.unlock();
    }
    extern "C" fn child() {
        for_each(RawLock::reset);
        REGISTRY.raw.reset();
    }
    fn for_each(act: fn(&RawLock)) {
        // SAFETY: `prepare` took the registry's lock and `parent` or `child` has not released it yet.
        let locks = unsafe { &*REGISTRY.value.get() };
        for lock in locks {
            // SAFETY: a registered lock lives until it is unregistered, which needs the registry's lock.
            act(unsafe { &*lock.0 });
        }
    }
    ONCE.call_once(|| {
        // SAFETY: the three handlers are `extern "C"`, never unwind, and live as long as the program.
        // A library that is unloaded must not be: a handler cannot be removed.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

#[cfg(not(unix))]
fn install_handlers() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contended_lock_loses_no_update() {
        let lock = Lock::new(0u64);
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| (0..20_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 160_000);
    }
}
