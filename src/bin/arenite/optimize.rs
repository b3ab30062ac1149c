//! `arenite optimize`: a model file that does the same in less memory.

use std::process::ExitCode;

use arenite::graph::liveness::{Options as Lifetimes, Policy};
use arenite::graph::order::{order, Judge, Options, Outcome, Rules};
use arenite::model::{DType, Model, OfflinePlan as Offline, Rewrite};
use arenite::planner::{Options as PlanOptions, Strategy};
use arenite::units::{Align, Bytes};

use super::adjust::{add_scratch, set_shape};
use super::optimize_out::{self, OfflinePlan, Summary};
use super::output::{complain, replace, Done, Failure, FAILED};
use super::planned::named;
use super::verify::verify;

const AFTER: &str = "Examples:
  arenite optimize model.tflite -o smaller.tflite
  arenite optimize model.tflite -o smaller.tflite --json
  arenite optimize model.tflite -o smaller.tflite --verify python3        compare both files in TensorFlow Lite
  arenite optimize model.tflite -o smaller.tflite --profile recorded.json with kernel scratch
  arenite optimize model.tflite -o smaller.tflite --pure MyOp    MyOp has no state: it may change places

The operators of the file get another order; every other byte stays, and so do the results. Operators that share state
(resource variables, random generators, custom operators) keep their order. Where no order needs less, nothing is
written.";

/// Reorder a .tflite file's operators so that runtimes need a smaller arena
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// The .tflite file
    pub input: String,
    /// Where to write the new one
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// Alignment of every buffer, a power of two up to 65536
    #[arg(long, value_name = "N", default_value = "128", value_parser = super::plan::align)]
    pub align: Align,
    /// Let operators write over an input that dies there (default)
    #[arg(long, overrides_with = "no_in_place")]
    pub in_place: bool,
    /// Give every tensor bytes of its own while it is alive
    #[arg(long, overrides_with = "in_place")]
    pub no_in_place: bool,
    /// Custom operators without state or side effects; may be given several times
    #[arg(long, value_name = "NAME")]
    pub pure: Vec<String>,
    /// A profile that a runtime recorded of this file (JSON): its sizes and kernel scratch count
    #[arg(long, value_name = "FILE")]
    pub profile: Option<String>,
    /// Kernel scratch of a node (index, `K:` before it for a subgraph other than the first), alive at that node only
    #[arg(long, value_name = "NODE=BYTES")]
    pub scratch: Vec<String>,
    /// Set a shape where the file leaves dimensions open, for instance x=1,224,224,3
    #[arg(long, value_name = "NAME=SHAPE")]
    pub set: Vec<String>,
    /// Run both files in a real TensorFlow Lite before anything is written: a Python with tflite-runtime or ai-edge-litert
    #[arg(long, value_name = "PYTHON")]
    pub verify: Option<String>,
    /// Add the plan that TFLite Micro follows; where it or the order is a gain, the file is written
    #[arg(long)]
    pub tflm_offline: bool,
    /// Offsets of that plan are multiples of this, a power of two from 16 up to 65536
    #[arg(long, value_name = "N", default_value = "16", value_parser = super::export::alignment)]
    pub alignment: Align,
    /// Search nodes to spend at most
    #[arg(long, value_name = "N")]
    pub effort: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// TFLite's own planner.
fn tflite() -> Judge {
    let align = Align::new(64).unwrap_or_default();
    let lifetimes = Lifetimes { policy: Policy::Tflite, align, ..Lifetimes::default() };
    Judge::new(lifetimes, PlanOptions::of(Strategy::GreedyBySize))
}

/// TFLite Micro's.
fn tflm() -> Judge {
    let align = Align::new(16).unwrap_or_default();
    let lifetimes = Lifetimes { policy: Policy::Tflm, align, in_place: false, ..Lifetimes::default() };
    Judge::new(lifetimes, PlanOptions::of(Strategy::TflmGreedy))
}

