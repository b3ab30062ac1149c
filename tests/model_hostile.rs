//! Damaged and hostile input: every reader answers with a model or an error, in bounded memory and time.
#![cfg(feature = "model")]
#![allow(missing_docs)]

#[path = "model_support/builder.rs"]
mod builder;
mod model_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use arenite::graph::tables::validate;
use arenite::model::{Model, OffsetColumn, Position, ProblemFile, Solution, Trace};
use arenite::units::Align;
use builder::{BufferSpec, FileSpec, GraphSpec, OpSpec, Options, TensorSpec};
use model_support::{files, read, shared, Random, MODELS};

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes each thread holds.
struct Counting;

// SAFETY: every call goes to `System` unchanged; the counters are plain thread-local numbers that never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = LIVE.try_with(|live| {
            live.set(live.get().wrapping_add(layout.size()));
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
        });
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _ = LIVE.try_with(|live| live.set(live.get().wrapping_sub(layout.size())));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes `work` held beyond what was held before.
fn peak(work: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    PEAK.get().saturating_sub(before)
}

/// Of this thread: a machine that is busy with something else takes nothing from it.
#[cfg(unix)]
fn processor_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the output is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) }, 0);
    Duration::new(u64::try_from(t.tv_sec).unwrap(), u32::try_from(t.tv_nsec).unwrap())
}

/// Not told apart from waiting here, and so not measured.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}

#[derive(Default)]
struct Tally {
    inputs: u64,
    accepted: u64,
    /// Largest peak as a multiple of the input, for inputs of 1 KiB and more.
    factor: f64,
    slowest: Duration,
}

impl Tally {
    /// Reads `input`, with limits on memory and time; an accepted model must be sound.
    fn try_tflite(&mut self, input: &[u8]) {
        self.measure(input, |input| match Model::from_tflite(input, "hostile") {
            Ok(model) => {
                sound(&model, input.len());
                true
            }
            Err(e) => {
                assert!(!matches!(e.at, Position::Byte(b) if b > input.len() as u64), "{e}");
                assert!(!e.to_string().is_empty());
                false
            }
        });
    }

    fn measure(&mut self, input: &[u8], read: impl Fn(&[u8]) -> bool) {
        let start = processor_time();
        let mut accepted = false;
        let peak = peak(|| accepted = read(input));
        let time = processor_time() - start;
        assert!(peak <= 64 * input.len() + (16 << 10), "{peak} bytes for an input of {}", input.len());
        // Fifty times what the slowest takes unoptimised: what grows with the square of a size in the file takes minutes.
        assert!(time < Duration::from_secs(5), "{time:?} for an input of {} bytes", input.len());
        if input.len() >= 1 << 10 {
            self.factor = self.factor.max(peak as f64 / input.len() as f64);
        }
        self.slowest = self.slowest.max(time);
        self.inputs += 1;
        self.accepted += u64::from(accepted);
    }

    fn report(&self, what: &str) {
        let Tally { inputs, accepted, factor, slowest } = self;
        eprintln!("{what}: {inputs} inputs, {accepted} accepted, at most {factor:.1} x memory, slowest {slowest:?}");
    }
}

/// Everything an accepted model refers to is there.
fn sound(model: &Model, length: usize) {
    for graph in &model.subgraphs {
        validate(graph).expect("indices were checked");
        for t in &graph.tensors {
            assert!(t.data.as_ref().is_none_or(|d| d.start < d.end && d.end <= length as u64));
        }
        for n in &graph.nodes {
            assert!(n.subgraphs.iter().all(|&s| (s as usize) < model.subgraphs.len()));
        }
    }
    model.entries();
    model.unresolved();
}

/// Changes 1 to 8 bytes, mostly to values that make trouble.
fn mutate(random: &mut Random, bytes: &mut [u8]) {
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0xFF, 0x7F, 0x80][random.below(4)],
            _ => {
                let word = [0, u32::MAX, 1 << 31, i32::MAX as u32, 4, random.next() as u32][random.below(6)];
                let at = at & !3;
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
        }
    }
}

