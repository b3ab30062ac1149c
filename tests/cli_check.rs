//! `arenite check`: plans that hold, plans that do not, dumps of engines, and that whatever `plan` writes holds.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, tgt, with_input, Rng, Table, Temp};
use serde_json::{json, Value};

const PROBLEM: &str = "id,lower,upper,size\na,0,3,10\nb,2,5,10\nc,5,6,4\n";

fn check(args: &[&str]) -> (i32, Value) {
    let run = arenite(&[&["check", "--json"], args].concat());
    (run.code, run.json_with(run.code))
}

#[test]
fn a_plan_that_holds() {
    let temp = Temp::new("holds");
    let (problem, plan) = (temp.file("p.csv", PROBLEM), temp.file("s.csv", "offset,id\n0,a\n10,b\n0,c\n"));
    let (code, out) = check(&[&problem, &plan]);
    assert_eq!((code, &out["ok"], &out["arena_bytes"], &out["violations"]), (0, &json!(true), &json!(20), &json!([])));
    let text = arenite(&["check", &problem, &plan]);
    assert_eq!(
        (text.code, &text.out[..]),
        (0, "ok: 3 buffers, no two alive together on the same bytes, arena 20 B (20 B)\n")
    );
    // Addresses of 2^63 and more are addresses too.
    let plan = temp.file("s.csv", "id,address\na,0xffff800000001000\nb,0xffff80000000100a\nc,0xffff800000001000\n");
    let (code, out) = check(&[&problem, &plan]);
    assert_eq!((code, &out["arena_bytes"], &out["base"]), (0, &json!(20), &json!("0xffff800000001000")));
}

#[test]
fn overlaps_name_both_with_their_steps_and_bytes() {
    let temp = Temp::new("overlaps");
    let both = "id,name,lower,upper,size,offset,alignment\na,first,0,3,10,0,\nb,,2,5,10,4,8\nc,,5,6,4,16,16\n";
    let path = temp.file("p.csv", both);
    let (code, out) = check(&[&path]);
    assert_eq!((code, &out["ok"], &out["arena_bytes"]), (1, &json!(false), &json!(20)));
    let list = out["violations"].as_array().unwrap();
    let kind = |k: &str| list.iter().find(|v| v["kind"] == k).unwrap_or_else(|| panic!("{k} in {out}"));
    let overlap = kind("overlap");
    assert_eq!((&overlap["a"], &overlap["b"]), (&json!("a"), &json!("b")));
    assert_eq!((&overlap["steps"], &overlap["bytes"]), (&json!([2, 2]), &json!([4, 10])));
    let misaligned = kind("misaligned");
    assert_eq!(
        (&misaligned["a"], &misaligned["offset"], &misaligned["alignment"]),
        (&json!("b"), &json!(4), &json!(8))
    );
    assert_eq!(list.len(), 2);
    let text = arenite(&["check", &path]).out;
    assert!(text.contains("a \"first\" and b: both alive at steps 2..2, both hold bytes 4..10 (6 B)"), "{text}");
    assert!(text.contains("b: 4 is not a multiple of its alignment 8 (remainder 4)"), "{text}");
    let reversed = with_input(&["check", "-", "--json"], both.as_bytes());
    assert_eq!((reversed.code, reversed.out), (1, arenite(&["check", &path, "--json"]).out));
}

#[test]
fn missing_unknown_moved_wrapping_and_too_large() {
    let temp = Temp::new("missing");
    let problem = temp.file("p.csv", "id,lower,upper,size,offset\na,0,3,10,64\nb,2,5,10,\nc,5,6,4,\ne,0,6,0,\n");
    let plan = temp.file("s.csv", "id,offset\na,0\nb,18446744073709551615\nd,0\n");
    let (code, out) = check(&[&problem, &plan, "--capacity", "100"]);
    assert_eq!(code, 1);
    let of = |k: &str| out["violations"].as_array().unwrap().iter().filter(|v| v["kind"] == k).collect::<Vec<_>>();
    assert_eq!(of("missing")[0]["a"], "c");
    assert_eq!((of("missing").len(), of("wraps")[0]["a"].as_str()), (1, Some("b")));
    assert_eq!((&of("moved")[0]["fixed"], &of("moved")[0]["offset"]), (&json!(64), &json!(0)));
    assert_eq!((of("capacity").len(), &out["unknown"]), (1, &json!(["d"])));
    assert_eq!((&of("unknown")[0]["a"], &of("unknown")[0]["line"]), (&json!("d"), &json!(4)));
    let text = arenite(&["check", &problem, &plan]).out;
    assert!(
        text.contains("c: the plan has no offset for it")
            && text.contains("\"d\", line 4 of the plan: there is no such buffer in the problem"),
        "{text}"
    );
}

