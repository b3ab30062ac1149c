//! Public reports on pools and allocators, each named for what went wrong there.

mod pool_support;

use std::ptr::NonNull;

use arenite::heap::{Request, Side};
use arenite::runtime::{DebugOptions, Growth, OffsetHeap, OffsetHeapConfig, Pool, PoolConfig, RegionSource};
use pool_support::{fill, fixed, free, holds, realloc};

/// Allocates from below, so that blocks lie one behind the other.
fn low(pool: &Pool, bytes: usize, align: usize) -> NonNull<u8> {
    pool.alloc_with(&Request::new(bytes as u64, align as u64).side(Side::Low)).unwrap()
}

fn free_blocks(pool: &Pool) -> (u64, bool) {
    let (mut count, mut adjacent, mut last) = (0, false, false);
    pool.walk(|_, e| {
        let free = e.handle.is_none();
        adjacent |= free && last;
        last = free;
        count += u64::from(free);
    });
    (count, adjacent)
}

/// BR-34: alloc(100, align 4096), a neighbour in the way, realloc to 65536.
#[test]
fn a_resize_keeps_the_alignment_asked_for_at_allocation() {
    for align in (0..=16).map(|b| 1usize << b) {
        let pool = Pool::new(fixed(1 << 20)).unwrap();
        let first = low(&pool, 1, 1);
        let p = low(&pool, 100, align);
        let neighbour = low(&pool, 100, 1);
        fill(p, 0, 100, 7);
        let q = realloc(&pool, p, 65_536).unwrap();
        assert!((q.as_ptr() as usize).is_multiple_of(align) && holds(q, 100, 7));
        // Down again, and up in place, into the block before, and by moving.
        let q = realloc(&pool, q, 50).unwrap();
        assert!((q.as_ptr() as usize).is_multiple_of(align) && holds(q, 50, 7));
        free(&pool, first).unwrap();
        free(&pool, neighbour).unwrap();
        for bytes in [200, 70_000, 300_000, 10, 500_000] {
            let q2 = realloc(&pool, q, bytes);
            let q = q2.unwrap_or(q);
            assert!((q.as_ptr() as usize).is_multiple_of(align) && holds(q, 10, 7), "{align} {bytes}");
            if q2.is_ok() {
                free(&pool, q).unwrap();
                break;
            }
        }
        pool.check().unwrap();
    }
}

/// BR-35: every size and every alignment of powers of two from 1 to 1 MiB, and one more and one less of the sizes.
#[test]
fn an_address_meets_its_alignment_whatever_the_size() {
    for shift in [0, 1, 127, 128, 4095] {
        let mut memory = vec![0u8; (64 << 20) + shift];
        let start = NonNull::new(memory[shift..].as_mut_ptr()).unwrap();
        // SAFETY: the memory outlives the pool.
        let pool = unsafe { Pool::over(start, 64 << 20, fixed(0)) }.unwrap();
        let all = pool.stats().largest_free;
        let mut live: Vec<(usize, usize)> = Vec::new();
        for bits in 0..=20 {
            for bytes in [(1usize << bits) - 1, 1 << bits, (1 << bits) + 1] {
                for align in (0..=20).map(|b| 1usize << b) {
                    let p = pool.alloc(bytes, align).unwrap();
                    let from = p.as_ptr() as usize;
                    assert_eq!(from % align.max(128), 0, "{bytes} bytes at {align}");
                    assert!(live.iter().all(|&(f, b)| from + bytes <= f || f + b <= from), "overlap");
                    live.push((from, bytes));
                    if live.len() == 20 {
                        live.drain(..).for_each(|(f, _)| free(&pool, NonNull::new(f as *mut u8).unwrap()).unwrap());
                        assert_eq!(pool.stats().largest_free, all, "all free is one block");
                    }
                }
            }
        }
        live.drain(..).for_each(|(f, _)| free(&pool, NonNull::new(f as *mut u8).unwrap()).unwrap());
        assert_eq!((pool.stats().largest_free, free_blocks(&pool)), (all, (1, false)));
    }
}

/// BR-37: in a pool of 64 MiB, gaps of 16 MiB, 16 MiB + 128, 32 and 48 MiB from neighbours freed in every order.
#[test]
fn gaps_past_16_mib_merge_in_every_order() {
    let mib = 1usize << 20;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for gap in [16 * mib, 16 * mib + 128, 32 * mib, 48 * mib] {
        for cut in [gap / 3 / 128 * 128, 128, gap - 256] {
            for order in orders {
                let pool = Pool::new(PoolConfig { source: RegionSource::Map, ..fixed(64 * mib) }).unwrap();
                let parts = [cut, 128.min(gap - cut - 128), gap - cut - 128.min(gap - cut - 128)];
                let blocks = parts.map(|bytes| low(&pool, bytes, 1));
                let wall = low(&pool, 128, 1);
                assert_eq!(wall.as_ptr() as usize - blocks[0].as_ptr() as usize, gap);
                for i in order {
                    free(&pool, blocks[i]).unwrap();
                    assert!(!free_blocks(&pool).1, "two free blocks lie side by side");
                    pool.check().unwrap();
                }
                let again = low(&pool, gap, 1);
                assert_eq!(again, blocks[0], "the gap is one block");
                free(&pool, wall).unwrap();
                free(&pool, again).unwrap();
                assert_eq!(pool.stats().largest_free, 64 * mib as u64);
            }
        }
    }
}

