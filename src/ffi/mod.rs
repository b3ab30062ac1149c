//! The C ABI: thin functions over the safe API, one file per C noun.
//!
//! `status` holds the codes and the failure record, `guard` keeps panics from crossing the boundary, `handle` makes
//! opaque objects out of Rust values, `abi` reads what C passes in, `lite` mirrors TfLite's structs, `version` the
//! version. The conventions that C callers rely on are the first chapter of `include/arenite.h`; the text of that
//! header comes from the documentation of the items here (up to a `# Safety` heading, which is for Rust readers).
//!
//! With `bare` and without `std` only what needs no heap is exported.
#![allow(non_camel_case_types, non_upper_case_globals)] // C names: `arenite_plan_t`, `kAreniteArenaRw`
#![allow(dead_code)] // helpers wait for the nouns, and the bare build uses few of them
#![allow(clippy::doc_markdown)] // the documentation is C documentation

pub mod abi;
pub mod guard;
#[cfg(feature = "std")]
pub mod handle;
pub mod lite;
pub mod status;
pub mod version;

pub use lite::*;
pub use status::*;
pub use version::*;
