//! Offsets for a recorded sequence, and who has to be gone before a block may be handed out.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::warm::warm;
use crate::error::Error;
use crate::heap::GRANULE;
use crate::planner::check::check;
use crate::planner::sequence::{Block, Sequence};
use crate::planner::{plan, Options, Strategy};
use crate::units::{Align, Bytes, DEFAULT_ALIGN};

/// One block of the sequence: 20 bytes, so that a frame's slots stay in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Granules asked for, also by a block that is not planned: what a request is compared with.
    pub(crate) asked: u32,
    /// Granules from the area's start.
    pub(crate) granule: u32,
    /// Where its offset is among the distinct ones; `UNPLANNED` for a block that outlived its frame.
    pub(crate) place: u32,
    /// Where its successors begin; they end where the next slot's begin.
    pub(crate) successors: u32,
    pub(crate) align_log2: u8,
}

/// The place of a block that is not planned.
pub(crate) const UNPLANNED: u32 = u32::MAX;

/// A planned sequence.
///
/// ```text
/// time ───────────────────────────────>
/// bytes │  ┌── 0 ──┐ ┌──── 3 ────┐         3's direct byte-predecessors: 0 and 1
///       │  └───────┘ │           │         (each byte's last earlier occupant)
///       │  ┌─ 1 ─┐   │           │  ┌ 4 ┐  4's: 3 alone, since 3 covers all that 1 had
///       │  └─────┘   └───────────┘  └───┘
/// ```
///
/// That the direct ones suffice follows by induction: a predecessor was itself handed out, or passed over, only after
/// all of *its* predecessors had been released.
#[derive(Clone, Debug)]
pub struct FramePlan {
    pub(crate) slots: Vec<Slot>,
    pub(crate) successors: Vec<u32>,
    /// Direct byte-predecessors of each block.
    pub(crate) predecessors: Vec<u32>,
    blocks: Vec<Block>,
    /// Where planned blocks start, by open addressing: one more than the granule, 0 for none. A place is an index of it.
    starts: Vec<u32>,
    /// What the hash multiplies by.
    mix: u64,
    bytes: Bytes,
    align: Align,
}

/// Search nodes for a plan made while the host waits.
const QUICK: u64 = 5_000;

const MAGIC: &[u8; 8] = b"AREFRM02";

impl FramePlan {
    /// Plans a recorded sequence with little effort: some milliseconds. `Overflow` where sizes do not fit 64 bits.
    pub fn new(sequence: &Sequence) -> Result<FramePlan, Error> {
        FramePlan::with_effort(sequence, QUICK)
    }

    /// Plans a recorded sequence with at most `effort` search nodes, for plans made beforehand.
    pub fn with_effort(sequence: &Sequence, effort: u64) -> Result<FramePlan, Error> {
        let problem = sequence.problem(DEFAULT_ALIGN)?;
        let mut best = plan(&problem, &Options { effort: Some(effort), ..Options::default() })?;
        // In the order of the requests it is as a heap would do it, so that what is written is more often in the cache.
        let in_order = plan(&problem, &Options::of(Strategy::FirstFit))?;
        if in_order.arena_bytes <= best.arena_bytes {
            best = in_order;
        }
        warm(&problem, &mut best.offsets, best.arena_bytes);
        FramePlan::with_offsets(sequence, &best.offsets)
    }

