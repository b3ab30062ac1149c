//! Placement one request at a time among those placed before: what TFLite's arena does.

use alloc::vec::Vec;

use super::greedy::{Gap, Rule};
use crate::error::Error;
use crate::units::{add, Align, Bytes};

/// A placed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Offset in the arena.
    pub offset: Bytes,
    /// Bytes.
    pub size: Bytes,
    /// First node alive.
    pub first: i32,
    /// Last node alive.
    pub last: i32,
    /// The caller's number for it.
    pub id: u32,
}

/// The requests that are alive, in order of offset, and the high-water mark.
///
/// ```text
///   offset  0        64       128                 320
///           | t0      | t4     |  (free)           | t2    |
///   walk -> cursor = end so far; a gap fits if round_up(cursor) + size <= next offset; the smallest is taken
/// ```
#[derive(Clone, Debug, Default)]
pub struct Online {
    active: Vec<Placed>,
    high_water: Bytes,
}

impl Online {
    /// An empty arena.
    pub fn new() -> Online {
        Online::default()
    }

    /// Places `size` bytes at a multiple of `align`, alive during nodes `[first, last]`, and returns the offset.
    ///
    /// A request of 0 bytes gets offset 0 and is not entered. `Overflow` leaves the arena unchanged.
    pub fn place(&mut self, id: u32, size: Bytes, align: Align, first: i32, last: i32) -> Result<Bytes, Error> {
        if size == 0 {
            return Ok(0);
        }
        let mut gap = Gap::new(Rule::GreedyBySize, size, align);
        for p in &self.active {
            if p.first <= last && first <= p.last {
                gap.pass(p.offset, p.offset + p.size)?;
            }
        }
        let offset = gap.offset()?;
        let end = add(offset, size)?;
        self.insert(Placed { offset, size, first, last, id });
        self.high_water = self.high_water.max(end);
        Ok(offset)
    }

    /// Enters a request that has its place already.
    pub fn insert(&mut self, placed: Placed) {
        let at = self.active.partition_point(|p| p.offset <= placed.offset);
        self.active.insert(at, placed);
    }

    /// Forgets requests that ended before node `n`.
    pub fn purge_before(&mut self, n: i32) {
        self.active.retain(|p| p.last >= n);
    }

    /// Forgets requests that begin after node `n`.
    pub fn purge_after(&mut self, n: i32) {
        self.active.retain(|p| p.first <= n);
    }

    /// Forgets all requests but keeps the high-water mark.
    pub fn clear_active(&mut self) {
        self.active.clear();
    }

    /// Forgets all requests and the high-water mark.
    pub fn clear(&mut self) {
        self.active.clear();
        self.high_water = 0;
    }

    /// The requests that are alive, in order of offset.
    pub fn active(&self) -> &[Placed] {
        &self.active
    }

    /// The highest end of any request since [`Online::clear`].
    pub fn high_water(&self) -> Bytes {
        self.high_water
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arena: &mut Online, rows: &[(u64, i32, i32)]) -> Vec<u64> {
        let align = Align::new(32).unwrap();
        rows.iter().map(|&(size, first, last)| arena.place(0, size, align, first, last).unwrap()).collect()
    }

    #[test]
    fn behaviour_34_first_fit_into_what_is_not_alive() {
        let rows = [(2047, 1, 3), (2047, 2, 5), (2047, 3, 6), (2047, 5, 6), (1023, 4, 6), (1023, 6, 6)];
        assert_eq!(run(&mut Online::new(), &rows), [0, 2048, 4096, 0, 6144, 2048]);
    }

    #[test]
    fn behaviour_35_empty_requests_take_no_place() {
        let mut arena = Online::new();
        assert_eq!(run(&mut arena, &[(0, 0, 4)]), [0]);
        assert_eq!(arena.high_water(), 0);
        let rows = [(2047, 0, 4), (0, 1, 2), (1023, 1, 2), (2047, 3, 4)];
        assert_eq!(run(&mut arena, &rows), [0, 0, 2048, 2048]);
    }

    #[test]
    fn behaviour_36_clearing_the_plan_starts_over() {
        let mut arena = Online::new();
        assert_eq!(run(&mut arena, &[(2047, 0, 2), (2047, 1, 2), (2047, 2, 3)]), [0, 2048, 4096]);
        arena.clear();
        assert_eq!(run(&mut arena, &[(1023, 0, 2), (1023, 1, 2), (1023, 2, 3)]), [0, 1024, 2048]);
        arena.clear();
        assert_eq!(run(&mut arena, &[(4095, 0, 2), (4095, 1, 2), (4095, 2, 3)]), [0, 4096, 8192]);
    }

    #[test]
    fn behaviour_37_intervals_are_closed_and_purging_frees() {
        let mut arena = Online::new();
        assert_eq!(run(&mut arena, &[(2047, 0, 2), (2047, 1, 2), (2047, 2, 3)]), [0, 2048, 4096]);
        arena.purge_before(4);
        assert_eq!(run(&mut arena, &[(13, 4, 5)]), [0]);
        arena.purge_before(4);
        assert_eq!(run(&mut arena, &[(2047, 0, 2)]), [0]);
        arena.purge_after(3);
        assert_eq!(arena.active().len(), 1);
    }

    #[test]
    fn overflow_changes_nothing() {
        let mut arena = Online::new();
        run(&mut arena, &[(64, 0, 9)]);
        assert!(arena.place(1, u64::MAX, Align::ONE, 0, 9).is_err());
        assert_eq!((arena.active().len(), arena.high_water()), (1, 64));
    }
}
