//! Looking at a pool: sizes of blocks, statistics, checks, walks.

use core::ptr::NonNull;

use super::pool::Pool;
use super::pool_config::PoolStats;
use super::pool_debug::Debug;
use crate::error::Error;
use crate::heap::Extent;

impl Pool {
    /// Bytes that can be used at `block`, at least those asked for; `None` where no live block starts there.
    pub fn usable_size(&self, block: NonNull<u8>) -> Option<usize> {
        self.size_of(block).map(|(held, _)| held)
    }

    /// Bytes usable and asked for.
    pub(crate) fn size_of(&self, block: NonNull<u8>) -> Option<(usize, usize)> {
        if let Some(debug) = self.shared.debug.as_ref().filter(|debug| debug.exact()) {
            let outside = || self.shared.outside.lock().size(block);
            let bytes = debug.layout(block).map(|(bytes, _)| bytes).or_else(outside)?;
            return Some((bytes, bytes));
        }
        let (mut planned, mut found) = (false, None);
        {
            if let Some((mut inner, slot, offset)) = self.locate(block) {
                if let Some(region) = &mut inner.regions[slot] {
                    found = region.heap.find(offset).and_then(|handle| region.heap.size(handle));
                    planned = found.is_none();
                }
            }
        }
        let usable = |held: u64| held.saturating_sub(self.overhead());
        if let Some((held, requested)) = found {
            return Some((usable(held).max(requested) as usize, requested as usize));
        }
        if planned {
            let bytes = usable(self.planned_size(block)?.0) as usize;
            return Some((bytes, bytes));
        }
        self.shared.outside.lock().size(block).map(|bytes| (bytes, bytes))
    }

    /// Bytes the block of a region holds, overhead included.
    pub(crate) fn held(&self, block: NonNull<u8>) -> Option<usize> {
        let (mut inner, slot, offset) = self.locate(block)?;
        let heap = &mut inner.regions[slot].as_mut()?.heap;
        let handle = heap.find(offset)?;
        heap.size(handle).map(|(held, _)| held as usize)
    }

    /// Whether the address lies in this pool's memory, or is a block its fallback served.
    pub fn owns(&self, address: NonNull<u8>) -> bool {
        let inside = self.locate(address).is_some();
        inside || self.shared.outside.lock().size(address).is_some()
    }

    /// `bytes` rounded up to what a block holds: asking for so many costs no more. `None` where that does not fit.
    pub fn good_size(&self, bytes: usize) -> Option<usize> {
        let extra = self.overhead();
        let held = (bytes as u64).checked_add(extra)?.max(1).checked_next_multiple_of(crate::heap::GRANULE)?;
        usize::try_from(held - extra).ok()
    }

    /// The statistics, summed over the regions. Looks at every block of the highest bins for the largest free one.
    pub fn stats(&self) -> PoolStats {
        let mut out = PoolStats::default();
        // All shards at once, so that the sums are those of one moment.
        let held = self.lock_all();
        for inner in held.iter().flatten() {
            out.reserved += inner.reserved;
            out.grown += inner.grown;
            out.moved_bytes += inner.moved_bytes;
            out.trimmed_bytes += inner.trimmed_bytes;
            out.refused += inner.refused;
            out.bad += inner.bad;
            for region in inner.regions.iter().flatten() {
                out.regions += 1;
                out.heap.add(&region.heap.stats());
                out.largest_free = out.largest_free.max(region.heap.largest_free());
            }
        }
        drop(held);
        let outside = self.shared.outside.lock();
        (out.fallback_blocks, out.fallback_bytes) = (outside.blocks(), outside.bytes());
        out
    }

    /// Checks every region's structure and, with guards on, every block's guard. `Internal` names what is wrong with the
    /// structure, `Argument` an overrun block. Holds the lock while it walks.
    pub fn check(&self) -> Result<(), Error> {
        for shard in self.shards() {
            for region in shard.lock().regions.iter().flatten() {
                region.heap.check()?;
            }
        }
        self.shared.debug.as_ref().map_or(Ok(()), Debug::check)
    }

    /// Shows every block, free or used, with its region's base address. Holds the lock: `see` must not call the pool.
    pub fn walk(&self, mut see: impl FnMut(usize, Extent)) {
        for shard in self.shards() {
            for region in shard.lock().regions.iter().flatten() {
                region.heap.walk(|extent| see(region.base, extent));
            }
        }
    }

    /// A hash of everything that decides what the pool does next: equal before and after a call that was refused.
    pub fn fingerprint(&self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        let mut hash = mix(7, self.lock().reserved);
        for shard in self.shards() {
            for region in shard.lock().regions.iter().flatten() {
                hash = mix(mix(hash, region.base as u64), region.heap.fingerprint());
            }
        }
        hash
    }
}
