//! TFLite's planner life cycle over real memory: the behaviours that concern execution, and what TFLite gets wrong.

use arenite::error::{Kind, Subject};
use arenite::graph::incremental::{Incremental, Sharing};
use arenite::graph::owned::{Graph, NodeSpec};
use arenite::graph::tables::{Allocation, InPlace, Tensor};
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::store::{MemoryPolicy, Shrink};
use arenite::units::Align;

type Op<'a> = (&'a [i32], &'a [i32], &'a [i32]);

fn graph(bytes: &[u64], inputs: &[i32], ops: &[Op<'_>], outputs: &[i32]) -> Graph {
    let mut g = Graph::new();
    for &b in bytes {
        g.add_tensor(Tensor { bytes: Some(b), ..Tensor::default() }).unwrap();
    }
    for &(inputs, outputs, temporaries) in ops {
        g.add_node(&NodeSpec { inputs, outputs, temporaries, ..NodeSpec::default() }).unwrap();
    }
    g.set_inputs(inputs);
    g.set_outputs(outputs);
    g
}

/// Graph T of the behaviours: tensor `i` has `3 (i + 1)` bytes, 5 is a temporary.
fn t_graph() -> Graph {
    graph(&[3, 6, 9, 12, 15, 18], &[0, 1], &[(&[0, 1], &[2], &[]), (&[2, 0], &[4], &[5]), (&[4], &[3], &[])], &[3])
}

fn arena() -> IncrementalArena {
    IncrementalArena::new(&IncrementalConfig { align: Align::new(4).unwrap(), ..IncrementalConfig::default() })
}

fn at(a: &IncrementalArena, g: &Graph, t: usize) -> Option<usize> {
    a.resolve(g, t).unwrap().map(|p| p.0.as_ptr() as usize)
}

fn fill(a: &IncrementalArena, g: &Graph, t: usize, value: u8) {
    let (p, n) = a.resolve(g, t).unwrap().unwrap();
    // SAFETY: the tensor's own bytes.
    unsafe { p.as_ptr().write_bytes(value, n) };
}

fn holds(a: &IncrementalArena, g: &Graph, t: usize, value: u8) -> bool {
    let (p, n) = a.resolve(g, t).unwrap().unwrap();
    // SAFETY: the tensor's own bytes, filled before.
    unsafe { std::slice::from_raw_parts(p.as_ptr(), n) }.iter().all(|&b| b == value)
}

#[test]
fn b01_an_empty_graph_has_memory_of_no_bytes() {
    let g = graph(&[], &[], &[], &[]);
    let mut a = arena();
    a.plan(&g).unwrap();
    assert!(!a.has_memory());
    a.execute(&g, 0, -1).unwrap();
    assert!(a.has_memory() && a.allocation_info() == (0, 0));
}

#[test]
fn b07_b08_growth_after_a_reset_keeps_what_came_before() {
    let mut g = t_graph();
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 2).unwrap();
    let base = at(&a, &g, 0).unwrap();
    let offsets = |a: &IncrementalArena, g: &Graph, list: &[usize]| -> Vec<Option<usize>> {
        let base = at(a, g, 0).unwrap();
        list.iter().map(|&t| at(a, g, t).map(|p| p - base)).collect()
    };
    assert_eq!(offsets(&a, &g, &[1, 5, 3, 4, 2]), [4, 12, 12, 32, 48].map(Some));
    assert_eq!((base % 128, a.planned_bytes()), (0, (57, 0)));
    for (t, value) in [(0, 1), (1, 2), (2, 3)] {
        fill(&a, &g, t, value);
    }
    let generation = a.generation();
    a.reset_after(0);
    assert_eq!([at(&a, &g, 3), at(&a, &g, 4), at(&a, &g, 5)], [None; 3]);
    assert_ne!(a.generation(), generation);
    g.tensor_mut(4).unwrap().bytes = Some(15 + 64);
    a.execute(&g, 1, 2).unwrap();
    assert_eq!(offsets(&a, &g, &[3, 5, 2, 4]), [12, 12, 48, 60].map(Some));
    assert_eq!(a.planned_bytes().0, 139);
    assert!(holds(&a, &g, 0, 1) && holds(&a, &g, 1, 2) && holds(&a, &g, 2, 3), "contents survive the larger block");
}

