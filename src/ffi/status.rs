//! Status codes and the failure record: `error::Error` as C sees it.

use core::ffi::{c_char, CStr};
use core::fmt::{self, Write};

use super::abi::Versioned;
use crate::error::{Error, Kind, Subject};

/// Result of a call: `ARENITE_OK` or one of the `ARENITE_ERR_` codes. Codes are positive and never reused.
pub type arenite_status_t = i32;

/// The call succeeded and its outputs are written.
pub const ARENITE_OK: arenite_status_t = 0;
/// A required pointer was null.
pub const ARENITE_ERR_NULL: arenite_status_t = 1;
/// An argument, a table or a file contradicts itself or the contract.
pub const ARENITE_ERR_ARGUMENT: arenite_status_t = 2;
/// A sum or product of sizes does not fit.
pub const ARENITE_ERR_OVERFLOW: arenite_status_t = 3;
/// The memory or capacity given is too small; the failure record says by how much.
pub const ARENITE_ERR_CAPACITY: arenite_status_t = 4;
/// An address or alignment does not meet the requirement.
pub const ARENITE_ERR_ALIGNMENT: arenite_status_t = 5;
/// The object is in use by another call.
pub const ARENITE_ERR_BUSY: arenite_status_t = 6;
/// The memory source returned nothing.
pub const ARENITE_ERR_NO_MEMORY: arenite_status_t = 7;
/// The plan is older than the shapes: commit first.
pub const ARENITE_ERR_STALE: arenite_status_t = 8;
/// A tensor's size is not known yet.
pub const ARENITE_ERR_UNKNOWN_SIZE: arenite_status_t = 9;
/// The request is valid but this build or version does not do it.
pub const ARENITE_ERR_UNSUPPORTED: arenite_status_t = 10;
/// A bug in arenite: please report it. The object that was passed refuses further work but can still be destroyed.
pub const ARENITE_ERR_INTERNAL: arenite_status_t = 11;

/// A failure concerns nothing in particular.
pub const ARENITE_SUBJECT_NONE: u32 = 0;
/// A tensor, by its index in the graph's table.
pub const ARENITE_SUBJECT_TENSOR: u32 = 1;
/// A node, by its position in the execution order.
pub const ARENITE_SUBJECT_NODE: u32 = 2;
/// A buffer, by its index in the problem.
pub const ARENITE_SUBJECT_BUFFER: u32 = 3;
/// A subgraph, by its index.
pub const ARENITE_SUBJECT_SUBGRAPH: u32 = 4;
/// A memory region, by its index.
pub const ARENITE_SUBJECT_REGION: u32 = 5;

/// An index or step that a failure record does not have.
pub const ARENITE_NO_INDEX: u32 = 0xFFFF_FFFF;
/// An amount that a failure record does not have.
pub const ARENITE_NO_AMOUNT: u64 = 0xFFFF_FFFF_FFFF_FFFF;
/// Size of the message in a failure record, its terminating zero included.
pub const ARENITE_MESSAGE_BYTES: usize = 192;

/// What went wrong in a call: which tensor, node or buffer, at which step, how much was needed and available.
///
/// Set `struct_size` to `sizeof(arenite_failure_t)` and `flags` to 0 before passing it. The record is a plain copy:
/// it stays valid whatever happens to the object it came from.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_failure_t {
    /// `sizeof(arenite_failure_t)` as the caller knows it.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The status that the failed call returned; `ARENITE_OK` when no call has failed yet.
    pub status: arenite_status_t,
    /// What it is about, one of `ARENITE_SUBJECT_`.
    pub subject_kind: u32,
    /// Its index, or `ARENITE_NO_INDEX`.
    pub subject_index: u32,
    /// The second party, for instance the other of two buffers that collide; one of `ARENITE_SUBJECT_`.
    pub other_kind: u32,
    /// The second party's index, or `ARENITE_NO_INDEX`.
    pub other_index: u32,
    /// The step at which it happens, or `ARENITE_NO_INDEX`.
    pub step: u32,
    /// The amount needed, in bytes unless the message says otherwise, or `ARENITE_NO_AMOUNT`.
    pub needed: u64,
    /// The amount available, in the same unit, or `ARENITE_NO_AMOUNT`.
    pub available: u64,
    /// The failure as one line of English, always terminated by a zero.
    pub message: [c_char; ARENITE_MESSAGE_BYTES],
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<arenite_failure_t>() == 48 + ARENITE_MESSAGE_BYTES);
    assert!(offset_of!(arenite_failure_t, step) == 28 && offset_of!(arenite_failure_t, needed) == 32);
    assert!(offset_of!(arenite_failure_t, message) == 48);
};

// SAFETY: the struct is `repr(C)` with no padding, begins with `struct_size` and `flags`, and every field is an integer
// or an array of integers, so any bytes are a valid value.
unsafe impl Versioned for arenite_failure_t {
    const DEFAULT: Self = Self::NONE;
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

impl arenite_failure_t {
    /// The record of a handle on which nothing has failed.
    pub const NONE: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        status: ARENITE_OK,
        subject_kind: ARENITE_SUBJECT_NONE,
        subject_index: ARENITE_NO_INDEX,
        other_kind: ARENITE_SUBJECT_NONE,
        other_index: ARENITE_NO_INDEX,
        step: ARENITE_NO_INDEX,
        needed: ARENITE_NO_AMOUNT,
        available: ARENITE_NO_AMOUNT,
        message: [0; ARENITE_MESSAGE_BYTES],
    };

