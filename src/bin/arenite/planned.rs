//! The work of `plan`: options applied to an input, every entry lowered and placed.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use arenite::advise::reorder;
use arenite::error::{Error, Subject};
use arenite::graph::liveness::{Options, Pin};
use arenite::graph::lower::{lower, persistent, Lowered};
use arenite::graph::values::prove;
use arenite::model::{Model, ProblemFile, Solution};
use arenite::planner::{Options as PlanOptions, Plan};
use arenite::units::{round_up, Align, Bytes};
use arenite::view::{text, Names, Overview, Report, TextOptions};
use serde_json::json;

use super::adjust::{entries, pins, scratch, set_shape, with_end};
use super::ask::{answer, place, statistics, Placed};
use super::besides::{resources, scratch_bytes, warnings};
use super::output::{Done, Failure};
use super::plan::Args;
use super::progress::Watch;

/// The outcome.
pub struct Planned {
    /// What was planned.
    pub title: String,
    /// One report per entry.
    pub reports: Vec<Report>,
    /// Nanoseconds spent placing.
    pub plan_ns: u64,
    persistent_bytes: Bytes,
    resource_bytes: Bytes,
    constant_bytes: Bytes,
    scratch_bytes: Option<Bytes>,
    alignment: Bytes,
    in_place: bool,
    strategy: &'static str,
    warnings: Vec<String>,
    capacity: Option<Bytes>,
    /// Further keys of the JSON object, their values as JSON text.
    pub extras: Vec<(&'static str, String)>,
    /// Further lines of the text.
    pub notes: Vec<String>,
    /// Why the capacity is exceeded.
    pub exceeded: Option<String>,
}

struct ModelNames<'a>(&'a Model);

impl Names for ModelNames<'_> {
    fn tensor(&self, subgraph: usize, tensor: usize) -> &str {
        &self.0.subgraphs[subgraph].tensors[tensor].name
    }

    fn op(&self, subgraph: usize, node: usize) -> &str {
        &self.0.subgraphs[subgraph].nodes[node].op
    }

    fn shape(&self, subgraph: usize, tensor: usize) -> (String, &'static str) {
        let tensor = &self.0.subgraphs[subgraph].tensors[tensor];
        let dims = tensor.shape.iter().flatten().map(i64::to_string).collect::<Vec<_>>();
        (dims.join("x"), tensor.dtype.name())
    }
}

impl Planned {
    /// Plans a bare problem.
    pub fn problem(args: &Args, input: &ProblemFile) -> Done<Planned> {
        let title = title(args, "problem");
        let mut watch = Watch::new(args.deadline);
        let refuse = |e: Error| {
            let row = |s: Subject| match s {
                Subject::Buffer(i) => {
                    input.ids.get(i as usize).map(|id| format!(" ({s} is id {id:?}, line {})", input.line(i as usize)))
                }
                _ => None,
            };
            let (a, b) = (row(e.subject).unwrap_or_default(), row(e.other).unwrap_or_default());
            Failure::about(file(args), format!("{e}{a}{b}"))
        };
        let previous = previous(args)?;
        let old: Option<Vec<_>> = previous.map(|p| input.ids.iter().map(|id| p.offset(None, id)).collect());
        let placed = place(args, &title, &input.problem, old.as_deref(), &mut watch).map_err(refuse)?;
        let plan = &placed.plan;
        let label = |i: usize| (input.ids[i].clone(), input.names[i].clone());
        let time = |s: u32| (input.time(s), input.time(s.saturating_add(1)).saturating_sub(1));
        let report = Report::of_problem(title.clone(), &input.problem, plan, &label, &time).map_err(refuse)?;
        let asked = args.align.unwrap_or(Align::ONE);
        let planned = Planned {
            title,
            alignment: asked.max(plan.align).bytes(),
            reports: vec![report],
            plan_ns: placed.ns,
            persistent_bytes: 0,
            resource_bytes: 0,
            constant_bytes: 0,
            scratch_bytes: None,
            in_place: input.problem.has_aliases(),
            strategy: args.strategy.name(),
            warnings: expired(&watch),
            capacity: args.capacity,
            extras: Vec::new(),
            notes: Vec::new(),
            exceeded: None,
        };
        Ok(planned.explained(args, &[&placed], &|s| input.time(s)))
    }

