//! A session step by step: lazy resize, growth, shrink, cache, bindings, scratch, guard mode, figures.

use std::ffi::c_void;
use std::ptr::NonNull;

use arenite::error::{Error, Kind, Subject};
use arenite::graph::owned::{CallKind, Graph, NodeSpec};
use arenite::graph::set::ModelSet;
use arenite::graph::tables::{Allocation, Tensor};
use arenite::runtime::session::{Accept, Formula, Replan, Session, SessionConfig, TensorId};
use arenite::runtime::source::{Block, Callbacks, Source};
use arenite::runtime::store::{Growth, MemoryPolicy, Shrink};
use arenite::units::Align;

fn id(t: u32) -> TensorId {
    TensorId::new(0, t)
}

fn align(bytes: u64) -> Align {
    Align::new(bytes).unwrap()
}

/// Tensor 0 -> 1 -> 2 -> ... of these sizes; the first is the input, the last the output.
fn chain(sizes: &[u64]) -> Graph {
    let mut g = Graph::new();
    for &bytes in sizes {
        g.add_tensor(Tensor { bytes: Some(bytes), ..Tensor::default() }).unwrap();
    }
    for i in 1..sizes.len() as i32 {
        g.add_node(&NodeSpec { inputs: &[i - 1], outputs: &[i], ..NodeSpec::default() }).unwrap();
    }
    g.set_inputs(&[0]);
    g.set_outputs(&[sizes.len() as i32 - 1]);
    g
}

fn session(g: Graph, config: SessionConfig) -> Session {
    Session::new(vec![g], 0, config).unwrap()
}

fn at(s: &Session, t: u32) -> usize {
    s.resolve(id(t)).unwrap().unwrap().0.as_ptr() as usize
}

fn memory(policy: MemoryPolicy) -> SessionConfig {
    SessionConfig { memory: policy, ..SessionConfig::default() }
}

#[test]
fn resizing_is_lazy_and_stale_addresses_are_refused() {
    let mut s = session(chain(&[128, 256, 256, 128]), SessionConfig::default());
    assert_eq!(s.resolve(id(0)).unwrap_err().kind, Kind::Stale, "nothing is committed yet");
    s.commit().unwrap();
    let (generation, plans) = (s.generation(), s.stats().plans);
    let before = at(&s, 1);
    s.resize(id(1), 256).unwrap();
    assert!(!s.is_stale(), "the same size changes nothing");
    s.resize(id(1), 4096).unwrap();
    let e = s.resolve(id(0)).unwrap_err();
    assert_eq!((e.kind, e.subject), (Kind::Stale, Subject::Tensor(0)));
    assert!(e.to_string().contains("commit first"), "{e}");
    assert_eq!((s.generation(), s.stats().plans), (generation, plans), "nothing happens until the commit");
    let (p, bytes) = s.ensure_allocated(id(1)).unwrap().unwrap();
    assert_eq!((bytes, p.as_ptr() as usize % 128), (4096, 0));
    assert_ne!(s.generation(), generation);
    // Smaller again: all offsets stay, so nothing moves and no pointer goes stale.
    let (generation, now) = (s.generation(), at(&s, 2));
    s.resize(id(1), 100).unwrap();
    s.commit().unwrap();
    assert_eq!((s.generation(), at(&s, 2)), (generation, now));
    assert!(s.stats().plans_kept > 0 && before != 0);
    for (t, kind) in [(9, Kind::Argument), (u32::MAX, Kind::Argument)] {
        assert_eq!(s.resize(id(t), 1).unwrap_err().kind, kind);
    }
}

