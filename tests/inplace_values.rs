//! In-place sharing beyond TFLite's: random graphs run by kernels that read and write an arena of tags.
//!
//! Nothing of the library decides here what is right. A kernel does with its bytes what its declaration allows, in the
//! worst order it allows: a plain one writes all outputs before it reads; one that was declared element by element reads
//! and writes in turn; views and concatenations copy unless the bytes are in place. Every read is compared with the tag
//! that was written for it.
#![allow(missing_docs)]

use arenite::graph::liveness::{Options, Pin, Policy};
use arenite::graph::lower::{lower, Lowered};
use arenite::graph::owned::{Graph, NodeSpec};
use arenite::graph::tables::{InPlace, Tables, Tensor, View};
use arenite::graph::values;
use arenite::planner::{check::check, plan, Options as PlanOptions, Plan};
use arenite::units::Align;

/// Bytes to a tag.
const UNIT: u64 = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

fn tensor(g: &mut Graph, units: u64) -> i32 {
    g.add_tensor(Tensor { bytes: Some(units * UNIT), ..Tensor::default() }).unwrap() as i32
}

fn units(g: &Graph, t: i32) -> u64 {
    g.tensor(t as usize).bytes.unwrap() / UNIT
}

/// A graph of all kinds of nodes; without `declare` the same graph with no declarations.
fn graph(seed: u64, nodes: usize, declare: bool) -> Graph {
    let (mut r, mut g) = (Random(seed), Graph::new());
    let mut known: Vec<i32> = (0..1 + r.below(2)).map(|_| tensor(&mut g, 1 + r.0 % 5)).collect();
    g.set_inputs(&known.clone());
    for _ in 0..nodes {
        let mut spec = NodeSpec::default();
        // Recent tensors are likelier, so that most are read once or twice.
        let pick = |r: &mut Random, known: &[i32]| known[known.len() - 1 - r.below(known.len().min(4))];
        let x = pick(&mut r, &known);
        let (mut inputs, mut outputs, mut scratch) = (vec![x], vec![], vec![]);
        match r.below(6) {
            0 => {
                inputs.extend((0..r.below(3)).map(|_| pick(&mut r, &known)));
                let size = 1 + r.below(5) as u64;
                outputs.push(tensor(&mut g, size));
                if r.below(3) == 0 {
                    outputs.push(tensor(&mut g, size + 1));
                    scratch.push(tensor(&mut g, 2));
                }
            }
            kind @ 1..=2 => {
                let same: Vec<i32> = known.iter().copied().filter(|&t| units(&g, t) == units(&g, x)).collect();
                if r.below(2) == 0 {
                    inputs.push(same[r.below(same.len())]);
                }
                let size = units(&g, x);
                outputs.push(tensor(&mut g, size));
                spec.inplace = InPlace(if kind == 1 { InPlace::ANY_INPUT } else { InPlace::INPUT_0 });
            }
            3 => {
                let size = units(&g, x);
                outputs.push(tensor(&mut g, size));
                spec.view = View::Outputs { input: 0, offset: 0 };
            }
            4 => {
                // Consecutive slices, perhaps not from the start nor to the end.
                let (mut at, end) = (r.below(2) as u64, units(&g, x));
                spec.view = View::Outputs { input: 0, offset: at * UNIT };
                while at < end && outputs.len() < 3 {
                    let size = 1 + r.below((end - at) as usize) as u64;
                    outputs.push(tensor(&mut g, size));
                    at += size;
                }
                if outputs.is_empty() {
                    outputs.push(tensor(&mut g, 1));
                    spec.view = View::None;
                }
            }
            _ => {
                inputs.extend((0..1 + r.below(3)).map(|_| pick(&mut r, &known)));
                let size = inputs.iter().map(|&t| units(&g, t)).sum();
                outputs.push(tensor(&mut g, size));
                spec.view = View::Inputs { offset: 0 };
            }
        }
        if !declare {
            (spec.inplace, spec.view) = (InPlace::NONE, View::None);
        }
        (spec.inputs, spec.outputs, spec.temporaries) = (&inputs, &outputs, &scratch);
        g.add_node(&spec).unwrap();
        known.extend(&outputs);
    }
    let outputs: Vec<i32> = (0..1 + r.below(2)).map(|_| known[known.len() - 1 - r.below(3.min(known.len()))]).collect();
    g.set_outputs(&outputs);
    g
}

/// The arena, and what each tensor should hold.
struct Machine<'a> {
    lowered: &'a Lowered,
    plan: &'a Plan,
    arena: Vec<u64>,
    values: Vec<Vec<u64>>,
    next: u64,
    /// Bytes that views and concatenations did not have to copy, outputs written over inputs.
    in_place: [u32; 3],
}

