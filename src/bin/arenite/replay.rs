//! `arenite replay`: a recorded allocation trace on the pool. How small it may be, how fast it is, what frames would save.

use std::io::{self, Write};
use std::process::ExitCode;

use arenite::heap::rehearsal::{
    least_heap, least_heap_with, lifetime_hints, recommend, rehearse, Op, Outcome, Recommendation,
};
use arenite::model::{EventKind, Trace};
use arenite::view::grouped;
use serde_json::{json, Value};

use super::input::shown;
use super::output::{to_stdout, Done, Failure};
use super::replay_time::{time, Timing};

/// Times a trace is repeated on the smallest pool: what is left over from one pass must not stop the next.
const PASSES: u32 = 3;

const AFTER: &str = "A trace is text, one event a line: `a ID BYTES ALIGNMENT`, `f ID`, `r ID NEWBYTES`. A comment
`# frame ...` or `# run ...` begins a frame; a trace without any is one frame. Record one with
arenite_pool_trace_to_file, or with ARENITE_MALLOC_TRACE under the preload library.

Examples:
  arenite replay calls.trace                  smallest pool, times, fragmentation
  arenite replay calls.trace --instances 4    a pool for four inferences at a time";

/// Replay recorded allocations on the pool: smallest pool, speed, and a recommended size
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// Traces; `-` for standard input
    #[arg(required = true)]
    traces: Vec<String>,
    /// Inferences in flight at a time, for the recommended pool size
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,
    /// Leave the timing out: the output is then the same every time
    #[arg(long)]
    no_times: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a trace came to.
struct Row {
    name: String,
    outcome: Outcome,
    frames: usize,
    general: Option<u64>,
    hinted: Option<u64>,
    recorded: Recommendation,
    recommended: Recommendation,
    timing: Option<Timing>,
}

/// Runs the command.
pub fn run(args: &Args) -> Done<ExitCode> {
    let mut rows = Vec::new();
    for path in &args.traces {
        rows.push(row(args, path)?);
    }
    if args.json {
        to_stdout(|w| {
            writeln!(
                w,
                "{:#}",
                json!({ "instances": args.instances, "traces": rows.iter().map(object).collect::<Vec<_>>() })
            )
        })?;
    } else {
        to_stdout(|w| rows.iter().try_for_each(|row| text(w, args, row)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(args: &Args, path: &str) -> Done<Row> {
    let trace = super::input::trace(path)?;
    let ops = operations(&trace);
    if ops.iter().all(|op| *op == Op::Frame) {
        return Err(Failure::about(shown(path), "it holds no allocation"));
    }
    let overflow = |e: arenite::error::Error| Failure::about(shown(path), e);
    let general = least_heap(&ops, PASSES);
    let timing = match general.filter(|_| !args.no_times) {
        Some(bytes) => Some(time(&ops, bytes).map_err(|e| Failure::about(shown(path), e))?),
        None => None,
    };
    Ok(Row {
        name: shown(path).to_string(),
        outcome: rehearse(&ops, general.unwrap_or(0), 1),
        frames: ops.iter().filter(|op| **op == Op::Frame).count(),
        hinted: least_heap_with(&ops, &lifetime_hints(&ops), PASSES),
        recorded: recommend(&ops, 1).map_err(overflow)?,
        recommended: recommend(&ops, args.instances).map_err(overflow)?,
        general,
        timing,
    })
}

/// The events of a trace as the rehearsal takes them.
fn operations(trace: &Trace) -> Vec<Op> {
    let begins = |text: &str| matches!(text.split_whitespace().next(), Some("frame" | "run"));
    let event = |kind: &EventKind| match kind {
        EventKind::Alloc { block, size, align } => {
            Some(Op::Alloc { block: *block, bytes: *size, align: align.bytes() })
        }
        EventKind::Free { block } => Some(Op::Free { block: *block }),
        EventKind::Resize { block, size } => Some(Op::Resize { block: *block, bytes: *size }),
        EventKind::Mark(text) => begins(text).then_some(Op::Frame),
    };
    trace.events.iter().filter_map(|e| event(&e.kind)).collect()
}

fn ratio(bytes: u64, peak: u64) -> f64 {
    bytes as f64 / peak.max(1) as f64
}

fn object(row: &Row) -> Value {
    let peak = row.outcome.peak_live;
    let pool = |bytes: Option<u64>| json!({ "bytes": bytes, "over_peak": bytes.map(|b| ratio(b, peak)) });
    json!({
        "trace": row.name,
        "ops": row.outcome.ops,
        "frames": row.frames,
        "peak_live_bytes": peak,
        "pool": pool(row.general),
        "pool_with_hints": pool(row.hinted),
        "pool_recorded": {
            "bytes": row.recorded.total,
            "over_peak": ratio(row.recorded.total, peak),
            "area_bytes": row.recorded.area,
            "general_bytes": row.recorded.general,
            "plans": row.recorded.plans,
        },
        "recommended_bytes": row.recommended.total,
        "times": row.timing.as_ref().map(|t| json!({
            "ns_per_call": t.mean,
            "alloc_ns_p50": t.alloc[0], "alloc_ns_p99": t.alloc[1], "alloc_ns_p999": t.alloc[2],
            "free_ns_p50": t.free[0], "free_ns_p99": t.free[1], "free_ns_p999": t.free[2],
        })),
        "fragmentation": row.timing.as_ref().map(|t| t.fragmentation),
        "rounding_waste": row.timing.as_ref().map(|t| t.waste),
    })
}

fn text(w: &mut dyn Write, args: &Args, row: &Row) -> io::Result<()> {
    let peak = row.outcome.peak_live;
    let line = |w: &mut dyn Write, what: &str, bytes: Option<u64>| match bytes {
        Some(bytes) => writeln!(w, "  {what:<24} {:>16} bytes  {:.3} x peak live", grouped(bytes), ratio(bytes, peak)),
        None => writeln!(w, "  {what:<24} not even eight times the peak suffices"),
    };
    writeln!(w, "{}: {} calls, {} frames marked", row.name, row.outcome.ops, row.frames)?;
    line(w, "peak live", Some(peak))?;
    line(w, "smallest pool", row.general)?;
    line(w, "  with lifetime hints", row.hinted)?;
    line(w, "  with recorded frames", Some(row.recorded.total))?;
    writeln!(
        w,
        "    {} plans, area {} bytes, outside frames {} bytes",
        row.recorded.plans,
        grouped(row.recorded.area),
        grouped(row.recorded.general)
    )?;
    if let Some(t) = &row.timing {
        writeln!(
            w,
            "  times on that pool       {:.0} ns a call; alloc p50 {} p99 {} p99.9 {}; free p50 {} p99 {} p99.9 {} ns",
            t.mean, t.alloc[0], t.alloc[1], t.alloc[2], t.free[0], t.free[1], t.free[2]
        )?;
        writeln!(
            w,
            "  at the peak              fragmentation {:.3} (1 - largest free / free), rounding {:.2} %",
            t.fragmentation,
            t.waste * 100.0
        )?;
    }
    let name = format!("for {} in flight", args.instances);
    line(w, &name, Some(row.recommended.total))
}
