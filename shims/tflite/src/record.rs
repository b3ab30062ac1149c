//! What the runtime really asked for, as a subgraph of a profile: every tensor's size and kind, every node's scratch.

use core::ffi::{c_char, c_void, CStr};

use arenite::graph::incremental::Arena;
use arenite::graph::tables::Tables;
use serde_json::{json, Value};

use crate::planner::State;
use crate::tables::View;

/// Numbers of the built-in operators that run subgraphs, and how many they name first in their options.
const CALLS: [(i32, &str, usize); 3] = [(118, "branch", 2), (119, "loop", 2), (129, "sequence", 1)];

/// Names of element types by the runtime's numbers, which are not those of the file format.
const TYPES: [&str; 20] = [
    "unknown",
    "float32",
    "int32",
    "uint8",
    "int64",
    "string",
    "bool",
    "int16",
    "complex64",
    "int8",
    "float16",
    "float64",
    "complex128",
    "uint64",
    "resource",
    "variant",
    "uint32",
    "uint16",
    "int4",
    "bfloat16",
];

fn text(s: *const c_char) -> Option<String> {
    if s.is_null() {
        return None;
    }
    // SAFETY: the host's names are terminated strings.
    Some(unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned())
}

/// A tensor's name, empty where it has none.
pub fn name(view: &View<'_>, t: usize) -> String {
    // SAFETY: one of the host's tensors.
    text(unsafe { (*view.raw(t)).name }).unwrap_or_default()
}

/// The subgraph with its plan in force.
pub fn subgraph(view: &View<'_>, state: &State, index: i32) -> Value {
    let tensors: Vec<Value> = (0..view.tensor_count()).map(|t| tensor(view, state, t)).collect();
    let nodes: Vec<Value> = (0..view.node_count()).map(|i| node(view, i)).collect();
    let f = &state.figures;
    json!({
        "index": index,
        "inputs": view.inputs(),
        "outputs": view.outputs(),
        "variables": view.variables(),
        "tensors": tensors,
        "nodes": nodes,
        "plan": {
            "strategy": f.strategy,
            "placed_by": f.placed_by,
            "alignment": f.alignment,
            "arena_bytes": f.arena_bytes,
            "persistent_bytes": f.persistent_bytes,
            "tflite_bytes": f.tflite_bytes,
            "lower_bound": if f.whole { Some(f.lower_bound) } else { None },
        },
    })
}

fn tensor(view: &View<'_>, state: &State, t: usize) -> Value {
    let raw = view.raw(t);
    // SAFETY: one of the host's tensors.
    let raw = unsafe { &*raw };
    let seen = view.tensor(t);
    let (arena, offset) = match state.place_of(t) {
        Some((Arena::Main, offset)) => (Some("main"), Some(offset)),
        Some((Arena::Persistent, offset)) => (Some("persistent"), Some(offset)),
        None => (None, None),
    };
    json!({
        "name": name(view, t),
        "type": TYPES.get(raw.kind as usize).copied().unwrap_or("unknown"),
        "shape": view.list(raw.dims),
        "bytes": seen.bytes,
        "allocation": seen.allocation as u32,
        "variable": seen.variable,
        "root": state.root_of(t),
        "arena": arena,
        "offset": offset,
    })
}

fn node(view: &View<'_>, i: usize) -> Value {
    let (node, registration) = view.operator(i);
    let lists = view.node(i);
    let call = CALLS.iter().find(|c| c.0 == registration.builtin_code && !node.builtin_data.is_null());
    let subgraphs = call.map_or(Vec::new(), |c| numbers(node.builtin_data, c.2));
    json!({
        "builtin": registration.builtin_code,
        "custom": text(registration.custom_name),
        "inputs": lists.inputs,
        "outputs": lists.outputs,
        "temporaries": lists.temporaries,
        "inplace": lists.inplace.0,
        "call": call.map_or("none", |c| c.1),
        "subgraphs": subgraphs,
    })
}

/// The first numbers of an operator's options.
fn numbers(options: *const c_void, count: usize) -> Vec<i32> {
    // SAFETY: the options of these operators begin with that many numbers.
    unsafe { core::slice::from_raw_parts(options.cast::<i32>(), count) }.to_vec()
}
