//! Real memory: regions of bytes, the pool that hands them out, and the frames that replay a recorded sequence.

mod frame;
mod frame_table;
mod pool;
mod pool_debug;
mod pool_fallback;
mod pool_lock;
mod pool_resize;
mod pool_trim;
mod region;

pub use frame::{Frame, FrameStats};
pub use pool::{Fallback, Growth, Pool, PoolConfig, PoolStats, Refusal, Tail};
pub use pool_debug::{DebugOptions, Leak};
pub use region::{Source, SourceFns};
