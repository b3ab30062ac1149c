//! Many instances of one plan: constants shared, a persistent arena each, and as many reusable arenas as run at once.
//!
//! ```text
//!   instance 0..N   state each      constants: one copy, read by all
//!        | acquire                  arenas: K at most, taken when first needed, free ones kept
//!        v
//!      run: an arena lent to the instance, given back when the run is dropped
//! ```

use core::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::arena::{Layout, Place};
use super::source::{Block, Source};
use crate::error::{Error, Subject};

/// How many, and where their memory comes from.
#[derive(Clone, Copy, Debug)]
pub struct InstancesConfig {
    /// Instances, each with persistent memory of its own.
    pub instances: usize,
    /// The most that run at once.
    pub arenas: usize,
    /// Where the reusable arenas come from. A caller's buffer holds one only.
    pub main: Source,
    /// Where persistent memory comes from. A caller's buffer holds that of one instance only.
    pub persistent: Source,
    /// Refuses a run that is used by another thread than the one that acquired it. On by default in debug builds.
    pub check_threads: bool,
}

impl InstancesConfig {
    /// `instances` of which `arenas` run at once, all from the system.
    pub fn new(instances: usize, arenas: usize) -> InstancesConfig {
        InstancesConfig {
            instances,
            arenas,
            main: Source::System,
            persistent: Source::System,
            check_threads: cfg!(debug_assertions),
        }
    }
}

#[derive(Debug)]
struct State {
    free: Vec<Block>,
    /// Arenas in existence, free and lent.
    arenas: usize,
    running: Vec<bool>,
    heap_calls: u64,
    high_water: usize,
}

/// Caller memory for a constant.
#[derive(Clone, Copy, Debug)]
struct Constant(NonNull<u8>);

// SAFETY: never read through; the caller's own pointer is handed back.
unsafe impl Send for Constant {}
// SAFETY: as above.
unsafe impl Sync for Constant {}

#[derive(Debug)]
struct Shared {
    layout: Layout,
    config: InstancesConfig,
    constants: Mutex<Vec<Vec<Option<Constant>>>>,
    state: Mutex<State>,
    returned: Condvar,
    persistent: Vec<Block>,
}

/// Instances of one plan. Any thread may use it; a [`Run`] belongs to one thread at a time.
#[derive(Clone, Debug)]
pub struct Instances(Arc<Shared>);

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancesStats {
    /// Bytes of all reusable arenas, lent or free.
    pub committed_bytes: usize,
    /// Bytes of persistent memory over all instances.
    pub persistent_bytes: usize,
    /// The most reusable arenas that ever existed, in bytes.
    pub high_water: usize,
    /// Arenas lent.
    pub running: usize,
    /// How often a source was asked or given something back.
    pub heap_calls: u64,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds a lock can panic half way through a change.
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_memory(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::overflow("the arena does not fit the address space").needed(bytes))
}

impl Instances {
    /// Takes and zeroes persistent memory for every instance; reusable arenas are taken when first needed.
    ///
    /// `Argument` for no instance or no arena, and where a caller's buffer would have to hold several arenas. Errors of
    /// [`Source::take`].
    pub fn new(layout: Layout, config: InstancesConfig) -> Result<Instances, Error> {
        if config.instances == 0 || config.arenas == 0 {
            return Err(Error::argument("there must be at least one instance and one arena"));
        }
        let one = |s: Source, n: usize| n == 1 || !matches!(s, Source::Buffer { .. });
        if !one(config.main, config.arenas) || !one(config.persistent, config.instances) {
            return Err(Error::argument("a caller's buffer cannot hold several arenas"));
        }
        let bytes = in_memory(layout.persistent_bytes)?;
        in_memory(layout.main_bytes)?;
        let mut persistent = Vec::with_capacity(config.instances);
        for _ in 0..config.instances {
            let block = config.persistent.take(bytes, layout.persistent_align.bytes() as usize)?;
            // SAFETY: the block holds so many writable bytes from its base, or is empty.
            unsafe { block.base().as_ptr().write_bytes(0, block.bytes()) };
            persistent.push(block);
        }
        let state = State {
            free: Vec::with_capacity(config.arenas),
            arenas: 0,
            running: vec![false; config.instances],
            heap_calls: if bytes > 0 { config.instances as u64 } else { 0 },
            high_water: 0,
        };
        let constants = layout.slots.iter().map(|s| vec![None; s.len()]).collect();
        Ok(Instances(Arc::new(Shared {
            layout,
            config,
            constants: Mutex::new(constants),
            state: Mutex::new(state),
            returned: Condvar::new(),
            persistent,
        })))
    }

    /// Says where a constant is for all instances: referenced, not copied; it outlives them and every run.
    ///
    /// `Argument` for a tensor that is no constant, `Capacity` where `bytes` is less than its size.
    pub fn bind_constant(&self, subgraph: usize, tensor: usize, data: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let slot = self.0.layout.slots.get(subgraph).and_then(|s| s.get(tensor));
        let slot = slot.ok_or(Error::argument("there is no such tensor").tensor(tensor))?;
        if slot.place != Place::Constant {
            return Err(Error::argument("the tensor is not a constant").tensor(tensor));
        }
        if (bytes as u64) < slot.bytes {
            let e = Error::capacity("the constant's data is shorter than the tensor").tensor(tensor);
            return Err(e.needed(slot.bytes).available(bytes as u64));
        }
        lock(&self.0.constants)[subgraph][tensor] = Some(Constant(data));
        Ok(())
    }

