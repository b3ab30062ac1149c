//! What to change so that less memory is needed, and how much less: every lever is pulled on this very model and the
//! result planned again. Nothing here is guessed; where a shape is unknown and part of a prediction cannot be computed, the
//! finding says that it is an estimate.
#![forbid(unsafe_code)]

mod alignment;
mod batch;
mod caller_io;
mod cold;
mod entries;
mod fuse;
mod in_place;
mod inputs;
mod keep;
mod order;
mod persistent;
mod quantize;
mod rows;
mod scratch;
mod strategy;
mod stripes;

use crate::error::Error;
use crate::graph::explain;
use crate::graph::liveness::{Options, Pin};
use crate::graph::lower::{lower, Lowered};
use crate::graph::tables::Tables;
use crate::graph::timeline::Timeline;
use crate::model::Model;
use crate::planner::{plan, Options as PlanOptions};
use crate::units::{Bytes, Step};

pub use order::reorder;

/// What is planned, and how.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The model with shapes and scratch as asked for.
    pub model: &'a Model,
    /// The subgraphs planned, each on its own.
    pub entries: &'a [usize],
    /// Lifetime options.
    pub options: Options,
    /// Per entry, what is kept longer.
    pub pins: &'a [Vec<Pin>],
    /// Strategy and effort.
    pub plan: PlanOptions,
    /// Other models of the same program that never run at the same time: names and arenas.
    pub others: &'a [(String, Bytes)],
}

/// A lever and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub lever: &'static str,
    /// The arena if it is pulled.
    pub arena_bytes_if: Bytes,
    /// How much smaller that is than now; 0 where it does nothing or harm.
    pub saved_bytes: Bytes,
    /// What was changed and what came of it.
    pub why: String,
    /// How to do it, in the terms of TFLite or ONNX. Empty where there is nothing to do.
    pub how: String,
    /// Where most bytes are alive then.
    pub next_peak: String,
    /// The option of `plan` that gives this very arena.
    pub option: Option<String>,
    /// Whether the arena is that of a plan; an estimate otherwise.
    pub exact: bool,
    /// Subgraph and index of the tensors that have to move, where that is what the lever does.
    pub tensors: Vec<(u32, u32)>,
}

/// A plan's figures.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The largest entry's arena.
    pub arena: Bytes,
    /// The bound on it.
    pub bound: Bytes,
    /// Every entry's arena.
    pub arenas: Vec<Bytes>,
    /// Whether no smaller arena serves every entry.
    pub optimal: bool,
    /// Of the largest entry: its subgraph, the step at which most bytes are alive, and how many.
    pub peak: (usize, Step, Bytes),
    /// The same in words.
    pub peak_text: String,
}

impl<'a> Case<'a> {
    /// Plans the case as it is.
    pub fn now(&self) -> Result<Outcome, Error> {
        self.planned(&self.model.subgraphs, self.model)
    }

    /// Plans other graphs in its place. `names` has their operators.
    fn planned<T: Tables>(&self, graphs: &[T], names: &Model) -> Result<Outcome, Error> {
        let mut out = Outcome { optimal: true, ..Outcome::default() };
        for (k, &entry) in self.entries.iter().enumerate() {
            let pins = self.pins.get(k).map_or(&[][..], Vec::as_slice);
            let lowered = lower(graphs, entry, &self.options, pins)?;
            let plan = plan(&lowered.problem, &self.plan)?;
            out.arenas.push(plan.arena_bytes);
            out.bound = out.bound.max(plan.lower_bound);
            if k == 0 || plan.arena_bytes > out.arena {
                let peak = explain::peak(&lowered.problem)?;
                out.arena = plan.arena_bytes;
                out.optimal = plan.optimal;
                out.peak = (entry, peak.step, peak.bytes);
                out.peak_text = moment(names, &lowered, peak.step, peak.bytes);
            }
        }
        Ok(out)
    }

    /// What is pinned in an entry of `model`, which may have fewer steps than the case's own.
    fn pins_of(&self, model: &Model, entry: usize) -> Result<Vec<Pin>, Error> {
        let last = Timeline::of(&model.subgraphs, entry)?.last();
        let at = self.entries.iter().position(|&e| e == entry);
        let pins = at.and_then(|k| self.pins.get(k)).map_or(&[][..], Vec::as_slice);
        Ok(pins.iter().map(|p| Pin { until: p.until.min(last), ..*p }).collect())
    }

