//! The three greedy rules, over slices and without a heap.
//!
//! All three place one buffer at a time among those already placed that are alive with it. They differ in the order and
//! in the gap they take:
//!
//! | rule | order | gap |
//! | --- | --- | --- |
//! | [`Rule::FirstFit`] | first step, then bytes descending, then index | the lowest that fits |
//! | [`Rule::GreedyBySize`] | whole-run buffers by index; then bytes descending, first step, index | the smallest that fits, as TFLite measures it |
//! | [`Rule::TflmGreedy`] | bytes descending, the later added first | the lowest that fits |
//!
//! Greedy by size is the method of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
//! (2020), in the form TensorFlow Lite ships. This module costs n^2 steps and `2 n` words of workspace, which is what a
//! microcontroller can afford; [`super::strategy`] has the same rules over an index for large problems.

use crate::error::Error;
use crate::units::{Align, Bytes, Step};

/// A buffer with one lifetime, as the rules over slices take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Bytes, unrounded.
    pub size: Bytes,
    /// The offset will be a multiple of this.
    pub align: Align,
    /// First step alive.
    pub first: Step,
    /// Last step alive.
    pub last: Step,
    /// Alive to the end of the run and beyond.
    pub kept: bool,
    /// The offset the caller insists on. Such rows are placed before all others.
    pub fixed: Option<Bytes>,
}

impl Row {
    /// Whether two rows need different bytes.
    pub fn conflicts(&self, other: &Row) -> bool {
        self.first <= other.last && other.first <= self.last && self.size > 0 && other.size > 0
    }
}

/// Which greedy rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Order of first use, lowest gap.
    FirstFit,
    /// What TensorFlow Lite does.
    GreedyBySize,
    /// What TensorFlow Lite Micro does.
    TflmGreedy,
}

/// The place of a row in the order of `rule`, the first to be placed least.
pub(crate) fn key(rule: Rule, i: u32, row: &Row) -> (u128, u32) {
    let free = u128::from(row.fixed.is_none()) << 127;
    let (smaller, first) = (u128::from(!row.size), u128::from(row.first));
    match rule {
        Rule::FirstFit => (free | first << 64 | smaller, i),
        Rule::GreedyBySize if row.kept && row.first == 0 => (free, i),
        Rule::GreedyBySize => (free | 1 << 126 | smaller << 32 | first, i),
        Rule::TflmGreedy => (free | smaller, !i),
    }
}

/// Walks occupied blocks in ascending order of offset and picks the gap a rule takes.
pub(crate) struct Gap {
    rule: Rule,
    size: Bytes,
    align: Align,
    /// The highest end so far.
    cursor: Bytes,
    /// Where the best gap begins, and its size as the rule measures it.
    best: Option<(Bytes, Bytes)>,
}

impl Gap {
    pub(crate) fn new(rule: Rule, size: Bytes, align: Align) -> Gap {
        Gap { rule, size, align, cursor: 0, best: None }
    }

    /// Takes the next block in order of offset. Returns true once the answer cannot change any more.
    pub(crate) fn pass(&mut self, offset: Bytes, end: Bytes) -> Result<bool, Error> {
        let start = crate::units::round_up(self.cursor, self.align)?;
        if start.checked_add(self.size).is_some_and(|e| e <= offset) {
            match self.rule {
                Rule::FirstFit | Rule::TflmGreedy => {
                    self.best = Some((start, 0));
                    return Ok(true);
                }
                // TFLite compares the gap left after alignment but remembers the gap before it, so with sizes that
                // are no multiple of the alignment it can take another gap than the smallest. Kept: offsets must match.
                Rule::GreedyBySize => {
                    if self.best.is_none_or(|(_, gap)| offset - start < gap) {
                        self.best = Some((start, offset - self.cursor));
                    }
                }
            }
        }
        self.cursor = self.cursor.max(end);
        Ok(false)
    }

    /// The offset: the gap taken, else after the last block.
    pub(crate) fn offset(self) -> Result<Bytes, Error> {
        match self.best {
            Some((start, _)) => Ok(start),
            None => crate::units::round_up(self.cursor, self.align),
        }
    }
}

/// The number of `u32` words of workspace [`place`] needs for `rows` rows, or `None` where that does not fit.
pub const fn workspace_words(rows: usize) -> Option<usize> {
    rows.checked_mul(2)
}

