//! A pool that finds its frames: served from plans once they repeat, and never two live blocks on the same bytes, whatever
//! the host does with its frees.
#![cfg(feature = "std")]

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{mpsc, Mutex};

use arenite::runtime::{DebugOptions, Fallback, Growth, Pool, PoolConfig};

fn pool() -> Pool {
    Pool::new(PoolConfig { auto_frames: true, ..PoolConfig::default() }).unwrap()
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A block filled with its own number.
struct Block {
    at: NonNull<u8>,
    bytes: usize,
    fill: u8,
}

// SAFETY: the block is its holder's alone.
unsafe impl Send for Block {}

fn take(pool: &Pool, bytes: usize, fill: u8) -> Block {
    let at = pool.alloc(bytes, 64).unwrap();
    assert!((at.as_ptr() as usize).is_multiple_of(64));
    // SAFETY: the block is new and holds that many bytes.
    unsafe { at.write_bytes(fill, bytes) };
    Block { at, bytes, fill }
}

fn give(pool: &Pool, block: Block) {
    // SAFETY: the block is live and holds that many bytes.
    let held = unsafe { std::slice::from_raw_parts(block.at.as_ptr(), block.bytes) };
    assert!(held.iter().all(|&b| b == block.fill), "somebody else wrote to a live block");
    // SAFETY: live, and nobody uses it any more.
    unsafe { pool.free(block.at) }.unwrap();
    if block.fill == 0 {
        // SAFETY: any pointer may be passed to a pool, and nobody has asked it for a block meanwhile.
        let again = unsafe { pool.free(block.at) };
        assert!(again.is_err(), "a second free is refused");
    }
}

/// One inference: a chain of layers, each block freed after the next but one; `skip` names the layer that is left out.
fn inference(pool: &Pool, layers: u64, scale: usize, skip: u64) {
    let mut live: Vec<Block> = Vec::new();
    for k in (0..layers).filter(|&k| k != skip) {
        live.push(take(pool, scale * (1 + (k * k % 61) as usize) / 4, 1 + (k % 250) as u8));
        if live.len() > 2 {
            give(pool, live.remove(0));
        }
    }
    live.into_iter().for_each(|b| give(pool, b));
}

#[test]
fn a_block_of_the_fallback_keeps_its_alignment_inside_a_frame() {
    let config =
        PoolConfig { first_region: 1 << 20, growth: Growth::None, fallback: Fallback::System, ..PoolConfig::default() };
    let pool = Pool::new(PoolConfig { auto_frames: true, ..config }).unwrap();
    let mut outside: Vec<NonNull<u8>> = (0..4).map(|_| pool.alloc(2 << 20, 1 << 16).unwrap()).collect();
    for _ in 0..4 {
        inference(&pool, 40, 500, 99);
    }
    let served = pool.frame_stats().frames;
    // Into the frame, and no further.
    let begun: Vec<Block> = (0..3).map(|k| take(&pool, 500 * (1 + k * k) / 4, 1)).collect();
    for (i, block) in outside.iter_mut().enumerate() {
        // SAFETY: only the returned pointer is used.
        *block = unsafe { pool.realloc(Some(*block), (2 << 20) + 1 + i) }.unwrap();
        assert!((block.as_ptr() as usize).is_multiple_of(1 << 16), "{block:?}");
    }
    assert!(served > 0, "nothing was planned");
    begun.into_iter().for_each(|b| give(&pool, b));
    // SAFETY: live, and nobody uses them any more.
    outside.into_iter().for_each(|p| unsafe { pool.free(p) }.unwrap());
    pool.idle().unwrap();
}

#[test]
fn a_planned_block_that_grows_is_zero_past_its_old_size() {
    let pool = pool();
    for round in 0..12 {
        // Sizes that take as many granules each time, but not as many bytes.
        for (layer, bytes) in [(0, 5000), (1, 300), (2, 9000), (3, 700)] {
            let bytes = bytes + (round + layer) % 3;
            let mut p = pool.alloc_zeroed(bytes, 64).unwrap();
            let mut held = bytes;
            for grown in [bytes + 7, bytes - 40, bytes + 20, bytes * 3] {
                // SAFETY: the block holds so many bytes.
                let all = unsafe { std::slice::from_raw_parts(p.as_ptr(), held) };
                let known = all.iter().take_while(|&&b| b == 0xAA).count();
                assert!(all[known..].iter().all(|&b| b == 0), "round {round}: {held} bytes, {known} known");
                // SAFETY: as above.
                unsafe { p.write_bytes(0xAA, held) };
                // SAFETY: only the returned pointer is used.
                p = unsafe { pool.realloc_zeroed(Some(p), grown) }.unwrap();
                let kept = held.min(grown);
                held = grown;
                // SAFETY: as above.
                let all = unsafe { std::slice::from_raw_parts(p.as_ptr(), held) };
                assert!(all[..kept].iter().all(|&b| b == 0xAA), "round {round}: contents");
                assert!(all[kept..].iter().all(|&b| b == 0), "round {round}: {held} bytes, {kept} known");
            }
            // What comes here next must not find zeros by chance.
            // SAFETY: as above.
            unsafe { p.write_bytes(0xBB, held) };
            // SAFETY: live, and nobody uses it any more.
            unsafe { pool.free(p) }.unwrap();
        }
    }
    pool.idle().unwrap();
    assert!(pool.frame_stats().served > 0, "nothing was planned");
}

#[test]
fn what_a_plan_holds_is_no_reason_to_refuse() {
    let config = PoolConfig { first_region: 4 << 20, growth: Growth::None, auto_frames: true, ..PoolConfig::default() };
    let pool = Pool::new(config).unwrap();
    for _ in 0..20 {
        inference(&pool, 40, 60_000, u64::MAX);
    }
    let served = pool.frame_stats().served;
    assert!(served > 0 && pool.stats().heap.live > 1 << 20, "an area is kept: {}", pool.stats().heap.live);
    // The first layers as always, and then a block that takes nearly all there is.
    for k in 0..3u64 {
        let block = take(&pool, 60_000 * (1 + (k * k % 61) as usize) / 4, 1 + k as u8);
        give(&pool, block);
    }
    let large = take(&pool, 4_000_000, 9);
    give(&pool, large);
    pool.check().unwrap();
    inference(&pool, 40, 60_000, u64::MAX);
}

#[test]
fn a_repeated_sequence_is_served_from_a_plan() {
    let pool = pool();
    give(&pool, take(&pool, 100, 0));
    inference(&pool, 40, 1000, 99);
    assert_eq!(pool.frame_stats().frames, 0);
    let before = pool.stats().heap.allocs;
    for _ in 0..5 {
        inference(&pool, 40, 1000, 99);
    }
    pool.idle().unwrap();
    let (frames, heap) = (pool.frame_stats(), pool.stats().heap);
    assert_eq!((frames.recorded, frames.mismatched, frames.waiting), (1, 0, 0));
    // All of four turns, and of the second turn what came after it was recognised.
    assert!(frames.served >= 4 * 40 + 30, "{frames:?}");
    assert!(heap.allocs - before <= 12, "{}", heap.allocs - before);
    pool.check().unwrap();
}

#[test]
fn shapes_in_turn_are_each_known_by_their_first_requests() {
    let pool = pool();
    for _ in 0..3 {
        for scale in [1000, 1500, 2222] {
            inference(&pool, 40, scale, 99);
            inference(&pool, 40, scale, 99);
        }
    }
    let before = pool.frame_stats();
    let mut r = Rng(3);
    for _ in 0..12 {
        inference(&pool, 40, [1000, 1500, 2222][r.below(3) as usize], 99);
    }
    pool.idle().unwrap();
    let after = pool.frame_stats();
    assert!(after.served - before.served >= 12 * 38, "{before:?} {after:?}");
}

#[test]
fn a_sequence_that_changes_is_found_anew_and_noise_does_no_harm() {
    let pool = pool();
    let mut r = Rng(7);
    for turn in 0..30 {
        // A layer left out now and then, another network for a while, and requests of no pattern in between.
        inference(&pool, 40, 1000, if turn % 5 == 4 { r.below(40) } else { 99 });
        if (10..20).contains(&turn) {
            inference(&pool, 25, 3000, 99);
        }
        let strays: Vec<Block> = (0..r.below(3)).map(|_| take(&pool, 1 + r.below(9000) as usize, 1)).collect();
        strays.into_iter().for_each(|b| give(&pool, b));
    }
    pool.idle().unwrap();
    let frames = pool.frame_stats();
    assert!(frames.served > 600, "{frames:?}");
    pool.check().unwrap();
}

#[test]
fn no_delay_loss_or_reordering_of_frees_lets_blocks_overlap() {
    let mut served = 0;
    for seed in 1..=20 {
        let pool = pool();
        let mut r = Rng(seed * 77);
        let mut late: Vec<Block> = Vec::new();
        for _ in 0..25 {
            let mut live: Vec<Block> = Vec::new();
            for k in 0..30u64 {
                if r.below(60) == 0 {
                    continue;
                }
                let size = if r.below(60) == 0 { 777 } else { 500 * (1 + (k * 7 % 11) as usize) };
                live.push(take(&pool, size, 1 + r.below(255) as u8));
                if live.len() > 2 + r.below(2) as usize {
                    let at = if r.below(10) == 0 { r.below(live.len() as u64) as usize } else { 0 };
                    let block = live.remove(at);
                    match r.below(25) {
                        0 => late.push(block),
                        _ => give(&pool, block),
                    }
                }
            }
            late.append(&mut live);
            while late.len() > r.below(6) as usize {
                let at = r.below(late.len() as u64) as usize;
                give(&pool, late.swap_remove(at));
            }
        }
        late.into_iter().for_each(|b| give(&pool, b));
        pool.idle().unwrap();
        served += pool.frame_stats().served;
        assert_eq!(pool.stats().heap.live, 0);
    }
    assert!(served > 2000, "{served}");
}

#[test]
fn threads_have_frames_of_their_own_and_free_each_others_blocks() {
    let pool = pool();
    let (send, receive) = mpsc::channel::<Block>();
    let receive = Mutex::new(receive);
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let (pool, send, receive) = (&pool, send.clone(), &receive);
            s.spawn(move || {
                for _ in 0..30 {
                    inference(pool, 30, 400 + 100 * t as usize, 99);
                    // The output goes to whoever takes it.
                    send.send(take(pool, 5000, t + 1)).unwrap();
                    let other = receive.lock().unwrap().try_recv();
                    if let Ok(block) = other {
                        give(pool, block);
                    }
                }
            });
        }
    });
    drop(send);
    receive.lock().unwrap().try_iter().for_each(|b| give(&pool, b));
    pool.idle().unwrap();
    let frames = pool.frame_stats();
    assert!(frames.served > 4 * 20 * 30, "{frames:?}");
    pool.check().unwrap();
}

