//! The planner life cycle of TensorFlow Lite: plan lifetimes once, then place tensors node range by node range as their
//! sizes become known.
//!
//! Offsets equal those of TFLite's `ArenaPlanner`, with one difference: where a caller grows a tensor and executes
//! earlier nodes again without a reset, TFLite forgets what is placed and puts the grown tensor over live ones. Here
//! everything placed stays in the way until it is reset.

use alloc::vec::Vec;

use super::inplace::{share, Share};
use super::liveness::{Home, Lifetime, Options, Policy};
use super::tables::{validate, Allocation, Tables};
use crate::error::Error;
use crate::planner::online::{Online, Placed};
use crate::units::{Align, Bytes};

/// "Not yet" and "never": the value TFLite uses.
pub const UNSET: i32 = i32::MAX;

/// One of the two arenas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arena {
    /// Reused within a run.
    Main,
    /// Placed once, contents kept.
    Persistent,
}

/// Where a tensor was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which arena.
    pub arena: Arena,
    /// Offset in it.
    pub offset: Bytes,
    /// Bytes held; a tensor that shrank keeps its old size.
    pub size: Bytes,
    /// First node alive.
    pub first: i32,
    /// Last node alive, [`UNSET`] for ever.
    pub last: i32,
}

/// Which tensors share bytes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Those that TFLite lets share, whose offsets then are TFLite's. It corrupts where two reshapes share one tensor and
    /// one of them is modified, where a resize breaks the middle of a chain, and where several nodes list one temporary.
    #[default]
    Tflite,
    /// The same but where that corrupts.
    Safe,
    /// None.
    None,
}

/// The state between calls. One per subgraph; one thread at a time.
#[derive(Clone, Debug)]
pub struct Incremental {
    align: Align,
    preserve_all: bool,
    sharing: Sharing,
    first: Vec<i32>,
    last: Vec<i32>,
    /// Whose bytes a tensor uses. An alias that turns out not to match becomes its own root.
    root: Vec<u32>,
    /// The input a tensor took its bytes over from: its root or another alias of that. Itself where none.
    via: Vec<u32>,
    /// The strictest alignment of the nodes that touch a tensor.
    node_align: Vec<Align>,
    /// Per node the tensors to place when it is reached.
    starts: Vec<Vec<u32>>,
    records: Vec<Option<Record>>,
    persistent: Bytes,
    high_water: Bytes,
    last_node: i32,
    committed: bool,
}

/// All places at one moment; see [`Incremental::placement`].
#[derive(Clone, Debug)]
pub struct Placement {
    lives: Vec<(i32, i32)>,
    shares: Vec<(u32, u32)>,
    records: Vec<Option<Record>>,
    persistent: Bytes,
    high_water: Bytes,
    last_node: i32,
}

impl Incremental {
    /// Tensors go to multiples of `align`. With `preserve_all` nothing is released and nothing shared.
    pub fn new(align: Align, preserve_all: bool) -> Incremental {
        Incremental {
            align,
            preserve_all,
            sharing: Sharing::Tflite,
            first: Vec::new(),
            last: Vec::new(),
            root: Vec::new(),
            via: Vec::new(),
            node_align: Vec::new(),
            starts: Vec::new(),
            records: Vec::new(),
            persistent: 0,
            high_water: 0,
            last_node: -1,
            committed: false,
        }
    }

    /// The same with another rule for sharing.
    #[must_use]
    pub fn with_sharing(mut self, sharing: Sharing) -> Incremental {
        self.sharing = sharing;
        self
    }

    /// Finds lifetimes and in-place sharing. Forgets everything placed before.
    ///
    /// `Argument` for a bad index, and for a tensor written after its last use or released twice (named with the node);
    /// the state then is that of an empty graph.
    pub fn plan<T: Tables + ?Sized>(&mut self, graph: &T) -> Result<(), Error> {
        *self = Incremental::new(self.align, self.preserve_all).with_sharing(self.sharing);
        let mut planned = self.clone();
        planned.find_lifetimes(graph)?;
        *self = planned;
        Ok(())
    }

