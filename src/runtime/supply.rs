//! Where the areas of a set come from, and one area that knows how to go back.

use core::ptr::NonNull;
use std::sync::Arc;

use super::pool::Pool;
use super::source::{Block, Source};
use crate::error::Error;
use crate::heap::{Request, Side};

/// Where areas come from.
#[derive(Clone, Debug)]
pub enum Supply {
    /// A pool, which lives at least as long as the areas.
    Pool(Arc<Pool>),
    /// A source. Its callbacks may be called from any thread. A caller's buffer holds one area only.
    Source(Source),
}

impl From<Source> for Supply {
    fn from(source: Source) -> Supply {
        Supply::Source(source)
    }
}

impl From<Arc<Pool>> for Supply {
    fn from(pool: Arc<Pool>) -> Supply {
        Supply::Pool(pool)
    }
}

impl Supply {
    /// Whether there can be `count` areas at a time.
    pub(crate) fn check(&self, count: u64) -> Result<(), Error> {
        match self {
            Supply::Source(Source::Buffer { .. }) if count > 1 => {
                Err(Error::argument("a caller's buffer cannot hold several arenas").needed(count).available(1))
            }
            _ => Ok(()),
        }
    }

    /// Takes an area of `bytes` bytes at a multiple of `align`, a power of two.
    pub(crate) fn take(&self, bytes: usize, align: usize) -> Result<Area, Error> {
        Ok(match self {
            Supply::Source(source) => Area::Own(source.take(bytes, align)?),
            // Every address meets the alignment of no bytes, and a pool would hand out a granule.
            Supply::Pool(_) if bytes == 0 => Area::Own(Source::System.take(0, align)?),
            Supply::Pool(pool) => {
                // Areas live long, so they are taken from below.
                let data = pool.alloc_with(&Request::new(bytes as u64, align as u64).side(Side::Low))?;
                Area::Pooled { pool: pool.clone(), data }
            }
        })
    }
}

/// Memory of one area, given back when it is dropped.
#[derive(Debug)]
pub(crate) enum Area {
    /// A block of a source.
    Own(Block),
    /// A block of a pool.
    Pooled {
        /// The pool.
        pool: Arc<Pool>,
        /// Where the block starts.
        data: NonNull<u8>,
    },
}

// SAFETY: the area is its memory's only owner, and the memory is bound to no thread.
unsafe impl Send for Area {}
// SAFETY: a shared area only tells its address.
unsafe impl Sync for Area {}

impl Area {
    /// The first byte; dangling for an empty area.
    pub fn base(&self) -> NonNull<u8> {
        match self {
            Area::Own(block) => block.base(),
            Area::Pooled { data, .. } => *data,
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if let Area::Pooled { pool, data } = self {
            // SAFETY: the area came from this pool, and nobody uses it any more.
            let freed = unsafe { pool.free(*data) };
            debug_assert!(freed.is_ok(), "an area is a live block of its pool");
        }
    }
}
