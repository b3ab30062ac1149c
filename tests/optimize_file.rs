//! `arenite optimize` on files built for it and on a real one: what changes in the file, and what must not.
#![cfg(feature = "cli")]
#![allow(missing_docs)]

#[path = "model_support/builder.rs"]
mod builder;
mod model_support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::model::{Model, Rewrite};
use builder::{BufferSpec, FileSpec, GraphSpec, OpSpec, TensorSpec};
use serde_json::Value;

/// A directory of its own for each test.
fn dir(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("optimize_{test}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn arenite(args: &[&str]) -> (i32, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_arenite")).args(args).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// Optimises `file`; returns the JSON object and the new file if one was written.
fn optimize(test: &str, file: &[u8], more: &[&str]) -> (Value, Option<Vec<u8>>) {
    let dir = dir(test);
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    std::fs::write(&from, file).unwrap();
    let mut args = vec!["optimize", from.to_str().unwrap(), "-o", to.to_str().unwrap(), "--json"];
    args.extend(more);
    let (code, out, err) = arenite(&args);
    assert_eq!(code, 0, "{err}");
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(names.len() <= 2, "nothing else is left behind: {names:?}");
    (serde_json::from_str(&out).unwrap(), std::fs::read(&to).ok())
}

fn tensor(bytes: i32) -> TensorSpec {
    TensorSpec { shape: vec![bytes], dtype: 9, ..TensorSpec::default() }
}

fn op(opcode: u32, inputs: &[i32], outputs: &[i32]) -> OpSpec {
    OpSpec { opcode, inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..OpSpec::default() }
}

/// Two branches from one input, node by node in turn, although one after the other needs half. `kinds` are the operator
/// kinds of the four nodes.
fn branches(kinds: [u32; 4]) -> GraphSpec {
    GraphSpec {
        tensors: [128, 4096, 4096, 128, 128, 256].map(tensor).to_vec(),
        ops: vec![
            op(kinds[0], &[0], &[1]),
            op(kinds[1], &[0], &[2]),
            op(kinds[2], &[1], &[3]),
            op(kinds[3], &[2], &[4]),
            op(1, &[3, 4], &[5]),
        ],
        inputs: vec![0],
        outputs: vec![5],
    }
}

/// RELU, CONCATENATION and two custom kinds.
fn file(graphs: Vec<GraphSpec>) -> FileSpec {
    FileSpec {
        codes: vec![(19, 19, None), (2, 2, None), (32, 32, Some("A")), (32, 32, Some("B"))],
        graphs,
        buffers: vec![BufferSpec::Data(vec![])],
        ..FileSpec::default()
    }
}

fn model(file: &[u8]) -> Model {
    Model::from_tflite(file, "test").unwrap()
}

fn outputs(model: &Model, graph: usize) -> Vec<i32> {
    model.subgraphs[graph].nodes.iter().map(|n| n.outputs[0]).collect()
}

fn sorted(bytes: &[u8]) -> Vec<u8> {
    let mut b = bytes.to_vec();
    b.sort_unstable();
    b
}

#[test]
fn only_the_operator_vector_changes() {
    let before = file(vec![branches([0; 4])]).build();
    let (json, after) = optimize("vector", &before, &[]);
    let after = after.unwrap();
    for key in ["arena_bytes_before", "arena_bytes_after", "lower_bound_before", "alignment"] {
        assert!(json[key].is_u64(), "{key}");
    }
    assert_eq!(
        (&json["in_place"], &json["order_changed"], &json["offline_plan"]),
        (&true.into(), &true.into(), &"none".into())
    );
    assert_eq!((json["arena_bytes_before"].as_u64(), json["arena_bytes_after"].as_u64()), (Some(8448), Some(4480)));
    assert_eq!(json["proven"], true);
    let changed: Vec<usize> = (0..before.len()).filter(|&i| before[i] != after[i]).collect();
    assert_eq!(before.len(), after.len());
    assert!(changed.last().unwrap() - changed[0] < 20, "one vector of five offsets");
    assert_eq!(outputs(&model(&after), 0), [1, 3, 2, 4, 5]);
    // The plan of the new file is what was promised, and a second pass finds nothing.
    let (again, none) = optimize("again", &after, &[]);
    assert_eq!((&again["order_changed"], none), (&false.into(), None));
    assert_eq!(again["arena_bytes_before"], json["arena_bytes_after"]);
    assert!(again["why"].as_str().unwrap().contains("proven"));
}

