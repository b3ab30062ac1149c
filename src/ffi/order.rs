//! Execution orders: which nodes an engine should run when, for a smaller arena.

use core::mem::size_of;

use alloc::vec::Vec;

use super::abi::{self, Versioned};
use super::graph::{arenite_graph_t, GraphInner};
use super::handle;
use super::options::{arenite_graph_options_t, read_options};
use super::plan::{arenite_plan_t, PlanInner};
use super::status::arenite_status_t;
use crate::error::{Error, Subject};
use crate::graph::order::{order, Judge, Options, Permuted, Rules, State, Touch};
use crate::graph::owned::Graph;
use crate::graph::tables::Tables;
use crate::planner;

/// The state that stands for anything: what an unknown operator may do. It stays in order with all other states.
pub const ARENITE_STATE_WORLD: u32 = u32::MAX;

/// One node's use of state that no tensor shows: a resource variable, a random generator, a file.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_touch_t {
    /// The subgraph; 0 is the graph itself.
    pub subgraph: u32,
    /// The node, in the order in which nodes were added.
    pub node: u32,
    /// The state by a number of the engine's choice, or `ARENITE_STATE_WORLD`.
    pub state: u32,
    /// 1 where the node may change it, 0 where it only reads it. Readers of one state may change places.
    pub writes: u32,
}

const _: () = assert!(size_of::<arenite_touch_t>() == 16);

/// Two nodes of a subgraph to be kept in order.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_node_pair_t {
    /// The subgraph.
    pub subgraph: u32,
    /// Runs first; added before the other.
    pub before: u32,
    /// Runs later.
    pub after: u32,
}

const _: () = assert!(size_of::<arenite_node_pair_t>() == 12);

/// Nodes that run subgraphs have no effect but their outputs. Without this flag each may do anything.
pub const ARENITE_ORDER_PURE_CALLS: u32 = 1;

/// What may change places.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_order_options_t {
    /// `sizeof(arenite_order_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_ORDER_` bits.
    pub flags: u32,
    /// Uses of state. A node without any is taken to do nothing but write its outputs.
    pub touches: *const arenite_touch_t,
    /// How many.
    pub touch_count: u64,
    /// Pairs to be kept in order for other reasons.
    pub pairs: *const arenite_node_pair_t,
    /// How many.
    pub pair_count: u64,
    /// Nodes to look at; 0 for about a second's worth. The same effort gives the same order on every machine.
    pub effort: u64,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a raw pointer.
unsafe impl Versioned for arenite_order_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        touches: core::ptr::null(),
        touch_count: 0,
        pairs: core::ptr::null(),
        pair_count: 0,
        effort: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_ORDER_PURE_CALLS;
}

/// What an order is worth.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_order_result_t {
    /// `sizeof(arenite_order_result_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The arena of the order in which nodes were added, unrounded.
    pub arena_bytes_before: u64,
    /// The arena of the order found: never more.
    pub arena_bytes_after: u64,
    /// No allowed order takes less, as far as is proven, rounded up to the alignment; 0 where nothing is proven.
    pub lower_bound: u64,
    /// 1 where the order found is proven to be the best.
    pub proven: u32,
    /// 1 where it is another than the given one.
    pub changed: u32,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_order_result_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        arena_bytes_before: 0,
        arena_bytes_after: 0,
        lower_bound: 0,
        proven: 0,
        changed: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Looks for the execution order with the smallest arena and writes the nodes of `subgraph` in that order.
