//! The lock itself: spin, ask for the next turn, yield, park; and rest, where it is crowded.
//!
//! The primitives come from [`super::os`], so that a model checker can take their place.

use super::os::{park, pause, rest, wake, yield_now, AtomicU32, Ordering};

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

/// Turns below which the lock has gone over after a brief time only.
const BRIEF: u32 = 64;
/// Brief times in a row after which the lock may be crowded: at first, and at most.
const CROWDED: u32 = super::os::scaled(16);
const HARDLY: u32 = 1 << 16;
/// Turns the others have to take during a rest for it to have been worth it: a tenth of a microsecond each, so they did
/// little else.
const WORTH: u32 = 1000;
/// Looks at a lock that may be crowded, and how many of them have to find it taken.
const SAMPLES: u32 = 8;
const BUSY: u32 = 5;
/// Pauses between two of these looks: about one critical section.
const APART: u32 = super::os::scaled(4);

/// A lock that, unlike the standard one, can be taken in a fork handler and released in the child.
///
/// ```text
/// lock    FREE -> TAKEN ──fails──> crowded? rest ──> look PATIENCE times ──> HUNGRY: look SPINS times ──> yield ──> park
/// unlock  TAKEN -> FREE ──nobody waits──> done
///                       └─somebody does─> wake one that is parked; let the hungry one in before coming back
/// ```
///
/// Releasing it is a plain store, since an atomic exchange costs as much as a whole allocation here. The price: a release
/// may miss a thread that is just going to sleep (its count not yet seen, our store not yet visible to the kernel). That
/// thread wakes by itself after a tenth of a millisecond, so nothing is ever lost but that time.
///
/// Crowded: threads that do nothing else than take the lock hand it to and fro, and each time a dozen lines of the cache go
/// with it, which takes ten times as long as the work itself. Whoever then finds the lock taken leaves it to the others for
/// about a tenth of a millisecond, in which they make a thousand calls and more at full speed. Where they did not, four times
/// as much has to happen before the next rest: a lock that is merely shared by many is handed over at once.
#[derive(Debug)]
pub(crate) struct RawLock {
    word: AtomicU32,
    /// [`HUNGRY`], and the number of parked threads.
    waiters: AtomicU32,
    /// Times it was taken. This and the rest are written by the owner only.
    turns: AtomicU32,
    /// `turns` as it was when the lock last went over to somebody who had waited.
    since: AtomicU32,
    /// Times in a row it went over after a brief time.
    crowd: AtomicU32,
    /// How many of these make a crowd, less [`CROWDED`].
    more: AtomicU32,
}

impl RawLock {
    /// A free lock of words that are all 0. They are handed in since only some kinds of atomics can be made in a constant.
    pub(crate) const fn of(words: [AtomicU32; 6]) -> RawLock {
        let [word, waiters, turns, since, crowd, more] = words;
        RawLock { word, waiters, turns, since, crowd, more }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slow();
        }
        // Here, where the line is this processor's alone: at the release a waiting one may just be looking at it.
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
    }

    fn try_lock(&self) -> bool {
        self.word.load(Ordering::Relaxed) == FREE
            && self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        let need = CROWDED + self.more.load(Ordering::Relaxed);
        let crowd = self.crowd.load(Ordering::Relaxed);
        let from = self.turns.load(Ordering::Relaxed);
        let rested = crowd >= need && self.is_crowded();
        if rested {
            rest();
        }
        self.wait();
        // The lock is ours, and so are the counts.
        let turns = self.turns.load(Ordering::Relaxed);
        let brief = turns.wrapping_sub(self.since.load(Ordering::Relaxed)) < BRIEF;
        self.since.store(turns, Ordering::Relaxed);
        let crowd = if rested && turns.wrapping_sub(from) >= WORTH {
            self.more.store(0, Ordering::Relaxed);
            crowd
        } else if rested {
            self.more.store((need * 4).min(HARDLY) - CROWDED, Ordering::Relaxed);
            0
        } else if crowd >= need {
            // Not taken most of the time, as it turned out. Looking is not free either.
            crowd / 2
        } else if brief {
            crowd + 1
        } else {
            0
        };
        self.crowd.store(crowd, Ordering::Relaxed);
    }

    /// Whether the lock is taken most of the time.
    fn is_crowded(&self) -> bool {
        let mut free = 0;
        for _ in 0..SAMPLES {
            (0..APART).for_each(|_| pause());
            free += u32::from(self.word.load(Ordering::Relaxed) == FREE);
            if free > SAMPLES - BUSY {
                return false;
            }
        }
        true
    }

    /// Takes the lock when its turn comes.
    fn wait(&self) {
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
