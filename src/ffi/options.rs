//! Options shared by the nouns.

use core::mem::size_of;

use super::abi::{self, Versioned};
use crate::error::Error;
use crate::graph::liveness::{Options, Policy};
use crate::units::{Align, DEFAULT_ALIGN};

/// A portfolio of rules and then a bounded search, which ends as soon as the lower bound is met. The default.
pub const ARENITE_STRATEGY_AUTO: u32 = 0;
/// Order of first use, lowest gap.
pub const ARENITE_STRATEGY_FIRST_FIT: u32 = 1;
/// Exactly what TensorFlow Lite does.
pub const ARENITE_STRATEGY_GREEDY_BY_SIZE: u32 = 2;
/// What TensorFlow Lite Micro does.
pub const ARENITE_STRATEGY_TFLM_GREEDY: u32 = 3;
/// Search until the plan is proven optimal or the effort is spent; the plan says which.
pub const ARENITE_STRATEGY_EXACT: u32 = 4;
/// An answer only, in a plan by AUTO or EXACT: the skyline heuristic won.
pub const ARENITE_STRATEGY_VALLEY: u32 = 5;
/// An answer only, in a plan by AUTO or EXACT: repacking parts of a large problem won.
pub const ARENITE_STRATEGY_WINDOWS: u32 = 6;
/// An answer only, in a plan by AUTO or EXACT: search won.
pub const ARENITE_STRATEGY_SEARCH: u32 = 7;

/// Inputs and outputs are kept; an output that nobody reads lives at its step. The default.
pub const ARENITE_POLICY_SAFE: u32 = 0;
/// As TensorFlow Lite: also outputs that nobody reads are kept to the end.
pub const ARENITE_POLICY_TFLITE: u32 = 1;
/// As TensorFlow Lite Micro: an input's bytes are free after its last reader.
pub const ARENITE_POLICY_TFLM: u32 = 2;

/// An input's bytes may be reused after its last reader.
pub const ARENITE_GRAPH_REUSE_INPUTS: u32 = 1;
/// Nothing is released and nothing shared, so that every tensor can be read after the run.
pub const ARENITE_GRAPH_KEEP_ALL: u32 = 2;
/// No node writes over one of its inputs, whatever the nodes allow.
pub const ARENITE_GRAPH_NO_IN_PLACE: u32 = 4;
/// The plan may expect another execution order, where that makes the arena smaller: ask `arenite_plan_order` for it. Only
/// for `arenite_planner_plan_graph`, and only where nodes do nothing but write their outputs; for others see
/// `arenite_graph_order`. Nodes that run subgraphs keep their order.
pub const ARENITE_GRAPH_REORDER: u32 = 8;

/// How lifetimes are found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_graph_options_t {
    /// `sizeof(arenite_graph_options_t)`.
    pub struct_size: u32,
    /// `ARENITE_GRAPH_` bits.
    pub flags: u32,
    /// `ARENITE_POLICY_`.
    pub policy: u32,
    /// Alignment of every tensor: a power of two up to 65536, or 0 for 128.
    pub alignment: u32,
}

const _: () = assert!(size_of::<arenite_graph_options_t>() == 16);

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer.
unsafe impl Versioned for arenite_graph_options_t {
    const DEFAULT: Self = Self { struct_size: 16, flags: 0, policy: ARENITE_POLICY_SAFE, alignment: 0 };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 =
        ARENITE_GRAPH_REUSE_INPUTS | ARENITE_GRAPH_KEEP_ALL | ARENITE_GRAPH_NO_IN_PLACE | ARENITE_GRAPH_REORDER;
}

/// Options from C; null means the defaults.
///
/// # Safety
/// `options` is null or a struct of its `struct_size`.
pub(crate) unsafe fn read_options(options: *const arenite_graph_options_t) -> Result<Options, Error> {
    // SAFETY: the caller's contract is this function's own.
    let (options, reorder) = unsafe { read_plan_options(options) }?;
    match reorder {
        true => Err(Error::unsupported("ARENITE_GRAPH_REORDER is for arenite_planner_plan_graph alone")),
        false => Ok(options),
    }
}

/// The same, and whether the order may be another.
///
/// # Safety
/// As [`read_options`].
pub(crate) unsafe fn read_plan_options(options: *const arenite_graph_options_t) -> Result<(Options, bool), Error> {
    // SAFETY: the caller's contract.
    let o = unsafe { abi::read_or_default(options) }?;
    let found = Options {
        policy: match o.policy {
            ARENITE_POLICY_SAFE => Policy::Safe,
            ARENITE_POLICY_TFLITE => Policy::Tflite,
            ARENITE_POLICY_TFLM => Policy::Tflm,
            other => return Err(Error::argument("policy is not one of ARENITE_POLICY_").needed(other.into())),
        },
        in_place: o.flags & ARENITE_GRAPH_NO_IN_PLACE == 0,
        align: optional_align(o.alignment)?.unwrap_or(DEFAULT_ALIGN),
        reuse_inputs: o.flags & ARENITE_GRAPH_REUSE_INPUTS != 0,
        keep_all: o.flags & ARENITE_GRAPH_KEEP_ALL != 0,
    };
    Ok((found, o.flags & ARENITE_GRAPH_REORDER != 0))
}

/// An alignment from C; 0 means none.
pub(crate) fn optional_align(bytes: u32) -> Result<Option<Align>, Error> {
    match bytes {
        0 => Ok(None),
        b => Align::new(b.into()).map(Some),
    }
}

/// A reserved field must be 0, so that it can get a meaning later.
pub(crate) fn zero(reserved: u32) -> Result<(), Error> {
    match reserved {
        0 => Ok(()),
        other => Err(Error::argument("a reserved field is not 0").needed(other.into())),
    }
}
