//! Seeded graphs of 1000 nodes, from narrow to as wide as they get.

use arenite::graph::owned::{Graph, NodeSpec};
use arenite::graph::tables::Tensor;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

struct Maker {
    graph: Graph,
    random: Random,
}

impl Maker {
    fn new(seed: u64) -> Maker {
        let mut m = Maker { graph: Graph::new(), random: Random(seed) };
        let input = m.tensor();
        m.graph.set_inputs(&[input]);
        m
    }

    fn tensor(&mut self) -> i32 {
        let bytes = Some(128 * (1 + self.random.below(64)));
        self.graph.add_tensor(Tensor { bytes, ..Tensor::default() }).unwrap_or(0) as i32
    }

    fn node(&mut self, inputs: &[i32]) -> i32 {
        let output = self.tensor();
        let spec = NodeSpec { inputs, outputs: &[output], ..NodeSpec::default() };
        self.graph.add_node(&spec).expect("a node");
        output
    }

    fn done(mut self, output: i32) -> Graph {
        self.graph.set_outputs(&[output]);
        self.graph
    }
}

/// `width` chains between one input and one join, their nodes in turn.
fn chains(seed: u64, width: usize, nodes: usize) -> Graph {
    let mut m = Maker::new(seed);
    let mut ends = vec![0; width];
    for i in 0..nodes - 1 {
        let at = i % width;
        ends[at] = m.node(&[ends[at]]);
    }
    let last = m.node(&ends);
    m.done(last)
}

/// Blocks of parallel branches with a join each, one after the other, as in Inception and NASNet cells.
fn cells(seed: u64, nodes: usize) -> Graph {
    let mut m = Maker::new(seed);
    let (mut at, mut left) = (0, nodes);
    while left > 1 {
        let branches = (2 + m.random.below(6) as usize).min(left - 1);
        let mut ends = Vec::new();
        left -= 1;
        for _ in 0..branches {
            let depth = (1 + m.random.below(4) as usize).min(left);
            let mut end = at;
            for _ in 0..depth {
                end = m.node(&[end]);
            }
            left -= depth;
            ends.push(end);
        }
        at = m.node(&ends);
    }
    m.done(at)
}

/// Every node reads one or two of the `window` last tensors.
fn window(seed: u64, window: u64, nodes: usize) -> Graph {
    let mut m = Maker::new(seed);
    let mut known = vec![0];
    for _ in 0..nodes {
        let pick = |m: &mut Maker, known: &[i32]| {
            let back = m.random.below(window.min(known.len() as u64)) as usize;
            known[known.len() - 1 - back]
        };
        let a = pick(&mut m, &known);
        let b = pick(&mut m, &known);
        let both = [a, b];
        let next = m.node(if a == b { &both[..1] } else { &both });
        known.push(next);
    }
    let last = known[known.len() - 1];
    m.done(last)
}

/// A contracting and an expanding path with a skip at every level, several times over.
fn skips(seed: u64, depth: usize, nodes: usize) -> Graph {
    let mut m = Maker::new(seed);
    let mut at = 0;
    for _ in 0..nodes / (2 * depth) {
        let mut levels = Vec::new();
        for _ in 0..depth {
            at = m.node(&[at]);
            levels.push(at);
        }
        for level in levels.into_iter().rev() {
            at = m.node(&[at, level]);
        }
    }
    m.done(at)
}

/// A binary tree that reduces as many leaves to one, level by level.
fn tree(seed: u64, leaves: usize) -> Graph {
    let mut m = Maker::new(seed);
    let mut level: Vec<i32> = (0..leaves).map(|_| m.node(&[0])).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| m.node(pair)).collect();
    }
    let last = level[0];
    m.done(last)
}

/// Name and graph.
pub fn all(nodes: usize) -> Vec<(String, Graph)> {
    let mut out = Vec::new();
    for seed in 1..=3 {
        for width in [2, 8, 32, 128, 500] {
            out.push((format!("chains_{width}_{seed}"), chains(seed, width, nodes)));
        }
        out.push((format!("cells_{seed}"), cells(seed, nodes)));
        for reach in [4, 16, 64, 1000] {
            out.push((format!("window_{reach}_{seed}"), window(seed, reach, nodes)));
        }
        out.push((format!("skips_50_{seed}"), skips(seed, 50, nodes)));
        out.push((format!("tree_{seed}"), tree(seed, nodes / 2)));
    }
    out
}
