//! Lowest level first: always fill the lowest valley of the skyline.
//!
//! The skyline is the highest end in each section so far, as a list of flat stretches. The lowest stretch (the earliest of
//! equals) takes the first buffer in priority order that lies inside it; if none does, it is raised to its lower
//! neighbour and joined with it. A stretch is touched about twice a buffer, so a run costs n log n plus the queries. What
//! it makes is the first descent of the exact search.
//!
//! Burke, Kendall and Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting Problem" (2004), with time
//! as the strip's width.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::instance::{Instance, Range};

/// Finds buffers by priority among those that lie inside a range of sections.
pub(crate) trait Picker {
    /// The first buffer in priority order within `[lo, up)`, taken out.
    fn take(&mut self, lo: u32, up: u32) -> Option<u32>;
    /// Steps spent so far.
    fn steps(&self) -> u64;
}

const NONE: u32 = u32::MAX;

/// Priority by first section; among equals the given order decides. A query costs log n.
pub(crate) struct ByStart {
    order: Vec<u32>,
    /// Position of the first buffer that starts at or after each section.
    first: Vec<u32>,
    leaves: usize,
    /// The least last section below each node.
    least: Vec<u32>,
    steps: u64,
}

impl ByStart {
    /// `order` ascends by the first section of `hull`.
    pub fn new(order: Vec<u32>, hull: &[Range], sections: usize) -> ByStart {
        let leaves = order.len().next_power_of_two();
        let mut least = alloc::vec![NONE; 2 * leaves];
        let mut first = alloc::vec![0u32; sections + 1];
        for (k, &i) in order.iter().enumerate() {
            least[leaves + k] = hull[i as usize].up;
            first[hull[i as usize].lo as usize + 1] = k as u32 + 1;
        }
        for s in 1..=sections {
            first[s] = first[s].max(first[s - 1]);
        }
        for k in (1..leaves).rev() {
            least[k] = least[2 * k].min(least[2 * k + 1]);
        }
        ByStart { order, first, leaves, least, steps: 0 }
    }
}

impl Picker for ByStart {
    fn take(&mut self, lo: u32, up: u32) -> Option<u32> {
        let mut k = self.leaves + self.first[lo as usize] as usize;
        if k == 2 * self.leaves {
            return None;
        }
        // Right and up until a subtree holds one that ends in time, then down to its leftmost.
        while self.least[k] > up {
            self.steps += 1;
            while k & 1 == 1 {
                k /= 2;
            }
            if k == 0 {
                return None;
            }
            k += 1;
        }
        while k < self.leaves {
            self.steps += 1;
            k = if self.least[2 * k] <= up { 2 * k } else { 2 * k + 1 };
        }
        let taken = self.order[k - self.leaves];
        self.least[k] = NONE;
        while k > 1 {
            k /= 2;
            self.least[k] = self.least[2 * k].min(self.least[2 * k + 1]);
            self.steps += 1;
        }
        Some(taken)
    }

    fn steps(&self) -> u64 {
        self.steps
    }
}

/// Any priority. A query looks through the buffers that start in a narrow stretch, and descends a tree over ranks for
/// a wide one; the latter is no n log n in the worst case, so a run has a limit of steps.
pub(crate) struct ByRank {
    order: Vec<u32>,
    leaves: usize,
    /// The latest first and the earliest last section below each node, over ranks.
    node: Vec<(u32, u32)>,
    /// Last sections and ranks of buffers by first section, and where each section's begin.
    ends: Vec<u32>,
    ranks: Vec<u32>,
    first: Vec<u32>,
    place: Vec<u32>,
    stack: Vec<u32>,
    steps: u64,
}

/// Buffers starting in a stretch up to which looking at each is cheaper than the tree.
const NARROW: usize = 256;

