//! The exact search against a brute-force optimum in raw bytes, on small problems with everything a problem can have.

use arenite::planner::check::check;
use arenite::planner::{plan, BufferSpec, Options, Problem, Span, Strategy};
use arenite::units::Align;

/// SplitMix64: small, seeded, the same everywhere.
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

/// A random problem: `kind` adds alignments, several spans and fixed offsets.
fn problem(r: &mut Random, most: u64) -> Problem {
    let mut p = Problem::new();
    let n = 2 + r.below(most - 1);
    let (steps, sizes) = (3 + r.below(6), [4, 9, 30][r.below(3) as usize]);
    let kind = r.below(8);
    for _ in 0..n {
        let align = if kind & 1 != 0 { 1 << r.below(4) } else { 1 << (kind & 2) };
        let mut spec = BufferSpec::new(r.below(sizes + 1), Align::new(align).unwrap());
        let first = r.below(steps) as u32;
        let last = first + r.below(4) as u32;
        let mut spans = vec![Span::new(first, last)];
        if kind & 4 != 0 && r.below(3) == 0 {
            let again = last + 2 + r.below(2) as u32;
            spans.push(Span::new(again, again + r.below(3) as u32));
        }
        if kind & 2 != 0 && r.below(5) == 0 {
            let at = r.below(2 * sizes) / align * align;
            // Fixed offsets that collide are an error, which is tested elsewhere.
            let free = (0..p.len()).all(|k| {
                let s = p.buffers()[k].spec;
                s.fixed.is_none_or(|f| f >= at + spec.size || at >= f + s.size)
            });
            if free {
                spec = spec.fixed_at(at);
            }
        }
        p.add(spec, &spans).unwrap();
    }
    p
}

/// The smallest arena: first fit over all permutations, fixed buffers first. Sorting an optimal plan by offset gives a
/// permutation for which first fit is no worse.
fn optimum(p: &Problem) -> u64 {
    fn go(p: &Problem, left: &mut Vec<usize>, placed: &mut Vec<(usize, u64)>, arena: u64, best: &mut u64) {
        if arena >= *best {
            return;
        }
        if left.is_empty() {
            *best = arena;
            return;
        }
        for k in 0..left.len() {
            let i = left.swap_remove(k);
            let spec = p.buffers()[i].spec;
            let step = spec.align.bytes();
            let mut at = 0;
            while let Some(&(o, from)) = placed
                .iter()
                .find(|&&(o, from)| from < at + spec.size && at < from + p.buffers()[o].spec.size && p.conflict(i, o))
            {
                at = (from + p.buffers()[o].spec.size).div_ceil(step) * step;
            }
            placed.push((i, at));
            go(p, left, placed, arena.max(at + spec.size), best);
            placed.pop();
            left.push(i);
            let end = left.len() - 1;
            left.swap(k, end);
        }
    }
    let live = |i: &usize| p.buffers()[*i].spec.size > 0;
    let fixed = |i: usize| p.buffers()[i].spec.fixed;
    let mut placed: Vec<(usize, u64)> = (0..p.len()).filter(live).filter_map(|i| fixed(i).map(|at| (i, at))).collect();
    let arena = placed.iter().map(|&(i, at)| at + p.buffers()[i].spec.size).max().unwrap_or(0);
    let mut left: Vec<usize> = (0..p.len()).filter(live).filter(|&i| fixed(i).is_none()).collect();
    let mut best = u64::MAX;
    go(p, &mut left, &mut placed, arena, &mut best);
    best
}

fn exact(rules: u64) -> Options {
    let mut o = Options::of(Strategy::Exact);
    o.rules.heuristics = false;
    match rules {
        1 => o.rules.bound = false,
        2 => o.rules.hole = false,
        3 => o.rules.stacking = false,
        4 => o.rules.twins = false,
        5 => o.rules.memory = false,
        6 => o.rules.split = false,
        7 => o.rules.release = false,
        8 => o.rules.heuristics = true,
        _ => {}
    }
    if rules > 8 {
        o.rules.order = Some((rules - 9) as u16);
    }
    o
}

fn compare(p: &Problem, rules: u64) {
    let best = optimum(p);
    let mut options = exact(rules);
    let found = plan(p, &options).unwrap();
    assert_eq!(check(p, &found.offsets), Ok(found.arena_bytes));
    let up = |x| p.align().round_up(x).unwrap();
    assert!(found.optimal, "rules {rules}: {p:?} {found:?}");
    assert_eq!(up(found.arena_bytes), up(best), "rules {rules}: optimum {best} of {p:?}, found {found:?}");
    assert!(found.lower_bound <= best, "rules {rules}: optimum {best} of {p:?}, claimed {found:?}");
    // The capacity question is exact to the byte.
    options.capacity = Some(best);
    let found = plan(p, &options).unwrap();
    assert!(found.arena_bytes <= best, "rules {rules}: {best} bytes are enough for {p:?}, found {found:?}");
    if best > 0 {
        options.capacity = Some(best - 1);
        let found = plan(p, &options).unwrap();
        assert_eq!(found.lower_bound, best.max(found.lower_bound), "rules {rules}: {best} is least for {p:?}");
        assert!(found.lower_bound <= best, "rules {rules}: {best} is enough for {p:?}, claimed {found:?}");
    }
}

#[test]
fn a_hundred_thousand_small_problems_are_solved_to_the_byte() {
    let mut r = Random(1);
    for k in 0..100_000u64 {
        compare(&problem(&mut r, 6), k % 21);
    }
}

#[test]
fn larger_ones_too() {
    let mut r = Random(2);
    for k in 0..10_000u64 {
        compare(&problem(&mut r, 8), k % 21);
    }
}

#[test]
fn equal_lifetimes_are_not_one_buffer() {
    // Merging the last two, which live alike, would make 8 of it.
    let rows = [(2, 5, 2), (1, 3, 3), (1, 4, 1), (0, 1, 4), (5, 6, 3), (0, 2, 3), (3, 6, 1), (3, 6, 3)];
    let mut p = Problem::new();
    for (lower, upper, size) in rows {
        p.add_one(BufferSpec::new(size, Align::ONE), lower, upper - 1).unwrap();
    }
    for rules in 0..21 {
        let found = plan(&p, &exact(rules)).unwrap();
        assert_eq!((found.arena_bytes, found.optimal), (7, true), "rules {rules}");
    }
}
