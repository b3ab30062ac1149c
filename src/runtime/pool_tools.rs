//! AddressSanitizer and Valgrind: a program that runs under one of them sees a use after free, and an overrun, inside a
//! pool too.
//!
//! The library itself is not instrumented; the sanitizer's two functions are looked up in the running program, once.
//! Valgrind is asked by instructions that do nothing elsewhere, see [`super::valgrind`].

use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::OnceLock;

use super::valgrind::{self, Request};

type Mark = unsafe extern "C" fn(*const c_void, usize);

#[derive(Clone, Copy)]
struct Sanitizer {
    poison: Mark,
    unpoison: Mark,
}

fn sanitizer() -> Option<Sanitizer> {
    static FOUND: OnceLock<Option<Sanitizer>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        Some(Sanitizer {
            poison: symbol(c"__asan_poison_memory_region")?,
            unpoison: symbol(c"__asan_unpoison_memory_region")?,
        })
    })
}

#[cfg(unix)]
fn symbol(name: &core::ffi::CStr) -> Option<Mark> {
    // SAFETY: the name is a C string; looking a symbol up in the program has no other effect.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: a symbol of that name is the sanitizer's interface function, whose signature `Mark` is.
    Some(unsafe { core::mem::transmute::<*mut c_void, Mark>(found) })
}

#[cfg(not(unix))]
fn symbol(_name: &core::ffi::CStr) -> Option<Mark> {
    None
}

/// Whether somebody watches the program's memory.
pub(crate) fn present() -> bool {
    sanitizer().is_some() || valgrind::running()
}

/// From here on an access to these bytes is reported.
pub(crate) fn poison(from: NonNull<u8>, offset: usize, bytes: usize) {
    if let Some(s) = sanitizer().filter(|_| bytes > 0) {
        // SAFETY: the range is memory of a pool, which the sanitizer's shadow covers; only shadow bytes are written.
        unsafe { (s.poison)(from.as_ptr().wrapping_add(offset).cast(), bytes) };
    }
    if valgrind::running() && bytes > 0 {
        valgrind::tell(Request::NoAccess, from.as_ptr() as usize + offset, bytes);
    }
}

/// The bytes may be accessed again.
pub(crate) fn unpoison(from: NonNull<u8>, bytes: usize) {
    if let Some(s) = sanitizer() {
        // SAFETY: as for `poison`.
        unsafe { (s.unpoison)(from.as_ptr().cast(), bytes) };
    }
    if valgrind::running() {
        valgrind::tell(Request::Defined, from.as_ptr() as usize, bytes);
    }
}

/// A block was handed out: Valgrind names it in its reports, and its contents are undefined.
pub(crate) fn handed_out(block: NonNull<u8>, bytes: usize) {
    if valgrind::running() {
        valgrind::tell(Request::HandedOut, block.as_ptr() as usize, bytes);
    }
}

/// A block came back: from here on Valgrind says where that was.
pub(crate) fn given_back(block: NonNull<u8>) {
    if valgrind::running() {
        valgrind::tell(Request::GivenBack, block.as_ptr() as usize, 0);
    }
}

/// Runs `look` without reports: what it reads is nobody's, and it knows that.
pub(crate) fn quietly<R>(look: impl FnOnce() -> R) -> R {
    if !valgrind::running() {
        return look();
    }
    valgrind::tell(Request::Quiet, 0, 0);
    let seen = look();
    valgrind::tell(Request::Loud, 0, 0);
    seen
}
