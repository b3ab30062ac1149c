//! Memory is refused at every point at which a pool asks for some: one request at a time, and every one from then on. The
//! call fails or does without, the pool is as it was, and the same call succeeds once there is memory again.
//!
//! Not refused here: what planning a frame needs at its end, and the counted references to a recording and to an instance
//! (less than [`SMALL`] bytes each), for which the standard library has no form that can fail.

mod pool_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use arenite::error::{Error, Kind};
use arenite::heap::Request;
use arenite::runtime::source::Callbacks;
use arenite::runtime::{
    DebugOptions, Fallback, Growth, Leak, Leases, OffsetHeap, OffsetHeapConfig, Pool, PoolConfig, RegionSource,
    TraceCallback,
};
use pool_support::{fill, fixed, free, holds};

/// Below so many bytes a request of a frame is served.
const SMALL: usize = 512;

/// What becomes of this thread's requests for memory.
#[derive(Clone, Copy)]
struct Gate {
    /// Requests are counted, and may be refused.
    on: bool,
    /// Those below this size are neither.
    from: usize,
    seen: u64,
    /// The first one refused, and whether all later ones are, too.
    refuse: Option<(u64, bool)>,
    /// Requests that were refused.
    refused: u64,
    /// Bytes out.
    held: i64,
    /// The pool keeps freed blocks back.
    quarantine: bool,
}

thread_local! {
    static GATE: Cell<Gate> =
        const { Cell::new(Gate { on: false, from: 0, seen: 0, refuse: None, refused: 0, held: 0, quarantine: false }) };
}

fn change<R>(act: impl FnOnce(&mut Gate) -> R) -> R {
    GATE.with(|cell| {
        let mut gate = cell.get();
        let result = act(&mut gate);
        cell.set(gate);
        result
    })
}

/// Whether a request is let through.
fn admitted(bytes: usize) -> bool {
    change(|g| {
        if !g.on || bytes < g.from {
            return true;
        }
        let at = g.seen;
        g.seen += 1;
        let refused = g.refuse.is_some_and(|(first, onward)| at == first || onward && at > first);
        g.refused += u64::from(refused);
        !refused
    })
}

struct Refusing;

#[global_allocator]
static HEAP: Refusing = Refusing;

// SAFETY: forwards to the system's heap, or returns null, which every caller must expect.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admitted(layout.size()) {
            return std::ptr::null_mut();
        }
        change(|g| g.held += layout.size() as i64);
        // SAFETY: the contract of this function is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        change(|g| g.held -= layout.size() as i64);
        // SAFETY: the contract of this function is that of the system's.
        unsafe { System.dealloc(p, layout) }
    }
}

unsafe extern "C" fn get(_: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
    let layout = Layout::from_size_align(bytes, align.max(4096)).unwrap();
    // SAFETY: the pool asks for more than no bytes.
    unsafe { HEAP.alloc(layout) }.cast()
}

unsafe extern "C" fn put(_: *mut c_void, p: *mut c_void, bytes: usize, align: usize) {
    let layout = Layout::from_size_align(bytes, align.max(4096)).unwrap();
    // SAFETY: what `get` returned.
    unsafe { HEAP.dealloc(p.cast(), layout) }
}

/// A pool whose regions go through the gate, too.
fn gated() -> PoolConfig {
    let fns = Callbacks { allocate: get, deallocate: put, user: std::ptr::null_mut() };
    PoolConfig {
        source: RegionSource::Functions(fns),
        growth: Growth::Exact { at_least: 1 << 16 },
        ..PoolConfig::default()
    }
}

/// Makes one call with the gate open for refusals. Where the call fails, `hash` is as it was, and a retry succeeds.
fn attempt<R>(from: usize, hash: impl Fn() -> u64, mut call: impl FnMut() -> Result<R, Error>) -> R {
    let before = change(|g| g.refuse.is_some()).then(&hash);
    let refused = change(|g| g.refused);
    change(|g| (g.on, g.from) = (true, from));
    let result = call();
    change(|g| g.on = false);
    match result {
        Ok(value) => value,
        Err(error) => {
            assert!(change(|g| g.refused) > refused, "failed without a refusal: {error}");
            assert!(matches!(error.kind, Kind::NoMemory | Kind::Capacity), "{error:?}");
            assert_eq!(Some(hash()), before, "a refused call changed something");
            call().expect("the retry succeeds")
        }
    }
}

