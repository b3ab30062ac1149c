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
    /// Moments alive.
    Moments,
    /// Size times moments alive.
    Expanse,
    /// Size.
    Size,
}

use Key::{Area, Bulk, Expanse, Life, Moments, Sections, Size, Total};

/// How buffers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Criteria in sequence.
    Keys([Key; 3]),
    /// The same with each value raised by up to an eighth, by a hash of the buffer.
    Disturbed([Key; 3]),
    /// The product of powers of total, sections, moments and size, with these exponents.
    Powers([i32; 4]),
}

/// An order of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub rule: Rule,
    /// Whether totals are taken again from what is left once a part of the problem splits off.
    pub again: bool,
}

impl Order {
    /// A number of its own for each order.
    pub fn salt(&self) -> u64 {
        let step = |c: u64, k: u64| (c ^ k).wrapping_mul(0xd6e8_feb8_6659_fd93);
        match self.rule {
            Rule::Keys(keys) => keys.iter().fold(u64::from(self.again) + 1, |c, &k| step(c, k as u64)),
            Rule::Disturbed(keys) => keys.iter().fold(u64::from(self.again) + 5, |c, &k| step(c, k as u64)),
            Rule::Powers(powers) => powers.iter().fold(u64::from(self.again) + 3, |c, &k| step(c, k as u64)),
        }
    }

    /// The order's key for buffer `i`, smallest first. Buffers that are alike get alike keys.
    pub fn key(&self, instance: &Instance, i: usize, peak: u64) -> [u64; 3] {
        match self.rule {
            Rule::Keys(keys) => keys.map(|k| !u64::try_from(value(instance, k, i, peak)).unwrap_or(u64::MAX)),
            Rule::Disturbed(keys) => {
                let hull = instance.hull[i];
                let mut hash = instance.raw[i] ^ u64::from(hull.lo) << 40 ^ u64::from(hull.up) << 20;
                keys.map(|k| {
                    let v = value(instance, k, i, peak);
                    hash = (hash ^ 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    hash ^= hash >> 29;
                    let raised = v + v * u128::from(hash >> 48 & 0x1fff) / (1 << 16);
                    !u64::try_from(raised).unwrap_or(u64::MAX)
                })
            }
            Rule::Powers(powers) => {
                let sections = value(instance, Sections, i, peak) as u64;
                let factors = [peak, sections, u64::from(instance.moments[i]), instance.size[i]];
                let score: i64 = (0..4).map(|k| i64::from(powers[k]) * log(factors[k])).sum();
                [(score ^ i64::MAX) as u64, !sections, !instance.size[i]]
            }
        }
    }

    /// A member of the family of powers, a different one for each seed.
    ///
    /// What solves an instance is mostly fullness first and then some balance of length and size, but which balance is
    /// chaotic: many short tries at different ones find it sooner than long tries at a few.
    pub fn of_seed(seed: u32) -> Order {
        let mut x = u64::from(seed) + 1;
        let mut draw = |n: u64| {
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x ^= x >> 29;
            (x >> 20) % n
        };
        // The exponents of the others range to eight; totals differ little, so theirs takes thousands to decide.
        let total = match draw(8) {
            0 => 0,
            1 => 1 << draw(4),
            k => 64 << (2 * k.min(5) - 4 + draw(2)),
        };
        let mut one = |least: i32| draw((9 - least) as u64) as i32 + least;
        Order { rule: Rule::Powers([total, one(-1), one(-1), one(-1)]), again: seed % 2 == 1 }
    }
}

/// The logarithm to base 2 in units of 2^-20, linear between powers of two: the same on every machine.
fn log(v: u64) -> i64 {
    let Some(whole) = v.checked_ilog2() else { return 0 };
    let part = (u128::from(v) << 20 >> whole) as i64 - (1 << 20);
    i64::from(whole) << 20 | part
}

const fn order(keys: [Key; 3], again: bool) -> Order {
    Order { rule: Rule::Keys(keys), again }
}

/// The orders search begins with. None of them solves every instance, together they solve most.
pub(crate) const SEARCH: [Order; 12] = [
    order([Total, Sections, Bulk], false),
    order([Total, Life, Area], true),
    order([Bulk, Total, Sections], false),
    order([Total, Moments, Expanse], true),
    order([Sections, Bulk, Total], true),
    order([Total, Sections, Area], true),
    order([Total, Life, Area], false),
    order([Life, Area, Total], true),
    order([Total, Moments, Expanse], false),
    order([Area, Life, Total], false),
    order([Total, Area, Life], true),
    order([Expanse, Moments, Total], false),
];

/// The orders of the valley heuristic besides the order of time.
pub(crate) const VALLEY: [Order; 5] = [
    order([Total, Life, Area], false),
    order([Area, Life, Total], false),
    Order { rule: Rule::Disturbed([Sections, Bulk, Total]), again: false },
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
        Moments => u128::from(instance.moments[i]),
        Expanse => u128::from(instance.size[i]) * u128::from(instance.moments[i]),
        Size => u128::from(instance.size[i]),
    }
}

