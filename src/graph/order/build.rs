//! From a lowered graph to the part the search sees, and back to an order of all its nodes.

use alloc::vec::Vec;

use super::super::liveness::{Home, Options, Role};
use super::super::lower::Lowered;
use super::super::tables::{Call, Tables};
use super::part::{Cell, Part, Spot};
use super::rules::Precedence;
use crate::error::Error;
use crate::units::{round_up, Bytes};

/// One subgraph as the search sees it.
pub(crate) struct Built {
    pub part: Part,
    /// Which node each spot is, ascending.
    spots: Vec<u32>,
    /// Per node what must run before it.
    before: Vec<Vec<u32>>,
    /// Per spot the part of its extra bytes that is kernel scratch.
    scratch: Vec<Bytes>,
}

/// Builds the part of subgraph `k`, where `lowered` is an entry that runs it, in its present order.
pub(crate) fn build<T: Tables>(
    graphs: &[T],
    k: usize,
    entry: usize,
    lowered: &Lowered,
    options: &Options,
    precedence: &Precedence,
) -> Result<Built, Error> {
    let graph = &graphs[k];
    let n = graph.node_count();
    let looped = k != entry && in_loop(graphs, k);
    let (cell_of, mut cells) = cells(graph, k, k == entry, looped, lowered, options)?;
    let mut node_cells: Vec<Vec<u32>> = alloc::vec![Vec::new(); n];
    let mut extra = callees(graphs, k, lowered)?;
    let mut scratch: Vec<Bytes> = alloc::vec![0; n];
    for v in 0..n {
        let node = graph.node(v);
        for &t in node.temporaries.iter().filter(|&&t| t >= 0) {
            if lowered.lives.own[k][t as usize].role == Role::Temporary && lowered.buffers[k][t as usize].is_some() {
                let bytes = round_up(graph.tensor(t as usize).bytes.unwrap_or(0), options.align)?;
                scratch[v] = crate::units::add(scratch[v], bytes)?;
                extra[v] = crate::units::add(extra[v], bytes)?;
            }
        }
        let list = &mut node_cells[v];
        let touched = node.inputs.iter().chain(node.outputs).chain(node.temporaries).filter(|&&t| t >= 0);
        list.extend(touched.filter_map(|&t| cell_of[t as usize]));
        list.sort_unstable();
        list.dedup();
    }
    // A node without bytes that waits for nothing (a resource handle, weights unpacked once) fits anywhere: it is put
    // right before the first node that needs it, and no longer keeps the graph from falling apart at its cuts.
    let mut spot_of: Vec<Option<u32>> = alloc::vec![None; n];
    let mut spots: Vec<u32> = Vec::new();
    for v in 0..n {
        let waits = precedence.before[v].iter().any(|&u| spot_of[u as usize].is_some());
        if waits || extra[v] > 0 || !node_cells[v].is_empty() {
            spot_of[v] = Some(spots.len() as u32);
            spots.push(v as u32);
        }
    }
    let mut part = Part { spots: alloc::vec![Spot::default(); spots.len()], ..Part::default() };
    for (s, &v) in spots.iter().enumerate() {
        let before = precedence.before[v as usize].iter().filter_map(|&u| spot_of[u as usize]);
        part.spots[s].before = before.collect();
        part.spots[s].extra = extra[v as usize];
        part.spots[s].cells = core::mem::take(&mut node_cells[v as usize]);
        for i in 0..part.spots[s].before.len() {
            let u = part.spots[s].before[i] as usize;
            part.spots[u].after.push(s as u32);
        }
        for &c in &part.spots[s].cells {
            cells[c as usize].users.push(s as u32);
        }
    }
    for cell in &mut cells {
        // An input that nobody reads and nobody keeps is gone after the first node.
        if cell.users.is_empty() && cell.born && cell.kept {
            part.base = crate::units::add(part.base, cell.bytes)?;
        }
    }
    part.cells = cells;
    // Cells that no node touches stand in the base.
    part.cells.iter_mut().filter(|c| c.users.is_empty()).for_each(|c| c.bytes = 0);
    let scratch = spots.iter().map(|&v| scratch[v as usize]).collect();
    Ok(Built { part: part.checked()?, spots, before: precedence.before.clone(), scratch })
}

impl Built {
    /// The part with every call weighing only what is proven that it must: `bounds` are those of the subgraphs. `None`
    /// where that is the part itself.
    pub fn least<T: Tables>(&self, graph: &T, bounds: &[Bytes]) -> Option<Part> {
        let mut part = self.part.clone();
        for (s, &v) in self.spots.iter().enumerate() {
            let called = graph.node(v as usize).call.subgraphs().iter().map(|&g| bounds[g as usize]).max().unwrap_or(0);
            // No more than before, so the sums still do not wrap.
            part.spots[s].extra = part.spots[s].extra.min(self.scratch[s].saturating_add(called));
        }
        (part != self.part).then_some(part)
    }

