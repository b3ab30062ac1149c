//! The trace recorder: writes down every request a pool gets, in the text format that `arenite replay` reads.

use core::ffi::c_void;
use core::fmt::Write as _;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::pool::Pool;
use super::pool_lock::{Lock, RawLock};
use crate::error::Error;

/// Bytes of text gathered before the sink sees them.
const CHUNK: usize = 64 << 10;
/// No line is longer.
const LINE: usize = 128;

/// A function of the caller's that takes text: whole lines, not terminated by 0. It must not unwind, and must not call the
/// pool.
#[derive(Clone, Copy, Debug)]
pub struct TraceCallback {
    /// Takes `bytes` bytes at `text`, which it must not keep.
    pub write: unsafe extern "C" fn(user: *mut c_void, text: *const u8, bytes: usize),
    /// Handed to it.
    pub user: *mut c_void,
}

// SAFETY: whoever makes one promises that any thread that uses the pool may call the function.
unsafe impl Send for TraceCallback {}

#[derive(Debug)]
enum Sink {
    File(File),
    Callback(TraceCallback),
}

#[derive(Debug)]
struct State {
    sink: Sink,
    text: String,
    /// The id of each live block, by address.
    ids: HashMap<usize, u64>,
    next: u64,
    /// The process that writes: a forked child has a copy of everything, and must not write it a second time.
    process: u32,
    failed: bool,
}

/// What a pool's recorder is doing.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    on: AtomicBool,
    state: Lock<Option<State>>,
}

/// A block taken out of the record while it is resized.
pub(crate) struct Resizing(Option<u64>);

impl Trace {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn raw(&self) -> &RawLock {
        self.state.raw()
    }

    /// A block was handed out.
    pub(crate) fn allocated(&self, block: NonNull<u8>, bytes: u64, align: u64) {
        self.with(|s| {
            let id = s.next;
            if s.ids.try_reserve(1).is_err() {
                return;
            }
            s.next += 1;
            s.ids.insert(block.as_ptr() as usize, id);
            s.line(format_args!("a {id} {bytes} {}", align.max(1)));
        });
    }

    /// A block is about to be freed. One from before the recording began is left out.
    pub(crate) fn freed(&self, block: NonNull<u8>) {
        self.with(|s| {
            if let Some(id) = s.ids.remove(&(block.as_ptr() as usize)) {
                s.line(format_args!("f {id}"));
            }
        });
    }

    /// A block is about to be resized: until [`Trace::resized`] its address is nobody's.
    pub(crate) fn resizing(&self, block: NonNull<u8>) -> Resizing {
        let mut id = None;
        self.with(|s| id = s.ids.remove(&(block.as_ptr() as usize)));
        Resizing(id)
    }

    /// It was, and lies at `block` now; `None` for `bytes` where it was refused and is as before.
    pub(crate) fn resized(&self, of: Resizing, block: NonNull<u8>, bytes: Option<u64>) {
        let Some(id) = of.0 else { return };
        self.with(|s| {
            if s.ids.try_reserve(1).is_err() {
                // Its end is written now: a trace may end a block early, but not name one it has lost.
                s.line(format_args!("f {id}"));
                return;
            }
            s.ids.insert(block.as_ptr() as usize, id);
            if let Some(bytes) = bytes {
                s.line(format_args!("r {id} {bytes}"));
            }
        });
    }

    /// A frame begins.
    pub(crate) fn frame(&self, signature: u64) {
        self.with(|s| s.line(format_args!("# frame {signature:#x}")));
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        if let Some(state) = self.state.lock().as_mut() {
            act(state);
        }
    }
}

impl State {
    fn line(&mut self, text: core::fmt::Arguments<'_>) {
        // The text is as long as it ever gets, so nothing is allocated; writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
        if self.text.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.process == std::process::id() && !self.failed {
            match &mut self.sink {
                Sink::File(file) => self.failed = file.write_all(self.text.as_bytes()).is_err(),
                // SAFETY: the callback's contract; the text lives until it returns.
                Sink::Callback(c) => unsafe { (c.write)(c.user, self.text.as_ptr(), self.text.len()) },
            }
        }
        self.text.clear();
    }
}

impl Pool {
    /// Writes every request from now on to a new file, until [`Pool::trace_stop`]. `Argument` where the file cannot be made.
    ///
    /// While a trace is recorded, frames that begin are not served from their plans, so that nothing is missing; where
    /// they begin is marked. Blocks that are live already are left out.
    pub fn trace_to_file(&self, path: &Path) -> Result<(), Error> {
        let file = File::create(path).map_err(|_| Error::argument("the trace's file cannot be created"))?;
        self.trace_start(Sink::File(file))
    }

    /// The same to a function. `NoMemory` where there is none for the recorder.
    pub fn trace_to(&self, callback: TraceCallback) -> Result<(), Error> {
        self.trace_start(Sink::Callback(callback))
    }

    fn trace_start(&self, sink: Sink) -> Result<(), Error> {
        let mut text = String::new();
        let no_memory = |_| Error::no_memory("the trace's buffer could not be allocated");
        text.try_reserve_exact(CHUNK + LINE).map_err(no_memory)?;
        text.push_str("# allocation trace: a ID SIZE ALIGN, f ID, r ID NEWSIZE\n");
        let process = std::process::id();
        let fresh = State { sink, text, ids: HashMap::new(), next: 0, process, failed: false };
        // A recording that is still on ends here.
        let _ = self.trace_stop();
        let trace = &self.shared.trace;
        *trace.state.lock() = Some(fresh);
        if !trace.on.swap(true, Ordering::Relaxed) {
            self.shared.watchers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends a recording. Blocks still live are written as freed, so that the trace can be replayed in a loop.
    ///
    /// `Argument` where nothing was being recorded, `NoMemory` where the file could not be written whole.
    pub fn trace_stop(&self) -> Result<(), Error> {
        let trace = &self.shared.trace;
        if trace.on.swap(false, Ordering::Relaxed) {
            self.shared.watchers.fetch_sub(1, Ordering::Relaxed);
        }
        let taken = trace.state.lock().take();
        let Some(mut state) = taken else { return Err(Error::argument("no trace is being recorded")) };
        let ids = core::mem::take(&mut state.ids);
        if !ids.is_empty() {
            state.line(format_args!("# end: {} blocks were live", ids.len()));
        }
        let mut left: Vec<u64> = Vec::new();
        if left.try_reserve_exact(ids.len()).is_ok() {
            left.extend(ids.values());
            left.sort_unstable();
            left.iter().for_each(|id| state.line(format_args!("f {id}")));
        } else {
            // In any order: there is no memory to sort them.
            ids.values().for_each(|id| state.line(format_args!("f {id}")));
        }
        state.flush();
        match state.failed {
            true => Err(Error::no_memory("the trace's file could not be written")),
            false => Ok(()),
        }
    }
}
