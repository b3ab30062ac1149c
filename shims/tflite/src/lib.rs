//! `libarenite_tflite.so`: arenite's planner and memory in place of TensorFlow Lite's, in unmodified binaries.
//!
//! Loaded before TFLite (`LD_PRELOAD`, or earlier in the link order) it defines one symbol of TFLite's: the constructor of
//! its memory planner. The object that TFLite asks for then gets our table of virtual functions, which is all that
//! TFLite ever uses of it. Before anything is replaced the calling library is checked: that its planner and its graph
//! have exactly the known functions in the known order, and that tensors and nodes lie where they should. Where a
//! check fails, standard error says which, and TFLite's own constructor is called instead.
//!
//! A second symbol, `xnn_initialize`, gives XNNPACK inside such a library an allocator ([`xnnpack`]).
//!
//! Threads: an interpreter is used by one thread at a time, and so is its planner; several interpreters are independent.

mod abi;
mod absent;
mod host;
mod memory;
mod ours;
mod planner;
mod record;
mod report;
mod settings;
mod tables;
mod watched;
mod xnnpack;

use core::ffi::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;

use arenite::units::Align;

use abi::{Constructor, Context, GraphInfo, Planner, PlannerTable, PlannerVtable};
use settings::{say, settings, Choice};

/// `tflite::ArenaPlanner::ArenaPlanner(TfLiteContext *, std::unique_ptr<GraphInfo>, bool, int, int)` for complete objects.
///
/// # Safety
/// Called by TensorFlow Lite with the arguments of that constructor.
#[export_name = "_ZN6tflite12ArenaPlannerC1EP13TfLiteContextSt10unique_ptrINS_9GraphInfoESt14default_deleteIS4_EEbii"]
pub unsafe extern "C" fn complete_object(
    this: *mut Planner,
    context: *mut Context,
    graph: *mut *mut GraphInfo,
    preserve_all: bool,
    align: c_int,
    subgraph: c_int,
) {
    // SAFETY: the contract.
    unsafe { constructor(this, context, graph, preserve_all, align, subgraph) }
}

/// The same for base objects.
///
/// # Safety
/// As [`complete_object`].
#[export_name = "_ZN6tflite12ArenaPlannerC2EP13TfLiteContextSt10unique_ptrINS_9GraphInfoESt14default_deleteIS4_EEbii"]
pub unsafe extern "C" fn base_object(
    this: *mut Planner,
    context: *mut Context,
    graph: *mut *mut GraphInfo,
    preserve_all: bool,
    align: c_int,
    subgraph: c_int,
) {
    // SAFETY: the contract.
    unsafe { constructor(this, context, graph, preserve_all, align, subgraph) }
}

unsafe fn constructor(
    this: *mut Planner,
    context: *mut Context,
    graph: *mut *mut GraphInfo,
    preserve_all: bool,
    align: c_int,
    subgraph: c_int,
) {
    absent::called();
    let body = || {
        // SAFETY: the contract of the constructor: `graph` is where the host's owning pointer is.
        let info = unsafe { *graph };
        // SAFETY: an object of a class with virtual functions.
        let host = unsafe { host::of(info) }.ok_or("the library that called cannot be told")?;
        let settings = settings();
        let mut own: Option<Constructor> = host.constructor;
        if settings.disable {
            return own.map(Some).ok_or("it does not show its constructor".into());
        }
        // SAFETY: the constructor's own arguments.
        let verified = unsafe { host.verify(info, context) };
        let align = u64::try_from(align).ok().and_then(|a| Align::new(a).ok());
        match (verified, align, settings.choice) {
            (Ok(layout), Some(align), Choice::Ours(strategy)) => {
                // SAFETY: as above, and verified.
                unsafe { *graph = core::ptr::null_mut() };
                let how = (preserve_all, align, subgraph);
                // SAFETY: as above.
                unsafe { ours::construct(this, (context, info), how, (settings, strategy), (layout, &host.path)) };
                own = None;
            }
            (Ok(layout), Some(align), Choice::Host) => {
                let Some(construct) = own.take() else { return Err("it does not show its constructor".into()) };
                // SAFETY: the host's constructor with its own arguments.
                unsafe { construct(this, context, graph, preserve_all, align.bytes() as c_int, subgraph) };
                // SAFETY: the object is made.
                unsafe { watched::watch(this, context, (align.bytes() as c_int, subgraph), (layout, &host.path)) };
            }
            (verified, ..) => {
                let why = verified.err().unwrap_or("it asks for an unknown alignment".into());
                if own.is_none() {
                    return Err(why);
                }
                say_once(format!("{}: {why}; TensorFlow Lite's own planner stays in charge", host.path));
            }
        }
        Ok::<_, String>(own)
    };
    // `Some`: the host's constructor is still to be called.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(None)) => {}
        // SAFETY: the host's constructor with its own arguments, which nobody has used yet.
        Ok(Ok(Some(own))) => unsafe { own(this, context, graph, preserve_all, align, subgraph) },
        Ok(Err(why)) => give_up(&why),
        Err(_) => give_up("internal error"),
    }
}

/// Neither our planner nor the host's can be made. A constructor has no way to say so.
fn give_up(why: &str) -> ! {
    say(&format!("no planner can be made: {why}. Run without the preload"));
    std::process::abort()
}

fn say_once(message: String) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(|e| e.into_inner());
    if !said.contains(&message) {
        say(&message);
        said.push(message);
    }
}

/// The table of `functions` under the host's type, made once and kept.
fn vtable_for(typeinfo: *const c_void, functions: PlannerVtable) -> *const PlannerVtable {
    static TABLES: Mutex<Vec<&'static PlannerTable>> = Mutex::new(Vec::new());
    let mut tables = TABLES.lock().unwrap_or_else(|e| e.into_inner());
    let same = |t: &&&'static PlannerTable| {
        t.typeinfo == typeinfo && t.functions.execute as usize == functions.execute as usize
    };
    if let Some(known) = tables.iter().find(same) {
        return &known.functions;
    }
    let made: &'static PlannerTable = Box::leak(Box::new(PlannerTable { offset_to_top: 0, typeinfo, functions }));
    tables.push(made);
    &made.functions
}