/// Microcontrollers run models that compute in small integers.
fn for_microcontrollers(model: &Model) -> bool {
    let tensors = model.subgraphs.iter().flat_map(|g| &g.tensors);
    tensors.filter(|t| t.data.is_none()).any(|t| matches!(t.dtype, DType::Int8 | DType::UInt8 | DType::Int16))
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let path = args.input.as_str();
    let (file, model) = super::input::tflite(path)?;
    if args.output == "-" {
        return Err(Failure::about("--output", "expected a file, the report goes to standard output"));
    }
    let refuse = |e: arenite::model::ReadError| Failure::about(path, e);
    let mut rules = model.order_rules(&args.pure);
    rules.before.extend(model.control_rules(&file).map_err(refuse)?);
    let (known, scratch) = known(&model, args)?;
    // Scratch of one runtime's kernels says nothing about another's.
    let micro = scratch.is_none() && for_microcontrollers(&model);
    let others: &[Judge] = if micro { &[tflite(), tflm()] } else { &[tflite()] };
    let lifetimes = Lifetimes { align: args.align, in_place: !args.no_in_place, ..Lifetimes::default() };
    let options = Options { judge: Judge::new(lifetimes, PlanOptions::default()), others, effort: args.effort };
    let (found, partitions) = search(&known, rules, &options, path)?;
    let offline = if args.tflm_offline {
        planned(&model, &found, args).map_err(|e| Failure::about(path, named(&model, e)))?
    } else {
        match (&model.offline_plan, found.changed) {
            (None, _) => OfflinePlan::None,
            (Some(_), false) => OfflinePlan::Kept,
            (Some(old), true) => rebuilt(&model, &found, old).map_or(OfflinePlan::Dropped, OfflinePlan::Rebuilt),
        }
    };
    let mut verified = None;
    let written = found.changed || matches!(offline, OfflinePlan::Added(_));
    if written {
        let plan = match &offline {
            OfflinePlan::Rebuilt(plan) => Some(plan.clone()),
            OfflinePlan::Added(plan) => Some(plan.offsets.clone()),
            // All left to the runtime: the entry must stay, since nothing else in the file moves.
            OfflinePlan::Dropped => model.offline_plan.as_ref().map(|p| vec![None; p.len()]),
            OfflinePlan::None | OfflinePlan::Kept => None,
        };
        let change = Rewrite { orders: found.orders.clone(), offline_plan: plan };
        let out = model.rewritten(&file, &change).map_err(refuse)?;
        if let Some(python) = &args.verify {
            let seen = verify(python, &file, &out, &args.output)?;
            if let Some(why) = seen.against() {
                complain(&format!("{path}: {why}; nothing was written"));
                return Ok(ExitCode::from(FAILED));
            }
            verified = Some(seen);
        }
        replace(&args.output, &out)?;
    }
    let done = Summary {
        model: &model,
        found: &found,
        micro,
        scratch,
        verified,
        partitions,
        offline,
        alignment: args.align.bytes(),
        in_place: !args.no_in_place,
        input: path,
        output: &args.output,
    };
    for warning in &model.warnings {
        complain(warning);
    }
    optimize_out::print(&done, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The model with what is known beyond its file, and the kernel scratch in it; `None` where nothing is known of that.
fn known(model: &Model, args: &Args) -> Done<(Model, Option<Bytes>)> {
    let mut known = model.clone();
    if let Some(path) = &args.profile {
        let file = super::input::bytes(path)?;
        let profile = Model::from_profile(&file).map_err(|e| Failure::about(path, e))?;
        known = model.with_profile(&profile).map_err(|e| Failure::about(path, e))?;
    }
    for set in &args.set {
        set_shape(&mut known, set)?;
    }
    let given = add_scratch(&mut known, &args.scratch, None)?;
    let scratch = (given.is_some() || args.profile.is_some()).then(|| known.scratch_bytes());
    Ok((known, scratch))
}

/// Looks for orders, and once more with the runs of custom operators kept where an order would give a delegate more
/// parts. Says whether that was necessary.
fn search(model: &Model, mut rules: Rules, options: &Options<'_>, path: &str) -> Done<(Outcome, bool)> {
    let refuse = |e| Failure::about(path, named(model, e));
    let entries = model.entries();
    let mut held = vec![false; model.subgraphs.len()];
    loop {
        let found = order(&model.subgraphs, &entries, &rules, options).map_err(refuse)?;
        let split: Vec<usize> = (0..held.len()).filter(|&k| model.subgraphs[k].splits(&found.orders[k])).collect();
        if split.is_empty() {
            return Ok((found, held.contains(&true)));
        }
        for k in split {
            // First the custom operators alone; where that is not enough, everything.
            let nodes = model.subgraphs[k].nodes.len() as u32;
            if std::mem::replace(&mut held[k], true) {
                rules.before.extend((1..nodes).map(|n| (k as u32, n - 1, n)));
            } else {
                rules.before.extend(model.partition_rules(k));
            }
        }
    }
}

/// The plan that TFLite Micro is to follow, where that or the order is a gain.
fn planned(model: &Model, found: &Outcome, args: &Args) -> Result<OfflinePlan, arenite::error::Error> {
    let before = model.offline(args.alignment, args.effort)?;
    let after = model.reordered(&found.orders).offline(args.alignment, args.effort)?;
    let gained = found.changed || after.arena_bytes < before.greedy_bytes;
    let old = if model.offline_plan.is_some() { OfflinePlan::Kept } else { OfflinePlan::None };
    Ok(if gained { OfflinePlan::Added(Offline { greedy_bytes: before.greedy_bytes, ..after }) } else { old })
}

/// New offsets for the tensors that had one. `None` where one plan does not describe the model: subgraphs that are entries
/// of their own or run on their caller's time, or tensors that are not planned here.
fn rebuilt(model: &Model, found: &Outcome, old: &[Option<Bytes>]) -> Option<Vec<Option<Bytes>>> {
    if model.subgraphs.len() != 1 {
        return None;
    }
    let plan = model.reordered(&found.orders).offline(Align::new(16).ok()?, None).ok()?;
    let new: Vec<_> = plan.offsets.iter().zip(old).map(|(n, o)| o.and(*n)).collect();
    // An offset the old plan gave to something that is not planned here has no counterpart.
    new.iter().zip(old).all(|(n, o)| n.is_some() == o.is_some()).then_some(new)
}
