//! Our pool beside its peers, in one process, alternated. Figures are CPU time of the thread and TSC reads; no figure is
//! asserted. Columns are those of the goals.

mod misuse;
mod peers;
mod tails;
mod threads;
mod trace;

use std::ptr::NonNull;

use arenite::heap::frame::FramePlan;
use arenite::heap::{Request, Side};
use arenite::planner::sequence::Sequence;
use arenite::runtime::{Growth, Pool, PoolConfig};
use peers::{Handles, Offsets, Peer};
use trace::{corpus, random, Op, Trace};

fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[inline]
fn tsc() -> u64 {
    // SAFETY: every x86-64 has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter, once every store before it has left: the note of the call before goes to a line of the cache that may be
/// far away, and a call that begins with an atomic operation would wait for it.
#[inline]
fn settled() -> u64 {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    tsc()
}

fn ticks_per_ns() -> f64 {
    let (t, n) = (tsc(), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_millis(50));
    (tsc() - t) as f64 / n.elapsed().as_nanos() as f64
}

fn pass<P: Peer>(peer: &mut P, trace: &Trace) {
    for op in &trace.ops {
        match *op {
            Op::Alloc { id, bytes, align } => assert!(peer.alloc(id as usize, bytes as usize, align as usize)),
            Op::Free { id } => peer.free(id as usize),
            Op::Resize { id, bytes } => assert!(peer.resize(id as usize, bytes as usize)),
        }
    }
}

/// Passes whose calls are timed: some 50,000 calls, so that the slowest 0.1 % of them are more than a handful. The first
/// ones, in which caches and predictions are cold, count like the others.
fn timed_passes(trace: &Trace) -> usize {
    (50_000 / trace.ops.len()).max(4)
}

/// Room for the ticks of so many passes. Written to beforehand: a page fault between two calls makes the next one slow,
/// whoever serves it.
fn touched(trace: &Trace) -> Vec<u64> {
    let mut ticks = vec![1; timed_passes(trace) * trace.ops.len()];
    ticks.clear();
    ticks
}

/// TSC ticks of every alloc and every free of one pass.
fn percentiles<P: Peer>(peer: &mut P, trace: &Trace, allocs: &mut Vec<u64>, frees: &mut Vec<u64>) {
    for op in &trace.ops {
        let from = settled();
        match *op {
            Op::Alloc { id, bytes, align } => {
                peer.alloc(id as usize, bytes as usize, align as usize);
                allocs.push(tsc() - from);
            }
            Op::Free { id } => {
                peer.free(id as usize);
                frees.push(tsc() - from);
            }
            Op::Resize { id, bytes } => drop(peer.resize(id as usize, bytes as usize)),
        }
    }
}

struct Row {
    name: &'static str,
    means: Vec<f64>,
    tails: Vec<[f64; 6]>,
}

trait Runner {
    fn mean(&mut self, trace: &Trace, passes: u32) -> f64;
    fn tails(&mut self, trace: &Trace) -> (Vec<u64>, Vec<u64>);
    /// Ticks of every call of one pass.
    fn timed(&mut self, trace: &Trace, ticks: &mut Vec<u64>);
}

impl<P: Peer> Runner for P {
    fn mean(&mut self, trace: &Trace, passes: u32) -> f64 {
        let from = cpu_ns();
        (0..passes).for_each(|_| pass(self, trace));
        (cpu_ns() - from) as f64 / (f64::from(passes) * trace.ops.len() as f64)
    }

    fn tails(&mut self, trace: &Trace) -> (Vec<u64>, Vec<u64>) {
        let (mut a, mut f) = (touched(trace), touched(trace));
        for _ in 0..timed_passes(trace) {
            percentiles(self, trace, &mut a, &mut f);
        }
        a.sort_unstable();
        f.sort_unstable();
        (a, f)
    }

    fn timed(&mut self, trace: &Trace, ticks: &mut Vec<u64>) {
        for op in &trace.ops {
            let from = settled();
            match *op {
                Op::Alloc { id, bytes, align } => drop(self.alloc(id as usize, bytes as usize, align as usize)),
                Op::Free { id } => self.free(id as usize),
                Op::Resize { id, bytes } => drop(self.resize(id as usize, bytes as usize)),
            }
            ticks.push(tsc() - from);
        }
    }
}

/// Recorded frames of our pool: a pass is a frame.
struct Frames {
    pool: Pool,
    table: Vec<(*mut u8, usize, usize)>,
}

impl Runner for Frames {
    fn mean(&mut self, trace: &Trace, passes: u32) -> f64 {
        let from = cpu_ns();
        (0..passes).for_each(|_| self.pass(trace, None));
        (cpu_ns() - from) as f64 / (f64::from(passes) * trace.ops.len() as f64)
    }

    fn tails(&mut self, trace: &Trace) -> (Vec<u64>, Vec<u64>) {
        let mut both = (touched(trace), touched(trace));
        for _ in 0..timed_passes(trace) {
            self.pass(trace, Some(&mut both));
        }
        both.0.sort_unstable();
        both.1.sort_unstable();
        both
    }

    fn timed(&mut self, trace: &Trace, ticks: &mut Vec<u64>) {
        let mut both = (Vec::with_capacity(trace.ops.len()), Vec::with_capacity(trace.ops.len()));
        self.pass(trace, Some(&mut both));
        // In the order of the trace.
        let (mut a, mut f) = (both.0.into_iter(), both.1.into_iter());
        ticks.extend(trace.ops.iter().map(|op| match op {
            Op::Alloc { .. } => a.next().unwrap_or(0),
            Op::Free { .. } => f.next().unwrap_or(0),
            Op::Resize { .. } => 0,
        }));
    }
}

impl Frames {
    fn pass(&mut self, trace: &Trace, mut ticks: Option<&mut (Vec<u64>, Vec<u64>)>) {
        let mut frame = self.pool.frame_begin(1);
        for op in &trace.ops {
            let from = if ticks.is_some() { settled() } else { 0 };
            match *op {
                Op::Alloc { id, bytes, align } => {
                    let p = frame.alloc(bytes as usize, align as usize).unwrap();
                    self.table[id as usize] = (p.as_ptr(), bytes as usize, align as usize);
                    if let Some(t) = &mut ticks {
                        t.0.push(tsc() - from);
                    }
                }
                Op::Free { id } => {
                    let p = NonNull::new(self.table[id as usize].0).unwrap();
                    // SAFETY: not used afterwards.
                    unsafe { frame.free(p) }.unwrap();
                    if let Some(t) = &mut ticks {
                        t.1.push(tsc() - from);
                    }
                }
                Op::Resize { id, bytes } => {
                    let (p, _, align) = self.table[id as usize];
                    // SAFETY: only the returned pointer is used.
                    let p = unsafe { frame.realloc(NonNull::new(p).unwrap(), bytes as usize, align) }.unwrap();
                    self.table[id as usize] = (p.as_ptr(), bytes as usize, align);
                }
            }
        }
    }
}

fn at(sorted: &[u64], share: f64) -> u64 {
    sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

fn geomean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(s, n), v| (s + v.max(0.5).ln(), n + 1));
    (sum / f64::from(n.max(1))).exp()
}

