//! The plan that a runtime had in force when a profile of it was recorded.

use super::Model;
use crate::graph::incremental::Arena;
use crate::units::{Align, Bytes};

/// One subgraph's recorded plan. Every subgraph has two arenas of its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RecordedPlan {
    /// Per tensor: in which arena, and at which offset.
    pub places: Vec<Option<(Arena, Bytes)>>,
    /// What offsets are multiples of.
    pub align: Option<Align>,
    /// The size of the main arena.
    pub arena_bytes: Option<Bytes>,
    /// The size of the persistent arena.
    pub persistent_bytes: Option<Bytes>,
}

impl RecordedPlan {
    /// Whether anything was placed.
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }
}

impl Model {
    /// The plan recorded of a subgraph.
    pub fn recorded_plan(&self, subgraph: usize) -> Option<&RecordedPlan> {
        self.recorded_plans.get(subgraph).filter(|plan| !plan.is_empty())
    }
}
