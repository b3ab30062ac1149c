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

use std::alloc::{alloc, dealloc, Layout};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::abi;
use super::guard::{self, PANICKED};
use super::status::{arenite_failure_t, arenite_status_t, status, ARENITE_OK};
use crate::error::{Error, Kind};

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

/// A second handle of a call, shared: for instance the graph that a planner is given.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call.
pub(crate) unsafe fn borrow<'a, T: Opaque>(handle: *const T) -> Result<Borrowed<'a, T>, Error> {
    // SAFETY: the caller's contract is that of `find`.
    Borrowed::new(unsafe { find(handle) }?)
}

/// A second handle of a call, exclusive.
///
/// # Safety
/// `handle` is null or came from [`new`] and is not destroyed during the call.
pub(crate) unsafe fn borrow_mut<'a, T: Opaque>(handle: *mut T) -> Result<BorrowedMut<'a, T>, Error> {
    // SAFETY: the caller's contract is that of `find`.
    BorrowedMut::new(unsafe { find(handle) }?)
}

/// Shared use of a handle's value until dropped.
pub(crate) struct Borrowed<'a, T: Opaque>(&'a Handle<T>);

impl<'a, T: Opaque> Borrowed<'a, T> {
    fn new(handle: &'a Handle<T>) -> Result<Self, Error> {
        handle.state.enter(false)?;
        Ok(Self(handle))
    }
}

impl<T: Opaque> Deref for Borrowed<'_, T> {
    type Target = T::Inner;
    fn deref(&self) -> &T::Inner {
        // SAFETY: `enter(false)` keeps exclusive users out until the drop.
        unsafe { &*self.0.value.get() }
    }
}

impl<T: Opaque> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        self.0.state.leave(false);
    }
}

/// Exclusive use of a handle's value until dropped. Dropped by a panic, it poisons the handle.
pub(crate) struct BorrowedMut<'a, T: Opaque> {
    handle: &'a Handle<T>,
    /// Whether a panic was under way when the use began; that one is not ours.
    before: bool,
}

impl<'a, T: Opaque> BorrowedMut<'a, T> {
    fn new(handle: &'a Handle<T>) -> Result<Self, Error> {
        handle.state.enter(true)?;
        Ok(Self { handle, before: thread::panicking() })
    }
}

impl<T: Opaque> Deref for BorrowedMut<'_, T> {
    type Target = T::Inner;
    fn deref(&self) -> &T::Inner {
        // SAFETY: `enter(true)` keeps everybody else out until the drop.
        unsafe { &*self.handle.value.get() }
    }
}

impl<T: Opaque> DerefMut for BorrowedMut<'_, T> {
    fn deref_mut(&mut self) -> &mut T::Inner {
        // SAFETY: `enter(true)` keeps everybody else out until the drop, and `&mut self` this user's other references.
        unsafe { &mut *self.handle.value.get() }
    }
}

