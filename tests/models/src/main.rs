//! The pool's lock and the leases of arenas, through every order of steps that two or three threads can take (up to a bound
//! on preemptions). The files are the library's own; only what they need of the system is replaced.
//!
//! Each model also runs with a mistake, in a process of its own, and has to fail there: or its silence would mean nothing.

mod error {
    pub use arenite::error::*;
}

mod heap {
    pub use arenite::heap::*;
}

#[path = "../../../src/runtime"]
mod runtime {
    pub mod lease;
    pub mod raw_lock;
    pub mod remote;
    pub mod supply;

    /// Memory that is no pool's; the models take none.
    pub mod source {
        use std::ptr::NonNull;

        use arenite::error::Error;

        #[derive(Clone, Copy, Debug)]
        pub enum Source {
            System,
            Buffer { base: NonNull<u8>, bytes: usize },
        }

        #[derive(Debug)]
        pub struct Block;

        impl Source {
            pub fn take(&self, _bytes: usize, _align: usize) -> Result<Block, Error> {
                Err(Error::capacity("the models take areas of a pool"))
            }
        }

        impl Block {
            pub fn base(&self) -> NonNull<u8> {
                NonNull::dangling()
            }
        }
    }

    /// In the place of `src/runtime/os.rs`.
    pub mod os {
        pub use loom::sync::atomic::{AtomicU32, Ordering};
        pub use loom::sync::{Condvar, Mutex, MutexGuard};
        pub use loom::thread::yield_now;
        pub use std::sync::PoisonError;

        /// Every loop of looks is one look: more of the same shows nothing new.
        pub const fn scaled(_looks: u32) -> u32 {
            1
        }

        pub fn pause() {
            loom::thread::yield_now();
        }

        /// A sleep may end at any time, and a lost wake costs only time: both are what a yield is.
        pub fn park(_word: &AtomicU32, _expected: u32) {
            loom::thread::yield_now();
        }

        pub fn rest() {
            loom::thread::yield_now();
        }

        pub fn wake(_word: &AtomicU32) {}
    }

    /// A pool of two areas, each with a cell that notices two users.
    pub mod pool {
        use std::ptr::NonNull;
        use std::sync::Mutex;

        use arenite::error::Error;
        use arenite::heap::Request;

        #[derive(Debug)]
        pub struct Pool {
            free: Mutex<Vec<NonNull<u8>>>,
            made: usize,
            /// The mistake of a mutant: an area stays free when it is handed out.
            twice: bool,
        }

        // SAFETY: the addresses are never followed here; a model looks its cell up by address.
        unsafe impl Send for Pool {}
        // SAFETY: as above.
        unsafe impl Sync for Pool {}

        impl Pool {
            pub fn of(areas: usize) -> Pool {
                let area = |i: usize| NonNull::new((128 * (i + 1)) as *mut u8).unwrap();
                Pool { free: Mutex::new((0..areas).map(area).collect()), made: areas, twice: false }
            }

            pub fn that_hands_out_twice(areas: usize) -> Pool {
                Pool { twice: true, ..Pool::of(areas) }
            }

            pub fn alloc_with(&self, _request: &Request) -> Result<NonNull<u8>, Error> {
                let mut free = self.free.lock().unwrap();
                match self.twice {
                    true => free.last().copied(),
                    false => free.pop(),
                }
                .ok_or(Error::capacity("the pool is full"))
            }

            /// # Safety
            /// As for the library's.
            pub unsafe fn free(&self, block: NonNull<u8>) -> Result<(), Error> {
                self.free.lock().unwrap().push(block);
                Ok(())
            }

            pub fn is_whole(&self) -> bool {
                self.free.lock().unwrap().len() == self.made
            }
        }
    }
}

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use runtime::lease::Leases;
use runtime::pool::Pool;
use runtime::raw_lock::RawLock;
use runtime::remote;

fn every_order(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // Threads that look at a taken lock in turn make long orders.
    builder.max_branches = 20_000;
    builder.max_duration = Some(std::time::Duration::from_secs(60));
    let orders = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = orders.clone();
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    println!("{name}: {} orders", orders.load(std::sync::atomic::Ordering::Relaxed));
}

struct Counter<L> {
    lock: L,
    /// Reports an access that the lock does not order after the one before.
    value: UnsafeCell<u32>,
}

// SAFETY: the cell is reached under the lock; that this is so is what the model shows.
unsafe impl<L: Sync> Sync for Counter<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for Counter<L> {}

impl<L: Guards> Counter<L> {
    fn new() -> Arc<Counter<L>> {
        Arc::new(Counter { lock: L::new(), value: UnsafeCell::new(0) })
    }

