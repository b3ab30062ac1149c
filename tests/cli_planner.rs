//! `arenite plan`: capacity explained, planning again, regions, search statistics.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, Temp};
use serde_json::Value;

const FOUR: &str = "id,lower,upper,size\na,0,2,1024\nb,0,2,512\nc,1,2,256\nd,5,7,128\n";

fn ids(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect()
}

#[test]
fn a_capacity_is_answered_and_the_answer_explained() {
    let temp = Temp::new("fit");
    let path = temp.file("p.csv", FOUR);
    let plan = arenite(&["plan", &path, "--json", "--capacity", "1792"]).json_with(0);
    let fits = &plan["capacity"];
    assert_eq!((&fits["bytes"], &fits["verdict"]), (&1792.into(), &"fits".into()));
    assert!(fits["step"].is_null() && fits["needed"].is_null() && ids(&fits["outside"]).is_empty());
    assert!(arenite(&["plan", &path, "--json"]).json_with(0)["capacity"].is_null());

    let plan = arenite(&["plan", &path, "--json", "--capacity", "1791"]).json_with(1);
    let not = &plan["capacity"];
    assert_eq!((&not["verdict"], &not["step"], &not["needed"]), (&"too_much_alive".into(), &1.into(), &1792.into()));
    assert_eq!(ids(&not["alive"]), ["a", "b", "c"]);
    let above = |r: &&Value| r["offset"].as_u64().unwrap() + r["size"].as_u64().unwrap() > 1791;
    let outside: Vec<_> = plan["offsets"].as_array().unwrap().iter().filter(above).map(|r| r["id"].clone()).collect();
    assert_eq!(outside, ids(&not["outside"]));
    let run = arenite(&["plan", &path, "--capacity", "1791"]);
    assert_eq!(run.code, 1);
    for part in ["1 are missing", "3 buffers (a, b, c) need 1 792 bytes at step 1", "all others fit"] {
        assert!(run.err.contains(part), "{}", run.err);
    }
}

#[test]
fn bytes_enough_at_every_step_and_still_no_plan() {
    let temp = Temp::new("packing");
    let path = temp.file("p.csv", "id,lower,upper,size,offset\nfixed,0,2,128,128\nlarge,1,3,256,\n");
    let plan = arenite(&["plan", &path, "--json", "--capacity", "384", "--strategy", "exact"]).json_with(1);
    assert_eq!((&plan["arena_bytes"], ids(&plan["capacity"]["outside"])), (&512.into(), vec!["large"]));
    assert_eq!(plan["capacity"]["verdict"], "no_packing");
    let run = arenite(&["plan", &path, "--capacity", "384", "--strategy", "first-fit"]);
    assert!(run.code == 1 && run.err.contains("no plan"), "{}", run.err);
}

#[test]
fn br_17_smaller_tensors_stay_where_they_are() {
    let temp = Temp::new("br17");
    let before = "id,lower,upper,size\nA,3,5,512\nB,2,4,512\nC,1,2,640\nD,1,3,512\n";
    let (old, new) = (temp.file("old.csv", before), temp.file("new.csv", before.replace("B,2,4,512", "B,2,4,384")));
    let solved = temp.path("solved.csv");
    for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
        let common = ["--align", "128", "--json", "--strategy", strategy];
        let first = arenite(&[&["plan", &old, "--csv", &solved], &common[..]].concat()).json_with(0);
        assert!(first["moved"].is_null());
        for keep in ["arena", "offsets"] {
            let again = ["plan", &new, "--previous", &solved, "--keep", keep];
            let second = arenite(&[&again, &common[..]].concat()).json_with(0);
            assert_eq!(second["moved"], 0, "{strategy} {keep}");
            assert!(second["arena_bytes"].as_u64().unwrap() <= first["arena_bytes"].as_u64().unwrap().min(1152));
        }
    }
    let text = arenite(&["plan", &new, "--align", "128", "--previous", &solved]).out;
    assert!(text.contains("Moved: 0 buffers"), "{text}");
}

