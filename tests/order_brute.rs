//! Orders of small random graphs against all others: nothing allowed is better where the outcome says so, nothing that
//! has to stay in order moves, and a run in the new order computes what the old one did, in the bytes the plan gives it.
#![allow(missing_docs)]

use arenite::graph::liveness::{self, Policy};
use arenite::graph::lower::lower;
use arenite::graph::order::{order, permuted, Judge, Options, Outcome, Permuted, Rules, State, Touch, Why};
use arenite::graph::owned::{Graph, NodeSpec};
use arenite::graph::tables::{InPlace, Tables, Tensor};
use arenite::planner::{self, plan, Strategy};
use arenite::units::Align;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// A random graph of `n` nodes with in-place flags, temporaries, several outputs, and uses of state.
fn graph(n: usize, r: &mut Random) -> (Graph, Rules) {
    let mut g = Graph::new();
    let mut rules = Rules::default();
    let tensor = |g: &mut Graph, bytes: u64| {
        let t = Tensor { bytes: Some(bytes), ..Tensor::default() };
        g.add_tensor(t).unwrap() as i32
    };
    let sizes = [8, 8, 16, 24, 40, 64];
    let mut known = vec![tensor(&mut g, 8), tensor(&mut g, 24)];
    g.set_inputs(&[0, 1]);
    for v in 0..n {
        let inputs: Vec<i32> =
            (0..1 + r.below(3)).map(|_| known[known.len() - 1 - r.below(known.len().min(5))]).collect();
        let same = g.tensor(inputs[0] as usize).bytes.unwrap();
        let kind = r.below(4);
        let inplace = match kind {
            0 => InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED),
            1 => InPlace(InPlace::INPUT_0 | InPlace::INPUT_1),
            _ => InPlace::NONE,
        };
        let first = tensor(&mut g, if kind < 2 { same } else { sizes[r.below(6)] });
        let mut outputs = vec![first];
        if kind == 3 && r.below(3) == 0 {
            outputs.push(tensor(&mut g, sizes[r.below(6)]));
        }
        let temporaries = if r.below(4) == 0 { vec![tensor(&mut g, sizes[r.below(6)])] } else { vec![] };
        let inputs = if kind == 0 { inputs[..1].to_vec() } else { inputs };
        g.add_node(&NodeSpec {
            inputs: &inputs,
            outputs: &outputs,
            temporaries: &temporaries,
            inplace,
            ..NodeSpec::default()
        })
        .unwrap();
        known.extend(&outputs);
        if r.below(4) == 0 {
            let state = if r.below(4) == 0 { State::World } else { State::Resource(r.below(2) as u32) };
            rules.touches.push(Touch { subgraph: 0, node: v as u32, state, writes: r.below(2) == 0 });
        }
    }
    let last = *known.last().unwrap();
    g.set_outputs(&[last, known[known.len() / 2]]);
    (g, rules)
}

/// All pairs that must keep their order, straight from the definitions.
fn pairs(g: &Graph, rules: &Rules, found: &Outcome) -> Vec<(u32, u32)> {
    let n = g.node_count() as u32;
    let mut out = Vec::new();
    for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
        let (x, y) = (g.node(a as usize), g.node(b as usize));
        let data = y.inputs.iter().any(|t| x.outputs.contains(t));
        let mine = |v: u32| rules.touches.iter().filter(move |t| t.node == v);
        let state = mine(a).any(|s| {
            mine(b).any(|t| {
                let meet = s.state == t.state || s.state == State::World || t.state == State::World;
                meet && (s.writes || t.writes)
            })
        });
        if data || state {
            out.push((a, b));
        }
    }
    // Which bytes may be written over is the graph's affair; the run below tests that these suffice.
    out.extend(found.held.iter().filter(|h| matches!(h.why, Why::InPlace(_))).map(|h| (h.before, h.after)));
    out
}

fn arena(g: &Graph, order: &[u32], judge: &Judge) -> u64 {
    let lowered = lower(&[Permuted { graph: g, order }], 0, &judge.lifetimes, &[]).unwrap();
    let plan = plan(&lowered.problem, &judge.plan).unwrap();
    judge.lifetimes.align.round_up(plan.arena_bytes).unwrap()
}