#[test]
fn figures_are_those_of_plan() {
    let dir = dir("figures");
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    std::fs::write(&from, file(vec![branches([0; 4])]).build()).unwrap();
    for (more, align) in [(&[][..], 128), (&["--align", "16", "--no-in-place"][..], 16)] {
        let mut args = vec!["optimize", from.to_str().unwrap(), "-o", to.to_str().unwrap(), "--json"];
        args.extend(more);
        let json: Value = serde_json::from_str(&arenite(&args).1).unwrap();
        assert_eq!((json["alignment"].as_u64(), json["in_place"].as_bool()), (Some(align), Some(more.is_empty())));
        for (path, arena, bound) in [
            (&from, &json["arena_bytes_before"], &json["lower_bound_before"]),
            (&to, &json["arena_bytes_after"], &json["lower_bound_after"]),
        ] {
            let mut args = vec!["plan", path.to_str().unwrap(), "--json"];
            args.extend(more);
            let plan: Value = serde_json::from_str(&arenite(&args).1).unwrap();
            assert_eq!((&plan["arena_bytes"], &plan["lower_bound"]), (arena, bound));
        }
    }
}

#[test]
fn plan_takes_the_same_order_without_writing_one() {
    let dir = dir("plan");
    let path = dir.join("m.tflite");
    std::fs::write(&path, file(vec![branches([0; 4])]).build()).unwrap();
    let (code, out, err) = arenite(&["plan", path.to_str().unwrap(), "--order", "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["arena_bytes"], 4480);
    assert_eq!(json["order"], serde_json::json!([[0, 2, 1, 3, 4]]));
    // Scratch comes along: the node that has some runs while nothing else is alive.
    let (_, out, _) = arenite(&["plan", path.to_str().unwrap(), "--order", "--json", "--scratch", "1=4096"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["arena_bytes"], &json["scratch_bytes"]), (&8320.into(), &4096.into()));
    assert_eq!(json["order"], serde_json::json!([[1, 3, 0, 2, 4]]));
}

#[test]
fn the_output_may_be_the_input() {
    let dir = dir("same");
    let path = dir.join("m.tflite");
    std::fs::write(&path, file(vec![branches([0; 4])]).build()).unwrap();
    let p = path.to_str().unwrap();
    let (code, out, err) = arenite(&["optimize", p, "-o", p]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("8 448") && out.contains("4 480") && out.contains("wrote"), "{out}");
    assert_eq!(outputs(&model(&std::fs::read(&path).unwrap()), 0), [1, 3, 2, 4, 5]);
}

#[test]
fn custom_operators_keep_their_order_unless_declared_pure() {
    let before = file(vec![branches([2, 3, 2, 3])]).build();
    let (json, after) = optimize("custom", &before, &[]);
    assert_eq!((&json["order_changed"], after), (&false.into(), None));
    assert!(json["held_count"].as_u64().unwrap() >= 2);
    let why = json["held"][0]["why"].as_str().unwrap();
    assert!(why.contains("side effects"), "{why}");
    // One pure kind is free of the other.
    let (json, after) = optimize("pure", &before, &["--pure", "A"]);
    assert_eq!(json["order_changed"], true);
    assert_eq!(outputs(&model(&after.unwrap()), 0), [1, 3, 2, 4, 5]);
}

#[test]
fn delegates_get_no_more_partitions() {
    // Built in, custom, built in, custom: in the better order the customs would still be two runs; with the kinds in
    // pairs the better order would make one run two.
    let before = file(vec![branches([0, 0, 2, 2])]).build();
    let given = model(&before).subgraphs[0].runs(&[0, 1, 2, 3, 4]);
    let (json, after) = optimize("runs", &before, &["--pure", "A"]);
    if let Some(after) = after {
        let m = model(&after);
        let order: Vec<u32> = (0..5).collect();
        assert!(m.subgraphs[0].runs(&order) <= given);
    } else {
        assert_eq!(json["order_changed"], false);
    }
    let alternating = file(vec![branches([0, 2, 0, 2])]).build();
    let (json, after) = optimize("alternating", &alternating, &["--pure", "A"]);
    assert_eq!(json["order_changed"], true);
    assert_eq!(outputs(&model(&after.unwrap()), 0), [1, 3, 2, 4, 5]);
}

/// Control dependencies as the runtime reads them.
fn control(pairs: &[&[(u32, u32)]]) -> Vec<u8> {
    let mut out = vec![1, pairs.len() as u8];
    for list in pairs {
        out.push(list.len() as u8);
        list.iter().for_each(|p| out.extend([2 * p.0 as u8, 2 * p.1 as u8]));
    }
    out
}

#[test]
fn control_dependencies_bind_and_are_carried_along() {
    let with = |blob: Vec<u8>| {
        let mut spec = file(vec![branches([0; 4])]);
        spec.buffers.push(BufferSpec::Data(blob));
        spec.metadata.push(("model_control_dependencies", 1));
        spec.build()
    };
    // Both first nodes before both second ones: nothing is gained.
    let (json, after) = optimize("bound", &with(control(&[&[(1, 2), (0, 3)]])), &[]);
    assert_eq!((&json["order_changed"], after), (&false.into(), None));
    // A pair that leaves the better order: its indices follow.
    let before = with(control(&[&[(2, 3), (1, 4)]]));
    let (_, after) = optimize("follow", &before, &[]);
    let after = after.unwrap();
    let m = model(&after);
    assert_eq!(outputs(&m, 0), [1, 3, 2, 4, 5]);
    assert_eq!(m.control_rules(&after).unwrap(), [(0, 1, 3), (0, 2, 4)]);
    // One against the order of the file is refused.
    let dir = dir("against");
    std::fs::write(dir.join("in.tflite"), with(control(&[&[(3, 2)]]))).unwrap();
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    let (code, _, err) = arenite(&["optimize", from.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("model_control_dependencies"), "{err}");
}

#[test]
fn longer_indices_move_to_the_end_of_the_file() {
    // 70 nodes of which each waits for nothing: node 1 goes to place 69, whose index takes two bytes.
    let n = 70;
    let graph = GraphSpec {
        tensors: (0..=n).map(|_| tensor(8)).collect(),
        ops: (0..n).map(|v| op(0, &[0], &[v + 1])).collect(),
        inputs: vec![0],
        outputs: (1..=n).collect(),
    };
    let mut spec = file(vec![graph]);
    spec.buffers.push(BufferSpec::Data(control(&[&[(0, 1)]])));
    spec.metadata.push(("model_control_dependencies", 1));
    let before = spec.build();
    let order: Vec<u32> = std::iter::once(0).chain(2..n as u32).chain([1]).collect();
    let m = model(&before);
    let change = Rewrite { orders: vec![order], offline_plan: None };
    let after = m.rewritten(&before, &change).unwrap();
    assert!(after.len() > before.len());
    assert_eq!(model(&after).control_rules(&after).unwrap(), [(0, 0, 69)]);
    assert!(m.rewritten(&before, &Rewrite { orders: vec![vec![0; 70]], offline_plan: None }).is_err());
    assert!(m.rewritten(&before, &Rewrite::default()).is_err(), "an order for every subgraph");
}

#[test]
fn an_offline_plan_is_rebuilt_or_dropped() {
    let words = |w: &[i32]| w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let with = |plan: &[i32], graphs: Vec<GraphSpec>| {
        let mut spec = file(graphs);
        spec.buffers.push(BufferSpec::Data(words(plan)));
        spec.metadata.push(("OfflineMemoryAllocation", 1));
        spec.build()
    };
    let (json, after) = optimize("offline", &with(&[1, 1, 6, 0, 128, 4224, 8320, 0, 256], vec![branches([0; 4])]), &[]);
    assert_eq!(json["offline_plan"], "rebuilt");
    let m = model(&after.unwrap());
    let plan: Vec<u64> = m.offline_plan.clone().unwrap().into_iter().map(Option::unwrap).collect();
    // Alive together in the new order: (0 1), (0 1 3), (0 3 2), (3 2 4), (3 4 5).
    let sizes = [128u64, 4096, 4096, 128, 128, 256];
    for alive in [&[0, 1, 3][..], &[0, 2, 3], &[2, 3, 4], &[3, 4, 5]] {
        for (i, &a) in alive.iter().enumerate() {
            for &b in &alive[i + 1..] {
                assert!(plan[a] + sizes[a] <= plan[b] || plan[b] + sizes[b] <= plan[a], "{a} {b} {plan:?}");
            }
        }
    }
    let two = with(&[1, 2, 12, 0, 128, 4224, 8320, 0, 256, -1, -1, -1, -1, -1, -1], vec![branches([0; 4]); 2]);
    let (json, after) = optimize("dropped", &two, &[]);
    assert_eq!(json["offline_plan"], "dropped");
    assert_eq!(model(&after.unwrap()).offline_plan, Some(vec![None; 12]));
}

#[test]
fn every_subgraph_is_ordered() {
    let mut spec = file(vec![branches([0; 4]), branches([0; 4])]);
    spec.signatures = vec![("one", 0, vec![], vec![]), ("two", 1, vec![], vec![])];
    let before = spec.build();
    let (json, after) = optimize("two", &before, &[]);
    let after = after.unwrap();
    assert_eq!(json["order_changed"], true);
    assert_eq!((outputs(&model(&after), 0), outputs(&model(&after), 1)), (vec![1, 3, 2, 4, 5], vec![1, 3, 2, 4, 5]));
    assert_eq!(before.len(), after.len());
}

/// A program that stands in for a Python with a runtime: it says `answer` whatever it is asked.
#[cfg(unix)]
fn runtime(test: &str, answer: &str) -> String {
    let path = dir(&format!("runtime_{test}")).join("python");
    let text = path.with_extension("text");
    std::fs::write(&text, format!("#!/bin/sh\necho noise\necho '{answer}'\n")).unwrap();
    // Written by another process: what a thread of this one starts meanwhile would hold the file open for writing, and
    // then it cannot be run.
    let copy = Command::new("sh").args(["-c", "cp \"$0\" \"$1\" && chmod 755 \"$1\""]).args([&text, &path]).status();
    assert!(copy.unwrap().success());
    path.to_str().unwrap().into()
}

#[cfg(unix)]
#[test]
fn what_a_runtime_objects_to_is_not_written() {
    let before = file(vec![branches([0; 4])]).build();
    let run = |test: &str, python: &str| {
        let dir = dir(test);
        let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
        std::fs::write(&from, &before).unwrap();
        let args = ["optimize", from.to_str().unwrap(), "-o", to.to_str().unwrap(), "--json", "--verify", python];
        let (code, out, err) = arenite(&args);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1 + usize::from(to.exists()), "nothing is left behind");
        (code, out, err, to.exists())
    };
    let one = |more: &str| format!("arenite:{{\"runtimes\": [{{\"runtime\": \"r\", \"version\": \"1\", {more}}}]}}");
    let fine = one(
        "\"differ\": null, \"arena_before\": 9, \"arena_after\": 5, \"delegates_before\": 1, \"delegates_after\": 1",
    );
    let (code, out, err, written) = run("fine", &runtime("fine", &fine));
    assert!(code == 0 && written, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["verified"][0]["runtime"], &json["verified"][0]["arena_after"]), (&"r".into(), &5.into()));
    for (answer, expected, said) in [
        (one("\"differ\": \"outputs differ with seed 3\""), 1, "seed 3"),
        (one("\"differ\": null, \"delegates_before\": 1, \"delegates_after\": 2"), 1, "2 parts instead of 1"),
        (one("\"error\": \"unresolved custom op\""), 2, "cannot run the model: unresolved"),
        ("arenite:{\"error\": \"no numpy\"}".into(), 2, "no numpy"),
        ("nonsense".into(), 2, "no answer"),
    ] {
        let (code, _, err, written) = run("not", &runtime("not", &answer));
        assert!(code == expected && err.contains(said) && !written, "{answer}: {code} {err}");
    }
    let (code, _, err, written) = run("missing", "/nowhere/python");
    assert!(code == 2 && err.contains("tflite-runtime") && !written, "{err}");
}

#[test]
fn real_runtimes_agree_with_the_new_file() {
    let (Some(shared), Ok(python)) = (model_support::shared(), std::env::var("ARENITE_TFLITE_PYTHON")) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: set ARENITE_TFLITE_PYTHON to a Python with tflite-runtime or ai-edge-litert"
        );
        return;
    };
    let before = model_support::read(&shared.join("models/esphome_vad.tflite"));
    let (json, after) = optimize("verified", &before, &["--verify", &python]);
    assert!(after.is_some());
    for run in json["verified"].as_array().unwrap() {
        assert!(run["differ"].is_null() && run["arena_after"].as_u64() < run["arena_before"].as_u64(), "{run}");
    }
}

