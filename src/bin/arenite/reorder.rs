//! `plan --order`: the model with its nodes in a better order.

use arenite::graph::liveness;
use arenite::graph::order::{order, Judge, Options};
use arenite::model::Model;

use super::output::{Done, Failure};
use super::plan::Args;
use super::planned::{named, plan_options};

/// Puts the nodes into a better order where there is one. Returns the orders.
pub fn reorder(
    model: &mut Model,
    args: &Args,
    entries: &[usize],
    lifetimes: &liveness::Options,
    title: &str,
) -> Done<Vec<Vec<u32>>> {
    let mut rules = model.order_rules(&[]);
    if model.control_dependencies.is_some() {
        // The pairs are in the file, which `optimize` reads; here every node keeps its place.
        for (k, graph) in (0u32..).zip(&model.subgraphs) {
            rules.before.extend((1..graph.nodes.len() as u32).map(|n| (k, n - 1, n)));
        }
    }
    let plan = plan_options(args);
    let options = Options { judge: Judge::new(*lifetimes, plan), ..Options::default() };
    let found =
        order(&model.subgraphs, entries, &rules, &options).map_err(|e| Failure::about(title, named(model, e)))?;
    for (graph, order) in model.subgraphs.iter_mut().zip(&found.orders) {
        graph.nodes = order.iter().map(|&n| graph.nodes[n as usize].clone()).collect();
    }
    Ok(found.orders)
}
