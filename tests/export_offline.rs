//! `arenite export --tflm-offline`: the entry's layout, what moves in the file, and who would misread it.
#![cfg(feature = "cli")]
#![allow(missing_docs)]

#[path = "model_support/builder.rs"]
mod builder;
mod model_support;

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::model::Model;
use builder::{BufferSpec, FileSpec, GraphSpec, OpSpec, Options, TensorSpec};
use serde_json::Value;

fn dir(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("export_{test}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn export(test: &str, file: &[u8], more: &[&str]) -> (i32, String, Option<Vec<u8>>) {
    let dir = dir(test);
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    std::fs::write(&from, file).unwrap();
    let mut args = vec!["export", "--tflm-offline", from.to_str().unwrap(), "-o", to.to_str().unwrap(), "--json"];
    args.extend(more);
    let out = Command::new(env!("CARGO_BIN_EXE_arenite")).args(args).output().unwrap();
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(names.len() <= 2, "nothing else is left behind: {names:?}");
    assert_eq!(std::fs::read(&from).unwrap(), file, "the input stays");
    let text = if out.status.success() { out.stdout } else { out.stderr };
    (out.status.code().unwrap(), String::from_utf8(text).unwrap(), std::fs::read(&to).ok())
}

fn tensor(bytes: i32, buffer: u32) -> TensorSpec {
    TensorSpec { shape: vec![bytes], dtype: 9, buffer, ..TensorSpec::default() }
}

fn op(opcode: u32, inputs: &[i32], outputs: &[i32]) -> OpSpec {
    OpSpec { opcode, inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..OpSpec::default() }
}

/// input -> 1 -> 2 -> 3 -> output, with a constant and data outside the FlatBuffer.
fn chain() -> FileSpec {
    let graph = GraphSpec {
        tensors: vec![tensor(100, 0), tensor(300, 0), tensor(40, 0), tensor(64, 1), tensor(300, 0), tensor(8, 2)],
        ops: vec![op(0, &[0, 3], &[1]), op(0, &[1, 5], &[2]), op(0, &[2], &[4])],
        inputs: vec![0],
        outputs: vec![4],
    };
    let weights: Vec<u8> = (0..64).collect();
    FileSpec {
        codes: vec![(19, 19, None)],
        graphs: vec![graph],
        buffers: vec![
            BufferSpec::Data(vec![]),
            BufferSpec::Data(weights),
            BufferSpec::External { offset: 8, size: 8 }, // set below
        ],
        ..FileSpec::default()
    }
}

/// The words of the entry's buffer, found without the reader under test: by the name, then by the words themselves.
fn words(file: &[u8], tensors: usize) -> Vec<i32> {
    let model = Model::from_tflite(file, "x").unwrap();
    let entry = model.metadata.iter().find(|m| m.name == "OfflineMemoryAllocation").unwrap();
    let data = &file[entry.data.start as usize..entry.data.end as usize];
    assert_eq!((entry.data.start % 16, data.len()), (0, 12 + 4 * tensors));
    data.chunks_exact(4).map(|w| i32::from_le_bytes(w.try_into().unwrap())).collect()
}

#[test]
fn the_entry_has_the_runtimes_layout_and_nothing_else_changes() {
    let mut spec = chain();
    let length = spec.build().len() as u64;
    spec.buffers[2] = BufferSpec::External { offset: length, size: 8 };
    let mut before = spec.build();
    assert_eq!(before.len() as u64, length);
    before.extend_from_slice(b"outside!");
    let (code, text, after) = export("layout", &before, &[]);
    assert_eq!(code, 0, "{text}");
    let (json, after): (Value, _) = (serde_json::from_str(&text).unwrap(), after.unwrap());
    let w = words(&after, 6);
    assert_eq!(w[..3], [1, 1, 6]);
    assert!(w[3..].iter().all(|&o| o == -1 || o % 16 == 0));
    assert_eq!((w[6], w[8]), (-1, -1), "constants are no one's to place");
    // Alive together: (0 1), (1 2), (2 4); sizes 100, 300, 40, 300.
    let (at, size) = ([w[3], w[4], w[5], w[7]], [100, 300, 40, 300]);
    for (a, b) in [(0, 1), (1, 2), (2, 3)] {
        assert!(at[a] + size[a] <= at[b] || at[b] + size[b] <= at[a], "{a} {b} {at:?}");
    }
    assert_eq!((json["arena_bytes"].as_u64(), json["planned"].as_u64()), (Some(404), Some(4)));
    let (old, new) = (Model::from_tflite(&before, "x").unwrap(), Model::from_tflite(&after, "x").unwrap());
    for (o, n) in old.subgraphs[0].tensors.iter().zip(&new.subgraphs[0].tensors) {
        let bytes = |f: &[u8], d: &Option<std::ops::Range<u64>>| {
            d.as_ref().map(|d| f[d.start as usize..d.end as usize].to_vec())
        };
        assert_eq!((bytes(&before, &o.data), &o.name, o.bytes), (bytes(&after, &n.data), &n.name, n.bytes));
    }
    // The old content stands there as it was, but for where the outside data is.
    let moved = after.len() - before.len();
    let differ = (8..before.len()).filter(|&i| before[i] != after[i + moved]).count();
    assert!(moved.is_multiple_of(64) && differ <= 8, "{moved} {differ}");
    // Again: the plan is replaced in place.
    let (code, text, again) = export("again", &after, &["--alignment", "64"]);
    assert_eq!(code, 0, "{text}");
    let again = again.unwrap();
    assert_eq!(again.len(), after.len());
    assert!(words(&again, 6)[3..].iter().all(|&o| o == -1 || o % 64 == 0));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["replaced"], true);
}

