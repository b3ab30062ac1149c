//! The plan: offsets, and how good they are.

use core::ffi::c_void;
use core::mem::size_of;

use alloc::vec::Vec;

use super::abi::{self, Versioned};
use super::graph::{
    arenite_lifetime_t, ARENITE_ARENA_MAIN, ARENITE_ARENA_NONE, ARENITE_ARENA_PERSISTENT, ARENITE_LIFETIME_KEPT,
};
use super::guard;
use super::handle::{self, Opaque};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Subject};
use crate::graph::liveness::Home;
use crate::graph::lower::Lowered;
use crate::graph::tables::Allocation;
use crate::planner::{check, Plan, Problem};
use crate::runtime::arena::{Layout, Place, Slot};
use crate::runtime::source::required_bytes;

/// Offsets for one problem or graph.
///
/// Threads: it never changes, so any number of threads may read one plan.
pub struct arenite_plan_t {
    _private: [u8; 0],
}

pub(crate) struct PlanInner {
    pub plan: Plan,
    pub problem: Problem,
    /// Of a graph: sizes and slots for an arena. Of a bare problem: one subgraph with a slot per buffer.
    pub layout: Layout,
    /// Of a graph: the lifetime of every tensor.
    pub lifetimes: Vec<Vec<arenite_lifetime_t>>,
    /// Of a graph: per subgraph the order its nodes run in, by the numbers they were added with.
    pub orders: Vec<Vec<u32>>,
    pub buffers: u64,
    pub total_bytes: u64,
    /// Of a graph: what a report tells besides.
    pub graph: Option<Lowering>,
}

/// How a graph became the problem.
pub(crate) struct Lowering {
    /// With an empty problem: the plan has it.
    pub lowered: Lowered,
    /// Per subgraph and tensor, where it is and its size, `None` while unknown.
    pub tensors: Vec<Vec<(Allocation, Option<u64>)>>,
}

impl Opaque for arenite_plan_t {
    type Inner = PlanInner;
    const MAGIC: [u8; 4] = *b"plan";
    const NULL: &'static str = "the plan is null";
}

/// The lifetime of one tensor as C sees it.
pub(crate) fn lifetime_of(lowered: &Lowered, subgraph: usize, tensor: usize) -> arenite_lifetime_t {
    let own = &lowered.lives.own[subgraph][tensor];
    arenite_lifetime_t {
        first: own.first,
        last: own.last,
        flags: if own.kept { ARENITE_LIFETIME_KEPT } else { 0 },
        arena: match own.home {
            Home::Arena => ARENITE_ARENA_MAIN,
            Home::Persistent => ARENITE_ARENA_PERSISTENT,
            Home::Elsewhere => ARENITE_ARENA_NONE,
        },
        root: lowered.roots[subgraph][tensor],
        span_count: lowered.lives.spans[subgraph][tensor].len() as u32,
    }
}

impl PlanInner {
    /// The plan of a bare problem.
    pub fn of_problem(problem: &Problem, plan: Plan) -> Result<PlanInner, Error> {
        Ok(PlanInner {
            layout: layout_of_problem(problem, &plan),
            lifetimes: Vec::new(),
            orders: Vec::new(),
            buffers: problem.buffers().iter().filter(|b| b.spec.size > 0).count() as u64,
            total_bytes: problem.total_bytes()?,
            problem: problem.clone(),
            plan,
            graph: None,
        })
    }

    /// Checks one plan, as every plan is checked before it is handed out.
    pub fn verify(problem: &Problem, offsets: &[u64]) -> Result<u64, Error> {
        check::check(problem, offsets).map_err(|v| match v {
            check::Violation::Overlap { a, b, first, from, .. } => {
                Error::argument("two buffers that are alive together hold the same bytes")
                    .of(Subject::Buffer(a))
                    .and(Subject::Buffer(b))
                    .at(first)
                    .needed(from)
            }
            check::Violation::Misaligned { buffer, offset } => {
                Error::alignment("the offset misses the buffer's alignment").of(Subject::Buffer(buffer)).needed(offset)
            }
            check::Violation::Moved { buffer, fixed, offset } => Error::argument("the fixed offset is not honoured")
                .of(Subject::Buffer(buffer))
                .needed(fixed)
                .available(offset),
            check::Violation::Strayed { buffer, expected, offset } => {
                Error::argument("the alias is not where its root's bytes are")
                    .of(Subject::Buffer(buffer))
                    .needed(expected)
                    .available(offset)
            }
            check::Violation::Wraps { buffer } => {
                Error::overflow("offset + size does not fit 64 bits").of(Subject::Buffer(buffer))
            }
            check::Violation::Count { expected, given } => {
                Error::argument("there must be one offset per buffer").needed(expected).available(given)
            }
        })
    }

