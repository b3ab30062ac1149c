//! Tensors and nodes: lifetimes, in-place sharing, and the way down to a planning problem.
#![forbid(unsafe_code)]

pub mod tables;
