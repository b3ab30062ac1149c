//! What two plans differ in.

use std::collections::HashMap;
use std::io::{self, Write};

use super::format::{cut, grouped};
use super::json_text::{list, number, string};
use super::report::{Report, Row};
use super::text::Overview;
use crate::units::Bytes;

/// How a tensor of the arena changed. Of several the first of this list is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the second plan has it.
    Added,
    /// Only the first plan has it.
    Removed,
    /// Another size.
    Resized,
    /// Alive at other steps.
    Lives,
    /// Another offset.
    Moved,
}

impl Change {
    /// One word for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Resized => "resized",
            Change::Lives => "lives",
            Change::Moved => "moved",
        }
    }
}

/// A tensor that differs.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// How.
    pub change: Change,
    /// Its row in the first plan.
    pub a: Option<&'a Row>,
    /// Its row in the second.
    pub b: Option<&'a Row>,
}

impl Difference<'_> {
    /// The change in size, in favour of the second plan where negative.
    fn bytes(&self) -> i128 {
        let size = |r: Option<&Row>| r.and_then(|r| r.size).map_or(0, i128::from);
        size(self.b) - size(self.a)
    }
}

/// Rows with arena bytes that differ, those of the first plan first. Tensors are the same by subgraph and name, or by id
/// where they have no name or share it.
fn differences<'a>(a: &'a Report, b: &'a Report) -> Vec<Difference<'a>> {
    let placed = |r: &&Row| r.offset.is_some();
    let keys = |report: &'a Report| {
        let mut uses: HashMap<(Option<u32>, &str), usize> = HashMap::new();
        for r in &report.rows {
            *uses.entry((r.subgraph, &r.name)).or_default() += 1;
        }
        move |r: &'a Row| match uses.get(&(r.subgraph, r.name.as_str())) {
            Some(1) if !r.name.is_empty() => (r.subgraph, r.name.as_str()),
            _ => (r.subgraph, r.id.as_str()),
        }
    };
    let (key_a, key_b) = (keys(a), keys(b));
    let mut others: HashMap<_, &Row> = b.rows.iter().filter(placed).map(|r| (key_b(r), r)).collect();
    let mut out = Vec::new();
    for row in a.rows.iter().filter(placed) {
        match others.remove(&key_a(row)) {
            None => out.push(Difference { change: Change::Removed, a: Some(row), b: None }),
            Some(other) => {
                let change = match () {
                    () if row.size != other.size => Change::Resized,
                    () if row.spans != other.spans => Change::Lives,
                    () if row.offset != other.offset => Change::Moved,
                    () => continue,
                };
                out.push(Difference { change, a: Some(row), b: Some(other) });
            }
        }
    }
    for row in b.rows.iter().filter(placed) {
        if others.contains_key(&key_b(row)) {
            out.push(Difference { change: Change::Added, a: None, b: Some(row) });
        }
    }
    out
}

/// Entries that correspond: of one each, those; else by the order they have.
fn pairs<'a>(a: &'a Overview<'_>, b: &'a Overview<'_>) -> impl Iterator<Item = (&'a Report, &'a Report)> {
    a.entries.iter().zip(b.entries)
}

