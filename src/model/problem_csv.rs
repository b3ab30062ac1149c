//! Planning problems as CSV: `id,lower,upper,size`, lifetimes half-open, with optional columns `alignment`, `offset`,
//! `gaps` (`lo-hi` half-open, separated by blanks) and `name`. A row that names another in a column `root` is where that one
//! is, so its offset constrains nothing.

use std::collections::HashMap;

use super::csv_file::{Row, Sheet};
use super::error::{quoted, Position, ReadError};
use crate::error::Subject;
use crate::planner::{BufferSpec, Problem, Span};
use crate::units::{Align, Bytes, Step};

/// What the `offset` column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetColumn {
    /// Offsets the plan must keep.
    Fixed,
    /// A finished plan, to be checked.
    Solution,
}

/// A problem and the file it came from, so that a plan can be written back in the file's own terms.
#[derive(Clone, Debug)]
pub struct ProblemFile {
    /// Ids as the file has them, one per buffer.
    pub ids: Vec<String>,
    /// The `name` column; empty strings without one.
    pub names: Vec<String>,
    /// The first time of each buffer as the file has it.
    pub lower: Vec<u64>,
    /// The time after the last of each buffer as the file has it.
    pub upper: Vec<u64>,
    /// The `offset` column, or what the addresses of a `pointer` or `address` column come to, counted from the lowest.
    pub offsets: Vec<Option<Bytes>>,
    /// Whether there is a column of offsets or addresses at all.
    pub has_offsets: bool,
    /// The lowest address, where the file has addresses.
    pub base: Option<u64>,
    /// Whether the file has an `alignment` column.
    pub has_alignment: bool,
    /// The problem; buffers in the order of the rows.
    pub problem: Problem,
    sheet: Sheet,
    /// The time of each step, where times are too large to be steps themselves.
    times: Option<Vec<u64>>,
}

/// A row's times.
struct Life {
    lower: u64,
    upper: u64,
    gaps: Vec<(u64, u64)>,
}

impl ProblemFile {
    /// Reads a problem. Every buffer is aligned to `align` at least, `Align::ONE` for what the file says alone.
    pub fn read(file: &[u8], offset_column: OffsetColumn, align: Align) -> Result<ProblemFile, ReadError> {
        let sheet = Sheet::read(file)?;
        let (id, lower, upper, size) =
            (sheet.need("id")?, sheet.need("lower")?, sheet.need("upper")?, sheet.need("size")?);
        let alignment = sheet.column(&["alignment", "align"])?;
        let gaps = sheet.column(&["gaps"])?;
        let name = sheet.column(&["name"])?;
        let fixed = sheet.column(&["offset"])?.filter(|_| offset_column == OffsetColumn::Fixed);
        let root = sheet.column(&["root"])?;
        let is_root = |row: &Row| ["", row.field(id)].contains(&row.optional(root));

        let ids = unique_ids(&sheet, id)?;
        let lives = sheet.rows.iter().map(|r| life(r, lower, upper, gaps)).collect::<Result<Vec<_>, _>>()?;
        let range =
            (lives.iter().map(|l| l.lower).min().unwrap_or(0), lives.iter().map(|l| l.upper).max().unwrap_or(0));
        let times = compressed(&lives, range.1);
        let step = |time: u64| match &times {
            // Every time in the file is in the list.
            Some(times) => times.partition_point(|&t| t < time) as Step,
            None => time as Step,
        };
        let found = sheet.offsets()?;
        let has_offsets = found.is_some();
        let (offsets, base) = match found {
            Some(found) => (found.offsets, found.base),
            None => (vec![None; sheet.rows.len()], None),
        };

        let mut problem = Problem::with_capacity(sheet.rows.len());
        let mut spans = Vec::new();
        for ((row, life), offset) in sheet.rows.iter().zip(&lives).zip(&offsets) {
            let own = match row.optional(alignment) {
                "" => Align::ONE,
                _ => {
                    let column = alignment.unwrap_or(0);
                    let bytes = row.number(column, "an alignment")?;
                    let at = Position::Line { line: row.line, field: column as u32 + 1 };
                    Align::new(bytes).map_err(|e| ReadError::of(at, e, "alignment"))?
                }
            };
            let spec = BufferSpec {
                size: row.number(size, "a size in bytes")?,
                align: own.max(align),
                fixed: fixed.and(*offset).filter(|_| is_root(row)),
                kept: life.gaps.is_empty() && (life.lower, life.upper) == range,
            };
            life.spans(&mut spans, step);
            if spans.is_empty() {
                return row.refuse(gaps.unwrap_or(0), "the gaps leave nothing of the lifetime");
            }
            let refuse = |e: crate::error::Error| {
                let about = format!("id {}", quoted(row.field(id)));
                ReadError::of(Position::line(row.line), e.of(Subject::None), &about)
            };
            problem.add(spec, &spans).map_err(refuse)?;
        }
        Ok(ProblemFile {
            ids,
            names: sheet.rows.iter().map(|r| r.optional(name).to_string()).collect(),
            lower: lives.iter().map(|l| l.lower).collect(),
            upper: lives.iter().map(|l| l.upper).collect(),
            offsets,
            has_offsets,
            base,
            has_alignment: alignment.is_some(),
            problem,
            sheet,
            times,
        })
    }

