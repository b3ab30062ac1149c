//! The report: what a plan looks like, written through a callback, so that an engine can offer it in the field.

use core::ffi::{c_char, c_void, CStr};
use core::mem::size_of;
use std::io::{self, Write};

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::abi::{self, Versioned};
use super::handle::{self, Opaque};
use super::plan::{arenite_plan_t, Lowering, PlanInner};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::graph::lower::Lowered;
use crate::runtime::arena::Place;
use crate::view::{csv, json, svg, text, Names, Overview, Report, Tensor, TextOptions};

/// What a plan looks like: every block with its offset, lifetime and name.
///
/// Threads: it never changes, so any number of threads may read one report.
pub struct arenite_report_t {
    _private: [u8; 0],
}

pub(crate) struct ReportInner {
    report: Report,
    persistent_bytes: u64,
    constant_bytes: u64,
    scratch_bytes: Option<u64>,
    alignment: u64,
    in_place: bool,
}

impl Opaque for arenite_report_t {
    type Inner = ReportInner;
    const MAGIC: [u8; 4] = *b"rprt";
    const NULL: &'static str = "the report is null";
}

/// Text for people: the figures, the peak and who is alive there, every block with who had its bytes before, and a map.
pub const ARENITE_REPORT_TEXT: u32 = 0;
/// One JSON object; docs/REPORT.md describes it.
pub const ARENITE_REPORT_JSON: u32 = 1;
/// A CSV with the columns id, lower, upper, size, alignment, offset, gaps, name, root, which the command line reads.
pub const ARENITE_REPORT_CSV: u32 = 2;
/// A picture: time across, bytes up.
pub const ARENITE_REPORT_SVG: u32 = 3;

/// Tells the name of a tensor, or of a buffer of a bare problem, which is then in subgraph 0. Returns text that ends with a
/// zero and stays valid until the next call, or null for no name. Must not unwind.
pub type arenite_name_fn = Option<unsafe extern "C" fn(user: *mut c_void, subgraph: u32, tensor: u32) -> *const c_char>;

/// Tells the operator of a node, as `arenite_name_fn` tells a name.
pub type arenite_op_fn = Option<unsafe extern "C" fn(user: *mut c_void, subgraph: u32, node: u32) -> *const c_char>;