/// The figures compared, with what they are called.
fn figures(a: &Overview<'_>, b: &Overview<'_>) -> [(&'static str, Bytes, Bytes); 5] {
    let total = |o: &Overview<'_>| o.sum(|r| r.facts.total_bytes);
    [
        ("arena_bytes", a.arena_bytes(), b.arena_bytes()),
        ("lower_bound", a.lower_bound(), b.lower_bound()),
        ("total_bytes", total(a), total(b)),
        ("persistent_bytes", a.persistent_bytes, b.persistent_bytes),
        ("constant_bytes", a.constant_bytes, b.constant_bytes),
    ]
}

fn signed(by: i128) -> String {
    let sign = if by > 0 { '+' } else { '-' };
    if by == 0 {
        "0".into()
    } else {
        format!("{sign}{}", grouped(by.unsigned_abs().try_into().unwrap_or(u64::MAX)))
    }
}

/// Writes what differs for people. `all` lists every tensor that only moved, too.
pub fn diff_text(w: &mut dyn Write, a: &Overview<'_>, b: &Overview<'_>, all: bool) -> io::Result<()> {
    writeln!(w, "A: {}\nB: {}\n", cut(a.title, 90), cut(b.title, 90))?;
    for (what, x, y) in figures(a, b) {
        let by = signed(i128::from(y) - i128::from(x));
        writeln!(w, "  {what:<17} {:>16} {:>16}  {by:>16} B", grouped(x), grouped(y))?;
    }
    if a.entries.len() != b.entries.len() {
        writeln!(w, "  entries           {:>16} {:>16}", a.entries.len(), b.entries.len())?;
    }
    for (x, y) in pairs(a, b) {
        writeln!(w, "\n{}:", cut(&y.title, 90))?;
        let (from, to) = (x.moment(x.peak.0), y.moment(y.peak.0));
        if (x.peak.1, &from) == (y.peak.1, &to) {
            writeln!(w, "  peak as before: {} B at step {to}", grouped(y.peak.1))?;
        } else {
            writeln!(w, "  peak: {} B at step {from} -> {} B at step {to}", grouped(x.peak.1), grouped(y.peak.1))?;
        }
        let list = differences(x, y);
        let moved = list.iter().filter(|d| d.change == Change::Moved).count();
        for d in list.iter().filter(|d| all || d.change != Change::Moved) {
            tensor(w, d)?;
        }
        if moved > 0 && !all {
            writeln!(w, "  {moved} tensors only moved (--all lists them)")?;
        }
        if list.is_empty() {
            writeln!(w, "  no tensor of the arena differs")?;
        }
    }
    Ok(())
}

fn tensor(w: &mut dyn Write, d: &Difference<'_>) -> io::Result<()> {
    let show = |r: Option<&Row>, what: &dyn Fn(&Row) -> String| r.map_or("-".into(), what);
    let both = |what: &dyn Fn(&Row) -> String| match (show(d.a, what), show(d.b, what)) {
        (x, y) if x == y => x,
        (x, y) => format!("{x} -> {y}"),
    };
    let size = both(&|r| grouped(r.size.unwrap_or(0)));
    let lives = both(&|r| r.hull().map_or("-".into(), |h| format!("{}..{}", h.0, h.1)));
    let offset = both(&|r| grouped(r.offset.unwrap_or(0)));
    let title = d.b.or(d.a).map_or(String::new(), Row::title);
    let by = signed(d.bytes());
    writeln!(w, "  {:<8} {by:>12} B  {title}: bytes {size}, steps {lives}, offset {offset}", d.change.name())
}

/// Writes what differs as one JSON object.
pub fn diff_json(w: &mut dyn Write, a: &Overview<'_>, b: &Overview<'_>) -> io::Result<()> {
    writeln!(w, "{{\"a\": {}\n,\"b\": {}", string(a.title), string(b.title))?;
    for (what, x, y) in figures(a, b) {
        let by = i128::from(y) - i128::from(x);
        writeln!(w, ",\"{what}\": {{\"a\": {x}, \"b\": {y}, \"change\": {by}}}")?;
    }
    let peak = |r: &Report| {
        let op = number(r.op(r.peak.0).map(string));
        format!("{{\"step\":{},\"op\":{op},\"bytes\":{}}}", r.peak.0, r.peak.1)
    };
    let peaks = pairs(a, b).map(|(x, y)| format!("{{\"a\":{},\"b\":{}}}", peak(x), peak(y)));
    writeln!(w, ",\"peaks\": {}", list(peaks))?;
    let rows = pairs(a, b).flat_map(|(x, y)| differences(x, y)).map(|d| {
        let side = |r: Option<&Row>| {
            let r = r?;
            let (first, last) = r.hull()?;
            let (size, offset) = (number(r.size), number(r.offset));
            Some(format!("{{\"size\":{size},\"offset\":{offset},\"first\":{first},\"last\":{last}}}"))
        };
        let row = d.b.or(d.a);
        format!(
            "\n{{\"change\":{},\"subgraph\":{},\"id\":{},\"name\":{},\"a\":{},\"b\":{}}}",
            string(d.change.name()),
            number(row.and_then(|r| r.subgraph)),
            string(row.map_or("", |r| &r.id)),
            string(row.map_or("", |r| &r.name)),
            number(side(d.a)),
            number(side(d.b))
        )
    });
    writeln!(w, ",\"changes\": {}\n}}", list(rows))
}