    fn slot(&self, subgraph: u32, tensor: u32) -> Result<Slot, Error> {
        let slots = self.layout.slots.get(subgraph as usize);
        let slots = slots.ok_or(Error::argument("there is no such subgraph").of(Subject::Subgraph(subgraph)))?;
        slots
            .get(tensor as usize)
            .copied()
            .ok_or(Error::argument("there is no such tensor").tensor(tensor as usize).available(slots.len() as u64))
    }
}

/// The numbers of a plan. Set `struct_size` to `sizeof(arenite_plan_info_t)` and `flags` to 0 before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_plan_info_t {
    /// `sizeof(arenite_plan_info_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The highest end of any buffer in the reusable arena, unrounded.
    pub arena_bytes: u64,
    /// No plan of this problem needs less.
    pub lower_bound: u64,
    /// The sum of all planned sizes: what one allocation per buffer would take.
    pub total_bytes: u64,
    /// Bytes of the persistent arena.
    pub persistent_bytes: u64,
    /// How many buffers have bytes in the reusable arena.
    pub buffer_count: u64,
    /// The alignment the reusable arena's base must meet.
    pub alignment: u32,
    /// The alignment the persistent arena's base must meet.
    pub persistent_alignment: u32,
    /// The strategy that made these offsets: `ARENITE_STRATEGY_`; with AUTO and EXACT, what won.
    pub strategy: u32,
    /// 1 where no smaller arena exists once both figures are rounded up to the alignment, else 0.
    pub optimal: u32,
    /// Search nodes visited; 0 where a greedy rule was enough.
    pub nodes: u64,
    /// Search nodes visited when these offsets were found.
    pub nodes_to_best: u64,
    /// Search nodes visited when search proved that no plan is smaller; 0 where the bound proved it, or nothing did.
    pub nodes_to_proof: u64,
}

