//! A memory map as SVG: time across, bytes up, a block per tensor with its facts as a tooltip.

use std::io::{self, Write};

use super::format::{cut, grouped, human, xml};
use super::report::{Kind, Report, Row};
use crate::graph::liveness::Role;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 56.0;

/// Writes the map of one plan.
pub fn svg(w: &mut dyn Write, report: &Report) -> io::Result<()> {
    let (first, last) = report.time_range();
    let steps = (last - first) as f64 + 1.0;
    let top = report.facts.arena_bytes.max(1) as f64;
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |t: f64| LEFT + (t - first as f64) / steps * wide;
    let y = |bytes: f64| HEIGHT - BOTTOM - bytes / top * high;
    let f = &report.facts;
    writeln!(
        w,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">
<title>{title}: arena map</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="22" font-size="15" fill="#222222">{title}</text>
<text x="{LEFT}" y="42" fill="#444444">arena {} B ({}), lower bound {} B, sum of tensors {} B, {} blocks, {}</text>"##,
        grouped(f.arena_bytes),
        human(f.arena_bytes),
        grouped(f.lower_bound),
        grouped(f.total_bytes),
        f.buffers,
        xml(f.strategy),
        title = xml(&cut(&report.title, 100)),
    )?;
    axes(w, report, (first, last), &x, &y)?;
    // Longest first, so that a short block of a shared place is drawn over the long one and can be pointed at.
    let mut order: Vec<usize> = (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).collect();
    let length = |r: &Row| r.hull().map_or(0, |h| h.1 - h.0);
    order.sort_by_key(|&i| (std::cmp::Reverse(length(&report.rows[i])), i));
    for i in order {
        block(w, report, i, &x, &y)?;
    }
    peak(w, report, &x)?;
    writeln!(
        w,
        r##"<polyline points="{}" fill="none" stroke="#222222" stroke-width="1.2" pointer-events="none">"##,
        curve(report, last, &x, &y)
    )?;
    writeln!(w, "</polyline>")?;
    let bound = y(f.lower_bound as f64);
    writeln!(
        w,
        r##"<line x1="{LEFT}" x2="{}" y1="{bound:.2}" y2="{bound:.2}" stroke="#b00020" stroke-dasharray="6 3"><title>lower bound {} B</title></line>"##,
        WIDTH - RIGHT,
        grouped(f.lower_bound)
    )?;
    legend(w)?;
    writeln!(w, "</svg>")
}

type Scale<'a> = &'a dyn Fn(f64) -> f64;

