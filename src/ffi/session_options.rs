//! How a session plans and where its memory comes from, as C says it.

use core::mem::size_of;

use super::abi::{self, Versioned};
use super::arena::{arenite_source_t, source, SYSTEM};
use super::memory_policy::{arenite_memory_policy_t, ARENITE_MEMORY_KEEP_ON_FAILURE};
use super::options::{arenite_graph_options_t, optional_align, read_options};
use super::planner::strategy_of;
use crate::error::Error;
use crate::graph::liveness::Pin;
use crate::planner;
use crate::runtime::session::{Replan, SessionConfig};
use crate::units::DEFAULT_ALIGN;

/// A zone behind every planned tensor shows which node wrote past its end.
pub const ARENITE_SESSION_GUARD: u32 = 1;
/// A commit plans for the smallest arena. Otherwise it keeps the offsets before where they are valid, so that fewer addresses
/// move.
pub const ARENITE_SESSION_SMALLEST: u32 = 2;
/// Growing takes the new block before the old one is given back: both at once, but a failure moves nothing.
pub const ARENITE_SESSION_KEEP_ON_FAILURE: u32 = 4;
/// Inputs and outputs come from `io` and stay where they are while the rest is re-planned.
pub const ARENITE_SESSION_SEPARATE_IO: u32 = 8;

/// How a session plans and where its memory comes from. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_session_options_t {
    /// `sizeof(arenite_session_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_SESSION_` bits.
    pub flags: u32,
    /// Lifetimes and alignment; null for the defaults.
    pub graph: *const arenite_graph_options_t,
    /// `ARENITE_STRATEGY_`.
    pub strategy: u32,
    /// The most plans kept by shape; 0 for 16.
    pub cached_plans: u32,
    /// Search nodes per plan; 0 for some milliseconds' worth.
    pub effort: u64,
    /// 0 grows exactly; otherwise doubling never asks for more than this many bytes.
    pub growth_cap: u64,
    /// The most bytes the reusable arena may hold; 0 for no limit.
    pub limit: u64,
    /// A block above this is given back by the first commit that needs no more; 0 for never.
    pub idle_cap: u64,
    /// After so many commits in a row that need little the memory is given back; 0 for never.
    pub shrink_commits: u32,
    /// What "little" is, in per cent of what is held: 0 to 100.
    pub shrink_percent: u32,
    /// Alignment of inputs and outputs of their own; 0 for 128.
    pub io_alignment: u32,
    /// The subgraph that is run, with everything it calls; 0 for the graph itself. Subgraphs that run in parallel have a session
    /// each.
    pub entry: u32,
    /// For the reusable arena.
    pub main: arenite_source_t,
    /// For the persistent arena.
    pub persistent: arenite_source_t,
    /// With SEPARATE_IO: for inputs and outputs.
    pub io: arenite_source_t,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer, an optional function
// pointer or a struct of these.
unsafe impl Versioned for arenite_session_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        graph: core::ptr::null(),
        strategy: 0,
        cached_plans: 0,
        effort: 0,
        growth_cap: 0,
        limit: 0,
        idle_cap: 0,
        shrink_commits: 0,
        shrink_percent: 0,
        io_alignment: 0,
        entry: 0,
        main: SYSTEM,
        persistent: SYSTEM,
        io: SYSTEM,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_SESSION_GUARD
        | ARENITE_SESSION_SMALLEST
        | ARENITE_SESSION_KEEP_ON_FAILURE
        | ARENITE_SESSION_SEPARATE_IO;
}

/// Options from C with the subgraph to run; null means the defaults.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`, whose `graph` is null or a struct of its own.
pub(crate) unsafe fn read_session(
    options: *const arenite_session_options_t,
    pins: &[Pin],
) -> Result<(SessionConfig, usize), Error> {
    // SAFETY: the caller's contract on `options`.
    let o = unsafe { abi::read_or_default(options) }?;
    // SAFETY: the caller's contract on `graph`.
    let graph = unsafe { read_options(o.graph) }?;
    let defaults = SessionConfig::default();
    let some = |n: u64| (n > 0).then_some(n);
    let keep = o.flags & ARENITE_SESSION_KEEP_ON_FAILURE != 0;
    let memory = arenite_memory_policy_t {
        flags: if keep { ARENITE_MEMORY_KEEP_ON_FAILURE } else { 0 },
        growth_cap: o.growth_cap,
        limit: o.limit,
        idle_cap: o.idle_cap,
        shrink_commits: o.shrink_commits,
        shrink_percent: o.shrink_percent,
        ..arenite_memory_policy_t::DEFAULT
    };
    let io_align = optional_align(o.io_alignment)?.unwrap_or(DEFAULT_ALIGN);
    let config = SessionConfig {
        options: graph,
        planner: planner::Options {
            strategy: strategy_of(o.strategy)?,
            effort: some(o.effort).or(defaults.planner.effort),
            ..planner::Options::default()
        },
        // Pins name tensors of the graph itself.
        pins: if o.entry == 0 { pins.to_vec() } else { Vec::new() },
        replan: if o.flags & ARENITE_SESSION_SMALLEST != 0 { Replan::Smallest } else { Replan::Keep },
        cached_plans: if o.cached_plans == 0 { defaults.cached_plans } else { o.cached_plans as usize },
        memory: memory.checked()?,
        main: source(&o.main)?,
        persistent: source(&o.persistent)?,
        io: if o.flags & ARENITE_SESSION_SEPARATE_IO != 0 { Some((source(&o.io)?, io_align)) } else { None },
        guard: o.flags & ARENITE_SESSION_GUARD != 0,
        ..defaults
    };
    Ok((config, o.entry as usize))
}
