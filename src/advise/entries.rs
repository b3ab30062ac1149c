//! One arena for all entry subgraphs, which is what a plan counts, and for other models of the same program.

use super::{Case, Outcome, Pulled};
use crate::error::Error;

const HOW: &str =
    "Models that never run at the same time can work in the same bytes: one arena of the largest size given to \
                   each in turn (arenite_arena_create over one source; TFLite Micro: one MicroAllocator for several \
                   interpreters; ONNX Runtime: a shared allocator, session.use_env_allocators).";

pub(super) fn pull(case: &Case<'_>, now: &Outcome) -> Result<Vec<Pulled>, Error> {
    const LEVER: &str = "one-arena";
    let mut out = Vec::new();
    if now.arenas.len() > 1 {
        let sum = now.arenas.iter().fold(0u64, |a, &b| a.saturating_add(b));
        let why = format!(
            "counted already: the {} entries run one at a time in one arena of {} B; an arena each would take {sum} B, {} B more",
            now.arenas.len(),
            now.arena,
            sum - now.arena
        );
        out.push(Pulled::nothing(LEVER, why));
    }
    if let Some((name, most)) = case.others.iter().max_by_key(|o| o.1) {
        let arena = now.arena.saturating_sub(*most);
        let all = now.arena.max(*most);
        let apart = case.others.iter().fold(now.arena, |a, o| a.saturating_add(o.1));
        let why = format!(
            "one arena of {all} B for this model and {} more ({name:?} needs {most} B) instead of one each, {apart} B together: \
             this model adds {arena} B to what the others have",
            case.others.len()
        );
        out.push(Pulled { arena: Some(arena), ..Pulled::new(LEVER, now.clone(), why, HOW) });
    }
    if out.is_empty() {
        let why = "does nothing here: there is one entry, and no other model is named (--with)";
        out.push(Pulled::nothing(LEVER, why));
    }
    Ok(out)
}
