//! What a caller's mistakes do to us and to our peers: the public list of misuse, a child process for each mistake and each
//! allocator, since many of them end the process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use arenite::heap::{pages_for, Handle, Heap, Node};
use arenite::runtime::{DebugOptions, Growth, Pool, PoolConfig};

use crate::peers::{self, Block, Peer};

const ALLOCATORS: [&str; 11] = [
    "arenite",
    "with checks",
    "handles",
    "rlsf",
    "talc",
    "linked_list",
    "buddy",
    "OffsetAlloc",
    "glibc",
    "mimalloc",
    "jemalloc",
];

const BYTES: usize = 32 << 20;
/// The largest size a Rust layout has, in whole pages.
const IMPOSSIBLE: usize = isize::MAX as usize - 8191;

/// A block as the caller knows it: an address or an offset, and the number of its handle.
#[derive(Clone, Copy)]
struct Token {
    at: usize,
    index: usize,
    bytes: usize,
    align: usize,
}

trait Target {
    fn alloc(&mut self, bytes: usize, align: usize) -> Option<Token>;
    /// Whether the free was taken.
    fn free(&mut self, token: Token) -> bool;
    /// Whether nothing has been found out.
    fn sound(&mut self) -> bool {
        true
    }
    /// Blocks lie in memory, and are named by address.
    fn in_memory(&self) -> bool {
        true
    }
    /// A name for a place that is not a block's.
    fn moved(&mut self, token: Token, by: isize) -> Option<Token> {
        Some(Token { at: token.at.wrapping_add_signed(by), ..token })
    }
}

struct Ours(Pool);

impl Target for Ours {
    fn alloc(&mut self, bytes: usize, align: usize) -> Option<Token> {
        let p = self.0.alloc(bytes, align).ok()?;
        Some(Token { at: p.as_ptr() as usize, index: 0, bytes, align })
    }

    fn free(&mut self, token: Token) -> bool {
        // SAFETY: whatever is wrong with the pointer is the test.
        NonNull::new(token.at as *mut u8).is_some_and(|p| unsafe { self.0.free_sized(p, token.bytes) }.is_ok())
    }

    fn sound(&mut self) -> bool {
        self.0.check().is_ok()
    }
}

struct OurHandles(Heap<Vec<Node>, Vec<u32>>, Vec<Handle>);

impl Target for OurHandles {
    fn alloc(&mut self, bytes: usize, align: usize) -> Option<Token> {
        let handle = self.0.alloc(bytes as u64, align as u64).ok()?;
        self.1.push(handle);
        Some(Token { at: handle.offset() as usize, index: self.1.len() - 1, bytes, align })
    }

    fn free(&mut self, token: Token) -> bool {
        self.0.free_sized(self.1[token.index], token.bytes as u64).is_ok()
    }

    fn sound(&mut self) -> bool {
        self.0.check().is_ok()
    }

    fn in_memory(&self) -> bool {
        false
    }

    fn moved(&mut self, token: Token, by: isize) -> Option<Token> {
        let [region, granule, node, generation] = self.1[token.index].to_words();
        let granules = if by.unsigned_abs() < 128 { by.signum() } else { by / 128 };
        self.1.push(Handle::from_words([region, granule.wrapping_add_signed(granules as i32), node, generation]));
        Some(Token { index: self.1.len() - 1, ..token })
    }
}

struct Offsets(offset_allocator::Allocator<u32>, Vec<offset_allocator::Allocation<u32>>);

impl Target for Offsets {
    fn alloc(&mut self, bytes: usize, align: usize) -> Option<Token> {
        let units = u32::try_from(bytes.max(1).div_ceil(128)).ok()?;
        let made = self.0.allocate(units)?;
        let at = made.offset as usize * 128;
        self.1.push(made);
        Some(Token { at, index: self.1.len() - 1, bytes, align })
    }