///
/// Data, variables, bytes written in place and what `order_options` names keep their order; the graph itself is not changed:
/// give the order to `arenite_graph_set_order` and to the engine. Pins are not counted, since they name steps of one order.
/// Subgraphs a node runs get orders of their own, found by the same search whichever is asked for. `options` and
/// `order_options` may be null for the defaults, `result` may be null.
///
/// `nodes` has room for `count` numbers, which must be the number of the subgraph's nodes.
/// Returns: `ARENITE_OK`, also where the given order is the best found; `ARENITE_ERR_ARGUMENT` for an index out of range,
/// another count, or a pair that is not in the given order; `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_UNSUPPORTED`.
///
/// # Safety
/// `graph` is null or live; the options are null or structs of their `struct_size` whose arrays are readable for their
/// counts; `nodes` is writable for `count`; `result` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_order(
    graph: *const arenite_graph_t,
    options: *const arenite_graph_options_t,
    order_options: *const arenite_order_options_t,
    subgraph: u32,
    nodes: *mut u32,
    count: u64,
    result: *mut arenite_order_result_t,
) -> arenite_status_t {
    let body = |g: &GraphInner| {
        // SAFETY: the caller's contract on `options`.
        let lifetimes = unsafe { read_options(options) }?;
        // SAFETY: the caller's contract on `order_options`.
        let asked = unsafe { abi::read_or_default(order_options) }?;
        // SAFETY: the caller's contract on the arrays of `order_options`.
        let rules = unsafe { rules(&g.graphs, &asked) }?;
        // SAFETY: the caller's contract on `nodes`.
        let out = unsafe { abi::array_mut(nodes, count, "nodes is null") }?;
        let refuse = |reason| Error::argument(reason).of(Subject::Subgraph(subgraph));
        let graph = g.graphs.get(subgraph as usize).ok_or(refuse("there is no such subgraph"))?;
        if out.len() != graph.node_count() {
            return Err(refuse("count is not the number of the subgraph's nodes")
                .needed(graph.node_count() as u64)
                .available(count));
        }
        let search = Options {
            judge: Judge::new(lifetimes, planner::Options::default()),
            others: &[],
            effort: (asked.effort > 0).then_some(asked.effort),
        };
        let found = order(&g.graphs, &[0], &rules, &search)?;
        if !result.is_null() {
            let value = arenite_order_result_t {
                arena_bytes_before: found.before[0].arena_bytes,
                arena_bytes_after: found.after[0].arena_bytes,
                lower_bound: found.bound,
                proven: found.proven.into(),
                changed: found.changed.into(),
                ..arenite_order_result_t::DEFAULT
            };
            // SAFETY: `result` is not null, and the caller's contract is that of `fill`.
            unsafe { abi::fill(result, &value, "the result is null") }?;
        }
        out.copy_from_slice(&found.orders[subgraph as usize]);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::shared(graph, body) }
}

/// Puts the nodes of `subgraph` into another order, for instance one found by `arenite_graph_order`.
///
/// `nodes` holds each node once, by its place before the call; afterwards nodes are numbered by their new places. Whether
/// the order respects the data is the caller's affair. Plans made before keep the old order.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where `nodes` is not a permutation of the subgraph's nodes.
///
/// # Safety
/// `graph` is null or live; `nodes` is readable for `count` numbers.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_graph_set_order(
    graph: *mut arenite_graph_t,
    subgraph: u32,
    nodes: *const u32,
    count: u64,
) -> arenite_status_t {
    let body = |g: &mut GraphInner| {
        // SAFETY: the caller's contract on `nodes`.
        let order = unsafe { abi::array(nodes, count, "nodes is null") }?;
        let refuse = |reason| Error::argument(reason).of(Subject::Subgraph(subgraph));
        let graph = g.graphs.get(subgraph as usize).ok_or(refuse("there is no such subgraph"))?;
        let mut seen = alloc::vec![false; graph.node_count()];
        let fresh = |&v: &u32| seen.get_mut(v as usize).is_some_and(|s| !core::mem::replace(s, true));
        if order.len() != graph.node_count() || !order.iter().all(fresh) {
            return Err(refuse("the order does not hold every node of the subgraph once"));
        }
        let moved = Graph::copy_of(&Permuted { graph, order })?;
        let k = subgraph as usize;
        let was = g.order_of(k);
        let now = order.iter().map(|&v| was[v as usize]).collect();
        if g.orders.len() <= k {
            g.orders.resize(k + 1, Vec::new());
        }
        (g.graphs[k], g.orders[k]) = (moved, now);
        Ok(())
    };
    // SAFETY: the caller's contract on `graph`.
    unsafe { handle::exclusive(graph, body) }
}

