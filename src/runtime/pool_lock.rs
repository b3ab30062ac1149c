//! A value behind the pool's lock, and what makes the lock survive a fork.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicU32;

pub(crate) use super::raw_lock::RawLock;

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
        Lock { raw: RawLock::of([const { AtomicU32::new(0) }; 6]), value: UnsafeCell::new(value) }
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
/// No code takes two of them at once but a trim, whose lock is registered before its pool's others, and a pool's shards, in the
/// order in which they were registered; a fork takes them all in that order, so nothing can deadlock.
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
