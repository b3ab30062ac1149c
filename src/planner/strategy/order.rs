//! Orders of priority: which buffer to place first among those that fit.

use alloc::vec::Vec;

use super::instance::Instance;

/// A criterion, largest first unless said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The largest sum of sizes in one of the buffer's sections.
    Total,
    /// Steps alive.
    Life,
    /// Size times steps alive.
    Area,
    /// Sections spanned.
    Sections,
    /// Size times sections spanned.
    Bulk,
    /// Size.
    Size,
}

use Key::{Area, Bulk, Life, Sections, Size, Total};

/// Criteria in sequence, and whether totals are taken again from what is left once a part of the problem splits off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub keys: [Key; 3],
    pub again: bool,
    /// 0, or the seed of a disturbance by up to an eighth, a quarter, three eighths or half of each value: later rounds try other orders of the same kind.
    pub noise: u32,
}

impl Order {
    /// A number of its own for each order.
    pub fn salt(&self) -> u64 {
        let code = self.keys.iter().fold(u64::from(self.again), |c, &k| c * 8 + k as u64);
        (code + 1 + (u64::from(self.noise) << 20)).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// The order's key for buffer `i`, smallest first. Buffers that are alike get alike keys.
    pub fn key(&self, instance: &Instance, i: usize, peak: u64) -> [u64; 3] {
        let mut hash = instance.size[i] ^ u64::from(instance.hull[i].lo) << 40 ^ u64::from(instance.hull[i].up) << 20;
        self.keys.map(|k| {
            let mut v = value(instance, k, i, peak);
            if self.noise != 0 {
                hash = (hash ^ u64::from(self.noise)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^= hash >> 29;
                v += v * u128::from(hash >> 48 & 0x1fff) * u128::from(self.noise / 2 % 4 + 1) / (1 << 16);
            }
            !u64::try_from(v).unwrap_or(u64::MAX)
        })
    }
}

const fn order(keys: [Key; 3], again: bool) -> Order {
    Order { keys, again, noise: 0 }
}

/// The orders search goes through, round robin. None of them solves every instance, together they solve most.
pub(crate) const SEARCH: [Order; 12] = [
    order([Total, Sections, Bulk], false),
    order([Total, Life, Area], true),
    order([Bulk, Total, Sections], false),
    order([Sections, Bulk, Total], true),
    order([Total, Sections, Area], true),
    order([Total, Life, Area], false),
    order([Life, Area, Total], true),
    order([Area, Life, Total], false),
    order([Sections, Area, Total], false),
    order([Size, Life, Total], false),
    order([Total, Area, Life], true),
    order([Total, Sections, Bulk], true),
];

/// The orders of the valley heuristic besides the order of time.
pub(crate) const VALLEY: [Order; 5] = [
    order([Total, Life, Area], false),
    order([Area, Life, Total], false),
    Order { keys: [Sections, Bulk, Total], again: false, noise: 1 },
    order([Total, Area, Life], false),
    order([Total, Size, Life], false),
];

/// The largest total in each buffer's sections.
pub(crate) fn peaks(instance: &Instance, totals: &[u64]) -> Vec<u64> {
    let tree = MaxTree::of(totals);
    (0..instance.len())
        .map(|i| instance.ranges(i).iter().map(|r| tree.max(r.lo as usize, r.up as usize)).max().unwrap_or(0))
        .collect()
}

/// A key's value; larger goes first.
fn value(instance: &Instance, key: Key, i: usize, peak: u64) -> u128 {
    match key {
        Total => u128::from(peak),
        Life => u128::from(instance.life[i]),
        Area => u128::from(instance.life[i]) * u128::from(instance.size[i]),
        Sections => instance.ranges(i).iter().map(|r| u128::from(r.up - r.lo)).sum(),
        Bulk => u128::from(instance.size[i]) * value(instance, Sections, i, peak),
        Size => u128::from(instance.size[i]),
    }
}

/// Buffers in the given order; ties by place in time, then size, so that shuffled rows change as little as can be.
pub(crate) fn sorted(instance: &Instance, order: &Order, peaks: &[u64]) -> Vec<u32> {
    let mut rows: Vec<([u64; 3], u32)> =
        (0..instance.len()).map(|i| (order.key(instance, i, peaks[i]), i as u32)).collect();
    let tie = |i: u32| {
        let i = i as usize;
        (instance.hull[i], core::cmp::Reverse(instance.raw[i]), instance.source[i])
    };
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| tie(a.1).cmp(&tie(b.1))));
    rows.into_iter().map(|r| r.1).collect()
}

/// Range maximum over a fixed array.
struct MaxTree {
    leaves: usize,
    node: Vec<u64>,
}

impl MaxTree {
    fn of(values: &[u64]) -> MaxTree {
        let leaves = values.len();
        let mut node = alloc::vec![0; leaves];
        node.extend_from_slice(values);
        for i in (1..leaves).rev() {
            node[i] = node[2 * i].max(node[2 * i + 1]);
        }
        MaxTree { leaves, node }
    }

    fn max(&self, lo: usize, up: usize) -> u64 {
        let (mut l, mut r, mut most) = (lo + self.leaves, up + self.leaves, 0);
        while l < r {
            if l & 1 == 1 {
                most = most.max(self.node[l]);
                l += 1;
            }
            if r & 1 == 1 {
                r -= 1;
                most = most.max(self.node[r]);
            }
            l /= 2;
            r /= 2;
        }
        most
    }
}
