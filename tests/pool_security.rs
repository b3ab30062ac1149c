//! The public list of small programs that misuse an allocator, item by item, and the figure "bad frees detected".
//!
//! Items that write where they must not run with guards and poison on; everything else on a pool as it comes.

mod pool_support;

use std::ptr::NonNull;

use arenite::error::Kind;
use arenite::heap::{pages_for, Handle, Heap, Node};
use arenite::runtime::{DebugOptions, Pool, PoolConfig};
use pool_support::{fill, fixed, free, holds, realloc, Rng};

fn pool() -> Pool {
    Pool::new(fixed(1 << 22)).unwrap()
}

/// A pool that looks for writes outside blocks.
fn watched() -> Pool {
    let debug = DebugOptions { quarantine: 1 << 16, sanitizer: false, ..DebugOptions::ALL };
    Pool::new(PoolConfig { debug, first_region: 8 << 20, ..PoolConfig::default() }).unwrap()
}

/// A bad free is refused, is counted, and changes nothing.
fn refused(pool: &Pool, p: NonNull<u8>) {
    let (before, bad) = (pool.fingerprint(), pool.stats().bad);
    assert_eq!(free(pool, p).unwrap_err().kind, Kind::Argument);
    assert_eq!((pool.fingerprint(), pool.stats().bad), (before, bad + 1));
    pool.check().unwrap();
}

fn at(p: NonNull<u8>, offset: isize) -> NonNull<u8> {
    NonNull::new(p.as_ptr().wrapping_offset(offset)).unwrap()
}

#[test]
fn double_free() {
    let pool = pool();
    let p = pool.alloc(64, 1).unwrap();
    free(&pool, p).unwrap();
    refused(&pool, p);
}

#[test]
fn double_free_interleaved() {
    let pool = pool();
    let (p, q) = (pool.alloc(64, 1).unwrap(), pool.alloc(64, 1).unwrap());
    free(&pool, p).unwrap();
    free(&pool, q).unwrap();
    refused(&pool, p);
    refused(&pool, q);
}

#[test]
fn double_free_delayed() {
    let pool = pool();
    let p = pool.alloc(64, 1).unwrap();
    free(&pool, p).unwrap();
    let kept: Vec<_> = (0..100).map(|i| pool.alloc(5000 + i, 1).unwrap()).filter(|&q| q != p).collect();
    if kept.len() == 100 {
        refused(&pool, p);
    }
    kept.into_iter().for_each(|q| free(&pool, q).unwrap());
    refused(&pool, p);
}

#[test]
fn double_free_of_a_large_block() {
    let pool = pool();
    let p = pool.alloc(1 << 20, 1).unwrap();
    free(&pool, p).unwrap();
    refused(&pool, p);
    let q = pool.alloc(1 << 21, 1).unwrap();
    if p != q {
        refused(&pool, p);
    }
    free(&pool, q).unwrap();
}

#[test]
fn double_free_by_a_resize() {
    let pool = pool();
    let p = pool.alloc(64, 1).unwrap();
    let wall = pool.alloc(64, 1).unwrap();
    let q = realloc(&pool, p, 100_000).unwrap();
    assert_ne!(p, q);
    refused(&pool, p);
    assert_eq!(realloc(&pool, p, 10).unwrap_err().error.kind, Kind::Argument);
    free(&pool, q).unwrap();
    assert_eq!(realloc(&pool, q, 10).unwrap_err().error.kind, Kind::Argument);
    free(&pool, wall).unwrap();
}

#[test]
fn invalid_free_unaligned_and_inside_a_small_block() {
    let pool = pool();
    let p = pool.alloc(1000, 1).unwrap();
    for offset in (1..1024).chain([-1, -8, -128]) {
        refused(&pool, at(p, offset));
    }
    free(&pool, p).unwrap();
}

