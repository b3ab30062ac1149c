//! Checks for the host's errors, switched on per pool at run time.

use core::ptr::NonNull;
use std::collections::{HashMap, VecDeque};

use super::pool::{Pool, Tail};
use super::pool_lock::{Lock, RawLock};
use crate::error::{Error, Kind};
use crate::heap::GRANULE;

/// What to check. All off by default; a pool with all of them off pays one branch a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebugOptions {
    /// A granule behind every block, and whatever rounding added, holds a pattern that [`Pool::free`] and
    /// [`Pool::check`] look at: writes past the end are found and the block is named.
    pub guards: bool,
    /// Freed blocks are filled with a pattern, and looked at again when they leave the quarantine.
    pub poison: bool,
    /// Bytes of freed blocks kept back before they can be handed out again: a second free of one is always noticed.
    pub quarantine: usize,
    /// Keeps a record of every live block for [`Pool::leaks`]; on as soon as anything else is.
    pub leaks: bool,
}

impl DebugOptions {
    /// Everything on, with a quarantine of 1 MiB.
    pub const ALL: DebugOptions = DebugOptions { guards: true, poison: true, quarantine: 1 << 20, leaks: true };

    pub(crate) fn any(&self) -> bool {
        *self != DebugOptions::default()
    }
}

/// A block that is still live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Where it is.
    pub address: usize,
    /// Bytes asked for.
    pub bytes: usize,
    /// The tag given to [`Pool::set_tag`], 0 if none was.
    pub tag: u64,
    /// How many blocks were handed out before it.
    pub sequence: u64,
}

const GUARD_BYTE: u8 = 0xFB;
const POISON_BYTE: u8 = 0xDB;

#[derive(Debug)]
struct Record {
    leak: Leak,
    held: usize,
    freed: bool,
}

#[derive(Debug, Default)]
struct State {
    records: HashMap<usize, Record>,
    ring: VecDeque<usize>,
    ring_bytes: usize,
    sequence: u64,
    late_writes: u64,
}

/// The debug side of a pool: records by address behind a lock of their own.
#[derive(Debug)]
pub(crate) struct Debug {
    options: DebugOptions,
    state: Lock<State>,
}

impl Debug {
    pub(crate) fn new(options: DebugOptions) -> Debug {
        Debug { options, state: Lock::new(State::default()) }
    }

    pub(crate) fn raw(&self) -> &RawLock {
        self.state.raw()
    }

    /// Bytes added to every block.
    pub(crate) fn overhead(&self) -> u64 {
        if self.options.guards {
            GRANULE
        } else {
            0
        }
    }

    /// Takes note of a new block and sets its guard.
    pub(crate) fn allocated(&self, pool: &Pool, block: NonNull<u8>, bytes: usize) {
        let Some(held) = pool.held(block) else { return };
        if self.options.guards {
            let from = guard_start(pool, bytes);
            // SAFETY: the guard's start is inside the block, which is new and so nobody else's.
            let guard = unsafe { block.add(from) };
            // SAFETY: as above; the guard ends where the block does.
            unsafe { guard.write_bytes(GUARD_BYTE, held - from) };
        }
        let mut state = self.state.lock();
        let sequence = state.sequence;
        state.sequence += 1;
        let address = block.as_ptr() as usize;
        let leak = Leak { address, bytes, tag: 0, sequence };
        state.records.insert(address, Record { leak, held, freed: false });
    }

    /// Frees a block of a region: checks its guard, poisons it and puts it in quarantine.
    pub(crate) fn free(&self, pool: &Pool, block: NonNull<u8>) -> Result<(), Error> {
        let address = block.as_ptr() as usize;
        let (bytes, held) = {
            let mut state = self.state.lock();
            match state.records.get_mut(&address) {
                Some(record) if !record.freed => {
                    // From here on a second free is refused; the block stays ours until it leaves the quarantine.
                    record.freed = true;
                    (record.leak.bytes, record.held)
                }
                _ => {
                    drop(state);
                    return Err(pool.bad_pointer());
                }
            }
        };
        if self.options.guards && !intact(block, guard_start(pool, bytes), held, GUARD_BYTE) {
            if let Some(record) = self.state.lock().records.get_mut(&address) {
                record.freed = false;
            }
            return Err(overrun(address, bytes));
        }
        if self.options.poison {
            // SAFETY: the block is live in the heap for `held` bytes and its owner has given it up.
            unsafe { block.write_bytes(POISON_BYTE, held) };
        }
        {
            let mut state = self.state.lock();
            state.ring.push_back(address);
            state.ring_bytes += held;
        }
        self.shrink(pool, self.options.quarantine);
        Ok(())
    }

