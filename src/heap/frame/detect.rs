//! Finds out where a sequence of requests repeats, for hosts that cannot say where a frame begins and ends.

use alloc::vec::Vec;

use crate::error::Error;
use crate::heap::GRANULE;
use crate::planner::sequence::{Block, Sequence};
use crate::units::Bytes;

/// Requests remembered: frames of up to half as many are found.
const REMEMBERED: usize = 1 << 14;
/// Requests in a row that have to be those of an earlier place before it is followed.
const RUN: usize = 6;
/// Earlier places followed at a time, and candidates looked at for each request.
const FOLLOWED: usize = 8;
/// Requests looked at before the run, to see how far back the two places agree.
const BACK: u64 = 256;
/// A shorter period is no frame: the general path serves it as well.
const SHORTEST: u64 = 4;
const BUCKETS: usize = 1 << 12;
const LIVE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    granules: u64,
    align: u64,
    /// Requests made after this one while the block was live.
    life: u32,
    /// One more than the request before this one at which a run with the same hash ended, 0 for none.
    before: u64,
}

/// An earlier place whose requests come again: `distance` requests back, and so many of them in a row.
#[derive(Clone, Copy, Debug)]
struct Match {
    distance: u64,
    length: u64,
}

/// A sequence that repeats, and where in it the next request is.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// One period, cut where the fewest bytes are live across the cut.
    pub sequence: Sequence,
    /// The position of the next request in it.
    pub position: usize,
    /// A hash of the sequence, lifetimes included.
    pub signature: u64,
}

/// The requests of one stream of work, and the places where it repeats itself.
///
/// ```text
/// requests   load load A B C D A' B' | A B C D ...
///                      ^              ^ the last RUN requests occurred before: followed from here on
///                      └── distance ──┘ taken as the period once the two places agree for long enough
/// ```
///
/// Several distances are followed at a time and the one that agrees for longest counts: within a network whose layers are
/// alike the layer repeats as well, but the whole network agrees for longer.
///
/// A prediction, never a promise: what is planned from it is replayed under the rule that a block is handed out only after
/// every earlier occupant of its bytes has been released.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    log: Vec<Entry>,
    /// Requests seen.
    next: u64,
    buckets: Vec<u64>,
    matches: Vec<Match>,
}

impl Detector {
    /// A detector that has seen nothing. It allocates as it goes, at most 600 KiB.
    pub fn new() -> Detector {
        Detector::default()
    }

    /// Takes note of a request and returns its number, for [`Detector::free`]. `None` where memory has run out.
    pub fn alloc(&mut self, bytes: Bytes, align: u64) -> Option<u64> {
        if self.buckets.is_empty() {
            self.buckets.try_reserve_exact(BUCKETS).ok()?;
            self.buckets.resize(BUCKETS, 0);
            self.matches.try_reserve_exact(FOLLOWED).ok()?;
        }
        let number = self.next;
        let align = align.max(GRANULE);
        let entry = Entry { granules: bytes.max(1).div_ceil(GRANULE), align, life: LIVE, before: 0 };
        if self.log.len() < REMEMBERED {
            self.log.try_reserve(1).ok()?;
            self.log.push(entry);
        } else {
            self.log[number as usize % REMEMBERED] = entry;
        }
        self.next += 1;
        self.follow(number);
        Some(number)
    }

    /// Takes note of the free of a request's block.
    pub fn free(&mut self, number: u64) {
        let last = self.next.wrapping_sub(1);
        if number < self.next && self.oldest() <= number {
            self.log[number as usize % REMEMBERED].life = u32::try_from(last - number).unwrap_or(LIVE);
        }
    }

    fn oldest(&self) -> u64 {
        self.next.saturating_sub(REMEMBERED as u64)
    }

    fn entry(&self, number: u64) -> &Entry {
        &self.log[number as usize % REMEMBERED]
    }