/// The bytes of a model that are structure, not weights: all but the insides of long constants.
fn structure(file: &[u8]) -> Vec<usize> {
    let model = Model::from_tflite(file, "whole").unwrap();
    let mut is_data = vec![false; file.len()];
    for data in model.subgraphs.iter().flat_map(|g| &g.tensors).filter_map(|t| t.data.clone()) {
        is_data[data.start as usize..data.end as usize].fill(true);
    }
    (0..file.len()).filter(|&i| !is_data[i]).collect()
}

#[test]
fn real_models_cut_at_every_length() {
    let Some(dir) = shared() else { return };
    let mut tally = Tally::default();
    for (name, _) in MODELS {
        let file = read(&dir.join(format!("models/{name}.tflite")));
        for length in 0..file.len() {
            tally.try_tflite(&file[..length]);
        }
    }
    tally.report("cut");
}

#[test]
fn real_models_with_bytes_changed() {
    let Some(dir) = shared() else { return };
    let mut tally = Tally::default();
    for (name, _) in MODELS {
        let file = read(&dir.join(format!("models/{name}.tflite")));
        let places = structure(&file);
        let mut random = Random(name.len() as u64);
        let mut copy = file.clone();
        for round in 0..6000 {
            if round % 2 == 0 {
                mutate(&mut random, &mut copy);
            } else {
                // Weights are most of a file and take any value: aim at the rest.
                for _ in 0..1 + random.below(4) {
                    copy[places[random.below(places.len())]] = random.next() as u8;
                }
            }
            tally.try_tflite(&copy);
            copy.copy_from_slice(&file);
        }
    }
    tally.report("changed");
    assert!(tally.accepted > 0 && tally.accepted < tally.inputs);
}

/// A file written word by word.
struct Words(Vec<u8>);

impl Words {
    fn new() -> Words {
        Words([0u32.to_le_bytes(), *b"TFL3"].concat())
    }

    fn word(&mut self, value: u32) -> usize {
        self.0.extend(value.to_le_bytes());
        self.0.len() - 4
    }

    /// A table of `fields` words whose slots are given; returns its place. The words are at place + 4, + 8, ...
    fn table(&mut self, slots: &[u16], fields: &[u32]) -> usize {
        let vtable = self.0.len();
        let last = slots.iter().max().map_or(4, |s| s + 2);
        let mut entries = vec![0u16; usize::from(last) / 2];
        entries[0] = last;
        entries[1] = 4 + 4 * fields.len() as u16;
        for (i, &slot) in slots.iter().enumerate() {
            entries[usize::from(slot) / 2] = 4 + 4 * i as u16;
        }
        entries.iter().for_each(|e| self.0.extend(e.to_le_bytes()));
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
        let at = self.word(0);
        self.set(at, (at - vtable) as u32);
        self.0.extend(fields.iter().flat_map(|f| f.to_le_bytes()));
        at
    }

