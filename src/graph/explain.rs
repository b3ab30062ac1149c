//! Why a plan is the size it is: where most bytes are alive, and who uses whose bytes and why that is safe.
//!
//! Works on buffers, so that it explains a bare planning problem as well as a graph lowered to one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::error::Error;
use crate::planner::Problem;
use crate::units::{Bytes, Step};

/// The step at which most bytes are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The first such step; 0 for an empty problem.
    pub step: Step,
    /// Bytes alive there, unrounded; tensors that share bytes in place count once.
    pub bytes: Bytes,
    /// The buffers alive there, largest first.
    pub buffers: Vec<u32>,
}

/// Finds the peak. `Overflow` where sizes alive together do not fit 64 bits.
pub fn peak(problem: &Problem) -> Result<Peak, Error> {
    let (merged, _) = problem.merge_aliases()?;
    let mut events: Vec<(u64, bool, Bytes)> = Vec::with_capacity(2 * merged.len());
    for (i, b) in merged.buffers().iter().enumerate() {
        for s in merged.spans(i) {
            events.push((u64::from(s.first), true, b.spec.size));
            events.push((u64::from(s.last) + 1, false, b.spec.size));
        }
    }
    // Ends sort before starts of the same step, so that only what is alive together is added up.
    events.sort_unstable();
    let (mut live, mut out) = (0, Peak::default());
    for (step, start, size) in events {
        if !start {
            live -= size;
            continue;
        }
        live = crate::units::add(live, size).map_err(|e| e.at(step as Step))?;
        if live > out.bytes {
            (out.step, out.bytes) = (step as Step, live);
        }
    }
    let alive = |&i: &u32| {
        let spans = problem.spans(i as usize);
        let after = spans.partition_point(|s| s.first <= out.step);
        problem.buffers()[i as usize].spec.size > 0 && after > 0 && spans[after - 1].last >= out.step
    };
    out.buffers = (0..problem.len() as u32).filter(alive).collect();
    out.buffers.sort_by_key(|&i| (core::cmp::Reverse(problem.buffers()[i as usize].spec.size), i));
    Ok(out)
}

/// Bytes alive at every step from 0 to the last of the problem, counted as in [`peak`] and saturating.
pub fn live_bytes(problem: &Problem) -> Result<Vec<(Step, Bytes)>, Error> {
    let (merged, _) = problem.merge_aliases()?;
    let mut change: BTreeMap<u64, i128> = BTreeMap::new();
    for (i, b) in merged.buffers().iter().enumerate() {
        for s in merged.spans(i) {
            *change.entry(s.first.into()).or_default() += i128::from(b.spec.size);
            *change.entry(u64::from(s.last) + 1).or_default() -= i128::from(b.spec.size);
        }
    }
    let mut live = 0;
    let steps = change.into_iter().filter(|c| c.0 <= u64::from(Step::MAX)).map(|(step, by)| {
        live += by;
        (step as Step, Bytes::try_from(live).unwrap_or(Bytes::MAX))
    });
    Ok(steps.collect())
}

/// Why one buffer may use bytes another has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The other is dead since this step: its last.
    Ended(Step),
    /// Both are the same bytes by the graph's own rule: an in-place operator or a view.
    InPlace,
}

/// One buffer's use of bytes that another used directly before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The later buffer.
    pub buffer: u32,
    /// The step at which it takes the bytes over.
    pub begins: Step,
    /// The earlier one.
    pub with: u32,
    /// The first byte both use.
    pub from: Bytes,
    /// One past the last byte both use.
    pub to: Bytes,
    /// Why that is safe.
    pub reason: Reason,
}

/// Who takes whose bytes over, ascending by buffer. `offsets` are a valid plan of `problem`.
///
/// A sweep in order of time over a map from bytes to the buffer that used them last: each buffer lists its direct
/// predecessors, not all that ever used its bytes, so the list stays of the length of the problem.
pub fn sharing(problem: &Problem, offsets: &[Bytes]) -> Vec<Sharing> {
    let ends = class_ends(problem);
    let mut starts: Vec<(Step, u32)> = Vec::with_capacity(problem.len());
    for i in 0..problem.len().min(offsets.len()) {
        if problem.buffers()[i].spec.size > 0 {
            starts.extend(problem.spans(i).iter().map(|s| (s.first, i as u32)));
        }
    }
    starts.sort_unstable();
    let mut owners: BTreeMap<Bytes, (Bytes, u32)> = BTreeMap::new();
    let mut out = Vec::new();
    let mut met: Vec<(Bytes, Bytes, u32)> = Vec::new();
    for (begins, buffer) in starts {
        let from = offsets[buffer as usize];
        let to = from.saturating_add(problem.buffers()[buffer as usize].spec.size);
        met.clear();
        let below = owners.range(..to).rev().take_while(|(_, o)| o.0 > from);
        met.extend(below.map(|(&at, &(end, owner))| (at, end, owner)));
        for &(at, end, with) in &met {
            owners.remove(&at);
            if at < from {
                owners.insert(at, (from, with));
            }
            if end > to {
                owners.insert(to, (end, with));
            }
            if with != buffer {
                let (with, reason) = reason(problem, &ends, buffer, with, begins);
                out.push(Sharing { buffer, begins, with, from: from.max(at), to: to.min(end), reason });
            }
        }
        owners.insert(from, (to, buffer));
    }
    out.sort_unstable_by_key(|s| (s.buffer, s.begins, s.from));
    // Pieces of one predecessor that others split, and spans that meet the same one again, are told once.
    out.dedup_by(|b, a| {
        let same = (a.buffer, a.with, a.reason == Reason::InPlace) == (b.buffer, b.with, b.reason == Reason::InPlace);
        if same {
            a.to = a.to.max(b.to);
        }
        same
    });
    out
}

