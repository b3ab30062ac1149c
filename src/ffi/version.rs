//! The version: of the release from Cargo.toml, of the binary interface from here.

use core::ffi::{c_char, CStr};

/// Version of the binary interface, and the number in the shared library's name (`libarenite.so.0`). It changes when a
/// program compiled against an older header would misbehave with a newer library.
pub const ARENITE_ABI_VERSION: u32 = 0;

/// Version of the binary interface of the library that is running; compare it with `ARENITE_ABI_VERSION` at start-up.
///
/// Threads: any.
#[no_mangle]
#[must_use]
pub extern "C" fn arenite_abi_version() -> u32 {
    ARENITE_ABI_VERSION
}

/// Version of the library that is running, for instance "0.1.0"; compare it with `ARENITE_VERSION_STRING`.
///
/// Returns: static text, never null. Threads: any.
#[no_mangle]
#[must_use]
pub extern "C" fn arenite_version_string() -> *const c_char {
    const TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no zero in it"),
    };
    TEXT.as_ptr()
}
