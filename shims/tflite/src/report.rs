//! What every planner did, and the file that says so.

use std::path::Path;
use std::sync::{Mutex, Once};

use serde_json::{json, Value};

use crate::settings::{say, settings};

/// Figures of one planner, which is one subgraph of one interpreter.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The strategy asked for; `host` where TFLite's planner is only watched.
    pub strategy: &'static str,
    /// The rule that made the plan in force.
    pub placed_by: &'static str,
    /// Alignment of every tensor.
    pub alignment: u64,
    /// Tensors of the subgraph.
    pub tensors: usize,
    /// Nodes in the execution plan.
    pub nodes: usize,
    /// Buffers in the arena, where the graph was planned as a whole.
    pub buffers: usize,
    /// The sum of their sizes.
    pub total_bytes: u64,
    /// Bytes of the arena in use.
    pub arena_bytes: u64,
    /// The most it ever was.
    pub peak_arena_bytes: u64,
    /// Bytes held for it.
    pub held_bytes: u64,
    /// Bytes that TFLite's rule needs for the same tensors, at the same alignment.
    pub tflite_bytes: u64,
    /// The most that ever was.
    pub peak_tflite_bytes: u64,
    /// No plan needs less.
    pub lower_bound: u64,
    /// No smaller arena exists.
    pub optimal: bool,
    /// Bytes of the persistent arena.
    pub persistent_bytes: u64,
    /// Whether the last execution planned the graph as a whole.
    pub whole: bool,
    /// Calls by the host.
    pub plans: u64,
    /// Calls by the host.
    pub executes: u64,
    /// Calls by the host.
    pub resets: u64,
    /// Calls by the host: resets after a node.
    pub partial_resets: u64,
    /// Nanoseconds of processor time in lifetimes.
    pub plan_ns: u64,
    /// Nanoseconds of processor time in placement and in taking memory.
    pub execute_ns: u64,
    /// Plans that passed the check.
    pub verified: u64,
}

/// One planner's place in the report.
#[derive(Debug)]
pub struct Entry {
    interpreter: u32,
    key: usize,
    subgraph: i32,
    library: &'static str,
    figures: Figures,
    alive: bool,
    /// The profile recorded last, written to a file of its own.
    profile: Option<Value>,
    /// The plan as a picture.
    picture: Option<String>,
}

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// Writes at once for so many changes, later only when a planner ends and at the end of the process: a loop may plan
/// thousands of times.
const EAGER: u64 = 32;

fn entries() -> std::sync::MutexGuard<'static, Vec<Entry>> {
    ENTRIES.lock().unwrap_or_else(|e| e.into_inner())
}

/// Enters a planner; `None` where nobody wants to read about it. `key` is shared by the subgraphs of an interpreter while it
/// lives; 0 where nothing is known.
pub fn enter(library: &'static str, key: usize, subgraph: i32, figures: Figures) -> Option<usize> {
    if settings().report.is_none() && settings().record.is_none() {
        return None;
    }
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        extern "C" fn at_exit() {
            // A panic must not leave this function; there is nobody to tell.
            let _ = std::panic::catch_unwind(write_all);
        }
        // SAFETY: the function lives as long as the library, which nobody unloads (the host's constructor is in it).
        unsafe { libc::atexit(at_exit) };
    });
    let mut all = entries();
    let next = all.iter().map(|e| e.interpreter + 1).max().unwrap_or(0);
    let same = |e: &&Entry| key != 0 && e.key == key && e.alive;
    let interpreter = all.iter().find(same).map_or(next, |e| e.interpreter);
    all.push(Entry { interpreter, key, subgraph, library, figures, alive: true, profile: None, picture: None });
    Some(all.len() - 1)
}

/// Brings an entry up to date and writes the files where they are not too many writes yet. `profile` and `picture` are
/// only called where they are wanted; the latter is told whether a page is wanted, not an SVG file.
pub fn update(
    entry: Option<usize>,
    figures: &Figures,
    profile: impl FnOnce() -> Value,
    picture: impl FnOnce(bool) -> Option<String>,
) {
    let Some(entry) = entry else { return };
    let s = settings();
    let mut all = entries();
    let e = &mut all[entry];
    e.figures = figures.clone();
    if s.record.is_some() {
        e.profile = Some(profile());
    }
    if let Some(page) = s.report.as_ref().and_then(|p| wants_picture(p)) {
        e.picture = picture(page);
    }
    if figures.executes <= EAGER {
        write(&all);
    }
}

/// The planner is no more.
pub fn leave(entry: Option<usize>, figures: &Figures) {
    let Some(entry) = entry else { return };
    let mut all = entries();
    let e = &mut all[entry];
    (e.figures, e.alive) = (figures.clone(), false);
    write(&all);
}

fn write_all() {
    write(&entries());
}

