//! A plan as rows and figures: what every picture and table is made of.

use std::collections::HashMap;

use super::format::{cut, visible};
use crate::error::Error;
use crate::graph::explain::{self, Peak, Reason};
use crate::graph::liveness::{Home, Role};
use crate::graph::lower::{Lowered, Persistent};
use crate::graph::tables::{Allocation, Tables};
use crate::graph::timeline::At;
use crate::planner::{Plan, Problem, Span};
use crate::units::{Align, Bytes, Step};

/// Names of a host's tensors and operators.
pub trait Names {
    /// The name of a tensor; empty where it has none.
    fn tensor(&self, subgraph: usize, tensor: usize) -> &str;
    /// The operator of a node.
    fn op(&self, subgraph: usize, node: usize) -> &str;
    /// The shape of a tensor for people, `1x224x224x3`, and its element type; empty where unknown.
    fn shape(&self, _subgraph: usize, _tensor: usize) -> (String, &'static str) {
        (String::new(), "")
    }
}

/// What a report takes from a graph's tensor besides what lowering found.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// Where it is.
    pub allocation: Allocation,
    /// Its size; `None` while unknown.
    pub bytes: Option<Bytes>,
    /// Its offset in the persistent arena.
    pub persistent: Option<Bytes>,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tensor with a role in its graph.
    Tensor(Role, Allocation),
    /// A buffer of a bare problem.
    Buffer,
}

impl Kind {
    /// One word for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Buffer => "buffer",
            Kind::Tensor(_, Allocation::MmapRo | Allocation::PersistentRo) => "constant",
            Kind::Tensor(_, Allocation::Dynamic) => "dynamic",
            Kind::Tensor(_, Allocation::Custom) => "custom",
            Kind::Tensor(_, Allocation::VariantObject) => "variant",
            Kind::Tensor(_, Allocation::NonCpu) => "non-cpu",
            Kind::Tensor(Role::Variable, _) => "variable",
            Kind::Tensor(_, Allocation::ArenaRwPersistent) => "persistent",
            Kind::Tensor(Role::InputOutput, _) => "input+output",
            Kind::Tensor(Role::Input, _) => "input",
            Kind::Tensor(Role::Output, _) => "output",
            Kind::Tensor(Role::Intermediate, _) => "intermediate",
            Kind::Tensor(Role::Temporary, _) => "scratch",
            Kind::Tensor(Role::Constant, _) => "constant",
            Kind::Tensor(Role::Unwritten, _) => "unused",
        }
    }
}

/// A row's use of bytes that another row used directly before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The other row.
    pub with: usize,
    /// When this row takes the bytes over.
    pub begins: u64,
    /// The other row's last step; `None` where both are the same bytes in place.
    pub ended: Option<u64>,
    /// The first byte both use and one past the last.
    pub bytes: (Bytes, Bytes),
}

/// A tensor or buffer.
#[derive(Clone, Debug)]
pub struct Row {
    /// The subgraph; `None` in a bare problem.
    pub subgraph: Option<u32>,
    /// The tensor's index, or the buffer's id.
    pub id: String,
    /// Its name, which may be empty.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its shape, `1x224x224x3`; empty where unknown, and for a scalar.
    pub shape: String,
    /// Its element type; empty where unknown.
    pub dtype: &'static str,
    /// Raw bytes; `None` while unknown.
    pub size: Option<Bytes>,
    /// The alignment of its bytes in the arena.
    pub align: Align,
    /// Its offset in the arena; `None` where it gets no bytes there.
    pub offset: Option<Bytes>,
    /// Its offset in the persistent arena.
    pub persistent_offset: Option<Bytes>,
    /// When it is alive, ascending; empty for never. In the input's own times.
    pub spans: Vec<(u64, u64)>,
    /// Kept to the end of the run and beyond.
    pub kept: bool,
    /// The row whose bytes it is by an in-place operator or a view.
    pub root: Option<usize>,
    /// Whose bytes it takes over.
    pub uses: Vec<Use>,
}

impl Row {
    /// The first and last time it is alive.
    pub fn hull(&self) -> Option<(u64, u64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }

    /// One past its last byte in the arena.
    pub fn end(&self) -> Option<Bytes> {
        Some(self.offset?.saturating_add(self.size?))
    }

    /// The id and the name, as messages show them.
    pub fn title(&self) -> String {
        let place = self.subgraph.filter(|&k| k > 0).map_or(String::new(), |k| format!("{k}:"));
        if self.name.is_empty() || self.name == self.id {
            format!("{place}{}", visible(&self.id))
        } else {
            format!("{place}{} {:?}", visible(&self.id), cut(&self.name, 48))
        }
    }
}

