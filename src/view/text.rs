//! A plan as text for a terminal: the numbers that matter first, then the peak, the tensors, and a map.

use std::io::{self, Write};

use super::cost::cost;
use super::format::{cut, grouped, human, visible};
use super::map::{letters, map};
use super::report::{Kind, Report, Row};
use crate::units::Bytes;

/// What there is to say about all entries of an input together.
#[derive(Clone, Copy, Debug)]
pub struct Overview<'a> {
    /// What was planned.
    pub title: &'a str,
    /// One report per entry. They run one at a time, so the arena is that of the largest.
    pub entries: &'a [Report],
    /// The persistent arena.
    pub persistent_bytes: Bytes,
    /// The part of it that resource variables take.
    pub resource_bytes: Bytes,
    /// Constant data.
    pub constant_bytes: Bytes,
    /// Kernel scratch that was asked for, a part of the plan.
    pub scratch_bytes: Option<Bytes>,
    /// The alignment asked for.
    pub alignment: Bytes,
    /// Whether operators were let work in place.
    pub in_place: bool,
    /// The strategy asked for.
    pub strategy: &'a str,
    /// What the reader should know.
    pub warnings: &'a [String],
    /// What the arena may have, where a limit was given.
    pub capacity: Option<Bytes>,
}

/// How much to say.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Every row instead of the largest.
    pub all: bool,
    /// Columns of the map.
    pub width: usize,
}

/// Rows of a table without `all`.
const SHOWN: usize = 20;
/// Tensors listed at the peak.
const AT_PEAK: usize = 12;
/// Predecessors named per row.
const SHARERS: usize = 3;

impl Overview<'_> {
    /// The arena that serves every entry.
    pub fn arena_bytes(&self) -> Bytes {
        self.entries.iter().map(|r| r.facts.arena_bytes).max().unwrap_or(0)
    }

    /// The bound on that.
    pub fn lower_bound(&self) -> Bytes {
        self.entries.iter().map(|r| r.facts.lower_bound).max().unwrap_or(0)
    }

    /// The entry whose arena is the largest.
    pub fn largest(&self) -> usize {
        (0..self.entries.len()).rev().max_by_key(|&i| self.entries[i].facts.arena_bytes).unwrap_or(0)
    }

    /// Whether no smaller arena serves every entry.
    pub fn optimal(&self) -> bool {
        let arena = self.arena_bytes();
        let largest = |r: &&Report| r.facts.arena_bytes == arena;
        self.entries.iter().filter(largest).any(|r| r.facts.optimal) || arena <= self.lower_bound()
    }

    /// The alignment up to which [`Overview::optimal`] is proven: that of the entry whose proof it is.
    pub fn proof_align(&self) -> Bytes {
        let proven = self.entries.iter().filter(|r| r.facts.arena_bytes == self.arena_bytes() && r.facts.optimal);
        proven.map(|r| r.facts.align.bytes()).min().unwrap_or(1)
    }

    /// Whether a graph was planned, not a bare problem.
    pub fn is_model(&self) -> bool {
        self.entries.iter().flat_map(|r| r.rows.first()).any(|r| r.subgraph.is_some())
    }

    /// A figure summed over all entries.
    pub fn sum(&self, figure: impl Fn(&Report) -> u64) -> u64 {
        self.entries.iter().map(figure).fold(0, u64::saturating_add)
    }
}

/// Writes the whole report.
pub fn text(w: &mut dyn Write, all: &Overview<'_>, options: TextOptions) -> io::Result<()> {
    head(w, all)?;
    for warning in all.warnings {
        writeln!(w, "warning: {}", visible(warning))?;
    }
    if !all.warnings.is_empty() {
        writeln!(w)?;
    }
    if all.entries.len() > 1 {
        writeln!(w, "Entries, run one at a time:")?;
        for r in all.entries {
            let (arena, bound) = (r.facts.arena_bytes, grouped(r.facts.lower_bound));
            writeln!(w, "  {:>16} B  bound {bound:>15} B  {}", grouped(arena), cut(&r.title, 60))?;
        }
        writeln!(w)?;
    }
    for (i, report) in all.entries.iter().enumerate() {
        if options.all || i == all.largest() {
            entry(w, report, all.entries.len() > 1, options)?;
        }
    }
    Ok(())
}