/// BR-38: with exactly n bytes free, n bytes are served, freed and served again.
#[test]
fn a_size_that_was_freed_is_served_again() {
    let pool = Pool::new(fixed(1 << 21)).unwrap();
    let total = pool.stats().largest_free as usize;
    for n in (128..=1 << 20).step_by(128) {
        let rest = low(&pool, total - n, 1);
        assert_eq!(pool.stats().heap.free, n as u64);
        for _ in 0..2 {
            let p = pool.alloc(n, 1).unwrap();
            assert!(pool.alloc(1, 1).is_err());
            free(&pool, p).unwrap();
        }
        free(&pool, rest).unwrap();
    }
}

/// BR-40: two live blocks, and everything that is none.
#[test]
fn a_pool_with_live_blocks_stays_and_names_their_number() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    let (p, q) = (pool.alloc(1000, 1).unwrap(), pool.alloc(1000, 1).unwrap());
    let Err((pool, e)) = pool.destroy() else { panic!("it is in use") };
    assert_eq!((e.kind, e.needed), (arenite::error::Kind::Busy, Some(2)));
    let other = Pool::new(PoolConfig::default()).unwrap();
    let foreign = other.alloc(1000, 1).unwrap();
    let before = pool.fingerprint();
    // SAFETY: inside the block.
    for bad in [foreign, unsafe { p.add(128) }, unsafe { p.add(1) }] {
        assert_eq!(free(&pool, bad).unwrap_err().kind, arenite::error::Kind::Argument);
    }
    assert_eq!(pool.fingerprint(), before);
    free(&pool, p).unwrap();
    assert!(free(&pool, p).is_err());
    free(&pool, q).unwrap();
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

/// BR-41: alloc 1000 takes 1024; 300 in place keeps 384 and frees 640, where 640 lands.
#[test]
fn the_tail_of_a_shrunk_block_is_whole_and_used_at_once() {
    let pool = Pool::new(fixed(1 << 16)).unwrap();
    let p = low(&pool, 1000, 1);
    let wall = low(&pool, 1, 1);
    assert_eq!(pool.usable_size(p), Some(1024));
    assert_eq!(realloc(&pool, p, 300).unwrap(), p);
    assert_eq!(pool.usable_size(p), Some(384));
    let tail = low(&pool, 640, 1);
    assert_eq!(tail.as_ptr() as usize - p.as_ptr() as usize, 384);
    pool.check().unwrap();
    // Given back and taken again, and the reused block shrunk in turn.
    for bytes in [640, 513, 257, 129, 1] {
        free(&pool, tail).unwrap();
        assert_eq!(low(&pool, 640, 1), tail);
        assert_eq!(realloc(&pool, tail, bytes).unwrap(), tail);
        pool.check().unwrap();
        assert!(!free_blocks(&pool).1);
    }
    [p, wall, tail].into_iter().for_each(|b| free(&pool, b).unwrap());
    assert_eq!(free_blocks(&pool), (1, false));
}

/// BR-42: zalloc 6144, fill 3072, rezalloc 3072, rezalloc 6144; and the sizes round it.
#[test]
fn a_zeroing_resize_clears_what_a_shrink_left_behind() {
    for (full, part) in [(6144, 3072), (6144, 3000), (6144, 1), (129, 128), (128, 127), (100_000, 99_999)] {
        let pool = Pool::new(fixed(1 << 20)).unwrap();
        let p = pool.alloc_zeroed(full, 1).unwrap();
        fill(p, 0, full, 0x7B);
        // SAFETY: only the new pointer is used, here and below.
        let p = unsafe { pool.realloc_zeroed(Some(p), part) }.unwrap();
        // SAFETY: as above.
        let p = unsafe { pool.realloc_zeroed(Some(p), full) }.unwrap();
        assert!(holds(p, part, 0x7B));
        // SAFETY: the block holds `full` bytes.
        assert!((part..full).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == 0), "{full} {part}");
        free(&pool, p).unwrap();
    }
}

