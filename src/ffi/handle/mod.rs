//! Opaque handles: a Rust value behind a pointer that C keeps.
//!
//! In front of the value stand a magic number per type, a count of the calls that are using it, the poison mark and the
//! last failure:
//!
//! ```text
//! pointer -> | magic | users | poisoned | last failure | value |
//! ```
//!
//! `users` is what makes a Rust reference from a C pointer sound: 0 nobody, n > 0 that many shared users, -1 one
//! exclusive user. A call that breaks the thread rule in the header, or a callback that calls back into its own handle,
//! gets `BUSY` instead of a data race. The magic number catches a handle of another type, and as far as anything can a
//! handle that is already destroyed.

mod borrow;

use std::alloc::{alloc, dealloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::abi;
use super::guard::{self, PANICKED};
use super::status::{arenite_failure_t, arenite_status_t, status, ARENITE_OK};
use crate::error::{Error, Kind};

#[cfg(test)]
pub(crate) use borrow::borrow_mut;
pub(crate) use borrow::{borrow, Borrowed, BorrowedMut};

/// A C handle type: a struct that only its name is known of in C.
pub(crate) trait Opaque: Sized {
    /// What is behind the pointer. `Send` and `Sync` because C may call from any thread and share `const` calls.
    type Inner: Send + Sync;
    /// Four letters that tell the types apart.
    const MAGIC: [u8; 4];
    /// The reason given for a null handle, for instance "the planner is null".
    const NULL: &'static str;
}

/// The magic number of a handle that was destroyed.
const DEAD: u32 = 0xDEAD_D00D;
/// `users` during an exclusive call.
const EXCLUSIVE: i32 = -1;

struct State {
    users: AtomicI32,
    poisoned: AtomicBool,
    /// The record of the last failing call. A mutex because concurrent shared calls may both fail.
    failure: Mutex<arenite_failure_t>,
}

#[repr(C)]
struct Handle<T: Opaque> {
    /// First, so that it is found whatever the type of the handle.
    magic: AtomicU32,
    state: State,
    value: UnsafeCell<T::Inner>,
}

impl State {
    /// Runs a call on the handle: poisoned, body, poison on panic, record of the failure.
    fn run(&self, body: impl FnOnce() -> Result<(), Error>) -> arenite_status_t {
        if self.poisoned.load(Ordering::Acquire) {
            // The record of the panic stays.
            return status(Kind::Internal);
        }
        let error = match guard::caught(body) {
            Ok(Ok(())) => return ARENITE_OK,
            Ok(Err(error)) => error,
            Err(guard::Panicked) => {
                self.poisoned.store(true, Ordering::Release);
                PANICKED
            }
        };
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = arenite_failure_t::new(&error);
        status(error.kind)
    }

    fn enter(&self, exclusive: bool) -> Result<(), Error> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(PANICKED);
        }
        let next = |users: i32| match (users, exclusive) {
            (0, true) => Some(EXCLUSIVE),
            (0..=0xFFFF, false) => Some(users + 1),
            _ => None,
        };
        match self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, next) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy("another call is using the object")),
        }
    }

    fn leave(&self, exclusive: bool) {
        if exclusive {
            self.users.store(0, Ordering::Release);
        } else {
            self.users.fetch_sub(1, Ordering::Release);
        }
    }
}

impl<T: Opaque> Handle<T> {
    const MAGIC: u32 = u32::from_le_bytes(T::MAGIC);
}

/// Checks a handle without using its value.
///
/// # Safety
/// `handle` is null or came from [`new`] for some type and is not destroyed.
unsafe fn find<'a, T: Opaque>(handle: *const T) -> Result<&'a Handle<T>, Error> {
    if handle.is_null() {
        return Err(Error::new(Kind::Null, T::NULL));
    }
    let handle = handle.cast::<Handle<T>>();
    if !handle.is_aligned() {
        return Err(Error::argument("the pointer is not a handle"));
    }
    // SAFETY: every handle begins with its magic number, aligned as just checked, and is live per the contract.
    let magic = unsafe { &*handle.cast::<AtomicU32>() };
    match magic.load(Ordering::Acquire) {
        // SAFETY: the number says that `new::<T>` made it, so it is a live `Handle<T>`; only shared access through atomics,
        // the mutex and the cell follows.
        m if m == Handle::<T>::MAGIC => Ok(unsafe { &*handle }),
        DEAD => Err(Error::argument("the handle was destroyed")),
        _ => Err(Error::argument("the handle is of another type")),
    }
}

/// Makes a handle of a value; `NoMemory` where the allocator has nothing left.
pub(crate) fn new<T: Opaque>(value: T::Inner) -> Result<*mut T, Error> {
    let layout = Layout::new::<Handle<T>>();
    // SAFETY: the layout is not empty, as the magic number is in it.
    let place = unsafe { alloc(layout) }.cast::<Handle<T>>();
    if place.is_null() {
        return Err(Error::no_memory("no memory for the object").needed(layout.size() as u64));
    }
    let handle = Handle {
        magic: AtomicU32::new(Handle::<T>::MAGIC),
        state: State {
            users: AtomicI32::new(0),
            poisoned: AtomicBool::new(false),
            failure: Mutex::new(arenite_failure_t::NONE),
        },
        value: UnsafeCell::new(value),
    };
    // SAFETY: `place` was just allocated with the layout of a `Handle<T>`.
    unsafe { place.write(handle) };
    Ok(place.cast())
}

