//! What changing shapes, control flow and many instances cost. Prints tables:
//!
//! ```text
//! cargo bench --features model --bench arena            all of it
//! cargo bench --features model --bench arena -- stream  one of stream, control, instances, growth
//! ```
//!
//! Heap calls are those of the whole program, counted by its allocator.

mod control;
mod growth;
mod instances;
mod stream;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Writes the first and last byte of every page of a tensor, as an operator would touch it.
fn touch(found: Option<(std::ptr::NonNull<u8>, usize)>) {
    let Some((data, bytes)) = found else { return };
    for at in (0..bytes).step_by(4096) {
        // SAFETY: `at` lies in the tensor.
        let byte = unsafe { data.as_ptr().add(at) };
        // SAFETY: as above, and this thread alone uses the tensor.
        unsafe { byte.write_volatile(1) };
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if run("stream") {
        stream::print();
    }
    if run("control") {
        control::print();
    }
    if run("instances") {
        instances::print();
    }
    if run("growth") {
        growth::print();
    }
}
