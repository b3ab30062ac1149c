//! What `optimize` prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use arenite::graph::order::{Held, Outcome, State, Verdict, Why};
use arenite::model::{Model, OfflinePlan as Offline};
use arenite::units::Bytes;
use arenite::view::{grouped, visible};
use serde_json::{json, Value};

use super::output::{json_to_stdout, to_stdout};
use super::verify::Verified;

/// Pairs of held nodes listed in the JSON object.
const LISTED: usize = 200;

/// What became of an offline plan in the file.
pub enum OfflinePlan {
    /// The file has none.
    None,
    /// The order is the same, so it still holds.
    Kept,
    /// New offsets for the tensors that had some.
    Rebuilt(Vec<Option<Bytes>>),
    /// Asked for: offsets for all; `greedy_bytes` are those before.
    Added(Offline),
    /// All tensors are left to the runtime.
    Dropped,
}

impl OfflinePlan {
    fn name(&self) -> &'static str {
        match self {
            OfflinePlan::None => "none",
            OfflinePlan::Kept => "kept",
            OfflinePlan::Rebuilt(_) => "rebuilt",
            OfflinePlan::Added(_) => "added",
            OfflinePlan::Dropped => "dropped",
        }
    }
}

/// Everything there is to report.
pub struct Summary<'a> {
    pub model: &'a Model,
    pub found: &'a Outcome,
    /// Whether TFLite Micro was asked.
    pub micro: bool,
    /// Kernel scratch that was counted, where any is known.
    pub scratch: Option<Bytes>,
    /// What real runtimes said.
    pub verified: Option<Verified>,
    /// Whether an order would have given delegates more parts, and operators had to be held together.
    pub partitions: bool,
    pub offline: OfflinePlan,
    pub alignment: Bytes,
    pub in_place: bool,
    pub input: &'a str,
    pub output: &'a str,
}

impl Summary<'_> {
    /// Whether there is a file to show for it.
    fn written(&self) -> bool {
        self.found.changed || matches!(self.offline, OfflinePlan::Added(_))
    }

    /// Nodes that are not where they were.
    fn moved(&self) -> usize {
        let orders = self.found.orders.iter();
        orders.map(|o| (0u32..).zip(o).filter(|(place, &node)| *place != node).count()).sum()
    }

    /// By the judge of this number: before and after.
    fn pair(&self, judge: usize) -> Option<(Verdict, Verdict)> {
        Some((*self.found.before.get(judge)?, *self.found.after.get(judge)?))
    }

    /// Why nothing was gained.
    fn why(&self) -> &'static str {
        let nodes = self.model.subgraphs.iter().map(|g| g.nodes.len()).max().unwrap_or(0);
        match self.found {
            Outcome { changed: true, .. } => "",
            _ if nodes < 2 => "there are no two operators to change places",
            Outcome { proven: true, .. } => "proven: no order that keeps the results needs less",
            Outcome { refused: 1.., .. } => {
                "orders with a lower peak were found, but a runtime's planner would need more, or the arena no less"
            }
            _ => "the search found no better order; this is not proven",
        }
    }

    fn held_by(&self) -> BTreeMap<&'static str, usize> {
        let mut out = BTreeMap::new();
        for h in &self.found.held {
            *out.entry(kind(h.why)).or_insert(0) += 1;
        }
        out
    }
}

fn kind(why: Why) -> &'static str {
    match why {
        Why::State(State::World) => "operators that may have side effects",
        Why::State(State::Resource(_)) => "uses of one resource",
        Why::Variable(_) => "uses of one variable tensor",
        Why::Rewritten(_) => "a tensor written more than once",
        Why::InPlace(_) => "bytes an operator may write over",
        Why::Asked => "control dependencies, initialisers or partitions",
    }
}

/// Prints the report or the JSON object.
pub fn print(done: &Summary<'_>, json: bool) -> super::output::Done<()> {
    if json {
        return json_to_stdout(|w| writeln!(w, "{:#}", object(done)));
    }
    to_stdout(|w| text(w, done))
}

