//! The report as one JSON object, as `docs/REPORT.md` describes it: figures first, then entries, operators and rows,
//! written as they come, always in the same order, so that two reports can be compared line by line.

use std::io::{self, Write};

use super::cost::cost;
use super::json_text::{list, number, string};
use super::report::{Report, Row};
use super::text::{group, Overview};
use crate::units::Bytes;

/// The version of the schema. It grows when a key changes its meaning or goes away, not when one is added.
pub const REPORT_VERSION: u32 = 1;
/// Tensors listed at the peak of each entry.
const AT_PEAK: usize = 32;

/// Writes one object; rows one a line. `plan_ns` is the time spent placing, where somebody took it; `more` are further
/// keys, their values as JSON text.
pub fn json(w: &mut dyn Write, all: &Overview<'_>, plan_ns: Option<u64>, more: &[(&str, String)]) -> io::Result<()> {
    head(w, all, plan_ns)?;
    for (key, value) in more {
        writeln!(w, ",{}: {value}", string(key))?;
    }
    lines(w, "entries", all.entries.iter().map(entry))?;
    lines(w, "operators", all.entries.iter().flat_map(operators))?;
    let rows = all.entries.iter().flat_map(|r| r.rows.iter().map(move |row| offsets_row(r, row)));
    lines(w, "offsets", rows)?;
    writeln!(w, "}}")
}

fn lines(w: &mut dyn Write, key: &str, rows: impl Iterator<Item = String>) -> io::Result<()> {
    write!(w, ",{}: [", string(key))?;
    let mut lead = "\n";
    for row in rows {
        write!(w, "{lead}{row}")?;
        lead = ",\n";
    }
    writeln!(w, "\n]")
}

fn head(w: &mut dyn Write, all: &Overview<'_>, plan_ns: Option<u64>) -> io::Result<()> {
    let (arena, bound) = (all.arena_bytes(), all.lower_bound());
    let won = all.entries.get(all.largest()).map(|r| string(r.facts.strategy));
    let ratio = if bound == 0 { 1.0 } else { arena as f64 / bound as f64 };
    let pairs = [
        ("arena_bytes", arena.to_string()),
        ("persistent_bytes", all.persistent_bytes.to_string()),
        ("lower_bound", bound.to_string()),
        ("optimal", all.optimal().to_string()),
        ("strategy", number(won)),
        ("buffers", all.sum(|r| r.facts.buffers as u64).to_string()),
        ("total_bytes", all.sum(|r| r.facts.total_bytes).to_string()),
        ("constant_bytes", all.constant_bytes.to_string()),
        ("scratch_bytes", number(all.scratch_bytes)),
        ("alignment", all.alignment.to_string()),
        ("in_place", all.in_place.to_string()),
        ("plan_ns", number(plan_ns)),
        ("resource_bytes", all.resource_bytes.to_string()),
        ("input", string(all.title)),
        ("strategy_asked", string(all.strategy)),
        ("ratio", ratio.to_string()),
        ("compared", all.entries.iter().all(|r| r.facts.compared).to_string()),
        ("nodes", all.sum(|r| r.facts.nodes).to_string()),
        ("warnings", list(all.warnings.iter().map(|w| string(w)))),
        ("report_version", REPORT_VERSION.to_string()),
    ];
    let mut lead = '{';
    for (key, value) in pairs {
        writeln!(w, "{lead}{}: {value}", string(key))?;
        lead = ',';
    }
    Ok(())
}