#[test]
fn invalid_free_inside_a_large_block() {
    let pool = pool();
    let p = pool.alloc(1 << 20, 1).unwrap();
    for offset in [1, 16, 127, 128, 4096, 1 << 19, (1 << 20) - 128, (1 << 20) - 1, 1 << 20] {
        refused(&pool, at(p, offset));
    }
    free(&pool, p).unwrap();
}

#[test]
fn invalid_free_of_the_stack_of_a_static_of_another_heap_and_of_no_address() {
    static CONSTANT: u64 = 1;
    let (pool, other) = (pool(), self::pool());
    let local = 7u64;
    let boxed = Box::new(1u8);
    let foreign = other.alloc(64, 1).unwrap();
    let bad = [
        NonNull::from(&local).cast(),
        NonNull::from(&CONSTANT).cast(),
        NonNull::from(&*boxed),
        foreign,
        NonNull::dangling(),
        NonNull::new(usize::MAX as *mut u8).unwrap(),
        NonNull::new((usize::MAX - 127) as *mut u8).unwrap(),
        NonNull::new(4096 as *mut u8).unwrap(),
    ];
    for p in bad {
        refused(&pool, p);
        assert!(pool.usable_size(p).is_none() && !pool.owns(p));
        assert_eq!(realloc(&pool, p, 10).unwrap_err().error.kind, Kind::Argument);
    }
    free(&other, foreign).unwrap();
}

#[test]
fn invalid_free_of_what_was_never_handed_out() {
    let pool = pool();
    let p = pool.alloc(128, 1).unwrap();
    let mut free_places = Vec::new();
    pool.walk(|base, e| {
        if e.handle.is_none() {
            free_places.extend((0..e.bytes.min(100 * 128)).step_by(128).map(|o| base + (e.offset + o) as usize));
        }
    });
    assert!(!free_places.is_empty());
    for address in free_places {
        refused(&pool, NonNull::new(address as *mut u8).unwrap());
    }
    free(&pool, p).unwrap();
}

#[test]
fn free_with_another_size() {
    let pool = pool();
    let p = pool.alloc(1000, 1).unwrap();
    for bytes in [0, 1, 999, 1001, 1024, usize::MAX] {
        // SAFETY: refused.
        assert_eq!(unsafe { pool.free_sized(p, bytes) }.unwrap_err().kind, Kind::Argument);
    }
    // SAFETY: not used afterwards.
    unsafe { pool.free_sized(p, 1000) }.unwrap();
}

#[test]
fn usable_size_of_what_is_not_live() {
    let pool = pool();
    let p = pool.alloc(1000, 1).unwrap();
    assert_eq!(pool.usable_size(p), Some(1024));
    assert!(pool.usable_size(at(p, 8)).is_none() && pool.usable_size(at(p, 128)).is_none());
    free(&pool, p).unwrap();
    assert!(pool.usable_size(p).is_none());
}

#[test]
fn impossibly_large_requests() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    for bytes in [usize::MAX, usize::MAX - 4096, isize::MAX as usize, isize::MAX as usize + 1, 1 << 62] {
        assert!(pool.alloc(bytes, 1).is_err() && pool.alloc_zeroed(bytes, 4096).is_err());
    }
    pool.check().unwrap();
}

#[test]
fn blocks_of_no_bytes_have_addresses_of_their_own() {
    let pool = pool();
    let mut seen: Vec<_> = (0..1000).map(|_| pool.alloc(0, 1).unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 1000);
    for p in seen {
        free(&pool, p).unwrap();
        refused(&pool, p);
    }
}

#[test]
fn zeroed_memory_is_zero_whatever_was_there() {
    let pool = pool();
    let p = pool.alloc(1 << 21, 1).unwrap();
    fill(p, 0, 1 << 21, 0x5A);
    free(&pool, p).unwrap();
    for bytes in [1, 127, 128, 4097, 1 << 20] {
        let p = pool.alloc_zeroed(bytes, 1).unwrap();
        // SAFETY: the block holds so many bytes.
        assert!((0..bytes).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == 0));
        fill(p, 0, bytes, 0x5A);
        free(&pool, p).unwrap();
    }
}

