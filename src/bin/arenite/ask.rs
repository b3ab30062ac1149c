//! What `plan` asks the planner: the smallest arena, whether a capacity suffices, or a plan close to an older one.

use std::time::Instant;

use arenite::error::Error;
use arenite::planner::capacity::{fit, Verdict};
use arenite::planner::replan::{replan, Keep};
use arenite::planner::strategy::plan_with;
use arenite::planner::{Options, Plan, Problem};
use arenite::units::{Bytes, Step};
use arenite::view::{grouped, Report, Row};
use serde_json::{json, Value};

use super::plan::Args;
use super::planned::{nanos, plan_options};
use super::progress::Watch;

/// Buffers named in messages.
const NAMED: usize = 8;

/// A plan and what was found out on the way.
pub struct Placed {
    /// The plan.
    pub plan: Plan,
    /// With a capacity, whether it suffices.
    pub verdict: Option<Verdict>,
    /// With an older plan, how many buffers have another offset than in it.
    pub moved: Option<u64>,
    /// Nanoseconds until all of that was known.
    pub ns: u64,
    /// Nanoseconds until the plan was found, as far as the progress reports tell.
    pub best_ns: u64,
}

/// Places `problem`; `old` are the offsets of an older plan by buffer, where there is one.
pub fn place(
    args: &Args,
    title: &str,
    problem: &Problem,
    old: Option<&[Option<Bytes>]>,
    watch: &mut Watch,
) -> Result<Placed, Error> {
    let options = plan_options(args);
    let begin = Instant::now();
    watch.restart();
    let mut tick = |p: &_| watch.tick(title, p);
    let (mut plan, moved) = match old {
        None => (plan_with(problem, &options, &mut tick)?, None),
        Some(old) => {
            let plan = from_old(problem, old, args.keep.unwrap_or_default(), &options, &mut tick)?;
            let moved = moved(problem, old, &plan.offsets);
            (plan, Some(moved))
        }
    };
    let mut verdict = args.capacity.map(|_| Verdict::Fits);
    if let Some(capacity) = args.capacity.filter(|&c| plan.arena_bytes > c) {
        // Whether so many bytes suffice is an easier question than which is the least: ask it where it is open.
        let found = fit(problem, capacity, &options, &mut tick)?;
        verdict = Some(match found.verdict {
            Verdict::Unknown if plan.lower_bound > capacity => Verdict::NoPacking,
            // An older plan is kept although a plan afresh would fit: then the capacity is exceeded all the same.
            Verdict::Fits if moved.is_some() && args.keep == Some(Keep::Offsets) => Verdict::Unknown,
            other => other,
        });
        if found.plan.arena_bytes < plan.arena_bytes && args.keep != Some(Keep::Offsets) {
            plan = found.plan;
        }
    }
    let moved = moved.and_then(|_| old.map(|old| self::moved(problem, old, &plan.offsets)));
    let ns = nanos(begin);
    Ok(Placed { best_ns: watch.best_ns(plan.arena_bytes).unwrap_or(ns), plan, verdict, moved, ns })
}

fn moved(problem: &Problem, old: &[Option<Bytes>], new: &[Bytes]) -> u64 {
    let size = |i: usize| problem.buffers()[i].spec.size;
    (0..problem.len()).filter(|&i| size(i) > 0 && old[i] != Some(new[i])).count() as u64
}

/// Re-planning matches buffers by index, so those that the older plan has go first. Classes in place are one buffer.
fn from_old(
    problem: &Problem,
    old: &[Option<Bytes>],
    keep: Keep,
    options: &Options,
    tick: &mut dyn FnMut(&arenite::planner::Progress) -> std::ops::ControlFlow<()>,
) -> Result<Plan, Error> {
    let (merged, map) = problem.merge_aliases()?;
    let mut known: Vec<Option<Bytes>> = vec![None; merged.len()];
    for (i, &(class, delta)) in map.iter().enumerate() {
        let base = old[i].and_then(|at| at.checked_sub(delta));
        known[class as usize] = known[class as usize].or(base);
    }
    let mut order: Vec<usize> = (0..merged.len()).collect();
    order.sort_by_key(|&i| known[i].is_none());
    let mut sorted = Problem::with_capacity(merged.len());
    for &i in &order {
        sorted.add(merged.buffers()[i].spec, merged.spans(i)).map_err(|e| e.buffer(i))?;
    }
    let first: Vec<Bytes> = order.iter().map_while(|&i| known[i]).collect();
    let plan = replan(&sorted, &first, keep, options, tick)?.plan;
    let mut placed: Vec<Bytes> = vec![0; merged.len()];
    for (&i, &at) in order.iter().zip(&plan.offsets) {
        placed[i] = at;
    }
    let offset = |(i, &(class, delta)): (usize, &(u32, Bytes))| match problem.buffers()[i].spec.size {
        0 => 0,
        _ => placed[class as usize] + delta,
    };
    Ok(Plan { offsets: map.iter().enumerate().map(offset).collect(), ..plan })
}

