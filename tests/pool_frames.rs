//! Recorded frames on real memory: replay, mismatch, other threads' frees, outliving blocks, several in flight.

use std::io::Write as _;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Mutex};

use arenite::heap::frame::FramePlan;
use arenite::planner::sequence::Sequence;
use arenite::runtime::{Frame, Growth, Pool, PoolConfig};

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % n
    }
}

fn pool(bytes: usize) -> Pool {
    Pool::new(PoolConfig { first_region: bytes, growth: Growth::None, ..PoolConfig::default() }).unwrap()
}

fn fill(p: NonNull<u8>, bytes: usize, mark: u8) {
    // SAFETY: the block holds `bytes` bytes.
    unsafe { p.write_bytes(mark, bytes) };
}

fn holds(p: NonNull<u8>, bytes: usize, mark: u8) -> bool {
    // SAFETY: the block holds `bytes` bytes.
    unsafe { std::slice::from_raw_parts(p.as_ptr(), bytes) }.iter().all(|&b| b == mark)
}

fn free(frame: &mut Frame<&Pool>, p: NonNull<u8>) {
    // SAFETY: the tests use no block after they free it.
    unsafe { frame.free(p) }.unwrap();
}

/// A chain of layers: the output of each is freed once the next two are made.
fn chain(frame: &mut Frame<&Pool>, layers: usize, scale: usize) {
    let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
    for i in 0..layers {
        let bytes = scale * (1 + (i * 7) % 5) + i;
        let p = frame.alloc(bytes, 64).unwrap();
        fill(p, bytes, i as u8);
        live.push((p, bytes, i as u8));
        if live.len() > 2 {
            let (p, bytes, mark) = live.remove(0);
            assert!(holds(p, bytes, mark), "a planned block was overwritten");
            free(frame, p);
            // SAFETY: freed already, which is refused.
            assert!(unsafe { frame.free(p) }.is_err());
        }
    }
    for (p, ..) in live {
        free(frame, p);
    }
}

