//! Plans by shape signature: a bounded cache that forgets what was used longest ago.

use std::sync::Arc;

/// Values by signature, at most `capacity` of them.
///
/// A signature is compared in full: its hash only decides which entries are looked at. A look-up takes no memory.
#[derive(Debug)]
pub struct SignatureCache<V> {
    capacity: usize,
    entries: Vec<Entry<V>>,
    tick: u64,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    hash: u64,
    signature: Box<[u64]>,
    value: Arc<V>,
    used: u64,
}

fn hash_of(signature: &[u64]) -> u64 {
    // FNV-1a over words: fixed, so that nothing depends on a random seed.
    signature.iter().fold(0xCBF2_9CE4_8422_2325, |h, &w| (h ^ w).wrapping_mul(0x0000_0100_0000_01B3))
}

impl<V> SignatureCache<V> {
    /// An empty cache. With a capacity of 0 it keeps nothing.
    pub fn new(capacity: usize) -> SignatureCache<V> {
        SignatureCache { capacity, entries: Vec::new(), tick: 0, hits: 0, misses: 0 }
    }

    /// The value of `signature`, which then counts as just used.
    pub fn get(&mut self, signature: &[u64]) -> Option<Arc<V>> {
        let hash = hash_of(signature);
        self.tick += 1;
        match self.entries.iter_mut().find(|e| e.hash == hash && *e.signature == *signature) {
            Some(entry) => {
                (entry.used, self.hits) = (self.tick, self.hits + 1);
                Some(entry.value.clone())
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Keeps `value` under `signature`, in place of what was there, and forgets the entry unused longest if there are
    /// too many.
    pub fn put(&mut self, signature: &[u64], value: Arc<V>) {
        if self.capacity == 0 {
            return;
        }
        self.tick += 1;
        let (hash, used) = (hash_of(signature), self.tick);
        if let Some(e) = self.entries.iter_mut().find(|e| e.hash == hash && *e.signature == *signature) {
            (e.value, e.used) = (value, used);
            return;
        }
        if self.entries.len() >= self.capacity {
            if let Some(oldest) = (0..self.entries.len()).min_by_key(|&i| self.entries[i].used) {
                self.entries.swap_remove(oldest);
            }
        }
        self.entries.push(Entry { hash, signature: signature.into(), value, used });
    }

    /// Forgets everything; the counts stay.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The most values kept.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Look-ups that found something, and those that did not.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_unused_longest_goes() {
        let mut c = SignatureCache::new(2);
        for s in [1u64, 2] {
            c.put(&[s], Arc::new(s));
        }
        assert_eq!(*c.get(&[1]).unwrap(), 1);
        c.put(&[3], Arc::new(3));
        assert_eq!((c.get(&[2]), c.len()), (None, 2));
        assert_eq!((*c.get(&[1]).unwrap(), *c.get(&[3]).unwrap()), (1, 3));
        c.put(&[3], Arc::new(30));
        assert_eq!((*c.get(&[3]).unwrap(), c.len(), c.counts()), (30, 2, (4, 1)));
        let mut none = SignatureCache::new(0);
        none.put(&[1], Arc::new(1));
        assert!(none.is_empty());
    }
}