    /// Plans a model: each entry on its own.
    pub fn model(args: &Args, model: &Model) -> Done<Planned> {
        let about = |e: Error, model: &Model| Failure::about(file(args), named(model, e));
        let Ready { model, title, scratch, entries, options, pins, order } = Ready::new(args, model)?;
        let mut watch = Watch::new(args.deadline);
        let previous = previous(args)?;
        let mut all: Vec<Placed> = Vec::new();
        let mut done: Vec<(Lowered, Plan)> = Vec::new();
        for (&entry, pins) in entries.iter().zip(&pins) {
            let lowered = lower(&model.subgraphs, entry, &options, pins).map_err(|e| about(e, &model))?;
            let old = previous.as_ref().map(|p| old_offsets(p, &lowered, entry, entries.len() > 1));
            let placed = place(args, &title, &lowered.problem, old.as_deref(), &mut watch);
            let placed = placed.map_err(|e| about(e, &model))?;
            prove(&model.subgraphs, entry, pins, &lowered, &placed.plan).map_err(|e| about(e, &model))?;
            done.push((lowered, placed.plan.clone()));
            all.push(placed);
        }
        let lives: Vec<_> = done.iter().map(|(l, _)| &l.lives).collect();
        let kept = persistent(&model.subgraphs, options.align, &lives).map_err(|e| about(e, &model))?;
        let mut reports = Vec::new();
        for (&entry, (lowered, plan)) in entries.iter().zip(&done) {
            let name = entry_title(&model, entry, entries.len() > 1, &title);
            let names = ModelNames(&model);
            let report = Report::of_graph(name, &model.subgraphs, entry, (lowered, plan), &kept, &names)
                .map_err(|e| about(e, &model))?;
            reports.push(report);
        }
        let (resources, mut warnings) = (resources(&model, &reports), warnings(&model, &reports));
        let mut persistent_bytes = kept.bytes;
        for bytes in resources {
            // Their state outlives a run like a variable's, so it follows those in the persistent arena.
            persistent_bytes = round_up(persistent_bytes, options.align)
                .and_then(|at| arenite::units::add(at, bytes))
                .map_err(|e| about(e, &model))?;
        }
        warnings.extend(expired(&watch));
        let planned = Planned {
            constant_bytes: args.subgraph.map_or(model.constant_bytes, |k| model.subgraphs[k as usize].constant_bytes),
            title,
            reports,
            plan_ns: all.iter().map(|p| p.ns).sum(),
            persistent_bytes,
            resource_bytes: persistent_bytes - kept.bytes,
            scratch_bytes: scratch,
            alignment: options.align.bytes(),
            in_place: options.in_place && !options.keep_all,
            strategy: args.strategy.name(),
            warnings,
            capacity: args.capacity,
            extras: order.map(|o| ("order", json!(o).to_string())).into_iter().collect(),
            notes: Vec::new(),
            exceeded: None,
        };
        Ok(planned.explained(args, &all.iter().collect::<Vec<_>>(), &u64::from))
    }

    /// Adds what only this run of the planner can tell: of the largest entry, but moves of all.
    fn explained(mut self, args: &Args, placed: &[&Placed], time: &dyn Fn(u32) -> u64) -> Planned {
        let largest = self.overview().largest();
        let Some(of) = placed.get(largest) else { return self };
        let (keys, line) = statistics(of);
        self.extras.extend(keys.into_iter().map(|(key, value)| (key, value.to_string())));
        self.notes.extend(line);
        if let (Some(capacity), Some(verdict)) = (args.capacity, of.verdict) {
            let answer = answer(capacity, verdict, &self.reports[largest], time);
            self.extras.push(("capacity", answer.json.to_string()));
            self.exceeded = (!answer.text.is_empty()).then_some(answer.text);
        }
        if placed.iter().any(|p| p.moved.is_some()) {
            let moved: u64 = placed.iter().filter_map(|p| p.moved).sum();
            self.extras.push(("moved", moved.to_string()));
            self.notes.push(format!("Moved: {moved} buffers have another offset than in the previous plan"));
        }
        self
    }

    /// The report as text.
    pub fn text(&self, w: &mut dyn Write, all: bool) -> io::Result<()> {
        text(w, &self.overview(), TextOptions { all, width: 100 })?;
        self.notes.iter().try_for_each(|line| writeln!(w, "{line}"))
    }

    /// What there is to say about all entries together.
    pub fn overview(&self) -> Overview<'_> {
        Overview {
            title: &self.title,
            entries: &self.reports,
            persistent_bytes: self.persistent_bytes,
            resource_bytes: self.resource_bytes,
            constant_bytes: self.constant_bytes,
            scratch_bytes: self.scratch_bytes,
            alignment: self.alignment,
            in_place: self.in_place,
            strategy: self.strategy,
            warnings: &self.warnings,
            capacity: self.capacity,
        }
    }
}

/// A model with the options applied that change it, ready to be planned.
pub struct Ready {
    /// The model.
    pub model: Model,
    /// What it is called.
    pub title: String,
    /// Kernel scratch recorded in a profile, listed in a table, or given.
    pub scratch: Option<Bytes>,
    /// The subgraphs to plan.
    pub entries: Vec<usize>,
    /// Lifetime options.
    pub options: Options,
    /// Per entry, what is kept longer.
    pub pins: Vec<Vec<Pin>>,
    /// With `--order`, per subgraph its nodes in the order that is planned.
    pub order: Option<Vec<Vec<u32>>>,
}

