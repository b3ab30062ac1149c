//! The arena: one allocation for a plan, one for persistent tensors, and the address of every tensor.

use core::ptr::NonNull;

use super::source::{Block, Source};
use crate::error::{Error, Kind};
use crate::graph::lower::{Lowered, Persistent};
use crate::graph::tables::{Allocation, Tables};
use crate::planner::Plan;
use crate::units::{Align, DEFAULT_ALIGN};

/// Where a tensor's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// Nowhere: it has no bytes, or they are not the arena's business.
    #[default]
    None,
    /// In the reusable arena.
    Main {
        /// Offset from its base.
        offset: u64,
    },
    /// In the persistent arena.
    Persistent {
        /// Offset from its base.
        offset: u64,
    },
    /// Constant data, once [`Arena::bind_constant`] has said where.
    Constant,
}

/// A tensor's place and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slot {
    /// Where.
    pub place: Place,
    /// How many bytes.
    pub bytes: u64,
}

/// What an arena is made from: sizes, alignments and one slot per tensor.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Bytes of the reusable arena.
    pub main_bytes: u64,
    /// Its alignment.
    pub main_align: Align,
    /// Bytes of the persistent arena.
    pub persistent_bytes: u64,
    /// Its alignment.
    pub persistent_align: Align,
    /// Slots per subgraph.
    pub slots: Vec<Vec<Slot>>,
}

impl Layout {
    /// The layout of planned graphs: the same that [`lower`](crate::graph::lower::lower),
    /// [`persistent`](crate::graph::lower::persistent) and the plan were made of.
    pub fn of<T: Tables>(graphs: &[T], lowered: &Lowered, persistent: &Persistent, plan: &Plan) -> Layout {
        let slots = graphs.iter().enumerate().map(|(g, graph)| {
            let slot = |t: usize| {
                let tensor = graph.tensor(t);
                let place = match (lowered.offset(plan, g, t), persistent.offsets[g][t], tensor.allocation) {
                    (Some(offset), ..) => Place::Main { offset },
                    (_, Some(offset), _) => Place::Persistent { offset },
                    (_, _, Allocation::MmapRo) => Place::Constant,
                    _ => Place::None,
                };
                Slot { place, bytes: tensor.bytes.unwrap_or(0) }
            };
            (0..graph.tensor_count()).map(slot).collect()
        });
        Layout {
            main_bytes: plan.arena_bytes,
            main_align: plan.align.max(DEFAULT_ALIGN),
            persistent_bytes: persistent.bytes,
            persistent_align: persistent.align.unwrap_or(DEFAULT_ALIGN).max(DEFAULT_ALIGN),
            slots: slots.collect(),
        }
    }
}

/// Caller memory for a constant.
#[derive(Clone, Copy, Debug)]
struct Constant(NonNull<u8>);

// SAFETY: the arena never reads through it; it hands the caller's own pointer back.
unsafe impl Send for Constant {}
// SAFETY: as above.
unsafe impl Sync for Constant {}

/// Memory for one plan. One thread at a time for calls that change it.
///
/// The persistent arena is zeroed when it is first committed, and keeps its contents until the arena is dropped; the
/// reusable arena is not initialised.
#[derive(Debug)]
pub struct Arena {
    layout: Layout,
    main_source: Source,
    persistent_source: Source,
    main: Option<Block>,
    persistent: Option<Block>,
    constants: Vec<Vec<Option<Constant>>>,
    generation: u64,
    commits: u64,
}

fn in_memory(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::overflow("the arena does not fit the address space").needed(bytes))
}

impl Arena {
    /// An arena without memory yet.
    pub fn new(layout: Layout, main_source: Source, persistent_source: Source) -> Arena {
        let constants = layout.slots.iter().map(|s| vec![None; s.len()]).collect();
        Arena {
            layout,
            main_source,
            persistent_source,
            main: None,
            persistent: None,
            constants,
            generation: 0,
            commits: 0,
        }
    }

    /// Takes memory from the sources: at most one block for each of the two arenas. Does nothing where it is held.
    ///
    /// On an error nothing changes. Errors are those of [`Source::take`].
    pub fn commit(&mut self) -> Result<(), Error> {
        let mut persistent = None;
        if self.persistent.is_none() {
            let bytes = in_memory(self.layout.persistent_bytes)?;
            let block = self.persistent_source.take(bytes, self.layout.persistent_align.bytes() as usize)?;
            // SAFETY: the block holds `bytes` writable bytes from its base, or is empty.
            unsafe { block.base().as_ptr().write_bytes(0, block.bytes()) };
            persistent = Some(block);
        }
        if self.main.is_none() {
            let bytes = in_memory(self.layout.main_bytes)?;
            self.main = Some(self.main_source.take(bytes, self.layout.main_align.bytes() as usize)?);
            self.generation += 1;
            self.commits += 1;
        }
        if persistent.is_some() {
            self.persistent = persistent;
        }
        Ok(())
    }

