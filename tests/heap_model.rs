//! The heap against a shadow: every operation is repeated on a plain map of granules, which knows nothing of the heap.

use arenite::heap::{pages_for, Borrowed, Fault, Handle, Heap, Node, Request, Side, GRANULE};

/// A small generator of our own, so that a failing seed is one number.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
}

const SIDES: [Side; 8] =
    [Side::Auto, Side::Low, Side::High, Side::Lowest, Side::Scratch, Side::Short, Side::Long, Side::Grow];

type VecHeap = Heap<Vec<Node>, Vec<u32>>;

fn heap(base: u64, bytes: u64, nodes: usize) -> VecHeap {
    Heap::with_pages(3, base, bytes, Vec::with_capacity(nodes), vec![0; pages_for(bytes)]).unwrap()
}

#[derive(Clone, Copy)]
struct Live {
    handle: Handle,
    bytes: u64,
    align: u64,
    held: u64,
}

/// A bit a granule: live blocks do not overlap as long as none takes a bit that is set.
struct Shadow {
    taken: Vec<u64>,
    live: Vec<Live>,
    stale: [Handle; 64],
    freed: usize,
}

impl Shadow {
    fn new(bytes: u64) -> Shadow {
        let granules = (bytes / GRANULE) as usize;
        let mut taken = vec![0; granules.div_ceil(64)];
        if !granules.is_multiple_of(64) {
            // What lies past the region is nobody's.
            taken[granules / 64] = u64::MAX << (granules % 64);
        }
        Shadow { taken, live: Vec::new(), stale: [Handle::from_words([0; 4]); 64], freed: 0 }
    }

    /// Each word of the bitmap with the bits of a range in it.
    fn words(from: u64, bytes: u64) -> impl Iterator<Item = (usize, u64)> {
        let (start, end) = (from / GRANULE, (from + bytes) / GRANULE);
        (start / 64..end.div_ceil(64)).map(move |word| {
            let (low, high) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            (word as usize, (u64::MAX >> (64 - (high - low))) << low)
        })
    }

    fn claim(&mut self, from: u64, bytes: u64) {
        for (word, mask) in Shadow::words(from, bytes) {
            assert_eq!(self.taken[word] & mask, 0, "a granule was handed out twice");
            self.taken[word] |= mask;
        }
    }

    fn release(&mut self, l: &Live) {
        for (word, mask) in Shadow::words(l.handle.offset(), l.held) {
            assert_eq!(self.taken[word] & mask, mask, "a granule changed hands while it was live");
            self.taken[word] &= !mask;
        }
    }

    fn retire(&mut self, handle: Handle) {
        self.stale[self.freed % 64] = handle;
        self.freed += 1;
    }

    /// The handles freed last, latest first.
    fn stale(&self, count: usize) -> impl Iterator<Item = Handle> + '_ {
        (0..count.min(self.freed)).map(|i| self.stale[(self.freed - 1 - i) % 64])
    }

    /// Every run of free granules: where it starts and how long it is.
    fn runs(&self, mut see: impl FnMut(u64, u64)) {
        let (mut start, mut len) = (0, 0);
        for (word, &taken) in self.taken.iter().enumerate() {
            let mut at = 0;
            while at < 64 {
                let rest = taken >> at;
                let free = u64::from(rest.trailing_zeros()).min(64 - at);
                if free > 0 {
                    if len == 0 {
                        start = word as u64 * 64 + at;
                    }
                    len += free;
                    at += free;
                }
                if at < 64 {
                    see(start, len);
                    len = 0;
                    at += u64::from((taken >> at).trailing_ones());
                }
            }
        }
        see(start, len);
    }

    fn longest_run(&self) -> u64 {
        let mut longest = 0;
        self.runs(|_, len| longest = len.max(longest));
        longest
    }

    /// Whether some run of free granules holds `len` granules at a multiple of `align` bytes.
    fn fits(&self, base: u64, len: u64, align: u64) -> bool {
        let mut fits = false;
        self.runs(|start, run| {
            let from = base + start * GRANULE;
            let skip = from.next_multiple_of(align.max(GRANULE)) - from;
            fits |= run > 0 && skip / GRANULE + len <= run;
        });
        fits
    }
}

