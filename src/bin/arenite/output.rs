//! Exit codes, messages, and standard output that may be closed at any time.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};

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

/// Writes a message to standard error. One that nobody reads is no reason to fail.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "arenite: {message}");
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
    let mut out = BufWriter::with_capacity(1 << 16, Closable(Some(io::stdout().lock())));
    write(&mut out).and_then(|()| out.flush()).map_err(|e| Failure::about("standard output", e))
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
