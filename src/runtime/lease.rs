//! Arenas lent for a while: N instances of which K run at once hold K arenas, not N.

use core::ptr::NonNull;
use std::sync::Arc;

use super::os::{Condvar, Mutex, MutexGuard, PoisonError};
use super::supply::{Area, Supply};
use crate::error::Error;

/// What the leases of one set did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Areas held, in use or idle.
    pub areas: u32,
    /// Areas in use.
    pub in_use: u32,
    /// The most areas in use at a time.
    pub peak: u32,
    /// Leases given so far.
    pub leases: u64,
    /// Requests that had to wait for another to come back, from the moment they do.
    pub waits: u64,
    /// Requests refused: all in use, or no memory.
    pub refused: u64,
    /// The most areas held at a time, in use or idle.
    pub most: u32,
    /// How often an area was taken from the supply or given back to it.
    pub supply_calls: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Areas and whether each is in use. As many as were in use at a time, so few.
    areas: Vec<(Area, bool)>,
    stats: LeaseStats,
    /// Areas being taken from the supply, outside the lock.
    coming: u32,
}

/// A set of equal areas for arenas, taken from a pool or a source as they are needed and kept for the next lease.
///
/// ```text
/// instances   A  B  C  D  E        of which at most `limit` run at once
/// leases      A ──> area 0   C ──> area 1      B, D, E: no memory
/// ```
///
/// Contents do not survive from lease to lease. Threads: any.
#[derive(Debug)]
pub struct Leases {
    supply: Supply,
    bytes: usize,
    align: usize,
    limit: u32,
    state: Mutex<State>,
    back: Condvar,
}

/// An area, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    from: Arc<Leases>,
    area: NonNull<u8>,
}

// SAFETY: the lease is the area's only user; the memory is bound to no thread.
unsafe impl Send for Lease {}
// SAFETY: a shared lease only tells its address.
unsafe impl Sync for Lease {}

impl Lease {
    /// The first byte, at a multiple of the alignment asked for. Valid until the lease is dropped.
    pub fn as_ptr(&self) -> *mut u8 {
        self.area.as_ptr()
    }

    /// The same; dangling for an area of no bytes.
    pub fn base(&self) -> NonNull<u8> {
        self.area
    }

    /// Bytes of the area.
    pub fn bytes(&self) -> usize {
        self.from.bytes
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let back = self.from.give_back(self.area);
        debug_assert!(back.is_ok(), "a lease comes back once");
    }
}

impl Leases {
    /// A set of at most `limit` areas of `bytes` bytes at a multiple of `align`. Takes no memory yet. `Argument` for a limit
    /// of 0 and for several areas in one caller's buffer, `Alignment` for no power of two.
    pub fn new(supply: impl Into<Supply>, bytes: usize, align: usize, limit: u32) -> Result<Leases, Error> {
        let supply = supply.into();
        if limit == 0 {
            return Err(Error::argument("a set of leases needs a limit of at least 1"));
        }
        if !align.is_power_of_two() {
            return Err(Error::alignment("the alignment is not a power of two").needed(align as u64));
        }
        supply.check(limit.into())?;
        Ok(Leases { supply, bytes, align, limit, state: Mutex::new(State::default()), back: Condvar::new() })
    }

    /// Leases an area, waiting for one to come back where all are in use. Fails only where the supply has no memory and no
    /// area is in use that could come back.
    pub fn acquire(self: &Arc<Self>) -> Result<Lease, Error> {
        self.take(true).map(|area| Lease { from: self.clone(), area })
    }

    /// Leases an area, or `Busy` where all are in use, or the supply's error where it has no memory.
    pub fn try_acquire(self: &Arc<Self>) -> Result<Lease, Error> {
        self.take(false).map(|area| Lease { from: self.clone(), area })
    }