    fn set(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// A vector of `count` references, to be aimed.
    fn references(&mut self, count: usize) -> usize {
        let at = self.word(count as u32);
        self.0.resize(self.0.len() + 4 * count, 0);
        at
    }

    /// Points all `count` references of a vector to `to`.
    fn aim(&mut self, vector: usize, count: usize, to: usize) {
        (0..count).for_each(|i| self.point(vector + 4 + 4 * i, to));
    }

    /// Points the offset at `at` to `to`.
    fn point(&mut self, at: usize, to: usize) {
        self.set(at, to.wrapping_sub(at) as u32);
    }
}

#[test]
fn flatbuffers_made_to_hurt() {
    let mut tally = Tally::default();
    for root in [0, 1, 4, 8, 7, u32::MAX, i32::MAX as u32] {
        for tail in [0, 4, 4096] {
            let mut w = Words::new();
            w.set(0, root);
            w.0.extend(vec![0; tail]);
            tally.try_tflite(&w.0);
            w.0[8..].fill(0xFF);
            tally.try_tflite(&w.0);
        }
    }
    // Offsets only point forward, so tables cannot hold themselves; but many references may name one table.
    // A root whose five vectors are one of absurd length.
    for count in [u32::MAX, i32::MAX as u32, 1 << 30, 1 << 20, 60_001] {
        let mut w = Words::new();
        let root = w.table(&[6, 8, 12, 16, 18], &[0; 5]);
        w.point(0, root);
        let vector = w.references(60_000);
        w.set(vector, count);
        for field in 1..=5 {
            w.point(root + 4 * field, vector);
        }
        let inner = w.table(&[], &[]);
        w.aim(vector, 60_000, inner);
        tally.try_tflite(&w.0);
    }
    // One table named `count` times by its root, and that names a second one as often: squared visits.
    for count in [10usize, 1000, 60_000] {
        for (outer, inner) in [(6u16, 6u16), (8, 4), (8, 10), (12, 4), (16, 4), (18, 4), (18, 6)] {
            let mut w = Words::new();
            let root = w.table(&[outer], &[0]);
            w.point(0, root);
            let many = w.references(count);
            w.point(root + 4, many);
            let middle = w.table(&[inner], &[0]);
            w.aim(many, count, middle);
            let more = w.references(count);
            w.point(middle + 4, more);
            let leaf = w.table(&[], &[]);
            w.aim(more, count, leaf);
            tally.try_tflite(&w.0);
        }
    }
    // Tensors that share one long name: copied out it would be the square of the file.
    for (count, length) in [(20_000, 100), (20_000, 100_000), (40, 1 << 20)] {
        let mut w = Words::new();
        let root = w.table(&[8], &[0]);
        w.point(0, root);
        let graphs = w.references(1);
        w.point(root + 4, graphs);
        let graph = w.table(&[4], &[0]);
        w.aim(graphs, 1, graph);
        let tensors = w.references(count);
        w.point(graph + 4, tensors);
        let tensor = w.table(&[10], &[0]);
        w.aim(tensors, count, tensor);
        let name = w.word(length);
        w.point(tensor + 4, name);
        w.0.extend(vec![0xFF; length as usize]);
        tally.try_tflite(&w.0);
    }
    // The smallest honest tensors and nodes there are: a reference and a table with a shared list of fields.
    for slot in [4u16, 10] {
        let mut w = Words::new();
        let root = w.table(&[6, 8], &[0; 2]);
        w.point(0, root);
        let (codes, graphs) = (w.references(1), w.references(1));
        w.point(root + 4, codes);
        w.point(root + 8, graphs);
        let graph = w.table(&[slot], &[0]);
        w.aim(graphs, 1, graph);
        let list = w.references(50_000);
        w.point(graph + 4, list);
        let first = w.table(&[], &[]);
        w.aim(codes, 1, first);
        for i in 0..50_000 {
            let at = w.word(0);
            let fields = first - 4; // `first` has no fields, so its list is just its two sizes
            w.set(at, (at - fields) as u32);
            w.point(list + 4 + 4 * i, at);
        }
        tally.try_tflite(&w.0);
    }
    assert!(tally.accepted >= 2, "the smallest tables are in order");
    tally.report("made to hurt");
}

#[test]
fn many_nodes_with_one_long_name() {
    let mut tally = Tally::default();
    let name: &'static str = Box::leak("long".repeat(10_000).into_boxed_str());
    for (opcode, options) in [(0, Options::None), (1, Options::VarHandle("short"))] {
        let ops = vec![OpSpec { opcode, options, ..OpSpec::default() }; 10_000];
        tally.try_tflite(
            &FileSpec {
                codes: vec![(32, 32, Some(name)), (127, 142, None)],
                graphs: vec![GraphSpec { ops, ..GraphSpec::default() }],
                ..FileSpec::default()
            }
            .build(),
        );
    }
    assert_eq!(tally.accepted, 2);
    // A chain of calls in which every subgraph calls the next twice: 2^40 steps.
    let call = OpSpec { opcode: 0, options: Options::None, ..OpSpec::default() };
    let graphs = (0..41).map(|k| {
        let twice = |next| Options::Subgraphs { kind: 93, second: false, list: [next, next] };
        let ops = if k < 40 { vec![OpSpec { options: twice(k + 1), ..call.clone() }] } else { vec![] };
        GraphSpec { ops, ..GraphSpec::default() }
    });
    let spec = FileSpec { codes: vec![(119, 119, None)], graphs: graphs.collect(), ..FileSpec::default() };
    tally.try_tflite(&spec.build());
    assert_eq!(tally.accepted, 2);
    // Deep and long, but within reason.
    let plain = GraphSpec { tensors: vec![TensorSpec::default(); 5000], ..GraphSpec::default() };
    let buffers = vec![BufferSpec::Data(vec![]); 5000];
    tally.try_tflite(&FileSpec { graphs: vec![plain; 3], buffers, ..FileSpec::default() }.build());
    assert_eq!(tally.accepted, 3);
    tally.report("repeated");
}

/// Changes a text: bytes, digits, lines dropped, doubled or cut.
fn mutate_text(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    for _ in 0..1 + random.below(4) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len());
        let end = out.len().min(at + random.below(40));
        match random.below(7) {
            0 => out[at] = random.next() as u8,
            1 => out[at] = b"0123456789,- \n\r\"x?=#"[random.below(20)],
            2 => drop(out.drain(at..end)),
            3 => {
                let part = out[at..end].to_vec();
                out.splice(at..at, part);
            }
            4 => drop(out.splice(at..at, b"18446744073709551615".iter().copied())),
            5 => drop(out.splice(at..at, b"4294967296".iter().copied())),
            _ => out.truncate(at),
        }
    }
    out
}

