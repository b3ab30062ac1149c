//! The planner: buffers with lifetimes, or a whole graph, to a plan.

use core::ffi::c_void;
use core::mem::size_of;
use core::ops::ControlFlow;

use alloc::vec::Vec;

use super::abi::{self, Versioned};
use super::guard;
use super::handle::{self, Opaque};
use super::options::{
    optional_align, zero, ARENITE_STRATEGY_AUTO, ARENITE_STRATEGY_EXACT, ARENITE_STRATEGY_FIRST_FIT,
    ARENITE_STRATEGY_GREEDY_BY_SIZE, ARENITE_STRATEGY_SEARCH, ARENITE_STRATEGY_TFLM_GREEDY, ARENITE_STRATEGY_VALLEY,
    ARENITE_STRATEGY_WINDOWS,
};
use super::plan::{arenite_plan_t, PlanInner};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::Error;
use crate::planner::{plan_with, BufferSpec, Options, Plan, Problem, Progress, Span, Strategy};
use crate::units::DEFAULT_ALIGN;

/// Buffers to place, and how. Threads: one at a time.
pub struct arenite_planner_t {
    _private: [u8; 0],
}

pub(crate) struct PlannerInner {
    pub(super) problem: Problem,
    pub(super) options: Options,
    listener: Listener,
}

impl Opaque for arenite_planner_t {
    type Inner = PlannerInner;
    const MAGIC: [u8; 4] = *b"plnr";
    const NULL: &'static str = "the planner is null";
}

/// Those that can be asked for.
const STRATEGIES: [(u32, Strategy); 5] = [
    (ARENITE_STRATEGY_AUTO, Strategy::Auto),
    (ARENITE_STRATEGY_FIRST_FIT, Strategy::FirstFit),
    (ARENITE_STRATEGY_GREEDY_BY_SIZE, Strategy::GreedyBySize),
    (ARENITE_STRATEGY_TFLM_GREEDY, Strategy::TflmGreedy),
    (ARENITE_STRATEGY_EXACT, Strategy::Exact),
];

/// The strategy of that number; `Argument` where there is none.
pub(crate) fn strategy_of(number: u32) -> Result<Strategy, Error> {
    let unknown = Error::argument("strategy is not one of ARENITE_STRATEGY_").needed(number.into());
    STRATEGIES.iter().find(|s| s.0 == number).map(|s| s.1).ok_or(unknown)
}

pub(crate) fn strategy_number(strategy: Strategy) -> u32 {
    match strategy {
        Strategy::Valley => ARENITE_STRATEGY_VALLEY,
        Strategy::Windows => ARENITE_STRATEGY_WINDOWS,
        Strategy::Search => ARENITE_STRATEGY_SEARCH,
        _ => STRATEGIES.iter().find(|s| s.1 == strategy).map_or(ARENITE_STRATEGY_AUTO, |s| s.0),
    }
}

/// Where planning stands.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_progress_t {
    /// Search nodes visited so far.
    pub nodes: u64,
    /// The arena of the best plan so far, in unrounded bytes.
    pub arena_bytes: u64,
    /// The best bound proven so far.
    pub lower_bound: u64,
}

/// Called every few hundred search nodes. Returns 0 to go on, anything else to stop: the best plan so far is returned.
/// A deadline belongs here, since the planner has no clock. Must not unwind, and must not use the planner that calls it.
pub type arenite_progress_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, progress: *const arenite_progress_t) -> u32>;

/// How to plan.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_planner_options_t {
    /// `sizeof(arenite_planner_options_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// `ARENITE_STRATEGY_`.
    pub strategy: u32,
    /// 0.
    pub reserved: u32,
    /// Search nodes to spend at most; 0 for about a second's worth with AUTO and no limit with EXACT. The same effort gives
    /// the same plan on every machine, and more effort never a worse one.
    pub effort: u64,
    /// Bytes the arena may have: the search ends at the first plan that fits, and at the first proof that none does. 0 is
    /// no limit and asks for the smallest arena (`arenite plan --capacity 0` on the command line is a limit of no bytes).
    pub capacity: u64,
    /// Called while searching; null for none.
    pub progress: arenite_progress_fn,
    /// Handed to `progress`. Kept.
    pub user: *mut c_void,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or an optional function
// pointer, for which any bytes are a valid value (it is the contract that makes it callable).
unsafe impl Versioned for arenite_planner_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        strategy: ARENITE_STRATEGY_AUTO,
        reserved: 0,
        effort: 0,
        capacity: 0,
        progress: None,
        user: core::ptr::null_mut(),
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// The caller's progress function with its argument.
#[derive(Clone, Copy)]
struct Listener {
    call: arenite_progress_fn,
    user: *mut c_void,
}