    /// The same without a guard, for callers that keep the pointer: it has to go to [`Leases::give_back`].
    pub fn take(&self, wait: bool) -> Result<NonNull<u8>, Error> {
        let mut state = self.lock();
        let mut waited = false;
        loop {
            if let Some(area) = state.areas.iter_mut().find(|a| !a.1) {
                area.1 = true;
                let area = area.0.base();
                state.count();
                return Ok(area);
            }
            if state.areas.len() as u32 + state.coming < self.limit {
                // Before an area is taken, so that a refusal leaves the supply as it was.
                let places = state.coming as usize + 1;
                if state.areas.try_reserve(places).is_err() {
                    state.stats.refused += 1;
                    return Err(Error::no_memory("the table of areas cannot grow"));
                }
                state.coming += 1;
                drop(state);
                let made = self.supply.take(self.bytes, self.align);
                state = self.lock();
                state.coming -= 1;
                match made {
                    Ok(area) => {
                        let base = area.base();
                        state.areas.push((area, true));
                        state.stats.supply_calls += u64::from(self.bytes > 0);
                        state.stats.most = state.stats.most.max(state.areas.len() as u32);
                        state.count();
                        return Ok(base);
                    }
                    // Another instance's area may yet come back, or is just being taken.
                    Err(_) if wait && (!state.areas.is_empty() || state.coming > 0) => {}
                    Err(error) => {
                        state.stats.refused += 1;
                        // Whoever waited for this one looks again.
                        self.back.notify_all();
                        return Err(error);
                    }
                }
            }
            if !wait {
                state.stats.refused += 1;
                return Err(Error::busy("all areas are in use").needed(1).available(0));
            }
            if state.areas.iter().all(|a| a.1) {
                state.stats.waits += u64::from(!core::mem::replace(&mut waited, true));
                state = self.back.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Takes an area back. `Argument` for a pointer that is no area in use.
    pub fn give_back(&self, area: NonNull<u8>) -> Result<(), Error> {
        let mut state = self.lock();
        match state.areas.iter_mut().find(|a| a.0.base() == area && a.1) {
            Some(found) => {
                found.1 = false;
                state.stats.in_use -= 1;
                drop(state);
                self.back.notify_one();
                Ok(())
            }
            None => Err(Error::argument("the pointer is no area in use")),
        }
    }

    /// Gives idle areas beyond `keep` back to the supply. Returns how many.
    pub fn trim(&self, keep: usize) -> usize {
        let mut given = 0;
        loop {
            let mut state = self.lock();
            if state.areas.iter().filter(|a| !a.1).count() <= keep {
                return given;
            }
            let Some(at) = state.areas.iter().position(|a| !a.1) else { return given };
            let (area, _) = state.areas.swap_remove(at);
            state.stats.supply_calls += u64::from(self.bytes > 0);
            drop(state);
            drop(area);
            given += 1;
        }
    }

    /// The statistics.
    pub fn stats(&self) -> LeaseStats {
        let state = self.lock();
        LeaseStats { areas: state.areas.len() as u32, ..state.stats }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self) {
        self.stats.leases += 1;
        self.stats.in_use += 1;
        self.stats.peak = self.stats.peak.max(self.stats.in_use);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::runtime::source::Source;
    use crate::runtime::{Growth, Pool, PoolConfig};

    fn set(pool_bytes: usize, limit: u32) -> (Arc<Pool>, Arc<Leases>) {
        let config = PoolConfig { first_region: pool_bytes, growth: Growth::None, ..PoolConfig::default() };
        let pool = Arc::new(Pool::new(config).unwrap());
        (pool.clone(), Arc::new(Leases::new(pool, 10_000, 256, limit).unwrap()))
    }

    #[test]
    fn a_source_supplies_areas_like_a_pool() {
        let leases = Arc::new(Leases::new(Source::System, 10_000, 4096, 2).unwrap());
        let (a, b) = (leases.acquire().unwrap(), leases.acquire().unwrap());
        assert!(a.area != b.area && (a.as_ptr() as usize).is_multiple_of(4096));
        assert_eq!(leases.try_acquire().unwrap_err().kind, Kind::Busy);
        drop((a, b));
        assert_eq!((leases.stats().areas, leases.trim(0), leases.stats().supply_calls), (2, 2, 4));
        let mut bytes = [0u8; 512];
        let buffer = Source::Buffer { base: NonNull::from(&mut bytes[0]), bytes: 512 };
        let e = Leases::new(buffer, 64, 64, 2).unwrap_err();
        assert_eq!((e.kind, e.needed, e.available), (Kind::Argument, Some(2), Some(1)));
        assert_eq!(Arc::new(Leases::new(buffer, 64, 64, 1).unwrap()).acquire().unwrap().bytes(), 64);
        let empty = Arc::new(Leases::new(set(1 << 20, 1).0, 0, 64, 2).unwrap());
        let both = (empty.acquire().unwrap(), empty.acquire().unwrap());
        assert_eq!((both.0.bytes(), empty.stats().supply_calls), (0, 0), "no bytes cost nothing");
    }

    #[test]
    fn n_instances_hold_k_areas() {
        let (pool, leases) = set(1 << 20, 3);
        std::thread::scope(|s| {
            for t in 0..24u8 {
                let leases = leases.clone();
                s.spawn(move || {
                    for _ in 0..50 {
                        let lease = leases.acquire().unwrap();
                        let area = lease.area;
                        // SAFETY: the area is this thread's alone for as long as the lease lives.
                        unsafe { area.write_bytes(t, lease.bytes()) };
                        std::thread::yield_now();
                        // SAFETY: as above.
                        let bytes = unsafe { core::slice::from_raw_parts(lease.as_ptr(), lease.bytes()) };
                        assert!(bytes.iter().all(|&b| b == t), "two leases share an area");
                    }
                });
            }
        });
        let s = leases.stats();
        assert_eq!((s.leases, s.in_use), (1200, 0));
        assert!(s.areas <= 3 && s.peak <= 3);
        assert_eq!(leases.trim(0) as u32, s.areas);
        assert_eq!(pool.stats().heap.blocks, 0);
    }

    #[test]
    fn a_full_set_and_a_full_pool_say_so() {
        let (_, leases) = set(1 << 20, 1);
        let first = leases.try_acquire().unwrap();
        assert_eq!(leases.try_acquire().unwrap_err().kind, Kind::Busy);
        let area = first.area;
        drop(first);
        assert!(leases.give_back(area).is_err(), "back already");
        drop(leases.try_acquire().unwrap());
        let (_, leases) = set(12_000, 9);
        let first = leases.acquire().unwrap();
        assert_eq!(leases.try_acquire().unwrap_err().kind, Kind::Capacity);
        // The pool has no second area, but the first one comes back.
        std::thread::scope(|s| {
            let waiting = s.spawn(|| leases.acquire().map(drop));
            while leases.stats().waits == 0 {
                std::thread::yield_now();
            }
            drop(first);
            waiting.join().unwrap().unwrap();
        });
        assert!(Leases::new(leases.supply.clone(), 1, 1, 0).is_err());
        assert!(Leases::new(leases.supply.clone(), 1, 3, 1).is_err());
    }
}
