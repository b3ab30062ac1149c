//! The graph: tensors and nodes, built one by one or copied from an engine's arrays.

use core::mem::size_of;

use alloc::vec::Vec;

use super::abi::{self, Versioned};
use super::guard;
use super::handle::{self, Opaque};
use super::lite_tables::{arenite_lite_desc_t, LiteTables};
use super::options::{arenite_graph_options_t, optional_align, read_options};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Subject};
use crate::graph::liveness::Pin;
use crate::graph::lower::lower;
use crate::graph::owned::{CallKind, Graph, NodeSpec};
use crate::graph::tables::{Allocation, InPlace, Tables, Tensor, View};

/// Tensors and nodes of one graph and of the subgraphs it calls.
///
/// Subgraph 0 is the graph itself; `arenite_graph_attach` adds others. Threads: one at a time for calls that change it.
pub struct arenite_graph_t {
    _private: [u8; 0],
}

pub(crate) struct GraphInner {
    pub graphs: Vec<Graph>,
    pub pins: Vec<Pin>,
    /// Per subgraph that was reordered: its nodes, by the numbers they were added with, in the order they run in.
    pub orders: Vec<Vec<u32>>,
}

impl GraphInner {
    /// The nodes of subgraph `k` by the numbers they were added with, in the order they run in.
    pub fn order_of(&self, k: usize) -> Vec<u32> {
        let mut order = self.orders.get(k).cloned().unwrap_or_default();
        // Nodes added after the last reordering run last.
        order.extend(order.len() as u32..self.graphs[k].node_count() as u32);
        order
    }
}

impl Opaque for arenite_graph_t {
    type Inner = GraphInner;
    const MAGIC: [u8; 4] = *b"grph";
    const NULL: &'static str = "the graph is null";
}

/// The tensor keeps its contents between runs.
pub const ARENITE_TENSOR_VARIABLE: u32 = 1;
/// The tensor's size is not known yet; `bytes` is not read.
pub const ARENITE_TENSOR_UNKNOWN_SIZE: u32 = 2;

/// A tensor to add.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_tensor_desc_t {
    /// `sizeof(arenite_tensor_desc_t)`.
    pub struct_size: u32,
    /// `ARENITE_TENSOR_` bits.
    pub flags: u32,
    /// Size in bytes, unrounded.
    pub bytes: u64,
    /// Where its memory comes from: a number from `kAreniteMemNone` to `kAreniteNonCpu`.
    pub allocation_type: u32,
    /// Its own alignment on top of the plan's: a power of two up to 65536, or 0 for none.
    pub alignment: u32,
}

const _: () = assert!(size_of::<arenite_tensor_desc_t>() == 24);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_tensor_desc_t {
    const DEFAULT: Self =
        Self { struct_size: 24, flags: 0, bytes: 0, allocation_type: Allocation::ArenaRw as u32, alignment: 0 };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_TENSOR_VARIABLE | ARENITE_TENSOR_UNKNOWN_SIZE;
}

/// The node runs no subgraph.
pub const ARENITE_CALL_NONE: u32 = 0;
/// The node runs one of its subgraphs (IF): they exclude each other and share bytes.
pub const ARENITE_CALL_BRANCH: u32 = 1;
/// The node runs all of its subgraphs over and over (WHILE): what they carry lives through the whole loop.
pub const ARENITE_CALL_LOOP: u32 = 2;
/// The node runs all of its subgraphs once, one after the other.
pub const ARENITE_CALL_SEQUENCE: u32 = 3;

/// No tensor of the node lies in another.
pub const ARENITE_VIEW_NONE: u32 = 0;
/// The outputs may lie one after the other in an input, whose bytes they are: a reshape, a squeeze, a slice or a split
/// along the outer dimension. The kernel copies nothing where they do.
pub const ARENITE_VIEW_OUTPUTS: u32 = 1;
/// The inputs may lie one after the other in the first output: a concatenation along the outer dimension. The kernel
/// copies only those that do not.
pub const ARENITE_VIEW_INPUTS: u32 = 2;

