//! `arenite check PROFILE`: the plan that a runtime had in force when the profile was recorded.

use arenite::graph::incremental::Arena;
use arenite::graph::liveness::{Options, Policy};
use arenite::graph::lower::lower;
use arenite::model::Model;
use arenite::planner::{BufferSpec, Problem};
use arenite::units::{Align, Bytes};

use super::check::{examine, push, Args, Case, Outcome};
use super::check_out::Finding;
use super::input::shown;
use super::output::{Done, Failure};
use super::planned::named;

/// Checks both arenas of every recorded subgraph. Each has a planner of its own, and so does one that another calls.
pub fn run(args: &Args, model: &Model, out: &mut Outcome) -> Done<()> {
    let mut model = model.clone();
    let wanted = match args.subgraph {
        Some(_) => super::adjust::entries(&mut model, args.subgraph)?,
        None => (0..model.subgraphs.len()).collect(),
    };
    let several = model.subgraphs.len() > 1;
    for k in wanted {
        let Some(plan) = model.recorded_plan(k).cloned() else { continue };
        let mut alone = model.clone();
        super::adjust::entries(&mut alone, u32::try_from(k).ok())?;
        let options = Options {
            policy: args.policy.unwrap_or(Policy::Tflite),
            in_place: !args.no_in_place,
            align: args.align.or(plan.align).unwrap_or(Align::ONE),
            reuse_inputs: args.reuse_inputs,
            ..Options::default()
        };
        let refuse = |e| Failure::about(shown(&args.problem), named(&model, e));
        let lowered = lower(&alone.subgraphs, k, &options, &[]).map_err(refuse)?;
        let graph = &model.subgraphs[k];
        let id = |t: usize| (if several { format!("{k}:{t}") } else { t.to_string() }, graph.tensors[t].name.clone());
        let time = |s: u32| (s.into(), s.into());

        let mut tensors = vec![0; lowered.problem.len()];
        let mut offsets = vec![None; lowered.problem.len()];
        // Everything in the persistent arena lives for ever.
        let mut kept = Problem::new();
        let (mut kept_tensors, mut kept_offsets) = (Vec::new(), Vec::new());
        for (t, place) in plan.places.iter().enumerate() {
            let buffer = lowered.buffers[k].get(t).copied().flatten();
            if let Some(b) = buffer {
                tensors[b as usize] = t;
            }
            match (place, buffer) {
                (Some((Arena::Main, offset)), Some(b)) => offsets[b as usize] = Some(*offset),
                (Some((Arena::Persistent, offset)), None) => {
                    let spec = BufferSpec::new(graph.tensors[t].bytes.unwrap_or(0), options.align);
                    kept.add_one(spec, 0, 0).map_err(|e| refuse(e.tensor(t)))?;
                    kept_tensors.push(t);
                    kept_offsets.push(Some(*offset));
                }
                (Some((Arena::Persistent, _)), Some(b)) if lowered.problem.buffers()[b as usize].spec.size > 0 => {
                    push(out, Finding::Missing { a: id(t) });
                }
                // A place that nobody uses, and none for what needs none.
                _ => {}
            }
        }
        let main =
            Case { problem: &lowered.problem, offsets, complete: true, base: 0, id: &|i| id(tensors[i]), time: &time };
        within(&main, plan.arena_bytes, out);
        let persistent = Case {
            problem: &kept,
            offsets: kept_offsets,
            complete: true,
            base: 0,
            id: &|i| id(kept_tensors[i]),
            time: &time,
        };
        within(&persistent, plan.persistent_bytes, out);
    }
    Ok(())
}

/// Checks one arena, and that it is as large as its buffers need. The largest arena is the outcome's.
fn within(case: &Case<'_>, available: Option<Bytes>, out: &mut Outcome) {
    let before = std::mem::take(&mut out.arena_bytes);
    examine(case, out);
    if let Some(capacity) = available.filter(|&a| a < out.arena_bytes) {
        push(out, Finding::Capacity { arena: out.arena_bytes, capacity });
    }
    out.arena_bytes = out.arena_bytes.max(before);
}
