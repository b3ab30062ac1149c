//! The behaviours of TensorFlow Lite's planner, as absolute offsets: alignment 4, tensor `i` has `3 (i + 1)` bytes
//! unless a test says otherwise. The numbers are those of the list of behaviours the project keeps.

use arenite::graph::incremental::{Arena, Incremental, UNSET};
use arenite::graph::tables::{Allocation, InPlace, Node, Tables, Tensor};
use arenite::units::Align;

struct Graph {
    tensors: Vec<Tensor>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    variables: Vec<i32>,
    ops: Vec<Op>,
}

#[derive(Clone)]
struct Op {
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    temporaries: Vec<i32>,
    flags: InPlace,
}

const SHARED: InPlace = InPlace(InPlace::INPUT_0);
const R: InPlace = InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED);

fn op(inputs: &[i32], outputs: &[i32], temporaries: &[i32]) -> Op {
    Op { inputs: inputs.into(), outputs: outputs.into(), temporaries: temporaries.into(), flags: SHARED }
}

fn r(inputs: &[i32], outputs: &[i32]) -> Op {
    Op { flags: R, ..op(inputs, outputs, &[]) }
}

impl Graph {
    fn new(tensors: usize, inputs: &[i32], ops: &[Op], outputs: &[i32]) -> Graph {
        let tensors = (0..tensors as u64).map(|i| Tensor { bytes: Some(3 * (i + 1)), ..Tensor::default() }).collect();
        Graph { tensors, inputs: inputs.into(), outputs: outputs.into(), variables: Vec::new(), ops: ops.into() }
    }

    fn size(mut self, list: &[(usize, u64)]) -> Graph {
        for &(t, bytes) in list {
            self.tensors[t].bytes = Some(bytes);
        }
        self
    }

    fn planned(&self) -> Incremental {
        let mut p = Incremental::new(Align::new(4).unwrap(), false);
        p.plan(self).unwrap();
        p
    }

    fn run(&self) -> Incremental {
        let mut p = self.planned();
        p.execute(self, 0, self.ops.len() as i32 - 1).unwrap();
        p
    }
}

impl Tables for Graph {
    fn tensor_count(&self) -> usize {
        self.tensors.len()
    }
    fn tensor(&self, index: usize) -> Tensor {
        self.tensors[index]
    }
    fn node_count(&self) -> usize {
        self.ops.len()
    }
    fn node(&self, index: usize) -> Node<'_> {
        let o = &self.ops[index];
        Node {
            inputs: &o.inputs,
            outputs: &o.outputs,
            temporaries: &o.temporaries,
            inplace: o.flags,
            ..Node::default()
        }
    }
    fn inputs(&self) -> &[i32] {
        &self.inputs
    }
    fn outputs(&self) -> &[i32] {
        &self.outputs
    }
    fn variables(&self) -> &[i32] {
        &self.variables
    }
}

fn at(p: &Incremental, t: usize) -> Option<u64> {
    p.place_of(t).map(|(arena, offset)| {
        assert_eq!(arena, Arena::Main, "tensor {t}");
        offset
    })
}

/// Asserts `tensor=offset` pairs and the size of the main arena.
fn expect(p: &Incremental, places: &[(usize, u64)], arena: u64) {
    for &(t, offset) in places {
        assert_eq!(at(p, t), Some(offset), "tensor {t}");
    }
    assert_eq!(p.bytes().0, arena, "arena");
}

fn s_graph() -> Graph {
    Graph::new(6, &[0, 1], &[op(&[0, 1], &[2], &[]), op(&[2, 0], &[4, 5], &[]), op(&[4, 5], &[3], &[])], &[3])
}

fn t_graph() -> Graph {
    Graph::new(6, &[0, 1], &[op(&[0, 1], &[2], &[]), op(&[2, 0], &[4], &[5]), op(&[4], &[3], &[])], &[3])
}

#[test]
fn b01_empty_graph() {
    let g = Graph::new(0, &[], &[], &[]);
    let mut p = g.planned();
    p.execute(&g, 0, -1).unwrap();
    assert!(p.has_memory(), "also at 0 bytes");
}

#[test]
fn b02_outputs_without_a_producer_stay_null() {
    let g = Graph::new(12, &[0, 10], &[op(&[0], &[], &[]), op(&[10], &[], &[])], &[5, 11]);
    let p = g.run();
    expect(&p, &[(0, 0), (10, 4)], 37);
    assert_eq!((at(&p, 5), at(&p, 11)), (None, None));
}