    /// All nodes in the order of the spots given.
    pub fn nodes(&self, order: &[u32]) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.before.len());
        let mut placed = alloc::vec![false; self.before.len()];
        for &v in &self.spots {
            placed[v as usize] = true; // by its turn below, never by need
        }
        let mut stack: Vec<u32> = Vec::new();
        let mut need = |v: u32, out: &mut Vec<u32>| {
            // What `v` needs of the nodes left out, deepest first; theirs are left out too.
            stack.push(v);
            while let Some(&top) = stack.last() {
                match self.before[top as usize].iter().find(|&&u| !placed[u as usize]) {
                    Some(&u) => stack.push(u),
                    None => {
                        stack.pop();
                        if !placed[top as usize] {
                            placed[top as usize] = true;
                            out.push(top);
                        }
                    }
                }
            }
        };
        for &s in order {
            let v = self.spots[s as usize];
            need(v, &mut out);
            out.push(v);
        }
        for v in 0..self.before.len() as u32 {
            need(v, &mut out);
        }
        out
    }
}

/// The cell of each tensor, and the cells without their users.
fn cells<T: Tables>(
    graph: &T,
    k: usize,
    entry: bool,
    looped: bool,
    lowered: &Lowered,
    options: &Options,
) -> Result<(Vec<Option<u32>>, Vec<Cell>), Error> {
    let n = graph.tensor_count();
    let (lives, roots) = (&lowered.lives.own[k], &lowered.roots[k]);
    let mut cell_of: Vec<Option<u32>> = alloc::vec![None; n];
    let mut of_root: Vec<Option<u32>> = alloc::vec![None; n];
    let mut cells: Vec<Cell> = Vec::new();
    for t in 0..n {
        let l = lives[t];
        if lowered.buffers[k][t].is_none() || l.home != Home::Arena || l.role == Role::Temporary {
            continue;
        }
        let c = *of_root[roots[t] as usize].get_or_insert_with(|| {
            cells.push(Cell::default());
            cells.len() as u32 - 1
        });
        let cell = &mut cells[c as usize];
        // The least alignment any tensor has: with stricter ones the sums are still no more than what is needed.
        cell.bytes = cell.bytes.max(round_up(graph.tensor(t).bytes.unwrap_or(0), options.align)?);
        let (input, output) =
            (matches!(l.role, Role::Input | Role::InputOutput), matches!(l.role, Role::Output | Role::InputOutput));
        cell.born |= input || l.role == Role::Variable || (looped && output);
        cell.kept |= l.kept || (!entry && (output || (input && (looped || !options.inputs_reusable()))));
        cell_of[t] = Some(c);
    }
    Ok((cell_of, cells))
}

/// Whether some node runs `k` over and over.
fn in_loop<T: Tables>(graphs: &[T], k: usize) -> bool {
    graphs
        .iter()
        .any(|g| (0..g.node_count()).any(|v| matches!(g.node(v).call, Call::Loop(list) if list.contains(&(k as u32)))))
}

/// Per node of `k` the most bytes alive in the subgraphs it runs.
fn callees<T: Tables>(graphs: &[T], k: usize, lowered: &Lowered) -> Result<Vec<Bytes>, Error> {
    let n = graphs[k].node_count();
    let mut out = alloc::vec![0; n];
    let below = reachable(graphs, k);
    if below.len() == 1 {
        return Ok(out);
    }
    let steps = lowered.timeline.steps();
    // Changes of the sum at each step; an i128 holds any sum of 2^32 sizes.
    let mut change = alloc::vec![0i128; steps.len() + 1];
    for &g in below.iter().filter(|&&g| g != k) {
        for (t, buffer) in lowered.buffers[g].iter().enumerate() {
            let alias = lowered.roots[g][t] as usize != t;
            if let (Some(b), false) = (buffer, alias) {
                let spec = lowered.problem.buffers()[*b as usize].spec;
                let bytes = i128::from(round_up(spec.size, spec.align)?);
                for span in lowered.problem.spans(*b as usize) {
                    change[span.first as usize] += bytes;
                    change[(span.last as usize + 1).min(steps.len())] -= bytes;
                }
            }
        }
    }
    let (mut live, mut node) = (0i128, None);
    for (step, at) in steps.iter().enumerate() {
        live += change[step];
        if at.subgraph as usize == k {
            node = Some(at.node as usize);
        } else if !below.contains(&(at.subgraph as usize)) {
            node = None;
        }
        if let Some(v) = node {
            let bytes =
                Bytes::try_from(live.max(0)).map_err(|_| Error::overflow("a sum of sizes does not fit 64 bits"))?;
            out[v] = out[v].max(bytes);
        }
    }
    Ok(out)
}

/// `k` and all subgraphs it runs, callees first.
pub(crate) fn reachable<T: Tables>(graphs: &[T], k: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut open = alloc::vec![(k, 0usize)];
    let mut seen = alloc::vec![false; graphs.len()];
    seen[k] = true;
    while let Some((g, v)) = open.pop() {
        if v == graphs[g].node_count() {
            out.push(g);
            continue;
        }
        open.push((g, v + 1));
        for &callee in graphs[g].node(v).call.subgraphs() {
            if !core::mem::replace(&mut seen[callee as usize], true) {
                open.push((callee as usize, 0));
            }
        }
    }
    out
}