/// A node to add. Lists hold tensor indices, -1 for an absent tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_node_desc_t {
    /// `sizeof(arenite_node_desc_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Tensors it reads.
    pub inputs: *const i32,
    /// How many.
    pub input_count: u64,
    /// Tensors it writes.
    pub outputs: *const i32,
    /// How many.
    pub output_count: u64,
    /// Tensors alive only while it runs.
    pub temporaries: *const i32,
    /// How many.
    pub temporary_count: u64,
    /// Which inputs its first output may take over: `ARENITE_INPLACE_` bits.
    pub inplace: u64,
    /// The alignment its kernel asks of every tensor it touches: a power of two up to 65536, or 0 for none.
    pub alignment: u32,
    /// How it runs `subgraphs`: `ARENITE_CALL_`.
    pub call: u32,
    /// Subgraphs it runs, by the numbers `arenite_graph_attach` gave.
    pub subgraphs: *const u32,
    /// How many.
    pub subgraph_count: u64,
    /// Which of its tensors its kernel allows to lie in one another: `ARENITE_VIEW_`. Followed where it makes the arena
    /// smaller and the distance meets the tensor's alignment.
    pub view: u32,
    /// With `ARENITE_VIEW_OUTPUTS` the position in `inputs` of the input.
    pub view_input: u32,
    /// The first byte in the whole where the first part lies.
    pub view_offset: u64,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a raw pointer.
unsafe impl Versioned for arenite_node_desc_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        inputs: core::ptr::null(),
        input_count: 0,
        outputs: core::ptr::null(),
        output_count: 0,
        temporaries: core::ptr::null(),
        temporary_count: 0,
        inplace: 0,
        alignment: 0,
        call: ARENITE_CALL_NONE,
        subgraphs: core::ptr::null(),
        subgraph_count: 0,
        view: ARENITE_VIEW_NONE,
        view_input: 0,
        view_offset: 0,
    };
    const OLDER: &'static [usize] = &[core::mem::offset_of!(arenite_node_desc_t, view)];
    const FLAGS: u32 = 0;
}

/// Creates an empty graph.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_graph_destroy`.
///
/// # Safety
/// `out` is null or valid for one pointer write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_create(out: *mut *mut arenite_graph_t) -> arenite_status_t {
    let make = || Ok(GraphInner { graphs: alloc::vec![Graph::new()], pins: Vec::new(), orders: Vec::new() });
    // SAFETY: the caller's contract on `out`; no failure record.
    unsafe { handle::create(out, core::ptr::null_mut(), make) }
}

