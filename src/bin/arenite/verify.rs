//! `optimize --verify`: both files run in a real TensorFlow Lite on the same inputs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::output::{Done, Failure};

/// What the runtime's Python runs.
const SCRIPT: &str = include_str!("verify.py");
/// Seeds to compare with: each is one run, on one interpreter, so that state between runs counts too.
const SEEDS: u32 = 5;

/// What one runtime found.
pub struct Run {
    pub name: String,
    pub arena: Option<(u64, u64)>,
    /// Parts taken over by delegates the runtime applies by itself.
    pub delegates: Option<(u64, u64)>,
    /// What differed.
    pub differs: Option<String>,
}

/// What all runtimes found.
pub struct Verified {
    pub runs: Vec<Run>,
    pub json: Value,
}

impl Verified {
    /// Why the new file must not be used, if so.
    pub fn against(&self) -> Option<String> {
        self.runs.iter().find_map(|r| {
            let grown = r.delegates.filter(|(before, after)| after > before);
            let grown = grown.map(|(b, a)| format!("delegates would take {a} parts instead of {b}"));
            Some(format!("{}: {}", r.name, r.differs.clone().or(grown)?))
        })
    }
}

/// A file that is gone at the end.
struct Beside(PathBuf);

impl Beside {
    fn new(output: &str, name: &str, bytes: &[u8]) -> Done<Beside> {
        let path = PathBuf::from(format!("{output}.{}.{name}", std::process::id()));
        let file = Beside(path);
        std::fs::write(&file.0, bytes).map_err(|e| Failure::about(file.0.display(), e))?;
        Ok(file)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn ask(python: &str, old: &Path, new: &Path, arena: bool) -> Result<Output, String> {
    let run = Command::new(python)
        .arg("-c")
        .arg(SCRIPT)
        .args([old, new])
        .args([SEEDS.to_string(), u8::from(arena).to_string()])
        .stdin(Stdio::null())
        .output();
    run.map_err(|e| format!("{e}; expected a Python that has tflite-runtime or ai-edge-litert"))
}

/// Runs `before` and `after` by the Python interpreter `python`. Files for it lie beside `output` meanwhile.
pub fn verify(python: &str, before: &[u8], after: &[u8], output: &str) -> Done<Verified> {
    let refuse = |what: String| Failure::about(format!("--verify {python}"), what);
    let old = Beside::new(output, "before", before)?;
    let new = Beside::new(output, "after", after)?;
    // A runtime may not survive a look at a tensor it never gave memory to: then once more without the arena's size.
    let mut run = ask(python, &old.0, &new.0, true).map_err(&refuse)?;
    if run.status.code().is_none() {
        run = ask(python, &old.0, &new.0, false).map_err(&refuse)?;
    }
    let text = String::from_utf8_lossy(&run.stdout);
    let line = text.lines().rev().find_map(|l| l.strip_prefix("arenite:"));
    let json = line.and_then(|l| serde_json::from_str::<Value>(l).ok());
    let Some(json) = json else {
        let errors = String::from_utf8_lossy(&run.stderr);
        let last = errors.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
        return Err(refuse(format!("no answer ({}): {last}", run.status)));
    };
    if let Some(error) = json["error"].as_str() {
        return Err(refuse(error.into()));
    }
    let mut runs = Vec::new();
    for r in json["runtimes"].as_array().into_iter().flatten() {
        let name = format!("{} {}", r["runtime"].as_str().unwrap_or("?"), r["version"].as_str().unwrap_or(""));
        let name = name.trim_end().to_string();
        if let Some(error) = r["error"].as_str() {
            return Err(refuse(format!("{name} cannot run the model: {}", error.lines().next().unwrap_or_default())));
        }
        let pair = |what: &str| Some((r[format!("{what}_before")].as_u64()?, r[format!("{what}_after")].as_u64()?));
        runs.push(Run {
            name,
            arena: pair("arena"),
            delegates: pair("delegates"),
            differs: r["differ"].as_str().map(String::from),
        });
    }
    Ok(Verified { runs, json: json["runtimes"].clone() })
}
