//! Real models: what the readers make of them against tables and problems derived by another program.
#![cfg(feature = "model")]
#![allow(missing_docs)]

mod model_support;

use std::path::Path;

use arenite::graph::tables::{validate, Allocation, Tables};
use arenite::model::{EventKind, Flags, Model, OffsetColumn, ProblemFile, Subgraph, TensorKind, Trace};
use arenite::units::Align;
use model_support::{files, read, rows, shared, Row, MODELS};

/// Compares a graph's rows with the corpus; returns how many there were.
fn compare_rows(dir: &Path, id: &str, k: usize, graph: &Subgraph) -> usize {
    let mut total = 0;
    for (io, form) in [(true, "io"), (false, "inter")] {
        let (ours, path) = (rows(graph, io), dir.join(format!("{id}.sg{k}.{form}.csv")));
        let theirs: Vec<Row> = if path.exists() {
            let file = ProblemFile::read(&read(&path), OffsetColumn::Fixed, Align::ONE).unwrap();
            let size = |i: usize| file.problem.buffers()[i].spec.size;
            (0..file.ids.len()).map(|i| (file.ids[i].clone(), file.lower[i], file.upper[i], size(i))).collect()
        } else {
            Vec::new()
        };
        assert_eq!(ours, theirs, "{}", path.display());
        total += ours.len();
    }
    total
}

