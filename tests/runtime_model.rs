//! Random sequences on random graphs against one buffer per tensor. `ARENITE_SEQUENCES` sets how many.

mod runtime_support;

use std::ptr::NonNull;

use arenite::error::Kind;
use arenite::graph::owned::{CallKind, Graph};
use arenite::graph::tables::{Allocation, Tables};
use arenite::planner::{Options as PlanOptions, Strategy};
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::session::{Accept, Formula, Replan, Session, SessionConfig, TensorId};
use arenite::runtime::source::{Block, Source};
use arenite::runtime::store::{Growth, MemoryPolicy, Shrink};
use arenite::units::{Align, DEFAULT_ALIGN};
use runtime_support::{fill, graph, hash, kernel, run, sequences, Apart, Memory, Random, Trace, SIZES};

fn same(a: &Trace, b: &Trace, at: &str) {
    if let Some(i) = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i)) {
        panic!("{at}: (subgraph, node, tensor, hash) {:?} is not {:?}", a.get(i), b.get(i));
    }
}

struct InSession<'a>(&'a mut Session, bool);

impl Memory for InSession<'_> {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize) {
        self.0.resolve(id).unwrap().map_or((std::ptr::null_mut(), 0), |(p, n)| (p.as_ptr(), n))
    }
    fn before(&mut self, g: u32, n: u32) {
        if self.1 {
            self.0.guard_before(g, n).unwrap();
        }
    }
    fn after(&mut self, g: u32, n: u32) {
        if self.1 {
            self.0.guard_after(g, n).unwrap();
        }
    }
}

