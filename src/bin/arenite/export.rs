//! `arenite export`: a model file with its memory plan in it.

use std::process::ExitCode;

use arenite::model::{Model, OfflinePlan, Rewrite};
use arenite::units::Align;
use arenite::view::grouped;
use serde_json::json;

use super::output::{complain, replace, to_stdout, Done, Failure};
use super::planned::named;

const AFTER: &str = "Examples:
  arenite export --tflm-offline model.tflite -o planned.tflite
  arenite export --tflm-offline model.tflite -o planned.tflite --alignment 32 --json

Stock TFLite Micro follows the offsets in the file's OfflineMemoryAllocation entry and plans only the rest (kernel
scratch) itself. A plan already in the file is replaced. Results stay the same, so do all other bytes.";

/// Write a copy of a model with its memory plan in it
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// The .tflite file
    pub input: String,
    /// Where to write the copy; may be the input
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// Add the plan that TFLite Micro follows
    #[arg(long, required = true)]
    pub tflm_offline: bool,
    /// Offsets are multiples of this, a power of two from 16 up to 65536
    #[arg(long, visible_alias = "align", value_name = "N", default_value = "16", value_parser = alignment)]
    pub alignment: Align,
    /// Search nodes to spend at most
    #[arg(long, value_name = "N")]
    pub effort: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// TFLite Micro aligns its arena to 16 bytes.
pub fn alignment(text: &str) -> Result<Align, String> {
    let align = super::plan::align(text)?;
    if align.bytes() < 16 {
        return Err("expected a power of two between 16 and 65536".into());
    }
    Ok(align)
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let path = args.input.as_str();
    let (file, model) = super::input::tflite(path)?;
    if args.output == "-" {
        return Err(Failure::about("--output", "expected a file, the report goes to standard output"));
    }
    let plan = model.offline(args.alignment, args.effort).map_err(|e| Failure::about(path, named(&model, e)))?;
    let orders = model.subgraphs.iter().map(|g| (0..g.nodes.len() as u32).collect()).collect();
    let change = Rewrite { orders, offline_plan: Some(plan.offsets.clone()) };
    let out = model.rewritten(&file, &change).map_err(|e| Failure::about(path, e))?;
    replace(&args.output, &out)?;
    model.warnings.iter().for_each(|w| complain(w));
    report(args, &model, &plan)?;
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args, model: &Model, plan: &OfflinePlan) -> Done<()> {
    let planned = plan.offsets.iter().flatten().count();
    let replaced = model.offline_plan.is_some();
    to_stdout(|w| {
        if args.json {
            let object = json!({
                "arena_bytes": plan.arena_bytes,
                "lower_bound": plan.lower_bound,
                "tflm_arena_bytes": plan.greedy_bytes,
                "alignment": args.alignment.bytes(),
                "tensors": plan.offsets.len(),
                "planned": planned,
                "replaced": replaced,
                "scratch_bytes": null,
                "output": args.output,
            });
            return writeln!(w, "{object:#}");
        }
        writeln!(w, "{}: offsets for {planned} of {} tensors", args.input, plan.offsets.len())?;
        writeln!(w, "{:42} {:>14}", "planned by TFLite Micro itself", grouped(plan.greedy_bytes))?;
        writeln!(w, "{:42} {:>14}", "with the offsets", grouped(plan.arena_bytes))?;
        writeln!(w, "{:42} {:>14}", "lower bound of this order", grouped(plan.lower_bound))?;
        writeln!(w, "kernel scratch is not in the file and not counted: the runtime places it around these")?;
        writeln!(w, "{} the plan, wrote {}", if replaced { "replaced" } else { "added" }, args.output)
    })
}