    /// The file's time of a step of the problem.
    pub fn time(&self, step: Step) -> u64 {
        match &self.times {
            Some(times) => times.get(step as usize).copied().unwrap_or(u64::MAX),
            None => u64::from(step),
        }
    }

    /// The line of buffer `index`.
    pub fn line(&self, index: usize) -> u64 {
        self.sheet.rows[index].line
    }

    /// A field of buffer `index` by its column's name; `None` where there is no such column.
    pub fn field(&self, index: usize, column: &str) -> Option<&str> {
        let at = self.sheet.header.iter().position(|h| h.trim().eq_ignore_ascii_case(column))?;
        Some(self.sheet.rows[index].field(at))
    }

    /// The input's columns with `offset` filled in, added where the input had none.
    pub fn with_offsets(&self, offsets: &[Option<Bytes>]) -> String {
        let texts: Vec<_> = offsets.iter().map(|o| o.map(|o| o.to_string())).collect();
        self.with_columns(&[("offset", &texts)])
    }

    /// The input's columns with those named filled in, added where the input had none.
    pub fn with_columns(&self, columns: &[(&str, &[Option<String>])]) -> String {
        let place = |name: &str| self.sheet.header.iter().position(|h| h.trim().eq_ignore_ascii_case(name));
        let mut out = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let width = self.sheet.header.len();
        let mut write = |fields: Vec<&str>| out.write_record(fields);
        let added = columns.iter().map(|c| c.0).filter(|name| place(name).is_none());
        let mut done = write(self.sheet.header.iter().chain(added).collect());
        for (i, row) in self.sheet.rows.iter().enumerate() {
            let mut fields: Vec<&str> = (0..width).map(|c| row.fields.get(c).unwrap_or("")).collect();
            for (name, texts) in columns {
                let text = texts.get(i).and_then(Option::as_deref).unwrap_or("");
                match place(name) {
                    Some(c) => fields[c] = text,
                    None => fields.push(text),
                }
            }
            done = done.and_then(|()| write(fields));
        }
        // A Vec takes every write, and all fields came from strings.
        debug_assert!(done.is_ok());
        String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}

impl Life {
    /// The closed spans in steps, ascending.
    fn spans(&self, spans: &mut Vec<Span>, step: impl Fn(u64) -> Step) {
        spans.clear();
        let mut from = self.lower;
        for &(lo, hi) in self.gaps.iter().chain(&[(self.upper, self.upper)]) {
            if lo > from {
                spans.push(Span::new(step(from), step(lo) - 1));
            }
            from = from.max(hi);
        }
    }
}

fn unique_ids(sheet: &Sheet, column: usize) -> Result<Vec<String>, ReadError> {
    let mut lines = HashMap::with_capacity(sheet.rows.len());
    for row in &sheet.rows {
        let id = row.field(column);
        if id.is_empty() {
            return row.refuse(column, "expected an id");
        }
        if let Some(first) = lines.insert(id, row.line) {
            return row.refuse(column, format!("id {} is that of line {first} too", quoted(id)));
        }
    }
    Ok(sheet.rows.iter().map(|r| r.field(column).to_string()).collect())
}

fn life(row: &Row, lower: usize, upper: usize, gaps: Option<usize>) -> Result<Life, ReadError> {
    let (lo, hi) = (row.number(lower, "the first time")?, row.number(upper, "the time after the last")?);
    if lo >= hi {
        return row.refuse(upper, format!("expected upper above lower {lo}, got {hi}"));
    }
    let mut life = Life { lower: lo, upper: hi, gaps: Vec::new() };
    let Some(column) = gaps else { return Ok(life) };
    for text in row.field(column).split_whitespace() {
        let parsed = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match parsed {
            Some((a, b)) if lo <= a && a < b && b <= hi => life.gaps.push((a, b)),
            Some(_) => return row.refuse(column, format!("gap {} is not within {lo}-{hi}", quoted(text))),
            None => return row.refuse(column, format!("expected a gap lo-hi, got {}", quoted(text))),
        }
    }
    life.gaps.sort_unstable();
    Ok(life)
}

/// All times of the file, ascending, where one is too large for a step. Two buffers share a step by rank exactly where
/// they share a time.
fn compressed(lives: &[Life], last: u64) -> Option<Vec<u64>> {
    if last <= u64::from(u32::MAX) {
        return None;
    }
    let mut times: Vec<u64> = lives.iter().flat_map(|l| [l.lower, l.upper]).collect();
    times.extend(lives.iter().flat_map(|l| l.gaps.iter().flat_map(|g| [g.0, g.1])));
    times.sort_unstable();
    times.dedup();
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProblemFile, ReadError> {
        ProblemFile::read(text.as_bytes(), OffsetColumn::Fixed, Align::ONE)
    }

    #[test]
    fn columns_come_in_any_order_with_any_line_ending() {
        let text = "\u{feff}Size,name, id ,upper,lower,alignment,offset,gaps,note\r\n\r\n\
            4,\"a, b\",b1,9,0,,,,x\r\n8,,b2,9,3,16,32,5-7 8-9\r\n";
        let p = read(text).unwrap();
        assert_eq!((&p.ids[..], &p.names[..]), (&["b1".into(), "b2".into()][..], &["a, b".into(), String::new()][..]));
        assert_eq!((p.lower[1], p.upper[1], p.offsets[1]), (3, 9, Some(32)));
        let b = p.problem.buffers();
        assert_eq!((b[0].spec.kept, b[1].spec.kept, b[1].spec.fixed), (true, false, Some(32)));
        assert_eq!((b[0].spec.align.bytes(), b[1].spec.align.bytes()), (1, 16));
        assert_eq!(p.problem.spans(0), [Span::new(0, 8)]);
        assert_eq!(p.problem.spans(1), [Span::new(3, 4), Span::new(7, 7)]);
        let out = p.with_offsets(&[Some(0), None]);
        assert_eq!(
            out,
            "Size,name, id ,upper,lower,alignment,offset,gaps,note\n4,\"a, b\",b1,9,0,,0,,x\n8,,b2,9,3,16,,5-7 8-9,\n"
        );
        let added = read("id,lower,upper,size\n1,0,1,4\n").unwrap().with_offsets(&[Some(7)]);
        assert_eq!(added, "id,lower,upper,size,offset\n1,0,1,4,7\n");
    }

    #[test]
    fn large_times_are_ranked_and_given_back() {
        let big = 1u64 << 40;
        let p = read(&format!("id,lower,upper,size\na,0,{big},1\nb,{big},{0},2\nc,5,{0},3\n", big * 2)).unwrap();
        assert!(!p.problem.conflict(0, 1) && p.problem.conflict(0, 2) && p.problem.conflict(1, 2));
        assert_eq!((p.time(0), p.time(1), p.time(2)), (0, 5, big));
        let edge = read("id,lower,upper,size\na,0,4294967295,1\n").unwrap();
        assert_eq!((edge.problem.hull(0), edge.time(7)), (Span::new(0, u32::MAX - 1), 7));
    }

    #[test]
    fn a_solution_is_not_a_constraint() {
        let text = "id,lower,upper,size,alignment,offset\n1,0,1,4,64,3\n";
        let p = ProblemFile::read(text.as_bytes(), OffsetColumn::Solution, Align::ONE).unwrap();
        assert_eq!((p.problem.buffers()[0].spec.fixed, p.offsets[0]), (None, Some(3)));
        assert!(read(text).unwrap_err().to_string().starts_with("line 2: id \"1\": the fixed offset"));
    }

    #[test]
    fn addresses_become_offsets() {
        for (a, b, null) in [("0x7f0000001000", "0X7F0000001040", "(nil)"), ("139637976731648", "139637976731712", "0")]
        {
            let text = format!("id,lower,upper,size,pointer\n1,0,2,64,{b}\n2,0,2,64,{a}\n3,0,1,0,{null}\n");
            let p = ProblemFile::read(text.as_bytes(), OffsetColumn::Solution, Align::ONE).unwrap();
            assert_eq!((&p.offsets[..], p.base), (&[Some(64), Some(0), None][..], Some(0x7f00_0000_1000)));
        }
        let bare = "id,lower,upper,size,address\n1,0,1,4,00007FF010\n2,0,1,4,0000700020\n";
        let p = ProblemFile::read(bare.as_bytes(), OffsetColumn::Solution, Align::ONE).unwrap();
        assert_eq!(p.offsets, [Some(0x7FF010 - 0x700020), Some(0)]);
    }

    #[test]
    fn errors_name_line_and_field() {
        let cases = [
            ("", "expected a header line, the file is empty"),
            ("id,lower,upper\n", "line 1: expected a column \"size\", the header is \"id,lower,upper\""),
            ("\n\nid,lower,upper\n", "line 3: expected a column \"size\", the header is \"id,lower,upper\""),
            ("id,lower,upper,size\n1,2,2,4\n", "line 2, field 3: expected upper above lower 2, got 2"),
            ("id,lower,upper,size\n\n1,x,2,4\n", "line 3, field 2: expected the first time, got \"x\""),
            ("id,lower,upper,size\n1,-1,2,4\n", "line 2, field 2: expected the first time, got \"-1\""),
            ("id,lower,upper,size\n1,0,2\n", "line 2, field 4: expected a size in bytes, got \"\""),
            ("id,lower,upper,size\n1,0,2,4,5\n", "line 2: expected 4 fields as in the header, got 5"),
            ("id,lower,upper,size\n1,0,2,4\n1,0,2,4\n", "line 3, field 1: id \"1\" is that of line 2 too"),
            ("id,lower,upper,size,gaps\n1,0,4,4,3-5\n", "line 2, field 5: gap \"3-5\" is not within 0-4"),
            ("id,lower,upper,size,gaps\n1,0,4,4,0-4\n", "line 2, field 5: the gaps leave nothing of the lifetime"),
            ("id,lower,upper,size,gaps\n1,0,4,4,1\n", "line 2, field 5: expected a gap lo-hi, got \"1\""),
            ("id,lower,upper,size,ID\n1,0,4,4,1\n", "line 1, field 5: a second column of id"),
        ];
        for (text, message) in cases {
            assert_eq!(read(text).unwrap_err().to_string(), message);
        }
        let e = read("id,lower,upper,size,alignment\n1,0,4,4,3\n").unwrap_err();
        assert!(e.to_string().starts_with("line 2, field 5: alignment"), "{e}");
        let bytes = b"id,lower,upper,size\n\xff,0,4,4\n";
        let e = ProblemFile::read(bytes, OffsetColumn::Fixed, Align::ONE).unwrap_err();
        assert_eq!(e.to_string(), "line 2: expected UTF-8");
        assert!(read("id,lower,upper,size\n").unwrap().problem.is_empty());
    }
}
