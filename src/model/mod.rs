//! Models and the files they come in: `.tflite`, graph tables, recorded profiles, problem and solution CSVs, allocation
//! traces.
//!
//! A [`Model`] is the owned form of any of them that holds a graph; each of its [`Subgraph`]s is a
//! [`Tables`](crate::graph::tables::Tables) and goes down to the planner as such. Arbitrary input gives a [`ReadError`]
//! that says where, in memory bounded by a small multiple of the input's length.
#![deny(unsafe_code)] // `schema` alone lifts it

mod calls;
mod classify;
mod control;
mod csv_file;
mod dtype;
mod error;
mod insert;
mod metadata;
mod mobilenet;
mod offline;
mod ops;
mod order_rules;
mod partitions;
mod problem_csv;
mod profile;
mod profile_apply;
mod recorded;
mod resources;
mod rewrite;
mod schema;
mod shapes;
mod sharing;
mod solution_csv;
mod tables;
mod tensor;
mod tflite;
mod tflite_graph;
mod tgt;
mod tgt_write;
mod trace;

use std::ops::Range;

pub use calls::{MAX_CALL_DEPTH, MAX_STEPS};
pub use dtype::DType;
pub use error::{Position, ReadError};
pub use metadata::{Metadata, OFFLINE_PLAN};
pub use offline::OfflinePlan;
pub use ops::{builtin_code, builtin_name, CallKind, Effect};
pub use problem_csv::{OffsetColumn, ProblemFile};
pub use recorded::RecordedPlan;
pub use resources::Resource;
pub use rewrite::Rewrite;
pub use shapes::Unresolved;
pub use solution_csv::Solution;
pub use tensor::{Flags, Node, Subgraph, Tensor, TensorKind};
pub use trace::{Event, EventKind, Trace};

use crate::units::Bytes;

/// A model: its graphs and what the file says about them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Model {
    /// A name for reports.
    pub name: String,
    /// Keys and values a graph table carries.
    pub attributes: Vec<(String, String)>,
    /// The graphs. The first is the one that runs unless a signature says otherwise.
    pub subgraphs: Vec<Subgraph>,
    /// Named entry points.
    pub signatures: Vec<Signature>,
    /// State that outlives a run, as its VAR_HANDLE nodes name it.
    pub resources: Vec<Resource>,
    /// Bytes of constant data, each buffer of the file counted once.
    pub constant_bytes: Bytes,
    /// The length of the file.
    pub file_bytes: u64,
    /// What a reader of the report should know.
    pub warnings: Vec<String>,
    /// Named extra buffers.
    pub metadata: Vec<Metadata>,
    /// The offsets of an `OfflineMemoryAllocation` entry: one per tensor over all subgraphs in turn, `None` for those
    /// left to the runtime.
    pub offline_plan: Option<Vec<Option<Bytes>>>,
    /// What a recorded profile says about the runtime's own plan, one entry per subgraph; empty for other files.
    pub recorded_plans: Vec<RecordedPlan>,
    /// Where a `model_control_dependencies` entry is: extra order constraints between nodes, by index.
    pub control_dependencies: Option<Range<u64>>,
}

/// A named entry point.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Signature {
    /// Its name.
    pub key: String,
    /// The subgraph it runs.
    pub subgraph: u32,
    /// Names of inputs and their tensors.
    pub inputs: Vec<(String, u32)>,
    /// Names of outputs and their tensors.
    pub outputs: Vec<(String, u32)>,
}

impl Model {
    /// The offset an offline plan in the file fixes for tensor `tensor` of subgraph `subgraph`.
    pub fn offline_offset(&self, subgraph: usize, tensor: usize) -> Option<Bytes> {
        let before: usize = self.subgraphs.get(..subgraph)?.iter().map(|g| g.tensors.len()).sum();
        self.offline_plan.as_ref()?.get(before.checked_add(tensor)?).copied().flatten()
    }
}
