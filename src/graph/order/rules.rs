//! What must stay in order: data, state, and bytes that are written over.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::tables::{Allocation, Tables};
use crate::error::Error;

/// What a node reads or changes besides its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Anything: what an unknown operator may do. It stays in order with everything that has state.
    World,
    /// One thing of the caller's numbering: a resource variable, a hash table, a random generator.
    Resource(u32),
}

/// One node's use of one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The subgraph.
    pub subgraph: u32,
    /// The node, in the given order.
    pub node: u32,
    /// The state.
    pub state: State,
    /// Whether it may change it. Nodes that only read one change places freely.
    pub writes: bool,
}

/// What the tables do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Uses of state. A node without any is taken to do nothing but write its outputs.
    pub touches: Vec<Touch>,
    /// Pairs of nodes `(subgraph, before, after)` to be kept in order, `before` being ahead in the given order.
    pub before: Vec<(u32, u32, u32)>,
}

/// Why two nodes keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Both use this state, and one may change it.
    State(State),
    /// Both use this variable: a node may update one without naming it as an output.
    Variable(u32),
    /// This tensor is written more than once.
    Rewritten(u32),
    /// One may write in place over bytes that this tensor shares with what the other reads.
    InPlace(u32),
    /// The caller asked for it.
    Asked,
}

/// Two nodes of a subgraph that keep their order although no data passes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// The subgraph.
    pub subgraph: u32,
    /// Runs first. Both by their place in the given order.
    pub before: u32,
    /// Runs later.
    pub after: u32,
    /// Why.
    pub why: Why,
}

/// The order constraints of one graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precedence {
    /// Per node the nodes that must run before it, ascending.
    pub before: Vec<Vec<u32>>,
    /// Those of them that are not data.
    pub held: Vec<Held>,
}

/// The last writer of something and who read it since.
#[derive(Clone, Debug, Default)]
struct Uses {
    writer: Option<u32>,
    readers: Vec<u32>,
}

impl Uses {
    /// Node `v` uses it: calls `edge` for each node it must follow.
    fn touch(&mut self, v: u32, writes: bool, mut edge: impl FnMut(u32)) {
        if !writes {
            self.writer.into_iter().for_each(&mut edge);
            self.readers.push(v);
            return;
        }
        if self.readers.is_empty() {
            self.writer.into_iter().for_each(&mut edge);
        }
        self.readers.drain(..).for_each(&mut edge);
        self.writer = Some(v);
    }
}

/// The constraints of subgraph `k`. `graph` has been validated.
///
/// `Argument` for a rule about a node that does not exist or a pair against the given order.
pub(crate) fn precedence<T: Tables + ?Sized>(graph: &T, k: u32, rules: &Rules) -> Result<Precedence, Error> {
    let n = graph.node_count();
    let mut out = Precedence { before: alloc::vec![Vec::new(); n], held: Vec::new() };
    tensors(graph, k, &mut out);
    shared_bytes(graph, k, &mut out);
    let mut touches: Vec<&Touch> = rules.touches.iter().filter(|t| t.subgraph == k).collect();
    if let Some(bad) = touches.iter().find(|t| t.node as usize >= n) {
        return Err(Error::argument("a rule of order names no node").node(bad.node as usize).available(n as u64));
    }
    touches.sort_by_key(|t| (t.node, t.state, t.writes));
    states(&touches, k, &mut out);
    for &(_, a, b) in rules.before.iter().filter(|r| r.0 == k) {
        if a >= b || b as usize >= n {
            return Err(Error::argument("a pair of nodes is not in the given order").node(a as usize).needed(b.into()));
        }
        out.hold(k, a, b, Why::Asked);
    }
    let mut data: Vec<Vec<u32>> = out.before.clone();
    for list in &mut out.before {
        list.sort_unstable();
        list.dedup();
    }
    data.iter_mut().for_each(|l| l.sort_unstable());
    out.held.sort_unstable();
    out.held.dedup();
    // What data asks for anyway is not held back by anything else.
    out.held.retain(|h| data[h.after as usize].binary_search(&h.before).is_err());
    for h in &out.held {
        out.before[h.after as usize].push(h.before);
    }
    for list in &mut out.before {
        list.sort_unstable();
        list.dedup();
    }
    Ok(out)
}

impl Precedence {
    fn hold(&mut self, subgraph: u32, before: u32, after: u32, why: Why) {
        if before != after {
            self.held.push(Held { subgraph, before, after, why });
        }
    }
}