/// Places `rows` by `rule` and returns the arena in bytes: the highest end.
///
/// `offsets` takes one offset per row (0 for a row of 0 bytes). Errors, all with `offsets` in an unspecified state:
/// `Capacity` where the workspace or `offsets` is too short (`needed` in entries), `Argument` where two fixed rows
/// collide, `Overflow`.
pub fn place(rule: Rule, rows: &[Row], workspace: &mut [u32], offsets: &mut [Bytes]) -> Result<Bytes, Error> {
    place_with(rule, rows.len(), (&|i| rows[i], &|_| false), workspace, offsets)
}

/// [`place`] for `n` rows that the caller keeps in a form of its own: `rows` makes the one at an index, the same each time.
/// Fixed rows for which `shared` is true may overlap other fixed rows.
pub fn place_with(
    rule: Rule,
    n: usize,
    (rows, shared): (&impl Fn(usize) -> Row, &impl Fn(usize) -> bool),
    workspace: &mut [u32],
    offsets: &mut [Bytes],
) -> Result<Bytes, Error> {
    let needed = workspace_words(n).ok_or(Error::overflow("the workspace does not fit the address space"))?;
    if n > u32::MAX as usize {
        return Err(Error::overflow("more rows than 32 bits count"));
    }
    if workspace.len() < needed {
        return Err(Error::capacity("the workspace is too small (32-bit words)")
            .needed(needed as u64)
            .available(workspace.len() as u64));
    }
    if offsets.len() < n {
        return Err(Error::capacity("the offset array is too short (entries)")
            .needed(n as u64)
            .available(offsets.len() as u64));
    }
    let (order, rest) = workspace.split_at_mut(n);
    let by_offset = &mut rest[..n];
    for (i, slot) in order.iter_mut().enumerate() {
        *slot = i as u32;
    }
    order.sort_unstable_by_key(|&i| key(rule, i, &rows(i as usize)));
    let mut placed = 0;
    let mut arena = 0;
    for &index in order.iter() {
        let i = index as usize;
        let row = rows(i);
        offsets[i] = 0;
        if row.size == 0 {
            continue;
        }
        let name = |e: Error| e.buffer(i).at(row.first);
        let offset = match row.fixed {
            Some(at) => {
                if !shared(i) {
                    fixed_is_free((i, &row), at, (rows, shared), &by_offset[..placed], offsets)?;
                }
                at
            }
            None => {
                let mut gap = Gap::new(rule, row.size, row.align);
                for &other in &by_offset[..placed] {
                    let (at, o) = (offsets[other as usize], rows(other as usize));
                    if row.conflicts(&o) && gap.pass(at, at + o.size).map_err(name)? {
                        break;
                    }
                }
                gap.offset().map_err(name)?
            }
        };
        let end = crate::units::add(offset, row.size).map_err(name)?;
        offsets[i] = offset;
        arena = arena.max(end);
        // After those with an equal offset, as TFLite's list is kept.
        let at = by_offset[..placed].partition_point(|&o| offsets[o as usize] <= offset);
        by_offset.copy_within(at..placed, at + 1);
        by_offset[at] = index;
        placed += 1;
    }
    Ok(arena)
}

