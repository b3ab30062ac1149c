//! The planner: buffers with sizes and lifetimes in, offsets out. It knows no tensor and no pointer.
#![forbid(unsafe_code)]

pub mod greedy;

#[cfg(feature = "alloc")]
pub mod bound;
#[cfg(feature = "alloc")]
pub mod capacity;
#[cfg(feature = "alloc")]
pub mod check;
#[cfg(feature = "alloc")]
mod conflict;
#[cfg(feature = "alloc")]
pub mod online;
#[cfg(feature = "alloc")]
mod plan;
#[cfg(feature = "alloc")]
mod problem;
#[cfg(feature = "alloc")]
pub mod regions;
#[cfg(feature = "alloc")]
pub mod replan;
#[cfg(feature = "alloc")]
pub mod sequence;
#[cfg(feature = "alloc")]
pub mod strategy;

#[cfg(feature = "alloc")]
pub use conflict::Conflicts;
#[cfg(feature = "alloc")]
pub use plan::{Plan, Stats};
#[cfg(feature = "alloc")]
pub(crate) use problem::union;
#[cfg(feature = "alloc")]
pub use problem::{Alias, Buffer, BufferSpec, Problem, Span};
#[cfg(feature = "alloc")]
pub use strategy::{plan, plan_with, Options, Progress, Strategy};
