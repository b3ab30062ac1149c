//! Real memory: where bytes come from, the arena that gives a plan its addresses, the pool that serves what no plan
//! foresees, and the frames that replay a recorded sequence.

pub mod arena;
pub mod cache;
mod frame;
mod frame_area;
mod frame_table;
pub mod incremental;
mod incremental_guard;
mod incremental_report;
pub mod instances;
mod lease;
pub mod mapping;
mod offset_heap;
mod os;
mod pages;
mod pool;
mod pool_adapters;
mod pool_auto;
mod pool_config;
mod pool_debug;
mod pool_fallback;
mod pool_inspect;
mod pool_lock;
mod pool_resident;
mod pool_resize;
mod pool_shards;
mod pool_tools;
mod pool_trace;
mod pool_trim;
mod raw_lock;
mod region;
mod remote;
pub mod session;
pub mod source;
pub mod stats;
mod sticky;
pub mod store;
mod stream;
mod supply;
mod valgrind;
mod zone;

pub use frame::{Frame, FrameStats};
pub use incremental_report::IncrementalStats;
pub use lease::{Lease, LeaseStats, Leases};
pub use offset_heap::{OffsetHeap, OffsetHeapConfig};
pub use pool::Pool;
pub use pool_adapters::GlobalPool;
pub use pool_config::{Fallback, Growth, PoolConfig, PoolStats, Refusal, Tail};
pub use pool_debug::{DebugOptions, Leak};
#[cfg(feature = "capi")]
pub(crate) use pool_lock::Lock;
pub use pool_trace::TraceCallback;
pub use region::RegionSource;
pub use supply::Supply;