fn head(w: &mut dyn Write, all: &Overview<'_>) -> io::Result<()> {
    let (arena, bound) = (all.arena_bytes(), all.lower_bound());
    let buffers = all.sum(|r| r.facts.buffers as u64);
    let total = all.sum(|r| r.facts.total_bytes);
    let in_place = if all.in_place { "on" } else { "off" };
    writeln!(w, "{}: {buffers} planned, alignment {}, in place {in_place}\n", cut(all.title, 70), all.alignment)?;
    let line = |w: &mut dyn Write, what: &str, bytes: Bytes, note: String| {
        let text = format!("  {what:<14} {:>16} B  {:>9}  {note}", grouped(bytes), human(bytes));
        writeln!(w, "{}", text.trim_end())
    };
    let (sum, size) = match all.entries.len() {
        0 | 1 => {
            let share = if total == 0 { 100.0 } else { 100.0 * arena as f64 / total as f64 };
            ("what one block per tensor would take".into(), format!("{share:.1} % of the sum"))
        }
        n => (format!("over all {n} entries"), "that of the largest entry: they run one at a time".into()),
    };
    line(w, "sum of tensors", total, sum)?;
    line(w, "arena", arena, size)?;
    let ratio = if bound == 0 { 1.0 } else { arena as f64 / bound as f64 };
    let proof = match all.optimal() {
        true if arena <= bound => "proven: no smaller arena exists".into(),
        // What is proven is that no plan is smaller by a whole step of the alignment.
        true => format!("proven: none smaller once rounded to {}", all.proof_align()),
        false => "a smaller arena is not ruled out".to_string(),
    };
    line(w, "lower bound", bound, format!("arena / bound {ratio:.4}; {proof}"))?;
    if all.is_model() {
        let resources = match all.resource_bytes {
            0 => String::new(),
            bytes => format!("; {} B of resource variables", grouped(bytes)),
        };
        line(w, "persistent", all.persistent_bytes, format!("variables, unpacked weights: never reused{resources}"))?;
        line(w, "constants", all.constant_bytes, "weights, read from the file".into())?;
    }
    if let Some(scratch) = all.scratch_bytes {
        line(w, "scratch", scratch, "kernel scratch as given, part of the plan".into())?;
    }
    if let Some(r) = all.entries.get(all.largest()) {
        let mut how = match r.facts.strategy {
            won if won == all.strategy => won.to_string(),
            won => format!("{}: {won} won", all.strategy),
        };
        if r.facts.nodes > 0 {
            how += &format!(", {} search nodes", grouped(r.facts.nodes));
        }
        if matches!(all.strategy, "auto" | "exact") && !r.facts.compared && !r.facts.optimal {
            how += ", not compared with every greedy rule (too many conflicts)";
        }
        writeln!(w, "  {:<14} {how}", "strategy")?;
    }
    if !all.is_model() {
        return writeln!(w);
    }
    let instance = arena.saturating_add(all.persistent_bytes);
    let process = instance.saturating_add(all.constant_bytes);
    writeln!(
        w,
        "\nOne process needs {} B ({}): arena + persistent + constants;\neach further instance {} B ({}): arena + persistent.\n",
        grouped(process),
        human(process),
        grouped(instance),
        human(instance)
    )
}

fn entry(w: &mut dyn Write, report: &Report, named: bool, options: TextOptions) -> io::Result<()> {
    if named {
        writeln!(w, "== {} ==\n", visible(&report.title))?;
    }
    let letters = letters(report);
    peak(w, report, &letters, options)?;
    let mut placed: Vec<usize> = (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).collect();
    if !options.all {
        placed.sort_by_key(|&i| (std::cmp::Reverse(report.rows[i].size), i));
    }
    let shown = if options.all { placed.len() } else { placed.len().min(SHOWN) };
    if shown < placed.len() {
        writeln!(w, "The {shown} largest of {} in the arena (--all lists every one):", placed.len())?;
    } else {
        writeln!(w, "In the arena:")?;
    }
    writeln!(w, "     {:>15} {:>15}  {:<40} tensor", "offset", "bytes", "lives")?;
    for &i in &placed[..shown] {
        row(w, report, i, letters[i])?;
    }
    writeln!(w)?;
    if options.all {
        operators(w, report)?;
    }
    elsewhere(w, report, options)?;
    if report.facts.arena_bytes > 0 {
        writeln!(w, "Map (a letter per tensor as above, * the small ones):")?;
        map(w, report, &letters, options.width)?;
        writeln!(w)?;
    }
    Ok(())
}