/// Everyone, each with memory for the trace.
fn runners(trace: &Trace) -> Vec<(&'static str, Box<dyn Runner>)> {
    let bytes = trace.peak as usize * 5 / 2 + (8 << 20);
    let ids = trace.ids;
    let config = PoolConfig { first_region: 2 * bytes, growth: Growth::None, ..PoolConfig::default() };
    let frames = Frames { pool: Pool::new(config).unwrap(), table: vec![(std::ptr::null_mut(), 0, 0); ids] };
    vec![
        ("arenite pool (lock, pointers)", Box::new(peers::arenite(bytes, ids))),
        ("arenite heap (handles)", Box::new(Handles::new(bytes, ids))),
        ("arenite frames (recorded)", Box::new(frames)),
        ("rlsf", Box::new(peers::rlsf(bytes, ids).unwrap())),
        ("talc", Box::new(peers::talc(bytes, ids).unwrap())),
        ("offset-allocator", Box::new(Offsets::new(bytes, ids))),
        ("buddy_system_allocator", Box::new(peers::buddy(bytes.next_power_of_two() * 2, ids))),
        ("linked_list_allocator", Box::new(peers::linked_list(bytes, ids))),
        ("glibc", Box::new(peers::glibc(ids))),
        ("mimalloc", Box::new(peers::mimalloc(ids))),
        ("jemalloc", Box::new(peers::jemalloc(ids))),
    ]
}

