//! Real models, where the corpus is at hand: `$ARENITE_SHARED/corpus`, else `../shared/corpus`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use arenite::planner::check::check;
use arenite::planner::{plan, BufferSpec, Options, Problem, Strategy};
use arenite::units::Align;

fn corpus() -> Option<PathBuf> {
    let base = std::env::var_os("ARENITE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let folder = base.join("corpus");
    if folder.join("models/index.csv").exists() {
        return Some(folder);
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: no corpus at {}", folder.display());
    None
}

/// A problem CSV; with `round` the sizes are rounded up to the alignment first.
fn load(path: &Path, align: u64, round: bool) -> Problem {
    let align = Align::new(align).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().skip(1).filter(|l| !l.is_empty()) {
        let v: Vec<u64> = line.split(',').skip(1).map(|c| c.parse().unwrap()).collect();
        rows.push((v[0] as u32, v[1] as u32, v[2]));
    }
    let end = rows.iter().map(|r| r.1).max().unwrap_or(0);
    let mut p = Problem::new();
    for (lower, upper, size) in rows {
        let size = if round { align.round_up(size).unwrap() } else { size };
        p.add_one(BufferSpec::new(size, align).kept(lower == 0 && upper == end), lower, upper - 1).unwrap();
    }
    p
}

fn problems(folder: &Path) -> Vec<PathBuf> {
    let csv = |p: &PathBuf| p.extension().is_some_and(|e| e == "csv") && !p.ends_with("index.csv");
    let mut out: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(csv).collect();
    out.sort();
    out
}

#[test]
fn every_real_model_is_packed_at_its_bound() {
    let Some(corpus) = corpus() else { return };
    let mut count = 0;
    for path in problems(&corpus.join("models")) {
        for align in [64, 128] {
            let p = load(&path, align, false);
            let found = plan(&p, &Options::default()).unwrap();
            assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
            assert!(found.optimal, "{} at {align}: {} over {}", path.display(), found.arena_bytes, found.lower_bound);
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn the_greedy_rules_make_the_arenas_of_the_index() {
    let Some(corpus) = corpus() else { return };
    let index = std::fs::read_to_string(corpus.join("models/index.csv")).unwrap();
    let head: Vec<&str> = index.lines().next().unwrap().split(',').collect();
    let column = |name| head.iter().position(|h| *h == name).unwrap();
    let (first_use, best_gap) = (column("firstuse64_io"), column("bestgap64_io"));
    for line in index.lines().skip(1) {
        let v: Vec<&str> = line.split(',').collect();
        let path = corpus.join(format!("models/{}.sg{}.io.csv", v[0], v[1]));
        if !path.exists() {
            continue;
        }
        let p = load(&path, 64, true);
        for (strategy, at) in [(Strategy::FirstFit, first_use), (Strategy::GreedyBySize, best_gap)] {
            let Ok(want) = v[at].parse::<u64>() else { continue };
            let found = plan(&p, &Options::of(strategy)).unwrap().arena_bytes;
            assert_eq!(found, want, "{} by {}", path.display(), strategy.name());
        }
    }
}

#[test]
fn the_hard_instances_fit_where_they_are_known_to() {
    let Some(corpus) = corpus() else { return };
    for path in problems(&corpus.join("minimalloc")) {
        let p = load(&path, 1, false);
        let capacity = if path.to_string_lossy().contains("input") { 12 } else { 1 << 20 };
        let options = Options { capacity: Some(capacity), effort: Some(200_000), ..Options::of(Strategy::Exact) };
        let found = plan(&p, &options).unwrap();
        assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
        assert!(found.arena_bytes <= capacity, "{}: {}", path.display(), found.arena_bytes);
    }
}

#[test]
fn large_public_instances_are_within_a_thousandth() {
    let Some(corpus) = corpus() else { return };
    for path in problems(&corpus.join("idealloc")).into_iter().chain(problems(&corpus.join("iopddl"))) {
        let p = load(&path, 1, false);
        let found = plan(&p, &Options::default()).unwrap();
        assert_eq!(check(&p, &found.offsets), Ok(found.arena_bytes));
        let most = if path.ends_with("S_1.csv") { 1.001 } else { 1.0 };
        assert!(found.ratio() <= most, "{}: {}", path.display(), found.ratio());
    }
}
