//! The lock itself: spin, ask for the next turn, yield, park.
//!
//! The primitives come from [`super::os`], so that a model checker can take their place.

use super::os::{park, pause, wake, yield_now, AtomicU32, Ordering};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// In `waiters`: somebody has waited long enough to be let in next.
const HUNGRY: u32 = 1 << 31;

/// Looks at the lock before a thread asks for the next turn: the length of a few critical sections, so that a busy thread
/// makes a few calls in a row (which is fast, its cache lines stay put) and not hundreds (which starves the other).
const PATIENCE: u32 = super::os::scaled(8);
/// Looks after which it gives up its core: a critical section is far shorter, so the owner is not running.
const SPINS: u32 = super::os::scaled(100);
/// Times it gives up its core before it parks.
const YIELDS: u32 = super::os::scaled(4);
/// Looks for which a releasing thread waits for the hungry one to come in.
const COURTESY: u32 = super::os::scaled(16);

/// A lock of two words. Unlike the standard one it can be taken in a fork handler and released in the child.
///
/// ```text
/// lock    FREE -> TAKEN ──fails──> look PATIENCE times ──> HUNGRY: look SPINS times ──> yield ──> park
/// unlock  TAKEN -> FREE ──nobody waits──> done
///                       └─somebody does─> wake one that is parked; let the hungry one in before coming back
/// ```
///
/// Releasing it is a plain store, since an atomic exchange costs as much as a whole allocation here. The price: a release
/// may miss a thread that is just going to sleep (its count not yet seen, our store not yet visible to the kernel). That
/// thread wakes by itself after a tenth of a millisecond, so nothing is ever lost but that time.
#[derive(Debug)]
pub(crate) struct RawLock {
    word: AtomicU32,
    /// [`HUNGRY`], and the number of parked threads.
    waiters: AtomicU32,
}

impl RawLock {
    /// A free lock of two words, both 0. They are handed in since only some kinds of atomics can be made in a constant.
    pub(crate) const fn of(word: AtomicU32, waiters: AtomicU32) -> RawLock {
        RawLock { word, waiters }
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
        for _ in 0..PATIENCE {
            pause();
            if self.try_lock() {
                return;
            }
        }
        for spin in 0..SPINS {
            // Again and again: whoever comes in clears the mark, and so does a release that waited for us in vain.
            if spin % PATIENCE == 0 {
                self.waiters.fetch_or(HUNGRY, Ordering::Relaxed);
            }
            pause();
            if self.try_lock() {
                self.waiters.fetch_and(!HUNGRY, Ordering::Relaxed);
                return;
            }
        }
        for _ in 0..YIELDS {
            yield_now();
            if self.try_lock() {
                return;
            }
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        while !self.try_lock() {
            park(&self.word, TAKEN);
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        self.word.store(FREE, Ordering::Release);
        let waiters = self.waiters.load(Ordering::Relaxed);
        if waiters != 0 {
            self.hand_over(waiters);
        }
    }

    #[cold]
    fn hand_over(&self, waiters: u32) {
        if waiters & !HUNGRY != 0 {
            wake(&self.word);
        }
        if waiters & HUNGRY != 0 {
            for _ in 0..COURTESY {
                if self.word.load(Ordering::Relaxed) != FREE {
                    return;
                }
                pause();
            }
            // It is not running: wait for it once, not at every release.
            self.waiters.fetch_and(!HUNGRY, Ordering::Relaxed);
        }
    }

    /// Releases the lock in a forked child, where whoever waited does not exist.
    pub(crate) fn reset(&self) {
        self.waiters.store(0, Ordering::Relaxed);
        self.word.store(FREE, Ordering::Release);
    }
}