/// The body of a `_create` export: makes the value and hands its handle to `*out`.
///
/// # Safety
/// `out` is null or valid for one pointer write; `failure` is null or meets the contract of [`abi::fill`].
pub(crate) unsafe fn create<T: Opaque>(
    out: *mut *mut T,
    failure: *mut arenite_failure_t,
    make: impl FnOnce() -> Result<T::Inner, Error>,
) -> arenite_status_t {
    let body = || {
        // SAFETY: the caller's contract is that of `out`.
        let out = unsafe { guard::out(out, "the pointer for the new object is null") }?;
        out.write(new(make()?)?);
        Ok(())
    };
    // SAFETY: the caller's contract on `failure` is that of `call_with`.
    unsafe { guard::call_with(failure, body) }
}

/// The body of a `_destroy` export. Null is a no-op, a poisoned handle is destroyed like any other, one in use is `BUSY`.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed; nobody uses it after an `OK`.
pub(crate) unsafe fn destroy<T: Opaque>(handle: *mut T) -> arenite_status_t {
    if handle.is_null() {
        return ARENITE_OK;
    }
    guard::call(|| {
        // SAFETY: the caller's contract is that of `find`.
        let found = unsafe { find(handle) }?;
        found
            .state
            .users
            .compare_exchange(0, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| Error::busy("another call is using the object"))?;
        let memory = Memory(handle.cast::<Handle<T>>());
        // SAFETY: `users` says that nobody else is using it, and `memory` frees its place without dropping it again.
        let value = unsafe { found.value.get().read() };
        // A callback that gives memory back may call into the handle: it is still there and says `BUSY`.
        drop(value);
        drop(memory);
        Ok(())
    })
}

/// The memory of a handle whose value was moved out. Dropped after the value, also when the value's drop panics.
struct Memory<T: Opaque>(*mut Handle<T>);

impl<T: Opaque> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: `destroy` made it of a live handle that nobody else is using.
        unsafe { &*self.0 }.magic.store(DEAD, Ordering::Release);
        // SAFETY: as above.
        let state = unsafe { &raw mut (*self.0).state };
        // SAFETY: as above; the state is dropped once, here.
        unsafe { state.drop_in_place() };
        // SAFETY: allocated by `new` with this layout; nothing in it is alive any more.
        unsafe { dealloc(self.0.cast(), Layout::new::<Handle<T>>()) };
    }
}

/// The body of a non-`const` call: exclusive use of the value.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call.
pub(crate) unsafe fn exclusive<T: Opaque>(
    handle: *mut T,
    body: impl FnOnce(&mut T::Inner) -> Result<(), Error>,
) -> arenite_status_t {
    // SAFETY: the caller's contract is that of `find`.
    match unsafe { find(handle) } {
        Ok(found) => found.state.run(|| body(&mut *BorrowedMut::new(found)?)),
        Err(error) => status(error.kind),
    }
}

/// The body of a `const` call: the value is shared with other `const` calls.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call.
pub(crate) unsafe fn shared<T: Opaque>(
    handle: *const T,
    body: impl FnOnce(&T::Inner) -> Result<(), Error>,
) -> arenite_status_t {
    // SAFETY: the caller's contract is that of `find`.
    match unsafe { find(handle) } {
        Ok(found) => found.state.run(|| body(&*Borrowed::new(found)?)),
        Err(error) => status(error.kind),
    }
}

/// The body of a call on an any-thread noun (pool, frame, lease): the value synchronises itself, so no user is counted,
/// and the failure goes to the caller's optional record.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call; nobody uses [`exclusive`] on its type;
/// `failure` is null or meets the contract of [`abi::fill`].
pub(crate) unsafe fn any_thread<T: Opaque>(
    handle: *const T,
    failure: *mut arenite_failure_t,
    body: impl FnOnce(&T::Inner) -> Result<(), Error>,
) -> arenite_status_t {
    // SAFETY: the caller's contract is that of `find`.
    let error = match unsafe { find(handle) } {
        Err(error) => error,
        Ok(found) if found.state.poisoned.load(Ordering::Acquire) => PANICKED,
        Ok(found) => {
            // SAFETY: no exclusive reference exists: the contract rules `exclusive` out for this type.
            let value = unsafe { &*found.value.get() };
            match guard::caught(|| body(value)) {
                Ok(Ok(())) => return ARENITE_OK,
                Ok(Err(error)) => error,
                Err(guard::Panicked) => {
                    found.state.poisoned.store(true, Ordering::Release);
                    PANICKED
                }
            }
        }
    };
    // SAFETY: the caller's contract on `failure` is that of `report`.
    unsafe { guard::report(failure, &error) };
    status(error.kind)
}

/// The body of a `_last_failure` export: copies the record of the last failing call, also from a poisoned handle.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call; `out` is null or meets the contract of
/// [`abi::fill`].
pub(crate) unsafe fn last_failure<T: Opaque>(handle: *const T, out: *mut arenite_failure_t) -> arenite_status_t {
    guard::call(|| {
        // SAFETY: the caller's contract is that of `find`.
        let found = unsafe { find(handle) }?;
        let record = *found.state.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller's contract is that of `fill`.
        unsafe { abi::fill(out, &record, "the pointer for the failure record is null") }
    })
}

#[cfg(test)]
mod tests;