    fn free(&mut self, token: Token) -> bool {
        // SAFETY: plain numbers; that they are used twice is the test.
        let again = unsafe { std::ptr::read(&self.1[token.index]) };
        self.0.free(again);
        true
    }

    fn in_memory(&self) -> bool {
        false
    }

    fn moved(&mut self, _: Token, _: isize) -> Option<Token> {
        None
    }
}

/// A peer named by addresses; its table of blocks is the caller's to spoil.
struct ByAddress<P>(P, fn(&mut P) -> &mut Vec<Block>);

impl<P: Peer> Target for ByAddress<P> {
    fn alloc(&mut self, bytes: usize, align: usize) -> Option<Token> {
        self.0.alloc(0, bytes, align).then(|| self.1(&mut self.0)[0].p as usize).map(|at| Token {
            at,
            index: 0,
            bytes,
            align,
        })
    }

    fn free(&mut self, token: Token) -> bool {
        self.1(&mut self.0)[0] = Block { p: token.at as *mut u8, bytes: token.bytes, align: token.align };
        self.0.free(0);
        true
    }
}

fn target(name: &str) -> Box<dyn Target> {
    match name {
        "arenite" => {
            let config = PoolConfig { first_region: BYTES, growth: Growth::None, ..PoolConfig::default() };
            Box::new(Ours(Pool::new(config).unwrap()))
        }
        "with checks" => {
            let debug = DebugOptions { sanitizer: false, ..DebugOptions::ALL };
            Box::new(Ours(Pool::new(PoolConfig { debug, first_region: BYTES, ..PoolConfig::default() }).unwrap()))
        }
        "handles" => {
            let pages = vec![0; pages_for(BYTES as u64)];
            let nodes = Vec::with_capacity(1 << 14);
            Box::new(OurHandles(Heap::with_pages(0, 0, BYTES as u64, nodes, pages).unwrap(), Vec::new()))
        }
        "rlsf" => Box::new(ByAddress(peers::rlsf(BYTES, 1).unwrap(), |p| &mut p.table)),
        "talc" => Box::new(ByAddress(peers::talc(BYTES, 1).unwrap(), |p| &mut p.table)),
        "linked_list" => Box::new(ByAddress(peers::linked_list(BYTES, 1), |p| &mut p.table)),
        "buddy" => Box::new(ByAddress(peers::buddy(BYTES, 1), |p| &mut p.table)),
        "OffsetAlloc" => {
            let heap = offset_allocator::Allocator::with_max_allocs((BYTES / 128) as u32, 1 << 14);
            Box::new(Offsets(heap, Vec::new()))
        }
        "glibc" => Box::new(ByAddress(peers::glibc(1), |p| &mut p.table)),
        "mimalloc" => Box::new(ByAddress(peers::mimalloc(1), |p| &mut p.table)),
        _ => Box::new(ByAddress(peers::jemalloc(1), |p| &mut p.table)),
    }
}

/// How a mistake ended, as the child's exit status.
#[derive(Clone, Copy)]
enum End {
    Refused = 10,
    Found = 11,
    Twice = 12,
    Unnoticed = 13,
    Absent = 14,
    Wrapped = 15,
    Right = 16,
}

/// Ordinary use afterwards: do blocks overlap, are their contents kept?
fn aftermath(t: &mut dyn Target, mut live: Vec<Token>) -> End {
    for i in 0..200usize {
        let bytes = [64, 1000, 70_000, 300, 5000][i % 5];
        live.extend(t.alloc(bytes, 128));
    }
    live.sort_by_key(|b| b.at);
    let overlap = live.windows(2).any(|w| w[0].at + w[0].bytes.max(1) > w[1].at);
    if overlap {
        return End::Twice;
    }
    if !t.sound() {
        return End::Found;
    }
    let all = live.len();
    let freed = live.into_iter().filter(|&b| t.free(b)).count();
    match t.sound() && freed == all {
        true => End::Unnoticed,
        false => End::Found,
    }
}

