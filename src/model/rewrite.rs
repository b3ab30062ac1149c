//! Changing the order of a `.tflite` file's operators in place.
//!
//! A subgraph's operators are a vector of offsets to tables; another order of those offsets is another order of
//! execution, and nothing else in the file moves. Two kinds of metadata speak of operators or of what results from their
//! order and are brought along: control dependencies by operator index, and an offline plan by tensor.

use super::error::{Position, ReadError};
use super::metadata::{encode_offline, CONTROL_DEPENDENCIES, OFFLINE_PLAN};
use super::{control, insert, schema, Model};
use crate::units::Bytes;

/// What to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Per subgraph its nodes in the order to run.
    pub orders: Vec<Vec<u32>>,
    /// An offline plan: offsets, one per tensor over all subgraphs, `None` for those left to the runtime. It takes the
    /// place of one in the file, or is added; without one here, one in the file stays as it is.
    pub offline_plan: Option<Vec<Option<Bytes>>>,
}

impl Model {
    /// `file`, of which this model was read, with its operators in another order.
    ///
    /// Refused where the file's own structure does not allow it: operator vectors that share bytes with something else,
    /// or offsets that cannot be expressed. What is returned has been read again and compared: the same tables, the
    /// operators in the order asked for.
    pub fn rewritten(&self, file: &[u8], change: &Rewrite) -> Result<Vec<u8>, ReadError> {
        let mut out = file.to_vec();
        let root = schema::root(&file[..file.len().min(i32::MAX as usize)])?;
        for (k, graph) in root.subgraphs().into_iter().flat_map(|v| v.iter()).enumerate() {
            let Some(operators) = graph.operators() else { continue };
            let start = super::tflite::position_in(file, operators.bytes()) as usize;
            let order = change.orders.get(k).map_or(&[][..], |o| o);
            permute(&mut out, start, operators.len(), order)
                .ok_or_else(|| ReadError::new(graph.position(), format!("subgraph {k}: the order does not fit it")))?;
        }
        let places: Vec<Vec<u32>> = change.orders.iter().map(|o| inverse(o)).collect();
        let pairs = self.control_pairs(file)?;
        if let Some(range) = self.control_dependencies.clone().filter(|r| !r.is_empty()) {
            let (start, room) = (range.start as usize, (range.end - range.start) as usize);
            let blob = control::encode(&pairs, &places, room);
            if blob.len() == room {
                out[start..start + room].copy_from_slice(&blob);
            } else {
                self.move_blob(root, file, &mut out, &blob)?;
            }
        }
        for name in [CONTROL_DEPENDENCIES, OFFLINE_PLAN] {
            let written = name == CONTROL_DEPENDENCIES || change.offline_plan.is_some();
            if let Some(entry) = self.metadata.iter().rev().find(|m| written && m.name == name) {
                alone(root, file, entry)?;
            }
        }
        self.write_offline(&mut out, change)?;
        self.compare(&out, change, &places, pairs)?;
        match &change.offline_plan {
            Some(plan) if self.offline_plan.is_none() => add_offline(&out, &self.name, plan),
            _ => Ok(out),
        }
    }

    /// Puts the control dependencies at the file's end, where they outgrew their place.
    fn move_blob(&self, root: schema::Model<'_>, file: &[u8], out: &mut Vec<u8>, blob: &[u8]) -> Result<(), ReadError> {
        let entry = self.metadata.iter().rev().find(|m| m.name == CONTROL_DEPENDENCIES);
        let buffer = entry.and_then(|m| root.buffers()?.iter().nth(m.buffer as usize));
        let field = buffer.filter(|b| b.data().is_some_and(|d| !d.is_empty())).and_then(|b| b.place(4));
        // The vector's length, then its bytes at a multiple of 16, as the format asks of buffers.
        let at = (file.len() + 4).next_multiple_of(16) - 4;
        let offset = field.and_then(|f| u32::try_from(at - f).ok()).filter(|_| at < i32::MAX as usize - blob.len());
        let (Some(field), Some(offset)) = (field, offset) else {
            let what = format!("{CONTROL_DEPENDENCIES}: no room for the new indices");
            return Err(ReadError::new(Position::Whole, what));
        };
        out.resize(at, 0);
        out.extend_from_slice(&(blob.len() as u32).to_le_bytes());
        out.extend_from_slice(blob);
        out[field..field + 4].copy_from_slice(&offset.to_le_bytes());
        Ok(())
    }

