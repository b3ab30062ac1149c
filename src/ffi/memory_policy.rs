//! Rules for the memory of a reusable arena, changed while it is used.

use core::mem::size_of;

use super::abi::{self, Versioned};
use super::handle;
use super::incremental::{arenite_incremental_t, IncrementalInner};
use super::session::arenite_session_t;
use super::status::arenite_status_t;
use crate::error::Error;
use crate::runtime::session::Session;
use crate::runtime::store::{Growth, MemoryPolicy, Shrink};

/// Growing takes the new block before the old one is given back: both at once, but a failure moves nothing.
pub const ARENITE_MEMORY_KEEP_ON_FAILURE: u32 = 1;

/// Rules for the memory of a reusable arena: all 0 grows exactly, never shrinks by itself and has no limit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_memory_policy_t {
    /// `sizeof(arenite_memory_policy_t)`.
    pub struct_size: u32,
    /// `ARENITE_MEMORY_` bits.
    pub flags: u32,
    /// 0 grows exactly; otherwise doubling never asks for more than this many bytes.
    pub growth_cap: u64,
    /// The most bytes it may hold; 0 for no limit.
    pub limit: u64,
    /// A block above this is given back by the first commit that needs no more; 0 for never.
    pub idle_cap: u64,
    /// After so many commits in a row that need little the memory is given back; 0 for never. For an incremental planner a
    /// commit is a run from one reset to the next.
    pub shrink_commits: u32,
    /// What "little" is, in per cent of what is held: 0 to 100.
    pub shrink_percent: u32,
}

const _: () = assert!(size_of::<arenite_memory_policy_t>() == 40);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_memory_policy_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        growth_cap: 0,
        limit: 0,
        idle_cap: 0,
        shrink_commits: 0,
        shrink_percent: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_MEMORY_KEEP_ON_FAILURE;
}

impl arenite_memory_policy_t {
    pub(crate) fn checked(&self) -> Result<MemoryPolicy, Error> {
        if self.shrink_percent > 100 {
            return Err(Error::argument("shrink_percent is more than 100").needed(self.shrink_percent.into()));
        }
        let some = |n: u64| (n > 0).then_some(n);
        Ok(MemoryPolicy {
            growth: some(self.growth_cap).map_or(Growth::Exact, |cap| Growth::Doubling { cap }),
            shrink: match self.shrink_commits {
                0 => Shrink::Never,
                commits => Shrink::After { commits, percent: self.shrink_percent },
            },
            limit: some(self.limit),
            idle_cap: some(self.idle_cap),
            keep_on_failure: self.flags & ARENITE_MEMORY_KEEP_ON_FAILURE != 0,
        })
    }
}

/// Reads a policy from C; null means the defaults.
///
/// # Safety
/// `policy` is null or a struct of its `struct_size`.
unsafe fn read(policy: *const arenite_memory_policy_t) -> Result<MemoryPolicy, Error> {
    // SAFETY: the caller's contract.
    unsafe { abi::read_or_default(policy) }?.checked()
}

/// Changes the rules for the reusable arena's memory; null for the defaults. They hold from the next commit that has something
/// to do, which then also meets a limit below what is held, or says that the plan needs more.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a percentage above 100.
///
/// # Safety
/// `session` is null or live; `policy` is null or a struct of its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_session_set_memory_policy(
    session: *mut arenite_session_t,
    policy: *const arenite_memory_policy_t,
) -> arenite_status_t {
    let body = |s: &mut Session| {
        // SAFETY: the caller's contract on `policy`.
        s.set_memory_policy(unsafe { read(policy) }?);
        Ok(())
    };
    // SAFETY: the caller's contract on `session`.
    unsafe { handle::exclusive(session, body) }
}

/// Changes the rules for the main arena's memory; null for the defaults. They hold from the next execution on, and less memory
/// is held from the first one after a reset.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a percentage above 100.
///
/// # Safety
/// `incremental` is null or live; `policy` is null or a struct of its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_incremental_set_memory_policy(
    incremental: *mut arenite_incremental_t,
    policy: *const arenite_memory_policy_t,
) -> arenite_status_t {
    let body = |i: &mut IncrementalInner| {
        // SAFETY: the caller's contract on `policy`.
        i.arena.set_memory_policy(unsafe { read(policy) }?);
        Ok(())
    };
    // SAFETY: the caller's contract on `incremental`.
    unsafe { handle::exclusive(incremental, body) }
}
