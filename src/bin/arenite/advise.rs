//! `arenite advise`: what to change so that less memory is needed, with the bytes each change saves on this very model.

use std::io::{self, Write};
use std::process::ExitCode;

use arenite::advise::{advise, Case, Finding, Outcome};
use arenite::model::OffsetColumn;
use arenite::view::{grouped, human, visible};
use serde_json::json;

use super::input::{read, Input};
use super::output::{json_to_stdout, to_stdout, Done, Failure};
use super::plan;
use super::planned::{file, named, plan_options, Ready};

const AFTER: &str = "Examples:
  arenite advise model.tflite                    every lever, those that save most first
  arenite advise model.tflite --json             the same as one JSON object
  arenite advise profile.json                    also what kernel scratch costs, as recorded from a runtime
  arenite advise a.tflite --with b.tflite        also what one arena for both saves
  arenite advise model.tflite --align 16 --pin logits=end   levers on top of these options

Every lever is pulled by itself and the model planned again, so a prediction is what `plan` prints with that change.";

/// What to change so that less memory is needed, each lever planned on this model
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    #[command(flatten)]
    plan: plan::Args,
    /// Another model of the same program that never runs at the same time: what one arena for all saves
    #[arg(long, value_name = "FILE")]
    with: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let Input::Model(model) = read(args.plan.input.as_deref(), OffsetColumn::Fixed, args.plan.align)? else {
        return Err(Failure::about(file(&args.plan), "advice needs a model; a problem CSV has no operators to change"));
    };
    let other = |path: &String| -> Done<_> {
        // Names in these options are of the first model.
        let args = plan::Args {
            input: Some(path.clone()),
            subgraph: None,
            pin: Vec::new(),
            set: Vec::new(),
            scratch: Vec::new(),
            ..args.plan.clone()
        };
        let planned = plan::planned(&args)?.1;
        Ok((planned.title.clone(), planned.overview().arena_bytes()))
    };
    let others = args.with.iter().map(other).collect::<Done<Vec<_>>>()?;
    let ready = Ready::new(&args.plan, &model)?;
    let case = Case {
        model: &ready.model,
        entries: &ready.entries,
        options: ready.options,
        pins: &ready.pins,
        plan: plan_options(&args.plan),
        others: &others,
    };
    let refuse = |e| Failure::about(file(&args.plan), named(&ready.model, e));
    let (now, findings) = advise(&case).map_err(refuse)?;
    if args.json {
        json_to_stdout(|w| as_json(w, &ready.title, &now, &findings))?;
    } else {
        to_stdout(|w| as_text(w, &ready.title, &now, &findings))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(w: &mut dyn Write, title: &str, now: &Outcome, findings: &[Finding]) -> io::Result<()> {
    let rows: Vec<_> = findings
        .iter()
        .map(|f| {
            json!({
                "lever": f.lever,
                "arena_bytes_if": f.arena_bytes_if,
                "saved_bytes": f.saved_bytes,
                "why": f.why,
                "how": f.how,
                "next_peak": f.next_peak,
                "option": f.option,
                "exact": f.exact,
                "tensors": f.tensors,
            })
        })
        .collect();
    let all = json!({
        "input": title,
        "arena_bytes": now.arena,
        "lower_bound": now.bound,
        "optimal": now.optimal,
        "peak": now.peak_text,
        "findings": rows,
    });
    serde_json::to_writer_pretty(&mut *w, &all)?;
    writeln!(w)
}

fn as_text(w: &mut dyn Write, title: &str, now: &Outcome, findings: &[Finding]) -> io::Result<()> {
    writeln!(
        w,
        "{title}: arena {} B ({}), peak at {}\n",
        grouped(now.arena),
        human(now.arena),
        bytes_grouped(&now.peak_text)
    )?;
    let (some, none): (Vec<_>, Vec<_>) = findings.iter().partition(|f| f.saved_bytes > 0);
    if some.is_empty() {
        writeln!(w, "No lever saves anything on this model.\n")?;
    }
    for f in some {
        let share = 100.0 * f.saved_bytes as f64 / now.arena as f64;
        let about = if f.exact { "" } else { "about " };
        writeln!(
            w,
            "{:<15} saves {about}{} B ({share:.1} %): arena {about}{} B",
            f.lever,
            grouped(f.saved_bytes),
            grouped(f.arena_bytes_if)
        )?;
        writeln!(w, "    why:       {}", bytes_grouped(&f.why))?;
        writeln!(w, "    next peak: {}", bytes_grouped(&f.next_peak))?;
        if let Some(option) = &f.option {
            writeln!(w, "    see:       arenite plan ... {option}")?;
        }
        writeln!(w, "    how:       {}\n", f.how)?;
    }
    if !none.is_empty() {
        writeln!(w, "Levers that save nothing here:")?;
    }
    for f in none {
        writeln!(w, "  {:<15} {}", f.lever, bytes_grouped(&f.why))?;
    }
    Ok(())
}

/// `text` with its numbers of bytes in groups of three, as everywhere else in the text.
fn bytes_grouped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = visible(text);
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let unit = |next: &&str| next.trim_end_matches([',', '.', ';', ':', ')']) == "B";
        let digits = word.trim_start_matches('(');
        match digits.parse() {
            Ok(bytes) if words.peek().is_some_and(unit) => out += &word.replace(digits, &grouped(bytes)),
            _ => out += word,
        }
        if words.peek().is_some() {
            out.push(' ');
        }
    }
    out
}
