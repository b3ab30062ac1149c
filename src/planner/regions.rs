//! Several memories: a fast small one, a slow large one, and who goes where.

use alloc::collections::{BTreeSet, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::ControlFlow;

use super::plan::Plan;
use super::problem::{Buffer, Problem};
use super::strategy::{plan_with, Options, Progress};
use crate::error::{Error, Subject};
use crate::units::{Bytes, Step};

/// A memory. Regions are given in order of preference, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its size in bytes; `None` for as much as is needed.
    pub capacity: Option<Bytes>,
}

/// What a buffer wants of the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Bit `r` allows region `r`. At most 32 regions.
    pub allowed: u32,
    /// What it is worth to have the buffer in a region before the next one, in any unit (say, reads and writes).
    pub benefit: u64,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish { allowed: u32::MAX, benefit: 1 }
    }
}

/// A buffer that did not get the first region it is allowed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// The buffer.
    pub buffer: u32,
    /// The region it would have had.
    pub wanted: u32,
    /// The region it got.
    pub got: u32,
    /// A step of its life at which the wanted region is full.
    pub step: Step,
}

/// An assignment of buffers to regions and a plan for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlan {
    /// The region of each buffer; for a buffer of 0 bytes the first allowed one.
    pub region: Vec<u32>,
    /// The offset of each buffer in its region.
    pub offsets: Vec<Bytes>,
    /// The plan of each region, over its buffers in ascending order of index, alias classes as one.
    pub plans: Vec<Plan>,
    /// Who was pushed out, by buffer.
    pub spills: Vec<Spill>,
}

