//! What holds for every plan: valid, deterministic, never worse with more effort, never above the greedy rules.

use std::ops::ControlFlow;

use arenite::planner::capacity::{fit, Verdict};
use arenite::planner::check::check;
use arenite::planner::regions::{plan_regions, Region, Wish};
use arenite::planner::replan::{replan, Keep};
use arenite::planner::{plan, plan_with, BufferSpec, Options, Problem, Progress, Span, Strategy};
use arenite::units::Align;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

/// A problem of `n` buffers with everything in it; `plain` leaves out gaps and fixed offsets.
fn problem(r: &mut Random, n: usize, plain: bool) -> Problem {
    let mut p = Problem::new();
    let steps = 2 + r.below(n as u64 / 2 + 3);
    let mut next_fixed = 0;
    for _ in 0..n {
        let align = 1 << r.below(7);
        let mut spec = BufferSpec::new(r.below(5000), Align::new(align).unwrap()).kept(r.below(9) == 0);
        let first = r.below(steps) as u32;
        let last = first + r.below(9) as u32;
        let mut spans = vec![Span::new(first, last)];
        if !plain && r.below(6) == 0 {
            spans.push(Span::new(last + 2, last + 2 + r.below(5) as u32));
        }
        if !plain && r.below(40) == 0 {
            spec = spec.fixed_at(spec.align.round_up(next_fixed).unwrap());
            next_fixed = spec.fixed.unwrap() + spec.size;
        }
        p.add(spec, &spans).unwrap();
    }
    p
}

fn never(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn every_strategy_is_valid_deterministic_and_auto_is_never_above_the_rules() {
    let mut r = Random(3);
    for k in 0..300 {
        let n = 1 + r.below(if k % 10 == 0 { 600 } else { 60 }) as usize;
        let p = problem(&mut r, n, k % 2 == 0);
        let least = |s| plan(&p, &Options { effort: Some(2_000), ..Options::of(s) }).unwrap();
        let auto = least(Strategy::Auto);
        for s in Strategy::ALL {
            let found = least(s);
            assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes), "{s:?} of {p:?}");
            assert_eq!(found, least(s), "{s:?} differs from run to run");
            assert!(found.lower_bound <= found.arena_bytes);
            // In raw bytes, whatever the alignment.
            assert!(auto.arena_bytes <= found.arena_bytes || s == Strategy::Exact, "{s:?} beats auto on {p:?}");
            if s == Strategy::Auto || s == Strategy::Exact {
                assert!(!matches!(found.strategy, Strategy::Auto | Strategy::Exact), "a plan names what won");
                let answer = Options { effort: Some(2_000), ..Options::of(Strategy::Windows) };
                assert_eq!(plan(&p, &answer).unwrap(), auto, "an answer asked for is auto");
            } else {
                assert_eq!(found.strategy, s);
            }
        }
    }
}

#[test]
fn more_effort_is_never_worse_and_its_log_extends_the_shorter() {
    let mut r = Random(4);
    for k in 0..24 {
        let p = problem(&mut r, if k % 4 == 0 { 500 } else { 40 + 10 * k }, k % 3 == 0);
        type Log = Vec<(u64, u64, u64)>;
        let mut last: Option<(u64, u64, Log)> = None;
        for shift in 0..14 {
            let mut log = Vec::new();
            let options = Options { effort: Some(1 << shift), ..Options::of(Strategy::Exact) };
            let found = plan_with(&p, &options, &mut |at| {
                log.push((at.nodes, at.arena_bytes, at.lower_bound));
                ControlFlow::Continue(())
            })
            .unwrap();
            if let Some((arena, bound, shorter)) = last {
                assert!(found.arena_bytes <= arena && found.lower_bound >= bound, "2^{shift} nodes of {p:?}");
                assert_eq!(log[..shorter.len()], shorter[..]);
            }
            last = Some((found.arena_bytes, found.lower_bound, log));
        }
    }
}