impl Machine<'_> {
    fn at(&self, t: i32) -> Option<usize> {
        self.lowered.offset(self.plan, 0, t as usize).map(|o| {
            assert_eq!(o % UNIT, 0);
            (o / UNIT) as usize
        })
    }

    fn holds(&self, t: i32, what: &str) {
        if let Some(at) = self.at(t) {
            let value = &self.values[t as usize];
            assert_eq!(&self.arena[at..at + value.len()], &value[..], "{what}: tensor {t}");
        }
    }

    fn fresh(&mut self, units: u64) -> Vec<u64> {
        self.next += units;
        (self.next - units..self.next).collect()
    }

    fn put(&mut self, t: i32, value: Vec<u64>) {
        if let Some(at) = self.at(t) {
            self.arena[at..at + value.len()].copy_from_slice(&value);
        }
        self.values[t as usize] = value;
    }

    /// A copy as memcpy would: refuses to overlap.
    fn copy(&mut self, from: usize, to: usize, units: usize, form: usize) {
        if from == to {
            self.in_place[form] += 1;
            return;
        }
        assert!(from + units <= to || to + units <= from, "a copy onto its own source");
        self.arena.copy_within(from..from + units, to);
    }

    fn run(&mut self, g: &Graph, i: usize) {
        let node = g.node(i);
        node.inputs.iter().for_each(|&x| self.holds(x, &format!("node {i} reads")));
        for &t in node.temporaries {
            let value = self.fresh(units(g, t));
            self.put(t, value);
        }
        match (node.view, node.inplace) {
            (View::Outputs { input, offset }, _) => {
                let x = node.inputs[input as usize];
                let mut from = (offset / UNIT) as usize;
                for &o in node.outputs {
                    let size = units(g, o) as usize;
                    let value = self.values[x as usize][from..from + size].to_vec();
                    if let (Some(a), Some(b)) = (self.at(x), self.at(o)) {
                        self.copy(a + from, b, size, 0);
                    }
                    self.values[o as usize] = value;
                    from += size;
                }
            }
            (View::Inputs { .. }, _) => {
                let o = node.outputs[0];
                let whole = node.inputs.iter().flat_map(|&x| self.values[x as usize].clone()).collect();
                let mut to = self.at(o).unwrap();
                for &x in node.inputs {
                    let size = units(g, x) as usize;
                    self.copy(self.at(x).unwrap(), to, size, 1);
                    to += size;
                }
                self.values[o as usize] = whole;
            }
            (View::None, InPlace::NONE) => {
                for &o in node.outputs {
                    let value = self.fresh(units(g, o));
                    self.put(o, value);
                }
                // It may have written everything before it read anything.
                node.inputs.iter().for_each(|&x| self.holds(x, &format!("node {i} writes first, then reads")));
            }
            _ => {
                let o = node.outputs[0];
                let value = self.fresh(units(g, o));
                let to = self.at(o).unwrap();
                self.in_place[2] += u32::from(node.inputs.iter().any(|&x| self.at(x) == Some(to)));
                for (u, &tag) in value.iter().enumerate() {
                    for &x in node.inputs {
                        let want = self.values[x as usize][u];
                        assert_eq!(self.arena[self.at(x).unwrap() + u], want, "node {i} reads element {u} of {x}");
                    }
                    self.arena[to + u] = tag;
                }
                self.values[o as usize] = value;
            }
        }
        node.outputs.iter().for_each(|&o| self.holds(o, &format!("node {i} wrote")));
    }
}

#[test]
fn no_read_sees_another_value() {
    let mut used = [0; 3];
    let (mut smaller, mut told) = (0, 0);
    for seed in 0..1200u64 {
        let mut r = Random(seed ^ 0xABCD);
        let g = graph(seed, 4 + (seed % 40) as usize, true);
        let bare = graph(seed, 4 + (seed % 40) as usize, false);
        let options = Options {
            policy: if seed % 3 == 0 { Policy::Tflm } else { Policy::Safe },
            reuse_inputs: seed % 5 == 0,
            align: Align::new(UNIT << (seed % 2)).unwrap(),
            ..Options::default()
        };
        let pins = match r.below(3) {
            0 => vec![Pin { tensor: r.below(g.tensor_count()) as u32, until: g.node_count() as u32 - 1 }],
            _ => vec![],
        };
        let graphs = [g];
        let (Ok(lowered), g) = (lower(&graphs, 0, &options, &pins), &graphs[0]) else { panic!("seed {seed}") };
        let plan = plan(&lowered.problem, &PlanOptions::default()).unwrap();
        check(&lowered.problem, &plan.offsets).unwrap();
        let plain = lower(std::slice::from_ref(&bare), 0, &options, &pins).unwrap();
        let before = arenite::planner::plan(&plain.problem, &PlanOptions::default()).unwrap();
        assert!(plan.lower_bound <= before.lower_bound, "seed {seed}");
        smaller += u32::from(plan.arena_bytes < before.arena_bytes);
        let mut m = Machine {
            lowered: &lowered,
            plan: &plan,
            arena: vec![0; (plan.arena_bytes / UNIT) as usize + 1],
            values: vec![Vec::new(); g.tensor_count()],
            next: 1,
            in_place: [0; 3],
        };
        for &t in g.inputs() {
            let value = m.fresh(units(g, t));
            m.put(t, value);
        }
        (0..g.node_count()).for_each(|i| m.run(g, i));
        let kept: Vec<i32> =
            (0..g.tensor_count()).filter(|&t| lowered.lives.own[0][t].kept).map(|t| t as i32).collect();
        for t in kept.into_iter().chain(pins.iter().map(|p| p.tensor as i32)) {
            m.holds(t, &format!("seed {seed}, the end"));
        }
        for (a, b) in used.iter_mut().zip(m.in_place) {
            *a += b;
        }
        values::prove(&graphs, 0, &pins, &lowered, &plan).unwrap();
        // The same offsets without the declarations: the follower must object wherever something is written over.
        let pinned: Vec<u32> = pins.iter().map(|p| p.tensor).collect();
        let own = &lowered.lives.own[0];
        let verdict = values::follow(&bare, own, &pinned, &|t| lowered.offset(&plan, 0, t));
        told += u32::from(verdict.is_err());
        assert!(verdict.is_err() || m.in_place == [0; 3], "seed {seed}: {:?} not noticed", m.in_place);
    }
    assert!(used.iter().all(|&n| n > 300) && smaller > 300 && told > 300, "{used:?}, {smaller} smaller, {told} told");
}