    fn same(&self, a: u64, b: u64) -> bool {
        let (a, b) = (self.entry(a), self.entry(b));
        a.granules == b.granules && a.align == b.align
    }

    fn follow(&mut self, number: u64) {
        let mut matches = core::mem::take(&mut self.matches);
        let oldest = self.oldest();
        matches.retain_mut(|m| {
            m.length += 1;
            number - oldest >= m.distance && self.same(number, number - m.distance)
        });
        if number + 1 >= RUN as u64 {
            let bucket = self.hash(number);
            let mut at = self.buckets[bucket];
            for _ in 0..FOLLOWED {
                let Some(earlier) = at.checked_sub(1).filter(|&e| e >= oldest + RUN as u64 - 1 && e < number) else {
                    break;
                };
                at = self.entry(earlier).before;
                let distance = number - earlier;
                if matches.len() == FOLLOWED || matches.iter().any(|m| m.distance == distance) {
                    continue;
                }
                let most = (RUN as u64 + BACK).min(earlier - oldest + 1);
                let length = (0..most).take_while(|&i| self.same(number - i, earlier - i)).count() as u64;
                if length >= RUN as u64 {
                    matches.push(Match { distance, length });
                }
            }
            self.log[number as usize % REMEMBERED].before = self.buckets[bucket];
            self.buckets[bucket] = number + 1;
        }
        self.matches = matches;
    }

    fn hash(&self, number: u64) -> usize {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        let hash = (0..RUN as u64).fold(0, |hash, i| mix(hash, self.entry(number - i).granules));
        (hash >> 20) as usize % BUCKETS
    }

    /// How many requests the best match has agreed for, 0 without one.
    pub fn agreed(&self) -> u64 {
        self.best().map_or(0, |m| m.length)
    }

    fn best(&self) -> Option<Match> {
        let useful = |m: &&Match| m.distance >= SHORTEST && m.distance <= REMEMBERED as u64 / 2;
        let longer = |m: &&Match| (m.length, core::cmp::Reverse(m.distance));
        self.matches.iter().filter(useful).max_by_key(longer).copied()
    }