/// Runs a scenario once to count its requests, then twice for each of them.
fn every_refusal(name: &str, scenario: impl Fn()) {
    let clear = |refuse| change(|g| *g = Gate { on: false, from: 0, seen: 0, refuse, refused: 0, ..*g });
    // Twice: what the process keeps for good (the table of locks) is made in the first.
    scenario();
    clear(None);
    scenario();
    let points = change(|g| g.seen);
    assert!(points > 0, "{name} asks for no memory");
    let mut refused = 0;
    for k in 0..points {
        for onward in [false, true] {
            clear(Some((k, onward)));
            scenario();
            refused += change(|g| g.refused);
            assert!(change(|g| g.refused) > 0, "{name}: request {k} was not made again");
        }
    }
    println!("{name}: {points} points, {refused} refusals, 0 differences");
}

/// A call on a pool.
fn on<R>(pool: &Pool, call: impl FnMut() -> Result<R, Error>) -> R {
    // A request that finds no room lets blocks out of quarantine, which are nobody's: there the live ones are compared.
    let live = || {
        let fold =
            |hash: u64, l: &Leak| (hash ^ l.address as u64 ^ (l.bytes as u64) << 48).wrapping_mul(0x0100_0000_01b3);
        pool.leaks().iter().fold(0, fold)
    };
    let value = match change(|g| g.quarantine) {
        true => attempt(0, live, call),
        false => attempt(0, || pool.fingerprint(), call),
    };
    pool.check().unwrap();
    value
}

#[test]
fn making_a_pool() {
    let buffer = std::cell::RefCell::new(vec![0u8; 1 << 19]);
    let configs = [
        fixed(1 << 16),
        PoolConfig { first_region: 1 << 16, ..gated() },
        PoolConfig { first_region: 1 << 18, shards: 4, ..gated() },
        PoolConfig { auto_frames: true, ..gated() },
        PoolConfig { debug: DebugOptions::ALL, max_blocks: Some(100), first_region: 1 << 16, ..gated() },
    ];
    for (i, config) in configs.iter().enumerate() {
        every_refusal(&format!("making pool {i}"), || {
            let held = change(|g| g.held);
            drop(attempt(0, || change(|g| (g.held - held) as u64), || Pool::new(config.clone())));
        });
    }
    for shards in [1, 5] {
        every_refusal("lending a buffer", || {
            let pool = Pool::new(PoolConfig { shards, growth: Growth::None, ..PoolConfig::default() }).unwrap();
            let mut buffer = buffer.borrow_mut();
            let start = NonNull::new(buffer.as_mut_ptr()).unwrap();
            let bytes = buffer.len();
            // SAFETY: the buffer is used by nobody else until the pool is gone.
            on(&pool, || unsafe { pool.lend(start, bytes) });
            assert_eq!(pool.stats().regions as usize, shards);
        });
    }
}

/// Blocks of many sizes, resized and freed, on a pool that has to grow.
fn use_a_pool(config: &PoolConfig) {
    let pool = Pool::new(config.clone()).unwrap();
    let mut live = Vec::with_capacity(400);
    for i in 0..200usize {
        let bytes = if i % 16 == 0 { 20_000 } else { 40 + i * 3 % 300 };
        let p = on(&pool, || Ok(pool.alloc(bytes, 1 << (i % 10))?));
        fill(p, 0, bytes, i as u8);
        live.push((p, bytes, i as u8));
    }
    for i in (0..200).step_by(7) {
        let (p, bytes, mark) = live[i];
        // SAFETY: on success only the new pointer is used; a failure leaves the old one.
        let q = on(&pool, || Ok(unsafe { pool.realloc(Some(p), bytes * 3) }?));
        assert!(holds(q, bytes, mark), "contents were lost");
        live[i].0 = q;
    }
    for (p, bytes, mark) in live {
        assert!(holds(p, bytes, mark));
        change(|g| g.on = true);
        // Nothing that gives memory back may need any.
        let freed = free(&pool, p);
        change(|g| g.on = false);
        freed.unwrap();
    }
    pool.trim(0);
    assert!(pool.destroy().is_ok());
}

#[test]
fn growing_a_pool() {
    every_refusal("growth", || use_a_pool(&gated()));
    let geometric = PoolConfig { growth: Growth::Geometric { first: 1 << 14 }, ..gated() };
    every_refusal("geometric growth", || use_a_pool(&geometric));
    every_refusal("growth of shards", || use_a_pool(&PoolConfig { shards: 3, ..gated() }));
}

#[test]
fn growing_the_records_of_one_region() {
    let config = PoolConfig { first_region: 1 << 20, growth: Growth::None, ..gated() };
    every_refusal("records", || {
        let pool = Pool::new(config.clone()).unwrap();
        let blocks: Vec<_> = (0..2000).map(|_| attempt(0, || 0, || Ok(pool.alloc(1, 1)?))).collect();
        pool.check().unwrap();
        blocks.into_iter().for_each(|p| free(&pool, p).unwrap());
    });
}

