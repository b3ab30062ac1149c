//! The host's own planner, left in charge and timed: what ours is compared with.

use core::ffi::c_int;
use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;

use crate::abi::{Context, IntVector, Planner, PlannerVtable};
use crate::host::Layout;
use crate::report::{self, Figures};
use crate::settings::cpu_ns;

struct Watch {
    entry: Option<usize>,
    figures: Figures,
    /// The host's functions.
    host: *const PlannerVtable,
}

// SAFETY: the pointer is to constant data of a library that stays loaded.
unsafe impl Send for Watch {}

/// Watches by the address of the host's object, which has no room for more.
static WATCHES: Mutex<Option<HashMap<usize, Watch>>> = Mutex::new(None);

fn watches<R>(f: impl FnOnce(&mut HashMap<usize, Watch>) -> R) -> R {
    f(WATCHES.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_with(HashMap::new))
}

/// Puts our table in front of the host's in an object that the host's constructor has made.
///
/// # Safety
/// `this` is such an object, `context` its verified context, and `layout` its library's.
pub unsafe fn watch(
    this: *mut Planner,
    context: *mut Context,
    (align, subgraph): (i32, i32),
    (layout, library): (Layout, &'static str),
) {
    let figures = Figures { strategy: "host", alignment: u64::try_from(align).unwrap_or(0), ..Figures::default() };
    // SAFETY: the contract.
    let interpreter = unsafe { layout.interpreter(context) };
    let entry = report::enter(library, interpreter, subgraph, figures.clone());
    watches(|w| w.insert(this as usize, Watch { entry, figures, host: layout.planner }));
    // SAFETY: the first word of an object is its table.
    unsafe { (*this).vtable = crate::vtable_for(layout.typeinfo, FUNCTIONS) };
}

const FUNCTIONS: PlannerVtable =
    PlannerVtable { destroy, delete, plan, execute, reset, reset_after, release, acquire, has_memory, dump, info };

fn host(this: *mut Planner) -> PlannerVtable {
    let table = watches(|w| w.get(&(this as usize)).map(|w| w.host));
    let Some(table) = table else {
        // Only objects that `watch` entered have this table.
        crate::settings::say("a planner that is not known was called");
        std::process::abort()
    };
    // SAFETY: checked function by function when the library was examined.
    unsafe { *table }
}

fn note(this: *mut Planner, change: impl FnOnce(&mut Figures)) {
    let told = watches(|w| {
        let watch = w.get_mut(&(this as usize))?;
        change(&mut watch.figures);
        Some((watch.entry, watch.figures.clone()))
    });
    if let Some((entry, figures)) = told {
        report::update(entry, &figures, || Value::Null, |_| None);
    }
}

fn forget(this: *mut Planner) {
    if let Some(w) = watches(|w| w.remove(&(this as usize))) {
        report::leave(w.entry, &w.figures);
    }
}

unsafe extern "C" fn destroy(this: *mut Planner) {
    let host = host(this);
    forget(this);
    // SAFETY: the host's own function on the host's own object, here and below.
    unsafe { (host.destroy)(this) }
}

unsafe extern "C" fn delete(this: *mut Planner) {
    let host = host(this);
    forget(this);
    // SAFETY: as above.
    unsafe { (host.delete)(this) }
}

unsafe extern "C" fn plan(this: *mut Planner) -> c_int {
    let host = host(this);
    let start = cpu_ns();
    // SAFETY: as above.
    let status = unsafe { (host.plan)(this) };
    let ns = cpu_ns() - start;
    note(this, |f| (f.plans, f.plan_ns) = (f.plans + 1, f.plan_ns + ns));
    status
}

unsafe extern "C" fn execute(this: *mut Planner, first: c_int, last: c_int) -> c_int {
    let host = host(this);
    let start = cpu_ns();
    // SAFETY: as above.
    let status = unsafe { (host.execute)(this, first, last) };
    let ns = cpu_ns() - start;
    let (mut arena, mut persistent) = (0, 0);
    // SAFETY: as above; both are writable.
    unsafe { (host.info)(this, &raw mut arena, &raw mut persistent) };
    note(this, |f| {
        (f.executes, f.execute_ns) = (f.executes + 1, f.execute_ns + ns);
        (f.arena_bytes, f.tflite_bytes, f.held_bytes) = (arena as u64, arena as u64, arena as u64);
        (f.peak_arena_bytes, f.persistent_bytes) = (f.peak_arena_bytes.max(arena as u64), persistent as u64);
        f.placed_by = "host";
    });
    status
}

unsafe extern "C" fn reset(this: *mut Planner) -> c_int {
    note(this, |f| f.resets += 1);
    // SAFETY: as above.
    unsafe { (host(this).reset)(this) }
}

unsafe extern "C" fn reset_after(this: *mut Planner, node: c_int) -> c_int {
    note(this, |f| f.partial_resets += 1);
    // SAFETY: as above.
    unsafe { (host(this).reset_after)(this, node) }
}

unsafe extern "C" fn release(this: *mut Planner) -> c_int {
    // SAFETY: as above.
    unsafe { (host(this).release)(this) }
}

unsafe extern "C" fn acquire(this: *mut Planner) -> c_int {
    // SAFETY: as above.
    unsafe { (host(this).acquire)(this) }
}

unsafe extern "C" fn has_memory(this: *mut Planner) -> bool {
    // SAFETY: as above.
    unsafe { (host(this).has_memory)(this) }
}

unsafe extern "C" fn dump(this: *mut Planner, execution_plan: *const IntVector) {
    // SAFETY: as above.
    unsafe { (host(this).dump)(this, execution_plan) }
}

unsafe extern "C" fn info(this: *mut Planner, arena: *mut usize, persistent: *mut usize) {
    // SAFETY: as above.
    unsafe { (host(this).info)(this, arena, persistent) }
}