/// The figures of one plan.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The highest end of any buffer.
    pub arena_bytes: Bytes,
    /// No plan is smaller.
    pub lower_bound: Bytes,
    /// Whether the arena is proven the smallest.
    pub optimal: bool,
    /// The strategy that made the plan.
    pub strategy: &'static str,
    /// Whether `auto` compared with all greedy rules.
    pub compared: bool,
    /// Search nodes visited.
    pub nodes: u64,
    /// Buffers placed.
    pub buffers: usize,
    /// The sum of their sizes.
    pub total_bytes: Bytes,
    /// The strictest alignment.
    pub align: Align,
}

/// A plan of one problem with everything there is to say about it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was planned.
    pub title: String,
    /// The entry subgraph; `None` of a bare problem.
    pub entry: Option<u32>,
    /// The figures.
    pub facts: Facts,
    /// All rows: those of every subgraph that runs, planned or not.
    pub rows: Vec<Row>,
    /// The time at which most bytes are alive, and how many.
    pub peak: (u64, Bytes),
    /// Who is alive there, largest first.
    pub peak_rows: Vec<usize>,
    /// Bytes alive from each time on, at the times where they change.
    pub live: Vec<(u64, Bytes)>,
    ops: Vec<String>,
    steps: Vec<(At, u32)>,
}

impl Report {
    /// A report of `graphs[entry]`, lowered and planned.
    pub fn of_graph<T: Tables>(
        title: String,
        graphs: &[T],
        entry: usize,
        (lowered, plan): (&Lowered, &Plan),
        persistent: &Persistent,
        names: &impl Names,
    ) -> Result<Report, Error> {
        let tensor = |g: usize, t: usize| {
            let tensor = graphs[g].tensor(t);
            let at = persistent.offsets.get(g).and_then(|p| p[t]);
            Tensor { allocation: tensor.allocation, bytes: tensor.bytes, persistent: at }
        };
        Report::of_lowered(title, (entry, &running(graphs, entry)), &tensor, (lowered, plan), names)
    }

    /// The same where the graphs are gone: of the subgraph `entry` and all that run in it, ascending.
    pub fn of_lowered(
        title: String,
        (entry, subgraphs): (usize, &[usize]),
        tensor: &dyn Fn(usize, usize) -> Tensor,
        (lowered, plan): (&Lowered, &Plan),
        names: &impl Names,
    ) -> Result<Report, Error> {
        let mut rows: Vec<Row> = Vec::new();
        let mut row_of = vec![0; lowered.problem.len()];
        for &g in subgraphs {
            let base = rows.len();
            for t in 0..lowered.buffers[g].len() {
                let (tensor, own) = (tensor(g, t), &lowered.lives.own[g][t]);
                let buffer = lowered.buffers[g][t];
                let root = lowered.roots[g][t] as usize;
                if let Some(b) = buffer {
                    row_of[b as usize] = rows.len();
                }
                let (shape, dtype) = names.shape(g, t);
                let spans = if own.home == Home::Elsewhere { &[][..] } else { &lowered.lives.spans[g][t] };
                rows.push(Row {
                    subgraph: Some(g as u32),
                    id: t.to_string(),
                    name: names.tensor(g, t).to_string(),
                    kind: Kind::Tensor(own.role, tensor.allocation),
                    shape,
                    dtype,
                    align: buffer.map_or(Align::ONE, |b| lowered.problem.buffers()[b as usize].spec.align),
                    size: tensor.bytes,
                    offset: lowered.offset(plan, g, t),
                    persistent_offset: tensor.persistent,
                    spans: spans.iter().map(|s| (s.first.into(), s.last.into())).collect(),
                    kept: own.kept && own.home != Home::Elsewhere,
                    root: (root != t && buffer.is_some()).then_some(base + root),
                    uses: Vec::new(),
                });
            }
        }
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut ops = Vec::new();
        let steps = lowered.timeline.steps().iter().map(|&at| {
            let op = names.op(at.subgraph as usize, at.node as usize);
            let index = *known.entry(op).or_insert_with(|| {
                ops.push(op.to_string());
                ops.len() as u32 - 1
            });
            (at, index)
        });
        let steps = steps.collect();
        let mut report = Report::new(title, rows, &lowered.problem, plan, &row_of, &|s| (s.into(), s.into()))?;
        (report.ops, report.steps, report.entry) = (ops, steps, Some(entry as u32));
        Ok(report)
    }

    /// A report of a bare problem. `label` gives each buffer's id and name, `time` the input's time of a step's first
    /// and last instant.
    pub fn of_problem(
        title: String,
        problem: &Problem,
        plan: &Plan,
        label: &dyn Fn(usize) -> (String, String),
        time: &dyn Fn(Step) -> (u64, u64),
    ) -> Result<Report, Error> {
        let rows = (0..problem.len()).map(|i| {
            let (spec, (id, name)) = (problem.buffers()[i].spec, label(i));
            Row {
                subgraph: None,
                id,
                name,
                kind: Kind::Buffer,
                shape: String::new(),
                dtype: "",
                align: spec.align,
                size: Some(spec.size),
                offset: (spec.size > 0).then(|| plan.offsets[i]),
                persistent_offset: None,
                spans: problem.spans(i).iter().map(|s: &Span| (time(s.first).0, time(s.last).1)).collect(),
                kept: spec.kept,
                root: problem.alias_of(i).map(|a| a.root as usize),
                uses: Vec::new(),
            }
        });
        let row_of: Vec<usize> = (0..problem.len()).collect();
        Report::new(title, rows.collect(), problem, plan, &row_of, time)
    }

