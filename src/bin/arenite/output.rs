//! Exit codes, messages, and standard output that may be closed at any time.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use arenite::view::visible;

use super::stdout;

/// The check failed, or the capacity is exceeded.
pub const FAILED: u8 = 1;
/// Bad input or usage.
pub const BAD: u8 = 2;

/// Why a command could not do its work: one message, exit code 2.
pub struct Failure(pub String);

impl Failure {
    /// A message about a file or an option.
    pub fn about(place: impl Display, what: impl Display) -> Failure {
        Failure(format!("{place}: {what}"))
    }
}

/// What a command returns.
pub type Done<T> = Result<T, Failure>;

/// Writes a message to standard error. One that nobody reads is no reason to fail. Names in it come from files.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "arenite: {}", visible(message));
}

/// A stream whose reader may go away (`arenite plan | head`): what is written after that is dropped, so that the exit
/// code still tells what was found.
struct Closable<W>(Option<W>);

impl<W: Write> Closable<W> {
    fn pass<T>(&mut self, dropped: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        let Some(inner) = &mut self.0 else { return Ok(dropped) };
        match write(inner) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(dropped)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Closable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pass(bytes.len(), |w| w.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass((), |w| w.flush())
    }
}

/// Runs `write` on standard output.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done<()> {
    if stdout::was_closed() {
        return Err(Failure::about("standard output", "it is closed, there is nowhere to write to"));
    }
    let mut out = BufWriter::with_capacity(1 << 16, Closable(Some(io::stdout().lock())));
    write(&mut out).and_then(|()| out.flush()).map_err(|e| Failure::about("standard output", e))
}

/// Runs `write`, which writes JSON, on standard output. Characters that steer a terminal stand in strings alone, where they
/// may be escapes.
pub fn json_to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done<()> {
    to_stdout(|w| write(&mut Escaped(w)))
}

/// Takes whole pieces of text, as formatting gives them.
struct Escaped<'a>(&'a mut dyn Write);

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = |c: char| c == '\n' || matches!(visible(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_));
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.is_ascii() && !text.chars().all(plain) => {
                for c in text.chars() {
                    match plain(c) {
                        true => write!(self.0, "{c}")?,
                        false => write!(self.0, "\\u{:04x}", c as u32)?,
                    }
                }
                Ok(bytes.len())
            }
            _ => self.0.write_all(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs `write` on a new file; `-` is standard output.
pub fn to_file(path: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done<()> {
    if path == "-" {
        return to_stdout(write);
    }
    let file = File::create(path).map_err(|e| Failure::about(path, e))?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out).and_then(|()| out.flush()).map_err(|e| Failure::about(path, e))
}

/// Refuses two options that write to one file, however its name is spelled.
pub fn distinct(outputs: &[(&str, &str)]) -> Done<()> {
    for (i, (name, path)) in outputs.iter().enumerate().filter(|o| o.1 .1 != "-") {
        if let Some((other, _)) = outputs[..i].iter().find(|o| same(o.1, path)) {
            return Err(Failure(format!("{other} and {name} both write to {path}")));
        }
    }
    Ok(())
}

/// Whether two paths name one file, which need not exist.
fn same(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            // The null device and terminals take any number of writers.
            return a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
        #[cfg(not(unix))]
        let _ = (a, b);
    }
    match (settled(a), settled(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A path with its directory resolved.
fn settled(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let name = path.file_name()?;
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(path).or_else(|_| fs::canonicalize(parent).map(|p| p.join(name))).ok()
}

/// Puts `bytes` in the place of the file at `path`, whole or not at all: they are written beside it, read back and
/// moved there, so that a failure leaves no half file and the input may be the target.
pub fn replace(path: &str, bytes: &[u8]) -> Done<()> {
    let refuse = |e: io::Error| Failure::about(path, e);
    // A link keeps leading to its file; what is no file (a device, a pipe) is not replaced but written to.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let old = std::fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        return std::fs::write(&target, bytes).map_err(refuse);
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.part", std::process::id()));
    let written = File::create_new(&beside).and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()));
    let moved = written.and_then(|()| {
        if std::fs::read(&beside)? != bytes {
            return Err(io::Error::other("the file reads back differently"));
        }
        if let Some(old) = old {
            std::fs::set_permissions(&beside, old.permissions())?;
        }
        std::fs::rename(&beside, &target)
    });
    moved.map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        refuse(e)
    })
}
