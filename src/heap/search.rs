//! Which free block serves a request: best fit among at most eight candidates of a bin, an exhaustive scan before giving up.

use super::bins::bin_of;
use super::block::{Choice, End, Heap, Shape};
use super::node::Node;
use super::store::Store;
use super::NIL;

/// Candidates looked at in one bin.
const SCAN: u32 = 8;
/// Candidates looked at in all bins where an aligned block may or may not fit.
const ALIGNED_SCAN: u32 = 16;
/// Blocks walked over for the lowest place.
const WALK: u32 = 4096;
/// Blocks looked at from an end of the region on.
const NEAR: u32 = 16;

/// The best candidate so far.
struct Best {
    /// Length, then distance from the side the block is to be taken from.
    key: u64,
    index: u32,
}

impl Best {
    const NONE: Best = Best { key: u64::MAX, index: NIL };

    #[inline]
    fn offer(&mut self, node: &Node, index: u32, end: End) {
        let distance = if end == End::High { !node.start } else { node.start };
        let key = u64::from(node.len) << 32 | u64::from(distance);
        if key < self.key {
            *self = Best { key, index };
        }
    }
}

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// Where in `[start, start + len)` a block of that shape goes, or `None` where it does not fit.
    #[inline]
    pub(super) fn place(&self, start: u32, len: u32, shape: &Shape) -> Option<u32> {
        if len < shape.len {
            return None;
        }
        let mask = shape.align - 1;
        let last = start + (len - shape.len);
        // An aligned start fits from below exactly if one fits from above.
        let below = |at: u32| {
            let over = self.origin.wrapping_add(at) & mask;
            (over <= at - start).then(|| at - over)
        };
        let low = || {
            let pad = self.origin.wrapping_add(start).wrapping_neg() & mask;
            (pad <= last - start).then(|| start + pad)
        };
        match shape.end {
            End::Low => low(),
            End::High => below(last),
            End::Middle => below(start + (last - start) / 2).or_else(low),
        }
    }

    /// A free block the shape fits in.
    ///
    /// ```text
    /// bins      own ......... roof | above
    ///           may fit or not     | every block fits, however it lies to the alignment
    /// look at   at most 8 or 16    | at most 8 of the first bin that holds any
    /// then, before refusing: every block from own to roof
    /// ```
    #[inline]
    pub(super) fn search(&mut self, shape: &Shape) -> Option<u32> {
        if shape.align > 1 || shape.choice != Choice::Best {
            return self.search_special(shape);
        }
        self.search_plain(shape, 0)
    }

    #[inline]
    fn search_plain(&mut self, shape: &Shape, before: u32) -> Option<u32> {
        // Without an alignment the roof is the own bin, and what fits is decided by the length alone.
        let own = bin_of(shape.len);
        let nodes = self.nodes.slice();
        let (mut best, mut steps) = (Best::NONE, 0);
        let mut index = self.bins.head(own);
        while let Some(node) = nodes.get(index as usize).filter(|_| steps < SCAN) {
            steps += 1;
            if node.len >= shape.len {
                best.offer(node, index, shape.end);
            }
            index = node.b;
        }
        let more = index != NIL;
        if best.index == NIL {
            if let Some(bin) = self.bins.at_or_above(own + 1) {
                let mut index = self.bins.head(bin);
                for _ in 0..SCAN {
                    let Some(node) = nodes.get(index as usize) else { break };
                    steps += 1;
                    best.offer(node, index, shape.end);
                    index = node.b;
                }
            }
        }
        let mut found = best.index;
        if found == NIL && more {
            found = self.scan_all(own, own, shape);
        }
        self.count_steps(before + steps);
        (found != NIL).then_some(found)
    }

    /// The free block of the lowest address in which the shape fits, if it is among the first blocks.
    #[cold]
    fn lowest(&mut self, shape: &Shape) -> u32 {
        self.stats.exhaustive_scans += 1;
        let nodes = self.nodes.slice();
        let mut index = self.first;
        for _ in 0..WALK {
            let Some(node) = nodes.get(index as usize) else { break };
            if node.is_free() && self.place(node.start, node.len, shape).is_some() {
                return index;
            }
            index = node.next;
        }
        NIL
    }

    #[inline(never)]
    fn search_special(&mut self, shape: &Shape) -> Option<u32> {
        let mut steps = 0;
        let found = match shape.choice {
            Choice::Best => NIL,
            Choice::Lowest => self.lowest(shape),
            Choice::Near => self.nearest(shape, &mut steps),
            // The last of the bins: what fits there has more room round it than anywhere else.
            Choice::Largest => self.bins.top().map_or(NIL, |bin| self.largest_of(bin, shape, &mut steps)),
        };
        self.count_steps(steps);
        if found != NIL {
            Some(found)
        } else if shape.align > 1 {
            self.search_aligned(shape, steps)
        } else {
            self.search_plain(shape, steps)
        }
    }

    /// The first of a few blocks from the shape's end on that is free and fits.
    fn nearest(&self, shape: &Shape, steps: &mut u32) -> u32 {
        let nodes = self.nodes.slice();
        let high = shape.end == End::High;
        let mut index = if high { self.last } else { self.first };
        for _ in 0..NEAR {
            let Some(node) = nodes.get(index as usize) else { break };
            *steps += 1;
            if node.is_free() && self.place(node.start, node.len, shape).is_some() {
                return index;
            }
            index = if high { node.prev } else { node.next };
        }
        NIL
    }

    /// The longest of the first blocks of a bin that fit.
    fn largest_of(&self, bin: u32, shape: &Shape, steps: &mut u32) -> u32 {
        let nodes = self.nodes.slice();
        let (mut found, mut longest) = (NIL, 0);
        let mut index = self.bins.head(bin);
        for _ in 0..SCAN {
            let Some(node) = nodes.get(index as usize) else { break };
            *steps += 1;
            if node.len > longest && self.place(node.start, node.len, shape).is_some() {
                (found, longest) = (index, node.len);
            }
            index = node.b;
        }
        found
    }

    /// `before`: nodes looked at before this search.
    fn search_aligned(&mut self, shape: &Shape, before: u32) -> Option<u32> {
        let own = bin_of(shape.len);
        let padded = shape.len.checked_add(shape.align - 1);
        let roof = padded.map_or(u32::MAX, bin_of);
        let (mut steps, mut found) = (0, NIL);
        let mut bin = self.bins.at_or_above(own);
        while let Some(b) = bin.filter(|&b| b <= roof) {
            found = self.best_of(b, shape, ALIGNED_SCAN - steps, &mut steps);
            if found != NIL || steps >= ALIGNED_SCAN {
                break;
            }
            bin = self.bins.at_or_above(b + 1);
        }
        if found == NIL {
            if let Some(b) = roof.checked_add(1).and_then(|above| self.bins.at_or_above(above)) {
                found = self.best_of(b, shape, SCAN, &mut steps);
            }
        }
        if found == NIL && steps > 0 {
            found = self.scan_all(own, roof, shape);
        }
        self.count_steps(before + steps);
        (found != NIL).then_some(found)
    }

    /// The shortest of the first `limit` blocks of a bin that fit; of equals, the one nearest to the shape's side.
    fn best_of(&self, bin: u32, shape: &Shape, limit: u32, steps: &mut u32) -> u32 {
        let nodes = self.nodes.slice();
        let mut best = Best::NONE;
        let mut index = self.bins.head(bin);
        for _ in 0..limit {
            let Some(node) = nodes.get(index as usize) else { break };
            *steps += 1;
            if self.place(node.start, node.len, shape).is_some() {
                best.offer(node, index, shape.end);
            }
            index = node.b;
        }
        best.index
    }

    /// The best fit among all blocks from `own` to `roof`. As many steps as there are such blocks.
    #[cold]
    fn scan_all(&mut self, own: u32, roof: u32, shape: &Shape) -> u32 {
        self.stats.exhaustive_scans += 1;
        let mut steps = 0;
        let mut bin = self.bins.at_or_above(own);
        while let Some(b) = bin.filter(|&b| b <= roof) {
            let found = self.best_of(b, shape, u32::MAX, &mut steps);
            if found != NIL {
                return found;
            }
            bin = self.bins.at_or_above(b + 1);
        }
        NIL
    }

    /// Bytes of the largest free block, exactly. Looks at every block of the highest bin: not constant steps.
    pub fn largest_free(&self) -> u64 {
        let nodes = self.nodes.slice();
        let mut largest = 0;
        let mut index = self.bins.top().map_or(NIL, |bin| self.bins.head(bin));
        while let Some(node) = nodes.get(index as usize) {
            largest = largest.max(node.bytes());
            index = node.b;
        }
        largest
    }
}
