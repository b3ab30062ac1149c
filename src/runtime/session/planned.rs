//! One set of shapes, planned: the problem, its offsets, and what the session needs to know besides.

use super::overlay::{TensorId, View};
use crate::error::Error;
use crate::graph::liveness::{Home, Options, Pin, Role};
use crate::graph::lower::{alignments, lower, Lowered};
use crate::graph::set::{apply_links, Link};
use crate::graph::tables::{Allocation, Tables};
use crate::planner::bound::lower_bound;
use crate::planner::check::check;
use crate::planner::{self, Problem, Span, Strategy};
use crate::units::{Align, Bytes};

/// How a re-plan treats the offsets of the plan before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Replan {
    /// Keeps all old offsets where they are valid for the new sizes, else those of the tensors that did not change where
    /// the result fits the memory held. Addresses move as little as possible, and smaller sizes never need more.
    #[default]
    Keep,
    /// Plans anew, and keeps the old offsets only where they are valid and need no more.
    Smallest,
}

/// How a plan came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// All old offsets kept.
    Kept,
    /// Those of unchanged tensors kept.
    Partly,
    /// Planned anew.
    Fresh,
}

/// A plan for one shape signature. It is never changed and may be shared.
#[derive(Debug)]
pub(crate) struct Planned {
    pub lowered: Lowered,
    pub offsets: Vec<Bytes>,
    /// Bytes of the reusable arena, unrounded.
    pub bytes: Bytes,
    /// No plan of these shapes is smaller.
    pub bound: Bytes,
    pub align: Align,
    /// Sum of all planned sizes.
    pub total: Bytes,
    /// Persistent tensors with their sizes (guard zone included) and alignments.
    pub persistent: Vec<(TensorId, Bytes, Align)>,
    pub origin: Origin,
    /// Whether keeping old offsets was not allowed to cost bytes.
    pub compact: bool,
}

impl Planned {
    pub fn offset(&self, id: TensorId) -> Option<Bytes> {
        let buffer = (*self.lowered.buffers.get(id.subgraph as usize)?.get(id.tensor as usize)?)?;
        self.offsets.get(buffer as usize).copied()
    }
}

/// What a re-plan is made from.
pub(crate) struct Request<'a> {
    pub views: &'a [View<'a>],
    pub entry: usize,
    pub options: &'a Options,
    pub planner: &'a planner::Options,
    pub pins: &'a [Pin],
    pub links: &'a [Link],
    pub replan: Replan,
    /// The plan before, if any.
    pub old: Option<&'a Planned>,
    /// Bytes of memory held.
    pub held: Bytes,
}

