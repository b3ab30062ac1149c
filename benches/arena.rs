//! What changing shapes, control flow and many instances cost. Prints tables:
//!
//! ```text
//! cargo bench --features model --bench arena            all of it
//! cargo bench --features model --bench arena -- stream  one of stream, control, instances
//! ```
//!
//! Heap calls are those of the whole program, counted by its allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arenite::graph::incremental::Sharing;
use arenite::graph::liveness::Options as GraphOptions;
use arenite::graph::lower::lower;
use arenite::graph::owned::{CallKind, Graph, NodeSpec};
use arenite::graph::tables::Tables;
use arenite::model::Model;
use arenite::planner::{plan, Options, Strategy};
use arenite::runtime::arena::{Arena, Layout as ArenaLayout, Place, Slot};
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::instances::{Instances, InstancesConfig};
use arenite::runtime::session::{Replan, Session, SessionConfig, TensorId};
use arenite::runtime::source::Source;
use arenite::runtime::stats::resident_bytes;
use arenite::runtime::store::{MemoryPolicy, Shrink};
use arenite::units::{Align, DEFAULT_ALIGN};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

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
    let (peak, _) = a.usage();
    Row {
        name: "only grows, old + new (TFLite's way)",
        times,
        heap: calls() - heap - 3,
        plans,
        peak: peak as u64,
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

fn bench_stream() {
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

fn bench_control() {
    let Some(dir) = corpus() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "tgt"));
    files.sort();
    println!("graph tables with subgraphs: one problem on the caller's time line against one arena per subgraph");
    println!("{:<44} {:>9} {:>14} {:>14} {:>8}", "", "subgraphs", "one problem", "one each", "saved");
    let options = Options { effort: Some(20_000), ..Options::of(Strategy::Auto) };
    let graph_options = GraphOptions::default();
    let (mut one_sum, mut each_sum) = (0u64, 0u64);
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
        for &entry in &entries {
            let lowered = lower(&model.subgraphs, entry, &graph_options, &[]).unwrap();
            one = one.max(plan(&lowered.problem, &options).unwrap().arena_bytes);
            for at in lowered.timeline.steps() {
                reached[at.subgraph as usize] = true;
            }
        }
        let each: u64 = (0..n)
            .filter(|&g| reached[g])
            .map(|g| {
                let graphs = [alone(&model.subgraphs[g])];
                let lowered = lower(&graphs, 0, &graph_options, &[]).unwrap();
                plan(&lowered.problem, &options).unwrap().arena_bytes
            })
            .sum();
        let saved = if each == 0 { 0.0 } else { 100.0 * (1.0 - one as f64 / each as f64) };
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        println!("{name:<44} {n:>9} {one:>14} {each:>14} {saved:>7.1}%");
        (one_sum, each_sum) = (one_sum + one, each_sum + each);
    }
    println!("{:<44} {:>9} {one_sum:>14} {each_sum:>14}", "sum", "");
}

fn layout() -> ArenaLayout {
    let model = Model::mobilenet_v2(224).unwrap();
    let graphs = [Graph::copy_of(&model.subgraphs[0]).unwrap()];
    let lowered = lower(&graphs, 0, &GraphOptions::default(), &[]).unwrap();
    let p = plan(&lowered.problem, &Options::default()).unwrap();
    let slot = |t: usize| Slot {
        place: lowered.offset(&p, 0, t).map_or(Place::None, |offset| Place::Main { offset }),
        bytes: graphs[0].tensor(t).bytes.unwrap_or(0),
    };
    ArenaLayout {
        main_bytes: p.arena_bytes,
        main_align: p.align.max(DEFAULT_ALIGN),
        persistent_bytes: 0,
        persistent_align: DEFAULT_ALIGN,
        slots: vec![(0..graphs[0].tensor_count()).map(slot).collect()],
    }
}

/// Writes the first and last byte of every page of a tensor, as an operator would touch it.
fn touch(found: Option<(std::ptr::NonNull<u8>, usize)>) {
    let Some((data, bytes)) = found else { return };
    for at in (0..bytes).step_by(4096) {
        // SAFETY: `at` lies in the tensor.
        let byte = unsafe { data.as_ptr().add(at) };
        // SAFETY: as above, and this thread alone uses the tensor.
        unsafe { byte.write_volatile(1) };
    }
}

fn bench_instances() {
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
    for arenas in [4, 2] {
        let set = Instances::new(layout.clone(), InstancesConfig::new(INSTANCES, arenas)).unwrap();
        let (heap, took) = timed(&|thread, round| {
            let run = set.acquire(thread * 4 + round % 4).unwrap();
            (0..tensors).for_each(|t| touch(run.resolve(0, t).unwrap()));
        });
        report(&format!("{arenas} arenas lent"), set.stats().committed_bytes, heap, took);
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

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if run("stream") {
        bench_stream();
    }
    if run("control") {
        bench_control();
    }
    if run("instances") {
        bench_instances();
    }
}
