//! The JSON object of `plan`: figures first, then the rows, written as they come.

use std::io::{self, Write};

use arenite::view::{Report, Row};
use serde_json::{json, Map, Value};

use super::planned::Planned;

/// Writes one object; rows one a line.
pub fn write(w: &mut dyn Write, planned: &Planned) -> io::Result<()> {
    let head = head(planned);
    let mut lead = "{";
    for (key, value) in &head {
        writeln!(w, "{lead}{}: {value}", json!(key))?;
        lead = ",";
    }
    write!(w, ",\"offsets\": [")?;
    let mut lead = "\n";
    for (entry, report) in planned.reports.iter().enumerate() {
        let entry = planned.entries.get(entry).copied();
        for row in &report.rows {
            write!(w, "{lead}{}", Value::Object(offsets_row(report, row, entry)))?;
            lead = ",\n";
        }
    }
    writeln!(w, "\n]}}")
}

fn head(planned: &Planned) -> Map<String, Value> {
    let all = planned.overview();
    let sum = |f: &dyn Fn(&Report) -> u64| planned.reports.iter().map(f).fold(0, u64::saturating_add);
    let largest = planned.reports.get(all.largest());
    let bound = all.lower_bound();
    let entries: Vec<Value> = planned
        .reports
        .iter()
        .enumerate()
        .map(|(i, r)| {
            json!({
                "subgraph": planned.entries.get(i),
                "title": r.title,
                "arena_bytes": r.facts.arena_bytes,
                "lower_bound": r.facts.lower_bound,
                "optimal": r.facts.optimal,
                "strategy": r.facts.strategy,
                "buffers": r.facts.buffers,
                "total_bytes": r.facts.total_bytes,
                "peak_step": r.peak.0,
                "peak_bytes": r.peak.1,
            })
        })
        .collect();
    let value = json!({
        "arena_bytes": all.arena_bytes(),
        "persistent_bytes": all.persistent_bytes,
        "lower_bound": bound,
        "optimal": all.optimal(),
        "strategy": largest.map(|r| r.facts.strategy),
        "buffers": sum(&|r| r.facts.buffers as u64),
        "total_bytes": sum(&|r| r.facts.total_bytes),
        "constant_bytes": all.constant_bytes,
        "scratch_bytes": all.scratch_bytes,
        "alignment": all.alignment,
        "in_place": all.in_place,
        "plan_ns": planned.plan_ns,
        "resource_bytes": all.resource_bytes,
        "input": all.title,
        "strategy_asked": all.strategy,
        "ratio": if bound == 0 { 1.0 } else { all.arena_bytes() as f64 / bound as f64 },
        "compared": planned.reports.iter().all(|r| r.facts.compared),
        "nodes": sum(&|r| r.facts.nodes),
        "warnings": all.warnings,
        "entries": entries,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn offsets_row(report: &Report, row: &Row, entry: Option<u32>) -> Map<String, Value> {
    let mut out = Map::new();
    let hull = row.hull();
    out.insert("subgraph".into(), json!(row.subgraph));
    out.insert("id".into(), id(row));
    out.insert("name".into(), json!(row.name));
    out.insert("offset".into(), json!(row.offset));
    out.insert("size".into(), json!(row.size));
    out.insert("first".into(), json!(hull.map(|h| h.0)));
    out.insert("last".into(), json!(hull.map(|h| h.1)));
    out.insert("kind".into(), json!(row.kind.name()));
    if let Some(entry) = entry {
        out.insert("entry".into(), json!(entry));
    }
    if row.kept {
        out.insert("kept".into(), json!(true));
    }
    if row.spans.len() > 1 {
        out.insert("spans".into(), json!(row.spans));
    }
    if let Some(at) = row.persistent_offset {
        out.insert("persistent_offset".into(), json!(at));
    }
    if let Some(root) = row.root {
        out.insert("root".into(), id(&report.rows[root]));
    }
    out
}

/// A tensor's index is a number; the ids of a CSV are whatever text it holds.
fn id(row: &Row) -> Value {
    match row.subgraph {
        Some(_) => row.id.parse::<u64>().map_or_else(|_| json!(row.id), |n| json!(n)),
        None => json!(row.id),
    }
}
