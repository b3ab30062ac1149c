//! What the model tests share: where the corpus is, and the planning rows a graph table stands for.
#![allow(dead_code)] // each test program uses its part

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use arenite::model::{Subgraph, TensorKind};

/// The five real models and the graph table of each.
pub const MODELS: [(&str, &str); 5] = [
    ("hello_world_int8", "tflm_hello_world_int8"),
    ("micro_speech_quantized", "tflm_micro_speech_quantized"),
    ("person_detect", "tflm_person_detect"),
    ("face_detection_short_range", "mp_face_detection_short_range"),
    ("esphome_vad", "esphome_v2_vad"),
];

/// The folder with the corpus: `ARENITE_SHARED`, else `../shared`. Says so where there is none.
pub fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let dir = std::env::var_os("ARENITE_SHARED").map_or_else(beside, PathBuf::from);
    if dir.join("corpus").is_dir() {
        return Some(dir);
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: no corpus at {} (set ARENITE_SHARED)", dir.display());
    None
}

pub fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files in `dir` that end in `.ext`, by name.
pub fn files(dir: &Path, ext: &str) -> Vec<PathBuf> {
    let list = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<_> =
        list.map(|f| f.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == ext)).collect();
    files.sort();
    files
}

/// `id, lower, upper, size`, lifetimes half-open.
pub type Row = (String, u64, u64, u64);

/// The planning problem of a graph by the rules of the corpus: a tensor lives from the node that writes it to the last
/// that reads it; with `io`, inputs live throughout and outputs to the end.
pub fn rows(graph: &Subgraph, io: bool) -> Vec<Row> {
    let end = graph.nodes.len().max(1) as u64;
    let (mut lower, mut upper) = (HashMap::new(), HashMap::new());
    for (i, node) in (0u64..).zip(&graph.nodes) {
        for &o in node.outputs.iter().filter(|&&o| o >= 0) {
            lower.entry(o).or_insert(i);
            upper.insert(o, i + 1);
        }
        for t in node.inputs.iter().filter(|t| lower.contains_key(t)) {
            upper.insert(*t, i + 1);
        }
    }
    let mut rows = Vec::new();
    for (i, t) in (0i32..).zip(&graph.tensors) {
        let size = t.bytes.unwrap_or(0);
        let (first, last) = match t.kind {
            _ if size == 0 => continue,
            TensorKind::Input if io => (0, end),
            TensorKind::Inter if !graph.outputs.contains(&i) => (lower[&i], upper[&i]),
            TensorKind::Inter if io => (lower[&i], end),
            _ => continue,
        };
        rows.push((i.to_string(), first, last, size));
    }
    rows
}

/// Numbers that look random and are the same in every run (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}
