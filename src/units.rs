//! Bytes, alignments and steps: the only place that adds or rounds sizes, so no size can wrap.
#![forbid(unsafe_code)]

use crate::error::Error;

/// A number of bytes, or a byte offset from an arena base.
pub type Bytes = u64;

/// A position in the flattened execution order, counted from 0.
pub type Step = u32;

/// Default alignment of every planned buffer: two cache lines on x86-64, one on many ARM cores.
pub const DEFAULT_ALIGN: Align = Align(7);

/// A power of two between 1 and 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Align(u8);

impl Align {
    /// No requirement.
    pub const ONE: Align = Align(0);
    /// The strictest alignment accepted.
    pub const MAX: Align = Align(16);

    /// Accepts a power of two up to 64 KiB; anything else is `Alignment` with the value in `needed`.
    pub fn new(bytes: u64) -> Result<Align, Error> {
        if bytes.is_power_of_two() && bytes <= Self::MAX.bytes() {
            Ok(Align(bytes.trailing_zeros() as u8))
        } else {
            Err(Error::alignment("the alignment is not a power of two between 1 and 65536").needed(bytes))
        }
    }

    /// The alignment in bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// `bytes` rounded up to a multiple of the alignment, or `None` where that does not fit 64 bits.
    pub const fn round_up(self, bytes: Bytes) -> Option<Bytes> {
        let mask = self.bytes() - 1;
        match bytes.checked_add(mask) {
            Some(sum) => Some(sum & !mask),
            None => None,
        }
    }

    /// `bytes` rounded down to a multiple of the alignment.
    pub const fn round_down(self, bytes: Bytes) -> Bytes {
        bytes & !(self.bytes() - 1)
    }

    /// Whether `bytes` is a multiple of the alignment.
    pub const fn divides(self, bytes: Bytes) -> bool {
        bytes & (self.bytes() - 1) == 0
    }
}

impl Default for Align {
    fn default() -> Self {
        DEFAULT_ALIGN
    }
}

/// `a + b`, or an `Overflow` error.
pub fn add(a: Bytes, b: Bytes) -> Result<Bytes, Error> {
    a.checked_add(b).ok_or(Error::overflow("a sum of sizes does not fit 64 bits"))
}

/// `bytes` rounded up to `align`, or an `Overflow` error.
pub fn round_up(bytes: Bytes, align: Align) -> Result<Bytes, Error> {
    align.round_up(bytes).ok_or(Error::overflow("a rounded size does not fit 64 bits").needed(bytes))
}

/// The product of a shape's dimensions and an element size in bits, rounded up to whole bytes.
///
/// `Overflow` where the product does not fit, `UnknownSize` where a dimension is negative. A zero dimension gives 0
/// whatever the others are.
pub fn shape_bytes(dims: &[i64], element_bits: u64) -> Result<Bytes, Error> {
    if dims.iter().any(|&d| d < 0) {
        return Err(Error::unknown_size("a dimension of the shape is unknown"));
    }
    if dims.contains(&0) {
        return Ok(0);
    }
    let mut bits = u128::from(element_bits);
    for &d in dims {
        bits = bits
            .checked_mul(d as u128)
            .filter(|&b| b <= 8 * u128::from(u64::MAX))
            .ok_or(Error::overflow("the product of the shape's dimensions does not fit 64 bits"))?;
    }
    Ok(bits.div_ceil(8) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn br_21_shape_products_are_exact_or_refused() {
        assert_eq!(shape_bytes(&[65536, 65536], 32).unwrap(), 17_179_869_184);
        assert_eq!(shape_bytes(&[i32::MAX as i64, i32::MAX as i64, 4], 32).unwrap_err().kind, Kind::Overflow);
        assert_eq!(shape_bytes(&[0, 7], 32).unwrap(), 0);
        assert_eq!(shape_bytes(&[0, i64::MAX, i64::MAX], 32).unwrap(), 0);
        assert_eq!(shape_bytes(&[-1, 8], 32).unwrap_err().kind, Kind::UnknownSize);
        assert_eq!(shape_bytes(&[3], 4).unwrap(), 2, "two int4 elements share a byte");
        assert_eq!(shape_bytes(&[], 32).unwrap(), 4, "a scalar is one element");
    }

    #[test]
    fn alignments_outside_the_range_are_refused_with_the_value() {
        for bad in [0, 3, 12, 131_072, 1 << 63, u64::MAX] {
            assert_eq!(Align::new(bad).unwrap_err().needed, Some(bad));
        }
        assert_eq!(Align::new(65536).unwrap(), Align::MAX);
    }

    #[test]
    fn rounding_never_wraps() {
        assert_eq!(Align::MAX.round_up(u64::MAX), None);
        assert_eq!(Align::new(64).unwrap().round_up(65), Some(128));
        assert_eq!(Align::ONE.round_up(u64::MAX), Some(u64::MAX));
        assert!(round_up(u64::MAX - 5, DEFAULT_ALIGN).is_err());
    }
}