    /// The record of `error`. Needs no heap: a message that is too long is cut at a character boundary.
    #[must_use]
    pub fn new(error: &Error) -> Self {
        let (subject_kind, subject_index) = subject(error.subject);
        let (other_kind, other_index) = subject(error.other);
        let mut record = Self {
            status: status(error.kind),
            subject_kind,
            subject_index,
            other_kind,
            other_index,
            step: error.step.unwrap_or(ARENITE_NO_INDEX),
            needed: error.needed.unwrap_or(ARENITE_NO_AMOUNT),
            available: error.available.unwrap_or(ARENITE_NO_AMOUNT),
            ..Self::NONE
        };
        let mut text = Text { bytes: &mut record.message, used: 0 };
        // A full buffer is the only error, and then the text so far is what we want.
        let _ = write!(text, "{error}");
        record
    }
}

/// The C status of an error kind: the numbers are the same by declaration.
#[must_use]
pub const fn status(kind: Kind) -> arenite_status_t {
    kind as arenite_status_t
}

fn subject(subject: Subject) -> (u32, u32) {
    match subject {
        Subject::None => (ARENITE_SUBJECT_NONE, ARENITE_NO_INDEX),
        Subject::Tensor(i) => (ARENITE_SUBJECT_TENSOR, i),
        Subject::Node(i) => (ARENITE_SUBJECT_NODE, i),
        Subject::Buffer(i) => (ARENITE_SUBJECT_BUFFER, i),
        Subject::Subgraph(i) => (ARENITE_SUBJECT_SUBGRAPH, i),
        Subject::Region(i) => (ARENITE_SUBJECT_REGION, i),
    }
}

/// Writes text into a fixed C buffer and keeps the last byte zero.
struct Text<'a> {
    bytes: &'a mut [c_char],
    used: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.used;
        let mut take = s.len().min(room);
        while !s.is_char_boundary(take) {
            take -= 1;
        }
        for (to, from) in self.bytes[self.used..].iter_mut().zip(&s.as_bytes()[..take]) {
            *to = *from as c_char;
        }
        self.used += take;
        if take == s.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

/// Name of a status code, for instance "ARENITE_ERR_CAPACITY"; "ARENITE_ERR_?" for a number that is none.
///
/// Returns: static text, never null. Threads: any.
#[no_mangle]
#[must_use]
pub extern "C" fn arenite_status_name(status: arenite_status_t) -> *const c_char {
    let name: &CStr = match status {
        ARENITE_OK => c"ARENITE_OK",
        ARENITE_ERR_NULL => c"ARENITE_ERR_NULL",
        ARENITE_ERR_ARGUMENT => c"ARENITE_ERR_ARGUMENT",
        ARENITE_ERR_OVERFLOW => c"ARENITE_ERR_OVERFLOW",
        ARENITE_ERR_CAPACITY => c"ARENITE_ERR_CAPACITY",
        ARENITE_ERR_ALIGNMENT => c"ARENITE_ERR_ALIGNMENT",
        ARENITE_ERR_BUSY => c"ARENITE_ERR_BUSY",
        ARENITE_ERR_NO_MEMORY => c"ARENITE_ERR_NO_MEMORY",
        ARENITE_ERR_STALE => c"ARENITE_ERR_STALE",
        ARENITE_ERR_UNKNOWN_SIZE => c"ARENITE_ERR_UNKNOWN_SIZE",
        ARENITE_ERR_UNSUPPORTED => c"ARENITE_ERR_UNSUPPORTED",
        ARENITE_ERR_INTERNAL => c"ARENITE_ERR_INTERNAL",
        _ => c"ARENITE_ERR_?",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(record: &arenite_failure_t) -> String {
        let bytes: Vec<u8> = record.message.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn codes_are_the_kinds() {
        let pairs = [
            (Kind::Null, ARENITE_ERR_NULL),
            (Kind::Argument, ARENITE_ERR_ARGUMENT),
            (Kind::Overflow, ARENITE_ERR_OVERFLOW),
            (Kind::Capacity, ARENITE_ERR_CAPACITY),
            (Kind::Alignment, ARENITE_ERR_ALIGNMENT),
            (Kind::Busy, ARENITE_ERR_BUSY),
            (Kind::NoMemory, ARENITE_ERR_NO_MEMORY),
            (Kind::Stale, ARENITE_ERR_STALE),
            (Kind::UnknownSize, ARENITE_ERR_UNKNOWN_SIZE),
            (Kind::Unsupported, ARENITE_ERR_UNSUPPORTED),
            (Kind::Internal, ARENITE_ERR_INTERNAL),
        ];
        for (kind, code) in pairs {
            assert_eq!(status(kind), code);
        }
    }

    #[test]
    fn a_record_carries_every_detail() {
        let error = Error::capacity("the arena is too small").tensor(7).at(3).needed(4096).available(1024);
        let record = arenite_failure_t::new(&error);
        assert_eq!(record.status, ARENITE_ERR_CAPACITY);
        assert_eq!((record.subject_kind, record.subject_index), (ARENITE_SUBJECT_TENSOR, 7));
        assert_eq!((record.other_kind, record.other_index), (ARENITE_SUBJECT_NONE, ARENITE_NO_INDEX));
        assert_eq!((record.step, record.needed, record.available), (3, 4096, 1024));
        assert_eq!(text(&record), "tensor 7: the arena is too small at step 3 (needed 4096, available 1024)");
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_and_terminated() {
        const LONG: &str =
            "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
            01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234é6789";
        let record = arenite_failure_t::new(&Error::argument(LONG));
        assert_eq!(record.message[ARENITE_MESSAGE_BYTES - 1], 0);
        assert_eq!(text(&record), LONG[..ARENITE_MESSAGE_BYTES - 1]);
        for shift in 0..4 {
            let error = Error::argument(&LONG[shift..]).tensor(1);
            assert!(text(&arenite_failure_t::new(&error)).len() >= ARENITE_MESSAGE_BYTES - 2, "cut at a character");
        }
    }
}
