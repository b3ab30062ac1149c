//! Another execution order.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness;
use crate::graph::order::{order, Judge, Options};
use crate::model::Model;
use crate::planner::Options as PlanOptions;

const LEVER: &str = "order";
const HOW: &str = "`arenite optimize` writes the file with its operators in that order, which TFLite and TFLite Micro then \
                   run as listed. In ONNX list graph.node in that order; a runtime that sorts by itself (ONNX Runtime's \
                   execution_order) needs to be told to keep it.";

/// Puts the nodes of `model` into a better order where one is found. Returns per subgraph the order of its nodes and
/// whether any changed. This is what `plan --order` does, so the lever predicts that command's arena.
///
/// Errors as [`order`].
pub fn reorder(
    model: &mut Model,
    entries: &[usize],
    lifetimes: &liveness::Options,
    plan: &PlanOptions,
) -> Result<(Vec<Vec<u32>>, bool), Error> {
    let mut rules = model.order_rules(&[]);
    if model.control_dependencies.is_some() {
        // The pairs are in the file, which `optimize` reads; here every node keeps its place.
        for (k, graph) in (0u32..).zip(&model.subgraphs) {
            rules.before.extend((1..graph.nodes.len() as u32).map(|n| (k, n - 1, n)));
        }
    }
    let options = Options { judge: Judge { lifetimes: *lifetimes, plan: *plan }, ..Options::default() };
    let found = order(&model.subgraphs, entries, &rules, &options)?;
    for (graph, order) in model.subgraphs.iter_mut().zip(&found.orders) {
        graph.nodes = order.iter().map(|&n| graph.nodes[n as usize].clone()).collect();
    }
    Ok((found.orders, found.changed))
}

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    if case.options.keep_all {
        return Ok(vec![Pulled::nothing(LEVER, "does nothing here: nothing is ever released, in whatever order")]);
    }
    let mut model = case.model.clone();
    let (orders, changed) = reorder(&mut model, case.entries, &case.options, &case.plan)?;
    if !changed {
        return Ok(vec![Pulled::nothing(LEVER, "does nothing here: no other order was found that needs less")]);
    }
    let moved = orders.iter().flat_map(|o| o.iter().zip(0u32..)).filter(|(&n, at)| n != *at).count();
    let why = format!("the operators in another order that keeps the results, {moved} of them at another place");
    Ok(vec![Pulled::new(LEVER, case.edited(&model)?, why, HOW).option("--order")])
}