#[test]
fn b09_br_46_persistent_contents_survive_resets_and_growth() {
    let mut g = t_graph();
    for t in [5, 2] {
        g.tensor_mut(t).unwrap().allocation = Allocation::ArenaRwPersistent;
    }
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 2).unwrap();
    assert!(holds(&a, &g, 5, 0), "zeroed at first");
    fill(&a, &g, 5, 0xAB);
    fill(&a, &g, 2, 0xCD);
    let before = (at(&a, &g, 5), at(&a, &g, 2));
    a.reset_after(0);
    assert_eq!((at(&a, &g, 5), at(&a, &g, 2)), before);
    a.execute(&g, 1, 2).unwrap();
    assert_eq!((at(&a, &g, 5), at(&a, &g, 2)), before);
    g.tensor_mut(2).unwrap().bytes = Some(4);
    a.reset();
    a.execute(&g, 0, 2).unwrap();
    assert!(holds(&a, &g, 5, 0xAB) && holds(&a, &g, 2, 0xCD), "they follow their tensors to other places");
    g.tensor_mut(5).unwrap().bytes = Some(500);
    assert_eq!(a.resolve(&g, 5).unwrap_err().kind, Kind::Stale);
    a.execute(&g, 0, 2).unwrap();
    let (p, n) = a.resolve(&g, 5).unwrap().unwrap();
    // SAFETY: the tensor's own bytes.
    let bytes = unsafe { std::slice::from_raw_parts(p.as_ptr(), n) };
    assert!(n == 500 && bytes[..18].iter().all(|&b| b == 0xAB) && bytes[18..].iter().all(|&b| b == 0));
}

#[test]
fn b24_release_and_acquire() {
    let g = t_graph();
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 2).unwrap();
    let offset = at(&a, &g, 4).unwrap() - at(&a, &g, 0).unwrap();
    let generation = a.generation();
    a.acquire().unwrap();
    assert_eq!(a.generation(), generation, "acquiring without a release does nothing");
    a.release();
    assert!(!a.has_memory() && at(&a, &g, 0).is_none() && a.allocation_info().0 == 0);
    a.acquire().unwrap();
    assert_eq!(at(&a, &g, 4).unwrap() - at(&a, &g, 0).unwrap(), offset);
}

#[test]
fn growing_without_a_reset_harms_nobody() {
    let ops: [Op<'_>; 3] = [(&[0, 1], &[2], &[]), (&[2, 0], &[4, 5], &[]), (&[4, 5], &[3], &[])];
    let mut g = graph(&[3, 6, 9, 12, 15, 18], &[0, 1], &ops, &[3]);
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 2).unwrap();
    fill(&a, &g, 0, 1);
    fill(&a, &g, 1, 2);
    g.tensor_mut(2).unwrap().bytes = Some(30);
    a.execute(&g, 0, 2).unwrap();
    fill(&a, &g, 2, 3);
    assert!(holds(&a, &g, 0, 1) && holds(&a, &g, 1, 2), "TFLite puts the grown tensor over the inputs");
}

#[test]
fn safe_sharing_differs_only_where_tflite_corrupts() {
    let reshape = InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED);
    let build = |second: InPlace, reader: i32| {
        let mut g = graph(&[24; 7], &[0], &[(&[0], &[1], &[])], &[6]);
        for (i, o, inplace) in [(1, 2, reshape), (1, 3, reshape), (2, 4, second)] {
            g.add_node(&NodeSpec { inputs: &[i], outputs: &[o], inplace, ..NodeSpec::default() }).unwrap();
        }
        g.add_node(&NodeSpec { inputs: &[reader, 4], outputs: &[6], ..NodeSpec::default() }).unwrap();
        g
    };
    let place = |g: &Graph, sharing| {
        let mut p = Incremental::new(Align::new(4).unwrap(), false).with_sharing(sharing);
        p.plan(g).unwrap();
        p.execute(g, 0, 4).unwrap();
        p
    };
    // Tensor 4 is written over tensor 2's bytes, which are also tensor 3's, and 3 is read later.
    let g = build(InPlace(InPlace::INPUT_0), 3);
    let (tflite, safe) = (place(&g, Sharing::Tflite), place(&g, Sharing::Safe));
    assert_eq!(safe.place_of(2), safe.place_of(3));
    assert_ne!(safe.place_of(4), safe.place_of(3));
    let _ = tflite;
    // Nothing is read later: the same offsets as TFLite's.
    let g = build(reshape, 0);
    let (tflite, safe) = (place(&g, Sharing::Tflite), place(&g, Sharing::Safe));
    assert!((0..7).all(|t| tflite.place_of(t) == safe.place_of(t)));
    assert!(place(&g, Sharing::None).place_of(2) != place(&g, Sharing::None).place_of(1));
}

