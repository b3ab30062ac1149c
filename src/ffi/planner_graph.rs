//! A graph given to the planner: planned as a whole, or its tensors added as buffers.

use alloc::vec::Vec;

use super::abi;
use super::graph::arenite_graph_t;
use super::guard;
use super::handle;
use super::options::{arenite_graph_options_t, read_options, read_plan_options};
use super::plan::{arenite_plan_t, lifetime_of, Lowering, PlanInner};
use super::planner::{arenite_planner_t, PlannerInner};
use super::status::{arenite_status_t, ARENITE_NO_INDEX};
use crate::error::{Error, Subject};
use crate::graph::liveness::{Options, Role};
use crate::graph::lower::{lower, persistent, Lowered, Persistent};
use crate::graph::order::permuted;
use crate::graph::owned::Graph;
use crate::graph::tables::{Allocation, Tables};
use crate::graph::values::prove;
use crate::graph::views;
use crate::planner::Plan;
use crate::runtime::arena::Layout;

/// Adds the tensors of a graph as buffers, with their lifetimes, alignments and shared bytes, so that
/// `arenite_planner_fit`, `_replan`, `_regions` and `_check` can be asked about it.
///
/// Tensors of the subgraphs it calls are added too. `buffers` gets the index of each tensor of subgraph 0 among the
/// planner's buffers, or `ARENITE_NO_INDEX` where it gets no bytes of the reusable arena; it is null with `count` 0, or
/// `count` is the number of those tensors. `options` may be null for the defaults. The graph may be changed or destroyed
/// afterwards. Steps are those of the graph's flattened execution, from 0: graphs added to one planner run side by side.
/// Where a node declares sharing beyond TFLite's (views, any input in place), no bytes are shared in place here.
/// Returns and errors as `arenite_planner_plan_graph`; also `ARENITE_ERR_ARGUMENT` for another `count`. Nothing is added
/// where it fails.
///
/// # Safety
/// `planner` and `graph` are null or live; `options` is null or a struct of its `struct_size`; `buffers` is writable for
/// `count`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_add_graph(
    planner: *mut arenite_planner_t,
    graph: *const arenite_graph_t,
    options: *const arenite_graph_options_t,
    buffers: *mut u32,
    count: u64,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `options`.
        let mut options = unsafe { read_options(options) }?;
        // SAFETY: the caller's contract on `graph`.
        let g = unsafe { handle::borrow(graph) }?;
        // Only a plan can be followed value by value, and here there is none yet.
        options.in_place &= !g.graphs.iter().any(views::declared);
        // SAFETY: the caller's contract on `buffers`.
        let buffers = unsafe { abi::array_mut(buffers, count, "buffers is null") }?;
        let lowered = lower(&g.graphs, 0, &options, &g.pins)?;
        known_sizes(&g.graphs, &lowered)?;
        let own = &lowered.buffers[0];
        if !buffers.is_empty() && buffers.len() != own.len() {
            let e = Error::argument("there must be one index per tensor of the graph");
            return Err(e.needed(own.len() as u64).available(count));
        }
        let first = p.problem.append(&lowered.problem)?;
        for (out, buffer) in buffers.iter_mut().zip(own) {
            *out = buffer.map_or(ARENITE_NO_INDEX, |b| first + b);
        }
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// Finds the lifetimes of a graph and places its tensors. Buffers added to the planner play no part in it.
///
/// `options` may be null for the defaults; with `ARENITE_GRAPH_REORDER` in them the plan may expect another execution order.
/// The graph may be changed or destroyed afterwards.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an index out of range or a pin that fits nothing, with the node or
/// tensor in the record; `ARENITE_ERR_UNKNOWN_SIZE` for a planned tensor whose size is unknown; `ARENITE_ERR_UNSUPPORTED`
/// where subgraph calls nest too deeply; `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_BUSY`.
/// Ownership: `*out` is the caller's until `arenite_plan_destroy`.
///
/// # Safety
/// `planner` and `graph` are null or live; `options` is null or a struct of its `struct_size`; `out` is null or valid for
/// one pointer write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_plan_graph(
    planner: *mut arenite_planner_t,
    graph: *const arenite_graph_t,
    options: *const arenite_graph_options_t,
    out: *mut *mut arenite_plan_t,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "the pointer for the plan is null") }?;
        // SAFETY: the caller's contract on `options`.
        let (options, reorder) = unsafe { read_plan_options(options) }?;
        // SAFETY: the caller's contract on `graph`.
        let g = unsafe { handle::borrow(graph) }?;
        if reorder && !g.pins.is_empty() {
            return Err(Error::argument("pins name steps of one order, so the order cannot be another"));
        }
        let mut orders: Vec<Vec<u32>> = (0..g.graphs.len()).map(|k| g.order_of(k)).collect();
        let moved: Vec<Vec<u32>> = match reorder {
            true => super::order::orders(&g.graphs, &options)?,
            false => g.graphs.iter().map(|g| (0..g.node_count() as u32).collect()).collect(),
        };
        let graphs = permuted(&g.graphs, &moved);
        let mut lowered = lower(&graphs, 0, &options, &g.pins)?;
        known_sizes(&g.graphs, &lowered)?;
        let mut plan = p.solve(&lowered.problem)?;
        if prove(&graphs, 0, &g.pins, &lowered, &plan).is_err() {
            // Declared sharing that cannot be followed, as where a tensor is written twice, is not used at all.
            lowered = lower(&graphs, 0, &Options { in_place: false, ..options }, &g.pins)?;
            plan = p.solve(&lowered.problem)?;
        }
        let persistent = persistent(&g.graphs, options.align, &[&lowered.lives])?;
        let mut inner = plan_of_graph(&g.graphs, lowered, &persistent, plan)?;
        for (order, moved) in orders.iter_mut().zip(&moved) {
            *order = moved.iter().map(|&v| order[v as usize]).collect();
        }
        inner.orders = orders;
        out.write(handle::new(inner)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// A tensor that a node writes cannot be left out of the plan because its size is unknown.
fn known_sizes(graphs: &[Graph], lowered: &Lowered) -> Result<(), Error> {
    for (g, graph) in graphs.iter().enumerate() {
        for t in 0..graph.tensor_count() {
            let tensor = graph.tensor(t);
            let used = !matches!(lowered.lives.own[g][t].role, Role::Unwritten | Role::Constant);
            let planned = matches!(tensor.allocation, Allocation::ArenaRw | Allocation::ArenaRwPersistent);
            if used && planned && tensor.bytes.is_none() {
                let e = Error::unknown_size("the tensor's size is not known: set it or make the tensor dynamic");
                return Err(e.tensor(t).and(Subject::Subgraph(g as u32)));
            }
        }
    }
    Ok(())
}

fn plan_of_graph(
    graphs: &[Graph],
    mut lowered: Lowered,
    persistent: &Persistent,
    plan: Plan,
) -> Result<PlanInner, Error> {
    let of = |(g, graph): (usize, &Graph)| (0..graph.tensor_count()).map(|t| lifetime_of(&lowered, g, t)).collect();
    let lifetimes = graphs.iter().enumerate().map(of).collect();
    let layout = Layout::of(graphs, &lowered, persistent, &plan);
    let buffers = lowered.problem.len() as u64;
    let total_bytes = lowered.problem.total_bytes()?;
    let problem = core::mem::take(&mut lowered.problem);
    let told = |t: crate::graph::tables::Tensor| (t.allocation, t.bytes);
    let tensors = graphs.iter().map(|g| (0..g.tensor_count()).map(|t| told(g.tensor(t))).collect()).collect();
    let graph = Some(Lowering { lowered, tensors });
    let orders = Vec::new(); // the caller's
    Ok(PlanInner { plan, problem, layout, lifetimes, orders, buffers, total_bytes, graph })
}
