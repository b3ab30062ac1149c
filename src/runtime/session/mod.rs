//! A session: a graph, its plan and its memory, with shapes that change between runs.
//!
//! ```text
//!   resize, bind, scratch --> stale --commit--> ready --resolve--> addresses, until the generation changes
//!                               ^                 |
//!                               +-----------------+     release: memory back, commit takes it again
//! ```
//!
//! Nothing happens before the commit, which plans (or finds the plan of these shapes in the cache), makes the memory
//! fit and updates all addresses at once.

mod bind;
mod commit;
mod guard;
mod overlay;
mod planned;
mod report;
mod scratch;

use std::sync::Arc;

use super::cache::SignatureCache;
use super::mapping::Mapping;
use super::source::Source;
use super::sticky::Sticky;
use super::store::{MemoryPolicy, Store};
use crate::error::{Error, Subject};
use crate::graph::liveness::{Options, Pin};
use crate::graph::owned::Graph;
use crate::graph::set::Link;
use crate::graph::tables::{Allocation, Tables};
use crate::planner;
use crate::units::{Align, Bytes};

pub use bind::{Accept, Misaligned};
pub use overlay::TensorId;
pub use planned::Replan;
pub use report::{AlignmentCost, NodeBytes, SessionStats, UpperBoundUse};
pub use scratch::{Formula, ScratchId, SizeFn};

use overlay::Sheet;
use planned::Planned;

/// How a session plans and where its memory comes from.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Lifetimes and alignment.
    pub options: Options,
    /// The strategy. By default `auto` with an effort of some milliseconds, since a session plans while it is used.
    pub planner: planner::Options,
    /// Tensors of the entry graph that live longer.
    pub pins: Vec<Pin>,
    /// Tensors that one subgraph hands to a later one in the same bytes ([`crate::graph::set`]).
    pub links: Vec<Link>,
    /// What a re-plan does with the offsets before.
    pub replan: Replan,
    /// The most plans kept.
    pub cached_plans: usize,
    /// Rules for the reusable arena.
    pub memory: MemoryPolicy,
    /// Where the reusable arena comes from.
    pub main: Source,
    /// Where the persistent arena comes from.
    pub persistent: Source,
    /// A source and an alignment for the entry graph's inputs and outputs: they are then not in the reusable arena and
    /// stay where they are while the rest is re-planned. `None` plans them with everything else.
    pub io: Option<(Source, Align)>,
    /// Puts a zone behind every planned tensor that [`Session::guard_after`] checks.
    pub guard: bool,
}

impl Default for SessionConfig {
    fn default() -> SessionConfig {
        SessionConfig {
            options: Options::default(),
            planner: planner::Options { effort: Some(20_000), ..planner::Options::default() },
            pins: Vec::new(),
            links: Vec::new(),
            replan: Replan::Keep,
            cached_plans: 16,
            memory: MemoryPolicy::default(),
            main: Source::System,
            persistent: Source::System,
            io: None,
            guard: false,
        }
    }
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    commits: u64,
    plans: u64,
    kept: u64,
    heap_calls_at_commit: u64,
}

/// A graph with its plan and memory. One thread at a time.
#[derive(Debug)]
pub struct Session {
    graphs: Vec<Graph>,
    entry: usize,
    config: SessionConfig,
    sheets: Vec<Sheet>,
    requests: Vec<scratch::Request>,
    bindings: Vec<bind::Binding>,
    /// Files that bindings refer to.
    mappings: Vec<Arc<Mapping>>,
    bounds: Vec<report::Bounded>,
    cache: SignatureCache<Planned>,
    signature: Vec<u64>,
    /// The plan whose addresses are out.
    current: Option<Arc<Planned>>,
    /// The sizes it was made for.
    committed: Vec<Vec<Option<Bytes>>>,
    main: Store,
    persistent: Sticky,
    io: Option<Sticky>,
    /// Per subgraph and tensor its address, 0 for none.
    addresses: Vec<Vec<usize>>,
    generation: u64,
    stale: bool,
    /// Whether more than sizes changed since the last commit.
    restructured: bool,
    reserved: Bytes,
    counts: Counts,
}

