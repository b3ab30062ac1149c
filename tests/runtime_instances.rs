//! Many instances of one plan on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use arenite::error::Kind;
use arenite::runtime::arena::{Layout, Place, Slot};
use arenite::runtime::instances::{Instances, InstancesConfig};
use arenite::runtime::source::Source;
use arenite::runtime::{Growth, Pool, PoolConfig, Supply};
use arenite::units::DEFAULT_ALIGN;

fn layout() -> Layout {
    let slot = |place, bytes| Slot { place, bytes };
    Layout {
        main_bytes: 4096,
        main_align: DEFAULT_ALIGN,
        persistent_bytes: 64,
        persistent_align: DEFAULT_ALIGN,
        slots: vec![vec![
            slot(Place::Main { offset: 0 }, 2048),
            slot(Place::Main { offset: 2048 }, 2048),
            slot(Place::Persistent { offset: 0 }, 64),
            slot(Place::Constant, 64),
        ]],
    }
}

/// A thread that was started need not run for a long time, so that no sleep is long enough.
fn until_one_waits(set: &Instances) {
    while set.stats().waits == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn instances_never_see_each_other() {
    never_see_each_other(InstancesConfig::new(16, 4));
}

#[test]
fn nor_do_those_whose_arenas_are_leased_from_a_pool() {
    let config = PoolConfig { first_region: 64 << 10, growth: Growth::None, ..PoolConfig::default() };
    let pool = Arc::new(Pool::new(config).unwrap());
    let supply = Supply::Pool(pool.clone());
    never_see_each_other(InstancesConfig { main: supply.clone(), persistent: supply, ..InstancesConfig::new(16, 4) });
    assert_eq!(pool.stats().heap.blocks, 0, "all of it came back");
}

#[test]
fn a_pool_that_is_too_small_for_k_arenas_serves_fewer() {
    let config = PoolConfig { first_region: 8192, growth: Growth::None, ..PoolConfig::default() };
    let main = Supply::Pool(Arc::new(Pool::new(config).unwrap()));
    let set = Instances::new(layout(), InstancesConfig { main, ..InstancesConfig::new(8, 4) }).unwrap();
    let (a, b) = (set.acquire(0).unwrap(), set.acquire(1).unwrap());
    assert_eq!(set.try_acquire(2).unwrap_err().kind, Kind::Capacity, "the pool has no third arena");
    let waited = std::thread::scope(|s| {
        let waiting = s.spawn(|| set.acquire(2).map(|r| r.instance()).unwrap());
        until_one_waits(&set);
        drop(a);
        waiting.join().unwrap()
    });
    let s = set.stats();
    assert_eq!((waited, s.committed_bytes, s.runs, s.waits, s.refused), (2, 8192, 3, 1, 1));
    drop(b);
}

fn never_see_each_other(config: InstancesConfig) {
    let set = Instances::new(layout(), config).unwrap();
    let constant = Source::System.take(64, 64).unwrap();
    // SAFETY: 64 bytes of the block.
    unsafe { constant.base().as_ptr().write_bytes(9, 64) };
    set.bind_constant(0, 3, constant.base(), 64).unwrap();
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (set, most) = (&set, &most);
            scope.spawn(move || {
                for round in 0..200usize {
                    let instance = thread * 2 + round % 2;
                    let run = set.acquire(instance).unwrap();
                    most.fetch_max(set.stats().running, Ordering::Relaxed);
                    let bytes = |t: usize| {
                        let (p, n) = run.resolve(0, t).unwrap().unwrap();
                        // SAFETY: the run is this thread's alone, and so are the tensor's bytes.
                        unsafe { std::slice::from_raw_parts_mut(p.as_ptr(), n) }
                    };
                    let expected = (round / 2) as u8;
                    assert!(bytes(2).iter().all(|&b| b == expected), "the state is this instance's alone");
                    bytes(2).fill(expected.wrapping_add(1));
                    bytes(0).fill(instance as u8);
                    std::thread::yield_now();
                    assert!(bytes(0).iter().all(|&b| b == instance as u8));
                    let (p, _) = run.resolve(0, 3).unwrap().unwrap();
                    // SAFETY: the constant's bytes, which nobody writes.
                    assert_eq!(unsafe { p.as_ptr().read() }, 9);
                }
            });
        }
    });
    let stats = set.stats();
    assert!(most.load(Ordering::Relaxed) <= 4 && stats.committed_bytes <= 4 * 4096 && stats.running == 0);
    assert_eq!(stats.persistent_bytes, 16 * 64);
    assert!((1..=4).contains(&stats.peak) && stats.runs == 1600 && stats.high_water == stats.committed_bytes);
    set.trim();
    assert_eq!(set.stats().committed_bytes, 0);
}

#[test]
fn misuse_is_refused() {
    let set = Instances::new(layout(), InstancesConfig { check_threads: true, ..InstancesConfig::new(3, 2) }).unwrap();
    let a = set.acquire(0).unwrap();
    assert_eq!(set.acquire(0).unwrap_err().kind, Kind::Busy, "an instance runs once at a time");
    let b = set.try_acquire(1).unwrap();
    let e = set.try_acquire(2).unwrap_err();
    assert_eq!((e.kind, e.needed, e.available), (Kind::Busy, Some(1), Some(0)));
    assert_eq!(set.acquire(3).unwrap_err().kind, Kind::Argument);
    let other = std::thread::scope(|s| s.spawn(|| a.resolve(0, 0).unwrap_err().kind).join().unwrap());
    assert_eq!(other, Kind::Busy, "two threads in one arena");
    let waited = std::thread::scope(|s| {
        let waiting = s.spawn(|| set.acquire(2).map(|r| r.instance()).unwrap());
        until_one_waits(&set);
        drop(b);
        waiting.join().unwrap()
    });
    assert_eq!(waited, 2);
    let moved = std::thread::scope(|s| {
        s.spawn(move || {
            let mut a = a;
            a.adopt();
            a.resolve(0, 0).is_ok()
        })
        .join()
        .unwrap()
    });
    assert!(moved, "a run may be handed to another thread");
    let mut byte = [0u8; 8192];
    let buffer = Source::Buffer { base: std::ptr::NonNull::from(&mut byte[0]), bytes: 8192 };
    assert!(Instances::new(layout(), InstancesConfig { main: buffer.into(), ..InstancesConfig::new(3, 2) }).is_err());
    assert!(Instances::new(layout(), InstancesConfig { main: buffer.into(), ..InstancesConfig::new(3, 1) }).is_ok());
    assert!(Instances::new(layout(), InstancesConfig::new(0, 1)).is_err());
}

/// The control of the run under ThreadSanitizer: this race has to be reported, or silence proves nothing.
#[test]
#[ignore = "a data race on purpose"]
fn a_race_on_purpose() {
    let set = Instances::new(layout(), InstancesConfig::new(2, 2)).unwrap();
    let run = set.acquire(0).unwrap();
    let address = run.resolve(0, 0).unwrap().unwrap().0.as_ptr() as usize;
    // Both at once: otherwise the start of the second thread may come after the end of the first.
    let gate = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for value in [1u8, 2] {
            let gate = &gate;
            scope.spawn(move || {
                gate.wait();
                for _ in 0..10_000 {
                    // SAFETY: none; two threads write one byte. Only the sanitizer runs this, and ends the process.
                    unsafe { (address as *mut u8).write_volatile(value) };
                }
            });
        }
    });
}
