//! One region of a pool: where its bytes come from, and the heap that manages them.

use core::ptr::NonNull;

use super::source::Callbacks;
use crate::error::Error;
use crate::heap::{pages_for, Heap, Node, GRANULE};

/// Where a pool's regions come from.
#[derive(Clone, Copy, Debug, Default)]
pub enum RegionSource {
    /// Anonymous pages from the system (`mmap`; the global heap where there is no such call).
    #[default]
    Map,
    /// The same, aligned to 2 MiB and advised to use huge pages.
    MapHuge,
    /// The caller's functions, called from whatever thread needs memory, outside any lock. They must not call the pool.
    /// Memory that the pool has already is refused and not given back.
    Functions(Callbacks),
    /// The same, and what the functions give is anonymous private memory of whole pages: free ones are given back to the
    /// system by `madvise`, after which they read as zeros.
    Pages(Callbacks),
}

// SAFETY: the variant with pointers promises that any thread may call its functions.
unsafe impl Send for RegionSource {}
// SAFETY: as above.
unsafe impl Sync for RegionSource {}

pub(super) const HUGE: usize = 2 << 20;

/// Bytes of a region and who gets them back.
#[derive(Debug)]
pub(crate) enum Backing {
    /// The caller's buffer.
    Lent,
    /// Pages of the system: the whole mapping.
    Mapped { start: NonNull<u8>, bytes: usize },
    /// The caller's functions.
    Given { start: NonNull<u8>, bytes: usize, align: usize, fns: Callbacks, pages: bool },
}

/// A region: an address range and its heap. Boxed by the pool, since the bins alone are 3.6 KiB.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Region {
    // First, so that what the heap keeps together begins with a line of the cache.
    pub(crate) heap: Heap<Vec<Node>, Vec<u32>>,
    pub(crate) base: usize,
    /// The same as a pointer into the backing.
    first: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) backing: Backing,
    /// Nodes are never added: the caller asked for a fixed number of blocks.
    pub(crate) fixed: bool,
}

// SAFETY: the region owns the mapping its pointers name, or has the use of the lender's; nothing about either is bound to
// a thread.
unsafe impl Send for Region {}

impl Region {
    /// Lays a heap over `[start, start + bytes)`. The base is rounded up to 128 and `tail` bytes at the end stay unused.
    ///
    /// `max_blocks` fixes the number of live blocks; without it the records grow as needed.
    pub(crate) fn new(
        index: u32,
        start: NonNull<u8>,
        bytes: usize,
        tail: usize,
        max_blocks: Option<usize>,
        backing: Backing,
    ) -> Result<Box<Region>, Error> {
        let address = start.as_ptr() as usize;
        let lead = address.wrapping_neg() % GRANULE as usize;
        let needed = lead as u64 + tail as u64 + GRANULE;
        let usable = bytes.saturating_sub(lead).saturating_sub(tail) / GRANULE as usize * GRANULE as usize;
        if usable == 0 {
            let short = Error::capacity("the region is too small for one block");
            return Err(short.needed(needed).available(bytes as u64));
        }
        let base = address + lead;
        let granules = usable / GRANULE as usize;
        // A live block needs its own node and at most one for the free space beside it, and the carving one to spare.
        let wanted = max_blocks.map_or(granules / 8, |b| b.saturating_mul(2).saturating_add(2));
        let count = wanted.clamp(64, granules.max(64) + 2);
        let no_memory = |_| Error::no_memory("the region's records could not be allocated");
        let mut nodes = Vec::new();
        nodes.try_reserve_exact(count).map_err(no_memory)?;
        let mut pages = Vec::new();
        let entries = pages_for(usable as u64);
        pages.try_reserve_exact(entries).map_err(no_memory)?;
        pages.resize(entries, 0u32);
        let heap = Heap::with_pages(index, base as u64, usable as u64, nodes, pages)?;
        // SAFETY: `lead` was subtracted from the bytes above, so the sum stays inside the buffer.
        let first = unsafe { start.add(lead) };
        let region = Region { base, first, bytes: usable, heap, backing, fixed: max_blocks.is_some() };
        try_box(region).ok_or(Error::no_memory("the region's record could not be allocated"))
    }

