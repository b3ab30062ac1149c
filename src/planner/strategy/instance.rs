//! A problem made ready for search: no empty buffers, sizes in units, time reduced to the sections that matter.

use alloc::vec::Vec;

use super::sections::Sections;
use crate::planner::problem::Problem;
use crate::units::{Align, Bytes};

/// A half-open range of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub lo: u32,
    pub up: u32,
}

/// Buffers of at least one byte over *sections*: the maximal cliques of the interval graph, in order of time.
///
/// Two buffers conflict exactly if they share a section, so steps between two sections carry nothing new. Sizes and
/// offsets are in `unit` bytes: every bottom-justified offset is a multiple of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instance {
    /// Index of each buffer in the problem.
    pub source: Vec<u32>,
    /// Sizes in units, rounded up. The padding counts only for the topmost buffer; see [`Instance::cap`].
    pub size: Vec<u64>,
    /// Sizes in bytes.
    pub raw: Vec<Bytes>,
    /// Alignments in units; empty where every offset in units will do.
    pub align: Vec<u64>,
    /// Fixed offsets in units, `u64::MAX` where free; empty where nothing is fixed.
    pub fixed: Vec<u64>,
    /// Steps alive.
    pub life: Vec<u64>,
    /// Stretches without birth or death within each lifetime: its length, whatever the scale of time.
    pub moments: Vec<u32>,
    /// First and one past the last section of each buffer.
    pub hull: Vec<Range>,
    /// For buffers of several spans, `pieces[starts[i]..starts[i + 1]]`; both empty where all have one.
    pub starts: Vec<u32>,
    pub pieces: Vec<Range>,
    sections: usize,
    /// Bytes in a unit.
    pub unit: Bytes,
}