    fn find_lifetimes<T: Tables + ?Sized>(&mut self, graph: &T) -> Result<(), Error> {
        validate(graph)?;
        let n = graph.tensor_count();
        self.first = alloc::vec![UNSET; n];
        self.last = alloc::vec![UNSET; n];
        self.records = alloc::vec![None; n];
        self.starts = alloc::vec![Vec::new(); graph.node_count().max(1)];
        self.find_shares(graph)?;
        self.node_align = alloc::vec![Align::ONE; n];
        for i in 0..graph.node_count() {
            self.touch(graph, i);
        }

        // References that keep a tensor alive: one for being an input, output or variable, one per read of the tensor
        // or of an alias of it.
        let mut refs = alloc::vec![0u32; n];
        for &t in graph.outputs().iter().chain(graph.variables()).chain(graph.inputs()).filter(|&&t| t >= 0) {
            refs[t as usize] += 1;
        }
        for &t in graph.variables().iter().chain(graph.inputs()).filter(|&&t| t >= 0) {
            self.first[t as usize] = 0;
            self.starts[0].push(t as u32);
        }
        for i in 0..graph.node_count() {
            for &t in graph.node(i).inputs.iter().filter(|&&t| t >= 0) {
                refs[self.root[t as usize] as usize] += 1;
            }
        }
        for i in 0..graph.node_count() {
            let node = graph.node(i);
            for &t in node.outputs.iter().filter(|&&t| t >= 0) {
                let t = t as usize;
                if self.first[t] == UNSET {
                    self.first[t] = i as i32;
                }
                if self.last[t] != UNSET {
                    return Err(Error::argument("the tensor is written after its last use").tensor(t).at(i as u32));
                }
                self.starts[i].push(t as u32);
            }
            if self.preserve_all {
                continue;
            }
            for &t in node.inputs.iter().filter(|&&t| t >= 0) {
                let t = self.root[t as usize] as usize;
                refs[t] -= 1;
                if refs[t] == 0 && self.first[t] != UNSET {
                    if self.last[t] != UNSET {
                        return Err(Error::argument("the tensor is released twice").tensor(t).at(i as u32));
                    }
                    self.last[t] = i as i32;
                }
            }
        }
        Ok(())
    }

    fn find_shares<T: Tables + ?Sized>(&mut self, graph: &T) -> Result<(), Error> {
        let n = graph.tensor_count();
        let mut lives = alloc::vec![Lifetime::default(); n];
        let written = (0..graph.node_count()).flat_map(|i| graph.node(i).outputs.iter().copied());
        for t in written.chain(graph.inputs().iter().copied()).chain(graph.variables().iter().copied()) {
            if t >= 0 && graph.tensor(t as usize).allocation == Allocation::ArenaRw {
                lives[t as usize].home = Home::Arena;
            }
        }
        let policy = if self.sharing == Sharing::Safe { Policy::Safe } else { Policy::Tflite };
        let in_place = self.sharing != Sharing::None;
        let options = Options { policy, in_place, keep_all: self.preserve_all, ..Options::default() };
        let mut shares = alloc::vec![Share::default(); n];
        share(graph, &options, &lives, &mut shares)?;
        self.root = shares.iter().map(|s| s.root).collect();
        self.via = (0..n as u32).collect();
        for i in 0..graph.node_count() {
            let node = graph.node(i);
            let Some(&o) = node.outputs.first().filter(|&&t| t >= 0) else { continue };
            let root = self.root[o as usize];
            let from = |&(k, &t): &(usize, &i32)| t >= 0 && node.inplace.shares(k) && self.root[t as usize] == root;
            if let (true, Some((_, &t))) = (root != o as u32, node.inputs.iter().take(3).enumerate().find(from)) {
                self.via[o as usize] = t as u32;
            }
        }
        Ok(())
    }