fn class(problem: &Problem, buffer: u32) -> u32 {
    problem.alias_of(buffer as usize).map_or(buffer, |a| a.root)
}

/// `(class, last step, buffer)` of every span of every buffer that shares bytes in place, sorted.
fn class_ends(problem: &Problem) -> Vec<(u32, Step, u32)> {
    let mut ends = Vec::new();
    if problem.has_aliases() {
        for i in 0..problem.len() as u32 {
            ends.extend(problem.spans(i as usize).iter().map(|s| (class(problem, i), s.last, i)));
        }
        ends.sort_unstable();
    }
    ends
}

/// The bytes' last user may have died before another tensor of its class: the one that ended last is the one to name.
fn reason(problem: &Problem, ends: &[(u32, Step, u32)], buffer: u32, with: u32, begins: Step) -> (u32, Reason) {
    let owner = class(problem, with);
    if owner == class(problem, buffer) {
        return (with, Reason::InPlace);
    }
    let after = ends.partition_point(|&e| (e.0, e.1) < (owner, begins));
    if after > 0 && ends[after - 1].0 == owner {
        return (ends[after - 1].2, Reason::Ended(ends[after - 1].1));
    }
    let spans = problem.spans(with as usize);
    let before = spans.partition_point(|s| s.last < begins);
    (with, Reason::Ended(spans[before.saturating_sub(1)].last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::{plan, BufferSpec, Options, Span};
    use crate::units::Align;

    fn chain(n: u32) -> Problem {
        let mut p = Problem::new();
        for i in 0..n {
            p.add_one(BufferSpec::new(4096, Align::ONE), i, i + 1).unwrap();
        }
        p
    }

    #[test]
    fn br_14_tensor_2_shares_with_tensor_0_because_it_ended() {
        let p = chain(4);
        let plan = plan(&p, &Options::default()).unwrap();
        let s = sharing(&p, &plan.offsets);
        assert_eq!(s.len(), 2);
        assert_eq!((s[0].buffer, s[0].with, s[0].begins, s[0].reason), (2, 0, 2, Reason::Ended(1)));
        assert_eq!((s[1].buffer, s[1].with, s[1].reason), (3, 1, Reason::Ended(2)));
    }

    #[test]
    fn the_peak_counts_a_class_once_and_lists_its_members() {
        let mut p = chain(3);
        let view = p.add_one(BufferSpec::new(4096, Align::ONE), 1, 3).unwrap();
        p.alias(view, 1, 0).unwrap();
        let peak = peak(&p).unwrap();
        assert_eq!((peak.step, peak.bytes, peak.buffers), (1, 8192, vec![0, 1, 3]));
        assert_eq!(live_bytes(&p).unwrap(), [(0, 4096), (1, 8192), (2, 8192), (4, 0)]);
        assert_eq!(super::peak(&Problem::new()).unwrap(), Peak::default());
    }

    #[test]
    fn the_member_that_ended_last_is_named_and_pieces_are_joined() {
        let mut p = Problem::new();
        let spec = |n| BufferSpec::new(n, Align::ONE);
        let root = p.add_one(spec(64), 0, 5).unwrap();
        let view = p.add_one(spec(64), 1, 2).unwrap();
        p.alias(view, root, 0).unwrap();
        let middle = p.add_one(spec(16), 6, 6).unwrap();
        let last = p.add(spec(64), &[Span::new(7, 7), Span::new(9, 9)]).unwrap();
        let s = sharing(&p, &[0, 0, 16, 0]);
        let told: Vec<_> = s.iter().map(|s| (s.buffer, s.with, s.reason)).collect();
        assert_eq!(told[0], (view, root, Reason::InPlace));
        assert_eq!(told[1], (middle, root, Reason::Ended(5)));
        assert_eq!(
            told[2..],
            [(last, root, Reason::Ended(5)), (last, middle, Reason::Ended(6)), (last, root, Reason::Ended(5))]
        );
    }
}
