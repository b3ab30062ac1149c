//! From a graph to a planning problem.

use alloc::vec::Vec;

use super::inplace::{honoured, share, Share};
use super::liveness::{Home, Options, Pin, Policy};
use super::tables::{Tables, View};
use super::timeline::{Lives, Timeline};
use super::views::{self, Seat};
use crate::error::{Error, Subject};
use crate::planner::bound::lower_bound;
use crate::planner::{BufferSpec, Plan, Problem, Span};
use crate::units::{add, Align, Bytes};

/// Offsets in the persistent arena: placed once, in order, never reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persistent {
    /// Per subgraph and tensor.
    pub offsets: Vec<Vec<Option<Bytes>>>,
    /// The arena's size, unrounded.
    pub bytes: Bytes,
    /// The strictest alignment in it.
    pub align: Option<Align>,
}

/// One entry graph with everything it calls, as a planning problem.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The problem. Tensors that share bytes in place are aliases in it.
    pub problem: Problem,
    /// Per subgraph and tensor: its buffer, `None` where it gets no bytes of the reusable arena.
    pub buffers: Vec<Vec<Option<u32>>>,
    /// The flattened execution order.
    pub timeline: Timeline,
    /// Roles, homes and spans.
    pub lives: Lives,
    /// Per subgraph and tensor: the tensor of the same subgraph whose bytes it uses; itself where none.
    pub roots: Vec<Vec<u32>>,
}

impl Lowered {
    /// The offset of a tensor in `plan`, which must be a plan of this problem.
    pub fn offset(&self, plan: &Plan, subgraph: usize, tensor: usize) -> Option<Bytes> {
        let buffer = (*self.buffers.get(subgraph)?.get(tensor)?)?;
        plan.offsets.get(buffer as usize).copied()
    }
}

/// Lowers `graphs[entry]` and every subgraph it calls into one problem.
///
/// `pins` name tensors of the entry graph and steps of the flattened time line. Where nodes declare more than TFLite's
/// sharing ([`super::views`]), what makes the lower bound smaller is followed. Errors as [`Timeline::of`]; also
/// `Argument` for a pin that names no tensor or ends after the last step, `Overflow`.
pub fn lower<T: Tables>(graphs: &[T], entry: usize, options: &Options, pins: &[Pin]) -> Result<Lowered, Error> {
    let plain = lower_by(graphs, entry, options, pins, None)?;
    let sharing = options.in_place && !options.keep_all && options.policy != Policy::Tflite;
    if sharing && graphs.iter().any(views::declared) {
        return select(graphs, entry, options, pins, plain);
    }
    Ok(plain)
}

/// Evaluations spent on the choice of views: the time grows with the graph's length anyway.
const CHOICES: usize = 64;

/// Decides which declared views to follow: all at first, then without or again with each one that is alive at the peak,
/// as long as that lowers it. `plain` is what TFLite's flags alone give, and is returned where nothing is better.
fn select<T: Tables>(
    graphs: &[T],
    entry: usize,
    options: &Options,
    pins: &[Pin],
    plain: Lowered,
) -> Result<Lowered, Error> {
    let with = |skip: &[Vec<u32>]| {
        let lowered = lower_by(graphs, entry, options, pins, Some(skip))?;
        let bound = lower_bound(&lowered.problem.merge_aliases()?.0)?;
        Ok::<_, Error>((bound, lowered))
    };
    let viewing = |g: &T| (0..g.node_count() as u32).filter(|&v| g.node(v as usize).view != View::None).collect();
    let all: Vec<Vec<u32>> = graphs.iter().map(viewing).collect();
    let none: Vec<Vec<u32>> = alloc::vec![Vec::new(); graphs.len()];
    let (mut best, mut skip) = (with(&none)?, none);
    let without = with(&all)?;
    if without.0.bytes < best.0.bytes {
        (best, skip) = (without, all.clone());
    }
    let mut left = CHOICES;
    'better: loop {
        for (g, nodes) in all.iter().enumerate() {
            for &v in nodes {
                if !alive_at(&graphs[g], &best.1, (g, v as usize), best.0.step) {
                    continue;
                }
                if left == 0 {
                    break 'better;
                }
                left -= 1;
                let mut other = skip.clone();
                match other[g].binary_search(&v) {
                    Ok(at) => drop(other[g].remove(at)),
                    Err(at) => other[g].insert(at, v),
                }
                let found = with(&other)?;
                if found.0.bytes < best.0.bytes {
                    (best, skip) = (found, other);
                    continue 'better;
                }
            }
        }
        break;
    }
    let before = lower_bound(&plain.problem.merge_aliases()?.0)?;
    Ok(if best.0.bytes < before.bytes { best.1 } else { plain })
}

/// Whether a tensor of node `v` has bytes at `step`.
fn alive_at<T: Tables>(graph: &T, lowered: &Lowered, (g, v): (usize, usize), step: u32) -> bool {
    let node = graph.node(v);
    let mut touched = node.inputs.iter().chain(node.outputs).filter(|&&t| t >= 0);
    touched.any(|&t| {
        let root = lowered.roots[g][t as usize] as usize;
        let spans = |t: usize| lowered.buffers[g][t].map(|b| lowered.problem.spans(b as usize)).unwrap_or_default();
        spans(t as usize).iter().chain(spans(root)).any(|s| s.first <= step && step <= s.last)
    })
}