fn config(r: &mut Random) -> SessionConfig {
    let strategy = *r.pick(&[Strategy::GreedyBySize, Strategy::TflmGreedy, Strategy::FirstFit, Strategy::Auto]);
    let mut c = SessionConfig {
        planner: PlanOptions { effort: Some(300), ..PlanOptions::of(strategy) },
        replan: *r.pick(&[Replan::Keep, Replan::Smallest]),
        cached_plans: r.below(4) as usize,
        memory: policy(r),
        guard: r.chance(30),
        ..SessionConfig::default()
    };
    c.options.in_place = r.chance(85);
    c.options.align = Align::new(*r.pick(&[1, 16, 128])).unwrap();
    c.io = r.chance(25).then_some((Source::System, DEFAULT_ALIGN));
    c
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

fn addresses(s: &Session, graphs: &[Graph]) -> Option<Vec<usize>> {
    let ids = graphs
        .iter()
        .enumerate()
        .flat_map(|(g, x)| (0..x.tensor_count()).map(move |t| TensorId::new(g as u32, t as u32)));
    let at = ids.map(|id| s.resolve(id).map(|x| x.map_or(0, |p| p.0.as_ptr() as usize)));
    at.collect::<Result<Vec<_>, _>>().ok()
}

fn session_sequence(seed: u64) {
    let r = &mut Random::new(seed);
    let graphs = program(r);
    let config = config(r);
    let guarded = config.guard;
    let mut s = Session::new(graphs.clone(), 0, config).unwrap();
    let mut apart = Apart(
        graphs
            .iter()
            .map(|g| (0..g.tensor_count()).map(|t| vec![0; g.tensor(t).bytes.unwrap() as usize]).collect())
            .collect(),
    );
    let mut bound: Vec<(TensorId, Block)> = Vec::new();
    let mut seen: Option<(u64, Vec<usize>)> = None;
    let called = |g: &usize| {
        *g == 0 || (0..graphs[0].node_count()).any(|n| graphs[0].node(n).call.subgraphs().contains(&(*g as u32)))
    };
    let persistent: Vec<TensorId> = (0..graphs.len())
        .filter(called)
        .flat_map(|g| graphs[g].variables().iter().map(move |&t| TensorId::new(g as u32, t as u32)))
        .collect();
    let mut fresh: Vec<TensorId> = Vec::new();
    // Whether addresses may have changed and changed back, or changed where the list below does not look.
    let mut elsewhere = false;
    let mut runs = 0;
    for step in 0..6 + r.below(14) {
        let g = r.below(graphs.len() as u64) as u32;
        let id = TensorId::new(g, r.below(graphs[g as usize].tensor_count() as u64) as u32);
        match r.below(12) {
            0..=3 => {
                for _ in 0..1 + r.below(3) {
                    let t = TensorId::new(g, r.below(graphs[g as usize].tensor_count() as u64) as u32);
                    let room = bound.iter().find(|b| b.0 == t).map_or(u64::MAX, |b| b.1.bytes() as u64);
                    let bytes = (*r.pick(&SIZES)).min(room);
                    s.resize(t, bytes).unwrap();
                    apart.0[t.subgraph as usize][t.tensor as usize].resize(bytes as usize, 0);
                    fresh.push(t);
                }
                if s.is_stale() {
                    assert_eq!(s.resolve(id).unwrap_err().kind, Kind::Stale, "seed {seed}");
                }
            }
            4 => {
                s.release();
                elsewhere = true;
            }
            5 => {
                s.shrink_to_fit().unwrap();
                elsewhere = true;
            }
            6 if !bound.iter().any(|b| b.0 == id) => {
                let room = 1000;
                let block = Source::System.take(room, 512).unwrap();
                let generation = s.generation();
                s.bind(id, block.base(), room, Accept::Required).unwrap();
                // An input with memory of its own moves at once, and may be back before the next commit.
                elsewhere |= s.generation() != generation;
                bound.push((id, block));
                fresh.push(id);
            }
            7 if !bound.is_empty() => {
                let (id, _block) = bound.swap_remove(r.below(bound.len() as u64) as usize);
                s.unbind(id).unwrap();
                fresh.push(id);
            }
            8 => {
                elsewhere = true;
                let node = r.below(graphs[g as usize].node_count() as u64) as u32;
                let slot = r.below(2) as u32;
                let align = Align::new(*r.pick(&[1, 64])).unwrap();
                if r.chance(50) {
                    s.request_scratch(g, node, slot, *r.pick(&SIZES), align).unwrap();
                } else {
                    let formula = Formula(Box::new(|sizes| sizes[0].map(|b| b / 2)));
                    s.request_scratch_by_shape(g, node, slot, align, formula).unwrap();
                }
            }
            9 => s.set_memory_policy(policy(r)),
            _ => {
                s.commit().unwrap_or_else(|e| panic!("seed {seed} step {step}: {e}"));
                let now = addresses(&s, &graphs).unwrap();
                if let Some((generation, before)) = &seen {
                    let (moved, changed) = (&now != before, s.generation() != *generation);
                    assert!(changed || !moved, "seed {seed}: an address moved within a generation");
                    assert!(moved || !changed || elsewhere, "seed {seed}: a generation without a move");
                }
                // Scratch asked for once stays asked for.
                elsewhere = s.scratch_count() > 0;
                let generation = s.generation();
                s.commit().unwrap();
                assert_eq!(s.generation(), generation, "seed {seed}: a commit without a change");
                assert_eq!(s.stats().heap_calls_since_commit, 0);
                seen = Some((generation, now));
                let mut real = InSession(&mut s, guarded);
                for &t in fresh.iter().filter(|t| persistent.contains(t)) {
                    fill(&mut real, t, 3);
                    fill(&mut apart, t, 3);
                }
                fresh.clear();
                for &t in graphs[0].inputs() {
                    let id = TensorId::new(0, t as u32);
                    fill(&mut real, id, seed + runs);
                    fill(&mut apart, id, seed + runs);
                }
                runs += 1;
                let choice = r.next();
                let (mut a, mut b) = (Vec::new(), Vec::new());
                run(&graphs, 0, choice, &mut real, &mut a);
                run(&graphs, 0, choice, &mut apart, &mut b);
                same(&a, &b, &format!("seed {seed} step {step}"));
                let kept = graphs[0].inputs().iter().chain(graphs[0].outputs()).map(|&t| TensorId::new(0, t as u32));
                for id in kept.chain(persistent.iter().copied()) {
                    assert_eq!(hash(&mut real, id), hash(&mut apart, id), "seed {seed} step {step}: {id:?}");
                }
            }
        }
    }
}

#[test]
fn sessions_do_what_one_buffer_per_tensor_does() {
    let n = sequences(10_000);
    (1..=n).for_each(session_sequence);
    println!("{n} session sequences, 0 differences");
}

struct InArena<'a>(&'a IncrementalArena, &'a Graph);

impl Memory for InArena<'_> {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize) {
        let found = self.0.resolve(self.1, id.tensor as usize).unwrap();
        found.map_or((std::ptr::null_mut(), 0), |(p, n): (NonNull<u8>, usize)| (p.as_ptr(), n))
    }
}

