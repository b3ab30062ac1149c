//! Follows values through the arena: proof that every node finds in memory what was written for it.
//!
//! The planner's own verifier says that buffers which are alive together share no byte but within the classes it was
//! given. This one takes no class on trust: it runs the graph on memory that holds, instead of numbers, which write each
//! byte is from. Overlap is right exactly where a node declares it: an output over an input at the same bytes, which
//! may be lost then; a part within a whole, whose bytes are the same. It shares no code with [`super::views`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::liveness::{Home, Lifetime, Pin};
use super::lower::Lowered;
use super::tables::{Tables, View};
use crate::error::{Error, Subject};
use crate::planner::Plan;
use crate::units::Bytes;

/// A value that was not there when it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The node that needed it, the number of nodes for the end of the run.
    pub node: u32,
    /// The tensor it is in.
    pub tensor: u32,
    /// The tensor whose write destroyed it, if one did.
    pub by: Option<u32>,
}

/// A stretch of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Which write.
    write: u32,
    /// The first byte of it.
    from: Bytes,
    bytes: Bytes,
}

/// What each byte holds: by where a stretch begins, what it is.
#[derive(Default)]
struct Memory(BTreeMap<Bytes, Piece>);

impl Memory {
    /// Cuts the stretch that covers `at` in two there.
    fn cut(&mut self, at: Bytes) {
        let Some((&start, piece)) = self.0.range_mut(..at).next_back() else { return };
        if start + piece.bytes > at {
            let left = at - start;
            let right = Piece { from: piece.from + left, bytes: piece.bytes - left, ..*piece };
            piece.bytes = left;
            self.0.insert(at, right);
        }
    }

    fn write(&mut self, mut at: Bytes, value: &[Piece]) {
        let end = at + value.iter().map(|p| p.bytes).sum::<Bytes>();
        self.cut(at);
        self.cut(end);
        let old: Vec<Bytes> = self.0.range(at..end).map(|(&k, _)| k).collect();
        for k in old {
            self.0.remove(&k);
        }
        for &piece in value {
            self.0.insert(at, piece);
            at += piece.bytes;
        }
    }

    /// Whether `value` stands at `at`; else the write that is there instead.
    fn holds(&self, mut at: Bytes, value: &[Piece]) -> Result<(), Option<u32>> {
        for &want in value {
            let mut done = 0;
            while done < want.bytes {
                let Some((&start, &found)) = self.0.range(..=at).next_back() else { return Err(None) };
                let inside = at - start;
                if inside >= found.bytes {
                    return Err(None);
                }
                if found.write != want.write || found.from + inside != want.from + done {
                    return Err(Some(found.write));
                }
                let step = (found.bytes - inside).min(want.bytes - done);
                (at, done) = (at + step, done + step);
            }
        }
        Ok(())
    }
}

/// The part of `value` from byte `from` on, `bytes` long.
fn part(value: &[Piece], mut from: Bytes, mut bytes: Bytes) -> Vec<Piece> {
    let mut out = Vec::new();
    for p in value {
        if from >= p.bytes {
            from -= p.bytes;
            continue;
        }
        let take = (p.bytes - from).min(bytes);
        if take > 0 {
            out.push(Piece { write: p.write, from: p.from + from, bytes: take });
        }
        (from, bytes) = (0, bytes - take);
    }
    out
}

struct Run<'a, T: ?Sized> {
    graph: &'a T,
    offset: &'a dyn Fn(usize) -> Option<Bytes>,
    memory: Memory,
    /// Per tensor what it holds; empty before it is written and for those outside the arena.
    values: Vec<Vec<Piece>>,
    /// Per write the tensor.
    writers: Vec<u32>,
}

