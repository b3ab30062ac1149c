//! What is to be planned: found out by content first, by the file's extension second.

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

use arenite::model::{Model, OffsetColumn, ProblemFile, Trace};
use arenite::units::Align;

use super::output::{Done, Failure};

/// The side of the built-in network's image.
const BUILT_IN_SIDE: u32 = 224;

/// A model or a bare problem.
pub enum Input {
    /// Graphs.
    Model(Box<Model>),
    /// Buffers.
    Problem(Box<ProblemFile>),
}

/// The kinds of file told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Tflite,
    Table,
    Csv,
    Profile,
    Trace,
}

/// A file's bytes, mapped where the system can.
pub enum Bytes {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(m) => m,
            Bytes::Owned(v) => v,
        }
    }
}

/// A path as messages show it.
pub fn shown(path: &str) -> &str {
    match path {
        "-" => "standard input",
        path => path,
    }
}

/// Reads a whole file; `-` is standard input.
pub fn bytes(path: &str) -> Done<Bytes> {
    let refuse = |e: std::io::Error| Failure::about(path, e);
    let mut owned = Vec::new();
    if path == "-" {
        std::io::stdin().lock().read_to_end(&mut owned).map_err(|e| Failure::about(shown(path), e))?;
        return Ok(Bytes::Owned(owned));
    }
    let mut file = File::open(path).map_err(refuse)?;
    if file.metadata().map_err(refuse)?.is_dir() {
        return Err(Failure::about(path, "it is a directory, expected a file"));
    }
    // SAFETY: the map is private and only read. A file that another program cuts short meanwhile ends this process with
    // a bus error; it cannot make the readers, which check every index, misbehave otherwise.
    if let Ok(map) = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file) } {
        if !map.is_empty() {
            return Ok(Bytes::Mapped(map));
        }
    }
    // Pipes cannot be mapped, and files in /proc have no length.
    file.read_to_end(&mut owned).map_err(refuse)?;
    Ok(Bytes::Owned(owned))
}

/// Reads a `.tflite` file and nothing else, for commands that write one.
pub fn tflite(path: &str) -> Done<(Bytes, Model)> {
    let file = bytes(path)?;
    if file.get(4..8) != Some(b"TFL3") {
        let what = match format(path, &file) {
            Some(Format::Profile) => {
                "this is a recorded profile, which holds no weights to write; expected the .tflite file it was recorded \
                 from (`optimize` takes the profile as --profile)"
            }
            _ => "expected a .tflite file (TFL3 at byte 4)",
        };
        return Err(Failure::about(shown(path), what));
    }
    let stem = Path::new(path).file_stem().map_or("model".into(), |s| s.to_string_lossy());
    let model = Model::from_tflite(&file, &stem).map_err(|e| Failure::about(shown(path), e))?;
    Ok((file, model))
}

/// Reads an allocation trace.
pub fn trace(path: &str) -> Done<Trace> {
    let file = bytes(path)?;
    if matches!(format(path, &file), Some(Format::Tflite | Format::Profile)) {
        let what = "this is a model, not a trace of allocations in order of time; `arenite plan` plans it";
        return Err(Failure::about(shown(path), what));
    }
    Trace::read(&file).map_err(|e| Failure::about(shown(path), e))
}

/// Reads what is to be planned; without a path the built-in network. `align` holds for problems, whose default is 1.
pub fn read(path: Option<&str>, offsets: OffsetColumn, align: Option<Align>) -> Done<Input> {
    let Some(path) = path else {
        let model = Model::mobilenet_v2(BUILT_IN_SIDE).map_err(|e| Failure(e.to_string()))?;
        return Ok(Input::Model(Box::new(model)));
    };
    let bytes = bytes(path)?;
    let stem = Path::new(path).file_stem().map_or("model".into(), |s| s.to_string_lossy());
    let refuse = |e: arenite::model::ReadError| Failure::about(shown(path), e);
    match format(path, &bytes) {
        Some(Format::Tflite) => Model::from_tflite(&bytes, &stem).map(Box::new).map(Input::Model).map_err(refuse),
        Some(Format::Table) => {
            let mut model = Model::from_tgt(&bytes).map_err(refuse)?;
            if model.name.is_empty() {
                model.name = stem.into_owned();
            }
            Ok(Input::Model(Box::new(model)))
        }
        Some(Format::Csv) => problem(&bytes, offsets, align).map(Box::new).map(Input::Problem).map_err(refuse),
        Some(Format::Profile) => {
            let mut model = Model::from_profile(&bytes).map_err(refuse)?;
            model.name = stem.into_owned();
            Ok(Input::Model(Box::new(model)))
        }
        Some(Format::Trace) => Err(Failure::about(shown(path), "this is an allocation trace, which cannot be planned as it is")),
        None => Err(Failure::about(
            shown(path),
            "expected a .tflite file (TFL3 at byte 4), a graph table (\"tgt 1\" on line 1), a recorded profile (JSON) or a \
             problem CSV (a header on line 1 with id,lower,upper,size)",
        )),
    }
}

/// A problem of rows that were written a moment ago, whose offsets are not kept.
pub fn rows(text: &[u8], args: &super::plan::Args) -> Done<ProblemFile> {
    let align = Some(args.align.unwrap_or_default());
    problem(text, OffsetColumn::Solution, align).map_err(|e| Failure::about(super::planned::file(args), e))
}

/// A problem CSV. A column `root` names the row whose bytes a row is in place.
fn problem(file: &[u8], offsets: OffsetColumn, align: Option<Align>) -> Result<ProblemFile, arenite::model::ReadError> {
    let mut read = ProblemFile::read(file, offsets, align.unwrap_or(Align::ONE))?;
    super::csv_out::alias_roots(file, &mut read, offsets == OffsetColumn::Fixed)?;
    Ok(read)
}

fn format(path: &str, bytes: &[u8]) -> Option<Format> {
    if bytes.get(4..8) == Some(b"TFL3") {
        return Some(Format::Tflite);
    }
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let line = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty()).unwrap_or_default();
    let lower = line[..line.len().min(4096)].to_ascii_lowercase();
    let columns = || lower.split(|&b| b == b',').map(|c| c.trim_ascii().trim_ascii());
    let has =
        |name: &[u8]| columns().any(|c| c.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")).unwrap_or(c) == name);
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let mut words = line.split(|&b| b == b' ');
    match (words.next(), words.next()) {
        (Some(b"tgt"), _) => return Some(Format::Table),
        (Some(b"a" | b"f" | b"r"), Some(id)) if number(id) => return Some(Format::Trace),
        _ => {}
    }
    if [&b"id"[..], b"lower", b"upper", b"size"].iter().filter(|&&c| has(c)).count() >= 2 {
        return Some(Format::Csv);
    }
    if line.starts_with(b"{") {
        return Some(Format::Profile);
    }
    match Path::new(path).extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "tflite" => Some(Format::Tflite),
        "tgt" => Some(Format::Table),
        "csv" => Some(Format::Csv),
        "json" => Some(Format::Profile),
        _ => None,
    }
}