fn speed(traces: &[Trace], rounds: usize) {
    let per_ns = ticks_per_ns();
    // The cost of reading the counter.
    let reader = (0..10_000).map(|_| (tsc(), tsc())).map(|(a, b)| b - a).min().unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for trace in traces {
        let mut all = runners(trace);
        let passes = (200_000 / trace.ops.len() as u32).max(1);
        let mut means: Vec<Vec<f64>> = vec![Vec::new(); all.len()];
        for round in 0..=rounds {
            for (i, (_, peer)) in all.iter_mut().enumerate() {
                let mean = peer.mean(trace, passes);
                // The first round warms up, and records the frames.
                if round > 0 {
                    means[i].push(mean);
                }
            }
        }
        for (i, (name, peer)) in all.iter_mut().enumerate() {
            means[i].sort_by(f64::total_cmp);
            let (a, f) = peer.tails(trace);
            let ns = |ticks: u64| ticks.saturating_sub(reader) as f64 / per_ns;
            let tails = [at(&a, 0.5), at(&a, 0.99), at(&a, 0.999), at(&f, 0.5), at(&f, 0.99), at(&f, 0.999)].map(ns);
            if rows.len() <= i {
                rows.push(Row { name, means: Vec::new(), tails: Vec::new() });
            }
            rows[i].means.push(means[i][means[i].len() / 2]);
            rows[i].tails.push(tails);
        }
    }
    print!("{:31}", "mean ns a call");
    traces.iter().for_each(|t| print!(" {:>9.9}", t.name));
    println!("  DNN geo | alloc p50   p99 p99.9 | free p50   p99 p99.9");
    for row in rows {
        print!("{:31}", row.name);
        row.means.iter().for_each(|m| print!(" {m:9.1}"));
        let dnn = geomean(row.means.iter().zip(traces).filter(|(_, t)| t.name != "random").map(|(m, _)| *m));
        let tail: Vec<f64> = (0..6).map(|k| geomean(row.tails.iter().map(|t| t[k]))).collect();
        println!(
            "  {dnn:7.1} | {:9.0} {:5.0} {:5.0} | {:8.0} {:5.0} {:5.0}",
            tail[0], tail[1], tail[2], tail[3], tail[4], tail[5]
        );
    }
    println!("goals: DNN <= 25 (pool), <= 8 (frames); random <= 45; alloc p99/p99.9 <= 65/170 (handles), 110/280 (pool); free <= 50/135");
}

/// Whether a fresh peer serves the trace three times in a row.
fn serves<P: Peer>(mut peer: P, trace: &Trace) -> bool {
    (0..3).all(|_| {
        trace.ops.iter().all(|op| match *op {
            Op::Alloc { id, bytes, align } => peer.alloc(id as usize, bytes as usize, align as usize),
            Op::Free { id } => {
                peer.free(id as usize);
                true
            }
            Op::Resize { id, bytes } => peer.resize(id as usize, bytes as usize),
        })
    })
}

/// The smallest pool over the peak, to a thousandth. Not monotone in theory; the largest failing size below counts.
fn least(trace: &Trace, ok: impl Fn(usize) -> bool) -> f64 {
    let (mut low, mut high) = (trace.peak as usize, trace.peak as usize * 4 + (1 << 20));
    while high - low > trace.peak as usize / 1000 {
        let middle = low + (high - low) / 2;
        if ok(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high as f64 / trace.peak as f64
}

fn recorded(trace: &Trace) -> f64 {
    let mut sequence = Sequence::new();
    let mut index = vec![0; trace.ids];
    for op in &trace.ops {
        match *op {
            Op::Alloc { id, bytes, align } => {
                index[id as usize] = sequence.alloc(bytes.into(), align.into()).unwrap();
            }
            Op::Free { id } => sequence.free(index[id as usize]).unwrap(),
            Op::Resize { id, bytes } => sequence.grow(index[id as usize], bytes.into()).unwrap(),
        }
    }
    FramePlan::new(&sequence).unwrap().bytes() as f64 / trace.peak as f64
}

fn memory(traces: &[Trace]) {
    println!(
        "{:22} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>6} {:>6} {:>7} {:>7} {:>6}   (smallest pool over peak live)",
        "", "arenite", "2 shards", "one-end", "hints", "recorded", "rlsf", "talc", "offset", "l_list", "buddy"
    );
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); 10];
    for t in traces {
        let heap = |bytes: usize, large: Option<u64>, hints: bool| {
            let mut peer = Handles::new(bytes, t.ids);
            if let Some(large) = large {
                peer.heap.set_large(large);
            }
            if hints {
                peer.life.clone_from(&t.life);
            }
            peer
        };
        let row = [
            least(t, |b| serves(heap(b, None, false), t)),
            least(t, |b| serves(peers::sharded(peers::Region::new(b, false), t.ids, 2), t)),
            least(t, |b| serves(heap(b, Some(0), false), t)),
            least(t, |b| serves(heap(b, None, true), t)),
            if t.name == "random" { f64::NAN } else { recorded(t) },
            least(t, |b| peers::rlsf(b, t.ids).is_some_and(|p| serves(p, t))),
            least(t, |b| peers::talc(b, t.ids).is_some_and(|p| serves(p, t))),
            least(t, |b| serves(Offsets::new(b, t.ids), t)),
            least(t, |b| serves(peers::linked_list(b, t.ids), t)),
            least(t, |b| serves(peers::buddy(b, t.ids), t)),
        ];
        println!(
            "{:22} {:8.3} {:8.3} {:8.3} {:8.3} {:8.3} | {:6.3} {:6.3} {:7.3} {:7.3} {:6.3}",
            t.name, row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9]
        );
        if t.name != "random" {
            row.iter().zip(&mut columns).for_each(|(r, c)| c.push(*r));
        }
    }
    print!("{:22}", "geomean DNN");
    columns.iter().for_each(|c| print!(" {:8.3}", geomean(c.iter().copied())));
    println!("\ngoals: <= 1.13 without hints, <= 1.06 with, <= 1.02 recorded");
}