fn bad_free(t: &mut dyn Target, bad: Option<Token>, live: Vec<Token>) -> End {
    let Some(bad) = bad else { return End::Absent };
    match t.free(bad) {
        false => End::Refused,
        true => aftermath(t, live),
    }
}

/// Writes so many bytes at a distance from the middle one of many blocks.
fn stray(t: &mut dyn Target, size: usize, bytes: usize, before: bool) -> End {
    if !t.in_memory() {
        return End::Absent;
    }
    let mut blocks: Vec<Token> = (0..80).map_while(|_| t.alloc(size, 128)).collect();
    blocks.sort_by_key(|b| b.at);
    let middle = blocks[blocks.len() / 2];
    let from = if before { middle.at - bytes } else { middle.at + size };
    // SAFETY: none; that is the mistake.
    unsafe { (from as *mut u8).write_bytes(0xA5, bytes) };
    if !t.sound() {
        return End::Found;
    }
    let keep = blocks.split_off(40);
    let all = blocks.len();
    if blocks.into_iter().filter(|&b| t.free(b)).count() < all {
        return End::Found;
    }
    aftermath(t, keep)
}

type Item = (&'static str, fn(&mut dyn Target) -> End);

fn two(t: &mut dyn Target, bytes: usize) -> (Token, Token) {
    (t.alloc(bytes, 128).unwrap(), t.alloc(bytes, 128).unwrap())
}

const ITEMS: [Item; 25] = [
    ("double free, at once", |t| {
        let (a, b) = two(t, 1000);
        t.free(a);
        bad_free(t, Some(a), vec![b])
    }),
    ("double free, another between", |t| {
        let (a, b) = two(t, 1000);
        t.free(a);
        t.free(b);
        bad_free(t, Some(a), vec![])
    }),
    ("double free, later", |t| {
        let (a, b) = two(t, 1000);
        t.free(a);
        let more: Vec<_> = (0..50).filter_map(|_| t.alloc(40_000, 128)).chain([b]).collect();
        bad_free(t, Some(a), more)
    }),
    ("double free, 1 MiB", |t| {
        let (a, b) = two(t, 1 << 20);
        t.free(a);
        bad_free(t, Some(a), vec![b])
    }),
    ("double free, given out again", |t| {
        let (a, b) = two(t, 1000);
        t.free(a);
        let mut live = vec![b];
        for _ in 0..100 {
            let Some(c) = t.alloc(1000, 128) else { break };
            live.push(c);
            if c.at == a.at {
                break;
            }
        }
        bad_free(t, Some(a), live)
    }),
    ("free at +1", |t| {
        let (a, b) = two(t, 1000);
        let bad = t.moved(a, 1);
        bad_free(t, bad, vec![a, b])
    }),
    ("free at +16", |t| {
        let (a, b) = two(t, 1000);
        let bad = t.moved(a, 16);
        bad_free(t, bad, vec![a, b])
    }),
    ("free at +128", |t| {
        let (a, b) = two(t, 1000);
        let bad = t.moved(a, 128);
        bad_free(t, bad, vec![a, b])
    }),
    ("free at +4096 in 1 MiB", |t| {
        let (a, b) = two(t, 1 << 20);
        let bad = t.moved(a, 4096);
        bad_free(t, bad, vec![a, b])
    }),
    ("free at -128", |t| {
        let (a, b) = two(t, 1000);
        let bad = t.moved(a, -128);
        bad_free(t, bad, vec![a, b])
    }),
    ("free of the stack", |t| {
        let (a, b) = two(t, 1000);
        #[repr(align(128))]
        struct Local([u64; 64]);
        let local = Local([0; 64]);
        let bad = t.in_memory().then_some(Token { at: &raw const local.0 as usize + 256, ..a });
        bad_free(t, bad, vec![a, b])
    }),
    ("free of a mapping of others", |t| {
        let (a, b) = two(t, 1000);
        let foreign = peers::Region::new(1 << 16, true);
        let bad = t.in_memory().then_some(Token { at: foreign.start as usize + 4096, ..a });
        bad_free(t, bad, vec![a, b])
    }),
    ("free of what is free already", |t| {
        let (a, b) = two(t, 1000);
        let bad = t.moved(a, 1 << 19);
        bad_free(t, bad, vec![a, b])
    }),
    ("free with another size", |t| {
        let (a, b) = two(t, 1000);
        bad_free(t, Some(Token { bytes: 5000, ..a }), vec![b])
    }),
    ("1 byte past the end", |t| stray(t, 4096, 1, false)),
    ("32 bytes past the end", |t| stray(t, 4096, 32, false)),
    ("128 bytes past the end", |t| stray(t, 4096, 128, false)),
    ("1 MiB past the end", |t| stray(t, 65_536, 1 << 20, false)),
    ("1 byte before the start", |t| stray(t, 4096, 1, true)),
    ("32 bytes before the start", |t| stray(t, 4096, 32, true)),
    ("128 bytes before the start", |t| stray(t, 4096, 128, true)),
    ("1 MiB before the start", |t| stray(t, 65_536, 1 << 20, true)),
    ("write after free", |t| {
        if !t.in_memory() {
            return End::Absent;
        }
        let (a, b) = two(t, 1000);
        t.free(a);
        // SAFETY: none; that is the mistake.
        unsafe { (a.at as *mut u8).write_bytes(0xA5, 1000) };
        aftermath(t, vec![b])
    }),
    ("blocks of no bytes", |t| {
        let (a, b) = two(t, 0);
        match a.at == b.at {
            true => End::Twice,
            false => End::Right,
        }
    }),
    ("the largest size", |t| match t.alloc(IMPOSSIBLE, 128) {
        Some(_) => End::Wrapped,
        None => End::Refused,
    }),
];

fn describe(status: Option<ExitStatus>) -> &'static str {
    let Some(status) = status else { return "hang" };
    match (status.code(), status.signal()) {
        (Some(10), _) => "refused",
        (Some(11), _) => "found",
        (Some(12), _) => "given twice",
        (Some(13), _) => "unnoticed",
        (Some(14), _) => "-",
        (Some(15), _) => "wraps",
        (Some(16), _) => "right",
        (Some(101), _) => "panic",
        (_, Some(libc::SIGABRT)) => "abort",
        _ => "crash",
    }
}

