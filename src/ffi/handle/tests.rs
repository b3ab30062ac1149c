use super::*;
use crate::ffi::status::{
    ARENITE_ERR_ARGUMENT, ARENITE_ERR_BUSY, ARENITE_ERR_CAPACITY, ARENITE_ERR_INTERNAL, ARENITE_ERR_NULL,
};
use std::ptr;
use std::thread;

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