/// Creates a graph from an engine's own TfLite arrays. They are copied: the engine may change or free them afterwards.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown layout, allocation type or index (the record names the
/// tensor or node); `ARENITE_ERR_NULL`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`, `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_graph_destroy`. `failure` may be null.
///
/// # Safety
/// `desc` is null or a struct of its `struct_size`; the arrays it names are readable for their counts and unchanged during
/// the call; `out` is null or valid for one pointer write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_create_lite(
    desc: *const arenite_lite_desc_t,
    out: *mut *mut arenite_graph_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `desc`.
        let desc = unsafe { abi::read(desc, "the description is null") }?;
        // SAFETY: the caller's contract on the arrays; `tables` ends with the call.
        let tables = unsafe { LiteTables::new(&desc) }?;
        Ok(GraphInner { graphs: alloc::vec![Graph::copy_of(&tables)?], pins: Vec::new(), orders: Vec::new() })
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Adds a tensor to the graph and writes its index, which counts up from 0.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`.
///
/// # Safety
/// `graph` is null or live; `desc` is null or a struct of its `struct_size`; `out_index` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_add_tensor(
    graph: *mut arenite_graph_t,
    desc: *const arenite_tensor_desc_t,
    out_index: *mut u32,
) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        // SAFETY: the caller's contract on `out_index`.
        let out = unsafe { guard::out(out_index, "out_index is null") }?;
        // SAFETY: the caller's contract on `desc`.
        let d = unsafe { abi::read(desc, "the tensor description is null") }?;
        let tensor = Tensor {
            bytes: (d.flags & ARENITE_TENSOR_UNKNOWN_SIZE == 0).then_some(d.bytes),
            allocation: Allocation::try_from(d.allocation_type)?,
            align: optional_align(d.alignment)?,
            variable: d.flags & ARENITE_TENSOR_VARIABLE != 0,
        };
        out.write(g.graphs[0].add_tensor(tensor)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Adds a node at the end of the execution order and writes its index, which counts up from 0.
///
/// Tensors may be added after the nodes that use them: indices are checked when the graph is planned.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NULL`.
///
/// # Safety
/// `graph` is null or live; `desc` is null or a struct of its `struct_size` whose arrays are readable for their counts;
/// `out_index` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_add_node(
    graph: *mut arenite_graph_t,
    desc: *const arenite_node_desc_t,
    out_index: *mut u32,
) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        // SAFETY: the caller's contract on `out_index`.
        let out = unsafe { guard::out(out_index, "out_index is null") }?;
        // SAFETY: the caller's contract on `desc`.
        let d = unsafe { abi::read(desc, "the node description is null") }?;
        // SAFETY: the caller's contract on the arrays of `desc`.
        let inputs = unsafe { abi::array(d.inputs, d.input_count, "inputs is null") }?;
        // SAFETY: as above.
        let outputs = unsafe { abi::array(d.outputs, d.output_count, "outputs is null") }?;
        // SAFETY: as above.
        let temporaries = unsafe { abi::array(d.temporaries, d.temporary_count, "temporaries is null") }?;
        // SAFETY: as above.
        let subgraphs = unsafe { abi::array(d.subgraphs, d.subgraph_count, "subgraphs is null") }?;
        let call = match d.call {
            ARENITE_CALL_NONE => CallKind::None,
            ARENITE_CALL_BRANCH => CallKind::Branch,
            ARENITE_CALL_LOOP => CallKind::Loop,
            ARENITE_CALL_SEQUENCE => CallKind::Sequence,
            other => return Err(Error::argument("call is not one of ARENITE_CALL_").needed(other.into())),
        };
        let view = match d.view {
            ARENITE_VIEW_NONE => View::None,
            ARENITE_VIEW_OUTPUTS if u64::from(d.view_input) >= d.input_count => {
                let e = Error::argument("view_input is not the position of an input").needed(d.view_input.into());
                return Err(e.available(d.input_count));
            }
            ARENITE_VIEW_OUTPUTS => View::Outputs { input: d.view_input, offset: d.view_offset },
            ARENITE_VIEW_INPUTS => View::Inputs { offset: d.view_offset },
            other => return Err(Error::argument("view is not one of ARENITE_VIEW_").needed(other.into())),
        };
        out.write(g.graphs[0].add_node(&NodeSpec {
            inputs,
            outputs,
            temporaries,
            inplace: InPlace(d.inplace),
            view,
            align: optional_align(d.alignment)?,
            call,
            subgraphs,
        })?);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Replaces the graph's inputs.
///
/// # Safety
/// `graph` is null or live; `tensors` is readable for `count` numbers.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_set_inputs(
    graph: *mut arenite_graph_t,
    tensors: *const i32,
    count: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract on `tensors`.
    let body = |g: &mut GraphInner| unsafe { set_list(g, tensors, count, Graph::set_inputs) };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Replaces the graph's outputs.
///
/// # Safety
/// As `arenite_graph_set_inputs`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_set_outputs(
    graph: *mut arenite_graph_t,
    tensors: *const i32,
    count: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract on `tensors`.
    let body = |g: &mut GraphInner| unsafe { set_list(g, tensors, count, Graph::set_outputs) };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Replaces the list of tensors that keep their contents between runs, besides those added as variables.
///
/// # Safety
/// As `arenite_graph_set_inputs`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_set_variables(
    graph: *mut arenite_graph_t,
    tensors: *const i32,
    count: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract on `tensors`.
    let body = |g: &mut GraphInner| unsafe { set_list(g, tensors, count, Graph::set_variables) };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// # Safety
/// `tensors` is readable for `count` numbers.
unsafe fn set_list(
    g: &mut GraphInner,
    tensors: *const i32,
    count: u64,
    set: fn(&mut Graph, &[i32]),
) -> Result<(), Error> {
    // SAFETY: the caller's contract on `tensors`.
    let list = unsafe { abi::array(tensors, count, "the list of tensors is null") }?;
    set(&mut g.graphs[0], list);
    Ok(())
}

