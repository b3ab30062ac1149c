//! One error type for the whole core. It is `Copy` and needs no heap, so it can be returned when memory has run out.
#![forbid(unsafe_code)]

use core::fmt;

/// What went wrong; the numbers are those of the C status codes and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// A required pointer was null.
    Null = 1,
    /// An argument, a table or a file contradicts itself or the contract.
    Argument = 2,
    /// A sum or product of sizes does not fit.
    Overflow = 3,
    /// The memory or capacity given is too small; `needed` and `available` say by how much.
    Capacity = 4,
    /// An address or alignment does not meet the requirement.
    Alignment = 5,
    /// The object is in use.
    Busy = 6,
    /// The memory source returned nothing.
    NoMemory = 7,
    /// The plan is older than the shapes: commit first.
    Stale = 8,
    /// A tensor's size is not known yet.
    UnknownSize = 9,
    /// The request is valid but this build or version does not do it.
    Unsupported = 10,
    /// A bug in arenite.
    Internal = 11,
}

/// What an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Subject {
    /// Nothing in particular.
    #[default]
    None,
    /// A tensor by its index in the graph's table.
    Tensor(u32),
    /// A node by its position in the execution order.
    Node(u32),
    /// A buffer by its index in the problem.
    Buffer(u32),
    /// A subgraph by its index.
    Subgraph(u32),
    /// A memory region by its index.
    Region(u32),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::None => Ok(()),
            Subject::Tensor(i) => write!(f, "tensor {i}"),
            Subject::Node(i) => write!(f, "node {i}"),
            Subject::Buffer(i) => write!(f, "buffer {i}"),
            Subject::Subgraph(i) => write!(f, "subgraph {i}"),
            Subject::Region(i) => write!(f, "region {i}"),
        }
    }
}

/// An error with the tensor, node or step it is about and, where that makes sense, the amount needed and available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Message(self))]
#[non_exhaustive]
pub struct Error {
    /// The kind, which is also the C status.
    pub kind: Kind,
    /// What was expected or went wrong, as a sentence without a full stop.
    pub reason: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// A second party, for instance the other of two buffers that collide.
    pub other: Subject,
    /// The step at which it happens.
    pub step: Option<u32>,
    /// The amount needed (bytes unless the reason says otherwise).
    pub needed: Option<u64>,
    /// The amount available, in the same unit.
    pub available: Option<u64>,
}

struct Message<'a>(&'a Error);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = self.0;
        if e.subject != Subject::None {
            write!(f, "{}", e.subject)?;
            if e.other != Subject::None {
                write!(f, " and {}", e.other)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(e.reason)?;
        if let Some(step) = e.step {
            write!(f, " at step {step}")?;
        }
        match (e.needed, e.available) {
            (Some(n), Some(a)) => write!(f, " (needed {n}, available {a})"),
            // Where memory or room is missing the amount is what was asked for, not a bad value.
            (Some(n), None) if matches!(e.kind, Kind::NoMemory | Kind::Capacity) => write!(f, " (needed {n})"),
            (Some(n), None) => write!(f, " (got {n})"),
            (None, Some(a)) => write!(f, " (available {a})"),
            (None, None) => Ok(()),
        }
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $($(#[$doc])* #[must_use] pub const fn $name(reason: &'static str) -> Error { Error::new(Kind::$kind, reason) })*
    };
}

impl Error {
    /// An error of `kind` without details.
    #[must_use]
    pub const fn new(kind: Kind, reason: &'static str) -> Error {
        Error { kind, reason, subject: Subject::None, other: Subject::None, step: None, needed: None, available: None }
    }

    constructors! {
        /// An `Argument` error.
        argument => Argument;
        /// An `Overflow` error.
        overflow => Overflow;
        /// A `Capacity` error.
        capacity => Capacity;
        /// An `Alignment` error.
        alignment => Alignment;
        /// A `Busy` error.
        busy => Busy;
        /// A `NoMemory` error.
        no_memory => NoMemory;
        /// A `Stale` error.
        stale => Stale;
        /// An `UnknownSize` error.
        unknown_size => UnknownSize;
        /// An `Unsupported` error.
        unsupported => Unsupported;
        /// An `Internal` error.
        internal => Internal;
    }

    /// Names what the error is about.
    #[must_use]
    pub const fn of(mut self, subject: Subject) -> Error {
        self.subject = subject;
        self
    }

    /// Names the tensor the error is about.
    #[must_use]
    pub const fn tensor(self, index: usize) -> Error {
        self.of(Subject::Tensor(index as u32))
    }

    /// Names the node the error is about.
    #[must_use]
    pub const fn node(self, index: usize) -> Error {
        self.of(Subject::Node(index as u32))
    }

    /// Names the buffer the error is about.
    #[must_use]
    pub const fn buffer(self, index: usize) -> Error {
        self.of(Subject::Buffer(index as u32))
    }

    /// Names the second party.
    #[must_use]
    pub const fn and(mut self, other: Subject) -> Error {
        self.other = other;
        self
    }

    /// Names the step.
    #[must_use]
    pub const fn at(mut self, step: u32) -> Error {
        self.step = Some(step);
        self
    }

    /// Gives the amount needed, or the value that was refused.
    #[must_use]
    pub const fn needed(mut self, amount: u64) -> Error {
        self.needed = Some(amount);
        self
    }

    /// Gives the amount available.
    #[must_use]
    pub const fn available(mut self, amount: u64) -> Error {
        self.available = Some(amount);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn amounts_read_as_what_they_are() {
        assert_eq!(Error::no_memory("no memory").needed(8).to_string(), "no memory (needed 8)");
        assert_eq!(
            Error::capacity("too small").needed(8).available(4).to_string(),
            "too small (needed 8, available 4)"
        );
        assert_eq!(Error::alignment("no power of two").needed(3).to_string(), "no power of two (got 3)");
    }
}
