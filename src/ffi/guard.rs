//! The guard around every export: no panic crosses the boundary, and outputs are written only on success.
//!
//! `call` is for functions without a handle; `handle` builds the others on `caught`. The host's panic hook is left
//! alone, so a panic is reported the way the program has chosen. Built with `panic=abort`, or without `std`, a panic
//! ends the process instead.

use core::ptr::NonNull;

use super::abi;
use super::status::{arenite_failure_t, arenite_status_t, status, ARENITE_OK};
use crate::error::{Error, Kind};

/// A panic was caught.
pub(crate) struct Panicked;

/// What a caught panic is reported as.
pub(crate) const PANICKED: Error = Error::internal("a bug in arenite was caught, please report it");

/// Runs `body` and catches its panic.
#[cfg(feature = "std")]
pub(crate) fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Panicked> {
    use std::panic::{catch_unwind, AssertUnwindSafe};
    // Nothing that `body` may have left half done is looked at again: the caller poisons the handle.
    let guarded = AssertUnwindSafe(|| {
        inject::point();
        body()
    });
    catch_unwind(guarded).map_err(|payload| {
        // The payload is an arbitrary value and its drop may panic too; that one is leaked.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        Panicked
    })
}

/// Runs `body`; without `std` a panic does not unwind.
#[cfg(not(feature = "std"))]
pub(crate) fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Panicked> {
    Ok(body())
}

/// Without `std` a panic calls C's `abort`, so the host decides what stopping means.
#[cfg(all(feature = "bare", not(feature = "std"), not(test)))]
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    extern "C" {
        /// Of the C library, which every C program has; a microcontroller's may be the application's own.
        fn abort() -> !;
    }
    // SAFETY: `abort` has no preconditions and does not return.
    unsafe { abort() }
}

// The core library that comes compiled for a hosted target names the unwinder's personality routine, which without std
// nobody provides and nothing calls. Weak, so that the real one wins where another archive has it.
#[cfg(all(feature = "bare", not(feature = "std"), not(test), any(target_os = "linux", target_os = "android")))]
core::arch::global_asm!(".weak rust_eh_personality", "rust_eh_personality:", ".byte 0");

/// Runs the body of an export that has no handle.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Error>) -> arenite_status_t {
    match run(body) {
        Ok(()) => ARENITE_OK,
        Err(error) => status(error.kind),
    }
}

/// Runs the body of an export that has no handle but an optional failure record, which is written on failure only.
///
/// # Safety
/// `failure` is null or meets the contract of [`abi::fill`].
pub(crate) unsafe fn call_with(
    failure: *mut arenite_failure_t,
    body: impl FnOnce() -> Result<(), Error>,
) -> arenite_status_t {
    match run(body) {
        Ok(()) => ARENITE_OK,
        Err(error) => {
            // SAFETY: the caller's contract is that of `report`.
            unsafe { report(failure, &error) };
            status(error.kind)
        }
    }
}

fn run(body: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    caught(body).unwrap_or(Err(PANICKED))
}

/// Writes `error` to an optional failure record. A record that is refused stays untouched: the status of the failed
/// call matters more than the complaint about its record.
///
/// # Safety
/// `failure` is null or meets the contract of [`abi::fill`].
pub(crate) unsafe fn report(failure: *mut arenite_failure_t, error: &Error) {
    if !failure.is_null() {
        // SAFETY: `failure` is not null, and the caller's contract is that of `fill`.
        let _ = unsafe { abi::fill(failure, &arenite_failure_t::new(error), "") };
    }
}

/// A checked output parameter. Taking it writes nothing; `write` is called when nothing can fail any more.
pub(crate) struct Out<T>(NonNull<T>);

/// Checks an output parameter: `Null` with `reason` when null, `Alignment` when it cannot hold a `T`.
///
/// # Safety
/// `pointer` is null or valid for one write of a `T` until the result is gone.
pub(crate) unsafe fn out<T>(pointer: *mut T, reason: &'static str) -> Result<Out<T>, Error> {
    let pointer = NonNull::new(pointer).ok_or(Error::new(Kind::Null, reason))?;
    if !pointer.is_aligned() {
        return Err(Error::alignment("an output pointer is not aligned for its type"));
    }
    Ok(Out(pointer))
}

impl<T: Copy> Out<T> {
    /// Writes the output.
    pub(crate) fn write(self, value: T) {
        // SAFETY: the contract of `out` makes the pointer valid for a write, and `out` checked its alignment.
        unsafe { self.0.write(value) }
    }
}

/// Panics on demand, to test what the guard does with one.
#[cfg(feature = "std")]
mod inject {
    #[cfg(feature = "inject-panic")]
    pub(super) fn point() {
        let fire = ARMED.get() == 1;
        ARMED.set(ARMED.get().saturating_sub(1));
        assert!(!fire, "injected panic");
    }

    #[cfg(not(feature = "inject-panic"))]
    pub(super) fn point() {}

    #[cfg(feature = "inject-panic")]
    std::thread_local! {
        // Per thread, so that tests in other threads are not hit.
        static ARMED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    /// Makes the `nth` guarded call from now on this thread panic; 0 disarms. Not part of the API: only builds with
    /// the feature `inject-panic` have it, and the header does not.
    #[cfg(feature = "inject-panic")]
    #[no_mangle]
    pub extern "C" fn arenite_inject_panic(nth: u32) {
        ARMED.set(nth);
    }
}

#[cfg(all(feature = "std", feature = "inject-panic"))]
pub use inject::arenite_inject_panic;

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::ffi::status::{ARENITE_ERR_INTERNAL, ARENITE_ERR_NULL};

    #[test]
    fn br_57_a_panic_becomes_internal_and_the_record_says_so() {
        let mut record = arenite_failure_t::NONE;
        // SAFETY: `record` is a live, writable record with its size set.
        let status = unsafe { call_with(&mut record, || panic!("expected by the test")) };
        assert_eq!((status, record.status), (ARENITE_ERR_INTERNAL, ARENITE_ERR_INTERNAL));
        assert_eq!(call(|| panic!("expected by the test")), ARENITE_ERR_INTERNAL);
    }

    #[test]
    fn a_payload_whose_drop_panics_is_contained() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("expected by the test");
            }
        }
        assert_eq!(call(|| std::panic::panic_any(Bomb)), ARENITE_ERR_INTERNAL);
    }

    #[test]
    fn outputs_are_checked_before_and_written_after() {
        let mut value = 7u64;
        let set = |pointer: *mut u64, fail: bool| {
            call(|| {
                // SAFETY: `pointer` is null, misaligned on purpose (and then refused), or `value`.
                let out = unsafe { out(pointer, "the pointer is null") }?;
                if fail {
                    return Err(Error::busy("busy"));
                }
                out.write(9);
                Ok(())
            })
        };
        assert_eq!(set(core::ptr::null_mut(), false), ARENITE_ERR_NULL);
        assert_eq!(set((&raw mut value).cast::<u8>().wrapping_add(1).cast(), false), status(Kind::Alignment));
        assert_eq!(set(&mut value, true), status(Kind::Busy));
        assert_eq!(value, 7);
        assert_eq!(set(&mut value, false), ARENITE_OK);
        assert_eq!(value, 9);
    }
}
