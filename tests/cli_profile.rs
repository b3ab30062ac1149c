//! Profiles recorded from a runtime, in every command: accepted like a model, or refused with the reason.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, Temp};
use serde_json::{json, Value};

/// Two subgraphs with arenas of their own. In the first `b` is written over `a`, which dies there, scratch lies beside
/// them, and the state is in the persistent arena.
fn profile() -> Value {
    let tensor = |name: &str, bytes: u64, allocation: u32, arena: Option<&str>, offset: Option<u64>| {
        json!({"name": name, "type": "float32", "shape": [bytes / 4], "bytes": bytes, "allocation": allocation,
               "variable": allocation == 3, "arena": arena, "offset": offset})
    };
    let node = |builtin: i32, inputs: &[i32], outputs: &[i32], temporaries: &[i32], inplace: u64| {
        json!({"builtin": builtin, "custom": null, "inputs": inputs, "outputs": outputs, "temporaries": temporaries,
               "inplace": inplace, "call": "none", "subgraphs": []})
    };
    let main = Some("main");
    json!({"format": "arenite-profile", "version": 1, "host": "tflite", "subgraphs": [
        {"index": 0, "inputs": [0], "outputs": [4], "variables": [6],
         "tensors": [tensor("in", 256, 2, main, Some(0)), tensor("w", 32, 1, None, None),
                     tensor("a", 512, 2, main, Some(256)), tensor("b", 512, 2, main, Some(256)),
                     tensor("out", 256, 2, main, Some(768)), tensor("scratch", 1024, 2, main, Some(768)),
                     tensor("state", 128, 3, Some("persistent"), Some(0)),
                     tensor("more state", 128, 3, Some("persistent"), Some(128))],
         "nodes": [node(3, &[0, 1, -1], &[2], &[5], 0), node(0, &[2, 1], &[3], &[], 12), node(9, &[3, 1, 6], &[4], &[], 0)],
         "plan": {"strategy": "auto", "alignment": 128, "arena_bytes": 1792, "persistent_bytes": 256}},
        {"index": 1, "inputs": [0], "outputs": [1],
         "tensors": [tensor("x", 64, 2, main, Some(0)), tensor("y", 64, 2, main, Some(128))],
         "nodes": [node(0, &[0, 0], &[1], &[], 0)],
         "plan": {"alignment": 128, "arena_bytes": 192, "persistent_bytes": 0}}]})
}

fn check(temp: &Temp, profile: &Value, more: &[&str]) -> (i32, Value) {
    let path = temp.file("p.json", profile.to_string());
    let run = arenite(&[&["check", &path, "--json"], more].concat());
    (run.code, run.json_with(run.code))
}

#[test]
fn the_recorded_plan_is_checked() {
    let temp = Temp::new("recorded");
    let (code, out) = check(&temp, &profile(), &[]);
    assert_eq!(
        (code, &out["violations"], &out["arena_bytes"], &out["buffers"]),
        (0, &json!([]), &json!(1792), &json!(9))
    );
    // A subgraph alone, and an alignment that the recorded one is not.
    let (code, out) = check(&temp, &profile(), &["--subgraph", "1"]);
    assert_eq!((code, &out["buffers"]), (0, &json!(2)));
    let (code, out) = check(&temp, &profile(), &["--align", "512"]);
    assert_eq!((code, &out["violations"][0]["kind"]), (1, &json!("misaligned")));
    assert_eq!(check(&temp, &profile(), &["--capacity", "1791"]).0, 1);
    // Whoever asks so does not accept that `b` lies over `a`.
    let (code, out) = check(&temp, &profile(), &["--no-in-place"]);
    assert_eq!((code, &out["violations"][0]["kind"]), (1, &json!("overlap")));
}

#[test]
fn what_is_wrong_with_a_recorded_plan_is_found() {
    let temp = Temp::new("wrong");
    type Change = fn(&mut Value);
    let cases: [(Change, &str, &str); 8] = [
        (|p| p["subgraphs"][0]["tensors"][5]["offset"] = json!(512), "overlap", "0:2"),
        (|p| p["subgraphs"][0]["tensors"][4]["offset"] = json!(640), "overlap", "0:3"),
        (|p| p["subgraphs"][1]["tensors"][1]["offset"] = json!(0), "overlap", "1:0"),
        (|p| p["subgraphs"][0]["tensors"][7]["offset"] = json!(0), "overlap", "0:6"),
        (|p| p["subgraphs"][0]["tensors"][4]["offset"] = json!(800), "misaligned", "0:4"),
        (|p| p["subgraphs"][0]["tensors"][2]["arena"] = Value::Null, "missing", "0:2"),
        // The runtime's kernel does not write over its input, whatever the operator does elsewhere.
        (|p| p["subgraphs"][0]["nodes"][1]["inplace"] = json!(0), "overlap", "0:2"),
        (|p| p["subgraphs"][0]["tensors"][5]["offset"] = json!(u64::MAX - 127), "wraps", "0:5"),
    ];
    for (change, kind, who) in cases {
        let mut p = profile();
        change(&mut p);
        let (code, out) = check(&temp, &p, &[]);
        let list = out["violations"].as_array().unwrap();
        let found = list.iter().any(|v| v["kind"] == kind && (v["a"] == who || v["b"] == who));
        assert!(code == 1 && found, "{kind} {who}: {out}");
    }
    for key in ["arena_bytes", "persistent_bytes"] {
        let mut p = profile();
        p["subgraphs"][0]["plan"][key] = json!(255);
        let (code, out) = check(&temp, &p, &[]);
        assert_eq!((code, &out["violations"][0]["kind"]), (1, &json!("capacity")), "{key}");
    }
    let mut p = profile();
    p["subgraphs"][0]["tensors"][0]["arena"] = json!("other");
    let run = arenite(&["check", &temp.file("p.json", p.to_string())]);
    assert!(
        run.code == 2 && run.err.contains("subgraphs 0, tensors 0, arena: expected main, persistent"),
        "{}",
        run.err
    );
}

#[test]
fn every_command_takes_it_or_says_why_not() {
    let temp = Temp::new("every");
    let path = temp.file("p.json", profile().to_string());
    let out = |name: &str| temp.path(name);
    for args in [
        vec!["plan", &path],
        vec!["plan", &path, "--json"],
        vec!["plan", &path, "--subgraph", "1"],
        vec!["view", &path, "-o", &out("v.html")],
        vec!["view", &path, "-o", &out("v.svg")],
        vec!["view", &path, "-o", &out("v.json"), "--format", "trace"],
        vec!["diff", &path, &path],
        vec!["advise", &path],
    ] {
        let run = arenite(&args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    }
    for args in [
        vec!["export", "--tflm-offline", &path, "-o", &out("x.tflite")],
        vec!["optimize", &path, "-o", &out("x.tflite")],
        vec!["replay", &path],
    ] {
        let run = arenite(&args);
        assert!(
            run.code == 2 && (run.err.contains("recorded profile") || run.err.contains("not a trace")),
            "{}",
            run.err
        );
    }
    assert!(!std::path::Path::new(&out("x.tflite")).exists());
    // Without a plan in it there is nothing to check.
    let mut p = profile();
    for k in 0..2 {
        for t in p["subgraphs"][k]["tensors"].as_array_mut().unwrap() {
            t["arena"] = Value::Null;
        }
    }
    let run = arenite(&["check", &temp.file("q.json", p.to_string())]);
    assert!(run.code == 2 && run.err.contains("holds no plan"), "{}", run.err);
}
