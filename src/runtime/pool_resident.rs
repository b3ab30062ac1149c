//! How much of a pool is really in memory, and keeping that near to what is live.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::pool::{Pool, MAX_REGIONS};
use super::region::{page_size, Backing};

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
    sixteenths: AtomicU32,
}

impl Pool {
    /// Bytes of the pool's own regions that are in memory; `None` where the system does not tell.
    pub fn resident(&self) -> Option<u64> {
        let mut ranges = Vec::new();
        ranges.try_reserve_exact(MAX_REGIONS).ok()?;
        {
            let inner = self.lock();
            // A region that is unmapped meanwhile only makes the count wrong.
            let mapped = inner.regions.iter().flatten().filter_map(|region| match region.backing {
                Backing::Mapped { start, bytes } | Backing::Given { start, bytes, pages: true, .. } => {
                    Some((start.as_ptr() as usize, bytes))
                }
                _ => None,
            });
            ranges.extend(mapped);
        }
        ranges.into_iter().map(|(start, bytes)| resident_pages(start, bytes)).sum()
    }

    /// Called with every request of the general path; looks once in a while.
    #[inline]
    pub(crate) fn govern(&self, governor: &Governor, bytes: u64) {
        let asked = governor.asked.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if asked >= SPACING {
            self.look(governor, asked);
        }
    }

    /// Called when an area was taken that is about to be touched: makes sure that it takes the place of what was touched before.
    pub(crate) fn govern_area(&self, start: usize, bytes: usize) {
        let heap = self.stats().heap;
        let (Some(resident), Some(touched)) = (self.resident(), resident_pages_within(start, bytes)) else { return };
        if resident + (bytes as u64).saturating_sub(touched) > heap.live.max(heap.peak_live) + SLACK {
            self.trim_pages();
        }
    }

    #[cold]
    fn look(&self, governor: &Governor, asked: u64) {
        let heap = self.stats().heap;
        // Less often in a large pool, where a look takes longer.
        if asked < heap.peak_live / 16 {
            return;
        }
        governor.asked.store(0, Ordering::Relaxed);
        let share = governor.sixteenths.load(Ordering::Relaxed) + 1;
        let most = heap.peak_live + heap.peak_live / 16 * u64::from(share) + SLACK;
        if !self.resident().is_some_and(|r| r > most && r > heap.live + SLACK) {
            return;
        }
        let given = self.trim_pages();
        if given > 0 && share < 4 {
            governor.sixteenths.store(share, Ordering::Relaxed);
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