    /// Overwrites the offsets of an offline plan in the file.
    fn write_offline(&self, out: &mut [u8], change: &Rewrite) -> Result<(), ReadError> {
        let (Some(plan), Some(entry)) =
            (&change.offline_plan, self.metadata.iter().rev().find(|m| m.name == OFFLINE_PLAN))
        else {
            return Ok(());
        };
        let blob = encode_offline(plan, self.subgraphs.len())?;
        match out.get_mut(entry.data.start as usize..entry.data.end as usize) {
            // The version and the number of subgraphs stay as the file has them.
            Some(old) if old.len() == blob.len() => old[8..].copy_from_slice(&blob[8..]),
            _ => {
                let what = format!("{OFFLINE_PLAN}: expected {} offsets, the plan has {}", entry.data.end, plan.len());
                return Err(ReadError::new(Position::Byte(entry.data.start), what));
            }
        }
        Ok(())
    }

    /// Reads `out` and compares it with what it should be.
    fn compare(
        &self,
        out: &[u8],
        change: &Rewrite,
        places: &[Vec<u32>],
        mut pairs: control::Pairs,
    ) -> Result<(), ReadError> {
        let mut found = Model::from_tflite(out, &self.name)?;
        let mut expected = self.clone();
        for (graph, order) in expected.subgraphs.iter_mut().zip(&change.orders) {
            graph.nodes = order.iter().map(|&n| graph.nodes[n as usize].clone()).collect();
        }
        for (list, places) in pairs.iter_mut().zip(places) {
            list.iter_mut().for_each(|p| *p = (places[p.0 as usize], places[p.1 as usize]));
        }
        let same_pairs = found.control_pairs(out)? == pairs;
        // Resources are numbered as they are met.
        let number = |r: u32| {
            let resource = found.resources.get(r as usize)?;
            let same = |old: &super::Resource| (&old.container, &old.name) == (&resource.container, &resource.name);
            self.resources.iter().position(same).map(|r| r as u32)
        };
        let mut graphs = std::mem::take(&mut found.subgraphs);
        for node in graphs.iter_mut().flat_map(|g| &mut g.nodes) {
            node.resource = node.resource.and_then(number);
        }
        if let (Some(plan), Some(now)) = (&change.offline_plan, &mut expected.offline_plan) {
            now.clone_from(plan);
        }
        let same = same_pairs
            && graphs == expected.subgraphs
            && found.signatures == expected.signatures
            && found.offline_plan == expected.offline_plan
            && found.constant_bytes == expected.constant_bytes
            && found.metadata.iter().map(|m| (&m.name, m.buffer)).eq(self.metadata.iter().map(|m| (&m.name, m.buffer)));
        if !same {
            let what = "the file's tables share bytes, so that its operators cannot be reordered alone";
            return Err(ReadError::new(Position::Whole, what));
        }
        Ok(())
    }
}

/// `Ok` where nothing but `entry` uses the bytes of its buffer, so that they can be written over.
fn alone(root: schema::Model<'_>, file: &[u8], entry: &super::Metadata) -> Result<(), ReadError> {
    let graphs = || root.subgraphs().into_iter().flat_map(|v| v.iter());
    let tensors = graphs().flat_map(|g| g.tensors()).flat_map(|v| v.iter());
    let named = tensors.filter(|t| t.buffer().unwrap_or(0) == entry.buffer).count()
        + root
            .metadata()
            .into_iter()
            .flat_map(|v| v.iter())
            .filter(|m| m.buffer().unwrap_or(0) == entry.buffer)
            .count();
    let buffers = super::tflite::buffers(root, file)?;
    let meets = |r: &std::ops::Range<u64>| r.start < entry.data.end && entry.data.start < r.end;
    let holders = buffers.iter().filter(|r| meets(r)).count();
    if !entry.data.is_empty() && (named > 1 || holders > 1) {
        let what = format!("{}: its bytes are used by something else too, so they cannot be changed", entry.name);
        return Err(ReadError::new(Position::Byte(entry.data.start), what));
    }
    Ok(())
}

