//! Real memory: where bytes come from, the arena that gives a plan its addresses, the pool that serves what no plan
//! foresees, and the frames that replay a recorded sequence.

pub mod arena;
pub mod cache;
mod frame;
mod frame_table;
pub mod incremental;
pub mod instances;
mod lease;
mod os;
mod pool;
mod pool_adapters;
mod pool_config;
mod pool_debug;
mod pool_fallback;
mod pool_inspect;
mod pool_lock;
mod pool_resize;
mod pool_shards;
mod pool_tools;
mod pool_trim;
mod raw_lock;
mod region;
pub mod session;
pub mod source;
pub mod stats;
mod sticky;
pub mod store;
mod valgrind;

pub use frame::{Frame, FrameStats};
pub use lease::{Lease, LeaseStats, Leases};
pub use pool::Pool;
pub use pool_adapters::GlobalPool;
pub use pool_config::{Fallback, Growth, PoolConfig, PoolStats, Refusal, Tail};
pub use pool_debug::{DebugOptions, Leak};
#[cfg(feature = "capi")]
pub(crate) use pool_lock::Lock;
pub use region::RegionSource;
