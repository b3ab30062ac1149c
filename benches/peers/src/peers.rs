//! Every allocator behind one interface: blocks are numbered, each peer keeps what it needs to free them.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use arenite::heap::{Handle, Heap, Node, Request, Side};
use arenite::runtime::{Growth, Pool, PoolConfig};

/// A pre-touched range of memory.
pub struct Region {
    pub start: *mut u8,
    pub bytes: usize,
}

impl Region {
    pub fn new(bytes: usize, touch: bool) -> Region {
        let bytes = bytes.next_multiple_of(4096);
        // SAFETY: a fresh anonymous mapping.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(start != libc::MAP_FAILED);
        let start = start.cast::<u8>();
        if touch {
            // SAFETY: the mapping made above.
            unsafe { start.write_bytes(1, bytes) };
        }
        Region { start, bytes }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: made in `new`.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

pub trait Peer {
    fn alloc(&mut self, id: usize, bytes: usize, align: usize) -> bool;
    fn free(&mut self, id: usize);
    fn resize(&mut self, id: usize, bytes: usize) -> bool;
}

#[derive(Clone, Copy)]
pub struct Block {
    pub p: *mut u8,
    pub bytes: usize,
    pub align: usize,
}

const NONE: Block = Block { p: std::ptr::null_mut(), bytes: 0, align: 0 };

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align.max(128)).unwrap()
}

macro_rules! pointer_peer {
    ($name:ident, $inner:ty, |$heap:ident, $l:ident| $alloc:expr, |$hf:ident, $p:ident, $lf:ident| $free:expr, |$hr:ident, $pr:ident, $lr:ident, $n:ident| $resize:expr) => {
        pub struct $name {
            pub heap: $inner,
            pub table: Vec<Block>,
            _region: Option<Region>,
        }

        #[allow(unused_unsafe, reason = "some of the peers' calls are safe ones")]
        impl Peer for $name {
            #[inline]
            fn alloc(&mut self, id: usize, bytes: usize, align: usize) -> bool {
                let $l = layout(bytes, align);
                let $heap = &mut self.heap;
                // SAFETY: each block is freed once, with the layout it was made with.
                let p: *mut u8 = unsafe { $alloc };
                self.table[id] = Block { p, bytes, align };
                !p.is_null()
            }

            #[inline]
            fn free(&mut self, id: usize) {
                let Block { p: $p, bytes, align } = self.table[id];
                let $lf = layout(bytes, align);
                let $hf = &mut self.heap;
                // SAFETY: as above.
                unsafe { $free };
            }

            #[inline]
            fn resize(&mut self, id: usize, $n: usize) -> bool {
                let Block { p: $pr, bytes, align } = self.table[id];
                let $lr = layout(bytes, align);
                let $hr = &mut self.heap;
                // SAFETY: as above.
                let p: *mut u8 = unsafe { $resize };
                if p.is_null() {
                    return false;
                }
                self.table[id] = Block { p, bytes: $n, align };
                true
            }
        }
    };
}