/// BR-44: 40 MiB are used, and nothing is kept once they are given back.
#[test]
fn memory_falls_after_a_run() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    for _ in 0..3 {
        let blocks: Vec<_> = (0..40).map(|_| pool.alloc(1 << 20, 1).unwrap()).collect();
        let kept = pool.alloc(256, 1).unwrap();
        fill(kept, 0, 256, 0xAB);
        assert!(pool.stats().reserved >= 40 << 20);
        blocks.into_iter().for_each(|p| free(&pool, p).unwrap());
        pool.trim(0);
        assert!(holds(kept, 256, 0xAB));
        free(&pool, kept).unwrap();
        pool.trim(0);
        assert_eq!((pool.stats().reserved, pool.stats().regions), (0, 0));
    }
}

/// BR-48: 16 MiB + 512 KiB are needed, and so much is taken, rounded up to pages; doubling only up to a cap.
#[test]
fn growth_by_what_is_needed_takes_no_more() {
    let need = (16 << 20) + (512 << 10);
    let pool = Pool::new(PoolConfig { growth: Growth::Exact { at_least: 0 }, ..PoolConfig::default() }).unwrap();
    let p = pool.alloc(16 << 20, 1).unwrap();
    let q = pool.alloc(512 << 10, 1).unwrap();
    let reserved = pool.stats().reserved;
    assert!((need..=need + 2 * 4096).contains(&reserved), "{reserved}");
    [p, q].into_iter().for_each(|b| free(&pool, b).unwrap());

    let growth = Growth::Geometric { first: 1 << 20 };
    let pool = Pool::new(PoolConfig { growth, cap: 20 << 20, ..PoolConfig::default() }).unwrap();
    let mut live = Vec::new();
    while let Ok(p) = pool.alloc(512 << 10, 1) {
        live.push(p);
        assert!(pool.stats().reserved <= 20 << 20, "past the cap");
    }
    assert!(live.len() >= 33, "{} blocks of 512 KiB under a cap of 20 MiB", live.len());
    live.into_iter().for_each(|p| free(&pool, p).unwrap());
}

/// Rounding a request up must not wrap to a small one (tlsf, the arenas of engines, the buddy allocators).
#[test]
fn a_size_that_rounds_past_the_top_is_no_small_block() {
    let pool = Pool::new(PoolConfig::default()).unwrap();
    for k in 0..4096usize {
        for align in [1, 128, 4096, 1 << 20] {
            assert!(pool.alloc(usize::MAX - k, align).is_err() && pool.alloc(isize::MAX as usize - k, align).is_err());
        }
        let near = Request::new((usize::MAX - k) as u64, 1).extra(k as u64 + 1);
        assert!(pool.alloc_with(&near).is_err());
        assert!(pool.good_size(usize::MAX - k).is_none() || k >= 127);
    }
    assert_eq!(pool.stats().heap.blocks, 0);
}

/// A free block that fits is found behind others of its class that do not (OffsetAllocator: an exact fit was refused).
#[test]
fn a_fit_behind_smaller_blocks_of_its_class_is_found() {
    for count in [1, 8, 9, 40] {
        let pool = Pool::new(fixed(16 << 20)).unwrap();
        let fits = low(&pool, 131 * 128, 1);
        let mut short = Vec::new();
        low(&pool, 1, 1);
        for _ in 0..count {
            short.push(low(&pool, 129 * 128, 1));
            low(&pool, 1, 1);
        }
        let rest = pool.stats().largest_free;
        low(&pool, rest as usize, 1);
        free(&pool, fits).unwrap();
        short.into_iter().for_each(|p| free(&pool, p).unwrap());
        assert_eq!(pool.alloc(131 * 128, 1).unwrap(), fits, "{count} in the way");
    }
}

/// Sizes that vary from run to run neither pile up blocks nor fail (pools that keep whole blocks by size).
#[test]
fn varying_sizes_need_no_more_than_what_is_live_at_a_time() {
    let pool = Pool::new(fixed(4 << 20)).unwrap();
    for run in 0..2000usize {
        let sizes: [usize; 4] = std::array::from_fn(|i| 1000 + (run * 7919 + i * 104_729) % 900_000);
        let blocks = sizes.map(|bytes| pool.alloc(bytes, 64).unwrap());
        blocks.into_iter().for_each(|p| free(&pool, p).unwrap());
    }
    assert_eq!(free_blocks(&pool), (1, false));
}

