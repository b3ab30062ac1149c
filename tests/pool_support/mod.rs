//! What the tests of the pool share.
#![allow(dead_code, reason = "each test program uses a part")]

use std::ptr::NonNull;

use arenite::runtime::{Growth, Pool, PoolConfig};

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % n
    }
}

pub fn free(pool: &Pool, p: NonNull<u8>) -> Result<(), arenite::error::Error> {
    // SAFETY: the tests use no block after they free it, and any other pointer may be passed.
    unsafe { pool.free(p) }
}

pub fn realloc(pool: &Pool, p: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, arenite::runtime::Refusal> {
    // SAFETY: the tests use the returned pointer only.
    unsafe { pool.realloc(Some(p), bytes) }
}

pub fn fill(p: NonNull<u8>, from: usize, to: usize, seed: u8) {
    for i in from..to {
        // SAFETY: the block holds `to` bytes.
        unsafe { p.as_ptr().wrapping_add(i).write(seed.wrapping_add((i % 251) as u8)) };
    }
}

pub fn holds(p: NonNull<u8>, to: usize, seed: u8) -> bool {
    // SAFETY: the block holds `to` bytes.
    (0..to).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == seed.wrapping_add((i % 251) as u8))
}

pub fn fixed(bytes: usize) -> PoolConfig {
    PoolConfig { first_region: bytes, growth: Growth::None, ..PoolConfig::default() }
}
