//! `arenite plan`: the JSON contract, real models, and the options.
#![cfg(feature = "cli")]

mod common;

use std::path::Path;

use common::{arenite, files, placed, row, shared, tgt, with_input, Table, Temp};
use serde_json::Value;

const KEYS: [&str; 13] = [
    "arena_bytes",
    "persistent_bytes",
    "lower_bound",
    "optimal",
    "strategy",
    "buffers",
    "total_bytes",
    "constant_bytes",
    "scratch_bytes",
    "alignment",
    "in_place",
    "plan_ns",
    "offsets",
];
const ROW_KEYS: [&str; 7] = ["subgraph", "id", "name", "offset", "size", "first", "last"];

#[track_caller]
fn contract(plan: &Value) {
    for key in KEYS {
        assert!(!plan[key].is_null() || key == "scratch_bytes", "{key}");
    }
    let rows = plan["offsets"].as_array().unwrap();
    for r in rows {
        for key in ROW_KEYS {
            assert!(r.get(key).is_some(), "{key} in {r}");
        }
    }
    let placed = placed(plan);
    assert_eq!(plan["buffers"], placed.len());
    assert_eq!(plan["total_bytes"], placed.iter().map(|r| r.3).sum::<u64>());
    assert_eq!(plan["arena_bytes"], placed.iter().map(|r| r.2 + r.3).max().unwrap_or(0));
    assert!(plan["lower_bound"].as_u64() <= plan["arena_bytes"].as_u64());
    let alignment = plan["alignment"].as_u64().unwrap();
    assert!(placed.iter().all(|r| r.2 % alignment == 0 || plan["offsets"][0]["subgraph"].is_null()));
}

#[test]
fn the_built_in_network() {
    let plan = arenite(&["plan", "--json"]).json_with(0);
    contract(&plan);
    assert_eq!((plan["arena_bytes"].as_u64(), plan["lower_bound"].as_u64()), (Some(6_623_232), Some(6_623_232)));
    assert_eq!((&plan["optimal"], &plan["alignment"], &plan["in_place"]), (&true.into(), &128.into(), &true.into()));
    let (input, weights) = (row(&plan, 0, 0), row(&plan, 0, 1));
    assert_eq!((&input["name"], &input["size"], &input["last"]), (&"input".into(), &602_112.into(), &65.into()));
    assert!(weights["offset"].is_null() && weights["first"].is_null() && weights["size"] == 3456, "a constant");

    let text = arenite(&["plan"]).out;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    let order = ["sum of tensors", "arena ", "lower bound", "persistent", "constants", "One process needs"];
    assert!(order.windows(2).all(|w| at(w[0]) < at(w[1])), "{text}");
    for part in ["20 579 628 B", "Peak: 6 623 232 B", "step 4 DEPTHWISE_CONV_2D", "no smaller arena exists", "Map ("] {
        at(part);
    }
    let map = &text[at("Map (")..];
    assert!(map.lines().all(|l| l.chars().count() <= 100), "{map}");
    assert!(arenite(&["plan", "--all"]).out.lines().count() > text.lines().count() + 100);
}

#[test]
fn the_same_input_gives_the_same_output() {
    let text = || arenite(&["plan", "--all"]).out;
    assert_eq!(text(), text());
    let json = || {
        let mut plan = arenite(&["plan", "--json"]).json_with(0);
        for key in ["plan_ns", "best_ns", "proof_ns"] {
            plan[key] = 0.into();
        }
        plan.to_string()
    };
    assert_eq!(json(), json());
}

#[test]
fn strategies_policies_and_alignment() {
    for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
        for policy in ["safe", "tflite", "tflm"] {
            let plan = arenite(&["plan", "--json", "--strategy", strategy, "--policy", policy]).json_with(0);
            contract(&plan);
            assert_eq!(plan["strategy_asked"], strategy);
        }
    }
    let plan = arenite(&["plan", "--json", "--align", "4096"]).json_with(0);
    contract(&plan);
    assert_eq!(plan["alignment"], 4096);
}

