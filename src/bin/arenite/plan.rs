//! `arenite plan`: where every tensor goes, and what that takes.

use std::process::ExitCode;

use arenite::graph::liveness::Policy;
use arenite::model::{OffsetColumn, ProblemFile};
use arenite::planner::replan::Keep;
use arenite::planner::Strategy;
use arenite::units::{Align, Bytes};
use arenite::view::{csv, html, json, svg, trace, Several};
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;

use super::input::{read, Input};
use super::output::{complain, distinct, json_to_stdout, to_file, to_stdout, Done, Failure, FAILED};
use super::planned::Planned;
use super::regions;

const AFTER: &str = "Examples:
  arenite plan                                        the built-in MobileNetV2-224
  arenite plan model.tflite --json                    one JSON object
  arenite plan model.tflite --set input=4,224,224,3   a batch of 4 where the file leaves it open
  arenite plan model.tflite --pin logits=end          keep one tensor readable after the run
  arenite plan problem.csv --csv solved.csv           the input's columns with offsets filled in
  arenite plan model.tflite --capacity 64KiB          exit 1 if it does not fit, and why
  arenite plan new.csv --previous old.csv --keep offsets   move as few buffers as possible
  arenite plan p.csv --region sram=256KiB --region dram    a fast small memory and a slow large one

INPUT is told by its content: a .tflite file, a graph table (tgt 1), a profile recorded from a runtime (JSON), or a
problem CSV with the columns id,lower,upper,size (lifetimes half-open) and optionally alignment, offset (fixed),
gaps (lo-hi), name, root, and with --region regions (names of those allowed, separated by blanks) and benefit (what
a better one is worth).";

/// What to plan and how.
#[derive(Clone, clap::Args)]
#[group(skip)]
pub struct Args {
    /// File to plan, `-` for standard input; without one the built-in MobileNetV2-224
    pub input: Option<String>,
    /// How to place
    #[arg(long, default_value = "auto", value_parser = strategies())]
    pub strategy: Strategy,
    /// Whose rules for lifetimes of inputs, outputs and unread tensors (models; default safe)
    #[arg(long, value_parser = policies())]
    pub policy: Option<Policy>,
    /// Alignment of every buffer, a power of two up to 65536 (default 128 for models, 1 for a CSV)
    #[arg(long, value_name = "N", value_parser = align)]
    pub align: Option<Align>,
    /// Plan one subgraph on its own, without those it calls
    #[arg(long, value_name = "K")]
    pub subgraph: Option<u32>,
    /// An input's bytes are free after its last reader
    #[arg(long)]
    pub reuse_inputs: bool,
    /// Nothing is ever released: every tensor stays readable
    #[arg(long)]
    pub keep_all: bool,
    /// Keep a tensor (index or name, `K:` before it for an entry other than the first) until a step, or to the `end`
    #[arg(long, value_name = "TENSOR=STEP")]
    pub pin: Vec<String>,
    /// Let operators write over an input that dies there (default for models)
    #[arg(long, overrides_with = "no_in_place")]
    pub in_place: bool,
    /// Give every tensor bytes of its own while it is alive
    #[arg(long, overrides_with = "in_place")]
    pub no_in_place: bool,
    /// Operators whose kernels allow more sharing than TFLite's (names or `all`): elementwise ones over any input that dies,
    /// RESHAPE and SPLIT as views, CONCATENATION with its inputs inside the output, the last two along the outer dimension
    #[arg(long, value_name = "OP,...", value_delimiter = ',', conflicts_with = "no_in_place")]
    pub inplace: Vec<String>,
    /// Let operators run in another order that keeps the results, where the arena is smaller then
    #[arg(long)]
    pub order: bool,
    /// Fail with exit status 1 where the arena is larger than this; 0 is a capacity of no bytes, not no limit
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub capacity: Option<Bytes>,
    /// Offsets of an older plan (a CSV with id and offset): keep them where they still hold, and say how many moved
    #[arg(long, value_name = "FILE")]
    pub previous: Option<String>,
    /// Where they do not all hold: the smallest `arena` (default), or as many old `offsets` as can be
    #[arg(long, requires = "previous", value_parser = keeps())]
    pub keep: Option<Keep>,
    /// A memory, the most preferred first, the last perhaps without =BYTES; a CSV says in columns `regions` and `benefit`
    /// who may be where and what that is worth
    #[arg(long, value_name = "NAME=BYTES", value_parser = regions::region)]
    pub region: Vec<regions::Named>,
    /// Search nodes to spend at most
    #[arg(long, value_name = "N")]
    pub effort: Option<u64>,
    /// Stop searching after so many milliseconds; the result may then differ from run to run
    #[arg(long, value_name = "MS")]
    pub deadline: Option<u64>,
    /// Set a tensor's or signature input's shape where the file leaves dimensions open, for instance x=1,224,224,3
    #[arg(long, value_name = "NAME=SHAPE")]
    pub set: Vec<String>,
    /// Kernel scratch of a node (index, `K:` before it for a subgraph other than the first), alive at that node only
    #[arg(long, value_name = "NODE=BYTES")]
    pub scratch: Vec<String>,
}

