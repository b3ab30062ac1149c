//! Adding a metadata entry to a `.tflite` file that has none of that name.
//!
//! References in a FlatBuffer point forwards only, so what refers to the old tables has to lie before them: a new root,
//! longer vectors of buffers and of metadata, and the entry itself are put between the file's header and its old first
//! table. Everything else moves by one distance and stays byte-equal, but for the few numbers that count from the file's
//! beginning: where data outside the FlatBuffer is.

use std::collections::BTreeSet;

use super::error::{Position, ReadError};
use super::schema;

/// The header: the root's offset and the identifier.
const HEADER: usize = 8;
/// The old content moves by a multiple of this, so that every alignment in it holds.
const DISTANCE: usize = 64;
/// Slots of the root table up to and including the signatures'.
const SLOTS: usize = 8;

/// A block under construction, with absolute positions in the new file.
struct Block {
    bytes: Vec<u8>,
}

impl Block {
    fn here(&self) -> usize {
        HEADER + self.bytes.len()
    }

    fn align(&mut self, to: usize, less: usize) {
        while !(self.here() + less).is_multiple_of(to) {
            self.bytes.push(0);
        }
    }

    fn word(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn half(&mut self, value: usize) {
        self.bytes.extend_from_slice(&(value as u16).to_le_bytes()); // vtables here are a few bytes long
    }

    /// Writes a reference at `at`, inside the block, to `target`.
    fn refer(&mut self, at: usize, target: usize) -> Option<()> {
        let offset = target.checked_sub(at).filter(|&o| o > 0 && o < i32::MAX as usize)?;
        self.bytes[at - HEADER..at - HEADER + 4].copy_from_slice(&(offset as u32).to_le_bytes());
        Some(())
    }

    /// A vector of `count` references to be written later; returns the place of the first.
    fn vector(&mut self, count: usize) -> usize {
        self.align(4, 0);
        self.word(count as u32);
        let first = self.here();
        self.bytes.resize(self.bytes.len() + 4 * count, 0);
        first
    }

    /// A table with 4-byte fields, its field list right before it; returns its place.
    fn table(&mut self, present: &[bool]) -> usize {
        let list = 4 + 2 * present.len();
        self.align(4, list);
        self.half(list);
        self.half(4 + 4 * present.iter().filter(|&&p| p).count());
        let mut at = 4;
        for &p in present {
            self.half(if p { at } else { 0 });
            at += if p { 4 } else { 0 };
        }
        let place = self.here();
        self.word(list as u32);
        self.bytes.resize(self.bytes.len() + at - 4, 0);
        place
    }
}

/// The file with the entry added, and by how many bytes its old content moved.
pub(super) fn with_metadata(file: &[u8], name: &str, data: &[u8]) -> Result<(Vec<u8>, u64), ReadError> {
    let root = schema::root(&file[..file.len().min(i32::MAX as usize)])?;
    let refuse = |what: &str| ReadError::new(root.position(), format!("{name}: {what}"));
    if root.slots() > SLOTS {
        return Err(refuse("the file's root has fields this version does not know"));
    }
    let word = |at: usize| {
        let bytes = file.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let cut = || refuse("a field of the root leaves the file");
    // What the root's fields say: the version, then where each reference leads.
    let mut fields: Vec<Option<u64>> = Vec::with_capacity(SLOTS);
    for i in 0..SLOTS {
        fields.push(match root.place(4 + 2 * i as u16) {
            None => None,
            Some(at) if i == 0 => Some(u64::from(word(at).ok_or_else(cut)?)),
            Some(at) => Some(at as u64 + u64::from(word(at).ok_or_else(cut)?)),
        });
    }
    let tables = |places: Vec<Position>| -> Vec<usize> {
        places.into_iter().map(|p| if let Position::Byte(at) = p { at as usize } else { 0 }).collect()
    };
    let buffers = tables(root.buffers().into_iter().flat_map(|v| v.iter()).map(|b| b.position()).collect());
    let entries = tables(root.metadata().into_iter().flat_map(|v| v.iter()).map(|m| m.position()).collect());

    let mut block = Block { bytes: Vec::new() };
    let mut present: Vec<bool> = fields.iter().map(Option::is_some).collect();
    (present[4], present[6]) = (true, true); // buffers and metadata
    let new_root = block.table(&present);
    let field = |i: usize| new_root + 4 + 4 * present[..i].iter().filter(|&&p| p).count();
    let buffer_list = block.vector(buffers.len() + 1);
    let entry_list = block.vector(entries.len() + 1);
    let entry = block.table(&[true, true]);
    let buffer = block.table(&[true]);
    block.align(4, 0);
    let text = block.here();
    block.word(name.len() as u32);
    block.bytes.extend_from_slice(name.as_bytes());
    block.bytes.push(0);
    // The format asks for data at a multiple of 16; its length stands before it.
    block.align(16, 4);
    let blob = block.here();
    block.word(data.len() as u32);
    block.bytes.extend_from_slice(data);
    while !block.bytes.len().is_multiple_of(DISTANCE) {
        block.bytes.push(0);
    }
    let moved = block.bytes.len();

    let room = || refuse("the file is too long for another entry");
    for (i, value) in fields.iter().enumerate() {
        let at = field(i);
        match (i, value) {
            (0, Some(v)) => block.bytes[at - HEADER..at - HEADER + 4].copy_from_slice(&(*v as u32).to_le_bytes()),
            (4 | 6, _) | (_, None) => {}
            (_, Some(v)) => block.refer(at, *v as usize + moved).ok_or_else(room)?,
        }
    }
    block.refer(field(4), buffer_list - 4).ok_or_else(room)?;
    block.refer(field(6), entry_list - 4).ok_or_else(room)?;
    for (first, places, last) in [(buffer_list, &buffers, buffer), (entry_list, &entries, entry)] {
        for (i, at) in places.iter().map(|p| p + moved).chain([last]).enumerate() {
            block.refer(first + 4 * i, at).ok_or_else(room)?;
        }
    }
    block.refer(entry + 4, text).ok_or_else(room)?;
    block.bytes[entry + 8 - HEADER..entry + 12 - HEADER].copy_from_slice(&(buffers.len() as u32).to_le_bytes());
    block.refer(buffer + 4, blob).ok_or_else(room)?;

    let mut out = Vec::with_capacity(file.len() + moved);
    out.extend_from_slice(&(new_root as u32).to_le_bytes());
    out.extend_from_slice(&file[4..HEADER]);
    out.extend_from_slice(&block.bytes);
    out.extend_from_slice(&file[HEADER..]);
    for (at, offset) in outside(root) {
        let offset = offset.checked_add(moved as u64).ok_or_else(room)?;
        out[at + moved..at + moved + 8].copy_from_slice(&offset.to_le_bytes());
    }
    Ok((out, moved as u64))
}

/// The fields that count from the file's beginning, each once, with their numbers.
fn outside(root: schema::Model<'_>) -> BTreeSet<(usize, u64)> {
    let mut out = BTreeSet::new();
    for b in root.buffers().into_iter().flat_map(|v| v.iter()) {
        out.extend(b.place(6).zip(b.offset()));
    }
    let graphs = root.subgraphs().into_iter().flat_map(|v| v.iter());
    for o in graphs.flat_map(|g| g.operators()).flat_map(|v| v.iter()) {
        out.extend(o.place(22).zip(o.large_options()));
    }
    // 0 is none, and 1 is what a writer puts in before it knows the offset.
    out.retain(|&(_, offset)| offset > 1);
    out
}
