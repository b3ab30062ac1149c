//! The life cycle of TensorFlow Lite's planner over real memory: plan, execute node range by node range, reset, release.

use core::ptr::NonNull;

use super::incremental_guard::Zoned;
use super::source::Source;
use super::store::{Keep, MemoryPolicy, Store};
use super::zone::zoned;
use crate::error::Error;
use crate::graph::incremental::{Arena, Incremental, Record, Sharing};
use crate::graph::tables::Tables;
use crate::units::{Align, Bytes, DEFAULT_ALIGN};

/// How an [`IncrementalArena`] places tensors and where its memory comes from.
#[derive(Clone, Copy, Debug)]
pub struct IncrementalConfig {
    /// Alignment of every tensor; a tensor or a node may ask for a stricter one.
    pub align: Align,
    /// Nothing is released and nothing shared, so that every tensor can be read after the run.
    pub preserve_all: bool,
    /// Which tensors share bytes in place.
    pub sharing: Sharing,
    /// Rules for the main arena's memory.
    pub memory: MemoryPolicy,
    /// Where the main arena comes from.
    pub main: Source,
    /// Where the persistent arena comes from.
    pub persistent: Source,
    /// Puts a zone behind every tensor that [`IncrementalArena::guard_after`] checks.
    pub guard: bool,
}

impl Default for IncrementalConfig {
    fn default() -> IncrementalConfig {
        IncrementalConfig {
            align: DEFAULT_ALIGN,
            preserve_all: false,
            sharing: Sharing::Safe,
            memory: MemoryPolicy::default(),
            main: Source::System,
            persistent: Source::System,
            guard: false,
        }
    }
}

/// Memory for one graph whose tensors get their sizes while it runs. One thread at a time.
///
/// Executing a range never moves a tensor that is already placed: what is alive keeps its offset and, when the block
/// grows, its contents. Persistent tensors keep their contents always, through resets too.
#[derive(Debug)]
pub struct IncrementalArena {
    pub(super) plan: Incremental,
    pub(super) main: Store,
    pub(super) persistent: Store,
    /// Where each persistent tensor's contents are: offset and bytes. Outlives a reset.
    contents: Vec<Option<(Bytes, Bytes)>>,
    /// Bytes of the persistent arena that hold contents.
    persistent_used: Bytes,
    /// Whether the main arena holds contents that must survive.
    live: bool,
    /// The strictest alignment executed so far, which the base must meet.
    align: Align,
    pub(super) addresses: Vec<usize>,
    generation: u64,
    pub(super) guard: bool,
    /// Per tensor the address of its zone since that was written; 0 for none.
    pub(super) painted: Vec<usize>,
    /// What a run between two resets needed, where the memory policy has found that less would do.
    shrink_to: Option<Bytes>,
    pub(super) heap_calls_at_execute: u64,
}

impl IncrementalArena {
    /// An arena without a plan and without memory.
    pub fn new(config: &IncrementalConfig) -> IncrementalArena {
        IncrementalArena {
            plan: Incremental::new(config.align, config.preserve_all).with_sharing(config.sharing),
            main: Store::new(config.main, config.memory),
            persistent: Store::new(config.persistent, MemoryPolicy::default()),
            contents: Vec::new(),
            persistent_used: 0,
            live: false,
            align: DEFAULT_ALIGN,
            addresses: Vec::new(),
            generation: 0,
            guard: config.guard,
            painted: Vec::new(),
            shrink_to: None,
            heap_calls_at_execute: 0,
        }
    }

    /// Finds lifetimes and forgets all places, and the contents of a graph before; memory is kept.
    ///
    /// Errors as [`Incremental::plan`]; then there is no plan.
    pub fn plan<T: Tables + ?Sized>(&mut self, graph: &T) -> Result<(), Error> {
        let planned = self.plan.plan(graph);
        (self.live, self.persistent_used) = (false, 0);
        self.contents.clear();
        self.update();
        planned
    }