/// 16 buffers that grow by one token at a time, each to 4 MiB.
fn kv() {
    const STEP: usize = 16 << 10;
    const TOKENS: usize = 256;
    println!("growing K/V: 16 buffers, {TOKENS} steps of {STEP} bytes; us a call, copied MiB");
    // As the peers' memory, ours is touched beforehand: page faults would hide everything else.
    let memory = peers::Region::new(160 << 20, true);
    let run = |name: &str, headroom: usize, side: Side| {
        let config = PoolConfig { growth: Growth::None, ..PoolConfig::default() };
        // SAFETY: the memory outlives the pool, and one pool uses it at a time.
        let pool = unsafe { Pool::over(NonNull::new(memory.start).unwrap(), memory.bytes, config) }.unwrap();
        let first = Request::new(STEP as u64, 128).side(side);
        let mut buffers: Vec<NonNull<u8>> = (0..16).map(|_| pool.alloc_with(&first).unwrap()).collect();
        let from = cpu_ns();
        for token in 2..=TOKENS {
            for b in &mut buffers {
                // SAFETY: only the returned pointer is used.
                *b = unsafe { pool.realloc_with(Some(*b), token * STEP, headroom) }.unwrap();
                // SAFETY: the block holds so many bytes.
                unsafe { b.as_ptr().add((token - 1) * STEP).write(1) };
            }
        }
        let ns = (cpu_ns() - from) as f64 / (16 * (TOKENS - 1)) as f64;
        let s = pool.stats();
        println!(
            "{name:22} {:7.2} us  copied {:6} MiB  live/asked {:.3}",
            ns / 1e3,
            s.moved_bytes >> 20,
            s.heap.peak_live as f64 / s.heap.peak_requested as f64
        );
        for b in buffers {
            // SAFETY: not used afterwards.
            unsafe { pool.free(b) }.unwrap();
        }
    };
    run("arenite, no hint", 0, Side::Auto);
    run("arenite, growing", 0, Side::Grow);
    run("arenite, 16 KiB room", 16 << 10, Side::Auto);
    run("arenite, 256 KiB room", 256 << 10, Side::Auto);
    run("arenite, 1 MiB room", 1 << 20, Side::Auto);
    fn peer<P: Peer>(name: &str, mut p: P) {
        (0..16).for_each(|i| assert!(p.alloc(i, STEP, 128)));
        let from = cpu_ns();
        for token in 2..=TOKENS {
            (0..16).for_each(|i| assert!(p.resize(i, token * STEP)));
        }
        let ns = (cpu_ns() - from) as f64 / (16 * (TOKENS - 1)) as f64;
        println!("{name:22} {:7.2} us", ns / 1e3);
        (0..16).for_each(|i| p.free(i));
    }
    peer("rlsf", peers::rlsf(160 << 20, 16).unwrap());
    peer("talc", peers::talc(160 << 20, 16).unwrap());
    peer("glibc", peers::glibc(16));
    peer("mimalloc", peers::mimalloc(16));
    peer("jemalloc", peers::jemalloc(16));
    println!("goal: <= 3.5 us with hint, <= 1.25x");
}

