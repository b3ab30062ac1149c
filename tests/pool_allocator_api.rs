//! The pool under Rust collections through `allocator-api2`: growth, shrinking, over-alignment, no bytes, drop order.
#![cfg(feature = "allocator-api2")]

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use arenite::runtime::{DebugOptions, Growth, Pool, PoolConfig};

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).unwrap()
}

fn empty(pool: &Pool) {
    assert_eq!(pool.stats().heap.blocks, 0);
    pool.check().unwrap();
}

#[test]
fn a_vector_grows_and_shrinks() {
    let pool = pool();
    let mut v = Vec::new_in(&pool);
    for i in 0..100_000u32 {
        v.push(i);
    }
    for len in [70_000, 1000, 32, 1, 0] {
        v.truncate(len);
        v.shrink_to_fit();
        assert!(v.capacity() == len && v.iter().enumerate().all(|(i, &n)| i as u32 == n));
        assert_eq!(pool.stats().heap.requested, len as u64 * 4, "a shrink gives back what it leaves");
    }
    drop(v);
    empty(&pool);
}

#[test]
fn values_of_strict_alignment_and_of_no_bytes() {
    #[derive(Clone, Copy)]
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let pool = pool();
    let mut pages = Vec::new_in(&pool);
    for i in 0..40 {
        pages.push(Page([i; 4096]));
        assert_eq!(pages.as_ptr() as usize % 4096, 0);
    }
    assert!(pages.iter().enumerate().all(|(i, p)| p.0.iter().all(|&b| b == i as u8)));
    let mut nothing = Vec::new_in(&pool);
    (0..1000).for_each(|_| nothing.push(()));
    assert_eq!(nothing.len(), 1000);
    let one = Box::new_in(Page([7; 4096]), &pool);
    assert_eq!((&raw const *one) as usize % 4096, 0);
    drop((pages, nothing, one));
    empty(&pool);
}

#[test]
fn every_change_of_layout_keeps_contents_and_alignment() {
    let pool = pool();
    let layout = |bytes, align| Layout::from_size_align(bytes, align).unwrap();
    let sizes = [0usize, 1, 127, 128, 129, 1000, 4096, 70_000];
    for from in sizes {
        for to in sizes {
            for (old, new) in [(1, 1), (4096, 1), (1, 4096), (4096, 4096), (256, 512)] {
                let (a, b) = (layout(from, old), layout(to, new));
                let p = (&pool).allocate_zeroed(a).unwrap().cast::<u8>();
                // SAFETY: the block holds so many bytes.
                assert!((0..from).all(|i| unsafe { p.as_ptr().wrapping_add(i).read() } == 0));
                // SAFETY: as above.
                unsafe { p.write_bytes(0x42, from) };
                let q = if to >= from {
                    // SAFETY: of this pool and layout; the size grows.
                    unsafe { (&pool).grow_zeroed(p, a, b) }
                } else {
                    // SAFETY: the same; the size shrinks.
                    unsafe { (&pool).shrink(p, a, b) }
                };
                let q: NonNull<u8> = q.unwrap().cast();
                assert_eq!(q.as_ptr() as usize % new, 0, "{from} at {old} to {to} at {new}");
                // SAFETY: the block holds `to` bytes.
                assert!((0..from.min(to)).all(|i| unsafe { q.as_ptr().wrapping_add(i).read() } == 0x42));
                // What was added is zero.
                // SAFETY: as above.
                assert!((from..to).all(|i| unsafe { q.as_ptr().wrapping_add(i).read() } == 0));
                // SAFETY: of this pool, freed once.
                unsafe { (&pool).deallocate(q, b) };
                empty(&pool);
            }
        }
    }
}

#[test]
fn a_full_pool_leaves_the_vector_as_it_was() {
    let pool = Pool::new(PoolConfig { first_region: 1 << 16, growth: Growth::None, ..PoolConfig::default() }).unwrap();
    let mut v: Vec<u8, &Pool> = Vec::new_in(&pool);
    v.resize(40_000, 5);
    assert!(v.try_reserve(1 << 20).is_err() && v.try_reserve(isize::MAX as usize - 50_000).is_err());
    assert!(v.len() == 40_000 && v.iter().all(|&b| b == 5));
    drop(v);
    empty(&pool);
}

#[test]
fn two_pools_keep_their_blocks_apart_and_drop_in_order() {
    struct Noted<'a>(u32, &'a RefCell<std::vec::Vec<u32>>);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }
    let order = RefCell::new(std::vec::Vec::new());
    let (a, b) = (pool(), pool());
    {
        let mut first = Vec::new_in(&a);
        let mut second = Vec::new_in(&b);
        for i in 0..100 {
            first.push(Noted(i, &order));
            second.push(Box::new_in(Noted(100 + i, &order), &a));
        }
        assert!(a.owns(NonNull::from(&first[0]).cast()) && !b.owns(NonNull::from(&first[0]).cast()));
        assert!(b.owns(NonNull::from(&second[0]).cast()) && a.owns(NonNull::from(&*second[0]).cast()));
        assert_eq!((a.stats().heap.blocks, b.stats().heap.blocks), (101, 1));
        // Moved from one pool to the other, the values live on.
        let mut third = Vec::new_in(&b);
        third.extend(first.drain(50..));
        assert!(order.borrow().is_empty());
        drop(third);
        assert_eq!(*order.borrow(), (50..100).collect::<std::vec::Vec<_>>());
        order.borrow_mut().clear();
    }
    // The later variable first, each from front to back.
    assert_eq!(*order.borrow(), (100..200).chain(0..50).collect::<std::vec::Vec<_>>());
    empty(&a);
    empty(&b);
}

#[test]
fn a_pool_with_checks_serves_collections_too() {
    let debug = DebugOptions { sanitizer: false, ..DebugOptions::ALL };
    let pool = Pool::new(PoolConfig { debug, ..PoolConfig::default() }).unwrap();
    let mut lists = Vec::new_in(&pool);
    for i in 0..200usize {
        let mut list = Vec::with_capacity_in(i, &pool);
        list.extend(0..i);
        lists.push(list);
    }
    pool.check().unwrap();
    drop(lists);
    pool.check().unwrap();
    assert!(pool.leaks().is_empty());
}