impl<T: Opaque> Drop for BorrowedMut<'_, T> {
    fn drop(&mut self) {
        if !self.before && thread::panicking() {
            self.handle.state.poisoned.store(true, Ordering::Release);
        }
        self.handle.state.leave(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::status::{
        ARENITE_ERR_ARGUMENT, ARENITE_ERR_BUSY, ARENITE_ERR_CAPACITY, ARENITE_ERR_INTERNAL, ARENITE_ERR_NULL,
    };
    use std::ptr;

    struct cell_t {
        _opaque: [u8; 0],
    }
    impl Opaque for cell_t {
        type Inner = u64;
        const MAGIC: [u8; 4] = *b"cell";
        const NULL: &'static str = "the cell is null";
    }

    struct other_t {
        _opaque: [u8; 0],
    }
    impl Opaque for other_t {
        type Inner = String;
        const MAGIC: [u8; 4] = *b"othr";
        const NULL: &'static str = "the other is null";
    }

    /// A live handle that is destroyed at the end of the test.
    struct Live<T: Opaque>(*mut T);
    impl<T: Opaque> Drop for Live<T> {
        fn drop(&mut self) {
            // SAFETY: made by `new` in the test and not destroyed before.
            assert_eq!(unsafe { destroy(self.0) }, ARENITE_OK);
        }
    }

    fn set(cell: *mut cell_t, body: impl FnOnce(&mut u64) -> Result<(), Error>) -> arenite_status_t {
        // SAFETY: the tests pass null, a live handle, or a live handle of another type.
        unsafe { exclusive(cell, body) }
    }

    fn failure(cell: *const cell_t) -> arenite_failure_t {
        let mut record = arenite_failure_t::NONE;
        // SAFETY: the cell is live and the record has its size set.
        assert_eq!(unsafe { last_failure(cell, &mut record) }, ARENITE_OK);
        record
    }

    #[test]
    fn null_wrong_and_busy_handles_are_refused() {
        let cell = Live(new::<cell_t>(1).unwrap());
        let other = Live(new::<other_t>("text".into()).unwrap());
        assert_eq!(set(ptr::null_mut(), |_| Ok(())), ARENITE_ERR_NULL);
        assert_eq!(set(other.0.cast(), |_| Ok(())), ARENITE_ERR_ARGUMENT);
        assert_eq!(set(cell.0.cast::<u8>().wrapping_add(1).cast(), |_| Ok(())), ARENITE_ERR_ARGUMENT);
        let inside = set(cell.0, |_| {
            assert_eq!(set(cell.0, |_| Ok(())), ARENITE_ERR_BUSY, "a callback that re-enters");
            // SAFETY: the cell is live.
            assert_eq!(unsafe { shared(cell.0, |_| Ok(())) }, ARENITE_ERR_BUSY);
            // SAFETY: the cell is live.
            assert_eq!(unsafe { destroy(cell.0) }, ARENITE_ERR_BUSY, "destroyed while in use");
            Ok(())
        });
        assert_eq!(inside, ARENITE_OK);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { destroy(ptr::null_mut::<cell_t>()) }, ARENITE_OK);
    }

    #[test]
    fn shared_calls_run_side_by_side() {
        let cell = Live(new::<cell_t>(4).unwrap());
        let address = cell.0 as usize;
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let cell = ptr::with_exposed_provenance::<cell_t>(address);
                        // SAFETY: the cell outlives the scope.
                        let status = unsafe {
                            shared(cell, |v| {
                                assert_eq!(*v, 4);
                                Ok(())
                            })
                        };
                        assert_eq!(status, ARENITE_OK);
                        // SAFETY: as above.
                        let status = unsafe { shared(cell, |_| Err(Error::capacity("full").needed(4))) };
                        assert_eq!(status, ARENITE_ERR_CAPACITY);
                        assert_eq!(failure(cell).needed, 4, "a record is whole");
                    }
                });
            }
        });
        assert_eq!(set(cell.0, |_| Ok(())), ARENITE_OK, "everybody left");
    }

    #[test]
    fn a_failure_is_kept_until_the_next_one() {
        let cell = Live(new::<cell_t>(1).unwrap());
        assert_eq!(failure(cell.0).status, ARENITE_OK);
        assert_eq!(set(cell.0, |_| Err(Error::capacity("too small").tensor(3))), ARENITE_ERR_CAPACITY);
        assert_eq!(set(cell.0, |_| Ok(())), ARENITE_OK);
        assert_eq!((failure(cell.0).status, failure(cell.0).subject_index), (ARENITE_ERR_CAPACITY, 3));
    }

    #[test]
    fn br_57_a_panic_poisons_the_handle_and_destroy_still_works() {
        let cell = Live(new::<cell_t>(1).unwrap());
        let second = Live(new::<cell_t>(2).unwrap());
        let third = Live(new::<cell_t>(3).unwrap());
        let status = set(cell.0, |_| {
            // SAFETY: the cell is live.
            let _second = unsafe { borrow_mut(second.0) }?;
            // SAFETY: the cell is live.
            let _third = unsafe { borrow(third.0) }?;
            panic!("expected by the test")
        });
        assert_eq!(status, ARENITE_ERR_INTERNAL);
        assert_eq!(set(cell.0, |_| Ok(())), ARENITE_ERR_INTERNAL);
        assert_eq!(failure(cell.0).status, ARENITE_ERR_INTERNAL);
        assert_eq!(set(second.0, |_| Ok(())), ARENITE_ERR_INTERNAL, "a second exclusive handle is poisoned too");
        assert_eq!(set(third.0, |_| Ok(())), ARENITE_OK, "a shared one is whole");
    }

    struct nest_t {
        _opaque: [u8; 0],
    }
    /// A value whose drop calls back into its own handle.
    struct Nest(usize);
    impl Drop for Nest {
        fn drop(&mut self) {
            let handle = ptr::with_exposed_provenance_mut::<nest_t>(self.0);
            // SAFETY: the handle is being destroyed and its memory goes last.
            assert_eq!(unsafe { exclusive(handle, |_| Ok(())) }, ARENITE_ERR_BUSY);
            // SAFETY: as above.
            assert_eq!(unsafe { destroy(handle) }, ARENITE_ERR_BUSY);
        }
    }
    impl Opaque for nest_t {
        type Inner = Nest;
        const MAGIC: [u8; 4] = *b"nest";
        const NULL: &'static str = "the nest is null";
    }

    #[test]
    fn a_handle_is_busy_while_its_value_is_dropped() {
        let nest = new::<nest_t>(Nest(0)).unwrap();
        let address = nest.expose_provenance();
        // SAFETY: the handle is live.
        let set = unsafe {
            exclusive(nest, |n| {
                n.0 = address;
                Ok(())
            })
        };
        // SAFETY: the handle is live.
        assert_eq!((set, unsafe { destroy(nest) }), (ARENITE_OK, ARENITE_OK));
    }

    #[test]
    fn an_any_thread_call_reports_to_the_callers_record() {
        let cell = Live(new::<cell_t>(1).unwrap());
        let mut record = arenite_failure_t::NONE;
        // SAFETY: the cell is live, nobody uses it exclusively, and the record has its size set.
        let status = unsafe { any_thread(cell.0, &mut record, |_| Err(Error::capacity("full").needed(9))) };
        assert_eq!((status, record.status, record.needed), (ARENITE_ERR_CAPACITY, ARENITE_ERR_CAPACITY, 9));
        // SAFETY: as above; a null record is allowed.
        let status = unsafe { any_thread(cell.0, ptr::null_mut(), |_| panic!("expected by the test")) };
        assert_eq!(status, ARENITE_ERR_INTERNAL);
        // SAFETY: as above.
        assert_eq!(unsafe { any_thread(cell.0, ptr::null_mut(), |_| Ok(())) }, ARENITE_ERR_INTERNAL);
    }
}