/// Buffers in the given order; ties by place in time, then size, so that shuffled rows change as little as can be.
pub(crate) fn sorted(instance: &Instance, order: &Order, peaks: &[u64]) -> Vec<u32> {
    let n = instance.len();
    let keys: Vec<[u64; 3]> = (0..n).map(|i| order.key(instance, i, peaks[i])).collect();
    // A buffer's index in the instance ascends with that in the problem.
    let tie = |i: usize| {
        let h = instance.hull[i];
        [u64::from(h.lo), u64::from(h.up - h.lo), !instance.raw[i], i as u64]
    };
    if let Some((mut rows, mask)) = packed(n, |i| (keys[i], tie(i))) {
        rows.sort_unstable();
        return rows.into_iter().map(|r| (r & mask) as u32).collect();
    }
    let mut rows: Vec<u32> = (0..n as u32).collect();
    rows.sort_unstable_by_key(|&i| (keys[i as usize], tie(i as usize)));
    rows
}

/// Each row in one number of the same order, and the bits of its last entry, if what rows differ in fits: comparing is
/// most of what sorting does.
fn packed(n: usize, row: impl Fn(usize) -> ([u64; 3], [u64; 4])) -> Option<(Vec<u128>, u128)> {
    let row = |i: usize| {
        let ([a, b, c], [d, e, f, g]) = row(i);
        [a, b, c, d, e, f, g]
    };
    let (mut least, mut most) = ([u64::MAX; 7], [0; 7]);
    for i in 0..n {
        for (k, v) in row(i).into_iter().enumerate() {
            least[k] = least[k].min(v);
            most[k] = most[k].max(v);
        }
    }
    let bits: [u32; 7] = core::array::from_fn(|k| u64::BITS - most[k].saturating_sub(least[k]).leading_zeros());
    if bits.iter().sum::<u32>() > u128::BITS {
        return None;
    }
    let pack = |i: usize| (0..7).fold(0u128, |sum, k| sum << bits[k] | u128::from(row(i)[k] - least[k]));
    Some(((0..n).map(pack).collect(), (1 << bits[6]) - 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_one_number_keep_their_order() {
        let mut x = 11u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for n in [0usize, 1, 2, 200] {
            let rows: Vec<([u64; 3], [u64; 4])> =
                (0..n as u64).map(|i| ([!next(3), next(4) << 40, 7], [next(2), next(5), !next(3), i])).collect();
            let (mut packed, mask) = packed(n, |i| rows[i]).expect("some fifty bits");
            packed.sort_unstable();
            let mut want: Vec<usize> = (0..n).collect();
            want.sort_unstable_by_key(|&i| rows[i]);
            assert_eq!(packed.iter().map(|r| (r & mask) as usize).collect::<Vec<_>>(), want);
        }
        assert!(packed(2, |i| ([0, u64::MAX * i as u64, u64::MAX * i as u64], [0, 0, 0, i as u64])).is_none());
    }
}