#[test]
fn every_graph_table_round_trips_and_gives_its_problems() {
    let Some(dir) = shared().map(|d| d.join("corpus/models")) else { return };
    let (mut tables, mut graphs, mut total) = (0, 0, 0);
    for path in files(&dir, "tgt") {
        let text = read(&path);
        let model = Model::from_tgt(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(model.to_tgt().as_bytes() == text, "{} changes", path.display());
        assert!(model.entries().contains(&0));
        for (k, graph) in model.subgraphs.iter().enumerate() {
            validate(graph).unwrap();
            total += compare_rows(&dir, &model.name, k, graph);
            graphs += 1;
        }
        tables += 1;
    }
    eprintln!("{tables} tables, {graphs} subgraphs, {total} rows");
    assert!(tables >= 122 && graphs >= 205);
}

/// A tensor's name as the tables shorten it: the first of several, 40 characters at most.
fn short(name: &str) -> String {
    let mut out = String::new();
    for c in name.split(';').next().unwrap_or("").chars() {
        let plain = c.is_ascii_alphanumeric() || "_.:/-".contains(c);
        if plain {
            out.push(c);
        } else if !out.ends_with('\u{0}') {
            out.push('\u{0}'); // stands for a run of others until the run ends
        }
    }
    let out = out.replace('\u{0}', "_");
    match out.len() {
        0..=40 => out,
        n => format!("~{}", &out[n - 39..]),
    }
}

#[test]
fn tflite_files_equal_their_tables_field_by_field() {
    let Some(dir) = shared() else { return };
    let corpus = dir.join("corpus/models");
    let (mut tensors, mut nodes, mut total) = (0, 0, 0);
    for (file, id) in MODELS {
        let bytes = read(&dir.join(format!("models/{file}.tflite")));
        let model = Model::from_tflite(&bytes, id).unwrap_or_else(|e| panic!("{file}: {e}"));
        let table = Model::from_tgt(&read(&corpus.join(format!("{id}.tgt")))).unwrap();
        assert_eq!(model.subgraphs.len(), table.subgraphs.len(), "{id}");
        let mut resized = false;
        for (k, (ours, theirs)) in model.subgraphs.iter().zip(&table.subgraphs).enumerate() {
            assert_eq!((ours.inputs.clone(), ours.outputs.clone()), (theirs.inputs.clone(), theirs.outputs.clone()));
            assert_eq!((ours.tensors.len(), ours.nodes.len()), (theirs.tensors.len(), theirs.nodes.len()), "{id} {k}");
            assert_eq!(short(&ours.name), theirs.name);
            for (i, (a, b)) in ours.tensors.iter().zip(&theirs.tensors).enumerate() {
                let about = format!("{id}, subgraph {k}, tensor {i}");
                assert_eq!((a.kind, a.dtype, a.file_bytes), (b.kind, b.dtype, b.file_bytes), "{about}");
                assert_eq!(short(&a.name), b.name, "{about}");
                assert!(b.flags.has(a.flags), "{about}: {:?} {:?}", a.flags, b.flags);
                if b.flags.has(Flags::RESIZED) {
                    resized = true; // the table has the runtime's shape there
                } else {
                    assert_eq!((&a.shape, a.bytes), (&b.shape, b.bytes), "{about}");
                    assert_eq!((&a.signature, a.flags), (&b.signature, b.flags), "{about}");
                }
                tensors += 1;
            }
            for (i, (a, b)) in ours.nodes.iter().zip(&theirs.nodes).enumerate() {
                let present = |l: &[i32]| l.iter().copied().filter(|&t| t >= 0).collect::<Vec<_>>();
                let about = format!("{id}, subgraph {k}, node {i}");
                assert_eq!(
                    (&a.op, a.builtin, &a.subgraphs, a.call),
                    (&b.op, b.builtin, &b.subgraphs, b.call),
                    "{about}"
                );
                assert_eq!((present(&a.inputs), present(&a.outputs)), (b.inputs.clone(), b.outputs.clone()), "{about}");
                nodes += 1;
            }
            if !resized {
                total += compare_rows(&corpus, id, k, ours);
            }
            validate(ours).unwrap();
        }
        assert_eq!(model.file_bytes, bytes.len() as u64);
        assert!(model.constant_bytes < model.file_bytes);
    }
    eprintln!("{tensors} tensors, {nodes} nodes, {total} rows");
}

#[test]
fn what_the_tables_do_not_tell() {
    let Some(dir) = shared() else { return };
    let load = |name: &str| {
        let bytes = read(&dir.join(format!("models/{name}.tflite")));
        (Model::from_tflite(&bytes, name).unwrap(), bytes)
    };
    let (vad, _) = load("esphome_vad");
    let resources: Vec<_> = vad.resources.iter().map(|r| (r.name.as_str(), r.bytes)).collect();
    eprintln!("{resources:?} {:?} {:?}", vad.signatures, vad.warnings);
    assert_eq!((resources.len(), vad.entries(), vad.signatures.len()), (4, vec![0], 1));
    assert!(resources.iter().all(|r| r.1.is_some_and(|b| b > 0)));
    let uses = vad.subgraphs[0].nodes.iter().filter(|n| n.op.ends_with("_VARIABLE"));
    assert!(uses.clone().count() >= 8 && uses.clone().all(|n| n.resource.is_some()));

    let (face, bytes) = load("face_detection_short_range");
    let g = &face.subgraphs[0];
    let persistent = (0..g.tensor_count()).filter(|&t| g.tensor(t).allocation == Allocation::ArenaRwPersistent);
    assert_eq!(persistent.count(), 74);
    for t in g.tensors.iter().filter(|t| t.kind == TensorKind::Const) {
        let data = t.data.clone().unwrap();
        assert_eq!(Some(data.end - data.start), t.bytes, "{}", t.name);
        assert!(data.end <= bytes.len() as u64);
    }
    assert_eq!(face.constant_bytes, g.constant_bytes);
    eprintln!("{:?}", face.metadata);
}

#[test]
fn every_problem_and_trace_reads() {
    let Some(dir) = shared().map(|d| d.join("corpus")) else { return };
    let mut problems = 0;
    for folder in ["minimalloc", "idealloc", "iopddl"] {
        for path in files(&dir.join(folder), "csv") {
            let file = read(&path);
            let p = ProblemFile::read(&file, OffsetColumn::Fixed, Align::ONE).unwrap();
            let rows = String::from_utf8(file).unwrap();
            assert_eq!(p.problem.len() + 1, rows.lines().count(), "{}", path.display());
            let filled = p.with_offsets(&vec![Some(7); p.ids.len()]);
            assert!(rows.lines().zip(filled.lines()).skip(1).all(|(a, b)| format!("{a},7") == b));
            problems += 1;
        }
    }
    let mut traces = 0;
    for (folder, ext) in [("alloc_traces", "trace"), ("engine_traces", "txt")] {
        for path in files(&dir.join(folder), ext) {
            let file = read(&path);
            let t = Trace::read(&file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let lines = file.split(|&b| b == b'\n').filter(|l| !l.is_empty()).count();
            assert_eq!(t.events.len(), lines, "{}", path.display());
            let frees = t.events.iter().filter(|e| matches!(e.kind, EventKind::Free { .. })).count();
            assert!(folder == "engine_traces" || frees == t.blocks(), "{}", path.display());
            traces += 1;
        }
    }
    eprintln!("{problems} problems, {traces} traces");
    assert!(problems >= 17 && traces >= 12);
}
