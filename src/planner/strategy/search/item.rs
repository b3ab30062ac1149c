//! The items of a node and the facts about buffers that do not change during search.

use alloc::vec::Vec;

use super::cell::Cell;
use super::table::Key;
use crate::planner::strategy::instance::Instance;

/// Its offset is fixed.
pub(super) const PINNED: u8 = 1;
/// It would rest on a buffer of the same lifetime that should be above it.
pub(super) const BLOCKED: u8 = 2;
/// Its least offset has changed since the list was last in order.
pub(super) const RAISED: u8 = 4;

/// A buffer that is not placed yet, in 16 bytes where numbers are narrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<V> {
    /// The least offset it can still take.
    pub least: V,
    /// The offset it would rest at if it had not been released past it.
    pub base: V,
    pub size: V,
    /// First and one past the last section.
    pub lo: u16,
    pub up: u16,
    /// Priority, 0 first.
    pub rank: u16,
    pub id: u16,
    pub flags: u8,
}

impl<V> Item<V> {
    pub fn hull(&self) -> (u16, u16) {
        (self.lo, self.up)
    }
}

impl<V: Cell> Item<V> {
    /// Position in a node's list: by least offset, then priority.
    #[inline]
    pub fn place(&self) -> u64 {
        self.least.get() << 16 | u64::from(self.rank)
    }
}

/// A buffer that has just been placed at its least offset.
pub(super) struct Placed<V> {
    pub item: Item<V>,
    pub tie: u16,
    pub cap: V,
}

/// Restores the order by least offset, then priority, after some items were marked [`RAISED`]. The others are in order
/// among themselves, so the raised ones are sorted apart and merged back from the top.
#[inline(never)]
pub(super) fn sort<V: Cell>(items: &mut [Item<V>], raised: &mut Vec<Item<V>>) {
    raised.clear();
    let mut stay = 0;
    for i in 0..items.len() {
        if items[i].flags & RAISED != 0 {
            items[i].flags &= !RAISED;
            raised.push(items[i]);
        } else {
            if stay != i {
                items[stay] = items[i];
            }
            stay += 1;
        }
    }
    raised.sort_unstable_by_key(Item::place);
    let mut to = items.len();
    while let Some(last) = raised.last() {
        let key = last.place();
        while stay > 0 && items[stay - 1].place() > key {
            stay -= 1;
            to -= 1;
            items[to] = items[stay];
        }
        to -= 1;
        items[to] = *last;
        raised.pop();
    }
}

/// Sections are handled in blocks of this many, so that a range costs whole vectors and no scalar tail.
const LANES: usize = 8;

#[derive(Clone, Copy)]
struct Piece {
    first: u16,
    last: u16,
    left: u8,
    right: u8,
}