fn object(done: &Summary<'_>) -> Value {
    let (before, after) = done.pair(0).unwrap_or_default();
    let host = |judge: usize| done.pair(judge).map(|(b, a)| json!({"before": b.arena_bytes, "after": a.arena_bytes}));
    let held: Vec<Value> = done.found.held.iter().take(LISTED).map(|h| row(done.model, h)).collect();
    json!({
        "arena_bytes_before": before.arena_bytes,
        "arena_bytes_after": after.arena_bytes,
        "lower_bound_before": before.lower_bound,
        "lower_bound_after": after.lower_bound,
        "alignment": done.alignment,
        "in_place": done.in_place,
        "order_changed": done.found.changed,
        "offline_plan": done.offline.name(),
        "proven": done.found.proven,
        "bound_any_order": if done.found.bound > 0 { json!(done.found.bound) } else { Value::Null },
        "why": done.why(),
        "moved": done.moved(),
        "tflite": host(1),
        "tflm": if done.micro { host(2) } else { None },
        "scratch_bytes": done.scratch,
        "verified": done.verified.as_ref().map(|v| v.json.clone()),
        "held_count": done.found.held.len(),
        "held": held,
        "tflm_offline": match &done.offline {
            OfflinePlan::Added(p) => json!({"before": p.greedy_bytes, "after": p.arena_bytes}),
            _ => Value::Null,
        },
        "output": if done.written() { json!(done.output) } else { Value::Null },
    })
}

fn row(model: &Model, h: &Held) -> Value {
    let op = |node: u32| {
        let graph = model.subgraphs.get(h.subgraph as usize);
        graph.and_then(|g| g.nodes.get(node as usize)).map(|n| n.op.to_string())
    };
    json!({
        "subgraph": h.subgraph,
        "before": h.before,
        "before_op": op(h.before),
        "after": h.after,
        "after_op": op(h.after),
        "why": kind(h.why),
    })
}

fn text(w: &mut dyn Write, done: &Summary<'_>) -> io::Result<()> {
    let (before, after) = done.pair(0).unwrap_or_default();
    let nodes: usize = done.model.subgraphs.iter().map(|g| g.nodes.len()).sum();
    writeln!(w, "{}: {} operators", visible(done.input), nodes)?;
    let sharing = if done.in_place { ", in place" } else { "" };
    let align = done.alignment;
    let rows = [
        (format!("arena, {align}-byte aligned{sharing}"), done.pair(0)),
        ("TensorFlow Lite's planner".to_string(), done.pair(1)),
        ("TFLite Micro's planner".to_string(), done.pair(2).filter(|_| done.micro)),
    ];
    writeln!(w, "{:36} {:>14} {:>14}", "", "before", "after")?;
    for (name, pair) in rows {
        if let Some((b, a)) = pair {
            let percent = match b.arena_bytes {
                0 => String::new(),
                n if a.arena_bytes < n => format!("  -{:.1} %", 100.0 * (n - a.arena_bytes) as f64 / n as f64),
                _ => String::new(),
            };
            writeln!(w, "{name:36} {:>14} {:>14}{percent}", grouped(b.arena_bytes), grouped(a.arena_bytes))?;
        }
    }
    let proof = if done.found.proven && done.found.changed { "  least for any order" } else { "" };
    writeln!(
        w,
        "{:36} {:>14} {:>14}{proof}",
        "lower bound of the order",
        grouped(before.lower_bound),
        grouped(after.lower_bound)
    )?;
    if !done.found.held.is_empty() {
        writeln!(w, "kept in order besides data: {} pairs", done.found.held.len())?;
        for (kind, count) in done.held_by() {
            writeln!(w, "  {count:6}  {kind}")?;
        }
    }
    if done.partitions {
        writeln!(w, "operators were kept together, so that delegates get no more partitions")?;
    }
    match &done.offline {
        OfflinePlan::None => {}
        OfflinePlan::Added(p) => {
            let (before, after) = (grouped(p.greedy_bytes), grouped(p.arena_bytes));
            writeln!(w, "{:36} {before:>14} {after:>14}", "TFLite Micro with an offline plan")?;
        }
        plan => writeln!(w, "offline plan in the file: {}", plan.name())?,
    }
    match done.scratch {
        Some(bytes) => writeln!(w, "kernel scratch counted: {} bytes in all", grouped(bytes))?,
        None => writeln!(w, "kernel scratch is unknown (it is not in the file; --profile has it) and not counted")?,
    }
    for run in done.verified.iter().flat_map(|v| &v.runs) {
        write!(w, "{}: outputs identical", run.name)?;
        if let Some((before, after)) = run.arena {
            write!(w, ", arena {} before, {} after", grouped(before), grouped(after))?;
        }
        writeln!(w)?;
    }
    if done.written() {
        writeln!(w, "moved {} operators, wrote {}", done.moved(), done.output)
    } else {
        writeln!(w, "nothing written: {}", done.why())
    }
}