/// Plan a model's or a problem's memory: lifetimes, offsets, arena size and how good it is
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Command {
    #[command(flatten)]
    pub args: Args,
    /// Write the plan as CSV, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<String>,
    /// Write a memory map as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<String>,
    /// Write a memory map to explore in a browser, one file without network
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// Write the plan as a Chrome trace (JSON) for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// List every tensor, and every entry of a model with several
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn strategies() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.map(Strategy::name))
        .map(|name| Strategy::from_name(&name).unwrap_or_default())
}

fn keeps() -> impl TypedValueParser<Value = Keep> {
    PossibleValuesParser::new(["arena", "offsets"]).map(|name| match &*name {
        "offsets" => Keep::Offsets,
        _ => Keep::Arena,
    })
}

/// Names of policies.
pub fn policies() -> impl TypedValueParser<Value = Policy> {
    const ALL: [Policy; 3] = [Policy::Safe, Policy::Tflite, Policy::Tflm];
    PossibleValuesParser::new(ALL.map(Policy::name))
        .map(|name| ALL.into_iter().find(|p| p.name() == name).unwrap_or_default())
}

/// An alignment.
pub fn align(text: &str) -> Result<Align, String> {
    let bytes: u64 = text.parse().map_err(|_| "expected a power of two between 1 and 65536".to_string())?;
    Align::new(bytes).map_err(|e| e.to_string())
}

/// A number of bytes, with an optional unit of 1024.
pub fn size(text: &str) -> Result<Bytes, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err("expected a number of bytes, for instance 4096, 64KiB or 2MiB".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number of bytes, for instance 4096, 64KiB or 2MiB")?;
    number.checked_mul(unit).ok_or("this many bytes do not fit 64 bits".into())
}

/// Plans what `args` name.
pub fn planned(args: &Args) -> Done<(Input, Planned)> {
    let input = read(args.input.as_deref(), OffsetColumn::Fixed, args.align)?;
    let planned = match &input {
        _ if !args.region.is_empty() => return Err(Failure::about("--region", "goes with `plan` and `view`")),
        Input::Model(model) => Planned::model(args, model)?,
        Input::Problem(file) => {
            models_only(args)?;
            Planned::problem(args, file)?
        }
    };
    Ok((input, planned))
}