#[test]
fn scratch_decides_what_is_better() {
    let before = file(vec![branches([0; 4])]).build();
    let (json, after) = optimize("scratch", &before, &["--scratch", "1=4096"]);
    assert_eq!((&json["scratch_bytes"], &json["arena_bytes_after"]), (&4096.into(), &8320.into()));
    assert_eq!(outputs(&model(&after.unwrap()), 0), [2, 4, 1, 3, 5]);
    // The same from a profile, in which a tensor is also larger than the file says.
    let tensor = |bytes: u64| serde_json::json!({"name": "t", "type": "int8", "bytes": bytes, "allocation": 2});
    let node = |inputs: &[i32], output: i32, scratch: &[i32]| serde_json::json!({"builtin": 19, "inputs": inputs, "outputs": [output], "temporaries": scratch});
    let mut nodes = vec![node(&[0], 1, &[]), node(&[0], 2, &[6]), node(&[1], 3, &[]), node(&[2], 4, &[])];
    nodes.push(serde_json::json!({"builtin": 2, "inputs": [3, 4], "outputs": [5], "temporaries": []}));
    let profile = |nodes: &[Value]| {
        let tensors: Vec<Value> = [128, 4096, 4096, 256, 128, 256, 4096].map(tensor).to_vec();
        let graph = serde_json::json!({"index": 0, "inputs": [0], "outputs": [5], "tensors": tensors, "nodes": nodes});
        serde_json::json!({"format": "arenite-profile", "version": 1, "subgraphs": [graph]}).to_string()
    };
    let dir = dir("profile");
    let path = dir.join("profile.json");
    std::fs::write(&path, profile(&nodes)).unwrap();
    let (json, after) = optimize("profiled", &before, &["--profile", path.to_str().unwrap()]);
    assert_eq!((&json["scratch_bytes"], &json["arena_bytes_after"]), (&4096.into(), &8320.into()));
    assert_eq!(outputs(&model(&after.unwrap()), 0), [2, 4, 1, 3, 5]);
    nodes.pop();
    std::fs::write(&path, profile(&nodes)).unwrap();
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    std::fs::write(&from, &before).unwrap();
    let [from, to, path] = [&from, &to, &path].map(|p| p.to_str().unwrap());
    let (code, _, err) = arenite(&["optimize", from, "-o", to, "--profile", path]);
    assert!(code == 2 && err.contains("of another model"), "{err}");
    assert!(!Path::new(to).exists());
}

