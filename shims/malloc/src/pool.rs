//! The pool of this process, and the switch that turns it on.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;

use arenite::runtime::{Growth, Pool, PoolConfig, RegionSource};

use super::settings::{say, Settings};
use super::{next, reserve};

/// Bytes of addresses of the pool's first region: large enough for most programs to need one.
const REGION: usize = 256 << 20;

/// The smallest block that the pool serves; no block is as large until the library has been set up.
static MIN: AtomicUsize = AtomicUsize::new(usize::MAX);
static POOL: OnceLock<Option<Pool>> = OnceLock::new();
static SETTINGS: OnceLock<Settings> = OnceLock::new();
static SAID: AtomicBool = AtomicBool::new(false);

std::thread_local! {
    /// Whether this thread is inside the pool: what is asked for from there is the next library's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Turns the pool on.
pub fn start(settings: Settings) {
    let on = !settings.disable && reserve::reserve(settings.reserve);
    let min = settings.min;
    if !on && !settings.disable {
        say("no addresses could be reserved; the pool is off");
    }
    if SETTINGS.set(settings).is_err() || !on {
        return;
    }
    MIN.store(min, Ordering::Release);
    // Now, while there is one thread: a fork can then never meet a pool half made.
    with(|_| ());
}

/// The settings, once the library has been set up.
pub fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// The pool, if there is one by now.
pub fn existing() -> Option<&'static Pool> {
    POOL.get()?.as_ref()
}

/// Whether a block of so many bytes is for the pool.
#[inline]
pub fn wants(bytes: usize) -> bool {
    bytes >= MIN.load(Ordering::Relaxed)
}

fn make() -> Option<Pool> {
    let settings = SETTINGS.get()?;
    let config = PoolConfig {
        source: RegionSource::Pages(reserve::callbacks()),
        growth: Growth::Geometric { first: REGION },
        auto_frames: settings.frames,
        ..PoolConfig::default()
    };
    let pool = match Pool::new(config) {
        Ok(pool) => pool,
        Err(error) => {
            say(&format!("the pool could not be made, and is off: {error}"));
            return None;
        }
    };
    if let Some(path) = &settings.trace {
        if let Err(error) = pool.trace_to_file(path) {
            say(&format!("{}: {error}", path.display()));
        }
    }
    Some(pool)
}

/// Does something with the pool; `None` where there is none, or this thread is inside it already. `errno` stays as it was:
/// what the pool asks the system for is nobody's business.
fn with<R>(act: impl FnOnce(&Pool) -> R) -> Option<R> {
    // An ending thread has no such variable any more; the pool is not entered then, and its frees are handled apart.
    let entered = INSIDE.try_with(|inside| !inside.replace(true)).unwrap_or(true);
    if !entered {
        return None;
    }
    let errno = next::errno();
    let out = POOL.get_or_init(make).as_ref().map(act);
    next::set_errno(errno);
    let _ = INSIDE.try_with(|inside| inside.set(false));
    out
}

/// A block of the pool, or null where the next library has to serve it.
pub fn alloc(bytes: usize, align: usize) -> *mut c_void {
    let block = with(|pool| pool.alloc(bytes, align).ok()).flatten();
    block.map_or(core::ptr::null_mut(), |b| b.as_ptr().cast())
}

/// Another size for a block of the pool; null where the pool has no room for it.
///
/// # Safety
/// `block` is the caller's.
pub unsafe fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else { return core::ptr::null_mut() };
    // SAFETY: the contract.
    let new = with(|pool| unsafe { pool.realloc(Some(old), bytes) }.ok()).flatten();
    new.map_or(core::ptr::null_mut(), |b| b.as_ptr().cast())
}

/// Bytes usable at a block of the pool.
pub fn usable_size(block: *mut c_void) -> Option<usize> {
    let block = NonNull::new(block.cast::<u8>())?;
    with(|pool| pool.usable_size(block)).flatten()
}

/// Frees a block of the pool. One that is not live stays what it is: said once, counted in the report.
///
/// # Safety
/// `block` lies in the reservation, and nobody uses it any more.
pub unsafe fn free(block: *mut c_void) {
    let Some(block) = NonNull::new(block.cast::<u8>()) else { return };
    // SAFETY: the contract.
    let freed = with(|pool| unsafe { pool.free(block) });
    if matches!(freed, Some(Err(_))) && !SAID.swap(true, Ordering::Relaxed) {
        say(&format!("free({:#x}): no live block starts there; ignored", block.as_ptr() as usize));
    }
}

/// Gives free memory back to the system; the bytes.
pub fn trim(keep: usize) -> u64 {
    existing().map_or(0, |pool| with(|_| pool.trim(keep as u64)).unwrap_or(0))
}
