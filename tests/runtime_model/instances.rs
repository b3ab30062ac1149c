//! Instances: runs that are begun, interleaved node by node and ended in any order, on arenas of a pool or a source.

use std::sync::Arc;

use arenite::error::Kind;
use arenite::graph::liveness::Options;
use arenite::graph::lower::{lower, persistent};
use arenite::graph::owned::Graph;
use arenite::graph::tables::Tables;
use arenite::planner::{plan, Options as PlanOptions, Strategy};
use arenite::runtime::arena::Layout;
use arenite::runtime::instances::{Instances, InstancesConfig, Run};
use arenite::runtime::session::TensorId;
use arenite::runtime::{Pool, PoolConfig, Supply};
use arenite::units::{Align, DEFAULT_ALIGN};

use super::runtime_support::{fill, hash, kernel, sequences, Apart, Memory, Random};
use super::{apart, program, same, source, variables};

struct InRun<'a>(&'a Run);

impl Memory for InRun<'_> {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize) {
        let found = self.0.resolve(id.subgraph as usize, id.tensor as usize).unwrap();
        found.map_or((std::ptr::null_mut(), 0), |(p, n)| (p.as_ptr(), n))
    }
}

fn layout(r: &mut Random, graphs: &[Graph]) -> Layout {
    let options =
        Options { in_place: r.chance(85), align: Align::new(*r.pick(&[1, 16, 128])).unwrap(), ..Options::default() };
    let strategy = *r.pick(&[Strategy::GreedyBySize, Strategy::TflmGreedy, Strategy::FirstFit, Strategy::Auto]);
    let lowered = lower(graphs, 0, &options, &[]).unwrap();
    let kept = persistent(graphs, DEFAULT_ALIGN, &[&lowered.lives]).unwrap();
    let p = plan(&lowered.problem, &PlanOptions { effort: Some(300), ..PlanOptions::of(strategy) }).unwrap();
    Layout::of(graphs, &lowered, &kept, &p)
}

/// One instance as it should be, with the run it is in.
struct Instance {
    apart: Apart,
    run: Option<(Run, u32, u64)>,
}

fn sequence(seed: u64) {
    let r = &mut Random::new(seed ^ 0x1234_5678);
    let graphs = program(r);
    let nodes = graphs[0].node_count() as u32;
    let layout = layout(r, &graphs);
    let arena_bytes = layout.main_bytes as usize;
    let (count, arenas) = (1 + r.below(4) as usize, 1 + r.below(3) as usize);
    let pool = r.chance(50).then(|| Arc::new(Pool::new(PoolConfig::default()).unwrap()));
    let supply = |r: &mut Random| pool.clone().map_or_else(|| source(r).into(), Supply::Pool);
    let (main, kept) = (supply(r), supply(r));
    let config = InstancesConfig { main, persistent: kept, ..InstancesConfig::new(count, arenas) };
    let set = Instances::new(layout, config).unwrap();
    let mut all: Vec<Instance> = (0..count).map(|_| Instance { apart: apart(&graphs), run: None }).collect();
    let state = variables(&graphs);
    for step in 0..20 + r.below(40) {
        let i = r.below(count as u64) as usize;
        let running = all.iter().filter(|x| x.run.is_some()).count();
        let instance = &mut all[i];
        match &mut instance.run {
            None => match set.try_acquire(i) {
                Ok(run) => {
                    assert!(running < arenas, "seed {seed}: more arenas than there are");
                    for &t in graphs[0].inputs() {
                        let id = TensorId::new(0, t as u32);
                        fill(&mut InRun(&run), id, seed + step);
                        fill(&mut instance.apart, id, seed + step);
                    }
                    instance.run = Some((run, 0, r.next()));
                }
                Err(e) => assert!(e.kind == Kind::Busy && running == arenas, "seed {seed}: {e}"),
            },
            Some((run, at, choice)) if *at < nodes && !r.chance(3) => {
                assert_eq!(set.try_acquire(i).unwrap_err().kind, Kind::Busy);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                kernel(&graphs, 0, *at, *choice, &mut InRun(run), &mut a);
                kernel(&graphs, 0, *at, *choice, &mut instance.apart, &mut b);
                same(&a, &b, &format!("seed {seed} step {step}"));
                *at += 1;
            }
            Some((run, at, _)) => {
                let outputs = graphs[0].outputs().iter().map(|&t| TensorId::new(0, t as u32));
                let whole = outputs.filter(|_| *at == nodes);
                for id in whole.chain(state.iter().copied()) {
                    let (real, expected) = (hash(&mut InRun(run), id), hash(&mut instance.apart, id));
                    assert_eq!(real, expected, "seed {seed} step {step}: {id:?}");
                }
                instance.run = None;
                if r.chance(20) {
                    set.trim();
                    assert_eq!(set.stats().committed_bytes, (running - 1) * arena_bytes);
                }
            }
        }
    }
    drop(all);
    let stats = set.stats();
    assert_eq!((stats.running, stats.peak <= arenas), (0, true));
    drop(set);
    assert!(pool.is_none_or(|p| p.stats().heap.blocks == 0), "seed {seed}: not all came back to the pool");
}

#[test]
fn instances_do_what_one_buffer_per_tensor_does() {
    let n = sequences(10_000);
    (1..=n).for_each(sequence);
    println!("{n} instance sequences, 0 differences");
}
