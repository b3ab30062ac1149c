//! Several models that run one after another in one arena: the maximum of their transient bytes, the sum of their
//! persistent ones, and tensors that one hands to the next.

use alloc::vec::Vec;

use super::lower::Lowered;
use super::owned::{CallKind, Graph, NodeSpec};
use super::tables::{Call, Tables};
use crate::error::{Error, Subject};
use crate::planner::{Problem, Span};

/// An output of one graph that is the input of a later one: both use the same bytes, which stay from where the one is
/// written to where the other is last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Subgraph and tensor that is written.
    pub from: (u32, u32),
    /// Subgraph and tensor that is read.
    pub to: (u32, u32),
}

/// Models as one program.
#[derive(Clone, Debug)]
pub struct ModelSet {
    /// Graph 0 runs the models in order; then come their graphs.
    pub graphs: Vec<Graph>,
    /// The subgraph that each model's graph 0 has become.
    pub first: Vec<u32>,
}

impl ModelSet {
    /// Puts `models` (each its graphs, of which the first is run) in a row.
    ///
    /// An output is valid until the next model begins, unless a [`Link`] hands it on. Errors as
    /// [`Graph::add_node`].
    pub fn new(models: &[&[Graph]]) -> Result<ModelSet, Error> {
        let mut graphs = alloc::vec![Graph::new()];
        let mut first = Vec::with_capacity(models.len());
        for (m, model) in models.iter().enumerate() {
            if model.is_empty() {
                return Err(Error::argument("a model has no graph").needed(m as u64));
            }
            let base = graphs.len() as u32;
            first.push(base);
            for graph in *model {
                graphs.push(shifted(graph, base)?);
            }
            graphs[0].add_node(&NodeSpec { call: CallKind::Sequence, subgraphs: &[base], ..NodeSpec::default() })?;
        }
        Ok(ModelSet { graphs, first })
    }

    /// The link from tensor `from` of one model's graph 0 to tensor `to` of another's.
    ///
    /// `Argument` where there is no such model or the second does not come later.
    pub fn link(&self, from: (usize, u32), to: (usize, u32)) -> Result<Link, Error> {
        match (self.first.get(from.0), self.first.get(to.0)) {
            (Some(&a), Some(&b)) if a < b => Ok(Link { from: (a, from.1), to: (b, to.1) }),
            _ => Err(Error::argument("a tensor is handed to a model that does not come later")),
        }
    }
}

/// A copy of a graph whose calls name subgraphs `base` further on.
fn shifted(graph: &Graph, base: u32) -> Result<Graph, Error> {
    let mut out = Graph::new();
    for t in 0..graph.tensor_count() {
        out.add_tensor(graph.tensor(t))?;
    }
    for i in 0..graph.node_count() {
        let n = graph.node(i);
        let subgraphs: Option<Vec<u32>> = n.call.subgraphs().iter().map(|&s| s.checked_add(base)).collect();
        let none = Error::argument("a node runs a subgraph that does not exist").node(i);
        out.add_node(&NodeSpec {
            inputs: n.inputs,
            outputs: n.outputs,
            temporaries: n.temporaries,
            inplace: n.inplace,
            view: n.view,
            align: n.align,
            call: match n.call {
                Call::None => CallKind::None,
                Call::Branch(_) => CallKind::Branch,
                Call::Loop(_) => CallKind::Loop,
                Call::Sequence(_) => CallKind::Sequence,
            },
            subgraphs: &subgraphs.ok_or(none)?,
        })?;
    }
    out.set_inputs(graph.inputs());
    out.set_outputs(graph.outputs());
    out.set_variables(graph.variables());
    Ok(out)
}

/// Makes the tensors of every link one buffer of a lowered program, alive from the write to the last read.
///
/// `Argument` names a tensor that does not exist, is not in the reusable arena, differs in size from the other, or is
/// read before it is written.
pub fn apply_links(lowered: &mut Lowered, links: &[Link]) -> Result<(), Error> {
    if links.is_empty() {
        return Ok(());
    }
    let mut spans: Vec<Vec<Span>> = (0..lowered.problem.len()).map(|b| lowered.problem.spans(b).to_vec()).collect();
    let mut pairs = Vec::with_capacity(links.len());
    for link in links {
        let (from, to) = (buffer(lowered, link.from)?, buffer(lowered, link.to)?);
        let (Some(from), Some(to)) = (from, to) else {
            if from == to {
                continue; // both empty
            }
            return Err(refuse("the tensors of a link differ in size or arena", link.to));
        };
        let size = |b: u32| lowered.problem.buffers()[b as usize].spec.size;
        if size(from) != size(to) {
            let e = refuse("the tensors of a link differ in size or arena", link.to);
            return Err(e.needed(size(to)).available(size(from)));
        }
        let (last, first) = (spans[from as usize].last(), spans[to as usize].first());
        if let (Some(&last), Some(&first)) = (last, first) {
            if last.first > first.last {
                return Err(refuse("the tensor of a link is read before it is written", link.to).at(first.first));
            }
            let bridge = Span::new(last.first, first.first.max(last.last));
            spans[from as usize].push(bridge);
            crate::planner::union(&mut spans[from as usize]);
            let lives = &mut lowered.lives.spans[link.from.0 as usize][link.from.1 as usize];
            lives.push(bridge);
            crate::planner::union(lives);
        }
        pairs.push((from, to, *link));
    }
    let mut problem = Problem::with_capacity(spans.len());
    for (b, spans) in lowered.problem.buffers().iter().zip(&spans) {
        problem.add(b.spec, spans)?;
    }
    for b in 0..problem.len() {
        if let Some(alias) = lowered.problem.alias_of(b) {
            problem.alias(b as u32, alias.root, alias.delta)?;
        }
    }
    for (from, to, link) in pairs {
        let name = |e: Error| e.of(Subject::Tensor(link.to.1)).and(Subject::Subgraph(link.to.0));
        problem.alias(to, from, 0).map_err(name)?;
    }
    lowered.problem = problem;
    Ok(())
}

