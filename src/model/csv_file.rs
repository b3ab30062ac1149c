//! A CSV file with a header, its rows with their line numbers: what the problem and the solution reader share.

use csv::StringRecord;

use super::error::{quoted, Position, ReadError};

/// A file read whole. Columns are found by name, in any order and case.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub header: StringRecord,
    header_line: u64,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub line: u64,
    pub fields: StringRecord,
}

impl Sheet {
    /// Reads `file`; blank lines, either line ending, quotes and a byte order mark are all right.
    pub(super) fn read(file: &[u8]) -> Result<Sheet, ReadError> {
        let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file);
        let mut record = StringRecord::new();
        let mut header: Option<(StringRecord, u64)> = None;
        let mut rows = Vec::new();
        let mut lines = Lines { file, at: 0, line: 1 };
        loop {
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => {
                    let line = lines.of(e.position());
                    let what = match e.kind() {
                        csv::ErrorKind::Utf8 { .. } => "expected UTF-8".to_string(),
                        _ => e.to_string(),
                    };
                    return Err(ReadError::new(Position::line(line), what));
                }
            }
            let line = lines.of(record.position());
            if record.iter().all(|f| f.trim().is_empty()) {
                continue;
            }
            let Some((header, _)) = &header else {
                header = Some((record.clone(), line));
                continue;
            };
            if record.len() > header.len() {
                let what = format!("expected {} fields as in the header, got {}", header.len(), record.len());
                return Err(ReadError::new(Position::line(line), what));
            }
            rows.push(Row { line, fields: record.clone() });
        }
        let Some((header, header_line)) = header else {
            return Err(ReadError::new(Position::Whole, "expected a header line, the file is empty"));
        };
        Ok(Sheet { header, header_line, rows })
    }

    /// The column called one of `names`. Two of them are an error, since either could be meant.
    pub(super) fn column(&self, names: &[&str]) -> Result<Option<usize>, ReadError> {
        let is = |h: &str| names.iter().any(|n| h.trim().eq_ignore_ascii_case(n));
        let mut found = (0..self.header.len()).filter(|&c| is(&self.header[c]));
        match (found.next(), found.next()) {
            (Some(_), Some(second)) => {
                let at = Position::Line { line: self.header_line, field: second as u32 + 1 };
                Err(ReadError::new(at, format!("a second column of {}", names.join(", "))))
            }
            (first, _) => Ok(first),
        }
    }

    /// The column called `name`, which must be there.
    pub(super) fn need(&self, name: &str) -> Result<usize, ReadError> {
        self.column(&[name])?.ok_or_else(|| {
            let header: Vec<_> = self.header.iter().collect();
            let what = format!("expected a column {name:?}, the header is {}", quoted(&header.join(",")));
            ReadError::new(Position::line(self.header_line), what)
        })
    }

    /// Offsets by row, from the `offset` column or, relative to the lowest, from a column of addresses, which gives
    /// that lowest address too. `None` where neither is there.
    pub(super) fn offsets(&self) -> Result<Option<Offsets>, ReadError> {
        if let Some(column) = self.column(&["offset"])? {
            let read = |row: &Row| match row.field(column) {
                "" => Ok(None),
                _ => row.number(column, "an offset").map(Some),
            };
            let offsets = self.rows.iter().map(read).collect::<Result<_, _>>()?;
            return Ok(Some(Offsets { offsets, base: None }));
        }
        let Some(column) = self.column(&["pointer", "address", "addr", "ptr"])? else { return Ok(None) };
        // A column printed in hexadecimal without 0x shows it by a letter somewhere.
        let letter = |text: &str| !has_0x(text) && text.bytes().any(|b| matches!(b, b'a'..=b'f' | b'A'..=b'F'));
        let bare_hex = self.rows.iter().any(|r| !is_null(r.field(column)) && letter(r.field(column)));
        let read = |row: &Row| {
            let text = row.field(column);
            let parsed = match text.get(2..) {
                _ if is_null(text) => return Ok(None),
                Some(digits) if has_0x(text) => u64::from_str_radix(digits, 16),
                _ if bare_hex => u64::from_str_radix(text, 16),
                _ => text.parse(),
            };
            match parsed {
                Ok(0) => Ok(None), // null: nothing was allocated
                Ok(address) => Ok(Some(address)),
                Err(_) => row.refuse(column, format!("expected an address, got {}", quoted(text))),
            }
        };
        let mut offsets: Vec<Option<u64>> = self.rows.iter().map(read).collect::<Result<_, _>>()?;
        let base = offsets.iter().flatten().min().copied();
        for offset in offsets.iter_mut().flatten() {
            *offset -= base.unwrap_or(0);
        }
        Ok(Some(Offsets { offsets, base }))
    }
}

/// Counts lines. The csv crate's own count is that of the line after the record before, which may be a blank one.
struct Lines<'a> {
    file: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line on which the record read from `position` on begins. Positions must not go backwards.
    fn of(&mut self, position: Option<&csv::Position>) -> u64 {
        let from = position.map_or(self.at, |p| (p.byte() as usize).min(self.file.len()));
        let blank = self.file[from..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let start = (from + blank).max(self.at);
        self.line += self.file[self.at..start].iter().filter(|&&b| b == b'\n').count() as u64;
        self.at = start;
        self.line
    }
}

/// Offsets by row and the address they count from, where the file gave addresses.
pub(super) struct Offsets {
    pub offsets: Vec<Option<u64>>,
    pub base: Option<u64>,
}

fn has_0x(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// Null pointers as printf prints them.
fn is_null(text: &str) -> bool {
    matches!(text, "" | "-" | "(nil)" | "(null)" | "null" | "nullptr")
}

impl Row {
    /// The field of `column`, trimmed; empty where the row is shorter.
    pub(super) fn field(&self, column: usize) -> &str {
        self.fields.get(column).unwrap_or("").trim()
    }

    /// The field of a column that may not exist.
    pub(super) fn optional(&self, column: Option<usize>) -> &str {
        column.map_or("", |c| self.field(c))
    }

    pub(super) fn number(&self, column: usize, what: &str) -> Result<u64, ReadError> {
        let text = self.field(column);
        match text.parse() {
            Ok(n) => Ok(n),
            Err(_) => self.refuse(column, format!("expected {what}, got {}", quoted(text))),
        }
    }

    pub(super) fn refuse<T>(&self, column: usize, what: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::new(Position::Line { line: self.line, field: column as u32 + 1 }, what))
    }
}
