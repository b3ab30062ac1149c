//! Giving memory back: idle regions to their source, free pages to the system.

use super::pool::{Inner, Pool};
use super::region::{discard_pages, Region};
use crate::heap::Handle;

/// Free blocks that are held in one step.
const BATCH: usize = 32;
/// Steps of a trim that somebody asked for, each beneath the one before: its blocks stay held, or the next would find them
/// again. They end a call that a pool of very many fragments would make very long.
const BATCHES: usize = 32;
/// Bytes below which a free block is not worth a system call.
const WORTHWHILE: u64 = 8192;

impl Pool {
    /// Gives back what is free beyond `keep` bytes: areas of frames not in flight, idle regions whole, then whole pages of
    /// the thousand largest free blocks of each region. Lent buffers and the memory of [`super::RegionSource::Functions`]
    /// are only given back as whole regions, the former never.
    ///
    /// Returns the bytes given back. System calls happen outside the lock: a block is held while its pages go, and a
    /// request that does not fit meanwhile waits for the trim instead of being refused.
    pub fn trim(&self, keep: u64) -> u64 {
        self.release_idle_areas();
        let _alone = self.shared.trims.lock();
        let (mut given, mut kept) = (0, 0);
        for shard in 0..=self.shared.more.len() {
            loop {
                let Some(region) = idle_region(&mut self.shard(shard).lock(), kept, keep) else { break };
                let bytes = region.reserved() as u64;
                self.lock().reserved -= bytes;
                given += bytes;
            }
            let slots = self.shard(shard).lock().regions.len();
            for slot in 0..slots {
                given += self.trim_region(shard, slot, &mut kept, keep, BATCHES);
            }
        }
        self.lock().trimmed_bytes += given;
        given
    }

    /// Gives back the whole pages of the largest free blocks, and nothing else.
    pub(crate) fn trim_pages(&self) -> u64 {
        let _alone = self.shared.trims.lock();
        let mut given = 0;
        for (shard, inner) in self.shards().enumerate() {
            let slots = inner.lock().regions.len();
            given += (0..slots).map(|slot| self.trim_region(shard, slot, &mut 0, 0, 1)).sum::<u64>();
        }
        self.lock().trimmed_bytes += given;
        given
    }

    fn trim_region(&self, shard: usize, slot: usize, kept: &mut u64, keep: u64, batches: usize) -> u64 {
        let mut held: [Option<(Handle, usize, u64)>; BATCH] = [None; BATCH];
        {
            let mut inner = self.shard(shard).lock();
            let Some(region) = inner.regions[slot].as_mut().filter(|r| r.discardable()) else { return 0 };
            for entry in &mut held {
                if region.heap.largest_free() < WORTHWHILE {
                    break;
                }
                let Some((handle, bytes)) = region.heap.hold_largest() else { break };
                *entry = Some((handle, region.base + handle.offset() as usize, bytes));
            }
            inner.trimming += 1;
        }
        let mut given = 0;
        for &(_, address, bytes) in held.iter().flatten() {
            let stays = bytes.min(keep.saturating_sub(*kept));
            *kept += stays;
            // The blocks are held, so nobody has a pointer into them; and a region with held blocks is not idle, so no
            // other trim unmaps it.
            given += discard_pages(address + stays as usize, (bytes - stays) as usize);
        }
        if held[BATCH - 1].is_some() && batches > 1 {
            given += self.trim_region(shard, slot, kept, keep, batches - 1);
        }
        let mut inner = self.shard(shard).lock();
        inner.trimming -= 1;
        if let Some(region) = &mut inner.regions[slot] {
            for (handle, ..) in held.iter().flatten() {
                let released = region.heap.release_largest(*handle);
                debug_assert!(released.is_ok(), "held by this call");
            }
        }
        given
    }
}

/// Takes out a region that came from the source, holds nothing, and is not needed to keep `keep` bytes, of which `kept` are
/// kept already.
fn idle_region(inner: &mut Inner, mut kept: u64, keep: u64) -> Option<Box<Region>> {
    let mut taken = None;
    for (slot, region) in inner.regions.iter().enumerate() {
        let Some(region) = region.as_ref().filter(|r| r.reserved() > 0 && r.heap.stats().blocks == 0) else { continue };
        if kept >= keep {
            taken = Some(slot);
            break;
        }
        kept += region.bytes as u64;
    }
    inner.remove(taken?)
}