impl Session {
    /// A session of `graphs[entry]` and everything it calls, without memory yet.
    ///
    /// `Argument` for a bad index (named) and where there is no graph `entry`.
    pub fn new(graphs: Vec<Graph>, entry: usize, config: SessionConfig) -> Result<Session, Error> {
        crate::graph::timeline::Timeline::of(&graphs, entry)?;
        let mut sheets: Vec<Sheet> = graphs.iter().map(Sheet::of).collect();
        if config.io.is_some() {
            let own = &graphs[entry];
            for &t in own.inputs().iter().chain(own.outputs()).filter(|&&t| t >= 0) {
                sheets[entry].elsewhere[t as usize] |= own.tensor(t as usize).allocation == Allocation::ArenaRw;
            }
        }
        Ok(Session {
            entry,
            sheets,
            requests: Vec::new(),
            bindings: Vec::new(),
            mappings: Vec::new(),
            bounds: Vec::new(),
            cache: SignatureCache::new(config.cached_plans),
            signature: Vec::new(),
            current: None,
            committed: vec![Vec::new(); graphs.len()],
            main: Store::new(config.main, config.memory),
            persistent: Sticky::new(config.persistent),
            io: config.io.map(|(source, _)| Sticky::new(source)),
            addresses: vec![Vec::new(); graphs.len()],
            generation: 0,
            stale: true,
            restructured: false,
            reserved: 0,
            counts: Counts::default(),
            graphs,
            config,
        })
    }

    fn check(&self, id: TensorId) -> Result<(), Error> {
        let sheet = self.sheets.get(id.subgraph as usize);
        let none = Error::argument("there is no such subgraph").of(Subject::Subgraph(id.subgraph));
        let count = sheet.ok_or(none)?.sizes.len();
        if id.tensor as usize >= count {
            return Err(id.name(Error::argument("there is no such tensor").available(count as u64)));
        }
        Ok(())
    }

    fn bytes_of(&self, id: TensorId) -> Option<Bytes> {
        self.sheets[id.subgraph as usize].sizes[id.tensor as usize]
    }

    /// Gives a tensor another size. Nothing else happens before the commit; until then addresses are refused.
    ///
    /// `Argument` for a constant and for a tensor that does not exist. The same size again changes nothing.
    pub fn resize(&mut self, id: TensorId, bytes: Bytes) -> Result<(), Error> {
        self.check(id)?;
        let graph = &self.graphs[id.subgraph as usize];
        if (id.tensor as usize) >= graph.tensor_count() {
            return Err(id.name(Error::argument("a scratch request is resized by its own call")));
        }
        if graph.tensor(id.tensor as usize).allocation == Allocation::MmapRo {
            return Err(id.name(Error::argument("a constant cannot be resized")));
        }
        self.bounds.retain(|b| b.id != id);
        self.set_size(id, bytes);
        Ok(())
    }

    fn set_size(&mut self, id: TensorId, bytes: Bytes) {
        let size = &mut self.sheets[id.subgraph as usize].sizes[id.tensor as usize];
        if *size != Some(bytes) {
            *size = Some(bytes);
            self.stale = true;
        }
    }

    /// Adds a tensor that one subgraph hands to a later one; what does not fit is refused by the commit.
    ///
    /// `Argument` for a tensor that does not exist.
    pub fn add_link(&mut self, link: Link) -> Result<(), Error> {
        for (subgraph, tensor) in [link.from, link.to] {
            self.check(TensorId::new(subgraph, tensor))?;
        }
        if !self.config.links.contains(&link) {
            self.config.links.push(link);
            // Plans made without the link are no longer valid.
            self.cache.clear();
            (self.stale, self.restructured) = (true, true);
        }
        Ok(())
    }

    /// Whether something changed since the last commit.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Changes exactly when the address of a tensor does: a commit that moves one, a release, a binding.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes back the sizes given since the last commit, so that its addresses are valid again: the way on after a commit
    /// that failed. `Stale` where bindings or scratch requests changed too, or there is no memory.
    pub fn revert(&mut self) -> Result<(), Error> {
        // A plan without bytes has all the memory it needs.
        let held = self.current.as_ref().is_some_and(|p| p.bytes == 0 || self.main.is_committed());
        if self.restructured || !held {
            return Err(Error::stale("more than sizes changed, or nothing is committed: commit"));
        }
        for (sheet, committed) in self.sheets.iter_mut().zip(&self.committed) {
            sheet.sizes.copy_from_slice(committed);
        }
        let sheets = &self.sheets;
        self.bounds.retain(|b| b.holds(sheets));
        self.stale = false;
        Ok(())
    }