/// Writes one byte at `offset` from a block, inside the pool's memory, and undoes it once it was found.
fn stray(bytes: usize, align: usize, offset: isize) {
    let pool = watched();
    // Neighbours on both sides, so that the write never leaves the pool.
    let around = [pool.alloc(2 << 20, 1).unwrap(), pool.alloc(2 << 20, 1).unwrap()];
    let p = pool.alloc(bytes, align).unwrap();
    pool.check().unwrap();
    let target = at(p, offset);
    let inside = pool.owns(target);
    assert!(inside, "the test writes to the pool's memory only");
    // SAFETY: the pool's memory, mapped and used by this thread alone.
    let old = unsafe { target.read() };
    // SAFETY: as above.
    unsafe { target.write(old ^ 0x55) };
    let e = pool.check().expect_err("the write was found");
    assert_eq!(e.kind, Kind::Argument, "{bytes} {offset}");
    // SAFETY: as above.
    unsafe { target.write(old) };
    pool.check().unwrap();
    for p in [p, around[0], around[1]] {
        free(&pool, p).unwrap();
    }
}

#[test]
fn overflow_by_one_byte_32_bytes_and_a_granule() {
    for bytes in [1usize, 100, 127, 128, 1000, 4096, 100_000] {
        for by in [1, 8, 32, 128] {
            stray(bytes, 1, (bytes + by - 1) as isize);
        }
    }
}

#[test]
fn underflow_by_one_byte_32_bytes_and_a_granule() {
    for (bytes, align) in [(1usize, 1usize), (128, 1), (1000, 4096), (100_000, 1)] {
        for by in [1isize, 8, 32, 128] {
            stray(bytes, align, -by);
        }
    }
}

/// A run of a megabyte past the end or before the start ruins other blocks, but never the heap: every block is still known,
/// freed with an error or without, and the structure holds.
#[test]
fn a_megabyte_past_either_end_ruins_no_structure() {
    for before in [false, true] {
        let pool = Pool::new(fixed(8 << 20)).unwrap();
        let blocks: Vec<_> = (0..60).map(|_| pool.alloc(100_000, 1).unwrap()).collect();
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        let shape = pool.fingerprint();
        let start = if before { at(sorted[30], -(1 << 20)) } else { sorted[30] };
        assert!(pool.owns(start) && pool.owns(at(start, 1 << 20)));
        // SAFETY: the pool's memory, used by this thread alone.
        unsafe { start.write_bytes(0xA5, 1 << 20) };
        pool.check().unwrap();
        assert_eq!(pool.fingerprint(), shape, "records lie elsewhere");
        blocks.into_iter().for_each(|p| free(&pool, p).unwrap());
        assert_eq!(pool.stats().largest_free, 8 << 20);
    }
}

#[test]
fn a_megabyte_past_either_end_is_found_and_a_block_named() {
    for before in [false, true] {
        let pool = watched();
        let blocks: Vec<_> = (0..40).map(|_| pool.alloc(100_000, 1).unwrap()).collect();
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        let start = if before { at(sorted[20], -(1 << 20)) } else { at(sorted[20], 100_000) };
        // SAFETY: the pool's memory, used by this thread alone.
        unsafe { start.write_bytes(0xA5, 1 << 20) };
        let e = pool.check().unwrap_err();
        let named = e.needed.unwrap() as usize;
        assert!(e.kind == Kind::Argument && blocks.iter().any(|b| b.as_ptr() as usize == named));
        let refused = blocks.iter().filter(|&&b| free(&pool, b).is_err()).count();
        assert!((10..=12).contains(&refused), "{refused} blocks were hit");
    }
}