/// Runs the command.
pub fn run(command: &Command) -> Done<ExitCode> {
    let args = &command.args;
    let to_stream = |f: &Option<String>| f.as_deref() == Some("-");
    let streams = [&command.csv, &command.svg, &command.html, &command.trace].map(to_stream);
    let taken = streams.iter().filter(|&&s| s).count();
    if taken + usize::from(command.json) > 1 {
        let what = "of --json, --csv -, --svg -, --html - and --trace - only one can write to standard output";
        return Err(Failure(what.into()));
    }
    if !args.region.is_empty() {
        return regions_of(args, |file| regions::run(command, file));
    }
    let outputs =
        [("--csv", &command.csv), ("--svg", &command.svg), ("--html", &command.html), ("--trace", &command.trace)];
    let outputs: Vec<_> = outputs.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?))).collect();
    distinct(&outputs)?;
    let (input, planned) = planned(args)?;
    if let Some(path) = &command.csv {
        csv_to(path, &input, &planned)?;
    }
    if let Some(path) = &command.svg {
        svg_to(path, &planned)?;
    }
    if let Some(path) = &command.html {
        to_file(path, |w| html(w, &[&planned.overview()], Several::Versions))?;
    }
    if let Some(path) = &command.trace {
        to_file(path, |w| trace(w, &planned.reports))?;
    }
    if command.json {
        json_to_stdout(|w| json(w, &planned.overview(), Some(planned.plan_ns), &planned.extras))?;
    } else if taken == 0 {
        to_stdout(|w| planned.text(w, command.all))?;
    }
    exceeded(args, &planned)
}

/// Reads a problem that is to be planned over regions.
pub fn regions_of(args: &Args, then: impl FnOnce(&ProblemFile) -> Done<ExitCode>) -> Done<ExitCode> {
    match read(args.input.as_deref(), OffsetColumn::Fixed, args.align)? {
        Input::Model(model) => {
            // A model's buffers as the rows that `--csv` writes: lifetimes, sharing and all.
            let mut rows = Vec::new();
            let planned = Planned::model(args, &model)?;
            csv(&mut rows, &planned.overview()).map_err(|e| Failure::about(super::planned::file(args), e))?;
            then(&super::input::rows(&rows, args)?)
        }
        Input::Problem(file) => {
            models_only(args)?;
            then(&file)
        }
    }
}

/// Writes the plan as a CSV: a problem's own columns, or a model's rows.
pub fn csv_to(path: &str, input: &Input, planned: &Planned) -> Done<()> {
    match input {
        Input::Problem(file) => {
            let offsets: Vec<_> = planned.reports.iter().flat_map(|r| &r.rows).map(|r| r.offset).collect();
            to_file(path, |w| w.write_all(file.with_offsets(&offsets).as_bytes()))
        }
        Input::Model(_) => to_file(path, |w| csv(w, &planned.overview())),
    }
}

/// Writes the map of the largest entry as SVG.
pub fn svg_to(path: &str, planned: &Planned) -> Done<()> {
    match planned.reports.get(planned.overview().largest()) {
        Some(report) => to_file(path, |w| svg(w, report)),
        None => Ok(()),
    }
}

fn exceeded(args: &Args, planned: &Planned) -> Done<ExitCode> {
    let arena = planned.overview().arena_bytes();
    match args.capacity {
        Some(capacity) if arena > capacity => {
            let why = planned.exceeded.as_deref().unwrap_or("no plan that fits was found");
            complain(&format!(
                "capacity exceeded: the arena needs {arena} bytes, {capacity} are available, {} are missing; {why}",
                arena - capacity
            ));
            Ok(ExitCode::from(FAILED))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Options that would be without effect on a bare problem are refused rather than ignored.
fn models_only(args: &Args) -> Done<()> {
    let given = [
        ("--policy", args.policy.is_some()),
        ("--subgraph", args.subgraph.is_some()),
        ("--reuse-inputs", args.reuse_inputs),
        ("--keep-all", args.keep_all),
        ("--pin", !args.pin.is_empty()),
        ("--set", !args.set.is_empty()),
        ("--scratch", !args.scratch.is_empty()),
        ("--in-place", args.in_place),
        ("--inplace", !args.inplace.is_empty()),
        ("--order", args.order),
    ];
    match given.iter().find(|g| g.1) {
        Some((name, _)) => Err(Failure::about(name, "needs a model, the input is a problem CSV")),
        None => Ok(()),
    }
}
