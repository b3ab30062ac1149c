//! Use of a handle's value for as long as a call needs it, shared or exclusive.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::thread;

use super::{find, Handle, Opaque};
use crate::error::Error;

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
    pub(super) fn new(handle: &'a Handle<T>) -> Result<Self, Error> {
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
    pub(super) fn new(handle: &'a Handle<T>) -> Result<Self, Error> {
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