#[test]
fn br_47_tensors_added_later_are_taken_in() {
    let mut g = t_graph();
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 0).unwrap();
    fill(&a, &g, 0, 7);
    for _ in 0..200 {
        g.add_tensor(Tensor { bytes: Some(8), ..Tensor::default() }).unwrap();
    }
    let (generation, before) = (a.generation(), at(&a, &g, 0));
    a.execute(&g, 1, 2).unwrap();
    assert!(holds(&a, &g, 0, 7) && at(&a, &g, 205).is_none());
    assert_ne!(a.generation(), generation, "an address from before may be stale");
    assert!(before.is_some());
    assert!(a.execute(&t_graph(), 1, 2).is_err(), "fewer tensors than planned");
    assert!(a.resolve(&g, 206).is_err());
}

#[test]
fn the_dump_names_tensors_and_the_fullest_nodes() {
    let g = t_graph();
    let mut a = arena();
    a.plan(&g).unwrap();
    a.execute(&g, 0, 2).unwrap();
    let mut text = String::new();
    a.dump(&mut text).unwrap();
    assert!(text.starts_with("main arena 57 bytes, persistent arena 0 bytes\n"), "{text}");
    assert!(text.contains("tensor 4: 15 bytes at main 32, nodes 1 to 2\n"), "{text}");
    assert!(text.contains("node 1: 51 bytes alive"), "{text}");
}

#[test]
fn an_overrun_names_the_operator_also_after_growth() {
    let mut g = t_graph();
    let config = IncrementalConfig { guard: true, ..IncrementalConfig::default() };
    let mut a = IncrementalArena::new(&config);
    assert_eq!(arena().guard_before(&g, 0).unwrap_err().kind, Kind::Unsupported);
    a.plan(&g).unwrap();
    assert_eq!(a.guard_before(&g, 0).unwrap_err().kind, Kind::Stale);
    a.execute(&g, 0, 0).unwrap();
    assert_eq!(a.guard_after(&g, 3).unwrap_err().kind, Kind::Argument);
    // Writes `past` bytes more than the tensor has.
    let write = |a: &IncrementalArena, g: &Graph, t: usize, past: usize| {
        let (data, bytes) = a.resolve(g, t).unwrap().unwrap();
        // SAFETY: the zone behind the tensor has 64 bytes.
        unsafe { data.as_ptr().write_bytes(7, bytes + past) };
    };
    a.guard_before(&g, 0).unwrap();
    write(&a, &g, 2, 0);
    a.guard_after(&g, 0).unwrap();
    a.reset_after(0);
    g.tensor_mut(4).unwrap().bytes = Some(500);
    a.execute(&g, 1, 2).unwrap();
    a.guard_before(&g, 1).unwrap();
    write(&a, &g, 4, 0);
    write(&a, &g, 5, 3);
    let e = a.guard_after(&g, 1).unwrap_err();
    assert_eq!((e.subject, e.other, e.needed), (Subject::Node(1), Subject::Tensor(5), Some(3)));
    assert!(a.guard_after(&g, 1).is_ok(), "the zone is repaired, so nobody is blamed twice");
    a.guard_before(&g, 2).unwrap();
    write(&a, &g, 3, 0);
    write(&a, &g, 4, 64);
    let e = a.guard_after(&g, 2).unwrap_err();
    assert_eq!((e.subject, e.other, e.needed), (Subject::Node(2), Subject::Tensor(4), Some(64)), "an input");
    // Other memory has other bytes in its zones, which is nobody's fault.
    a.release();
    a.acquire().unwrap();
    a.guard_before(&g, 1).unwrap();
    a.guard_after(&g, 1).unwrap();
}

#[test]
fn runs_that_need_little_give_memory_back() {
    let mut g = t_graph();
    let mut a = arena();
    let policy = MemoryPolicy { shrink: Shrink::After { commits: 3, percent: 50 }, ..MemoryPolicy::default() };
    a.set_memory_policy(policy);
    a.plan(&g).unwrap();
    let mut held = Vec::new();
    for bytes in [1 << 20, 100, 100, 100, 100, 100] {
        a.reset();
        g.tensor_mut(4).unwrap().bytes = Some(bytes);
        // Range by range: the first needs less than the run.
        for n in 0..3 {
            a.execute(&g, n, n).unwrap();
        }
        held.push(a.allocation_info().0);
    }
    assert!(held[..4].iter().all(|&h| h >= 1 << 20) && held[4..].iter().all(|&h| h < 1024), "{held:?}");
    let small = held[5] as u64;
    g.tensor_mut(4).unwrap().bytes = Some(1 << 20);
    a.reset();
    a.execute(&g, 0, 2).unwrap();
    g.tensor_mut(4).unwrap().bytes = Some(100);
    a.reset();
    a.execute(&g, 0, 2).unwrap();
    a.set_memory_policy(MemoryPolicy { limit: Some(small), ..MemoryPolicy::default() });
    a.reset();
    a.execute(&g, 0, 2).unwrap();
    assert_eq!(a.allocation_info().0 as u64, small, "a limit that came later is met");
}
