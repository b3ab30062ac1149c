//! The report's structure: JSON, CSV, SVG, trace and diff. Not pixels.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, shared, tgt, Table, Temp};
use serde_json::Value;

fn keys(v: &Value) -> Vec<&str> {
    v.as_object().unwrap().keys().map(String::as_str).collect()
}

fn sum(cost: &Value) -> u64 {
    cost.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum()
}

#[test]
fn the_json_has_the_documented_structure() {
    let report = arenite(&["plan", "--json"]).json_with(0);
    let documented = include_str!("../docs/REPORT.md");
    assert_eq!(report["report_version"], 1);
    let entry = &report["entries"][0];
    for key in keys(&report).into_iter().chain(keys(entry)).chain(keys(&report["operators"][0])) {
        assert!(documented.contains(&format!("`{key}`")), "docs/REPORT.md does not tell of `{key}`");
    }
    assert_eq!(sum(&entry["cost"]), report["arena_bytes"].as_u64().unwrap(), "the cost adds up to the arena");
    assert_eq!((&entry["peak_step"], &entry["peak_op"]), (&4.into(), &"DEPTHWISE_CONV_2D".into()));
    assert_eq!(entry["peak_tensors"][0]["size"], 4_816_896);
    let operators = report["operators"].as_array().unwrap();
    assert_eq!(operators.len(), 66);
    let most = operators.iter().max_by_key(|o| o["live_bytes"].as_u64()).unwrap();
    assert_eq!(
        (&most["step"], &most["live_bytes"], &most["utilisation"]),
        (&4.into(), &entry["peak_bytes"], &1.0.into())
    );
    let constants = &entry["without_arena_bytes"][0];
    assert_eq!((&constants["kind"], &constants["bytes"]), (&"constant".into(), &report["constant_bytes"]));
    assert_eq!(report["offsets"][0]["shape"], "1x224x224x3");
    // The same report twice, but for the time it took.
    let lines = |text: &str| text.lines().filter(|l| !l.contains("_ns\"")).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&arenite(&["plan", "--json"]).out), lines(&arenite(&["plan", "--json"]).out));
}

#[test]
fn the_cost_adds_up_on_real_models() {
    let Some(dir) = shared("corpus/models") else { return };
    for model in ["esphome_v2_vad", "support_deeplabv3", "tfl_nested_while", "litert_multi_signature_model"] {
        let path = dir.join(format!("{model}.tgt"));
        let report = arenite(&["plan", path.to_str().unwrap(), "--json"]).json_with(0);
        for entry in report["entries"].as_array().unwrap() {
            assert_eq!(sum(&entry["cost"]), entry["arena_bytes"].as_u64().unwrap(), "{model}");
        }
    }
}

#[test]
fn the_proof_is_worded_exactly() {
    let temp = Temp::new("proof");
    // Alignment makes the smaller block's padding unavoidable, but the bound cannot tell which is on top.
    let csv = temp.file("p.csv", "id,lower,upper,size,alignment\na,0,2,100,64\nb,1,3,100,64\nc,2,4,64,64\n");
    let text = arenite(&["plan", &csv]).out;
    let plan = arenite(&["plan", &csv, "--json"]).json();
    if plan["arena_bytes"] == plan["lower_bound"] {
        assert!(text.contains("proven: no smaller arena exists\n"), "{text}");
    }
    let Some(dir) = shared("models") else { return };
    let text = arenite(&["plan", dir.join("esphome_vad.tflite").to_str().unwrap()]).out;
    assert!(text.contains("proven: none smaller once rounded to 128"), "{text}");
}

#[test]
fn the_svg_has_a_block_per_tensor() {
    let temp = Temp::new("svg");
    let svg = temp.path("m.svg");
    assert_eq!(arenite(&["view", "-o", &svg]).code, 0);
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
    assert_eq!(text.matches("<g fill=").count(), 67, "blocks");
    assert_eq!(text.matches("<polyline").count(), 1, "the live bytes");
    for part in
        ["peak: 6 623 232 B alive at step 4 DEPTHWISE_CONV_2D", "lower bound 6 623 232 B", "alive 3 CONV_2D to 4"]
    {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn the_trace_opens_in_perfetto() {
    let trace: Value = serde_json::from_str(&arenite(&["plan", "--trace", "-"]).out).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let slices: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!(slices.iter().filter(|e| e["tid"] == 0).count(), 66, "operators");
    assert_eq!(slices.iter().filter(|e| e["tid"] != 0).count(), 67, "tensors");
    // Slices of one lane follow each other.
    let mut ends = std::collections::BTreeMap::new();
    for e in slices {
        let (tid, from) = (e["tid"].as_u64(), e["ts"].as_u64().unwrap());
        let end = ends.entry(tid).or_insert(0);
        assert!(from >= *end, "{e}");
        *end = from + e["dur"].as_u64().unwrap();
    }
    assert!(events.iter().any(|e| e["ph"] == "C" && e["args"]["bytes"] == 6_623_232));
}

#[test]
fn a_diff_names_what_changed() {
    let temp = Temp::new("diff");
    let graph = |bytes: u64| {
        tgt(&[Table::new(&[("input", 1024), ("inter", bytes), ("inter", 512)], "0", "2")
            .node("CONV_2D", "0", "1", "-")
            .node("CONV_2D", "1", "2", "-")])
    };
    let (a, b) = (temp.file("a.tgt", graph(2048)), temp.file("b.tgt", graph(4096)));
    let text = arenite(&["diff", &a, &b]).out;
    for part in ["arena_bytes", "+2 048 B", "resized", "1 \"t1\": bytes 2 048 -> 4 096"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = arenite(&["diff", &a, &b, "--json"]).json_with(0);
    assert_eq!(json["arena_bytes"]["change"], 2048);
    let resized = json["changes"].as_array().unwrap().iter().find(|c| c["change"] == "resized").expect("one");
    assert_eq!(
        (&resized["name"], &resized["a"]["size"], &resized["b"]["size"]),
        (&"t1".into(), &2048.into(), &4096.into())
    );
    assert!(arenite(&["diff", &a, &a]).out.contains("no tensor of the arena differs"));
    assert_eq!(arenite(&["diff", &a]).code, 2);
    let other = temp.path("x.pdf");
    assert_eq!(
        (arenite(&["view", "-o", &other]).code, arenite(&["view", "--compare", &a, "-o", "x.svg"]).code),
        (2, 2)
    );
}
