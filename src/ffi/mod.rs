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
#[cfg(feature = "std")]
pub mod arena;
pub mod bare;
#[cfg(feature = "std")]
pub mod fit;
#[cfg(feature = "std")]
pub mod frame;
#[cfg(feature = "std")]
pub mod graph;
pub mod guard;
#[cfg(feature = "std")]
pub mod handle;
#[cfg(feature = "std")]
pub mod incremental;
#[cfg(feature = "std")]
pub mod incremental_options;
#[cfg(feature = "std")]
pub mod incremental_report;
#[cfg(feature = "std")]
pub mod instances;
#[cfg(feature = "std")]
pub mod lease;
pub mod lite;
pub mod lite_tables;
#[cfg(feature = "std")]
pub mod mapping;
#[cfg(feature = "std")]
pub mod memory_policy;
pub mod options;
#[cfg(feature = "std")]
pub mod order;
#[cfg(feature = "std")]
pub mod plan;
#[cfg(feature = "std")]
pub mod planner;
#[cfg(feature = "std")]
pub mod pool;
#[cfg(feature = "std")]
pub mod pool_blocks;
#[cfg(feature = "std")]
pub mod pool_inspect;
#[cfg(feature = "std")]
pub mod pool_options;
#[cfg(feature = "std")]
pub mod pool_table;
#[cfg(feature = "std")]
pub mod pool_trace;
#[cfg(feature = "std")]
pub mod regions;
#[cfg(feature = "std")]
pub mod replan;
#[cfg(feature = "view")]
pub mod report;
#[cfg(feature = "std")]
pub mod session;
#[cfg(feature = "std")]
pub mod session_memory;
#[cfg(feature = "std")]
pub mod session_options;
#[cfg(feature = "std")]
pub mod session_report;
pub mod status;
pub mod version;

#[cfg(feature = "std")]
pub use arena::*;
pub use bare::*;
#[cfg(feature = "std")]
pub use fit::*;
#[cfg(feature = "std")]
pub use frame::*;
#[cfg(feature = "std")]
pub use graph::*;
#[cfg(feature = "std")]
pub use incremental::*;
#[cfg(feature = "std")]
pub use incremental_options::*;
#[cfg(feature = "std")]
pub use incremental_report::*;
#[cfg(feature = "std")]
pub use instances::*;
#[cfg(feature = "std")]
pub use lease::*;
pub use lite::*;
pub use lite_tables::*;
#[cfg(feature = "std")]
pub use mapping::*;
#[cfg(feature = "std")]
pub use memory_policy::*;
pub use options::*;
#[cfg(feature = "std")]
pub use order::*;
#[cfg(feature = "std")]
pub use plan::*;
#[cfg(feature = "std")]
pub use planner::*;
#[cfg(feature = "std")]
pub use pool::*;
#[cfg(feature = "std")]
pub use pool_blocks::*;
#[cfg(feature = "std")]
pub use pool_inspect::*;
#[cfg(feature = "std")]
pub use pool_options::*;
#[cfg(feature = "std")]
pub use pool_table::*;
#[cfg(feature = "std")]
pub use pool_trace::*;
#[cfg(feature = "std")]
pub use regions::*;
#[cfg(feature = "std")]
pub use replan::*;
#[cfg(feature = "view")]
pub use report::*;
#[cfg(feature = "std")]
pub use session::*;
#[cfg(feature = "std")]
pub use session_memory::*;
#[cfg(feature = "std")]
pub use session_options::*;
#[cfg(feature = "std")]
pub use session_report::*;
pub use status::*;
pub use version::*;
