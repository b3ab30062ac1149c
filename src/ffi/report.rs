//! The report: what a plan looks like, written through a callback, so that an engine can offer it in the field.

use core::ffi::{c_char, c_void, CStr};
use std::io::{self, Write};

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::handle::{self, Opaque};
use super::plan::{arenite_plan_t, PlanInner};
use super::status::{arenite_failure_t, arenite_status_t};
use crate::error::{Error, Kind};
use crate::runtime::arena::Place;
use crate::view::{csv, json, svg, text, Overview, Report, TextOptions};

/// What a plan looks like: every block with its offset, lifetime and name.
///
/// Threads: it never changes, so any number of threads may read one report.
pub struct arenite_report_t {
    _private: [u8; 0],
}

pub(crate) struct ReportInner {
    report: Report,
    persistent_bytes: u64,
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

/// Takes a piece of a report: `length` bytes at `data`, valid during the call and not ended by a zero. Returns 0 to go on,
/// anything else to stop. Must not unwind.
pub type arenite_write_fn = Option<unsafe extern "C" fn(user: *mut c_void, data: *const c_char, length: usize) -> u32>;

/// Makes the report of a plan.
///
/// `name` may be null: tensors then go by their numbers. It is called once for every block during this call, with `user`;
/// neither is kept.
/// Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_BUSY`; `ARENITE_ERR_NO_MEMORY`.
/// Ownership: `*out` is the caller's until `arenite_report_destroy`. The plan may be destroyed before the report.
///
/// # Safety
/// `plan` is null or live; `name` is null or callable as documented with `user`; `out` is null or valid for one pointer
/// write; `failure` is null or writable for its `struct_size`.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_report_create(
    plan: *const arenite_plan_t,
    name: arenite_name_fn,
    user: *mut c_void,
    out: *mut *mut arenite_report_t,
    failure: *mut arenite_failure_t,
) -> arenite_status_t {
    let make = || {
        // SAFETY: the caller's contract on `plan`.
        let plan = unsafe { handle::borrow(plan) }?;
        // SAFETY: the caller's contract on `name`.
        let name = |subgraph, tensor| unsafe { name_of(name, user, subgraph, tensor) };
        of_plan(&plan, &name)
    };
    // SAFETY: the caller's contracts on `out` and `failure`.
    unsafe { handle::create(out, failure, make) }
}

/// Asks the callback for a name; empty for none.
///
/// # Safety
/// `name` is null or callable as `arenite_name_fn` says.
unsafe fn name_of(name: arenite_name_fn, user: *mut c_void, subgraph: u32, tensor: u32) -> String {
    let Some(name) = name else { return String::new() };
    // SAFETY: the caller's contract.
    let text = unsafe { name(user, subgraph, tensor) };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the contract of the type: text that ends with a zero, valid until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn of_plan(plan: &PlanInner, name: &dyn Fn(u32, u32) -> String) -> Result<ReportInner, Error> {
    // Buffers of a graph were numbered in order of subgraph and tensor, those without bytes left out; buffers of a bare
    // problem are the tensors.
    let slots = plan.layout.slots.iter().enumerate();
    let all = slots.flat_map(|(g, s)| s.iter().enumerate().map(move |(t, slot)| ((g as u32, t as u32), slot)));
    let bare = plan.lifetimes.is_empty();
    let placed: Vec<(u32, u32)> =
        all.filter(|(_, s)| bare || matches!(s.place, Place::Main { .. })).map(|(id, _)| id).collect();
    let several = plan.layout.slots.len() > 1;
    let label = |i: usize| {
        let (g, t) = placed.get(i).copied().unwrap_or((0, i as u32));
        let id = if several { alloc::format!("{g}:{t}") } else { t.to_string() };
        (id, name(g, t))
    };
    let time = |s: u32| (u64::from(s), u64::from(s));
    let report = Report::of_problem("plan".into(), &plan.problem, &plan.plan, &label, &time)?;
    Ok(ReportInner {
        report,
        persistent_bytes: plan.layout.persistent_bytes,
        alignment: plan.plan.align.bytes(),
        in_place: plan.problem.has_aliases(),
    })
}

impl ReportInner {
    fn overview(&self) -> Overview<'_> {
        Overview {
            title: &self.report.title,
            entries: core::slice::from_ref(&self.report),
            persistent_bytes: self.persistent_bytes,
            resource_bytes: 0,
            constant_bytes: 0,
            scratch_bytes: None,
            alignment: self.alignment,
            in_place: self.in_place,
            strategy: self.report.facts.strategy,
            warnings: &[],
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