#[test]
fn b03_b04_one_op_and_an_empty_input() {
    let g = Graph::new(3, &[1], &[op(&[1], &[2], &[])], &[2]);
    let p = g.run();
    expect(&p, &[(1, 0), (2, 8)], 17);
    let g = g.size(&[(1, 0)]);
    let p = g.run();
    assert_eq!((at(&p, 1), at(&p, 2)), (None, Some(0)));
}

#[test]
fn b05_b06_simple_graph_and_growth_within_the_padding() {
    let mut g = s_graph();
    let mut p = g.run();
    let offsets = [(0, 0), (1, 4), (5, 12), (4, 32), (3, 48), (2, 48)];
    expect(&p, &offsets, 60);
    p.reset();
    for t in &mut g.tensors {
        t.bytes = t.bytes.map(|b| b + 1);
    }
    p.execute(&g, 0, 2).unwrap();
    expect(&p, &offsets, 61);
}

#[test]
fn b07_b08_temporary_and_reset_after() {
    let mut g = t_graph();
    let mut p = g.run();
    expect(&p, &[(0, 0), (1, 4), (5, 12), (3, 12), (4, 32), (2, 48)], 57);
    p.reset_after(0);
    expect(&p, &[(0, 0), (1, 4), (2, 48)], 57);
    assert_eq!([at(&p, 3), at(&p, 4), at(&p, 5)], [None; 3]);
    g.tensors[4].bytes = g.tensors[4].bytes.map(|b| b + 64);
    p.execute(&g, 1, 2).unwrap();
    expect(&p, &[(3, 12), (5, 12), (2, 48), (4, 60)], 139);
}

#[test]
fn b09_persistent_tensor_survives_reset_after() {
    let mut g = t_graph();
    g.tensors[5].allocation = Allocation::ArenaRwPersistent;
    let mut p = g.run();
    for (t, offset) in [(0, 0), (1, 4), (4, 12), (2, 28), (3, 28)] {
        assert_eq!(at(&p, t), Some(offset), "tensor {t}");
    }
    assert_eq!(p.place_of(5), Some((Arena::Persistent, 0)));
    p.reset_after(0);
    assert_eq!((p.place_of(5), at(&p, 3), at(&p, 4)), (Some((Arena::Persistent, 0)), None, None));
    p.execute(&g, 1, 2).unwrap();
    assert_eq!((p.place_of(5), p.bytes().1), (Some((Arena::Persistent, 0)), 18), "not placed again");
}

#[test]
fn b10_b11_b12_in_place_sharing() {
    let g = Graph::new(
        6,
        &[0, 1],
        &[op(&[0], &[2], &[]), op(&[1], &[3], &[]), r(&[2, 3], &[4]), op(&[4], &[5], &[])],
        &[5],
    )
    .size(&[(2, 24), (4, 24)]);
    expect(&g.run(), &[(2, 12), (4, 12), (3, 36), (5, 36)], 54);

    let ops = [
        op(&[0], &[2], &[]),
        r(&[2, 3], &[4]),
        r(&[4, 3], &[5]),
        r(&[5, 3], &[6]),
        r(&[6, 3], &[7]),
        op(&[7], &[8], &[]),
    ];
    let g = Graph::new(9, &[0, 1], &ops, &[8]).size(&[2, 4, 5, 6, 7].map(|t| (t, 24)));
    let p = g.run();
    for t in [2, 4, 5, 6, 7] {
        assert_eq!(at(&p, t), Some(40), "tensor {t}");
    }
    assert_eq!((at(&p, 8), at(&p, 3)), (Some(12), None));

    let g = Graph::new(5, &[0, 1], &[op(&[0], &[2], &[]), r(&[2, 1], &[3]), op(&[3], &[4], &[])], &[4])
        .size(&[(2, 24), (3, 24)]);
    let p = g.run();
    assert_eq!(at(&p, 2), at(&p, 3));
}

