//! Bad input, bad usage, closed pipes: an exit code and a message, never a panic.
#![cfg(feature = "cli")]

mod common;

use std::process::Stdio;

use common::{arenite, program, shared, tgt, with_input, Rng, Table, Temp};

/// Exit code 2 with all these words on standard error and nothing on standard output.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let run = arenite(args);
    assert_eq!((run.code, &run.out[..]), (2, ""), "{args:?} {}", run.err);
    for word in words {
        assert!(run.err.contains(word), "{args:?}: expected {word:?} in {:?}", run.err);
    }
}

fn model(temp: &Temp) -> String {
    let table = Table::new(&[("input", 64), ("inter", 64)], "0", "1").node("CONV_2D", "0", "1", "-");
    temp.file("m.tgt", tgt(&[table]))
}

#[test]
fn version_and_help() {
    let version = arenite(&["--version"]);
    assert_eq!((version.code, version.out), (0, format!("arenite {}\n", env!("CARGO_PKG_VERSION"))));
    for args in [&["--help"][..], &["plan", "--help"], &["check", "--help"]] {
        let help = arenite(args);
        assert!(help.code == 0 && help.out.contains("Examples:") && help.out.contains("  arenite "), "{args:?}");
    }
    for option in ["--strategy", "--policy", "--align", "--subgraph", "--reuse-inputs", "--in-place", "--capacity"] {
        assert!(arenite(&["plan", "--help"]).out.contains(option), "{option}");
    }
    refused(&[], &["Usage:"]);
    refused(&["nonsense"], &["nonsense"]);
    refused(&["plan", "--nonsense"], &["--nonsense"]);
    refused(&["check"], &["<PROBLEM>"]);
}

#[test]
fn files_that_cannot_be_read() {
    let temp = Temp::new("unreadable");
    let missing = temp.path("missing.csv");
    refused(&["plan", &missing], &[&missing]);
    refused(&["plan", &temp.path("")], &["directory"]);
    for (name, content) in
        [("empty", &b""[..]), ("blank", b"\n \n"), ("words", b"hello world\n"), ("bytes", b"\xff\xfe\x00\x01")]
    {
        let path = temp.file(name, content);
        refused(&["plan", &path], &[&path, "TFL3", "tgt 1", "id,lower,upper,size"]);
        refused(&["check", &path], &[&path, "TFL3"]);
    }
    let path = temp.file("empty.csv", "");
    refused(&["plan", &path], &[&path, "header"]);
    let path = temp.file("short.tflite", "abc");
    refused(&["plan", &path], &[&path, "byte", "TFL3"]);
    let path = temp.file("cut.tflite", b"\x1c\x00\x00\x00TFL3");
    refused(&["plan", &path], &[&path, "byte"]);
    let path = temp.file("p.json", "{\"nodes\": []}");
    refused(&["plan", &path], &[&path, "format", "expected text, got nothing"]);
    let path = temp.file("t.trace", "a 1 64 8\nf 1\n");
    refused(&["plan", &path], &["allocation trace"]);
    let run = with_input(&["plan", "-"], b"tgt 2\n");
    assert!(run.code == 2 && run.err.contains("standard input: line 1"), "{}", run.err);
}

#[test]
fn mistakes_in_a_csv_name_line_and_field() {
    let temp = Temp::new("lines");
    for (text, words) in [
        ("id,lower,upper\n", &["line 1", "size"][..]),
        ("id,lower,upper,size\na,3,3,4\n", &["line 2, field 3", "upper above lower"]),
        ("id,lower,upper,size\na,0,3,4\na,0,3,4\n", &["line 3, field 1", "line 2"]),
        ("id,lower,upper,size\na,0,3,-4\n", &["line 2, field 4", "size in bytes", "\"-4\""]),
        ("id,lower,upper,size\na,0,3,99999999999999999999\n", &["line 2, field 4"]),
        ("id,lower,upper,size,alignment\na,0,3,4,24\n", &["line 2, field 5", "alignment"]),
        ("id,lower,upper,size,alignment,offset\na,0,3,4,16,8\n", &["line 2", "\"a\"", "fixed offset"]),
        ("id,lower,upper,size,gaps\na,0,3,4,x\n", &["line 2, field 5", "gap"]),
        ("id,lower,upper,size\na,0,3,18446744073709551615\nb,0,3,1\n", &["64 bits"]),
    ] {
        let path = temp.file("p.csv", text);
        refused(&["plan", &path], &[&[&path[..]], words].concat());
    }
    let problem = temp.file("p.csv", "id,lower,upper,size\na,0,3,4\n");
    refused(&["check", &problem], &["line 1", "offset", "second file"]);
    let plan = temp.file("s.csv", "id,offset\na,x\n");
    refused(&["check", &problem, &plan], &[&plan, "line 2, field 2"]);
    let plan = temp.file("s.csv", "id,size\na,4\n");
    refused(&["check", &problem, &plan], &[&plan, "line 1", "offset"]);
    refused(&["check", &problem, &temp.path("none")], &["none"]);
}

