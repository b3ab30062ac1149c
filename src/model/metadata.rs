//! Metadata entries of a `.tflite` file that bear on memory or order.

use std::ops::Range;

use super::error::{Position, ReadError};
use crate::units::Bytes;

/// The name of the entry that holds a plan made ahead of time, as TFLite Micro reads it.
pub const OFFLINE_PLAN: &str = "OfflineMemoryAllocation";

/// The name of the entry that lists order constraints between nodes.
pub(crate) const CONTROL_DEPENDENCIES: &str = "model_control_dependencies";

/// A named buffer of the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// The buffer's index.
    pub buffer: u32,
    /// Its bytes in the file; empty where the buffer is.
    pub data: Range<u64>,
}

/// Reads an offline plan: little-endian 32-bit numbers: version, subgraphs (neither is used), count, then an offset
/// per tensor with -1 for "plan it online". `at` is where `blob` begins in the file, `tensors` the model's count over
/// all subgraphs.
pub(crate) fn offline_plan(blob: &[u8], at: u64, tensors: usize) -> Result<Vec<Option<Bytes>>, ReadError> {
    let refuse = |offset: usize, what: String| {
        Err(ReadError::new(Position::Byte(at + offset as u64), format!("{OFFLINE_PLAN}: {what}")))
    };
    let Some((header, offsets)) = blob.split_at_checked(12) else {
        return refuse(0, format!("expected a header of 12 bytes, the buffer has {}", blob.len()));
    };
    let count = i32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    let present = offsets.len() / 4;
    if usize::try_from(count) != Ok(present) {
        return refuse(8, format!("the header announces {count} offsets, {present} follow"));
    }
    if present != tensors {
        return refuse(8, format!("{present} offsets for {tensors} tensors in all subgraphs"));
    }
    let mut plan = Vec::with_capacity(present);
    for (i, word) in offsets.chunks_exact(4).enumerate() {
        plan.push(match i32::from_le_bytes([word[0], word[1], word[2], word[3]]) {
            -1 => None,
            offset if offset >= 0 => Some(offset as Bytes),
            offset => return refuse(12 + 4 * i, format!("expected an offset or -1, got {offset}")),
        });
    }
    Ok(plan)
}

/// Writes an offline plan as [`offline_plan`] reads it.
pub(crate) fn encode_offline(plan: &[Option<Bytes>], subgraphs: usize) -> Result<Vec<u8>, ReadError> {
    const VERSION: i32 = 1;
    let number = |n: u64, what: &str| {
        i32::try_from(n)
            .map_err(|_| ReadError::new(Position::Whole, format!("{OFFLINE_PLAN}: {what} {n} does not fit 31 bits")))
    };
    let header =
        [VERSION, number(subgraphs as u64, "the number of subgraphs")?, number(plan.len() as u64, "the count")?];
    let mut out: Vec<u8> = header.iter().flat_map(|w| w.to_le_bytes()).collect();
    for offset in plan {
        out.extend_from_slice(&offset.map_or(Ok(-1), |o| number(o, "the offset"))?.to_le_bytes());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn blob(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn br_20_offline_plans_cover_all_subgraphs_and_never_read_past_the_end() {
        let plan = offline_plan(&blob(&[1, 2, 4, 0, 128, 256, -1]), 0, 4).unwrap();
        assert_eq!(plan, [Some(0), Some(128), Some(256), None]);
        let short = offline_plan(&blob(&[1, 1, 8, 0, 4, 8]), 100, 8).unwrap_err();
        assert_eq!((short.kind, short.at), (Kind::Argument, Position::Byte(108)));
        for cut in 0..28 {
            assert!(offline_plan(&blob(&[1, 2, 4, 0, 128, 256, -1])[..cut], 0, 4).is_err(), "{cut} bytes");
        }
        assert!(offline_plan(&blob(&[1, 1, -1]), 0, 0).is_err());
        assert!(offline_plan(&blob(&[1, 1, 1, 0]), 0, 2).is_err(), "another count than the model's");
        assert!(offline_plan(&blob(&[1, 1, 1, -2]), 0, 1).unwrap_err().at == Position::Byte(12));
        assert_eq!(offline_plan(&blob(&[1, 1, 0]), 0, 0).unwrap(), []);
        let plan = [Some(0), None, Some(2_147_483_632)];
        let bytes = encode_offline(&plan, 2).unwrap();
        assert_eq!(bytes, blob(&[1, 2, 3, 0, -1, 2_147_483_632]));
        assert_eq!(offline_plan(&bytes, 0, 3).unwrap(), plan);
        assert!(encode_offline(&[Some(1 << 31)], 1).is_err());
    }
}