#[test]
fn br_17_smaller_sizes_never_need_more() {
    // A 512 [3,4], B 512 [2,3], C 640 [1,1], D 512 [1,2].
    let mut g = Graph::new();
    for bytes in [512, 512, 640, 512] {
        g.add_tensor(Tensor { bytes: Some(bytes), ..Tensor::default() }).unwrap();
    }
    for (inputs, outputs) in [(&[][..], &[][..]), (&[], &[2, 3]), (&[3], &[1]), (&[1], &[0]), (&[0], &[])] {
        g.add_node(&NodeSpec { inputs, outputs, ..NodeSpec::default() }).unwrap();
    }
    for replan in [Replan::Keep, Replan::Smallest] {
        let mut s = session(g.clone(), SessionConfig { replan, ..SessionConfig::default() });
        s.commit().unwrap();
        let before = s.stats().planned_bytes;
        assert!(before <= 1152);
        s.resize(id(1), 384).unwrap();
        s.commit().unwrap();
        assert!(s.stats().planned_bytes <= before);
    }
}

#[test]
fn br_48_growth_is_exact_and_needs_no_double_peak() {
    let mut s = session(chain(&[128, 1 << 20, 128]), SessionConfig::default());
    s.commit().unwrap();
    s.resize(id(1), (16 << 20) + (512 << 10)).unwrap();
    s.commit().unwrap();
    let stats = s.stats();
    assert_eq!(stats.committed_bytes, stats.planned_bytes.next_multiple_of(128));
    assert_eq!(stats.high_water, stats.committed_bytes, "the old block went before the new one came");
    let mut s = session(
        chain(&[128, 1 << 20, 128]),
        memory(MemoryPolicy { growth: Growth::Doubling { cap: 3 << 20 }, ..MemoryPolicy::default() }),
    );
    s.commit().unwrap();
    let first = s.stats().committed_bytes;
    s.resize(id(1), (1 << 20) + 4096).unwrap();
    s.commit().unwrap();
    assert_eq!(s.stats().committed_bytes, 2 * first);
    s.resize(id(1), (2 << 20) + 4096).unwrap();
    s.commit().unwrap();
    assert_eq!(s.stats().committed_bytes, 3 << 20, "doubling stops at its cap");
}

#[test]
fn shrinking_by_hand_by_count_and_by_cap() {
    let large = |s: &mut Session, bytes| {
        s.resize(id(1), bytes).unwrap();
        s.commit().unwrap();
        s.stats().committed_bytes
    };
    let mut s = session(chain(&[128, 1 << 20, 128]), SessionConfig::default());
    assert!(large(&mut s, 1 << 20) > 1 << 20);
    assert!(large(&mut s, 128) > 1 << 20, "by default nothing is given back");
    s.shrink_to_fit().unwrap();
    assert!(s.stats().committed_bytes <= 384);
    let shrink = Shrink::After { commits: 3, percent: 50 };
    let mut s = session(chain(&[128, 1 << 20, 128]), memory(MemoryPolicy { shrink, ..MemoryPolicy::default() }));
    large(&mut s, 1 << 20);
    let held: Vec<bool> = (0..4).map(|i| large(&mut s, 200 + i) > 1 << 20).collect();
    assert_eq!(held, [true, true, false, false], "the third small commit in a row gives it back");
    let mut s =
        session(chain(&[128, 1 << 20, 128]), memory(MemoryPolicy { idle_cap: Some(4096), ..MemoryPolicy::default() }));
    large(&mut s, 1 << 20);
    assert!(large(&mut s, 300) <= 4096);
    let mut s = session(chain(&[128, 128, 128]), memory(MemoryPolicy { limit: Some(4096), ..MemoryPolicy::default() }));
    s.commit().unwrap();
    let (generation, before) = (s.generation(), at(&s, 1));
    s.resize(id(1), 1 << 20).unwrap();
    let e = s.commit().unwrap_err();
    assert_eq!((e.kind, e.available), (Kind::Capacity, Some(4096)));
    s.revert().unwrap();
    assert_eq!((s.generation(), at(&s, 1)), (generation, before), "the old state is usable again");
}

struct Ration {
    calls: u32,
    fail_at: u32,
    live: u32,
}

