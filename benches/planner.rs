//! Arena over bound and time for every strategy: `cargo bench --bench planner [-- --quick]`.
//!
//! Real models, the hard public instances and seeded synthetic families up to a million buffers, with the memory used per
//! buffer while planning. Files are looked for in `$ARENITE_SHARED/corpus`, else in `../shared/corpus`.

#[path = "planner/families.rs"]
mod families;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use arenite::planner::check::check;
use arenite::planner::{plan_with, BufferSpec, Options, Plan, Problem, Strategy};
use arenite::units::Align;

/// Counts live bytes and their peak.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises about `layout` are the ones `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `ptr` came from `System` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Run {
    plan: Plan,
    seconds: f64,
    /// Seconds until the best plan was first seen; search is looked at every few hundred nodes.
    to_best: f64,
    /// Bytes allocated at most while planning.
    peak: usize,
}

/// The median of up to `times` runs (one where a run takes long).
fn run(problem: &Problem, options: &Options, times: usize) -> Run {
    let mut seconds = Vec::new();
    let mut last = None;
    let (mut peak, mut to_best) = (0, 0.0);
    for _ in 0..times {
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let start = Instant::now();
        let mut seen = (u64::MAX, 0.0);
        let found = plan_with(problem, options, &mut |p| {
            if p.arena_bytes < seen.0 {
                seen = (p.arena_bytes, start.elapsed().as_secs_f64());
            }
            ControlFlow::Continue(())
        });
        let plan = found.expect("a plan");
        seconds.push(start.elapsed().as_secs_f64());
        to_best = if seen.0 == plan.arena_bytes { seen.1 } else { seconds[seconds.len() - 1] };
        peak = PEAK.load(Relaxed) - before;
        last = Some(plan);
        if seconds.iter().sum::<f64>() > 1.0 {
            break;
        }
    }
    seconds.sort_by(f64::total_cmp);
    let plan = last.expect("at least one run");
    assert_eq!(check(problem, &plan.offsets), Ok(plan.arena_bytes), "an invalid plan");
    Run { plan, seconds: seconds[seconds.len() / 2], to_best, peak }
}

fn row(name: &str, n: usize, strategy: &str, r: &Run) {
    println!(
        "{name:24} {n:>8} {strategy:15} {:>15} {:>15} {:.5} {:8} {:>11.3} {:>11.3} {:>11} {:>9} {:>7.0} {}",
        r.plan.arena_bytes,
        r.plan.lower_bound,
        r.plan.ratio(),
        if r.plan.optimal { "optimal" } else { "open" },
        r.seconds * 1e3,
        r.to_best * 1e3,
        if r.plan.optimal { format!("{:.3}", r.seconds * 1e3) } else { "-".into() },
        r.plan.stats.nodes,
        r.peak as f64 / n.max(1) as f64,
        r.plan.strategy.name(),
    );
}

fn head(title: &str) {
    println!("\n== {title}");
    println!(
        "{:24} {:>8} {:15} {:>15} {:>15} {:7} {:8} {:>11} {:>11} {:>11} {:>9} {:>7} by",
        "instance",
        "buffers",
        "strategy",
        "arena",
        "bound",
        "ratio",
        "proof",
        "ms",
        "ms to best",
        "ms to proof",
        "nodes",
        "B/buf"
    );
}

fn load(path: &Path, align: u64) -> Problem {
    let text = std::fs::read_to_string(path).expect("readable");
    let mut p = Problem::new();
    for line in text.lines().skip(1).filter(|l| !l.is_empty()) {
        let mut cells = line.split(',').skip(1).map(|c| c.trim().parse::<u64>().expect("a number"));
        let mut next = || cells.next().expect("four columns");
        let (lower, upper, size) = (next(), next(), next());
        let spec = BufferSpec::new(size, Align::new(align).expect("a power of two"));
        p.add_one(spec, lower as u32, upper as u32 - 1).expect("a valid row");
    }
    p
}

fn files(folder: &str) -> Vec<PathBuf> {
    let base = std::env::var_os("ARENITE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let folder = base.join("corpus").join(folder);
    let mut found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|d| {
            d.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "csv")).collect()
        })
        .unwrap_or_default();
    if found.is_empty() {
        println!("SKIPPED: {} holds no problems", folder.display());
    }
    found.sort();
    found
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().chars().take(24).collect())
}

