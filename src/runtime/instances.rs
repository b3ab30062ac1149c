//! Many instances of one plan: constants shared, a persistent arena each, and as many reusable arenas as run at once.
//!
//! ```text
//!   instance 0..N   state each      constants: one copy, read by all
//!        | acquire                  arenas: K at most, taken when first needed, free ones kept
//!        v
//!      run: an arena lent to the instance, given back when the run is dropped
//! ```

use core::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::arena::{Layout, Place};
use super::lease::{Lease, Leases};
use super::mapping::Mapping;
use super::source::Source;
use super::supply::{Area, Supply};
use crate::error::{Error, Subject};

/// How many, and where their memory comes from.
#[derive(Clone, Debug)]
pub struct InstancesConfig {
    /// Instances, each with persistent memory of its own.
    pub instances: usize,
    /// The most that run at once.
    pub arenas: usize,
    /// Where the reusable arenas come from: a pool if there is one, else a source.
    pub main: Supply,
    /// Where persistent memory comes from. A caller's buffer holds that of one instance only.
    pub persistent: Supply,
    /// Refuses a run that is used by another thread than the one that acquired it. On by default in debug builds.
    pub check_threads: bool,
}

impl InstancesConfig {
    /// `instances` of which `arenas` run at once, all from the system.
    pub fn new(instances: usize, arenas: usize) -> InstancesConfig {
        InstancesConfig {
            instances,
            arenas,
            main: Supply::Source(Source::System),
            persistent: Supply::Source(Source::System),
            check_threads: cfg!(debug_assertions),
        }
    }
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
    check_threads: bool,
    constants: Mutex<Vec<Vec<Option<Constant>>>>,
    /// Files that constants refer to.
    mappings: Mutex<Vec<Arc<Mapping>>>,
    running: Mutex<Vec<bool>>,
    arenas: Arc<Leases>,
    persistent: Vec<Area>,
}

/// Instances of one plan. Any thread may use it; a [`Run`] belongs to one thread at a time.
#[derive(Clone, Debug)]
pub struct Instances(Arc<Shared>);