    /// A node as messages show it.
    fn node(&self, subgraph: usize, node: usize) -> String {
        let op = &self.model.subgraphs[subgraph].nodes[node].op;
        if subgraph == 0 {
            format!("{op} (node {node})")
        } else {
            format!("{op} (node {node} of subgraph {subgraph})")
        }
    }

    /// The case with another model. Pins may end after its last step, which a shorter model moves.
    fn with_model<'b>(&self, model: &'b Model, pins: &'b [Vec<Pin>]) -> Case<'b>
    where
        'a: 'b,
    {
        Case { model, pins, ..*self }
    }

    /// An edit of the model, planned.
    fn edited(&self, model: &Model) -> Result<Outcome, Error> {
        let pins = self.entries.iter().map(|&entry| self.pins_of(model, entry)).collect::<Result<Vec<_>, Error>>()?;
        self.with_model(model, &pins).now()
    }
}

fn moment(names: &Model, lowered: &Lowered, step: Step, bytes: Bytes) -> String {
    let at = lowered.timeline.steps().get(step as usize);
    let op = at.and_then(|at| names.subgraphs.get(at.subgraph as usize)?.nodes.get(at.node as usize));
    format!("step {step} {}, {bytes} B alive", op.map_or("", |n| &*n.op))
}

/// What a lever's file returns: what it did in words, and what came of it.
struct Pulled {
    lever: &'static str,
    outcome: Option<Outcome>,
    why: String,
    how: &'static str,
    option: Option<String>,
    /// The arena where it is not the outcome's own: with an estimate's bound, or with bytes that only move.
    arena: Option<Bytes>,
    exact: bool,
    tensors: Vec<(u32, u32)>,
}

impl Pulled {
    /// A lever that was planned.
    fn new(lever: &'static str, outcome: Outcome, why: String, how: &'static str) -> Pulled {
        Pulled { outcome: Some(outcome), how, ..Pulled::nothing(lever, why) }
    }

    /// A lever that does not apply.
    fn nothing(lever: &'static str, why: impl Into<String>) -> Pulled {
        Pulled {
            lever,
            outcome: None,
            why: why.into(),
            how: "",
            option: None,
            arena: None,
            exact: true,
            tensors: Vec::new(),
        }
    }

    fn option(mut self, option: impl Into<String>) -> Pulled {
        self.option = Some(option.into());
        self
    }
}

type Lever = fn(&Case<'_>, &Outcome) -> Result<Vec<Pulled>, Error>;

const LEVERS: [Lever; 15] = [
    order::pull,
    inputs::pull,
    in_place::pull,
    alignment::pull,
    strategy::pull,
    quantize::pull,
    fuse::pull,
    keep::pull,
    caller_io::pull,
    persistent::pull,
    batch::pull,
    stripes::pull,
    cold::pull,
    scratch::pull,
    entries::pull,
];

/// Pulls every lever, one at a time. Returns the plan as it is and the findings, those that save most first.
pub fn advise(case: &Case<'_>) -> Result<(Outcome, Vec<Finding>), Error> {
    let now = case.now()?;
    let mut findings = Vec::new();
    for lever in LEVERS {
        findings.extend(lever(case, &now)?.into_iter().map(|p| finding(&now, p)));
    }
    // Stable: of equals the order of the table above.
    findings.sort_by_key(|f| std::cmp::Reverse(f.saved_bytes));
    Ok((now, findings))
}

fn finding(now: &Outcome, pulled: Pulled) -> Finding {
    let arena = pulled.arena.or(pulled.outcome.as_ref().map(|o| o.arena)).unwrap_or(now.arena);
    let saved = now.arena.saturating_sub(arena);
    let why = match (&pulled.outcome, saved) {
        (None, _) | (_, 1..) => pulled.why,
        (Some(_), 0) if arena > now.arena => format!("costs {} B here: {}", arena - now.arena, pulled.why),
        (Some(o), 0) if o.peak == now.peak => format!("does nothing here: {}, and the peak stays as it is", pulled.why),
        (Some(_), 0) => format!("does nothing here: {}", pulled.why),
    };
    Finding {
        lever: pulled.lever,
        arena_bytes_if: arena,
        saved_bytes: saved,
        why,
        how: pulled.how.into(),
        next_peak: pulled.outcome.map_or_else(|| now.peak_text.clone(), |o| o.peak_text),
        option: pulled.option,
        exact: pulled.exact,
        tensors: if saved > 0 { pulled.tensors } else { Vec::new() },
    }
}

/// How many there are of what, in words.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Names of what is meant, the first few.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let more = names.len().saturating_sub(SHOWN);
    let list = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        format!("{list} and {more} more")
    } else {
        list
    }
}