/// One run as TFLite does it: nodes up to a barrier, then sizes of later tensors change and planning goes on from there,
/// with or without the reset that TFLite needs.
fn incremental_sequence(seed: u64) {
    let r = &mut Random::new(seed ^ 0xABCD_EF01);
    let nodes = 1 + r.below(12);
    let mut g = graph(r, nodes, 2, 2, &[]);
    let config = IncrementalConfig {
        align: Align::new(*r.pick(&[4, 64])).unwrap(),
        preserve_all: r.chance(10),
        memory: MemoryPolicy { keep_on_failure: r.chance(50), ..MemoryPolicy::default() },
        ..IncrementalConfig::default()
    };
    let mut arena = IncrementalArena::new(&config);
    if arena.plan(&g).is_err() {
        return; // a tensor written after its last use: refused, as by TFLite
    }
    let count = g.tensor_count();
    let mut apart = Apart(vec![(0..count).map(|t| vec![0; g.tensor(t).bytes.unwrap() as usize]).collect()]);
    let first_node: Vec<i32> = (0..count as i32)
        .map(|t| (0..g.node_count()).find(|&n| g.node(n).outputs.contains(&t) || g.node(n).temporaries.contains(&t)))
        .map(|n| n.map_or(-1, |n| n as i32))
        .collect();
    let variables: Vec<i32> = g.variables().to_vec();
    let last = g.node_count() as i32 - 1;
    for round in 0..1 + r.below(4) {
        match r.below(4) {
            0 => arena.reset(),
            1 => arena.release(),
            2 => arena.shrink_to_fit().unwrap(),
            _ => {}
        }
        if r.chance(50) {
            for _ in 0..r.below(3) {
                let t = r.below(count as u64) as usize;
                if !variables.contains(&(t as i32)) {
                    resize(&mut g, &mut apart, t, *r.pick(&SIZES));
                }
            }
        }
        let mut from = 0;
        let mut filled = false;
        while from <= last {
            let to = from + r.below((last - from + 1) as u64) as i32;
            arena.execute(&g, from, to).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            arena.acquire().unwrap();
            assert!(arena.has_memory());
            let placed: Vec<_> = (0..count).map(|t| arena.record(t)).collect();
            if !filled {
                for &t in g.inputs() {
                    let id = TensorId::new(0, t as u32);
                    fill(&mut InArena(&arena, &g), id, seed + round);
                    fill(&mut apart, id, seed + round);
                }
                filled = true;
            }
            let graphs = [g.clone()];
            for n in from..=to {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                kernel(&graphs, 0, n as u32, 0, &mut InArena(&arena, &g), &mut a);
                kernel(&graphs, 0, n as u32, 0, &mut apart, &mut b);
                same(&a, &b, &format!("seed {seed} round {round}"));
            }
            if to < last {
                for _ in 0..r.below(3) {
                    let t = r.below(count as u64) as usize;
                    if first_node[t] > to && !variables.contains(&(t as i32)) {
                        resize(&mut g, &mut apart, t, *r.pick(&SIZES));
                    }
                }
                if r.chance(60) {
                    arena.reset_after(to);
                    for (t, before) in placed.iter().enumerate() {
                        let now = arena.record(t);
                        assert!(now.is_none() || now == *before, "seed {seed}: an earlier tensor moved");
                    }
                }
            }
            from = to + 1;
        }
        let kept = g.inputs().iter().chain(g.outputs()).chain(g.variables());
        for &t in kept.filter(|&&t| g.tensor(t as usize).allocation != Allocation::None) {
            let id = TensorId::new(0, t as u32);
            assert_eq!(
                hash(&mut InArena(&arena, &g), id),
                hash(&mut apart, id),
                "seed {seed} round {round} tensor {t}"
            );
        }
    }
}

fn resize(g: &mut Graph, apart: &mut Apart, t: usize, bytes: u64) {
    g.tensor_mut(t).unwrap().bytes = Some(bytes);
    apart.0[0][t].resize(bytes as usize, 0);
}

#[test]
fn incremental_arenas_do_what_one_buffer_per_tensor_does() {
    let n = sequences(10_000);
    (1..=n).for_each(incremental_sequence);
    println!("{n} incremental sequences, 0 differences");
}
