//! A recorded trace on a heap of a given size: does it fit, how small may the heap be, and what do frames save.

use alloc::vec::Vec;

use super::frame::FramePlan;
use super::{Handle, Heap, Node, Request, Side, GRANULE};
use crate::error::Error;
use crate::planner::sequence::Sequence;
use crate::units::Bytes;

/// One event of a trace. Blocks are numbered from 0; a number may be used again once its block was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Block `block` is asked for.
    Alloc {
        /// The block.
        block: u32,
        /// Bytes.
        bytes: Bytes,
        /// A power of two.
        align: u64,
    },
    /// Block `block` is freed.
    Free {
        /// The block.
        block: u32,
    },
    /// Block `block` is resized.
    Resize {
        /// The block.
        block: u32,
        /// Bytes.
        bytes: Bytes,
    },
    /// A frame begins; the one before it ends.
    Frame,
}

/// What came of a trace on a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Allocations, frees and resizes of one pass.
    pub ops: u64,
    /// The most bytes asked for by live blocks at a time.
    pub peak_live: Bytes,
    /// Requests that were refused, over all passes. A refused block's later events are left out.
    pub failed: u64,
}

/// What a pool needs where frames are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    /// Bytes of the area of one frame in flight: the largest of all the frames' plans.
    pub area: Bytes,
    /// Bytes for blocks that outlive their frame or belong to none.
    pub general: Bytes,
    /// Frames that differ from each other.
    pub plans: u32,
    /// `general` and as many areas as instances were asked for.
    pub total: Bytes,
}

/// Runs a trace `passes` times on a heap of `bytes` bytes; what is live at a pass's end is freed.
pub fn rehearse(ops: &[Op], bytes: Bytes, passes: u32) -> Outcome {
    rehearse_with(ops, &[], bytes, passes)
}

/// Calls within which a workspace is freed: the operator's output is allocated, and with it perhaps a second workspace.
const OPERATOR: usize = 4;
/// Calls within which a tensor is freed that goes from one operator to a near one.
const NEARBY: usize = 80;

/// What a host that knows its blocks' lifetimes would ask for at each event: [`Side::Scratch`] for a block freed within 4
/// calls, [`Side::Short`] within 80, [`Side::Long`] for the others.
pub fn lifetime_hints(ops: &[Op]) -> Vec<Side> {
    let blocks = ops.iter().filter_map(block_of).max().map_or(0, |b| b as usize + 1);
    // The event and the call at which a block was asked for.
    let mut born: Vec<Option<(usize, usize)>> = alloc::vec![None; blocks];
    let mut sides = alloc::vec![Side::Auto; ops.len()];
    let calls = ops.iter().enumerate().filter(|(_, op)| **op != Op::Frame);
    for (call, (at, op)) in calls.enumerate() {
        match *op {
            Op::Alloc { block, .. } => {
                sides[at] = Side::Long;
                born[block as usize] = Some((at, call));
            }
            Op::Free { block } => {
                let Some((from, first)) = born[block as usize].take() else { continue };
                sides[from] = match call - first {
                    0..=OPERATOR => Side::Scratch,
                    n if n <= NEARBY => Side::Short,
                    _ => Side::Long,
                };
            }
            Op::Resize { .. } | Op::Frame => {}
        }
    }
    sides
}

/// [`rehearse`] with a side for each event's block; a side that is missing is [`Side::Auto`].
pub fn rehearse_with(ops: &[Op], sides: &[Side], bytes: Bytes, passes: u32) -> Outcome {
    let mut out = Outcome { ops: ops.iter().filter(|op| **op != Op::Frame).count() as u64, ..Outcome::default() };
    let blocks = ops.iter().filter_map(block_of).max().map_or(0, |b| b as usize + 1);
    // A node for each live block and each gap beside one.
    let nodes = Vec::with_capacity(2 * blocks + 4);
    let Ok(mut heap) = Heap::<Vec<Node>, _>::new(0, 0, bytes, nodes) else {
        out.failed = out.ops * u64::from(passes);
        return out;
    };
    let mut live: Vec<Option<(Handle, u64)>> = alloc::vec![None; blocks];
    let mut asked: Vec<Bytes> = alloc::vec![0; blocks];
    for _ in 0..passes {
        // Wide enough that no sum of sizes wraps.
        let mut sum = 0u128;
        for (at, op) in ops.iter().enumerate() {
            let side = sides.get(at).copied().unwrap_or_default();
            let Some(block) = block_of(op).map(|b| b as usize) else { continue };
            let wanted = match *op {
                Op::Alloc { bytes, .. } | Op::Resize { bytes, .. } => bytes,
                Op::Free { .. } | Op::Frame => 0,
            };
            sum = sum + u128::from(wanted) - u128::from(asked[block]);
            asked[block] = wanted;
            out.peak_live = out.peak_live.max(u64::try_from(sum).unwrap_or(u64::MAX));
            let served = match *op {
                Op::Alloc { bytes, align, .. } => {
                    live[block] =
                        heap.alloc_with(&Request::new(bytes, align).side(side)).ok().map(|handle| (handle, align));
                    live[block].is_some()
                }
                Op::Free { .. } => live[block].take().is_none_or(|(handle, _)| heap.free(handle).is_ok()),
                Op::Resize { bytes, .. } => resize(&mut heap, &mut live[block], bytes),
                Op::Frame => true,
            };
            out.failed += u64::from(!served);
        }
        for (handle, _) in live.iter_mut().filter_map(Option::take) {
            let freed = heap.free(handle);
            debug_assert!(freed.is_ok());
        }
        asked.fill(0);
    }
    out
}