fn size(r: &mut Rng) -> u64 {
    match r.below(10) {
        0..=4 => r.below(600),
        5..=7 => r.below(8000),
        8 => r.below(60_000),
        _ => 1 << r.below(17),
    }
}

fn run(seed: u64, base: u64, bytes: u64, nodes: usize, ops: u64, limit: Option<u32>) -> (VecHeap, u64) {
    let mut r = Rng(seed | 1);
    let mut h = heap(base, bytes, nodes);
    if let Some(limit) = limit {
        h.set_generation_limit(limit);
    }
    let mut s = Shadow::new(bytes);
    let mut refused = 0;
    for op in 0..ops {
        let full = s.live.len() as u64 * 3 > bytes / 4096;
        match r.below(16) {
            0..=6 if !full => {
                let (bytes, align) = (size(&mut r), 1 << r.below(17));
                let extra = if r.below(8) == 0 { r.below(2000) } else { 0 };
                let side = SIDES[r.below(SIDES.len() as u64) as usize];
                match h.alloc_with(&Request::new(bytes, align).extra(extra).side(side)) {
                    Ok(handle) => {
                        let (held, requested) = h.size(handle).unwrap();
                        assert_eq!(requested, bytes);
                        assert_eq!(held, (bytes + extra).max(1).div_ceil(GRANULE) * GRANULE);
                        assert!((base + handle.offset()).is_multiple_of(align));
                        s.claim(handle.offset(), held);
                        s.live.push(Live { handle, bytes, align, held });
                    }
                    Err(Fault::NoNode) => assert!(h.spare_nodes() < 2),
                    Err(Fault::NoSpace | Fault::TooLarge) => {
                        refused += 1;
                        let len = (bytes + extra).max(1).div_ceil(GRANULE);
                        assert!(!s.fits(base, len, align), "refused although it fits");
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            7..=9 if !s.live.is_empty() => {
                let i = r.below(s.live.len() as u64) as usize;
                let l = s.live[i];
                let (new, extra) = (size(&mut r), if r.below(4) == 0 { 512 } else { 0 });
                match h.resize(l.handle, new, extra) {
                    Ok(true) => {
                        let (held, requested) = h.size(l.handle).unwrap();
                        assert_eq!(requested, new);
                        s.release(&l);
                        s.claim(l.handle.offset(), held);
                        s.live[i] = Live { bytes: new, held, ..l };
                    }
                    Ok(false) => {
                        assert!(new + extra > l.held);
                        if let Some((handle, down)) = h.grow_down(l.handle, new, extra).unwrap() {
                            assert_eq!(handle.offset() + down, l.handle.offset());
                            assert!((base + handle.offset()).is_multiple_of(l.align), "BR-34");
                            let (held, requested) = h.size(handle).unwrap();
                            assert_eq!(requested, new);
                            assert!(handle.offset() + held >= l.handle.offset() + l.held, "old contents stay owned");
                            s.release(&l);
                            s.claim(handle.offset(), held);
                            s.retire(l.handle);
                            let moved = Live { handle, bytes: new, held, ..l };
                            s.live[i] = moved;
                            // What the alignment left over goes back once the contents have moved.
                            assert!(h.resize(handle, new, extra).unwrap());
                            s.release(&moved);
                            let held = h.size(handle).unwrap().0;
                            s.claim(handle.offset(), held);
                            s.live[i].held = held;
                        }
                    }
                    Err(Fault::TooLarge) => assert!(new + extra > bytes),
                    Err(other) => panic!("{other:?}"),
                }
            }
            10 => {
                // Bad frees of every kind: none may be taken for a live block.
                // Hashing every record takes longer than a thousand calls; the counters and the map are looked at always.
                let whole = r.below(64) == 0;
                let before = whole.then(|| h.fingerprint());
                let bad = h.stats().bad;
                let mut tried = 1;
                assert!(h
                    .free(Handle::from_words([3, r.next() as u32, r.below(64) as u32, r.below(9) as u32 | 1 << 31]))
                    .is_err());
                for stale in s.stale(4) {
                    assert_eq!(h.free(stale), Err(Fault::BadHandle));
                    tried += 1;
                }
                if let Some(l) = s.live.first() {
                    let [region, granule, node, generation] = l.handle.to_words();
                    for words in [
                        [region + 1, granule, node, generation],
                        [region, granule + 1, node, generation],
                        [region, granule, node, generation.wrapping_sub(1)],
                        [region, granule, u32::MAX, generation],
                    ] {
                        assert_eq!(h.free(Handle::from_words(words)), Err(Fault::BadHandle));
                        tried += 1;
                    }
                    for offset in [l.handle.offset() + 1, l.handle.offset() + GRANULE / 2, bytes, u64::MAX] {
                        assert_eq!(h.free_at(offset), Err(Fault::BadOffset));
                        tried += 1;
                    }
                    if l.held > GRANULE {
                        assert_eq!(h.free_at(l.handle.offset() + GRANULE), Err(Fault::BadOffset));
                        tried += 1;
                    }
                    assert_eq!(h.free_sized(l.handle, l.bytes + 1), Err(Fault::BadSize));
                    tried += 1;
                }
                assert_eq!(h.stats().bad, bad + tried);
                if let Some(before) = before {
                    assert_eq!(h.fingerprint(), before);
                }
            }
            _ if !s.live.is_empty() => {
                let i = r.below(s.live.len() as u64) as usize;
                let l = s.live.swap_remove(i);
                s.release(&l);
                assert_eq!(h.find(l.handle.offset()), Some(l.handle));
                assert_eq!(h.align_of(l.handle), Some(l.align.max(GRANULE)));
                match r.below(3) {
                    0 => assert_eq!(h.free(l.handle), Ok(l.bytes)),
                    1 => assert_eq!(h.free_at(l.handle.offset()), Ok(l.bytes)),
                    _ => assert_eq!(h.free_sized(l.handle, l.bytes), Ok(())),
                }
                s.retire(l.handle);
            }
            _ => {}
        }
        // After every call the counters are those of the map.
        let stats = h.stats();
        assert_eq!((stats.free + stats.live, stats.blocks), (stats.total, s.live.len() as u64));
        if op % 1024 == 0 {
            h.check().unwrap();
            assert_eq!(stats.requested, s.live.iter().map(|l| l.bytes).sum::<u64>());
            assert_eq!(stats.live, s.live.iter().map(|l| l.held).sum::<u64>());
            let mut seen = 0;
            h.walk(|e| seen += u64::from(e.handle.is_some()));
            assert_eq!(seen, s.live.len() as u64);
            assert_eq!(h.largest_free(), s.longest_run() * GRANULE);
        }
    }
    for l in std::mem::take(&mut s.live) {
        h.free(l.handle).unwrap();
    }
    h.check().unwrap();
    assert!(h.stats().max_steps <= VecHeap::STEP_LIMIT, "{}", h.stats().max_steps);
    (h, refused)
}

fn ops() -> u64 {
    std::env::var("ARENITE_FUZZ_OPS").ok().and_then(|v| v.parse().ok()).unwrap_or(1_000_000)
}

/// The first seed of a longer run, so that pieces of it differ.
fn seed() -> u64 {
    std::env::var("ARENITE_FUZZ_SEED").ok().and_then(|v| v.parse().ok()).unwrap_or(0) * 1000
}

#[test]
fn a_shadow_agrees_on_every_operation() {
    let mut refused = 0;
    for seed in 1..=4 {
        // Bases that meet 128, 4096 and everything; regions from tiny to 16 MiB.
        let base = [0x7f00_0080, 0x10_0000_1000, 0, 0xffff_ff80][seed as usize % 4];
        let (h, r) = run(self::seed() + seed, base, 1 << (17 + seed), 1 << 15, ops() / 4, None);
        assert_eq!((h.stats().free_blocks, h.stats().live), (1, 0));
        refused += r;
    }
    assert!(refused > 0, "the fuzz never filled the heap");
    println!("{} operations, 0 differences", ops() / 4 * 4);
}

#[test]
fn a_shadow_agrees_while_nodes_run_out() {
    for seed in 10..14 {
        run(self::seed() + seed, 0, 1 << 19, 24, ops() / 8, None);
    }
    println!("{} operations, 0 differences", ops() / 8 * 4);
}

#[test]
fn no_handle_comes_back_when_generations_wrap_early() {
    // 4 bits: a node is retired after 15 lives, so thousands of nodes are spent.
    let (h, _) = run(77, 0, 1 << 20, 1 << 16, 20_000, Some(15));
    assert!(h.stats().retired_nodes > 100);
}

#[test]
fn a_worn_out_heap_refuses_and_stays_whole() {
    let mut h = heap(0, 1 << 14, 16);
    h.set_generation_limit(3);
    let mut seen = std::collections::HashSet::new();
    loop {
        match h.alloc(1 << 14, 1) {
            Ok(handle) => {
                assert!(seen.insert(handle), "a handle came back");
                h.free(handle).unwrap();
            }
            Err(fault) => {
                assert_eq!(fault, Fault::NoNode);
                break;
            }
        }
        h.check().unwrap();
    }
    h.check().unwrap();
    assert!(seen.len() >= 16 * 2, "{}", seen.len());
}

#[test]
fn br_23_24_sizes_near_the_top_are_refused() {
    let mut h = heap(0, 4096, 64);
    let before = h.fingerprint();
    for size in (0..4096).map(|k| u64::MAX - k).chain([u64::MAX / 2, u64::MAX / 2 + 1, 4097, 1 << 40, i64::MAX as u64])
    {
        assert_eq!(h.alloc(size, 1), Err(Fault::TooLarge), "{size}");
        assert!(h.alloc_with(&Request::new(128, 1).extra(size)).is_err());
    }
    for align in [0, 3, 12, u64::MAX, (1 << 63) + 1] {
        assert_eq!(h.alloc(1, align), Err(Fault::Alignment));
    }
    for align in [1 << 63, 1 << 40] {
        assert!(h.alloc(1, align).is_err());
    }
    assert_eq!(h.fingerprint(), before);
    let zero = h.alloc(0, 1).unwrap();
    let one = h.alloc(128, 1).unwrap();
    assert_ne!(zero.offset(), one.offset(), "a block of 0 bytes has an offset of its own");
    assert_eq!(h.size(zero), Some((128, 0)));
    h.free(zero).unwrap();
    h.free(one).unwrap();
    h.check().unwrap();
}

#[test]
fn br_34_alignment_survives_every_resize() {
    let mut h = heap(128, 1 << 22, 1024);
    let guard = h.alloc_with(&Request::new(128, 1).side(Side::Low)).unwrap();
    let p = h.alloc_with(&Request::new(100, 4096).side(Side::Low)).unwrap();
    let wall = h.alloc_with(&Request::new(8192, 1).side(Side::Low)).unwrap();
    assert_eq!(h.resize(p, 65_536, 0), Ok(false));
    assert_eq!(h.align_of(p), Some(4096));
    h.free(wall).unwrap();
    assert_eq!(h.resize(p, 65_536, 0), Ok(true));
    assert_eq!((128 + p.offset()) % 4096, 0);
    h.free(guard).unwrap();
    h.check().unwrap();
}

#[test]
fn growing_blocks_are_kept_apart() {
    let mut h = heap(0, 16 << 20, 1024);
    let mut blocks: Vec<Handle> =
        (0..8).map(|_| h.alloc_with(&Request::new(1 << 10, 4096).side(Side::Grow)).unwrap()).collect();
    // Each can grow to a sixteenth of the region where it is, all of them at the same time.
    for step in 1..=1024u64 {
        for b in &mut blocks {
            assert_eq!(h.resize(*b, step << 10, 0), Ok(true), "{step}");
        }
    }
    h.check().unwrap();
    // A request that fits nowhere in the largest block's middle still gets what there is.
    let mut h = heap(128, 8192, 64);
    assert!(h.alloc_with(&Request::new(4096, 4096).side(Side::Grow)).is_ok());
    assert_eq!(h.alloc_with(&Request::new(8192, 1).side(Side::Grow)), Err(Fault::NoSpace));
    h.check().unwrap();
}

#[test]
fn br_35_sizes_and_alignments_on_a_grid() {
    let mut h = heap(0x80, 64 << 20, 4096);
    let mut live = Vec::new();
    for size in (0..=20).flat_map(|b| [(1u64 << b) - 1, 1 << b, (1 << b) + 1]) {
        for align in (0..=20).map(|b| 1u64 << b) {
            let p = h.alloc(size, align).unwrap();
            assert_eq!((0x80 + p.offset()) % align, 0, "{size} {align}");
            live.push(p);
            if live.len() == 12 {
                live.drain(..).for_each(|p| assert!(h.free(p).is_ok()));
                assert_eq!(h.largest_free(), 64 << 20);
            }
        }
    }
    live.drain(..).for_each(|p| assert!(h.free(p).is_ok()));
    h.check().unwrap();
    assert_eq!(h.largest_free(), 64 << 20);
}

#[test]
fn br_37_gaps_past_16_mib_always_merge() {
    let mib = 1u64 << 20;
    for gap in [16 * mib, 16 * mib + 128, 32 * mib, 48 * mib] {
        for order in 0..6 {
            let mut h = heap(0, 64 * mib, 64);
            let parts = [gap / 2, gap - gap / 2 - 128, 128];
            let mut p: Vec<_> =
                parts.iter().map(|&b| h.alloc_with(&Request::new(b, 1).side(Side::Low)).unwrap()).collect();
            let wall = h.alloc_with(&Request::new(128, 1).side(Side::Low)).unwrap();
            p.rotate_left(order % 3);
            if order >= 3 {
                p.swap(0, 1);
            }
            for b in p {
                h.free(b).unwrap();
                h.check().unwrap();
            }
            assert_eq!(h.stats().free_blocks, 2);
            let again = h.alloc(gap, 1).unwrap();
            h.free(wall).unwrap();
            h.free(again).unwrap();
            assert_eq!(h.largest_free(), 64 * mib);
        }
    }
}

#[test]
fn br_38_a_freed_size_is_always_served_again() {
    for n in (128..=1 << 20).step_by(128) {
        let mut h = heap(0, n, 4);
        for _ in 0..2 {
            let p = h.alloc(n, 1).unwrap();
            h.free(p).unwrap();
        }
    }
}

#[test]
fn br_40_foreign_interior_and_repeated_frees_leave_the_heap_as_it_was() {
    let (mut h, mut other) = (heap(0, 1 << 16, 64), heap(0, 1 << 16, 64));
    let p = h.alloc(1000, 1).unwrap();
    let before = h.fingerprint();
    let foreign = Heap::<_, _>::new(9, 0, 1 << 16, Vec::with_capacity(8)).unwrap().alloc(1000, 1).unwrap();
    assert!(h.free(foreign).is_err());
    assert!(h.free_at(p.offset() + 128).is_err());
    assert!(other.free_at(p.offset()).is_err());
    assert_eq!(h.fingerprint(), before);
    h.free(p).unwrap();
    assert!(h.free(p).is_err() && h.free_at(p.offset()).is_err());
    assert_eq!(h.stats().bad, 4);
    h.check().unwrap();
}

#[test]
fn br_41_a_shrunk_tail_is_whole_granules() {
    let mut h = heap(0, 1 << 16, 64);
    let p = h.alloc_with(&Request::new(1000, 1).side(Side::Low)).unwrap();
    let wall = h.alloc_with(&Request::new(128, 1).side(Side::Low)).unwrap();
    assert_eq!(h.size(p), Some((1024, 1000)));
    assert_eq!(h.resize(p, 300, 0), Ok(true));
    assert_eq!(h.size(p), Some((384, 300)));
    let tail = h.alloc(640, 1).unwrap();
    assert_eq!(tail.offset(), p.offset() + 384);
    for b in [p, wall, tail] {
        h.free(b).unwrap();
    }
    h.check().unwrap();
}

#[test]
fn the_lowest_place_wins_over_the_best_fit() {
    let mut h = heap(0, 1 << 20, 256);
    let mut blocks = Vec::new();
    // Gaps of 4096, 1024 and 512 bytes, in that order.
    for bytes in [4096, 1024, 512] {
        blocks.push(h.alloc_with(&Request::new(bytes, 1).side(Side::Low)).unwrap());
        h.alloc_with(&Request::new(128, 1).side(Side::Low)).unwrap();
    }
    let (first, second) = (blocks[0].offset(), blocks[1].offset());
    for block in blocks {
        h.free(block).unwrap();
    }
    let lowest =
        |h: &mut VecHeap, bytes, align| h.alloc_with(&Request::new(bytes, align).side(Side::Lowest)).unwrap().offset();
    assert_eq!(lowest(&mut h, 500, 1), first);
    assert_eq!(lowest(&mut h, 3000, 1), first + 512);
    assert_eq!(lowest(&mut h, 1000, 1), second);
    assert_eq!(lowest(&mut h, 100, 4096), 8192);
    assert!(lowest(&mut h, 1 << 18, 1) > second);
    h.check().unwrap();
}

/// Nine free blocks of one bin, only the deepest of which fits: a scan of eight alone would refuse.
fn nine(len: u64, fit: u64, align: u64) -> (VecHeap, u64) {
    let mut h = heap(0, 64 << 20, 4096);
    // The block that fits is freed first, so that it lies deepest in the bin.
    let mut blocks = Vec::new();
    for i in 0..10 {
        let bytes = if i == 0 { fit } else { len };
        // Only the first one starts at a multiple of the alignment.
        let at = if i == 0 { align } else { 128 };
        blocks.push(h.alloc_with(&Request::new(bytes, at).side(Side::Low)).unwrap());
        h.alloc_with(&Request::new(128, 1).side(Side::Low)).unwrap();
    }
    let rest = h.largest_free();
    h.alloc(rest, 1).unwrap();
    let at = blocks[0].offset();
    for b in blocks {
        h.free(b).unwrap();
    }
    (h, at)
}

#[test]
fn the_ninth_block_of_a_bin_is_found_before_a_refusal() {
    // 128 granules: bins of 4 sizes, so 130 and 131 share one.
    let (mut h, at) = nine(129 * 128, 131 * 128, 128);
    let p = h.alloc(131 * 128, 1).unwrap();
    assert_eq!(p.offset(), at);
    assert_eq!(h.stats().exhaustive_scans, 1);
    h.check().unwrap();
    let (mut h, at) = nine(1024 * 128, 1024 * 128, 65_536);
    let p = h.alloc(1024 * 128, 65_536).unwrap();
    assert_eq!(p.offset(), at, "an exact fit at 64 KiB alignment");
    h.check().unwrap();
}

#[test]
fn a_device_without_a_heap_lends_slices() {
    let mut nodes = [Node::EMPTY; 16];
    // 64 KiB are 512 granules: 6 rows of bins suffice.
    let mut h: Heap<_, _, 6> = Heap::new(0, 0, 1 << 16, Borrowed::new(&mut nodes)).unwrap();
    let a = h.alloc(1000, 1).unwrap();
    let b = h.alloc(5000, 512).unwrap();
    h.free(a).unwrap();
    h.check().unwrap();
    h.free(b).unwrap();
    assert_eq!(h.largest_free(), 1 << 16);
    let mut few = [Node::EMPTY; 16];
    assert!(Heap::<_, _, 5>::new(0, 0, 1 << 16, Borrowed::new(&mut few)).is_err(), "too few rows");
}