#[test]
fn real_models() {
    let Some(dir) = shared("models") else { return };
    let temp = Temp::new("real");
    let csv = temp.path("plan.csv");
    for model in files(&dir, ".tflite") {
        let model = model.to_str().unwrap();
        let plan = arenite(&["plan", model, "--json", "--csv", &csv]).json_with(0);
        contract(&plan);
        assert!(plan["constant_bytes"].as_u64() > Some(0), "{model}");
        assert_eq!(arenite(&["check", &csv, "--json"]).json_with(0)["arena_bytes"], plan["arena_bytes"]);
        let checked = arenite(&["check", model, &csv, "--align", "128", "--json"]).json_with(0);
        assert_eq!(checked["arena_bytes"], plan["arena_bytes"]);
        assert!(arenite(&["plan", model]).out.contains("One process needs"));
    }
}

/// Lifetimes of every subgraph of every graph table are those of its derived CSV.
#[test]
fn every_graph_table_of_the_corpus() {
    let Some(dir) = shared("corpus/models") else { return };
    let problems = files(&dir, ".io.csv");
    for problem in &problems {
        let name = problem.file_name().unwrap().to_str().unwrap().strip_suffix(".io.csv").unwrap();
        let (id, k) = name.rsplit_once(".sg").unwrap();
        let table = dir.join(format!("{id}.tgt"));
        if !table.is_file() {
            continue;
        }
        let args = ["plan", table.to_str().unwrap(), "--subgraph", k, "--no-in-place", "--json"];
        let plan = arenite(&args).json_with(0);
        contract(&plan);
        let mut ours: Vec<String> =
            placed(&plan).iter().map(|r| format!("{},{},{},{}", r.1, r.4, r.5 + 1, r.3)).collect();
        let mut theirs: Vec<String> =
            std::fs::read_to_string(problem).unwrap().lines().skip(1).map(str::to_string).collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{name}");
    }
    assert!(!problems.is_empty());
}

#[test]
fn whole_models_of_the_corpus_pass_their_check() {
    let Some(dir) = shared("corpus/models") else { return };
    let temp = Temp::new("whole");
    let csv = temp.path("plan.csv");
    for table in files(&dir, ".tgt") {
        let table = table.to_str().unwrap();
        let plan = arenite(&["plan", table, "--json", "--csv", &csv]).json_with(0);
        contract_of_entries(&plan);
        assert_eq!(arenite(&["check", &csv, "--json"]).json_with(0)["ok"], true, "{table}");
        assert_eq!(arenite(&["check", table, &csv, "--json"]).json_with(0)["ok"], true, "{table}");
    }
}

fn contract_of_entries(plan: &Value) {
    let entries = plan["entries"].as_array().unwrap();
    assert_eq!(plan["arena_bytes"].as_u64(), entries.iter().map(|e| e["arena_bytes"].as_u64().unwrap()).max());
    assert_eq!(plan["buffers"], placed(plan).len());
}

#[test]
fn problem_csvs_with_text_ids() {
    let Some(dir) = shared("corpus/minimalloc") else { return };
    let path = dir.join("input.12.csv");
    let plan = arenite(&["plan", path.to_str().unwrap(), "--json"]).json_with(0);
    contract(&plan);
    assert_eq!((&plan["arena_bytes"], &plan["alignment"]), (&12.into(), &1.into()));
    let first = &plan["offsets"][0];
    assert_eq!((&first["id"], &first["first"], &first["last"]), (&"b1".into(), &0.into(), &2.into()));
    assert!(first["subgraph"].is_null());
    assert_eq!(arenite(&["plan", path.to_str().unwrap(), "--capacity", "12"]).code, 0);
    assert_eq!(
        arenite(&["plan", path.to_str().unwrap(), "--capacity", "11", "--json"]).json_with(1)["arena_bytes"],
        12
    );
}

