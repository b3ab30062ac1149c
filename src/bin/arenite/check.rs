//! `arenite check`: whether a plan holds. The first thing to run when an engine's outputs go wrong.

use std::process::ExitCode;

use arenite::graph::liveness::{Options, Policy};
use arenite::graph::lower::lower;
use arenite::model::{Model, OffsetColumn, ProblemFile, Solution};
use arenite::planner::check::{check_all, Violation};
use arenite::planner::{Problem, Span};
use arenite::units::{Align, Bytes, Step};

use super::check_out::{json, text, Finding};
use super::input::{bytes, read, shown, Input};
use super::output::{json_to_stdout, to_stdout, Done, Failure, FAILED};
use super::plan::{align, size};
use super::planned::named;

/// Violations listed at most: past that nobody reads them, and the object would not fit in memory.
pub const LIMIT: usize = 1_000_000;

const AFTER: &str = "Examples:
  arenite check solved.csv              lifetimes and offsets in one file
  arenite check problem.csv plan.csv    the offsets in a file of their own: id,offset
  arenite check model.tflite plan.csv   lifetimes from the model: id,offset or subgraph,id,offset
  arenite check model.tflite            the offline plan inside the file
  arenite check profile.json            the plan that a runtime had while it was recorded
  arenite check dump.csv                id,lower,upper,size,pointer: live tensors' addresses; prints the layout

Lifetimes in a CSV are half-open: a buffer is alive from `lower` up to but not at `upper`. What is printed, text and
JSON, counts steps closed (`steps` [2, 4] are 2, 3 and 4) and bytes half-open (`bytes` [0, 64] are 0 to 63).";

/// Check a plan: name every two buffers that are alive together on the same bytes
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// A problem CSV, a graph table, a .tflite file or a recorded profile; `-` for standard input
    pub problem: String,
    /// A CSV with `id` and `offset` (or `pointer`); without one PROBLEM holds both
    pub solution: Option<String>,
    /// Alignment every buffer must have (default: what the file says, 1 without)
    #[arg(long, value_name = "N", value_parser = align)]
    pub align: Option<Align>,
    /// Whose rules for lifetimes (models; default safe, for a recorded plan tflite)
    #[arg(long, value_parser = super::plan::policies())]
    pub policy: Option<Policy>,
    /// An input's bytes are free after its last reader (models)
    #[arg(long)]
    pub reuse_inputs: bool,
    /// Treat an operator that writes over its input as a violation (models)
    #[arg(long)]
    pub no_in_place: bool,
    /// Check one subgraph of a model on its own
    #[arg(long, value_name = "K")]
    pub subgraph: Option<u32>,
    /// The arena must not be larger than this
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub capacity: Option<Bytes>,
    /// List every violation
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What the check found.
#[derive(Default)]
pub struct Outcome {
    /// The highest end of any buffer.
    pub arena_bytes: Bytes,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Whether there is more than the list holds.
    pub truncated: bool,
    /// Buffers checked.
    pub buffers: usize,
    /// Ids of the solution that the problem does not have.
    pub unknown: Vec<String>,
    /// The lowest address, where the plan was given as addresses.
    pub base: Option<u64>,
    /// Then, where each buffer lies: id, offset, size.
    pub layout: Vec<(String, Bytes, Bytes)>,
}

