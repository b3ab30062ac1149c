//! What a session needs, holds and has done.

use super::overlay::{TensorId, View};
use super::planned::{alive, Replan, Request};
use super::Session;
use crate::error::Error;
use crate::graph::tables::Tables;
use crate::units::{Align, Bytes};

/// The numbers of a session at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Sum of all planned tensors: what one allocation per tensor would take.
    pub sum_bytes: Bytes,
    /// Bytes the plan needs, unrounded.
    pub planned_bytes: Bytes,
    /// No plan of these shapes is smaller.
    pub lower_bound: Bytes,
    /// Bytes held for the reusable arena.
    pub committed_bytes: Bytes,
    /// Bytes held for persistent tensors.
    pub persistent_bytes: Bytes,
    /// Bytes held for inputs and outputs of their own.
    pub io_bytes: Bytes,
    /// The most bytes ever held for the reusable arena.
    pub high_water: Bytes,
    /// Commits that did something.
    pub commits: u64,
    /// Plans made.
    pub plans: u64,
    /// Those that kept all offsets of the one before.
    pub plans_kept: u64,
    /// Commits that found their plan in the cache.
    pub cache_hits: u64,
    /// How often a memory source was asked or given something back.
    pub heap_calls: u64,
    /// The same since the last commit.
    pub heap_calls_since_commit: u64,
}

/// Bytes alive while one node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeBytes {
    /// The step of the time line.
    pub step: u32,
    /// The subgraph.
    pub subgraph: u32,
    /// The node in it.
    pub node: u32,
    /// Bytes of the reusable arena alive; tensors that share bytes count once.
    pub bytes: Bytes,
}

/// What a node's alignment costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignmentCost {
    /// The subgraph.
    pub subgraph: u32,
    /// The node in it.
    pub node: u32,
    /// The alignment it asks for.
    pub align: Align,
    /// Bytes of the arena as planned now.
    pub arena_bytes: Bytes,
    /// Bytes of the arena if this node asked for nothing.
    pub without: Bytes,
}

/// A tensor planned by an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperBoundUse {
    /// The tensor.
    pub id: TensorId,
    /// The bytes it was planned with.
    pub bound: Bytes,
    /// The most bytes reported as used.
    pub used: Bytes,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub id: TensorId,
    bound: Bytes,
    used: Bytes,
}

impl Bounded {
    /// Whether the tensor still has the size of its bound.
    pub fn holds(&self, sheets: &[super::overlay::Sheet]) -> bool {
        sheets[self.id.subgraph as usize].sizes[self.id.tensor as usize] == Some(self.bound)
    }
}

impl Session {
    pub(super) fn heap_calls(&self) -> u64 {
        self.main.heap_calls()
            + self.persistent.store().heap_calls()
            + self.io.as_ref().map_or(0, |io| io.store().heap_calls())
    }

    /// The numbers at this moment. The resident set is [`resident_bytes`](crate::runtime::stats::resident_bytes).
    pub fn stats(&self) -> SessionStats {
        let planned = self.current.as_deref();
        SessionStats {
            sum_bytes: planned.map_or(0, |p| p.total),
            planned_bytes: planned.map_or(0, |p| p.bytes),
            lower_bound: planned.map_or(0, |p| p.bound),
            committed_bytes: self.main.bytes() as u64,
            persistent_bytes: self.persistent.store().bytes() as u64,
            io_bytes: self.io.as_ref().map_or(0, |io| io.store().bytes() as u64),
            high_water: self.main.high_water() as u64,
            commits: self.counts.commits,
            plans: self.counts.plans,
            plans_kept: self.counts.kept,
            cache_hits: self.cache.counts().0,
            heap_calls: self.heap_calls(),
            heap_calls_since_commit: self.heap_calls() - self.counts.heap_calls_at_commit,
        }
    }

    /// Bytes of the reusable arena alive at each step of the committed plan; empty before the first commit.
    pub fn node_bytes(&self) -> Result<Vec<NodeBytes>, Error> {
        let Some(planned) = self.current.as_deref() else { return Ok(Vec::new()) };
        let (merged, _) = planned.lowered.problem.merge_aliases()?;
        let mut out = Vec::new();
        for (i, at) in planned.lowered.timeline.steps().iter().enumerate() {
            let step = i as u32;
            let live = (0..merged.len()).filter(|&b| alive(merged.spans(b), step));
            let bytes = live.map(|b| merged.buffers()[b].spec.size).sum();
            out.push(NodeBytes { step, subgraph: at.subgraph, node: at.node, bytes });
        }
        Ok(out)
    }

    /// Which nodes ask for more alignment than the plan, and what each costs: the arena is planned once more without it.
    pub fn alignment_costs(&self) -> Result<Vec<AlignmentCost>, Error> {
        let plan = |views: &[View<'_>]| {
            let request = Request {
                views,
                entry: self.entry,
                options: &self.config.options,
                planner: &self.config.planner,
                pins: &self.config.pins,
                links: &self.config.links,
                replan: Replan::Smallest,
                old: None,
                held: 0,
            };
            request.run().map(|p| p.bytes)
        };
        let mut views = self.views();
        let arena_bytes = plan(&views)?;
        let mut out = Vec::new();
        for g in 0..views.len() {
            for node in 0..self.graphs[g].node_count() {
                let Some(align) = self.graphs[g].node(node).align else { continue };
                if align <= self.config.options.align {
                    continue;
                }
                views[g].without = Some(node as u32);
                let without = plan(&views)?;
                views[g].without = None;
                out.push(AlignmentCost { subgraph: g as u32, node: node as u32, align, arena_bytes, without });
            }
        }
        Ok(out)
    }

    /// Plans a tensor by the most bytes it can have. [`Session::report_use`] then says how much of that was used.
    ///
    /// Errors as [`Session::resize`].
    pub fn set_upper_bound(&mut self, id: TensorId, bound: Bytes) -> Result<(), Error> {
        self.resize(id, bound)?;
        self.bounds.push(Bounded { id, bound, used: 0 });
        Ok(())
    }

    /// Says how many bytes a tensor planned by its bound has in this run. Nothing is re-planned.
    ///
    /// `Capacity` where that is more than the bound, `Argument` where the tensor has none.
    pub fn report_use(&mut self, id: TensorId, bytes: Bytes) -> Result<(), Error> {
        self.check(id)?;
        let found = self.bounds.iter_mut().find(|b| b.id == id);
        let b = found.ok_or_else(|| id.name(Error::argument("the tensor is not planned by an upper bound")))?;
        if bytes > b.bound {
            let e = Error::capacity("the tensor has more bytes than its upper bound");
            return Err(id.name(e.needed(bytes).available(b.bound)));
        }
        b.used = b.used.max(bytes);
        Ok(())
    }

    /// How much of each upper bound was used so far.
    pub fn upper_bound_use(&self) -> Vec<UpperBoundUse> {
        self.bounds.iter().map(|b| UpperBoundUse { id: b.id, bound: b.bound, used: b.used }).collect()
    }
}