fn block_of(op: &Op) -> Option<u32> {
    match *op {
        Op::Alloc { block, .. } | Op::Free { block } | Op::Resize { block, .. } => Some(block),
        Op::Frame => None,
    }
}

fn resize(heap: &mut Heap<Vec<Node>, [u32; 0]>, live: &mut Option<(Handle, u64)>, bytes: Bytes) -> bool {
    let Some((handle, align)) = *live else { return true };
    if heap.resize(handle, bytes, 0) == Ok(true) {
        return true;
    }
    if let Ok(Some((moved, _))) = heap.grow_down(handle, bytes, 0) {
        *live = Some((moved, align));
        return heap.resize(moved, bytes, 0) == Ok(true);
    }
    let Ok(new) = heap.alloc(bytes, align) else { return false };
    *live = Some((new, align));
    heap.free(handle).is_ok()
}

/// The smallest heap, to a 1024th of the peak, on which `passes` passes of the trace are served whole; `None` where even
/// eight times the peak does not suffice.
///
/// Found by halving. A smaller heap may happen to work where a larger one does not, since blocks then lie differently; the
/// answer is one that works, with one just below it that does not.
pub fn least_heap(ops: &[Op], passes: u32) -> Option<Bytes> {
    least_heap_with(ops, &[], passes)
}

