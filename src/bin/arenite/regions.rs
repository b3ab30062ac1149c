//! `arenite plan --region`: a fast small memory, a slow large one, and who goes where.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use arenite::error::{Error, Kind, Subject};
use arenite::model::ProblemFile;
use arenite::planner::regions::{plan_regions, Region, RegionPlan, Wish};
use arenite::planner::{Plan, Problem};
use arenite::units::Bytes;
use arenite::view::{grouped, html, visible, Overview, Report, Several};
use serde_json::{json, Value};

use super::output::{complain, json_to_stdout, to_file, to_stdout, Done, Failure, FAILED};
use super::plan::{size, Args, Command};
use super::planned::{file, nanos, plan_options};
use super::progress::Watch;

/// A region of the command line.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    capacity: Option<Bytes>,
}

/// `NAME=BYTES`, or `NAME` or `NAME=` for one without a limit.
pub fn region(text: &str) -> Result<Named, String> {
    let (name, bytes) = text.split_once('=').unwrap_or((text, ""));
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("expected NAME=BYTES, the name without blanks".into());
    }
    let capacity = if bytes.is_empty() { None } else { Some(size(bytes)?) };
    Ok(Named { name: name.into(), capacity })
}

/// Runs `plan` with regions.
pub fn run(command: &Command, input: &ProblemFile) -> Done<ExitCode> {
    let args = &command.args;
    let refused = [
        ("--svg", command.svg.is_some()),
        ("--trace", command.trace.is_some()),
        ("--capacity", args.capacity.is_some()),
        ("--previous", args.previous.is_some()),
    ];
    if let Some((name, _)) = refused.iter().find(|r| r.1) {
        return Err(Failure::about(name, "does not go with --region"));
    }
    let (plan, ns) = match planned(args, input)? {
        Ok(found) => found,
        Err(e) => return no_room(args, command.json, input, &e),
    };
    if let Some(path) = &command.csv {
        let region = |i: usize| Some(args.region[plan.region[i] as usize].name.clone());
        let offsets: Vec<_> = plan.offsets.iter().map(|o| Some(o.to_string())).collect();
        let names: Vec<_> = (0..input.ids.len()).map(region).collect();
        let text = input.with_columns(&[("offset", &offsets), ("region", &names)]);
        to_file(path, |w| w.write_all(text.as_bytes()))?;
    }
    if let Some(path) = &command.html {
        picture(args, input, &plan, path)?;
    }
    if command.json {
        json_to_stdout(|w| object(w, args, input, &plan, ns))?;
    } else if ![&command.csv, &command.html].iter().any(|f| f.as_deref() == Some("-")) {
        to_stdout(|w| table(w, command, input, &plan))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `view` with regions.
pub fn view(args: &Args, input: &ProblemFile, path: &str) -> Done<ExitCode> {
    if args.capacity.is_some() || args.previous.is_some() {
        return Err(Failure::about("--region", "goes neither with --capacity nor with --previous"));
    }
    match planned(args, input)? {
        Ok((plan, _)) => picture(args, input, &plan, path).map(|()| ExitCode::SUCCESS),
        Err(e) => no_room(args, false, input, &e),
    }
}

/// The plan and the nanoseconds it took; within, the error where a buffer has no room.
fn planned(args: &Args, input: &ProblemFile) -> Done<Result<(RegionPlan, u64), Error>> {
    let wishes = wishes(args, input)?;
    let regions: Vec<Region> = args.region.iter().map(|r| Region { capacity: r.capacity }).collect();
    let options = plan_options(args);
    let mut watch = Watch::new(args.deadline);
    let begin = Instant::now();
    let found = plan_regions(&input.problem, &regions, &wishes, &options, &mut |p| watch.tick("regions", p));
    match found {
        Ok(plan) => Ok(Ok((plan, nanos(begin)))),
        Err(e) if e.kind == Kind::Capacity => Ok(Err(e)),
        Err(e) => Err(Failure::about(file(args), about(args, input, &e))),
    }
}

/// A page with a map of each region.
fn picture(args: &Args, input: &ProblemFile, plan: &RegionPlan, path: &str) -> Done<()> {
    let refuse = |e: Error| Failure::about(file(args), about(args, input, &e));
    let mut reports = Vec::new();
    for (r, own) in (0u32..).zip(&plan.plans) {
        let mine: Vec<usize> = (0..input.ids.len()).filter(|&i| plan.region[i] == r).collect();
        let mut part = Problem::with_capacity(mine.len());
        for &i in &mine {
            part.add(input.problem.buffers()[i].spec, input.problem.spans(i)).map_err(refuse)?;
        }
        for (k, &i) in (0u32..).zip(&mine) {
            let Some(alias) = input.problem.alias_of(i) else { continue };
            if let Some(root) = mine.iter().position(|&m| m == alias.root as usize) {
                part.alias(k, root as u32, alias.delta).map_err(refuse)?;
            }
        }
        let own = Plan { offsets: mine.iter().map(|&i| plan.offsets[i]).collect(), ..own.clone() };
        let label = |k: usize| (input.ids[mine[k]].clone(), input.names[mine[k]].clone());
        let time = |s: u32| (input.time(s), input.time(s.saturating_add(1)).saturating_sub(1));
        let name = format!("region {}", args.region[r as usize].name);
        reports.push(Report::of_problem(name, &part, &own, &label, &time).map_err(refuse)?);
    }
    let of = |(r, report): (usize, _)| Overview {
        title: &args.region[r].name,
        entries: std::slice::from_ref(report),
        persistent_bytes: 0,
        resource_bytes: 0,
        constant_bytes: 0,
        scratch_bytes: None,
        alignment: plan.plans[r].align.bytes(),
        in_place: false,
        strategy: args.strategy.name(),
        warnings: &[],
        capacity: args.region[r].capacity,
    };
    let all: Vec<Overview<'_>> = reports.iter().enumerate().map(of).collect();
    to_file(path, |w| html(w, &all.iter().collect::<Vec<_>>(), Several::Regions))
}

/// The columns `regions` (names, separated by blanks; empty for all) and `benefit` (a number; empty for 1).
fn wishes(args: &Args, input: &ProblemFile) -> Done<Vec<Wish>> {
    let wish = |i: usize| {
        let refuse = |what: String| Failure::about(format!("{}: line {}", file(args), input.line(i)), what);
        let mut wish = Wish::default();
        let names = input.field(i, "regions").unwrap_or("");
        if !names.is_empty() {
            wish.allowed = 0;
        }
        for name in names.split_whitespace() {
            let at = args.region.iter().position(|r| r.name == name);
            let at = at.ok_or_else(|| refuse(format!("expected the name of a --region, got {name:?}")))?;
            wish.allowed |= 1 << at.min(31);
        }
        match input.field(i, "benefit").unwrap_or("") {
            "" => {}
            text => {
                let number = text.parse();
                wish.benefit = number.map_err(|_| refuse(format!("expected a number as benefit, got {text:?}")))?;
            }
        }
        Ok(wish)
    };
    (0..input.ids.len()).map(wish).collect()
}

fn about(args: &Args, input: &ProblemFile, e: &Error) -> String {
    let place = |s: Subject| match s {
        Subject::Buffer(i) => input.ids.get(i as usize).map(|id| format!(" ({s} is id {id:?})")),
        Subject::Region(r) => args.region.get(r as usize).map(|r| format!(" (the last of those is {:?})", r.name)),
        _ => None,
    };
    format!("{e}{}{}", place(e.subject).unwrap_or_default(), place(e.other).unwrap_or_default())
}

fn no_room(args: &Args, json_asked: bool, input: &ProblemFile, e: &Error) -> Done<ExitCode> {
    let text = about(args, input, e);
    if json_asked {
        let id = match e.subject {
            Subject::Buffer(i) => input.ids.get(i as usize),
            _ => None,
        };
        let step = e.step.map(|s| input.time(s));
        let value = json!({ "ok": false, "message": text, "id": id, "step": step, "needed": e.needed, "available": e.available });
        json_to_stdout(|w| writeln!(w, "{value}"))?;
    }
    complain(&format!("capacity exceeded: {text}"));
    Ok(ExitCode::from(FAILED))
}

fn spilled(input: &ProblemFile, plan: &RegionPlan, region: usize) -> (usize, Bytes) {
    let gone = plan.spills.iter().filter(|s| s.wanted as usize == region);
    gone.fold((0, 0), |(n, sum), s| (n + 1, input.problem.buffers()[s.buffer as usize].spec.size.saturating_add(sum)))
}

fn object(w: &mut dyn Write, args: &Args, input: &ProblemFile, plan: &RegionPlan, ns: u64) -> io::Result<()> {
    let name = |r: u32| &args.region[r as usize].name;
    let buffer = |i: usize| input.problem.buffers()[i].spec;
    let regions: Vec<Value> = plan
        .plans
        .iter()
        .enumerate()
        .map(|(r, p)| {
            let (count, bytes) = spilled(input, plan, r);
            json!({
                "name": args.region[r].name, "capacity": args.region[r].capacity, "arena_bytes": p.arena_bytes,
                "lower_bound": p.lower_bound, "optimal": p.optimal, "strategy": p.strategy.name(),
                "buffers": p.offsets.len(), "alignment": p.align.bytes(), "nodes": p.stats.nodes,
                "spilled": count, "spilled_bytes": bytes,
            })
        })
        .collect();
    let spills: Vec<Value> = plan
        .spills
        .iter()
        .map(|s| {
            json!({
                "id": input.ids[s.buffer as usize], "size": buffer(s.buffer as usize).size,
                "wanted": name(s.wanted), "got": name(s.got), "step": input.time(s.step),
            })
        })
        .collect();
    let rows: Vec<Value> = (0..input.ids.len())
        .map(|i| {
            let empty = buffer(i).size == 0;
            json!({
                "subgraph": null, "id": input.ids[i], "name": input.names[i], "region": name(plan.region[i]),
                "offset": if empty { None } else { Some(plan.offsets[i]) }, "size": buffer(i).size,
                "first": input.lower[i], "last": input.upper[i] - 1,
            })
        })
        .collect();
    let sum: Bytes = plan.plans.iter().map(|p| p.arena_bytes).fold(0, Bytes::saturating_add);
    let value = json!({
        "arena_bytes": sum,
        "total_bytes": input.problem.total_bytes().unwrap_or(Bytes::MAX),
        "plan_ns": ns,
        "regions": regions,
        "spills": spills,
        "offsets": rows,
    });
    writeln!(w, "{value}")
}

fn table(w: &mut dyn Write, command: &Command, input: &ProblemFile, plan: &RegionPlan) -> io::Result<()> {
    let args = &command.args;
    let width = args.region.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).max(6);
    writeln!(w, "  {:<width$} {:>16} {:>16} {:>16} {:>9}  spilled", "region", "capacity", "arena", "bound", "buffers")?;
    for (r, p) in plan.plans.iter().enumerate() {
        let (count, bytes) = spilled(input, plan, r);
        writeln!(
            w,
            "  {:<width$} {:>16} {:>16} {:>16} {:>9}  {count} ({} B)",
            args.region[r].name,
            args.region[r].capacity.map_or("no limit".into(), grouped),
            grouped(p.arena_bytes),
            grouped(p.lower_bound),
            p.offsets.len(),
            grouped(bytes)
        )?;
    }
    let shown = if command.all { plan.spills.len() } else { 20 };
    if !plan.spills.is_empty() {
        writeln!(w, "\nSpilled, the region they wanted being full:")?;
    }
    for s in plan.spills.iter().take(shown) {
        let (i, name) = (s.buffer as usize, |r: u32| &args.region[r as usize].name);
        let bytes = grouped(input.problem.buffers()[i].spec.size);
        let (id, wanted, got, step) = (visible(&input.ids[i]), name(s.wanted), name(s.got), input.time(s.step));
        writeln!(w, "  {id}: {bytes} B, in {got} instead of {wanted}, which is full at {step}")?;
    }
    if plan.spills.len() > shown {
        writeln!(w, "  and {} more (--all)", plan.spills.len() - shown)?;
    }
    Ok(())
}