fn block(w: &mut dyn Write, report: &Report, i: usize, x: Scale<'_>, y: Scale<'_>) -> io::Result<()> {
    let r = &report.rows[i];
    let (Some(offset), Some(end), Some((from, to))) = (r.offset, r.end(), r.hull()) else { return Ok(()) };
    let colour = colour(r.kind);
    writeln!(w, r##"<g fill="{colour}" fill-opacity="0.85" stroke="#ffffff" stroke-width="0.5">"##)?;
    write!(w, "<title>{}&#10;{}", xml(&r.title()), r.kind.name())?;
    write!(w, "&#10;{} B at offset {}", grouped(end - offset), grouped(offset))?;
    write!(w, "&#10;alive {} to {}", xml(&report.moment(from)), xml(&report.moment(to)))?;
    if r.kept {
        write!(w, " and beyond")?;
    }
    for u in r.uses.iter().take(4) {
        let other = xml(&report.rows[u.with].title());
        match u.ended {
            Some(end) => write!(w, "&#10;shares with {other}, which ends at {end}")?,
            None => write!(w, "&#10;in place: the same bytes as {other}")?,
        }
    }
    writeln!(w, "</title>")?;
    let (high, low) = (y(end as f64), y(offset as f64));
    for &(a, b) in &r.spans {
        let (left, right) = (x(a as f64), x(b as f64 + 1.0));
        writeln!(
            w,
            r##"<rect x="{left:.2}" y="{high:.2}" width="{:.2}" height="{:.2}"/>"##,
            (right - left).max(0.5),
            (low - high).max(0.5)
        )?;
        let fits = ((right - left - 6.0) / 6.2).max(0.0) as usize;
        // A name cut to a few letters says less than the id.
        let label = if r.name.is_empty() || fits < r.name.len().min(8) { &r.id } else { &r.name };
        if low - high >= 13.0 && fits >= label.len().min(8) {
            writeln!(
                w,
                r##"<text x="{:.2}" y="{:.2}" fill="#000000" stroke="none">{}</text>"##,
                left + 3.0,
                (low + high) / 2.0 + 4.0,
                xml(&cut(label, fits))
            )?;
        }
    }
    writeln!(w, "</g>")
}

fn axes(w: &mut dyn Write, report: &Report, (first, last): (u64, u64), x: Scale<'_>, y: Scale<'_>) -> io::Result<()> {
    let base = HEIGHT - BOTTOM;
    for i in 0..=8u64 {
        let bytes = (u128::from(report.facts.arena_bytes) * u128::from(i) / 8) as u64;
        let at = y(bytes as f64);
        writeln!(
            w,
            r##"<line x1="{LEFT}" x2="{}" y1="{at:.2}" y2="{at:.2}" stroke="#dddddd"/><text x="{}" y="{:.2}" text-anchor="end" fill="#444444">{}</text>"##,
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            human(bytes)
        )?;
    }
    let ticks = (last - first).min(12);
    for i in 0..=ticks {
        let time = first + (u128::from(last - first) * u128::from(i) / u128::from(ticks.max(1))) as u64;
        writeln!(
            w,
            r##"<text x="{:.2}" y="{:.2}" text-anchor="middle" fill="#444444">{time}</text>"##,
            x(time as f64 + 0.5),
            base + 16.0
        )?;
    }
    writeln!(w, r##"<text x="{:.2}" y="{:.2}" fill="#444444">step</text>"##, LEFT, base + 34.0)
}

/// A band over the peak step that lets the pointer through, and a mark above it that tells what it is.
fn peak(w: &mut dyn Write, report: &Report, x: Scale<'_>) -> io::Result<()> {
    let (time, bytes) = report.peak;
    let (left, right) = (x(time as f64), x(time as f64 + 1.0).max(x(time as f64) + 1.0));
    let (middle, high) = ((left + right) / 2.0, HEIGHT - BOTTOM - TOP);
    writeln!(
        w,
        r##"<rect x="{left:.2}" y="{TOP}" width="{0:.2}" height="{high}" fill="#ffd54a" fill-opacity="0.25" pointer-events="none"/>
<path d="M{4:.2} {1} h12 l-6 8 z" fill="#b8860b"><title>peak: {2} B alive at step {3}</title></path>"##,
        right - left,
        TOP - 9.0,
        grouped(bytes),
        xml(&report.moment(time)),
        middle - 6.0
    )
}

/// Bytes alive as a staircase.
fn curve(report: &Report, last: u64, x: Scale<'_>, y: Scale<'_>) -> String {
    let mut points = String::new();
    let mut level = 0.0;
    for &(time, bytes) in &report.live {
        let at = x(time as f64);
        points += &format!("{at:.2},{:.2} {at:.2},{:.2} ", y(level), y(bytes as f64));
        level = bytes as f64;
    }
    points + &format!("{:.2},{:.2}", x(last as f64 + 1.0), y(level))
}

/// Hues that stay apart for colour-blind readers.
const COLOURS: [(&str, &str); 4] =
    [("intermediate", "#8fb8de"), ("input", "#e69f00"), ("output", "#4fb286"), ("scratch", "#c79ac0")];

fn colour(kind: Kind) -> &'static str {
    let at = match kind {
        Kind::Tensor(Role::Input | Role::InputOutput, _) => 1,
        Kind::Tensor(Role::Output, _) => 2,
        Kind::Tensor(Role::Temporary, _) => 3,
        _ => 0,
    };
    COLOURS[at].1
}

fn legend(w: &mut dyn Write) -> io::Result<()> {
    let mut at = LEFT + 60.0;
    let base = HEIGHT - 22.0;
    for (name, colour) in COLOURS {
        writeln!(
            w,
            r##"<rect x="{at}" y="{}" width="12" height="12" fill="{colour}"/><text x="{}" y="{base}" fill="#444444">{name}</text>"##,
            base - 10.0,
            at + 17.0
        )?;
        at += 110.0;
    }
    writeln!(
        w,
        r##"<text x="{at}" y="{base}" fill="#444444">black line: bytes alive; red dashes: lower bound; yellow: peak step</text>"##
    )
}