unsafe extern "C" fn allocate(user: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
    // SAFETY: the test passes a `Ration`.
    let r = unsafe { &mut *user.cast::<Ration>() };
    r.calls += 1;
    if r.calls == r.fail_at {
        return core::ptr::null_mut();
    }
    r.live += 1;
    // SAFETY: the size is not 0 and the alignment a power of two.
    unsafe { std::alloc::alloc(std::alloc::Layout::from_size_align(bytes, align).unwrap()) }.cast()
}

unsafe extern "C" fn deallocate(user: *mut c_void, data: *mut c_void, bytes: usize, align: usize) {
    // SAFETY: the test passes a `Ration`.
    unsafe { &mut *user.cast::<Ration>() }.live -= 1;
    // SAFETY: allocated above with this layout.
    unsafe { std::alloc::dealloc(data.cast(), std::alloc::Layout::from_size_align(bytes, align).unwrap()) };
}

#[test]
fn br_29_any_refused_call_leaves_the_old_state_usable() {
    for keep_on_failure in [false, true] {
        for fail_at in 1..=20 {
            let mut ration = Ration { calls: 0, fail_at, live: 0 };
            let source = Source::Callbacks(Callbacks { allocate, deallocate, user: (&raw mut ration).cast() });
            let mut g = chain(&[128, 256, 128]);
            g.add_tensor(Tensor {
                bytes: Some(64),
                allocation: Allocation::ArenaRwPersistent,
                variable: true,
                align: None,
            })
            .unwrap();
            g.add_node(&NodeSpec { inputs: &[3], outputs: &[3], ..NodeSpec::default() }).unwrap();
            let policy = MemoryPolicy { keep_on_failure, ..MemoryPolicy::default() };
            let mut s = session(g, SessionConfig { main: source, persistent: source, ..memory(policy) });
            let mut written = false;
            for size in [256, 4096, 8192, 512, 1 << 20] {
                s.resize(id(1), size).unwrap();
                s.resize(id(3), if size > 8000 { 640 } else { 64 }).unwrap();
                if let Err(e) = s.commit() {
                    assert_eq!(e.kind, Kind::NoMemory);
                    if s.revert().is_ok() {
                        let (p, n) = s.resolve(id(1)).unwrap().unwrap();
                        // SAFETY: the tensor's own bytes.
                        unsafe { p.as_ptr().write_bytes(1, n) };
                        s.resize(id(1), size).unwrap();
                        s.resize(id(3), if size > 8000 { 640 } else { 64 }).unwrap();
                    }
                    s.commit().expect("a retry succeeds");
                }
                let state = s.resolve(id(3)).unwrap().unwrap().0.as_ptr();
                // SAFETY: 64 bytes of the persistent tensor.
                let held = unsafe { core::slice::from_raw_parts_mut(state, 64) };
                assert!(!written || held.iter().all(|&b| b == 0xAB), "persistent data survives");
                held.fill(0xAB);
                written = true;
            }
            drop(s);
            assert_eq!(ration.live, 0);
        }
    }
}

#[test]
fn known_shapes_cost_a_look_up_and_reservations_hold() {
    let sizes = [160u64, 640, 320, 224].map(|p| p * p * 3);
    let mut s = session(chain(&[128, 1000, 500, 128]), SessionConfig::default());
    let sets: Vec<[(TensorId, u64); 2]> = sizes.iter().map(|&b| [(id(1), b), (id(2), b / 2)]).collect();
    let sets: Vec<&[(TensorId, u64)]> = sets.iter().map(|x| &x[..]).collect();
    let reserved = s.reserve(&sets).unwrap();
    s.commit().unwrap();
    let stats = s.stats();
    assert!(stats.committed_bytes >= reserved && reserved >= 640 * 640 * 3);
    let (plans, calls) = (s.stats().plans, s.stats().heap_calls);
    let mut generations = vec![s.generation()];
    for set in sets.iter().cycle().take(40) {
        for &(t, bytes) in *set {
            s.resize(t, bytes).unwrap();
        }
        s.commit().unwrap();
        generations.push(s.generation());
    }
    assert_eq!((s.stats().plans, s.stats().heap_calls), (plans, calls), "no planning and no memory call");
    generations.dedup();
    assert!(generations.len() <= 2, "the smaller shapes keep the largest one's offsets");
    let none = SessionConfig { cached_plans: 1, ..SessionConfig::default() };
    let e = session(chain(&[1, 2]), none).reserve(&sets[..2]).unwrap_err();
    assert_eq!((e.kind, e.needed, e.available), (Kind::Capacity, Some(2), Some(1)));
}