fn fixed_is_free(
    (i, row): (usize, &Row),
    at: Bytes,
    (rows, shared): (&impl Fn(usize) -> Row, &impl Fn(usize) -> bool),
    placed: &[u32],
    offsets: &[Bytes],
) -> Result<(), Error> {
    let end = crate::units::add(at, row.size).map_err(|e| e.buffer(i))?;
    if !row.align.divides(at) {
        return Err(Error::alignment("the fixed offset is not a multiple of the alignment").buffer(i).needed(at));
    }
    for &other in placed {
        let (start, o) = (offsets[other as usize], rows(other as usize));
        if !shared(other as usize) && row.conflicts(&o) && start < end && at < start + o.size {
            return Err(Error::argument("two fixed offsets collide")
                .buffer(i)
                .and(crate::error::Subject::Buffer(other))
                .at(row.first.max(o.first)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: Rule, align: u64, rows: &[(u64, u32, u32)]) -> ([u64; 8], u64) {
        let align = Align::new(align).unwrap();
        let mut table = [Row { size: 0, align, first: 0, last: 0, kept: false, fixed: None }; 8];
        for (slot, &(size, first, last)) in table.iter_mut().zip(rows) {
            *slot = Row { size, align, first, last, kept: false, fixed: None };
        }
        let mut offsets = [u64::MAX; 8];
        let arena = place(rule, &table[..rows.len()], &mut [0; 16], &mut offsets).unwrap();
        (offsets, arena)
    }

    // facts: TFLite Micro's own greedy planner on the same rows.
    #[test]
    fn tflm_behaviours_44_and_45() {
        let (o, arena) = run(Rule::TflmGreedy, 1, &[(10, 0, 1), (20, 2, 3)]);
        assert_eq!((o[0], o[1], arena), (0, 0, 20));
        let rows = [(10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)];
        let (o, arena) = run(Rule::TflmGreedy, 1, &rows);
        assert_eq!((&o[..5], arena), (&[50, 70, 40, 0, 0][..], 90));
    }

    #[test]
    fn tflm_behaviour_49_equal_sizes_go_latest_first() {
        let (o, _) = run(Rule::TflmGreedy, 1, &[(8, 0, 0), (8, 0, 0), (9, 0, 0)]);
        assert_eq!(&o[..3], &[17, 9, 0]);
    }

    #[test]
    fn br_01_space_before_the_first_live_block_is_used() {
        for rule in [Rule::FirstFit, Rule::GreedyBySize, Rule::TflmGreedy] {
            let (o, arena) = run(rule, 128, &[(12800, 0, 1), (10240, 1, 2), (7680, 2, 3)]);
            assert_eq!((&o[..3], arena), (&[0, 12800, 0][..], 23040), "{rule:?}");
        }
    }

    #[test]
    fn greedy_by_size_measures_gaps_as_tflite_does() {
        // Two gaps at alignment 64: [65, 256) is 128 after alignment but 191 before; [300, 512) is 192 after.
        // A textbook best fit takes the first and keeps it; so does TFLite here, since 192 is not below 191.
        let align = Align::new(64).unwrap();
        let mut gap = Gap::new(Rule::GreedyBySize, 100, align);
        gap.pass(0, 65).unwrap();
        gap.pass(256, 300).unwrap();
        gap.pass(512, 600).unwrap();
        assert_eq!(gap.offset().unwrap(), 128);
        // With the second gap 190 after alignment the textbook keeps the first (128), TFLite moves (190 < 191).
        let mut gap = Gap::new(Rule::GreedyBySize, 100, align);
        gap.pass(0, 65).unwrap();
        gap.pass(256, 300).unwrap();
        gap.pass(510, 600).unwrap();
        assert_eq!(gap.offset().unwrap(), 320);
    }

    #[test]
    fn short_workspaces_and_outputs_say_what_they_need() {
        let row = Row { size: 1, align: Align::ONE, first: 0, last: 0, kept: false, fixed: None };
        let e = place(Rule::FirstFit, &[row; 3], &mut [0; 5], &mut [0; 3]).unwrap_err();
        assert_eq!((e.needed, e.available), (Some(6), Some(5)));
        let e = place(Rule::FirstFit, &[row; 3], &mut [0; 6], &mut [0; 2]).unwrap_err();
        assert_eq!((e.needed, e.available), (Some(3), Some(2)));
    }

    #[test]
    fn fixed_rows_come_first_and_collisions_are_named() {
        let a = Align::new(128).unwrap();
        let row = |size, first, last, fixed| Row { size, align: a, first, last, kept: false, fixed };
        let rows = [row(1024, 0, 1, Some(1024)), row(1024, 0, 1, None), row(512, 1, 1, None)];
        let mut o = [0; 3];
        let arena = place(Rule::GreedyBySize, &rows, &mut [0; 6], &mut o).unwrap();
        assert_eq!((o, arena), ([1024, 0, 2048], 2560), "BR-19");
        let rows = [row(1024, 0, 1, Some(1024)), row(1024, 1, 2, Some(1536))];
        let e = place(Rule::GreedyBySize, &rows, &mut [0; 4], &mut [0; 2]).unwrap_err();
        assert_eq!(e.kind, crate::error::Kind::Argument);
        assert_ne!(e.subject, e.other);
    }
}