#[test]
fn planning_on_several_threads_at_once_gives_the_same_bytes() {
    let problems: Vec<Problem> = (0..24).map(|k| problem(&mut Random(100 + k), 40, k % 2 == 0)).collect();
    let options = Options { effort: Some(3000), ..Options::default() };
    let alone: Vec<_> = problems.iter().map(|p| plan(p, &options).unwrap()).collect();
    let (problems, alone) = (&problems, &alone);
    std::thread::scope(|scope| {
        for shift in 0..4 {
            scope.spawn(move || {
                for k in (0..problems.len()).map(|k| (k + 7 * shift) % problems.len()) {
                    let mine = plan(&problems[k], &options).unwrap();
                    let told = |p: &arenite::planner::Plan| (p.arena_bytes, p.lower_bound, p.optimal, p.stats.nodes);
                    assert_eq!((&mine.offsets, told(&mine)), (&alone[k].offsets, told(&alone[k])), "problem {k}");
                }
            });
        }
    });
}

#[test]
fn regions_keep_alias_classes_together() {
    let mut p = chain(&[(1000, 0, 1), (900, 1, 2), (500, 1, 2), (128, 0, 2)]);
    p.alias(1, 0, 128).unwrap();
    let regions = [Region { capacity: Some(1200) }, Region { capacity: None }];
    let wishes = [1, 1, 40, 40].map(|benefit| Wish { allowed: 3, benefit });
    let out = plan_regions(&p, &regions, &wishes, &Options::default(), &mut never).unwrap();
    assert_eq!(out.region, [1, 1, 0, 0]);
    assert_eq!(out.offsets[1], out.offsets[0] + 128);
    assert_eq!(out.spills.iter().map(|s| s.buffer).collect::<Vec<_>>(), [0]);
    let mut empty = chain(&[(1000, 0, 1), (0, 1, 1)]);
    empty.alias(1, 0, u64::MAX - 127).unwrap();
    let one = [Region { capacity: None }];
    let out = plan_regions(&empty, &one, &[Wish::default(); 2], &Options::default(), &mut never).unwrap();
    assert_eq!((out.offsets, out.region), (vec![0, 0], vec![0, 0]), "no bytes, at whatever distance");
    let apart = [Wish { allowed: 1, benefit: 1 }, Wish { allowed: 2, benefit: 1 }, wishes[2], wishes[3]];
    let e = plan_regions(&p, &regions, &apart, &Options::default(), &mut never).unwrap_err();
    assert_eq!(e.subject, arenite::error::Subject::Buffer(0), "no region takes both members");
}

#[test]
fn a_stopped_search_returns_its_best_plan() {
    let p = problem(&mut Random(5), 300, false);
    let found = plan_with(&p, &Options::of(Strategy::Exact), &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
}

#[test]
fn proven_optima_do_not_depend_on_the_order_of_rows() {
    let mut r = Random(6);
    let mut proven = 0;
    for _ in 0..100 {
        let n = 4 + r.below(20) as usize;
        let p = problem(&mut r, n, false);
        let options = Options { effort: Some(20_000), ..Options::of(Strategy::Exact) };
        let first = plan(&p, &options).unwrap();
        let mut rows: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            rows.swap(i, r.below(i as u64 + 1) as usize);
        }
        let mut q = Problem::new();
        for &i in &rows {
            q.add(p.buffers()[i].spec, p.spans(i)).unwrap();
        }
        let second = plan(&q, &options).unwrap();
        if first.optimal && second.optimal {
            proven += 1;
            let up = |x| p.align().round_up(x).unwrap();
            assert_eq!(up(first.arena_bytes), up(second.arena_bytes), "{p:?}");
        }
    }
    assert!(proven > 50, "{proven}");
}

#[test]
fn hard_families_cost_no_quadratic_step() {
    // A time limit would depend on the machine; a quadratic step would take minutes here.
    let n = 200_000u32;
    type Life = fn(u32, u32) -> (u32, u32);
    let families: [Life; 3] = [|i, n| (i, 2 * n - i), |i, n| (i % 7, n + i % 5), |i, n| (i, i + n / 500)];
    for family in families {
        let mut p = Problem::with_capacity(n as usize);
        let mut r = Random(8);
        for i in 0..n {
            let (first, last) = family(i, n);
            p.add_one(BufferSpec::new(1 + r.below(1 << 16), Align::new(64).unwrap()), first, last).unwrap();
        }
        let found = plan(&p, &Options { effort: Some(5000), ..Options::default() }).unwrap();
        assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
        assert!(found.ratio() < 1.05, "{}", found.ratio());
    }
}

