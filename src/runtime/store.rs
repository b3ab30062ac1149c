//! A block that follows what is needed: grows by rule, shrinks with hysteresis, and never holds more than it may.

use super::source::{Block, Source};
use crate::error::Error;
use crate::units::{Align, Bytes};

/// How a block grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Growth {
    /// To what is needed, rounded up to 128 bytes (not past the limit).
    #[default]
    Exact,
    /// To twice what is held where that is more than needed, but by doubling never past `cap` bytes.
    Doubling {
        /// The most bytes that doubling asks for. A need above it is met exactly.
        cap: Bytes,
    },
}

/// When a block that is larger than needed is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shrink {
    /// Only by `shrink_to_fit`.
    #[default]
    Never,
    /// After `commits` commits in a row that needed at most `percent` per cent of what is held. Counted in commits, not
    /// in time, so that a run can be repeated.
    After {
        /// How many commits in a row, at least 1.
        commits: u32,
        /// 0 to 100.
        percent: u32,
    },
}

/// Rules for the memory of one arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryPolicy {
    /// How it grows.
    pub growth: Growth,
    /// When it shrinks by itself.
    pub shrink: Shrink,
    /// The most bytes it may ever hold; a need above it is a `Capacity` error. `None` for no limit.
    pub limit: Option<Bytes>,
    /// A block above this many bytes is given back by the first commit that needs no more than this.
    pub idle_cap: Option<Bytes>,
    /// Take the new block before the old one is given back. Growing then needs both at once, but one that fails leaves
    /// the old block where it is, contents included. By default the old block goes first where its contents need not
    /// survive, and is taken again, at possibly another address, where the new one is refused.
    pub keep_on_failure: bool,
}

/// What must survive when the block is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    /// The first so many bytes.
    Bytes(usize),
}

/// The granule of exact growth.
const GRANULE: Align = crate::units::DEFAULT_ALIGN;

/// Memory of one arena.
#[derive(Debug)]
pub(crate) struct Store {
    source: Source,
    policy: MemoryPolicy,
    block: Option<Block>,
    /// Commits in a row that needed little.
    low: u32,
    high_water: usize,
    heap_calls: u64,
}

fn in_memory(bytes: Bytes) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::overflow("the arena does not fit the address space").needed(bytes))
}

impl Store {
    pub fn new(source: Source, policy: MemoryPolicy) -> Store {
        Store { source, policy, block: None, low: 0, high_water: 0, heap_calls: 0 }
    }

    pub fn set_policy(&mut self, policy: MemoryPolicy) {
        (self.policy, self.low) = (policy, 0);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.block.as_ref().map_or(0, Block::bytes)
    }

    pub fn is_committed(&self) -> bool {
        self.block.is_some()
    }

    /// The first byte; dangling for 0 bytes, `None` while released.
    pub fn base(&self) -> Option<core::ptr::NonNull<u8>> {
        self.block.as_ref().map(Block::base)
    }

    /// The most bytes ever held, both blocks counted while one is exchanged for the other.
    pub fn high_water(&self) -> usize {
        self.high_water
    }

    /// How often the source was asked for memory or given some back.
    pub fn heap_calls(&self) -> u64 {
        self.heap_calls
    }

    pub fn release(&mut self) {
        self.drop_block();
        self.low = 0;
    }

    fn drop_block(&mut self) {
        if self.block.take().is_some_and(|b| b.bytes() > 0) {
            self.heap_calls += 1;
        }
    }

    /// Whether the policy asks for a smaller block, now that a commit needs `needed` bytes. Counts the commit.
    pub fn wants_to_shrink(&mut self, needed: Bytes) -> bool {
        let held = self.bytes() as u64;
        let above = |most: Option<Bytes>| most.is_some_and(|most| held > most && needed <= most);
        // More than the limit is held where the limit came later.
        if above(self.policy.idle_cap) || above(self.policy.limit) {
            return true;
        }
        let Shrink::After { commits, percent } = self.policy.shrink else { return false };
        // In 128 bits, so that no size wraps.
        let little = u128::from(needed) * 100 <= u128::from(held) * u128::from(percent) && held > needed;
        self.low = if little { self.low.saturating_add(1) } else { 0 };
        self.low >= commits.max(1)
    }

    /// Checks the limit without changing anything.
    pub fn admit(&self, needed: Bytes) -> Result<(), Error> {
        match self.policy.limit {
            Some(limit) if needed > limit => {
                Err(Error::capacity("the plan needs more than the memory limit").needed(needed).available(limit))
            }
            _ => Ok(()),
        }
    }

