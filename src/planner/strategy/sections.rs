//! Time reduced to what matters: the maximal cliques, and the moments at which buffers are born or die.

use alloc::vec::Vec;

use crate::planner::problem::Problem;
use crate::units::Step;

/// Where the maximal cliques are: a section ends at each step after which a buffer dies that met a new one before.
///
/// Nothing here depends on how long a step is, only on the order of births and deaths, so stretching time or adding steps
/// at which nothing changes gives the same.
pub(crate) struct Sections {
    /// Last step of each section; left empty where steps are dense.
    ends: Vec<Step>,
    /// Births and deaths as (step at which the change is seen), ascending, distinct; left empty where steps are dense.
    changes: Vec<u64>,
    /// Sections, and moments of change, up to and including each step, where steps are dense.
    upto: Vec<(u32, u32)>,
    count: usize,
}

const BIRTH: u8 = 1;
const DEATH: u8 = 2;

impl Sections {
    pub fn of(problem: &Problem) -> Sections {
        let n = problem.len();
        let (mut spans, mut last) = (0usize, 0u32);
        let live = |i: &usize| problem.buffers()[*i].spec.size > 0;
        for i in (0..n).filter(live) {
            let s = problem.spans(i);
            spans += s.len();
            last = last.max(s[s.len() - 1].last);
        }
        let mut out = Sections { ends: Vec::new(), changes: Vec::new(), upto: Vec::new(), count: 0 };
        if spans == 0 {
            return out;
        }
        if (last as usize) < 8 * spans + 1024 {
            let mut marks = alloc::vec![0u8; last as usize + 1];
            for i in (0..n).filter(live) {
                for s in problem.spans(i) {
                    marks[s.first as usize] |= BIRTH;
                    marks[s.last as usize] |= DEATH;
                }
            }
            out.upto.reserve_exact(marks.len());
            let (mut fresh, mut died, mut sections, mut moments) = (false, false, 0, 0);
            for mark in marks {
                moments += u32::from(died || mark & BIRTH != 0);
                died = mark & DEATH != 0;
                fresh |= mark & BIRTH != 0;
                if fresh && died {
                    sections += 1;
                    fresh = false;
                }
                out.upto.push((sections, moments));
            }
            out.count = sections as usize;
            return out;
        }
        let mut events: Vec<u64> = Vec::with_capacity(2 * spans);
        for i in (0..n).filter(live) {
            for s in problem.spans(i) {
                events.push(u64::from(s.first) << 1);
                events.push(u64::from(s.last) << 1 | 1);
            }
        }
        events.sort_unstable();
        let mut fresh = false;
        for &e in &events {
            if e & 1 == 0 {
                fresh = true;
            } else if fresh {
                out.ends.push((e >> 1) as Step);
                fresh = false;
            }
        }
        // A death is seen at the step after the last one.
        out.changes = events;
        out.changes.iter_mut().for_each(|e| *e = (*e >> 1) + (*e & 1));
        out.changes.dedup();
        out.count = out.ends.len();
        out
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Sections before `first`.
    pub fn from(&self, first: Step) -> u32 {
        if self.upto.is_empty() {
            return self.ends.partition_point(|&t| t < first) as u32;
        }
        if first == 0 {
            0
        } else {
            self.upto[first as usize - 1].0
        }
    }

    /// Sections up to and including `last`.
    pub fn to(&self, last: Step) -> u32 {
        if self.upto.is_empty() {
            return self.ends.partition_point(|&t| t <= last) as u32;
        }
        self.upto[last as usize].0
    }

    /// How many stretches without birth or death the steps `first..=last` of a lifetime consist of.
    pub fn moments(&self, first: Step, last: Step) -> u32 {
        if self.upto.is_empty() {
            let upto = |t: Step| self.changes.partition_point(|&c| c <= u64::from(t));
            return (upto(last) - upto(first) + 1) as u32;
        }
        self.upto[last as usize].1 - self.upto[first as usize].1 + 1
    }
}