impl Ready {
    /// Applies the options to a copy of `model`.
    pub fn new(args: &Args, model: &Model) -> Done<Ready> {
        let mut model = model.clone();
        let title = title(args, &model.name);
        for set in &args.set {
            set_shape(&mut model, set)?;
        }
        model.allow_in_place(&args.inplace).map_err(|e| Failure::about("--inplace", e))?;
        scratch(&mut model, args)?;
        let entries = entries(&mut model, args.subgraph)?;
        let scratch = scratch_bytes(&model, &entries).map_err(|e| Failure::about(file(args), named(&model, e)))?;
        let options = Options {
            policy: args.policy.unwrap_or_default(),
            in_place: !args.no_in_place,
            align: args.align.unwrap_or_default(),
            reuse_inputs: args.reuse_inputs,
            keep_all: args.keep_all,
        };
        let order = match args.order {
            true => {
                let found = reorder(&mut model, &entries, &options, &plan_options(args));
                Some(found.map_err(|e| Failure::about(file(args), named(&model, e)))?.0)
            }
            false => None,
        };
        let given = pins(args, &model, &entries)?;
        let ends = entries.iter().zip(&given).map(|(&entry, pins)| with_end(&model, entry, pins, args));
        let pins = ends.collect::<Done<Vec<_>>>()?;
        Ok(Ready { model, title, scratch, entries, options, pins, order })
    }
}

/// How to place, as the options say.
pub fn plan_options(args: &Args) -> PlanOptions {
    PlanOptions { effort: args.effort, ..PlanOptions::of(args.strategy) }
}

fn title(args: &Args, otherwise: &str) -> String {
    match args.input.as_deref() {
        None => format!("built-in {otherwise}"),
        Some("-") => "standard input".into(),
        Some(path) => Path::new(path).file_name().map_or(path.into(), |n| n.to_string_lossy().into_owned()),
    }
}

/// The input as messages show it.
pub fn file(args: &Args) -> &str {
    args.input.as_deref().map_or("the built-in network", super::input::shown)
}

/// Nanoseconds since `begin`.
pub fn nanos(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The older plan.
fn previous(args: &Args) -> Done<Option<Solution>> {
    let Some(path) = &args.previous else { return Ok(None) };
    let read = Solution::read(&super::input::bytes(path)?);
    read.map(Some).map_err(|e| Failure::about(super::input::shown(path), e))
}

/// An older plan's offsets by buffer. Ids are those of `plan --csv`: a tensor's index, `K:` before it with several
/// subgraphs, `E/` before that with several entries; or there is a column `subgraph`.
fn old_offsets(old: &Solution, lowered: &Lowered, entry: usize, several: bool) -> Vec<Option<Bytes>> {
    let mut out = vec![None; lowered.problem.len()];
    for (k, row) in lowered.buffers.iter().enumerate() {
        for (t, &buffer) in row.iter().enumerate() {
            let Some(buffer) = buffer else { continue };
            let in_entry = several.then(|| format!("{entry}/{k}:{t}"));
            let own = in_entry.and_then(|id| old.offset(None, &id)).or_else(|| old.offset(None, &format!("{k}:{t}")));
            out[buffer as usize] = own.or_else(|| old.offset(Some(k as u32), &t.to_string()));
        }
    }
    out
}

/// The message of an error with the names of the tensors it is about.
pub fn named(model: &Model, e: Error) -> String {
    let graph = match (e.subject, e.other) {
        (Subject::Subgraph(k), _) | (_, Subject::Subgraph(k)) => k as usize,
        _ => 0,
    };
    let name = match e.subject {
        Subject::Tensor(t) => model.subgraphs.get(graph).and_then(|g| g.tensors.get(t as usize)),
        _ => None,
    };
    match name {
        Some(tensor) => format!("{e} (tensor {:?})", tensor.name),
        None => e.to_string(),
    }
}

fn expired(watch: &Watch) -> Vec<String> {
    let text = "the deadline ended the search; another run may find another plan";
    watch.expired.then(|| text.to_string()).into_iter().collect()
}

fn entry_title(model: &Model, entry: usize, several: bool, title: &str) -> String {
    if !several {
        return title.to_string();
    }
    let keys: Vec<_> = model.signatures.iter().filter(|s| s.subgraph as usize == entry).map(|s| &*s.key).collect();
    let name = &model.subgraphs[entry].name;
    let signature = if keys.is_empty() { String::new() } else { format!(" (signature {})", keys.join(", ")) };
    format!("subgraph {entry} {name:?}{signature}")
}
