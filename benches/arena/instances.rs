//! Many instances of one model on several threads.

use std::time::{Duration, Instant};

use arenite::graph::liveness::Options as GraphOptions;
use arenite::graph::lower::{lower, persistent};
use arenite::graph::owned::Graph;
use arenite::model::Model;
use arenite::planner::{plan, Options};
use arenite::runtime::arena::{Arena, Layout};
use arenite::runtime::instances::{Instances, InstancesConfig};
use arenite::runtime::source::Source;
use arenite::runtime::stats::resident_bytes;
use arenite::runtime::{Pool, PoolConfig, Supply};
use arenite::units::DEFAULT_ALIGN;

use super::{calls, touch};

fn layout() -> Layout {
    let model = Model::mobilenet_v2(224).unwrap();
    let graphs = [Graph::copy_of(&model.subgraphs[0]).unwrap()];
    let lowered = lower(&graphs, 0, &GraphOptions::default(), &[]).unwrap();
    let p = plan(&lowered.problem, &Options::default()).unwrap();
    let kept = persistent(&graphs, DEFAULT_ALIGN, &[&lowered.lives]).unwrap();
    Layout::of(&graphs, &lowered, &kept, &p)
}

pub fn print() {
    const INSTANCES: usize = 16;
    const THREADS: usize = 4;
    const RUNS: usize = 400;
    let layout = layout();
    let tensors = layout.slots[0].len();
    println!("{INSTANCES} instances of MobileNetV2-224 on {THREADS} threads, {RUNS} runs each thread");
    println!(
        "{:<28} {:>16} {:>14} {:>14} {:>12} {:>10}",
        "", "committed bytes", "heap calls", "heap calls/s", "runs/s", "RSS MB"
    );
    let report = |name: &str, committed: usize, heap: u64, took: Duration| {
        let s = took.as_secs_f64();
        let rss = resident_bytes().map_or(0.0, |b| b as f64 / 1e6);
        let runs = (RUNS * THREADS) as f64 / s;
        println!("{name:<28} {committed:>16} {heap:>14} {:>14.1} {runs:>12.0} {rss:>10.1}", heap as f64 / s);
    };
    let timed = |job: &(dyn Fn(usize, usize) + Sync)| {
        // One round first, so that arenas exist and what is measured is the steady state.
        for thread in 0..THREADS {
            job(thread, 0);
        }
        let gate = std::sync::Barrier::new(THREADS + 1);
        let done = std::sync::Barrier::new(THREADS + 1);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (gate, done) = (&gate, &done);
                scope.spawn(move || {
                    gate.wait();
                    (0..RUNS).for_each(|round| job(thread, round));
                    done.wait();
                });
            }
            let heap = calls();
            gate.wait();
            let start = Instant::now();
            done.wait();
            (calls() - heap, start.elapsed())
        })
    };
    let pool = std::sync::Arc::new(Pool::new(PoolConfig::default()).unwrap());
    let leased = InstancesConfig { main: Supply::Pool(pool), ..InstancesConfig::new(INSTANCES, 4) };
    let rows = [
        ("4 arenas lent", InstancesConfig::new(INSTANCES, 4)),
        ("4 arenas leased from a pool", leased),
        ("2 arenas lent", InstancesConfig::new(INSTANCES, 2)),
    ];
    for (name, config) in rows {
        let set = Instances::new(layout.clone(), config).unwrap();
        let (heap, took) = timed(&|thread, round| {
            let run = set.acquire(thread * 4 + round % 4).unwrap();
            (0..tensors).for_each(|t| touch(run.resolve(0, t).unwrap()));
        });
        report(name, set.stats().committed_bytes, heap, took);
    }
    let arenas: Vec<std::sync::Mutex<Arena>> = (0..INSTANCES)
        .map(|_| std::sync::Mutex::new(Arena::new(layout.clone(), Source::System, Source::System)))
        .collect();
    arenas.iter().for_each(|a| a.lock().unwrap().commit().unwrap());
    let (heap, took) = timed(&|thread, round| {
        let arena = arenas[thread * 4 + round % 4].lock().unwrap();
        (0..tensors).for_each(|t| touch(arena.resolve(0, t).unwrap()));
    });
    report("16 arenas, one each", INSTANCES * layout.main_bytes as usize, heap, took);
    let (heap, took) = timed(&|thread, round| {
        let _ = (thread, round);
        let mut arena = Arena::new(layout.clone(), Source::System, Source::System);
        arena.commit().unwrap();
        (0..tensors).for_each(|t| touch(arena.resolve(0, t).unwrap()));
    });
    report("an arena per run", THREADS * layout.main_bytes as usize, heap, took);
}