    fn add(&self) {
        self.lock.lock();
        // SAFETY: under the lock.
        self.value.with_mut(|v| unsafe { *v += 1 });
        self.lock.unlock();
    }
}

/// What a counter is guarded by.
trait Guards: Send + Sync + 'static {
    fn new() -> Self;
    fn lock(&self);
    fn unlock(&self);
}

impl Guards for RawLock {
    fn new() -> RawLock {
        RawLock::of([0; 6].map(AtomicU32::new))
    }

    fn lock(&self) {
        RawLock::lock(self);
    }

    fn unlock(&self) {
        RawLock::unlock(self);
    }
}

/// The mistake: it looks first and takes the lock afterwards.
struct LooksFirst(AtomicU32);

impl Guards for LooksFirst {
    fn new() -> LooksFirst {
        LooksFirst(AtomicU32::new(0))
    }

    fn lock(&self) {
        while self.0.load(Ordering::Acquire) != 0 {
            thread::yield_now();
        }
        self.0.store(1, Ordering::Relaxed);
    }

    fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

fn lock<L: Guards>(threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let counter = Counter::<L>::new();
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let counter = counter.clone();
                thread::spawn(move || (0..rounds).for_each(|_| counter.add()))
            })
            .collect();
        (0..rounds).for_each(|_| counter.add());
        others.into_iter().for_each(|t| t.join().unwrap());
        counter.lock.lock();
        // SAFETY: under the lock.
        assert_eq!(counter.value.with(|v| unsafe { *v }), threads * rounds);
        counter.lock.unlock();
    }
}

/// Areas of a set of leases, each with a cell that reports two users at a time.
struct Areas([UnsafeCell<u32>; 2]);

// SAFETY: a cell is reached by the area's lessee alone; that this is so is what the model shows.
unsafe impl Sync for Areas {}
// SAFETY: as above.
unsafe impl Send for Areas {}

fn leases(threads: u32, limit: u32, areas: usize, rounds: u32, make: fn(usize) -> Pool) -> impl Fn() {
    move || {
        let pool = Arc::new(make(areas));
        let set = Arc::new(Leases::new(pool.clone(), 100, 128, limit).unwrap());
        let cells = Arc::new(Areas([UnsafeCell::new(0), UnsafeCell::new(0)]));
        let run = move |set: Arc<Leases>, cells: Arc<Areas>| {
            for _ in 0..rounds {
                let lease = set.acquire().unwrap();
                let cell = &cells.0[lease.as_ptr() as usize / 128 - 1];
                // SAFETY: the lease is this thread's.
                cell.with_mut(|v| unsafe { *v += 1 });
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let (set, cells) = (set.clone(), cells.clone());
                thread::spawn(move || run(set, cells))
            })
            .collect();
        run(set.clone(), cells.clone());
        others.into_iter().for_each(|t| t.join().unwrap());
        let stats = set.stats();
        assert_eq!((stats.leases, stats.in_use), (u64::from(threads * rounds), 0));
        assert!(stats.areas <= limit && stats.peak <= limit);
        drop(set);
        assert!(pool.is_whole(), "every area went back");
    }
}

/// The places of a frame: a word, a link and bytes for each slot. The bytes report a use that is not ordered after the last.
struct Places {
    live: [AtomicU32; SLOTS],
    head: AtomicU32,
    next: [AtomicU32; SLOTS],
    bytes: [UnsafeCell<u32>; SLOTS],
}

const SLOTS: usize = 2;

// SAFETY: a slot's bytes are reached by whoever holds its block; that this is so is what the model shows.
unsafe impl Sync for Places {}
// SAFETY: as above.
unsafe impl Send for Places {}

/// How a block is freed, by any thread, and how its owner sees it.
type Put = fn(&AtomicU32, &AtomicU32, &[AtomicU32], u32) -> bool;