    /// Lets everything out of quarantine. Returns whether there was anything.
    pub(crate) fn flush(&self, pool: &Pool) -> bool {
        self.shrink(pool, 0)
    }

    fn shrink(&self, pool: &Pool, limit: usize) -> bool {
        let mut any = false;
        loop {
            let mut state = self.state.lock();
            if state.ring_bytes <= limit {
                return any;
            }
            let Some(oldest) = state.ring.pop_front() else { return any };
            let Some(record) = state.records.remove(&oldest) else { continue };
            state.ring_bytes -= record.held;
            drop(state);
            any = true;
            self.leave(pool, oldest, record.held);
        }
    }

    /// A block leaves the quarantine: whoever wrote to it after freeing it is found out.
    fn leave(&self, pool: &Pool, address: usize, held: usize) {
        let Some(block) = NonNull::new(address as *mut u8) else { return };
        if self.options.poison && !intact(block, 0, held, POISON_BYTE) {
            self.state.lock().late_writes += 1;
        }
        pool.release(block);
    }

    /// Looks at every live block's guard and every quarantined block's poison.
    pub(crate) fn check(&self, pool: &Pool) -> Result<(), Error> {
        let state = self.state.lock();
        if state.late_writes > 0 {
            return Err(Error::argument("a block was written to after it was freed").needed(state.late_writes));
        }
        for (&address, record) in &state.records {
            let Some(block) = NonNull::new(address as *mut u8) else { continue };
            let guard = guard_start(pool, record.leak.bytes);
            if !record.freed && self.options.guards && !intact(block, guard, record.held, GUARD_BYTE) {
                return Err(overrun(address, record.leak.bytes));
            }
            if record.freed && self.options.poison && !intact(block, 0, record.held, POISON_BYTE) {
                return Err(Error::argument("a block was written to after it was freed").needed(address as u64));
            }
        }
        Ok(())
    }
}

/// Guards come after the tail, which the host may touch.
fn guard_start(pool: &Pool, bytes: usize) -> usize {
    match pool.shared.config.tail {
        Tail::Exclusive(tail) => bytes + tail,
        _ => bytes,
    }
}

fn intact(block: NonNull<u8>, from: usize, to: usize, byte: u8) -> bool {
    (from..to).all(|i| {
        // SAFETY: `i` is below the bytes the block holds.
        let at = unsafe { block.add(i) };
        // SAFETY: pool memory is readable and was filled when the pattern was set; a host that races with this read is
        // what the check is there to find, so the read is volatile.
        unsafe { at.read_volatile() == byte }
    })
}

fn overrun(address: usize, bytes: usize) -> Error {
    Error::new(Kind::Argument, "a block was written past its end (address, bytes)")
        .needed(address as u64)
        .available(bytes as u64)
}

impl Pool {
    /// The blocks still live, oldest first; empty unless some [`DebugOptions`] are on. A list, so it allocates.
    pub fn leaks(&self) -> Vec<Leak> {
        let Some(debug) = &self.shared.debug else { return Vec::new() };
        let state = debug.state.lock();
        let mut leaks: Vec<Leak> = state.records.values().filter(|r| !r.freed).map(|r| r.leak).collect();
        drop(state);
        leaks.sort_unstable_by_key(|l| l.sequence);
        leaks
    }

    /// Names a live block in [`Pool::leaks`]. Does nothing unless some [`DebugOptions`] are on.
    pub fn set_tag(&self, block: NonNull<u8>, tag: u64) {
        if let Some(debug) = &self.shared.debug {
            if let Some(record) = debug.state.lock().records.get_mut(&(block.as_ptr() as usize)) {
                record.leak.tag = tag;
            }
        }
    }
}
