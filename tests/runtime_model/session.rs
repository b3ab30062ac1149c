//! Sessions: resize, commit, execute, release, bind, scratch, reserve, shrink, and commits that are refused.

use arenite::error::Kind;
use arenite::graph::owned::Graph;
use arenite::graph::tables::{Allocation, Tables};
use arenite::planner::{Options as PlanOptions, Strategy};
use arenite::runtime::session::{Accept, Formula, Replan, ScratchId, Session, SessionConfig, TensorId};
use arenite::runtime::source::{Block, Source};
use arenite::runtime::store::MemoryPolicy;
use arenite::units::{Align, DEFAULT_ALIGN};

use super::runtime_support::{fill, hash, run, sequences, Apart, Memory, Random, SIZES};
use super::{apart, policy, program, same, source, variables};

struct InSession<'a>(&'a mut Session, bool);

impl Memory for InSession<'_> {
    fn at(&mut self, id: TensorId) -> (*mut u8, usize) {
        self.0.resolve(id).unwrap().map_or((std::ptr::null_mut(), 0), |(p, n)| (p.as_ptr(), n))
    }
    fn before(&mut self, g: u32, n: u32) {
        if self.1 {
            self.0.guard_before(g, n).unwrap();
        }
    }
    fn after(&mut self, g: u32, n: u32) {
        if self.1 {
            self.0.guard_after(g, n).unwrap();
        }
    }
}

fn config(r: &mut Random) -> SessionConfig {
    let strategy = *r.pick(&[Strategy::GreedyBySize, Strategy::TflmGreedy, Strategy::FirstFit, Strategy::Auto]);
    let mut c = SessionConfig {
        planner: PlanOptions { effort: Some(300), ..PlanOptions::of(strategy) },
        replan: *r.pick(&[Replan::Keep, Replan::Smallest]),
        cached_plans: r.below(4) as usize,
        memory: policy(r),
        guard: r.chance(30),
        main: source(r),
        persistent: source(r),
        ..SessionConfig::default()
    };
    c.options.in_place = r.chance(85);
    c.options.align = Align::new(*r.pick(&[1, 16, 128])).unwrap();
    c.io = r.chance(25).then_some((source(r), DEFAULT_ALIGN));
    c
}

fn addresses(s: &Session, graphs: &[Graph]) -> Option<Vec<usize>> {
    let ids = graphs
        .iter()
        .enumerate()
        .flat_map(|(g, x)| (0..x.tensor_count()).map(move |t| TensorId::new(g as u32, t as u32)));
    let at = ids.map(|id| s.resolve(id).map(|x| x.map_or(0, |p| p.0.as_ptr() as usize)));
    at.collect::<Result<Vec<_>, _>>().ok()
}

/// The bytes a tensor may have: what is bound to it holds no more.
fn room(bound: &[(TensorId, Block)], id: TensorId) -> u64 {
    bound.iter().find(|b| b.0 == id).map_or(u64::MAX, |b| b.1.bytes() as u64)
}

/// A commit that the memory limit refuses, and the way back: sizes, addresses and contents are as before.
fn refused(r: &mut Random, s: &mut Session, graphs: &[Graph], apart: &Apart, bound: &[(TensorId, Block)], seed: u64) {
    // After a release there is nothing to go back to. Where only scratch has bytes the tensors' addresses do not tell.
    let released = s.stats().committed_bytes < s.stats().planned_bytes;
    if released || s.is_stale() || addresses(s, graphs).is_none() {
        return;
    }
    let before = (addresses(s, graphs), s.generation(), s.stats().committed_bytes);
    let id = TensorId::new(0, r.below(graphs[0].tensor_count() as u64) as u32);
    let known = apart.0[0][id.tensor as usize].len() as u64;
    if bound.iter().any(|b| b.0 == id) || graphs[0].tensor(id.tensor as usize).allocation != Allocation::ArenaRw {
        return;
    }
    s.set_memory_policy(MemoryPolicy { limit: Some(before.2), ..policy(r) });
    s.resize(id, before.2 + 5000).unwrap();
    match s.commit() {
        Err(e) => {
            assert_eq!(e.kind, Kind::Capacity, "seed {seed}: {e}");
            s.revert().unwrap();
            let after = (addresses(s, graphs), s.generation(), s.stats().committed_bytes);
            assert_eq!(before, after, "seed {seed}: a refused commit changed something");
        }
        // Nobody reads or writes it, or it is an input with memory of its own.
        Ok(()) => s.resize(id, known).unwrap(),
    }
    s.set_memory_policy(policy(r));
}