/// What is known of the buffers: alignments, fixed neighbours, sections in blocks, and random numbers for keys.
pub(super) struct Shape<V> {
    /// Alignment - 1; empty where every offset will do.
    mask: Vec<V>,
    /// Fixed buffers that conflict with each buffer, as (offset, end), by offset; empty where nothing is fixed.
    pins: Vec<Vec<(V, V)>>,
    /// Conflicts as a bit matrix, where lifetimes have gaps.
    matrix: Vec<u64>,
    words: usize,
    /// Buffers with the same sections have the same number.
    class: Vec<u16>,
    pieces: Vec<Piece>,
    starts: Vec<u32>,
    left: [[V; LANES]; LANES],
    right: [[V; LANES]; LANES],
    level: Vec<[V; LANES]>,
    random: Vec<[u64; 4]>,
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl<V: Cell> Shape<V> {
    pub fn of(instance: &Instance) -> Shape<V> {
        let n = instance.len();
        let ones = !V::ZERO;
        let lanes = |keep: &dyn Fn(usize, usize) -> bool| {
            core::array::from_fn(|k| core::array::from_fn(|l| if keep(k, l) { ones } else { V::ZERO }))
        };
        let mut out = Shape {
            mask: instance.align.iter().map(|&a| V::of(a.min(V::LIMIT) - 1)).collect(),
            pins: Vec::new(),
            matrix: Vec::new(),
            words: n.div_ceil(64),
            class: alloc::vec![0; n],
            pieces: Vec::new(),
            starts: Vec::new(),
            left: lanes(&|k, l| l >= k),
            right: lanes(&|k, l| l <= k),
            level: alloc::vec![[V::ZERO; LANES]; instance.sections().div_ceil(LANES)],
            random: (0..n as u64).map(|i| core::array::from_fn(|k| mix(4 * i + k as u64 + 1) | 1)).collect(),
        };
        for i in 0..n {
            out.starts.push(out.pieces.len() as u32);
            for r in instance.ranges(i) {
                let last = r.up - 1;
                out.pieces.push(Piece {
                    first: (r.lo as usize / LANES) as u16,
                    last: (last as usize / LANES) as u16,
                    left: (r.lo as usize % LANES) as u8,
                    right: (last as usize % LANES) as u8,
                });
            }
        }
        out.starts.push(out.pieces.len() as u32);
        let mut by_range: Vec<u16> = (0..n as u16).collect();
        by_range.sort_unstable_by_key(|&i| instance.ranges(usize::from(i)));
        for k in 1..n {
            let (a, b) = (usize::from(by_range[k - 1]), usize::from(by_range[k]));
            out.class[b] = out.class[a] + u16::from(instance.ranges(a) != instance.ranges(b));
        }
        let meets = |a: usize, b: usize| {
            instance.ranges(a).iter().any(|x| instance.ranges(b).iter().any(|y| x.lo < y.up && y.lo < x.up))
        };
        if !instance.starts.is_empty() {
            out.matrix = alloc::vec![0; n * out.words];
            for a in 0..n {
                for b in (0..n).filter(|&b| meets(a, b)) {
                    out.matrix[a * out.words + b / 64] |= 1 << (b % 64);
                }
            }
        }
        let fixed: Vec<usize> = (0..n).filter(|&i| instance.fixed_of(i).is_some()).collect();
        if !fixed.is_empty() {
            for i in 0..n {
                let mut near: Vec<(V, V)> = Vec::new();
                for &p in fixed.iter().filter(|&&p| p != i && meets(i, p)) {
                    let at = V::of(instance.fixed[p]);
                    near.push((at, at + V::of(instance.size[p])));
                }
                near.sort_unstable();
                out.pins.push(near);
            }
        }
        out
    }

    pub fn item(&self, instance: &Instance, i: u32, rank: u16) -> Item<V> {
        let k = i as usize;
        let at = instance.fixed_of(k);
        let least = at.map_or(V::ZERO, V::of);
        Item {
            least,
            base: least,
            size: V::of(instance.size[k]),
            lo: instance.hull[k].lo as u16,
            up: instance.hull[k].up as u16,
            rank,
            id: i as u16,
            flags: if at.is_some() { PINNED } else { 0 },
        }
    }

    #[inline]
    pub fn conflict(&self, a: &Item<V>, b: &Item<V>) -> bool {
        a.lo < b.up
            && b.lo < a.up
            && (self.matrix.is_empty()
                || self.matrix[usize::from(a.id) * self.words + usize::from(b.id) / 64] >> (b.id % 64) & 1 == 1)
    }

    /// Whether two items are alike in all but their names.
    pub fn twins(&self, a: &Item<V>, b: &Item<V>) -> bool {
        a.size == b.size && self.same(a, b) && (a.flags | b.flags) & PINNED == 0 && self.mask_of(a) == self.mask_of(b)
    }

    fn same(&self, a: &Item<V>, b: &Item<V>) -> bool {
        self.class[usize::from(a.id)] == self.class[usize::from(b.id)]
    }

    #[inline]
    fn mask_of(&self, a: &Item<V>) -> V {
        if self.mask.is_empty() {
            V::ZERO
        } else {
            self.mask[usize::from(a.id)]
        }
    }

    /// The least offset from `at` on that meets the alignment and leaves fixed buffers alone.
    #[inline]
    pub fn lift(&self, item: &Item<V>, at: V) -> V {
        if self.mask.is_empty() && self.pins.is_empty() {
            return at;
        }
        let mask = self.mask_of(item);
        let up = |at: V| if at > V::FAR - mask { V::FAR } else { (at + mask) & !mask };
        let mut at = up(at);
        if !self.pins.is_empty() {
            for &(from, to) in &self.pins[usize::from(item.id)] {
                if at >= V::of(V::LIMIT) {
                    return V::FAR;
                }
                if at + item.size <= from {
                    break;
                }
                if at < to {
                    at = up(to);
                }
            }
        }
        at
    }

    /// Takes `placed` into account for `o`. False where `o` has no place left.
    #[inline]
    pub fn raise(&self, placed: &Placed<V>, o: &mut Item<V>, tie: &[u16], cap: &[V], stacking: bool) -> bool {
        let b = &placed.item;
        if !self.conflict(b, o) {
            return true;
        }
        let top = b.least + b.size;
        if o.flags & PINNED != 0 {
            return top <= o.least;
        }
        if top > o.base {
            o.base = self.lift(o, top);
        }
        if o.base > o.least {
            o.least = o.base;
            o.flags = o.flags & !BLOCKED | RAISED;
        }
        let id = usize::from(o.id);
        if o.least > cap[id] {
            return false;
        }
        if stacking && o.least == top && placed.tie > tie[id] && self.same(b, o) && b.flags & PINNED == 0 {
            // Could they be swapped? Then this order is not the canonical one.
            let above = b.least + o.size;
            if b.least & self.mask_of(o) == V::ZERO && above & self.mask_of(b) == V::ZERO && above <= placed.cap {
                o.flags |= BLOCKED;
            }
        }
        true
    }

    /// Whether the items, sorted by least offset and stacked in that order, stay within `limit` in every section. With
    /// release dates that order is the best one (a single machine's makespan), so this is a lower bound.
    #[inline(never)]
    pub fn fits(&mut self, items: &[Item<V>], limit: V) -> bool {
        let (mut lo, mut up) = (usize::MAX, 0);
        for i in items {
            lo = lo.min(usize::from(i.lo) / LANES);
            up = up.max((usize::from(i.up) - 1) / LANES + 1);
        }
        self.level[lo..up].fill([V::ZERO; LANES]);
        let (left, right) = (&self.left, &self.right);
        for i in items {
            let id = usize::from(i.id);
            for p in &self.pieces[self.starts[id] as usize..self.starts[id + 1] as usize] {
                let (l, r) = (&left[usize::from(p.left & 7)], &right[usize::from(p.right & 7)]);
                let run = &mut self.level[usize::from(p.first)..=usize::from(p.last)];
                let (head, rest) = run.split_first_mut().expect("a range is not empty");
                match rest.split_last_mut() {
                    None => stack(head, i, &core::array::from_fn(|k| l[k] & r[k])),
                    Some((tail, middle)) => {
                        stack(head, i, l);
                        for block in middle {
                            for x in block {
                                *x = (*x).max(i.least) + i.size;
                            }
                        }
                        stack(tail, i, r);
                    }
                }
            }
        }
        let mut most = [V::ZERO; LANES];
        for block in &self.level[lo..up] {
            for (m, x) in most.iter_mut().zip(block) {
                *m = (*m).max(*x);
            }
        }
        most.iter().all(|&x| x <= limit)
    }

    /// The state of a list of items: least offsets, resting places and marks of each.
    #[inline(never)]
    pub fn key(&self, items: &[Item<V>], salt: u64) -> Key {
        let (mut a, mut b) = (salt, salt.rotate_left(32));
        for i in items {
            let r = &self.random[usize::from(i.id)];
            let (least, base) = (i.least.get() << 2 | u64::from(i.flags & BLOCKED) | 1, i.base.get() + 1);
            a = a.wrapping_add(least.wrapping_mul(r[0])).wrapping_add(base.wrapping_mul(r[1]));
            b = b.wrapping_add(least.wrapping_mul(r[2])).wrapping_add(base.wrapping_mul(r[3]));
        }
        (mix(a), mix(b) | 1)
    }
}

/// Puts an item on the lanes of one block that `keep` selects.
#[inline]
fn stack<V: Cell>(block: &mut [V; LANES], item: &Item<V>, keep: &[V; LANES]) {
    for (x, &k) in block.iter_mut().zip(keep) {
        *x = (*x).max(item.least & k) + (item.size & k);
    }
}
