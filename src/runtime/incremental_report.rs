//! What an incremental arena needs, holds and has done.

use core::fmt::{self, Write};

use super::incremental::IncrementalArena;
use crate::graph::incremental::{Arena, Record, UNSET};
use crate::units::Bytes;

/// The numbers of an incremental arena at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncrementalStats {
    /// Sum of all tensors placed in the main arena: what one allocation per tensor would take.
    pub sum_bytes: Bytes,
    /// Bytes the main arena needs, unrounded.
    pub planned_bytes: Bytes,
    /// Bytes the main arena holds.
    pub committed_bytes: Bytes,
    /// Bytes the persistent arena holds.
    pub persistent_bytes: Bytes,
    /// The most bytes the main arena ever held, old and new counted where both had to be held.
    pub high_water: Bytes,
    /// How often a memory source was asked or given something back.
    pub heap_calls: u64,
    /// The same since the last execution.
    pub heap_calls_since_execute: u64,
}

impl IncrementalArena {
    pub(super) fn heap_calls(&self) -> u64 {
        self.main.heap_calls() + self.persistent.heap_calls()
    }

    fn placed(&self) -> impl Iterator<Item = (usize, Record)> + '_ {
        (0..self.plan.len()).filter_map(|t| Some((t, self.plan.record(t).filter(|r| r.size > 0)?)))
    }

    /// The numbers at this moment.
    pub fn stats(&self) -> IncrementalStats {
        IncrementalStats {
            sum_bytes: self.placed().filter(|p| p.1.arena == Arena::Main).map(|p| p.1.size).sum(),
            planned_bytes: self.plan.bytes().0,
            committed_bytes: self.main.bytes() as u64,
            persistent_bytes: self.persistent.bytes() as u64,
            high_water: self.main.high_water() as u64,
            heap_calls: self.heap_calls(),
            heap_calls_since_execute: self.heap_calls() - self.heap_calls_at_execute,
        }
    }

    /// Bytes of the main arena alive at each node executed so far; tensors that share bytes count once.
    pub fn node_bytes(&self) -> Vec<(i32, Bytes)> {
        let mut nodes: Vec<(i32, Bytes)> = (0..=self.plan.last_node()).map(|n| (n, 0)).collect();
        for (_, r) in self.placed().filter(|p| p.1.arena == Arena::Main) {
            for (n, bytes) in &mut nodes {
                if r.first <= *n && *n <= r.last {
                    *bytes += r.size;
                }
            }
        }
        nodes
    }

    /// Writes what is placed as text: the arenas, each tensor's life span and bytes, and the five fullest nodes.
    pub fn dump(&self, out: &mut dyn Write) -> fmt::Result {
        let (main, persistent) = self.plan.bytes();
        writeln!(out, "main arena {main} bytes, persistent arena {persistent} bytes")?;
        for (t, r) in self.placed() {
            let name = if r.arena == Arena::Main { "main" } else { "persistent" };
            let end = if r.last == UNSET { "end".to_owned() } else { r.last.to_string() };
            writeln!(out, "tensor {t}: {} bytes at {name} {}, nodes {} to {end}", r.size, r.offset, r.first)?;
        }
        let mut nodes = self.node_bytes();
        nodes.sort_unstable_by_key(|&(n, bytes)| (core::cmp::Reverse(bytes), n));
        for &(n, bytes) in nodes.iter().take(5) {
            let share = if main == 0 { 0.0 } else { 100.0 * bytes as f64 / main as f64 };
            writeln!(out, "node {n}: {bytes} bytes alive, {share:.1} % of the main arena")?;
        }
        Ok(())
    }
}