fn session_sequence(seed: u64) {
    let r = &mut Random::new(seed);
    let graphs = program(r);
    let config = config(r);
    let guarded = config.guard;
    let mut s = Session::new(graphs.clone(), 0, config).unwrap();
    let mut apart = apart(&graphs);
    let mut bound: Vec<(TensorId, Block)> = Vec::new();
    let mut seen: Option<(u64, Vec<usize>)> = None;
    let persistent = variables(&graphs);
    let mut fresh: Vec<TensorId> = Vec::new();
    // Whether addresses may have changed and changed back, or changed where the list below does not look.
    let mut elsewhere = false;
    let mut runs = 0;
    for step in 0..6 + r.below(14) {
        let g = r.below(graphs.len() as u64) as u32;
        let id = TensorId::new(g, r.below(graphs[g as usize].tensor_count() as u64) as u32);
        match r.below(16) {
            0..=3 => {
                for _ in 0..1 + r.below(3) {
                    let t = TensorId::new(g, r.below(graphs[g as usize].tensor_count() as u64) as u32);
                    let bytes = (*r.pick(&SIZES)).min(room(&bound, t));
                    if r.chance(20) {
                        s.set_upper_bound(t, bytes).unwrap();
                        s.report_use(t, bytes / 2).unwrap();
                    } else {
                        s.resize(t, bytes).unwrap();
                    }
                    apart.0[t.subgraph as usize][t.tensor as usize].resize(bytes as usize, 0);
                    fresh.push(t);
                }
                if s.is_stale() {
                    assert_eq!(s.resolve(id).unwrap_err().kind, Kind::Stale, "seed {seed}");
                }
            }
            4 => {
                s.release();
                elsewhere = true;
            }
            5 => {
                s.shrink_to_fit().unwrap();
                elsewhere = true;
            }
            6 if !bound.iter().any(|b| b.0 == id) => {
                let room = 1000;
                let block = Source::System.take(room, 512).unwrap();
                let generation = s.generation();
                s.bind(id, block.base(), room, Accept::Required).unwrap();
                // An input with memory of its own moves at once, and may be back before the next commit.
                elsewhere |= s.generation() != generation;
                bound.push((id, block));
                fresh.push(id);
            }
            7 if !bound.is_empty() => {
                let (id, _block) = bound.swap_remove(r.below(bound.len() as u64) as usize);
                s.unbind(id).unwrap();
                fresh.push(id);
            }
            8 => {
                elsewhere = true;
                let node = r.below(graphs[g as usize].node_count() as u64) as u32;
                let slot = r.below(2) as u32;
                let align = Align::new(*r.pick(&[1, 64])).unwrap();
                if r.chance(50) {
                    s.request_scratch(g, node, slot, *r.pick(&SIZES), align).unwrap();
                } else {
                    let formula = Formula(Box::new(|sizes| sizes[0].map(|b| b / 2)));
                    s.request_scratch_by_shape(g, node, slot, align, formula).unwrap();
                }
            }
            9 => s.set_memory_policy(policy(r)),
            10 if s.scratch_count() > 0 => {
                let scratch = ScratchId(r.below(s.scratch_count() as u64) as u32);
                s.resize_scratch(scratch, *r.pick(&SIZES)).unwrap();
                elsewhere = true;
            }
            11 => refused(r, &mut s, &graphs, &apart, &bound, seed),
            12 => {
                // Plans in advance change nothing that can be seen but how much is held.
                let inner = (0..1 + r.below(2)).map(|_| (id, r.pick(&SIZES).min(&room(&bound, id)).to_owned()));
                let set: Vec<(TensorId, u64)> = inner.collect();
                match s.reserve(&[&set]) {
                    Ok(bytes) => {
                        s.commit().unwrap();
                        let held = s.stats().committed_bytes;
                        assert!(held >= bytes, "seed {seed}: {held} bytes held, {bytes} reserved");
                        elsewhere = true;
                    }
                    Err(e) => assert_eq!(e.kind, Kind::Capacity, "seed {seed}: {e}"),
                }
            }
            _ => {
                s.commit().unwrap_or_else(|e| panic!("seed {seed} step {step}: {e}"));
                let now = addresses(&s, &graphs).unwrap();
                if let Some((generation, before)) = &seen {
                    let (moved, changed) = (&now != before, s.generation() != *generation);
                    assert!(changed || !moved, "seed {seed}: an address moved within a generation");
                    assert!(moved || !changed || elsewhere, "seed {seed}: a generation without a move");
                }
                // Scratch asked for once stays asked for.
                elsewhere = s.scratch_count() > 0;
                let generation = s.generation();
                s.commit().unwrap();
                assert_eq!(s.generation(), generation, "seed {seed}: a commit without a change");
                assert_eq!(s.stats().heap_calls_since_commit, 0);
                seen = Some((generation, now));
                let mut real = InSession(&mut s, guarded);
                for &t in fresh.iter().filter(|t| persistent.contains(t)) {
                    fill(&mut real, t, 3);
                    fill(&mut apart, t, 3);
                }
                fresh.clear();
                for &t in graphs[0].inputs() {
                    let id = TensorId::new(0, t as u32);
                    fill(&mut real, id, seed + runs);
                    fill(&mut apart, id, seed + runs);
                }
                runs += 1;
                let choice = r.next();
                let (mut a, mut b) = (Vec::new(), Vec::new());
                run(&graphs, 0, choice, &mut real, &mut a);
                run(&graphs, 0, choice, &mut apart, &mut b);
                same(&a, &b, &format!("seed {seed} step {step}"));
                let kept = graphs[0].inputs().iter().chain(graphs[0].outputs()).map(|&t| TensorId::new(0, t as u32));
                for id in kept.chain(persistent.iter().copied()) {
                    assert_eq!(hash(&mut real, id), hash(&mut apart, id), "seed {seed} step {step}: {id:?}");
                }
            }
        }
    }
}

#[test]
fn sessions_do_what_one_buffer_per_tensor_does() {
    let n = sequences(10_000);
    (1..=n).for_each(session_sequence);
    println!("{n} session sequences, 0 differences");
}