    /// Places the tensors of nodes `first ..= last` that have no place or outgrew theirs, and takes the memory.
    ///
    /// Nothing placed moves. Errors: those of [`Incremental::execute`], `Capacity` past the memory limit, `NoMemory`. All
    /// places are then as before, and so is the memory, except that a block whose contents need not survive was given
    /// back first and taken again (see [`MemoryPolicy::keep_on_failure`]).
    pub fn execute<T: Tables + ?Sized>(&mut self, graph: &T, first: i32, last: i32) -> Result<(), Error> {
        if self.guard {
            self.execute_sized(&Zoned(graph), first, last)
        } else {
            self.execute_sized(graph, first, last)
        }
    }

    fn execute_sized<T: Tables + ?Sized>(&mut self, graph: &T, first: i32, last: i32) -> Result<(), Error> {
        let mut next = self.plan.clone();
        next.execute(graph, first, last)?;
        let (main, persistent) = next.bytes();
        let align = next.align_of(graph).max(self.align);
        let needed = persistent.max(self.persistent_used);
        self.main.admit(main)?;
        self.persistent.fit(needed, align, Keep::Bytes(self.persistent_used as usize), false)?;
        let keep = if self.live { Keep::Bytes(self.plan.bytes().0 as usize) } else { Keep::Nothing };
        // The first range of a run may need less than the rest.
        let shrink = if self.live { None } else { self.shrink_to.take() };
        if let Err(e) = self.main.fit(main.max(shrink.unwrap_or(0)), align, keep, shrink.is_some()) {
            if !self.main.is_committed() {
                self.plan.release();
            }
            self.update();
            return Err(e);
        }
        (self.plan, self.align) = (next, align);
        self.live = true;
        self.heap_calls_at_execute = self.heap_calls();
        self.move_contents();
        self.update();
        Ok(())
    }

