//! The pool among threads and across forks.

mod pool_support;

use std::alloc::{alloc, dealloc, Layout};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use arenite::runtime::source::Callbacks;
use arenite::runtime::{Growth, Pool, PoolConfig, RegionSource};
use pool_support::{fill, fixed, free, holds, Rng};

fn threads_free_each_others_blocks(config: PoolConfig) {
    let pool = Pool::new(config).unwrap();
    let swap: Mutex<Vec<(usize, usize, u8)>> = Mutex::new(Vec::new());
    let freed = AtomicU64::new(0);
    std::thread::scope(|s| {
        for t in 0..24u64 {
            let (pool, swap, freed) = (&pool, &swap, &freed);
            s.spawn(move || {
                let mut r = Rng(t * 7 + 1);
                for i in 0..2000u64 {
                    let bytes = 1 + r.below(3000) as usize;
                    let p = pool.alloc(bytes, 1 << r.below(10)).unwrap();
                    fill(p, 0, bytes, t as u8);
                    swap.lock().unwrap().push((p.as_ptr() as usize, bytes, t as u8));
                    let other = {
                        let mut all = swap.lock().unwrap();
                        let at = r.below(all.len() as u64) as usize;
                        (all.len() > 40).then(|| all.swap_remove(at))
                    };
                    if let Some((address, bytes, mark)) = other {
                        let p = NonNull::new(address as *mut u8).unwrap();
                        assert!(holds(p, bytes, mark));
                        free(pool, p).unwrap();
                        freed.fetch_add(1, Ordering::Relaxed);
                    }
                    if i % 500 == 0 {
                        pool.trim(0);
                    }
                }
            });
        }
    });
    let rest = swap.into_inner().unwrap();
    assert_eq!(pool.stats().heap.blocks, rest.len() as u64);
    for (address, ..) in rest {
        free(&pool, NonNull::new(address as *mut u8).unwrap()).unwrap();
    }
    pool.check().unwrap();
    assert_eq!(pool.stats().heap.live, 0);
}

#[test]
fn twenty_four_threads_free_each_others_blocks() {
    threads_free_each_others_blocks(PoolConfig {
        growth: Growth::Geometric { first: 1 << 16 },
        ..PoolConfig::default()
    });
}

#[test]
fn so_they_do_in_a_pool_of_shards() {
    let growth = Growth::Geometric { first: 1 << 16 };
    threads_free_each_others_blocks(PoolConfig { growth, shards: 5, ..PoolConfig::default() });
}

/// A source that takes its time, as a system under load does.
unsafe extern "C" fn slowly(_: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
    std::thread::sleep(Duration::from_millis(5));
    let layout = Layout::from_size_align(bytes, align).unwrap();
    // SAFETY: the pool asks for at least one byte.
    unsafe { alloc(layout) }.cast()
}

unsafe extern "C" fn put(_: *mut c_void, data: *mut c_void, bytes: usize, align: usize) {
    let layout = Layout::from_size_align(bytes, align).unwrap();
    // SAFETY: `slowly` made it with this layout.
    unsafe { dealloc(data.cast(), layout) };
}

/// A crowd that finds the pool empty at the same moment takes one region between them and not one each: each is twice as
/// large as all before, and there can be 64.
#[test]
fn a_crowd_at_an_empty_pool_grows_it_once() {
    let source = RegionSource::Functions(Callbacks { allocate: slowly, deallocate: put, user: std::ptr::null_mut() });
    let growth = Growth::Geometric { first: 1 << 20 };
    let pool = Pool::new(PoolConfig { source, growth, ..PoolConfig::default() }).unwrap();
    let start = Barrier::new(24);
    std::thread::scope(|s| {
        for t in 0..24 {
            let (pool, start) = (&pool, &start);
            s.spawn(move || {
                start.wait();
                let block = pool.alloc(1000 + t * 100, 128).unwrap();
                free(pool, block).unwrap();
            });
        }
    });
    assert_eq!(pool.stats().regions, 1);
}

