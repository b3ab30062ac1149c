//! Many threads on one pool: blocks go from thread to thread, and at the end the counters are the sums. Under
//! ThreadSanitizer in CI.

mod pool_support;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arenite::runtime::{DebugOptions, Pool, PoolConfig};
use pool_support::{fill, fixed, free, holds, Rng};

const THREADS: u64 = 24;
const SLOTS: usize = 96;

/// Rounds of each thread; more where `ARENITE_STRESS` says so.
fn rounds() -> u64 {
    std::env::var("ARENITE_STRESS").ok().and_then(|v| v.parse().ok()).unwrap_or(1500)
}

#[derive(Default)]
struct Sums {
    taken: AtomicU64,
    freed: AtomicU64,
    bad: AtomicU64,
    refused: AtomicU64,
}

/// The size of a block, from the byte it is filled with, so that whoever frees it can look at it.
fn bytes_of(mark: u8) -> usize {
    64 + mark as usize * 37
}

fn give(pool: &Pool, address: usize, sums: &Sums) {
    let p = NonNull::new(address as *mut u8).unwrap();
    // SAFETY: the block was taken out of its slot, so it is this thread's alone, and holds more than a byte.
    let mark = unsafe { p.read() };
    assert!(holds(p, bytes_of(mark), mark), "a block changed on its way");
    free(pool, p).unwrap();
    sums.freed.fetch_add(1, Ordering::Relaxed);
}

fn work(pool: &Pool, thread: u64, slots: &[AtomicUsize], sums: &Sums) {
    let mut r = Rng(thread * 7919 + 1);
    let stack = 0u64;
    for round in 0..rounds() {
        let mark = (r.below(251) + 1) as u8;
        match pool.alloc(bytes_of(mark), 1 << r.below(10)) {
            Ok(p) => {
                sums.taken.fetch_add(1, Ordering::Relaxed);
                fill(p, 0, bytes_of(mark), mark);
                // Whoever was there last is freed by this thread, whichever made it.
                let old = slots[r.below(SLOTS as u64) as usize].swap(p.as_ptr() as usize, Ordering::AcqRel);
                if old != 0 {
                    give(pool, old, sums);
                }
            }
            Err(_) => drop(sums.refused.fetch_add(1, Ordering::Relaxed)),
        }
        if round % 64 == 0 {
            assert!(free(pool, NonNull::from(&stack).cast()).is_err());
            sums.bad.fetch_add(1, Ordering::Relaxed);
        }
        if round % 400 == 0 {
            pool.trim(1 << 16);
            pool.check().unwrap();
            assert!(pool.stats().heap.blocks <= sums.taken.load(Ordering::Relaxed) + 1000);
        }
    }
}

fn stress(config: PoolConfig) -> Pool {
    let pool = Pool::new(config).unwrap();
    let slots: Vec<AtomicUsize> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
    let sums = Sums::default();
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (pool, slots, sums) = (&pool, &slots, &sums);
            s.spawn(move || work(pool, thread, slots, sums));
        }
    });
    slots.iter().map(|s| s.load(Ordering::Acquire)).filter(|&a| a != 0).for_each(|a| give(&pool, a, &sums));
    let [taken, freed, bad, refused] =
        [&sums.taken, &sums.freed, &sums.bad, &sums.refused].map(|n| n.load(Ordering::Relaxed));
    assert_eq!(taken, freed);
    assert_eq!((pool.stats().bad, pool.stats().refused), (bad, refused));
    assert!(taken + refused == THREADS * rounds() && taken > 0);
    pool.check().unwrap();
    println!("{THREADS} threads: {taken} blocks, {refused} refused, {bad} bad frees, all counted");
    pool
}

/// Every block was one of the heap's, so its counters are the sums.
fn all_counted(pool: Pool) {
    let s = pool.stats().heap;
    assert_eq!((s.allocs, s.frees, s.live, s.requested, s.blocks), (s.frees, s.allocs, 0, 0, 0));
    assert!(pool.destroy().is_ok());
}

#[test]
fn one_lock() {
    all_counted(stress(fixed(1 << 20)));
    all_counted(stress(PoolConfig::default()));
}

#[test]
fn shards() {
    all_counted(stress(PoolConfig { shards: 4, ..fixed(1 << 22) }));
    all_counted(stress(PoolConfig { shards: 24, ..PoolConfig::default() }));
}

#[test]
fn automatic_frames() {
    for shards in [1, 4] {
        let pool = stress(PoolConfig { auto_frames: true, shards, ..PoolConfig::default() });
        assert!(pool.idle().is_ok(), "nothing but what the frames hold is live");
        all_counted(pool);
    }
}

#[test]
fn checks() {
    let debug = DebugOptions { quarantine: 1 << 16, sanitizer: false, ..DebugOptions::ALL };
    let pool = stress(PoolConfig { debug, ..PoolConfig::default() });
    assert!(pool.leaks().is_empty() && pool.idle().is_ok());
    all_counted(pool);
}

/// Frames of one signature on every thread; each block is freed by the next thread.
#[test]
fn frames_whose_blocks_others_free() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let slots: Vec<AtomicUsize> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
    let sums = Sums::default();
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (pool, slots, sums) = (&pool, &slots, &sums);
            s.spawn(move || {
                for round in 0..rounds() / 16 {
                    let mut frame = pool.frame_begin(thread % 3);
                    for i in 0..16u64 {
                        let mark = (1 + i * 13 + thread % 3) as u8;
                        let p = frame.alloc(bytes_of(mark), 128).unwrap();
                        sums.taken.fetch_add(1, Ordering::Relaxed);
                        fill(p, 0, bytes_of(mark), mark);
                        // Each block is freed four blocks later, unless another thread is faster.
                        let own = thread as usize * 4 + i as usize % 4;
                        let mut old = slots[own].swap(p.as_ptr() as usize, Ordering::AcqRel);
                        if i % 4 == 0 {
                            let other = (own + 4 * (1 + round as usize % 23)) % SLOTS;
                            let stolen = slots[other].swap(0, Ordering::AcqRel);
                            if stolen != 0 {
                                give(pool, stolen, sums);
                            }
                        }
                        if i == 15 && old == 0 {
                            old = slots[own].swap(0, Ordering::AcqRel);
                        }
                        if old != 0 {
                            give(pool, old, sums);
                        }
                    }
                }
            });
        }
    });
    slots.iter().map(|s| s.load(Ordering::Acquire)).filter(|&a| a != 0).for_each(|a| give(&pool, a, &sums));
    assert_eq!(sums.taken.load(Ordering::Relaxed), sums.freed.load(Ordering::Relaxed));
    assert_eq!(pool.frame_stats().frames, THREADS * (rounds() / 16));
    assert!(pool.frame_stats().served > 0);
    pool.check().unwrap();
    pool.idle().unwrap();
    all_counted(pool);
}
