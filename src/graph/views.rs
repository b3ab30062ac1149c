//! Sharing that engines declare beyond TFLite's: any dying input written over, views, concatenation in place.
//!
//! Tensors that share bytes form classes: each member has a root and a distance from it. Nodes are taken in execution
//! order, and a node's declaration is followed only where no value is lost:
//!
//! 1. Views of an input ([`View::Outputs`]) join its class. Nothing is written, so they are always right as long as
//!    whoever writes over a member later looks at all members that lie on the same bytes, which is rule 3.
//! 2. Inputs of a concatenation ([`View::Inputs`]) join the class of its output, each with its own class, if that is no
//!    larger than the input: their producers then write where the output will be. Since the whole output is reserved
//!    from the first input on, this can cost more than it gains; [`super::lower`] follows only those that pay.
//! 3. An output takes over an input that dies at the node, if no member of the class on these bytes is read at the node
//!    otherwise or later, and none must survive.
//!
//! The idea of placing the parts of a concatenation in the whole is old in compilers (A. Pisarchyk and J. Lee, "Efficient
//! memory management for deep neural net inference", 2020, leave it out; Ahn et al., MLSys 2020, rewrite graphs for it).

use alloc::vec::Vec;

use super::liveness::{Home, Lifetime, Role};
use super::tables::{Call, Tables, View};
use crate::units::{Align, Bytes};

/// Where a tensor lies: `delta` bytes into `root`, which is itself where nothing is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The tensor whose bytes are used.
    pub root: u32,
    /// From its first byte on.
    pub delta: Bytes,
}

/// Bytes up to which TFLite's kernels do not share, which its flags imply.
const MIN_SHARED_BYTES: Bytes = 4;

/// Whether any node of `graph` declares more than TFLite's flags can say.
pub(crate) fn declared<T: Tables + ?Sized>(graph: &T) -> bool {
    (0..graph.node_count()).any(|i| graph.node(i).inplace.any_input() || graph.node(i).view != View::None)
}

/// What the classes are built from, besides the graph.
pub(crate) struct Given<'a> {
    /// Each tensor's own lifetime.
    pub own: &'a [Lifetime],
    /// The alignment each tensor needs.
    pub aligns: &'a [Align],
    /// Whether the graph is called by the user, not by a node: then its inputs and outputs may be shared too.
    pub entry: bool,
    /// Tensors that must stay readable whatever their readers.
    pub pinned: &'a [u32],
    /// Nodes whose views are not followed, ascending.
    pub skip: &'a [u32],
}

struct Classes<'a, T: ?Sized> {
    graph: &'a T,
    given: &'a Given<'a>,
    seats: Vec<Seat>,
    /// Per root its members, itself included.
    members: Vec<Vec<u32>>,
    /// Per tensor: one past the last node that reads it, and how many nodes write it.
    read_before: Vec<u32>,
    writers: Vec<u32>,
    /// Must survive the run, or is not this graph's to share.
    kept: Vec<bool>,
    fixed: Vec<bool>,
}

/// The seat of every tensor of a validated graph.
pub(crate) fn seats<T: Tables + ?Sized>(graph: &T, given: &Given<'_>) -> Vec<Seat> {
    let n = graph.tensor_count();
    let mut c = Classes {
        graph,
        given,
        seats: (0..n as u32).map(|root| Seat { root, delta: 0 }).collect(),
        members: (0..n as u32).map(|t| alloc::vec![t]).collect(),
        read_before: alloc::vec![0; n],
        writers: alloc::vec![0; n],
        kept: given.own.iter().map(|l| l.kept).collect(),
        fixed: given.own.iter().map(|l| l.home != Home::Arena || l.role == Role::Variable).collect(),
    };
    for &t in given.pinned {
        c.kept[t as usize] = true;
    }
    if !given.entry {
        for &t in graph.inputs().iter().chain(graph.outputs()).filter(|&&t| t >= 0) {
            c.fixed[t as usize] = true;
        }
    }
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        for &t in node.inputs.iter().filter(|&&t| t >= 0) {
            c.read_before[t as usize] = i as u32 + 1;
        }
        node.outputs.iter().filter(|&&t| t >= 0).for_each(|&t| c.writers[t as usize] += 1);
        // Scratch is its node's own.
        node.temporaries.iter().filter(|&&t| t >= 0).for_each(|&t| c.fixed[t as usize] = true);
    }
    graph.inputs().iter().filter(|&&t| t >= 0).for_each(|&t| c.writers[t as usize] += 1);
    for i in 0..graph.node_count() {
        if graph.node(i).call != Call::None {
            continue;
        }
        if given.skip.binary_search(&(i as u32)).is_err() {
            match graph.node(i).view {
                View::None => {}
                View::Outputs { input, offset } => c.views(i, input, offset),
                View::Inputs { offset } => c.parts(i, offset),
            }
        }
        c.over(i);
    }
    c.seats
}

