//! Memory of failed states: a fixed-capacity set of 128-bit keys.
//!
//! A key that is found makes search give up a subtree, so a collision could turn into a false proof. 64 bits are too few
//! for that; with 128 the chance is negligible, and the differential tests run with the table off as well.

use alloc::vec::Vec;

/// A state's key. Never zero.
pub(crate) type Key = (u64, u64);

/// Keys in a bucket: a new key replaces the oldest of its bucket.
const WAYS: usize = 4;

/// A set with deterministic eviction: what it holds depends on the sequence of insertions only.
pub(crate) struct Table {
    slots: Vec<Key>,
    used: usize,
    most: usize,
}

impl Table {
    /// An empty set that grows to at most `most` keys (rounded up to a power of two), 16 bytes each.
    pub fn new(most: usize) -> Table {
        Table { slots: Vec::new(), used: 0, most: most.next_power_of_two().max(WAYS) }
    }

    fn bucket(len: usize, key: Key) -> usize {
        (key.0 as usize & (len / WAYS - 1)) * WAYS
    }

    pub fn contains(&self, key: Key) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let at = Self::bucket(self.slots.len(), key);
        self.slots[at..at + WAYS].contains(&key)
    }

    pub fn insert(&mut self, key: Key) {
        if 2 * self.used >= self.slots.len() && self.slots.len() < self.most {
            let len = (4 * self.slots.len()).clamp(1024.min(self.most), self.most);
            let old = core::mem::replace(&mut self.slots, alloc::vec![(0, 0); len]);
            self.used = 0;
            // From the oldest of a bucket to the newest, so that age is kept.
            old.into_iter().rev().filter(|&k| k != (0, 0)).for_each(|k| self.put(k));
        }
        self.put(key);
    }

    fn put(&mut self, key: Key) {
        let at = Self::bucket(self.slots.len(), key);
        let bucket = &mut self.slots[at..at + WAYS];
        if bucket.contains(&key) {
            return;
        }
        self.used += usize::from(bucket[WAYS - 1] == (0, 0));
        bucket.copy_within(0..WAYS - 1, 1);
        bucket[0] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_fits_and_evicts_the_oldest() {
        let mut t = Table::new(4096);
        for i in 1..=1000u64 {
            t.insert((i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i));
        }
        assert!((1..=1000u64).filter(|i| t.contains((i.wrapping_mul(0x9e37_79b9_7f4a_7c15), *i))).count() > 950);
        assert!(!t.contains((1, 1)));
        let mut t = Table::new(4);
        for i in 1..=6 {
            t.insert((i << 8, i));
        }
        assert!(!t.contains((1 << 8, 1)) && !t.contains((2 << 8, 2)));
        assert!((3..=6).all(|i| t.contains((i << 8, i))));
    }
}