/// With `skip` the nodes' declarations are followed but for those views, without it TFLite's flags alone.
fn lower_by<T: Tables>(
    graphs: &[T],
    entry: usize,
    options: &Options,
    pins: &[Pin],
    skip: Option<&[Vec<u32>]>,
) -> Result<Lowered, Error> {
    let timeline = Timeline::of(graphs, entry)?;
    let mut lives = timeline.lives(graphs, options)?;
    pin(&timeline, &mut lives, entry, pins)?;
    let pinned: Vec<u32> = pins.iter().map(|p| p.tensor).collect();
    let mut roots: Vec<Vec<u32>> = Vec::with_capacity(graphs.len());
    let mut problem = Problem::new();
    let mut buffers: Vec<Vec<Option<u32>>> = Vec::with_capacity(graphs.len());
    for (g, graph) in graphs.iter().enumerate() {
        let n = graph.tensor_count();
        let aligns = alignments(graph, options.align);
        let seats: Vec<Seat> = match skip {
            Some(skip) => {
                let own = &lives.own[g];
                let pinned = if g == entry { &pinned[..] } else { &[] };
                views::seats(graph, &views::Given { own, aligns: &aligns, entry: g == entry, pinned, skip: &skip[g] })
            }
            None => {
                let mut shares = alloc::vec![Share::default(); n];
                share(graph, options, &lives.own[g], &mut shares)?;
                settle_shares(graph, options, timeline.last(), &mut lives, g, &mut shares);
                shares.iter().map(|s| Seat { root: s.root, delta: 0 }).collect()
            }
        };
        let mut ids: Vec<Option<u32>> = alloc::vec![None; n];
        for t in 0..n {
            let spans = &lives.spans[g][t];
            let bytes = graph.tensor(t).bytes.unwrap_or(0);
            if lives.own[g][t].home != Home::Arena || spans.is_empty() || bytes == 0 {
                continue;
            }
            let spec = BufferSpec::new(bytes, aligns[t]).kept(lives.own[g][t].kept);
            let name = |e: Error| e.of(Subject::Tensor(t as u32)).and(Subject::Subgraph(g as u32));
            ids[t] = Some(problem.add(spec, spans).map_err(name)?);
        }
        for t in 0..n {
            let root = seats[t].root as usize;
            if let (true, Some(member), Some(to)) = (root != t, ids[t], ids[root]) {
                problem.alias(member, to, seats[t].delta)?;
            }
        }
        roots.push(seats.iter().map(|s| s.root).collect());
        buffers.push(ids);
    }
    Ok(Lowered { problem, buffers, timeline, lives, roots })
}

fn pin(timeline: &Timeline, lives: &mut Lives, entry: usize, pins: &[Pin]) -> Result<(), Error> {
    let end = timeline.last();
    let count = lives.own[entry].len() as u64;
    for pin in pins {
        let refuse = |reason| Error::argument(reason).tensor(pin.tensor as usize);
        if u64::from(pin.tensor) >= count {
            return Err(refuse("a pin names no tensor").available(count));
        }
        if pin.until > end {
            return Err(refuse("a pin ends after the last step").needed(pin.until.into()).available(end.into()));
        }
        let spans = &mut lives.spans[entry][pin.tensor as usize];
        if let Some(&last) = spans.last() {
            if pin.until > last.last {
                spans.push(Span::new(last.first, pin.until));
                crate::planner::union(spans);
            }
        }
        let own = &mut lives.own[entry][pin.tensor as usize];
        own.last = own.last.max(pin.until);
    }
    Ok(())
}

/// Undoes sharing that does not hold, and gives roots the reads TFLite credits to them.
fn settle_shares<T: Tables>(graph: &T, options: &Options, end: u32, lives: &mut Lives, g: usize, shares: &mut [Share]) {
    let given = shares.to_vec();
    for t in 0..given.len() {
        let root = given[t].root as usize;
        if root == t || honoured(graph, &lives.own[g], &given, t) {
            continue;
        }
        shares[t].root = t as u32;
        if options.policy == Policy::Tflite && lives.own[g][t].home == Home::Arena {
            // Its readers were counted for the root, so TFLite never releases it.
            let reads = lives.spans[g][t].clone();
            lives.spans[g][root].extend(reads);
            crate::planner::union(&mut lives.spans[g][root]);
            let own = &mut lives.own[g][t];
            (own.last, own.kept) = (end, true);
            let first = own.first;
            lives.spans[g][t] = alloc::vec![Span::new(first, end)];
        }
    }
}

