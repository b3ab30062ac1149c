//! arenite: a memory planner, arena and coalescing allocator for on-device inference engines.
//!
//! The crate is layered. The core (`units`, `error`, `planner`, `graph`, `heap`) is safe, `no_std` and does no I/O:
//! a graph's tensors and nodes go through lifetime analysis to a [`planner::Problem`], which a strategy turns into a
//! [`planner::Plan`]. `runtime` gives a plan real memory, `ffi` gives all of it to C.
//!
//! Without the `alloc` feature the lifetimes and the three greedy rules still work, over slices the caller provides.
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "model")]
pub mod advise;
pub mod error;
#[cfg(any(feature = "capi", feature = "bare"))]
pub mod ffi;
pub mod graph;
pub mod heap;
#[cfg(feature = "model")]
pub mod model;
pub mod planner;
#[cfg(feature = "std")]
pub mod runtime;
pub mod units;
#[cfg(feature = "view")]
pub mod view;
