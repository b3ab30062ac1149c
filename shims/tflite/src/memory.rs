//! The bytes of the two arenas.

use core::ops::Range;

use arenite::error::Error;
use arenite::runtime::source::{Block, Source};
use arenite::units::Align;

/// Bytes past the arena's end that kernels may read: vector code fetches whole registers.
const TAIL: usize = 64;

/// One arena's memory. It grows when it must and never shrinks by itself.
#[derive(Debug, Default)]
pub struct Memory {
    block: Option<Block>,
}

/// What happens to the contents when the block is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// They are needed: the old block lives until they are copied.
    Keep,
    /// They are not: the old block goes first, so that both are never there at once.
    Drop,
}

impl Memory {
    /// Bytes that may be planned in it.
    pub fn capacity(&self) -> usize {
        self.block.as_ref().map_or(0, |b| b.bytes().saturating_sub(TAIL))
    }

    /// The addresses it covers, empty where there is none.
    pub fn addresses(&self) -> Range<usize> {
        let Some(block) = self.block.as_ref().filter(|b| b.bytes() > 0) else { return 0..0 };
        let base = block.base().as_ptr() as usize;
        base..base + block.bytes()
    }

    /// Whether [`Memory::fit`] would replace the block.
    pub fn must_grow(&self, bytes: u64, align: Align) -> bool {
        bytes > self.capacity() as u64 || !align.divides(self.addresses().start as u64)
    }

    /// Makes room for `bytes` bytes. New bytes are not initialised, as in TFLite: unpacked weights are tens of megabytes.
    ///
    /// On an error the block is as before, or gone if its contents were to be dropped.
    pub fn fit(&mut self, bytes: u64, align: Align, contents: Contents) -> Result<(), Error> {
        if !self.must_grow(bytes, align) {
            return Ok(());
        }
        let wanted = usize::try_from(bytes).ok().and_then(|b| b.checked_add(TAIL));
        let wanted = wanted.ok_or(Error::overflow("the arena does not fit the address space").needed(bytes))?;
        if contents == Contents::Drop {
            self.block = None;
        }
        let new = Source::System.take(wanted, align.bytes() as usize)?;
        if contents == Contents::Keep {
            let to = new.base().as_ptr();
            let kept = self.block.as_ref().map_or(0, Block::bytes);
            if let Some(old) = &self.block {
                // SAFETY: the new block is larger than the old one, and they are two blocks.
                unsafe { core::ptr::copy_nonoverlapping(old.base().as_ptr(), to, kept.min(wanted)) };
            }
        }
        self.block = Some(new);
        Ok(())
    }

    /// Gives the bytes back.
    pub fn release(&mut self) {
        self.block = None;
    }

    /// The address of `size` bytes at `offset`; `None` where they are not inside.
    pub fn address(&self, offset: u64, size: u64) -> Option<*mut u8> {
        let end = offset.checked_add(size)?;
        let block = self.block.as_ref().filter(|_| end <= self.capacity() as u64)?;
        // SAFETY: inside the block, as just checked.
        Some(unsafe { block.base().as_ptr().add(offset as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_or_without_its_contents() {
        let align = Align::new(128).unwrap();
        let mut m = Memory::default();
        assert!(!m.must_grow(0, align), "nothing is taken for nothing");
        m.fit(100, align, Contents::Keep).unwrap();
        assert_eq!((m.capacity(), m.addresses().start % 128), (100, 0));
        let p = m.address(36, 64).unwrap();
        assert!(m.address(36, 65).is_none() && m.address(u64::MAX, 1).is_none());
        // SAFETY: 64 bytes of the block.
        unsafe { p.write_bytes(7, 64) };
        m.fit(1000, align, Contents::Keep).unwrap();
        let p = m.address(36, 64).unwrap();
        // SAFETY: inside the block, and written before it grew.
        let bytes = unsafe { core::slice::from_raw_parts(p, 64) };
        assert_eq!((bytes[0], bytes[63]), (7, 7));
        m.fit(10, align, Contents::Drop).unwrap();
        assert_eq!(m.capacity(), 1000, "it never shrinks");
        assert!(m.fit(u64::MAX, align, Contents::Keep).is_err());
        assert_eq!(m.capacity(), 1000);
        m.release();
        assert_eq!((m.capacity(), m.addresses()), (0, 0..0));
    }
}