impl<T: Tables + ?Sized> Run<'_, T> {
    fn bytes(&self, t: usize) -> Bytes {
        self.graph.tensor(t).bytes.unwrap_or(0)
    }

    fn fresh(&mut self, t: usize) -> Vec<Piece> {
        self.writers.push(t as u32);
        let write = self.writers.len() as u32 - 1;
        alloc::vec![Piece { write, from: 0, bytes: self.bytes(t) }]
    }

    fn put(&mut self, t: usize, value: Vec<Piece>) {
        if let Some(at) = (self.offset)(t) {
            self.memory.write(at, &value);
        }
        self.values[t] = value;
    }

    fn need(&self, node: usize, t: usize) -> Result<(), Lost> {
        let Some(at) = (self.offset)(t) else { return Ok(()) };
        self.memory.holds(at, &self.values[t]).map_err(|by| Lost {
            node: node as u32,
            tensor: t as u32,
            by: by.and_then(|w| self.writers.get(w as usize).copied()),
        })
    }

    /// What output number `k` of node `i` is made of, if that is its inputs.
    fn made_of(&self, i: usize, k: usize) -> Option<Vec<Piece>> {
        let node = self.graph.node(i);
        let o = node.outputs[k] as usize;
        let value = match node.view {
            View::Outputs { input, offset } => {
                let x = *node.inputs.get(input as usize).filter(|&&t| t >= 0)? as usize;
                let before = node.outputs[..k].iter().filter(|&&t| t >= 0).map(|&t| self.bytes(t as usize));
                part(&self.values[x], offset + before.sum::<Bytes>(), self.bytes(o))
            }
            View::Inputs { offset: 0 } if k == 0 => {
                let inputs = node.inputs.iter().filter(|&&t| t >= 0);
                inputs.flat_map(|&t| self.values[t as usize].iter().copied()).collect()
            }
            _ if k == 0 && node.inplace.unmodified() => {
                let flagged = |j: &usize| node.inputs[*j] >= 0 && node.inplace.shares(*j);
                let j = (0..node.inputs.len()).find(flagged)?;
                self.values[node.inputs[j] as usize].clone()
            }
            _ => return None,
        };
        (value.iter().map(|p| p.bytes).sum::<Bytes>() == self.bytes(o)).then_some(value)
    }

    fn node(&mut self, i: usize) -> Result<(), Lost> {
        let node = self.graph.node(i);
        let inputs: Vec<usize> = node.inputs.iter().filter(|&&t| t >= 0).map(|&t| t as usize).collect();
        for &x in &inputs {
            self.need(i, x)?;
        }
        // An input that the first output may be written over: the same bytes, and the node says so.
        let first = node.outputs.first().filter(|&&t| t >= 0).map(|&t| t as usize);
        let over = |k: usize, x: usize| {
            let Some(o) = first else { return false };
            let declared = node.inplace.any_input() || node.inplace.shares(k);
            let once = node.inputs.iter().filter(|&&t| t as usize == x).count() == 1;
            declared && once && (self.offset)(x) == (self.offset)(o) && self.bytes(x) == self.bytes(o)
        };
        let lost: Vec<usize> = node
            .inputs
            .iter()
            .enumerate()
            .filter(|&(k, &x)| x >= 0 && over(k, x as usize))
            .map(|(_, &x)| x as usize)
            .take(1)
            .collect();
        for &t in node.temporaries.iter().filter(|&&t| t >= 0) {
            let value = self.fresh(t as usize);
            self.put(t as usize, value);
        }
        let made: Vec<Option<Vec<Piece>>> =
            (0..node.outputs.len()).map(|k| if node.outputs[k] < 0 { None } else { self.made_of(i, k) }).collect();
        for (k, value) in made.into_iter().enumerate() {
            let Ok(o) = usize::try_from(node.outputs[k]) else { continue };
            let value = value.unwrap_or_else(|| self.fresh(o));
            self.put(o, value);
        }
        for &x in inputs.iter().filter(|x| !lost.contains(x) && !node.outputs.contains(&(**x as i32))) {
            self.need(i, x)?;
        }
        Ok(())
    }
}

