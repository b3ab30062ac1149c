//! The zone behind a tensor in guard mode: bytes that nobody may write, so that an overrun can be seen.

use crate::units::Bytes;

/// Bytes behind each tensor.
pub(crate) const ZONE: usize = 64;

/// What they hold. Neither 0 nor a repeated byte, which a kernel might well write.
fn pattern(i: usize) -> u8 {
    0xA5 ^ (i as u8).wrapping_mul(29)
}

/// A tensor's bytes with the zone behind them. An empty tensor has nothing to overrun, and a size that would wrap is left
/// for the planner to refuse.
pub(crate) fn zoned(bytes: Bytes) -> Bytes {
    if bytes == 0 {
        0
    } else {
        bytes.saturating_add(ZONE as Bytes)
    }
}

/// Writes the pattern.
///
/// # Safety
/// `zone` is valid for writes of [`ZONE`] bytes.
pub(crate) unsafe fn paint(zone: *mut u8) {
    for i in 0..ZONE {
        // SAFETY: inside the zone.
        let at = unsafe { zone.add(i) };
        // SAFETY: as above.
        unsafe { at.write(pattern(i)) };
    }
}

/// How many bytes past the tensor's end the last damage lies; `None` for an intact zone. The zone is repaired, so that the
/// next node is not blamed.
///
/// # Safety
/// `zone` is valid for reads and writes of [`ZONE`] bytes, which were painted.
pub(crate) unsafe fn damage(zone: *mut u8) -> Option<Bytes> {
    let mut found = None;
    for i in 0..ZONE {
        // SAFETY: inside the zone.
        let at = unsafe { zone.add(i) };
        // SAFETY: as above.
        if unsafe { at.read() } != pattern(i) {
            found = Some(i as Bytes + 1);
            // SAFETY: as above.
            unsafe { at.write(pattern(i)) };
        }
    }
    found
}