fn peak(w: &mut dyn Write, report: &Report, letters: &[u8], options: TextOptions) -> io::Result<()> {
    let (time, bytes) = report.peak;
    if report.peak_rows.is_empty() {
        return writeln!(w, "Nothing needs arena bytes.\n");
    }
    writeln!(w, "Peak: {} B ({}) alive at step {}:", grouped(bytes), human(bytes), report.moment(time))?;
    let shown = if options.all { report.peak_rows.len() } else { AT_PEAK };
    for &i in report.peak_rows.iter().take(shown) {
        let r = &report.rows[i];
        let (from, to) = r.spans.iter().find(|s| s.0 <= time && time <= s.1).copied().unwrap_or((time, time));
        let inplace = if r.root.is_some() { ", in place" } else { "" };
        let kept = if r.kept { ", kept" } else { "" };
        writeln!(
            w,
            "  {} {:>15} B  {:<13} {}  ({from}..{to}{kept}{inplace})",
            letters[i] as char,
            grouped(r.size.unwrap_or(0)),
            r.kind.name(),
            r.title()
        )?;
    }
    if report.peak_rows.len() > shown {
        writeln!(w, "    and {} more", report.peak_rows.len() - shown)?;
    }
    let c = cost(report);
    if report.facts.arena_bytes > c.tensors {
        writeln!(
            w,
            "  The arena there: {} B of tensors, {} of alignment padding, {} in holes, {} above the highest",
            grouped(c.tensors),
            grouped(c.alignment),
            grouped(c.holes),
            grouped(c.above)
        )?;
    }
    writeln!(w)
}

/// Bytes alive per operator, as a part of the arena.
fn operators(w: &mut dyn Write, report: &Report) -> io::Result<()> {
    let (names, steps) = report.operators();
    if names.is_empty() || report.facts.arena_bytes == 0 {
        return Ok(());
    }
    writeln!(w, "Bytes alive per operator:")?;
    for time in 0..steps.count() as u64 {
        let live = report.live_at(time);
        let share = 100.0 * live as f64 / report.facts.arena_bytes as f64;
        writeln!(w, "  {:>15} B  {share:5.1} %  {}", grouped(live), report.moment(time))?;
    }
    writeln!(w)
}

fn row(w: &mut dyn Write, report: &Report, i: usize, letter: u8) -> io::Result<()> {
    let r = &report.rows[i];
    let (offset, size) = (grouped(r.offset.unwrap_or(0)), grouped(r.size.unwrap_or(0)));
    let kept = if r.kept { " kept" } else { "" };
    writeln!(w, "  {} {offset:>16} {size:>15}  {:<40} {}{kept}", letter as char, lives(report, r), r.title())?;
    for u in r.uses.iter().take(SHARERS) {
        let (other, bytes) = (report.rows[u.with].title(), u.bytes);
        match u.ended {
            Some(end) => writeln!(
                w,
                "{:6}shares with {other} because {} ends at {end}, before {} (bytes {}..{})",
                "",
                visible(&report.rows[u.with].id),
                u.begins,
                bytes.0,
                bytes.1
            )?,
            None => writeln!(w, "{:6}in place: the same bytes as {other}", "")?,
        }
    }
    if r.uses.len() > SHARERS {
        writeln!(w, "{:6}and with {} more", "", r.uses.len() - SHARERS)?;
    }
    Ok(())
}

/// `2..7 CONV_2D..ADD`, with the number of pieces where the lifetime has gaps.
fn lives(report: &Report, row: &Row) -> String {
    let Some((first, last)) = row.hull() else { return "never".into() };
    let ops = match (report.op(first), report.op(last)) {
        (Some(a), Some(b)) if first != last => format!(" {}..{}", cut(a, 15), cut(b, 15)),
        (Some(a), _) => format!(" {}", cut(a, 24)),
        _ => String::new(),
    };
    let pieces = if row.spans.len() > 1 { format!(" in {} pieces", row.spans.len()) } else { String::new() };
    format!("{first}..{last}{ops}{pieces}")
}

/// What gets no arena bytes: by kind in one line each, with every row under `all`.
fn elsewhere(w: &mut dyn Write, report: &Report, options: TextOptions) -> io::Result<()> {
    let groups = super::json::elsewhere(report);
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(w, "Without arena bytes:")?;
    for g in groups {
        let unknown = if g.unknown > 0 { format!(", {} of unknown size", g.unknown) } else { String::new() };
        writeln!(w, "  {:>6} {:<12} {:>16} B{unknown}  {}", g.count, g.kind, grouped(g.bytes), g.why)?;
    }
    if options.all {
        for r in report.rows.iter().filter(|r| r.offset.is_none()) {
            let size = r.size.map_or("?".into(), grouped);
            let at = r.persistent_offset.map_or(String::new(), |o| format!("  persistent offset {}", grouped(o)));
            writeln!(w, "    {:<12} {size:>15} B  {}{at}", group(r), r.title())?;
        }
    }
    writeln!(w)
}

/// The kind of a row without arena bytes.
pub(super) fn group(row: &Row) -> &'static str {
    match row.kind {
        _ if row.persistent_offset.is_some() => row.kind.name(),
        Kind::Tensor(..) | Kind::Buffer if row.size == Some(0) => "empty",
        kind => kind.name(),
    }
}