#[test]
fn a_plan_for_microcontrollers_comes_with_the_order() {
    let before = file(vec![branches([0; 4])]).build();
    let (json, after) = optimize("micro", &before, &["--tflm-offline"]);
    let plan = model(&after.unwrap()).offline_plan.unwrap();
    assert_eq!(json["offline_plan"], "added");
    assert!(plan.iter().all(|o| o.is_some_and(|o| o % 16 == 0)));
    assert!(json["tflm_offline"]["after"].as_u64() < json["tflm_offline"]["before"].as_u64());
    assert_eq!(outputs(&model(&before), 0), [1, 2, 3, 4, 5]);
}

#[test]
fn bad_input_is_refused() {
    let dir = dir("bad");
    let (from, to) = (dir.join("in.tflite"), dir.join("out.tflite"));
    std::fs::write(&from, b"not a model").unwrap();
    let (code, _, err) = arenite(&["optimize", from.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    assert!(code == 2 && err.contains("TFL3"), "{err}");
    let (code, ..) = arenite(&["optimize", from.to_str().unwrap()]);
    assert_eq!(code, 2, "an output is asked for");
    assert!(!to.exists());
}

#[test]
fn a_streaming_model_takes_less_and_stays_the_same_file_but_for_the_order() {
    let Some(shared) = model_support::shared() else { return };
    let before = model_support::read(&shared.join("models/esphome_vad.tflite"));
    let (json, after) = optimize("vad", &before, &[]);
    let after = after.unwrap();
    assert!(json["arena_bytes_after"].as_u64() < json["arena_bytes_before"].as_u64());
    assert!(json["tflite"]["after"].as_u64() < json["tflite"]["before"].as_u64());
    assert_eq!((before.len(), sorted(&before).len()), (after.len(), sorted(&after).len()));
    let (old, new) = (model(&before), model(&after));
    let names =
        |m: &Model| m.subgraphs[0].nodes.iter().map(|n| format!("{} {:?}", n.op, n.outputs)).collect::<Vec<_>>();
    assert_eq!(&*new.subgraphs[0].nodes[0].op, "CALL_ONCE", "initialisers first");
    let (mut a, mut b) = (names(&old), names(&new));
    assert_ne!(a, b);
    a.sort();
    b.sort();
    assert_eq!(a, b);
    // Per resource: reads and assignments in their old order.
    for r in 0..old.resources.len() as u32 {
        let uses = |m: &Model, name: &str| {
            let r = m.resources.iter().position(|x| x.name == name).unwrap() as u32;
            let nodes = m.subgraphs[0].nodes.iter().filter(|n| n.resource == Some(r) && *n.op != *"VAR_HANDLE");
            nodes.map(|n| format!("{} {:?}", n.op, n.inputs)).collect::<Vec<_>>()
        };
        let name = &old.resources[r as usize].name;
        assert_eq!(uses(&old, name), uses(&new, name));
    }
}
