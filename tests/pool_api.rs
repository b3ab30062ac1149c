//! The pool: contents, misuse, growth, fallback, trim and refused memory.

mod pool_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use std::sync::Arc;

use arenite::error::Kind;
use arenite::heap::Request;
use arenite::runtime::source::Callbacks;
use arenite::runtime::{DebugOptions, Fallback, Growth, Pool, PoolConfig, RegionSource, Tail};
use pool_support::{fill, fixed, free, holds, realloc, Rng};

/// The system's heap, which refuses the k-th request of this thread when told to.
struct Refusing;

thread_local! {
    static UNTIL: Cell<i64> = const { Cell::new(-1) };
}

#[global_allocator]
static HEAP: Refusing = Refusing;

// SAFETY: forwards to the system's heap, or returns null, which every caller must expect.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = UNTIL.with(Cell::get);
        if left == 0 {
            return std::ptr::null_mut();
        }
        if left > 0 {
            UNTIL.with(|u| u.set(left - 1));
        }
        // SAFETY: the contract of this function is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the contract of this function is that of the system's.
        unsafe { System.dealloc(p, layout) }
    }
}

fn contents(config: PoolConfig, seed: u64, ops: u32) {
    let pool = Pool::new(config).unwrap();
    let mut r = Rng(seed);
    let mut live: Vec<(NonNull<u8>, usize, usize, u8)> = Vec::new();
    for op in 0..ops {
        let bytes = if r.below(8) == 0 { r.below(40_000) } else { r.below(1500) } as usize;
        match r.below(5) {
            0 | 1 if live.len() < 200 => {
                let align = 1 << r.below(14);
                let Ok(p) = pool.alloc(bytes, align) else { continue };
                assert_eq!(p.as_ptr() as usize % align.max(128), 0);
                assert!(pool.usable_size(p).unwrap() >= bytes);
                fill(p, 0, bytes, op as u8);
                live.push((p, bytes, align, op as u8));
            }
            2 if !live.is_empty() => {
                let i = r.below(live.len() as u64) as usize;
                let (p, old, align, mark) = live[i];
                // SAFETY: only the returned pointer is used afterwards.
                let new = unsafe { pool.realloc_with(Some(p), bytes, r.below(3) as usize * 1000) };
                let Ok(q) = new else { continue };
                assert_eq!(q.as_ptr() as usize % align, 0, "BR-34");
                assert!(holds(q, old.min(bytes), mark), "contents were lost in a resize");
                fill(q, old.min(bytes), bytes, mark);
                live[i] = (q, bytes, align, mark);
            }
            _ if !live.is_empty() => {
                let i = r.below(live.len() as u64) as usize;
                let (p, bytes, _, mark) = live.swap_remove(i);
                assert!(holds(p, bytes, mark), "a block changed while it was live");
                free(&pool, p).unwrap();
                assert_eq!(free(&pool, p).unwrap_err().kind, Kind::Argument);
                if bytes > 1 {
                    // SAFETY: inside the block that was.
                    assert!(free(&pool, unsafe { p.add(1) }).is_err());
                }
            }
            _ => {}
        }
        if op % 512 == 0 {
            pool.check().unwrap();
            let s = pool.stats();
            assert_eq!(s.heap.live + s.heap.free, s.heap.total);
        }
        if op % 2000 == 1999 {
            pool.trim(r.below(2) * 100_000);
        }
    }
    for (p, bytes, _, mark) in live {
        assert!(holds(p, bytes, mark));
        free(&pool, p).unwrap();
    }
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

#[test]
fn contents_survive_everything() {
    contents(fixed(1 << 20), 1, 20_000);
    contents(PoolConfig::default(), 2, 20_000);
    contents(PoolConfig { growth: Growth::Exact { at_least: 0 }, ..PoolConfig::default() }, 3, 8000);
    let tails = [Tail::Readable(64), Tail::Exclusive(30)];
    for (i, tail) in tails.into_iter().enumerate() {
        contents(PoolConfig { tail, ..fixed(1 << 19) }, 10 + i as u64, 8000);
    }
    contents(PoolConfig { fallback: Fallback::System, ..fixed(1 << 17) }, 4, 8000);
    let other = Arc::new(Pool::new(PoolConfig::default()).unwrap());
    contents(PoolConfig { fallback: Fallback::Pool(other.clone()), ..fixed(1 << 17) }, 5, 8000);
    assert_eq!(other.stats().heap.blocks, 0);
    contents(PoolConfig { debug: DebugOptions::ALL, ..PoolConfig::default() }, 6, 8000);
    contents(PoolConfig { source: RegionSource::MapHuge, ..PoolConfig::default() }, 7, 4000);
    contents(PoolConfig { shards: 4, ..fixed(1 << 20) }, 8, 8000);
    contents(PoolConfig { shards: 3, debug: DebugOptions::ALL, ..PoolConfig::default() }, 9, 4000);
}

#[test]
fn a_lent_buffer_works_at_any_base() {
    let mut buffer = vec![0u8; 8192];
    for shift in 0..260 {
        let bytes = buffer.len() - shift;
        let start = NonNull::new(buffer[shift..].as_mut_ptr()).unwrap();
        // SAFETY: the buffer outlives the pool and nobody else uses it.
        let pool = unsafe { Pool::over(start, bytes, fixed(0)) }.unwrap();
        let all = pool.stats().largest_free;
        assert!(all as usize + 127 + 127 >= bytes);
        let p = pool.alloc(all as usize, 1).unwrap();
        fill(p, 0, all as usize, 1);
        assert!(pool.alloc(1, 1).is_err());
        free(&pool, p).unwrap();
    }
    // BR-26: once a size works, every larger one does; what is missing falls by one a byte.
    let start = NonNull::new(buffer.as_mut_ptr()).unwrap();
    let mut last: Option<u64> = None;
    for bytes in 0..600 {
        // SAFETY: as above.
        match unsafe { Pool::over(start, bytes, fixed(0)) } {
            Ok(_) => last = Some(0),
            Err(e) => {
                assert_eq!(e.kind, Kind::Capacity);
                let missing = e.needed.unwrap() - e.available.unwrap();
                assert!(last.is_none_or(|l| l == missing + 1), "{bytes}");
                last = Some(missing);
            }
        }
    }
    assert_eq!(last, Some(0));
}

#[test]
fn br_23_24_the_misuse_grid_is_refused_and_changes_nothing() {
    let pool = Pool::new(fixed(4096)).unwrap();
    let before = pool.fingerprint();
    for bytes in (0..4096).map(|k| usize::MAX - k).chain([4097, isize::MAX as usize, usize::MAX / 2 + 1]) {
        for align in [1, 128, 4096, 1 << 62] {
            assert_eq!(pool.alloc(bytes, align).unwrap_err().error.kind, Kind::Capacity);
        }
    }
    for align in [0, 3, 100, usize::MAX] {
        let e = pool.alloc(8, align).unwrap_err().error;
        assert_eq!((e.kind, e.needed), (Kind::Alignment, Some(align as u64)));
    }
    assert_eq!(pool.fingerprint(), before);
    let grown = Pool::new(PoolConfig::default()).unwrap();
    for bytes in (0..4096).map(|k| usize::MAX - k) {
        assert!(grown.alloc(bytes, 128).is_err());
    }
    let p = pool.alloc(0, 1).unwrap();
    let q = realloc(&pool, p, 128).unwrap();
    assert!(realloc(&pool, q, usize::MAX - 64).is_err());
    assert!(pool.usable_size(q).is_some(), "a refused resize leaves the old block");
    free(&pool, q).unwrap();
    let stack = 7u64;
    for bad in [q, NonNull::from(&stack).cast(), NonNull::dangling(), NonNull::new(usize::MAX as *mut u8).unwrap()] {
        assert!(free(&pool, bad).is_err());
        assert!(realloc(&pool, bad, 10).is_err());
        assert!(pool.usable_size(bad).is_none());
    }
    pool.check().unwrap();
}

#[test]
fn br_29_a_source_that_fails_at_call_k_leaves_the_pool_usable() {
    static LEFT: AtomicI64 = AtomicI64::new(0);
    static OUT: AtomicI64 = AtomicI64::new(0);
    unsafe extern "C" fn get(_: *mut core::ffi::c_void, bytes: usize, align: usize) -> *mut core::ffi::c_void {
        if LEFT.fetch_sub(1, Ordering::SeqCst) == 0 {
            return std::ptr::null_mut();
        }
        OUT.fetch_add(1, Ordering::SeqCst);
        let layout = Layout::from_size_align(bytes, align.max(4096)).unwrap();
        // SAFETY: the pool asks for more than no bytes.
        unsafe { System.alloc(layout) }.cast()
    }
    unsafe extern "C" fn put(_: *mut core::ffi::c_void, p: *mut core::ffi::c_void, bytes: usize, align: usize) {
        OUT.fetch_sub(1, Ordering::SeqCst);
        let layout = Layout::from_size_align(bytes, align.max(4096)).unwrap();
        // SAFETY: what `get` returned.
        unsafe { System.dealloc(p.cast(), layout) }
    }
    let fns = Callbacks { allocate: get, deallocate: put, user: std::ptr::null_mut() };
    for k in 1..=20 {
        LEFT.store(k, Ordering::SeqCst);
        let growth = Growth::Exact { at_least: 8192 };
        let pool =
            Pool::new(PoolConfig { source: RegionSource::Functions(fns), growth, ..PoolConfig::default() }).unwrap();
        let mut live = Vec::new();
        let mut refused = 0;
        while refused == 0 {
            let before = pool.fingerprint();
            match pool.alloc(6000, 64) {
                Ok(p) => live.push(p),
                Err(e) => {
                    assert_eq!(e.error.kind, Kind::NoMemory);
                    assert_eq!(pool.fingerprint(), before);
                    refused += 1;
                }
            }
        }
        assert_eq!(live.len() as i64, k);
        live.push(pool.alloc(6000, 64).expect("the retry succeeds"));
        for p in live {
            free(&pool, p).unwrap();
        }
        pool.check().unwrap();
        drop(pool);
        assert_eq!(OUT.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn refused_records_leave_the_pool_as_it_was() {
    // Every allocation the pool makes for itself is refused in turn, in making a pool and in using it.
    let mut built = 0;
    for k in 0..40 {
        UNTIL.with(|u| u.set(k));
        let pool = Pool::new(PoolConfig { first_region: 1 << 16, ..fixed(0) });
        UNTIL.with(|u| u.set(-1));
        built += u32::from(pool.is_ok());
    }
    assert!(built > 0, "some k was past the last allocation");
    for k in 0..6 {
        let pool = Pool::new(PoolConfig { first_region: 1 << 16, ..fixed(0) }).unwrap();
        let mut live = Vec::with_capacity(600);
        UNTIL.with(|u| u.set(k));
        let (mut full, mut refusals) = (false, 0);
        while !full && refusals < 3 {
            let before = pool.fingerprint();
            match pool.alloc(100, 1) {
                Ok(p) => live.push(p),
                Err(_) => {
                    assert_eq!(pool.fingerprint(), before);
                    refusals += 1;
                    full = live.len() == 512;
                }
            }
        }
        UNTIL.with(|u| u.set(-1));
        while let Ok(p) = pool.alloc(100, 1) {
            live.push(p);
        }
        assert_eq!(live.len(), 512, "with memory back, every granule can be used");
        for p in live {
            free(&pool, p).unwrap();
        }
        pool.check().unwrap();
    }
}

#[test]
fn br_40_a_pool_with_live_blocks_is_not_destroyed() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let (a, b) = (pool.alloc(10, 1).unwrap(), pool.alloc(10, 1).unwrap());
    let (pool, e) = pool.destroy().unwrap_err();
    assert_eq!((e.kind, e.needed), (Kind::Busy, Some(2)));
    let other = Pool::new(PoolConfig::default()).unwrap();
    let c = other.alloc(1, 1).unwrap();
    assert!(free(&pool, c).is_err());
    free(&pool, a).unwrap();
    free(&pool, b).unwrap();
    assert!(pool.destroy().is_ok());
}

#[test]
fn br_42_a_zeroing_resize_clears_what_a_shrink_left() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let p = pool.alloc_zeroed(6144, 128).unwrap();
    fill(p, 0, 6144, 0x7B);
    // SAFETY: only the returned pointer is used.
    let p = unsafe { pool.realloc_zeroed(Some(p), 3000) }.unwrap();
    // SAFETY: as above.
    let p = unsafe { pool.realloc_zeroed(Some(p), 6144) }.unwrap();
    assert!(holds(p, 3000, 0x7B));
    // SAFETY: the block holds 6144 bytes.
    assert!((3000..6144).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == 0));
    free(&pool, p).unwrap();
}

#[test]
fn a_resize_keeps_all_that_could_be_used() {
    let poison = DebugOptions { poison: true, quarantine: 4096, ..DebugOptions::default() };
    let configs = [
        PoolConfig::default(),
        PoolConfig { debug: poison, ..PoolConfig::default() },
        PoolConfig { auto_frames: true, ..PoolConfig::default() },
        PoolConfig { tail: Tail::Exclusive(30), shards: 2, ..PoolConfig::default() },
    ];
    for config in configs {
        let pool = Pool::new(config).unwrap();
        for round in 0..20 {
            let p = pool.alloc(100, 64).unwrap();
            let neighbour = pool.alloc(100, 64).unwrap();
            let usable = pool.usable_size(p).unwrap();
            fill(p, 0, usable, round);
            let p = realloc(&pool, p, 5000).unwrap();
            assert!(holds(p, usable, round));
            free(&pool, p).unwrap();
            free(&pool, neighbour).unwrap();
        }
    }
}

#[test]
fn a_source_that_gives_the_same_memory_twice_is_refused() {
    static GIVEN: AtomicI64 = AtomicI64::new(0);
    static TAKEN: AtomicI64 = AtomicI64::new(0);
    unsafe extern "C" fn get(user: *mut core::ffi::c_void, _: usize, align: usize) -> *mut core::ffi::c_void {
        GIVEN.fetch_add(1, Ordering::SeqCst);
        // Another place in the same memory each time.
        let shift = GIVEN.load(Ordering::SeqCst) as usize * 4096;
        user.wrapping_byte_add(user.align_offset(align.max(4096)) + shift)
    }
    unsafe extern "C" fn put(_: *mut core::ffi::c_void, _: *mut core::ffi::c_void, _: usize, _: usize) {
        TAKEN.fetch_add(1, Ordering::SeqCst);
    }
    let mut memory = vec![0u8; 1 << 20];
    let source =
        RegionSource::Functions(Callbacks { allocate: get, deallocate: put, user: memory.as_mut_ptr().cast() });
    for shards in [1, 3] {
        GIVEN.store(0, Ordering::SeqCst);
        TAKEN.store(0, Ordering::SeqCst);
        let growth = Growth::Exact { at_least: 1 << 16 };
        let pool = Pool::new(PoolConfig { source, growth, shards, ..PoolConfig::default() }).unwrap();
        let first = pool.alloc(60_000, 64).unwrap();
        fill(first, 0, 60_000, 9);
        let before = (pool.fingerprint(), pool.stats().reserved);
        let refused = pool.alloc(60_000, 64).unwrap_err();
        assert_eq!((refused.error.kind, (pool.fingerprint(), pool.stats().reserved)), (Kind::NoMemory, before));
        assert_eq!(TAKEN.load(Ordering::SeqCst), 0, "what is in use was given back");
        assert!(holds(first, 60_000, 9) && pool.stats().regions == 1);
        free(&pool, first).unwrap();
        drop(pool);
        assert_eq!(TAKEN.load(Ordering::SeqCst), 1);
    }
}

/// A source that keeps its own records in the pool that it feeds: the request inside it grows the pool, too.
#[test]
fn a_source_may_ask_its_own_pool() {
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
    static DEPTH: AtomicI64 = AtomicI64::new(0);
    unsafe extern "C" fn get(_: *mut core::ffi::c_void, bytes: usize, align: usize) -> *mut core::ffi::c_void {
        // SAFETY: set to a pool that outlives its use here.
        let pool = unsafe { POOL.load(Ordering::SeqCst).as_ref() };
        if DEPTH.fetch_add(1, Ordering::SeqCst) == 0 {
            if let Some(pool) = pool {
                assert!(pool.alloc(1000, 64).is_ok());
            }
        }
        DEPTH.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: the size is not 0.
        unsafe { std::alloc::alloc(Layout::from_size_align(bytes, align).unwrap()) }.cast()
    }
    unsafe extern "C" fn put(_: *mut core::ffi::c_void, data: *mut core::ffi::c_void, bytes: usize, align: usize) {
        // SAFETY: as `get` made it.
        unsafe { std::alloc::dealloc(data.cast(), Layout::from_size_align(bytes, align).unwrap()) };
    }
    let source = RegionSource::Functions(Callbacks { allocate: get, deallocate: put, user: std::ptr::null_mut() });
    for shards in [1, 3] {
        let growth = Growth::Exact { at_least: 1 << 16 };
        let pool = Pool::new(PoolConfig { source, growth, shards, ..PoolConfig::default() }).unwrap();
        POOL.store((&raw const pool).cast_mut(), Ordering::SeqCst);
        let blocks = [300_000, 2000, 300_000].map(|bytes| pool.alloc(bytes, 64).unwrap());
        pool.check().unwrap();
        POOL.store(std::ptr::null_mut(), Ordering::SeqCst);
        assert!(blocks.iter().all(|&b| free(&pool, b).is_ok()));
    }
}

#[test]
fn a_buffer_lent_by_two_threads_at_once_is_taken_once() {
    let mut buffer = vec![0u8; 1 << 18];
    let start = buffer.as_mut_ptr() as usize;
    for shards in [1, 3] {
        for _ in 0..300 {
            let pool = Pool::new(PoolConfig { shards, ..fixed(0) }).unwrap();
            let barrier = std::sync::Barrier::new(2);
            let lend = || {
                barrier.wait();
                // SAFETY: the buffer outlives the pool; that the second use of it is refused is the test.
                unsafe { pool.lend(NonNull::new(start as *mut u8).unwrap(), 1 << 18) }.is_ok()
            };
            let taken = std::thread::scope(|s| {
                let other = s.spawn(lend);
                u32::from(lend()) + u32::from(other.join().unwrap())
            });
            assert_eq!((taken, pool.stats().regions), (1, shards as u32));
        }
    }
}

#[test]
fn growth_stops_at_the_cap_and_says_what_is_free() {
    let config = PoolConfig { growth: Growth::Geometric { first: 1 << 16 }, cap: 1 << 20, ..PoolConfig::default() };
    let pool = Pool::new(config).unwrap();
    let mut live = Vec::new();
    let refusal = loop {
        match pool.alloc(10_000, 1) {
            Ok(p) => live.push(p),
            Err(e) => break e,
        }
    };
    assert!(pool.stats().reserved <= 1 << 20);
    assert_eq!(refusal.error.needed, Some(10_000));
    assert_eq!(refusal.error.available, Some(refusal.largest));
    assert!(refusal.free >= refusal.largest && refusal.largest < 10_000);
    assert!(live.len() > 90, "{}", live.len());
    for p in live {
        free(&pool, p).unwrap();
    }
    assert!(pool.trim(0) > 900_000);
    assert_eq!((pool.stats().reserved, pool.stats().regions), (0, 0));
}

fn page() -> usize {
    // SAFETY: reads a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

/// How many of some whole pages are in memory.
fn resident(from: usize, to: usize) -> usize {
    let mut pages = vec![0u8; (to - from) / page()];
    // SAFETY: the range is mapped and `pages` has a byte for each page.
    assert_eq!(unsafe { libc::mincore(from as *mut libc::c_void, to - from, pages.as_mut_ptr()) }, 0);
    pages.iter().filter(|&&p| p & 1 == 1).count()
}

#[test]
fn a_buffer_that_overlaps_a_region_is_refused() {
    let mut buffer = vec![0u8; 8192];
    let start = NonNull::new(buffer.as_mut_ptr()).unwrap();
    // SAFETY: the buffer outlives the pool; that the second use of it is refused is the test.
    let pool = unsafe { Pool::over(start, 4096, fixed(0)) }.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { pool.lend(start, 8192) }.unwrap_err().kind, Kind::Argument);
    let inside = NonNull::new(buffer[2048..].as_mut_ptr()).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { pool.lend(inside, 4096) }.unwrap_err().kind, Kind::Argument);
    let behind = NonNull::new(buffer[4096..].as_mut_ptr()).unwrap();
    // SAFETY: the second half is used by nobody else.
    unsafe { pool.lend(behind, 4096) }.unwrap();
    assert_eq!(pool.stats().regions, 2);
}