impl ByRank {
    pub fn new(order: Vec<u32>, hull: &[Range], sections: usize) -> ByRank {
        let leaves = order.len().next_power_of_two();
        let mut node = alloc::vec![(0, NONE); 2 * leaves];
        let mut first = alloc::vec![0u32; sections + 2];
        for (rank, &i) in order.iter().enumerate() {
            let h = hull[i as usize];
            node[leaves + rank] = (h.lo + 1, h.up);
            first[h.lo as usize + 2] += 1;
        }
        for s in 0..=sections {
            first[s + 1] += first[s];
        }
        let (mut ends, mut ranks) = (alloc::vec![NONE; order.len()], alloc::vec![NONE; order.len()]);
        let mut place = alloc::vec![0u32; order.len()];
        for (rank, &i) in order.iter().enumerate() {
            let h = hull[i as usize];
            let at = &mut first[h.lo as usize + 1];
            ends[*at as usize] = h.up;
            ranks[*at as usize] = rank as u32;
            place[rank] = *at;
            *at += 1;
        }
        for k in (1..leaves).rev() {
            node[k] = join(node[2 * k], node[2 * k + 1]);
        }
        ByRank { order, leaves, node, ends, ranks, first, place, stack: Vec::new(), steps: 0 }
    }
}

fn join(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.max(b.0), a.1.min(b.1))
}

impl Picker for ByRank {
    fn take(&mut self, lo: u32, up: u32) -> Option<u32> {
        let (from, to) = (self.first[lo as usize] as usize, self.first[up as usize] as usize);
        let mut rank = NONE;
        if to - from <= NARROW {
            self.steps += (to - from) as u64 / 8 + 1;
            // Without a branch, so that several are looked at in one instruction.
            for (&end, &r) in self.ends[from..to].iter().zip(&self.ranks[from..to]) {
                rank = rank.min(if end <= up { r } else { NONE });
            }
        } else {
            self.stack.clear();
            self.stack.push(1);
            while let Some(k) = self.stack.pop() {
                self.steps += 1;
                let (latest, earliest) = self.node[k as usize];
                if latest <= lo || earliest > up {
                    continue;
                }
                if k as usize >= self.leaves {
                    rank = k - self.leaves as u32;
                    break;
                }
                self.stack.push(2 * k + 1);
                self.stack.push(2 * k);
            }
        }
        if rank == NONE {
            return None;
        }
        self.ends[self.place[rank as usize] as usize] = NONE;
        let mut k = self.leaves + rank as usize;
        self.node[k] = (0, NONE);
        while k > 1 {
            k /= 2;
            let joined = join(self.node[2 * k], self.node[2 * k + 1]);
            if joined == self.node[k] {
                break;
            }
            self.node[k] = joined;
        }
        Some(self.order[rank as usize])
    }

    fn steps(&self) -> u64 {
        self.steps
    }
}

/// A flat stretch of the skyline, kept at its first section.
#[derive(Clone, Copy, Default)]
struct Stretch {
    level: u64,
    end: u32,
    /// First section of the stretch before, `NONE` for the first.
    before: u32,
    alive: bool,
}

/// Stretches as (level, first section, end), the least first, each in one number: comparing is most of what a heap does.
#[derive(Default)]
struct Heap(BinaryHeap<Reverse<u128>>);

impl Heap {
    fn pack((level, start, end): (u64, u32, u32)) -> u128 {
        u128::from(level) << 64 | u128::from(start) << 32 | u128::from(end)
    }

    fn unpack(s: u128) -> (u64, u32, u32) {
        ((s >> 64) as u64, (s >> 32) as u32, s as u32)
    }

    fn push(&mut self, s: (u64, u32, u32)) {
        self.0.push(Reverse(Heap::pack(s)));
    }

    fn pop(&mut self) -> Option<(u64, u32, u32)> {
        self.0.pop().map(|Reverse(s)| Heap::unpack(s))
    }