fn chain(rows: &[(u64, u32, u32)]) -> Problem {
    let mut p = Problem::new();
    for &(size, first, last) in rows {
        p.add_one(BufferSpec::new(size, Align::default()), first, last).unwrap();
    }
    p
}

#[test]
fn br_01_space_before_the_first_live_block_is_used() {
    let p = chain(&[(12800, 0, 1), (10240, 1, 2), (7680, 2, 3)]);
    assert_eq!(plan(&p, &Options::default()).unwrap().arena_bytes, 23040);
}

#[test]
fn br_17_smaller_tensors_never_need_a_larger_arena() {
    let before = chain(&[(512, 3, 4), (512, 2, 3), (640, 1, 1), (512, 1, 2)]);
    let after = chain(&[(512, 3, 4), (384, 2, 3), (640, 1, 1), (512, 1, 2)]);
    for s in Strategy::ALL {
        let old = plan(&before, &Options::of(s)).unwrap();
        let new = replan(&after, &old.offsets, Keep::Arena, &Options::of(s), &mut never).unwrap();
        assert!(new.plan.arena_bytes <= 1152 && new.plan.arena_bytes <= old.arena_bytes, "{s:?}");
        assert_eq!(new.moved, 0);
    }
}

#[test]
fn br_19_fixed_offsets_are_honoured_and_collisions_named() {
    let a = Align::default();
    let mut p = Problem::new();
    p.add_one(BufferSpec::new(1024, a).fixed_at(1024), 0, 1).unwrap();
    p.add_one(BufferSpec::new(1024, a), 0, 1).unwrap();
    p.add_one(BufferSpec::new(512, a), 1, 1).unwrap();
    for s in Strategy::ALL {
        let found = plan(&p, &Options::of(s)).unwrap();
        assert_eq!((found.arena_bytes, found.offsets[0]), (2560, 1024), "{s:?}");
    }
    p.add_one(BufferSpec::new(1024, a).fixed_at(1536), 1, 2).unwrap();
    for s in Strategy::ALL {
        let e = plan(&p, &Options::of(s)).unwrap_err();
        assert_eq!(e.kind, arenite::error::Kind::Argument, "{s:?}");
        assert_ne!(e.subject, e.other);
    }
}

#[test]
fn a_replan_moves_only_what_is_in_the_way() {
    let mut r = Random(9);
    for k in 0..200 {
        let p = problem(&mut r, 40, k % 2 == 0);
        let old = plan(&p, &Options { effort: Some(500), ..Options::default() }).unwrap();
        // One buffer grows.
        let grown = r.below(40) as usize;
        let mut q = Problem::new();
        for i in 0..40 {
            let mut spec = p.buffers()[i].spec;
            if i == grown && spec.fixed.is_none() {
                spec.size += 700;
            }
            q.add(spec, p.spans(i)).unwrap();
        }
        let kept = replan(&q, &old.offsets, Keep::Offsets, &Options::default(), &mut never).unwrap();
        assert_eq!(check(&q, &kept.plan.offsets), Ok(kept.plan.arena_bytes));
        let differ =
            (0..40).filter(|&i| q.buffers()[i].spec.size > 0 && old.offsets[i] != kept.plan.offsets[i]).count();
        assert_eq!(kept.moved, differ as u64);
        assert!(kept.moved <= 1, "growing one buffer moves at most that one: {}", kept.moved);
    }
}