#[test]
fn upper_bounds_say_how_much_was_used() {
    let mut s = session(chain(&[128, 128, 128]), SessionConfig::default());
    s.set_upper_bound(id(1), 4000).unwrap();
    s.commit().unwrap();
    let generation = s.generation();
    for bytes in [100, 3000, 200] {
        s.report_use(id(1), bytes).unwrap();
    }
    let e = s.report_use(id(1), 4001).unwrap_err();
    assert_eq!((e.kind, e.subject, e.available), (Kind::Capacity, Subject::Tensor(1), Some(4000)));
    let used = s.upper_bound_use();
    assert_eq!((used[0].bound, used[0].used, s.generation()), (4000, 3000, generation));
    assert!(!s.is_stale() && s.report_use(id(0), 1).is_err());
}

fn block(bytes: usize) -> Block {
    Source::System.take(bytes, 4096).unwrap()
}

fn offset(b: &Block, by: usize) -> NonNull<u8> {
    NonNull::new(b.base().as_ptr().wrapping_add(by)).unwrap()
}

#[test]
fn br_31_bound_buffers_are_checked_and_not_planned() {
    let mut s =
        session(chain(&[256, 4096, 256]), SessionConfig { replan: Replan::Smallest, ..SessionConfig::default() });
    s.commit().unwrap();
    let before = s.stats().planned_bytes;
    let b = block(8192);
    let e = s.bind(id(1), offset(&b, 64), 4096, Accept::Required).unwrap_err();
    assert_eq!((e.kind, e.subject, e.needed, e.available), (Kind::Alignment, Subject::Tensor(1), Some(128), Some(64)));
    let e = s.bind(id(1), b.base(), 4095, Accept::Required).unwrap_err();
    assert_eq!((e.kind, e.needed, e.available), (Kind::Capacity, Some(4096), Some(4095)));
    assert!(!s.is_stale(), "a refused binding changes nothing");
    s.bind(id(1), offset(&b, 64), 4096, Accept::AtLeast(align(64))).unwrap();
    assert!(s.bind(id(1), offset(&b, 32), 4096, Accept::AtLeast(align(64))).is_err());
    assert_eq!(s.resolve(id(1)).unwrap_err().kind, Kind::Stale);
    s.commit().unwrap();
    assert_eq!(at(&s, 1), offset(&b, 64).as_ptr() as usize);
    assert!(s.stats().planned_bytes <= before - 4096);
    let generation = s.generation();
    s.bind(id(1), b.base(), 8192, Accept::Required).unwrap();
    assert!(s.generation() != generation && at(&s, 1) == b.base().as_ptr() as usize, "another buffer, no re-plan");
    s.resize(id(1), 8193).unwrap();
    let e = s.commit().unwrap_err();
    assert_eq!((e.kind, e.subject), (Kind::Capacity, Subject::Tensor(1)));
    s.resize(id(1), 4096).unwrap();
    s.unbind(id(1)).unwrap();
    s.commit().unwrap();
    assert_eq!(s.stats().planned_bytes, before);
    assert!(s.unbind(id(1)).is_err());
}

