//! A plan as CSV, in the columns a problem CSV is read from.

use std::collections::HashMap;
use std::io::{self, Write};

use arenite::model::{Position, ProblemFile, ReadError};
use arenite::view::Row;

use super::planned::Planned;

/// Writes a model's plan: a problem CSV with offsets, which `arenite check` takes as it is.
///
/// Lifetimes are half-open steps. Several entries run one after the other, so their steps follow each other. Ids are
/// tensor indices; with several subgraphs `K:` goes before them, and with several entries `E/`.
pub fn model(w: &mut dyn Write, planned: &Planned) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(w);
    let header = ["id", "lower", "upper", "size", "alignment", "offset", "gaps", "name", "root"];
    out.write_record(header).map_err(io::Error::other)?;
    let mut shift = 0;
    for (i, report) in planned.reports.iter().enumerate() {
        let several = report.rows.iter().any(|r| r.subgraph != report.rows[0].subgraph);
        let id = |row: &Row| {
            let subgraph = row.subgraph.unwrap_or(0);
            match (planned.reports.len() > 1, several) {
                (true, _) => format!("{}/{subgraph}:{}", planned.entries.get(i).unwrap_or(&0), row.id),
                (_, true) => format!("{subgraph}:{}", row.id),
                _ => row.id.clone(),
            }
        };
        for row in &report.rows {
            let (Some(offset), Some(size), Some((first, last))) = (row.offset, row.size, row.hull()) else { continue };
            let gaps: Vec<String> =
                row.spans.windows(2).map(|s| format!("{}-{}", s[0].1 + 1 + shift, s[1].0 + shift)).collect();
            let root = row.root.filter(|&r| report.rows[r].offset.is_some());
            out.write_record([
                id(row),
                (first + shift).to_string(),
                (last + 1 + shift).to_string(),
                size.to_string(),
                planned.overview().alignment.to_string(),
                offset.to_string(),
                gaps.join(" "),
                row.name.clone(),
                root.map_or(String::new(), |r| id(&report.rows[r])),
            ])
            .map_err(io::Error::other)?;
        }
        shift += report.time_range().1 + 1;
    }
    out.flush()
}

/// Makes rows that name another in a `root` column aliases of that row.
pub fn alias_roots(file: &[u8], problem: &mut ProblemFile) -> Result<(), ReadError> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file);
    let mut records = reader.records().filter_map(Result::ok).filter(|r| r.iter().any(|f| !f.trim().is_empty()));
    let Some(header) = records.next() else { return Ok(()) };
    let column = |name: &str| header.iter().position(|h| h.trim().eq_ignore_ascii_case(name));
    let (Some(id), Some(root)) = (column("id"), column("root")) else { return Ok(()) };
    let index: HashMap<String, usize> = problem.ids.iter().cloned().enumerate().map(|(i, id)| (id, i)).collect();
    for record in records {
        let (own, to) = (record.get(id).unwrap_or("").trim(), record.get(root).unwrap_or("").trim());
        if to.is_empty() || to == own {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let at = Position::Line { line, field: root as u32 + 1 };
        let (Some(&own), Some(&target)) = (index.get(own), index.get(to)) else {
            return Err(ReadError::new(at, format!("expected the id of another row, got {to:?}")));
        };
        let aliased = problem.problem.alias(own as u32, target as u32, 0);
        aliased.map_err(|e| ReadError::new(at, format!("root {to:?}: {e}")))?;
    }
    Ok(())
}