// SAFETY: only the thread that has the planner to itself calls it; whether that may be another thread than the one that
// created the planner is the caller's choice.
unsafe impl Send for Listener {}
// SAFETY: as above.
unsafe impl Sync for Listener {}

impl PlannerInner {
    /// What the planner is to call while it searches: the caller's progress function.
    pub(super) fn progress(&self) -> impl FnMut(&Progress) -> ControlFlow<()> {
        let listener = self.listener;
        move |p: &Progress| {
            let Some(call) = listener.call else { return ControlFlow::Continue(()) };
            let p = arenite_progress_t { nodes: p.nodes, arena_bytes: p.arena_bytes, lower_bound: p.lower_bound };
            // SAFETY: the contract on the callback; `p` is live during the call.
            match unsafe { call(listener.user, &p) } {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        }
    }

    pub(super) fn solve(&self, problem: &Problem) -> Result<Plan, Error> {
        self.accept(problem, plan_with(problem, &self.options, &mut self.progress())?)
    }

    /// What every plan goes through before it is handed out: the verifier, and the capacity of the options.
    pub(super) fn accept(&self, problem: &Problem, plan: Plan) -> Result<Plan, Error> {
        PlanInner::verify(problem, &plan.offsets).map_err(|_| INVALID)?;
        match self.options.capacity {
            Some(capacity) if plan.arena_bytes > capacity => {
                let reason = if plan.lower_bound > capacity {
                    "no plan fits the capacity; this one is the best found"
                } else {
                    "no plan that fits the capacity was found; this one is the best so far"
                };
                Err(Error::capacity(reason).needed(plan.arena_bytes).available(capacity))
            }
            _ => Ok(plan),
        }
    }
}

/// A closed range of steps: a buffer written at `first` and last read at `last` is alive at both.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_span_t {
    /// The first step.
    pub first: u32,
    /// The last step, inclusive.
    pub last: u32,
}

/// The buffer is alive to the end of the run and beyond, not merely to its last step.
pub const ARENITE_BUFFER_KEPT: u32 = 1;
/// The buffer must be at `fixed_offset`.
pub const ARENITE_BUFFER_FIXED: u32 = 2;

/// A buffer to place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_buffer_desc_t {
    /// `sizeof(arenite_buffer_desc_t)`.
    pub struct_size: u32,
    /// `ARENITE_BUFFER_` bits.
    pub flags: u32,
    /// Size in bytes, unrounded. A buffer of 0 bytes gets none and overlaps nobody.
    pub bytes: u64,
    /// The first step at which it is alive; not read where `spans` is given.
    pub first: u32,
    /// The last step, inclusive.
    pub last: u32,
    /// Its offset will be a multiple of this: a power of two up to 65536, or 0 for 128.
    pub alignment: u32,
    /// 0.
    pub reserved: u32,
    /// The offset it must have, with `ARENITE_BUFFER_FIXED`.
    pub fixed_offset: u64,
    /// For a lifetime with gaps: its spans, ascending and without a common step.
    pub spans: *const arenite_span_t,
    /// How many; 0 to use `first` and `last`.
    pub span_count: u64,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a raw pointer.
unsafe impl Versioned for arenite_buffer_desc_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        bytes: 0,
        first: 0,
        last: 0,
        alignment: 0,
        reserved: 0,
        fixed_offset: 0,
        spans: core::ptr::null(),
        span_count: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = ARENITE_BUFFER_KEPT | ARENITE_BUFFER_FIXED;
}

