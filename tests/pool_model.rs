//! The pool against a model of it: random calls of every kind under every policy, with the contents, the overlaps and the
//! sums of all live blocks known. `ARENITE_FUZZ_OPS` calls (200,000 by default) from `ARENITE_FUZZ_SEED` on.

#[path = "pool_support/mod.rs"]
mod pool_support;

use core::ffi::c_void;
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

use arenite::heap::{Request, Side};
use arenite::runtime::source::Callbacks;
use arenite::runtime::{DebugOptions, Fallback, Frame, Growth, Pool, PoolConfig, Refusal, RegionSource, Tail};
use pool_support::Rng;

/// Calls between two looks at everything.
const BATCH: u64 = 2048;

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: usize,
    align: usize,
    seed: u64,
    /// Bytes that hold the pattern: those asked for, or all that can be used.
    filled: usize,
}

impl Block {
    /// A pattern that knows its place, so that bytes moved to a wrong one are seen.
    fn word(&self, at: usize) -> u64 {
        (self.seed.wrapping_add(at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn fill(&self, p: NonNull<u8>) {
        // SAFETY: the block is live, and the model fills no more than it holds.
        let all = unsafe { std::slice::from_raw_parts_mut(p.as_ptr(), self.filled) };
        for (i, part) in all.chunks_mut(8).enumerate() {
            part.copy_from_slice(&self.word(i).to_le_bytes()[..part.len()]);
        }
    }

    fn holds(&self, p: NonNull<u8>, to: usize) -> bool {
        // SAFETY: the block is live and at least `to` bytes of it were filled.
        let all = unsafe { std::slice::from_raw_parts(p.as_ptr(), to) };
        all.chunks(8).enumerate().all(|(i, part)| part == &self.word(i).to_le_bytes()[..part.len()])
    }
}

/// A frame and the sequence it asks for: mostly that of its signature.
struct Running {
    frame: Frame<Arc<Pool>>,
    script: Rng,
    steps: u64,
}

struct Model {
    pool: Arc<Pool>,
    name: String,
    rng: Rng,
    live: BTreeMap<usize, Block>,
    /// The same addresses, to draw from.
    order: Vec<usize>,
    frames: Vec<Running>,
    /// Bytes behind a block that are its own.
    tail: usize,
    /// Whether the pool's own sums are those of the live blocks: no quarantine, no frames.
    exact: bool,
    with_frames: bool,
}

unsafe extern "C" fn give(_: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
    let layout = Layout::from_size_align(bytes, align).unwrap();
    // SAFETY: a region is never empty.
    unsafe { std::alloc::alloc(layout) }.cast()
}

unsafe extern "C" fn take(_: *mut c_void, data: *mut c_void, bytes: usize, align: usize) {
    // SAFETY: `give` made it with this layout.
    unsafe { std::alloc::dealloc(data.cast(), Layout::from_size_align(bytes, align).unwrap()) };
}

/// One of the configurations, drawn from the seed.
fn config(r: &mut Rng) -> PoolConfig {
    let callbacks = Callbacks { allocate: give, deallocate: take, user: core::ptr::null_mut() };
    let growth = match r.below(4) {
        0 => Growth::None,
        1 => Growth::Exact { at_least: 0 },
        2 => Growth::Exact { at_least: 1 << 18 },
        _ => Growth::Geometric { first: 1 << 16 },
    };
    let debug = match r.below(6) {
        0 => DebugOptions::ALL,
        1 => DebugOptions { guards: true, ..DebugOptions::default() },
        2 => DebugOptions { poison: true, quarantine: 1 << 16, ..DebugOptions::default() },
        _ => DebugOptions::default(),
    };
    PoolConfig {
        source: if r.below(3) == 0 { RegionSource::Functions(callbacks) } else { RegionSource::Map },
        first_region: if matches!(growth, Growth::None) || r.below(2) == 0 { 3 << 20 } else { 0 },
        growth,
        cap: 6 << 20,
        fallback: match r.below(4) {
            0 => Fallback::System,
            1 => Fallback::Pool(Arc::new(Pool::new(pool_support::fixed(1 << 20)).unwrap())),
            _ => Fallback::None,
        },
        tail: match r.below(4) {
            0 => Tail::Readable(64),
            1 => Tail::Exclusive(1 + r.below(200) as usize),
            _ => Tail::None,
        },
        max_blocks: (r.below(4) == 0).then_some(200),
        shards: if r.below(3) == 0 { 3 } else { 1 },
        debug,
        auto_frames: r.below(4) == 0,
    }
}

fn size(r: &mut Rng) -> usize {
    let magnitude = match r.below(64) {
        0 => 20,
        1 => 17,
        2..=10 => 14,
        _ => 11,
    };
    let most = 1 << r.below(magnitude + 1);
    let size = r.below(most) as usize;
    if r.below(4) == 0 {
        size / 128 * 128
    } else {
        size
    }
}

fn align(r: &mut Rng) -> usize {
    match r.below(16) {
        0 => 1 << r.below(17),
        _ => 1 << r.below(9),
    }
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut rng = Rng((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let config = config(&mut rng);
        let with_frames = rng.below(2) == 0;
        let PoolConfig { growth, tail, max_blocks, shards, debug, auto_frames, .. } = &config;
        let name =
            format!("seed {seed} {with_frames} {growth:?} {tail:?} {max_blocks:?} {shards} {debug:?} {auto_frames}");
        let tail = match config.tail {
            Tail::Exclusive(bytes) => bytes,
            _ => 0,
        };
        let exact = config.debug == DebugOptions::default() && !with_frames && !config.auto_frames;
        let pool = Arc::new(Pool::new(config).unwrap());
        let (live, order, frames) = (BTreeMap::new(), Vec::new(), Vec::new());
        Model { pool, name, rng, live, order, frames, tail, exact, with_frames }
    }

    /// A block was handed out: nobody else has its bytes, and from now on they are known.
    fn admit(&mut self, p: NonNull<u8>, bytes: usize, align: usize) {
        let at = p.as_ptr() as usize;
        assert_eq!(at % align, 0, "{}: {bytes} bytes at {p:?} for {align}", self.name);
        let usable = self.pool.usable_size(p);
        assert!(usable.is_some_and(|u| u >= bytes), "{}: {bytes} bytes, usable {usable:?}", self.name);
        let whole = self.rng.below(2) == 0;
        let filled = if whole { usable.unwrap() } else { bytes };
        let before = self.live.range(..=at).next_back();
        assert!(before.is_none_or(|(&from, b)| from + (b.filled + self.tail).max(1) <= at), "{}: overlap", self.name);
        let after = self.live.range(at + 1..).next();
        assert!(
            after.is_none_or(|(&from, _)| at + filled.max(bytes + self.tail).max(1) <= from),
            "{}: overlap",
            self.name
        );
        let block = Block { bytes, align, seed: self.rng.below(u64::MAX), filled };
        block.fill(p);
        let (from, to) = (filled, bytes + self.tail);
        // SAFETY: the tail is the block's own.
        (from..to).for_each(|i| unsafe { p.as_ptr().wrapping_add(i).write(0xEE) });
        assert!(self.live.insert(at, block).is_none());
        self.order.push(at);
    }

    fn draw(&mut self) -> Option<(NonNull<u8>, Block)> {
        let n = self.order.len() as u64;
        let at = self.order[self.rng.below(n.max(1)).checked_rem(n)? as usize];
        Some((NonNull::new(at as *mut u8)?, self.live[&at]))
    }

    /// Takes a block out of the model, having looked at its contents.
    fn forget(&mut self, p: NonNull<u8>) -> Block {
        let at = p.as_ptr() as usize;
        let block = self.live.remove(&at).unwrap();
        let place = self.order.iter().position(|&o| o == at).unwrap();
        self.order.swap_remove(place);
        block
    }

    fn intact(&self, p: NonNull<u8>, block: &Block) {
        assert!(block.holds(p, block.filled), "{}: contents of {block:?} at {p:?}", self.name);
    }

    fn allocate(&mut self) {
        let (bytes, align) = (size(&mut self.rng), align(&mut self.rng));
        let block = match self.rng.below(8) {
            0 => {
                let most = 1 << self.rng.below(14);
                let extra = self.rng.below(most);
                let side = [Side::Auto, Side::Low, Side::High, Side::Lowest, Side::Scratch][self.rng.below(5) as usize];
                self.pool.alloc_with(&Request::new(bytes as u64, align as u64).extra(extra).side(side))
            }
            1 => self.pool.alloc_zeroed(bytes, align).inspect(|p| {
                // SAFETY: the block holds so many bytes, all written.
                let all = unsafe { std::slice::from_raw_parts(p.as_ptr(), bytes) };
                assert!(all.iter().all(|&b| b == 0), "{}: not zero", self.name);
            }),
            _ => self.pool.alloc(bytes, align),
        };
        if let Ok(p) = block {
            self.admit(p, bytes, align);
        }
    }

    fn free(&mut self) {
        let Some((p, block)) = self.draw() else { return };
        self.intact(p, &block);
        let which = self.rng.below(8);
        let frame = (!self.frames.is_empty()).then(|| self.rng.below(self.frames.len() as u64) as usize);
        // SAFETY: the model forgets a block that was freed.
        let sized = |bytes| unsafe { self.pool.free_sized(p, bytes) };
        let wrong = block.bytes + 1 + self.rng.below(5000) as usize;
        // Planned blocks know their size in granules.
        if which == 0 && self.pool.good_size(wrong) != self.pool.good_size(block.bytes) && sized(wrong).is_ok() {
            assert!(!self.exact, "{}: freed as {wrong} bytes: {block:?}", self.name);
            self.forget(p);
            return;
        }
        match (which, frame) {
            (0 | 1, _) => sized(block.bytes),
            // SAFETY: as above.
            (2..=5, Some(frame)) => unsafe { self.frames[frame].frame.free(p) },
            _ => pool_support::free(&self.pool, p),
        }
        .unwrap_or_else(|e| panic!("{}: {block:?} at {p:?}: {e}", self.name));
        self.forget(p);
        // SAFETY: nothing is live there, which is refused.
        assert!(unsafe { self.pool.free(p) }.is_err(), "{}: freed twice", self.name);
    }

    fn resize(&mut self) {
        let Some((p, block)) = self.draw() else { return };
        let bytes = match self.rng.below(8) {
            0 => 0,
            1 => block.bytes + 1,
            2 => block.bytes / 2,
            3 => usize::MAX - self.rng.below(300) as usize,
            4 => isize::MAX as usize - self.rng.below(300) as usize,
            _ => size(&mut self.rng),
        };
        let which = self.rng.below(4);
        let frame = (!self.frames.is_empty()).then(|| self.rng.below(self.frames.len() as u64) as usize);
        let new: Result<_, Refusal> = match (which, frame) {
            (0, _) => {
                let headroom = self.rng.below(4096) as usize;
                // SAFETY: the model uses the returned pointer only.
                unsafe { self.pool.realloc_with(Some(p), bytes, headroom) }
            }
            // SAFETY: as above.
            (1, Some(frame)) => unsafe { self.frames[frame].frame.realloc(p, bytes, block.align) },
            _ => pool_support::realloc(&self.pool, p, bytes),
        };
        match new {
            Ok(new) => {
                assert!(bytes < 1 << 40, "{}", self.name);
                assert!(block.holds(new, block.filled.min(bytes)), "{}: {block:?} resized to {bytes}", self.name);
                self.forget(p);
                // A frame keeps a block that gets smaller as it is, and its size.
                let kept = which == 1 && frame.is_some() && bytes <= block.bytes && new == p;
                self.admit(new, if kept { block.bytes } else { bytes }, block.align);
            }
            Err(_) => self.intact(p, &block),
        }
    }

    /// What no pool can do: refused, with everything as it was.
    fn misuse(&mut self) {
        let before = self.pool.fingerprint();
        for bytes in [usize::MAX, isize::MAX as usize, usize::MAX - 127, 1 << (usize::BITS - 2)] {
            let bytes = bytes - self.rng.below(100) as usize;
            assert!(
                self.pool.alloc(bytes, 1).is_err() && self.pool.alloc_zeroed(bytes, 4096).is_err(),
                "{}",
                self.name
            );
        }
        for align in [0, 3, 129, usize::MAX, 1 << (usize::BITS - 1), 1 << (usize::BITS - 2)] {
            assert!(self.pool.alloc(100, align).is_err(), "{}: alignment {align}", self.name);
        }
        if let Some((p, block)) = self.draw() {
            let inside = 1 + self.rng.below(block.bytes.max(2) as u64 - 1) as usize;
            if inside < block.bytes {
                // SAFETY: no block starts inside another one, which is refused.
                let freed = unsafe { self.pool.free(NonNull::new(p.as_ptr().wrapping_add(inside)).unwrap()) };
                assert!(freed.is_err(), "{}: freed from inside", self.name);
            }
            self.intact(p, &block);
        }
        let local = 0u64;
        // SAFETY: none of the pool's, which is refused.
        assert!(unsafe { self.pool.free(NonNull::from(&local).cast()) }.is_err());
        // A refusal lets the quarantine out, which is a change, and a general path may have grown its records.
        assert!(
            !self.exact || before == self.pool.fingerprint() || self.pool.stats().fallback_blocks > 0,
            "{}",
            self.name
        );
    }

    fn frames(&mut self) {
        let which = self.rng.below(12);
        let n = self.frames.len() as u64;
        if n == 0 || (which == 0 && n < 4) {
            let signature = self.rng.below(20).min(self.rng.below(20));
            let frame = Frame::begin(self.pool.clone(), signature);
            self.frames.push(Running { frame, script: Rng(signature * 7 + 1), steps: 20 + signature * 17 % 100 });
            return;
        }
        let at = self.rng.below(n) as usize;
        for _ in 0..1 + self.rng.below(8) {
            let running = &mut self.frames[at];
            if running.steps == 0 {
                self.frames.swap_remove(at).frame.end();
                return;
            }
            running.steps -= 1;
            let stray = self.rng.below(40) == 0;
            let r = if stray { &mut self.rng } else { &mut running.script };
            let (bytes, align) = (size(r), align(r));
            if let Ok(p) = running.frame.alloc(bytes, align) {
                self.admit(p, bytes, align);
            }
        }
    }

    fn check(&self) {
        self.pool.check().unwrap_or_else(|e| panic!("{}: {e}", self.name));
        for (&at, block) in &self.live {
            self.intact(NonNull::new(at as *mut u8).unwrap(), block);
        }
        let stats = self.pool.stats();
        if self.exact {
            let bytes: usize = self.live.values().map(|b| b.bytes).sum();
            let counted = (stats.heap.blocks + stats.fallback_blocks, stats.heap.requested + stats.fallback_bytes);
            assert_eq!(counted, (self.live.len() as u64, bytes as u64), "{}", self.name);
            assert_eq!(stats.heap.live + stats.heap.free, stats.heap.total, "{}", self.name);
        }
        assert!(stats.reserved <= 6 << 20, "{}: over the cap", self.name);
    }

    fn run(mut self, calls: u64) {
        let mut wanted = 100;
        for call in 0..calls {
            let full = self.order.len() as u64 > wanted;
            match self.rng.below(64) {
                0 => self.misuse(),
                1 if self.rng.below(64) == 0 => drop(self.pool.trim(self.rng.below(1 << 20))),
                2..=15 => self.resize(),
                16..=35 if self.with_frames => self.frames(),
                _ if full || self.rng.below(2) == 0 => self.free(),
                _ => self.allocate(),
            }
            if call % BATCH == 0 {
                self.check();
                wanted = 1 + self.rng.below(400);
            }
        }
        self.check();
        while !self.order.is_empty() {
            self.free();
        }
        self.frames.clear();
        self.pool.idle().unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let stats = self.pool.stats();
        assert_eq!((stats.heap.blocks, stats.heap.requested, stats.fallback_blocks), (0, 0, 0), "{}", self.name);
        self.pool.check().unwrap();
        if let Some(pool) = Arc::into_inner(self.pool) {
            assert!(pool.destroy().is_ok());
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_model_agrees_on_every_call() {
    const CALLS: u64 = 20_000;
    let (ops, seed) = (number("ARENITE_FUZZ_OPS", 200_000), number("ARENITE_FUZZ_SEED", 0));
    let rounds = ops.div_ceil(CALLS);
    for round in 0..rounds {
        // A number as a failure prints it repeats that one.
        Model::new(if seed < 1_000_000 { seed * 1_000_000 } else { seed } + round).run(CALLS);
    }
    println!("{} calls", rounds * CALLS);
}
