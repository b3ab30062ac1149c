//! The arena: real memory for a plan.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;

use super::abi::{self, Versioned};
use super::graph::{ARENITE_ARENA_MAIN, ARENITE_ARENA_PERSISTENT};
use super::guard;
use super::handle::{self, Opaque};
use super::lite::{AreniteMicroTensor, AreniteTensor, Layout as LiteLayout};
use super::plan::arenite_plan_t;
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind, Subject};
use crate::graph::tables::Allocation;
use crate::runtime::arena::Arena;
use crate::runtime::source::{Callbacks, Source};

/// Memory for the tensors of one plan. Threads: one at a time for calls that change it.
pub struct arenite_arena_t {
    _private: [u8; 0],
}

impl Opaque for arenite_arena_t {
    type Inner = Arena;
    const MAGIC: [u8; 4] = *b"aren";
    const NULL: &'static str = "the arena is null";
}

/// The process's allocator.
pub const ARENITE_SOURCE_SYSTEM: u32 = 0;
/// One buffer of the caller's.
pub const ARENITE_SOURCE_BUFFER: u32 = 1;
/// The caller's functions.
pub const ARENITE_SOURCE_CALLBACKS: u32 = 2;
/// Anonymous pages of the system, which go back to it at once. What must survive growing is moved by page table where the
/// system can do that (Linux), not copied, so that old and new are never held together. Elsewhere the same as SYSTEM.
pub const ARENITE_SOURCE_MAP: u32 = 3;

/// Returns `bytes` bytes at a multiple of `alignment`, or null. Must not unwind or longjmp.
pub type arenite_allocate_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>;
/// Takes back what the allocation function returned, with the same size and alignment.
pub type arenite_deallocate_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, data: *mut c_void, bytes: usize, alignment: usize)>;

/// Where memory comes from.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_source_t {
    /// `ARENITE_SOURCE_`.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
    /// With BUFFER: its start, at any address. Kept: it must outlive the arena.
    pub base: *mut c_void,
    /// With BUFFER: its size. `arenite_plan_required_bytes` says exactly how much is enough.
    pub bytes: usize,
    /// With CALLBACKS: takes memory.
    pub allocate: arenite_allocate_fn,
    /// With CALLBACKS: gives it back, at the latest when the arena is destroyed.
    pub deallocate: arenite_deallocate_fn,
    /// With CALLBACKS: handed to both functions.
    pub user: *mut c_void,
}

/// How an arena gets its memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_arena_options_t {
    /// `sizeof(arenite_arena_options_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// For the reusable arena.
    pub main: arenite_source_t,
    /// For the persistent arena.
    pub persistent: arenite_source_t,
}

pub(crate) const SYSTEM: arenite_source_t = arenite_source_t {
    kind: ARENITE_SOURCE_SYSTEM,
    reserved: 0,
    base: core::ptr::null_mut(),
    bytes: 0,
    allocate: None,
    deallocate: None,
    user: core::ptr::null_mut(),
};

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or an optional function
// pointer, for which any bytes are a valid value (it is the contract that makes it callable).
unsafe impl Versioned for arenite_arena_options_t {
    const DEFAULT: Self = Self { struct_size: size_of::<Self>() as u32, flags: 0, main: SYSTEM, persistent: SYSTEM };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

pub(crate) fn source(s: &arenite_source_t) -> Result<Source, Error> {
    super::options::zero(s.reserved)?;
    match s.kind {
        ARENITE_SOURCE_SYSTEM => Ok(Source::System),
        ARENITE_SOURCE_MAP => Ok(Source::Map),
        ARENITE_SOURCE_BUFFER => {
            let base = match NonNull::new(s.base.cast::<u8>()) {
                Some(base) => base,
                None if s.bytes == 0 => NonNull::dangling(),
                None => return Err(Error::new(Kind::Null, "the source's buffer is null")),
            };
            Ok(Source::Buffer { base, bytes: s.bytes })
        }
        ARENITE_SOURCE_CALLBACKS => match (s.allocate, s.deallocate) {
            (Some(allocate), Some(deallocate)) => {
                Ok(Source::Callbacks(Callbacks { allocate, deallocate, user: s.user }))
            }
            _ => Err(Error::new(Kind::Null, "a callback of the source is null")),
        },
        other => Err(Error::argument("kind is not one of ARENITE_SOURCE_").needed(other.into())),
    }
}

/// Creates an arena for a plan, without memory yet. `options` may be null: both arenas come from the system.
///
/// The plan may be destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`,
/// `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_arena_destroy`; a caller's buffer is kept
/// until then. `failure` may be null.
///
/// # Safety
/// `plan` is null or live; `options` is null or a struct of its `struct_size`; a buffer in it is writable for its size and
/// used by nobody else while the arena lives, callbacks meet their contract; `out` is null or valid for one pointer write;
/// `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_create(
    plan: *const arenite_plan_t,
    options: *const arenite_arena_options_t,
    out: *mut *mut arenite_arena_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `plan`.
        let plan = unsafe { handle::borrow(plan) }?;
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read_or_default(options) }?;
        Ok(Arena::new(plan.layout.clone(), source(&o.main)?, source(&o.persistent)?))
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Takes memory: one block for the reusable arena and one for the persistent one. Does nothing where it is held.
///
/// The persistent arena is zeroed when it is first taken; the reusable one is not initialised.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` with the exact amount where a caller's buffer is too small;
/// `ARENITE_ERR_NO_MEMORY`; `ARENITE_ERR_ALIGNMENT` where a callback missed the alignment. The arena then is as before.
///
/// # Safety
/// `arena` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_commit(arena: *mut arenite_arena_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(arena, Arena::commit) }
}

