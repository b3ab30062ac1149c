//! What the command line's tests share: running the program, files, random numbers, graph tables.
#![allow(dead_code, reason = "every test program uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the program gave.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The JSON object on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e} in {:?}, stderr {:?}", head(&self.out), self.err))
    }

    /// The same with the exit code expected.
    #[track_caller]
    pub fn json_with(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}{}", head(&self.out), self.err);
        self.json()
    }
}

fn head(text: &str) -> String {
    text.chars().take(2000).collect()
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_arenite"))
}

/// Runs the program. It must end by itself, never by a panic or a signal.
#[track_caller]
pub fn arenite(args: &[&str]) -> Run {
    with_input(args, b"")
}

/// The same with something on standard input.
#[track_caller]
pub fn with_input(args: &[&str], input: &[u8]) -> Run {
    let mut child = program()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It need not read what it is given.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let done = child.wait_with_output().expect("the program ends");
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let run = Run { code: done.status.code().unwrap_or(-1), out: text(&done.stdout), err: text(&done.stderr) };
    assert!(!run.err.contains("panicked") && (0..=2).contains(&run.code), "{args:?}: {} {}", run.code, run.err);
    run
}

/// A directory of the test's own, gone at the end.
pub struct Temp(PathBuf);

impl Temp {
    pub fn new(name: &str) -> Temp {
        let dir = std::env::temp_dir().join(format!("arenite-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Temp(dir)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_string()
    }

    /// Writes a file, returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the file is written");
        path
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Real models and problems that are not in the repository; `None`, said loudly, where they are not there.
pub fn shared(under: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ARENITE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let dir = root.join(under);
    if dir.is_dir() {
        return Some(dir);
    }
    // Not by `eprintln!`, which the test harness keeps to itself where a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there; set ARENITE_SHARED", dir.display());
    None
}

/// Files of a directory with this ending, sorted.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the directory can be listed");
    let paths = entries.map(|e| e.expect("an entry").path());
    let mut list: Vec<_> = paths.filter(|p| p.to_str().is_some_and(|p| p.ends_with(ending))).collect();
    list.sort();
    list
}

/// Small numbers that look random and are the same every time.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// One subgraph of a graph table in the making.
#[derive(Default)]
pub struct Table {
    tensors: Vec<(&'static str, u64)>,
    nodes: Vec<String>,
    inputs: String,
    outputs: String,
}

impl Table {
    /// Tensors as kind and bytes.
    pub fn new(tensors: &[(&'static str, u64)], inputs: &str, outputs: &str) -> Table {
        Table { tensors: tensors.to_vec(), nodes: Vec::new(), inputs: inputs.into(), outputs: outputs.into() }
    }

    /// A node: operator, inputs, outputs, subgraphs; `-` for none.
    pub fn node(mut self, op: &str, inputs: &str, outputs: &str, subgraphs: &str) -> Table {
        self.nodes.push(format!("{op} {inputs} {outputs} {subgraphs}"));
        self
    }
}

/// A graph table file.
pub fn tgt(graphs: &[Table]) -> String {
    let mut text = "tgt 1\nmodel test\n".to_string();
    for (k, g) in graphs.iter().enumerate() {
        text += &format!("subgraph {k} g{k} {} {}\n", g.tensors.len(), g.nodes.len());
        for (i, (kind, bytes)) in g.tensors.iter().enumerate() {
            text += &format!("t {i} {kind} - uint8 {bytes} {bytes} {bytes} = t{i}\n");
        }
        for (i, node) in g.nodes.iter().enumerate() {
            text += &format!("n {i} {node}\n");
        }
        text += &format!("in {}\nout {}\nend\n", g.inputs, g.outputs);
    }
    text
}

/// The row of a plan for a tensor of a subgraph.
#[track_caller]
pub fn row(plan: &Value, subgraph: u64, id: u64) -> &Value {
    let rows = plan["offsets"].as_array().expect("rows");
    rows.iter().find(|r| r["subgraph"] == subgraph && r["id"] == id).unwrap_or_else(|| panic!("no row {subgraph}:{id}"))
}

/// Rows that got arena bytes, as subgraph, id, offset, size, first, last.
pub fn placed(plan: &Value) -> Vec<(u64, String, u64, u64, u64, u64)> {
    let rows = plan["offsets"].as_array().expect("rows").iter().filter(|r| !r["offset"].is_null());
    let number = |v: &Value| v.as_u64().expect("a number");
    let id = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    rows.map(|r| {
        let (offset, size) = (number(&r["offset"]), number(&r["size"]));
        (r["subgraph"].as_u64().unwrap_or(0), id(&r["id"]), offset, size, number(&r["first"]), number(&r["last"]))
    })
    .collect()
}