#[test]
fn the_second_frame_of_a_signature_is_served_from_the_plan() {
    let pool = pool(1 << 20);
    for round in 0..5 {
        let mut frame = pool.frame_begin(7);
        assert_eq!(frame.is_planned(), round > 0);
        chain(&mut frame, 40, 1000);
        frame.end();
    }
    let s = pool.frame_stats();
    assert_eq!((s.recorded, s.served, s.mismatched, s.waiting, s.outside), (1, 160, 0, 0, 0));
    assert_eq!((s.plans, s.instances), (1, 1));
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

#[test]
fn another_shape_falls_back_and_is_recorded_anew_when_it_stays() {
    let pool = pool(1 << 20);
    for scale in [1000, 1000, 1000, 3000, 3000, 3000, 3000] {
        let mut frame = pool.frame_begin(1);
        chain(&mut frame, 30, scale);
    }
    let s = pool.frame_stats();
    assert_eq!(s.recorded, 2);
    assert!(
        (90..120).contains(&s.served),
        "two replays of the old shape, one of the new, and sizes that agree by chance: {s:?}"
    );
    assert_eq!(s.instances, 1, "the old instance is gone");
    assert!(pool.destroy().is_ok());
}

#[test]
fn a_block_that_outlives_its_frame_keeps_its_bytes() {
    let pool = pool(1 << 20);
    let mut kept = Vec::new();
    for round in 0..4u8 {
        let mut frame = pool.frame_begin(1);
        let a = frame.alloc(1000, 1).unwrap();
        let b = frame.alloc(2000, 1).unwrap();
        fill(b, 2000, round);
        free(&mut frame, a);
        // Freed in the first two frames only: in the last two it lives on where the plan put it.
        if round < 2 {
            free(&mut frame, b);
        } else {
            kept.push((b, round));
        }
    }
    assert_eq!(pool.frame_stats().instances, 2, "an instance with live blocks is not entered again");
    for (p, mark) in kept {
        assert!(holds(p, 2000, mark));
        assert!(pool.usable_size(p).unwrap() >= 2000);
        // SAFETY: not used afterwards.
        unsafe { pool.free(p) }.unwrap();
        // SAFETY: freed already, which is refused.
        assert!(unsafe { pool.free(p) }.is_err());
    }
    pool.trim(0);
    assert_eq!((pool.frame_stats().instances, pool.stats().heap.blocks), (0, 0));
}

#[test]
fn signatures_take_turns_in_as_many_areas_as_frames_at_once() {
    let growing = PoolConfig { growth: Growth::Exact { at_least: 64 << 20 }, ..PoolConfig::default() };
    // In a pool that cannot grow, an area is no larger than its plan; areas are shared all the same.
    for (pool, grows) in [(Pool::new(growing).unwrap(), true), (pool(16 << 20), false)] {
        let scales = [100_000, 300_000, 10_000];
        let mut bytes = [0; 3];
        for (signature, scale) in (0..).zip(scales) {
            for _ in 0..2 {
                chain(&mut pool.frame_begin(signature), 20, scale);
            }
            bytes[signature as usize] = pool.frame_plan(signature).unwrap().bytes();
        }
        for round in 0..12 {
            let signature = round % 3;
            let mut frame = pool.frame_begin(signature);
            assert!(frame.is_planned());
            chain(&mut frame, 20, scales[signature as usize]);
            frame.end();
            assert_eq!(pool.frame_stats().instances, 1);
        }
        assert_eq!(pool.frame_stats().area_bytes, bytes[1], "one area, for the largest plan");
        let before = pool.frame_stats();
        let (mut a, mut b) = (pool.frame_begin(0), pool.frame_begin(2));
        chain(&mut a, 20, scales[0]);
        chain(&mut b, 20, scales[2]);
        a.end();
        b.end();
        let now = pool.frame_stats();
        assert_eq!((now.instances, now.mismatched + now.waiting + now.outside), (2, 0));
        assert_eq!(now.area_bytes, bytes[1] + if grows { bytes[1] } else { bytes[2] });
        assert_eq!((now.served - before.served, now.recorded), (40, 3));
        pool.check().unwrap();
        pool.trim(0);
        assert_eq!((pool.frame_stats().instances, pool.stats().heap.blocks), (0, 0));
        assert!(pool.destroy().is_ok());
    }
}

#[test]
fn bad_frees_inside_an_area_are_refused() {
    let pool = pool(1 << 20);
    for _ in 0..2 {
        let mut frame = pool.frame_begin(1);
        let a = frame.alloc(1000, 1).unwrap();
        let b = frame.alloc(1000, 1).unwrap();
        // SAFETY: a wrong size is refused.
        assert!(unsafe { pool.free_sized(a, 5000) }.is_err());
        let before = pool.stats().bad;
        for p in [a, b] {
            for step in [1, 64, 128] {
                // SAFETY: inside the block; freeing such a pointer is refused.
                let inside = unsafe { p.add(step) };
                // SAFETY: as above.
                assert!(unsafe { frame.free(inside) }.is_err());
                // SAFETY: as above.
                assert!(unsafe { pool.free(inside) }.is_err());
            }
        }
        assert_eq!(pool.stats().bad, before + 12);
        free(&mut frame, a);
        // SAFETY: not used afterwards.
        unsafe { pool.free_sized(b, 1000) }.unwrap();
        // SAFETY: freed already, which is refused.
        assert!(unsafe { pool.free(a) }.is_err());
    }
}

#[test]
fn a_planned_block_can_be_resized() {
    let pool = pool(1 << 20);
    for round in 0..3u8 {
        let mut frame = pool.frame_begin(1);
        let a = frame.alloc(1000, 512).unwrap();
        fill(a, 1000, round);
        // SAFETY: only the returned pointer is used.
        let b = unsafe { frame.realloc(a, 3000, 512) }.unwrap();
        assert!(holds(b, 1000, round));
        free(&mut frame, b);
        let c = frame.alloc(700, 256).unwrap();
        fill(c, 700, round);
        // SAFETY: only the returned pointer is used.
        let d = unsafe { pool.realloc(Some(c), 4000) }.unwrap();
        assert!(holds(d, 700, round) && (d.as_ptr() as usize).is_multiple_of(256));
        // SAFETY: not used afterwards.
        unsafe { pool.free(d) }.unwrap();
    }
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

#[test]
fn a_block_that_grew_grows_where_it_is_in_later_frames() {
    let pool = pool(1 << 20);
    for round in 0..4u8 {
        let mut frame = pool.frame_begin(9);
        assert_eq!(frame.is_planned(), round > 0);
        let mut list = frame.alloc(200, 256).unwrap();
        let first = list;
        fill(list, 200, round);
        for bytes in [300, 1000, 900, 5000] {
            let other = frame.alloc(700, 128).unwrap();
            fill(other, 700, round ^ 0x55);
            // SAFETY: only the returned pointer is used.
            list = unsafe { frame.realloc(list, bytes, 256) }.unwrap();
            assert!(holds(list, 200, round) && holds(other, 700, round ^ 0x55));
            free(&mut frame, other);
        }
        fill(list, 5000, round);
        assert!((list.as_ptr() as usize).is_multiple_of(256));
        assert!(!frame.is_planned() || list == first, "no copy in a replay");
        if round == 3 {
            // More than was recorded: another block.
            // SAFETY: only the returned pointer is used.
            list = unsafe { frame.realloc(list, 20_000, 256) }.unwrap();
            assert!(list != first && holds(list, 5000, round));
        }
        free(&mut frame, list);
    }
    let stats = pool.frame_stats();
    assert_eq!((stats.recorded, stats.served), (1, 3 * 5));
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

#[test]
fn a_planned_block_is_freed_with_any_size_it_may_have() {
    let pool = pool(1 << 20);
    for sizes in [vec![200, 5000], vec![200], vec![200, 3000], vec![200, 5000, 100]] {
        let mut frame = pool.frame_begin(3);
        let mut block = frame.alloc(200, 64).unwrap();
        for &bytes in &sizes[1..] {
            // SAFETY: only the returned pointer is used.
            block = unsafe { frame.realloc(block, bytes, 64) }.unwrap();
        }
        let last = *sizes.last().unwrap();
        // SAFETY: a size no block can have is refused.
        let free = |bytes| unsafe { pool.free_sized(block, bytes) };
        assert!(free(6000).is_err() && free(usize::MAX).is_err());
        free(last).unwrap();
    }
    assert_eq!(pool.frame_stats().recorded, 1);
}

/// A request of a few bytes more than was recorded is served from the plan while it takes as many granules: a move then takes
/// all that the host may have written, not only as much as was recorded.
#[test]
fn a_block_that_moves_keeps_what_was_asked_for_and_not_what_was_recorded() {
    let pool = pool(1 << 20);
    for bytes in [1020, 900, 1024] {
        let mut frame = pool.frame_begin(bytes as u64);
        let block = frame.alloc(1000, 128).unwrap();
        free(&mut frame, block);
        frame.end();
        let mut frame = pool.frame_begin(bytes as u64);
        let block = frame.alloc(bytes, 128).unwrap();
        assert!(frame.is_planned());
        fill(block, bytes, 77);
        // SAFETY: only the returned pointer is used.
        let block = unsafe { frame.realloc(block, 5000, 128) }.unwrap();
        assert!(holds(block, bytes, 77), "{bytes}");
        free(&mut frame, block);
    }
    assert_eq!(pool.frame_stats().served, 3);
}

#[test]
fn a_block_from_before_the_frame_that_grows_is_one_of_the_frames_own() {
    let pool = pool(1 << 20);
    for round in 0..3u8 {
        let old = pool.alloc(500, 128).unwrap();
        fill(old, 500, round);
        let mut frame = pool.frame_begin(4);
        // SAFETY: only the returned pointer is used.
        let new = unsafe { frame.realloc(old, 9000, 128) }.unwrap();
        assert!(holds(new, 500, round));
        free(&mut frame, new);
    }
    assert_eq!(pool.frame_stats().served, 2);
    assert!(pool.destroy().is_ok());
}

#[test]
fn a_plan_can_be_made_beforehand_saved_and_loaded() {
    let mut sequence = Sequence::new();
    let a = sequence.alloc(1000, 64).unwrap();
    let b = sequence.alloc(500, 64).unwrap();
    sequence.free(a).unwrap();
    sequence.free(b).unwrap();
    let saved = FramePlan::new(&sequence).unwrap().encode();
    let pool = pool(1 << 16);
    pool.frame_install(3, FramePlan::decode(&saved).unwrap()).unwrap();
    let mut frame = pool.frame_begin(3);
    assert!(frame.is_planned());
    let (a, b) = (frame.alloc(1000, 64).unwrap(), frame.alloc(500, 64).unwrap());
    free(&mut frame, a);
    free(&mut frame, b);
    frame.end();
    assert_eq!(pool.frame_stats().served, 2);
    assert_eq!(pool.frame_plan(3).unwrap().encode(), saved);
}

#[test]
fn the_area_of_a_plan_is_no_reason_to_refuse() {
    let pool = pool(1 << 16);
    for _ in 0..2 {
        let mut frame = pool.frame_begin(1);
        chain(&mut frame, 8, 4000);
    }
    assert!(pool.frame_stats().served > 0 && pool.stats().heap.live > 32_000, "an area is kept");
    // Between frames.
    let block = pool.alloc(50_000, 64).unwrap();
    // SAFETY: not used afterwards.
    unsafe { pool.free(block) }.unwrap();
    // In a frame that has the signature and nothing else in common.
    for _ in 0..2 {
        let mut frame = pool.frame_begin(1);
        chain(&mut frame, 8, 4000);
    }
    let mut frame = pool.frame_begin(1);
    assert!(frame.is_planned());
    let block = frame.alloc(50_000, 64).unwrap();
    assert!(!frame.is_planned());
    fill(block, 50_000, 7);
    free(&mut frame, block);
    frame.end();
    pool.check().unwrap();
    assert!(pool.destroy().is_ok());
}

/// Whatever a damaged file makes of a plan: it is refused, or it only costs memory or blocks served from it.
#[test]
fn a_damaged_plan_is_refused_or_harmless() {
    let sizes = [1000, 500, 3000, 128, 700, 2000, 64, 4096];
    let mut sequence = Sequence::new();
    let mut ids = Vec::new();
    for (i, &bytes) in sizes.iter().enumerate() {
        ids.push(sequence.alloc(bytes, 64).unwrap());
        if i >= 2 {
            sequence.free(ids[i - 2]).unwrap();
        }
    }
    let saved = FramePlan::new(&sequence).unwrap().encode();
    let (mut refused, mut larger, mut served) = (0, 0, 0);
    let mut run = |bytes: &[u8]| {
        let Ok(plan) = FramePlan::decode(bytes) else { return refused += 1 };
        let room = sequence.blocks().iter().map(|b| b.bytes + 256).sum::<u64>();
        if plan.bytes() > room {
            // One of its blocks says that it is larger: an area so large may well be made, and take what others need.
            return larger += 1;
        }
        let pool = pool(1 << 16);
        if pool.frame_install(3, plan).is_err() {
            return refused += 1;
        }
        for _ in 0..2 {
            let mut frame = pool.frame_begin(3);
            let mut live = Vec::new();
            for (i, &bytes) in sizes.iter().enumerate() {
                let p = frame.alloc(bytes as usize, 64).unwrap();
                fill(p, bytes as usize, i as u8 + 1);
                live.push((p, bytes as usize, i as u8 + 1));
                assert!(live.iter().all(|&(p, n, mark)| (p.as_ptr() as usize).is_multiple_of(64) && holds(p, n, mark)));
                if live.len() > 2 {
                    free(&mut frame, live.remove(0).0);
                }
            }
            live.into_iter().for_each(|(p, ..)| free(&mut frame, p));
            frame.end();
        }
        served += pool.frame_stats().served;
        pool.check().unwrap();
        assert!(pool.destroy().is_ok());
    };
    run(&saved);
    let mut bytes = saved.clone();
    for at in 0..saved.len() {
        for change in [1, 2, 0x40, 0x80, 0xff] {
            bytes[at] ^= change;
            run(&bytes);
            bytes[at] = saved[at];
        }
        run(&saved[..at]);
        run(&[&saved[..], &saved[at..]].concat());
    }
    // Whole words: counts, sizes, alignments, last uses and offsets that mean something else, or far too much.
    for at in (saved.len() % 8..saved.len()).step_by(8) {
        for word in [0, 1, 64, 127, 1 << 20, 1 << 31, 1 << 32, 1 << 62, 1 << 63, u64::MAX - 127, u64::MAX] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            run(&bytes);
            bytes.copy_from_slice(&saved);
        }
    }
    assert!(refused > 1000 && served > 1000 && larger < 200, "{refused} refused, {larger}, {served} blocks served");
}

#[test]
fn a_full_pool_and_a_full_cache_only_cost_the_plan() {
    let small = pool(16_384);
    for _ in 0..4 {
        let filler = small.alloc(12_000, 1).unwrap();
        let mut frame = small.frame_begin(1);
        let a = frame.alloc(1500, 1).unwrap();
        let b = frame.alloc(1500, 1).unwrap();
        free(&mut frame, a);
        free(&mut frame, b);
        drop(frame);
        // SAFETY: not used afterwards.
        unsafe { small.free(filler) }.unwrap();
    }
    small.check().unwrap();
    let many = pool(1 << 20);
    for signature in (0..100).chain(0..100) {
        let mut frame = many.frame_begin(signature);
        chain(&mut frame, 5, 100);
    }
    assert!(many.frame_stats().plans <= 16);
    assert!(many.destroy().is_ok());
}

#[test]
fn two_threads_reorder_delay_drop_and_repeat_calls() {
    // Frames of two signatures in flight on two threads; a third thread frees what it is sent, late and in any order.
    // Every block is filled with its own number: an overlap of live blocks would be seen when it is freed.
    let pool = pool(64 << 20);
    let (send, receive) = mpsc::channel::<(usize, usize, u8)>();
    let planned = AtomicU64::new(0);
    std::thread::scope(|s| {
        for t in 0..2u64 {
            let (pool, planned, send) = (&pool, &planned, send.clone());
            s.spawn(move || {
                let mut r = Rng(t * 31 + 5);
                for round in 0..400u64 {
                    let mut frame = pool.frame_begin(t);
                    planned.fetch_add(u64::from(frame.is_planned()), Ordering::Relaxed);
                    let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
                    for k in 0..60u64 {
                        // Now and then a call is left out, made twice, or asks for something else.
                        let times = if round > 2 { [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2][r.below(11) as usize] } else { 1 };
                        for _ in 0..times {
                            let odd = round > 2 && r.below(30) == 0;
                            let bytes = (100 + (k * 37 % 11) * 700 + u64::from(odd) * 900) as usize;
                            let p = frame.alloc(bytes, 64).unwrap();
                            let mark = (t * 100 + k) as u8 ^ round as u8;
                            fill(p, bytes, mark);
                            live.push((p, bytes, mark));
                        }
                        while live.len() > 4 + r.below(3) as usize {
                            let at = r.below(live.len() as u64) as usize;
                            let (p, bytes, mark) = live.swap_remove(at);
                            assert!(holds(p, bytes, mark), "two live blocks overlap");
                            if round > 2 && r.below(3) == 0 {
                                send.send((p.as_ptr() as usize, bytes, mark)).unwrap();
                            } else {
                                free(&mut frame, p);
                            }
                        }
                    }
                    for (p, bytes, mark) in live {
                        if r.below(5) == 0 {
                            send.send((p.as_ptr() as usize, bytes, mark)).unwrap();
                        } else {
                            assert!(holds(p, bytes, mark));
                            free(&mut frame, p);
                        }
                    }
                }
            });
        }
        drop(send);
        let pool = &pool;
        s.spawn(move || {
            let mut r = Rng(99);
            let mut late: Vec<(usize, usize, u8)> = Vec::new();
            loop {
                match receive.recv() {
                    Ok(block) => late.push(block),
                    Err(_) if late.is_empty() => break,
                    Err(_) => {}
                }
                let keep = if r.below(50) == 0 { 0 } else { 20 };
                while late.len() > keep {
                    let at = r.below(late.len() as u64) as usize;
                    let (address, bytes, mark) = late.swap_remove(at);
                    let p = NonNull::new(address as *mut u8).unwrap();
                    assert!(holds(p, bytes, mark), "two live blocks overlap");
                    // SAFETY: not used afterwards.
                    unsafe { pool.free(p) }.unwrap();
                }
            }
        });
    });
    let s = pool.frame_stats();
    assert!(s.served > 3000 && planned.load(Ordering::Relaxed) > 100, "{s:?}");
    pool.check().unwrap();
    pool.trim(0);
    assert_eq!(pool.stats().heap.blocks, 0, "{:?}", pool.frame_stats());
}

#[test]
fn a_thread_that_frees_first_wins_and_the_other_is_refused() {
    let pool = pool(1 << 20);
    chain(&mut pool.frame_begin(1), 10, 100);
    let mut frame = pool.frame_begin(1);
    let p = frame.alloc(100, 64).unwrap();
    let (address, refused) = (p.as_ptr() as usize, Mutex::new(0));
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                let p = NonNull::new(address as *mut u8).unwrap();
                // SAFETY: nobody uses the block; all but one of these frees are refused.
                if unsafe { pool.free(p) }.is_err() {
                    *refused.lock().unwrap() += 1;
                }
            });
        }
    });
    assert_eq!(*refused.lock().unwrap(), 7);
    // SAFETY: freed already, which is refused.
    assert!(unsafe { frame.free(p) }.is_err());
}

