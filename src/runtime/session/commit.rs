//! The commit: signature, plan, memory, addresses.

use std::sync::Arc;

use super::overlay::{TensorId, View};
use super::planned::{self, Planned, Replan, Request};
use super::Session;
use crate::error::Error;
use crate::graph::liveness::Home;
use crate::runtime::store::Keep;

impl Session {
    /// Plans what changed, makes the memory fit, and updates all addresses. Does nothing where nothing is stale.
    ///
    /// Contents of the reusable arena are undefined after a commit that changed the generation; persistent tensors keep
    /// theirs. Errors: `UnknownSize` and `Capacity` (memory limit, a bound buffer that became too small) name the tensor
    /// and change nothing. `NoMemory` leaves persistent contents; the old plan has its memory back, at possibly another
    /// address, unless not even that much is left (`MemoryPolicy::keep_on_failure` avoids that); [`Session::revert`]
    /// returns to it.
    pub fn commit(&mut self) -> Result<(), Error> {
        if !self.stale && self.main.is_committed() {
            return Ok(());
        }
        self.evaluate_formulas()?;
        self.check_bindings()?;
        // Without a change only the memory is missing.
        let planned = match &self.current {
            Some(current) if !self.stale => current.clone(),
            _ => self.planned_now(self.config.replan)?,
        };
        self.install(planned)
    }

    pub(super) fn views(&self) -> Vec<View<'_>> {
        let guard = self.config.guard;
        self.graphs.iter().zip(&self.sheets).map(|(graph, sheet)| View { graph, sheet, guard, without: None }).collect()
    }

    fn sign(&mut self) {
        self.signature.clear();
        for sheet in &self.sheets {
            self.signature.push(sheet.sizes.len() as u64);
            self.signature.extend(sheet.sizes.iter().map(|s| s.unwrap_or(u64::MAX)));
            let bits = |c: &[bool]| c.iter().enumerate().fold(0, |w, (i, &b)| w | u64::from(b) << i);
            self.signature.extend(sheet.elsewhere.chunks(64).map(bits));
            self.signature.extend(sheet.scratch.iter().map(|a| a.bytes()));
        }
    }

    /// The plan of the current sizes: from the cache, or made now.
    pub(super) fn planned_now(&mut self, replan: Replan) -> Result<Arc<Planned>, Error> {
        self.sign();
        if let Some(found) = self.cache.get(&self.signature) {
            return Ok(found);
        }
        self.plan_anew(replan)
    }

    fn plan_anew(&mut self, replan: Replan) -> Result<Arc<Planned>, Error> {
        let views = self.views();
        let request = Request {
            views: &views,
            entry: self.entry,
            options: &self.config.options,
            planner: &self.config.planner,
            pins: &self.config.pins,
            links: &self.config.links,
            replan,
            old: self.current.as_deref(),
            held: self.main.bytes() as u64,
        };
        let planned = Arc::new(request.run()?);
        self.counts.plans += 1;
        self.counts.kept += u64::from(planned.origin == planned::Origin::Kept);
        self.cache.put(&self.signature, planned.clone());
        Ok(planned)
    }

    fn install(&mut self, planned: Arc<Planned>) -> Result<(), Error> {
        let held = self.main.bytes() as u64;
        // What a compact plan needs decides: offsets that were only kept may spread over the whole block.
        if !self.main.wants_to_shrink(planned.bound.max(self.reserved)) {
            return self.install_with(planned, false);
        }
        let compact = if planned.compact || planned.bytes.saturating_mul(8) <= held {
            planned
        } else {
            self.plan_anew(Replan::Smallest)?
        };
        self.install_with(compact, true)
    }

    pub(super) fn install_with(&mut self, planned: Arc<Planned>, shrink: bool) -> Result<(), Error> {
        let need = planned.bytes.max(self.reserved);
        self.main.admit(need)?;
        self.persistent.ensure(&planned.persistent)?;
        if self.io.is_some() {
            let wants = self.io_wants();
            if let Some(io) = &mut self.io {
                io.ensure(&wants)?;
            }
        }
        let align = planned.align.max(self.config.options.align);
        let fitted = self.main.fit(need, align, Keep::Nothing, shrink);
        if fitted.is_ok() {
            self.current = Some(planned);
            self.stale = false;
            self.restructured = false;
            for (committed, sheet) in self.committed.iter_mut().zip(&self.sheets) {
                committed.clear();
                committed.extend_from_slice(&sheet.sizes);
            }
            self.counts.commits += 1;
        }
        self.update_addresses();
        self.counts.heap_calls_at_commit = self.heap_calls();
        fitted
    }

    /// Writes every tensor's address and counts a generation if one differs from before.
    pub(super) fn update_addresses(&mut self) {
        let base = self.main.base().map(|b| b.as_ptr() as usize);
        let mut changed = false;
        for g in 0..self.graphs.len() {
            let mut list = core::mem::take(&mut self.addresses[g]);
            list.resize(self.sheets[g].sizes.len(), 0);
            for (t, slot) in list.iter_mut().enumerate() {
                let address = self.address(base, TensorId::new(g as u32, t as u32));
                changed |= *slot != address;
                *slot = address;
            }
            self.addresses[g] = list;
        }
        self.generation += u64::from(changed);
    }

    fn address(&self, base: Option<usize>, id: TensorId) -> usize {
        if let Some(bound) = self.binding(id) {
            return bound.address();
        }
        let (g, t) = (id.subgraph as usize, id.tensor as usize);
        if let (Some(io), true) = (&self.io, self.sheets[g].elsewhere[t]) {
            return io.address(id).unwrap_or(0);
        }
        let Some(planned) = &self.current else { return 0 };
        match (planned.lowered.lives.own[g].get(t).map(|l| l.home), planned.offset(id), base) {
            (Some(Home::Persistent), ..) => self.persistent.address(id).unwrap_or(0),
            (_, Some(offset), Some(base)) => base + offset as usize,
            _ => 0,
        }
    }
}