/// Better orders of all subgraphs for a plan: nodes are taken to do nothing but write their outputs, those that run
/// subgraphs keep their order.
pub(crate) fn orders(graphs: &[Graph], lifetimes: &crate::graph::liveness::Options) -> Result<Vec<Vec<u32>>, Error> {
    // SAFETY: the defaults have no arrays.
    let rules = unsafe { rules(graphs, &arenite_order_options_t::DEFAULT) }?;
    let search = Options { judge: Judge::new(*lifetimes, planner::Options::default()), ..Options::default() };
    Ok(order(graphs, &[0], &rules, &search)?.orders)
}

/// Writes the order in which a plan expects the nodes of `subgraph` to run, so that an engine can execute by it.
///
/// `nodes` has room for `count` numbers, which must be the number of the subgraph's nodes. Nodes go by the numbers they
/// were added with, whatever `arenite_graph_set_order` or the flag `ARENITE_GRAPH_REORDER` made of their places; steps in the
/// plan count along this order. Without either the order is 0, 1, 2, ...
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such subgraph or for another count, with the right one in
/// the record; `ARENITE_ERR_UNSUPPORTED` for the plan of a bare problem, which has no nodes.
///
/// # Safety
/// `plan` is null or live; `nodes` is writable for `count` numbers.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_order(
    plan: *const arenite_plan_t,
    subgraph: u32,
    nodes: *mut u32,
    count: u64,
) -> arenite_status_t {
    let body = |p: &PlanInner| {
        // SAFETY: the caller's contract on `nodes`.
        let out = unsafe { abi::array_mut(nodes, count, "nodes is null") }?;
        if p.orders.is_empty() {
            return Err(Error::unsupported("the plan of a bare problem has no nodes"));
        }
        let refuse = |reason| Error::argument(reason).of(Subject::Subgraph(subgraph));
        let order = p.orders.get(subgraph as usize).ok_or(refuse("there is no such subgraph"))?;
        if out.len() != order.len() {
            let e = refuse("count is not the number of the subgraph's nodes");
            return Err(e.needed(order.len() as u64).available(count));
        }
        out.copy_from_slice(order);
        Ok(())
    };
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// # Safety
/// The arrays of `asked` are readable for their counts.
unsafe fn rules(graphs: &[Graph], asked: &arenite_order_options_t) -> Result<Rules, Error> {
    // SAFETY: the caller's contract.
    let touches = unsafe { abi::array(asked.touches, asked.touch_count, "touches is null") }?;
    // SAFETY: the caller's contract.
    let pairs = unsafe { abi::array(asked.pairs, asked.pair_count, "pairs is null") }?;
    let missing = |k: u32| Error::argument("there is no such subgraph").of(Subject::Subgraph(k));
    let mut rules = Rules::default();
    for t in touches {
        if t.subgraph as usize >= graphs.len() {
            return Err(missing(t.subgraph));
        }
        if t.writes > 1 {
            return Err(Error::argument("writes is neither 0 nor 1").node(t.node as usize).needed(t.writes.into()));
        }
        let state = if t.state == ARENITE_STATE_WORLD { State::World } else { State::Resource(t.state) };
        rules.touches.push(Touch { subgraph: t.subgraph, node: t.node, state, writes: t.writes == 1 });
    }
    for p in pairs {
        if p.subgraph as usize >= graphs.len() {
            return Err(missing(p.subgraph));
        }
        rules.before.push((p.subgraph, p.before, p.after));
    }
    if asked.flags & ARENITE_ORDER_PURE_CALLS == 0 {
        for (k, graph) in (0u32..).zip(graphs) {
            let calls: Vec<u32> = (0..graph.node_count() as u32)
                .filter(|&v| !graph.node(v as usize).call.subgraphs().is_empty())
                .collect();
            let touch = |node| Touch { subgraph: k, node, state: State::World, writes: true };
            rules.touches.extend(calls.into_iter().map(touch));
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::super::graph::{arenite_graph_create, arenite_graph_destroy};
    use super::super::status::{ARENITE_ERR_ARGUMENT, ARENITE_OK};
    use super::*;
    use crate::graph::owned::NodeSpec;
    use crate::graph::tables::Tensor;

    type Found = (arenite_status_t, Vec<u32>, arenite_order_result_t);

    fn find(graph: *mut arenite_graph_t, o: &arenite_order_options_t, subgraph: u32, count: usize) -> Found {
        let (mut nodes, mut r) = (alloc::vec![9u32; count], arenite_order_result_t::DEFAULT);
        let (null, out) = (core::ptr::null(), nodes.as_mut_ptr());
        // SAFETY: the graph is live, and every array is as long as the number beside it says.
        let status = unsafe { arenite_graph_order(graph, null, o, subgraph, out, count as u64, &mut r) };
        (status, nodes, r)
    }

    fn set(graph: *mut arenite_graph_t, nodes: &[u32]) -> arenite_status_t {
        // SAFETY: the graph is live and the slice is readable.
        unsafe { arenite_graph_set_order(graph, 0, nodes.as_ptr(), nodes.len() as u64) }
    }

    #[test]
    fn an_order_is_found_and_taken() {
        let mut graph = core::ptr::null_mut();
        // SAFETY: the output is a local variable.
        assert_eq!(unsafe { arenite_graph_create(&mut graph) }, ARENITE_OK);
        let build = |g: &mut GraphInner| {
            for bytes in [128, 4096, 4096, 128, 128, 256] {
                g.graphs[0].add_tensor(Tensor { bytes: Some(bytes), ..Tensor::default() })?;
            }
            for (i, o) in [(&[0][..], 1), (&[0], 2), (&[1], 3), (&[2], 4), (&[3, 4], 5)] {
                g.graphs[0].add_node(&NodeSpec { inputs: i, outputs: &[o], ..NodeSpec::default() })?;
            }
            g.graphs[0].set_inputs(&[0]);
            g.graphs[0].set_outputs(&[5]);
            Ok(())
        };
        // SAFETY: the graph is live.
        assert_eq!(unsafe { handle::exclusive(graph, build) }, ARENITE_OK);
        let mut o = arenite_order_options_t::DEFAULT;
        let (status, nodes, r) = find(graph, &o, 0, 5);
        assert_eq!((status, &nodes[..]), (ARENITE_OK, &[0, 2, 1, 3, 4][..]));
        assert_eq!((r.arena_bytes_before, r.arena_bytes_after, r.lower_bound), (8448, 4480, 4480));
        assert_eq!((r.proven, r.changed), (1, 1));
        // Nodes that share a state stay as they are.
        let touch = |node| arenite_touch_t { subgraph: 0, node, state: 3, writes: 1 };
        let touches = [touch(0), touch(1), touch(2), touch(3)];
        (o.touches, o.touch_count) = (touches.as_ptr(), 4);
        let (status, kept, r) = find(graph, &o, 0, 5);
        assert_eq!((status, &kept[..], r.changed), (ARENITE_OK, &[0, 1, 2, 3, 4][..], 0));
        let pair = arenite_node_pair_t { subgraph: 0, before: 2, after: 1 };
        (o.pairs, o.pair_count) = (&pair, 1);
        assert_eq!(find(graph, &o, 0, 5).0, ARENITE_ERR_ARGUMENT);
        let o = arenite_order_options_t::DEFAULT;
        assert_eq!(find(graph, &o, 0, 4).0, ARENITE_ERR_ARGUMENT);
        assert_eq!(find(graph, &o, 1, 5).0, ARENITE_ERR_ARGUMENT);
        assert_eq!(set(graph, &[0, 1, 2, 3, 3]), ARENITE_ERR_ARGUMENT);
        assert_eq!(set(graph, &[0, 1, 2, 3, 5]), ARENITE_ERR_ARGUMENT);
        assert_eq!(set(graph, &nodes), ARENITE_OK);
        assert_eq!(find(graph, &o, 0, 5).1, [0, 1, 2, 3, 4], "the graph is in that order now");
        // SAFETY: the graph is live and not used again.
        assert_eq!(unsafe { arenite_graph_destroy(graph) }, ARENITE_OK);
    }
}
