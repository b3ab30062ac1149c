//! The numbers search computes with: as narrow as the instance allows, since a node's cost is one pass over them.

use core::fmt::Debug;
use core::ops::{Add, BitAnd, Not, Sub};

/// A signed integer that holds offsets in units. Twice the largest capacity must fit ([`Cell::LIMIT`]), so that an
/// offset within the capacity plus the sizes above it cannot overflow.
pub(crate) trait Cell:
    Copy + Ord + Default + Debug + Add<Output = Self> + Sub<Output = Self> + BitAnd<Output = Self> + Not<Output = Self>
{
    /// The largest capacity in units, exclusive.
    const LIMIT: u64;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// No capacity reaches it.
    const FAR: Self;
    /// `value`, which is below twice [`Cell::LIMIT`].
    fn of(value: u64) -> Self;
    /// Back to an offset; the value is not negative.
    fn get(self) -> u64;
}

macro_rules! cell {
    ($($t:ty: $bits:expr),*) => {$(
        impl Cell for $t {
            const LIMIT: u64 = 1 << $bits;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const FAR: Self = <$t>::MAX;
            #[inline]
            fn of(value: u64) -> Self {
                value as $t
            }
            #[inline]
            fn get(self) -> u64 {
                self as u64
            }
        }
    )*};
}

// The widest leaves room for a priority beside an offset in one word; 2^46 units are more than anything addresses.
cell!(i16: 14, i32: 30, i64: 46);