/// Buffers up to which the direction of time is made not to matter.
const CANONICAL: usize = 8192;

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Instance {
    pub fn new(problem: &Problem) -> Instance {
        let n = problem.len();
        let mut out = Instance { unit: 1, ..Instance::default() };
        out.reserve(n);
        let live = |i: &usize| problem.buffers()[*i].spec.size > 0;
        let least = (0..n).filter(live).map(|i| problem.buffers()[i].spec.align).min().unwrap_or(Align::ONE);
        // Sizes rounded to the least alignment: no offset lies inside the padding.
        let rounded = |size: Bytes| least.round_up(size).unwrap_or(size);
        let (mut unit, mut strictest, mut fixed, mut several) = (0u64, 1u64, false, false);
        for i in (0..n).filter(live) {
            let spec = &problem.buffers()[i].spec;
            let size = rounded(spec.size);
            if unit == 0 || size % unit != 0 {
                unit = gcd(size, unit);
            }
            if let Some(at) = spec.fixed {
                fixed = true;
                unit = gcd(unit, at);
            }
            strictest = strictest.max(spec.align.bytes());
            several |= problem.spans(i).len() > 1;
        }
        if strictest > 1 && unit % strictest != 0 {
            unit = gcd(unit, strictest);
        }
        out.unit = unit.max(1);
        let aligned = !out.unit.is_multiple_of(strictest);
        let sections = Sections::of(problem);
        for i in (0..n).filter(live) {
            let spec = &problem.buffers()[i].spec;
            out.source.push(i as u32);
            out.raw.push(spec.size);
            out.size.push(spec.size.div_ceil(out.unit));
            if aligned {
                out.align.push((spec.align.bytes() / out.unit).max(1));
            }
            if fixed {
                out.fixed.push(spec.fixed.map_or(u64::MAX, |at| at / out.unit));
            }
            let spans = problem.spans(i);
            let hull = Range { lo: sections.from(spans[0].first), up: sections.to(spans[spans.len() - 1].last) };
            out.hull.push(hull);
            out.life.push(spans.iter().map(|s| u64::from(s.last - s.first) + 1).sum());
            out.moments.push(spans.iter().map(|s| sections.moments(s.first, s.last)).sum());
            if several {
                out.starts.push(out.pieces.len() as u32);
                for s in spans {
                    let piece = Range { lo: sections.from(s.first), up: sections.to(s.last) };
                    // A gap in which nothing that matters happens is no gap.
                    let fresh = out.starts[out.starts.len() - 1] as usize == out.pieces.len();
                    match out.pieces.last_mut() {
                        Some(p) if !fresh && p.up == piece.lo => p.up = piece.up,
                        _ => out.pieces.push(piece),
                    }
                }
            }
        }
        if several {
            out.starts.push(out.pieces.len() as u32);
        }
        if out.pieces.len() == out.source.len() {
            (out.starts, out.pieces) = (Vec::new(), Vec::new());
        }
        out.sections = sections.count();
        if n <= CANONICAL && out.runs_backwards() {
            out.reverse();
        }
        out
    }

    /// Whether time is taken from its end: a problem and its mirror image are then one and the same instance. The sums
    /// alive and the numbers of births, read from both ends, decide.
    fn runs_backwards(&self) -> bool {
        let mut sums: Vec<(i128, i64)> = alloc::vec![(0, 0); self.sections + 1];
        for i in 0..self.len() {
            for r in self.ranges(i) {
                for (at, sign) in [(r.lo, 1), (r.up, -1)] {
                    let change = &mut sums[at as usize];
                    *change = (change.0 + sign * i128::from(self.size[i]), change.1 + sign as i64);
                }
            }
        }
        for s in 1..self.sections {
            sums[s] = (sums[s].0 + sums[s - 1].0, sums[s].1 + sums[s - 1].1);
        }
        let sums = &sums[..self.sections];
        sums.iter().rev().lt(sums.iter())
    }

    fn reverse(&mut self) {
        let end = self.sections as u32;
        let turn = |r: &mut Range| *r = Range { lo: end - r.up, up: end - r.lo };
        self.hull.iter_mut().for_each(turn);
        self.pieces.iter_mut().for_each(turn);
        for s in self.starts.windows(2) {
            self.pieces[s[0] as usize..s[1] as usize].reverse();
        }
    }

    fn reserve(&mut self, n: usize) {
        self.source.reserve_exact(n);
        self.size.reserve_exact(n);
        self.raw.reserve_exact(n);
        self.life.reserve_exact(n);
        self.moments.reserve_exact(n);
        self.hull.reserve_exact(n);
    }

    pub fn len(&self) -> usize {
        self.source.len()
    }

    pub fn sections(&self) -> usize {
        self.sections
    }

    /// The section ranges of buffer `i`, ascending.
    pub fn ranges(&self, i: usize) -> &[Range] {
        if self.starts.is_empty() {
            core::slice::from_ref(&self.hull[i])
        } else {
            &self.pieces[self.starts[i] as usize..self.starts[i + 1] as usize]
        }
    }

    pub fn align_of(&self, i: usize) -> u64 {
        self.align.get(i).copied().unwrap_or(1)
    }

    pub fn fixed_of(&self, i: usize) -> Option<u64> {
        self.fixed.get(i).copied().filter(|&at| at != u64::MAX)
    }

    /// The highest offset in units at which buffer `i` ends within `capacity` bytes, if any.
    pub fn cap(&self, i: usize, capacity: Bytes) -> Option<u64> {
        capacity.checked_sub(self.raw[i]).map(|room| room / self.unit)
    }

    /// The arena of offsets given in units, in bytes, or `None` where it does not fit 64 bits.
    pub fn arena(&self, offsets: &[u64]) -> Option<Bytes> {
        let mut most = 0;
        for (i, &at) in offsets.iter().enumerate() {
            most = most.max(at.checked_mul(self.unit)?.checked_add(self.raw[i])?);
        }
        Some(most)
    }

    /// Sum of sizes in units for each section, or `None` where one does not fit 64 bits.
    pub fn totals(&self) -> Option<Vec<u64>> {
        let mut change: Vec<i128> = alloc::vec![0; self.sections() + 1];
        for i in 0..self.len() {
            for r in self.ranges(i) {
                change[r.lo as usize] += i128::from(self.size[i]);
                change[r.up as usize] -= i128::from(self.size[i]);
            }
        }
        let mut sum = 0i128;
        change[..self.sections()]
            .iter()
            .map(|d| {
                sum += d;
                u64::try_from(sum).ok()
            })
            .collect()
    }

    /// A part of the instance as one of its own, over sections `[from, to)`: the buffers `free`, which lie inside, and
    /// fixed blocks (range of the whole instance, offset, size), clipped. Blocks have the source `u32::MAX`.
    pub fn window(&self, free: &[u32], blocks: &[(Range, u64, u64)], from: u32, to: u32) -> Instance {
        let mut out = Instance { unit: self.unit, ..Instance::default() };
        out.reserve(free.len() + blocks.len());
        let several = !self.starts.is_empty();
        let clip = |r: &Range| Range { lo: r.lo.max(from) - from, up: r.up.min(to) - from };
        for &m in free {
            let i = m as usize;
            out.source.push(m);
            out.size.push(self.size[i]);
            out.raw.push(self.raw[i]);
            out.life.push(self.life[i]);
            out.moments.push(self.moments[i]);
            out.hull.push(clip(&self.hull[i]));
            if !self.align.is_empty() {
                out.align.push(self.align[i]);
            }
            if several {
                out.starts.push(out.pieces.len() as u32);
                out.pieces.extend(self.ranges(i).iter().map(clip));
            }
        }
        if !blocks.is_empty() {
            out.fixed.resize(free.len(), u64::MAX);
        }
        for &(range, at, size) in blocks {
            out.source.push(u32::MAX);
            out.size.push(size);
            out.raw.push(size * self.unit);
            out.life.push(u64::from(range.up - range.lo));
            out.moments.push(range.up - range.lo);
            out.hull.push(clip(&range));
            out.fixed.push(at);
            if !self.align.is_empty() {
                out.align.push(1);
            }
            if several {
                out.starts.push(out.pieces.len() as u32);
                out.pieces.push(clip(&range));
            }
        }
        if several {
            out.starts.push(out.pieces.len() as u32);
        }
        out.sections = (to - from) as usize;
        out
    }
}