fn refuse(reason: &'static str, (subgraph, tensor): (u32, u32)) -> Error {
    Error::argument(reason).of(Subject::Tensor(tensor)).and(Subject::Subgraph(subgraph))
}

/// The buffer of a tensor; `None` for one without bytes of the reusable arena.
fn buffer(lowered: &Lowered, at: (u32, u32)) -> Result<Option<u32>, Error> {
    let list = lowered.buffers.get(at.0 as usize);
    let found = list.and_then(|l| l.get(at.1 as usize)).copied();
    found.ok_or(refuse("a link names a tensor that does not exist", at))
}

#[cfg(test)]
mod tests {
    use super::super::liveness::Options;
    use super::super::lower::{lower, persistent};
    use super::super::tables::{Allocation, Tensor};
    use super::*;
    use crate::planner::{check::check, plan, Options as PlanOptions};
    use crate::units::DEFAULT_ALIGN;

    fn chain(sizes: &[u64]) -> Graph {
        let mut g = Graph::new();
        for &bytes in sizes {
            g.add_tensor(Tensor { bytes: Some(bytes), ..Tensor::default() }).unwrap();
        }
        for i in 1..sizes.len() as i32 {
            g.add_node(&NodeSpec { inputs: &[i - 1], outputs: &[i], ..NodeSpec::default() }).unwrap();
        }
        g.set_inputs(&[0]);
        g.set_outputs(&[sizes.len() as i32 - 1]);
        g
    }

    #[test]
    fn transient_bytes_are_the_maximum_and_persistent_ones_the_sum() {
        let mut a = chain(&[128, 4096, 256]);
        let mut b = chain(&[256, 1024, 128]);
        for g in [&mut a, &mut b] {
            let t = Tensor { bytes: Some(128), allocation: Allocation::ArenaRwPersistent, ..Tensor::default() };
            let t = g.add_tensor(t).unwrap() as i32;
            g.set_variables(&[t]);
        }
        let set = ModelSet::new(&[&[a.clone()], &[b.clone()], &[a]]).unwrap();
        let options = Options::default();
        let l = lower(&set.graphs, 0, &options, &[]).unwrap();
        assert_eq!(plan(&l.problem, &PlanOptions::default()).unwrap().arena_bytes, 128 + 4096 + 256);
        assert_eq!(persistent(&set.graphs, DEFAULT_ALIGN, &[&l.lives]).unwrap().bytes, 3 * 128);
    }

    #[test]
    fn a_tensor_handed_on_survives_the_model_between() {
        let (a, b, c) = (chain(&[128, 512, 256]), chain(&[128, 8192, 128]), chain(&[256, 128]));
        let set = ModelSet::new(&[&[a], &[b], &[c]]).unwrap();
        let mut l = lower(&set.graphs, 0, &Options::default(), &[]).unwrap();
        let link = set.link((0, 2), (2, 0)).unwrap();
        apply_links(&mut l, &[link]).unwrap();
        let p = plan(&l.problem, &PlanOptions::default()).unwrap();
        check(&l.problem, &p.offsets).unwrap();
        assert_eq!(l.offset(&p, 1, 2), l.offset(&p, 3, 0));
        assert_eq!(p.arena_bytes, 256 + 128 + 8192 + 128, "kept beside everything of the model between");
        assert!(set.link((2, 0), (0, 0)).is_err() && set.link((0, 0), (3, 0)).is_err());
        let mut l = lower(&set.graphs, 0, &Options::default(), &[]).unwrap();
        let e = apply_links(&mut l, &[set.link((0, 2), (1, 0)).unwrap()]).unwrap_err();
        assert_eq!((e.subject, e.needed, e.available), (Subject::Tensor(0), Some(128), Some(256)));
        assert!(apply_links(&mut l, &[Link { from: (1, 9), to: (2, 0) }]).is_err());
    }
}
