//! Free blocks by size: 32 bins per doubling, and two levels of bitmaps that find the next bin with something in it.

use super::node::Node;
use super::NIL;

/// Bins in one row.
const ROW: u32 = 32;
/// log2 of [`ROW`].
const SUB: u32 = 5;

/// Rows needed for any 32-bit number of granules.
pub(crate) const ALL_ROWS: usize = 28;

/// The bin for a block of `len` granules (at least 1).
///
/// ```text
/// len  1 2 … 31 | 32 33 … 63 | 64,65 66,67 … 126,127 | 128..132 … | …
/// row  0        | 1          | 2                     | 3            one size, one size, 2, 4, 8 … sizes a bin
/// ```
#[inline]
pub(crate) const fn bin_of(len: u32) -> u32 {
    if len < ROW {
        return len;
    }
    let log2 = len.ilog2();
    (log2 - SUB + 1) << SUB | len >> (log2 - SUB) & (ROW - 1)
}

/// The heads of the bins' lists. `ROWS` rows serve regions of less than `16 << ROWS` granules.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Bins<const ROWS: usize> {
    rows: u32,
    bits: [u32; ROWS],
    heads: [[u32; ROW as usize]; ROWS],
}

impl<const ROWS: usize> Bins<ROWS> {
    pub(crate) const fn new() -> Self {
        Bins { rows: 0, bits: [0; ROWS], heads: [[NIL; ROW as usize]; ROWS] }
    }

    /// The first node of a bin, or `NIL`.
    #[inline]
    pub(crate) fn head(&self, bin: u32) -> u32 {
        self.heads[(bin >> SUB) as usize][(bin & (ROW - 1)) as usize]
    }

    /// The first bin from `bin` on that holds a block.
    #[inline]
    pub(crate) fn at_or_above(&self, bin: u32) -> Option<u32> {
        let row = bin >> SUB;
        let bits = self.bits.get(row as usize)? & (u32::MAX << (bin & (ROW - 1)));
        if bits != 0 {
            return Some(row << SUB | bits.trailing_zeros());
        }
        // Shifted twice: a shift by 32 is undefined for row 31, which a bitmap of 28 rows never reaches anyway.
        let rows = self.rows & (u32::MAX << row << 1);
        if rows == 0 {
            return None;
        }
        let row = rows.trailing_zeros();
        Some(row << SUB | self.bits[row as usize].trailing_zeros())
    }

    /// The last bin that holds a block: the largest blocks.
    pub(crate) fn top(&self) -> Option<u32> {
        if self.rows == 0 {
            return None;
        }
        let row = self.rows.ilog2();
        Some(row << SUB | self.bits[row as usize].ilog2())
    }

    /// Makes a node free and puts it at the head of its bin: the block freed last is the warmest.
    #[inline]
    pub(crate) fn insert(&mut self, nodes: &mut [Node], index: u32) {
        let bin = bin_of(nodes[index as usize].len);
        self.insert_in(nodes, index, bin);
    }

    #[inline]
    fn insert_in(&mut self, nodes: &mut [Node], index: u32, bin: u32) {
        let (row, sub) = (bin >> SUB, bin & (ROW - 1));
        let head = &mut self.heads[row as usize][sub as usize];
        let old = *head;
        *head = index;
        let node = &mut nodes[index as usize];
        node.a = NIL;
        node.b = old;
        node.set_free(bin);
        match nodes.get_mut(old as usize) {
            Some(old) => old.a = index,
            None => {
                self.bits[row as usize] |= 1 << sub;
                self.rows |= 1 << row;
            }
        }
    }

    /// Takes a free node out of its bin.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut [Node], index: u32) {
        let node = &nodes[index as usize];
        let (Node { a, b, .. }, bin) = (*node, node.bin());
        if let Some(after) = nodes.get_mut(b as usize) {
            after.a = a;
        }
        if let Some(before) = nodes.get_mut(a as usize) {
            before.b = b;
            return;
        }
        let (row, sub) = (bin >> SUB, bin & (ROW - 1));
        self.heads[row as usize][sub as usize] = b;
        if b == NIL {
            let bits = &mut self.bits[row as usize];
            *bits &= !(1 << sub);
            if *bits == 0 {
                self.rows &= !(1 << row);
            }
        }
    }

    /// Gives a free node another length. It stays where it is in its bin's list if the bin is the same.
    #[inline]
    pub(crate) fn resize(&mut self, nodes: &mut [Node], index: u32, len: u32) {
        let bin = bin_of(len);
        let node = &mut nodes[index as usize];
        node.len = len;
        if node.bin() != bin {
            self.remove(nodes, index);
            self.insert_in(nodes, index, bin);
        }
    }

    /// The bitmap bit of a bin, for the structure check.
    pub(crate) fn bit(&self, bin: u32) -> bool {
        let (row, sub) = (bin >> SUB, bin & (ROW - 1));
        let low = self.bits[row as usize] >> sub & 1 == 1;
        low && self.rows >> row & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_ascend_and_cover_every_size() {
        let mut last = 0;
        for len in 1..200_000u32 {
            let bin = bin_of(len);
            assert!(bin == last || bin == last + 1, "{len}");
            last = bin;
        }
        assert_eq!(bin_of(u32::MAX), ALL_ROWS as u32 * ROW - 1);
        // A row count serves what its documentation says.
        for rows in 1..=ALL_ROWS as u32 {
            let largest = ((16u64 << rows) - 1).min(u64::from(u32::MAX)) as u32;
            assert_eq!(bin_of(largest), rows * ROW - 1);
        }
    }
}
