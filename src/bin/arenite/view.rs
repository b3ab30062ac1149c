//! `arenite view`: a plan as a file to look at.

use std::path::Path;
use std::process::ExitCode;

use arenite::view::{html, json, trace, Several};

use super::output::{to_file, Done, Failure};
use super::plan::{self, csv_to, svg_to};
use super::regions;

const AFTER: &str = "Examples:
  arenite view model.tflite -o map.html                      explore it in a browser: one file, no network
  arenite view old.tflite --compare new.tflite -o diff.html  two plans side by side
  arenite view p.csv --region sram=256KiB --region dram -o map.html   each memory
  arenite view model.tflite -o map.svg                       a picture for documents
  arenite view model.tflite -o trace.json --format trace     for ui.perfetto.dev

The options of `plan` apply to both plans of a comparison.";

/// Write a plan as a map to explore (HTML), a picture, a report or a trace
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    #[command(flatten)]
    plan: plan::Args,
    /// Where to write; the ending says what: .html, .svg, .json, .csv or .txt. `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: String,
    /// What to write, whatever the ending
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// A second input to show beside the first (HTML)
    #[arg(long, value_name = "OTHER")]
    compare: Option<String>,
}

/// What can be written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Html,
    Svg,
    Json,
    Csv,
    Text,
    Trace,
}

/// The format a file's ending asks for.
fn by_ending(path: &str) -> Done<Format> {
    let ending = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    Ok(match ending.as_str() {
        "html" | "htm" => Format::Html,
        "svg" => Format::Svg,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "txt" | "text" => Format::Text,
        _ if path == "-" => Format::Html,
        _ => return Err(Failure::about(path, "expected the ending .html, .svg, .json, .csv or .txt, or --format")),
    })
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let format = args.format.map_or_else(|| by_ending(&args.output), Ok)?;
    let path = args.output.as_str();
    if !args.plan.region.is_empty() {
        if format != Format::Html || args.compare.is_some() {
            return Err(Failure::about("--region", "the memories are shown side by side in one HTML file"));
        }
        return plan::regions_of(&args.plan, |file| regions::view(&args.plan, file, path));
    }
    let (input, planned) = plan::planned(&args.plan)?;
    match format {
        Format::Html => {
            let other = match &args.compare {
                Some(other) => Some(plan::planned(&plan::Args { input: Some(other.clone()), ..args.plan.clone() })?.1),
                None => None,
            };
            let both: Vec<_> = std::iter::once(&planned).chain(&other).map(|p| p.overview()).collect();
            to_file(path, |w| html(w, &both.iter().collect::<Vec<_>>(), Several::Versions))?;
        }
        _ if args.compare.is_some() => {
            return Err(Failure::about(
                "--compare",
                "two plans side by side are HTML; `arenite diff` compares as text",
            ));
        }
        Format::Svg => svg_to(path, &planned)?,
        Format::Csv => csv_to(path, &input, &planned)?,
        Format::Json => to_file(path, |w| json(w, &planned.overview(), Some(planned.plan_ns), &planned.extras))?,
        Format::Text => to_file(path, |w| planned.text(w, true))?,
        Format::Trace => to_file(path, |w| trace(w, &planned.reports))?,
    }
    Ok(ExitCode::SUCCESS)
}