    /// Gives the reusable arena's memory back; persistent contents stay. Addresses in it end, so the generation changes
    /// if there was any memory.
    pub fn release(&mut self) {
        if self.main.take().is_some() {
            self.generation += 1;
        }
    }

    /// Whether the reusable arena is committed, which it also can be at 0 bytes.
    pub fn is_committed(&self) -> bool {
        self.main.is_some()
    }

    /// Changes exactly when the address of a tensor may have changed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Bytes held: reusable and persistent.
    pub fn committed_bytes(&self) -> (usize, usize) {
        let bytes = |b: &Option<Block>| b.as_ref().map_or(0, Block::bytes);
        (bytes(&self.main), bytes(&self.persistent))
    }

    /// The plan's sizes and slots.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn slot(&self, subgraph: usize, tensor: usize) -> Result<Slot, Error> {
        self.layout
            .slots
            .get(subgraph)
            .and_then(|s| s.get(tensor))
            .copied()
            .ok_or(Error::argument("there is no such tensor").tensor(tensor))
    }

    /// The address and size of a tensor's bytes; `None` for a tensor without bytes here (and for a constant that is not
    /// bound).
    ///
    /// `Stale` before the first commit and after a release, `Argument` for a tensor that does not exist.
    pub fn resolve(&self, subgraph: usize, tensor: usize) -> Result<Option<(NonNull<u8>, usize)>, Error> {
        let slot = self.slot(subgraph, tensor)?;
        let (block, offset) = match slot.place {
            Place::None => return Ok(None),
            Place::Constant => {
                let bound = self.constants[subgraph][tensor];
                return Ok(bound.map(|c| (c.0, slot.bytes as usize)));
            }
            Place::Main { offset } => (&self.main, offset),
            Place::Persistent { offset } => (&self.persistent, offset),
        };
        let Some(block) = block else {
            return Err(Error::stale("the arena has no memory: commit first").tensor(tensor));
        };
        // Written without sums that could wrap: a layout is the caller's word.
        if offset > block.bytes() as u64 || slot.bytes > block.bytes() as u64 - offset {
            return Err(Error::internal("the tensor lies outside its arena")
                .tensor(tensor)
                .needed(slot.bytes)
                .available(block.bytes() as u64));
        }
        // SAFETY: offset + bytes lie inside the block, as just checked.
        let address = unsafe { block.base().add(offset as usize) };
        Ok(Some((address, slot.bytes as usize)))
    }

    /// Says where a constant's data is: caller or mapped memory that outlives the arena. It is referenced, not copied.
    ///
    /// `Argument` for a tensor that is no constant, `Capacity` where `bytes` is less than the tensor's.
    pub fn bind_constant(
        &mut self,
        subgraph: usize,
        tensor: usize,
        data: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), Error> {
        let slot = self.slot(subgraph, tensor)?;
        if slot.place != Place::Constant {
            return Err(Error::new(Kind::Argument, "the tensor is not a constant").tensor(tensor));
        }
        if (bytes as u64) < slot.bytes {
            return Err(Error::capacity("the constant's data is shorter than the tensor")
                .tensor(tensor)
                .needed(slot.bytes)
                .available(bytes as u64));
        }
        self.constants[subgraph][tensor] = Some(Constant(data));
        Ok(())
    }

    /// How often the reusable arena took memory.
    pub fn commits(&self) -> u64 {
        self.commits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::c_void;

    fn layout() -> Layout {
        let slot = |place, bytes| Slot { place, bytes };
        Layout {
            main_bytes: 300,
            main_align: DEFAULT_ALIGN,
            persistent_bytes: 64,
            persistent_align: DEFAULT_ALIGN,
            slots: vec![vec![
                slot(Place::Main { offset: 0 }, 100),
                slot(Place::Main { offset: 128 }, 172),
                slot(Place::Persistent { offset: 0 }, 64),
                slot(Place::Constant, 8),
                slot(Place::None, 8),
            ]],
        }
    }

    #[test]
    fn addresses_come_with_the_commit_and_go_with_the_release() {
        let mut arena = Arena::new(layout(), Source::System, Source::System);
        assert_eq!(arena.resolve(0, 0).unwrap_err().kind, Kind::Stale);
        arena.commit().unwrap();
        let (a, bytes) = arena.resolve(0, 1).unwrap().unwrap();
        let base = arena.resolve(0, 0).unwrap().unwrap().0;
        assert_eq!((a.as_ptr() as usize - base.as_ptr() as usize, bytes), (128, 172));
        assert_eq!(base.as_ptr() as usize % 128, 0);
        assert_eq!(arena.resolve(0, 4).unwrap(), None);
        assert!(arena.resolve(0, 5).is_err() && arena.resolve(1, 0).is_err());

        let persistent = arena.resolve(0, 2).unwrap().unwrap().0;
        // SAFETY: 64 bytes of the persistent arena.
        unsafe { persistent.as_ptr().write_bytes(0xAB, 64) };
        let before = arena.generation();
        arena.commit().unwrap();
        assert_eq!(arena.generation(), before, "a commit that moves nothing");
        arena.release();
        assert_ne!(arena.generation(), before);
        assert_eq!((arena.committed_bytes(), arena.resolve(0, 0).is_err()), ((0, 64), true));
        arena.commit().unwrap();
        let again = arena.resolve(0, 2).unwrap().unwrap().0;
        // SAFETY: as above.
        assert!(again == persistent && unsafe { *again.as_ptr() } == 0xAB, "BR-44: persistent data is intact");
    }

    #[test]
    fn constants_are_references() {
        let mut arena = Arena::new(layout(), Source::System, Source::System);
        let mut data = [7u8; 8];
        let at = NonNull::from(&mut data[0]);
        assert_eq!(arena.resolve(0, 3).unwrap(), None);
        assert_eq!(arena.bind_constant(0, 3, at, 7).unwrap_err().needed, Some(8));
        assert!(arena.bind_constant(0, 0, at, 8).is_err());
        arena.bind_constant(0, 3, at, 8).unwrap();
        assert_eq!(arena.resolve(0, 3).unwrap(), Some((at, 8)));
    }

    struct Ration {
        left: u32,
        shift: usize,
        live: u32,
    }

    unsafe extern "C" fn allocate(user: *mut c_void, bytes: usize, align: usize) -> *mut c_void {
        // SAFETY: the test passes a `Ration`.
        let r = unsafe { &mut *user.cast::<Ration>() };
        if r.left == 0 {
            return core::ptr::null_mut();
        }
        (r.left, r.live) = (r.left - 1, r.live + 1);
        let layout = std::alloc::Layout::from_size_align(bytes + align, align).unwrap();
        // SAFETY: the size is not 0.
        unsafe { std::alloc::alloc(layout) }.wrapping_add(r.shift).cast()
    }

    unsafe extern "C" fn deallocate(user: *mut c_void, data: *mut c_void, bytes: usize, align: usize) {
        // SAFETY: the test passes a `Ration`.
        let r = unsafe { &mut *user.cast::<Ration>() };
        r.live -= 1;
        let layout = std::alloc::Layout::from_size_align(bytes + align, align).unwrap();
        // SAFETY: allocated above with this layout.
        unsafe { std::alloc::dealloc(data.cast::<u8>().wrapping_sub(r.shift), layout) };
    }

    #[test]
    fn br_29_a_refused_callback_changes_nothing_and_can_be_retried() {
        for grants in 0..3 {
            let mut ration = Ration { left: grants, shift: 0, live: 0 };
            let user: *mut Ration = &mut ration;
            let source = Source::Callbacks(Callbacks { allocate, deallocate, user: user.cast() });
            let mut arena = Arena::new(layout(), source, source);
            let first = arena.commit();
            assert_eq!(first.is_ok(), grants == 2);
            if let Err(e) = first {
                assert_eq!(e.kind, Kind::NoMemory);
                // SAFETY: `ration` outlives the arena; no reference to it is held.
                unsafe { assert_eq!((*user).live, 0) };
                // SAFETY: as above.
                unsafe { (*user).left = 2 };
                arena.commit().unwrap();
            }
            drop(arena);
            assert_eq!(ration.live, 0);
        }
        let mut ration = Ration { left: 9, shift: 64, live: 0 };
        let source = Source::Callbacks(Callbacks { allocate, deallocate, user: (&raw mut ration).cast() });
        let e = Arena::new(layout(), source, source).commit().unwrap_err();
        assert_eq!((e.kind, e.needed, e.available), (Kind::Alignment, Some(128), Some(64)));
        assert_eq!(ration.live, 0, "the misaligned block was given back");
    }

    use super::super::source::Callbacks;
}