/// The child: one mistake on one allocator.
pub fn one(allocator: &str, item: usize) -> ! {
    let mut t = target(allocator);
    let end = ITEMS[item].1(&mut *t);
    // SAFETY: ends the process at once: what the mistake left behind is not to be cleaned up.
    unsafe { libc::_exit(end as i32) }
}

/// The table.
pub fn table() {
    let exe = std::env::current_exe().expect("the program's own path");
    println!("| mistake | {} |", ALLOCATORS.join(" | "));
    println!("| --- |{}", " --- |".repeat(ALLOCATORS.len()));
    for (i, (name, _)) in ITEMS.iter().enumerate() {
        let mut row = format!("| {name} |");
        for allocator in ALLOCATORS {
            let mut child = Command::new(&exe)
                .args(["misuse-one", allocator, &i.to_string()])
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("the child starts");
            let from = Instant::now();
            let status = loop {
                match child.try_wait().expect("the child can be waited for") {
                    Some(status) => break Some(status),
                    None if from.elapsed() > Duration::from_secs(20) => {
                        let _ = child.kill();
                        let _ = child.wait();
                        break None;
                    }
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
            };
            row += &format!(" {} |", describe(status));
        }
        println!("{row}");
    }
    println!("refused: an error code. found: by a later check. given twice: live blocks overlap. unnoticed: ordinary use goes on.");
}
