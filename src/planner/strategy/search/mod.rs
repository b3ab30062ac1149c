//! Exact search: is there a plan of at most so many bytes?
//!
//! Depth first over *canonical* plans: among all plans that fit, the one with the least sum of size times offset, ties
//! broken by how many buffers of equal lifetime are stacked against one fixed order. In such a plan every buffer rests on
//! the arena's base, on another buffer or on a fixed one. Buffers are placed in ascending order of offset, so all that
//! matters of the past is the least offset each remaining buffer can still take, and a node is just a list of [`Item`]s.
//!
//! At a node the first item either goes to its least offset, or is *released* to the least offset at which a remaining
//! buffer could support it. The rules that cut, each of which can be switched off ([`Rules`]):
//! * bound: in each section the items in order of least offset, stacked, must fit;
//! * hole: an item that fits below everything that could still be in its way goes there now, and if it was released past
//!   that place the node is dominated;
//! * stacking: of two buffers of one lifetime directly on each other, only one order is tried;
//! * twins: equal buffers are released together;
//! * memory: a state that failed is not searched again;
//! * split: parts between which no item reaches across are searched one by one, and none is opened again.
//!
//! The method is that of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
//! (ASPLOS 2023), with the release, the hole rule and the memory added.

mod cell;
mod item;
mod table;

use alloc::vec::Vec;

pub(crate) use cell::Cell;
use item::{Item, Shape, BLOCKED, PINNED, RAISED};
use table::{Key, Table};

use super::instance::Instance;
use super::options::Rules;
use super::order::{self, Order};
use crate::units::Bytes;

/// The answer to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A plan within the capacity was found; see [`Search::offsets`].
    Found,
    /// There is none.
    Infeasible,
    /// The budget was spent.
    Budget,
    /// The caller asked to stop.
    Stopped,
}

/// A list of items between its siblings on the stack.
#[derive(Clone, Copy)]
struct Frame {
    /// Where its items start; they end where the next frame's start.
    start: usize,
    /// Where its failed states start.
    keys: usize,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A part that waits for its turn.
    Waiting,
    /// Its first item is tried at its least offset by the frames above.
    Placed,
    /// The frames above are its parts after a forced move: if one fails it fails.
    Closed,
}

/// Failed states kept at most.
const MEMORY: usize = 1 << 20;
/// Nodes between two calls of the caller's stop function.
const STRIDE: u64 = 512;

/// Search over one instance. Its buffers are reused from question to question.
pub(crate) struct Search<'a, V> {
    instance: &'a Instance,
    rules: Rules,
    shape: Shape<V>,
    peaks: Vec<u64>,
    /// The same over what is left of a part.
    peaks_left: Vec<u64>,
    /// Highest offset of each buffer within the capacity.
    cap: Vec<V>,
    offsets: Vec<V>,
    items: Vec<Item<V>>,
    frames: Vec<Frame>,
    keys: Vec<Key>,
    table: Table,
    /// The question the table's keys belong to.
    salt: u64,
    /// Static order of the current question, for the stacking rule.
    tie: Vec<u16>,
    /// Least offset of each remaining item, by buffer, at the current node.
    now: Vec<V>,
    /// A buffer that conflicts with each buffer and was in the way of its resting place when last looked; the buffer
    /// `n`, which never is, where none is known.
    witness: Vec<u16>,
    /// Scratch.
    raised: Vec<Item<V>>,
    cross: Vec<i32>,
    totals: Vec<u64>,
    nodes: u64,
}

impl<'a, V: Cell> Search<'a, V> {
    /// The largest number of buffers and of sections search takes on.
    pub const MOST: usize = 8192;

