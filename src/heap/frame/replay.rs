//! One run of a planned frame: who is live, who is passed over, and who may come next.

use alloc::vec::Vec;

use super::plan::{FramePlan, Slot, UNPLANNED};
use crate::error::Error;
use crate::heap::GRANULE;
use crate::units::Bytes;

/// What became of a frame's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayStats {
    /// Served from the plan.
    pub served: u64,
    /// Not what the plan expected at that position.
    pub mismatched: u64,
    /// Expected, but an earlier occupant of the bytes was still live.
    pub waiting: u64,
    /// Outside the plan: past its end, or a block that outlived its frame when it was recorded.
    pub outside: u64,
}

/// How far ahead a request is looked for once it is not the one expected.
const LOOK_AHEAD: usize = 8;

/// A slot's state in the top two bits of its word, above the number of its predecessors not yet released.
const STATE: u32 = 3 << 30;
/// Not asked for yet.
const AHEAD: u32 = 0;
const LIVE: u32 = 1 << 30;
/// Passed over while an earlier occupant was live: counts as released as soon as the last of those is.
const PASSED: u32 = 2 << 30;
const RELEASED: u32 = 3 << 30;

/// The state of one instance of a planned frame.
///
/// ```text
/// Ahead ──asked for, counter 0──> Live ──freed──> Released ──> successors' counters - 1
///   └──refused──> Passed ──its own counter 0────────┘
/// ```
///
/// A block is served only if its position, size and alignment match and its counter is 0. Everything else is refused
/// and is the general path's to serve. The position moves on by one with every request that matches; a request that does
/// not is looked for among the next eight, and those left out count as refused. That costs plan, never safety: the
/// invariant asks only that whatever was not handed out is released in its turn.
///
/// Threads: none; whoever owns the instance calls.
#[derive(Clone, Debug)]
pub struct Replay {
    next: u32,
    live: u32,
    /// Requests the plan did not expect, and expected ones that did not come.
    strays: u32,
    words: Vec<u32>,
    /// Blocks to be released, so that a chain of them needs no recursion.
    work: Vec<u32>,
    stats: ReplayStats,
    #[cfg(test)]
    pub(super) size_only: bool,
}

impl Replay {
    /// A run of `plan` from its start. `NoMemory`.
    pub fn new(plan: &FramePlan) -> Result<Replay, Error> {
        let no_memory = |_| Error::no_memory("the frame's state could not be allocated");
        let mut words = Vec::new();
        words.try_reserve_exact(plan.len()).map_err(no_memory)?;
        let mut work = Vec::new();
        work.try_reserve_exact(plan.len()).map_err(no_memory)?;
        words.extend_from_slice(&plan.predecessors);
        Ok(Replay {
            next: 0,
            live: 0,
            strays: 0,
            words,
            work,
            stats: ReplayStats::default(),
            #[cfg(test)]
            size_only: false,
        })
    }

    /// Starts over. `Busy` while blocks of the last run are live: an instance is never entered twice.
    pub fn restart(&mut self, plan: &FramePlan) -> Result<(), Error> {
        if self.live > 0 {
            return Err(Error::busy("blocks of the frame's last run are live").needed(u64::from(self.live)));
        }
        (self.next, self.strays) = (0, 0);
        self.stats = ReplayStats::default();
        self.words.copy_from_slice(&plan.predecessors);
        Ok(())
    }

    /// The next request of the frame: the slot that serves it, or `None` for the general path.
    #[inline]
    pub fn alloc(&mut self, plan: &FramePlan, bytes: Bytes, align: u64) -> Option<u32> {
        // Compared in granules, so that nothing has to be added to `bytes`.
        let granules = bytes.max(1).div_ceil(GRANULE);
        let k = self.next;
        let k = match plan.slots.get(k as usize) {
            Some(slot) if fits(slot, granules, align) => k,
            _ => self.resynchronise(plan, granules, align)?,
        };
        self.next = k + 1;
        let planned = plan.slots[k as usize].place != UNPLANNED;
        let word = &mut self.words[k as usize];
        #[allow(unused_mut, reason = "changed by the mutant that the tests run")]
        let mut free = *word == AHEAD;
        #[cfg(test)]
        {
            free |= self.size_only;
        }
        if free && planned {
            *word |= LIVE;
            self.live += 1;
            self.stats.served += 1;
            return Some(k);
        }
        self.refused(plan, k, planned);
        None
    }

    #[cold]
    fn refused(&mut self, plan: &FramePlan, k: u32, planned: bool) {
        if planned {
            self.stats.waiting += 1;
        } else {
            self.stats.outside += 1;
        }
        self.pass(plan, k);
    }