#[test]
fn a_dump_of_addresses_gives_the_layout_back() {
    let temp = Temp::new("dump");
    let dump = temp.file(
        "d.csv",
        "id,lower,upper,size,pointer\nx,0,2,64,0x7f0000001040\ny,0,2,64,0x7f0000001000\nz,2,3,128,0x7f0000001000\nn,0,3,0,(nil)\n",
    );
    let (code, out) = check(&[&dump, "--align", "64"]);
    assert_eq!((code, &out["arena_bytes"], &out["base"]), (0, &json!(128), &json!("0x7f0000001000")));
    let layout = json!([
        {"id": "y", "offset": 0, "size": 64},
        {"id": "z", "offset": 0, "size": 128},
        {"id": "x", "offset": 64, "size": 64},
    ]);
    assert_eq!(out["layout"], layout);
    let text = arenite(&["check", &dump]).out;
    assert!(text.contains("offsets from the lowest address 0x7f0000001000"), "{text}");
    // Alignment is that of the addresses, wherever the lowest is.
    let (code, out) = check(&[&dump, "--align", "65536"]);
    assert_eq!((code, out["violations"].as_array().unwrap().len()), (1, 3));
}

#[test]
fn thousands_of_overlapping_pairs() {
    let temp = Temp::new("pairs");
    let n = 400u32;
    let rows: String = (0..n).map(|i| format!("{i},0,9,100,0\n")).collect();
    let path = temp.file("p.csv", format!("id,lower,upper,size,offset\n{rows}"));
    let (code, out) = check(&[&path]);
    let pairs = (n * (n - 1) / 2) as usize;
    assert_eq!((code, out["violations"].as_array().unwrap().len(), &out["truncated"]), (1, pairs, &json!(false)));
    let text = arenite(&["check", &path]).out;
    assert!(text.starts_with("FAILED: 79800 violations in 400 buffers"), "{text}");
    assert!(text.lines().count() < 30 && text.contains("and 79780 more"), "{text}");
    assert_eq!(arenite(&["check", &path, "--all"]).out.lines().count(), pairs + 1);
}

#[test]
fn a_model_lends_its_lifetimes() {
    let temp = Temp::new("model");
    let table = Table::new(&[("input", 64), ("inter", 64), ("inter", 64), ("inter", 64)], "0", "3")
        .node("CONV_2D", "0", "1", "-")
        .node("ADD", "1,0", "2", "-")
        .node("CONV_2D", "2", "3", "-");
    let model = temp.file("m.tgt", tgt(&[table]));
    let shared = temp.file("s.csv", "id,offset\n0,0\n1,64\n2,64\n3,128\n");
    assert_eq!(check(&[&model, &shared]).0, 0, "ADD may write over its input");
    let (code, out) = check(&[&model, &shared, "--no-in-place"]);
    assert_eq!((code, &out["violations"][0]["a"], &out["violations"][0]["b"]), (1, &json!("1"), &json!("2")));
    assert_eq!(out["violations"][0]["steps"], json!([1, 1]));
    let apart = temp.file("s.csv", "id,offset\n0,0\n1,64\n2,128\n3,192\n");
    assert_eq!(check(&[&model, &apart]).0, 0, "but it need not");
    let reused = temp.file("s.csv", "id,offset\n0,0\n1,64\n2,128\n3,0\n");
    assert_eq!(check(&[&model, &reused]).0, 1);
    assert_eq!(check(&[&model, &reused, "--policy", "tflm"]).0, 0);
    assert_eq!(check(&[&model, &reused, "--reuse-inputs"]).0, 0);
    assert_eq!(arenite(&["check", &model]).code, 2, "no offline plan, no file");
}

