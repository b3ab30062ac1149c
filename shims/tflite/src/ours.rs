//! Our planner behind the host's table of virtual functions.

use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};

use arenite::error::Error;
use arenite::planner::Strategy;
use arenite::units::Align;

use crate::abi::{functions, Context, Delete, GraphInfo, IntVector, Planner, PlannerVtable, ERROR, OK};
use crate::host::Layout;
use crate::planner::State;
use crate::settings::{say, Settings};
use crate::tables::View;
use crate::{record, report};

/// What the second word of the host's object points to.
struct Object {
    state: State,
    graph: *mut GraphInfo,
    context: *mut Context,
    subgraph: i32,
    entry: Option<usize>,
    delete: Delete,
    /// A panic left the state in the middle of something.
    poisoned: bool,
}

/// Turns the host's uninitialised object into our planner. The graph becomes ours.
///
/// # Safety
/// The arguments are those of the constructor, checked by [`crate::host::Host::verify`], which gave `layout`.
pub unsafe fn construct(
    this: *mut Planner,
    (context, graph): (*mut Context, *mut GraphInfo),
    (preserve_all, align, subgraph): (bool, Align, i32),
    (settings, strategy): (&'static Settings, Strategy),
    (layout, library): (Layout, &'static str),
) {
    let state = State::new(settings, strategy, align, preserve_all);
    // SAFETY: verified.
    let interpreter = unsafe { layout.interpreter(context) };
    let entry = report::enter(library, interpreter, subgraph, state.figures.clone());
    let object = Object { state, graph, context, subgraph, entry, delete: layout.delete, poisoned: false };
    let state = Box::into_raw(Box::new(object)).cast::<c_void>();
    // SAFETY: the host gave memory for its own planner, which is larger.
    unsafe { this.write(Planner { vtable: crate::vtable_for(layout.typeinfo, FUNCTIONS), state }) };
}

/// Our functions in the host's order.
const FUNCTIONS: PlannerVtable =
    PlannerVtable { destroy, delete, plan, execute, reset, reset_after, release, acquire, has_memory, dump, info };

/// Runs `body` on the planner's state. A panic ends here: this call and all later ones return `failed`.
///
/// # Safety
/// `this` was made by [`construct`] and is not destroyed.
unsafe fn with<R>(this: *mut Planner, failed: R, body: impl FnOnce(&mut Object) -> R) -> R {
    // SAFETY: the contract.
    let object = unsafe { object_of(this) };
    // SAFETY: `construct` stored it; one thread at a time uses an interpreter.
    let object = unsafe { &mut *object };
    if object.poisoned {
        return failed;
    }
    match catch_unwind(AssertUnwindSafe(|| body(object))) {
        Ok(result) => result,
        Err(_) => {
            object.poisoned = true;
            say("internal error in the planner; the interpreter cannot go on");
            failed
        }
    }
}

/// Our state behind an object.
///
/// # Safety
/// `this` was made by [`construct`].
unsafe fn object_of(this: *mut Planner) -> *mut Object {
    // SAFETY: the contract.
    unsafe { (*this).state }.cast()
}

impl Object {
    fn view(&self) -> View<'static> {
        // SAFETY: the graph was verified, and the view is dropped before control returns to the host.
        unsafe { View::new(self.graph) }
    }

    /// Tells the host what went wrong, in its own way.
    fn status(&self, done: Result<(), Error>) -> c_int {
        let Err(e) = done else { return OK };
        let message = format!("arenite: {e}\0");
        // SAFETY: a verified context.
        let report = unsafe { (*self.context).report_error };
        match report {
            // SAFETY: a printf format with one string, which is terminated.
            Some(report) => unsafe { report(self.context, c"%s".as_ptr(), message.as_ptr()) },
            None => say(message.trim_end_matches('\0')),
        }
        ERROR
    }

    fn tell(&self) {
        let profile = || record::subgraph(&self.view(), &self.state, self.subgraph);
        let title = format!("TensorFlow Lite, subgraph {}", self.subgraph);
        let picture = |page| self.state.picture(&self.view(), &title, page);
        report::update(self.entry, &self.state.figures, profile, picture);
    }
}

unsafe extern "C" fn destroy(this: *mut Planner) {
    // SAFETY: the host destroys once what `construct` made.
    let object = unsafe { object_of(this) };
    // SAFETY: made from a box, and nobody uses it any more.
    let object = unsafe { Box::from_raw(object) };
    // SAFETY: the graph is live until the call below.
    let functions = unsafe { functions(object.graph) };
    // SAFETY: the graph was handed over to us, and its own function frees it.
    unsafe { (functions.delete)(object.graph) };
    let object = ManuallyDrop::new(object);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        report::leave(object.entry, &object.state.figures);
        drop(ManuallyDrop::into_inner(object));
    }));
}

unsafe extern "C" fn delete(this: *mut Planner) {
    // SAFETY: as in `destroy`.
    let object = unsafe { object_of(this) };
    // SAFETY: live until `destroy`.
    let free = unsafe { (*object).delete };
    // SAFETY: the host's contract on this function.
    unsafe { destroy(this) };
    // SAFETY: the host took the object's memory from its `operator new`.
    unsafe { free(this.cast()) };
}

unsafe extern "C" fn plan(this: *mut Planner) -> c_int {
    let body = |o: &mut Object| {
        let done = o.state.plan(&o.view());
        o.status(done)
    };
    // SAFETY: called through the object's own table, here and below.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn execute(this: *mut Planner, first: c_int, last: c_int) -> c_int {
    let body = |o: &mut Object| {
        let done = o.state.execute(&o.view(), first, last);
        let status = o.status(done);
        o.tell();
        status
    };
    // SAFETY: as above.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn reset(this: *mut Planner) -> c_int {
    let body = |o: &mut Object| {
        o.state.reset();
        OK
    };
    // SAFETY: as above.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn reset_after(this: *mut Planner, node: c_int) -> c_int {
    let body = |o: &mut Object| {
        o.state.reset_after(&o.view(), node);
        OK
    };
    // SAFETY: as above.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn release(this: *mut Planner) -> c_int {
    let body = |o: &mut Object| {
        o.state.release(&o.view());
        OK
    };
    // SAFETY: as above.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn acquire(this: *mut Planner) -> c_int {
    let body = |o: &mut Object| {
        let done = o.state.acquire(&o.view());
        o.status(done)
    };
    // SAFETY: as above.
    unsafe { with(this, ERROR, body) }
}

unsafe extern "C" fn has_memory(this: *mut Planner) -> bool {
    // SAFETY: as above.
    unsafe { with(this, false, |o| o.state.has_memory()) }
}

unsafe extern "C" fn dump(this: *mut Planner, _execution_plan: *const IntVector) {
    let body = |o: &mut Object| {
        let f = &o.state.figures;
        say(&format!(
            "subgraph {}: arena {} bytes, persistent arena {} bytes, TFLite's planner {} bytes",
            o.subgraph, f.arena_bytes, f.persistent_bytes, f.tflite_bytes
        ));
    };
    // SAFETY: as above.
    unsafe { with(this, (), body) }
}

unsafe extern "C" fn info(this: *mut Planner, arena: *mut usize, persistent: *mut usize) {
    // SAFETY: as above.
    let held = unsafe { with(this, (0, 0), |o| o.state.held()) };
    for (to, bytes) in [(arena, held.0), (persistent, held.1)] {
        if !to.is_null() {
            // SAFETY: the host passes places for two numbers.
            unsafe { to.write(bytes) };
        }
    }
}
