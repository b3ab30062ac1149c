//! Tensors and nodes: lifetimes, in-place sharing, and the way down to a planning problem.
//!
//! [`tables`] reads any host's graph, [`liveness`] finds when each tensor is alive, [`inplace`] which tensors may share
//! bytes. With a heap, [`timeline`] flattens nested subgraphs, [`lower`] makes the planning problem, [`order`] looks
//! for a better execution order, [`views`] follows what engines declare beyond TFLite's sharing, [`values`] proves that no value is lost by it, and [`incremental`] follows an engine that allocates node range by node range. [`set`] puts several
//! models in one arena.
#![forbid(unsafe_code)]

pub mod inplace;
pub mod liveness;
pub mod rows;
pub mod tables;

#[cfg(feature = "alloc")]
pub mod explain;
#[cfg(feature = "alloc")]
pub mod incremental;
#[cfg(feature = "alloc")]
pub mod lower;
#[cfg(feature = "alloc")]
pub mod order;
#[cfg(feature = "alloc")]
pub mod owned;
#[cfg(feature = "alloc")]
pub mod set;
#[cfg(feature = "alloc")]
pub mod timeline;
#[cfg(feature = "alloc")]
pub mod values;
#[cfg(feature = "alloc")]
pub mod views;
