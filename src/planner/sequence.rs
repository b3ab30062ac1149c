//! A recorded sequence of allocations and frees, and the problem it poses.
//!
//! Engines behind malloc-shaped hooks repeat one sequence every inference. Recorded once, it is a planning problem like
//! any other: the step of a block is its position among the allocations.
//!
//! ```text
//! events   a0  a1  f0  a2  a3  f1  f3  f2
//! step     0   1       2   3
//! block 0  [0 ─ 1]          a block freed between allocations m and m + 1 is alive up to step m
//! block 1      [1 ───── 3]
//! block 2              [2 ─ 3]
//! block 3                  [3]
//! ```

use alloc::vec::Vec;

use super::problem::{BufferSpec, Problem};
use crate::error::Error;
use crate::units::{Align, Bytes, Step};

/// A block of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The most bytes it ever had: those asked for, or those it grew to.
    pub bytes: Bytes,
    /// Bytes it was asked for with.
    pub asked: Bytes,
    /// The alignment asked for.
    pub align: u64,
    /// The step of the last allocation before it was freed; `None` while it is live.
    pub last: Option<Step>,
}

/// A recorded sequence. Blocks are numbered in order of allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    blocks: Vec<Block>,
}

impl Sequence {
    /// An empty sequence.
    pub fn new() -> Sequence {
        Sequence::default()
    }

    /// Records an allocation and returns the block's number. `NoMemory` where the record cannot grow, `Overflow` past
    /// 2^31 blocks.
    pub fn alloc(&mut self, bytes: Bytes, align: u64) -> Result<u32, Error> {
        if self.blocks.len() >= 1 << 31 {
            return Err(Error::overflow("a sequence holds at most 2^31 blocks"));
        }
        self.blocks.try_reserve(1).map_err(|_| Error::no_memory("the recorded sequence cannot grow"))?;
        self.blocks.push(Block { bytes, asked: bytes, align, last: None });
        Ok(self.blocks.len() as u32 - 1)
    }

    /// Records that a live block grew where it is, to `bytes` bytes: it is planned with as much from its start. A smaller
    /// size changes nothing. `Argument` for a block that does not exist or was freed.
    pub fn grow(&mut self, block: u32, bytes: Bytes) -> Result<(), Error> {
        match self.blocks.get_mut(block as usize).filter(|b| b.last.is_none()) {
            Some(b) => b.bytes = b.bytes.max(bytes),
            None => return Err(Error::argument("there is no such live block").buffer(block as usize)),
        }
        Ok(())
    }

    /// Records that a block was freed. `Argument` for a block that does not exist or was freed before.
    pub fn free(&mut self, block: u32) -> Result<(), Error> {
        let step = self.blocks.len().wrapping_sub(1) as Step;
        match self.blocks.get_mut(block as usize) {
            Some(b) if b.last.is_none() => {
                b.last = Some(step);
                Ok(())
            }
            Some(_) => Err(Error::argument("the block was freed before").buffer(block as usize)),
            None => Err(Error::argument("there is no such block").buffer(block as usize)),
        }
    }

    /// Adds a block with its lifetime, as a saved plan knows it. `Argument` for a last step before the block's own and for
    /// fewer bytes than were asked for.
    pub fn push(&mut self, block: Block) -> Result<u32, Error> {
        let index = self.alloc(block.asked, block.align)?;
        if block.last.is_some_and(|last| last < index) || block.bytes < block.asked {
            self.blocks.pop();
            let early = block.bytes >= block.asked;
            let what = if early { "a block is freed before it is allocated" } else { "a block has shrunk" };
            return Err(Error::argument(what).buffer(index as usize));
        }
        self.blocks[index as usize] = block;
        Ok(index)
    }

    /// The blocks in order of allocation.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The problem: one buffer for every block, sizes rounded up to `unit` and alignments raised to it.
    ///
    /// A block still live at the end, or one aligned past 64 KiB, becomes a buffer of 0 bytes: it outlives the frame, so
    /// no place in the frame's memory can be promised to it. `Overflow` where a rounded size does not fit.
    pub fn problem(&self, unit: Align) -> Result<Problem, Error> {
        let mut problem = Problem::with_capacity(self.blocks.len());
        for (i, block) in self.blocks.iter().enumerate() {
            let planned = block.last.zip(Align::new(block.align.max(unit.bytes())).ok());
            let (last, align, bytes) = match planned {
                // A block of 0 bytes has an address of its own.
                Some((last, align)) => {
                    (last, align, crate::units::round_up(block.bytes.max(1), unit).map_err(|e| e.buffer(i))?)
                }
                None => (i as Step, unit, 0),
            };
            // A saved sequence may name a last step past its end; the end is the same to the planner.
            let last = last.min(self.blocks.len() as Step - 1);
            problem.add_one(BufferSpec::new(bytes, align), i as Step, last)?;
        }
        Ok(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::Span;

    #[test]
    fn a_block_that_grows_is_planned_with_all_it_will_have() {
        let mut s = Sequence::new();
        let a = s.alloc(100, 1).unwrap();
        s.grow(a, 1000).unwrap();
        s.grow(a, 50).unwrap();
        s.free(a).unwrap();
        assert!(s.grow(a, 2000).is_err() && s.grow(7, 1).is_err());
        assert_eq!(s.blocks()[0], Block { bytes: 1000, asked: 100, align: 1, last: Some(0) });
        assert_eq!(s.problem(Align::new(128).unwrap()).unwrap().buffers()[0].spec.size, 1024);
        assert!(s.push(Block { bytes: 99, asked: 100, align: 1, last: None }).is_err());
    }

    #[test]
    fn blocks_live_from_their_allocation_to_the_last_before_their_free() {
        let mut s = Sequence::new();
        let a = s.alloc(100, 1).unwrap();
        let b = s.alloc(200, 256).unwrap();
        s.free(a).unwrap();
        let c = s.alloc(0, 1).unwrap();
        s.alloc(50, 1).unwrap();
        s.free(b).unwrap();
        s.free(c).unwrap();
        assert!(s.free(c).is_err() && s.free(9).is_err());
        let p = s.problem(Align::new(128).unwrap()).unwrap();
        assert_eq!((p.hull(0), p.hull(1), p.hull(2)), (Span::new(0, 1), Span::new(1, 3), Span::new(2, 3)));
        let sizes: Vec<u64> = p.buffers().iter().map(|b| b.spec.size).collect();
        assert_eq!(sizes, [128, 256, 128, 0], "the last one outlives the frame");
        assert_eq!(p.buffers()[1].spec.align.bytes(), 256);
    }
}
