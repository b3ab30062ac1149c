//! A plan as a Chrome trace: what Perfetto and `chrome://tracing` open. A step is a microsecond, tensors are slices in
//! lanes by offset, operators a lane of their own, bytes alive a counter.

use std::io::{self, Write};

use super::json_text::{number, string};
use super::report::{Report, Row};

/// Writes one trace of all entries; each is a process.
pub fn trace(w: &mut dyn Write, entries: &[Report]) -> io::Result<()> {
    writeln!(w, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    for (i, report) in entries.iter().enumerate() {
        let lead = if i > 0 { "," } else { "" };
        let pid = i + 1;
        writeln!(
            w,
            r#"{lead}{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{}}}}}"#,
            string(&report.title)
        )?;
        operators(w, report, pid)?;
        for &(time, bytes) in &report.live {
            writeln!(w, r#",{{"ph":"C","pid":{pid},"ts":{time},"name":"bytes alive","args":{{"bytes":{bytes}}}}}"#)?;
        }
        tensors(w, report, pid)?;
    }
    writeln!(w, "]}}")
}

fn operators(w: &mut dyn Write, report: &Report, pid: usize) -> io::Result<()> {
    let (names, steps) = report.operators();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(w, r#",{{"ph":"M","pid":{pid},"tid":0,"name":"thread_name","args":{{"name":"operators"}}}}"#)?;
    for (time, (at, op)) in steps.enumerate() {
        let live = report.live_at(time as u64);
        writeln!(
            w,
            r#",{{"ph":"X","pid":{pid},"tid":0,"ts":{time},"dur":1,"name":{},"args":{{"subgraph":{},"node":{},"bytes_alive":{live}}}}}"#,
            string(&names[op as usize]),
            at.subgraph,
            at.node
        )?;
    }
    Ok(())
}

/// Slices of one lane must not overlap, and those of one offset never do, but for tensors in place: these get lanes of
/// their own above their root's.
fn tensors(w: &mut dyn Write, report: &Report, pid: usize) -> io::Result<()> {
    let mut order: Vec<usize> = (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).collect();
    let first = |r: &Row| r.hull().map_or(0, |h| h.0);
    order.sort_by_key(|&i| (report.rows[i].offset, first(&report.rows[i]), i));
    // Per offset: the end of the last slice in each of its lanes.
    let (mut tid, mut lanes, mut offset): (usize, Vec<u64>, Option<u64>) = (1, Vec::new(), None);
    for i in order {
        let row = &report.rows[i];
        let Some((from, to)) = row.hull() else { continue };
        if offset != row.offset {
            (tid, offset) = (tid + lanes.len(), row.offset);
            lanes.clear();
        }
        let lane = lanes.iter().position(|&end| end <= from).unwrap_or_else(|| {
            lanes.push(0);
            lanes.len() - 1
        });
        if lanes[lane] == 0 {
            let name = format!("offset {}", row.offset.unwrap_or(0));
            let at = tid + lane;
            writeln!(
                w,
                r#",{{"ph":"M","pid":{pid},"tid":{at},"name":"thread_name","args":{{"name":{}}}}},{{"ph":"M","pid":{pid},"tid":{at},"name":"thread_sort_index","args":{{"sort_index":{at}}}}}"#,
                string(&name)
            )?;
        }
        lanes[lane] = to.saturating_add(1);
        for &(a, b) in &row.spans {
            writeln!(
                w,
                r#",{{"ph":"X","pid":{pid},"tid":{},"ts":{a},"dur":{},"name":{},"cat":{},"args":{{"id":{},"bytes":{},"offset":{}}}}}"#,
                tid + lane,
                b.saturating_sub(a).saturating_add(1),
                string(if row.name.is_empty() { &row.id } else { &row.name }),
                string(row.kind.name()),
                string(&row.id),
                number(row.size),
                number(row.offset)
            )?;
        }
    }
    Ok(())
}
