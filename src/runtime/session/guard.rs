//! Guard mode: a zone behind every planned tensor, checked after each node, so that an overrun names the operator.

use super::overlay::TensorId;
use super::planned::{alive, steps_of};
use super::Session;
use crate::error::{Error, Subject};
use crate::runtime::zone;

impl Session {
    /// The zone behind a tensor that has bytes in an arena of ours.
    fn zone_of(&self, id: TensorId) -> Option<*mut u8> {
        let (g, t) = (id.subgraph as usize, id.tensor as usize);
        let address = self.addresses[g][t];
        let size = self.sheets[g].sizes[t].unwrap_or(0);
        let ours = address != 0 && size > 0 && !self.sheets[g].elsewhere[t] && self.binding(id).is_none();
        ours.then(|| (address + size as usize) as *mut u8)
    }

    /// All tensors that have spans, as `f` wants them.
    fn planned_tensors(
        &self,
        mut f: impl FnMut(TensorId, &[crate::planner::Span]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(planned) = &self.current else { return Ok(()) };
        for (g, list) in planned.lowered.lives.spans.iter().enumerate() {
            for (t, spans) in list.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
                f(TensorId::new(g as u32, t as u32), spans)?;
            }
        }
        Ok(())
    }

    fn ready(&self) -> Result<(), Error> {
        if !self.config.guard {
            return Err(Error::unsupported("the session was created without guard mode"));
        }
        if self.stale || !self.main.is_committed() {
            return Err(Error::stale("shapes or bindings changed: commit first"));
        }
        Ok(())
    }

    /// Call before each node runs: prepares the zones of tensors that come alive there.
    ///
    /// `Unsupported` without guard mode, `Stale` before the commit.
    pub fn guard_before(&mut self, subgraph: u32, node: u32) -> Result<(), Error> {
        self.ready()?;
        let Some(planned) = self.current.clone() else { return Ok(()) };
        let steps: Vec<u32> = steps_of(&planned.lowered, subgraph, node).collect();
        self.planned_tensors(|id, spans| {
            if spans.iter().any(|s| steps.contains(&s.first)) {
                if let Some(zone) = self.zone_of(id) {
                    // SAFETY: the plan gave the tensor the zone's bytes beyond its size; they are the session's own.
                    unsafe { zone::paint(zone) };
                }
            }
            Ok(())
        })
    }

    /// Call after each node: checks the zones of everything alive there.
    ///
    /// `Argument` names the node and a tensor that was written past its end; `needed` is how many bytes past it the last
    /// damage lies. The zone is repaired, so that the next node is not blamed.
    pub fn guard_after(&mut self, subgraph: u32, node: u32) -> Result<(), Error> {
        self.ready()?;
        let Some(planned) = self.current.clone() else { return Ok(()) };
        let steps: Vec<u32> = steps_of(&planned.lowered, subgraph, node).collect();
        self.planned_tensors(|id, spans| {
            if steps.is_empty() || !steps.iter().all(|&s| alive(spans, s)) {
                return Ok(());
            }
            let Some(zone) = self.zone_of(id) else { return Ok(()) };
            // SAFETY: as in `guard_before`, which painted the zone when the tensor came alive.
            match unsafe { zone::damage(zone) } {
                Some(bytes) => Err(Error::argument("the node wrote past the end of a tensor")
                    .of(Subject::Node(node))
                    .and(Subject::Tensor(id.tensor))
                    .needed(bytes)),
                None => Ok(()),
            }
        })
    }
}
