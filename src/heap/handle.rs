//! How a block is named, and why a call was refused.

use super::block::Request;
use super::GRANULE;
use crate::error::Error;
use crate::units::Bytes;

/// Names one allocation, 16 bytes. It goes stale when the block is freed and never names a later block: a node's
/// generation is bumped at every free, and a node whose generations are used up is never taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Handle {
    /// The region the block is in, as given to [`super::Heap::new`].
    pub region: u32,
    /// The first granule; the offset is this times [`GRANULE`].
    pub granule: u32,
    pub(crate) node: u32,
    pub(crate) generation: u32,
}

const _: () = assert!(size_of::<Handle>() == 16);

impl Handle {
    /// Bytes from the region's base.
    pub const fn offset(self) -> u64 {
        self.granule as u64 * GRANULE
    }

    /// The index of the block's record, below the heap's number of nodes and unique among live blocks: an index for
    /// side tables (tags, sequence numbers).
    pub const fn index(self) -> u32 {
        self.node
    }

    /// The four words, for callers that keep handles in foreign memory. The last one is never 0, so that memory full of zeros
    /// names no block.
    pub const fn to_words(self) -> [u32; 4] {
        [self.region, self.granule, self.node, self.generation.wrapping_add(1)]
    }

    /// The handle of those words. Any words are safe to pass: a handle that names nothing is refused where it is used.
    pub const fn from_words(words: [u32; 4]) -> Handle {
        Handle { region: words[0], granule: words[1], node: words[2], generation: words[3].wrapping_sub(1) }
    }
}

/// Why a call was refused. The heap is as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More than the whole region, whatever is free.
    TooLarge,
    /// No free block fits; an exhaustive scan has made sure.
    NoSpace,
    /// There is no record left for the block: give the heap more nodes.
    NoNode,
    /// The alignment is not a power of two.
    Alignment,
    /// The block was freed before, or was never handed out by this heap.
    BadHandle,
    /// The offset is not where a live block starts.
    BadOffset,
    /// The size given does not match the block.
    BadSize,
}

impl Fault {
    /// The fault of a request as an error, with its amounts; `largest` is the largest free block.
    pub fn refusal(self, request: &Request, largest: Bytes) -> Error {
        match self {
            Fault::TooLarge | Fault::NoSpace => {
                self.error().needed(request.bytes.saturating_add(request.extra)).available(largest)
            }
            Fault::Alignment => self.error().needed(request.align),
            _ => self.error(),
        }
    }

    /// The fault as an error, without amounts.
    pub const fn error(self) -> Error {
        match self {
            Fault::TooLarge => Error::capacity("the request is larger than the region"),
            Fault::NoSpace => Error::capacity("no free block is large enough"),
            Fault::NoNode => Error::no_memory("the heap's records are used up"),
            Fault::Alignment => Error::alignment("the alignment is not a power of two"),
            Fault::BadHandle => Error::argument("the handle names no live block"),
            Fault::BadOffset => Error::argument("no live block starts there"),
            Fault::BadSize => Error::argument("the size does not match the block"),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        fault.error()
    }
}