fn shared() -> PathBuf {
    std::env::var_os("ARENITE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from)
}

#[test]
fn traces_of_real_engines_replay_within_two_percent_of_the_bound() {
    let dir = shared().join("corpus/engine_traces");
    let Ok(files) = std::fs::read_dir(&dir) else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no corpus at {}", dir.display());
        return;
    };
    let mut seen = 0;
    for file in files.flatten().filter(|f| f.path().extension().is_some_and(|e| e == "txt")) {
        let text = std::fs::read_to_string(file.path()).unwrap();
        // The part between the second run's mark and what follows it is one frame.
        let mut sequence = Sequence::new();
        let mut names = std::collections::HashMap::new();
        let mut run = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["#", "run", ..] => run += 1,
                ["#", ..] => run = if run > 0 { 9 } else { 0 },
                ["a", id, bytes, align] if run == 1 => {
                    let index = sequence.alloc(bytes.parse().unwrap(), align.parse().unwrap()).unwrap();
                    names.insert(id.to_string(), index);
                }
                ["f", id] if run == 1 => {
                    if let Some(index) = names.remove(id) {
                        sequence.free(index).unwrap();
                    }
                }
                _ => {}
            }
        }
        let plan = FramePlan::new(&sequence).unwrap();
        let problem = sequence.problem(arenite::units::DEFAULT_ALIGN).unwrap();
        let bound = arenite::planner::bound::lower_bound(&problem).unwrap().bytes.max(1);
        let ratio = plan.bytes() as f64 / bound as f64;
        println!("{}: {} blocks, {} bytes, {ratio:.4}", file.path().display(), plan.len(), plan.bytes());
        assert!(plan.len() > 50 && ratio < 1.02, "{ratio}");
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}
