//! Two threads on one pool, each on a processor of its own.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

use arenite::runtime::{Growth, Pool, PoolConfig};

use crate::peers::{self, Offsets, Peer};
use crate::trace::Rng;
use crate::{at, ticks_per_ns, tsc};

const OPS: u64 = 400_000;
const ROUNDS: usize = 7;

#[derive(Clone, Copy)]
struct Clock {
    per_ns: f64,
    /// Ticks between two calls of a thread.
    apart: u64,
}

/// Binds the calling thread to the `n`th processor it may use: threads that take turns on one never contend, so a loaded
/// machine would flatter every lock.
fn pin(n: usize) {
    // SAFETY: an all-zero set is an empty one, and both calls are told its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed);
        let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(|&c| libc::CPU_ISSET(c, &allowed)).collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[n % cpus.len()], &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
    }
}

/// One thread's share: 128 blocks, 64 B to 1 MB, each allocated or freed at random, `apart` ticks between two calls. Every
/// 16th call is timed.
fn share(
    t: usize,
    apart: u64,
    start: &Barrier,
    work: &impl Fn(usize, usize, Option<usize>),
) -> (Instant, Instant, Vec<u64>) {
    pin(t);
    let mut r = Rng(t as u64 + 77);
    let mut live = vec![false; 128];
    let mut ticks = Vec::with_capacity(OPS as usize / 16 + 1);
    start.wait();
    let begun = Instant::now();
    for i in 0..OPS {
        let k = r.below(128) as usize;
        let bytes = (!live[k]).then(|| r.size(14) as usize);
        if i % 16 == 0 {
            let from = tsc();
            work(t, k, bytes);
            ticks.push(tsc() - from);
        } else {
            work(t, k, bytes);
        }
        live[k] = !live[k];
        if apart > 0 {
            let until = tsc() + apart;
            while tsc() < until {}
        }
    }
    let ended = Instant::now();
    (0..128).filter(|&k| live[k]).for_each(|k| work(t, k, None));
    (begun, ended, ticks)
}

fn run(name: &str, Clock { per_ns, apart }: Clock, work: impl Fn(usize, usize, Option<usize>) + Sync) {
    let (mut all, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Barrier::new(2);
        let shares: Vec<_> = std::thread::scope(|s| {
            let threads = [0, 1].map(|t| {
                let (start, work) = (&start, &work);
                s.spawn(move || share(t, apart, start, work))
            });
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let begun = shares.iter().map(|s| s.0).min().unwrap();
        let ended = shares.iter().map(|s| s.1).max().unwrap();
        all.push(2.0 * OPS as f64 / (ended - begun).as_nanos() as f64 * 1e3);
        tails.extend(shares.into_iter().flat_map(|s| s.2));
    }
    all.sort_by(f64::total_cmp);
    tails.sort_unstable();
    let ns = |share| at(&tails, share) as f64 / per_ns;
    println!(
        "{name:22} {:6.1} {:8.1} M/s   p50 {:5.0} p99 {:6.0} p99.9 {:6.0} p99.99 {:7.0} max {:8.0} ns",
        all[ROUNDS - 1],
        all[ROUNDS / 2],
        ns(0.5),
        ns(0.99),
        ns(0.999),
        ns(0.9999),
        ns(1.0)
    );
}

fn pool(name: &str, clock: Clock, shards: usize) {
    let config = PoolConfig { first_region: 512 << 20, growth: Growth::None, shards, ..PoolConfig::default() };
    let pool = Pool::new(config).unwrap();
    let table: Vec<AtomicUsize> = (0..256).map(|_| 0.into()).collect();
    run(name, clock, |t, k, bytes| {
        let slot = &table[t * 128 + k];
        match bytes {
            Some(bytes) => slot.store(pool.alloc(bytes, 128).unwrap().as_ptr() as usize, Relaxed),
            None => {
                let p = NonNull::new(slot.load(Relaxed) as *mut u8).unwrap();
                // SAFETY: not used afterwards.
                unsafe { pool.free(p) }.unwrap();
            }
        }
    });
}

fn locked<P: Peer>(name: &str, clock: Clock, peer: P) {
    struct Shared<P>(Mutex<P>);
    // SAFETY: the peer is reached under the mutex only, and its memory is bound to no thread.
    unsafe impl<P> Sync for Shared<P> {}
    // SAFETY: as above.
    unsafe impl<P> Send for Shared<P> {}

    let shared = Shared(Mutex::new(peer));
    let shared = &shared;
    run(name, clock, move |t, k, bytes| {
        let mut peer = shared.0.lock().unwrap();
        match bytes {
            Some(bytes) => assert!(peer.alloc(t * 128 + k, bytes, 128)),
            None => peer.free(t * 128 + k),
        }
    });
}

fn free_threaded(name: &str, clock: Clock, heap: impl std::alloc::GlobalAlloc + Sync) {
    let table: Vec<AtomicUsize> = (0..512).map(|_| 0.into()).collect();
    run(name, clock, |t, k, bytes| {
        let at = (t * 128 + k) * 2;
        match bytes {
            Some(bytes) => {
                let layout = Layout::from_size_align(bytes, 128).unwrap();
                // SAFETY: the layout is not empty.
                table[at].store(unsafe { heap.alloc(layout) } as usize, Relaxed);
                table[at + 1].store(bytes, Relaxed);
            }
            None => {
                let layout = Layout::from_size_align(table[at + 1].load(Relaxed), 128).unwrap();
                // SAFETY: allocated above with this layout.
                unsafe { heap.dealloc(table[at].load(Relaxed) as *mut u8, layout) };
            }
        }
    });
}

/// `only`: the first letters of the rows to be measured; all of them if it is empty.
/// `apart`: nanoseconds of other work between two calls of a thread.
pub fn threads(only: &str, apart: u64) {
    let per_ns = ticks_per_ns();
    let clock = Clock { per_ns, apart: (apart as f64 * per_ns) as u64 };
    println!("two threads, one pool: best and median of {ROUNDS}");
    let rows: [(&str, &dyn Fn(&str)); 9] = [
        // Interrupts alone: as long as a call of the pool, and no memory shared.
        ("(no allocator)", &|name| run(name, clock, |_, _, _| (0..160).for_each(|i| _ = std::hint::black_box(i)))),
        ("arenite pool", &|name| pool(name, clock, 1)),
        ("arenite pool, 2 shards", &|name| pool(name, clock, 2)),
        ("rlsf + mutex", &|name| locked(name, clock, peers::rlsf(512 << 20, 256).unwrap())),
        ("talc + mutex", &|name| locked(name, clock, peers::talc(512 << 20, 256).unwrap())),
        ("offset-alloc + mutex", &|name| locked(name, clock, Offsets::new(512 << 20, 256))),
        ("glibc", &|name| free_threaded(name, clock, std::alloc::System)),
        ("mimalloc", &|name| free_threaded(name, clock, mimalloc::MiMalloc)),
        ("jemalloc", &|name| free_threaded(name, clock, tikv_jemallocator::Jemalloc)),
    ];
    rows.iter().filter(|row| row.0.contains(only)).for_each(|(name, row)| row(name));
    println!("goals: >= 9 M/s, p99.9 <= 800 ns");
}
