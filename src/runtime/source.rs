//! Where bytes come from: the system, a caller's buffer, or callbacks.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::Layout;

use super::pages;
use crate::error::Error;

/// What the allocators of C give at least.
const MALLOC_ALIGN: usize = 2 * size_of::<usize>();

/// Callbacks that provide memory. The functions must not unwind.
#[derive(Clone, Copy, Debug)]
pub struct Callbacks {
    /// Returns `bytes` bytes at a multiple of `align`, or null.
    pub allocate: unsafe extern "C" fn(user: *mut c_void, bytes: usize, align: usize) -> *mut c_void,
    /// Takes back what `allocate` returned, with the same size and alignment.
    pub deallocate: unsafe extern "C" fn(user: *mut c_void, data: *mut c_void, bytes: usize, align: usize),
    /// Handed to both.
    pub user: *mut c_void,
}

/// A source of memory for one arena.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The process's allocator.
    System,
    /// Anonymous pages of the system, which go back to it at once. Contents that must survive growing are moved by page
    /// table where the system can do that (Linux), not copied. Where there are no pages to map, the same as `System`.
    Map,
    /// One buffer, kept by the caller for as long as the arena lives.
    Buffer {
        /// Where it starts; any address.
        base: NonNull<u8>,
        /// How many bytes may be written from there.
        bytes: usize,
    },
    /// The caller's functions.
    Callbacks(Callbacks),
}

// SAFETY: the pointers are only used by the arena that owns the source, which is used by one thread at a time; whether
// the callbacks may be called from another thread than the one that passed them is part of the contract on them.
unsafe impl Send for Source {}
// SAFETY: as above; a shared `Source` gives nothing but copies of its fields.
unsafe impl Sync for Source {}

/// Memory taken from a source.
#[derive(Debug)]
pub struct Block {
    base: NonNull<u8>,
    bytes: usize,
    align: usize,
    /// Bytes before `base` that the system's allocator gave, too.
    skipped: usize,
    /// How to give it back; `Buffer` needs nothing.
    source: Source,
}

// SAFETY: a block owns its bytes; see `Source`.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block only tells its address and size.
unsafe impl Sync for Block {}

/// Bytes to skip from `address` to the next multiple of `align`.
pub fn padding(address: usize, align: usize) -> usize {
    address.wrapping_neg() & (align - 1)
}

/// Exactly how many bytes a buffer at `base` must have to hold `bytes` bytes at a multiple of `align`; 0 for 0 bytes.
pub fn required_bytes(base: usize, bytes: usize, align: usize) -> Result<usize, Error> {
    if bytes == 0 {
        return Ok(0);
    }
    bytes.checked_add(padding(base, align)).ok_or(Error::overflow("size + alignment does not fit the address space"))
}

/// What the system's allocator is asked for. The alignment is made here: an allocator that is asked for it cuts a larger
/// block and puts the cut-off ends on its lists, where the next small requests keep the block from being whole again, so
/// that an arena of the same size does not fit the place where the last one was.
fn system_layout(bytes: usize, align: usize) -> Option<Layout> {
    let given = align.min(MALLOC_ALIGN);
    Layout::from_size_align(bytes.checked_add(align - given)?, given).ok()
}