#[test]
fn resizes_keep_contents_within_frames_and_outside() {
    let pool = pool();
    for turn in 0..6u8 {
        let mut live = BTreeMap::new();
        for k in 0..12usize {
            let mut block = take(&pool, 1000 + 300 * k, turn + 1);
            let bytes = if k % 3 == 0 { block.bytes * 2 } else { block.bytes / 2 };
            // SAFETY: the block is live and the new pointer is used from here on.
            let at = unsafe { pool.realloc(Some(block.at), bytes) }.unwrap();
            // SAFETY: the smaller of both sizes was kept.
            let kept = unsafe { std::slice::from_raw_parts(at.as_ptr(), bytes.min(block.bytes)) };
            assert!(kept.iter().all(|&b| b == block.fill));
            (block.at, block.bytes) = (at, bytes);
            // SAFETY: the block holds that many bytes.
            unsafe { at.write_bytes(block.fill, bytes) };
            live.insert(k, block);
            if let Some(old) = k.checked_sub(2).and_then(|k| live.remove(&k)) {
                give(&pool, old);
            }
        }
        live.into_values().for_each(|b| give(&pool, b));
    }
    pool.idle().unwrap();
    assert!(pool.frame_stats().served > 30, "{:?}", pool.frame_stats());
}

#[test]
fn a_pool_with_debug_checks_serves_every_block_one_by_one() {
    let debug = PoolConfig { auto_frames: true, debug: DebugOptions::ALL, ..PoolConfig::default() };
    let pool = Pool::new(debug).unwrap();
    (0..4).for_each(|_| inference(&pool, 40, 500, 99));
    pool.idle().unwrap();
    assert_eq!(pool.frame_stats().frames, 0);
}
