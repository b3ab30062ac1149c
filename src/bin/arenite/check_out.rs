//! What `check` prints.

use std::io::{self, Write};

use arenite::units::Bytes;
use arenite::view::{grouped, human, visible};
use serde_json::{json, Value};

use super::check::Outcome;

/// Lines of text without `--all`.
const SHOWN: usize = 20;

/// An id as in the file, and a name.
pub type Party = (String, String);

/// One thing that is wrong.
pub enum Finding {
    /// Two buffers alive together on the same bytes: common times, and bytes half-open.
    Overlap { a: Party, b: Party, steps: (u64, u64), bytes: (Bytes, Bytes) },
    /// An offset (or address) is not a multiple of the alignment.
    Misaligned { a: Party, offset: Bytes, alignment: Bytes },
    /// A fixed offset was not honoured.
    Moved { a: Party, fixed: Bytes, offset: Bytes },
    /// Offset and size do not fit 64 bits.
    Wraps { a: Party },
    /// The plan has no offset for it.
    Missing { a: Party },
    /// The plan has an offset for what the problem does not have.
    Unknown { id: String, line: u64 },
    /// The arena is larger than allowed.
    Capacity { arena: Bytes, capacity: Bytes },
}

/// Writes one JSON object; violations one a line.
pub fn json(w: &mut dyn Write, out: &Outcome, ok: bool) -> io::Result<()> {
    write!(w, "{{\"ok\": {ok}\n,\"arena_bytes\": {}\n,\"buffers\": {}", out.arena_bytes, out.buffers)?;
    write!(w, "\n,\"truncated\": {}\n,\"unknown\": {}", out.truncated, json!(out.unknown))?;
    if let Some(base) = out.base {
        write!(w, "\n,\"base\": {}\n,\"layout\": [", json!(format!("{base:#x}")))?;
        let mut lead = "\n";
        for (id, offset, size) in &out.layout {
            write!(w, "{lead}{}", json!({"id": id, "offset": offset, "size": size}))?;
            lead = ",\n";
        }
        write!(w, "\n]")?;
    }
    write!(w, "\n,\"violations\": [")?;
    let mut lead = "\n";
    for finding in &out.findings {
        write!(w, "{lead}{}", value(finding))?;
        lead = ",\n";
    }
    writeln!(w, "\n]}}")
}

fn value(finding: &Finding) -> Value {
    match finding {
        Finding::Overlap { a, b, steps, bytes } => json!({
            "kind": "overlap", "a": a.0, "b": b.0, "steps": [steps.0, steps.1], "bytes": [bytes.0, bytes.1],
            "a_name": a.1, "b_name": b.1,
        }),
        Finding::Misaligned { a, offset, alignment } => {
            json!({"kind": "misaligned", "a": a.0, "offset": offset, "alignment": alignment, "a_name": a.1})
        }
        Finding::Moved { a, fixed, offset } => {
            json!({"kind": "moved", "a": a.0, "fixed": fixed, "offset": offset, "a_name": a.1})
        }
        Finding::Wraps { a } => json!({"kind": "wraps", "a": a.0, "a_name": a.1}),
        Finding::Unknown { id, line } => json!({"kind": "unknown", "a": id, "line": line}),
        Finding::Missing { a } => json!({"kind": "missing", "a": a.0, "a_name": a.1}),
        Finding::Capacity { arena, capacity } => {
            json!({"kind": "capacity", "arena_bytes": arena, "capacity": capacity})
        }
    }
}

/// Writes the verdict and what is wrong.
pub fn text(w: &mut dyn Write, out: &Outcome, ok: bool, all: bool) -> io::Result<()> {
    let arena = format!("arena {} B ({})", grouped(out.arena_bytes), human(out.arena_bytes));
    if ok {
        writeln!(w, "ok: {} buffers, no two alive together on the same bytes, {arena}", out.buffers)?;
    } else {
        let more = if out.truncated { "more than " } else { "" };
        let count = out.findings.len();
        let s = if count == 1 { "" } else { "s" };
        writeln!(w, "FAILED: {more}{count} violation{s} in {} buffers, {arena}", out.buffers)?;
    }
    let shown = if all { out.findings.len() } else { SHOWN };
    for finding in out.findings.iter().take(shown) {
        writeln!(w, "  {}", line(finding))?;
    }
    if out.findings.len() > shown {
        writeln!(w, "  and {} more (--all lists every one)", out.findings.len() - shown)?;
    }
    if let Some(base) = out.base {
        writeln!(w, "\nLayout, offsets from the lowest address {base:#x}:")?;
        writeln!(w, "  {:>16} {:>16} {:>16}  id", "offset", "end", "bytes")?;
        let shown = if all { out.layout.len() } else { 2 * SHOWN };
        for (id, offset, size) in out.layout.iter().take(shown) {
            let end = grouped(offset.saturating_add(*size));
            writeln!(w, "  {:>16} {end:>16} {:>16}  {}", grouped(*offset), grouped(*size), visible(id))?;
        }
        if out.layout.len() > shown {
            writeln!(w, "  and {} more (--all lists every one)", out.layout.len() - shown)?;
        }
    }
    Ok(())
}

fn party(p: &Party) -> String {
    if p.1.is_empty() || p.0 == p.1 {
        visible(&p.0).into_owned()
    } else {
        format!("{} {:?}", visible(&p.0), p.1)
    }
}

fn line(finding: &Finding) -> String {
    match finding {
        Finding::Overlap { a, b, steps, bytes } => format!(
            "{} and {}: both alive at steps {}..{}, both hold bytes {}..{} ({} B)",
            party(a),
            party(b),
            steps.0,
            steps.1,
            bytes.0,
            bytes.1,
            grouped(bytes.1.saturating_sub(bytes.0))
        ),
        Finding::Misaligned { a, offset, alignment } => format!(
            "{}: {offset} is not a multiple of its alignment {alignment} (remainder {})",
            party(a),
            offset % (*alignment).max(1)
        ),
        Finding::Moved { a, fixed, offset } => format!("{}: fixed at {fixed}, placed at {offset}", party(a)),
        Finding::Wraps { a } => format!("{}: offset and size do not fit 64 bits", party(a)),
        Finding::Unknown { id, line } => {
            format!("{id:?}, line {line} of the plan: there is no such buffer in the problem")
        }
        Finding::Missing { a } => format!("{}: the plan has no offset for it", party(a)),
        Finding::Capacity { arena, capacity } => {
            format!("the arena needs {arena} bytes, {capacity} are available, {} are missing", arena - capacity)
        }
    }
}
