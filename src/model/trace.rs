//! Allocation traces: `a ID SIZE ALIGN`, `f ID`, `r ID NEWSIZE`, `# comment`, one event a line.

use std::collections::HashMap;

use super::error::{quoted, Position, ReadError};
use crate::units::{Align, Bytes};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Block `block` was asked for.
    Alloc {
        /// The block, counted from 0 in order of appearance.
        block: u32,
        /// Bytes asked for, not rounded.
        size: Bytes,
        /// The alignment asked for.
        align: Align,
    },
    /// Block `block` was given back.
    Free {
        /// The block.
        block: u32,
    },
    /// Block `block` was resized, its contents kept up to the smaller size.
    Resize {
        /// The block.
        block: u32,
        /// The new size in bytes.
        size: Bytes,
    },
    /// A comment, which may mark a phase: `load`, `run N`, `unload`.
    Mark(String),
}

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its line, from 1.
    pub line: u64,
    /// What it says.
    pub kind: EventKind,
}

/// A recorded sequence of allocations and frees. Every free and resize is of a live block.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    /// The events in program order.
    pub events: Vec<Event>,
    /// The id each block has in the file.
    pub ids: Vec<u64>,
}

impl Trace {
    /// Reads a trace. An id may come back once its block was freed; it is a new block then.
    pub fn read(file: &[u8]) -> Result<Trace, ReadError> {
        let mut trace = Trace::default();
        let mut live: HashMap<u64, u32> = HashMap::new();
        for (number, raw) in (1u64..).zip(file.split(|&b| b == b'\n')) {
            let Ok(text) = std::str::from_utf8(raw) else {
                return Err(ReadError::new(Position::line(number), "expected UTF-8"));
            };
            if let Some(kind) = trace.event(text.trim(), number, &mut live)? {
                trace.events.push(Event { line: number, kind });
            }
        }
        Ok(trace)
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.ids.len()
    }

    fn event(&mut self, text: &str, line: u64, live: &mut HashMap<u64, u32>) -> Result<Option<EventKind>, ReadError> {
        if let Some(comment) = text.strip_prefix('#') {
            return Ok(Some(EventKind::Mark(comment.trim().to_string())));
        }
        let refuse = |field: u32, what: String| ReadError::new(Position::Line { line, field }, what);
        let mut words = [""; 4];
        let mut count = 0;
        for word in text.split_ascii_whitespace() {
            if count < words.len() {
                words[count] = word;
            }
            count += 1;
        }
        let number = |field: u32, what: &str| {
            let word = words[field as usize - 1];
            word.parse::<u64>().map_err(|_| refuse(field, format!("expected {what}, got {}", quoted(word))))
        };
        let known = |live: &HashMap<u64, u32>, id: u64| {
            live.get(&id).copied().ok_or_else(|| refuse(2, format!("no live block has id {id}")))
        };
        match (words[0], count) {
            ("", _) => Ok(None),
            ("a", 4) => {
                let (id, size) = (number(2, "an id")?, number(3, "a size in bytes")?);
                let at = Position::Line { line, field: 4 };
                let align = Align::new(number(4, "an alignment")?).map_err(|e| ReadError::of(at, e, "alignment"))?;
                let block = self.ids.len() as u32;
                if block == u32::MAX {
                    return Err(refuse(0, "a trace holds at most 2^32 - 1 blocks".into()));
                }
                if live.insert(id, block).is_some() {
                    return Err(refuse(2, format!("id {id} is that of a live block")));
                }
                self.ids.push(id);
                Ok(Some(EventKind::Alloc { block, size, align }))
            }
            ("f", 2) => {
                let id = number(2, "an id")?;
                let block = known(live, id)?;
                live.remove(&id);
                Ok(Some(EventKind::Free { block }))
            }
            ("r", 3) => {
                let (id, size) = (number(2, "an id")?, number(3, "a size in bytes")?);
                Ok(Some(EventKind::Resize { block: known(live, id)?, size }))
            }
            (word, _) => {
                let expected = match word {
                    "a" => "\"a ID SIZE ALIGN\"",
                    "f" => "\"f ID\"",
                    "r" => "\"r ID NEWSIZE\"",
                    _ => "a, f, r or #",
                };
                Err(refuse(0, format!("expected {expected}, got {}", quoted(text))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_refer_to_blocks_by_number() {
        let t = Trace::read(b"# run 0\r\na 7 100 64\n\na 9 0 128\nr 7 50\nf 7\na 7 1 1\n").unwrap();
        let kinds: Vec<_> = t.events.iter().map(|e| e.kind.clone()).collect();
        let align = |a| Align::new(a).unwrap();
        assert_eq!(
            kinds,
            [
                EventKind::Mark("run 0".into()),
                EventKind::Alloc { block: 0, size: 100, align: align(64) },
                EventKind::Alloc { block: 1, size: 0, align: align(128) },
                EventKind::Resize { block: 0, size: 50 },
                EventKind::Free { block: 0 },
                EventKind::Alloc { block: 2, size: 1, align: align(1) },
            ]
        );
        assert_eq!((&t.ids[..], t.events[5].line, t.blocks()), (&[7, 9, 7][..], 7, 3));
    }

    #[test]
    fn errors_name_line_and_word() {
        for (text, message) in [
            ("a 1 2\n", "line 1: expected \"a ID SIZE ALIGN\", got \"a 1 2\""),
            ("\nf 1\n", "line 2, field 2: no live block has id 1"),
            ("a 1 2 64\nf 1\nf 1\n", "line 3, field 2: no live block has id 1"),
            ("a 1 2 64\na 1 2 64\n", "line 2, field 2: id 1 is that of a live block"),
            ("a 1 x 64\n", "line 1, field 3: expected a size in bytes, got \"x\""),
            (
                "a 1 18446744073709551616 64\n",
                "line 1, field 3: expected a size in bytes, got \"18446744073709551616\"",
            ),
            ("z\n", "line 1: expected a, f, r or #, got \"z\""),
        ] {
            assert_eq!(Trace::read(text.as_bytes()).unwrap_err().to_string(), message);
        }
        assert!(Trace::read(b"a 1 2 65\n").unwrap_err().to_string().starts_with("line 1, field 4: alignment"));
        assert_eq!(Trace::read(b"a 1 2 64\n\xff").unwrap_err().to_string(), "line 2: expected UTF-8");
    }
}