/// The strictest of the plan's, the tensor's and every node's alignment that touches it.
pub(crate) fn alignments<T: Tables>(graph: &T, plan: Align) -> Vec<Align> {
    let mut out: Vec<Align> =
        (0..graph.tensor_count()).map(|t| plan.max(graph.tensor(t).align.unwrap_or(Align::ONE))).collect();
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        let Some(align) = node.align else { continue };
        for &t in node.inputs.iter().chain(node.outputs).chain(node.temporaries).filter(|&&t| t >= 0) {
            out[t as usize] = out[t as usize].max(align);
        }
    }
    out
}

/// Lays out the persistent arena of all `entries`, each tensor once, in order of subgraph and index.
pub fn persistent<T: Tables>(graphs: &[T], align: Align, entries: &[&Lives]) -> Result<Persistent, Error> {
    let mut out = Persistent::default();
    for (g, graph) in graphs.iter().enumerate() {
        let n = graph.tensor_count();
        let aligns = alignments(graph, align);
        let mut offsets = alloc::vec![None; n];
        for t in 0..n {
            if !entries.iter().any(|e| e.own[g][t].home == Home::Persistent) {
                continue;
            }
            let name = |e: Error| e.of(Subject::Tensor(t as u32)).and(Subject::Subgraph(g as u32));
            let at = crate::units::round_up(out.bytes, aligns[t]).map_err(name)?;
            out.bytes = add(at, graph.tensor(t).bytes.unwrap_or(0)).map_err(name)?;
            out.align = out.align.max(Some(aligns[t]));
            offsets[t] = Some(at);
        }
        out.offsets.push(offsets);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::{op, Small};
    use super::super::tables::{Allocation, InPlace};
    use super::*;
    use crate::planner::{check::check, plan, Options as PlanOptions};

    fn run(graphs: &[Small], options: &Options, pins: &[Pin]) -> (Lowered, Plan) {
        let l = lower(graphs, 0, options, pins).unwrap();
        let p = plan(&l.problem, &PlanOptions::default()).unwrap();
        check(&l.problem, &p.offsets).unwrap();
        (l, p)
    }

    #[test]
    fn in_place_tensors_share_an_offset_and_the_bound_knows() {
        let add = InPlace(InPlace::INPUT_0);
        let ops = [op(&[0], &[1]), op(&[1], &[2]).inplace(add), op(&[2], &[3]).inplace(add), op(&[3], &[4])];
        let g = [Small::new(&[128, 256, 256, 256, 128], &[0], &[4], &ops)];
        let (l, p) = run(&g, &Options::default(), &[]);
        assert_eq!((p.arena_bytes, p.lower_bound, p.optimal), (512, 512, true));
        assert_eq!(l.offset(&p, 0, 1), l.offset(&p, 0, 3));
        assert_eq!(l.roots[0], [0, 1, 1, 1, 4]);
        let off = Options { in_place: false, ..Options::default() };
        let (_, p) = run(&g, &off, &[]);
        assert_eq!(p.arena_bytes, 640);
    }

    #[test]
    fn a_body_called_twice_uses_one_set_of_bytes_free_between_the_calls() {
        let call = |i: i32| {
            let mut o = op(&[i], &[i + 1]);
            o.sequence = vec![1];
            o
        };
        // Between the calls the main graph needs 4096 bytes that fit where the body's were.
        let mut main = Small::new(&[8, 8, 4096, 8, 8], &[0], &[4], &[call(0), op(&[1], &[2]), op(&[2], &[3]), call(3)]);
        main.inputs = vec![0];
        let body = Small::new(&[8, 4096, 8], &[0], &[2], &[op(&[0], &[1]), op(&[1], &[2])]);
        let (l, p) = run(&[main, body], &Options::default(), &[]);
        assert_eq!(l.problem.spans(l.buffers[1][1].unwrap() as usize).len(), 2);
        assert!(p.arena_bytes < 2 * 4096, "{}", p.arena_bytes);
    }

    #[test]
    fn persistent_tensors_get_their_own_arena_in_order() {
        let mut g = Small::new(&[100, 60, 8], &[2], &[], &[op(&[2, 0], &[]).temporaries(&[1])]);
        g.tensors[0].variable = true;
        g.tensors[1].allocation = Allocation::ArenaRwPersistent;
        let g = [g];
        let (l, p) = run(&g, &Options::default(), &[]);
        let persistent = persistent(&g, Align::new(64).unwrap(), &[&l.lives]).unwrap();
        assert_eq!((persistent.offsets[0].clone(), persistent.bytes), (vec![Some(0), Some(128), None], 188));
        assert_eq!((l.offset(&p, 0, 0), p.arena_bytes), (None, 8));
    }

    #[test]
    fn pins_extend_the_last_span() {
        let ops: Vec<_> = (0..5).map(|i| op(&[i - 1], &[i])).chain([op(&[4], &[])]).collect();
        let g = [Small::new(&[4096; 5], &[], &[], &ops)];
        assert_eq!(run(&g, &Options::default(), &[Pin { tensor: 1, until: 5 }]).1.arena_bytes, 12288);
        assert!(lower(&g, 0, &Options::default(), &[Pin { tensor: 1, until: 6 }]).is_err());
        assert!(lower(&g, 0, &Options::default(), &[Pin { tensor: 5, until: 0 }]).is_err());
    }
}
