//! Seeded synthetic problems shaped like networks: the same for the same seed on every machine.

use arenite::planner::{BufferSpec, Problem};
use arenite::units::Align;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }

    /// A tensor's bytes: a height, a width and a channel count as networks have them.
    fn tensor(&mut self) -> u64 {
        let (side, channels) = (1 << (2 + self.below(6)), 8 * (1 + self.below(32)));
        (side * side * channels).min(1 << 22)
    }
}

/// The families.
pub const NAMES: [&str; 7] = ["chain+skips", "u-net", "densenet", "transformer", "inception", "uniform", "staircase"];

/// About `n` buffers of family `name`, 64-byte aligned.
pub fn make(name: &str, n: usize, seed: u64) -> Problem {
    let mut r = Random(seed);
    let mut rows: Vec<(u64, u32, u32)> = Vec::with_capacity(n);
    let count = n as u32;
    match name {
        "chain+skips" => {
            for i in 0..count {
                let skip = if r.below(4) == 0 { 2 + r.below(60) as u32 } else { 1 };
                rows.push((r.tensor(), i, (i + skip).min(count)));
            }
        }
        "u-net" => {
            // Nets of 2 d + 1 levels one after the other; a level's output is read again on the way up.
            let mut step = 0;
            while rows.len() < n {
                let depth = 2 + r.below(12) as u32;
                let base = 4096 * (1 + r.below(64));
                for d in 0..depth {
                    let size = (base << 6) >> d;
                    rows.push((size, step + 2 * d, step + 2 * d + 1));
                    rows.push((size, step + 2 * d + 1, step + 4 * depth - 2 * d));
                }
                for d in 0..depth {
                    let at = step + 2 * depth + 2 * d;
                    rows.push(((base << 6) >> (depth - 1 - d), at, at + 1));
                    rows.push((((base << 6) >> (depth - 1 - d)) * 3 / 2, at + 1, at + 2));
                }
                step += 4 * depth + 1;
            }
        }
        "densenet" => {
            let mut step = 0;
            while rows.len() < n {
                let layers = 6 + r.below(26) as u32;
                let growth = 1024 * (1 + r.below(200));
                for l in 0..layers {
                    rows.push((growth, step + 2 * l, step + 2 * layers));
                    rows.push((growth * (u64::from(l) + 1) / 2 + 64, step + 2 * l, step + 2 * l + 1));
                    rows.push((growth * 4, step + 2 * l + 1, step + 2 * l + 2));
                }
                step += 2 * layers;
            }
        }
        "transformer" => {
            let (width, tokens) = (64 * (2 + r.below(12)), 32 * (1 + r.below(16)));
            let x = 4 * width * tokens;
            let mut step = 0;
            while rows.len() < n {
                rows.push((x, step, step + 6));
                for k in 0..3 {
                    rows.push((x, step + 1 + k, step + 4));
                }
                let heads = 1 + r.below(12);
                rows.push((4 * tokens * tokens * heads, step + 4, step + 5));
                rows.push((4 * tokens * tokens * heads, step + 5, step + 6));
                rows.push((x, step + 6, step + 10));
                rows.push((4 * x, step + 7, step + 8));
                rows.push((4 * x, step + 8, step + 9));
                rows.push((x, step + 9, step + 10));
                step += 10;
            }
        }
        "inception" => {
            let mut step = 0;
            while rows.len() < n {
                let branches = 2 + r.below(5);
                let input = r.tensor();
                let start = step;
                let mut outputs = Vec::new();
                for _ in 0..branches {
                    for _ in 0..1 + r.below(4) {
                        rows.push((r.tensor() / 2 + 64, step, step + 1));
                        step += 1;
                    }
                    outputs.push((r.tensor() / 4 + 64, step));
                }
                rows.push((input, start.saturating_sub(1), step));
                rows.extend(outputs.into_iter().map(|(size, at)| (size, at, step + 1)));
                step += 2;
            }
        }
        "staircase" => {
            for i in 0..count {
                rows.push((1 + r.below(1 << 16), i, i + count / 500));
            }
        }
        _ => {
            for _ in 0..n {
                let first = r.below(n as u64) as u32;
                rows.push((1 + r.below(1 << 20), first, first + r.below(40) as u32));
            }
        }
    }
    let mut p = Problem::with_capacity(rows.len());
    for (size, first, last) in rows {
        p.add_one(BufferSpec::new(size, Align::new(64).unwrap()), first, last).expect("a valid row");
    }
    p
}
