//! A plan as CSV, in the columns a problem CSV is read from.

use std::io::{self, Write};

use super::report::Row;
use super::text::Overview;

/// Writes a problem CSV with offsets, which `arenite check` takes as it is.
///
/// Lifetimes are half-open steps. Several entries run one after the other, so their steps follow each other. Ids are
/// tensor indices; with several subgraphs `K:` goes before them, and with several entries `E/`.
pub fn csv(w: &mut dyn Write, all: &Overview<'_>) -> io::Result<()> {
    writeln!(w, "id,lower,upper,size,alignment,offset,gaps,name,root")?;
    let mut shift = 0;
    for report in all.entries {
        let several = report.rows.iter().any(|r| r.subgraph != report.rows[0].subgraph);
        let id = |row: &Row| {
            let subgraph = row.subgraph.unwrap_or(0);
            match (all.entries.len() > 1, several) {
                (true, _) => format!("{}/{subgraph}:{}", report.entry.unwrap_or(0), row.id),
                (_, true) => format!("{subgraph}:{}", row.id),
                _ => row.id.clone(),
            }
        };
        for row in &report.rows {
            let (Some(offset), Some(size), Some((first, last))) = (row.offset, row.size, row.hull()) else { continue };
            let gaps: Vec<String> =
                row.spans.windows(2).map(|s| format!("{}-{}", s[0].1 + 1 + shift, s[1].0 + shift)).collect();
            let root = row.root.filter(|&r| report.rows[r].offset.is_some());
            writeln!(
                w,
                "{},{},{},{size},{},{offset},{},{},{}",
                field(&id(row)),
                first + shift,
                (last + shift).saturating_add(1),
                all.alignment,
                gaps.join(" "),
                field(&row.name),
                root.map_or(String::new(), |r| field(&id(&report.rows[r])))
            )?;
        }
        shift += report.time_range().1 + 1;
    }
    Ok(())
}

/// A field, in quotes where it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!((super::field("a b"), super::field("a,\"b\"\n")), ("a b".into(), "\"a,\"\"b\"\"\n\"".into()));
    }
}