fn raw(p: Option<NonNull<u8>>) -> *mut u8 {
    p.map_or(std::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// The new block is apart from the old one and both hold the smaller size.
unsafe fn copied(new: *mut u8, old: *mut u8, bytes: usize) -> *mut u8 {
    if !new.is_null() {
        // SAFETY: the contract.
        unsafe { new.copy_from_nonoverlapping(old, bytes) };
    }
    new
}

pointer_peer!(
    Arenite,
    Pool,
    |h, l| raw(h.alloc(l.size(), l.align()).ok()),
    |h, p, _l| h.free(NonNull::new_unchecked(p)).unwrap(),
    |h, p, _l, n| raw(h.realloc(NonNull::new(p), n).ok())
);
type Rlsf0 = rlsf::Tlsf<'static, u32, u32, 28, 32>;
pointer_peer!(
    Rlsf,
    Rlsf0,
    |h, l| raw(h.allocate(l)),
    |h, p, l| h.deallocate(NonNull::new_unchecked(p), l.align()),
    |h, p, l, n| raw(h.reallocate(NonNull::new_unchecked(p), layout(n, l.align())))
);
type Talc0 = talc::base::Talc<talc::source::Manual, talc::DefaultBinning>;
pointer_peer!(Talc, Talc0, |h, l| raw(h.allocate(l)), |h, p, l| h.deallocate(p, l), |h, p, l, n| {
    if h.try_realloc_in_place(p, l, n) {
        p
    } else {
        let new = copied(raw(h.allocate(layout(n, l.align()))), p, n.min(l.size()));
        if !new.is_null() {
            h.deallocate(p, l);
        }
        new
    }
});
pointer_peer!(
    LinkedList,
    linked_list_allocator::Heap,
    |h, l| raw(h.allocate_first_fit(l).ok()),
    |h, p, l| h.deallocate(NonNull::new_unchecked(p), l),
    |h, p, l, n| {
        let new = copied(raw(h.allocate_first_fit(layout(n, l.align())).ok()), p, n.min(l.size()));
        if !new.is_null() {
            h.deallocate(NonNull::new_unchecked(p), l);
        }
        new
    }
);
type Buddy0 = buddy_system_allocator::Heap<40>;
pointer_peer!(
    Buddy,
    Buddy0,
    |h, l| raw(h.alloc(l).ok()),
    |h, p, l| h.dealloc(NonNull::new_unchecked(p), l),
    |h, p, l, n| {
        let new = copied(raw(h.alloc(layout(n, l.align())).ok()), p, n.min(l.size()));
        if !new.is_null() {
            h.dealloc(NonNull::new_unchecked(p), l);
        }
        new
    }
);
pointer_peer!(Glibc, std::alloc::System, |h, l| h.alloc(l), |h, p, l| h.dealloc(p, l), |h, p, l, n| h.realloc(p, l, n));
pointer_peer!(Mimalloc, mimalloc::MiMalloc, |h, l| h.alloc(l), |h, p, l| h.dealloc(p, l), |h, p, l, n| h
    .realloc(p, l, n));
pointer_peer!(Jemalloc, tikv_jemallocator::Jemalloc, |h, l| h.alloc(l), |h, p, l| h.dealloc(p, l), |h, p, l, n| h
    .realloc(p, l, n));

pub fn arenite(bytes: usize, ids: usize) -> Arenite {
    sharded(Region::new(bytes, true), ids, 1)
}

/// A pool over the region, divided among so many locks.
pub fn sharded(region: Region, ids: usize, shards: usize) -> Arenite {
    let config = PoolConfig { growth: Growth::None, shards, ..PoolConfig::default() };
    // SAFETY: the region lives as long as the pool beside it.
    let heap = unsafe { Pool::over(NonNull::new(region.start).unwrap(), region.bytes, config) }.unwrap();
    Arenite { heap, table: vec![NONE; ids], _region: Some(region) }
}

pub fn rlsf(bytes: usize, ids: usize) -> Option<Rlsf> {
    let region = Region::new(bytes, true);
    let mut heap = Rlsf0::new();
    let block = NonNull::slice_from_raw_parts(NonNull::new(region.start).unwrap(), region.bytes);
    // SAFETY: the region lives as long as the heap beside it.
    unsafe { heap.insert_free_block_ptr(block) }?;
    Some(Rlsf { heap, table: vec![NONE; ids], _region: Some(region) })
}

pub fn talc(bytes: usize, ids: usize) -> Option<Talc> {
    let region = Region::new(bytes, true);
    let mut heap = Talc0::new(talc::source::Manual);
    // SAFETY: as above.
    unsafe { heap.claim(region.start, region.bytes) }?;
    Some(Talc { heap, table: vec![NONE; ids], _region: Some(region) })
}

pub fn linked_list(bytes: usize, ids: usize) -> LinkedList {
    let region = Region::new(bytes, true);
    // SAFETY: as above.
    let heap = unsafe { linked_list_allocator::Heap::new(region.start, region.bytes) };
    LinkedList { heap, table: vec![NONE; ids], _region: Some(region) }
}

pub fn buddy(bytes: usize, ids: usize) -> Buddy {
    let region = Region::new(bytes, true);
    let mut heap = Buddy0::new();
    // SAFETY: as above.
    unsafe { heap.init(region.start as usize, region.bytes) };
    Buddy { heap, table: vec![NONE; ids], _region: Some(region) }
}

pub fn glibc(ids: usize) -> Glibc {
    Glibc { heap: std::alloc::System, table: vec![NONE; ids], _region: None }
}

pub fn mimalloc(ids: usize) -> Mimalloc {
    Mimalloc { heap: mimalloc::MiMalloc, table: vec![NONE; ids], _region: None }
}

pub fn jemalloc(ids: usize) -> Jemalloc {
    Jemalloc { heap: tikv_jemallocator::Jemalloc, table: vec![NONE; ids], _region: None }
}

/// Our heap by handle: offsets only, no directory, no lock.
pub struct Handles {
    pub heap: Heap<Vec<Node>, [u32; 0]>,
    table: Vec<Option<(Handle, usize)>>,
    /// Lifetime hints by id, if they are to be used.
    pub life: Vec<Side>,
}

impl Handles {
    pub fn new(bytes: usize, ids: usize) -> Handles {
        let heap = Heap::new(0, 0, bytes as u64, Vec::with_capacity(1 << 16)).unwrap();
        Handles { heap, table: vec![None; ids], life: Vec::new() }
    }
}

impl Peer for Handles {
    #[inline]
    fn alloc(&mut self, id: usize, bytes: usize, align: usize) -> bool {
        let mut request = Request::new(bytes as u64, align as u64);
        if let Some(&side) = self.life.get(id) {
            request = request.side(side);
        }
        match self.heap.alloc_with(&request) {
            Ok(handle) => {
                self.table[id] = Some((handle, align));
                true
            }
            Err(_) => false,
        }
    }

    #[inline]
    fn free(&mut self, id: usize) {
        if let Some((handle, _)) = self.table[id].take() {
            self.heap.free(handle).unwrap();
        }
    }

    fn resize(&mut self, id: usize, bytes: usize) -> bool {
        let (handle, align) = self.table[id].unwrap();
        if self.heap.resize(handle, bytes as u64, 0).unwrap() {
            return true;
        }
        if let Some((moved, _)) = self.heap.grow_down(handle, bytes as u64, 0).unwrap() {
            let _ = self.heap.resize(moved, bytes as u64, 0);
            self.table[id] = Some((moved, align));
            return true;
        }
        if !self.alloc(id, bytes, align) {
            return false;
        }
        self.heap.free(handle).unwrap();
        true
    }
}

/// OffsetAllocator in units of 128 bytes, larger alignments by asking for more.
pub struct Offsets {
    heap: offset_allocator::Allocator<u32>,
    table: Vec<Option<(offset_allocator::Allocation<u32>, usize)>>,
}

impl Offsets {
    pub fn new(bytes: usize, ids: usize) -> Offsets {
        let heap = offset_allocator::Allocator::with_max_allocs((bytes / 128) as u32, 1 << 16);
        Offsets { heap, table: (0..ids).map(|_| None).collect() }
    }
}

impl Peer for Offsets {
    #[inline]
    fn alloc(&mut self, id: usize, bytes: usize, align: usize) -> bool {
        let units = bytes.max(1).div_ceil(128) + align.max(128) / 128 - 1;
        match self.heap.allocate(units as u32) {
            Some(a) => {
                self.table[id] = Some((a, align));
                true
            }
            None => false,
        }
    }

    #[inline]
    fn free(&mut self, id: usize) {
        if let Some((a, _)) = self.table[id].take() {
            self.heap.free(a);
        }
    }

    fn resize(&mut self, id: usize, bytes: usize) -> bool {
        let (old, align) = self.table[id].take().unwrap();
        let ok = self.alloc(id, bytes, align);
        self.heap.free(old);
        ok
    }
}
