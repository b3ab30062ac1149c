//! Checks for the host's errors, switched on per pool at run time.

use core::ptr::NonNull;
use std::collections::{HashMap, VecDeque};

use super::pool::Pool;
use super::pool_config::Tail;
use super::pool_lock::{Lock, RawLock};
use super::pool_tools;
use crate::error::Error;
use crate::heap::GRANULE;

/// What to check. All off by default; a pool with all of them off pays one branch a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DebugOptions {
    /// A granule (or as much as the alignment, if that is more, up to 1 MiB) before every block, one behind it and whatever
    /// rounding added hold a pattern that [`Pool::free`] and [`Pool::check`] look at: writes before the start and past the
    /// end are found and the block is named. [`Pool::walk`] then shows blocks with their guards.
    pub guards: bool,
    /// Freed blocks are filled with a pattern, and looked at again when they leave the quarantine.
    pub poison: bool,
    /// Bytes of freed blocks kept back before they can be handed out again: a second free of one is always noticed.
    pub quarantine: usize,
    /// Keeps a record of every live block for [`Pool::leaks`]; on as soon as anything else is.
    pub leaks: bool,
    /// Under AddressSanitizer or Valgrind, tells it which bytes are whose, so that it reports a use after free and an overrun
    /// inside the pool. Does nothing in other programs.
    pub sanitizer: bool,
}

impl DebugOptions {
    /// Everything on, with a quarantine of 1 MiB.
    pub const ALL: DebugOptions =
        DebugOptions { guards: true, poison: true, quarantine: 1 << 20, leaks: true, sanitizer: true };

    pub(crate) fn any(&self) -> bool {
        let others = DebugOptions { sanitizer: false, ..*self };
        others != DebugOptions::default() || (self.sanitizer && pool_tools::present())
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
/// The largest guard before a block. Blocks of a stricter alignment have none.
const MAX_FRONT: u64 = 1 << 20;

#[derive(Debug)]
struct Record {
    leak: Leak,
    /// The block of the heap, guards included.
    place: Place,
    align: u64,
    freed: bool,
    /// It is filled and in the quarantine; between the two, whoever frees it is at work on its bytes.
    kept: bool,
}

/// A block of the heap and what of it is the host's.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: NonNull<u8>,
    held: usize,
    /// Bytes before the host's first.
    front: usize,
    /// Where the guard behind begins: after the bytes asked for and the tail, which the host may touch.
    back: usize,
}

// SAFETY: the pointer names the pool's memory, which is bound to no thread.
unsafe impl Send for Place {}

#[derive(Debug, Default)]
struct State {
    records: HashMap<usize, Record>,
    ring: VecDeque<usize>,
    ring_bytes: usize,
    sequence: u64,
    late_writes: u64,
}

impl State {
    /// Makes room for one more record. A freed block keeps its record until it leaves the quarantine, so a ring as long as
    /// there are records never has to grow when a block is freed.
    fn reserve(&mut self) -> bool {
        let places = self.records.len() + 1 - self.ring.len().min(self.records.len());
        self.records.try_reserve(1).is_ok() && self.ring.try_reserve(places).is_ok()
    }
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

    /// Bytes added behind every block.
    pub(crate) fn overhead(&self) -> u64 {
        if self.options.guards {
            GRANULE
        } else {
            0
        }
    }

    /// Bytes added before a block: as many as keep its alignment.
    pub(crate) fn front(&self, align: u64) -> u64 {
        if self.options.guards && align <= MAX_FRONT {
            align.max(GRANULE)
        } else {
            0
        }
    }

    /// Tells the sanitizer, if it is to be told.
    fn mark(&self, place: Place, from: usize, to: usize, poisoned: bool) {
        match (self.options.sanitizer, poisoned) {
            (true, true) => pool_tools::poison(place.start, from, to.saturating_sub(from)),
            (true, false) => pool_tools::unpoison(place.start, to),
            (false, _) => {}
        }
    }

    /// Whether a block may be used only as far as it was asked for.
    pub(crate) fn exact(&self) -> bool {
        self.options.guards || self.options.sanitizer
    }

    /// Bytes asked for and alignment of a live block.
    pub(crate) fn layout(&self, block: NonNull<u8>) -> Option<(usize, u64)> {
        let state = self.state.lock();
        let record = state.records.get(&(block.as_ptr() as usize)).filter(|r| !r.freed)?;
        Some((record.leak.bytes, record.align))
    }

    /// Whether there is memory for the record of one more block, its place in the quarantine included. Asked before the
    /// block is taken, so that a refusal leaves the heap as it was.
    pub(crate) fn has_room(&self) -> bool {
        self.state.lock().reserve()
    }