#[test]
fn text_readers_with_bytes_changed() {
    const TGT: &[u8] = b"tgt 1\nmodel m\nattr k v\nsubgraph 0 main 3 2\nt 0 input d float32 32 32 1x8 -1x8 x\n\
        t 1 const - int8 8 8 8 = w\nt 2 inter - float32 32 32 1x8 = y\nn 0 WHILE 0,1 2 1\nn 1 ADD 2,2 2 -\nin 0\nout 2\nend\n\
        subgraph 1 body 0 0\nin -\nout -\nend\n";
    const CSV: &[u8] =
        b"id,lower,upper,size,alignment,offset,gaps,name\na,0,9,16,,,,x\nb,1,8,4,4,16,2-3 4-5,\"y\"\"z\"\n\
        c,5,4294967299,7,64,128,,\n";
    const DUMP: &[u8] = b"id,lower,upper,size,pointer\na,0,9,16,0x7f00\nb,1,8,4,(nil)\nc,5,6,4,7f40\n";
    const TRACE: &[u8] = b"# run 0\na 0 100 64\na 1 200 128\nr 0 50\nf 1\nf 0\n";
    let mut texts: Vec<Vec<u8>> = [TGT, CSV, DUMP, TRACE].map(<[u8]>::to_vec).to_vec();
    if let Some(dir) = shared().map(|d| d.join("corpus")) {
        texts.extend(files(&dir.join("models"), "tgt").iter().step_by(20).map(|p| read(p)));
        texts.push(read(&dir.join("minimalloc/A.1048576.csv")));
        texts.push(read(&dir.join("engine_traces/ncnn_mobilenet_v2.txt")));
    }
    let mut random = Random(1);
    let mut tally = Tally::default();
    for text in &texts {
        let rounds = if text.len() < 1000 { 20_000 } else { 1000 };
        for round in 0..rounds {
            let input = match round {
                0 => text.clone(),
                _ if round < text.len().min(rounds / 2) => text[..round].to_vec(),
                _ => mutate_text(&mut random, text),
            };
            tally.measure(&input, |input| {
                let model = Model::from_tgt(input);
                if let Ok(model) = &model {
                    sound(model, 0);
                    assert_eq!(Model::from_tgt(model.to_tgt().as_bytes()).unwrap().to_tgt(), model.to_tgt());
                }
                model.is_ok()
            });
            tally.measure(&input, |input| {
                let file = ProblemFile::read(input, OffsetColumn::Fixed, Align::ONE);
                if let Ok(file) = &file {
                    let again = file.with_offsets(&file.offsets);
                    let again = ProblemFile::read(again.as_bytes(), OffsetColumn::Solution, Align::ONE).unwrap();
                    assert_eq!((&again.ids, &again.lower, &again.upper), (&file.ids, &file.lower, &file.upper));
                }
                file.is_ok()
            });
            tally.measure(&input, |input| Solution::read(input).is_ok());
            tally.measure(&input, |input| Trace::read(input).is_ok());
        }
    }
    tally.report("text");
    assert!(tally.accepted > 0);
}