#[test]
fn b13_b14_b15_what_never_shares() {
    let mut g = Graph::new(5, &[0, 1], &[r(&[0, 1], &[2]), op(&[4], &[3], &[])], &[3]).size(&[(2, 3)]);
    g.tensors[0].allocation = Allocation::Dynamic;
    let p = g.run();
    assert_eq!((at(&p, 0), p.root_of(2)), (None, Some(2)));
    assert!(at(&p, 2).is_some());

    let g = Graph::new(4, &[0, 1], &[op(&[0], &[2], &[]), r(&[2, 1], &[3])], &[3]).size(&[(2, 24), (3, 24)]);
    let p = g.run();
    assert_ne!(at(&p, 2), at(&p, 3));

    let only = Op { flags: InPlace(InPlace::DATA_UNMODIFIED), ..r(&[2, 1], &[3]) };
    let g = Graph::new(5, &[0, 1], &[op(&[0], &[2], &[]), only, op(&[3], &[4], &[])], &[4]).size(&[(2, 24), (3, 24)]);
    let p = g.run();
    assert_ne!(at(&p, 2), at(&p, 3));
}

#[test]
fn b18_optional_inputs_and_outputs() {
    let offsets = [(0, 0), (1, 4), (5, 12), (4, 32), (3, 48), (2, 48)];
    let mut g = s_graph();
    g.inputs = vec![0, -1, 1];
    g.ops[2].inputs = vec![4, -1, 5];
    expect(&g.run(), &offsets, 60);
    let mut g = s_graph();
    g.outputs = vec![-1, 3];
    expect(&g.run(), &offsets, 60);
}

#[test]
fn b19_freed_space_is_reused() {
    let ops = [op(&[0], &[1], &[]), op(&[1], &[2], &[]), op(&[2, 0], &[4], &[5]), op(&[4, -1], &[3], &[])];
    let g = Graph::new(6, &[0, -1], &ops, &[3]).size(&[(1, 40)]);
    expect(&g.run(), &[(1, 4), (2, 44), (3, 4), (5, 4), (4, 24)], 53);
}

#[test]
fn b20_b21_persistent_variable_and_dynamic_input() {
    let mut g = t_graph();
    g.inputs = vec![0];
    g.variables = vec![1];
    g.tensors[1].variable = true;
    g.tensors[1].allocation = Allocation::ArenaRwPersistent;
    let p = g.run();
    for (t, offset) in [(0, 0), (5, 4), (3, 4), (4, 24), (2, 40)] {
        assert_eq!(at(&p, t), Some(offset), "tensor {t}");
    }
    assert_eq!(p.place_of(1), Some((Arena::Persistent, 0)));
    let mut g = t_graph();
    g.tensors[1].allocation = Allocation::Dynamic;
    let p = g.run();
    assert_eq!(at(&p, 1), None);
    for (t, offset) in [(0, 0), (5, 4), (3, 4), (4, 24), (2, 40)] {
        assert_eq!(at(&p, t), Some(offset), "tensor {t}");
    }
}

#[test]
fn b23_planning_again_is_a_fresh_start() {
    let mut p = s_graph().run();
    let g = Graph::new(4, &[0, 1], &[op(&[0, 1], &[3], &[])], &[]);
    p.plan(&g).unwrap();
    p.execute(&g, 0, 0).unwrap();
    for (t, offset) in [(0, 0), (1, 4), (3, 12)] {
        assert_eq!(at(&p, t), Some(offset), "tensor {t}");
    }
}

#[test]
fn b24_release_and_acquire() {
    let mut p = s_graph().run();
    let before: Vec<_> = (0..6).map(|t| p.place_of(t)).collect();
    p.acquire();
    assert_eq!((0..6).map(|t| p.place_of(t)).collect::<Vec<_>>(), before, "acquiring without a release does nothing");
    p.release();
    assert!(!p.has_memory() && (0..6).all(|t| p.place_of(t).is_none()));
    p.acquire();
    assert!(p.has_memory());
    assert_eq!((0..6).map(|t| p.place_of(t)).collect::<Vec<_>>(), before);
}

#[test]
fn b27_temporaries_share_unless_all_is_preserved() {
    let ops = [op(&[0, 1], &[2], &[5]), op(&[2], &[3], &[6]), op(&[3], &[4], &[7])];
    let g = Graph::new(8, &[0, 1], &ops, &[4]);
    let p = g.run();
    assert!(at(&p, 5).is_some());
    assert_eq!((at(&p, 6), at(&p, 7)), (at(&p, 5), at(&p, 5)));
    let mut all = Incremental::new(Align::new(4).unwrap(), true);
    all.plan(&g).unwrap();
    all.execute(&g, 0, 2).unwrap();
    let mut offsets: Vec<_> = (0..8).map(|t| at(&all, t).unwrap()).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!(offsets.len(), 8);
    assert_eq!(all.record(2).unwrap().last, UNSET);
}