fn resident_kib() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).and_then(|w| w.parse::<i64>().ok()).unwrap_or(0) * 4
}

fn trim(traces: &[Trace]) {
    let before = resident_kib();
    let pool = Pool::new(PoolConfig::default()).unwrap();
    for t in traces {
        let mut table = vec![(std::ptr::null_mut::<u8>(), 0usize, 0usize); t.ids];
        for op in &t.ops {
            match *op {
                Op::Alloc { id, bytes, align } => {
                    let p = pool.alloc(bytes as usize, align as usize).unwrap();
                    // SAFETY: the block holds so many bytes.
                    unsafe { p.write_bytes(1, bytes as usize) };
                    table[id as usize] = (p.as_ptr(), bytes as usize, align as usize);
                }
                // SAFETY: not used afterwards.
                Op::Free { id } => unsafe { pool.free(NonNull::new(table[id as usize].0).unwrap()) }.unwrap(),
                Op::Resize { id, bytes } => {
                    // SAFETY: only the returned pointer is used.
                    let p = unsafe { pool.realloc(NonNull::new(table[id as usize].0), bytes as usize) }.unwrap();
                    table[id as usize].0 = p.as_ptr();
                }
            }
        }
        let held = resident_kib() - before;
        let given = pool.trim(0);
        println!(
            "{:22} resident {held:7} KiB, after trim {:6} KiB ({given} bytes given back)",
            t.name,
            resident_kib() - before
        );
    }
    println!("goal: <= 1 MiB after trim");
}

/// Passes of one peer over one trace and nothing else, for a profiler.
fn one(traces: &[Trace], peer: &str, name: &str, passes: u32) {
    let trace = traces.iter().find(|t| t.name.starts_with(name)).expect("no such trace");
    let bytes = trace.peak as usize * 5 / 2 + (8 << 20);
    let config = PoolConfig { first_region: 2 * bytes, growth: Growth::None, ..PoolConfig::default() };
    let ns = match peer {
        "pool" => peers::arenite(bytes, trace.ids).mean(trace, passes),
        "heap" => Handles::new(bytes, trace.ids).mean(trace, passes),
        "rlsf" => peers::rlsf(bytes, trace.ids).unwrap().mean(trace, passes),
        _ => Frames { pool: Pool::new(config).unwrap(), table: vec![(std::ptr::null_mut(), 0, 0); trace.ids] }
            .mean(trace, passes),
    };
    println!("{peer} {name}: {ns:.1} ns a call, {} calls", u64::from(passes) * trace.ops.len() as u64);
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    if what == "misuse" {
        return misuse::table();
    }
    if what == "misuse-one" {
        let arg = |n: usize| std::env::args().nth(n).unwrap_or_default();
        misuse::one(&arg(2), arg(3).parse().unwrap_or(0));
    }
    let mut traces = corpus();
    if what == "one" {
        let arg = |n: usize| std::env::args().nth(n).unwrap_or_default();
        traces.push(random(1_000_000));
        return one(&traces, &arg(2), &arg(3), arg(4).parse().unwrap_or(1));
    }
    if what == "tails" {
        let arg = |n: usize| std::env::args().nth(n).unwrap_or_default();
        traces.push(random(20_000));
        traces.retain(|t| t.name.starts_with(&arg(3)));
        let chosen = arg(2);
        let some = |t| runners(t).into_iter().filter(|(name, _)| name.contains(&chosen)).collect();
        return tails::tails(&traces, ticks_per_ns(), arg(4).parse().unwrap_or(0), &some);
    }
    if what.is_empty() || what == "trim" {
        trim(&traces);
    }
    if what.is_empty() || what == "memory" {
        traces.push(random(100_000));
        memory(&traces);
        traces.pop();
    }
    if what.is_empty() || what == "kv" {
        kv();
    }
    if what.is_empty() || what == "threads" {
        let arg = |n: usize| std::env::args().nth(n).unwrap_or_default();
        threads::threads(&arg(2), arg(3).parse().unwrap_or(0));
    }
    if what.is_empty() || what == "speed" {
        traces.push(random(1_000_000));
        speed(&traces, 5);
    }
}