#[test]
fn checking_blocks() {
    for quarantine in [0, 1 << 14] {
        let debug = DebugOptions { quarantine, sanitizer: false, ..DebugOptions::ALL };
        change(|g| g.quarantine = quarantine > 0);
        every_refusal("checks", || use_a_pool(&PoolConfig { debug, ..gated() }));
    }
}

#[test]
fn falling_back() {
    let one = PoolConfig { first_region: 1 << 12, growth: Growth::None, ..gated() };
    every_refusal("fallback to the system", || use_a_pool(&PoolConfig { fallback: Fallback::System, ..one.clone() }));
    every_refusal("fallback to a pool", || {
        let other = Arc::new(Pool::new(gated()).unwrap());
        use_a_pool(&PoolConfig { fallback: Fallback::Pool(other.clone()), ..one.clone() });
        assert_eq!(other.stats().heap.blocks, 0);
        other.check().unwrap();
    });
}

#[test]
fn recording_a_trace() {
    unsafe extern "C" fn write(_: *mut c_void, _: *const u8, _: usize) {}
    let callback = TraceCallback { write, user: std::ptr::null_mut() };
    every_refusal("the recorder", || {
        let pool = Pool::new(fixed(1 << 20)).unwrap();
        on(&pool, || pool.trace_to(callback));
        let mut live = Vec::with_capacity(100);
        for i in 0..100 {
            let p = on(&pool, || Ok(pool.alloc(100 + i, 1)?));
            // SAFETY: only the new pointer is used.
            live.push(on(&pool, || Ok(unsafe { pool.realloc(Some(p), 300) }?)));
        }
        change(|g| g.on = true);
        live.iter().step_by(2).for_each(|&p| free(&pool, p).unwrap());
        pool.trace_stop().unwrap();
        change(|g| g.on = false);
        live.iter().skip(1).step_by(2).for_each(|&p| free(&pool, p).unwrap());
        pool.destroy().unwrap();
    });
}

#[test]
fn replaying_frames() {
    // Enough blocks that a table with an entry each is not small.
    let layers = |pool: &Pool, gated: bool| {
        change(|g| (g.on, g.from) = (gated, SMALL));
        let mut frame = pool.frame_begin(5);
        change(|g| g.on = false);
        let mut last: Option<NonNull<u8>> = None;
        for i in 0..300usize {
            let bytes = 100 + i * 37 % 1000;
            // The frame is borrowed by the call alone, and a frame has no structure of its own to compare.
            let p = attempt(SMALL, || 0, || Ok(frame.alloc(bytes, 128)?));
            fill(p, 0, bytes, i as u8);
            if let Some(last) = last.replace(p) {
                // SAFETY: not used afterwards.
                unsafe { frame.free(last) }.unwrap();
            }
            assert!(holds(p, bytes, i as u8));
        }
        // SAFETY: not used afterwards.
        last.into_iter().for_each(|p| unsafe { frame.free(p) }.unwrap());
    };
    every_refusal("frames", || {
        let pool = Pool::new(gated()).unwrap();
        layers(&pool, false);
        // A first area, then a second one beside it, then one that was given back.
        layers(&pool, true);
        {
            let _held = pool.frame_begin(5);
            layers(&pool, true);
        }
        pool.trim(0);
        layers(&pool, true);
        pool.check().unwrap();
        pool.destroy().unwrap();
    });
}

#[test]
fn leasing_areas() {
    every_refusal("leases", || {
        let pool = Arc::new(Pool::new(gated()).unwrap());
        let set = Leases::new(pool.clone(), 30_000, 256, 8).unwrap();
        let areas: Vec<_> = (0..8).map(|_| on(&pool, || set.take(false))).collect();
        assert_eq!(set.take(false).unwrap_err().kind, Kind::Busy);
        areas.into_iter().for_each(|area| set.give_back(area).unwrap());
        change(|g| g.on = true);
        set.trim(0);
        change(|g| g.on = false);
        drop(set);
        assert_eq!(pool.stats().heap.blocks, 0);
        pool.check().unwrap();
    });
}

#[test]
fn a_heap_over_offsets() {
    let config = OffsetHeapConfig { bytes: 1 << 24, find: true, ..OffsetHeapConfig::default() };
    every_refusal("a heap over offsets", || {
        let held = change(|g| g.held);
        let heap = attempt(0, || change(|g| (g.held - held) as u64), || OffsetHeap::new(&config));
        let mut live = Vec::with_capacity(500);
        for i in 0..500 {
            live.push(attempt(0, || heap.fingerprint(), || heap.alloc(&Request::new(i * 7, 1))));
        }
        heap.check().unwrap();
        change(|g| g.on = true);
        for handle in live {
            heap.free(handle).unwrap();
        }
        change(|g| g.on = false);
        heap.check().unwrap();
    });
}