/// The least arena over all orders that keep `pairs`, and how many there are.
fn brute(g: &Graph, pairs: &[(u32, u32)], judge: &Judge) -> (u64, u32) {
    fn rest(g: &Graph, pairs: &[(u32, u32)], judge: &Judge, path: &mut Vec<u32>, best: &mut (u64, u32)) {
        let n = g.node_count() as u32;
        if path.len() == n as usize {
            *best = (best.0.min(arena(g, path, judge)), best.1 + 1);
            return;
        }
        for v in 0..n {
            if !path.contains(&v) && pairs.iter().all(|&(a, b)| b != v || path.contains(&a)) {
                path.push(v);
                rest(g, pairs, judge, path, best);
                path.pop();
            }
        }
    }
    let mut best = (u64::MAX, 0);
    rest(g, pairs, judge, &mut Vec::new(), &mut best);
    best
}

/// Runs the graph in real bytes: every byte carries a mark of the value it belongs to. Returns the marks of the outputs
/// and of the states.
fn execute(g: &Graph, rules: &Rules, order: &[u32], judge: &Judge) -> (Vec<u64>, Vec<u64>) {
    let graphs = [Permuted { graph: g, order }];
    let lowered = lower(&graphs, 0, &judge.lifetimes, &[]).unwrap();
    let plan = plan(&lowered.problem, &judge.plan).unwrap();
    let mut memory = vec![0u64; plan.arena_bytes as usize];
    let mut state = vec![1u64; 3];
    let range = |t: i32| {
        let at = lowered.offset(&plan, 0, t as usize).unwrap() as usize;
        at..at + g.tensor(t as usize).bytes.unwrap() as usize
    };
    let read = |memory: &[u64], t: i32| {
        let bytes = &memory[range(t)];
        assert!(bytes.iter().all(|b| *b == bytes[0]), "tensor {t} was written over");
        bytes[0]
    };
    let mix = |a: u64, b: u64| {
        (a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(23).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    };
    for t in [0, 1] {
        memory[range(t)].fill(100 + t as u64);
    }
    for &v in order {
        let node = g.node(v as usize);
        let mut value = u64::from(v) + 7;
        for &t in node.inputs {
            value = mix(value, read(&memory, t));
        }
        for t in rules.touches.iter().filter(|t| t.node == v) {
            let which = if let State::Resource(r) = t.state { r as usize..r as usize + 1 } else { 0..3 };
            for s in &mut state[which] {
                value = mix(value, *s);
                if t.writes {
                    *s = mix(*s, u64::from(v));
                }
            }
        }
        if node.inplace.unmodified() {
            value = read(&memory, node.inputs[0]);
        }
        for &t in node.temporaries {
            memory[range(t)].fill(u64::MAX);
        }
        for (i, &t) in node.outputs.iter().enumerate() {
            memory[range(t)].fill(value.wrapping_add(i as u64));
        }
    }
    (g.outputs().iter().map(|&t| read(&memory, t)).collect(), state)
}

fn judge(policy: Policy, in_place: bool) -> Judge {
    let lifetimes =
        liveness::Options { policy, in_place, align: Align::new(8).unwrap(), ..liveness::Options::default() };
    Judge::new(lifetimes, planner::Options::of(Strategy::Exact))
}

#[test]
fn no_allowed_order_is_better_and_all_compute_the_same() {
    let mut r = Random(2026);
    let (mut orders, mut improved, mut proven, mut least, mut held) = (0, 0, 0, 0, 0);
    const ROUNDS: usize = 150;
    for round in 0..ROUNDS {
        let (g, rules) = graph(3 + round % 6, &mut r);
        let policy = [Policy::Safe, Policy::Tflm, Policy::Safe][round % 3];
        let judge = judge(policy, round % 4 != 3);
        let found = order(std::slice::from_ref(&g), &[0], &rules, &Options { judge, ..Options::default() }).unwrap();
        let given: Vec<u32> = (0..g.node_count() as u32).collect();
        let pairs = pairs(&g, &rules, &found);
        let place = |v: u32| found.orders[0].iter().position(|&u| u == v);
        assert!(pairs.iter().all(|&(a, b)| place(a) < place(b)), "round {round}");
        assert_eq!(
            {
                let mut o = found.orders[0].clone();
                o.sort_unstable();
                o
            },
            given
        );
        let (best, count) = brute(&g, &pairs, &judge);
        let (before, after) = (arena(&g, &given, &judge), arena(&g, &found.orders[0], &judge));
        assert!(best <= after && after <= before, "round {round}: {best} {after} {before}");
        assert_eq!(found.changed, after < before, "round {round}");
        if found.proven {
            assert_eq!((after, found.bound), (best, best), "round {round}");
            proven += 1;
        }
        assert!(found.bound <= best, "round {round}: {} {best}", found.bound);
        least += usize::from(after == best);
        orders += count;
        improved += usize::from(found.changed);
        held += found.held.len();
        assert_eq!(execute(&g, &rules, &given, &judge), execute(&g, &rules, &found.orders[0], &judge), "round {round}");
        let graphs = permuted(std::slice::from_ref(&g), &found.orders);
        assert_eq!(graphs[0].node(0).outputs, g.node(found.orders[0][0] as usize).outputs);
    }
    eprintln!("{orders} orders, {improved} improved, {least} least of {ROUNDS}, {proven} proven, {held} pairs held");
    assert!(improved > 20 && proven > ROUNDS * 9 / 10 && least > ROUNDS * 95 / 100 && held > 20);
}

#[test]
fn every_allowed_order_computes_the_same() {
    // The rules themselves, on orders that nobody searched for.
    let mut r = Random(7);
    for round in 0..300 {
        let (g, rules) = graph(4 + round % 8, &mut r);
        let judge = Judge::new(judge(Policy::Safe, true).lifetimes, planner::Options::of(Strategy::FirstFit));
        let found = order(std::slice::from_ref(&g), &[0], &rules, &Options { judge, ..Options::default() }).unwrap();
        let pairs = pairs(&g, &rules, &found);
        let n = g.node_count() as u32;
        let given: Vec<u32> = (0..n).collect();
        let expected = execute(&g, &rules, &given, &judge);
        for _ in 0..5 {
            let mut path: Vec<u32> = Vec::new();
            while path.len() < n as usize {
                let ready: Vec<u32> = given
                    .iter()
                    .copied()
                    .filter(|v| !path.contains(v) && pairs.iter().all(|&(a, b)| b != *v || path.contains(&a)))
                    .collect();
                path.push(ready[r.below(ready.len())]);
            }
            assert_eq!(execute(&g, &rules, &path, &judge), expected, "round {round}: {path:?}");
        }
    }
}

#[test]
fn others_have_a_veto_and_the_answer_is_the_same_every_time() {
    let mut r = Random(99);
    let mut vetoed = 0;
    for round in 0..200 {
        let (g, rules) = graph(6 + round % 6, &mut r);
        let other = Judge::new(judge(Policy::Tflite, false).lifetimes, planner::Options::of(Strategy::TflmGreedy));
        let one = judge(Policy::Safe, true);
        let graphs = std::slice::from_ref(&g);
        let alone = order(graphs, &[0], &rules, &Options { judge: one, ..Options::default() }).unwrap();
        let both = Options { judge: one, others: &[other], effort: None };
        let found = order(graphs, &[0], &rules, &both).unwrap();
        assert_eq!(found, order(graphs, &[0], &rules, &both).unwrap());
        assert!(found.after.iter().zip(&found.before).all(|(a, b)| a.arena_bytes <= b.arena_bytes));
        vetoed += u32::from(alone.changed && !found.changed);
    }
    assert!(vetoed > 0);
}

#[test]
fn a_thousand_nodes_in_parallel_branches() {
    // 40 branches of 25 nodes from one source into one sink, laid out breadth first, the worst order there is.
    let mut g = Graph::new();
    let tensor =
        |g: &mut Graph, bytes: u64| g.add_tensor(Tensor { bytes: Some(bytes), ..Tensor::default() }).unwrap() as i32;
    let source = tensor(&mut g, 64);
    g.set_inputs(&[source]);
    let mut heads = vec![source; 40];
    for depth in 0..25 {
        for (b, head) in heads.iter_mut().enumerate() {
            let bytes = if depth == 24 { 8 } else { 64 * (1 + (b as u64 * 7 + depth * 13) % 9) };
            let next = tensor(&mut g, bytes);
            g.add_node(&NodeSpec { inputs: &[*head], outputs: &[next], ..NodeSpec::default() }).unwrap();
            *head = next;
        }
    }
    let sink = tensor(&mut g, 64);
    g.add_node(&NodeSpec { inputs: &heads, outputs: &[sink], ..NodeSpec::default() }).unwrap();
    g.set_outputs(&[sink]);
    let lifetimes = judge(Policy::Safe, true).lifetimes;
    let options = Options {
        judge: Judge::new(lifetimes, planner::Options::of(Strategy::GreedyBySize)),
        effort: Some(1_000_000),
        ..Options::default()
    };
    let found = order(&[g], &[0], &Rules::default(), &options).unwrap();
    // All but one branch are finished (8 bytes each) while one is in its widest place.
    assert!(found.after[0].arena_bytes * 8 < found.before[0].arena_bytes, "{found:?}");
}