fn models(times: usize) {
    head("real models, all strategies: sums and worst cases");
    for align in [64, 128] {
        for kind in ["inter", "io"] {
            let problems: Vec<Problem> =
                files("models").iter().filter(|p| stem_of(p).ends_with(kind)).map(|p| load(p, align)).collect();
            if problems.is_empty() {
                continue;
            }
            for strategy in Strategy::ALL {
                let (mut above, mut proven, mut worst, mut total) = (0, 0, 1f64, 0.0);
                let mut times_ms: Vec<f64> = Vec::new();
                for p in &problems {
                    let r = run(p, &Options::of(strategy), times);
                    above += usize::from(!r.plan.optimal);
                    proven += usize::from(r.plan.optimal);
                    // Rounded up as the plan's alignment has it: raw bytes of a model of two tensors say little.
                    let up = |bytes: u64| r.plan.align.round_up(bytes).unwrap_or(bytes) as f64;
                    worst = worst.max(up(r.plan.arena_bytes) / up(r.plan.lower_bound).max(1.0));
                    total += r.seconds * 1e3;
                    times_ms.push(r.seconds * 1e3);
                }
                times_ms.sort_by(f64::total_cmp);
                println!(
                    "{kind:5} align {align:3} {:15} problems {:3} above bound {above:3} proven {:5.1} % worst ratio {worst:.4} \
                     median {:.4} ms worst {:.3} ms total {total:.2} ms",
                    strategy.name(),
                    problems.len(),
                    100.0 * proven as f64 / problems.len() as f64,
                    times_ms[times_ms.len() / 2],
                    times_ms[times_ms.len() - 1],
                );
            }
        }
    }
}

fn stem_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

fn hard(quick: bool) {
    let paths: Vec<PathBuf> = files("minimalloc").into_iter().filter(|p| !stem_of(p).starts_with("input")).collect();
    head("minimalloc A..K: does 1,048,576 suffice?");
    // Times of MiniMalloc on the machine the figures were first taken on, in seconds.
    let theirs = [8.04, 6.26, 1.12, 4.62, 5.77, 9.80, 2.20, 2.49, 6.00, 1.64, 1.13];
    let mut total = 0.0;
    for (path, theirs) in paths.iter().zip(theirs) {
        let p = load(path, 1);
        let options = Options { capacity: Some(1 << 20), ..Options::of(Strategy::Exact) };
        let r = run(&p, &options, 3);
        row(&stem(path), p.len(), "exact --capacity", &r);
        println!("{:24} {:.0} times faster than MiniMalloc's {theirs} s", "", theirs / r.seconds);
        total += r.seconds;
    }
    println!("all: {:.3} s", total);
    head("minimalloc A..K: smallest arena");
    for path in &paths {
        let p = load(path, 1);
        for strategy in Strategy::ALL {
            let effort = if strategy == Strategy::Exact { Some(if quick { 200_000 } else { 3_000_000 }) } else { None };
            if strategy == Strategy::Auto && quick {
                continue;
            }
            row(&stem(path), p.len(), strategy.name(), &run(&p, &Options { effort, ..Options::of(strategy) }, 1));
        }
    }
    head("idealloc and iopddl");
    for path in files("idealloc").iter().chain(&files("iopddl")) {
        let p = load(path, 1);
        for strategy in Strategy::ALL {
            let slow = p.len() > 20_000 && !matches!(strategy, Strategy::Auto);
            if !slow || !quick && strategy != Strategy::Exact {
                row(&stem(path), p.len(), strategy.name(), &run(&p, &Options::of(strategy), 3));
            }
        }
    }
}

fn synthetic(quick: bool) {
    head("synthetic families, growth");
    let sizes: &[usize] = if quick { &[1_000, 10_000] } else { &[1_000, 10_000, 50_000, 100_000, 1_000_000] };
    for name in families::NAMES {
        for &n in sizes {
            let p = families::make(name, n, 7);
            let mut auto = 0;
            for strategy in Strategy::ALL {
                let costly = n > 100_000 && !matches!(strategy, Strategy::Auto | Strategy::GreedyBySize);
                if strategy == Strategy::Exact || costly {
                    continue;
                }
                let r = run(&p, &Options::of(strategy), 5);
                row(name, p.len(), strategy.name(), &r);
                let arena = r.plan.align.round_up(r.plan.arena_bytes).unwrap_or(u64::MAX);
                match strategy {
                    Strategy::Auto => auto = arena,
                    _ => assert!(auto <= arena, "{name} {n}: auto is above {}", strategy.name()),
                }
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|a| a == "--quick");
    let wanted = |part: &str| {
        let named = |a: &String| ["--models", "--hard", "--synthetic"].contains(&a.as_str());
        !arguments.iter().any(named) || arguments.iter().any(|a| a[..].trim_start_matches('-') == part)
    };
    if wanted("models") {
        models(if quick { 1 } else { 5 });
    }
    if wanted("hard") {
        hard(quick);
    }
    if wanted("synthetic") {
        synthetic(quick);
    }
}
