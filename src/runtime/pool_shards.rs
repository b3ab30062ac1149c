//! Shards: several locks instead of one, over the same memory.

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::pool::{worse, Inner, Pool};
use super::pool_auto::Streams;
use super::pool_debug::Debug;
use super::pool_lock::{Guard, Lock, RawLock};
use crate::heap::{Fault, Request};

/// The most shards a pool can have.
pub(crate) const MAX_SHARDS: usize = 64;
/// Among a pool's watchers: it has more than one shard.
pub(crate) const SHARDED: u32 = 1 << 31;

/// A shard that shares no cache line (nor the neighbour that is fetched with it) with another.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded(pub(crate) Lock<Inner>);

/// A number of this thread's own, in the order in which threads first come. Which shard a thread begins with follows from it.
pub(crate) fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::thread_local! {
        // Constant and without a destructor, so that it works at any time of a thread's life; 0 for not yet.
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    match NUMBER.get() {
        0 => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1);
            NUMBER.set(number + 1);
            number
        }
        number => number - 1,
    }
}

impl Pool {
    pub(crate) fn shard(&self, index: usize) -> &Lock<Inner> {
        match index {
            0 => &self.shared.inner.0,
            other => &self.shared.more[other - 1].0,
        }
    }

    /// All shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Lock<Inner>> {
        core::iter::once(&self.shared.inner.0).chain(self.shared.more.iter().map(|s| &s.0))
    }

    /// Every lock of the pool, in the one order in which two of them may be held at a time.
    pub(crate) fn locks(&self) -> impl Iterator<Item = &RawLock> {
        let debug = self.shared.debug.as_ref().map(Debug::raw);
        let streams = self.shared.streams.iter().flat_map(Streams::locks);
        let others = [self.shared.outside.raw(), self.shared.frames.raw(), self.shared.trace.raw()];
        // A trim takes others under its own.
        core::iter::once(self.shared.trims.raw())
            .chain(self.shards().map(Lock::raw))
            .chain(others)
            .chain(debug)
            .chain(streams)
    }

    /// The shard this thread begins with.
    pub(crate) fn own_shard(&self) -> usize {
        match self.shared.more.len() {
            0 => 0,
            more => thread_number() as usize % (more + 1),
        }
    }

    /// Holds every shard. In their order, which is the one a fork takes them in.
    pub(crate) fn lock_all(&self) -> [Option<Guard<'_, Inner>>; MAX_SHARDS] {
        let mut held = [const { None }; MAX_SHARDS];
        for (slot, shard) in held.iter_mut().zip(self.shards()) {
            *slot = Some(shard.lock());
        }
        held
    }

    /// The shard an address lies in, held, with the region's slot and the offset there. Looks at the thread's own first.
    #[inline]
    pub(crate) fn locate(&self, address: NonNull<u8>) -> Option<(Guard<'_, Inner>, usize, u64)> {
        let (own, count) = (self.own_shard(), self.shared.more.len() + 1);
        for k in 0..count {
            let inner = self.shard((own + k) % count).lock();
            if let Some((slot, offset)) = inner.locate(address.as_ptr() as usize) {
                return Some((inner, slot, offset));
            }
        }
        None
    }

    /// One attempt in the thread's own shard, then in the others.
    #[inline(never)]
    pub(crate) fn try_sharded(&self, request: &Request) -> Result<NonNull<u8>, Fault> {
        let (own, count) = (self.own_shard(), self.shared.more.len() + 1);
        let mut worst = Fault::TooLarge;
        for k in 0..count {
            let shard = (own + k) % count;
            match self.try_others(shard, self.shard(shard).lock(), 0, request) {
                Ok(block) => return Ok(block),
                Err(fault) => worst = worse(worst, fault),
            }
        }
        Err(worst)
    }
}