/// Gives the reusable arena's memory back. Pointers into it end; the persistent arena and its contents stay.
///
/// # Safety
/// `arena` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_release(arena: *mut arenite_arena_t) -> arenite_status_t {
    let body = |a: &mut Arena| {
        a.release();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { handle::exclusive(arena, body) }
}

/// Writes the address and size of a tensor's bytes; `out_bytes` may be null. Both are null and 0 for a tensor without bytes
/// here.
///
/// A pointer is valid until `arenite_arena_generation` changes. A bare problem is subgraph 0, its buffers the tensors.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where the arena has no memory: commit first; `ARENITE_ERR_ARGUMENT` where
/// there is no such tensor.
///
/// # Safety
/// `arena` is null or live; `out_data` and `out_bytes` are null or valid for one write. `out_bytes` may be null.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_resolve(
    arena: *const arenite_arena_t,
    subgraph: u32,
    tensor: u32,
    out_data: *mut *mut c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |a: &Arena| {
        // SAFETY: the caller's contract on `out_data`.
        let data = unsafe { guard::out(out_data, "out_data is null") }?;
        let bytes = if out_bytes.is_null() {
            None
        } else {
            // SAFETY: the caller's contract on `out_bytes`.
            Some(unsafe { guard::out(out_bytes, "") }?)
        };
        let found = a.resolve(subgraph as usize, tensor as usize)?;
        data.write(found.map_or(core::ptr::null_mut(), |f| f.0.as_ptr().cast()));
        if let Some(bytes) = bytes {
            bytes.write(found.map_or(0, |f| f.1));
        }
        Ok(())
    };
    // SAFETY: the caller's contract on `arena`.
    unsafe { handle::shared(arena, body) }
}

/// Writes the `data` pointer of every planned tensor of a subgraph into the engine's own tensor array.
///
/// Tensors in either arena get their address; tensors of the arenas without bytes get null; bound constants get their
/// data; all others are left alone. Nothing is written on an error.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_STALE`: commit first; `ARENITE_ERR_ARGUMENT` for an unknown layout or a count that
/// is not the subgraph's.
///
/// # Safety
/// `arena` is null or live; `tensors` is writable for `count` structs of the layout.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_assign(
    arena: *const arenite_arena_t,
    subgraph: u32,
    layout: u32,
    tensors: *mut c_void,
    count: u64,
) -> arenite_status_t {
    let body = |a: &Arena| {
        let layout = LiteLayout::try_from(layout)?;
        let none = Error::argument("there is no such subgraph").of(Subject::Subgraph(subgraph));
        let slots = a.layout().slots.get(subgraph as usize).ok_or(none)?;
        if count != slots.len() as u64 {
            return Err(Error::argument("the count is not the subgraph's number of tensors")
                .needed(slots.len() as u64)
                .available(count));
        }
        for t in 0..slots.len() {
            a.resolve(subgraph as usize, t)?;
        }
        match layout {
            LiteLayout::Full => {
                // SAFETY: the caller's contract on `tensors`.
                let tensors = unsafe { abi::array_mut(tensors.cast::<AreniteTensor>(), count, "tensors is null") }?;
                each(a, subgraph, tensors, |x| (x.allocation_type, &mut x.data))
            }
            LiteLayout::Micro => {
                // SAFETY: as above.
                let tensors =
                    unsafe { abi::array_mut(tensors.cast::<AreniteMicroTensor>(), count, "tensors is null") }?;
                each(a, subgraph, tensors, |x| (x.allocation_type, &mut x.data))
            }
        }
    };
    // SAFETY: the caller's contract on `arena`.
    unsafe { handle::shared(arena, body) }
}

