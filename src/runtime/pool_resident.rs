//! How much of a pool is really in memory, and keeping that near to what is live.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::pool::{Pool, MAX_REGIONS};
use super::region::{discard_pages, page_size, Backing};

/// Bytes asked for between two looks, at least: a look costs as much as touching some hundred pages.
const SPACING: u64 = 4 << 20;
/// Bytes by which a pool may exceed what is live without anybody minding.
const SLACK: u64 = 2 << 20;

/// When to look, and how much more than the live bytes may be resident.
///
/// The system gives memory page by page and takes it back only when told. What was touched and freed stays resident, and a
/// heap that then grows elsewhere is larger in memory than its live blocks ever were. So the resident bytes are looked
/// at every few megabytes of requests; where they pass the highest live bytes by more than a share, free pages go back.
/// The share grows with each time, from a sixteenth to a quarter: pages that come and go in turn are not worth a fault each.
#[derive(Debug, Default)]
pub(crate) struct Governor {
    asked: AtomicU64,
    /// Bytes to be asked for before the next look, beyond [`SPACING`].
    wait: AtomicU64,
    sixteenths: AtomicU32,
    /// The most live bytes seen, forgotten slowly.
    peak: AtomicU64,
    frames: AtomicU64,
}

impl Pool {
    /// Bytes of the pool's own regions that are in memory; `None` where the system does not tell.
    pub fn resident(&self) -> Option<u64> {
        let mut ranges = Vec::new();
        ranges.try_reserve_exact(MAX_REGIONS * (self.shared.more.len() + 1)).ok()?;
        // A region that is unmapped meanwhile only makes the count wrong.
        for shard in self.shards() {
            let inner = shard.lock();
            ranges.extend(inner.regions.iter().flatten().filter_map(|region| match region.backing {
                Backing::Mapped { start, bytes } | Backing::Given { start, bytes, pages: true, .. } => {
                    Some((start.as_ptr() as usize, bytes))
                }
                _ => None,
            }));
        }
        ranges.into_iter().map(|(start, bytes)| resident_pages(start, bytes)).sum()
    }

    /// Called with every request of the general path; looks once in a while.
    #[inline]
    pub(crate) fn govern(&self, governor: &Governor, bytes: u64) {
        let asked = governor.asked.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if asked >= SPACING {
            self.look(governor, asked, bytes);
        }
    }

    /// Called when an area was taken that is about to be touched: makes sure that it takes the place of what was touched before.
    pub(crate) fn govern_area(&self, governor: &Governor, start: usize, bytes: usize) {
        let (Some(resident), Some(touched)) = (self.resident(), resident_pages_within(start, bytes)) else { return };
        let soon = resident + (bytes as u64).saturating_sub(touched);
        if soon > self.stats().heap.live.max(governor.peak.load(Ordering::Relaxed)) + SLACK {
            self.trim_pages();
        }
    }

    /// Called at the end of a frame. What was touched before the frames were known is looked for after the first, the
    /// second, the fourth and so on, and every now and then.
    pub(crate) fn govern_frame(&self, governor: &Governor) {
        let frame = governor.frames.fetch_add(1, Ordering::Relaxed) + 1;
        if !(frame.is_power_of_two() || frame.is_multiple_of(64)) {
            return;
        }
        let live = self.stats().heap.live;
        if self.resident().is_some_and(|r| r > live + SLACK) {
            self.trim_pages();
        }
    }

    #[cold]
    fn look(&self, governor: &Governor, asked: u64, bytes: u64) {
        let live = self.stats().heap.live;
        let before = governor.peak.load(Ordering::Relaxed);
        // Less often in a large pool, where a look takes longer.
        if asked < (before / 16).max(governor.wait.load(Ordering::Relaxed)) {
            return;
        }
        governor.asked.store(0, Ordering::Relaxed);
        governor.wait.store(0, Ordering::Relaxed);
        let peak = (before - before / 1024).max(live.saturating_add(bytes));
        governor.peak.store(peak, Ordering::Relaxed);
        let share = governor.sixteenths.load(Ordering::Relaxed) + 1;
        let most = peak + peak / 16 * u64::from(share) + SLACK;
        // The block asked for may be touched whole.
        if !self.resident().is_some_and(|r| r.saturating_add(bytes) > most && r > live + SLACK) {
            return;
        }
        // What was given back is touched again by requests to come: not every one of them is worth a look.
        governor.wait.store(peak / 4, Ordering::Relaxed);
        if self.trim_pages() > 0 && share < 4 {
            governor.sixteenths.store(share, Ordering::Relaxed);
        }
    }

    /// Gives back the pages of a live block that is about to be freed.
    pub(crate) fn discard_block(&self, block: NonNull<u8>, bytes: usize) {
        let ours = {
            let found = self.locate(block);
            found.is_some_and(|(inner, slot, _)| inner.regions[slot].as_ref().is_some_and(|r| r.discardable()))
        };
        if ours {
            // The block is live until its owner, who is done with it, has it freed.
            discard_pages(block.as_ptr() as usize, bytes);
        }
    }
}

/// The same of the whole pages in a range that begins anywhere.
fn resident_pages_within(start: usize, bytes: usize) -> Option<u64> {
    let page = page_size();
    let (from, to) = (start.next_multiple_of(page), (start + bytes) / page * page);
    if from >= to {
        return Some(0);
    }
    resident_pages(from, to - from)
}

#[cfg(target_os = "linux")]
fn resident_pages(start: usize, bytes: usize) -> Option<u64> {
    let page = page_size();
    let mut total = 0;
    let mut map = [0u8; 4096];
    let mut at = 0;
    while at < bytes {
        let chunk = (bytes - at).min(map.len() * page);
        // SAFETY: the call writes a byte for each page of the chunk, at most as many as there are; it only looks at the
        // range, and fails where part of it is not mapped.
        let code = unsafe { libc::mincore((start + at) as *mut libc::c_void, chunk, map.as_mut_ptr()) };
        if code != 0 {
            return None;
        }
        let pages = map[..chunk.div_ceil(page)].iter().filter(|&&p| p & 1 == 1).count();
        total += (pages * page) as u64;
        at += chunk;
    }
    Some(total)
}

#[cfg(not(target_os = "linux"))]
fn resident_pages(_start: usize, _bytes: usize) -> Option<u64> {
    None
}
