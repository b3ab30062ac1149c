//! The pool's lock and the leases of arenas, through every order of steps that two or three threads can take (up to a bound
//! on preemptions). The files are the library's own; only what they need of the system is replaced.

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
        }

        // SAFETY: the addresses are never followed here; a model looks its cell up by address.
        unsafe impl Send for Pool {}
        // SAFETY: as above.
        unsafe impl Sync for Pool {}

        impl Pool {
            pub fn of(areas: usize) -> Pool {
                let area = |i: usize| NonNull::new((128 * (i + 1)) as *mut u8).unwrap();
                Pool { free: Mutex::new((0..areas).map(area).collect()), made: areas }
            }

            pub fn alloc_with(&self, _request: &Request) -> Result<NonNull<u8>, Error> {
                self.free.lock().unwrap().pop().ok_or(Error::capacity("the pool is full"))
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
use loom::sync::atomic::AtomicU32;
use loom::thread;
use runtime::lease::Leases;
use runtime::pool::Pool;
use runtime::raw_lock::RawLock;

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

struct Counter {
    lock: RawLock,
    /// Reports an access that the lock does not order after the one before.
    value: UnsafeCell<u32>,
}

// SAFETY: the cell is reached under the lock; that this is so is what the model shows.
unsafe impl Sync for Counter {}
// SAFETY: as above.
unsafe impl Send for Counter {}

impl Counter {
    fn new() -> Arc<Counter> {
        Arc::new(Counter { lock: RawLock::of([0; 6].map(AtomicU32::new)), value: UnsafeCell::new(0) })
    }

    fn add(&self) {
        self.lock.lock();
        // SAFETY: under the lock.
        self.value.with_mut(|v| unsafe { *v += 1 });
        self.lock.unlock();
    }
}

fn lock(threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let counter = Counter::new();
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

fn leases(threads: u32, limit: u32, areas: usize, rounds: u32) -> impl Fn() {
    move || {
        let pool = Arc::new(Pool::of(areas));
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

fn main() {
    every_order("lock, 2 threads twice", 3, lock(2, 2));
    every_order("lock, 3 threads once", 2, lock(3, 1));
    every_order("leases, 2 threads on 1 area, twice", 3, leases(2, 1, 1, 2));
    every_order("leases, 3 threads on 2 areas", 2, leases(3, 2, 2, 1));
    // The pool has fewer areas than the limit allows: whoever finds it empty waits for the other's to come back.
    every_order("leases, 2 threads, a pool of 1 area", 3, leases(2, 2, 1, 1));
}