#[test]
fn write_after_free_is_found_at_every_byte() {
    for bytes in [1usize, 100, 128, 1000] {
        for i in 0..bytes {
            let debug = DebugOptions { poison: true, quarantine: 1 << 16, ..DebugOptions::default() };
            let pool = Pool::new(PoolConfig { debug, ..fixed(1 << 16) }).unwrap();
            let p = pool.alloc(bytes, 1).unwrap();
            free(&pool, p).unwrap();
            pool.check().unwrap();
            let target = at(p, i as isize);
            // SAFETY: the pool's memory, used by this thread alone.
            let old = unsafe { target.read() };
            // SAFETY: as above.
            unsafe { target.write(old ^ 1) };
            assert_eq!(pool.check().unwrap_err().kind, Kind::Argument, "byte {i} of {bytes}");
        }
    }
}

#[test]
fn read_after_free_sees_poison_and_no_other_block() {
    let pool = watched();
    let p = pool.alloc(1000, 1).unwrap();
    fill(p, 0, 1000, 0x11);
    free(&pool, p).unwrap();
    let q = pool.alloc(1000, 1).unwrap();
    assert_ne!(p, q, "a freed block is kept back");
    // SAFETY: the pool's memory.
    assert!((0..1000).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == 0xDB));
    free(&pool, q).unwrap();
}

#[test]
fn a_double_free_is_refused_after_the_bytes_were_handed_out_again_while_quarantined() {
    let pool = watched();
    let p = pool.alloc(1000, 1).unwrap();
    free(&pool, p).unwrap();
    let others: Vec<_> = (0..10).map(|_| pool.alloc(1000, 1).unwrap()).collect();
    assert!(!others.contains(&p));
    assert!(free(&pool, p).is_err());
    others.into_iter().for_each(|q| free(&pool, q).unwrap());
}