#[test]
fn a_trim_leaves_the_statistics_alone() {
    let pool = Pool::new(fixed(1 << 20)).unwrap();
    let p: Vec<_> = (0..20).map(|_| pool.alloc(20_000, 1).unwrap()).collect();
    p.iter().step_by(2).for_each(|&b| free(&pool, b).unwrap());
    let before = pool.stats().heap;
    pool.trim(0);
    let mut after = pool.stats().heap;
    after.max_steps = before.max_steps;
    assert_eq!(after, before);
    pool.check().unwrap();
}

#[test]
fn trim_gives_back_every_wholly_free_page() {
    let pool = Pool::new(fixed(8 << 20)).unwrap();
    let p: Vec<_> = (0..64).map(|_| pool.alloc(100_000, 1).unwrap()).collect();
    for &b in &p {
        fill(b, 0, 100_000, 3);
    }
    for b in p.iter().step_by(2) {
        free(&pool, *b).unwrap();
    }
    // The pages inside the freed blocks. How many of them were in memory depends on what else needs it, how many still are
    // does not.
    let whole = p.iter().step_by(2).map(|b| {
        let from = b.as_ptr() as usize;
        (from.next_multiple_of(page()), (from + 100_000) / page() * page())
    });
    let bytes: usize = whole.clone().map(|(from, to)| to - from).sum();
    let given = pool.trim(0);
    assert!(bytes > 0 && given >= bytes as u64, "{given} of {bytes}");
    assert_eq!(whole.map(|(from, to)| resident(from, to)).sum::<usize>(), 0);
    for b in p.iter().skip(1).step_by(2) {
        assert!(holds(*b, 100_000, 3), "a live block was touched");
        free(&pool, *b).unwrap();
    }
    pool.check().unwrap();
}