    fn new(
        title: String,
        mut rows: Vec<Row>,
        problem: &Problem,
        plan: &Plan,
        row_of: &[usize],
        time: &dyn Fn(Step) -> (u64, u64),
    ) -> Result<Report, Error> {
        for s in explain::sharing(problem, &plan.offsets) {
            let with = row_of[s.with as usize];
            let ended = match s.reason {
                Reason::Ended(step) => Some(time(step).1),
                Reason::InPlace => None,
            };
            let used = Use { with, begins: time(s.begins).0, ended, bytes: (s.from, s.to) };
            rows[row_of[s.buffer as usize]].uses.push(used);
        }
        let Peak { step, bytes, buffers } = explain::peak(problem)?;
        let live = explain::live_bytes(problem)?.into_iter().map(|(s, b)| (time(s).0, b)).collect();
        let facts = Facts {
            arena_bytes: plan.arena_bytes,
            lower_bound: plan.lower_bound,
            optimal: plan.optimal,
            strategy: plan.strategy.name(),
            compared: plan.compared,
            nodes: plan.stats.nodes,
            buffers: problem.buffers().iter().filter(|b| b.spec.size > 0).count(),
            total_bytes: problem.total_bytes()?,
            align: plan.align,
        };
        Ok(Report {
            title,
            entry: None,
            facts,
            rows,
            peak: (time(step).0, bytes),
            peak_rows: buffers.iter().map(|&b| row_of[b as usize]).collect(),
            live,
            ops: Vec::new(),
            steps: Vec::new(),
        })
    }

    /// The operator at a time; `None` in a bare problem.
    pub fn op(&self, time: u64) -> Option<&str> {
        let (_, op) = self.steps.get(usize::try_from(time).ok()?)?;
        self.ops.get(*op as usize).map(String::as_str)
    }

    /// The subgraph and node at a time; `None` in a bare problem.
    pub fn at(&self, time: u64) -> Option<At> {
        self.steps.get(usize::try_from(time).ok()?).map(|s| s.0)
    }

    /// The names of all operators, and per step the index of its own; both empty in a bare problem.
    pub fn operators(&self) -> (&[String], impl Iterator<Item = (At, u32)> + '_) {
        (&self.ops, self.steps.iter().copied())
    }

    /// Bytes alive at a time.
    pub fn live_at(&self, time: u64) -> Bytes {
        let after = self.live.partition_point(|l| l.0 <= time);
        if after == 0 {
            0
        } else {
            self.live[after - 1].1
        }
    }

    /// A time with its operator and, inside a called subgraph, where that is: `7 ADD`, `9 MUL in subgraph 2`.
    pub fn moment(&self, time: u64) -> String {
        let Some(op) = self.op(time) else { return time.to_string() };
        let entry = self.steps[0].0.subgraph;
        match self.steps[time as usize].0.subgraph {
            k if k == entry => format!("{time} {}", cut(op, 24)),
            k => format!("{time} {} in subgraph {k}", cut(op, 24)),
        }
    }

    /// The first and last time anything is alive; of a graph, of its steps.
    pub fn time_range(&self) -> (u64, u64) {
        if !self.steps.is_empty() {
            return (0, self.steps.len() as u64 - 1);
        }
        let hulls = || self.rows.iter().filter_map(Row::hull);
        (hulls().map(|h| h.0).min().unwrap_or(0), hulls().map(|h| h.1).max().unwrap_or(0))
    }

    /// Arena over bound, 1 for an empty plan.
    pub fn ratio(&self) -> f64 {
        match self.facts.lower_bound {
            0 => 1.0,
            bound => self.facts.arena_bytes as f64 / bound as f64,
        }
    }
}

/// The entry and every subgraph it calls, ascending.
fn running<T: Tables>(graphs: &[T], entry: usize) -> Vec<usize> {
    let mut seen = vec![false; graphs.len()];
    let mut stack = vec![entry];
    while let Some(g) = stack.pop() {
        if g < graphs.len() && !std::mem::replace(&mut seen[g], true) {
            let callees = (0..graphs[g].node_count()).flat_map(|n| graphs[g].node(n).call.subgraphs());
            stack.extend(callees.map(|&k| k as usize));
        }
    }
    (0..graphs.len()).filter(|&g| seen[g]).collect()
}