fn write(all: &[Entry]) {
    let s = settings();
    if let Some(path) = &s.report {
        if wants_picture(path).is_some() {
            let pictures = all.iter().filter_map(|e| e.picture.as_ref());
            pictures.enumerate().for_each(|(i, picture)| put(&numbered(path, i + 1), picture));
        } else {
            let is_json = has_extension(path, "json");
            put(path, &if is_json { pretty(&report_json(all)) } else { report_text(all) });
        }
    }
    if let Some(path) = &s.record {
        let interpreters = all.iter().filter(|e| e.profile.is_some()).map(|e| e.interpreter);
        let mut interpreters: Vec<u32> = interpreters.collect();
        interpreters.dedup();
        interpreters.sort_unstable();
        interpreters.dedup();
        for (i, interpreter) in interpreters.into_iter().enumerate() {
            put(&numbered(path, i + 1), &pretty(&profile_json(all, interpreter)));
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// Whether a report is a picture, and then whether it is a page.
fn wants_picture(path: &Path) -> Option<bool> {
    let page = has_extension(path, "html");
    (page || has_extension(path, "svg")).then_some(page)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Writes beside the file and renames, so that a reader never sees half of it.
fn put(path: &Path, text: &str) {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let done = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    static ONCE: Once = Once::new();
    if let Err(e) = done {
        let _ = std::fs::remove_file(&beside);
        ONCE.call_once(|| say(&format!("cannot write {}: {e}", path.display())));
    }
}

/// The first interpreter gets the name itself, the second `name.2.json`.
fn numbered(path: &Path, number: usize) -> std::path::PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let extension = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    path.with_extension(format!("{number}{extension}"))
}

fn report_json(all: &[Entry]) -> Value {
    let row = |e: &Entry| {
        let f = &e.figures;
        json!({
            "interpreter": e.interpreter,
            "subgraph": e.subgraph,
            "alive": e.alive,
            "strategy": f.strategy,
            "placed_by": f.placed_by,
            "alignment": f.alignment,
            "tensors": f.tensors,
            "nodes": f.nodes,
            "arena_bytes": f.arena_bytes,
            "peak_arena_bytes": f.peak_arena_bytes,
            "held_bytes": f.held_bytes,
            "tflite_bytes": f.tflite_bytes,
            "peak_tflite_bytes": f.peak_tflite_bytes,
            "persistent_bytes": f.persistent_bytes,
            "planned_whole": f.whole,
            "buffers": f.buffers,
            "total_bytes": f.total_bytes,
            "lower_bound": f.lower_bound,
            "optimal": f.optimal,
            "plans": f.plans,
            "executes": f.executes,
            "resets": f.resets,
            "partial_resets": f.partial_resets,
            "plan_ns": f.plan_ns,
            "execute_ns": f.execute_ns,
            "verified": f.verified,
        })
    };
    let sum = |of: fn(&Figures) -> u64| all.iter().map(|e| of(&e.figures)).fold(0, u64::saturating_add);
    json!({
        "format": "arenite-tflite-report",
        "version": 1,
        "library": all.first().map(|e| e.library),
        "arena_bytes": sum(|f| f.arena_bytes),
        "tflite_bytes": sum(|f| f.tflite_bytes),
        "planning_ns": sum(|f| f.plan_ns.saturating_add(f.execute_ns)),
        "xnnpack": crate::xnnpack::report(),
        "planners": all.iter().map(row).collect::<Vec<_>>(),
    })
}

fn report_text(all: &[Entry]) -> String {
    use std::fmt::Write;
    let mut out = String::from(
        "interpreter  subgraph  nodes  tensors        arena       TFLite's   persistent        bound  placed by       planning\n",
    );
    for e in all {
        let f = &e.figures;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>11}  {:>8}  {:>5}  {:>7}  {:>11}  {:>13}  {:>11}  {:>11}  {:<14}  {:.3} ms{}",
            e.interpreter,
            e.subgraph,
            f.nodes,
            f.tensors,
            f.arena_bytes,
            f.tflite_bytes,
            f.persistent_bytes,
            if f.whole { f.lower_bound.to_string() } else { "-".into() },
            if f.placed_by.is_empty() { f.strategy } else { f.placed_by },
            (f.plan_ns + f.execute_ns) as f64 / 1e6,
            if f.whole && f.optimal { ", the smallest possible" } else { "" },
        );
    }
    let sum = |of: fn(&Figures) -> u64| all.iter().map(|e| of(&e.figures)).fold(0, u64::saturating_add);
    let (ours, theirs) = (sum(|f| f.arena_bytes), sum(|f| f.tflite_bytes));
    let _ = writeln!(out, "together: {ours} bytes, TFLite's planner {theirs} bytes for the same tensors");
    let x = crate::xnnpack::report();
    if !x.is_null() {
        let (peak, memory) = (&x["peak_bytes"], x["memory"].as_str().unwrap_or_default());
        let _ = writeln!(
            out,
            "XNNPACK: {peak} bytes at the most, the largest block {}, from the {memory}",
            x["largest_bytes"]
        );
    }
    out
}

fn profile_json(all: &[Entry], interpreter: u32) -> Value {
    let mut subgraphs: Vec<&Entry> =
        all.iter().filter(|e| e.interpreter == interpreter && e.profile.is_some()).collect();
    // An interpreter that was prepared again has a new planner for the same subgraph: the last one counts.
    subgraphs.reverse();
    subgraphs.sort_by_key(|e| e.subgraph);
    subgraphs.dedup_by_key(|e| e.subgraph);
    json!({
        "format": "arenite-profile",
        "version": 1,
        "host": "tflite",
        "library": subgraphs.first().map(|e| e.library),
        "subgraphs": subgraphs.iter().map(|e| e.profile.clone()).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_interpreters_get_numbered_files() {
        assert_eq!(numbered(Path::new("a/p.json"), 1), Path::new("a/p.json"));
        assert_eq!(numbered(Path::new("a/p.json"), 2), Path::new("a/p.2.json"));
        assert_eq!(numbered(Path::new("a/p"), 3), Path::new("a/p.3"));
    }
}
