//! The command line: plans a model or a problem, and checks plans. One file per command.

mod adjust;
mod ask;
mod check;
mod check_out;
mod csv_out;
mod export;
mod input;
mod json;
mod optimize;
mod optimize_out;
mod output;
mod plan;
mod planned;
mod progress;
mod regions;
mod reorder;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "Examples:
  arenite plan                               plan the built-in MobileNetV2-224
  arenite plan model.tflite                  where the memory of a model goes
  arenite plan model.tflite --svg map.svg    the same with a picture
  arenite plan problem.csv --csv solved.csv  fill in offsets
  arenite check solved.csv                   prove that no two live buffers overlap
  arenite check model.tflite offsets.csv     check an engine's offsets against the model

Exit status: 0 fine, 1 a check failed or a capacity is exceeded, 2 bad input or usage.";

/// Plans the memory of on-device inference and checks such plans.
#[derive(Parser)]
#[command(name = "arenite", version, after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::Args),
    Check(check::Args),
    Optimize(optimize::Args),
    Export(export::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Optimize(args) => optimize::run(&args),
        Command::Export(args) => export::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(message) => {
            output::complain(&message.0);
            ExitCode::from(output::BAD)
        }
    }
}
