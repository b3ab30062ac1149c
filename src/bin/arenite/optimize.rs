//! `arenite optimize`: a model file that does the same in less memory.

use std::process::ExitCode;

use arenite::graph::liveness::{Options as Lifetimes, Policy};
use arenite::graph::lower::lower;
use arenite::graph::order::{order, permuted, Judge, Options, Outcome, Rules};
use arenite::model::{DType, Model, Rewrite};
use arenite::planner::{check::check, plan, Options as PlanOptions, Strategy};
use arenite::units::{Align, Bytes};

use super::optimize_out::{self, OfflinePlan, Summary};
use super::output::{complain, to_file, Done, Failure};
use super::planned::named;

const AFTER: &str = "Examples:
  arenite optimize model.tflite -o smaller.tflite
  arenite optimize model.tflite -o smaller.tflite --json
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
    let file = super::input::bytes(path)?;
    if file.get(4..8) != Some(b"TFL3") {
        return Err(Failure::about(path, "expected a .tflite file (TFL3 at byte 4)"));
    }
    if args.output == "-" {
        return Err(Failure::about("--output", "expected a file, the report goes to standard output"));
    }
    let stem = std::path::Path::new(path).file_stem().map_or("model".into(), |s| s.to_string_lossy());
    let refuse = |e: arenite::model::ReadError| Failure::about(path, e);
    let model = Model::from_tflite(&file, &stem).map_err(refuse)?;
    let mut rules = model.order_rules(&args.pure);
    rules.before.extend(model.control_rules(&file).map_err(refuse)?);
    let others: &[Judge] = if for_microcontrollers(&model) { &[tflite(), tflm()] } else { &[tflite()] };
    let lifetimes = Lifetimes { align: args.align, in_place: !args.no_in_place, ..Lifetimes::default() };
    let options = Options { judge: Judge::new(lifetimes, PlanOptions::default()), others, effort: args.effort };
    let (found, partitions) = search(&model, rules, &options, path)?;
    let offline = match (&model.offline_plan, found.changed) {
        (None, _) => OfflinePlan::None,
        (Some(_), false) => OfflinePlan::Kept,
        (Some(old), true) => rebuilt(&model, &found, old).map_or(OfflinePlan::Dropped, OfflinePlan::Rebuilt),
    };
    if found.changed {
        let plan = match &offline {
            OfflinePlan::Rebuilt(plan) => Some(plan.clone()),
            // All left to the runtime: the entry must stay, since nothing else in the file moves.
            OfflinePlan::Dropped => model.offline_plan.as_ref().map(|p| vec![None; p.len()]),
            OfflinePlan::None | OfflinePlan::Kept => None,
        };
        let change = Rewrite { orders: found.orders.clone(), offline_plan: plan };
        let out = model.rewritten(&file, &change).map_err(refuse)?;
        write(&args.output, &out)?;
    }
    let done = Summary {
        model: &model,
        found: &found,
        micro: others.len() > 1,
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

/// Looks for orders, and once more with the runs of custom operators kept where an order would split one: every run is a
/// partition for a delegate. Says whether that was necessary.
fn search(model: &Model, mut rules: Rules, options: &Options<'_>, path: &str) -> Done<(Outcome, bool)> {
    let refuse = |e| Failure::about(path, named(model, e));
    let entries = model.entries();
    let found = order(&model.subgraphs, &entries, &rules, options).map_err(refuse)?;
    let split: Vec<usize> = (0..model.subgraphs.len())
        .filter(|&k| {
            let given: Vec<u32> = (0..model.subgraphs[k].nodes.len() as u32).collect();
            model.subgraphs[k].runs(&found.orders[k]) > model.subgraphs[k].runs(&given)
        })
        .collect();
    if split.is_empty() {
        return Ok((found, false));
    }
    rules.before.extend(split.iter().flat_map(|&k| model.partition_rules(k)));
    Ok((order(&model.subgraphs, &entries, &rules, options).map_err(refuse)?, true))
}

/// New offsets for the tensors that had one, by TFLite Micro's lifetimes. `None` where one plan does not describe the
/// model: several entries, or subgraphs that run on their caller's time.
fn rebuilt(model: &Model, found: &Outcome, old: &[Option<Bytes>]) -> Option<Vec<Option<Bytes>>> {
    if model.subgraphs.len() != 1 {
        return None;
    }
    let graphs = permuted(&model.subgraphs, &found.orders);
    let lowered = lower(&graphs, 0, &tflm().lifetimes, &[]).ok()?;
    let plan = plan(&lowered.problem, &PlanOptions::default()).ok()?;
    check(&lowered.problem, &plan.offsets).ok()?;
    let new: Vec<_> = (0..old.len()).map(|t| old[t].and_then(|_| lowered.offset(&plan, 0, t))).collect();
    // An offset the old plan gave to something that is not planned here has no counterpart.
    new.iter().zip(old).all(|(n, o)| n.is_some() == o.is_some()).then_some(new)
}

/// Writes beside the target first, so that a failure leaves no half file and the input may be the target.
fn write(path: &str, bytes: &[u8]) -> Done<()> {
    let beside = format!("{path}.part");
    to_file(&beside, |w| w.write_all(bytes))?;
    let same = std::fs::read(&beside).map_err(|e| Failure::about(&beside, e))? == bytes;
    if !same {
        return Err(Failure::about(&beside, "the file reads back differently"));
    }
    std::fs::rename(&beside, path).map_err(|e| Failure::about(path, e))
}