/// Runs `graph`, whose subgraph calls count as ordinary nodes, on an arena with these offsets, and checks every read
/// and, at the end, what must survive. `own` are its tensors' lifetimes, `pinned` tensors to be readable at the end.
pub fn follow<T: Tables + ?Sized>(
    graph: &T,
    own: &[Lifetime],
    pinned: &[u32],
    offset: &dyn Fn(usize) -> Option<Bytes>,
) -> Result<(), Lost> {
    let n = graph.tensor_count();
    let offset = |t: usize| if own.get(t).is_some_and(|l| l.home == Home::Arena) { offset(t) } else { None };
    let values = alloc::vec![Vec::new(); n];
    let mut run = Run { graph, offset: &offset, memory: Memory::default(), values, writers: Vec::new() };
    for t in 0..n {
        if graph.inputs().contains(&(t as i32)) {
            let value = run.fresh(t);
            run.put(t, value);
        }
    }
    for i in 0..graph.node_count() {
        run.node(i)?;
    }
    for (t, life) in own.iter().enumerate().take(n) {
        if life.kept || pinned.contains(&(t as u32)) {
            run.need(graph.node_count(), t)?;
        }
    }
    Ok(())
}

/// [`follow`]s every graph of `lowered` that declares more than TFLite's sharing. `Internal` names the node and the two
/// tensors: the planner would be wrong.
pub fn prove<T: Tables>(graphs: &[T], entry: usize, pins: &[Pin], lowered: &Lowered, plan: &Plan) -> Result<(), Error> {
    let pinned: Vec<u32> = pins.iter().map(|p| p.tensor).collect();
    for (g, graph) in graphs.iter().enumerate().filter(|(_, graph)| super::views::declared(*graph)) {
        let pinned = if g == entry { &pinned[..] } else { &[] };
        follow(graph, &lowered.lives.own[g], pinned, &|t| lowered.offset(plan, g, t)).map_err(|lost| {
            let e = Error::internal("shared bytes lose a value, please report it").of(Subject::Tensor(lost.tensor));
            e.and(lost.by.map_or(Subject::Node(lost.node), Subject::Tensor)).at(lost.node)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::liveness::{lifetimes, Options};
    use super::super::rows::tests::{op, Small};
    use super::super::tables::InPlace;
    use super::*;

    fn run(g: &Small, offsets: &[Bytes]) -> Result<(), Lost> {
        let mut own = alloc::vec![Lifetime::default(); g.tensors.len()];
        lifetimes(g, &Options::default(), &[], &mut own).unwrap();
        follow(g, &own, &[], &|t| Some(offsets[t]))
    }

    #[test]
    fn overlap_is_right_where_declared_and_nowhere_else() {
        let chain = |flags| {
            let ops = [op(&[0], &[1]), op(&[1], &[2]).inplace(InPlace(flags)), op(&[2], &[3])];
            Small::new(&[8; 4], &[0], &[3], &ops)
        };
        let apart = [0, 8, 16, 8];
        assert_eq!(run(&chain(0), &apart), Ok(()));
        let over = [0, 8, 8, 16];
        assert_eq!(run(&chain(InPlace::ANY_INPUT), &over), Ok(()));
        let lost = Lost { node: 1, tensor: 1, by: Some(2) };
        assert_eq!(run(&chain(0), &over), Err(lost), "not declared");
        assert_eq!(run(&chain(InPlace::ANY_INPUT), &[0, 8, 12, 24]), Err(lost), "not at the same bytes");
        assert_eq!(run(&chain(0), &[0, 8, 16, 0]), Err(Lost { node: 3, tensor: 0, by: Some(3) }), "the input is kept");
    }

    #[test]
    fn parts_within_a_whole_are_the_same_bytes() {
        // 0 -> 1, 0 -> 2, (1, 2) -> 3 concatenated, 3 -> 4, 5 split.
        let mut ops = [op(&[0], &[1]), op(&[0], &[2]), op(&[1, 2], &[3]), op(&[3], &[4, 5]), op(&[4, 5], &[6])];
        ops[2].view = View::Inputs { offset: 0 };
        ops[3].view = View::Outputs { input: 0, offset: 0 };
        let g = Small::new(&[8, 8, 16, 24, 16, 8, 8], &[0], &[6], &ops);
        assert_eq!(run(&g, &[0, 8, 16, 8, 8, 24, 32]), Ok(()));
        // The second part one byte off: the kernel copies it, over its own source.
        let lost = run(&g, &[0, 8, 17, 8, 8, 24, 40]).unwrap_err();
        assert_eq!((lost.node, lost.tensor), (2, 2));
        // Written over while a view of it is to be read.
        assert_eq!(run(&g, &[0, 8, 16, 8, 8, 24, 8]).unwrap_err().tensor, 4);
    }
}
