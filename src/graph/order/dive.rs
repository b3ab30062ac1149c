//! Exact search: is there an order with a peak of at most so many bytes?
//!
//! Depth first over downward closed sets of nodes, as in dynamic programming over cuts: what is alive after a set does not
//! depend on the order within it, so a set from which the limit cannot be met is never entered twice. Moves that lose
//! nothing are made without a choice ([`Walk::settle`]). The limit is lowered below each order found until none is
//! left, which proves the last one best.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::part::Part;
use super::walk::Walk;
use crate::units::Bytes;

/// Parts of more nodes are not searched exactly: the search nests as deep as its choices.
const MOST_NODES: usize = 2048;

/// Words of dead sets kept; past them sets are only recognised on the path.
const MOST_WORDS: usize = 1 << 22;

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An order within the limit.
    Order(Vec<u32>),
    /// There is none.
    None,
    /// The effort was spent.
    Open,
}

/// A search over one part whose findings serve lower limits too.
pub(crate) struct Dive<'a> {
    part: &'a Part,
    /// Sets from which the limits so far could not be met; a lower one cannot either.
    dead: BTreeSet<Box<[u64]>>,
    /// Nodes looked at.
    pub spent: u64,
    effort: u64,
}

impl<'a> Dive<'a> {
    pub fn new(part: &'a Part, effort: u64) -> Dive<'a> {
        Dive { part, dead: BTreeSet::new(), spent: 0, effort }
    }

    /// Searches for an order whose peak is at most `limit`; no call may raise it.
    pub fn within(&mut self, limit: Bytes) -> Answer {
        if self.part.spots.len() > MOST_NODES {
            return Answer::Open;
        }
        if self.part.at_start() > limit && !self.part.spots.is_empty() {
            return Answer::None;
        }
        let mut walk = Walk::new(self.part);
        match self.from(&mut walk, limit) {
            Some(true) => Answer::Order(walk.path),
            Some(false) => Answer::None,
            None => Answer::Open,
        }
    }

    /// `None`: the effort is spent.
    fn from(&mut self, walk: &mut Walk<'_>, limit: Bytes) -> Option<bool> {
        let start = walk.path.len();
        self.spent += walk.settle(limit);
        if walk.complete() {
            return Some(true);
        }
        let settled = walk.path.len();
        if self.dead.contains(&walk.done[..]) {
            walk.back_to(start);
            return Some(false);
        }
        // Least left alive first, then the given order.
        let mut moves: Vec<(Bytes, u32)> = Vec::with_capacity(walk.ready.len());
        for &v in &walk.ready {
            let (during, after) = walk.look(v);
            if during <= limit {
                moves.push((after, v));
            }
        }
        moves.sort_unstable();
        self.spent += 1 + walk.ready.len() as u64;
        if self.spent > self.effort {
            return None;
        }
        for (_, v) in moves {
            walk.run(v);
            if self.from(walk, limit)? {
                return Some(true);
            }
            walk.back_to(settled);
        }
        if self.dead.len() * walk.done.len() < MOST_WORDS {
            self.dead.insert(walk.done.clone().into_boxed_slice());
        }
        walk.back_to(start);
        Some(false)
    }
}