#[test]
fn b33_tensors_the_cpu_does_not_address_stay_null() {
    let mut g = s_graph();
    g.tensors[0].allocation = Allocation::NonCpu;
    g.tensors[3].allocation = Allocation::NonCpu;
    let p = g.run();
    assert_eq!((at(&p, 0), at(&p, 3)), (None, None));
    assert!([1, 2, 4, 5].iter().all(|&t| at(&p, t).is_some()));
}

#[test]
fn growing_without_a_reset_moves_only_the_grown_tensor_and_over_nobody() {
    // TFLite puts the grown tensor at offset 0, over inputs 0 and 1.
    let mut g = s_graph();
    let mut p = g.run();
    let before: Vec<_> = (0..6).map(|t| p.place_of(t)).collect();
    g.tensors[2].bytes = Some(30);
    p.execute(&g, 0, 2).unwrap();
    for t in [0, 1, 3, 4, 5] {
        assert_eq!(p.place_of(t), before[t], "tensor {t}");
    }
    let grown = p.record(2).unwrap();
    for t in [0, 1, 3, 4, 5] {
        let o = p.record(t).unwrap();
        let apart = o.offset + o.size <= grown.offset || grown.offset + grown.size <= o.offset;
        assert!(apart || o.last < grown.first || grown.last < o.first, "tensor {t}");
    }
}

#[test]
fn a_better_plan_is_adopted_and_later_ranges_are_placed_around_it() {
    let g = t_graph();
    let mut p = g.run();
    // Tensor 2 below 4 instead of above it.
    p.adopt(|t| [(2, 12), (4, 24), (3, 40), (5, 40)].iter().find(|o| o.0 == t).map(|o| o.1));
    expect(&p, &[(0, 0), (1, 4), (2, 12), (4, 24), (3, 40), (5, 40)], 58);
    p.reset_after(0);
    p.execute(&g, 1, 2).unwrap();
    expect(&p, &[(0, 0), (1, 4), (2, 12), (5, 24), (3, 12), (4, 44)], 59);
}

#[test]
fn a_placement_is_brought_back_shares_included() {
    let ops = [op(&[0], &[1], &[]), op(&[1], &[2], &[4]), op(&[2], &[3], &[])];
    let mut g = Graph::new(5, &[0], &ops, &[3]).size(&[(1, 24), (2, 24)]);
    let mut p = g.run();
    let (then, offsets) = (p.placement(), (0..5).map(|t| at(&p, t)).collect::<Vec<_>>());
    assert_eq!(offsets[1], offsets[2], "in place");
    // Another shape, in which the two cannot share any more.
    g = g.size(&[(2, 48)]);
    p.reset();
    p.execute(&g, 0, 2).unwrap();
    assert_ne!(at(&p, 1), at(&p, 2));
    p.reset();
    p.restore(&then);
    assert!(p.has_memory());
    assert_eq!((0..5).map(|t| at(&p, t)).collect::<Vec<_>>(), offsets);
    assert_eq!(p.bytes(), g.size(&[(2, 24)]).run().bytes());
    // It goes on from there as from any placement.
    p.reset_after(0);
    assert_eq!(at(&p, 3), None);
}

#[test]
fn errors_leave_the_state_as_it_was() {
    let mut g = s_graph();
    let mut p = g.run();
    let before: Vec<_> = (0..6).map(|t| p.place_of(t)).collect();
    g.tensors[2].bytes = Some(u64::MAX - 3);
    assert!(p.execute(&g, 0, 2).is_err());
    g.tensors.truncate(3);
    assert!(p.execute(&g, 0, 2).is_err());
    assert_eq!((0..6).map(|t| p.place_of(t)).collect::<Vec<_>>(), before);

    // Tensor 2 is read for the last time by node 1 and written again by node 2.
    let g = Graph::new(4, &[0], &[op(&[0], &[2], &[]), op(&[2], &[3], &[]), op(&[0], &[2], &[])], &[3]);
    let e = Incremental::new(Align::ONE, false).plan(&g).unwrap_err();
    assert_eq!((e.subject, e.step), (arenite::error::Subject::Tensor(2), Some(2)));
}