    /// Puts `s` in and takes the least out.
    fn exchange(&mut self, s: (u64, u32, u32)) -> (u64, u32, u32) {
        let packed = Reverse(Heap::pack(s));
        match self.0.peek_mut() {
            Some(mut least) if least.0 < packed.0 => Heap::unpack(core::mem::replace(&mut *least, packed).0),
            _ => s,
        }
    }
}

/// Offsets in units for all buffers of `instance`, whose ranges are `hull` (those of the instance, or mirrored in time).
/// `None` as soon as a buffer would end above `limit` units or `steps` query steps are spent.
pub(crate) fn run(
    instance: &Instance,
    hull: &[Range],
    picker: &mut impl Picker,
    limit: u64,
    steps: u64,
) -> Option<Vec<u64>> {
    let sections = instance.sections() as u32;
    let mut offsets = alloc::vec![0u64; instance.len()];
    let mut left = instance.len();
    if left == 0 {
        return Some(offsets);
    }
    let mut sky: Vec<Stretch> = alloc::vec![Stretch::default(); sections as usize];
    let mut heap = Heap::default();
    sky[0] = Stretch { level: 0, end: sections, before: NONE, alive: true };
    // What is left of the lowest stretch is still the lowest, and need not go through the heap.
    let mut lowest = Some((0, 0, sections));
    while let Some((level, start, end)) = lowest.take().or_else(|| heap.pop()) {
        let s = sky[start as usize];
        if !s.alive || s.end != end || s.level != level {
            continue;
        }
        let Some(b) = picker.take(start, end) else {
            let after = if end < sections { Some(sky[end as usize].level) } else { None };
            let before = if s.before == NONE { None } else { Some(sky[s.before as usize].level) };
            let raised = match (before, after) {
                (Some(x), Some(y)) => x.min(y),
                (Some(x), None) | (None, Some(x)) => x,
                (None, None) => return None,
            };
            let (mut from, mut to, mut prior) = (start, end, s.before);
            sky[start as usize].alive = false;
            if before == Some(raised) {
                from = s.before;
                prior = sky[from as usize].before;
            }
            if after == Some(raised) {
                to = sky[end as usize].end;
                sky[end as usize].alive = false;
            }
            sky[from as usize] = Stretch { level: raised, end: to, before: prior, alive: true };
            if to < sections {
                sky[to as usize].before = from;
            }
            lowest = Some(heap.exchange((raised, from, to)));
            continue;
        };
        if picker.steps() > steps {
            return None;
        }
        let i = b as usize;
        let Range { lo, up } = hull[i];
        let at = level.checked_next_multiple_of(instance.align_of(i))?;
        let top = at.checked_add(instance.size[i])?;
        if top > limit {
            return None;
        }
        offsets[i] = at;
        left -= 1;
        if left == 0 {
            return Some(offsets);
        }
        // The stretch falls into what is left of it before the buffer, the buffer's top, and what is left after it.
        let mut prior = s.before;
        sky[start as usize].alive = false;
        if lo > start {
            sky[start as usize] = Stretch { level, end: lo, before: prior, alive: true };
            lowest = Some((level, start, lo));
            prior = start;
        }
        let (mut from, mut to) = (lo, up);
        if lo == start && prior != NONE && sky[prior as usize].level == top {
            from = prior;
            prior = sky[from as usize].before;
        }
        if up == end && up < sections && sky[up as usize].level == top {
            to = sky[up as usize].end;
            sky[up as usize].alive = false;
        }
        sky[from as usize] = Stretch { level: top, end: to, before: prior, alive: true };
        if up < end {
            sky[up as usize] = Stretch { level, end, before: from, alive: true };
            match lowest {
                None => lowest = Some((level, up, end)),
                Some(_) => heap.push((level, up, end)),
            }
            if end < sections {
                sky[end as usize].before = up;
            }
        } else if to < sections {
            sky[to as usize].before = from;
        }
        match lowest {
            None => lowest = Some(heap.exchange((top, from, to))),
            Some(_) => heap.push((top, from, to)),
        }
    }
    None
}