    pub fn new(instance: &'a Instance, totals: &[u64], rules: Rules) -> Search<'a, V> {
        let n = instance.len();
        Search {
            instance,
            rules,
            shape: Shape::of(instance),
            peaks: order::peaks(instance, totals),
            peaks_left: alloc::vec![0; n],
            cap: alloc::vec![V::ZERO; n],
            offsets: alloc::vec![V::ZERO; n],
            items: Vec::new(),
            frames: Vec::new(),
            keys: Vec::new(),
            table: Table::new(MEMORY),
            salt: 0,
            tie: alloc::vec![0; n],
            now: alloc::vec![V::FAR; n + 1],
            witness: alloc::vec![n as u16; n],
            raised: Vec::new(),
            cross: Vec::new(),
            totals: Vec::new(),
            nodes: 0,
        }
    }

    /// The offsets found, in units.
    pub fn offsets(&self) -> Vec<u64> {
        self.offsets.iter().map(|o| o.get()).collect()
    }

    /// Nodes visited by the last question.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Searches for a plan of at most `capacity` bytes, visiting at most `budget` nodes. `stop` is given the number of
    /// nodes every now and then and says whether to stop.
    pub fn run(&mut self, order: &Order, capacity: Bytes, budget: u64, stop: &mut dyn FnMut(u64) -> bool) -> Outcome {
        self.nodes = 0;
        // What failed for one order and capacity fails again however large the budget, but says nothing about others.
        self.salt = order.salt() ^ capacity.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = self.instance.len();
        for i in 0..n {
            match self.instance.cap(i, capacity) {
                Some(cap) => self.cap[i] = V::of(cap),
                None => return Outcome::Infeasible,
            }
        }
        let limit = V::of(capacity.div_ceil(self.instance.unit));
        let sorted = order::sorted(self.instance, order, &self.peaks);
        for (rank, &i) in sorted.iter().enumerate() {
            self.tie[i as usize] = rank as u16;
        }
        self.items.clear();
        self.frames.clear();
        self.keys.clear();
        for &i in &sorted {
            let mut item = self.shape.item(self.instance, i, self.tie[i as usize]);
            if item.flags & PINNED == 0 {
                item.base = self.shape.lift(&item, V::ZERO);
                item.least = item.base;
            }
            if item.least > self.cap[i as usize] {
                return Outcome::Infeasible;
            }
            self.items.push(item);
        }
        self.items.sort_unstable_by_key(Item::place);
        self.frames.push(Frame { start: 0, keys: 0, phase: Phase::Waiting });
        if n == 0 {
            return Outcome::Found;
        }
        if self.rules.split {
            self.frames.pop();
            self.split(0, order);
        }
        loop {
            // The top frame waits: it becomes the active one.
            let mut verdict = self.step(order, limit, budget, stop);
            loop {
                match verdict {
                    Verdict::Deeper => break,
                    Verdict::Solved => {
                        // Its parents are solved with it, up to a sibling that still waits.
                        let mut start = self.items.len();
                        while self.frames.last().is_some_and(|f| f.phase != Phase::Waiting) {
                            let f = self.frames.pop().expect("looked at");
                            start = f.start;
                            self.keys.truncate(f.keys);
                        }
                        self.items.truncate(start);
                        match self.frames.last() {
                            None => return Outcome::Found,
                            Some(_) => break,
                        }
                    }
                    Verdict::Failed => {
                        self.fail();
                        while self.frames.last().is_some_and(|f| f.phase == Phase::Waiting) {
                            let f = self.frames.pop().expect("looked at");
                            self.items.truncate(f.start);
                        }
                        verdict = match self.frames.last() {
                            None => return Outcome::Infeasible,
                            Some(f) if f.phase == Phase::Closed => Verdict::Failed,
                            Some(_) => {
                                if self.release() {
                                    self.step(order, limit, budget, stop)
                                } else {
                                    Verdict::Failed
                                }
                            }
                        };
                    }
                    Verdict::Budget => return Outcome::Budget,
                    Verdict::Stopped => return Outcome::Stopped,
                }
            }
        }
    }

    /// Takes the top frame off and remembers its states as failed.
    fn fail(&mut self) {
        let f = self.frames.pop().expect("a frame failed");
        if self.rules.memory {
            for k in f.keys..self.keys.len() {
                self.table.insert(self.keys[k]);
            }
        }
        self.keys.truncate(f.keys);
        self.items.truncate(f.start);
    }

    /// Works on the top frame until it branches, fails or is solved.
    fn step(&mut self, order: &Order, limit: V, budget: u64, stop: &mut dyn FnMut(u64) -> bool) -> Verdict {
        let top = self.frames.len() - 1;
        let Frame { start, .. } = self.frames[top];
        loop {
            if self.nodes >= budget {
                return Verdict::Budget;
            }
            self.nodes += 1;
            if self.nodes.is_multiple_of(STRIDE) && stop(self.nodes) {
                return Verdict::Stopped;
            }
            item::sort(&mut self.items[start..], &mut self.raised);
            if self.rules.bound {
                if !self.shape.fits(&self.items[start..], limit) {
                    return Verdict::Failed;
                }
            } else if self.items[start..].iter().any(|i| i.least > self.cap[i.id as usize]) {
                return Verdict::Failed;
            }
            match self.forced(start) {
                Forced::Dominated => return Verdict::Failed,
                Forced::Place(k) => {
                    let hull = self.items[start + k].hull();
                    if !self.place_here(start, k) {
                        return Verdict::Failed;
                    }
                    if self.items.len() == start {
                        self.frames[top].phase = Phase::Closed;
                        return Verdict::Solved;
                    }
                    if self.rules.split && self.uncrossed(start, hull) {
                        self.frames[top].phase = Phase::Closed;
                        self.split(start, order);
                        return Verdict::Deeper;
                    }
                    continue;
                }
                Forced::No => {}
            }
            if self.rules.memory {
                let key = self.shape.key(&self.items[start..], self.salt);
                if self.table.contains(key) {
                    return Verdict::Failed;
                }
                self.keys.push(key);
            }
            self.frames[top].phase = Phase::Placed;
            let first = self.items[start];
            if first.base < first.least || first.flags & BLOCKED != 0 {
                if self.release() {
                    continue;
                }
                return Verdict::Failed;
            }
            let from = self.items.len();
            if !self.place_copy(start) {
                self.items.truncate(from);
                if self.release() {
                    continue;
                }
                return Verdict::Failed;
            }
            if self.items.len() == from {
                return Verdict::Solved;
            }
            if self.rules.split && self.uncrossed(from, first.hull()) {
                self.split(from, order);
            } else {
                self.frames.push(Frame { start: from, keys: self.keys.len(), phase: Phase::Waiting });
            }
            return Verdict::Deeper;
        }
    }

    /// Whether an item must go to its lowest place now, or is past it.
    #[inline(never)]
    fn forced(&mut self, start: usize) -> Forced {
        let items = &self.items[start..];
        if items[0].flags & PINNED != 0 {
            return Forced::Place(0);
        }
        if !self.rules.hole {
            return Forced::No;
        }
        // Most items are still in the way of the same one as at the last node: look there first.
        self.now.fill(V::FAR);
        for i in items {
            self.now[usize::from(i.id)] = i.least;
        }
        for (k, b) in items.iter().enumerate() {
            let need = b.base + b.size;
            let witness = &mut self.witness[usize::from(b.id)];
            if self.now[usize::from(*witness)] < need || b.flags & PINNED != 0 {
                continue;
            }
            // Items ascend: once one starts above the place, the rest do.
            let reach = items.iter().take_while(|o| o.least < need);
            let found = reach.enumerate().find(|&(j, o)| j != k && self.shape.conflict(o, b));
            let blocked = found.is_some_and(|(_, o)| {
                *witness = o.id;
                true
            });
            if !blocked {
                if b.base < b.least || b.flags & BLOCKED != 0 {
                    return Forced::Dominated;
                }
                return Forced::Place(k);
            }
        }
        Forced::No
    }

    /// Places item `k` of the top frame at its least offset and takes it off the list. False where another cannot be
    /// placed any more.
    fn place_here(&mut self, start: usize, k: usize) -> bool {
        let b = self.items.remove(start + k);
        self.offsets[b.id as usize] = b.least;
        let placed = item::Placed { item: b, tie: self.tie[b.id as usize], cap: self.cap[b.id as usize] };
        for o in &mut self.items[start..] {
            if !self.shape.raise(&placed, o, &self.tie, &self.cap, self.rules.stacking) {
                return false;
            }
        }
        true
    }

    /// Copies the items from `start` to the top of the stack with the first one placed.
    fn place_copy(&mut self, start: usize) -> bool {
        let b = self.items[start];
        self.offsets[b.id as usize] = b.least;
        let placed = item::Placed { item: b, tie: self.tie[b.id as usize], cap: self.cap[b.id as usize] };
        let end = self.items.len();
        self.items.extend_from_within(start + 1..end);
        for o in &mut self.items[end..] {
            if !self.shape.raise(&placed, o, &self.tie, &self.cap, self.rules.stacking) {
                return false;
            }
        }
        true
    }

    /// Raises the first item of the top frame to where something else could support it.
    fn release(&mut self) -> bool {
        let start = self.frames[self.frames.len() - 1].start;
        let items = &mut self.items[start..];
        let b = items[0];
        if b.flags & PINNED != 0 {
            return false;
        }
        let mut next = V::FAR;
        if self.rules.release {
            for o in &items[1..] {
                if o.least + o.size < next && self.shape.conflict(o, &b) {
                    next = o.least + o.size;
                }
            }
            if next == V::FAR {
                return false;
            }
        } else {
            if !items[1..].iter().any(|o| self.shape.conflict(o, &b)) {
                return false;
            }
            next = b.least + V::ONE;
        }
        let next = self.shape.lift(&b, next);
        let cap = self.cap[b.id as usize];
        if next > cap {
            return false;
        }
        items[0].least = next;
        items[0].flags = items[0].flags & !BLOCKED | RAISED;
        if self.rules.twins {
            for o in &mut items[1..] {
                if o.least == b.least && self.shape.twins(o, &b) && self.cap[usize::from(o.id)] == cap {
                    o.least = next;
                    o.flags = o.flags & !BLOCKED | RAISED;
                }
            }
        }
        true
    }

    /// Whether no item from `start` on reaches across some boundary inside `hull`.
    fn uncrossed(&mut self, start: usize, (lo, up): (u16, u16)) -> bool {
        let width = usize::from(up - lo);
        if width < 2 {
            return false;
        }
        self.cross.clear();
        self.cross.resize(width + 1, 0);
        // Boundary k of the hull lies between sections lo + k and lo + k + 1.
        for i in &self.items[start..] {
            let from = usize::from(i.lo.max(lo) - lo);
            let to = usize::from(i.up.min(up).max(lo + 1) - 1 - lo);
            if from < to {
                self.cross[from] += 1;
                self.cross[to] -= 1;
            }
        }
        // An item that begins before or ends after the hull crosses its outer boundaries, which are not asked for.
        let mut sum = 0;
        self.cross[..width - 1].iter().any(|d| {
            sum += d;
            sum == 0
        })
    }

    /// Replaces the items from `start` on by parts that share no section, each in a waiting frame, the smallest on top.
    fn split(&mut self, start: usize, order: &Order) {
        let list = &mut self.items[start..];
        list.sort_unstable_by_key(|i| (i.lo, i.up, i.id));
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let (mut from, mut reach) = (0, list[0].up);
        for (k, item) in list.iter().enumerate().skip(1) {
            if item.lo >= reach {
                parts.push((from, k));
                from = k;
            }
            reach = reach.max(item.up);
        }
        parts.push((from, list.len()));
        parts.sort_by_key(|p| (core::cmp::Reverse(p.1 - p.0), p.0));
        let copy: Vec<Item<V>> = list.to_vec();
        let mut at = start;
        for (from, to) in parts {
            self.items[at..at + to - from].copy_from_slice(&copy[from..to]);
            let part = at..at + to - from;
            if order.again {
                self.rank_again(part.start, part.end, order);
            }
            self.items[part].sort_unstable_by_key(|i| (i.least, i.rank));
            self.frames.push(Frame { start: at, keys: self.keys.len(), phase: Phase::Waiting });
            at += to - from;
        }
    }

    /// Ranks the items of a part by the totals of what is left in it.
    fn rank_again(&mut self, from: usize, to: usize, order: &Order) {
        let items = &mut self.items[from..to];
        let lo = items.iter().map(|i| i.lo).min().unwrap_or(0) as usize;
        let up = items.iter().map(|i| i.up).max().unwrap_or(0) as usize;
        self.totals.clear();
        self.totals.resize(up - lo, 0);
        let ranges = |id: u16| self.instance.ranges(usize::from(id));
        for i in items.iter() {
            for r in ranges(i.id) {
                self.totals[r.lo as usize - lo..r.up as usize - lo].iter_mut().for_each(|t| *t += i.size.get());
            }
        }
        for i in items.iter() {
            let most = |r: &super::instance::Range| {
                self.totals[r.lo as usize - lo..r.up as usize - lo].iter().copied().max().unwrap_or(0)
            };
            self.peaks_left[usize::from(i.id)] = ranges(i.id).iter().map(most).max().unwrap_or(0);
        }
        let key = |i: &Item<V>| {
            let id = usize::from(i.id);
            order.key(self.instance, id, self.peaks_left[id])
        };
        items.sort_by_cached_key(|i| (key(i), self.tie[usize::from(i.id)]));
        for (rank, i) in items.iter_mut().enumerate() {
            i.rank = rank as u16;
        }
    }
}

enum Verdict {
    /// The frames on top of the stack wait.
    Deeper,
    Solved,
    Failed,
    Budget,
    Stopped,
}

enum Forced {
    No,
    Place(usize),
    Dominated,
}
