//! A walk through a part node by node, with the bytes alive, and steps taken back.

use alloc::vec::Vec;

use super::part::Part;
use crate::units::Bytes;

/// A downward closed set of nodes that have run, and what is alive after them.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    part: &'a Part,
    /// Per cell, how many of its users have run.
    touched: Vec<u32>,
    /// Per node, how many nodes it waits for.
    waits: Vec<u32>,
    /// Nodes that may run now, ascending.
    pub ready: Vec<u32>,
    /// What has run, in that order.
    pub path: Vec<u32>,
    /// The same as a set.
    pub done: Vec<u64>,
    /// Bytes alive between the nodes.
    pub live: Bytes,
    /// Most bytes alive at a node so far. [`Walk::back`] leaves it alone.
    pub peak: Bytes,
}

impl<'a> Walk<'a> {
    pub fn new(part: &'a Part) -> Walk<'a> {
        let n = part.spots.len();
        let waits: Vec<u32> = part.spots.iter().map(|s| s.before.len() as u32).collect();
        let live = part.at_start();
        Walk {
            part,
            touched: alloc::vec![0; part.cells.len()],
            ready: (0..n as u32).filter(|&v| waits[v as usize] == 0).collect(),
            waits,
            path: Vec::with_capacity(n),
            done: alloc::vec![0; n.div_ceil(64)],
            live,
            peak: 0,
        }
    }

    /// Whether every node has run.
    pub fn complete(&self) -> bool {
        self.path.len() == self.part.spots.len()
    }

    /// Bytes alive while `v` runs, and after it, if it runs now.
    pub fn look(&self, v: u32) -> (Bytes, Bytes) {
        let spot = &self.part.spots[v as usize];
        let (mut during, mut freed) = (self.live, 0);
        for &c in &spot.cells {
            let (cell, touched) = (&self.part.cells[c as usize], self.touched[c as usize]);
            if touched == 0 && !cell.born {
                during += cell.bytes;
            }
            if touched as usize + 1 == cell.users.len() && !cell.kept {
                freed += cell.bytes;
            }
        }
        (during + spot.extra, during - freed)
    }

    /// Runs `v`, which must be ready.
    pub fn run(&mut self, v: u32) {
        let (during, after) = self.look(v);
        self.peak = self.peak.max(during);
        self.live = after;
        let part = self.part;
        for &c in &part.spots[v as usize].cells {
            self.touched[c as usize] += 1;
        }
        if let Ok(at) = self.ready.binary_search(&v) {
            self.ready.remove(at);
        }
        for &w in &part.spots[v as usize].after {
            self.waits[w as usize] -= 1;
            if self.waits[w as usize] == 0 {
                if let Err(at) = self.ready.binary_search(&w) {
                    self.ready.insert(at, w);
                }
            }
        }
        self.done[v as usize / 64] |= 1 << (v % 64);
        self.path.push(v);
    }

    /// Takes the last node back.
    pub fn back(&mut self) {
        let Some(v) = self.path.pop() else { return };
        let part = self.part;
        let spot = &part.spots[v as usize];
        for &w in &spot.after {
            if self.waits[w as usize] == 0 {
                if let Ok(at) = self.ready.binary_search(&w) {
                    self.ready.remove(at);
                }
            }
            self.waits[w as usize] += 1;
        }
        if let Err(at) = self.ready.binary_search(&v) {
            self.ready.insert(at, v);
        }
        for &c in &spot.cells {
            self.touched[c as usize] -= 1;
        }
        self.done[v as usize / 64] &= !(1 << (v % 64));
        // Undoes what `look` says of `v` from here: what it freed is alive again, what it made is not.
        for &c in &spot.cells {
            let (cell, touched) = (&part.cells[c as usize], self.touched[c as usize]);
            if touched as usize + 1 == cell.users.len() && !cell.kept {
                self.live += cell.bytes;
            }
            if touched == 0 && !cell.born {
                self.live -= cell.bytes;
            }
        }
    }

    /// Takes nodes back until `len` have run.
    pub fn back_to(&mut self, len: usize) {
        while self.path.len() > len {
            self.back();
        }
    }

    /// Runs what may run at once without loss under the peak `limit`; returns how many nodes it looked at.
    ///
    /// A chain of nodes, each enabled by the one before, that stays within the limit and leaves no more alive than there
    /// was can be moved to the front of any order that meets the limit: the bytes alive are a submodular function of
    /// what has run, so every node that it overtakes sees no more alive than before. (For trees this is how Liu's
    /// hill-valley segments arise: J. W. H. Liu, "An application of generalized tree pebbling to sparse matrix
    /// factorization", SIAM J. Alg. Disc. Meth. 8, 1987.)
    pub fn settle(&mut self, limit: Bytes) -> u64 {
        const LONGEST: usize = 48;
        let mut looked = 0;
        let mut at = 0;
        while at < self.ready.len() {
            let (start, level, peak) = (self.path.len(), self.live, self.peak);
            let mut next = Some(self.ready[at]);
            while let Some(v) = next {
                looked += 1;
                let (during, after) = self.look(v);
                if during > limit || self.path.len() - start >= LONGEST {
                    break;
                }
                self.run(v);
                if after <= level {
                    break;
                }
                // The best of the nodes that this one enabled.
                let part = self.part;
                let enabled = part.spots[v as usize].after.iter().filter(|&&w| self.waits[w as usize] == 0);
                next = enabled.map(|&w| (self.look(w).1, w)).min().map(|(_, w)| w);
            }
            if self.path.len() > start && self.live <= level {
                at = 0; // what was ready before may be free now
            } else {
                self.back_to(start);
                self.peak = peak;
                at += 1;
            }
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::super::part::tests::random;
    use super::*;

    #[test]
    fn steps_taken_back_leave_nothing_behind() {
        let mut state = 3u64;
        let mut next = |k: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % k
        };
        for _ in 0..30 {
            let part = random(10, &mut next);
            let mut walk = Walk::new(&part);
            let mut trail = Vec::new();
            while !walk.complete() {
                trail.push(walk.clone());
                let v = walk.ready[next(walk.ready.len())];
                walk.run(v);
            }
            while let Some(was) = trail.pop() {
                walk.back();
                assert_eq!((walk.live, &walk.ready, &walk.done), (was.live, &was.ready, &was.done));
                assert_eq!((&walk.touched, &walk.waits), (&was.touched, &was.waits));
            }
        }
    }
}