#[test]
fn a_capacity_is_answered_with_its_reason() {
    let p = chain(&[(1024, 0, 1), (1024, 1, 2), (512, 1, 1)]);
    let ask = |capacity| fit(&p, capacity, &Options::of(Strategy::Exact), &mut never).unwrap();
    assert_eq!(ask(2560).verdict, Verdict::Fits);
    let no = ask(2048);
    assert_eq!(no.verdict, Verdict::TooMuchAlive { step: 1, needed: 2560 });
    assert_eq!(no.alive, [0, 1, 2]);
    assert_eq!(no.outside.len(), 1, "one buffer is outside, the others have their places");
    // Fits at every step, but not together: the bound is 7, the optimum 8.
    let mut q = Problem::new();
    let rows = [(3, 0, 1), (2, 1, 3), (2, 0, 0), (4, 3, 4), (3, 4, 5), (3, 2, 2), (3, 5, 6), (2, 2, 5)];
    for (size, first, last) in rows {
        q.add_one(BufferSpec::new(size, Align::ONE), first, last).unwrap();
    }
    let best = plan(&q, &Options::of(Strategy::Exact)).unwrap();
    assert!(best.optimal);
    let answer = fit(&q, best.arena_bytes - 1, &Options::of(Strategy::Exact), &mut never).unwrap();
    assert!(matches!(answer.verdict, Verdict::NoPacking | Verdict::TooMuchAlive { .. }), "{answer:?}");
}

#[test]
fn regions_fill_the_fast_one_and_report_spills() {
    let mut r = Random(10);
    for _ in 0..100 {
        let p = problem(&mut r, 60, true);
        let peak = plan(&p, &Options { effort: Some(500), ..Options::default() }).unwrap().arena_bytes;
        let regions = [Region { capacity: Some(peak / 2) }, Region { capacity: None }];
        let wishes: Vec<Wish> =
            (0..60).map(|i| Wish { allowed: if i % 10 == 0 { 2 } else { 3 }, benefit: 1 + r.below(50) }).collect();
        let options = Options { effort: Some(500), ..Options::default() };
        let out = plan_regions(&p, &regions, &wishes, &options, &mut never).unwrap();
        assert_eq!(out, plan_regions(&p, &regions, &wishes, &options, &mut never).unwrap());
        let size = |i: usize| p.buffers()[i].spec.size;
        #[allow(clippy::needless_range_loop)]
        for i in 0..60 {
            assert!(wishes[i].allowed >> out.region[i] & 1 == 1, "only allowed regions");
            if out.region[i] == 0 && size(i) > 0 {
                assert!(out.offsets[i] + size(i) <= peak / 2);
            }
            for j in 0..i {
                let apart = out.offsets[i] + size(i) <= out.offsets[j] || out.offsets[j] + size(j) <= out.offsets[i];
                let both = size(i) > 0 && size(j) > 0;
                assert!(!both || out.region[i] != out.region[j] || apart || !p.conflict(i, j));
            }
        }
        let spilled = |i: usize| out.spills.iter().any(|s| s.buffer as usize == i);
        assert!((0..60).all(|i| size(i) == 0 || spilled(i) == (i % 10 != 0 && out.region[i] == 1)));
    }
    let p = chain(&[(1024, 0, 1), (1024, 1, 2)]);
    let tight = [Region { capacity: Some(1024) }];
    let e = plan_regions(&p, &tight, &[Wish::default(); 2], &Options::default(), &mut never).unwrap_err();
    assert_eq!(e.kind, arenite::error::Kind::Capacity);
}

#[test]
fn sizes_at_the_edge_of_64_bits_are_planned_or_refused() {
    let half = u64::MAX / 2;
    for align in [1, 64, 65536] {
        let spec = |size| BufferSpec::new(size, Align::new(align).unwrap());
        let mut p = Problem::new();
        p.add_one(spec(half - 70_000), 0, 1).unwrap();
        p.add_one(spec(half - 70_000), 1, 2).unwrap();
        p.add_one(spec(9), 2, 3).unwrap();
        for s in Strategy::ALL {
            let found = plan(&p, &Options::of(s)).unwrap();
            assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
        }
        p.add_one(spec(half), 1, 1).unwrap();
        for s in Strategy::ALL {
            assert_eq!(plan(&p, &Options::of(s)).unwrap_err().kind, arenite::error::Kind::Overflow);
        }
    }
    for s in Strategy::ALL {
        let empty = plan(&Problem::new(), &Options::of(s)).unwrap();
        assert_eq!((empty.arena_bytes, empty.optimal), (0, true));
        let mut zero = Problem::new();
        zero.add_one(BufferSpec::new(0, Align::default()), 3, 9).unwrap();
        let found = plan(&zero, &Options::of(s)).unwrap();
        assert_eq!((found.arena_bytes, found.offsets), (0, vec![0]));
    }
}