/// [`least_heap`] with a side for each event's block, see [`rehearse_with`].
pub fn least_heap_with(ops: &[Op], sides: &[Side], passes: u32) -> Option<Bytes> {
    let peak = rehearse(ops, GRANULE, 1).peak_live.max(1);
    let serves = |bytes: Bytes| rehearse_with(ops, sides, bytes, passes).failed == 0;
    let (mut low, mut high) = (peak.saturating_sub(1), peak.checked_mul(8)?.checked_add(1 << 20)?);
    if !serves(high) {
        return None;
    }
    let step = (peak / 1024).max(GRANULE);
    while high - low > step {
        let middle = low + (high - low) / 2;
        if serves(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high.checked_next_multiple_of(GRANULE)
}

/// What a pool needs for a trace whose frames are recorded and of which `instances` are in flight at a time.
///
/// A frame lasts from one [`Op::Frame`] to the next; a trace without any is one frame. A block that grows is
/// planned with the bytes it grows to. `Overflow` where sizes do not fit.
pub fn recommend(ops: &[Op], instances: u32) -> Result<Recommendation, Error> {
    let mut out = Recommendation::default();
    let mut general: Vec<Op> = Vec::new();
    let mut seen: Vec<Sequence> = Vec::new();
    let begins: Vec<usize> = ops.iter().enumerate().filter(|(_, op)| **op == Op::Frame).map(|(i, _)| i).collect();
    let first = begins.first().copied().unwrap_or(0);
    general.extend_from_slice(&ops[..first]);
    let ends = begins.iter().skip(1).copied().chain([ops.len()]);
    let starts = if begins.is_empty() { alloc::vec![0] } else { begins.clone() };
    for (from, to) in starts.into_iter().zip(ends) {
        let sequence = split(&ops[from..to], &mut general)?;
        if sequence.blocks().is_empty() || seen.contains(&sequence) {
            continue;
        }
        out.area = out.area.max(FramePlan::new(&sequence)?.bytes());
        out.plans += 1;
        seen.push(sequence);
    }
    out.general = match general.is_empty() {
        true => 0,
        false => least_heap(&general, 1).ok_or(Error::overflow("the blocks outside frames fit no heap"))?,
    };
    let area = crate::units::round_up(out.area, crate::units::DEFAULT_ALIGN)?;
    let areas = area.checked_mul(instances.into()).ok_or(Error::overflow("the areas do not fit 64 bits"))?;
    out.total = crate::units::add(out.general, areas)?;
    Ok(out)
}

/// The sequence of a frame. Blocks that are live at its end, and frees of blocks from before it, go to `general`.
fn split(ops: &[Op], general: &mut Vec<Op>) -> Result<Sequence, Error> {
    let mut sequence = Sequence::new();
    // Of each block of the frame: its number, its index in the sequence, and its alignment.
    let mut inside: Vec<(u32, u32, u64)> = Vec::new();
    let find = |inside: &[(u32, u32, u64)], block: u32| inside.iter().rposition(|b| b.0 == block);
    let mut sizes: Vec<Bytes> = Vec::new();
    for op in ops {
        match *op {
            Op::Alloc { block, bytes, align } => {
                inside.push((block, sequence.alloc(bytes, align)?, align));
                sizes.push(bytes);
            }
            Op::Free { block } => match find(&inside, block) {
                Some(at) => sequence.free(inside.swap_remove(at).1)?,
                None => general.push(*op),
            },
            Op::Resize { block, bytes } => match find(&inside, block) {
                // As `Frame::realloc` does: a smaller size stays as it is, for a larger one the room is planned.
                Some(at) => {
                    let index = inside[at].1;
                    sequence.grow(index, bytes)?;
                    let size = &mut sizes[index as usize];
                    *size = bytes.max(*size);
                }
                None => general.push(*op),
            },
            Op::Frame => {}
        }
    }
    inside.sort_unstable();
    for (block, index, align) in inside {
        general.push(Op::Alloc { block, bytes: sizes[index as usize], align });
    }
    Ok(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a(block: u32, bytes: Bytes) -> Op {
        Op::Alloc { block, bytes, align: 128 }
    }

    #[test]
    fn the_least_heap_works_and_less_does_not() {
        let ops =
            [a(0, 1000), a(1, 2000), Op::Free { block: 0 }, a(2, 3000), Op::Free { block: 1 }, Op::Free { block: 2 }];
        assert_eq!(rehearse(&ops, 1 << 20, 3), Outcome { ops: 6, peak_live: 5000, failed: 0 });
        let least = least_heap(&ops, 3).unwrap();
        assert_eq!(rehearse(&ops, least, 3).failed, 0);
        assert!(rehearse(&ops, least - 256, 3).failed > 0);
        assert_eq!(rehearse(&ops, 0, 2).failed, 12);
        let hinted = least_heap_with(&ops, &lifetime_hints(&ops), 3).unwrap();
        assert_eq!(rehearse_with(&ops, &lifetime_hints(&ops), hinted, 3).failed, 0);
    }

    #[test]
    fn hints_follow_the_calls_a_block_lives_through() {
        let mut ops = alloc::vec![a(0, 100), Op::Frame, a(1, 100), a(2, 100), Op::Free { block: 1 }];
        for _ in 0..40 {
            ops.extend([a(3, 100), Op::Free { block: 3 }]);
        }
        ops.push(Op::Free { block: 2 });
        ops.push(Op::Free { block: 0 });
        let sides = lifetime_hints(&ops);
        assert_eq!([sides[0], sides[2], sides[3], sides[5]], [Side::Long, Side::Scratch, Side::Long, Side::Scratch]);
        // Two calls fewer: within reach of the next operators.
        ops.drain(5..9);
        assert_eq!(lifetime_hints(&ops)[3], Side::Short);
        assert_eq!(lifetime_hints(&ops[..5])[3], Side::Long, "never freed");
    }

    #[test]
    fn frames_need_their_area_for_each_instance_and_weights_once() {
        let frame = [Op::Frame, a(1, 1000), a(2, 1000), Op::Free { block: 1 }, a(3, 1000), Op::Free { block: 3 }];
        let mut ops = alloc::vec![a(0, 5000)];
        ops.extend(frame);
        ops.push(Op::Free { block: 2 });
        ops.extend(frame);
        ops.push(Op::Free { block: 2 });
        let r = recommend(&ops, 3).unwrap();
        assert_eq!((r.plans, r.area), (1, 2048), "3 takes the bytes of 1");
        assert!(r.general >= 5000 && r.general <= 5120 + 128);
        assert_eq!(r.total, r.general + 3 * 2048);
        let whole = recommend(&frame[1..], 1).unwrap();
        assert_eq!(whole.plans, 1, "a trace without marks is one frame");
    }
}
