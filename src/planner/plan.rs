//! The answer: an offset for every buffer, and how good it is.

use alloc::vec::Vec;

use super::strategy::Strategy;
use crate::units::{Align, Bytes};

/// Search effort and progress, all zero for the greedy rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Search nodes visited.
    pub nodes: u64,
    /// Nodes visited when the plan that is returned was found.
    pub nodes_to_best: u64,
    /// Nodes visited when it was proven optimal; 0 where the bound proved it or nothing did.
    pub nodes_to_proof: u64,
}

/// Offsets for the buffers of one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One offset per buffer, from an arena base that meets [`Plan::align`]. A buffer of 0 bytes has offset 0.
    pub offsets: Vec<Bytes>,
    /// The highest end of any buffer, unrounded.
    pub arena_bytes: Bytes,
    /// No plan of this problem is smaller. At least the bound of [`super::bound::lower_bound`]; search may raise it.
    pub lower_bound: Bytes,
    /// Whether no smaller arena exists once both figures are rounded up to [`Plan::align`].
    pub optimal: bool,
    /// The strategy that made these offsets; with `auto` and `exact`, what won.
    pub strategy: Strategy,
    /// The strictest alignment of any buffer.
    pub align: Align,
    /// Whether `auto` compared with all three greedy rules. False where their cost (conflicting pairs) is out of
    /// proportion.
    pub compared: bool,
    /// Search statistics.
    pub stats: Stats,
}

impl Plan {
    /// Arena over bound, 1 for an empty plan.
    pub fn ratio(&self) -> f64 {
        if self.lower_bound == 0 {
            1.0
        } else {
            self.arena_bytes as f64 / self.lower_bound as f64
        }
    }

    /// Whether `arena` and `bound` are equal once both are rounded up to `align`.
    pub(crate) fn meets(arena: Bytes, bound: Bytes, align: Align) -> bool {
        arena <= bound || align.round_up(bound).is_some_and(|b| arena <= b)
    }
}
