//! The command line: plans a model or a problem, and checks plans. One file per command.

mod adjust;
mod advise;
mod ask;
mod besides;
mod check;
mod check_out;
mod check_recorded;
mod csv_out;
mod diff;
mod export;
mod input;
mod optimize;
mod optimize_out;
mod output;
mod plan;
mod planned;
mod progress;
mod regions;
mod replay;
mod replay_time;
mod stdout;
mod verify;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "Examples:
  arenite plan                               plan the built-in MobileNetV2-224
  arenite plan model.tflite                  where the memory of a model goes
  arenite plan model.tflite --svg map.svg    the same with a picture
  arenite view model.tflite -o map.html      explore it in a browser
  arenite advise model.tflite                what to change, and how much it saves
  arenite diff old.tflite new.tflite         what changed in memory
  arenite plan problem.csv --csv solved.csv  fill in offsets
  arenite check solved.csv                   prove that no two live buffers overlap
  arenite check model.tflite offsets.csv     check an engine's offsets against the model
  arenite replay calls.trace                 how small a pool can be for recorded allocations

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
    Plan(plan::Command),
    View(view::Args),
    Diff(diff::Args),
    Advise(advise::Args),
    Check(check::Args),
    Optimize(optimize::Args),
    Export(export::Args),
    Replay(replay::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::View(args) => view::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Optimize(args) => optimize::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Replay(args) => replay::run(&args),
    };
    match done {
        Ok(code) => code,
        Err(message) => {
            output::complain(&message.0);
            ExitCode::from(output::BAD)
        }
    }
}