#[test]
fn inputs_and_outputs_of_their_own_stay_while_the_rest_is_planned() {
    let config = SessionConfig { io: Some((Source::System, align(4096))), ..SessionConfig::default() };
    let mut s = session(chain(&[300, 4096, 4096, 256]), config);
    s.commit().unwrap();
    let io = (at(&s, 0), at(&s, 3));
    assert_eq!((io.0 % 4096, io.1 % 4096), (0, 0));
    for bytes in [1 << 20, 1 << 10, 1 << 22] {
        s.resize(id(1), bytes).unwrap();
        s.commit().unwrap();
        assert_eq!((at(&s, 0), at(&s, 3)), io);
    }
    s.release();
    assert_eq!((at(&s, 0), s.resolve(id(1)).unwrap_err().kind), (io.0, Kind::Stale));
}

#[test]
fn br_44_release_gives_back_and_keeps_what_persists() {
    let mut g = chain(&[128, 40 << 20, 128]);
    g.add_tensor(Tensor { bytes: Some(256), allocation: Allocation::ArenaRwPersistent, ..Tensor::default() }).unwrap();
    g.add_node(&NodeSpec { outputs: &[3], ..NodeSpec::default() }).unwrap();
    let mut s = session(g, SessionConfig::default());
    let state = s.ensure_allocated(id(3)).unwrap().unwrap().0;
    // SAFETY: 256 bytes of the tensor.
    unsafe { state.as_ptr().write_bytes(0xAB, 256) };
    let generation = s.generation();
    s.release();
    assert!(s.stats().committed_bytes == 0 && s.generation() != generation);
    s.resize(id(1), 1000).unwrap();
    let plans = s.stats().plans;
    let again = s.ensure_allocated(id(3)).unwrap().unwrap().0;
    // SAFETY: as above.
    assert!(again == state && unsafe { *again.as_ptr() } == 0xAB, "BR-46: offset and contents are as before");
    assert_eq!(s.stats().plans, plans + 1);
}

#[test]
fn br_16_scratch_is_asked_for_by_node_any_number_of_times() {
    let mut s = session(chain(&[1024, 1024, 1024]), SessionConfig::default());
    s.commit().unwrap();
    let a = s.request_scratch(0, 0, 0, 16, align(64)).unwrap();
    let b = s.request_scratch(0, 1, 0, 16, align(64)).unwrap();
    for _ in 0..2 {
        assert_eq!(s.request_scratch(0, 0, 0, 16, align(64)).unwrap(), a);
        assert_eq!(s.request_scratch(0, 1, 0, 16, align(64)).unwrap(), b);
    }
    assert_eq!(s.scratch_count(), 2);
    s.commit().unwrap();
    let (p, n) = s.resolve_scratch(a).unwrap().unwrap();
    assert_eq!((p.as_ptr() as usize % 64, n), (0, 16));
    s.resize_scratch(a, 100_000).unwrap();
    assert_eq!(s.resolve_scratch(a).unwrap_err().subject, Subject::Node(0));
    s.commit().unwrap();
    assert!(s.stats().planned_bytes >= 2048 + 100_000);
    assert_eq!(s.resolve_scratch(a).unwrap().unwrap().1, 100_000);
    let c = s.request_scratch_by_shape(0, 1, 1, align(1), Formula(Box::new(|t| t[0].map(|b| 9 * b)))).unwrap();
    s.resize(id(0), 2000).unwrap();
    s.commit().unwrap();
    assert_eq!(s.resolve_scratch(c).unwrap().unwrap().1, 18_000, "follows the shape");
    s.request_scratch_by_shape(0, 1, 1, align(1), Formula(Box::new(|_| None))).unwrap();
    let e = s.commit().unwrap_err();
    assert_eq!((e.kind, e.subject), (Kind::UnknownSize, Subject::Node(1)));
    assert!(s.request_scratch(0, 2, 0, 1, align(1)).is_err() && s.request_scratch(1, 0, 0, 1, align(1)).is_err());
}

