//! Where records live: a `Vec` with reserved capacity, or a slice lent by the caller.

/// A growing array of `T` that can refuse to grow. It never moves its elements by itself.
pub trait Store<T> {
    /// The elements in use.
    fn slice(&self) -> &[T];
    /// The elements in use.
    fn slice_mut(&mut self) -> &mut [T];
    /// Adds an element, or returns false where there is no room.
    fn push(&mut self, value: T) -> bool;
    /// How many more [`Store::push`] will accept.
    fn room(&self) -> usize;
}

/// A store over a slice the caller lends: for devices without a heap.
#[derive(Debug)]
pub struct Borrowed<'a, T> {
    slice: &'a mut [T],
    len: usize,
}

impl<'a, T> Borrowed<'a, T> {
    /// An empty store that can hold as many elements as `slice`.
    pub fn new(slice: &'a mut [T]) -> Borrowed<'a, T> {
        Borrowed { slice, len: 0 }
    }
}

impl<T> Store<T> for Borrowed<'_, T> {
    fn slice(&self) -> &[T] {
        &self.slice[..self.len]
    }

    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.slice[..self.len]
    }

    fn push(&mut self, value: T) -> bool {
        match self.slice.get_mut(self.len) {
            Some(slot) => {
                *slot = value;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    fn room(&self) -> usize {
        self.slice.len() - self.len
    }
}

#[cfg(feature = "alloc")]
impl<T> Store<T> for alloc::vec::Vec<T> {
    fn slice(&self) -> &[T] {
        self
    }

    fn slice_mut(&mut self) -> &mut [T] {
        self
    }

    // Only up to the capacity reserved beforehand: growing would call the system under the pool's lock.
    fn push(&mut self, value: T) -> bool {
        if self.len() == self.capacity() {
            return false;
        }
        alloc::vec::Vec::push(self, value);
        true
    }

    fn room(&self) -> usize {
        self.capacity() - self.len()
    }
}
