//! A stream of frames in several resolutions.

use std::time::{Duration, Instant};

use arenite::graph::incremental::Sharing;
use arenite::graph::owned::Graph;
use arenite::graph::tables::Tables;
use arenite::model::Model;
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::session::{Replan, Session, SessionConfig, TensorId};
use arenite::runtime::store::{MemoryPolicy, Shrink};
use arenite::units::Align;

use super::calls;

const RESOLUTIONS: [u32; 8] = [160, 192, 224, 288, 320, 416, 512, 640];
const FRAMES: usize = 1000;

/// A stream that mostly shows small frames and now and then a large one; the last hundred are small.
fn stream() -> Vec<usize> {
    let mut state = 12345u64;
    let mut at = 0usize;
    (0..FRAMES)
        .map(|i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if i % 5 == 0 {
                at = (state % 8) as usize;
            }
            if i >= FRAMES - 100 {
                at = i % 2;
            }
            at
        })
        .collect()
}

struct Row {
    name: &'static str,
    times: Vec<Duration>,
    heap: u64,
    plans: u64,
    peak: u64,
    last: u64,
    generations: u64,
}

fn print_stream(mut rows: Vec<Row>) {
    println!(
        "{FRAMES} frames over 8 resolutions of MobileNetV2 1.0 f32, 160 to 640 pixels; times of frames that switch"
    );
    println!(
        "{:<34} {:>10} {:>6} {:>12} {:>12} {:>14} {:>14} {:>12}",
        "", "heap calls", "plans", "median us", "worst us", "peak bytes", "final bytes", "generations"
    );
    for r in &mut rows {
        r.times.sort_unstable();
        let us = |d: Duration| d.as_nanos() as f64 / 1000.0;
        println!(
            "{:<34} {:>10} {:>6} {:>12.2} {:>12.2} {:>14} {:>14} {:>12}",
            r.name,
            r.heap,
            r.plans,
            us(r.times[r.times.len() / 2]),
            us(r.times[r.times.len() - 1]),
            r.peak,
            r.last,
            r.generations
        );
    }
}

fn sizes() -> (Graph, Vec<Vec<u64>>) {
    let graphs: Vec<Graph> =
        RESOLUTIONS.iter().map(|&r| Graph::copy_of(&Model::mobilenet_v2(r).unwrap().subgraphs[0]).unwrap()).collect();
    let of = |g: &Graph| (0..g.tensor_count()).map(|t| g.tensor(t).bytes.unwrap()).collect();
    (graphs[0].clone(), graphs.iter().map(of).collect())
}

fn session_row(name: &'static str, config: SessionConfig, reserve: bool) -> Row {
    let (graph, sizes) = sizes();
    let changing: Vec<usize> = (0..graph.tensor_count()).filter(|&t| sizes[0][t] != sizes[7][t]).collect();
    let mut s = Session::new(vec![graph], 0, config).unwrap();
    if reserve {
        let sets: Vec<Vec<(TensorId, u64)>> =
            sizes.iter().map(|z| changing.iter().map(|&t| (TensorId::new(0, t as u32), z[t])).collect()).collect();
        let sets: Vec<&[(TensorId, u64)]> = sets.iter().map(|x| &x[..]).collect();
        s.reserve(&sets).unwrap();
        s.commit().unwrap();
    }
    let (heap, generation) = (calls(), s.generation());
    let mut times = Vec::with_capacity(FRAMES);
    let own = calls() - heap;
    let mut before = usize::MAX;
    for at in stream() {
        let start = Instant::now();
        for &t in &changing {
            s.resize(TensorId::new(0, t as u32), sizes[at][t]).unwrap();
        }
        s.commit().unwrap();
        if at != before {
            times.push(start.elapsed());
        }
        before = at;
    }
    let stats = s.stats();
    Row {
        name,
        times,
        // The list of frames is the program's own: one allocation and its release.
        heap: calls() - heap - own - 2,
        plans: stats.plans,
        peak: stats.high_water,
        last: stats.committed_bytes,
        generations: s.generation() - generation,
    }
}

fn only_grows_row() -> Row {
    let (mut graph, sizes) = sizes();
    let config = IncrementalConfig {
        align: Align::new(64).unwrap(),
        sharing: Sharing::Tflite,
        memory: MemoryPolicy { keep_on_failure: true, ..MemoryPolicy::default() },
        ..IncrementalConfig::default()
    };
    let mut a = IncrementalArena::new(&config);
    a.plan(&graph).unwrap();
    let last = graph.node_count() as i32 - 1;
    let heap = calls();
    let mut times = Vec::with_capacity(FRAMES);
    let mut before = usize::MAX;
    let mut plans = 0;
    for at in stream() {
        let start = Instant::now();
        if at != before {
            for (t, &bytes) in sizes[at].iter().enumerate() {
                graph.tensor_mut(t).unwrap().bytes = Some(bytes);
            }
            a.reset();
            a.execute(&graph, 0, last).unwrap();
            plans += 1;
        }
        if at != before {
            times.push(start.elapsed());
        }
        before = at;
    }
    let peak = a.stats().high_water;
    Row {
        name: "only grows, old + new (TFLite's way)",
        times,
        heap: calls() - heap - 3,
        plans,
        peak,
        last: a.allocation_info().0 as u64,
        generations: a.generation(),
    }
}

/// Three times the same, each frame's fastest: what else runs on the machine is not what is measured.
fn thrice(row: impl Fn() -> Row) -> Row {
    let mut best = row();
    for _ in 0..2 {
        for (a, b) in best.times.iter_mut().zip(row().times) {
            *a = b.min(*a);
        }
    }
    best
}

pub fn print() {
    let shrink = MemoryPolicy { shrink: Shrink::After { commits: 20, percent: 50 }, ..MemoryPolicy::default() };
    let base = SessionConfig::default;
    let session = |name, config: SessionConfig, reserve| thrice(|| session_row(name, config.clone(), reserve));
    let rows = vec![
        session("cache", base(), false),
        session("cache, reserved", base(), true),
        session("cache, smallest plans", SessionConfig { replan: Replan::Smallest, ..base() }, false),
        session("cache, shrink after 20 at 50 %", SessionConfig { memory: shrink, ..base() }, false),
        session(
            "cache, smallest, shrink after 20",
            SessionConfig { memory: shrink, replan: Replan::Smallest, ..base() },
            false,
        ),
        session("no cache, offsets kept", SessionConfig { cached_plans: 0, ..base() }, false),
        session("no cache, planned anew", SessionConfig { cached_plans: 0, replan: Replan::Smallest, ..base() }, false),
        thrice(only_grows_row),
    ];
    print_stream(rows);
}