#[test]
fn overruns_late_writes_and_leaks_are_named() {
    // Bytes before the start and past the end, under alignments with guards of different sizes.
    for (offset, align) in [(300isize, 1), (331, 128), (427, 4096), (-1, 1), (-32, 4096), (-128, 1 << 16)] {
        let pool = Pool::new(PoolConfig { debug: DebugOptions::ALL, ..PoolConfig::default() }).unwrap();
        let p = pool.alloc(300, align).unwrap();
        assert!((p.as_ptr() as usize).is_multiple_of(align) && pool.usable_size(p) == Some(300));
        pool.set_tag(p, 42);
        pool.check().unwrap();
        // SAFETY: the guards round the block are the pool's memory, so this error of the host is no crash.
        unsafe { p.as_ptr().wrapping_offset(offset).write(1) };
        let e = pool.check().unwrap_err();
        assert_eq!((e.needed, e.available), (Some(p.as_ptr() as u64), Some(300)));
        assert_eq!(e.to_string().contains("before its start"), offset < 0, "{e}");
        assert!(free(&pool, p).is_err());
        let leaks = pool.leaks();
        assert_eq!((leaks.len(), leaks[0].tag, leaks[0].bytes), (1, 42, 300));
        let refusal = realloc(&pool, p, 400).unwrap_err();
        assert_eq!((refusal.error.kind, refusal.error.needed), (Kind::Argument, e.needed), "and not moved");
        assert_eq!(pool.leaks().len(), 1);
    }
    // A megabyte, either way: the heap itself is out of reach.
    for forward in [true, false] {
        let config = PoolConfig { debug: DebugOptions { guards: true, ..DebugOptions::default() }, ..fixed(8 << 20) };
        let pool = Pool::new(config).unwrap();
        let blocks: Vec<_> = (0..12).map(|_| pool.alloc(500_000, 128).unwrap()).collect();
        let p = blocks[6];
        let from = if forward { p.as_ptr() } else { p.as_ptr().wrapping_sub(1 << 20) };
        // SAFETY: blocks of the same pool lie on both sides; their contents are this test's to lose.
        unsafe { from.write_bytes(1, 500_000 + (1 << 20)) };
        assert!(pool.check().is_err() && free(&pool, p).is_err());
        let named = blocks.iter().filter(|&&b| free(&pool, b).is_err()).count();
        assert!((2..=6).contains(&named), "{named}");
        assert!(pool.alloc(100_000, 128).is_ok(), "the pool works on");
    }
    let pool = Pool::new(PoolConfig { debug: DebugOptions::ALL, ..PoolConfig::default() }).unwrap();
    let p = pool.alloc(300, 1).unwrap();
    free(&pool, p).unwrap();
    assert!(free(&pool, p).is_err(), "in quarantine, and so not given out again");
    assert!(pool.alloc(300, 1).unwrap() != p);
    // SAFETY: the pool's memory; the error is the host's.
    unsafe { p.as_ptr().wrapping_add(299).write(1) };
    assert!(pool.check().is_err(), "a write after the free");
}