    /// Lends an arena to `instance`, waiting until one is free.
    ///
    /// `Busy` where this instance runs already: waiting for it could be waiting for oneself. `Argument` where there is no
    /// such instance; errors of [`Source::take`] where a new arena is refused.
    pub fn acquire(&self, instance: usize) -> Result<Run, Error> {
        self.lend(instance, true)
    }

    /// The same without waiting: `Busy` where all arenas are lent.
    pub fn try_acquire(&self, instance: usize) -> Result<Run, Error> {
        self.lend(instance, false)
    }

    fn lend(&self, instance: usize, wait: bool) -> Result<Run, Error> {
        let shared = &self.0;
        let mut state = lock(&shared.state);
        match state.running.get(instance) {
            None => {
                let e = Error::argument("there is no such instance").needed(instance as u64);
                return Err(e.available(state.running.len() as u64));
            }
            Some(true) => return Err(Error::busy("the instance is running already").needed(instance as u64)),
            Some(false) => {}
        }
        // Marked before waiting, so that a second caller for this instance is refused and not served first.
        state.running[instance] = true;
        loop {
            if let Some(block) = state.free.pop() {
                return Ok(self.run(instance, block));
            }
            if state.arenas < shared.config.arenas {
                let bytes = shared.layout.main_bytes as usize;
                match shared.config.main.take(bytes, shared.layout.main_align.bytes() as usize) {
                    Ok(block) => {
                        state.arenas += 1;
                        state.heap_calls += u64::from(bytes > 0);
                        state.high_water = state.high_water.max(state.arenas * bytes);
                        return Ok(self.run(instance, block));
                    }
                    Err(e) => {
                        state.running[instance] = false;
                        return Err(e);
                    }
                }
            }
            if !wait {
                state.running[instance] = false;
                return Err(Error::busy("all arenas are lent").available(shared.config.arenas as u64));
            }
            state = shared.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, instance: usize, block: Block) -> Run {
        Run { shared: self.0.clone(), instance, block: Some(block), owner: thread::current().id() }
    }

    /// Gives arenas that are not lent back to their source.
    pub fn trim(&self) {
        let mut state = lock(&self.0.state);
        let free = state.free.len();
        state.arenas -= free;
        state.heap_calls += free as u64;
        state.free.clear();
    }

    /// What is held at this moment.
    pub fn stats(&self) -> InstancesStats {
        let state = lock(&self.0.state);
        InstancesStats {
            committed_bytes: state.arenas * self.0.layout.main_bytes as usize,
            persistent_bytes: self.0.persistent.iter().map(Block::bytes).sum(),
            high_water: state.high_water,
            running: state.arenas - state.free.len(),
            heap_calls: state.heap_calls,
        }
    }
}

/// An instance with an arena for as long as this lives. One thread at a time.
///
/// The reusable arena's contents are those of whoever had it before; persistent contents are the instance's.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    instance: usize,
    block: Option<Block>,
    owner: ThreadId,
}

impl Run {
    /// The instance that runs.
    pub fn instance(&self) -> usize {
        self.instance
    }

    /// Makes the calling thread the one this run belongs to. Only for a run that was handed over, not shared.
    pub fn adopt(&mut self) {
        self.owner = thread::current().id();
    }

    /// The address and size of a tensor's bytes until the run ends; `None` for one without bytes here.
    ///
    /// `Busy` where threads are checked and this one is not the owner; `Argument` where there is no such tensor.
    pub fn resolve(&self, subgraph: usize, tensor: usize) -> Result<Option<(NonNull<u8>, usize)>, Error> {
        if self.shared.config.check_threads && self.owner != thread::current().id() {
            return Err(Error::busy("two threads use one arena: the run belongs to another").tensor(tensor));
        }
        let slot = self.shared.layout.slots.get(subgraph).and_then(|s| s.get(tensor));
        let none = Error::argument("there is no such tensor").tensor(tensor).and(Subject::Subgraph(subgraph as u32));
        let slot = slot.ok_or(none)?;
        let (block, offset) = match (slot.place, &self.block) {
            (Place::Main { offset }, Some(block)) => (block, offset),
            (Place::Persistent { offset }, _) => (&self.shared.persistent[self.instance], offset),
            (Place::Constant, _) => {
                let bound = lock(&self.shared.constants)[subgraph][tensor];
                return Ok(bound.map(|c| (c.0, slot.bytes as usize)));
            }
            _ => return Ok(None),
        };
        if offset > block.bytes() as u64 || slot.bytes > block.bytes() as u64 - offset {
            return Err(Error::internal("the tensor lies outside its arena").tensor(tensor));
        }
        // SAFETY: offset + bytes lie inside the block, as just checked.
        let address = unsafe { block.base().add(offset as usize) };
        Ok(Some((address, slot.bytes as usize)))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.running[self.instance] = false;
        state.free.extend(self.block.take());
        drop(state);
        self.shared.returned.notify_one();
    }
}
