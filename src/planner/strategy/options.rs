//! How to plan, and what a caller sees while it happens.

use super::Strategy;
use crate::units::Bytes;

/// How to plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which strategy.
    pub strategy: Strategy,
    /// Search nodes to spend at most; `None` is [`AUTO_EFFORT`] for `auto` and no limit for `exact`. The work is one
    /// fixed sequence that this cuts short, so more is never worse.
    pub effort: Option<u64>,
    /// The question is whether this many bytes suffice: search stops at the first plan that fits, and at the first proof
    /// that none does. `None` asks for the smallest arena.
    pub capacity: Option<Bytes>,
    /// For tests: rules of search that may be switched off without changing any answer.
    #[doc(hidden)]
    pub rules: Rules,
}

/// Nodes that `auto` spends at most where nothing else is asked for: of the order of seconds.
pub const AUTO_EFFORT: u64 = 2_500_000;

impl Options {
    /// The defaults with `strategy`.
    pub fn of(strategy: Strategy) -> Options {
        Options { strategy, ..Options::default() }
    }

    /// The nodes these options allow for `buffers` buffers, a node's cost being proportional to their number.
    pub(crate) fn budget(&self, buffers: usize) -> u64 {
        let auto = AUTO_EFFORT.min(AUTO_EFFORT * 256 / buffers.max(1) as u64);
        self.effort.unwrap_or(if self.strategy == Strategy::Exact { u64::MAX } else { auto })
    }
}

/// Optional rules of the exact search, all on by default.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub bound: bool,
    pub hole: bool,
    pub stacking: bool,
    pub twins: bool,
    pub memory: bool,
    pub split: bool,
    pub release: bool,
    /// Whether to try the heuristics before search.
    pub heuristics: bool,
    /// Search in this order only.
    pub order: Option<u16>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            bound: true,
            hole: true,
            stacking: true,
            twins: true,
            memory: true,
            split: true,
            release: true,
            heuristics: true,
            order: None,
        }
    }
}

/// Where planning stands, as told to the caller's progress function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Search nodes visited so far.
    pub nodes: u64,
    /// The arena of the best plan so far, in unrounded bytes.
    pub arena_bytes: Bytes,
    /// The best bound proven so far, in bytes.
    pub lower_bound: Bytes,
}
