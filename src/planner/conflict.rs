//! Which buffers share a step: counted first, since the number of pairs decides what is affordable.

use alloc::vec::Vec;

use super::problem::Problem;

/// For every buffer the others that share a step with it, in one flat array.
#[derive(Clone, Debug, Default)]
pub struct Conflicts {
    start: Vec<usize>,
    others: Vec<u32>,
}

/// Spans as (first, last, buffer), ascending.
fn rows(problem: &Problem) -> Vec<(u32, u32, u32)> {
    let mut rows = Vec::with_capacity(problem.len());
    for (i, b) in problem.buffers().iter().enumerate() {
        if b.spec.size > 0 {
            rows.extend(problem.spans(i).iter().map(|s| (s.first, s.last, i as u32)));
        }
    }
    rows.sort_unstable();
    rows
}

impl Conflicts {
    /// The number of pairs of spans that share a step, found in n log n; at least the number of conflicting pairs of
    /// buffers, and equal to it where every buffer has one span.
    pub fn count(problem: &Problem) -> u64 {
        Conflicts::count_rows(&rows(problem))
    }

    fn count_rows(rows: &[(u32, u32, u32)]) -> u64 {
        let mut ends: Vec<u32> = rows.iter().map(|r| r.1).collect();
        ends.sort_unstable();
        let (mut ended, mut pairs) = (0usize, 0u64);
        for (i, r) in rows.iter().enumerate() {
            while ends[ended] < r.0 {
                ended += 1;
            }
            pairs += (i - ended) as u64;
        }
        pairs
    }

    /// All conflicting pairs. Memory is 8 bytes a pair: call [`Conflicts::count`] first.
    pub fn of(problem: &Problem) -> Conflicts {
        Conflicts::of_rows(problem.len(), &rows(problem))
    }

    /// All conflicting pairs where [`Conflicts::count`] is `most` at most. What cannot be more is not counted.
    pub(crate) fn within(problem: &Problem, most: u64) -> Option<Conflicts> {
        let rows = rows(problem);
        let spans = rows.len() as u64;
        let few = spans * spans.saturating_sub(1) / 2 <= most;
        (few || Conflicts::count_rows(&rows) <= most).then(|| Conflicts::of_rows(problem.len(), &rows))
    }

    fn of_rows(n: usize, rows: &[(u32, u32, u32)]) -> Conflicts {
        let mut degree = alloc::vec![0usize; n + 1];
        each_pair(rows, |a, b| {
            degree[a as usize + 1] += 1;
            degree[b as usize + 1] += 1;
        });
        for i in 0..n {
            degree[i + 1] += degree[i];
        }
        let mut others = alloc::vec![0u32; degree[n]];
        let mut next = degree.clone();
        each_pair(rows, |a, b| {
            others[next[a as usize]] = b;
            next[a as usize] += 1;
            others[next[b as usize]] = a;
            next[b as usize] += 1;
        });
        let mut out = Conflicts { start: degree, others };
        if rows.len() > n {
            out.dedup(n);
        }
        out
    }

    /// Several spans can make a pair appear more than once.
    fn dedup(&mut self, n: usize) {
        let mut to = 0;
        let mut from = self.start[0];
        for i in 0..n {
            let end = self.start[i + 1];
            self.others[from..end].sort_unstable();
            let begin = to;
            for k in from..end {
                let o = self.others[k];
                if o as usize != i && (to == begin || self.others[to - 1] != o) {
                    self.others[to] = o;
                    to += 1;
                }
            }
            from = end;
            self.start[i + 1] = to;
        }
        self.others.truncate(to);
    }

    /// The buffers that conflict with `index`, in no order.
    pub fn with(&self, index: usize) -> &[u32] {
        &self.others[self.start[index]..self.start[index + 1]]
    }
}

/// Calls `f` for every pair of different buffers whose spans share a step, once per pair of spans.
fn each_pair(rows: &[(u32, u32, u32)], mut f: impl FnMut(u32, u32)) {
    let mut live: Vec<(u32, u32)> = Vec::new();
    for &(first, last, buffer) in rows {
        let mut i = 0;
        while i < live.len() {
            if live[i].0 < first {
                live.swap_remove(i);
            } else {
                if live[i].1 != buffer {
                    f(live[i].1, buffer);
                }
                i += 1;
            }
        }
        live.push((last, buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::problem::{BufferSpec, Span};
    use crate::units::Align;

    #[test]
    fn lists_and_count_agree_with_the_definition() {
        let mut p = Problem::new();
        let mut x = 12345u32;
        let mut next = |n: u32| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 16) % n
        };
        for i in 0..60 {
            let first = next(40);
            let mid = first + next(6);
            let mut spans = alloc::vec![Span::new(first, mid)];
            if i % 3 == 0 {
                let again = mid + 2 + next(5);
                spans.push(Span::new(again, again + next(4)));
            }
            p.add(BufferSpec::new(u64::from(next(9)), Align::ONE), &spans).unwrap();
        }
        let c = Conflicts::of(&p);
        let mut pairs = 0;
        for i in 0..p.len() {
            let mut found: Vec<u32> = c.with(i).to_vec();
            found.sort_unstable();
            let want: Vec<u32> = (0..p.len() as u32)
                .filter(|&j| {
                    let live = |k: usize| p.buffers()[k].spec.size > 0;
                    j as usize != i && live(i) && live(j as usize) && p.conflict(i, j as usize)
                })
                .collect();
            assert_eq!(found, want, "buffer {i}");
            pairs += want.len();
        }
        assert!(Conflicts::count(&p) >= pairs as u64 / 2);
    }
}