#[test]
fn an_entry_beside_others_and_signatures() {
    let mut spec = chain();
    spec.buffers[2] = BufferSpec::Data(b"12345678".to_vec());
    spec.buffers.push(BufferSpec::Data(b"1.2.3".to_vec()));
    spec.metadata = vec![("min_runtime_version", 3)];
    spec.signatures = vec![("serving", 0, vec![("x", 0)], vec![("y", 4)])];
    let (code, text, after) = export("beside", &spec.build(), &[]);
    assert_eq!(code, 0, "{text}");
    let after = after.unwrap();
    let m = Model::from_tflite(&after, "x").unwrap();
    assert_eq!(m.metadata.len(), 2);
    assert_eq!(&after[m.metadata[0].data.start as usize..m.metadata[0].data.end as usize], b"1.2.3");
    assert_eq!(m.signatures[0].inputs, [("x".to_string(), 0)]);
}

#[test]
fn what_older_versions_would_misread_is_left_to_the_runtime() {
    // A subgraph that runs within the first: its tensors 0 and 1 are also numbers of the first's.
    let mut spec = chain();
    spec.buffers[2] = BufferSpec::Data(b"12345678".to_vec());
    spec.codes.push((118, 118, None));
    let body = || GraphSpec {
        tensors: vec![tensor(40, 0), tensor(300, 0)],
        ops: vec![op(0, &[0], &[1])],
        inputs: vec![0],
        outputs: vec![1],
    };
    spec.graphs.extend([body(), body()]);
    spec.graphs[0].tensors.push(tensor(1, 0));
    spec.graphs[0].inputs.push(6);
    spec.graphs[0].ops[2] =
        OpSpec { options: Options::Subgraphs { kind: 92, second: false, list: [1, 2] }, ..op(1, &[6, 2], &[4]) };
    let (code, text, after) = export("several", &spec.build(), &[]);
    assert_eq!(code, 0, "{text}");
    let w = words(&after.unwrap(), 11);
    assert_eq!((w[1], w[3], w[4]), (3, -1, -1));
    assert!(w[5] >= 0 && w[7] >= 0 && w[10] >= 0, "{w:?}");
}

#[test]
fn bad_input_is_refused_and_nothing_written() {
    let good = chain();
    let mut shared = good.clone();
    // The plan's buffer is a weight too.
    shared.buffers[2] = BufferSpec::Data(b"12345678".to_vec());
    let words: Vec<u8> = [1i32, 1, 6, -1, -1, -1, -1, -1, -1].iter().flat_map(|w| w.to_le_bytes()).collect();
    shared.buffers[1] = BufferSpec::Data(words);
    shared.graphs[0].tensors[3].shape = vec![36];
    shared.metadata = vec![("OfflineMemoryAllocation", 1)];
    let (code, text, after) = export("shared", &shared.build(), &[]);
    assert!(code == 2 && text.contains("used by something else"), "{text}");
    assert!(after.is_none());
    let whole = {
        let mut s = good.clone();
        s.buffers[2] = BufferSpec::Data(b"12345678".to_vec());
        s.build()
    };
    for cut in (0..whole.len()).step_by(whole.len() / 9) {
        let (code, _, after) = export("cut", &whole[..cut], &[]);
        assert!(code == 2 && after.is_none(), "{cut} bytes");
    }
    for (args, word) in [(&["--alignment", "8"][..], "16"), (&["--alignment", "24"], "power of two")] {
        let (code, text, after) = export("align", &whole, args);
        assert!(code == 2 && text.contains(word) && after.is_none(), "{text}");
    }
    // What breaks within must not come out as a file.
    let mut random = model_support::Random(7);
    for round in 0..60 {
        let mut bad = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bad.len());
            bad[at] = random.next() as u8;
        }
        let (code, text, after) = export("random", &bad, &[]);
        match code {
            0 => drop(Model::from_tflite(&after.unwrap(), "x").unwrap()),
            _ => assert!(code == 2 && after.is_none(), "round {round}: {code} {text}"),
        }
    }
}

#[test]
fn real_models_get_a_plan_no_larger_than_the_runtimes() {
    let Some(shared) = model_support::shared() else { return };
    for (name, _) in model_support::MODELS {
        let before = model_support::read(&shared.join(format!("models/{name}.tflite")));
        let (code, text, after) = export("real", &before, &[]);
        assert_eq!(code, 0, "{name}: {text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(json["arena_bytes"].as_u64() <= json["tflm_arena_bytes"].as_u64(), "{name}: {text}");
        let m = Model::from_tflite(&after.unwrap(), name).unwrap();
        assert_eq!(m.offline_plan.unwrap().len(), json["tensors"].as_u64().unwrap() as usize);
    }
}
