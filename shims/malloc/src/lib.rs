//! `libarenite_malloc.so`: an arenite pool for the large blocks of unmodified programs.
//!
//! Loaded before the C library (`LD_PRELOAD`) it defines the functions of the `malloc` family. Blocks from a settable size
//! up come from one pool, which finds out where the program's requests repeat and then serves them from planned places;
//! everything smaller is the next library's, as before.
//!
//! ```text
//! malloc(n) ─┬─ n < ARENITE_MALLOC_MIN ──────────────> the next malloc (libc, or another preload)
//!            └─ else ─> pool ─┬─ served: an address in the reservation
//!                             └─ refused ────────────> the next malloc
//! free(p) ───── in the reservation? pool : the next free
//! ```
//!
//! The pool's own records come from the next `malloc`, never from this one. Threads: any. Fork: the pool's locks are taken
//! before and released after, in both processes.
#![cfg(target_os = "linux")]

mod family;
mod next;
mod pool;
mod report;
mod reserve;
mod settings;

#[global_allocator]
static RECORDS: next::Records = next::Records;

/// Runs when the library is loaded, before the program's own code; until then everything is the next library's.
#[used]
#[link_section = ".init_array"]
static START: extern "C" fn() = start;

/// Runs when the program ends by `exit` or by returning from `main`.
#[used]
#[link_section = ".fini_array"]
static END: extern "C" fn() = end;

extern "C" fn start() {
    next::resolve();
    pool::start(settings::Settings::of_the_environment());
}

extern "C" fn end() {
    report::write();
}