const _: () = assert!(size_of::<arenite_plan_info_t>() == 88);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_plan_info_t {
    const DEFAULT: Self = Self {
        struct_size: 88,
        flags: 0,
        arena_bytes: 0,
        lower_bound: 0,
        total_bytes: 0,
        persistent_bytes: 0,
        buffer_count: 0,
        alignment: 0,
        persistent_alignment: 0,
        strategy: 0,
        optimal: 0,
        nodes: 0,
        nodes_to_best: 0,
        nodes_to_proof: 0,
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Where a tensor's bytes are. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_plan_tensor_t {
    /// `sizeof(arenite_plan_tensor_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Offset from the arena's base; `ARENITE_NO_AMOUNT` where the tensor has no bytes in either arena.
    pub offset: u64,
    /// Size in bytes, unrounded; of a constant the size of its data.
    pub bytes: u64,
    /// When it is alive, and in which arena. Zero for a bare problem, whose lifetimes the caller knows.
    pub lifetime: arenite_lifetime_t,
}

const _: () = assert!(size_of::<arenite_plan_tensor_t>() == 48);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a struct of integers.
unsafe impl Versioned for arenite_plan_tensor_t {
    const DEFAULT: Self = Self {
        struct_size: 48,
        flags: 0,
        offset: 0,
        bytes: 0,
        lifetime: arenite_lifetime_t { first: 0, last: 0, flags: 0, arena: 0, root: 0, span_count: 0 },
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Writes the numbers of a plan.
///
/// # Safety
/// `plan` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_info(
    plan: *const arenite_plan_t,
    out: *mut arenite_plan_info_t,
) -> arenite_status_t {
    let body = |p: &PlanInner| {
        let info = arenite_plan_info_t {
            arena_bytes: p.plan.arena_bytes,
            lower_bound: p.plan.lower_bound,
            total_bytes: p.total_bytes,
            persistent_bytes: p.layout.persistent_bytes,
            buffer_count: p.buffers,
            alignment: p.layout.main_align.bytes() as u32,
            persistent_alignment: p.layout.persistent_align.bytes() as u32,
            strategy: super::planner::strategy_number(p.plan.strategy),
            optimal: p.plan.optimal.into(),
            nodes: p.plan.stats.nodes,
            nodes_to_best: p.plan.stats.nodes_to_best,
            nodes_to_proof: p.plan.stats.nodes_to_proof,
            ..arenite_plan_info_t::DEFAULT
        };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &info, "the pointer for the numbers is null") }
    };
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// Writes the offset of buffer `buffer`, by the index `arenite_planner_add` gave; 0 for a buffer of 0 bytes.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such buffer. For the plan of a graph use
/// `arenite_plan_tensor`.
///
/// # Safety
/// `plan` is null or live; `out_offset` is null or valid for one write.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_offset(
    plan: *const arenite_plan_t,
    buffer: u32,
    out_offset: *mut u64,
) -> arenite_status_t {
    let body = |p: &PlanInner| {
        // SAFETY: the caller's contract on `out_offset`.
        let out = unsafe { guard::out(out_offset, "out_offset is null") }?;
        let offset = p.plan.offsets.get(buffer as usize).copied();
        let missing = Error::argument("there is no such buffer").of(Subject::Buffer(buffer));
        out.write(offset.ok_or(missing.available(p.plan.offsets.len() as u64))?);
        Ok(())
    };
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// Writes where the bytes of a tensor are. A bare problem is subgraph 0, and its buffers are the tensors.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
///
/// # Safety
/// `plan` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_tensor(
    plan: *const arenite_plan_t,
    subgraph: u32,
    tensor: u32,
    out: *mut arenite_plan_tensor_t,
) -> arenite_status_t {
    let body = |p: &PlanInner| {
        let slot = p.slot(subgraph, tensor)?;
        let (arena, offset) = match slot.place {
            Place::Main { offset } => (ARENITE_ARENA_MAIN, offset),
            Place::Persistent { offset } => (ARENITE_ARENA_PERSISTENT, offset),
            Place::None | Place::Constant => (ARENITE_ARENA_NONE, super::status::ARENITE_NO_AMOUNT),
        };
        let known = p.lifetimes.get(subgraph as usize).and_then(|l| l.get(tensor as usize)).copied();
        let mut lifetime = known.unwrap_or(arenite_plan_tensor_t::DEFAULT.lifetime);
        lifetime.arena = arena;
        let record = arenite_plan_tensor_t { offset, bytes: slot.bytes, lifetime, ..arenite_plan_tensor_t::DEFAULT };
        // SAFETY: the caller's contract on `out`.
        unsafe { abi::fill(out, &record, "the pointer for the tensor's record is null") }
    };
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// Writes exactly how many bytes a buffer at `base` must have for one of the plan's arenas: a buffer of that size works,
/// one byte less does not.
///
/// `arena` is `ARENITE_ARENA_MAIN` or `ARENITE_ARENA_PERSISTENT`. `base` may be any address, also a misaligned one (then
/// the answer includes the bytes skipped), and null for an aligned one.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for another arena; `ARENITE_ERR_OVERFLOW` where the arena does not fit
/// this process.
///
/// # Safety
/// `plan` is null or live; `out_bytes` is null or valid for one write. `base` is not read.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_required_bytes(
    plan: *const arenite_plan_t,
    arena: u32,
    base: *const c_void,
    out_bytes: *mut usize,
) -> arenite_status_t {
    let body = |p: &PlanInner| {
        // SAFETY: the caller's contract on `out_bytes`.
        let out = unsafe { guard::out(out_bytes, "out_bytes is null") }?;
        let (bytes, align) = match arena {
            ARENITE_ARENA_MAIN => (p.layout.main_bytes, p.layout.main_align),
            ARENITE_ARENA_PERSISTENT => (p.layout.persistent_bytes, p.layout.persistent_align),
            other => {
                return Err(Error::argument("arena is neither ARENITE_ARENA_MAIN nor _PERSISTENT").needed(other.into()));
            }
        };
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::overflow("the arena does not fit the address space").needed(bytes))?;
        out.write(required_bytes(base as usize, bytes, align.bytes() as usize)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// Verifies a plan again: no two buffers that are alive together share a byte, and every alignment and fixed offset is met.
///
/// The verifier shares no code with the strategies. Returns: `ARENITE_OK`; else the record names the two buffers.
///
/// # Safety
/// `plan` is null or live.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_check(plan: *const arenite_plan_t) -> arenite_status_t {
    let body = |p: &PlanInner| PlanInner::verify(&p.problem, &p.plan.offsets).map(drop);
    // SAFETY: the caller's contract on `plan`.
    unsafe { handle::shared(plan, body) }
}

/// Copies the record of the last failing call on this plan.
///
/// # Safety
/// `plan` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_plan_last_failure(
    plan: *const arenite_plan_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(plan, out) }
}

/// Destroys a plan; null is allowed. Arenas made from it stay valid.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
///
/// # Safety
/// `plan` is null or live, and is not used again after `ARENITE_OK`.
#[no_mangle]
pub unsafe extern "C" fn arenite_plan_destroy(plan: *mut arenite_plan_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(plan) }
}

/// The layout of a bare problem's arena: one slot per buffer.
fn layout_of_problem(problem: &Problem, plan: &Plan) -> Layout {
    let slots = problem.buffers().iter().zip(&plan.offsets).map(|(b, &offset)| Slot {
        place: if b.spec.size > 0 { Place::Main { offset } } else { Place::None },
        bytes: b.spec.size,
    });
    Layout {
        main_bytes: plan.arena_bytes,
        main_align: plan.align.max(crate::units::DEFAULT_ALIGN),
        slots: alloc::vec![slots.collect()],
        ..Layout::default()
    }
}
