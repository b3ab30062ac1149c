//! A program whose global allocator is ours runs the standard library's collections, on several threads.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc;
use std::sync::Arc;

use arenite::runtime::GlobalPool;

#[global_allocator]
static HEAP: GlobalPool = GlobalPool::new(512);

fn pooled(bytes: usize, at: *const u8) -> bool {
    let owned = std::ptr::NonNull::new(at.cast_mut()).is_some_and(|p| HEAP.pool().is_some_and(|pool| pool.owns(p)));
    assert_eq!(owned, bytes >= 512, "{bytes} bytes");
    owned
}

#[test]
fn vectors_cross_the_threshold_both_ways() {
    let mut bytes: Vec<u8> = Vec::new();
    for i in 0..300_000usize {
        bytes.push(i as u8);
        if i.is_power_of_two() {
            pooled(bytes.capacity(), bytes.as_ptr());
        }
    }
    assert!(bytes.iter().enumerate().all(|(i, &b)| i as u8 == b));
    for len in [100_000, 600, 512, 511, 100, 1] {
        bytes.truncate(len);
        bytes.shrink_to_fit();
        pooled(bytes.capacity(), bytes.as_ptr());
        assert!(bytes.iter().enumerate().all(|(i, &b)| i as u8 == b), "{len}");
    }
    bytes.resize(5000, 7);
    assert!(bytes[1..].iter().all(|&b| b == 7));
}

#[test]
fn every_size_and_alignment_by_the_trait_itself() {
    for bits in 0..=18 {
        for bytes in [(1usize << bits) - 1, 1 << bits, (1 << bits) + 1].into_iter().filter(|&b| b > 0) {
            for align in (0..=16).map(|b| 1usize << b) {
                let layout = Layout::from_size_align(bytes, align).unwrap();
                // SAFETY: the layout is not empty.
                let p = unsafe { HEAP.alloc_zeroed(layout) };
                assert!(!p.is_null() && (p as usize).is_multiple_of(align));
                // SAFETY: the block holds so many bytes.
                assert!((0..bytes).all(|i| unsafe { p.wrapping_add(i).read() } == 0));
                // SAFETY: as above.
                unsafe { p.write_bytes(0x3C, bytes) };
                let more = bytes * 2 + 1;
                // SAFETY: of this allocator and layout; the new size is not 0.
                let q = unsafe { HEAP.realloc(p, layout, more) };
                assert!(!q.is_null() && (q as usize).is_multiple_of(align), "{bytes} at {align} lost its alignment");
                // SAFETY: the block holds the old bytes.
                assert!((0..bytes).all(|i| unsafe { q.wrapping_add(i).read() } == 0x3C));
                let layout = Layout::from_size_align(more, align).unwrap();
                // SAFETY: as above.
                let q = unsafe { HEAP.realloc(q, layout, 1) };
                assert!((q as usize).is_multiple_of(align));
                // SAFETY: the block has one byte of the layout given.
                unsafe { HEAP.dealloc(q, Layout::from_size_align(1, align).unwrap()) };
            }
        }
    }
}

#[test]
fn impossible_layouts_are_null() {
    let layout = Layout::from_size_align(isize::MAX as usize - 4096, 4096).unwrap();
    // SAFETY: the layout is not empty.
    assert!(unsafe { HEAP.alloc(layout) }.is_null());
    assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize - 100).is_err());
}

#[test]
fn collections_on_many_threads() {
    let shared: Arc<Vec<String>> = Arc::new((0..1000).map(|i| "text ".repeat(i % 400)).collect());
    let (send, receive) = mpsc::channel::<Vec<u64>>();
    std::thread::scope(|s| {
        for thread in 0..12u64 {
            let (send, shared) = (send.clone(), shared.clone());
            s.spawn(move || {
                let mut map = HashMap::new();
                let mut tree = BTreeMap::new();
                let mut queue = VecDeque::new();
                for i in 0..2000u64 {
                    map.insert(i, vec![thread; (i % 200) as usize]);
                    tree.insert(i ^ thread, shared[(i % 1000) as usize].clone());
                    queue.push_back(i);
                    if i % 3 == 0 {
                        map.remove(&(i / 2));
                        queue.pop_front();
                    }
                }
                assert!(map.iter().all(|(i, v)| v.len() as u64 == i % 200 && v.iter().all(|&t| t == thread)));
                assert!(tree.iter().all(|(&i, text)| *text == shared[((i ^ thread) % 1000) as usize]));
                // Freed by the thread that receives it.
                send.send(queue.into_iter().collect()).unwrap();
            });
        }
        drop(send);
        let mut numbers = 0;
        while let Ok(list) = receive.recv() {
            assert!(list.is_sorted());
            numbers += list.len();
        }
        assert!(numbers > 0);
    });
    HEAP.pool().unwrap().check().unwrap();
}

#[test]
fn threads_end_and_panics_unwind() {
    for i in 0..50 {
        let joined = std::thread::spawn(move || {
            let kept = vec![i; 10_000];
            assert!(i % 5 != 0, "on purpose: {}", kept.len());
            kept.len()
        })
        .join();
        assert_eq!(joined.is_err(), i % 5 == 0);
    }
    HEAP.pool().unwrap().check().unwrap();
}
