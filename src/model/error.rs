//! The error of every reader: what was expected, and where in the input.

use std::borrow::Cow;
use std::fmt;

use crate::error::Kind;

/// A place in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The input as a whole.
    Whole,
    /// A byte of a binary file, counted from 0.
    Byte(u64),
    /// A line of a text file, counted from 1, and there a field (CSV) or word, counted from 1.
    Line {
        /// The line.
        line: u64,
        /// The field or word, 0 for the line as a whole.
        field: u32,
    },
}

impl Position {
    /// The line as a whole.
    pub const fn line(line: u64) -> Position {
        Position::Line { line, field: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Whole => Ok(()),
            Position::Byte(at) => write!(f, "byte {at}: "),
            Position::Line { line, field: 0 } => write!(f, "line {line}: "),
            Position::Line { line, field } => write!(f, "line {line}, field {field}: "),
        }
    }
}

/// Why an input was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}{what}")]
#[non_exhaustive]
pub struct ReadError {
    /// The kind, which is also the C status.
    pub kind: Kind,
    /// Where.
    pub at: Position,
    /// What was expected and what was found.
    pub what: String,
}

impl ReadError {
    /// An `Argument` error: the input contradicts its format.
    pub fn new(at: Position, what: impl Into<String>) -> ReadError {
        ReadError { kind: Kind::Argument, at, what: what.into() }
    }

    /// The same with another kind.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> ReadError {
        self.kind = kind;
        self
    }

    /// A core error met while reading, with the place.
    pub(crate) fn of(at: Position, error: crate::error::Error, about: &str) -> ReadError {
        ReadError { kind: error.kind, at, what: format!("{about}: {error}") }
    }
}

/// `text` as a message shows it: in quotes, without control characters, cut to a readable length.
pub(crate) fn quoted(text: &str) -> String {
    const LIMIT: usize = 60;
    let shown: Cow<'_, str> = match text.char_indices().nth(LIMIT) {
        Some((cut, _)) => Cow::Owned(format!("{}...", &text[..cut])),
        None => Cow::Borrowed(text),
    };
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place() {
        let e =
            ReadError::new(Position::Line { line: 3, field: 2 }, format!("expected a number, got {}", quoted("a\tb")));
        assert_eq!(e.to_string(), "line 3, field 2: expected a number, got \"a\\tb\"");
        assert_eq!(ReadError::new(Position::Byte(7), "x").to_string(), "byte 7: x");
        assert_eq!(ReadError::new(Position::Whole, "x").to_string(), "x");
        assert!(quoted(&"é".repeat(1000)).chars().count() < 70);
    }
}