impl Request<'_> {
    /// Plans. The result passes the verifier.
    pub fn run(&self) -> Result<Planned, Error> {
        let mut lowered = lower(self.views, self.entry, self.options, self.pins)?;
        apply_links(&mut lowered, self.links)?;
        known_sizes(self.views, &lowered)?;
        let persistent = self.persistent(&lowered);
        let problem = &lowered.problem;
        let (align, total, bound) = (problem.align(), problem.total_bytes()?, lower_bound(problem)?.bytes);
        let (offsets, bytes, origin) = self.place(&lowered)?;
        let compact = origin == Origin::Fresh || self.replan == Replan::Smallest;
        Ok(Planned { offsets, bytes, bound, align, total, persistent, origin, compact, lowered })
    }

    fn place(&self, lowered: &Lowered) -> Result<(Vec<Bytes>, Bytes, Origin), Error> {
        let problem = &lowered.problem;
        let old = self.old.map(|old| old_offsets(old, lowered));
        let kept = old.as_ref().and_then(|old| {
            let offsets: Option<Vec<Bytes>> = old.iter().copied().collect();
            offsets.and_then(|o| check(problem, &o).ok().map(|bytes| (o, bytes, Origin::Kept)))
        });
        if self.replan == Replan::Keep {
            if let Some(kept) = kept {
                return Ok(kept);
            }
            if let Some(partly) = old.and_then(|_| self.partly(lowered)) {
                return Ok(partly);
            }
            return self.fresh(problem);
        }
        let fresh = self.fresh(problem)?;
        Ok(match kept {
            Some(kept) if kept.1 <= fresh.1 => kept,
            _ => fresh,
        })
    }

    fn fresh(&self, problem: &Problem) -> Result<(Vec<Bytes>, Bytes, Origin), Error> {
        let plan = planner::plan(problem, self.planner)?;
        let bytes = check(problem, &plan.offsets)
            .map_err(|_| Error::internal("a strategy made an invalid plan, please report it"))?;
        Ok((plan.offsets, bytes, Origin::Fresh))
    }

    /// The unchanged tensors where they are, the others around them; `None` where that does not fit the memory held.
    fn partly(&self, lowered: &Lowered) -> Option<(Vec<Bytes>, Bytes, Origin)> {
        let old = self.old?;
        let problem = &lowered.problem;
        let mut fixed = Problem::with_capacity(problem.len());
        for (buffer, id) in ids(lowered) {
            let mut spec = problem.buffers()[buffer].spec;
            let spans = problem.spans(buffer);
            if let (Some(before), None) = (buffer_of(old, id), problem.alias_of(buffer)) {
                let same = old.lowered.problem.buffers()[before].spec == spec
                    && old.lowered.problem.spans(before) == spans
                    && old.lowered.problem.alias_of(before).is_none();
                if same && spec.size > 0 {
                    spec = spec.fixed_at(old.offsets[before]);
                }
            }
            fixed.add(spec, spans).ok()?;
        }
        for i in 0..problem.len() {
            if let Some(alias) = problem.alias_of(i) {
                fixed.alias(i as u32, alias.root, alias.delta).ok()?;
            }
        }
        let plan = planner::plan(&fixed, &planner::Options::of(Strategy::GreedyBySize)).ok()?;
        let bytes = check(problem, &plan.offsets).ok()?;
        (bytes <= self.held).then_some((plan.offsets, bytes, Origin::Partly))
    }

    fn persistent(&self, lowered: &Lowered) -> Vec<(TensorId, Bytes, Align)> {
        let mut out = Vec::new();
        for (g, view) in self.views.iter().enumerate() {
            let aligns = alignments(view, self.options.align);
            for (t, &align) in aligns.iter().enumerate() {
                if lowered.lives.own[g][t].home == Home::Persistent {
                    out.push((TensorId::new(g as u32, t as u32), view.tensor(t).bytes.unwrap_or(0), align));
                }
            }
        }
        out
    }
}

/// The buffers of a problem in order, each with the tensor it is of.
fn ids(lowered: &Lowered) -> Vec<(usize, TensorId)> {
    let mut out = Vec::with_capacity(lowered.problem.len());
    for (g, list) in lowered.buffers.iter().enumerate() {
        for (t, buffer) in list.iter().enumerate() {
            if let Some(buffer) = buffer {
                out.push((*buffer as usize, TensorId::new(g as u32, t as u32)));
            }
        }
    }
    out.sort_unstable();
    out
}

fn buffer_of(planned: &Planned, id: TensorId) -> Option<usize> {
    planned.lowered.buffers.get(id.subgraph as usize)?.get(id.tensor as usize)?.map(|b| b as usize)
}

/// Per buffer of the new problem its tensor's old offset.
fn old_offsets(old: &Planned, lowered: &Lowered) -> Vec<Option<Bytes>> {
    ids(lowered).iter().map(|&(_, id)| old.offset(id)).collect()
}

/// A tensor that a node writes cannot be left out because its size is unknown.
fn known_sizes(views: &[View<'_>], lowered: &Lowered) -> Result<(), Error> {
    for (g, view) in views.iter().enumerate() {
        for t in 0..view.tensor_count() {
            let tensor = view.tensor(t);
            let used = !matches!(lowered.lives.own[g][t].role, Role::Unwritten | Role::Constant);
            let planned = matches!(tensor.allocation, Allocation::ArenaRw | Allocation::ArenaRwPersistent);
            if used && planned && tensor.bytes.is_none() {
                let e = Error::unknown_size("the tensor's size is not known: resize it before the commit");
                return Err(TensorId::new(g as u32, t as u32).name(e));
            }
        }
    }
    Ok(())
}

/// The steps of the time line at which each node of each subgraph runs.
pub(crate) fn steps_of(lowered: &Lowered, subgraph: u32, node: u32) -> impl Iterator<Item = u32> + '_ {
    let at = move |s: &crate::graph::timeline::At| s.subgraph == subgraph && s.node == node;
    lowered.timeline.steps().iter().enumerate().filter(move |(_, s)| at(s)).map(|(i, _)| i as u32)
}

/// Whether one of `spans` holds `step`.
pub(crate) fn alive(spans: &[Span], step: u32) -> bool {
    spans.iter().any(|s| s.first <= step && step <= s.last)
}