    /// Takes note of a new block of the heap, sets its guards, and returns the host's part of it. `None` where there is no
    /// memory for the record: the block is free again.
    pub(crate) fn allocated(&self, pool: &Pool, start: NonNull<u8>, bytes: usize, align: u64) -> Option<NonNull<u8>> {
        let front = self.front(align) as usize;
        let Some(held) = pool.held(start) else { return Some(start) };
        let place = Place { start, held, front, back: front + bytes + tail(pool) };
        // SAFETY: the front was added to what was asked for, so the sum stays inside the block.
        let block = unsafe { start.add(front) };
        self.mark(place, 0, held, false);
        if self.options.guards {
            // SAFETY: the guard lies at the start of the block, which is new and so nobody else's.
            unsafe { start.write_bytes(GUARD_BYTE, front) };
            // SAFETY: the guard's start is inside the block.
            let guard = unsafe { start.add(place.back) };
            // SAFETY: the guard ends where the block does.
            unsafe { guard.write_bytes(GUARD_BYTE, held - place.back) };
        }
        // What rounding, guards and unused headroom add is nobody's; the tail is the block's own.
        self.mark(place, 0, front, true);
        self.mark(place, place.back, held, true);
        if self.options.sanitizer {
            pool_tools::handed_out(block, place.back - front);
        }
        let mut state = self.state.lock();
        if !state.reserve() {
            // Another thread has taken the room found before.
            drop(state);
            self.mark(place, 0, held, false);
            pool.release(start);
            return None;
        }
        let sequence = state.sequence;
        state.sequence += 1;
        let address = block.as_ptr() as usize;
        let leak = Leak { address, bytes, tag: 0, sequence };
        state.records.insert(address, Record { leak, place, align, freed: false, kept: false });
        Some(block)
    }

    /// Frees a block of a region: checks its guards, poisons it and puts it in quarantine.
    pub(crate) fn free(&self, pool: &Pool, block: NonNull<u8>) -> Result<(), Error> {
        let address = block.as_ptr() as usize;
        let (bytes, place) = {
            let mut state = self.state.lock();
            match state.records.get_mut(&address) {
                Some(record) if !record.freed => {
                    // From here on a second free is refused; the block stays ours until it leaves the quarantine.
                    record.freed = true;
                    (record.leak.bytes, record.place)
                }
                _ => {
                    drop(state);
                    return Err(pool.bad_pointer());
                }
            }
        };
        if let Err(error) = self.guards_hold(place, address, bytes) {
            if let Some(record) = self.state.lock().records.get_mut(&address) {
                record.freed = false;
            }
            return Err(error);
        }
        if self.options.sanitizer {
            pool_tools::given_back(block);
        }
        self.mark(place, 0, place.held, false);
        if self.options.poison {
            // SAFETY: the block is live in the heap for `held` bytes and its owner has given it up.
            unsafe { place.start.write_bytes(POISON_BYTE, place.held) };
        }
        // It stays so through the quarantine and after, until it is handed out again.
        self.mark(place, 0, place.held, true);
        {
            let mut state = self.state.lock();
            state.ring.push_back(address);
            state.ring_bytes += place.held;
            if let Some(record) = state.records.get_mut(&address) {
                record.kept = true;
            }
        }
        self.shrink(pool, self.options.quarantine);
        Ok(())
    }

    /// Whether a live block's guards are whole; else the error that a free of it would return.
    pub(crate) fn whole(&self, block: NonNull<u8>) -> Result<(), Error> {
        let address = block.as_ptr() as usize;
        match self.state.lock().records.get(&address).filter(|r| !r.freed) {
            Some(record) => self.guards_hold(record.place, address, record.leak.bytes),
            None => Ok(()),
        }
    }

    fn guards_hold(&self, place: Place, address: usize, bytes: usize) -> Result<(), Error> {
        let wrong = |reason| Err(Error::argument(reason).needed(address as u64).available(bytes as u64));
        if !self.options.guards {
            Ok(())
        } else if !intact(place, 0, place.front, GUARD_BYTE) {
            wrong("a block was written before its start (address, bytes)")
        } else if !intact(place, place.back, place.held, GUARD_BYTE) {
            wrong("a block was written past its end (address, bytes)")
        } else {
            Ok(())
        }
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
            let Some(Record { place, .. }) = state.records.remove(&oldest) else { continue };
            state.ring_bytes -= place.held;
            drop(state);
            any = true;
            self.leave(pool, place);
        }
    }

    /// A block leaves the quarantine: whoever wrote to it after freeing it is found out.
    fn leave(&self, pool: &Pool, place: Place) {
        if self.options.poison && !intact(place, 0, place.held, POISON_BYTE) {
            self.state.lock().late_writes += 1;
        }
        pool.release(place.start);
    }

    /// Looks at every live block's guards and every quarantined block's poison.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let state = self.state.lock();
        if state.late_writes > 0 {
            return Err(
                Error::argument("blocks were written to after they were freed (how many)").needed(state.late_writes)
            );
        }
        for (&address, record) in &state.records {
            if !record.freed {
                self.guards_hold(record.place, address, record.leak.bytes)?;
            } else if record.kept && self.options.poison && !intact(record.place, 0, record.place.held, POISON_BYTE) {
                let late = Error::argument("a block was written to after it was freed (its address)");
                return Err(late.needed(address as u64));
            }
        }
        Ok(())
    }
}

/// Bytes behind a block that the host may touch.
fn tail(pool: &Pool) -> usize {
    match pool.shared.config.tail {
        Tail::Exclusive(tail) => tail,
        _ => 0,
    }
}

fn intact(place: Place, from: usize, to: usize, byte: u8) -> bool {
    // Valgrind watches this library, too, and the bytes looked at are nobody's.
    pool_tools::quietly(|| {
        (from..to).all(|i| {
            // SAFETY: `i` is below the bytes the block holds.
            let at = unsafe { place.start.add(i) };
            // SAFETY: pool memory is readable and was filled when the pattern was set; a host that races with this read is
            // what the check is there to find, so the read is volatile.
            unsafe { at.read_volatile() == byte }
        })
    })
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