#[test]
fn shards_share_their_memory_and_count_exactly() {
    let pool = Pool::new(PoolConfig { shards: 4, ..fixed(4 << 20) }).unwrap();
    assert_eq!((pool.stats().regions, pool.stats().heap.total), (4, 4 << 20));
    // One thread may have it all: the other shards' parts as well as its own.
    let all: Vec<_> = (0..16).map(|_| pool.alloc(256 << 10, 128).unwrap()).collect();
    let refusal = pool.alloc(1, 1).unwrap_err();
    assert_eq!((refusal.error.kind, refusal.free), (arenite::error::Kind::Capacity, 0));
    assert_eq!(pool.stats().heap.live, 4 << 20);
    // Every thread frees any of them, and a second free is refused whoever tries.
    std::thread::scope(|s| {
        for part in all.chunks(4) {
            let part: Vec<usize> = part.iter().map(|p| p.as_ptr() as usize).collect();
            let pool = &pool;
            s.spawn(move || {
                for &p in part.iter().rev() {
                    let p = NonNull::new(p as *mut u8).unwrap();
                    assert_eq!(pool.usable_size(p), Some(256 << 10));
                    free(pool, p).unwrap();
                    assert!(free(pool, p).is_err());
                }
            });
        }
    });
    let s = pool.stats();
    assert_eq!((s.heap.live, s.heap.blocks, s.heap.frees, s.bad, s.heap.max_steps <= 40), (0, 0, 16, 16, true));
    // A block has to fit into one part.
    assert!(pool.alloc((1 << 20) + 1, 1).is_err());
    pool.check().unwrap();
    pool.destroy().unwrap();

    let mut memory = vec![0u8; 1 << 20];
    let base = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: the memory outlives the pool.
    let pool = unsafe { Pool::over(base, memory.len(), PoolConfig { shards: 3, ..PoolConfig::default() }) }.unwrap();
    assert_eq!(pool.stats().regions, 3);
    let frame_blocks = |frame: &mut arenite::runtime::Frame<&Pool>| {
        let (a, b) = (frame.alloc(1000, 128).unwrap(), frame.alloc(5000, 128).unwrap());
        for block in [a, b] {
            // SAFETY: not used afterwards.
            unsafe { frame.free(block) }.unwrap();
        }
    };
    for _ in 0..3 {
        std::thread::scope(|s| drop(s.spawn(|| frame_blocks(&mut pool.frame_begin(1)))));
    }
    assert_eq!(pool.frame_stats().served, 4);
    assert!(pool.trim(0) == 0, "lent memory is never given back");
    pool.destroy().unwrap();
}

/// One life of a forked child: it allocates, frees what was live before, and goes on with the frame it was forked in.
#[cfg(unix)]
fn child(pool: &Pool, kept: NonNull<u8>, frame: Option<&mut arenite::runtime::Frame<&Pool>>) -> bool {
    let ok = pool.alloc(2000, 128).is_ok_and(|p| free(pool, p).is_ok())
        && free(pool, kept).is_ok()
        && free(pool, kept).is_err();
    let framed = frame.is_none_or(|frame| {
        // SAFETY: not used afterwards.
        frame.alloc(3000, 128).is_ok_and(|p| unsafe { frame.free(p) }.is_ok())
    });
    ok && framed && pool.frame_begin(99).alloc(100, 128).is_ok_and(|p| free(pool, p).is_ok())
}

#[cfg(unix)]
fn fork_many_times(config: PoolConfig) {
    // A thousand in CI: each costs a copy of the page tables.
    let forks = std::env::var("ARENITE_FORKS").map_or(100, |n| n.parse().expect("ARENITE_FORKS is a number"));
    let pool = Pool::new(config).unwrap();
    let kept = pool.alloc(1000, 1).unwrap();
    fill(kept, 0, 1000, 9);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        // Other threads hold the locks most of the time, so that a fork is likely to find them taken.
        for t in 0..3 {
            let (pool, stop) = (&pool, &stop);
            s.spawn(move || {
                let mut r = Rng(t + 1);
                while !stop.load(Ordering::Relaxed) {
                    if t == 0 {
                        let mut frame = pool.frame_begin(7);
                        if let Ok(p) = frame.alloc(4000, 128) {
                            // SAFETY: not used afterwards.
                            unsafe { frame.free(p) }.unwrap();
                        }
                    } else if let Ok(p) = pool.alloc(r.below(5000) as usize, 1) {
                        free(pool, p).unwrap();
                    }
                    std::thread::yield_now();
                }
            });
        }
        let mut r = Rng(5);
        for round in 0..forks {
            // Half of the forks happen inside a frame, first while it is recorded, then while it is replayed.
            let mut frame = (round % 2 == 0).then(|| pool.frame_begin(8));
            let block = frame.as_mut().map(|frame| frame.alloc(1 + r.below(2) as usize * 100, 128).unwrap());
            // SAFETY: the child calls the pool, `alarm` and `_exit` only.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0, "no process can be made: {}", std::io::Error::last_os_error());
            if pid == 0 {
                // A child that hangs is ended and seen, and does not make the parent wait for ever.
                // SAFETY: takes a number.
                unsafe { libc::alarm(100) };
                let ok = child(&pool, kept, frame.as_mut());
                // SAFETY: ends the child without running anything else.
                unsafe { libc::_exit(i32::from(!ok)) };
            }
            let mut status = 0;
            // SAFETY: waits for the child made above.
            let ended = unsafe { libc::waitpid(pid, &mut status, 0) };
            assert_eq!((ended, status), (pid, 0), "the child failed or hung");
            if let (Some(frame), Some(block)) = (&mut frame, block) {
                // SAFETY: not used afterwards.
                unsafe { frame.free(block) }.unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(holds(kept, 1000, 9));
    free(&pool, kept).unwrap();
    pool.check().unwrap();
    assert!(pool.frame_stats().served > 0);
    pool.destroy().unwrap();
}

#[cfg(unix)]
#[test]
fn a_forked_child_goes_on_allocating() {
    fork_many_times(fixed(1 << 20));
}

#[cfg(unix)]
#[test]
fn so_does_one_of_a_pool_of_shards() {
    fork_many_times(PoolConfig { shards: 3, ..fixed(1 << 20) });
}
