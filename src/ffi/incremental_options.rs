//! How an incremental planner places tensors and where its memory comes from, as C says it.

use core::mem::size_of;

use super::abi::{self, Versioned};
use super::arena::{arenite_source_t, source, SYSTEM};
use super::options::{optional_align, zero};
use crate::error::Error;
use crate::graph::incremental::Sharing;
use crate::runtime::incremental::IncrementalConfig;
use crate::runtime::store::MemoryPolicy;
use crate::units::DEFAULT_ALIGN;

/// Nothing is released and nothing shared, so that every tensor can be read after the run.
pub const ARENITE_INCREMENTAL_PRESERVE_ALL: u32 = 1;
/// Tensors share bytes in place exactly as in TFLite, also where that corrupts. Otherwise they share only where it is safe.
pub const ARENITE_INCREMENTAL_TFLITE_SHARING: u32 = 2;
/// No tensor shares bytes in place.
pub const ARENITE_INCREMENTAL_NO_IN_PLACE: u32 = 4;
/// Growing keeps the old block until the new one is there, also where contents need not survive.
pub const ARENITE_INCREMENTAL_KEEP_ON_FAILURE: u32 = 8;

/// A zone behind every tensor shows which node wrote past its end.
pub const ARENITE_INCREMENTAL_GUARD: u32 = 16;

/// How tensors are placed and where memory comes from. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_incremental_options_t {
    /// `sizeof(arenite_incremental_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_INCREMENTAL_` bits.
    pub flags: u32,
    /// Alignment of every tensor: a power of two up to 65536, or 0 for 128. TFLite's is 64.
    pub alignment: u32,
    /// 0.
    pub reserved: u32,
    /// The most bytes the main arena may hold; 0 for no limit.
    pub limit: u64,
    /// For the main arena.
    pub main: arenite_source_t,
    /// For the persistent arena.
    pub persistent: arenite_source_t,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a source, which is plain data.
unsafe impl Versioned for arenite_incremental_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        alignment: 0,
        reserved: 0,
        limit: 0,
        main: SYSTEM,
        persistent: SYSTEM,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_INCREMENTAL_PRESERVE_ALL
        | ARENITE_INCREMENTAL_TFLITE_SHARING
        | ARENITE_INCREMENTAL_NO_IN_PLACE
        | ARENITE_INCREMENTAL_KEEP_ON_FAILURE
        | ARENITE_INCREMENTAL_GUARD;
}

/// Options from C; null means the defaults.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`.
pub(crate) unsafe fn read_incremental(
    options: *const arenite_incremental_options_t,
) -> Result<IncrementalConfig, Error> {
    // SAFETY: the caller's contract on `options`.
    let o = unsafe { abi::read_or_default(options) }?;
    zero(o.reserved)?;
    let has = |flag| o.flags & flag != 0;
    let sharing = match (has(ARENITE_INCREMENTAL_TFLITE_SHARING), has(ARENITE_INCREMENTAL_NO_IN_PLACE)) {
        (false, false) => Sharing::Safe,
        (true, false) => Sharing::Tflite,
        (false, true) => Sharing::None,
        _ => return Err(Error::argument("two flags contradict each other").needed(o.flags.into())),
    };
    Ok(IncrementalConfig {
        align: optional_align(o.alignment)?.unwrap_or(DEFAULT_ALIGN),
        preserve_all: has(ARENITE_INCREMENTAL_PRESERVE_ALL),
        sharing,
        memory: MemoryPolicy {
            limit: (o.limit > 0).then_some(o.limit),
            keep_on_failure: has(ARENITE_INCREMENTAL_KEEP_ON_FAILURE),
            ..MemoryPolicy::default()
        },
        main: source(&o.main)?,
        persistent: source(&o.persistent)?,
        guard: has(ARENITE_INCREMENTAL_GUARD),
    })
}