#[test]
fn as_few_as_possible_move() {
    let temp = Temp::new("keep");
    // Found by id, whatever the order; `new` is not in the older plan.
    let problem = "id,lower,upper,size\nnew,4,6,128\nc,0,9,256\nb,0,9,512\na,0,9,256\n";
    let path = temp.file("p.csv", problem);
    let old = temp.file("old.csv", "id,offset\na,0\nb,256\nc,512\n");
    let plan = arenite(&["plan", &path, "--previous", &old, "--keep", "offsets", "--json"]).json_with(0);
    assert_eq!(plan["moved"], 2, "one of b and c, and the new one");
    assert_eq!(plan["offsets"][3]["offset"], 0);
    let solved = temp.path("solved.csv");
    arenite(&["plan", &path, "--previous", &old, "--keep", "offsets", "--csv", &solved, "--json"]).json_with(0);
    assert_eq!(arenite(&["check", &solved]).code, 0);
    for bad in [&["--keep", "offsets"][..], &["--previous", "/nowhere.csv"], &["--previous", &path]] {
        assert_eq!(arenite(&[&["plan", &path], bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn a_model_is_planned_again() {
    let temp = Temp::new("model");
    let csv = temp.path("plan.csv");
    let first = arenite(&["plan", "--csv", &csv, "--json"]).json_with(0);
    for keep in ["arena", "offsets"] {
        let again = arenite(&["plan", "--previous", &csv, "--keep", keep, "--json"]).json_with(0);
        assert_eq!((&again["moved"], &again["arena_bytes"]), (&0.into(), &first["arena_bytes"]));
        assert_eq!(again["offsets"], first["offsets"]);
    }
    // Classes in place stay too where something else has to go.
    let apart = ["plan", "--previous", &csv, "--keep", "offsets", "--no-in-place", "--json"];
    assert!(arenite(&apart).json_with(0)["moved"].as_u64() > Some(0));
}

#[test]
fn regions_take_a_model() {
    let plan = arenite(&["plan", "--region", "sram=512KiB", "--region", "dram", "--json"]).json();
    let rows = plan["offsets"].as_array().unwrap();
    let held = |name: &str| {
        let own = rows.iter().filter(|r| r["region"] == name);
        own.map(|r| r["offset"].as_u64().unwrap_or(0) + r["size"].as_u64().unwrap()).max().unwrap()
    };
    assert!(held("sram") <= 512 << 10 && held("dram") > 512 << 10);
    assert_eq!(plan["regions"][0]["arena_bytes"], held("sram"));
    let whole = arenite(&["plan", "--region", "one", "--json"]).json();
    let alone = arenite(&["plan", "--json"]).json();
    assert_eq!(whole["arena_bytes"], alone["arena_bytes"], "one region is one arena");
}

#[test]
fn regions_hold_what_they_can_and_report_the_rest() {
    let temp = Temp::new("regions");
    let rows = "id,lower,upper,size,regions,benefit\nhot,0,4,1024,,100\ncold,0,4,1024,,1\nwarm,0,4,1024,,50\n\
        home,0,4,512,dram,\nnone,0,1,0,,\n";
    let path = temp.file("p.csv", rows);
    let solved = temp.path("solved.csv");
    let two = ["plan", &path, "--region", "sram=2KiB", "--region", "dram"];
    let plan = arenite(&[&two[..], &["--json", "--csv", &solved]].concat()).json_with(0);
    let region: Vec<_> = plan["offsets"].as_array().unwrap().iter().map(|r| r["region"].as_str().unwrap()).collect();
    assert_eq!(region, ["sram", "dram", "sram", "dram", "sram"]);
    let spill = &plan["spills"];
    assert_eq!((ids(spill), &spill[0]["wanted"], &spill[0]["got"]), (vec!["cold"], &"sram".into(), &"dram".into()));
    assert_eq!((&plan["regions"][0]["arena_bytes"], &plan["regions"][0]["capacity"]), (&2048.into(), &2048.into()));
    assert_eq!((&plan["regions"][1]["arena_bytes"], &plan["regions"][1]["capacity"]), (&1536.into(), &Value::Null));
    assert_eq!((&plan["regions"][0]["spilled_bytes"], &plan["arena_bytes"]), (&1024.into(), &3584.into()));
    let written = std::fs::read_to_string(&solved).unwrap();
    assert!(written.starts_with("id,lower,upper,size,regions,benefit,offset,region\nhot,"), "{written}");
    assert!(
        written.contains("\nhome,0,4,512,dram,,") && written.lines().nth(2).unwrap().ends_with(",dram"),
        "{written}"
    );
    let text = arenite(&two).out;
    assert!(text.contains("cold: 1 024 B, in dram instead of sram, which is full at"), "{text}");

    let small = ["plan", &path, "--region", "sram=2KiB", "--region", "dram=1000", "--json"];
    let run = arenite(&small);
    assert!(run.code == 1 && run.err.contains("capacity exceeded"), "{}", run.err);
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["ok"], false);
    let unknown = arenite(&["plan", &path, "--region", "sram=2KiB"]);
    assert!(unknown.code == 2 && unknown.err.contains("line 5") && unknown.err.contains("\"dram\""), "{}", unknown.err);
    for bad in [&["--region", "=3"][..], &["--region", "x=y"], &["--region", "x", "--capacity", "3"]] {
        assert_eq!(arenite(&[&["plan", &path], bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn search_says_what_it_did() {
    let temp = Temp::new("search");
    let mut rows = "id,lower,upper,size\n".to_string();
    for i in 0..60u64 {
        rows += &format!("{i},{},{},{}\n", i * 7 % 23, i * 7 % 23 + 3 + i * 5 % 11, 64 + i * i * 37 % 901);
    }
    let path = temp.file("p.csv", rows);
    let plan = arenite(&["plan", &path, "--json", "--strategy", "exact", "--effort", "50000"]).json_with(0);
    let number = |key: &str| plan[key].as_u64();
    assert!(number("nodes_to_best") <= number("nodes") && number("nodes_to_proof") <= number("nodes"));
    assert!(number("best_ns") <= number("plan_ns"));
    assert_eq!(plan["optimal"] == true, number("proof_ns").is_some());
    if number("nodes") > Some(0) {
        let text = arenite(&["plan", &path, "--strategy", "exact", "--effort", "50000"]).out;
        assert!(text.contains("Search: ") && text.contains("best after"), "{text}");
    }
}
