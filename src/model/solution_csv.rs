//! A plan as CSV: `id,offset`, or `id` and an address column as an engine dumps it.

use std::collections::HashMap;

use super::csv_file::Sheet;
use super::error::{quoted, ReadError};
use crate::units::Bytes;

/// Offsets by id, and by subgraph where the file has such a column.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// The lowest address, where the file has addresses; offsets count from it.
    pub base: Option<u64>,
    rows: HashMap<(Option<u32>, String), Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    offset: Option<Bytes>,
}

impl Solution {
    /// Reads a plan.
    pub fn read(file: &[u8]) -> Result<Solution, ReadError> {
        let sheet = Sheet::read(file)?;
        let (id, subgraph) = (sheet.need("id")?, sheet.column(&["subgraph"])?);
        let found = match sheet.offsets()? {
            Some(found) => found,
            None => return Err(sheet.need("offset").expect_err("neither offsets nor addresses are there")),
        };
        let mut rows = HashMap::with_capacity(sheet.rows.len());
        for (row, offset) in sheet.rows.iter().zip(found.offsets) {
            let graph = match (row.optional(subgraph), subgraph) {
                ("", _) | (_, None) => None,
                (_, Some(column)) => match u32::try_from(row.number(column, "a subgraph's index")?) {
                    Ok(k) => Some(k),
                    Err(_) => return row.refuse(column, "expected a subgraph's index"),
                },
            };
            let name = row.field(id);
            let entry = Entry { line: row.line, offset };
            if let Some(first) = rows.insert((graph, name.to_string()), entry) {
                return row.refuse(id, format!("id {} is that of line {} too", quoted(name), first.line));
            }
        }
        Ok(Solution { base: found.base, rows })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether there is a row for `id`, with or without an offset.
    pub fn contains(&self, subgraph: Option<u32>, id: &str) -> bool {
        self.entry(subgraph, id).is_some()
    }

    /// The offset of `id`. A row that names no subgraph stands for the id in any.
    pub fn offset(&self, subgraph: Option<u32>, id: &str) -> Option<Bytes> {
        self.entry(subgraph, id)?.offset
    }

    /// Ids of the file that `known` denies, with their line and subgraph, by line.
    pub fn unknown(&self, known: impl Fn(Option<u32>, &str) -> bool) -> Vec<(u64, Option<u32>, &str)> {
        let rows = self.rows.iter().filter(|((k, id), _)| !known(*k, id));
        let mut list: Vec<_> = rows.map(|((k, id), e)| (e.line, *k, id.as_str())).collect();
        list.sort_unstable();
        list
    }

    fn entry(&self, subgraph: Option<u32>, id: &str) -> Option<Entry> {
        let find = |k| self.rows.get(&(k, id.to_string())).copied();
        find(subgraph).or_else(|| find(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_by_id_and_subgraph() {
        let s = Solution::read(b"subgraph,id,offset\n0,3,128\n,b1,0\n1,3,\n").unwrap();
        assert_eq!(
            (s.offset(Some(0), "3"), s.offset(Some(1), "3"), s.offset(Some(9), "b1")),
            (Some(128), None, Some(0))
        );
        assert!(s.contains(Some(1), "3") && !s.contains(Some(2), "3"));
        assert_eq!(s.unknown(|k, _| k != Some(1)), [(4, Some(1), "3")]);
        let s = Solution::read(b"id,size,address\na,4,0x1040\nb,4,0x1000\n").unwrap();
        assert_eq!((s.offset(None, "a"), s.base, s.len()), (Some(64), Some(0x1000), 2));
    }

    #[test]
    fn errors_name_line_and_field() {
        for (text, message) in [
            ("id,size\n", "line 1: expected a column \"offset\", the header is \"id,size\""),
            ("id,offset\na,0\na,1\n", "line 3, field 1: id \"a\" is that of line 2 too"),
            ("id,offset\na,-1\n", "line 2, field 2: expected an offset, got \"-1\""),
            ("id,subgraph,offset\na,x,1\n", "line 2, field 2: expected a subgraph's index, got \"x\""),
        ] {
            assert_eq!(Solution::read(text.as_bytes()).unwrap_err().to_string(), message);
        }
    }
}
