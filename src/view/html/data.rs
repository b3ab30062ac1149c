//! What the page's script is given: per plan and entry one object, its rows column by column, which is half the size of
//! an object per row.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::view::cost::{cost, idle};
use crate::view::json_text::{list, number, string};
use crate::view::report::{Report, Row};
use crate::view::text::Overview;

/// Writes `[plan, ...]`.
pub fn write(w: &mut dyn Write, plans: &[&Overview<'_>]) -> io::Result<()> {
    write!(w, "[")?;
    for (i, plan) in plans.iter().enumerate() {
        write!(
            w,
            "{}{{\"title\":{},\"arena\":{},\"bound\":{},\"optimal\":{},\"align\":{},\"proofAlign\":{},\"persistent\":{},\"constants\":{},\"model\":{},\"inPlace\":{},\"capacity\":{},\"warnings\":{},\"largest\":{},\"entries\":[",
            if i > 0 { ",\n" } else { "" },
            string(plan.title),
            plan.arena_bytes(),
            plan.lower_bound(),
            plan.optimal(),
            plan.alignment,
            plan.proof_align(),
            plan.persistent_bytes,
            plan.constant_bytes,
            plan.is_model(),
            plan.in_place,
            number(plan.capacity),
            list(plan.warnings.iter().map(|w| string(w))),
            plan.largest(),
        )?;
        for (i, report) in plan.entries.iter().enumerate() {
            if i > 0 {
                writeln!(w, ",")?;
            }
            entry(w, report)?;
        }
        write!(w, "]}}")?;
    }
    write!(w, "]")
}

fn entry(w: &mut dyn Write, report: &Report) -> io::Result<()> {
    let (f, (first, last), c) = (&report.facts, report.time_range(), cost(report));
    writeln!(
        w,
        "{{\"title\":{},\"arena\":{},\"bound\":{},\"optimal\":{},\"strategy\":{},\"buffers\":{},\"total\":{},\"first\":{first},\"last\":{last},\"peak\":[{},{}],",
        string(&report.title),
        f.arena_bytes,
        f.lower_bound,
        f.optimal,
        string(f.strategy),
        f.buffers,
        f.total_bytes,
        report.peak.0,
        report.peak.1
    )?;
    writeln!(w, "\"cost\":[{},{},{},{}],", c.tensors, c.alignment, c.holes, c.above)?;
    writeln!(w, "\"peakRows\":{},", list(&report.peak_rows))?;
    writeln!(w, "\"live\":{},", list(report.live.iter().map(|(t, b)| format!("[{t},{b}]"))))?;
    let (ops, steps) = report.operators();
    let (subgraphs, indices): (Vec<_>, Vec<_>) = steps.map(|(at, op)| (at.subgraph, op)).unzip();
    writeln!(w, "\"ops\":{},\"stepOp\":{},", list(ops.iter().map(|o| string(o))), list(&indices))?;
    if subgraphs.iter().any(|s| Some(s) != subgraphs.first()) {
        writeln!(w, "\"stepSub\":{},", list(&subgraphs))?;
    }
    rows(w, report)?;
    write!(w, "}}")
}

fn rows(w: &mut dyn Write, report: &Report) -> io::Result<()> {
    let each = |what: &dyn Fn(&Row) -> String| list(report.rows.iter().map(what));
    // Few kinds, shapes and types are shared by many rows: each is written once.
    let mut words: Vec<&str> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut word = |text| {
        *known.entry(text).or_insert_with(|| {
            words.push(text);
            words.len() - 1
        })
    };
    let kinds: Vec<_> = report.rows.iter().map(|r| word(r.kind.name())).collect();
    let shapes: Vec<_> = report.rows.iter().map(|r| word(&r.shape)).collect();
    let types: Vec<_> = report.rows.iter().map(|r| word(r.dtype)).collect();
    let uses = |r: &Row| {
        list(r.uses.iter().map(|u| {
            format!("[{},{},{},{},{}]", u.with, u.begins, u.ended.map_or(-1, i128::from), u.bytes.0, u.bytes.1)
        }))
    };
    writeln!(w, "\"words\":{},", list(words.iter().map(|t| string(t))))?;
    writeln!(w, "\"kind\":{},\"shape\":{},\"type\":{},", list(kinds), list(shapes), list(types))?;
    if report.rows.iter().any(|r| r.subgraph.is_some_and(|s| s > 0)) {
        writeln!(w, "\"sub\":{},", each(&|r| number(r.subgraph)))?;
    }
    writeln!(w, "\"id\":{},\"name\":{},", each(&|r| string(&r.id)), each(&|r| string(&r.name)))?;
    writeln!(w, "\"size\":{},\"offset\":{},", each(&|r| number(r.size)), each(&|r| number(r.offset)))?;
    writeln!(w, "\"persist\":{},", each(&|r| number(r.persistent_offset)))?;
    writeln!(w, "\"spans\":{},", each(&|r| list(r.spans.iter().map(|(a, b)| format!("{a},{b}")))))?;
    writeln!(w, "\"kept\":{},", each(&|r| u8::from(r.kept).to_string()))?;
    writeln!(w, "\"root\":{},", each(&|r| number(r.root)))?;
    writeln!(w, "\"idle\":{},", list(idle(report)))?;
    writeln!(w, "\"uses\":{}", each(&uses))
}
