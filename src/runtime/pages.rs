//! Whole pages for one arena, at any alignment, that can change their size without a copy.

use core::ptr::NonNull;

#[cfg(unix)]
use super::region::{map as map_pages, page_size, unmap as unmap_pages};

/// Whole pages that hold `bytes` bytes.
#[cfg(unix)]
fn whole(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(page_size())
}

/// Maps at least `bytes` bytes at a multiple of `align`, a power of two.
#[cfg(unix)]
pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let (bytes, page) = (whole(bytes)?, page_size());
    if align <= page {
        return map_pages(bytes, false).map(|m| m.0);
    }
    // Cut both ends off, so that what is left starts at the alignment.
    let asked = bytes.checked_add(align)?;
    let (start, _) = map_pages(asked, false)?;
    let lead = super::source::padding(start.as_ptr() as usize, align);
    // SAFETY: `lead` is less than the `align` asked for on top, so the sum stays inside the mapping.
    let base = unsafe { start.add(lead) };
    if lead > 0 {
        unmap_pages(start, lead);
    }
    // SAFETY: `lead + bytes` is less than `asked`.
    unmap_pages(unsafe { base.add(bytes) }, align - lead);
    Some(base)
}

/// Unmaps what [`map`] or [`remap`] returned for so many bytes and that alignment.
#[cfg(unix)]
pub(super) fn unmap(base: NonNull<u8>, bytes: usize, _align: usize) {
    if let Some(bytes) = whole(bytes) {
        unmap_pages(base, bytes);
    }
}

/// Moves `old` bytes from `base` to a mapping of `new` bytes at a multiple of `align`, by page table. `None`, with nothing
/// changed, where that fails.
#[cfg(target_os = "linux")]
pub(super) fn remap(base: NonNull<u8>, old: usize, new: usize, align: usize) -> Option<NonNull<u8>> {
    let (old, new) = (whole(old)?, whole(new)?);
    let start = base.as_ptr().cast();
    let in_place = (base.as_ptr() as usize).is_multiple_of(align);
    if in_place {
        // SAFETY: the range is a whole mapping of ours; without `MAYMOVE` it stays where it is.
        let at = unsafe { libc::mremap(start, old, new, 0) };
        if at != libc::MAP_FAILED {
            return Some(base);
        }
    }
    // Addresses first, so that nothing is lost where there are none. No page of them is touched before the move.
    let to = map(new, align)?;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both ranges are whole mappings of ours and apart; the target's own pages are replaced.
    let at = unsafe { libc::mremap(start, old, new, flags, to.as_ptr().cast::<libc::c_void>()) };
    if at == libc::MAP_FAILED {
        unmap(to, new, align);
        return None;
    }
    Some(to)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn remap(_base: NonNull<u8>, _old: usize, _new: usize, _align: usize) -> Option<NonNull<u8>> {
    None
}

#[cfg(not(unix))]
fn layout(bytes: usize, align: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, align).ok()
}

#[cfg(not(unix))]
pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    // SAFETY: an arena of 0 bytes asks for nothing, so the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(layout(bytes, align)?) })
}

#[cfg(not(unix))]
pub(super) fn unmap(base: NonNull<u8>, bytes: usize, align: usize) {
    if let Some(layout) = layout(bytes, align) {
        // SAFETY: `map` allocated it with this layout.
        unsafe { std::alloc::dealloc(base.as_ptr(), layout) };
    }
}
