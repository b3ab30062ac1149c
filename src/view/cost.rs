//! Where the arena's bytes go at the peak step, and what lies idle above each block.

use super::report::Report;
use crate::units::Bytes;

/// The arena at its peak step, divided without remainder: the parts add up to the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of tensors alive there.
    pub tensors: Bytes,
    /// Bytes between one block's end and the next multiple of the alignment that the block above asks for.
    pub alignment: Bytes,
    /// Other bytes between blocks: holes that nothing alive there fits in.
    pub holes: Bytes,
    /// Bytes above the highest block alive there, which another step needs.
    pub above: Bytes,
}

/// What a single step's share of the arena is.
pub fn cost(report: &Report) -> Cost {
    let (time, _) = report.peak;
    let alive = |&i: &usize| report.rows[i].spans.iter().any(|s| s.0 <= time && time <= s.1);
    let mut blocks: Vec<usize> =
        (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).filter(alive).collect();
    blocks.sort_by_key(|&i| (report.rows[i].offset, report.rows[i].end()));
    let (mut out, mut end) = (Cost::default(), 0);
    for i in blocks {
        let (Some(from), Some(to)) = (report.rows[i].offset, report.rows[i].end()) else { continue };
        if from > end {
            let aligned = report.rows[i].align.round_up(end).map_or(from, |a| a.min(from));
            out.alignment += aligned - end;
            out.holes += from - aligned;
            end = from;
        }
        // What shares bytes in place counts once.
        if to > end {
            out.tensors += to - end;
            end = to;
        }
    }
    out.above = report.facts.arena_bytes.saturating_sub(end);
    out
}

/// Per row: the bytes right above it that nothing uses during all its life; 0 for a row without arena bytes.
pub fn idle(report: &Report) -> Vec<Bytes> {
    let mut out = vec![0; report.rows.len()];
    let mut order: Vec<usize> = (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).collect();
    order.sort_by_key(|&i| (report.rows[i].offset, i));
    let from = |i: usize| report.rows[i].offset.unwrap_or(0);
    for &i in &order {
        let end = report.rows[i].end().unwrap_or(0);
        let above = order.partition_point(|&j| from(j) < end);
        let next = order[above..].iter().find(|&&j| together(&report.rows[i].spans, &report.rows[j].spans));
        out[i] = next.map_or(report.facts.arena_bytes, |&j| from(j)).saturating_sub(end);
    }
    out
}

/// Whether two ascending lists of spans share an instant.
fn together(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].1 < b[j].0 {
            i += 1;
        } else if b[j].1 < a[i].0 {
            j += 1;
        } else {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::{plan, BufferSpec, Options, Problem};
    use crate::units::Align;

    fn report(blocks: &[(u64, u64, u32, u32)]) -> Report {
        let mut p = Problem::new();
        for &(size, at, first, last) in blocks {
            let mut spec = BufferSpec::new(size, Align::new(64).unwrap());
            spec.fixed = Some(at);
            p.add_one(spec, first, last).unwrap();
        }
        let plan = plan(&p, &Options::default()).unwrap();
        let time = |s: u32| (u64::from(s), u64::from(s));
        Report::of_problem("test".into(), &p, &plan, &|i| (i.to_string(), String::new()), &time).unwrap()
    }

    #[test]
    fn the_parts_add_up_to_the_arena() {
        let r = report(&[(100, 0, 0, 2), (60, 128, 0, 1), (50, 256, 1, 1), (10, 512, 2, 2)]);
        let c = cost(&r);
        assert_eq!(c, Cost { tensors: 210, alignment: 28 + 4, holes: 64, above: 216 });
        assert_eq!(c.tensors + c.alignment + c.holes + c.above, r.facts.arena_bytes);
        assert_eq!(idle(&r), [28, 68, 216, 0]);
        assert_eq!(cost(&report(&[])), Cost::default());
    }
}