    fn target(&self, needed: Bytes) -> Bytes {
        let exact = GRANULE.round_up(needed).unwrap_or(needed);
        let wish = match self.policy.growth {
            Growth::Exact => exact,
            Growth::Doubling { cap } => exact.max((2 * self.bytes() as u64).min(cap)),
        };
        let wish = match self.policy.limit {
            Some(limit) if wish > limit => limit.max(needed),
            _ => wish,
        };
        match self.source {
            // A caller's buffer costs the same however much of it is used, and rounding could pass its end.
            Source::Buffer { .. } => needed,
            _ => wish,
        }
    }

    /// Makes the block at least `needed` bytes at a multiple of `align`, or exactly that with `shrink`.
    ///
    /// Where it fails the old block is as before if contents had to be kept or the policy says so. Otherwise it was given
    /// back first, and one of the same size is asked for again; only where that fails too is nothing held.
    pub fn fit(&mut self, needed: Bytes, align: Align, keep: Keep, shrink: bool) -> Result<(), Error> {
        self.admit(needed)?;
        let want = in_memory(needed)?;
        let align = align.bytes() as usize;
        let old = self.block.as_ref().map(|b| (b.bytes(), b.align()));
        if let Some((bytes, held)) = old {
            let exact = in_memory(GRANULE.round_up(needed).unwrap_or(needed))?;
            if bytes >= want && held >= align && (!shrink || bytes <= exact) {
                return Ok(());
            }
        }
        let wish = in_memory(if shrink { GRANULE.round_up(needed).unwrap_or(needed) } else { self.target(needed) })?;
        let wish = if matches!(self.source, Source::Buffer { .. }) { want } else { wish };
        // A block that was taken for a stricter alignment stays that strict, so that plans can alternate.
        let align = old.map_or(align, |o| o.1.max(align));
        match keep {
            Keep::Nothing if !self.policy.keep_on_failure => {
                self.drop_block();
                let taken =
                    self.take(wish, align).or_else(|e| if wish > want { self.take(want, align) } else { Err(e) });
                match (taken, old) {
                    (Ok(block), _) => self.block = Some(block),
                    (Err(e), Some((bytes, align))) => {
                        self.block = self.take(bytes, align).ok();
                        return Err(e);
                    }
                    (Err(e), None) => return Err(e),
                }
            }
            _ if self.block.as_mut().is_some_and(|b| b.resize(wish, align)) => self.heap_calls += 1,
            _ => {
                let block = match self.take(wish, align) {
                    Ok(block) => block,
                    Err(_) if wish > want => self.take(want, align)?,
                    Err(e) => return Err(e),
                };
                if let (Keep::Bytes(bytes), Some(from)) = (keep, &self.block) {
                    let bytes = bytes.min(from.bytes()).min(block.bytes());
                    // SAFETY: both blocks hold at least `bytes` bytes; `copy` allows that a caller's buffer gives the same
                    // bytes twice.
                    unsafe { core::ptr::copy(from.base().as_ptr(), block.base().as_ptr(), bytes) };
                }
                let both = self.bytes() + block.bytes();
                if !matches!(self.source, Source::Buffer { .. }) {
                    self.high_water = self.high_water.max(both);
                }
                self.drop_block();
                self.block = Some(block);
            }
        }
        (self.low, self.high_water) = (0, self.high_water.max(self.bytes()));
        Ok(())
    }

