//! Exact statistics, kept up to date by every call.

use crate::units::Bytes;

/// What a heap holds and did. `free + live = total` at every moment.
// What every call writes comes first and together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C)]
pub struct Stats {
    /// Bytes handed out, in whole granules.
    pub live: Bytes,
    /// Bytes asked for by the live blocks: what rounding, tails and headroom add is `live - requested`.
    pub requested: Bytes,
    /// The highest `live` so far.
    pub peak_live: Bytes,
    /// The highest `requested` so far.
    pub peak_requested: Bytes,
    /// Blocks handed out so far.
    pub allocs: u64,
    /// Blocks freed so far.
    pub frees: u64,
    /// The most nodes any one call looked at, exhaustive scans apart: a constant ([`super::Heap::STEP_LIMIT`]).
    pub max_steps: u32,
    /// Bytes of the region.
    pub total: Bytes,
    /// Bytes not handed out.
    pub free: Bytes,
    /// Live blocks.
    pub blocks: u64,
    /// Free blocks; no two are adjacent.
    pub free_blocks: u64,
    /// Blocks resized without moving.
    pub resized: u64,
    /// Requests refused for want of space or records.
    pub refused: u64,
    /// Handles, offsets and sizes refused as wrong.
    pub bad: u64,
    /// Searches that had to look at every candidate before the request was served or refused.
    pub exhaustive_scans: u64,
    /// Nodes whose generations are used up.
    pub retired_nodes: u64,
}

impl Stats {
    /// All zero.
    pub const NONE: Stats = Stats {
        total: 0,
        free: 0,
        live: 0,
        requested: 0,
        peak_live: 0,
        peak_requested: 0,
        blocks: 0,
        free_blocks: 0,
        allocs: 0,
        frees: 0,
        resized: 0,
        refused: 0,
        bad: 0,
        max_steps: 0,
        exhaustive_scans: 0,
        retired_nodes: 0,
    };

    /// Adds another heap's figures; peaks are added up, steps are the larger.
    pub fn add(&mut self, other: &Stats) {
        self.total += other.total;
        self.free += other.free;
        self.live += other.live;
        self.requested += other.requested;
        self.peak_live += other.peak_live;
        self.peak_requested += other.peak_requested;
        self.blocks += other.blocks;
        self.free_blocks += other.free_blocks;
        self.allocs += other.allocs;
        self.frees += other.frees;
        self.resized += other.resized;
        self.refused += other.refused;
        self.bad += other.bad;
        self.max_steps = self.max_steps.max(other.max_steps);
        self.exhaustive_scans += other.exhaustive_scans;
        self.retired_nodes += other.retired_nodes;
    }

    /// 1 - largest / free for a largest free block of `largest` bytes: 0 where all free space is one block.
    pub fn fragmentation(&self, largest: Bytes) -> f64 {
        if self.free == 0 {
            0.0
        } else {
            1.0 - largest as f64 / self.free as f64
        }
    }
}