/// The last bytes of a region can be had, whatever its size (pools that lose a header's worth at the end, or hand it out twice).
#[test]
fn every_granule_of_a_region_can_be_used() {
    let mut memory = vec![0u8; 70_000];
    for bytes in (128..66_000).step_by(977) {
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: the memory outlives the pool.
        let Ok(pool) = (unsafe { Pool::over(start, bytes, fixed(0)) }) else { continue };
        let all = pool.stats().heap.total;
        assert!(all as usize + 254 >= bytes);
        let blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(128, 1).ok()).collect();
        assert_eq!(blocks.len() as u64 * 128, all);
        for p in &blocks {
            let at = p.as_ptr() as usize;
            let base = start.as_ptr() as usize;
            assert!(at >= base && at + 128 <= base + bytes);
            fill(*p, 0, 128, 1);
        }
        blocks.into_iter().for_each(|p| free(&pool, p).unwrap());
        assert_eq!(pool.stats().largest_free, all);
    }
}

/// The whole of a region is one block, whatever its size (an offset allocator refused 513 of 513).
#[test]
fn the_whole_of_a_region_is_one_request() {
    for granules in (1..3000).chain([1 << 15, (1 << 15) + 1, 699_050, (1 << 20) - 1]) {
        let config = OffsetHeapConfig { bytes: granules * 128, ..OffsetHeapConfig::default() };
        let heap = OffsetHeap::new(&config).unwrap();
        for _ in 0..2 {
            let all = heap.alloc(&Request::new(granules * 128, 1)).unwrap();
            heap.free(all).unwrap();
        }
    }
}

/// What one request left over serves the next, for every split (an offset allocator refused 67 of 69 left).
#[test]
fn what_is_left_over_is_served() {
    for total in (2..400u64).step_by(7).chain([324, 699_050]) {
        let config = OffsetHeapConfig { bytes: total * 128, ..OffsetHeapConfig::default() };
        let heap = OffsetHeap::new(&config).unwrap();
        for first in (1..total).step_by((total / 60).max(1) as usize) {
            for less in [0, 1, 2].into_iter().filter(|l| first + l < total) {
                let a = heap.alloc(&Request::new(first * 128, 1)).unwrap();
                let b = heap.alloc(&Request::new((total - first - less) * 128, 1)).unwrap();
                let (from, to) = (a.offset().min(b.offset()), a.offset().max(b.offset()));
                assert!(from + if from == a.offset() { first } else { total - first - less } * 128 <= to, "overlap");
                heap.free(a).unwrap();
                heap.free(b).unwrap();
            }
        }
        heap.check().unwrap();
    }
}

/// As many blocks as were asked for can be live, whatever gaps lie between them (an offset allocator served fewer).
#[test]
fn a_limit_of_blocks_is_that_many() {
    for blocks in 1..40usize {
        let config = OffsetHeapConfig { bytes: 1 << 20, max_blocks: blocks, ..OffsetHeapConfig::default() };
        let heap = OffsetHeap::new(&config).unwrap();
        let mut live: Vec<_> = (0..blocks).map(|_| heap.alloc(&Request::new(100, 1)).unwrap()).collect();
        // With gaps in between, each as hard to record as a block.
        for round in 0..200 {
            heap.free(live.swap_remove(round * 7 % live.len())).unwrap();
            live.push(heap.alloc(&Request::new((round as u64 * 131) % 3000, 1 << (round % 12))).unwrap());
        }
        heap.check().unwrap();
    }
}

/// Full of one size, emptied, then another size and the first again (a persistent heap refused the second).
#[test]
fn a_heap_that_was_full_of_small_blocks_serves_a_large_one() {
    for (a, b) in [(32usize, 32_000usize), (32_000, 32), (5000, 1 << 19), (129, 4096)] {
        let pool = Pool::new(fixed(1 << 20)).unwrap();
        for _ in 0..3 {
            let all: Vec<_> = std::iter::from_fn(|| pool.alloc(a, 1).ok()).collect();
            all.into_iter().rev().for_each(|p| free(&pool, p).unwrap());
            let (q, p) = (pool.alloc(b, 1).unwrap(), pool.alloc(a, 1).unwrap());
            free(&pool, q).unwrap();
            free(&pool, p).unwrap();
            assert_eq!(free_blocks(&pool), (1, false));
        }
    }
}

/// With every check on, an aligned block keeps its contents and its alignment when it is resized (a debugging heap lost both).
#[test]
fn checks_do_not_lose_an_aligned_block() {
    let debug = DebugOptions { sanitizer: false, ..DebugOptions::ALL };
    let pool = Pool::new(PoolConfig { debug, ..PoolConfig::default() }).unwrap();
    for align in (0..=21).map(|b| 1usize << b) {
        let p = pool.alloc(100, align).unwrap();
        fill(p, 0, 100, 9);
        let q = realloc(&pool, p, 5000).unwrap();
        assert!((q.as_ptr() as usize).is_multiple_of(align) && holds(q, 100, 9), "{align}");
        let q = realloc(&pool, q, 50).unwrap();
        assert!((q.as_ptr() as usize).is_multiple_of(align) && holds(q, 50, 9));
        free(&pool, q).unwrap();
        pool.check().unwrap();
    }
}