    /// Takes offsets from elsewhere, which are checked first. `Argument` where they are not a valid plan.
    pub fn with_offsets(sequence: &Sequence, offsets: &[Bytes]) -> Result<FramePlan, Error> {
        let problem = sequence.problem(DEFAULT_ALIGN)?;
        let bytes =
            check(&problem, offsets).map_err(|_| Error::argument("the offsets are not a plan of the sequence"))?;
        if bytes / GRANULE >= u64::from(UNPLANNED) {
            return Err(Error::overflow("a frame's area is less than 512 GiB").needed(bytes));
        }
        let n = problem.len();
        let mut distinct: Vec<u32> =
            (0..n).filter(|&i| problem.buffers()[i].spec.size > 0).map(|i| (offsets[i] / GRANULE) as u32).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut out = FramePlan {
            slots: Vec::new(),
            successors: Vec::new(),
            predecessors: Vec::with_capacity(n),
            blocks: sequence.blocks().to_vec(),
            starts: Vec::new(),
            mix: 0,
            bytes,
            align: problem.align().max(DEFAULT_ALIGN),
        };
        out.index(&distinct);
        let mut slots = Vec::with_capacity(n);
        // For each byte the last block that held it: from -> (to, block).
        let mut held: BTreeMap<Bytes, (Bytes, u32)> = BTreeMap::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (i, buffer) in problem.buffers().iter().enumerate() {
            let (size, offset) = (buffer.spec.size, if buffer.spec.size > 0 { offsets[i] } else { 0 });
            let found = pairs.len();
            if size > 0 {
                occupy(&mut held, offset, offset + size, i as u32, &mut pairs);
            }
            // A block may have held several stretches.
            pairs[found..].sort_unstable();
            let mut kept = found;
            for at in found..pairs.len() {
                if at == found || pairs[at] != pairs[kept - 1] {
                    pairs[kept] = pairs[at];
                    kept += 1;
                }
            }
            pairs.truncate(kept);
            out.predecessors.push((pairs.len() - found) as u32);
            let block = sequence.blocks()[i];
            slots.push(Slot {
                // Saturated only where the block is larger than any area, and so not planned.
                asked: u32::try_from(block.asked.max(1).div_ceil(GRANULE)).unwrap_or(u32::MAX),
                granule: (offset / GRANULE) as u32,
                place: if size > 0 { out.place_of(offset).unwrap_or(UNPLANNED) } else { UNPLANNED },
                successors: 0,
                align_log2: block.align.max(GRANULE).trailing_zeros() as u8,
            });
        }
        // The lists the other way round, in one array.
        pairs.sort_unstable();
        let mut at = 0;
        for (i, slot) in slots.iter_mut().enumerate() {
            slot.successors = at as u32;
            at += pairs[at..].iter().take_while(|p| p.0 == i as u32).count();
        }
        out.successors = pairs.into_iter().map(|(_, later)| later).collect();
        out.slots = slots;
        Ok(out)
    }

