//! Random graphs, a fake kernel for every node, and one buffer per tensor to compare with.
#![allow(dead_code)] // each test program uses its part

use arenite::graph::owned::{CallKind, Graph, NodeSpec};
use arenite::graph::tables::{Allocation, Call, InPlace, Tables, Tensor};
use arenite::runtime::session::TensorId;
use arenite::units::Align;

/// A small reproducible generator (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// How many sequences to run: `ARENITE_SEQUENCES`, else `default`.
pub fn sequences(default: u64) -> u64 {
    std::env::var("ARENITE_SEQUENCES").ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Sizes: few different ones, so that tensors can share.
pub const SIZES: [u64; 9] = [0, 4, 8, 24, 24, 100, 100, 256, 1000];

fn tensor(r: &mut Random, g: &mut Graph) -> i32 {
    let align = r.chance(5).then(|| Align::new(1 << r.below(10)).unwrap());
    let bytes = Some(*r.pick(&SIZES));
    g.add_tensor(Tensor { bytes, align, ..Tensor::default() }).unwrap() as i32
}

/// A graph whose nodes read what was written before. `callees` are subgraphs it may run, with their kind of call.
pub fn graph(r: &mut Random, nodes: u64, inputs: u64, outputs: u64, callees: &[(CallKind, Vec<u32>)]) -> Graph {
    let mut g = Graph::new();
    let list: Vec<i32> = (0..inputs).map(|_| tensor(r, &mut g)).collect();
    g.set_inputs(&list);
    let mut written = list;
    let mut variables = Vec::new();
    for _ in 0..r.below(2) {
        let t = Tensor {
            bytes: Some(*r.pick(&SIZES)),
            allocation: Allocation::ArenaRwPersistent,
            variable: true,
            ..Tensor::default()
        };
        let v = g.add_tensor(t).unwrap() as i32;
        variables.push(v);
        written.push(v);
    }
    g.set_variables(&variables);
    let mut callees = callees.to_vec();
    for n in 0..nodes {
        let mut spec = NodeSpec::default();
        let reads: Vec<i32> =
            (0..1 + r.below(3)).map(|_| *r.pick(&written[written.len().saturating_sub(6)..])).collect();
        let mut writes: Vec<i32> = (0..1 + u64::from(r.chance(20))).map(|_| tensor(r, &mut g)).collect();
        let temporaries: Vec<i32> = if r.chance(20) { vec![tensor(r, &mut g)] } else { vec![] };
        written.extend(&writes);
        if r.chance(20) && !variables.is_empty() {
            writes.push(variables[0]);
        }
        spec.inplace = *r.pick(&[
            InPlace::NONE,
            InPlace(InPlace::INPUT_0),
            InPlace(InPlace::INPUT_0 | InPlace::INPUT_1),
            InPlace(InPlace::INPUT_1 | InPlace::INPUT_2),
            InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED),
        ]);
        spec.align = r.chance(10).then(|| Align::new(1 << r.below(9)).unwrap());
        let call = if n > 0 && r.chance(40) { callees.pop() } else { None };
        if let Some((kind, subgraphs)) = &call {
            (spec.call, spec.subgraphs, spec.inplace) = (*kind, subgraphs, InPlace::NONE);
        }
        (spec.inputs, spec.outputs, spec.temporaries) = (&reads, &writes, &temporaries);
        g.add_node(&spec).unwrap();
    }
    let from = written.len().saturating_sub(outputs as usize);
    g.set_outputs(&written[from..]);
    g
}

/// What was read: subgraph, node, tensor and the hash of its contents.
pub type Trace = Vec<(u32, u32, u32, u64)>;

/// Where a tensor's bytes are while a graph runs.
pub trait Memory {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize);
    fn before(&mut self, _subgraph: u32, _node: u32) {}
    fn after(&mut self, _subgraph: u32, _node: u32) {}
}

/// One buffer per tensor.
#[derive(Default)]
pub struct Apart(pub Vec<Vec<Vec<u8>>>);

impl Memory for Apart {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize) {
        let b = &mut self.0[id.subgraph as usize][id.tensor as usize];
        (b.as_mut_ptr(), b.len())
    }
}

fn read(m: &mut dyn Memory, id: TensorId) -> Vec<u8> {
    let (data, bytes) = m.at(id);
    let data = if bytes == 0 { core::ptr::NonNull::dangling().as_ptr() } else { data };
    // SAFETY: the memory says that so many bytes are there.
    unsafe { std::slice::from_raw_parts(data, bytes) }.to_vec()
}

pub fn write(m: &mut dyn Memory, id: TensorId, data: &[u8]) {
    let (to, bytes) = m.at(id);
    let n = bytes.min(data.len());
    if n > 0 {
        // SAFETY: `n` is at most the tensor's size.
        unsafe { std::ptr::copy(data.as_ptr(), to, n) };
    }
}

pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut r = Random::new(seed);
    (0..bytes).map(|_| r.next() as u8).collect()
}

pub fn fill(m: &mut dyn Memory, id: TensorId, seed: u64) {
    let bytes = m.at(id).1;
    write(m, id, &pattern(seed, bytes));
}

pub fn hash(m: &mut dyn Memory, id: TensorId) -> u64 {
    read(m, id).iter().fold(bytes_seed(id), |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

fn bytes_seed(id: TensorId) -> u64 {
    0xCBF2_9CE4 ^ (u64::from(id.subgraph) << 32) ^ u64::from(id.tensor)
}

/// One node: scratch is filled and must still hold that at the end; what it read goes to `trace` and decides what it
/// writes. A node that leaves bytes unmodified copies its first input.
pub fn kernel(graphs: &[Graph], g: u32, n: u32, choice: u64, m: &mut dyn Memory, trace: &mut Trace) {
    let node = graphs[g as usize].node(n as usize);
    let id = |t: i32| TensorId::new(g, t as u32);
    m.before(g, n);
    for &t in node.temporaries {
        fill(m, id(t), 77);
    }
    let seen: Vec<u64> = node.inputs.iter().map(|&t| hash(m, id(t))).collect();
    trace.extend(node.inputs.iter().zip(&seen).map(|(&t, &h)| (g, n, t as u32, h)));
    let first = read(m, id(node.inputs[0]));
    match node.call {
        Call::None => {
            let seed = seen.iter().fold(u64::from(n), |a, b| a.rotate_left(9) ^ b);
            for (k, &t) in node.outputs.iter().enumerate() {
                if k == 0 && node.inplace.unmodified() {
                    fill(m, id(t), seed);
                    write(m, id(t), &first);
                } else {
                    fill(m, id(t), seed ^ (k as u64) << 40);
                }
            }
        }
        call => call_subgraphs(graphs, g, n, call, choice, m, trace),
    }
    for &t in node.temporaries {
        let bytes = m.at(id(t)).1;
        trace.push((g, n, t as u32, u64::from(read(m, id(t)) == pattern(77, bytes))));
    }
    m.after(g, n);
}

fn call_subgraphs(
    graphs: &[Graph],
    g: u32,
    n: u32,
    call: Call<'_>,
    choice: u64,
    m: &mut dyn Memory,
    trace: &mut Trace,
) {
    let node = graphs[g as usize].node(n as usize);
    let pass = |from: Vec<TensorId>, to: Vec<TensorId>, m: &mut dyn Memory| {
        let data: Vec<Vec<u8>> = from.iter().map(|&f| read(m, f)).collect();
        for (i, t) in to.into_iter().enumerate() {
            // What the source does not cover is not left to chance.
            fill(m, t, 5);
            write(m, t, data.get(i).map_or(&[], |d| d));
        }
    };
    let ids = |g: u32, list: &[i32]| list.iter().map(|&t| TensorId::new(g, t as u32)).collect::<Vec<_>>();
    let ins = |s: u32| ids(s, graphs[s as usize].inputs());
    let outs = |s: u32| ids(s, graphs[s as usize].outputs());
    let plain = |s: u32, m: &mut dyn Memory, trace: &mut Trace| run(graphs, s, choice, m, trace);
    match call {
        Call::Branch(list) => {
            let s = list[(choice % list.len() as u64) as usize];
            pass(ids(g, node.inputs), ins(s), m);
            plain(s, m, trace);
            pass(outs(s), ids(g, node.outputs), m);
        }
        Call::Sequence(list) => {
            for &s in list {
                pass(ids(g, node.inputs), ins(s), m);
                plain(s, m, trace);
                pass(outs(s), ids(g, node.outputs), m);
            }
        }
        Call::Loop(list) => {
            let (condition, body) = (list[0], list[1]);
            pass(ids(g, node.inputs), ins(condition), m);
            pass(ids(g, node.inputs), ins(body), m);
            for _ in 0..choice % 3 {
                plain(condition, m, trace);
                trace.extend(outs(condition).iter().map(|&t| (t.subgraph, n, t.tensor, hash(m, t))));
                plain(body, m, trace);
                pass(outs(body), ins(condition), m);
                pass(outs(body), ins(body), m);
            }
            pass(ins(body), ids(g, node.outputs), m);
        }
        Call::None => {}
    }
}

/// All nodes of a graph in order.
pub fn run(graphs: &[Graph], g: u32, choice: u64, m: &mut dyn Memory, trace: &mut Trace) {
    for n in 0..graphs[g as usize].node_count() as u32 {
        kernel(graphs, g, n, choice, m, trace);
    }
}
