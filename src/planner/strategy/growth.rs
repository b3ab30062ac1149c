//! What the default path costs on families made to be hard: counted, since a time would depend on the machine.

use core::ops::ControlFlow;

use super::anytime::solve_counted;
use super::options::Options;
use crate::planner::check::check;
use crate::planner::problem::{BufferSpec, Problem, Span};
use crate::units::Align;

/// Limits that do not depend on the number of buffers: steps of the skyline's orders (twice), pairs listed by three
/// rules, and neighbours of ejection (twice). See `anytime`.
const CONSTANT: u64 = 2 * 60_000_000 + 3 * super::indexed::LISTED_PAIRS + 2 * 15_000_000;
/// Steps allowed for each n log n.
const FACTOR: u64 = 64;

type Life = fn(u32, u32) -> (u32, u32);

const FAMILIES: [(&str, Life); 9] = [
    ("chain", |i, _| (i, i + 1 + u32::from(i % 4 == 0) * (i % 60))),
    ("nested", |i, n| (i, 2 * n - i)),
    ("all overlapping", |i, n| (i % 7, n + i % 5)),
    ("staircase", |i, n| (i, i + n / 3)),
    ("same lifetime", |_, _| (3, 9)),
    ("comb", |i, n| if i % 2 == 0 { (0, n) } else { (i, i) }),
    ("combs both ways", |i, n| if i % 2 == 0 { (0, i) } else { (i, n) }),
    ("pyramid of pairs", |i, n| (i / 2, i / 2 + n / (1 + i % 16))),
    ("blocks", |i, _| (i / 64 * 8, i / 64 * 8 + i % 8)),
];

fn steps(life: Life, n: u32, same_size: bool, gaps: bool) -> u64 {
    let mut p = Problem::with_capacity(n as usize);
    let mut x = 7u64;
    for i in 0..n {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spec = BufferSpec::new(if same_size { 4096 } else { 1 + (x >> 44) }, Align::new(64).unwrap());
        let (first, last) = life(i, n);
        if gaps && last > first + 2 {
            let middle = first + (last - first) / 2;
            p.add(spec, &[Span::new(first, middle - 1), Span::new(middle + 1, last)]).unwrap();
        } else {
            p.add_one(spec, first, last).unwrap();
        }
    }
    // What search and windows may spend is limited by the effort; it is the rest that must not grow faster than n log n.
    let options = Options { effort: Some(200), ..Options::default() };
    let (plan, steps) = solve_counted(&p, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(check(&p, &plan.offsets), Ok(plan.arena_bytes));
    steps
}

#[test]
fn steps_grow_no_faster_than_n_log_n() {
    for (name, life) in FAMILIES {
        for (same_size, gaps) in [(false, false), (true, false), (false, true)] {
            for n in [1u32 << 12, 1 << 16] {
                let spent = steps(life, n, same_size, gaps);
                let most = FACTOR * u64::from(n) * u64::from(n.ilog2()) + CONSTANT;
                assert!(spent <= most, "{name}, {n} buffers: {spent} steps, at most {most}");
            }
        }
    }
}

/// Without the constants' help, above the sizes at which pairs are compared in any case (`CHEAP`): where the first orders find
/// the plan, hardly more than n log n is spent.
#[test]
fn easy_families_cost_little_at_any_size() {
    for (name, life) in [FAMILIES[0], FAMILIES[4], FAMILIES[8]] {
        for n in [1u32 << 13, 1 << 17] {
            let spent = steps(life, n, false, false);
            let most = 32 * u64::from(n) * u64::from(n.ilog2());
            assert!(spent <= most, "{name}, {n} buffers: {spent} steps, at most {most}");
        }
    }
}