    /// Takes in the alignment that node `i` asks for.
    fn touch<T: Tables + ?Sized>(&mut self, graph: &T, i: usize) {
        let node = graph.node(i);
        let Some(align) = node.align else { return };
        for &t in node.inputs.iter().chain(node.outputs).chain(node.temporaries).filter(|&&t| t >= 0) {
            if let Some(a) = self.node_align.get_mut(t as usize) {
                *a = align.max(*a);
            }
        }
    }

    /// Places the tensors of nodes `first ..= last` that have no place, or outgrew theirs, and commits.
    ///
    /// Tensors added since the plan (temporaries) are taken in; fewer tensors than before are an `Argument` error.
    /// Nothing changes on an error.
    pub fn execute<T: Tables + ?Sized>(&mut self, graph: &T, first: i32, last: i32) -> Result<(), Error> {
        let n = graph.tensor_count();
        if n < self.records.len() {
            return Err(Error::argument("the graph has fewer tensors than when it was planned")
                .needed(self.records.len() as u64)
                .available(n as u64));
        }
        let mut next = self.clone();
        next.grow(n);
        let nodes = (graph.node_count() as i32).min(last.saturating_add(1));
        for i in first.max(0)..nodes {
            next.touch(graph, i as usize);
            for &t in graph.node(i as usize).temporaries.iter().filter(|&&t| t >= 0) {
                if t as usize >= n {
                    return Err(Error::argument("a temporary is not the index of a tensor").node(i as usize));
                }
                next.take_temporary(t as usize, i, first.max(0));
            }
        }
        next.place(graph, first.max(0), nodes)?;
        next.last_node = last;
        next.committed = true;
        *self = next;
        Ok(())
    }

    /// Enters temporary `t` of node `i`, which is executed as part of a range from `from`.
    fn take_temporary(&mut self, t: usize, i: i32, from: i32) {
        let safe = self.sharing != Sharing::Tflite;
        // Safely it is alive from the first node of this range that lists it to the last.
        let again =
            safe && (from..=i).contains(&self.first[t]) && self.starts[self.first[t] as usize].contains(&(t as u32));
        if !again {
            self.first[t] = i;
        }
        if !self.preserve_all {
            self.last[t] = i;
        }
        if !self.starts[i as usize].contains(&(t as u32)) {
            self.starts[i as usize].push(t as u32);
        }
        if safe && self.records[t].is_some_and(|r| r.first > self.first[t] || r.last < self.last[t]) {
            self.records[t] = None;
        }
    }

    fn grow(&mut self, n: usize) {
        self.first.resize(n, UNSET);
        self.last.resize(n, UNSET);
        self.records.resize(n, None);
        let old = self.root.len();
        self.root.extend(old as u32..n as u32);
        self.via.extend(old as u32..n as u32);
        self.node_align.resize(n, Align::ONE);
        if self.starts.is_empty() {
            self.starts.push(Vec::new());
        }
    }

