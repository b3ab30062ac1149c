//! A plan made ahead of time for TFLite Micro, which follows the offsets in a file's `OfflineMemoryAllocation` entry.
//!
//! The runtime puts tensors with an offset there, whatever it is, and plans all others around them with its greedy
//! rule: scratch buffers, and what an entry leaves open. Its buffers are multiples of 16 bytes long.

use super::dtype::DType;
use super::tensor::{Subgraph, TensorKind};
use super::Model;
use crate::error::Error;
use crate::graph::liveness::{Options as Lifetimes, Policy};
use crate::graph::lower::{lower, Lowered};
use crate::graph::tables::{Allocation, InPlace, Node, Tables, Tensor};
use crate::planner::{check::check, plan, Options, Plan, Problem, Strategy};
use crate::units::{Align, Bytes};

/// The runtime's own alignment.
const HEAD: u64 = 16;

/// Offsets for all tensors of a model, and what the arena's reusable part then takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflinePlan {
    /// One per tensor over all subgraphs in turn; `None` for those the runtime places: constants, variables, and a few
    /// tensors of models with several subgraphs that not all versions of the runtime would read alike.
    pub offsets: Vec<Option<Bytes>>,
    /// Bytes of the arena's reusable part with these offsets, without kernel scratch.
    pub arena_bytes: Bytes,
    /// No plan in this order takes less.
    pub lower_bound: Bytes,
    /// The same bytes when the runtime plans everything itself.
    pub greedy_bytes: Bytes,
}

/// A subgraph as the runtime takes it: unpacked weights are computed in every run, and a handle to a resource is a number
/// in the arena.
struct Micro<'a>(&'a Subgraph);

impl Tables for Micro<'_> {
    fn tensor_count(&self) -> usize {
        self.0.tensor_count()
    }

    fn tensor(&self, index: usize) -> Tensor {
        let (tensor, mut out) = (&self.0.tensors[index], self.0.tensor(index));
        let written = matches!(tensor.kind, TensorKind::Inter | TensorKind::Persist);
        match tensor.dtype {
            DType::Resource if written => {
                let count = tensor.shape.iter().flatten().try_fold(4u64, |n, &d| n.checked_mul(d.try_into().ok()?));
                (out.allocation, out.bytes) = (Allocation::ArenaRw, count);
            }
            // Not packed two to a byte there.
            DType::Int4 => out.bytes = out.bytes.and_then(|b| b.checked_mul(2)),
            _ => {}
        }
        if written && out.allocation == Allocation::ArenaRwPersistent {
            out.allocation = Allocation::ArenaRw;
        }
        out
    }

    fn node_count(&self) -> usize {
        self.0.node_count()
    }

    fn node(&self, index: usize) -> Node<'_> {
        Node { inplace: InPlace::NONE, ..self.0.node(index) }
    }

    fn inputs(&self) -> &[i32] {
        Tables::inputs(self.0)
    }

    fn outputs(&self) -> &[i32] {
        Tables::outputs(self.0)
    }
}

impl Model {
    /// The same model with every subgraph's nodes in another order: one permutation for each subgraph.
    #[must_use]
    pub fn reordered(&self, orders: &[Vec<u32>]) -> Model {
        let mut out = self.clone();
        for ((new, old), order) in out.subgraphs.iter_mut().zip(&self.subgraphs).zip(orders) {
            new.nodes = order.iter().filter_map(|&n| old.nodes.get(n as usize).cloned()).collect();
        }
        out
    }

    /// Plans the model for TFLite Micro with offsets that are multiples of `align`, of 16 at least.
    ///
    /// The runtime starts at the first subgraph; what that does not run stays without an offset. Errors as
    /// [`lower`] and [`plan`], and `Unsupported` where the arena passes
    /// the format's 31 bits.
    pub fn offline(&self, align: Align, effort: Option<u64>) -> Result<OfflinePlan, Error> {
        let head = Align::new(HEAD).unwrap_or_default();
        let graphs: Vec<Micro<'_>> = self.subgraphs.iter().map(Micro).collect();
        let lowered = |align| {
            let lifetimes = Lifetimes { policy: Policy::Tflm, align, in_place: false, ..Lifetimes::default() };
            lower(&graphs, 0, &lifetimes, &[])
        };
        let own = lowered(head)?;
        let greedy = plan(&own.problem, &Options::of(Strategy::TflmGreedy))?;
        let strict = lowered(align.max(head))?;
        let best = plan(&strict.problem, &Options { effort, ..Options::default() })?;
        if best.arena_bytes > i32::MAX as Bytes {
            let what = "an offline plan has 31-bit offsets, and the arena is larger";
            return Err(Error::unsupported(what).needed(best.arena_bytes).available(i32::MAX as Bytes));
        }
        let mut offsets = flat(&self.subgraphs, |g, t| strict.offset(&best, g, t));
        self.agree(&own, &mut offsets);
        // Both ways of reading the entry must give a valid plan.
        let mut arena_bytes = 0;
        for restart in [false, true] {
            let followed = follow(&self.subgraphs, &own, &offsets, restart)?;
            arena_bytes = arena_bytes.max(followed.arena_bytes);
        }
        Ok(OfflinePlan { offsets, arena_bytes, lower_bound: best.lower_bound, greedy_bytes: greedy.arena_bytes })
    }

    /// Versions of the runtime from before 2026 count tensors from 0 in every subgraph when they look up an offset. An
    /// entry that such a version would give to a tensor of another subgraph is left open.
    fn agree(&self, own: &Lowered, offsets: &mut [Option<Bytes>]) {
        for (g, graph) in self.subgraphs.iter().enumerate().skip(1) {
            for (t, tensor) in graph.tensors.iter().enumerate() {
                if own.buffers[g][t].is_some() || tensor.kind == TensorKind::Var {
                    if let Some(offset) = offsets.get_mut(t) {
                        *offset = None;
                    }
                }
            }
        }
    }
}

fn flat(graphs: &[Subgraph], of: impl Fn(usize, usize) -> Option<Bytes>) -> Vec<Option<Bytes>> {
    let of = &of;
    graphs.iter().enumerate().flat_map(|(g, graph)| (0..graph.tensors.len()).map(move |t| of(g, t))).collect()
}

/// What the runtime makes of `offsets`, counting from 0 in every subgraph with `restart`.
fn follow(graphs: &[Subgraph], own: &Lowered, offsets: &[Option<Bytes>], restart: bool) -> Result<Plan, Error> {
    let mut fixed = vec![None; own.problem.buffers().len()];
    let mut base = 0;
    for (g, graph) in graphs.iter().enumerate() {
        for t in 0..graph.tensors.len() {
            if let Some(b) = own.buffers[g][t] {
                fixed[b as usize] = offsets.get(if restart { t } else { base + t }).copied().flatten();
            }
        }
        base += graph.tensors.len();
    }
    let mut problem = Problem::with_capacity(fixed.len());
    for (i, b) in own.problem.buffers().iter().enumerate() {
        let mut spec = b.spec;
        spec.fixed = fixed[i];
        problem.add(spec, own.problem.spans(i))?;
    }
    let found = plan(&problem, &Options::of(Strategy::TflmGreedy))?;
    check(&problem, &found.offsets).map_err(|_| Error::internal("the offline plan does not hold"))?;
    Ok(found)
}
