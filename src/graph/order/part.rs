//! What the search over orders sees: nodes with what must come before them, and cells of bytes that live from the first
//! node that touches them to the last.

use alloc::vec::Vec;

use crate::error::Error;
use crate::units::{add, Bytes};

/// Bytes that live together: a tensor with all that share its bytes in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Its size, rounded up to the plan's alignment.
    pub bytes: Bytes,
    /// Alive before the first node runs.
    pub born: bool,
    /// Alive after the last node has run.
    pub kept: bool,
    /// The nodes that touch it, ascending, each once.
    pub users: Vec<u32>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Nodes that run before it, ascending.
    pub before: Vec<u32>,
    /// Nodes that run after it, ascending.
    pub after: Vec<u32>,
    /// The cells it touches, each once.
    pub cells: Vec<u32>,
    /// Bytes alive while it runs only: kernel scratch, the subgraphs it calls.
    pub extra: Bytes,
}

/// A stretch of a graph. The given order is 0, 1, 2 and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub spots: Vec<Spot>,
    pub cells: Vec<Cell>,
    /// Bytes that are alive throughout whatever the order.
    pub base: Bytes,
}

impl Part {
    /// Checks once that no sum of these sizes can wrap, so that the search may add freely.
    pub fn checked(self) -> Result<Part, Error> {
        let mut sum = self.base;
        for bytes in self.cells.iter().map(|c| c.bytes).chain(self.spots.iter().map(|s| s.extra)) {
            sum = add(sum, bytes)?;
        }
        Ok(self)
    }

    /// Bytes alive before the first node runs.
    pub fn at_start(&self) -> Bytes {
        self.base + self.cells.iter().filter(|c| c.born).map(|c| c.bytes).sum::<Bytes>()
    }

    /// Most bytes alive at any node when the nodes run in `order`.
    pub fn peak(&self, order: &[u32]) -> Bytes {
        let mut walk = super::walk::Walk::new(self);
        order.iter().for_each(|&v| walk.run(v));
        walk.peak
    }

    /// The same part with time running backwards. The bytes alive at a node are those of cells that some node up to it
    /// and some node from it on touches, so every order has the peak of its mirror image. A search that is lost in one
    /// direction often is short in the other.
    pub fn mirrored(&self) -> Part {
        let last = self.spots.len() as u32 - u32::from(!self.spots.is_empty());
        let flip = |list: &[u32]| list.iter().rev().map(|&v| last - v).collect::<Vec<u32>>();
        let spots = self.spots.iter().rev();
        Part {
            spots: spots
                .map(|s| Spot {
                    before: flip(&s.after),
                    after: flip(&s.before),
                    cells: s.cells.clone(),
                    extra: s.extra,
                })
                .collect(),
            cells: self
                .cells
                .iter()
                .map(|c| Cell { bytes: c.bytes, born: c.kept, kept: c.born, users: flip(&c.users) })
                .collect(),
            base: self.base,
        }
    }

    /// A peak that no order goes below: at each node, the cells it touches and those that must be alive because
    /// something has to come before the node and something after it.
    pub fn floor(&self) -> Bytes {
        let n = self.spots.len();
        let sources = self.reach(|s| &s.before, 0..n);
        let sinks = self.reach(|s| &s.after, (0..n).rev());
        let has = |set: &[u64], list: &[u32]| list.iter().any(|&u| set[u as usize / 64] >> (u % 64) & 1 == 1);
        let words = n.div_ceil(64);
        let mut floor = self.base;
        for (v, spot) in self.spots.iter().enumerate() {
            let mut live = self.base + spot.extra;
            let row = v * words..(v + 1) * words;
            if let (Some(up), Some(down)) = (sources.get(row.clone()), sinks.get(row)) {
                for c in &self.cells {
                    let here = c.users.binary_search(&(v as u32)).is_ok();
                    if here || ((c.born || has(up, &c.users)) && (c.kept || has(down, &c.users))) {
                        live += c.bytes;
                    }
                }
            } else {
                // Without room for the sets only what the node itself touches counts.
                live += spot.cells.iter().map(|&c| self.cells[c as usize].bytes).sum::<Bytes>();
            }
            floor = floor.max(live);
        }
        floor
    }

    /// Per node a set of all nodes that follow `next` from it; empty where the sets would take too much memory.
    fn reach(&self, next: impl Fn(&Spot) -> &Vec<u32>, order: impl Iterator<Item = usize>) -> Vec<u64> {
        const MOST_WORDS: usize = 1 << 18;
        let n = self.spots.len();
        let words = n.div_ceil(64);
        if n * words > MOST_WORDS {
            return Vec::new();
        }
        let mut sets = alloc::vec![0u64; n * words];
        for v in order {
            for &u in next(&self.spots[v]) {
                let u = u as usize;
                sets[v * words + u / 64] |= 1 << (u % 64);
                for w in 0..words {
                    sets[v * words + w] |= sets[u * words + w];
                }
            }
        }
        sets
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A random part: `next(k)` gives a number below `k`.
    pub(crate) fn random(n: usize, next: &mut impl FnMut(usize) -> usize) -> Part {
        let mut part = Part { spots: alloc::vec![Spot::default(); n], base: next(3) as u64, ..Part::default() };
        for v in 0..n {
            let mut users = alloc::vec![v as u32];
            for w in v + 1..n {
                if next(n) < 2 {
                    users.push(w as u32);
                    part.spots[v].after.push(w as u32);
                    part.spots[w].before.push(v as u32);
                }
            }
            let c = part.cells.len() as u32;
            users.iter().for_each(|&u| part.spots[u as usize].cells.push(c));
            part.cells.push(Cell { bytes: 1 + next(9) as u64, born: false, kept: next(6) == 0, users });
            part.spots[v].extra = next(4) as u64;
        }
        part.checked().unwrap()
    }

    #[test]
    fn a_mirror_image_has_the_same_peak_and_floor() {
        let mut state = 7u64;
        let mut next = |k: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % k
        };
        for _ in 0..50 {
            let part = random(9, &mut next);
            let order: Vec<u32> = (0..9).collect();
            let mirror = part.mirrored();
            assert_eq!(mirror.mirrored(), part);
            assert_eq!((part.peak(&order), part.floor()), (mirror.peak(&order), mirror.floor()));
            assert!(part.floor() <= part.peak(&order));
        }
    }
}
