//! Real memory: where bytes come from, the arena that gives a plan its addresses, the pool that serves what no plan
//! foresees, and the frames that replay a recorded sequence.

pub mod arena;
mod frame;
mod frame_table;
mod lease;
mod pool;
mod pool_adapters;
mod pool_debug;
mod pool_fallback;
mod pool_lock;
mod pool_resize;
mod pool_trim;
mod region;
pub mod source;

pub use frame::{Frame, FrameStats};
pub use lease::{Lease, LeaseStats, Leases};
pub use pool::{Fallback, Growth, Pool, PoolConfig, PoolStats, Refusal, Tail};
pub use pool_adapters::GlobalPool;
pub use pool_debug::{DebugOptions, Leak};
#[cfg(feature = "capi")]
pub(crate) use pool_lock::Lock;
pub use region::RegionSource;
