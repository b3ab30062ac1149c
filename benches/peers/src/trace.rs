//! Traces of the corpus, and a random mix, as operations on numbered blocks.

use std::path::PathBuf;

use arenite::heap::{rehearsal, Side};

#[derive(Clone, Copy)]
pub enum Op {
    Alloc { id: u32, bytes: u32, align: u32 },
    Free { id: u32 },
    Resize { id: u32, bytes: u32 },
}

pub struct Trace {
    pub name: String,
    pub ops: Vec<Op>,
    pub ids: usize,
    /// Raw bytes.
    pub peak: u64,
    /// For each block what an engine knows of its lifetime.
    pub life: Vec<Side>,
}

impl Trace {
    pub fn new(name: &str, ops: Vec<Op>) -> Trace {
        let ids = ops.iter().map(|op| id_of(op) as usize + 1).max().unwrap_or(0);
        let mut size = vec![0u64; ids];
        let mut life = vec![Side::Auto; ids];
        let events: Vec<rehearsal::Op> = ops.iter().map(event_of).collect();
        for (op, side) in ops.iter().zip(rehearsal::lifetime_hints(&events)) {
            if let Op::Alloc { id, .. } = *op {
                life[id as usize] = side;
            }
        }
        let (mut live, mut peak) = (0u64, 0u64);
        for op in &ops {
            let id = id_of(op) as usize;
            live -= size[id];
            size[id] = match *op {
                Op::Alloc { bytes, .. } | Op::Resize { bytes, .. } => u64::from(bytes),
                Op::Free { .. } => 0,
            };
            live += size[id];
            peak = peak.max(live);
        }
        Trace { name: name.to_string(), ops, ids, peak, life }
    }
}

pub fn id_of(op: &Op) -> u32 {
    match *op {
        Op::Alloc { id, .. } | Op::Free { id } | Op::Resize { id, .. } => id,
    }
}

fn event_of(op: &Op) -> rehearsal::Op {
    match *op {
        Op::Alloc { id, bytes, align } => rehearsal::Op::Alloc { block: id, bytes: bytes.into(), align: align.into() },
        Op::Free { id } => rehearsal::Op::Free { block: id },
        Op::Resize { id, bytes } => rehearsal::Op::Resize { block: id, bytes: bytes.into() },
    }
}

pub fn corpus() -> Vec<Trace> {
    let shared = std::env::var_os("ARENITE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let dir = shared.join("corpus/alloc_traces");
    let Ok(files) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: no traces at {}", dir.display());
        return Vec::new();
    };
    let mut paths: Vec<_> =
        files.flatten().map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "trace")).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let number = |w: &str| w.parse::<u32>().unwrap();
            let ops = text
                .lines()
                .filter_map(|line| {
                    let w: Vec<&str> = line.split_whitespace().collect();
                    match w[..] {
                        ["a", id, bytes, align] => {
                            Some(Op::Alloc { id: number(id), bytes: number(bytes), align: number(align) })
                        }
                        ["f", id] => Some(Op::Free { id: number(id) }),
                        ["r", id, bytes] => Some(Op::Resize { id: number(id), bytes: number(bytes) }),
                        _ => None,
                    }
                })
                .collect();
            Trace::new(path.file_stem().unwrap().to_str().unwrap(), ops)
        })
        .collect()
}

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % n
    }

    /// 64 bytes to 4 MiB, every doubling as likely as the others.
    pub fn size(&mut self, doublings: u64) -> u32 {
        let low = 64u64 << self.below(doublings);
        (low + self.below(low)) as u32
    }
}

/// 64 B to 4 MB, up to 256 blocks live.
pub fn random(ops: usize) -> Trace {
    let mut r = Rng(12345);
    let mut out = Vec::with_capacity(ops);
    let mut live: Vec<u32> = Vec::new();
    let mut free: Vec<u32> = (0..256).rev().collect();
    while out.len() + live.len() < ops {
        if r.below(2) == 0 && !free.is_empty() {
            let id = free.pop().unwrap();
            out.push(Op::Alloc { id, bytes: r.size(16), align: 128 });
            live.push(id);
        } else if !live.is_empty() {
            let at = r.below(live.len() as u64) as usize;
            let id = live.swap_remove(at);
            out.push(Op::Free { id });
            free.push(id);
        }
    }
    out.extend(live.into_iter().map(|id| Op::Free { id }));
    Trace::new("random", out)
}