    /// Takes `bytes` bytes from the source and lays a heap over them.
    pub(crate) fn from_source(
        index: u32,
        source: &RegionSource,
        bytes: usize,
        align: usize,
        tail: usize,
        max_blocks: Option<usize>,
    ) -> Result<Box<Region>, Error> {
        let no_memory = || Error::no_memory("the memory source returned nothing").needed(bytes as u64);
        let backing = match source {
            RegionSource::Map | RegionSource::MapHuge => {
                let huge = matches!(source, RegionSource::MapHuge);
                let (start, bytes) = map(bytes, huge).ok_or_else(no_memory)?;
                Backing::Mapped { start, bytes }
            }
            RegionSource::Functions(fns) | RegionSource::Pages(fns) => {
                let pages = matches!(source, RegionSource::Pages(_));
                let align = align.max(if pages { page_size() } else { GRANULE as usize });
                // SAFETY: the function is called as its type documents, outside any lock of the pool.
                let memory = unsafe { (fns.allocate)(fns.user, bytes, align) };
                let start = NonNull::new(memory.cast::<u8>()).ok_or_else(no_memory)?;
                if !(start.as_ptr() as usize).is_multiple_of(align) {
                    // SAFETY: the memory came from the function's partner a moment ago and nobody has seen it.
                    unsafe { (fns.deallocate)(fns.user, memory, bytes, align) };
                    return Err(Error::alignment("the memory source returned a misaligned region").needed(align as u64));
                }
                Backing::Given { start, bytes, align, fns: *fns, pages }
            }
        };
        let (start, bytes) = match backing {
            Backing::Mapped { start, bytes } | Backing::Given { start, bytes, .. } => (start, bytes),
            Backing::Lent => return Err(Error::internal("a lent region has no source")),
        };
        // On failure nothing owns the bytes but `backing`, which is dropped.
        let guard = Unowned(Some(backing));
        let mut region = Region::new(index, start, bytes, tail, max_blocks, Backing::Lent)?;
        region.backing = guard.take();
        Ok(region)
    }

    /// The pointer to a block of this region's heap.
    #[inline]
    pub(crate) fn pointer(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(offset < self.bytes as u64);
        // SAFETY: the heap hands out offsets below the region's bytes only.
        unsafe { self.first.add(offset as usize) }
    }

    /// Bytes taken from the source; 0 for a lent region.
    pub(crate) fn reserved(&self) -> usize {
        match self.backing {
            Backing::Lent => 0,
            Backing::Mapped { bytes, .. } | Backing::Given { bytes, .. } => bytes,
        }
    }

    /// Whether [`discard_pages`] may be used on its free blocks.
    pub(crate) fn discardable(&self) -> bool {
        matches!(self.backing, Backing::Mapped { .. } | Backing::Given { pages: true, .. })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The next owner of the addresses must not inherit the sanitizer's marks.
        super::pool_tools::unpoison(self.first, self.bytes);
        give_back(&self.backing);
    }
}

/// `Box::new` that returns `None` where memory has run out, instead of ending the process.
pub(crate) fn try_box<T>(value: T) -> Option<Box<T>> {
    let layout = std::alloc::Layout::new::<T>();
    assert!(layout.size() > 0);
    // SAFETY: the layout is not empty.
    let memory = NonNull::new(unsafe { std::alloc::alloc(layout) })?.cast::<T>();
    // SAFETY: fresh memory of the type's layout.
    unsafe { memory.write(value) };
    // SAFETY: the memory came from the global heap with the type's layout and holds a value.
    Some(unsafe { Box::from_raw(memory.as_ptr()) })
}

/// Gives a backing back unless it is taken out first.
struct Unowned(Option<Backing>);

impl Unowned {
    fn take(mut self) -> Backing {
        self.0.take().unwrap_or(Backing::Lent)
    }
}

impl Drop for Unowned {
    fn drop(&mut self) {
        if let Some(backing) = &self.0 {
            give_back(backing);
        }
    }
}