fn entry(report: &Report) -> String {
    let (f, c) = (&report.facts, cost(report));
    let peak = report.peak_rows.iter().take(AT_PEAK).map(|&i| {
        let r = &report.rows[i];
        format!(
            r#"{{"subgraph":{},"id":{},"name":{},"size":{},"kind":{},"in_place":{}}}"#,
            number(r.subgraph),
            id(r),
            string(&r.name),
            number(r.size),
            string(r.kind.name()),
            r.root.is_some()
        )
    });
    let without = elsewhere(report).into_iter().map(|e| {
        let Elsewhere { kind, count, bytes, unknown, why } = e;
        let (kind, why) = (string(kind), string(why));
        format!(r#"{{"kind":{kind},"count":{count},"bytes":{bytes},"unknown_sizes":{unknown},"why":{why}}}"#)
    });
    format!(
        r#"{{"subgraph":{},"title":{},"arena_bytes":{},"lower_bound":{},"optimal":{},"strategy":{},"buffers":{},"total_bytes":{},"peak_step":{},"peak_op":{},"peak_bytes":{},"peak_tensors":{},"cost":{{"tensors":{},"alignment":{},"holes":{},"above":{}}},"without_arena_bytes":{}}}"#,
        number(report.entry),
        string(&report.title),
        f.arena_bytes,
        f.lower_bound,
        f.optimal,
        string(f.strategy),
        f.buffers,
        f.total_bytes,
        report.peak.0,
        number(report.op(report.peak.0).map(string)),
        report.peak.1,
        list(peak),
        c.tensors,
        c.alignment,
        c.holes,
        c.above,
        list(without)
    )
}

/// Bytes alive per step of a graph; in a bare problem, at every time at which they change.
fn operators(report: &Report) -> Vec<String> {
    let arena = report.facts.arena_bytes.max(1) as f64;
    let used = |bytes: Bytes| format!(r#""live_bytes":{bytes},"utilisation":{:.4}"#, bytes as f64 / arena);
    let (names, steps) = report.operators();
    if names.is_empty() {
        return report.live.iter().map(|&(t, b)| format!(r#"{{"step":{t},"op":null,{}}}"#, used(b))).collect();
    }
    let names: Vec<String> = names.iter().map(|n| string(n)).collect();
    let entry = number(report.entry);
    steps
        .enumerate()
        .map(|(t, (at, op))| {
            let (sub, node, op) = (at.subgraph, at.node, &names[op as usize]);
            let used = used(report.live_at(t as u64));
            format!(r#"{{"entry":{entry},"step":{t},"subgraph":{sub},"node":{node},"op":{op},{used}}}"#)
        })
        .collect()
}

/// What gets no arena bytes, by kind.
pub struct Elsewhere {
    /// The kind.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
    /// Their known bytes.
    pub bytes: Bytes,
    /// How many of them have no known size.
    pub unknown: u64,
    /// Why they are not in the arena.
    pub why: &'static str,
}

/// Rows without arena bytes, grouped, in order of first appearance.
pub fn elsewhere(report: &Report) -> Vec<Elsewhere> {
    let mut groups: Vec<Elsewhere> = Vec::new();
    for r in report.rows.iter().filter(|r| r.offset.is_none()) {
        let kind = group(r);
        let at = groups.iter().position(|g| g.kind == kind).unwrap_or_else(|| {
            groups.push(Elsewhere { kind, count: 0, bytes: 0, unknown: 0, why: why(kind) });
            groups.len() - 1
        });
        groups[at].count += 1;
        groups[at].bytes = groups[at].bytes.saturating_add(r.size.unwrap_or(0));
        groups[at].unknown += u64::from(r.size.is_none());
    }
    groups
}

fn why(kind: &str) -> &'static str {
    match kind {
        "constant" => "read from the model file",
        "persistent" | "variable" => "in the persistent arena, never reused",
        "dynamic" => "allocated by the runtime when its size is known",
        "custom" => "memory the caller bound",
        "variant" => "an object of the runtime",
        "non-cpu" => "memory the CPU does not address",
        "empty" => "no bytes",
        "unused" => "no node writes it",
        _ => "its size is unknown, or nothing keeps it alive",
    }
}

fn offsets_row(report: &Report, row: &Row) -> String {
    let hull = row.hull();
    let mut out = format!(
        r#"{{"subgraph":{},"id":{},"name":{},"offset":{},"size":{},"first":{},"last":{},"kind":{}"#,
        number(row.subgraph),
        id(row),
        string(&row.name),
        number(row.offset),
        number(row.size),
        number(hull.map(|h| h.0)),
        number(hull.map(|h| h.1)),
        string(row.kind.name())
    );
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!(",\"{key}\":{value}");
        }
    };
    add("entry", report.entry.map(|e| e.to_string()));
    add("shape", (!row.dtype.is_empty()).then(|| string(&row.shape)));
    add("type", (!row.dtype.is_empty()).then(|| string(row.dtype)));
    add("kept", row.kept.then(|| "true".into()));
    add("spans", (row.spans.len() > 1).then(|| list(row.spans.iter().map(|(a, b)| format!("[{a},{b}]")))));
    add("persistent_offset", row.persistent_offset.map(|o| o.to_string()));
    add("root", row.root.map(|r| id(&report.rows[r])));
    let uses = row.uses.iter().map(|u| {
        let with = id(&report.rows[u.with]);
        format!(
            r#"{{"with":{with},"ended":{},"begins":{},"bytes":[{},{}]}}"#,
            number(u.ended),
            u.begins,
            u.bytes.0,
            u.bytes.1
        )
    });
    add("shares", (!row.uses.is_empty()).then(|| list(uses)));
    out + "}"
}

/// A tensor's index is a number; the ids of a CSV are whatever text it holds.
fn id(row: &Row) -> String {
    match row.subgraph {
        Some(_) if row.id.parse::<u64>().is_ok() => row.id.clone(),
        _ => string(&row.id),
    }
}