impl<T: Tables + ?Sized> Classes<'_, T> {
    fn bytes(&self, t: usize) -> Bytes {
        self.graph.tensor(t).bytes.unwrap_or(0)
    }

    /// A tensor of the arena that one node, or the caller, writes.
    fn plain(&self, t: usize) -> bool {
        !self.fixed[t] && self.writers[t] == 1 && self.bytes(t) > 0
    }

    /// Whether `t` has not joined a class and none has joined it.
    fn alone(&self, t: usize) -> bool {
        self.seats[t].root as usize == t && self.members[t].len() == 1
    }

    /// The end of what the class of root `r` covers.
    fn extent(&self, r: usize) -> Bytes {
        let end = |&m: &u32| self.seats[m as usize].delta.saturating_add(self.bytes(m as usize));
        self.members[r].iter().map(end).max().unwrap_or(0)
    }

    fn aligned(&self, t: usize, delta: Bytes) -> bool {
        self.given.aligns[t].divides(delta)
    }

    /// Puts the class of root `from` at `delta` into the class of `to`.
    fn join(&mut self, from: usize, to: usize, delta: Bytes) {
        let list = core::mem::take(&mut self.members[from]);
        for &m in &list {
            let seat = &mut self.seats[m as usize];
            (seat.root, seat.delta) = (to as u32, seat.delta + delta);
        }
        self.members[to].extend(list);
    }

    /// Rule 1: outputs of node `i` one after the other in an input.
    fn views(&mut self, i: usize, input: u32, mut at: Bytes) {
        let node = self.graph.node(i);
        let Some(&x) = node.inputs.get(input as usize).filter(|&&t| t >= 0) else { return };
        let x = x as usize;
        for &o in node.outputs.iter().filter(|&&t| t >= 0) {
            let o = o as usize;
            let Some(end) = at.checked_add(self.bytes(o)) else { return };
            let seat = self.seats[x];
            let delta = seat.delta.saturating_add(at);
            let whole = self.bytes(o) == self.bytes(x) || !self.kept[o] || self.kept[x];
            if o != x
                && self.plain(o)
                && self.plain(x)
                && self.alone(o)
                && end <= self.bytes(x)
                && whole
                && self.aligned(o, delta)
            {
                self.join(o, seat.root as usize, delta);
            }
            at = end;
        }
    }

    /// Rule 2: inputs of node `i` one after the other in its first output.
    fn parts(&mut self, i: usize, mut at: Bytes) {
        let node = self.graph.node(i);
        let Some(&o) = node.outputs.first().filter(|&&t| t >= 0) else { return };
        let o = o as usize;
        if !self.plain(o) || self.seats[o].root as usize != o {
            return;
        }
        for &x in node.inputs.iter().filter(|&&t| t >= 0) {
            let x = x as usize;
            let Some(end) = at.checked_add(self.bytes(x)) else { return };
            let root = self.seats[x].root as usize;
            // The class must fit where the input goes: no larger, and beginning with it.
            let fits = root != o && self.seats[x].delta == 0 && self.extent(root) == self.bytes(x);
            let free = self.members[root].iter().all(|&m| {
                let m = m as usize;
                !self.fixed[m] && self.aligned(m, at.saturating_add(self.seats[m].delta))
            });
            // An input that the caller writes before the run lies there already, and so would all of the output.
            let early = self.members[root].iter().any(|&m| self.given.own[m as usize].role == Role::Input);
            if x != o && self.plain(x) && fits && free && !early && end <= self.bytes(o) {
                self.join(root, o, at);
            }
            at = end;
        }
    }

    /// Rule 3: the first output of node `i` over an input that dies there.
    fn over(&mut self, i: usize) {
        let node = self.graph.node(i);
        let Some(&o) = node.outputs.first().filter(|&&t| t >= 0) else { return };
        let o = o as usize;
        if !self.plain(o) || !self.alone(o) {
            return;
        }
        let flags = node.inplace;
        let allowed = |k: usize| flags.any_input() || flags.shares(k);
        let small = |t: usize| !flags.any_input() && self.bytes(t) <= MIN_SHARED_BYTES;
        let fit = node.inputs.iter().enumerate().find(|&(k, &x)| {
            x >= 0 && allowed(k) && {
                let x = x as usize;
                let twice = node.inputs.iter().filter(|&&t| t as usize == x).count() > 1;
                let unmodified = flags.unmodified();
                x != o
                    && self.plain(x)
                    && self.bytes(x) == self.bytes(o)
                    && self.aligned(o, self.seats[x].delta)
                    && (unmodified || (!small(x) && !twice && self.dies(x, i)))
            }
        });
        if let Some((_, &x)) = fit {
            let seat = self.seats[x as usize];
            self.join(o, seat.root as usize, seat.delta);
        }
    }

    /// Whether nothing on the bytes of `x` is needed after node `i`, or by it besides as `x`.
    fn dies(&self, x: usize, i: usize) -> bool {
        let (here, size) = (self.seats[x], self.bytes(x));
        let i = i as u32 + 1;
        self.members[here.root as usize].iter().all(|&m| {
            let m = m as usize;
            let seat = self.seats[m];
            let meets = seat.delta < here.delta + size && here.delta < seat.delta + self.bytes(m);
            // A member that is yet to be written has no value to lose, but would be overwritten by what dies here.
            let limit = if m == x { i } else { i - 1 };
            !meets || (!self.kept[m] && self.read_before[m] <= limit)
        })
    }
}