#[test]
fn a_root_column_allows_sharing_in_place() {
    let temp = Temp::new("root");
    let path = temp.file("p.csv", "id,lower,upper,size,offset,root\na,0,3,10,0,\nb,2,5,10,0,a\n");
    assert_eq!(check(&[&path]).0, 0);
    let plan = temp.file("q.csv", "id,lower,upper,size,root\na,0,3,10,\nb,2,5,10,a\nc,0,5,1,\n");
    assert_eq!(arenite(&["plan", &plan, "--json"]).json_with(0)["arena_bytes"], 11);
    let bad = temp.file("r.csv", "id,lower,upper,size,root\na,0,3,10,z\n");
    let run = arenite(&["plan", &bad]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("line 2, field 5: expected the id of another row, got \"z\""), "{}", run.err);
}

/// Rows with everything a problem CSV can say. Fixed buffers live in bands of their own, so that they cannot collide.
fn random_problem(rng: &mut Rng) -> String {
    let n = 1 + rng.below(40);
    let mut text = "id,lower,upper,size,alignment,offset,gaps,name\n".to_string();
    for i in 0..n {
        let lower = rng.below(30);
        let upper = lower + 1 + rng.below(12);
        let size = if rng.below(10) == 0 { 0 } else { 1 + rng.below(5000) };
        let align = if rng.below(3) == 0 { String::new() } else { (1u64 << rng.below(9)).to_string() };
        let fixed = if rng.below(12) == 0 { (i * 8192).to_string() } else { String::new() };
        let gaps = match upper - lower {
            len if len >= 4 && rng.below(2) == 0 => format!("{}-{}", lower + 1, lower + 2 + rng.below(len - 3)),
            _ => String::new(),
        };
        text += &format!("r{i},{lower},{upper},{size},{align},{fixed},{gaps},n{i}\n");
    }
    text
}

#[test]
fn whatever_plan_writes_holds() {
    let temp = Temp::new("property");
    let solved = temp.path("s.csv");
    let mut rng = Rng(20);
    for round in 0..60 {
        let problem = random_problem(&mut rng);
        let path = temp.file("p.csv", &problem);
        for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
            let args = ["plan", &path, "--json", "--csv", &solved, "--strategy", strategy, "--effort", "2000"];
            let plan = arenite(&args).json_with(0);
            let (code, checked) = check(&[&solved]);
            assert_eq!(code, 0, "round {round}, {strategy}: {checked}\n{problem}");
            assert_eq!(plan["arena_bytes"], checked["arena_bytes"]);
            assert_eq!(check(&[&path, &solved]).0, 0, "the offsets as a solution of the problem they came from");
        }
    }
}

#[test]
fn one_moved_buffer_is_found() {
    let temp = Temp::new("moved");
    let mut rng = Rng(7);
    for _ in 0..20 {
        let rows: Vec<_> = (0..12).map(|i| (i, rng.below(9), 1 + rng.below(6), 1 + rng.below(100))).collect();
        let text = |offsets: &[u64]| {
            let lines = rows.iter().zip(offsets).map(|(r, o)| format!("{},{},{},{},{o}\n", r.0, r.1, r.1 + r.2, r.3));
            format!("id,lower,upper,size,offset\n{}", lines.collect::<String>())
        };
        // Stacked they hold; each put at 0 in turn must be reported with everyone it meets there, and nobody else.
        let mut offsets = vec![0; rows.len()];
        for i in 1..rows.len() {
            offsets[i] = offsets[i - 1] + rows[i - 1].3;
        }
        assert_eq!(check(&[&temp.file("p.csv", text(&offsets))]).0, 0);
        for i in 1..rows.len() {
            let mut moved = offsets.clone();
            moved[i] = 0;
            let meets = |j: usize| {
                let (a, b) = (rows[i], rows[j]);
                j != i && a.1 < b.1 + b.2 && b.1 < a.1 + a.2 && offsets[j] < a.3
            };
            let expected = (0..rows.len()).filter(|&j| meets(j)).count();
            let (code, out) = check(&[&temp.file("p.csv", text(&moved))]);
            assert_eq!(out["violations"].as_array().unwrap().len(), expected);
            assert_eq!(code, i32::from(expected > 0));
        }
    }
}
