//! Control flow as one problem and as an arena per subgraph.

use std::path::{Path, PathBuf};

use arenite::graph::liveness::Options as GraphOptions;
use arenite::graph::lower::{lower, Lowered};
use arenite::graph::owned::{CallKind, Graph, NodeSpec};
use arenite::graph::tables::Tables;
use arenite::model::Model;
use arenite::planner::{plan, Options, Problem, Strategy};
use arenite::units::DEFAULT_ALIGN;

fn corpus() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let dir = std::env::var_os("ARENITE_SHARED").map_or_else(beside, PathBuf::from).join("corpus/models");
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("SKIPPED: no corpus at {} (set ARENITE_SHARED)", dir.display());
    None
}

/// The graph without its calls.
fn alone(graph: &impl Tables) -> Graph {
    let whole = Graph::copy_of(graph).unwrap();
    let mut out = Graph::new();
    for t in 0..whole.tensor_count() {
        out.add_tensor(whole.tensor(t)).unwrap();
    }
    for i in 0..whole.node_count() {
        let n = whole.node(i);
        let spec = NodeSpec {
            inputs: n.inputs,
            outputs: n.outputs,
            temporaries: n.temporaries,
            inplace: n.inplace,
            view: n.view,
            align: n.align,
            call: CallKind::None,
            subgraphs: &[],
        };
        out.add_node(&spec).unwrap();
    }
    out.set_inputs(whole.inputs());
    out.set_outputs(whole.outputs());
    out.set_variables(whole.variables());
    out
}

pub fn print() {
    let Some(dir) = corpus() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "tgt"));
    files.sort();
    println!(
        "graph tables with subgraphs, bytes: one problem on the caller's time line against one arena per subgraph."
    );
    println!("`alone`: each subgraph planned as if nobody called it, its bytes added up unrounded.");
    println!("`blocks`: the same arenas as blocks of memory, each of which begins at a multiple of 128.");
    println!("`safe`: blocks again, with what a loop carries alive through the whole loop, as in the one problem.");
    println!(
        "{:<38} {:>9} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "", "subgraphs", "one problem", "alone", "blocks", "safe", "saved"
    );
    let options = Options { effort: Some(20_000), ..Options::of(Strategy::Auto) };
    let graph_options = GraphOptions::default();
    let mut sums = [0u64; 4];
    for file in files {
        let model = Model::from_tgt(&std::fs::read(&file).unwrap()).unwrap();
        if model.subgraphs.len() < 2 {
            continue;
        }
        // Entry graphs: those that nobody calls. Each is one problem; the arena is the largest.
        let n = model.subgraphs.len();
        let called = |g: usize| {
            let calls = |s: &arenite::model::Subgraph| {
                (0..s.node_count()).any(|i| s.node(i).call.subgraphs().contains(&(g as u32)))
            };
            model.subgraphs.iter().any(calls)
        };
        let entries: Vec<usize> = (0..n).filter(|&g| !called(g)).collect();
        let mut one = 0;
        let mut reached = vec![false; n];
        // Per subgraph the largest arena it needs in any entry.
        let mut safe = vec![0u64; n];
        for &entry in &entries {
            let lowered = lower(&model.subgraphs, entry, &graph_options, &[]).unwrap();
            one = one.max(plan(&lowered.problem, &options).unwrap().arena_bytes);
            for (g, most) in safe.iter_mut().enumerate() {
                *most = (*most).max(plan(&part(&lowered, g), &options).unwrap().arena_bytes);
            }
            for at in lowered.timeline.steps() {
                reached[at.subgraph as usize] = true;
            }
        }
        let block = |bytes: u64| DEFAULT_ALIGN.round_up(bytes).unwrap();
        let alone_bytes = (0..n).filter(|&g| reached[g]).map(|g| {
            let graphs = [alone(&model.subgraphs[g])];
            let lowered = lower(&graphs, 0, &graph_options, &[]).unwrap();
            plan(&lowered.problem, &options).unwrap().arena_bytes
        });
        let each: Vec<u64> = alone_bytes.collect();
        let blocks: u64 = each.iter().map(|&b| block(b)).sum();
        let row = [one, each.iter().sum(), blocks, safe.iter().map(|&b| block(b)).sum()];
        let saved = if row[2] == 0 { 0.0 } else { 100.0 * (1.0 - block(one) as f64 / row[2] as f64) };
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        println!("{name:<38} {n:>9} {:>12} {:>12} {:>12} {:>12} {saved:>7.1}%", row[0], row[1], row[2], row[3]);
        sums.iter_mut().zip(row).for_each(|(s, r)| *s += r);
    }
    println!("{:<38} {:>9} {:>12} {:>12} {:>12} {:>12}", "sum", "", sums[0], sums[1], sums[2], sums[3]);
}

/// The buffers of one subgraph as a problem of their own, alive when they are in the whole.
fn part(lowered: &Lowered, g: usize) -> Problem {
    let mut out = Problem::with_capacity(lowered.problem.len());
    let mut number = vec![None; lowered.problem.len()];
    for b in lowered.buffers[g].iter().flatten().map(|&b| b as usize) {
        number[b] = Some(out.len() as u32);
        out.add(lowered.problem.buffers()[b].spec, lowered.problem.spans(b)).unwrap();
    }
    for b in 0..number.len() {
        let Some(alias) = lowered.problem.alias_of(b) else { continue };
        if let (Some(from), Some(root)) = (number[b], number[alias.root as usize]) {
            out.alias(from, root, alias.delta).unwrap();
        }
    }
    out
}