/// Bad frees tried and refused, by kind.
#[derive(Default)]
struct Tally(Vec<(&'static str, u64, u64)>);

impl Tally {
    fn add(&mut self, kind: &'static str, refused: bool) {
        let at = self.0.iter().position(|r| r.0 == kind).unwrap_or_else(|| {
            self.0.push((kind, 0, 0));
            self.0.len() - 1
        });
        self.0[at].1 += 1;
        self.0[at].2 += u64::from(refused);
    }

    fn print(&self, what: &str) {
        for (kind, tried, refused) in &self.0 {
            println!("{what}, {kind}: {refused} of {tried} refused ({:.2} %)", *refused as f64 * 100.0 / *tried as f64);
        }
    }
}

/// How many rounds of each kind; more in a long run.
fn rounds() -> u64 {
    std::env::var("ARENITE_BAD_FREES").ok().and_then(|v| v.parse().ok()).unwrap_or(20_000)
}

#[test]
fn bad_frees_of_pointers_detected() {
    let (pool, other) = (Pool::new(fixed(1 << 20)).unwrap(), Pool::new(fixed(1 << 20)).unwrap());
    let mut r = Rng(11);
    let mut tally = Tally::default();
    let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
    let foreign: Vec<_> = (0..64).map(|_| other.alloc(r.below(3000) as usize, 1).unwrap()).collect();
    let mut stale: Vec<NonNull<u8>> = Vec::new();
    for round in 0..rounds() {
        let bytes = r.below(6000) as usize;
        if let Ok(p) = pool.alloc(bytes, 1 << r.below(12)) {
            fill(p, 0, bytes.min(64), round as u8);
            live.push((p, bytes, round as u8));
        }
        let mut wrong = |kind, p: NonNull<u8>| {
            let bad = pool.stats().bad;
            let refused = free(&pool, p).is_err() && pool.stats().bad == bad + 1;
            tally.add(kind, refused);
        };
        if live.len() > 60 {
            let (p, bytes, mark) = live.swap_remove(r.below(live.len() as u64) as usize);
            assert!(holds(p, bytes.min(64), mark), "a bad free gave a live block away");
            free(&pool, p).unwrap();
            wrong("double, at once", p);
            stale.push(p);
        }
        if let Some(&(p, bytes, _)) = live.last() {
            wrong("unaligned", at(p, 1 + r.below(127) as isize));
            if bytes > 128 {
                wrong("interior", at(p, (1 + r.below(bytes as u64 - 1)) as isize));
                wrong("interior granule", at(p, (128 * (1 + r.below((bytes as u64 - 1) / 128))) as isize));
            }
        }
        // Freed long ago: refused unless some block starts there now, which only a handle can tell.
        let old = stale[..].get(r.below(stale.len().max(1) as u64) as usize).copied();
        if let Some(p) = old.filter(|p| !live.iter().any(|l| l.0 == *p)) {
            wrong("double, interleaved", p);
        }
        wrong("of another pool", foreign[r.below(64) as usize]);
        let local = 0u64;
        wrong("of the stack", NonNull::from(&local).cast());
        wrong("never allocated", NonNull::new((1 + r.below(1 << 47)) as *mut u8).unwrap());
    }
    pool.check().unwrap();
    tally.print("pointers");
    assert!(tally.0.len() == 8 && tally.0.iter().all(|(_, tried, refused)| tried == refused && *tried > 100));
    for (p, bytes, mark) in live {
        assert!(holds(p, bytes.min(64), mark));
        free(&pool, p).unwrap();
    }
}

#[test]
fn bad_frees_of_handles_detected() {
    let mut heap: Heap<_, _> =
        Heap::with_pages(3, 0, 1 << 20, Vec::<Node>::with_capacity(1 << 14), vec![0; pages_for(1 << 20)]).unwrap();
    let mut other: Heap<_, _> = Heap::new(4, 0, 1 << 20, Vec::with_capacity(1 << 10)).unwrap();
    let foreign = other.alloc(1000, 1).unwrap();
    let mut r = Rng(13);
    let mut tally = Tally::default();
    let (mut live, mut stale): (Vec<Handle>, Vec<Handle>) = (Vec::new(), Vec::new());
    for _ in 0..rounds() {
        live.extend(heap.alloc(r.below(6000), 1 << r.below(12)).ok());
        let mut wrong = |heap: &mut Heap<Vec<Node>, Vec<u32>>, kind, h: Handle| {
            let bad = heap.stats().bad;
            let refused = heap.free(h).is_err() && heap.stats().bad == bad + 1;
            tally.add(kind, refused);
        };
        if live.len() > 60 {
            let h = live.swap_remove(r.below(live.len() as u64) as usize);
            heap.free(h).unwrap();
            wrong(&mut heap, "double, at once", h);
            stale.push(h);
        }
        if let Some(&h) = stale.get(r.below(stale.len().max(1) as u64) as usize) {
            wrong(&mut heap, "double, also after reuse", h);
        }
        if let Some(&h) = live.last() {
            let [region, granule, node, generation] = h.to_words();
            let words =
                [r.below(1 << 32) as u32, r.below(1 << 13) as u32, r.below(128) as u32, r.below(1 << 32) as u32];
            wrong(&mut heap, "interior", Handle::from_words([region, granule + 1, node, generation]));
            wrong(&mut heap, "another region", Handle::from_words([region + 1, granule, node, generation]));
            wrong(&mut heap, "another generation", Handle::from_words([region, granule, node, generation + 1]));
            wrong(&mut heap, "another node", Handle::from_words([region, granule, node + 1, generation]));
            if !live.iter().any(|l| l.to_words() == words) {
                wrong(&mut heap, "made up", Handle::from_words(words));
            }
        }
        wrong(&mut heap, "of another heap", foreign);
        wrong(&mut heap, "zeros", Handle::from_words([0; 4]));
    }
    heap.check().unwrap();
    tally.print("handles");
    assert!(tally.0.len() == 9 && tally.0.iter().all(|(_, tried, refused)| tried == refused && *tried > 100));
}