    /// Fills the table of starts, with the multiplier of a few that makes the fewest collisions: each one costs every frame
    /// a branch that was not foreseen.
    fn index(&mut self, distinct: &[u32]) {
        const MIXES: [u64; 4] =
            [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
        let size = (distinct.len() * 4).next_power_of_two().max(4);
        let mut fewest = usize::MAX;
        for mix in MIXES {
            let mut starts = alloc::vec![0; size];
            let mut collisions = 0;
            for &granule in distinct {
                let mut at = hash(granule, mix, size);
                while starts[at] != 0 {
                    at = (at + 1) & (size - 1);
                    collisions += 1;
                }
                starts[at] = granule + 1;
            }
            if collisions < fewest {
                fewest = collisions;
                (self.starts, self.mix) = (starts, mix);
            }
        }
    }

    /// The place of an offset where a planned block starts. A quarter of the table is in use, so few probes are needed.
    #[inline]
    pub fn place_of(&self, offset: Bytes) -> Option<u32> {
        self.find_place(offset, &self.starts, |start| *start)
    }

    /// [`FramePlan::place_of`] in a copy of the table: `start` tells what it has at a place of [`FramePlan::starts`].
    #[inline]
    pub(crate) fn find_place<T>(&self, offset: Bytes, table: &[T], start: impl Fn(&T) -> u32) -> Option<u32> {
        if !offset.is_multiple_of(GRANULE) || offset >= self.bytes {
            return None;
        }
        let granule = (offset / GRANULE) as u32;
        let mut at = hash(granule, self.mix, table.len());
        loop {
            match start(&table[at]) {
                0 => return None,
                start if start == granule + 1 => return Some(at as u32),
                _ => at = (at + 1) & (table.len() - 1),
            }
        }
    }

    /// The table of places: one more than the granule where a planned block starts, 0 for none.
    #[cfg(feature = "std")]
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The place and the offset of a planned slot.
    #[inline]
    pub fn place(&self, slot: u32) -> (u32, Bytes) {
        let slot = &self.slots[slot as usize];
        (slot.place, u64::from(slot.granule) * GRANULE)
    }

    /// The offset of a slot.
    pub fn offset(&self, slot: u32) -> Bytes {
        self.place(slot).1
    }

    /// Bytes a slot holds, in whole granules; 0 for a block that is not planned.
    pub fn slot_bytes(&self, slot: u32) -> Bytes {
        match &self.slots[slot as usize] {
            planned if planned.place == UNPLANNED => 0,
            // What was planned has been rounded up before, so nothing wraps.
            _ => self.blocks[slot as usize].bytes.max(1).div_ceil(GRANULE) * GRANULE,
        }
    }

    /// Blocks in the sequence, those not planned included.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the sequence is empty.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of memory an instance of the frame needs, at a multiple of [`FramePlan::align`].
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// The strictest alignment of any block, at least 128.
    pub fn align(&self) -> Align {
        self.align
    }

    /// Whether the request at `position` is for so many bytes at that alignment.
    pub fn expects(&self, position: usize, bytes: Bytes, align: u64) -> bool {
        let granules = bytes.max(1).div_ceil(GRANULE);
        self.slots.get(position).is_some_and(|slot| super::replay::fits(slot, granules, align))
    }

    /// The sequence the plan was made for.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The plan as bytes, little-endian, for [`FramePlan::decode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + 40 * self.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&(self.len() as u64).to_le_bytes());
        for (block, slot) in self.blocks.iter().zip(&self.slots) {
            let last = block.last.map_or(u64::MAX, u64::from);
            for word in [block.bytes, block.asked, block.align, last, u64::from(slot.granule) * GRANULE] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    /// The plan of bytes from [`FramePlan::encode`]. Nothing is trusted: `Argument` for other bytes, for a wrong length, for
    /// offsets that [`check`] rejects, and for a plan larger than all its blocks laid out one behind the other.
    pub fn decode(bytes: &[u8]) -> Result<FramePlan, Error> {
        let wrong = Error::argument("the bytes are not a saved frame plan");
        let body = bytes.strip_prefix(MAGIC).ok_or(wrong)?;
        let mut words = body.chunks_exact(8).map(|w| w.iter().rev().fold(0u64, |sum, &b| sum << 8 | u64::from(b)));
        let count = words.next().ok_or(wrong)?;
        if !body.len().is_multiple_of(8) || count.checked_mul(5) != Some((body.len() as u64 / 8) - 1) {
            return Err(wrong.available(bytes.len() as u64));
        }
        let mut sequence = Sequence::new();
        let mut offsets = Vec::with_capacity(count as usize);
        // One behind the other, each with all the padding there can be: no plan needs more.
        let mut most: Bytes = 0;
        while let (Some(bytes), Some(asked), Some(align), Some(last), Some(offset)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        {
            if !align.is_power_of_two() {
                return Err(wrong.needed(align));
            }
            let last = match last {
                u64::MAX => None,
                other => Some(u32::try_from(other).map_err(|_| wrong.needed(other))?),
            };
            sequence.push(Block { bytes, asked, align, last })?;
            offsets.push(offset);
            most = most.saturating_add(bytes).saturating_add(align.max(GRANULE));
        }
        let plan = FramePlan::with_offsets(&sequence, &offsets)?;
        match plan.bytes() <= most {
            true => Ok(plan),
            false => Err(wrong.needed(plan.bytes()).available(most)),
        }
    }
}

/// `size` is a power of two.
#[inline]
fn hash(granule: u32, mix: u64, size: usize) -> usize {
    (u64::from(granule).wrapping_mul(mix) >> 32) as usize & (size - 1)
}

/// Notes who held `[from, to)` as `(holder, block)` pairs and makes `block` its holder.
fn occupy(held: &mut BTreeMap<Bytes, (Bytes, u32)>, from: Bytes, to: Bytes, block: u32, pairs: &mut Vec<(u32, u32)>) {
    // The stretch that begins before `from` and reaches into the range keeps its front, and its back if it goes past.
    if let Some((&start, &(end, owner))) = held.range(..from).next_back() {
        if end > from {
            pairs.push((owner, block));
            held.insert(start, (from, owner));
            if end > to {
                held.insert(to, (end, owner));
            }
        }
    }
    while let Some((&start, &(end, owner))) = held.range(from..to).next() {
        pairs.push((owner, block));
        held.remove(&start);
        if end > to {
            held.insert(to, (end, owner));
        }
    }
    held.insert(from, (to, block));
}