    /// Commits if necessary and gives the address and size of a tensor's bytes.
    pub fn ensure_allocated(&mut self, id: TensorId) -> Result<Option<(core::ptr::NonNull<u8>, usize)>, Error> {
        self.check(id)?;
        self.commit()?;
        self.resolve(id)
    }

    /// The address and size of a tensor's bytes, valid until the generation changes; `None` for a tensor without any.
    ///
    /// `Stale` where something changed or the memory was released: commit first.
    pub fn resolve(&self, id: TensorId) -> Result<Option<(core::ptr::NonNull<u8>, usize)>, Error> {
        self.check(id)?;
        if self.stale {
            return Err(id.name(Error::stale("shapes or bindings changed: commit first")));
        }
        let (g, t) = (id.subgraph as usize, id.tensor as usize);
        let address = core::ptr::NonNull::new(self.addresses[g][t] as *mut u8);
        if address.is_none() && !self.main.is_committed() && self.planned_offset(id).is_some() {
            return Err(id.name(Error::stale("the arena has no memory: commit first")));
        }
        Ok(address.map(|a| (a, self.sheets[g].sizes[t].unwrap_or(0) as usize)))
    }

    fn planned_offset(&self, id: TensorId) -> Option<Bytes> {
        self.current.as_ref().and_then(|p| p.offset(id))
    }

    /// Gives the reusable arena's memory back; persistent, bound and separate input and output memory stays. The next
    /// commit takes it again without planning.
    pub fn release(&mut self) {
        self.main.release();
        self.update_addresses();
    }

    /// Plans each set of sizes in advance (what a set does not name keeps its size) and makes every later commit hold at
    /// least what the largest needs. Returns those bytes; the memory is taken by the next commit.
    ///
    /// `Capacity` where there are more sets than the cache keeps. On an error nothing is reserved.
    pub fn reserve(&mut self, sets: &[&[(TensorId, Bytes)]]) -> Result<Bytes, Error> {
        if sets.len() > self.cache.capacity() {
            return Err(Error::capacity("the plan cache does not hold that many sets")
                .needed(sets.len() as u64)
                .available(self.cache.capacity() as u64));
        }
        for (id, _) in sets.iter().copied().flatten() {
            self.check(*id)?;
        }
        // The largest first: the others then tend to keep its offsets, and switching between them moves nothing.
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|&i| core::cmp::Reverse(sets[i].iter().map(|s| u128::from(s.1)).sum::<u128>()));
        let before: Vec<Vec<Option<Bytes>>> = self.sheets.iter().map(|s| s.sizes.clone()).collect();
        let current = self.current.clone();
        let mut most = 0;
        let mut result = Ok(());
        for i in order {
            for &(id, bytes) in sets[i] {
                self.sheets[id.subgraph as usize].sizes[id.tensor as usize] = Some(bytes);
            }
            result = self.evaluate_formulas().and_then(|()| self.planned_now(self.config.replan)).map(|p| {
                most = most.max(p.bytes);
                self.current = Some(p);
            });
            for (sheet, sizes) in self.sheets.iter_mut().zip(&before) {
                sheet.sizes.copy_from_slice(sizes);
            }
            if result.is_err() {
                break;
            }
        }
        self.current = current;
        result.and_then(|()| self.main.admit(most))?;
        self.reserved = self.reserved.max(most);
        self.stale = true;
        Ok(self.reserved)
    }

    /// Changes the rules for the reusable arena's memory; they hold from the next commit that has
    /// something to do.
    pub fn set_memory_policy(&mut self, policy: MemoryPolicy) {
        self.main.set_policy(policy);
    }

    /// Plans anew for the smallest arena, forgets reservations and holds no more than that needs.
    pub fn shrink_to_fit(&mut self) -> Result<(), Error> {
        self.evaluate_formulas()?;
        self.check_bindings()?;
        self.reserved = 0;
        self.cache.clear();
        let planned = self.planned_now(Replan::Smallest)?;
        self.stale = true;
        self.install_with(planned, true)
    }
}