#[test]
fn options_that_make_no_sense() {
    let temp = Temp::new("options");
    let (model, csv) = (model(&temp), temp.file("p.csv", "id,lower,upper,size,offset\na,0,3,4,0\n"));
    refused(&["plan", "--align", "24"], &["--align", "power of two"]);
    refused(&["plan", "--align", "131072"], &["--align", "65536"]);
    refused(&["plan", "--strategy", "best"], &["--strategy", "greedy-by-size"]);
    refused(&["plan", "--policy", "x"], &["--policy", "tflm"]);
    refused(&["plan", "--capacity", "1.5M"], &["--capacity", "number of bytes"]);
    refused(&["plan", "--capacity", "99999999999GiB"], &["--capacity", "64 bits"]);
    refused(&["plan", &model, "--subgraph", "1"], &["--subgraph 1", "1 subgraphs"]);
    refused(&["plan", &model, "--pin", "1"], &["--pin 1", "TENSOR=STEP"]);
    refused(&["plan", &model, "--pin", "t9=0"], &["--pin t9=0", "no tensor"]);
    refused(&["plan", &model, "--pin", "t1=7"], &["tensor 1", "last step", "m.tgt"]);
    refused(&["plan", &model, "--set", "t0"], &["--set t0", "NAME=SHAPE"]);
    refused(&["plan", &model, "--set", "t0=1,-2"], &["--set t0=1,-2", "NAME=SHAPE"]);
    refused(&["plan", &model, "--set", "t0=65"], &["\"t0\"", "64"]);
    refused(&["plan", &model, "--set", "q=1"], &["\"q\""]);
    refused(&["plan", &model, "--scratch", "x"], &["--scratch x", "NODE=BYTES"]);
    refused(&["plan", &model, "--scratch", "5=1"], &["no node 5"]);
    refused(&["plan", &model, "--scratch", "0=18446744073709551615"], &["64 bits"]);
    for option in [
        &["--reuse-inputs"][..],
        &["--keep-all"],
        &["--in-place"],
        &["--policy", "safe"],
        &["--subgraph", "0"],
        &["--pin", "a=1"],
        &["--set", "a=1"],
        &["--scratch", "0=1"],
    ] {
        refused(&[&["plan", &csv], option].concat(), &[option[0], "needs a model"]);
    }
    refused(&["check", &csv, "--policy", "tflm"], &["--policy", "needs a model"]);
    refused(&["check", &csv, "--subgraph", "0"], &["--subgraph", "needs a model"]);
    refused(&["plan", &csv, "--svg", &temp.path("no/such/dir.svg")], &["no/such/dir.svg"]);
    refused(&["plan", &csv, "--json", "--csv", "-"], &["--json", "only one", "standard output"]);
    assert_eq!(arenite(&["plan", &csv, "--no-in-place"]).code, 0);
    assert_eq!(arenite(&["plan", &model, "--no-in-place", "--in-place", "--json"]).json()["in_place"], true);
}

#[test]
fn capacity_exceeded_is_exit_1_and_says_what_is_missing() {
    let run = arenite(&["plan", "--capacity", "6MiB"]);
    assert!(run.code == 1 && run.out.contains("One process needs"), "{}", run.err);
    for word in ["needs 6623232 bytes", "6291456 are available", "331776 are missing", "step 4 DEPTHWISE_CONV_2D"] {
        assert!(run.err.contains(word), "{}", run.err);
    }
    assert_eq!(arenite(&["plan", "--capacity", "6623232"]).code, 0);
    assert_eq!(arenite(&["plan", "--capacity", "6623231", "--json"]).json_with(1)["arena_bytes"], 6_623_232);
}

#[test]
fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
    let mut child = program()
        .args(["plan", "--all", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("the program ends");
    assert_eq!((done.status.code(), &done.stderr[..]), (Some(0), &b""[..]));
    if let Ok(full) = std::fs::File::create("/dev/full") {
        let done = program().args(["plan", "--json"]).stdout(full).output().expect("the program ends");
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains("standard output"));
    }
}

