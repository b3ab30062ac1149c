//! Incremental arenas: one run as TFLite does it, with or without the resets that TFLite needs.

use std::ptr::NonNull;

use arenite::graph::owned::Graph;
use arenite::graph::tables::{Allocation, Tables};
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::session::TensorId;
use arenite::units::Align;

use super::runtime_support::{fill, graph, hash, kernel, sequences, Apart, Memory, Random, SIZES};
use super::{apart, policy, same, source};

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
        memory: policy(r),
        guard: r.chance(30),
        main: source(r),
        persistent: source(r),
        ..IncrementalConfig::default()
    };
    let mut arena = IncrementalArena::new(&config);
    if arena.plan(&g).is_err() {
        return; // a tensor written after its last use: refused, as by TFLite
    }
    let count = g.tensor_count();
    let mut apart = apart(&[g.clone()]);
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
                if config.guard {
                    arena.guard_before(&g, n).unwrap();
                }
                kernel(&graphs, 0, n as u32, 0, &mut InArena(&arena, &g), &mut a);
                if config.guard {
                    arena.guard_after(&g, n).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                }
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