/// What a report calls things. Set `struct_size` and `flags` before passing it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_report_names_t {
    /// `sizeof(arenite_report_names_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Names of tensors; null where they go by their numbers.
    pub tensor: arenite_name_fn,
    /// Operators of nodes; null where steps go by their numbers. Not called for the plan of a bare problem.
    pub op: arenite_op_fn,
    /// Handed to both. Not kept.
    pub user: *mut c_void,
}

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer, a raw pointer or an optional function
// pointer, for which any bytes are a valid value (it is the contract that makes it callable).
unsafe impl Versioned for arenite_report_names_t {
    const DEFAULT: Self =
        Self { struct_size: size_of::<Self>() as u32, flags: 0, tensor: None, op: None, user: core::ptr::null_mut() };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// Takes a piece of a report: `length` bytes at `data`, valid during the call and not ended by a zero. Returns 0 to go on,
/// anything else to stop. Must not unwind.
pub type arenite_write_fn = Option<unsafe extern "C" fn(user: *mut c_void, data: *const c_char, length: usize) -> u32>;

/// Makes the report of a plan.
///
/// `names` may be null: tensors and steps then go by their numbers. Its functions are called during this call only, for
/// every tensor and every step.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` for a `struct_size` that cannot be;
/// `ARENITE_ERR_BUSY`; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_report_destroy`. The plan may be destroyed before the report.
///
/// # Safety
/// `plan` is null or live; `names` is null or a struct of its `struct_size` whose functions are null or callable as
/// documented with its `user`; `out` is null or valid for one pointer write; `failure` is null or writable for its
/// `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_report_create(
    plan: *const arenite_plan_t,
    names: *const arenite_report_names_t,
    out: *mut *mut arenite_report_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `names`.
        let names = unsafe { abi::read_or_default(names) }?;
        // SAFETY: the caller's contract on `plan`.
        let plan = unsafe { handle::borrow(plan) }?;
        let text = |call: arenite_name_fn, subgraph: u32, index: u32| {
            // SAFETY: the caller's contract on `names`.
            unsafe { told(call, names.user, subgraph, index) }
        };
        match &plan.graph {
            Some(graph) => of_graph(&plan, graph, &|g, t| text(names.tensor, g, t), &|g, n| text(names.op, g, n)),
            None => of_problem(&plan, &|i| text(names.tensor, 0, i)),
        }
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Asks a callback for a text; empty for none.
///
/// # Safety
/// `call` is null or callable as `arenite_name_fn` says.
unsafe fn told(call: arenite_name_fn, user: *mut c_void, subgraph: u32, index: u32) -> String {
    let Some(call) = call else { return String::new() };
    // SAFETY: the caller's contract.
    let text = unsafe { call(user, subgraph, index) };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the contract of the type: text that ends with a zero, valid until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Texts of the host, by subgraph and index, asked for beforehand: a report borrows them.
struct Texts {
    tensors: Vec<Vec<String>>,
    ops: Vec<Vec<String>>,
}

impl Names for Texts {
    fn tensor(&self, subgraph: usize, tensor: usize) -> &str {
        &self.tensors[subgraph][tensor]
    }

    fn op(&self, subgraph: usize, node: usize) -> &str {
        &self.ops[subgraph][node]
    }
}

type Ask<'a> = &'a dyn Fn(u32, u32) -> String;

fn of_graph(plan: &PlanInner, graph: &Lowering, name: Ask<'_>, op: Ask<'_>) -> Result<ReportInner, Error> {
    let steps = graph.lowered.timeline.steps();
    let mut subgraphs: Vec<usize> = steps.iter().map(|at| at.subgraph as usize).chain([0]).collect();
    subgraphs.sort_unstable();
    subgraphs.dedup();
    let tensors = graph.tensors.iter().enumerate();
    let tensors = tensors.map(|(g, list)| (0..list.len()).map(|t| name(g as u32, t as u32)).collect()).collect();
    let mut ops: Vec<Vec<String>> = alloc::vec![Vec::new(); graph.tensors.len()];
    for at in steps {
        let (own, node) = (&mut ops[at.subgraph as usize], at.node as usize);
        if own.len() <= node {
            own.resize(node + 1, String::new());
        }
        if own[node].is_empty() {
            own[node] = op(at.subgraph, at.node);
        }
    }
    let tensor = |g: usize, t: usize| {
        let (allocation, bytes) = graph.tensors[g][t];
        let persistent = match plan.layout.slots[g][t].place {
            Place::Persistent { offset } => Some(offset),
            _ => None,
        };
        Tensor { allocation, bytes, persistent }
    };
    let lowered = Lowered { problem: plan.problem.clone(), ..graph.lowered.clone() };
    let names = Texts { tensors, ops };
    let report = Report::of_lowered("plan".into(), (0, &subgraphs), &tensor, (&lowered, &plan.plan), &names)?;
    let constants = report.rows.iter().filter(|r| r.kind.name() == "constant").filter_map(|r| r.size);
    let constant_bytes = constants.fold(0, u64::saturating_add);
    let scratch = report.rows.iter().filter(|r| r.kind.name() == "scratch").filter_map(|r| r.size);
    let scratch_bytes = scratch.fold(None, |sum: Option<u64>, b| Some(sum.unwrap_or(0).saturating_add(b)));
    Ok(ReportInner { constant_bytes, scratch_bytes, ..ReportInner::new(plan, report) })
}

fn of_problem(plan: &PlanInner, name: &dyn Fn(u32) -> String) -> Result<ReportInner, Error> {
    let label = |i: usize| (i.to_string(), name(i as u32));
    let time = |s: u32| (u64::from(s), u64::from(s));
    let report = Report::of_problem("plan".into(), &plan.problem, &plan.plan, &label, &time)?;
    Ok(ReportInner::new(plan, report))
}

impl ReportInner {
    fn new(plan: &PlanInner, report: Report) -> ReportInner {
        ReportInner {
            report,
            persistent_bytes: plan.layout.persistent_bytes,
            constant_bytes: 0,
            scratch_bytes: None,
            alignment: plan.plan.align.bytes(),
            in_place: plan.problem.has_aliases(),
        }
    }

    fn overview(&self) -> Overview<'_> {
        Overview {
            title: &self.report.title,
            entries: core::slice::from_ref(&self.report),
            persistent_bytes: self.persistent_bytes,
            resource_bytes: 0,
            constant_bytes: self.constant_bytes,
            scratch_bytes: self.scratch_bytes,
            alignment: self.alignment,
            in_place: self.in_place,
            strategy: self.report.facts.strategy,
            warnings: &[],
            capacity: None,
        }
    }
}

/// A callback as a writer.
struct Sink {
    write: unsafe extern "C" fn(user: *mut c_void, data: *const c_char, length: usize) -> u32,
    user: *mut c_void,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the contract of `arenite_report_write`, whose call outlives this writer.
        match unsafe { (self.write)(self.user, bytes.as_ptr().cast(), bytes.len()) } {
            0 => Ok(bytes.len()),
            _ => Err(io::Error::other("the callback stopped")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a report in one of the `ARENITE_REPORT_` formats, in pieces of up to a few kilobytes.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` for a number that is no format;
/// `ARENITE_ERR_CAPACITY` where the callback stopped, whatever it had taken before.
///
/// # Safety
/// `report` is null or live; `write` is null or callable as documented with `user`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_report_write(
    report: *const arenite_report_t,
    format: u32,
    write: arenite_write_fn,
    user: *mut c_void,
) -> arenite_status_t {
    let body = |r: &ReportInner| {
        let write = write.ok_or(Error::new(Kind::Null, "the callback is null"))?;
        if format > ARENITE_REPORT_SVG {
            return Err(Error::argument("format is none of the ARENITE_REPORT_ numbers").needed(format.into()));
        }
        let (all, mut out) = (r.overview(), io::BufWriter::with_capacity(4096, Sink { write, user }));
        let done = match format {
            ARENITE_REPORT_JSON => json(&mut out, &all, None, &[]),
            ARENITE_REPORT_CSV => csv(&mut out, &all),
            ARENITE_REPORT_SVG => svg(&mut out, &r.report),
            _ => text(&mut out, &all, TextOptions { all: true, width: 100 }),
        };
        let flushed = done.and_then(|()| out.flush());
        // What is left in the buffer must not be offered again when it is dropped.
        drop(out.into_parts());
        flushed.map_err(|_| Error::capacity("the callback took no more"))
    };
    // SAFETY: the caller's contract on `report`.
    unsafe { handle::shared(report, body) }
}

/// Copies the record of the last failing call on this report.
///
/// # Safety
/// `report` is null or live; `out` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_report_last_failure(
    report: *const arenite_report_t,
    out: *mut arenite_failure_t,
) -> arenite_status_t {
    // SAFETY: the caller's contracts.
    unsafe { handle::last_failure(report, out) }
}

/// Destroys a report; null is allowed.
///
/// # Safety
/// `report` is null or live, and nobody uses it afterwards.
#[no_mangle]
pub unsafe extern "C" fn arenite_report_destroy(report: *mut arenite_report_t) -> arenite_status_t {
    // SAFETY: the caller's contract.
    unsafe { handle::destroy(report) }
}