impl Source {
    /// Takes `bytes` bytes at a multiple of `align`, a power of two. `bytes` of 0 takes nothing.
    ///
    /// `Capacity` with the exact amount where a caller's buffer is too small, `NoMemory` where the system or the callback
    /// has nothing, `Alignment` where a callback returns an address that misses the alignment (it is given back).
    pub fn take(&self, bytes: usize, align: usize) -> Result<Block, Error> {
        let block = |base| Block { base, bytes, align, skipped: 0, source: *self };
        if bytes == 0 {
            return Ok(block(NonNull::dangling()));
        }
        match *self {
            Source::System => {
                let layout = system_layout(bytes, align)
                    .ok_or(Error::overflow("the arena does not fit the address space").needed(bytes as u64))?;
                // SAFETY: `bytes` is not 0.
                let start = NonNull::new(unsafe { std::alloc::alloc(layout) })
                    .ok_or(Error::no_memory("the system has no memory for the arena").needed(bytes as u64))?;
                let skipped = padding(start.as_ptr() as usize, align);
                // SAFETY: the layout has room for the padding.
                let base = unsafe { start.add(skipped) };
                Ok(Block { base, bytes, align, skipped, source: *self })
            }
            Source::Map => pages::map(bytes, align)
                .map(block)
                .ok_or(Error::no_memory("the system has no pages for the arena").needed(bytes as u64)),
            Source::Buffer { base, bytes: capacity } => {
                let needed = required_bytes(base.as_ptr() as usize, bytes, align)?;
                if needed > capacity {
                    return Err(Error::capacity("the caller's buffer is too small")
                        .needed(needed as u64)
                        .available(capacity as u64));
                }
                // SAFETY: `needed - bytes` is the padding, and padding + bytes lie inside the caller's buffer.
                Ok(block(unsafe { base.add(needed - bytes) }))
            }
            Source::Callbacks(c) => {
                // SAFETY: calling it with a size and a power of two is the callback's contract.
                let base = unsafe { (c.allocate)(c.user, bytes, align) }.cast::<u8>();
                let Some(base) = NonNull::new(base) else {
                    return Err(Error::no_memory("the allocation callback returned null").needed(bytes as u64));
                };
                if padding(base.as_ptr() as usize, align) != 0 {
                    let rest = base.as_ptr() as usize & (align - 1);
                    drop(block(base));
                    return Err(Error::alignment("the allocation callback missed the alignment (bytes past it)")
                        .needed(align as u64)
                        .available(rest as u64));
                }
                Ok(block(base))
            }
        }
    }
}

impl Block {
    /// The first byte; dangling for an empty block.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The alignment it was taken with.
    pub fn align(&self) -> usize {
        self.align
    }