/// Adds an offline plan to a file without one; what is returned has been read again and compared.
fn add_offline(file: &[u8], name: &str, plan: &[Option<Bytes>]) -> Result<Vec<u8>, ReadError> {
    let mut expected = Model::from_tflite(file, name)?;
    let (out, moved) = insert::with_metadata(file, OFFLINE_PLAN, &encode_offline(plan, expected.subgraphs.len())?)?;
    let mut found = Model::from_tflite(&out, name)?;
    let shift = |r: &mut std::ops::Range<u64>| {
        if !r.is_empty() {
            (r.start, r.end) = (r.start + moved, r.end + moved);
        }
    };
    expected.subgraphs.iter_mut().flat_map(|g| &mut g.tensors).filter_map(|t| t.data.as_mut()).for_each(shift);
    expected.metadata.iter_mut().map(|m| &mut m.data).for_each(shift);
    expected.control_dependencies.iter_mut().for_each(shift);
    expected.file_bytes += moved;
    expected.offline_plan = Some(plan.to_vec());
    let added = found.metadata.pop().is_some_and(|m| m.name == OFFLINE_PLAN && m.data.start % 16 == 0);
    if !added || found != expected {
        let what = "the file's tables share bytes, so that no metadata entry can be added";
        return Err(ReadError::new(Position::Whole, what));
    }
    Ok(out)
}

/// Puts the `count` offsets at `start` into `order`. Each is relative to its own place. `None` where `order` is no
/// permutation, or an offset would have to point backwards, which the format has no number for.
fn permute(out: &mut [u8], start: usize, count: usize, order: &[u32]) -> Option<()> {
    if inverse(order).contains(&u32::MAX) || order.len() != count {
        return None;
    }
    let slots = out.get_mut(start..start.checked_add(count.checked_mul(4)?)?)?;
    let read = |slot: &[u8]| u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
    let targets: Vec<u64> = slots.chunks_exact(4).enumerate().map(|(i, s)| 4 * i as u64 + u64::from(read(s))).collect();
    for (i, slot) in slots.chunks_exact_mut(4).enumerate() {
        let offset = targets[order[i] as usize].checked_sub(4 * i as u64).filter(|&o| o > 0)?;
        slot.copy_from_slice(&u32::try_from(offset).ok()?.to_le_bytes());
    }
    Some(())
}

/// Where each node goes; `u32::MAX` for one that `order` leaves out.
fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![u32::MAX; order.len()];
    for (place, &node) in (0u32..).zip(order) {
        if let Some(p) = places.get_mut(node as usize) {
            *p = place;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_relative_to_their_place() {
        // Three offsets at byte 2 to bytes 20, 22 and 24.
        let mut bytes = vec![0u8; 2];
        [18u32, 16, 14].iter().for_each(|o| bytes.extend(o.to_le_bytes()));
        let mut out = bytes.clone();
        permute(&mut out, 2, 3, &[2, 0, 1]).unwrap();
        let word = |i: usize| u32::from_le_bytes([out[2 + 4 * i], out[3 + 4 * i], out[4 + 4 * i], out[5 + 4 * i]]);
        assert_eq!([word(0), word(1), word(2)], [22, 14, 12]);
        assert!(permute(&mut bytes, 2, 3, &[0, 1]).is_none());
        assert!(permute(&mut bytes, 2, 3, &[0, 1, 1]).is_none());
        assert!(permute(&mut bytes, 2, 3, &[0, 1, 3]).is_none());
        assert!(permute(&mut bytes, 6, 3, &[0, 1, 2]).is_none());
    }
}