#[test]
fn optional_columns_and_the_written_csv() {
    let temp = Temp::new("columns");
    let text =
        "name,id,lower,upper,size,alignment,gaps,note\n\"a, b\",x,0,10,5,16,2-8,n1\n,y,3,5,9,,,n2\nz,z,0,10,0,,,\n";
    let (problem, solved) = (temp.file("p.csv", text), temp.path("s.csv"));
    let plan = arenite(&["plan", &problem, "--json", "--csv", &solved]).json_with(0);
    assert_eq!((&plan["arena_bytes"], &plan["buffers"], &plan["alignment"]), (&9.into(), &2.into(), &16.into()));
    let x = &plan["offsets"][0];
    assert_eq!((&x["name"], x["spans"].to_string()), (&"a, b".into(), "[[0,1],[8,9]]".into()));
    assert!(plan["offsets"][2]["offset"].is_null(), "an empty buffer gets no bytes");
    let written = std::fs::read_to_string(&solved).unwrap();
    assert!(written.starts_with("name,id,lower,upper,size,alignment,gaps,note,offset\n\"a, b\",x,0,10,5,16,2-8,n1,0\n"));
    assert_eq!(arenite(&["check", &solved]).code, 0);
    let stream = arenite(&["plan", &problem, "--csv", "-"]);
    assert_eq!(stream.out, written);
    assert_eq!(with_input(&["plan", "-", "--json"], text.as_bytes()).json_with(0)["arena_bytes"], 9);
}

#[test]
fn times_larger_than_a_step_come_back_as_they_were() {
    let temp = Temp::new("times");
    let path =
        temp.file("p.csv", "id,lower,upper,size\na,0,5000000000,64\nb,5000000000,10000000000,64\nc,7,6000000000,8\n");
    let plan = arenite(&["plan", &path, "--json"]).json_with(0);
    let lives: Vec<_> = placed(&plan).iter().map(|r| (r.4, r.5)).collect();
    assert_eq!(lives, [(0, 4_999_999_999), (5_000_000_000, 9_999_999_999), (7, 5_999_999_999)]);
    assert_eq!(plan["arena_bytes"], 72);
    let text = arenite(&["plan", &path]).out;
    assert!(text.contains("because a ends at 4999999999, before 5000000000"), "{text}");
    let solved = temp.file("s.csv", "id,offset\na,0\nb,0\nc,8\n");
    let checked = arenite(&["check", &path, &solved, "--json"]).json_with(1);
    assert_eq!(checked["violations"][0]["steps"].to_string(), "[7,4999999999]");
}

#[test]
fn the_largest_arena_there_is() {
    let temp = Temp::new("largest");
    let path = temp.file("p.csv", "id,lower,upper,size\na,0,1,18446744073709551615\n");
    for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
        let plan = arenite(&["plan", &path, "--strategy", strategy, "--json"]).json_with(0);
        assert_eq!((&plan["arena_bytes"], &plan["optimal"]), (&u64::MAX.into(), &true.into()), "{strategy}");
        assert_eq!(arenite(&["plan", &path, "--strategy", strategy]).code, 0);
    }
    let path =
        temp.file("q.csv", "id,lower,upper,size,offset\na,0,1,9223372036854775807,9223372036854775807\nb,0,1,1,\n");
    assert_eq!(arenite(&["plan", &path, "--align", "1", "--json"]).json_with(0)["arena_bytes"], u64::MAX - 1);
}

#[test]
fn the_kind_of_input_is_told_by_content() {
    let temp = Temp::new("kinds");
    let table = tgt(&[Table::new(&[("input", 8), ("inter", 8)], "0", "1").node("RELU", "0", "1", "-")]);
    let path = temp.file("graph.csv", &table);
    assert_eq!(arenite(&["plan", &path, "--json"]).json_with(0)["buffers"], 2);
    let path = temp.file("problem.tflite", "\u{feff}\n Size,UPPER,\"lower\",id\n4,1,0,a\n");
    assert_eq!(arenite(&["plan", &path, "--json"]).json_with(0)["buffers"], 1);
}

