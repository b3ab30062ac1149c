//! Real memory: where bytes come from, and the arena that gives a plan its addresses.

pub mod arena;
pub mod source;