    /// The period, if the requests repeat: one that agrees for `agreed` requests at least.
    ///
    /// Lifetimes are those of the earlier of the two places, since its blocks have been freed by now if they ever are. A
    /// block that lives longer than a period, or is live still, has none and will not be planned. `None` as well where
    /// fewer than four blocks could be planned. `NoMemory`.
    pub fn repeat(&self, agreed: u64) -> Result<Option<Repeat>, Error> {
        let Some(m) = self.best().filter(|m| m.length >= agreed) else { return Ok(None) };
        let (period, ahead) = (m.distance, m.length.min(m.distance));
        let Some(first) = (self.next).checked_sub(period + ahead).filter(|&f| f >= self.oldest()) else {
            return Ok(None);
        };
        let n = period as usize;
        let life = |i: usize| Some(self.entry(first + i as u64).life as usize).filter(|&life| life < n);
        let cut = self.cut(first, n, &life)?;
        let mut sequence = Sequence::new();
        let mut signature = period;
        let mut planned = 0;
        for i in 0..n {
            let at = (cut + i) % n;
            let e = self.entry(first + at as u64);
            let last = life(at).map(|life| i + life).filter(|&last| last < n).map(|last| last as u32);
            planned += u32::from(last.is_some());
            sequence.push(Block { bytes: e.granules * GRANULE, asked: e.granules * GRANULE, align: e.align, last })?;
            for word in [e.granules, e.align, last.map_or(u64::MAX, u64::from)] {
                signature = (signature ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
            }
        }
        let position = (ahead as usize + n - cut) % n;
        Ok((planned >= 4).then_some(Repeat { sequence, position, signature }))
    }

    /// The request of the period before which the fewest bytes are live; the period's first one where that is as good.
    fn cut(&self, first: u64, n: usize, life: &impl Fn(usize) -> Option<usize>) -> Result<usize, Error> {
        let mut change: Vec<i128> = Vec::new();
        change.try_reserve_exact(n + 1).map_err(|_| Error::no_memory("the period could not be examined"))?;
        change.resize(n + 1, 0);
        for i in 0..n {
            let Some(life) = life(i) else { continue };
            let granules = i128::from(self.entry(first + i as u64).granules);
            // Live across the boundaries before requests i + 1 to i + life, the period being a circle.
            let (from, to) = (i + 1, i + life + 1);
            change[from.min(n)] += granules;
            change[to.min(n)] -= granules;
            if to > n {
                change[0] += granules;
                change[to - n] -= granules;
            }
        }
        let (mut best, mut least, mut live) = (0, i128::MAX, 0);
        for (i, delta) in change[..n].iter().enumerate() {
            live += delta;
            if live < least {
                (best, least) = (i, live);
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds requests as (size, freed before the how-manieth request after it), the last freed in due time.
    struct Feed {
        detector: Detector,
        due: Vec<(u64, u64)>,
    }

    impl Feed {
        fn new() -> Feed {
            Feed { detector: Detector::new(), due: Vec::new() }
        }

        fn request(&mut self, bytes: u64, life: Option<u64>) {
            let now = self.detector.next;
            for (_, number) in self.due.extract_if(.., |d| d.0 <= now) {
                self.detector.free(number);
            }
            let number = self.detector.alloc(bytes, 64).unwrap();
            if let Some(life) = life {
                self.due.push((number + life + 1, number));
            }
        }
    }

    fn net(k: u64) -> (u64, Option<u64>) {
        // A chain: each block lives until the next but one request; the last is an output that outlives the frame.
        (1000 + 300 * (k * k % 17), if k == 19 { Some(20) } else { Some(1) })
    }

    #[test]
    fn a_period_is_found_early_in_its_second_turn_and_cut_where_nothing_is_live() {
        let mut f = Feed::new();
        for load in 0..30 {
            f.request(50_000 + load * 128, None);
        }
        let mut found = None;
        for frame in 0..3 {
            for k in 0..20 {
                let (bytes, life) = net(k);
                f.request(bytes, life);
                if let (None, Some(r)) = (&found, f.detector.repeat(8).unwrap()) {
                    found = Some((frame, k, r));
                }
            }
        }
        let (frame, k, repeat) = found.unwrap();
        assert_eq!((frame, k), (1, 7), "as soon as eight requests agree");
        assert_eq!((repeat.sequence.blocks().len(), repeat.position), (20, 8));
        for (k, b) in repeat.sequence.blocks().iter().enumerate() {
            assert_eq!(b.bytes, net(k as u64).0.next_multiple_of(128));
            assert_eq!(b.last, if k >= 19 { None } else { Some(k as u32 + 1) });
        }
    }

    #[test]
    fn the_network_counts_and_not_its_layers() {
        let mut f = Feed::new();
        let mut layers_found = false;
        for frame in 0..3 {
            f.request(9_000, Some(30));
            for _ in 0..6 {
                for k in 0..5 {
                    f.request(2_000 + k * 777, Some(1));
                    let found = f.detector.repeat(8).unwrap().map(|r| r.sequence.blocks().len());
                    layers_found |= found == Some(5);
                    if frame == 2 {
                        assert_eq!(found, Some(31), "the longest agreement is that of the network");
                    }
                }
            }
        }
        assert!(layers_found, "within the first turn the layer is all there is");
    }

    #[test]
    fn noise_is_no_period_and_the_memory_is_bounded() {
        let mut f = Feed::new();
        let mut state = 1u64;
        for _ in 0..3 * REMEMBERED {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f.request(state >> 44, Some(state >> 60));
            assert!(f.detector.repeat(8).unwrap().is_none());
        }
        assert!(f.detector.log.len() <= REMEMBERED);
        f.detector.free(0);
        f.detector.free(u64::MAX);
    }
}