fn give_back(backing: &Backing) {
    match *backing {
        Backing::Lent => {}
        Backing::Mapped { start, bytes } => unmap(start, bytes),
        // SAFETY: the memory came from the function's partner with these bytes, and this is its only owner.
        Backing::Given { start, bytes, align, fns, .. } => unsafe {
            (fns.deallocate)(fns.user, start.as_ptr().cast(), bytes, align)
        },
    }
}

/// Bytes of a page of the system.
pub(crate) fn page_size() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: a query without preconditions.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4096)
    }
    #[cfg(not(unix))]
    {
        4096
    }
}

#[cfg(unix)]
pub(super) fn map(bytes: usize, huge: bool) -> Option<(NonNull<u8>, usize)> {
    let unit = if huge { HUGE } else { page_size() };
    let bytes = bytes.checked_next_multiple_of(unit)?;
    let asked = if huge { bytes.checked_add(HUGE)? } else { bytes };
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping at an address of the system's choice touches nothing that exists.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), asked, prot, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = NonNull::new(start.cast::<u8>())?;
    if !huge {
        return Some((start, bytes));
    }
    // Cut both ends off, so that what is left starts at a huge page.
    let lead = (start.as_ptr() as usize).wrapping_neg() % HUGE;
    // SAFETY: `lead` is less than the 2 MiB asked for on top, so the sum stays inside the mapping.
    let aligned = unsafe { start.add(lead) };
    if lead > 0 {
        unmap(start, lead);
    }
    if HUGE - lead > 0 {
        // SAFETY: `aligned + bytes` is at most the end of the mapping, since `lead + bytes < asked`.
        unmap(unsafe { aligned.add(bytes) }, HUGE - lead);
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the range is our own mapping; the advice changes no contents. Refusal only means small pages.
    unsafe {
        libc::madvise(aligned.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE)
    };
    Some((aligned, bytes))
}

#[cfg(unix)]
pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the range is part of a mapping this module made, and its owner gives it up.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Gives the whole pages of an address range back to the system; their contents become unspecified. Returns the bytes.
///
/// The range must be a held block of a discardable region.
#[cfg(unix)]
pub(crate) fn discard_pages(address: usize, bytes: usize) -> u64 {
    let page = page_size();
    let (from, to) = (address.next_multiple_of(page), (address + bytes) / page * page);
    if from >= to {
        return 0;
    }
    // SAFETY: the pages lie inside our own private mapping and belong to a free block that the caller holds, so nobody
    // reads their contents again.
    let code = unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) };
    if code == 0 {
        (to - from) as u64
    } else {
        0
    }
}

/// Says whether the whole huge pages in a range should be that, and whether there are any. Advice: the system may do
/// otherwise. The range must be a block of a discardable region.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge(address: usize, bytes: usize, yes: bool) -> bool {
    let (from, to) = (address.next_multiple_of(HUGE), (address + bytes) / HUGE * HUGE);
    if from >= to {
        return false;
    }
    let advice = if yes { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: the pages lie inside our own private mapping; the advice changes no contents.
    unsafe { libc::madvise(from as *mut libc::c_void, to - from, advice) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge(_address: usize, _bytes: usize, _yes: bool) -> bool {
    false
}

#[cfg(not(unix))]
fn map(bytes: usize, _huge: bool) -> Option<(NonNull<u8>, usize)> {
    use std::alloc::{GlobalAlloc, Layout, System};
    let layout = Layout::from_size_align(bytes, 4096).ok().filter(|l| l.size() > 0)?;
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { System.alloc(layout) }).map(|p| (p, bytes))
}

#[cfg(not(unix))]
fn unmap(start: NonNull<u8>, bytes: usize) {
    use std::alloc::{GlobalAlloc, Layout, System};
    if let Ok(layout) = Layout::from_size_align(bytes, 4096) {
        // SAFETY: the memory came from `map` with this layout.
        unsafe { System.dealloc(start.as_ptr(), layout) };
    }
}

#[cfg(not(unix))]
pub(crate) fn discard_pages(_address: usize, _bytes: usize) -> u64 {
    0
}