#[test]
fn br_16_preparing_one_subgraph_leaves_the_handles_of_another_valid() {
    let mut main = chain(&[128, 128]);
    let (first, last) = (main.add_tensor(Tensor { bytes: Some(128), ..Tensor::default() }).unwrap() as i32, 1);
    let call = NodeSpec {
        inputs: &[last],
        outputs: &[first],
        call: CallKind::Branch,
        subgraphs: &[1, 2],
        ..NodeSpec::default()
    };
    main.add_node(&call).unwrap();
    main.set_outputs(&[first]);
    let body = chain(&[128, 128]);
    let mut s = Session::new(vec![main, body.clone(), body], 0, SessionConfig::default()).unwrap();
    let prepare = |s: &mut Session| [0, 1, 2].map(|g| s.request_scratch(g, 0, 0, 16, align(16)).unwrap());
    let handles = prepare(&mut s);
    s.commit().unwrap();
    assert_eq!((prepare(&mut s), s.scratch_count(), s.is_stale()), (handles, 3, false));
    let places = handles.map(|h| s.resolve_scratch(h).unwrap().unwrap());
    assert!(places.iter().all(|&(p, n)| n == 16 && (p.as_ptr() as usize).is_multiple_of(16)));
    // Another size in one of them, and all are where they are said to be, apart from the tensors of their own nodes.
    s.resize_scratch(handles[1], 5000).unwrap();
    s.commit().unwrap();
    for (g, &handle) in handles.iter().enumerate() {
        let (p, n) = s.resolve_scratch(handle).unwrap().unwrap();
        assert_eq!(n, if g == 1 { 5000 } else { 16 });
        for t in 0..2 {
            let (tensor, bytes) = s.resolve(TensorId::new(g as u32, t)).unwrap().unwrap();
            let (a, b) = (p.as_ptr() as usize, tensor.as_ptr() as usize);
            assert!(a + n <= b || b + bytes <= a, "subgraph {g}, tensor {t}");
        }
    }
}

#[test]
fn an_overrun_names_the_operator() {
    let mut s = session(chain(&[100, 200, 300, 100]), SessionConfig { guard: true, ..SessionConfig::default() });
    let scratch = s.request_scratch(0, 1, 0, 50, align(1)).unwrap();
    s.commit().unwrap();
    let overrun = |s: &mut Session, victim: Option<(usize, usize)>| -> Vec<Result<(), Error>> {
        let mut out = Vec::new();
        for n in 0..3 {
            s.guard_before(0, n).unwrap();
            if let (Some((end, by)), true) = (victim, n == 1) {
                for i in 0..by {
                    // SAFETY: the zone behind the tensor.
                    unsafe { ((end + i) as *mut u8).write(0) };
                }
            }
            out.push(s.guard_after(0, n));
        }
        out
    };
    assert!(overrun(&mut s, None).iter().all(Result::is_ok));
    for (end, tensor) in
        [(at(&s, 2) + 300, 2), (s.resolve_scratch(scratch).unwrap().unwrap().0.as_ptr() as usize + 50, 4)]
    {
        let found = overrun(&mut s, Some((end, 3)));
        assert!(found[0].is_ok() && found[2].is_ok(), "only the culprit is blamed");
        let e = found[1].unwrap_err();
        assert_eq!((e.subject, e.other, e.needed), (Subject::Node(1), Subject::Tensor(tensor), Some(3)));
    }
    let mut off = session(chain(&[1, 1]), SessionConfig::default());
    off.commit().unwrap();
    assert_eq!(off.guard_before(0, 0).unwrap_err().kind, Kind::Unsupported);
}