/// Reads after writes are data; writes after reads and writes after writes hold a tensor that is written twice; nodes
/// that list a variable keep their order.
fn tensors<T: Tables + ?Sized>(graph: &T, k: u32, out: &mut Precedence) {
    let count = graph.tensor_count();
    let mut variable: Vec<bool> = (0..count).map(|t| graph.tensor(t).variable).collect();
    for &t in graph.variables() {
        variable[t as usize] = true;
    }
    let mut scratch: Vec<bool> = alloc::vec![true; count];
    let mut written: Vec<bool> = alloc::vec![false; count];
    for v in 0..graph.node_count() {
        let node = graph.node(v);
        node.inputs.iter().chain(node.outputs).filter(|&&t| t >= 0).for_each(|&t| scratch[t as usize] = false);
        node.outputs.iter().filter(|&&t| t >= 0).for_each(|&t| written[t as usize] = true);
    }
    for t in 0..count {
        // Persistent bytes that no node writes come from the run before, and some node may change them.
        variable[t] |= !written[t] && graph.tensor(t).allocation == Allocation::ArenaRwPersistent;
    }
    let mut uses: Vec<Uses> = alloc::vec![Uses::default(); count];
    for v in 0..graph.node_count() {
        let node = graph.node(v);
        let v = v as u32;
        // A temporary that other nodes read or write as a tensor is more than scratch.
        let temporaries = node.temporaries.iter().map(|&t| (t, true)).filter(|&(t, _)| t >= 0 && !scratch[t as usize]);
        let inputs = node.inputs.iter().map(|&t| (t, false));
        let outputs = node.outputs.iter().map(|&t| (t, true));
        for (t, writes) in inputs.chain(outputs).chain(temporaries).filter(|&(t, _)| t >= 0) {
            let at = &mut uses[t as usize];
            if variable[t as usize] {
                at.touch(v, true, |u| out.hold(k, u, v, Why::Variable(t as u32)));
            } else if writes {
                at.touch(v, true, |u| out.hold(k, u, v, Why::Rewritten(t as u32)));
            } else {
                at.touch(v, false, |u| {
                    if u != v {
                        out.before[v as usize].push(u);
                    }
                });
            }
        }
    }
}

fn states(touches: &[&Touch], k: u32, out: &mut Precedence) {
    // The world's readers and last writer, and each resource's since the world was last written.
    let mut world = Uses::default();
    let mut each: BTreeMap<State, Uses> = BTreeMap::new();
    for t in touches {
        let (v, why) = (t.node, Why::State(t.state));
        if t.state == State::World {
            let mut earlier: Vec<u32> = Vec::new();
            world.touch(v, t.writes, |u| earlier.push(u));
            for uses in each.values_mut() {
                if t.writes {
                    earlier.extend(uses.writer.iter().chain(&uses.readers));
                } else {
                    earlier.extend(uses.writer);
                }
            }
            if t.writes {
                each.clear();
            }
            earlier.into_iter().for_each(|u| out.hold(k, u, v, why));
        } else {
            // What may change anything is a writer of this too, what may read anything a reader.
            let uses = each.entry(t.state).or_default();
            let readers: &[u32] = if t.writes { &world.readers } else { &[] };
            world.writer.iter().chain(readers).for_each(|&u| out.hold(k, u, v, Why::State(State::World)));
            uses.touch(v, t.writes, |u| out.hold(k, u, v, why));
        }
    }
}

/// Bytes handed on unmodified (a reshape) to several readers of which one may write over them: those keep their order
/// with the writer. Engines that share in place look at the readers of the root alone (TFLite does) and would let the
/// writer run ahead of another reader; and what is shared then does not depend on the order.
fn shared_bytes<T: Tables + ?Sized>(graph: &T, k: u32, out: &mut Precedence) {
    let count = graph.tensor_count();
    let mut reads: Vec<u32> = alloc::vec![0; count];
    for v in 0..graph.node_count() {
        graph.node(v).inputs.iter().filter(|&&t| t >= 0).for_each(|&t| reads[t as usize] += 1);
    }
    let mut root: Vec<u32> = (0..count as u32).collect();
    let mut forked: Vec<bool> = alloc::vec![false; count];
    // Which inputs a node may hand on, and whether changed.
    let flagged = |v: usize| {
        let node = graph.node(v);
        let output = node.outputs.first().copied().filter(|&t| t >= 0);
        let inputs = node.inputs.iter().take(3).enumerate().filter(move |(i, &t)| t >= 0 && node.inplace.shares(*i));
        inputs.filter_map(move |(_, &t)| Some((t as usize, output? as usize, !node.inplace.unmodified())))
    };
    for v in 0..graph.node_count() {
        for (input, output, modified) in flagged(v) {
            if !modified || reads[input] <= 1 {
                let (a, b) = (find(&mut root, input), find(&mut root, output));
                root[b] = a as u32;
                forked[a] |= forked[b] | (reads[input] > 1);
            }
        }
    }
    for (t, &reads) in reads.iter().enumerate() {
        let r = find(&mut root, t);
        forked[r] |= r != t && reads > 1;
    }
    let mut uses: BTreeMap<usize, Uses> = BTreeMap::new();
    for v in 0..graph.node_count() {
        let mut touched: BTreeMap<usize, bool> = BTreeMap::new();
        for &t in graph.node(v).inputs.iter().filter(|&&t| t >= 0) {
            let r = find(&mut root, t as usize);
            if forked[r] {
                touched.entry(r).or_insert(false);
            }
        }
        for (input, _, modified) in flagged(v) {
            let r = find(&mut root, input);
            if forked[r] && modified && reads[input] <= 1 {
                touched.insert(r, true);
            }
        }
        for (r, writes) in touched {
            uses.entry(r).or_default().touch(v as u32, writes, |u| {
                out.hold(k, u, v as u32, Why::InPlace(r as u32));
            });
        }
    }
}

