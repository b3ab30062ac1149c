//! The record of one block, 32 bytes: two to a cache line.

use super::{GRANULE, NIL};

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the list of spare nodes.
    Spare,
    /// A free block, linked in its bin.
    Free,
    /// A block handed out, linked in its page's chain where there is a directory.
    Used,
    /// Its generations are used up; never taken again.
    Retired,
    /// A block handed out that only its holder may free: a frame's area, a block in quarantine.
    Held,
}

/// The record of one block. Opaque: [`Node::EMPTY`] is all a caller needs, to lend a slice of them.
///
/// ```text
/// word    0      1      2      3      4        5        6           7
///       start   len   prev   next   link a   link b   generation   info
///       └ granules ┘  └ neighbours ┘ └ bin, page or ┘               bit 0..24 slack   bytes of the block not asked for
///                       by address     spare list                              or the bin of a free one
///                                                                   bit 24..29 log2 of the alignment in granules
///                                                                   bit 29..32 state
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Node {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) generation: u32,
    info: u32,
}

const _: () = assert!(size_of::<Node>() == 32);

const SLACK_BITS: u32 = 24;
const ALIGN_BITS: u32 = 5;

impl Node {
    /// A node not in use.
    pub const EMPTY: Node = Node { start: 0, len: 0, prev: NIL, next: NIL, a: NIL, b: NIL, generation: 0, info: 0 };

    /// The most bytes a block can hold beyond those asked for: tail, headroom and rounding together.
    pub(crate) const MAX_SLACK: u64 = (1 << SLACK_BITS) - 1;

    #[inline]
    pub(crate) fn state(&self) -> State {
        match self.info >> (SLACK_BITS + ALIGN_BITS) {
            0 => State::Spare,
            1 => State::Free,
            2 => State::Used,
            4 => State::Held,
            _ => State::Retired,
        }
    }

    /// One compare instead of a decode: what the fast paths ask.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.info >> (SLACK_BITS + ALIGN_BITS) == 1
    }

    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.info >> (SLACK_BITS + ALIGN_BITS) == 2
    }

    /// Turns a used block into a held one, or back; slack and alignment stay.
    #[inline]
    pub(crate) fn set_held(&mut self, held: bool) {
        let code = if held { 4 } else { 2 };
        self.info = self.info & ((1 << (SLACK_BITS + ALIGN_BITS)) - 1) | code << (SLACK_BITS + ALIGN_BITS);
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.info >> (SLACK_BITS + ALIGN_BITS) == 4
    }

    /// Makes it a free block of that bin.
    #[inline]
    pub(crate) fn set_free(&mut self, bin: u32) {
        self.info = 1 << (SLACK_BITS + ALIGN_BITS) | bin;
    }

    /// The bin of a free block: remembered, since working it out anew costs as much as the rest of a removal.
    #[inline]
    pub(crate) fn bin(&self) -> u32 {
        self.slack()
    }

    /// Takes it out of use, for the time being or for good.
    #[inline]
    pub(crate) fn set_idle(&mut self, retired: bool) {
        self.info = if retired { 3 << (SLACK_BITS + ALIGN_BITS) } else { 0 };
    }

    /// Makes it a used block whose last `slack` bytes were not asked for.
    #[inline]
    pub(crate) fn set_used(&mut self, slack: u32, align_log2: u32) {
        debug_assert!(u64::from(slack) <= Self::MAX_SLACK && align_log2 < 1 << ALIGN_BITS);
        self.info = 2 << (SLACK_BITS + ALIGN_BITS) | align_log2 << SLACK_BITS | slack;
    }

    #[inline]
    pub(crate) fn slack(&self) -> u32 {
        self.info & Self::MAX_SLACK as u32
    }

    #[inline]
    pub(crate) fn align_log2(&self) -> u32 {
        self.info >> SLACK_BITS & ((1 << ALIGN_BITS) - 1)
    }

    /// Bytes the block holds.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.len) * GRANULE
    }

    /// Bytes asked for; meaningful for a used block.
    #[inline]
    pub(crate) fn requested(&self) -> u64 {
        self.bytes() - u64::from(self.slack())
    }

    /// One past the last granule.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.start + self.len
    }
}