/// The mistake: nothing orders what was written to the block before its next use.
fn put_unordered(live: &AtomicU32, head: &AtomicU32, next: &[AtomicU32], slot: u32) -> bool {
    if live.compare_exchange(slot + 1, (slot | remote::REMOTE) + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    let mut top = head.load(Ordering::Relaxed);
    loop {
        next[slot as usize].store(top, Ordering::Relaxed);
        match head.compare_exchange(top, slot + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => top = now,
        }
    }
}

/// Another mistake: the second free of a block is not noticed.
fn put_unmarked(_: &AtomicU32, head: &AtomicU32, next: &[AtomicU32], slot: u32) -> bool {
    let top = head.load(Ordering::Relaxed);
    next[slot as usize].store(top, Ordering::Relaxed);
    head.compare_exchange(top, slot + 1, Ordering::Release, Ordering::Relaxed).is_ok()
}

/// Two threads write to a block each and free it, one of them tries the other's as well, and the owner uses the bytes
/// anew as soon as it sees a block freed.
fn remote_frees(put: Put, both_free_the_first: bool) -> impl Fn() {
    move || {
        let places = Arc::new(Places {
            live: [1, 2].map(AtomicU32::new),
            head: AtomicU32::new(0),
            next: [0, 0].map(AtomicU32::new),
            bytes: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let others: Vec<_> = (0..SLOTS as u32)
            .map(|slot| {
                let p = places.clone();
                thread::spawn(move || {
                    let free = |slot: u32| u32::from(put(&p.live[slot as usize], &p.head, &p.next, slot));
                    if both_free_the_first {
                        return free(0);
                    }
                    // SAFETY: the block is this thread's until it is freed.
                    p.bytes[slot as usize].with_mut(|b| unsafe { *b += 1 });
                    free(slot)
                })
            })
            .collect();
        let mut released = 0;
        let mut look = || {
            remote::take(&places.head, &places.next, |slot| {
                assert!(remote::settle(&places.live[slot as usize], slot), "a slot came back twice");
                // SAFETY: the block was freed, so its bytes are the owner's.
                places.bytes[slot as usize].with_mut(|b| unsafe { *b += 10 });
                released += 1;
            });
        };
        look();
        let freed: u32 = others.into_iter().map(|t| t.join().unwrap()).sum();
        look();
        assert_eq!((released, freed), if both_free_the_first { (1, 1) } else { (2, 2) });
        assert!(places.live[0].load(Ordering::Relaxed) == 0);
    }
}

fn run(name: &str) -> bool {
    match name {
        "lock, mistaken" => every_order(name, 2, lock::<LooksFirst>(2, 1)),
        "leases, mistaken" => every_order(name, 2, leases(2, 2, 2, 1, Pool::that_hands_out_twice)),
        "remote frees, unordered" => every_order(name, 2, remote_frees_without_join(put_unordered)),
        "remote frees, unmarked" => every_order(name, 2, remote_frees(put_unmarked, true)),
        _ => return false,
    }
    true
}

/// One thread frees, and the owner looks once, without waiting for it: a join would order what the stack has to.
fn remote_frees_without_join(put: Put) -> impl Fn() {
    move || {
        let places = Arc::new(Places {
            live: [1, 0].map(AtomicU32::new),
            head: AtomicU32::new(0),
            next: [0, 0].map(AtomicU32::new),
            bytes: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let p = places.clone();
        let other = thread::spawn(move || {
            // SAFETY: the block is this thread's until it is freed.
            p.bytes[0].with_mut(|b| unsafe { *b += 1 });
            assert!(put(&p.live[0], &p.head, &p.next, 0));
        });
        remote::take(&places.head, &places.next, |slot| {
            assert!(remote::settle(&places.live[slot as usize], slot));
            // SAFETY: the block was freed, so its bytes are the owner's.
            places.bytes[slot as usize].with_mut(|b| unsafe { *b += 10 });
        });
        other.join().unwrap();
    }
}

/// Runs a mistake in a process of its own, which has to fail.
fn must_fail(name: &str) {
    let exe = std::env::current_exe().expect("the program's own path");
    let output = std::process::Command::new(exe).arg(name).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().find(|l| l.contains("Causality") || l.contains("panicked") || l.contains("concurrent"));
    assert!(!output.status.success(), "{name} went unnoticed");
    println!("{name}: noticed ({})", reason.unwrap_or("failed"));
}

fn main() {
    if let Some(name) = std::env::args().nth(1) {
        assert!(run(&name), "no model is called {name}");
        return;
    }
    every_order("lock, 2 threads twice", 3, lock::<RawLock>(2, 2));
    every_order("lock, 3 threads once", 2, lock::<RawLock>(3, 1));
    every_order("leases, 2 threads on 1 area, twice", 3, leases(2, 1, 1, 2, Pool::of));
    every_order("leases, 3 threads on 2 areas", 2, leases(3, 2, 2, 1, Pool::of));
    // The pool has fewer areas than the limit allows: whoever finds it empty waits for the other's to come back.
    every_order("leases, 2 threads, a pool of 1 area", 3, leases(2, 2, 1, 1, Pool::of));
    every_order("remote frees, 2 threads and the owner", 3, remote_frees(remote::put, false));
    every_order("remote frees, the same block twice", 3, remote_frees(remote::put, true));
    every_order("remote frees, 1 thread while the owner looks", 4, remote_frees_without_join(remote::put));
    for name in ["lock, mistaken", "leases, mistaken", "remote frees, unordered", "remote frees, unmarked"] {
        must_fail(name);
    }
}