/// Every cut and many flips of small files of each kind.
#[test]
fn damaged_files_end_with_an_exit_code() {
    let temp = Temp::new("damaged");
    let table = Table::new(&[("input", 64), ("inter", 64)], "0", "1").node("WHILE", "0", "1", "1,1");
    let body = Table::new(&[("input", 64)], "0", "0");
    let csv = "id,lower,upper,size,alignment,offset,gaps,root\na,0,9,10,2,4,3-4,\nb,2,5,10,,,,a\n";
    let mut seeds = vec![tgt(&[table, body]).into_bytes(), csv.as_bytes().to_vec()];
    if let Some(dir) = shared("models") {
        seeds.push(std::fs::read(dir.join("hello_world_int8.tflite")).expect("the model"));
    }
    let mut rng = Rng(5);
    for seed in seeds {
        for round in 0..60 {
            let mut bytes = seed.clone();
            if round % 2 == 0 {
                bytes.truncate(rng.below(bytes.len() as u64) as usize);
            }
            for _ in 0..rng.below(4) {
                let at = rng.below(bytes.len().max(1) as u64) as usize;
                if let Some(b) = bytes.get_mut(at) {
                    *b = rng.below(256) as u8;
                }
            }
            let path = temp.file("x", &bytes);
            for command in ["plan", "check"] {
                let run = arenite(&[command, &path]);
                assert!(run.code != 2 || !run.err.is_empty());
            }
        }
    }
}

/// Names and ids come from files: nothing in them may steer the terminal that shows them.
#[test]
fn no_control_character_reaches_the_terminal() {
    let temp = Temp::new("control");
    let evil = "x\u{1b}[2J\u{7}\u{9b}31m\u{202e}";
    let csv = temp.file("p.csv", format!("id,lower,upper,size,name\n{evil},0,2,64,{evil}\nb,1,3,64,n\n"));
    let bad = temp.file("bad.csv", format!("id,lower,upper,size\n{evil},0,2,{evil}\n"));
    let huge = temp.file("huge.csv", format!("id,lower,upper,size\n{evil},0,2,{}\nb,0,2,{}\n", u64::MAX, u64::MAX));
    let solved = temp.file("s.csv", format!("id,lower,upper,size,offset\n{evil},0,2,64,0\nb,1,3,64,32\n"));
    let regions = temp.file("r.csv", format!("id,lower,upper,size\n{evil},0,2,64\nb,1,3,64\n"));
    for args in [
        &["plan", &csv][..],
        &["plan", &csv, "--all"],
        &["plan", &csv, "--json"],
        &["plan", &csv, "--capacity", "64"],
        &["plan", &bad],
        &["plan", &huge],
        &["check", &solved],
        &["check", &solved, "--json"],
        &["check", &csv, &solved],
        &["diff", &csv, &solved],
        &["diff", &csv, &solved, "--json"],
        &["plan", &regions, "--region", "fast=64", "--region", "slow"],
        &["view", &csv, "-o", "-", "--format", "text"],
    ] {
        let run = arenite(args);
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!run.out.contains(steers) && !run.err.contains(steers), "{args:?}: {:?} {:?}", run.out, run.err);
        assert!(!(run.out.clone() + &run.err).is_empty());
    }
}

#[test]
fn sums_that_overflow_name_a_row() {
    let temp = Temp::new("overflow");
    let half = u64::MAX / 2;
    let together = temp.file("t.csv", format!("id,lower,upper,size\na,0,2,{half}\nb,0,2,{half}\nc,1,2,{half}\n"));
    let run = arenite(&["plan", &together]);
    assert!(run.code == 2 && run.err.contains("step 1") && run.err.contains("id \"a\", line 2"), "{}", run.err);
    let apart = temp.file("a.csv", format!("id,lower,upper,size\na,0,1,{half}\nb,1,2,{half}\nc,2,3,{half}\n"));
    let run = arenite(&["plan", &apart]);
    assert!(run.code == 2 && run.err.contains("id \"c\", line 4"), "{}", run.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_told() {
    let run = |script: &str| {
        let shell = std::process::Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_arenite")]).output();
        let done = shell.expect("a shell");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) = run("\"$0\" plan >&-");
    assert!(code == Some(2) && said.contains("standard output: it is closed"), "{code:?} {said}");
    assert_eq!(run("\"$0\" plan >/dev/null"), (Some(0), String::new()));
    let (code, said) = run("\"$0\" plan --csv - >&-");
    assert!(code == Some(2) && said.contains("it is closed"), "{said}");
}

#[test]
fn two_outputs_never_go_to_one_file() {
    let temp = Temp::new("same");
    let path = temp.path("out");
    let spelled =
        temp.path("../") + std::path::Path::new(&temp.path("")).file_name().unwrap().to_str().unwrap() + "/./out";
    for other in [&path, &spelled] {
        let run = arenite(&["plan", "--svg", &path, "--csv", other]);
        assert!(run.code == 2 && run.err.contains("--csv and --svg both write to"), "{other}: {}", run.err);
        assert!(!std::path::Path::new(&path).exists(), "nothing was written");
    }
    #[cfg(unix)]
    {
        let link = temp.path("link");
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(arenite(&["plan", "--html", &path, "--trace", &link]).code, 2);
        assert_eq!(arenite(&["plan", "--html", "/dev/null", "--trace", "/dev/null"]).code, 0);
    }
    assert_eq!(arenite(&["plan", "--svg", &path, "--csv", &temp.path("other")]).code, 0);
}
