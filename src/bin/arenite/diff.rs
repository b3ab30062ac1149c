//! `arenite diff`: what two plans differ in.

use std::process::ExitCode;

use arenite::view::{diff_json, diff_text};

use super::output::{to_stdout, Done, Failure};
use super::plan;

const AFTER: &str = "Examples:
  arenite diff old.tflite new.tflite           arena, peak, and every tensor that came, went, grew or lives otherwise
  arenite diff old.tflite new.tflite --json    the same as one JSON object
  arenite diff a.csv b.csv --all               also what only moved

Tensors are the same by name, or by index where a name is missing or not unique. The options of `plan` apply to both.";

/// Compare the memory of two models or problems
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    #[command(flatten)]
    plan: plan::Args,
    /// The input to compare with
    #[arg(value_name = "OTHER")]
    other: Option<String>,
    /// List tensors that only moved, too
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    // The first input is optional elsewhere, and the parser wants what follows to be optional too.
    let Some(other) = &args.other else { return Err(Failure("diff compares two inputs, one was given".into())) };
    let a = plan::planned(&args.plan)?.1;
    let b = plan::planned(&plan::Args { input: Some(other.clone()), ..args.plan.clone() })?.1;
    let (a, b) = (a.overview(), b.overview());
    to_stdout(|w| if args.json { diff_json(w, &a, &b) } else { diff_text(w, &a, &b, args.all) })?;
    Ok(ExitCode::SUCCESS)
}