#[test]
fn tails_are_readable_or_the_blocks_own() {
    let pool = Pool::new(PoolConfig { tail: Tail::Readable(64), ..fixed(8192) }).unwrap();
    let all = pool.stats().largest_free as usize;
    assert_eq!(all, 8192 - 128, "64 bytes are reserved once, in a granule");
    let pool = Pool::new(PoolConfig { tail: Tail::Exclusive(64), ..fixed(8192) }).unwrap();
    let (a, b) = (pool.alloc(128, 1).unwrap(), pool.alloc(128, 1).unwrap());
    assert!((a.as_ptr() as usize).abs_diff(b.as_ptr() as usize) >= 128 + 64);
    assert_eq!(pool.good_size(1), Some(64));
    assert_eq!(pool.usable_size(a), Some(192));
    free(&pool, a).unwrap();
    free(&pool, b).unwrap();
}

#[test]
fn headroom_saves_the_copies_of_a_growing_buffer() {
    let pool = Pool::new(fixed(1 << 20)).unwrap();
    let mut p = pool.alloc_with(&Request::new(1000, 1).extra(64_000)).unwrap();
    let wall = pool.alloc(100, 1).unwrap();
    let first = p;
    for bytes in (2000..64_000).step_by(1000) {
        p = realloc(&pool, p, bytes).unwrap();
    }
    assert_eq!((p, pool.stats().moved_bytes), (first, 0));
    // SAFETY: the block is live, and the size is the one asked for last.
    assert!(unsafe { pool.free_sized(p, 62_999) }.is_err());
    // SAFETY: as above.
    unsafe { pool.free_sized(p, 63_000) }.unwrap();
    free(&pool, wall).unwrap();
}

#[test]
fn a_block_of_the_fallback_has_its_tail_too() {
    for tail in [Tail::Readable(4096), Tail::Exclusive(4096)] {
        let other = Arc::new(Pool::new(PoolConfig::default()).unwrap());
        let pool = Pool::new(PoolConfig { fallback: Fallback::Pool(other.clone()), tail, ..fixed(1 << 16) }).unwrap();
        let block = pool.alloc(1 << 17, 128).unwrap();
        assert!(other.usable_size(block).unwrap() >= (1 << 17) + 4096);
        // SAFETY: the block is live.
        unsafe { pool.free(block) }.unwrap();
        let system = Pool::new(PoolConfig { fallback: Fallback::System, tail, ..fixed(1 << 16) }).unwrap();
        let block = system.alloc(1 << 17, 4096).unwrap();
        // SAFETY: the tail belongs to the block, as `Exclusive` says; with `Readable` this one is its own as well.
        unsafe { block.write_bytes(7, (1 << 17) + 4096) };
        // SAFETY: the block is live.
        unsafe { system.free(block) }.unwrap();
    }
}