#[test]
fn node_alignments_hold_and_say_what_they_cost() {
    let mut g = chain(&[100, 100, 100]);
    let mut h = Graph::new();
    for t in 0..3 {
        h.add_tensor(*g.tensor_mut(t).unwrap()).unwrap();
    }
    h.add_node(&NodeSpec { inputs: &[0], outputs: &[1], align: Some(align(65536)), ..NodeSpec::default() }).unwrap();
    h.add_node(&NodeSpec { inputs: &[1], outputs: &[2], ..NodeSpec::default() }).unwrap();
    h.set_inputs(&[0]);
    h.set_outputs(&[2]);
    let mut s = session(h, SessionConfig::default());
    s.commit().unwrap();
    assert_eq!((at(&s, 0) % 65536, at(&s, 1) % 65536), (0, 0));
    let costs = s.alignment_costs().unwrap();
    assert_eq!((costs.len(), costs[0].node, costs[0].align), (1, 0, align(65536)));
    assert!(costs[0].arena_bytes > 65536 && costs[0].without <= 384);
    let b = block(8192);
    let e = s.bind(id(0), b.base(), 8192, Accept::Required);
    assert!(e.is_ok() || e.unwrap_err().needed == Some(65536));
}

#[test]
fn mapped_constants_are_shared_and_misalignment_is_reported() {
    let mut g = chain(&[100, 100]);
    g.add_tensor(Tensor { bytes: Some(1000), allocation: Allocation::MmapRo, ..Tensor::default() }).unwrap();
    let b = block(8192);
    let mut sessions = [session(g.clone(), SessionConfig::default()), session(g, SessionConfig::default())];
    for s in &mut sessions {
        s.bind_constant(id(2), offset(&b, 20), 1000).unwrap();
        s.commit().unwrap();
        assert_eq!(at(s, 2), offset(&b, 20).as_ptr() as usize);
        let m = s.misaligned_constants();
        assert_eq!((m.len(), m[0].remainder, m[0].required, m[0].copy_bytes), (1, 20, align(128), 1024));
        assert!(s.bind_constant(id(0), b.base(), 1000).is_err() && s.bind_constant(id(2), b.base(), 999).is_err());
        assert!(s.resize(id(2), 5).is_err());
    }
}

#[test]
fn live_bytes_per_node_and_the_sum() {
    let mut s = session(chain(&[128, 256, 512, 128]), SessionConfig::default());
    s.commit().unwrap();
    let rows = s.node_bytes().unwrap();
    let bytes: Vec<u64> = rows.iter().map(|r| r.bytes).collect();
    assert_eq!(bytes, [384, 896, 768]);
    let stats = s.stats();
    assert_eq!((stats.sum_bytes, stats.lower_bound, stats.heap_calls_since_commit), (1024, 896, 0));
}

#[test]
fn unknown_sizes_and_bad_graphs_are_named() {
    let mut g = chain(&[128, 128, 128]);
    g.tensor_mut(1).unwrap().bytes = None;
    let mut s = session(g, SessionConfig::default());
    let e = s.commit().unwrap_err();
    assert_eq!((e.kind, e.subject), (Kind::UnknownSize, Subject::Tensor(1)));
    s.resize(id(1), 100).unwrap();
    s.commit().unwrap();
    let mut bad = chain(&[1, 1]);
    bad.add_node(&NodeSpec { inputs: &[7], ..NodeSpec::default() }).unwrap();
    assert_eq!(Session::new(vec![bad], 0, SessionConfig::default()).unwrap_err().subject, Subject::Node(1));
    assert!(Session::new(vec![chain(&[1])], 1, SessionConfig::default()).is_err());
}

#[test]
fn a_huge_size_is_refused_without_harm() {
    let mut s = session(chain(&[128, 128, 128]), SessionConfig { guard: true, ..SessionConfig::default() });
    s.commit().unwrap();
    let before = at(&s, 1);
    for bytes in [u64::MAX, u64::MAX - 64, 1 << 63] {
        s.resize(id(1), bytes).unwrap();
        assert!(matches!(s.commit().unwrap_err().kind, Kind::Overflow | Kind::NoMemory), "{bytes}");
        s.revert().unwrap();
        let _ = before;
        assert!(s.resolve(id(1)).unwrap().is_some());
    }
}