    /// Makes the block `bytes` bytes at a multiple of `align` without copying; what fits of the contents stays, the address
    /// may change. `false`, with nothing changed, where the source cannot do that.
    pub(crate) fn resize(&mut self, bytes: usize, align: usize) -> bool {
        if !matches!(self.source, Source::Map) || self.bytes == 0 || bytes == 0 {
            return false;
        }
        match pages::remap(self.base, self.bytes, bytes, align) {
            Some(base) => {
                (self.base, self.bytes, self.align) = (base, bytes, align);
                true
            }
            None => false,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        match self.source {
            Source::System => {
                let Some(layout) = system_layout(self.bytes, self.align) else { return };
                // SAFETY: `take` skipped so many bytes of the block that it was given.
                let start = unsafe { self.base.sub(self.skipped) };
                // SAFETY: `take` allocated the block with this layout, and it is dropped once.
                unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
            }
            Source::Map => pages::unmap(self.base, self.bytes, self.align),
            Source::Buffer { .. } => {}
            Source::Callbacks(c) => {
                // SAFETY: the callback's contract: what `allocate` returned, with the same size and alignment.
                unsafe { (c.deallocate)(c.user, self.base.as_ptr().cast(), self.bytes, self.align) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn br_28_br_26_the_required_size_is_exact_at_every_base() {
        let mut memory = vec![0u8; 4096 + 256];
        let start = memory.as_mut_ptr() as usize;
        for shift in 0..130 {
            let base = NonNull::new(memory.as_mut_ptr().wrapping_add(shift)).unwrap();
            let needed = required_bytes(start + shift, 2560, 128).unwrap();
            assert!((2560..2560 + 128).contains(&needed));
            let mut missing_before = None;
            for capacity in (needed - 130)..(needed + 2) {
                match (Source::Buffer { base, bytes: capacity }).take(2560, 128) {
                    Ok(block) => {
                        assert!(capacity >= needed);
                        assert_eq!(block.base().as_ptr() as usize % 128, 0);
                        assert!(block.base().as_ptr() as usize + 2560 <= base.as_ptr() as usize + capacity);
                    }
                    Err(e) => {
                        assert!(capacity < needed);
                        let missing = e.needed.unwrap() - e.available.unwrap();
                        assert!(missing_before.is_none_or(|m: u64| m == missing + 1), "falls by 1 per byte");
                        missing_before = Some(missing);
                    }
                }
            }
        }
    }

    #[test]
    fn the_system_is_not_asked_to_align() {
        assert_eq!(system_layout(1000, 4).unwrap(), Layout::from_size_align(1000, 4).unwrap());
        let asked = system_layout(1000, 128).unwrap();
        assert_eq!((asked.size(), asked.align()), (1000 + 128 - MALLOC_ALIGN, MALLOC_ALIGN));
        assert!(system_layout(usize::MAX - 100, 128).is_none() && system_layout(isize::MAX as usize, 64).is_none());
        let mut held = Vec::new();
        for align in (0..=21).map(|bit| 1usize << bit) {
            for bytes in [1, 127, 4097] {
                let block = Source::System.take(bytes, align).unwrap();
                assert_eq!((block.base().as_ptr() as usize % align, block.bytes(), block.align()), (0, bytes, align));
                // SAFETY: the block's own bytes.
                unsafe { block.base().as_ptr().write_bytes(bytes as u8, bytes) };
                held.push(block);
            }
        }
        for block in &held {
            // SAFETY: the block's own bytes, written above.
            let kept = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.bytes()) };
            assert!(kept.iter().all(|&b| b == block.bytes() as u8));
        }
    }

    #[test]
    fn mapped_pages_keep_their_contents_at_every_alignment() {
        for align in [1usize, 4096, 64 << 10] {
            let mut block = Source::Map.take(10_000, align).unwrap();
            // SAFETY: the block's own bytes.
            unsafe { block.base().as_ptr().write_bytes(0xAB, 10_000) };
            for bytes in [10_001, 1 << 20, 5000, 12_288, 64 << 20] {
                let kept = bytes.min(block.bytes()).min(5000);
                let moved = block.resize(bytes, align);
                assert_eq!(moved, cfg!(target_os = "linux"));
                if !moved {
                    continue;
                }
                assert_eq!((block.bytes(), block.base().as_ptr() as usize % align), (bytes, 0));
                // SAFETY: the block's own bytes, of which the first were written above.
                let held = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), kept) };
                assert!(held.iter().all(|&b| b == 0xAB));
                // SAFETY: inside the block.
                let last = unsafe { block.base().as_ptr().add(bytes - 1) };
                // SAFETY: the block's own last byte.
                unsafe { last.write(0xAB) };
            }
            assert!(!block.resize(usize::MAX - 4096, align), "refused, and the block is as it was");
            // SAFETY: the block's own bytes.
            assert_eq!(unsafe { block.base().as_ptr().read() }, 0xAB);
        }
        assert!(!Source::System.take(100, 1).unwrap().resize(200, 1));
    }

    #[test]
    fn huge_and_empty_requests() {
        assert!(Source::Map.take(usize::MAX - 64, 128).is_err() && Source::Map.take(0, 128).unwrap().bytes() == 0);
        assert!(matches!(Source::System.take(usize::MAX - 64, 128).unwrap_err().kind, Kind::Overflow | Kind::NoMemory));
        assert_eq!(Source::System.take(0, 128).unwrap().bytes(), 0);
        let mut byte = 0u8;
        let base = NonNull::from(&mut byte);
        for bytes in [usize::MAX - 64, usize::MAX / 2, 2] {
            assert!(Source::Buffer { base, bytes: 1 }.take(bytes, 1).is_err(), "BR-23");
        }
        assert!(Source::Buffer { base, bytes: 1 }.take(1, 1).is_ok());
    }
}