/// Assigns every buffer to a region it is allowed in and plans each region.
///
/// Region by region, all buffers still without a place that are allowed there compete. A sweep over time keeps the live
/// ones within the capacity by pushing out the least benefit per byte and step; what search then cannot pack is pushed
/// out too; and at last those that were pushed out come back where a gap was left. `Capacity` naming the buffer where
/// none of its regions takes it, with the bytes missing; `Argument` for wishes that do not match the problem. An alias
/// class is one buffer, named by its first member: it is allowed where all of them are, and worth what they are together.
pub fn plan_regions(
    problem: &Problem,
    regions: &[Region],
    wishes: &[Wish],
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<RegionPlan, Error> {
    let n = problem.len();
    if wishes.len() != n {
        return Err(Error::argument("there must be one wish for each buffer")
            .needed(n as u64)
            .available(wishes.len() as u64));
    }
    if regions.is_empty() || regions.len() > 32 {
        return Err(Error::argument("there must be 1 to 32 regions").needed(regions.len() as u64));
    }
    if problem.has_aliases() {
        return plan_classes(problem, regions, wishes, options, progress);
    }
    let known = u32::MAX >> (32 - regions.len());
    let size = |i: u32| problem.buffers()[i as usize].spec.size;
    if let Some(i) = (0..n).find(|&i| wishes[i].allowed & known == 0) {
        return Err(Error::argument("the buffer is allowed in no region").buffer(i));
    }
    let mut out = RegionPlan {
        region: wishes.iter().map(|w| (w.allowed & known).trailing_zeros()).collect(),
        offsets: alloc::vec![0; n],
        plans: Vec::new(),
        spills: Vec::new(),
    };
    let wanted = out.region.clone();
    let mut left: Vec<u32> = (0..n as u32).filter(|&i| size(i) > 0).collect();
    let mut full: Vec<Step> = alloc::vec![0; n];
    for (r, region) in regions.iter().enumerate() {
        let may = |i: &u32| wishes[*i as usize].allowed >> r & 1 == 1;
        let mut mine: Vec<u32> = left.iter().copied().filter(|i| may(i)).collect();
        let later = |i: u32| wishes[i as usize].allowed & known & !(u32::MAX >> (31 - r)) != 0;
        let mut pushed = match region.capacity {
            Some(capacity) => sweep(problem, wishes, &mut mine, capacity, &mut full),
            None => Vec::new(),
        };
        let plan = loop {
            let part = subset(problem, &mine)?;
            let options = Options { capacity: region.capacity.or(options.capacity), ..*options };
            let plan = plan_with(&part, &options, progress)?;
            let Some(capacity) = region.capacity.filter(|&c| plan.arena_bytes > c) else { break plan };
            // Of what ends above the capacity at least the least useful has to go.
            let above = |k: &usize| plan.offsets[*k] + size(mine[*k]) > capacity;
            let worst = (0..mine.len())
                .filter(above)
                .min_by_key(|&k| (later(mine[k]), density(problem, wishes, mine[k]), Reverse(mine[k])))
                .expect("something ends at the top");
            let gone = mine.remove(worst);
            full[gone as usize] = problem.hull(gone as usize).first;
            pushed.push(gone);
        };
        let mut offsets = plan.offsets.clone();
        let back = region
            .capacity
            .map_or(Vec::new(), |capacity| refill(problem, wishes, capacity, &mut mine, &mut offsets, &mut pushed));
        for (k, &i) in mine.iter().enumerate() {
            out.region[i as usize] = r as u32;
            out.offsets[i as usize] = offsets[k];
        }
        out.plans.push(if back.is_empty() { plan } else { widened(problem, plan, &mut mine, offsets)? });
        left.retain(|i| mine.binary_search(i).is_err());
        if let Some(&i) = left.iter().find(|&&i| !later(i)) {
            return Err(Error::capacity("no region the buffer is allowed in has room for it")
                .buffer(i as usize)
                .and(Subject::Region(r as u32))
                .at(full[i as usize])
                .needed(size(i))
                .available(region.capacity.unwrap_or(Bytes::MAX)));
        }
    }
    for i in (0..n as u32).filter(|&i| size(i) > 0) {
        let (wanted, got) = (wanted[i as usize], out.region[i as usize]);
        if wanted != got {
            out.spills.push(Spill { buffer: i, wanted, got, step: full[i as usize] });
        }
    }
    Ok(out)
}

/// [`plan_regions`] with alias classes as one buffer each.
fn plan_classes(
    problem: &Problem,
    regions: &[Region],
    wishes: &[Wish],
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<RegionPlan, Error> {
    let (merged, map) = problem.merge_aliases()?;
    let mut together = alloc::vec![Wish { allowed: u32::MAX, benefit: 0 }; merged.len()];
    for (&(class, _), wish) in map.iter().zip(wishes) {
        let class = &mut together[class as usize];
        class.allowed &= wish.allowed;
        class.benefit = class.benefit.saturating_add(wish.benefit);
    }
    // The first member of each class: what is told of the class is told of it.
    let mut first = alloc::vec![0; merged.len()];
    for (i, &(class, _)) in map.iter().enumerate().rev() {
        first[class as usize] = i as u32;
    }
    let found = plan_regions(&merged, regions, &together, options, progress).map_err(|mut e| {
        if let Subject::Buffer(class) = e.subject {
            e.subject = Subject::Buffer(first[class as usize]);
        }
        e
    })?;
    // A member without bytes may lie at any distance, past the end of the address space too.
    let offset = |(b, &(class, delta)): (&Buffer, &(u32, Bytes))| match b.spec.size {
        0 => 0,
        _ => found.offsets[class as usize] + delta,
    };
    Ok(RegionPlan {
        region: map.iter().map(|&(class, _)| found.region[class as usize]).collect(),
        offsets: problem.buffers().iter().zip(&map).map(offset).collect(),
        spills: found.spills.iter().map(|s| Spill { buffer: first[s.buffer as usize], ..*s }).collect(),
        plans: found.plans,
    })
}

/// Benefit per byte and step, in a fixed-point unit that orders them.
fn density(problem: &Problem, wishes: &[Wish], i: u32) -> u128 {
    let steps: u128 = problem.spans(i as usize).iter().map(|s| u128::from(s.last - s.first) + 1).sum();
    let area = steps * u128::from(problem.buffers()[i as usize].spec.size.max(1));
    (u128::from(wishes[i as usize].benefit) << 64) / area
}

fn subset(problem: &Problem, members: &[u32]) -> Result<Problem, Error> {
    let mut out = Problem::with_capacity(members.len());
    for &i in members {
        out.add(problem.buffers()[i as usize].spec, problem.spans(i as usize)).map_err(|e| e.buffer(i as usize))?;
    }
    Ok(out)
}

/// Takes buffers out of `mine` until at every step the live ones sum to at most `capacity`, and returns them.
fn sweep(problem: &Problem, wishes: &[Wish], mine: &mut Vec<u32>, capacity: Bytes, full: &mut [Step]) -> Vec<u32> {
    let mut starts: Vec<(Step, Step, u32)> =
        mine.iter().flat_map(|&i| problem.spans(i as usize).iter().map(move |s| (s.first, s.last, i))).collect();
    starts.sort_unstable();
    let mut live: BTreeSet<(u128, Reverse<u32>)> = BTreeSet::new();
    let mut ends: BinaryHeap<Reverse<(Step, u32)>> = BinaryHeap::new();
    let mut gone = alloc::vec![false; problem.len()];
    let mut sum = 0u128;
    for (first, last, i) in starts {
        while let Some(&Reverse((end, o))) = ends.peek() {
            if end >= first {
                break;
            }
            ends.pop();
            if live.remove(&(density(problem, wishes, o), Reverse(o))) {
                sum -= u128::from(problem.buffers()[o as usize].spec.size);
            }
        }
        if gone[i as usize] {
            continue;
        }
        sum += u128::from(problem.buffers()[i as usize].spec.size);
        live.insert((density(problem, wishes, i), Reverse(i)));
        ends.push(Reverse((last, i)));
        while sum > u128::from(capacity) {
            let Some((_, Reverse(o))) = live.pop_first() else { break };
            sum -= u128::from(problem.buffers()[o as usize].spec.size);
            gone[o as usize] = true;
            full[o as usize] = first;
        }
    }
    let out = mine.iter().copied().filter(|&i| gone[i as usize]).collect();
    mine.retain(|&i| !gone[i as usize]);
    out
}

/// Puts buffers of `pushed` back where a gap was left below `capacity`, the most useful first. `mine` and `offsets` grow at
/// their ends. Returns who came back.
fn refill(
    problem: &Problem,
    wishes: &[Wish],
    capacity: Bytes,
    mine: &mut Vec<u32>,
    offsets: &mut Vec<Bytes>,
    pushed: &mut [u32],
) -> Vec<u32> {
    pushed.sort_by_key(|&i| (Reverse(density(problem, wishes, i)), i));
    let spec = |i: u32| problem.buffers()[i as usize].spec;
    let mut back = Vec::new();
    // Each try looks at all buffers of the region; past this many the gaps left are not worth it.
    for &i in pushed.iter().take(2_000) {
        let mut blocks: Vec<(Bytes, Bytes)> = (0..mine.len())
            .filter(|&k| problem.conflict(i as usize, mine[k] as usize))
            .map(|k| (offsets[k], offsets[k] + spec(mine[k]).size))
            .collect();
        blocks.sort_unstable();
        let mut at = Some(spec(i).fixed.unwrap_or(0));
        for (from, to) in blocks {
            let Some(here) = at else { break };
            if here.checked_add(spec(i).size).is_some_and(|end| end <= from) {
                break;
            }
            if here < to {
                at = if spec(i).fixed.is_some() { None } else { spec(i).align.round_up(to) };
            }
        }
        if let Some(at) = at.filter(|at| at.checked_add(spec(i).size).is_some_and(|end| end <= capacity)) {
            mine.push(i);
            offsets.push(at);
            back.push(i);
        }
    }
    back
}

/// `plan` with the buffers that came back, in ascending order of index. `mine` is sorted along.
fn widened(problem: &Problem, plan: Plan, mine: &mut Vec<u32>, offsets: Vec<Bytes>) -> Result<Plan, Error> {
    let mut rows: Vec<(u32, Bytes)> = mine.iter().copied().zip(offsets).collect();
    rows.sort_unstable();
    *mine = rows.iter().map(|r| r.0).collect();
    let part = subset(problem, mine)?;
    let offsets: Vec<Bytes> = rows.iter().map(|r| r.1).collect();
    let arena_bytes = super::check::check(&part, &offsets)
        .map_err(|_| Error::internal("a buffer that came back into a region collides"))?;
    let lower_bound = super::bound::lower_bound(&part)?.bytes;
    let align = part.align();
    let optimal = Plan::meets(arena_bytes, lower_bound, align);
    Ok(Plan { offsets, arena_bytes, lower_bound, optimal, align, ..plan })
}
