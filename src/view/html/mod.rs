//! The memory map to explore: one HTML file with its data, style and script inside, that loads nothing.

mod data;

use std::io::{self, Write};

use html_escape::encode_text;

use super::format::{grouped, human};
use super::report::Report;
use super::text::Overview;

const STYLE: &str = include_str!("page.css");
const BODY: &str = include_str!("page.html");
/// In the order in which they use each other.
const SCRIPTS: [&str; 5] = [
    include_str!("plan.js"),
    include_str!("colour.js"),
    include_str!("map.js"),
    include_str!("tables.js"),
    include_str!("page.js"),
];

/// What several plans on one page are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// Versions of one thing, to compare side by side.
    Versions,
    /// Memories that are used at the same time.
    Regions,
}

/// Writes the page of one plan or of several.
pub fn html(w: &mut dyn Write, plans: &[&Overview<'_>], several: Several) -> io::Result<()> {
    let titles: Vec<&str> = plans.iter().map(|p| p.title).collect();
    let title = titles.join(" and ");
    writeln!(
        w,
        r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:">
<meta name="generator" content="arenite {}"><title>{} - arenite memory map</title>
<style>
{STYLE}</style></head><body>"#,
        env!("CARGO_PKG_VERSION"),
        encode_text(&title)
    )?;
    let of = if several == Several::Regions { "regions" } else { "versions" };
    write!(w, "{}", BODY.replacen("<main>", &format!("<main data-of=\"{of}\">"), 1))?;
    writeln!(w, "<noscript>")?;
    for plan in plans {
        static_summary(w, plan)?;
    }
    writeln!(w, "</noscript>")?;
    write!(w, r#"<script type="application/json" id="data">"#)?;
    data::write(w, plans)?;
    writeln!(w, "</script>\n<script>\n'use strict';")?;
    for script in SCRIPTS {
        write!(w, "{script}")?;
    }
    writeln!(w, "</script></body></html>")
}

/// What a reader without scripts gets: the numbers and the peak.
fn static_summary(w: &mut dyn Write, plan: &Overview<'_>) -> io::Result<()> {
    writeln!(
        w,
        "<h2>{}</h2><p>Arena {} B ({}), lower bound {} B, alignment {}.</p>",
        encode_text(plan.title),
        grouped(plan.arena_bytes()),
        human(plan.arena_bytes()),
        grouped(plan.lower_bound()),
        plan.alignment
    )?;
    let Some(report) = plan.entries.get(plan.largest()) else { return Ok(()) };
    peak_table(w, report)
}

fn peak_table(w: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(
        w,
        "<table><caption>{} B alive at the peak, step {}</caption><thead><tr><th>tensor</th><th>bytes</th><th>offset</th></tr></thead><tbody>",
        grouped(report.peak.1),
        encode_text(&report.moment(report.peak.0))
    )?;
    for row in report.peak_rows.iter().map(|&i| &report.rows[i]) {
        let (size, offset) = (row.size.unwrap_or(0), row.offset.unwrap_or(0));
        writeln!(w, "<tr><td>{}</td><td>{size}</td><td>{offset}</td></tr>", encode_text(&row.title()))?;
    }
    writeln!(w, "</tbody></table>")
}
