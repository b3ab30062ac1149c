//! Execution orders of real models: arena before and after, proven or not, time.
//!
//! `cargo bench --bench order --features model -- [NAME...]` goes through the graph tables of the corpus whose name contains
//! one of the words. Every order must be no worse by the default planner, by TFLite's and by TFLite Micro's; with
//! `--families` takes seeded graphs of 1000 nodes instead, by the first alone. With
//! `--alone` only the first is asked. `--align N` is the alignment of the first (128), `--all` prints every model.
#![allow(missing_docs)]

#[path = "order/families.rs"]
mod families;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use arenite::graph::liveness::{self, Policy};
use arenite::graph::order::{order, Judge, Options};
use arenite::model::{Model, Resource};
use arenite::planner::{self, Strategy};
use arenite::units::Align;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let flag = |name: &str| args.iter().any(|a| a == name);
    let align = args.iter().position(|a| a == "--align").and_then(|i| args.get(i + 1)).and_then(|n| n.parse().ok());
    let words: Vec<&String> = args
        .iter()
        .filter(|a| !a.starts_with("--") && Some(a.as_str()) != align.map(|n: u64| n.to_string()).as_deref())
        .collect();
    if flag("--families") {
        return seeded(&words);
    }
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let dir = std::env::var_os("ARENITE_SHARED").map_or_else(beside, Into::into).join("corpus/models");
    let Ok(list) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: no corpus at {} (set ARENITE_SHARED)", dir.display());
        return;
    };
    let mut files: Vec<_> = list.filter_map(|f| Some(f.ok()?.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "tgt"));
    files.sort();
    println!(
        "{:44} {:>5} {:>11} {:>11} {:>6} {:>11} {:>6} {:>7} {:>8}",
        "model", "nodes", "before", "after", "ratio", "bound", "proven", "refused", "time"
    );
    let (mut count, mut improved, mut proven, mut ratios) = (0, 0, 0, 0.0);
    let mut worst = (Duration::ZERO, String::new());
    for file in files {
        let name = file.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
        if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let mut model = Model::from_tgt(&std::fs::read(&file).expect("a readable file")).expect("a graph table");
        trace_resources(&mut model);
        let others = if flag("--alone") { vec![] } else { vec![tflite(), tflm()] };
        let lifetimes = liveness::Options {
            align: align.and_then(|n| Align::new(n).ok()).unwrap_or_default(),
            ..liveness::Options::default()
        };
        let options =
            Options { judge: Judge::new(lifetimes, planner::Options::default()), others: &others, effort: None };
        let begin = Instant::now();
        let found = order(&model.subgraphs, &model.entries(), &model.order_rules(&[]), &options);
        let time = begin.elapsed();
        let found = match found {
            Ok(found) => found,
            Err(e) => {
                println!("{name:44} {e}");
                continue;
            }
        };
        let (before, after) = (found.before[0].arena_bytes, found.after[0].arena_bytes);
        let ratio = if before == 0 { 1.0 } else { after as f64 / before as f64 };
        count += 1;
        improved += usize::from(after < before);
        proven += usize::from(found.proven);
        ratios += ratio;
        if time > worst.0 {
            worst = (time, name.clone());
        }
        if after < before || found.refused > 0 || flag("--all") || time.as_millis() > 2000 {
            let nodes: usize = model.subgraphs.iter().map(|g| g.nodes.len()).sum();
            println!(
                "{name:44} {nodes:5} {before:11} {after:11} {ratio:6.3} {:11} {:>6} {:7} {:>6.0}ms",
                found.bound,
                if found.proven { "yes" } else { "-" },
                found.refused,
                time.as_secs_f64() * 1e3
            );
        }
    }
    println!(
        "{count} models, {improved} improved, {proven} proven, mean {:.4} of the given order's arena, worst time {:.2} s ({})",
        ratios / f64::from(count.max(1)),
        worst.0.as_secs_f64(),
        worst.1
    );
}

fn seeded(words: &[&String]) {
    println!(
        "{:24} {:>5} {:>11} {:>11} {:>6} {:>6} {:>8}",
        "graph", "nodes", "before", "after", "ratio", "proven", "time"
    );
    let (mut worst, mut count, mut proven) = (Duration::ZERO, 0, 0);
    for (name, graph) in families::all(1000) {
        if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let graphs = [graph];
        let options = Options { judge: Judge::default(), others: &[], effort: None };
        let begin = Instant::now();
        let found = order(&graphs, &[0], &Default::default(), &options).expect("an order");
        let time = begin.elapsed();
        let (before, after) = (found.before[0].arena_bytes, found.after[0].arena_bytes);
        println!(
            "{name:24} {:5} {before:11} {after:11} {:6.3} {:>6} {:>6.0}ms",
            found.orders[0].len(),
            after as f64 / before as f64,
            if found.proven { "yes" } else { "-" },
            time.as_secs_f64() * 1e3
        );
        worst = worst.max(time);
        (count, proven) = (count + 1, proven + usize::from(found.proven));
    }
    println!("{count} graphs, {proven} proven, worst time {:.2} s", worst.as_secs_f64());
}

/// TFLite's planner with its in-place sharing.
fn tflite() -> Judge {
    let align = Align::new(64).unwrap_or_default();
    let lifetimes = liveness::Options { policy: Policy::Tflite, align, ..liveness::Options::default() };
    Judge::new(lifetimes, planner::Options::of(Strategy::GreedyBySize))
}

/// TFLite Micro's.
fn tflm() -> Judge {
    let align = Align::new(16).unwrap_or_default();
    let lifetimes = liveness::Options { policy: Policy::Tflm, align, in_place: false, ..liveness::Options::default() };
    Judge::new(lifetimes, planner::Options::of(Strategy::TflmGreedy))
}

/// A graph table does not name the resource behind a handle. Each VAR_HANDLE is taken for its own here, unless two of a
/// graph have one name.
fn trace_resources(model: &mut Model) {
    let mut number: HashMap<String, u32> = HashMap::new();
    for graph in &mut model.subgraphs {
        let mut of_handle = HashMap::new();
        for node in &mut graph.nodes {
            if *node.op == *"VAR_HANDLE" {
                if let Some(&t) = node.outputs.first().filter(|&&t| t >= 0) {
                    let next = number.len() as u32;
                    let r = *number.entry(graph.tensors[t as usize].name.clone()).or_insert(next);
                    of_handle.insert(t, r);
                }
            } else if matches!(&*node.op, "READ_VARIABLE" | "ASSIGN_VARIABLE") {
                node.resource = node.inputs.first().and_then(|t| of_handle.get(t)).copied();
            }
        }
    }
    model.resources = vec![Resource::default(); number.len()];
}