#[test]
fn svg_has_a_block_and_a_title_per_tensor() {
    let temp = Temp::new("svg");
    let path = temp.path("map.svg");
    assert_eq!(arenite(&["plan", "--svg", &path]).code, 0);
    let svg = std::fs::read_to_string(Path::new(&path)).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("B at offset").count(), 67);
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    let hostile = temp.file("h.csv", "id,lower,upper,size,name\n\"<a>&\"\"\",0,1,4,\"</svg><script>\u{1}\"\n");
    assert_eq!(arenite(&["plan", &hostile, "--svg", &path]).code, 0);
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(!svg.contains("<script") && !svg.contains('\u{1}') && svg.contains("&lt;a&gt;&amp;&quot;"));
}

#[test]
fn several_entries_share_the_largest_arena() {
    let temp = Temp::new("entries");
    let graph = |bytes| Table::new(&[("input", bytes), ("inter", bytes)], "0", "1").node("RELU", "0", "1", "-");
    let path = temp.file("m.tgt", tgt(&[graph(256), graph(1024)]));
    let plan = arenite(&["plan", &path, "--json"]).json_with(0);
    assert_eq!((&plan["arena_bytes"], &plan["buffers"]), (&2048.into(), &4.into()));
    let entries: Vec<_> = plan["offsets"].as_array().unwrap().iter().map(|r| r["entry"].as_u64().unwrap()).collect();
    assert_eq!(entries, [0, 0, 1, 1]);
    assert_eq!(plan["entries"][0]["arena_bytes"], 512);
    assert!(arenite(&["plan", &path]).out.contains("Entries, run one at a time:"));
    let alone = arenite(&["plan", &path, "--subgraph", "0", "--json"]).json_with(0);
    assert_eq!(alone["arena_bytes"], 512);
}

#[test]
fn shapes_left_open_are_set_and_the_rest_is_told() {
    let Some(dir) = shared("models") else { return };
    let path = dir.join("hello_world_int8.tflite");
    let path = path.to_str().unwrap();
    let plan = arenite(&["plan", path, "--json"]).json_with(0);
    let warning = plan["warnings"][0].as_str().unwrap();
    assert!(warning.contains("unknown dimensions") && warning.contains("serving_default_dense_input:0"), "{warning}");
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 1);
    let set = "serving_default_dense_input:0=500,1";
    let plan = arenite(&["plan", path, "--json", "--set", set]).json_with(0);
    assert!(plan["offsets"].as_array().unwrap().iter().any(|r| r["size"] == 500));
    let huge = "serving_default_dense_input:0=9223372036854775807,9223372036854775807";
    let refused = arenite(&["plan", path, "--set", huge]);
    assert_eq!(refused.code, 2);
}

/// What `plan --csv` writes is a problem again, in-place rows included, and its plan is the one that was written.
#[test]
fn a_written_plan_is_read_again() {
    let temp = Temp::new("again");
    let (first, second) = (temp.path("first.csv"), temp.path("second.csv"));
    assert_eq!(arenite(&["plan", "--csv", &first]).code, 0);
    assert!(std::fs::read_to_string(&first).unwrap().lines().any(|l| !l.ends_with(',') && l.contains("/add,")));
    let again = arenite(&["plan", &first, "--csv", &second]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(std::fs::read_to_string(&first).unwrap(), std::fs::read_to_string(&second).unwrap());
    assert_eq!(arenite(&["diff", &first, &second]).code, 0);

    let rows = "id,lower,upper,size,offset,root\na,0,3,100,128,\nb,2,5,50,170,a\n";
    assert_eq!(arenite(&["plan", &temp.file("view.csv", rows)]).code, 0);
    for wrong in [rows.replace("170", "100"), rows.replace("170", "190"), rows.replace("128", "")] {
        let run = arenite(&["plan", &temp.file("wrong.csv", &wrong)]);
        assert_eq!(run.code, 2);
        assert!(
            run.err.contains("line 3, field 6: root \"a\": the row's offset is not within the root's"),
            "{}",
            run.err
        );
    }
}
