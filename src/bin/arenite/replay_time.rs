//! A trace on a real pool: nanoseconds a call, and how the free space lies when most is live.

use std::ptr::NonNull;
use std::time::Instant;

use arenite::error::Error;
use arenite::heap::rehearsal::Op;
use arenite::runtime::{Growth, Pool, PoolConfig};

/// Rounds; the median one is reported.
const ROUNDS: usize = 7;
/// Calls in a round at least, so that the clock's own time does not show.
const CALLS: usize = 200_000;

/// What was measured.
pub struct Timing {
    /// Nanoseconds a call, all kinds mixed; the clock is read once a pass only.
    pub mean: f64,
    /// p50, p99 and p99.9 of single allocations, the clock's own time taken off.
    pub alloc: [u64; 3],
    /// The same of frees.
    pub free: [u64; 3],
    /// 1 - largest free block / free bytes when the most bytes were live; 0 where nothing was free.
    pub fragmentation: f64,
    /// Bytes handed out over bytes asked for, less 1, at the same moment.
    pub waste: f64,
}

struct Replayer<'a> {
    pool: &'a Pool,
    live: Vec<Option<NonNull<u8>>>,
}

impl Replayer<'_> {
    #[inline]
    fn step(&mut self, op: &Op) {
        match *op {
            Op::Alloc { block, bytes, align } => {
                self.live[block as usize] = self.pool.alloc(bytes as usize, align as usize).ok();
            }
            Op::Free { block } => self.free(block as usize),
            Op::Resize { block, bytes } => {
                if let Some(old) = self.live[block as usize] {
                    // SAFETY: the block is live and this replayer's alone.
                    if let Ok(new) = unsafe { self.pool.realloc(Some(old), bytes as usize) } {
                        self.live[block as usize] = Some(new);
                    }
                }
            }
            Op::Frame => {}
        }
    }

    #[inline]
    fn free(&mut self, block: usize) {
        if let Some(old) = self.live[block].take() {
            // SAFETY: nobody uses the block; nobody ever did.
            let freed = unsafe { self.pool.free(old) };
            debug_assert!(freed.is_ok());
        }
    }

    fn clear(&mut self) {
        (0..self.live.len()).for_each(|block| self.free(block));
    }
}

/// Replays the trace on a pool of `bytes` bytes.
pub fn time(ops: &[Op], bytes: u64) -> Result<Timing, Error> {
    let blocks = ops.iter().map(|op| match *op {
        Op::Alloc { block, .. } | Op::Free { block } | Op::Resize { block, .. } => block as usize + 1,
        Op::Frame => 0,
    });
    let blocks = blocks.max().unwrap_or(0);
    let size = usize::try_from(bytes).map_err(|_| Error::overflow("the pool does not fit the address space"))?;
    let config = PoolConfig { first_region: size, growth: Growth::None, ..PoolConfig::default() };
    let pool = Pool::new(config)?;
    let mut replayer = Replayer { pool: &pool, live: vec![None; blocks] };
    let (fragmentation, waste) = at_the_peak(&mut replayer, ops);
    let calls = ops.iter().filter(|op| **op != Op::Frame).count().max(1);
    let passes = CALLS.div_ceil(calls);
    let mut means = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..passes {
            ops.iter().for_each(|op| replayer.step(op));
            replayer.clear();
        }
        means.push(started.elapsed().as_nanos() as f64 / (passes * calls) as f64);
    }
    means.sort_by(f64::total_cmp);
    let (alloc, free) = single_calls(&mut replayer, ops, passes);
    Ok(Timing { mean: means[ROUNDS / 2], alloc, free, fragmentation, waste })
}

fn at_the_peak(replayer: &mut Replayer<'_>, ops: &[Op]) -> (f64, f64) {
    let (mut peak, mut out) = (0, (0.0, 0.0));
    for op in ops {
        replayer.step(op);
        if matches!(op, Op::Alloc { .. } | Op::Resize { .. }) {
            let stats = replayer.pool.stats();
            if stats.heap.requested > peak {
                peak = stats.heap.requested;
                let largest = stats.largest_free as f64 / stats.heap.free.max(1) as f64;
                let fragmentation = if stats.heap.free == 0 { 0.0 } else { 1.0 - largest };
                out = (fragmentation, stats.heap.live as f64 / peak.max(1) as f64 - 1.0);
            }
        }
    }
    replayer.clear();
    out
}

fn single_calls(replayer: &mut Replayer<'_>, ops: &[Op], passes: usize) -> ([u64; 3], [u64; 3]) {
    let mut clock: Vec<u64> = (0..10_000).map(|_| Instant::now().elapsed().as_nanos() as u64).collect();
    let own = percentiles(&mut clock)[0];
    let (mut alloc, mut free) = (Vec::new(), Vec::new());
    for _ in 0..passes {
        for op in ops {
            let started = Instant::now();
            replayer.step(op);
            let took = (started.elapsed().as_nanos() as u64).saturating_sub(own);
            match op {
                Op::Alloc { .. } => alloc.push(took),
                Op::Free { .. } => free.push(took),
                Op::Resize { .. } | Op::Frame => {}
            }
        }
        replayer.clear();
    }
    (percentiles(&mut alloc), percentiles(&mut free))
}

fn percentiles(times: &mut [u64]) -> [u64; 3] {
    if times.is_empty() {
        return [0; 3];
    }
    times.sort_unstable();
    [500, 990, 999].map(|thousandth| times[(times.len() - 1) * thousandth / 1000])
}