    fn take(&mut self, bytes: usize, align: usize) -> Result<Block, Error> {
        let block = self.source.take(bytes, align)?;
        if bytes > 0 {
            self.heap_calls += 1;
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(policy: MemoryPolicy) -> Store {
        Store::new(Source::System, policy)
    }

    #[test]
    fn br_48_growth_is_exact_and_doubling_has_a_cap() {
        let mut s = store(MemoryPolicy::default());
        s.fit(16 << 20, Align::MAX, Keep::Nothing, false).unwrap();
        s.fit((16 << 20) + (512 << 10) + 1, Align::MAX, Keep::Nothing, false).unwrap();
        assert_eq!(s.bytes(), (16 << 20) + (512 << 10) + 128);
        assert_eq!(s.high_water(), s.bytes(), "the old block went first");
        let mut s = store(MemoryPolicy { growth: Growth::Doubling { cap: 5000 }, ..MemoryPolicy::default() });
        for (need, held) in [(1000, 1024), (1100, 2048), (2049, 4096), (4097, 5000), (6000, 6016)] {
            s.fit(need, Align::ONE, Keep::Nothing, false).unwrap();
            assert_eq!(s.bytes(), held);
        }
    }

    #[test]
    fn contents_survive_where_asked_and_both_blocks_are_counted() {
        let mut s = store(MemoryPolicy::default());
        s.fit(256, Align::MAX, Keep::Bytes(0), false).unwrap();
        // SAFETY: 256 bytes are held.
        unsafe { s.base().unwrap().as_ptr().write_bytes(0xAB, 256) };
        s.fit(4096, Align::MAX, Keep::Bytes(256), false).unwrap();
        // SAFETY: 4096 bytes are held, of which 256 were copied.
        let kept = unsafe { core::slice::from_raw_parts(s.base().unwrap().as_ptr(), 256) };
        assert!(kept.iter().all(|&b| b == 0xAB));
        assert_eq!(s.high_water(), 256 + 4096);
    }

    #[test]
    fn mapped_pages_grow_and_shrink_without_a_second_block() {
        let mut s = Store::new(Source::Map, MemoryPolicy { keep_on_failure: true, ..MemoryPolicy::default() });
        s.fit(1 << 20, Align::MAX, Keep::Nothing, false).unwrap();
        // SAFETY: 1 MiB is held.
        unsafe { s.base().unwrap().as_ptr().write_bytes(0xAB, 1 << 20) };
        for (bytes, shrink) in [(8 << 20, false), (2 << 20, true)] {
            s.fit(bytes, Align::MAX, Keep::Bytes(1 << 20), shrink).unwrap();
            // SAFETY: at least 1 MiB is held and was written.
            let kept = unsafe { core::slice::from_raw_parts(s.base().unwrap().as_ptr(), 1 << 20) };
            assert!(kept.iter().all(|&b| b == 0xAB) && s.bytes() == bytes as usize);
        }
        if cfg!(target_os = "linux") {
            assert_eq!((s.high_water(), s.heap_calls()), (8 << 20, 3), "never old + new");
        }
    }

    #[test]
    fn b42_a_resize_past_the_address_space_changes_nothing() {
        for keep in [Keep::Nothing, Keep::Bytes(128)] {
            for source in [Source::System, Source::Map] {
                let mut s = Store::new(source, MemoryPolicy { keep_on_failure: true, ..MemoryPolicy::default() });
                s.fit(128, Align::ONE, keep, false).unwrap();
                let before = (s.base(), s.bytes());
                for bytes in [usize::MAX as u64, usize::MAX as u64 - 64, isize::MAX as u64] {
                    assert!(s.fit(bytes, Align::ONE, keep, false).is_err());
                    assert_eq!((s.base(), s.bytes(), s.is_committed()), (before.0, before.1, true));
                }
            }
        }
    }

    #[test]
    fn hysteresis_counts_commits_in_a_row() {
        let shrink = Shrink::After { commits: 3, percent: 50 };
        let mut s = store(MemoryPolicy { shrink, ..MemoryPolicy::default() });
        s.fit(1 << 20, Align::ONE, Keep::Nothing, false).unwrap();
        assert!(!s.wants_to_shrink(100) && !s.wants_to_shrink(100));
        assert!(!s.wants_to_shrink(1 << 20), "a large need starts the count again");
        assert!(!s.wants_to_shrink(100) && !s.wants_to_shrink(100) && s.wants_to_shrink(100));
        s.fit(100, Align::ONE, Keep::Nothing, true).unwrap();
        assert_eq!(s.bytes(), 128);
        let mut s = store(MemoryPolicy { idle_cap: Some(4096), ..MemoryPolicy::default() });
        s.fit(8192, Align::ONE, Keep::Nothing, false).unwrap();
        assert!(s.wants_to_shrink(4096) && !s.wants_to_shrink(4097));
    }

    #[test]
    fn the_limit_refuses_before_anything_changes() {
        let mut s = store(MemoryPolicy { limit: Some(1000), ..MemoryPolicy::default() });
        s.fit(1000, Align::ONE, Keep::Nothing, false).unwrap();
        let (base, calls) = (s.base(), s.heap_calls());
        let e = s.fit(1001, Align::ONE, Keep::Nothing, false).unwrap_err();
        assert_eq!((e.needed, e.available, s.base(), s.heap_calls()), (Some(1001), Some(1000), base, calls));
    }
}