fn find(root: &mut [u32], mut t: usize) -> usize {
    while root[t] as usize != t {
        root[t] = root[root[t] as usize];
        t = root[t] as usize;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::super::super::rows::tests::{op, Small};
    use super::super::super::tables::InPlace;
    use super::*;

    fn held(g: &Small, rules: &Rules) -> Vec<(u32, u32, Why)> {
        precedence(g, 0, rules).unwrap().held.iter().map(|h| (h.before, h.after, h.why)).collect()
    }

    fn touch(node: u32, state: State, writes: bool) -> Touch {
        Touch { subgraph: 0, node, state, writes }
    }

    #[test]
    fn data_is_no_hold_and_rewriting_is() {
        let ops = [op(&[0], &[1]), op(&[1], &[2]), op(&[0], &[1]), op(&[1], &[3])];
        let g = Small::new(&[8; 4], &[0], &[3], &ops);
        let p = precedence(&g, 0, &Rules::default()).unwrap();
        assert_eq!(p.before, [vec![], vec![0], vec![1], vec![2]]);
        assert_eq!(held(&g, &Rules::default()), [(1, 2, Why::Rewritten(1))]);
    }

    #[test]
    fn each_resource_has_its_own_order_and_the_world_all_of_them() {
        let ops: Vec<_> = (0..6).map(|i| op(&[], &[i])).collect();
        let g = Small::new(&[8; 6], &[], &[], &ops);
        let (a, b) = (State::Resource(0), State::Resource(1));
        let touches = vec![
            touch(0, a, false),
            touch(1, b, true),
            touch(2, a, false),
            touch(3, a, true),
            touch(4, State::World, true),
            touch(5, b, false),
        ];
        let mut rules = Rules { touches, before: vec![(0, 0, 5)] };
        let w = Why::State(State::World);
        assert_eq!(
            held(&g, &rules),
            [(0, 3, Why::State(a)), (0, 5, Why::Asked), (1, 4, w), (2, 3, Why::State(a)), (3, 4, w), (4, 5, w)]
        );
        rules.before = vec![(0, 5, 0)];
        assert!(precedence(&g, 0, &rules).is_err());
        rules = Rules { touches: vec![touch(9, a, true)], before: vec![] };
        assert!(precedence(&g, 0, &rules).is_err());
    }

    #[test]
    fn a_world_reader_keeps_its_place_among_writers_of_a_resource() {
        let ops: Vec<_> = (0..4).map(|i| op(&[], &[i])).collect();
        let g = Small::new(&[8; 4], &[], &[], &ops);
        let a = State::Resource(0);
        let touches = vec![touch(0, a, true), touch(1, State::World, false), touch(2, a, false), touch(3, a, true)];
        let w = Why::State(State::World);
        let expected = [(0, 1, w), (0, 2, Why::State(a)), (1, 3, w), (2, 3, Why::State(a))];
        assert_eq!(held(&g, &Rules { touches, before: vec![] }), expected);
    }

    #[test]
    fn variables_chain_their_users() {
        let mut g = Small::new(&[8; 4], &[0], &[3], &[op(&[0, 1], &[2]), op(&[1], &[3]), op(&[0], &[])]);
        g.variables = vec![1];
        assert_eq!(held(&g, &Rules::default()), [(0, 1, Why::Variable(1))]);
    }

    #[test]
    fn one_of_two_reshapes_written_in_place_waits_for_the_other_reader() {
        let reshape = InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED);
        // 0 -> 1; two reshapes of 1; a node reads the first, an addition writes over the second.
        let ops = [
            op(&[0], &[1]),
            op(&[1], &[2]).inplace(reshape),
            op(&[1], &[3]).inplace(reshape),
            op(&[2], &[4]),
            op(&[3, 0], &[5]).inplace(InPlace(InPlace::INPUT_0)),
            op(&[4, 5], &[6]),
        ];
        let g = Small::new(&[8; 7], &[0], &[6], &ops);
        let all = held(&g, &Rules::default());
        assert!(all.contains(&(3, 4, Why::InPlace(1))), "{all:?}");
        // A plain chain of additions holds nothing.
        let add = InPlace(InPlace::INPUT_0 | InPlace::INPUT_1);
        let ops = [op(&[0], &[1]), op(&[1, 0], &[2]).inplace(add), op(&[2, 0], &[3]).inplace(add)];
        assert_eq!(held(&Small::new(&[8; 4], &[0], &[3], &ops), &Rules::default()), []);
    }
}