/// The answer to `--capacity`, in the names of the input.
pub struct Answer {
    /// The `capacity` object.
    pub json: Value,
    /// Why it is exceeded; empty where it is not.
    pub text: String,
}

/// Explains `verdict`. `time` is the input's time of a step.
pub fn answer(capacity: Bytes, verdict: Verdict, report: &Report, time: &dyn Fn(Step) -> u64) -> Answer {
    let above = |r: &&Row| r.root.is_none() && r.size > Some(0) && r.end().is_some_and(|end| end > capacity);
    let outside: Vec<&Row> = report.rows.iter().filter(above).collect();
    let bytes = |rows: &[&Row]| rows.iter().filter_map(|r| r.size).fold(0, Bytes::saturating_add);
    let (name, step, needed) = match verdict {
        Verdict::Fits => ("fits", None, None),
        Verdict::TooMuchAlive { step, needed } => ("too_much_alive", Some(time(step)), Some(needed)),
        Verdict::NoPacking => ("no_packing", None, None),
        Verdict::Unknown => ("unknown", None, None),
    };
    let named = |r: &&Row| json!({ "subgraph": r.subgraph, "id": self::id(r), "name": r.name, "size": r.size });
    // A row that is in place stands for the row whose bytes it uses.
    let mut alive: Vec<usize> = Vec::new();
    if let Some(at) = step {
        let lives = |r: &Row| r.offset.is_some() && r.spans.iter().any(|s| s.0 <= at && at <= s.1);
        let rows = report.rows.iter().enumerate().filter(|(_, r)| lives(r));
        alive.extend(rows.map(|(i, r)| r.root.unwrap_or(i)));
        alive.sort_unstable();
        alive.dedup();
    }
    let mut alive: Vec<&Row> = alive.into_iter().map(|i| &report.rows[i]).collect();
    alive.sort_by_key(|r| std::cmp::Reverse(r.size));
    let json = json!({
        "bytes": capacity,
        "verdict": name,
        "step": step,
        "needed": needed,
        "outside": outside.iter().map(named).collect::<Vec<_>>(),
        "outside_bytes": bytes(&outside),
        "alive": alive.iter().map(named).collect::<Vec<_>>(),
    });
    let mut text = String::new();
    if report.facts.arena_bytes > capacity {
        text = match (step, needed, verdict) {
            (Some(step), Some(needed), _) => {
                format!("no plan fits: {} need {} bytes at step {}", list(&alive), grouped(needed), report.moment(step))
            }
            (_, _, Verdict::NoPacking) => {
                "no plan fits, although at every step the bytes would suffice: search has tried all that could be"
                    .into()
            }
            _ => "no plan that fits was found; whether there is one is open, more --effort may tell".into(),
        };
        text += &format!(
            "; in the best plan {} of {} bytes end above the capacity, all others fit",
            list(&outside),
            grouped(bytes(&outside))
        );
    }
    Answer { json, text }
}

/// A tensor's index is a number; the ids of a CSV are whatever text it holds.
fn id(row: &Row) -> Value {
    match row.subgraph {
        Some(_) => row.id.parse::<u64>().map_or_else(|_| json!(row.id), |n| json!(n)),
        None => json!(row.id),
    }
}

fn list(rows: &[&Row]) -> String {
    let mut names: Vec<String> = rows.iter().take(NAMED).map(|r| r.title()).collect();
    if rows.len() > NAMED {
        names.push(format!("{} more", rows.len() - NAMED));
    }
    let what = if rows.len() == 1 { "buffer" } else { "buffers" };
    format!("{} {what} ({})", rows.len(), names.join(", "))
}

/// Search statistics: JSON keys and a line of text.
pub fn statistics(placed: &Placed) -> (Vec<(&'static str, Value)>, Option<String>) {
    let (stats, proven) = (placed.plan.stats, placed.plan.optimal);
    let keys = vec![
        ("nodes_to_best", json!(stats.nodes_to_best)),
        ("nodes_to_proof", json!(stats.nodes_to_proof)),
        ("best_ns", json!(placed.best_ns)),
        ("proof_ns", json!(proven.then_some(placed.ns))),
    ];
    // Times are in the JSON object only: the text is the same every time.
    let text = (stats.nodes > 0).then(|| {
        let proof = match (proven, stats.nodes_to_proof) {
            (false, _) => "no proof".to_string(),
            (true, 0) => "proof by the bound".to_string(),
            (true, nodes) => format!("proof after {}", grouped(nodes)),
        };
        format!("Search: {} nodes, best after {}, {proof}", grouped(stats.nodes), grouped(stats.nodes_to_best))
    });
    (keys, text)
}
