//! Real memory: where bytes come from, and what gives a plan its addresses.
//!
//! [`arena`] holds one plan. [`session`] follows shapes that change between runs, [`incremental`] those that
//! change during a run, as TensorFlow Lite's planner does. [`instances`] runs one plan many
//! times at once.

pub mod arena;
pub mod cache;
pub mod incremental;
pub mod instances;
pub mod session;
pub mod source;
pub mod stats;
mod sticky;
pub mod store;