/// One problem with a plan to be checked.
pub struct Case<'a> {
    pub problem: &'a Problem,
    /// An offset for every buffer, where the plan has one.
    pub offsets: Vec<Option<Bytes>>,
    /// Whether a buffer without an offset is a fault.
    pub complete: bool,
    /// Offsets count from this address, and alignment is that of addresses.
    pub base: u64,
    pub id: &'a dyn Fn(usize) -> (String, String),
    /// A step's first and last instant in the input's time.
    pub time: &'a dyn Fn(Step) -> (u64, u64),
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let column = if args.solution.is_some() { OffsetColumn::Fixed } else { OffsetColumn::Solution };
    let input = read(Some(&args.problem), column, args.align)?;
    let solution = match &args.solution {
        Some(path) => Some(Solution::read(&bytes(path)?).map_err(|e| Failure::about(shown(path), e))?),
        None => None,
    };
    let mut out = Outcome::default();
    match &input {
        Input::Problem(file) => csv(args, file, solution.as_ref(), &mut out)?,
        Input::Model(model) => graphs(args, model, solution.as_ref(), &mut out)?,
    }
    if let Some(capacity) = args.capacity.filter(|&c| c < out.arena_bytes) {
        out.findings.push(Finding::Capacity { arena: out.arena_bytes, capacity });
    }
    out.layout.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    let ok = out.findings.is_empty() && !out.truncated;
    if args.json {
        json_to_stdout(|w| json(w, &out, ok))?;
    } else {
        to_stdout(|w| text(w, &out, ok, args.all))?;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn csv(args: &Args, file: &ProblemFile, solution: Option<&Solution>, out: &mut Outcome) -> Done<()> {
    for (name, given) in [
        ("--policy", args.policy.is_some()),
        ("--subgraph", args.subgraph.is_some()),
        ("--reuse-inputs", args.reuse_inputs),
    ] {
        if given {
            return Err(Failure::about(name, "needs a model, the problem is a CSV"));
        }
    }
    let (offsets, base) = match solution {
        Some(s) => {
            let known: std::collections::HashSet<&str> = file.ids.iter().map(String::as_str).collect();
            unknown(s, |_, id| known.contains(id), out);
            (file.ids.iter().map(|id| s.offset(None, id)).collect(), s.base)
        }
        None if file.has_offsets => (file.offsets.clone(), file.base),
        None => {
            let what = "line 1: expected a column offset or pointer, or a second file with the plan";
            return Err(Failure::about(shown(&args.problem), what));
        }
    };
    out.base = base;
    let case = Case {
        problem: &file.problem,
        offsets,
        complete: true,
        base: base.unwrap_or(0),
        id: &|i| (file.ids[i].clone(), file.names[i].clone()),
        time: &|s| (file.time(s), file.time(s.saturating_add(1)).saturating_sub(1)),
    };
    examine(&case, out);
    Ok(())
}

/// An offset for a buffer that is not there is a plan of something else, or a name gone wrong.
fn unknown(solution: &Solution, known: impl Fn(Option<u32>, &str) -> bool, out: &mut Outcome) {
    for (line, _, id) in solution.unknown(known) {
        out.unknown.push(id.to_string());
        push(out, Finding::Unknown { id: id.to_string(), line });
    }
}

/// Checks every entry of a model against offsets by tensor.
fn graphs(args: &Args, model: &Model, solution: Option<&Solution>, out: &mut Outcome) -> Done<()> {
    if solution.is_none() && model.offline_plan.is_none() {
        if (0..model.subgraphs.len()).any(|k| model.recorded_plan(k).is_some()) {
            return super::check_recorded::run(args, model, out);
        }
        let what = "it holds no plan (offline or recorded); expected a second file with id,offset";
        return Err(Failure::about(shown(&args.problem), what));
    }
    let mut model = model.clone();
    let entries = super::adjust::entries(&mut model, args.subgraph)?;
    let options = Options {
        policy: args.policy.unwrap_or_default(),
        in_place: !args.no_in_place,
        align: args.align.unwrap_or(Align::ONE),
        reuse_inputs: args.reuse_inputs,
        ..Options::default()
    };
    let several = model.subgraphs.len() > 1;
    if let Some(s) = solution {
        out.base = s.base;
        let known = |k: Option<u32>, id: &str| {
            let (k, id) = match id.rsplit_once('/').map_or(id, |x| x.1).split_once(':') {
                Some((k, id)) => (k.parse().ok(), id),
                None => (k, id),
            };
            let has = |g: &arenite::model::Subgraph| id.parse::<usize>().is_ok_and(|t| t < g.tensors.len());
            k.map_or(model.subgraphs.iter().any(has), |k| model.subgraphs.get(k as usize).is_some_and(has))
        };
        unknown(s, known, out);
    }
    for &entry in &entries {
        let lowered = lower(&model.subgraphs, entry, &options, &[])
            .map_err(|e| Failure::about(shown(&args.problem), named(&model, e)))?;
        let mut tensors = vec![(0, 0); lowered.problem.len()];
        for (k, ids) in lowered.buffers.iter().enumerate() {
            for (t, id) in ids.iter().enumerate() {
                if let Some(b) = id {
                    tensors[*b as usize] = (k, t);
                }
            }
        }
        let offset = |&(k, t): &(usize, usize)| match solution {
            // Written by an engine as the index alone, by `plan --csv` with what makes it unique.
            Some(s) => [format!("{entry}/{k}:{t}"), format!("{k}:{t}"), t.to_string()]
                .iter()
                .find(|id| s.contains(Some(k as u32), id))
                .and_then(|id| s.offset(Some(k as u32), id)),
            None => model.offline_offset(k, t),
        };
        let id = |i: usize| {
            let (k, t) = tensors[i];
            let id = if several { format!("{k}:{t}") } else { t.to_string() };
            (id, model.subgraphs[k].tensors[t].name.clone())
        };
        let case = Case {
            problem: &lowered.problem,
            offsets: tensors.iter().map(offset).collect(),
            complete: solution.is_some(),
            base: out.base.unwrap_or(0),
            id: &id,
            time: &|s| (s.into(), s.into()),
        };
        examine(&case, out);
    }
    Ok(())
}

/// Checks one problem's offsets.
pub fn examine(case: &Case<'_>, out: &mut Outcome) {
    let mut index = Vec::new();
    let mut offsets = Vec::new();
    for (i, offset) in case.offsets.iter().enumerate() {
        let size = case.problem.buffers()[i].spec.size;
        match offset {
            Some(offset) => {
                index.push(i);
                offsets.push(offset.saturating_add(case.base));
                if out.base.is_some() {
                    out.layout.push(((case.id)(i).0, *offset, size));
                }
            }
            None if size > 0 && case.complete => push(out, Finding::Missing { a: (case.id)(i) }),
            None => {}
        }
    }
    let placed = placed(case.problem, &index, &offsets);
    let report = check_all(&placed, &offsets, LIMIT.saturating_sub(out.findings.len()));
    out.buffers += index.len();
    out.arena_bytes = out.arena_bytes.max(report.arena_bytes.saturating_sub(case.base));
    out.truncated |= report.truncated;
    for v in &report.violations {
        let id = |b: u32| (case.id)(index[b as usize]);
        let away = |offset: Bytes| offset.saturating_sub(case.base);
        let finding = match *v {
            Violation::Overlap { a, b, first, last, from, to } => Finding::Overlap {
                a: id(a),
                b: id(b),
                steps: ((case.time)(first).0, (case.time)(last).1),
                bytes: (away(from), away(to)),
            },
            Violation::Misaligned { buffer, offset } => Finding::Misaligned {
                a: id(buffer),
                offset,
                alignment: placed.buffers()[buffer as usize].spec.align.bytes(),
            },
            Violation::Moved { buffer, fixed, offset } => Finding::Moved { a: id(buffer), fixed, offset },
            Violation::Strayed { buffer, expected, offset } => {
                Finding::Moved { a: id(buffer), fixed: away(expected), offset: away(offset) }
            }
            Violation::Wraps { buffer } => Finding::Wraps { a: id(buffer) },
            Violation::Count { .. } => continue, // one offset per placed buffer was gathered above
        };
        push(out, finding);
    }
}

/// Adds what is wrong, up to the limit.
pub fn push(out: &mut Outcome, finding: Finding) {
    if out.findings.len() < LIMIT {
        out.findings.push(finding);
    } else {
        out.truncated = true;
    }
}

/// The buffers that have an offset. Sharing in place is kept where the plan follows it: an engine need not share.
fn placed(problem: &Problem, index: &[usize], offsets: &[Bytes]) -> Problem {
    let mut out = Problem::with_capacity(index.len());
    let mut position = vec![None; problem.len()];
    for (new, &old) in index.iter().enumerate() {
        position[old] = Some(new);
        let spans: &[Span] = problem.spans(old);
        // The buffer was accepted before with the same spans.
        let added = out.add(problem.buffers()[old].spec, spans);
        debug_assert_eq!(added.ok(), Some(new as u32));
    }
    for (new, &old) in index.iter().enumerate() {
        let Some(alias) = problem.alias_of(old) else { continue };
        let Some(root) = position[alias.root as usize] else { continue };
        if offsets[root].checked_add(alias.delta) == Some(offsets[new]) {
            let _ = out.alias(new as u32, root as u32, alias.delta);
        }
    }
    out
}
