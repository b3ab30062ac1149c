//! Random sequences on random graphs against one buffer per tensor. `ARENITE_SEQUENCES` sets how many of each kind.

#[path = "../runtime_support/mod.rs"]
mod runtime_support;

mod incremental;
mod instances;
mod session;

use arenite::graph::owned::{CallKind, Graph};
use arenite::graph::tables::Tables;
use arenite::runtime::session::TensorId;
use arenite::runtime::source::Source;
use arenite::runtime::store::{Growth, MemoryPolicy, Shrink};
use runtime_support::{graph, Apart, Random, Trace};

fn same(a: &Trace, b: &Trace, at: &str) {
    if let Some(i) = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i)) {
        panic!("{at}: (subgraph, node, tensor, hash) {:?} is not {:?}", a.get(i), b.get(i));
    }
}

fn policy(r: &mut Random) -> MemoryPolicy {
    MemoryPolicy {
        growth: *r.pick(&[Growth::Exact, Growth::Doubling { cap: 4096 }]),
        shrink: *r.pick(&[Shrink::Never, Shrink::After { commits: 2, percent: 60 }]),
        idle_cap: r.chance(20).then_some(2048),
        keep_on_failure: r.chance(30),
        ..MemoryPolicy::default()
    }
}

fn program(r: &mut Random) -> Vec<Graph> {
    let mut subgraphs = Vec::new();
    let mut callees = Vec::new();
    for _ in 0..r.below(3) {
        let at = 1 + subgraphs.len() as u32;
        let (kind, count) = *r.pick(&[(CallKind::Branch, 2), (CallKind::Loop, 2), (CallKind::Sequence, 1)]);
        for _ in 0..count {
            let nodes = 1 + r.below(4);
            subgraphs.push(graph(r, nodes, 2, 2, &[]));
        }
        callees.push((kind, (at..at + count).collect()));
    }
    let nodes = 1 + r.below(10);
    let mut all = vec![graph(r, nodes, 2, 2, &callees)];
    all.extend(subgraphs);
    all
}

/// One buffer per tensor of `graphs`, all zero.
fn apart(graphs: &[Graph]) -> Apart {
    let of = |g: &Graph| (0..g.tensor_count()).map(|t| vec![0; g.tensor(t).bytes.unwrap() as usize]).collect();
    Apart(graphs.iter().map(of).collect())
}

/// The variables of all graphs that the first one reaches, whose contents persist.
fn variables(graphs: &[Graph]) -> Vec<TensorId> {
    let called = |g: usize| {
        let calls = |n: usize| graphs[0].node(n).call.subgraphs().contains(&(g as u32));
        g == 0 || (0..graphs[0].node_count()).any(calls)
    };
    let of = |g: usize| graphs[g].variables().iter().map(move |&t| TensorId::new(g as u32, t as u32));
    (0..graphs.len()).filter(|&g| called(g)).flat_map(of).collect()
}

fn source(r: &mut Random) -> Source {
    *r.pick(&[Source::System, Source::System, Source::Map])
}