/// Changes a tensor's size. Plans made before keep the old size.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
///
/// # Safety
/// `graph` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_set_bytes(
    graph: *mut arenite_graph_t,
    tensor: u32,
    bytes: u64,
) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        g.graphs[0].tensor_mut(tensor as usize)?.bytes = Some(bytes);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Keeps a tensor alive at least until step `until`, for instance to read it after the run (the last step).
///
/// Returns: `ARENITE_OK`. Tensor and step are checked when the graph is planned.
///
/// # Safety
/// `graph` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_pin(graph: *mut arenite_graph_t, tensor: u32, until: u32) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        g.pins.push(Pin { tensor, until });
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Copies `callee` (its own subgraph 0) into `graph` as a subgraph that nodes may run, and writes its number, from 1.
///
/// `callee` may run subgraphs that were attached to `graph` before, by `graph`'s numbers. Its pins are not taken over.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` where both are the same graph.
///
/// # Safety
/// Both graphs are null or live; `out_subgraph` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_attach(
    graph: *mut arenite_graph_t,
    callee: *const arenite_graph_t,
    out_subgraph: *mut u32,
) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        // SAFETY: the caller's contract on `out_subgraph`.
        let out = unsafe { guard::out(out_subgraph, "out_subgraph is null") }?;
        // SAFETY: the caller's contract on `callee`.
        let callee = unsafe { handle::borrow(callee) }?;
        g.graphs.push(callee.graphs[0].clone());
        out.write(g.graphs.len() as u32 - 1);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// The tensor is alive to the end of the run and beyond.
pub const ARENITE_LIFETIME_KEPT: u32 = 1;

/// When a tensor is alive and where its bytes are.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_lifetime_t {
    /// The first step alive.
    pub first: u32,
    /// The last step alive, inclusive.
    pub last: u32,
    /// `ARENITE_LIFETIME_` bits.
    pub flags: u32,
    /// `ARENITE_ARENA_MAIN`, `ARENITE_ARENA_PERSISTENT` or `ARENITE_ARENA_NONE`; the steps mean nothing for the last.
    pub arena: u32,
    /// The tensor of the same subgraph whose bytes it uses in place; its own index where none.
    pub root: u32,
    /// How many separate spans of steps lie between `first` and `last`; more than 1 in a subgraph called repeatedly.
    pub span_count: u32,
}

/// The tensor has no bytes in either arena.
pub const ARENITE_ARENA_NONE: u32 = 0;
/// The reusable arena.
pub const ARENITE_ARENA_MAIN: u32 = 1;
/// The persistent arena: bytes of its own that keep their contents.
pub const ARENITE_ARENA_PERSISTENT: u32 = 2;

/// Writes when each tensor of a subgraph is alive. `options` may be null for the defaults.
///
/// `lifetimes` has room for `count` records; the first `count` tensors are written.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an index out of range, a pin that fits nothing or more records asked
/// for than the subgraph has tensors; `ARENITE_ERR_UNSUPPORTED` where calls nest too deeply.
///
/// # Safety
/// `graph` is null or live; `options` is null or a struct of its `struct_size`; `lifetimes` is writable for `count`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_lifetimes(
    graph: *const arenite_graph_t,
    options: *const arenite_graph_options_t,
    subgraph: u32,
    lifetimes: *mut arenite_lifetime_t,
    count: u64,
) -> arenite_status_t {
    let body = |g: &GraphInner| {
        // SAFETY: the caller's contract on `options`.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the caller's contract on `lifetimes`.
        let out = unsafe { abi::array_mut(lifetimes, count, "lifetimes is null") }?;
        let refuse = |reason| Error::argument(reason).of(Subject::Subgraph(subgraph));
        let graph = g.graphs.get(subgraph as usize).ok_or(refuse("there is no such subgraph"))?;
        if count > graph.tensor_count() as u64 {
            return Err(refuse("more records than tensors").needed(count).available(graph.tensor_count() as u64));
        }
        let lowered = lower(&g.graphs, 0, &options, &g.pins)?;
        for (t, record) in out.iter_mut().enumerate() {
            *record = super::plan::lifetime_of(&lowered, subgraph as usize, t);
        }
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::shared(graph, body) }
}

/// Copies the record of the last failing call on this graph.
///
/// # Safety
/// `graph` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_last_failure(
    graph: *const arenite_graph_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(graph, out) }
}

/// Destroys a graph; null is allowed. Plans made from it stay valid.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `graph` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_graph_destroy(graph: *mut arenite_graph_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(graph) }
}