/// Creates a planner without buffers. `options` may be null for the defaults.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown strategy; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_planner_destroy`. `failure` may be null.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`; `out` is null or valid for one pointer write; `failure` is null or
/// writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_create(
    options: *const arenite_planner_options_t,
    out: *mut *mut arenite_planner_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `options`.
        let o = unsafe { abi::read_or_default(options) }?;
        zero(o.reserved)?;
        let mut options = Options::of(strategy_of(o.strategy)?);
        options.effort = (o.effort > 0).then_some(o.effort);
        options.capacity = (o.capacity > 0).then_some(o.capacity);
        let listener = Listener { call: o.progress, user: o.user };
        Ok(PlannerInner { problem: Problem::new(), options, listener })
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Adds a buffer and writes its index, which counts up from 0.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for spans that are reversed, unordered or overlap, `ARENITE_ERR_ALIGNMENT`,
/// `ARENITE_ERR_OVERFLOW`; the planner then is as before.
///
/// # Safety
/// `planner` is null or live; `desc` is null or a struct of its `struct_size` whose `spans` are readable for their count;
/// `out_index` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_add(
    planner: *mut arenite_planner_t,
    desc: *const arenite_buffer_desc_t,
    out_index: *mut u32,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `out_index`.
        let out = unsafe { guard::out(out_index, "out_index is null") }?;
        // SAFETY: the caller's contract on `desc`.
        let d = unsafe { abi::read(desc, "the buffer description is null") }?;
        zero(d.reserved)?;
        // SAFETY: the caller's contract on `spans`.
        let spans = unsafe { abi::array(d.spans, d.span_count, "spans is null") }?;
        let mut spec = BufferSpec::new(d.bytes, optional_align(d.alignment)?.unwrap_or(DEFAULT_ALIGN));
        spec.kept = d.flags & ARENITE_BUFFER_KEPT != 0;
        spec.fixed = (d.flags & ARENITE_BUFFER_FIXED != 0).then_some(d.fixed_offset);
        let index = if spans.is_empty() {
            p.problem.add_one(spec, d.first, d.last)?
        } else {
            let spans: Vec<Span> = spans.iter().map(|s| Span::new(s.first, s.last)).collect();
            p.problem.add(spec, &spans)?
        };
        out.write(index);
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// Makes buffer `member` live at `delta` bytes into buffer `root`: a view, or a result written in place.
///
/// The two may share bytes while both are alive; the class is placed as one block that is alive whenever a member is.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming both where they cannot be one class.
///
/// # Safety
/// `planner` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_alias(
    planner: *mut arenite_planner_t,
    member: u32,
    root: u32,
    delta: u64,
) -> arenite_status_t {
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, |p: &mut PlannerInner| p.problem.alias(member, root, delta)) }
}

/// Removes all buffers and keeps the options.
///
/// # Safety
/// `planner` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_clear(planner: *mut arenite_planner_t) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        p.problem = Problem::new();
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

/// Places every added buffer.
///
/// The planner keeps its buffers: more can be added and the whole planned again.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming two fixed offsets that collide; `ARENITE_ERR_CAPACITY` where the
/// options give a capacity and no plan that fits was found (`needed` is the best arena found, and the message says whether
/// it is proven that none fits); `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_plan_destroy`.
///
/// # Safety
/// `planner` is null or live; `out` is null or valid for one pointer write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_plan(
    planner: *mut arenite_planner_t,
    out: *mut *mut arenite_plan_t,
) -> arenite_status_t {
    let body = |p: &mut PlannerInner| {
        // SAFETY: the caller's contract on `out`.
        let out = unsafe { guard::out(out, "the pointer for the plan is null") }?;
        let plan = p.solve(&p.problem)?;
        out.write(handle::new(PlanInner::of_problem(&p.problem, plan)?)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::exclusive(planner, body) }
}

pub(super) const INVALID: Error = Error::internal("a strategy made an invalid plan, please report it");

/// Verifies offsets from anywhere against the added buffers: one offset per buffer, in the order they were added.
///
/// Writes the arena those offsets need. Returns: `ARENITE_OK`; else the record names the two buffers that are alive
/// together on the same bytes and the step (`needed` is the first byte both hold), or the buffer that misses its
/// alignment or fixed offset.
///
/// # Safety
/// `planner` is null or live; `offsets` is readable for `count`; `out_arena_bytes` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_check(
    planner: *const arenite_planner_t,
    offsets: *const u64,
    count: u64,
    out_arena_bytes: *mut u64,
) -> arenite_status_t {
    let body = |p: &PlannerInner| {
        // SAFETY: the caller's contract on `out_arena_bytes`.
        let out = unsafe { guard::out(out_arena_bytes, "out_arena_bytes is null") }?;
        // SAFETY: the caller's contract on `offsets`.
        let offsets = unsafe { abi::array(offsets, count, "offsets is null") }?;
        out.write(PlanInner::verify(&p.problem, offsets)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `planner`.
    unsafe { handle::shared(planner, body) }
}

/// Copies the record of the last failing call on this planner.
///
/// # Safety
/// `planner` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_planner_last_failure(
    planner: *const arenite_planner_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(planner, out) }
}

/// Destroys a planner; null is allowed. Plans made by it stay valid.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `planner` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_planner_destroy(planner: *mut arenite_planner_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(planner) }
}