    /// The request is not the one expected. If one of the next few is, those before it count as refused; else the request
    /// is one too many, and the position stays.
    #[cold]
    fn resynchronise(&mut self, plan: &FramePlan, granules: u64, align: u64) -> Option<u32> {
        let ahead = plan.slots.get(self.next as usize..).unwrap_or(&[]);
        let hit = ahead.iter().take(LOOK_AHEAD).position(|s| fits(s, granules, align));
        let Some(skipped) = hit else {
            self.stats.mismatched += u64::from(!ahead.is_empty());
            self.stats.outside += u64::from(ahead.is_empty());
            self.strays = self.strays.saturating_add(1);
            return None;
        };
        self.strays = self.strays.saturating_add(skipped as u32);
        let found = self.next + skipped as u32;
        while self.next < found {
            let k = self.next;
            self.next += 1;
            self.pass(plan, k);
        }
        Some(found)
    }

    /// Frees a slot. False where it is not live.
    #[inline]
    pub fn free(&mut self, plan: &FramePlan, slot: u32) -> bool {
        let Some(word) = self.words.get_mut(slot as usize).filter(|w| **w & STATE == LIVE) else { return false };
        *word |= RELEASED;
        self.live -= 1;
        // The common case without the list: nobody was passed over.
        for &later in successors(plan, slot) {
            let word = &mut self.words[later as usize];
            *word -= 1;
            if *word == PASSED {
                self.queue(later);
            }
        }
        if !self.work.is_empty() {
            self.drain(plan);
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn queue(&mut self, slot: u32) {
        self.work.push(slot);
    }

    /// The frame is over: what was not asked for never will be.
    pub fn finish(&mut self, plan: &FramePlan) {
        while (self.next as usize) < plan.len() {
            let k = self.next;
            self.next += 1;
            self.strays = self.strays.saturating_add(1);
            self.pass(plan, k);
        }
    }

    /// Joins the frame at `position`: what comes before it counts as refused, but not as missing.
    pub fn skip(&mut self, plan: &FramePlan, position: usize) {
        while (self.next as usize) < position.min(plan.len()) {
            let k = self.next;
            self.next += 1;
            self.pass(plan, k);
        }
    }

    /// The position of the next request in the frame; the frame's length at its end.
    pub fn position(&self) -> usize {
        self.next as usize
    }

    /// Live blocks.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// What became of the requests since the start of the run.
    pub fn stats(&self) -> ReplayStats {
        self.stats
    }

    /// Whether the requests were, but for one in eight, those the plan expected. Otherwise the sequence has changed.
    pub fn fits(&self, plan: &FramePlan) -> bool {
        u64::from(self.strays) <= plan.len() as u64 / 8
    }

    fn pass(&mut self, plan: &FramePlan, k: u32) {
        let word = &mut self.words[k as usize];
        *word |= PASSED;
        if *word == PASSED {
            self.work.push(k);
            self.drain(plan);
        }
    }

    /// Releases what is in the list and whoever was passed over and waited only for it. As many steps as there are edges
    /// between them; over a frame, no more than the plan has.
    fn drain(&mut self, plan: &FramePlan) {
        while let Some(k) = self.work.pop() {
            self.words[k as usize] |= RELEASED;
            for &later in successors(plan, k) {
                let word = &mut self.words[later as usize];
                *word -= 1;
                if *word == PASSED {
                    self.work.push(later);
                }
            }
        }
    }
}

/// Whether a request is the one a slot was recorded for.
#[inline]
pub(super) fn fits(slot: &Slot, granules: u64, align: u64) -> bool {
    u64::from(slot.asked) == granules && align <= 1 << slot.align_log2
}

#[inline]
fn successors(plan: &FramePlan, slot: u32) -> &[u32] {
    let from = plan.slots[slot as usize].successors as usize;
    let to = plan.slots.get(slot as usize + 1).map_or(plan.successors.len(), |s| s.successors as usize);
    &plan.successors[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::sequence::Sequence;

    struct Rng(u64);

    impl Rng {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % n
        }
    }

    /// A frame as a net makes it: each block lives a little, some outlive the frame.
    fn sequence(r: &mut Rng, n: u32) -> Sequence {
        let mut s = Sequence::new();
        let mut live = Vec::new();
        for _ in 0..n {
            live.push(s.alloc(1 + r.below(5000), 1 << r.below(10)).unwrap());
            while live.len() > 1 + r.below(5) as usize {
                let at = r.below(live.len() as u64) as usize;
                s.free(live.swap_remove(at)).unwrap();
            }
        }
        if r.below(2) == 0 {
            for b in live {
                s.free(b).unwrap();
            }
        }
        s
    }

    /// Replays with requests and frees of two threads reordered, delayed, dropped and repeated, against a map of who
    /// holds which granule. Returns (served, overlaps).
    fn fuzz(seed: u64, size_only: bool) -> (u64, u64) {
        let mut r = Rng(seed | 1);
        let (mut served, mut overlaps) = (0, 0);
        for _ in 0..60 {
            let n = 4 + r.below(60) as u32;
            let s = sequence(&mut r, n);
            let plan = FramePlan::new(&s).unwrap();
            let mut run = Replay::new(&plan).unwrap();
            run.size_only = size_only;
            let mut owner = alloc::vec![u32::MAX; (plan.bytes() / GRANULE) as usize + 1];
            let mut queue: Vec<u32> = Vec::new();
            for _ in 0..6 {
                // Frees in the order of the recording, each put off by a random number of requests, by two threads.
                let mut due: Vec<(u64, u32)> = Vec::new();
                for (k, b) in plan.blocks().iter().enumerate() {
                    let k = k as u32;
                    let (bytes, align) = match r.below(20) {
                        0 => (b.bytes + 1 + r.below(300), b.align),
                        1 => (b.bytes, b.align * 2),
                        _ => (b.bytes, b.align),
                    };
                    if r.below(40) != 0 {
                        if let Some(slot) = run.alloc(&plan, bytes, align) {
                            served += 1;
                            let from = (plan.offset(slot) / GRANULE) as usize;
                            let to = from + bytes.max(1).div_ceil(GRANULE) as usize;
                            for g in &mut owner[from..to] {
                                overlaps += u64::from(*g != u32::MAX);
                                *g = slot;
                            }
                            let last = b.last.map_or(u64::from(k) + 3, u64::from);
                            due.push((last + r.below(4) * r.below(6), slot));
                        }
                    }
                    let mut i = 0;
                    while i < due.len() {
                        if due[i].0 <= u64::from(k) && r.below(8) != 0 {
                            let (_, slot) = due.swap_remove(i);
                            release(&mut run, &plan, &mut owner, slot, &mut r);
                        } else {
                            i += 1;
                        }
                    }
                }
                run.finish(&plan);
                queue.extend(due.iter().map(|d| d.1));
                if run.live() > 0 {
                    assert!(run.restart(&plan).is_err(), "an instance is not entered twice");
                }
                while let Some(slot) = queue.pop() {
                    release(&mut run, &plan, &mut owner, slot, &mut r);
                }
                if !size_only {
                    assert!(
                        run.words.iter().all(|&w| w == RELEASED),
                        "everything is released and every counter comes to 0"
                    );
                }
                run.restart(&plan).unwrap();
            }
        }
        (served, overlaps)
    }

    fn release(run: &mut Replay, plan: &FramePlan, owner: &mut [u32], slot: u32, r: &mut Rng) {
        for g in owner.iter_mut().filter(|g| **g == slot) {
            *g = u32::MAX;
        }
        assert!(run.free(plan, slot));
        if r.below(10) == 0 {
            assert!(!run.free(plan, slot), "a second free is refused");
        }
    }

    #[test]
    fn no_reordering_delay_or_loss_overlaps_live_blocks() {
        let mut all = 0;
        for seed in 1..=20 {
            let (served, overlaps) = fuzz(seed * 7919, false);
            assert_eq!(overlaps, 0, "seed {seed}");
            all += served;
        }
        assert!(all > 50_000, "{all}");
    }

    #[test]
    fn the_rule_that_compares_sizes_only_overlaps() {
        let overlaps: u64 = (1..=20).map(|seed| fuzz(seed * 7919, true).1).sum();
        assert!(overlaps > 0, "the mutant survived, so the fuzz proves nothing");
    }

    #[test]
    fn an_exact_repeat_is_served_whole() {
        let mut r = Rng(5);
        let s = sequence(&mut r, 200);
        let plan = FramePlan::new(&s).unwrap();
        let mut run = Replay::new(&plan).unwrap();
        for _ in 0..3 {
            let mut planned = 0;
            for k in 0..plan.len() {
                let b = plan.blocks()[k];
                let slot = run.alloc(&plan, b.bytes, b.align);
                assert_eq!(slot.is_some(), b.last.is_some());
                planned += u64::from(b.last.is_some());
                for (j, other) in plan.blocks().iter().enumerate() {
                    if other.last == Some(k as u32) {
                        assert!(run.free(&plan, j as u32));
                    }
                }
            }
            assert!(run.fits(&plan));
            assert_eq!(run.stats().served, planned);
            run.finish(&plan);
            run.restart(&plan).unwrap();
        }
    }

    #[test]
    fn saved_plans_come_back_and_forged_ones_do_not() {
        let mut r = Rng(9);
        let plan = FramePlan::new(&sequence(&mut r, 60)).unwrap();
        let saved = plan.encode();
        let again = FramePlan::decode(&saved).unwrap();
        assert_eq!((again.bytes(), again.encode()), (plan.bytes(), saved.clone()));
        for cut in 0..saved.len() {
            assert!(FramePlan::decode(&saved[..cut]).is_err());
        }
        let mut refused = 0;
        for _ in 0..2000 {
            let mut forged = saved.clone();
            let at = r.below(forged.len() as u64) as usize;
            forged[at] ^= 1 << r.below(8);
            // Whatever is accepted has passed the verifier.
            refused += u32::from(FramePlan::decode(&forged).is_err());
        }
        assert!(refused > 300, "{refused}");
    }
}