/// What is held and what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstancesStats {
    /// Bytes of all reusable arenas, lent or free.
    pub committed_bytes: usize,
    /// Bytes of persistent memory over all instances.
    pub persistent_bytes: usize,
    /// The most bytes of reusable arenas that ever existed at a time.
    pub high_water: usize,
    /// Arenas lent.
    pub running: usize,
    /// How often a pool or source was asked or given something back.
    pub heap_calls: u64,
    /// The most arenas lent at a time.
    pub peak: usize,
    /// Runs begun so far.
    pub runs: u64,
    /// Requests that had to wait for an arena, from the moment they do.
    pub waits: u64,
    /// Those refused because all arenas were lent or there was no memory.
    pub refused: u64,
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
    /// the pool or [`Source::take`].
    pub fn new(layout: Layout, config: InstancesConfig) -> Result<Instances, Error> {
        if config.instances == 0 || config.arenas == 0 {
            return Err(Error::argument("there must be at least one instance and one arena"));
        }
        config.persistent.check(config.instances as u64)?;
        // More arenas than instances are never lent.
        let limit = u32::try_from(config.arenas.min(config.instances)).unwrap_or(u32::MAX);
        let align = |a: crate::units::Align| a.bytes() as usize;
        let arenas = Leases::new(config.main, in_memory(layout.main_bytes)?, align(layout.main_align), limit)?;
        let bytes = in_memory(layout.persistent_bytes)?;
        let mut persistent = Vec::new();
        for _ in 0..config.instances {
            let area = config.persistent.take(bytes, align(layout.persistent_align))?;
            // SAFETY: the area holds so many writable bytes from its base, or is empty.
            unsafe { area.base().as_ptr().write_bytes(0, bytes) };
            persistent.push(area);
        }
        let constants = layout.slots.iter().map(|s| vec![None; s.len()]).collect();
        Ok(Instances(Arc::new(Shared {
            layout,
            check_threads: config.check_threads,
            constants: Mutex::new(constants),
            mappings: Mutex::default(),
            running: Mutex::new(vec![false; config.instances]),
            arenas: Arc::new(arenas),
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

    /// The same for data in a mapped file, from `offset` on; the instances keep the mapping alive.
    ///
    /// `Capacity` where the tensor's bytes reach past the end of the file.
    pub fn bind_mapped(&self, subgraph: usize, tensor: usize, file: &Arc<Mapping>, offset: u64) -> Result<(), Error> {
        let slot = self.0.layout.slots.get(subgraph).and_then(|s| s.get(tensor));
        let bytes = slot.map_or(0, |s| s.bytes);
        let data = file.at(offset, bytes).map_err(|e| e.tensor(tensor))?;
        self.bind_constant(subgraph, tensor, data, bytes as usize)?;
        let mut kept = lock(&self.0.mappings);
        if !kept.iter().any(|m| Arc::ptr_eq(m, file)) {
            kept.push(file.clone());
        }
        Ok(())
    }

    /// Lends an arena to `instance`, waiting until one is free.
    ///
    /// `Busy` where this instance runs already: waiting for it could be waiting for oneself. `Argument` where there is no
    /// such instance; errors of the pool or source where it refuses a new arena and none is lent that could come back.
    pub fn acquire(&self, instance: usize) -> Result<Run, Error> {
        self.lend(instance, Leases::acquire)
    }

    /// The same without waiting: `Busy` where all arenas are lent.
    pub fn try_acquire(&self, instance: usize) -> Result<Run, Error> {
        self.lend(instance, Leases::try_acquire)
    }

    fn lend(&self, instance: usize, lease: impl FnOnce(&Arc<Leases>) -> Result<Lease, Error>) -> Result<Run, Error> {
        // Marked before waiting, so that a second caller for this instance is refused and not served first.
        match lock(&self.0.running).get_mut(instance) {
            None => {
                let e = Error::argument("there is no such instance").needed(instance as u64);
                return Err(e.available(self.0.persistent.len() as u64));
            }
            Some(true) => return Err(Error::busy("the instance is running already").needed(instance as u64)),
            Some(free) => *free = true,
        }
        match lease(&self.0.arenas) {
            Ok(lease) => {
                Ok(Run { shared: self.0.clone(), instance, lease: Some(lease), owner: thread::current().id() })
            }
            Err(e) => {
                lock(&self.0.running)[instance] = false;
                Err(e)
            }
        }
    }

    /// Gives arenas that are not lent back to their pool or source.
    pub fn trim(&self) {
        self.0.arenas.trim(0);
    }

    /// What is held at this moment.
    pub fn stats(&self) -> InstancesStats {
        let s = self.0.arenas.stats();
        let (main, persistent) = (self.0.layout.main_bytes as usize, self.0.layout.persistent_bytes as usize);
        let instances = self.0.persistent.len();
        InstancesStats {
            committed_bytes: s.areas as usize * main,
            persistent_bytes: instances * persistent,
            high_water: s.most as usize * main,
            running: s.in_use as usize,
            heap_calls: s.supply_calls + if persistent > 0 { instances as u64 } else { 0 },
            peak: s.peak as usize,
            runs: s.leases,
            waits: s.waits,
            refused: s.refused,
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
    /// Taken when the run ends.
    lease: Option<Lease>,
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
        if self.shared.check_threads && self.owner != thread::current().id() {
            return Err(Error::busy("two threads use one arena: the run belongs to another").tensor(tensor));
        }
        let slot = self.shared.layout.slots.get(subgraph).and_then(|s| s.get(tensor));
        let none = Error::argument("there is no such tensor").tensor(tensor).and(Subject::Subgraph(subgraph as u32));
        let slot = slot.ok_or(none)?;
        let layout = &self.shared.layout;
        let (base, held, offset) = match (slot.place, &self.lease) {
            (Place::Main { offset }, Some(lease)) => (lease.base(), lease.bytes() as u64, offset),
            (Place::Persistent { offset }, _) => {
                (self.shared.persistent[self.instance].base(), layout.persistent_bytes, offset)
            }
            (Place::Constant, _) => {
                let bound = lock(&self.shared.constants)[subgraph][tensor];
                return Ok(bound.map(|c| (c.0, slot.bytes as usize)));
            }
            _ => return Ok(None),
        };
        if offset > held || slot.bytes > held - offset {
            return Err(Error::internal("the tensor lies outside its arena").tensor(tensor));
        }
        // SAFETY: offset + bytes lie inside the area, as just checked.
        let address = unsafe { base.add(offset as usize) };
        Ok(Some((address, slot.bytes as usize)))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The arena first: who then gets the instance finds it free.
        self.lease = None;
        lock(&self.shared.running)[self.instance] = false;
    }
}
