//! The column `root` of a problem CSV: in-place sharing, as `arenite plan --csv` writes it.

use arenite::model::{Position, ProblemFile, ReadError};
use std::collections::HashMap;

/// Makes rows that name another in a `root` column aliases of that row: at its start, or with `fixed` offsets where they say.
pub fn alias_roots(file: &[u8], problem: &mut ProblemFile, fixed: bool) -> Result<(), ReadError> {
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
        let delta = match (problem.offsets[own], problem.offsets[target]) {
            (Some(own), Some(root)) if fixed => own.checked_sub(root),
            (Some(_), None) if fixed => None,
            _ => Some(0),
        };
        let size = |i: usize| problem.problem.buffers()[i].spec.size;
        let Some(delta) = delta.filter(|&d| d == 0 || size(own).checked_add(d).is_some_and(|end| end <= size(target)))
        else {
            return Err(ReadError::new(at, format!("root {to:?}: the row's offset is not within the root's bytes")));
        };
        let aliased = problem.problem.alias(own as u32, target as u32, delta);
        aliased.map_err(|e| ReadError::new(at, format!("root {to:?}: {e}")))?;
    }
    Ok(())
}