    fn place<T: Tables + ?Sized>(&mut self, graph: &T, first: i32, end: i32) -> Result<(), Error> {
        // A graph without nodes still places its inputs when node 0 is executed.
        let end = end.max(i32::from(self.starts.len() == 1 && graph.node_count() == 0)) as usize;
        let from = (first as usize).min(end);
        let mut todo: Vec<u32> = self.starts[from..end.min(self.starts.len())].iter().flatten().copied().collect();
        todo.sort_unstable();
        todo.dedup();
        todo.retain(|&t| {
            let (tensor, record) = (graph.tensor(t as usize), self.records[t as usize]);
            let bytes = tensor.bytes.unwrap_or(0);
            match tensor.allocation {
                Allocation::ArenaRw => record.is_none_or(|r| r.size < bytes),
                // One that grew gets another place; whoever holds the memory copies its contents there.
                Allocation::ArenaRwPersistent => record.is_none_or(|r| r.size < bytes),
                _ => false,
            }
        });
        for &t in &todo {
            self.records[t as usize] = None;
        }
        self.drop_broken_aliases(graph, &todo);
        let whole = |t: u32| self.first[t as usize] == 0 && self.last[t as usize] == UNSET;
        todo.sort_unstable_by_key(|&t| {
            let size = graph.tensor(t as usize).bytes.unwrap_or(0);
            if whole(t) {
                (0, 0, 0, t)
            } else {
                (1, u64::MAX - size, self.first[t as usize], t)
            }
        });
        let earliest = todo.iter().map(|&t| self.first[t as usize]).min().unwrap_or(0);
        let mut arena = Online::new();
        let mut placed: Vec<Placed> = Vec::new();
        for (t, r) in self.records.iter().enumerate() {
            if let Some(Record { arena: Arena::Main, offset, size, first, last }) = *r {
                if size > 0 && last >= earliest {
                    placed.push(Placed { offset, size, first, last, id: t as u32 });
                }
            }
        }
        placed.sort_by_key(|p| p.offset);
        for p in placed {
            arena.insert(p);
        }
        for t in todo {
            self.place_one(graph, t, &mut arena)?;
        }
        self.high_water = self.high_water.max(arena.high_water());
        Ok(())
    }

    /// Gives an alias bytes of its own where the tensor it took them over from no longer uses them.
    fn drop_broken_aliases<T: Tables + ?Sized>(&mut self, graph: &T, todo: &[u32]) {
        if self.sharing != Sharing::Safe {
            return;
        }
        let mut order: Vec<u32> = todo.iter().copied().filter(|&t| self.root[t as usize] != t).collect();
        order.sort_unstable_by_key(|&t| (self.first[t as usize], t));
        for t in order {
            let (root, via) = (self.root[t as usize], self.via[t as usize]);
            let same = graph.tensor(root as usize).bytes == graph.tensor(t as usize).bytes;
            if !same || (via != root && self.root[via as usize] != root) {
                self.root[t as usize] = t;
            }
        }
    }

    fn place_one<T: Tables + ?Sized>(&mut self, graph: &T, t: u32, arena: &mut Online) -> Result<(), Error> {
        let index = t as usize;
        let tensor = graph.tensor(index);
        let root = self.root[index] as usize;
        if root != index {
            let to = graph.tensor(root);
            if to.allocation == Allocation::ArenaRw && to.bytes == tensor.bytes {
                return Ok(());
            }
            self.root[index] = t;
        }
        let Some(size) = tensor.bytes else {
            return Err(Error::unknown_size("the tensor's size is not known when it must be placed").tensor(index));
        };
        let align = self.align.max(tensor.align.unwrap_or(Align::ONE)).max(self.node_align[index]);
        let (first, last) = (self.first[index], self.last[index]);
        let name = |e: Error| e.tensor(index);
        let record = if tensor.allocation == Allocation::ArenaRw {
            let offset = arena.place(t, size, align, first, last).map_err(name)?;
            Record { arena: Arena::Main, offset, size, first, last }
        } else {
            let offset = if size == 0 { 0 } else { crate::units::round_up(self.persistent, align).map_err(name)? };
            self.persistent = self.persistent.max(crate::units::add(offset, size).map_err(name)?);
            Record { arena: Arena::Persistent, offset, size, first, last: UNSET }
        };
        self.records[index] = Some(record);
        Ok(())
    }

    /// Moves tensors of the main arena: those for which `offset` has one, all others stay. The high-water mark becomes the
    /// highest end. For a caller that has planned the same sizes and lifetimes better, which it must have checked.
    pub fn adopt(&mut self, offset: impl Fn(usize) -> Option<Bytes>) {
        self.high_water = 0;
        for (t, record) in self.records.iter_mut().enumerate() {
            let Some(r) = record.as_mut().filter(|r| r.arena == Arena::Main && r.size > 0) else { continue };
            r.offset = offset(t).unwrap_or(r.offset);
            self.high_water = self.high_water.max(r.offset.saturating_add(r.size));
        }
    }