    /// Brings persistent contents to where the plan has them now, and zeroes what is new.
    fn move_contents(&mut self) {
        let base = self.persistent.base().map_or(core::ptr::null_mut(), NonNull::as_ptr);
        self.contents.resize(self.plan.len(), None);
        let place = |t: usize| {
            let r = self.plan.record(t).filter(|r| r.arena == Arena::Persistent && r.size > 0)?;
            Some((r.offset, r.size))
        };
        let changed: Vec<(usize, (Bytes, Bytes))> = (0..self.plan.len())
            .filter_map(|t| place(t).filter(|&p| self.contents[t] != Some(p)).map(|p| (t, p)))
            .collect();
        if changed.is_empty() {
            return;
        }
        // A reset may have laid out everything anew, so all contents are set aside before any is written.
        let mut aside = Vec::new();
        for (from, bytes) in self.contents.iter().flatten() {
            aside.resize(aside.len().max((from + bytes) as usize), 0);
            // SAFETY: places with contents lie in the block.
            let at = unsafe { base.add(*from as usize) };
            // SAFETY: as above, and what has contents was written or zeroed when it got its place.
            let held = unsafe { core::slice::from_raw_parts(at, *bytes as usize) };
            aside[*from as usize..(from + bytes) as usize].copy_from_slice(held);
        }
        for &(t, (offset, size)) in &changed {
            // SAFETY: `execute` made the block at least as large as the end of every place.
            let to = unsafe { base.add(offset as usize) };
            let kept = self.contents[t].map_or(0, |(_, bytes)| bytes.min(size)) as usize;
            // SAFETY: the place lies in the block.
            unsafe { to.write_bytes(0, size as usize) };
            if let Some((from, _)) = self.contents[t] {
                let from = &aside[from as usize..from as usize + kept];
                // SAFETY: `kept` is at most the place's size, and `from` is memory of its own.
                unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, kept) };
            }
            self.contents[t] = Some((offset, size));
        }
        self.persistent_used = self.persistent_used.max(self.plan.bytes().1);
    }

    /// Forgets all places and keeps lifetimes and memory. Contents of the main arena end; persistent contents follow their
    /// tensors to the places they get next.
    ///
    /// For the memory policy this is the end of a run: where the runs need little, the next execution holds less.
    pub fn reset(&mut self) {
        let needed = self.plan.bytes().0;
        if self.live && self.main.wants_to_shrink(needed) {
            self.shrink_to = Some(needed);
        }
        self.painted.clear();
        self.plan.reset();
        self.live = false;
        self.update();
    }

    /// Forgets the places of main-arena tensors that begin after `node`. Everything else stays, contents too.
    pub fn reset_after(&mut self, node: i32) {
        self.plan.reset_after(node);
        self.update();
    }

    /// Gives the main arena's memory back. Places are kept for [`IncrementalArena::acquire`]; contents are not.
    pub fn release(&mut self) {
        self.plan.release();
        self.main.release();
        self.painted.clear();
        self.live = false;
        self.update();
    }

    /// Takes the main arena's memory again, every tensor at its old offset. Does nothing where it is held.
    pub fn acquire(&mut self) -> Result<(), Error> {
        if !self.plan.has_memory() {
            self.main.fit(self.plan.bytes().0, self.align, Keep::Nothing, false)?;
            self.plan.acquire();
            self.update();
        }
        Ok(())
    }

    /// Gives back what the main arena holds beyond the plan; contents survive.
    pub fn shrink_to_fit(&mut self) -> Result<(), Error> {
        if self.plan.has_memory() {
            let keep = if self.live { Keep::Bytes(self.plan.bytes().0 as usize) } else { Keep::Nothing };
            self.main.fit(self.plan.bytes().0, self.align, keep, true)?;
            self.update();
        }
        Ok(())
    }

    /// Changes the rules for the main arena's memory; they hold from the next execution on.
    pub fn set_memory_policy(&mut self, policy: MemoryPolicy) {
        self.main.set_policy(policy);
        self.shrink_to = None;
    }

    /// Whether the main arena is committed, which it also is at 0 bytes.
    pub fn has_memory(&self) -> bool {
        self.plan.has_memory()
    }

    /// Changes exactly when the address of a tensor does.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The address and size of a tensor's bytes, valid until the generation changes. `None` for one without bytes here.
    ///
    /// `Stale` where the tensor has outgrown its place: execute its node first. `Argument` where there is no such tensor.
    pub fn resolve<T: Tables + ?Sized>(&self, graph: &T, tensor: usize) -> Result<Option<(NonNull<u8>, usize)>, Error> {
        let count = graph.tensor_count();
        if tensor >= count {
            return Err(Error::argument("there is no such tensor").tensor(tensor).available(count as u64));
        }
        let root = self.plan.root_of(tensor).map_or(tensor, |r| r as usize);
        let bytes = graph.tensor(tensor).bytes.unwrap_or(0);
        let wanted = if self.guard { zoned(bytes) } else { bytes };
        if let Some(held) = self.plan.record(root).map(|r| r.size).filter(|&held| held < wanted) {
            return Err(Error::stale("the tensor has outgrown its place: execute its node first")
                .tensor(tensor)
                .needed(wanted)
                .available(held));
        }
        let Some(address) = self.addresses.get(tensor).and_then(|&a| NonNull::new(a as *mut u8)) else {
            return Ok(None);
        };
        Ok(Some((address, bytes as usize)))
    }

    /// The place of a tensor itself, aliases not followed.
    pub fn record(&self, tensor: usize) -> Option<Record> {
        self.plan.record(tensor)
    }

    /// Bytes the main and the persistent arena hold.
    pub fn allocation_info(&self) -> (usize, usize) {
        (self.main.bytes(), self.persistent.bytes())
    }

    /// Where an arena begins; `None` while it holds no bytes.
    pub fn base(&self, arena: Arena) -> Option<NonNull<u8>> {
        let store = match arena {
            Arena::Main => &self.main,
            Arena::Persistent => &self.persistent,
        };
        store.base().filter(|_| store.bytes() > 0)
    }

    /// Bytes the main and the persistent arena need, unrounded.
    pub fn planned_bytes(&self) -> (Bytes, Bytes) {
        self.plan.bytes()
    }

    fn update(&mut self) {
        let base = |s: &Store| s.base().map(|b| b.as_ptr() as usize);
        let (main, persistent) = (base(&self.main), base(&self.persistent));
        let mut changed = self.addresses.len() > self.plan.len();
        self.addresses.resize(self.plan.len(), 0);
        for (t, slot) in self.addresses.iter_mut().enumerate() {
            let address = match self.plan.place_of(t) {
                Some((Arena::Main, offset)) => main.map_or(0, |b| b + offset as usize),
                Some((Arena::Persistent, offset)) => persistent.map_or(0, |b| b + offset as usize),
                None => 0,
            };
            changed |= *slot != address;
            *slot = address;
        }
        self.generation += u64::from(changed);
    }
}
