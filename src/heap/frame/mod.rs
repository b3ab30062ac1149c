//! Recorded frames: a sequence of requests that repeats is planned once and then served from fixed offsets.
//!
//! The invariant, which no reordering, delay or loss of frees may break: *when a planned block is handed out, every
//! earlier planned occupant of its bytes has been released.* [`FramePlan`] lists for each block its direct
//! byte-predecessors, [`Replay`] counts those not yet released. [`Detector`] finds the frames of hosts that cannot name
//! them. All are pure: no pointer, no lock, no clock.

mod detect;
mod plan;
mod replay;
mod warm;

pub use detect::{Detector, Repeat};
pub use plan::FramePlan;
pub use replay::{Replay, ReplayStats};