    /// What is placed, to be brought back by [`Incremental::restore`].
    pub fn placement(&self) -> Placement {
        Placement {
            lives: self.first.iter().copied().zip(self.last.iter().copied()).collect(),
            shares: self.root.iter().copied().zip(self.via.iter().copied()).collect(),
            records: self.records.clone(),
            persistent: self.persistent,
            high_water: self.high_water,
            last_node: self.last_node,
        }
    }

    /// Places everything as it was placed then, and commits. The caller knows that since that placement no plan was made,
    /// and that sizes, kinds and temporaries are those of then.
    pub fn restore(&mut self, then: &Placement) {
        self.grow(then.records.len().max(self.records.len()));
        for (t, (&(first, last), &(root, via))) in then.lives.iter().zip(&then.shares).enumerate() {
            (self.first[t], self.last[t], self.root[t], self.via[t]) = (first, last, root, via);
        }
        self.records.fill(None);
        self.records[..then.records.len()].copy_from_slice(&then.records);
        (self.persistent, self.high_water) = (then.persistent, then.high_water);
        (self.last_node, self.committed) = (then.last_node, true);
    }

    /// Forgets every place, in both arenas, and keeps the lifetimes.
    pub fn reset(&mut self) {
        self.records.fill(None);
        (self.persistent, self.high_water, self.last_node, self.committed) = (0, 0, -1, false);
    }

    /// Forgets the places of main-arena tensors that begin after node `node`. Persistent tensors stay.
    pub fn reset_after(&mut self, node: i32) {
        for r in &mut self.records {
            if r.is_some_and(|r| r.arena == Arena::Main && r.first > node) {
                *r = None;
            }
        }
        self.last_node = node;
    }

    /// Gives the main arena's memory up; places are kept for [`Incremental::acquire`].
    pub fn release(&mut self) {
        self.committed = false;
    }

    /// Takes the main arena's memory back, with every tensor at its old place.
    pub fn acquire(&mut self) {
        self.committed = true;
    }

    /// Whether the main arena is committed, which it also is at 0 bytes.
    pub fn has_memory(&self) -> bool {
        self.committed
    }

    /// Where tensor `t` is: its root's place while both are in the same arena, else its own. `None` for a tensor that
    /// has no place or 0 bytes, or whose arena is released.
    pub fn place_of(&self, t: usize) -> Option<(Arena, Bytes)> {
        let root = *self.root.get(t)? as usize;
        let record = self.records[root].filter(|r| r.size > 0)?;
        (record.arena == Arena::Persistent || self.committed).then_some((record.arena, record.offset))
    }

    /// The record of tensor `t` itself, aliases not followed.
    pub fn record(&self, t: usize) -> Option<Record> {
        self.records.get(t).copied().flatten()
    }

    /// The tensor whose bytes tensor `t` uses.
    pub fn root_of(&self, t: usize) -> Option<u32> {
        self.root.get(t).copied()
    }

    /// How many tensors there are records for.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The last node executed, -1 for none.
    pub fn last_node(&self) -> i32 {
        self.last_node
    }

    /// The strictest alignment of any tensor with a place.
    pub fn align_of<T: Tables + ?Sized>(&self, graph: &T) -> Align {
        let of = |t: usize| graph.tensor(t).align.unwrap_or(Align::ONE).max(self.node_align[t]);
        (0..self.records.len().min(graph.tensor_count()))
            .filter(|&t| self.records[t].is_some())
            .map(of)
            .fold(self.align, Align::max)
    }

    /// Bytes of the main arena (its high-water mark since the last reset) and of the persistent one.
    pub fn bytes(&self) -> (Bytes, Bytes) {
        (self.high_water, self.persistent)
    }
}
