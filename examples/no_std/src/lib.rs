//! Uses the core without std and without a heap.
#![no_std]

use arenite::error::Error;
use arenite::units::{round_up, shape_bytes, Align};

/// Bytes of a float tensor of this shape in an arena of this alignment.
pub fn tensor_bytes(shape: &[i64], align: u64) -> Result<u64, Error> {
    round_up(shape_bytes(shape, 32)?, Align::new(align)?)
}