#[test]
fn loops_and_branches_are_one_problem() {
    let mut main = Graph::new();
    for _ in 0..3 {
        main.add_tensor(Tensor { bytes: Some(64), ..Tensor::default() }).unwrap();
    }
    main.add_node(&NodeSpec {
        inputs: &[0],
        outputs: &[1],
        call: CallKind::Branch,
        subgraphs: &[1, 2],
        ..NodeSpec::default()
    })
    .unwrap();
    main.add_node(&NodeSpec { inputs: &[1], outputs: &[2], ..NodeSpec::default() }).unwrap();
    main.set_inputs(&[0]);
    main.set_outputs(&[2]);
    let branch = chain(&[64, 4096, 64]);
    let mut s = Session::new(vec![main, branch.clone(), branch], 0, SessionConfig::default()).unwrap();
    s.commit().unwrap();
    assert!(s.stats().planned_bytes < 4096 + 6 * 128, "the branches share");
    assert!(s.resolve(TensorId::new(2, 1)).unwrap().is_some());
}

#[test]
fn models_in_a_row_hand_a_tensor_on() {
    let (a, b, c) = (chain(&[128, 512, 256]), chain(&[128, 8192, 128]), chain(&[256, 128]));
    let set = ModelSet::new(&[&[a], &[b], &[c]]).unwrap();
    let link = set.link((0, 2), (2, 0)).unwrap();
    let mut s = Session::new(set.graphs, 0, SessionConfig::default()).unwrap();
    s.commit().unwrap();
    s.add_link(link).unwrap();
    let from = s.ensure_allocated(TensorId::new(1, 2)).unwrap();
    assert_eq!(from, s.resolve(TensorId::new(3, 0)).unwrap());
    assert!(s.stats().planned_bytes >= 256 + 8192);
    s.resize(TensorId::new(3, 0), 300).unwrap();
    assert_eq!(s.commit().unwrap_err().subject, Subject::Tensor(0));
}

#[test]
fn br_26_a_buffer_of_any_size_is_enough_or_refused_by_the_byte() {
    let needed = {
        let mut s = session(chain(&[100, 256, 100]), SessionConfig::default());
        s.commit().unwrap();
        s.stats().planned_bytes as usize
    };
    let b = block(needed + 512);
    let mut missing = None;
    for bytes in 0..needed + 256 {
        let main = Source::Buffer { base: b.base(), bytes };
        let mut s = session(chain(&[100, 256, 100]), SessionConfig { main, ..SessionConfig::default() });
        match s.commit() {
            Ok(()) => assert!(bytes >= needed, "{bytes}"),
            Err(e) => {
                assert!(e.kind == Kind::Capacity && bytes < needed);
                let now = e.needed.unwrap() - e.available.unwrap();
                assert!(missing.is_none_or(|m| m == now + 1), "falls by 1 per byte");
                missing = Some(now);
            }
        }
    }
    // Growing past the buffer leaves the old state.
    let main = Source::Buffer { base: b.base(), bytes: needed };
    let mut s = session(chain(&[100, 256, 100]), SessionConfig { main, ..SessionConfig::default() });
    s.commit().unwrap();
    let before = at(&s, 1);
    s.resize(id(1), 5000).unwrap();
    assert_eq!(s.commit().unwrap_err().kind, Kind::Capacity);
    s.revert().unwrap();
    assert_eq!(at(&s, 1), before);
}

#[test]
fn memory_that_was_released_comes_back_without_planning() {
    let mut s = session(chain(&[128, 256, 128]), SessionConfig { cached_plans: 0, ..SessionConfig::default() });
    s.commit().unwrap();
    let plans = s.stats().plans;
    s.release();
    s.commit().unwrap();
    assert_eq!(s.stats().plans, plans);
    assert!(s.resolve(id(1)).unwrap().is_some());
}