fn each<X>(
    arena: &Arena,
    subgraph: u32,
    tensors: &mut [X],
    fields: impl Fn(&mut X) -> (u32, &mut *mut c_void),
) -> Result<(), Error> {
    for (t, x) in tensors.iter_mut().enumerate() {
        let (allocation, data) = fields(x);
        let ours = allocation == Allocation::ArenaRw as u32 || allocation == Allocation::ArenaRwPersistent as u32;
        match arena.resolve(subgraph as usize, t)? {
            Some((address, _)) => *data = address.as_ptr().cast(),
            None if ours => *data = core::ptr::null_mut(),
            None => {}
        }
    }
    Ok(())
}

/// Says where a constant's data is, for instance in the mapped model file. It is referenced, not copied, and must outlive
/// the arena; the arena never writes to it.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY` where `bytes` is
/// less than the tensor's size.
///
/// # Safety
/// `arena` is null or live; `data` stays readable for `bytes` while the arena lives.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_bind_constant(
    arena: *mut arenite_arena_t,
    subgraph: u32,
    tensor: u32,
    data: *const c_void,
    bytes: usize,
) -> arenite_status_t {
    let body = |a: &mut Arena| {
        let data = NonNull::new(data.cast_mut().cast::<u8>()).ok_or(Error::new(Kind::Null, "data is null"))?;
        a.bind_constant(subgraph as usize, tensor as usize, data, bytes)
    };
    // SAFETY: the caller's contract on `arena`.
    unsafe { handle::exclusive(arena, body) }
}

/// Writes a number that changes exactly when a tensor's address may have changed: by a commit that takes memory, and by a
/// release.
///
/// # Safety
/// `arena` is null or live; `out_generation` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_generation(
    arena: *const arenite_arena_t,
    out_generation: *mut u64,
) -> arenite_status_t {
    let body = |a: &Arena| {
        // SAFETY: the caller's contract on `out_generation`.
        unsafe { guard::out(out_generation, "out_generation is null") }?.write(a.generation());
        Ok(())
    };
    // SAFETY: the caller's contract on `arena`.
    unsafe { handle::shared(arena, body) }
}

/// Writes how many bytes an arena holds at the moment: `ARENITE_ARENA_MAIN` or `ARENITE_ARENA_PERSISTENT`.
///
/// # Safety
/// `arena` is null or live; `out_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_committed_bytes(
    arena: *const arenite_arena_t,
    which: u32,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |a: &Arena| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        let (main, persistent) = a.committed_bytes();
        out.write(match which {
            ARENITE_ARENA_MAIN => main,
            ARENITE_ARENA_PERSISTENT => persistent,
            other => {
                return Err(Error::argument("which is neither ARENITE_ARENA_MAIN nor _PERSISTENT").needed(other.into()));
            }
        });
        Ok(())
    };
    // SAFETY: the caller's contract on `arena`.
    unsafe { handle::shared(arena, body) }
}

/// Copies the record of the last failing call on this arena.
///
/// # Safety
/// `arena` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_arena_last_failure(
    arena: *const arenite_arena_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(arena, out) }
}

/// Destroys an arena and gives its memory back; null is allowed. All pointers into it end.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `arena` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_arena_destroy(arena: *mut arenite_arena_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(arena) }
}
