//! `arenite advise`: a lever's prediction is what `plan` prints with that change, on models that are there.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, shared, tgt, Table, Temp};
use serde_json::Value;

const ROW: [&str; 4] = ["lever", "arena_bytes_if", "saved_bytes", "why"];

/// Advice with the given options, its shape checked and every lever with an option applied.
fn checked(path: &str, given: &[&str]) -> Value {
    let with = |command: &str, more: &[&str]| {
        let args: Vec<&str> = [command, path, "--json"].into_iter().chain(given.iter().chain(more).copied()).collect();
        arenite(&args).json_with(0)
    };
    let (advice, plan) = (with("advise", &[]), with("plan", &[]));
    assert_eq!(advice["arena_bytes"], plan["arena_bytes"]);
    let arena = plan["arena_bytes"].as_u64().unwrap();
    let mut least = u64::MAX;
    for f in advice["findings"].as_array().unwrap() {
        for key in ROW {
            assert!(!f[key].is_null(), "{key} in {f}");
        }
        let (to, saved) = (f["arena_bytes_if"].as_u64().unwrap(), f["saved_bytes"].as_u64().unwrap());
        assert_eq!(saved, arena.saturating_sub(to), "{f}");
        assert!(saved <= least, "ranked by bytes saved");
        least = saved;
        assert!(saved > 0 || !f["why"].as_str().unwrap().is_empty());
        assert!(saved == 0 || !f["how"].as_str().unwrap().is_empty(), "a lever that saves says how: {f}");
        let Some(option) = f["option"].as_str().filter(|o| o.starts_with("--")) else { continue };
        let option: Vec<&str> = option.split(' ').collect();
        // What the lever sets takes the place of what was given.
        let other = given.chunks(2).filter(|c| !option.contains(&c[0])).flatten().copied();
        let args: Vec<&str> = ["plan", path, "--json"].into_iter().chain(other).chain(option.iter().copied()).collect();
        assert_eq!(arenite(&args).json_with(0)["arena_bytes"], to, "{args:?}");
    }
    advice
}

fn finding<'a>(advice: &'a Value, lever: &str) -> &'a Value {
    let list = advice["findings"].as_array().unwrap();
    list.iter().find(|f| f["lever"] == lever).unwrap_or_else(|| panic!("no {lever} in {advice}"))
}

#[test]
fn real_models_get_what_was_predicted() {
    let Some(dir) = shared("corpus/models") else { return };
    for model in [
        "esphome_v2_vad",
        "mp_hand_landmark_lite",
        "support_deeplabv3",
        "silero_silero_vad",
        "tfl_multi_subgraphs_while",
        "litert_multi_signature_model",
        "dtln_model_2",
        "ocr_ch_pp_ocrv4_rec_infer",
        "support_mobilenet_v1_0_25_224_quant",
    ] {
        let path = dir.join(format!("{model}.tgt"));
        let path = path.to_str().unwrap();
        checked(path, &[]);
        checked(path, &["--strategy", "first-fit", "--align", "64"]);
        checked(path, &["--no-in-place"]);
    }
}

#[test]
fn the_built_in_network_by_hand() {
    let advice = arenite(&["advise", "--json"]).json_with(0);
    let arena = advice["arena_bytes"].as_u64().unwrap();
    assert_eq!(finding(&advice, "reuse-inputs")["arena_bytes_if"], arena - 602_112);
    // At the peak are the input, which stays float, and two activations.
    assert_eq!(finding(&advice, "fp16")["arena_bytes_if"], 602_112 + (arena - 602_112) / 2);
    assert_eq!(finding(&advice, "int8")["arena_bytes_if"], 602_112 + (arena - 602_112) / 4);
    // In stripes of 14 rows of the depthwise output, which need 29 rows of 112 times 96 floats: with the input and both
    // ends of the pair that is 3 856 384 bytes, less than at the next peak, two operators on.
    let split = finding(&advice, "split");
    assert!(split["why"].as_str().unwrap().contains(&format!("with {} B of scratch", 29 * 112 * 96 * 4)), "{split}");
    assert_eq!((&split["arena_bytes_if"], &split["exact"]), (&4_515_840.into(), &true.into()));
    let tile = finding(&advice, "tile");
    assert!(tile["arena_bytes_if"].as_u64() < Some(4_515_840), "more chains go below the next peak: {tile}");
    for nothing in ["unpin", "batch", "one-arena", "scratch", "scratch-at-peak", "fuse", "strategy", "order"] {
        let f = finding(&advice, nothing);
        assert_eq!(f["saved_bytes"], 0);
        assert!(f["why"].as_str().unwrap().starts_with("does nothing here"), "{f}");
    }
    let text = arenite(&["advise"]).out;
    for part in ["saves", "why:", "next peak:", "how:", "Levers that save nothing here:"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Moves what the lever names into a second region, with the problem as `plan` writes it.
#[test]
fn the_slow_region_takes_what_was_named() {
    let Some(models) = shared("models") else { return };
    let temp = Temp::new("advise-cold");
    for model in ["face_detection_short_range", "person_detect", "esphome_vad"] {
        let path = models.join(format!("{model}.tflite"));
        let (path, csv) = (path.to_str().unwrap(), temp.path("p.csv"));
        let advice = arenite(&["advise", path, "--no-in-place", "--json"]).json_with(0);
        let cold = finding(&advice, "slow-region");
        if cold["saved_bytes"] == 0 {
            assert!(cold["why"].as_str().unwrap().starts_with("does nothing here"), "{cold}");
            continue;
        }
        // With several subgraphs an id names its own.
        let both = |t: &Value| [t[1].to_string(), format!("{}:{}", t[0], t[1])];
        let moved: Vec<String> = cold["tensors"].as_array().unwrap().iter().flat_map(both).collect();
        assert!(!moved.is_empty() && arenite(&["plan", path, "--no-in-place", "--csv", &csv]).code == 0);
        let text = std::fs::read_to_string(&csv).unwrap();
        let mut lines = text.lines();
        let (mut split, head) = (String::new(), lines.next().unwrap());
        // Without the offsets, which would be fixed, and only what has bytes in the arena.
        let columns: Vec<&str> = head.split(',').collect();
        let at = |name: &str| columns.iter().position(|&c| c == name).unwrap();
        split += "id,lower,upper,size,alignment,regions\n";
        for line in lines {
            let f: Vec<&str> = line.split(',').collect();
            let id = f[at("id")].rsplit('/').next().unwrap();
            let region = if moved.iter().any(|m| m == id) { "slow" } else { "fast" };
            let fields = ["id", "lower", "upper", "size", "alignment"].map(|c| f[at(c)]).join(",");
            split += &format!("{fields},{region}\n");
        }
        let csv = temp.file("r.csv", split);
        let plan = arenite(&["plan", &csv, "--region", "fast", "--region", "slow", "--json"]).json_with(0);
        assert_eq!(plan["regions"][0]["arena_bytes"], cold["arena_bytes_if"], "{model}: {cold}");
        let slow = plan["regions"][1]["arena_bytes"].as_u64().unwrap();
        assert!(cold["why"].as_str().unwrap().contains(&format!("a slow memory of {slow} B")), "{slow}: {cold}");
    }
}

#[test]
fn scratch_of_a_recorded_profile_and_other_models() {
    let temp = Temp::new("advise-profile");
    let node = |i: u32, scratch: &str| {
        format!(r#"{{"builtin": 3, "inputs": [{i}], "outputs": [{}], "temporaries": [{scratch}]}}"#, i + 1)
    };
    let tensor = |bytes: u32| format!(r#"{{"bytes": {bytes}, "allocation": 2}}"#);
    let profile = format!(
        r#"{{"format": "arenite-profile", "version": 1, "subgraphs": [{{"index": 0, "inputs": [0], "outputs": [3],
            "nodes": [{}, {}, {}], "tensors": [{}]}}]}}"#,
        node(0, "4"),
        node(1, ""),
        node(2, "5"),
        [256, 512, 512, 256, 4096, 1024].map(tensor).join(",")
    );
    let path = temp.file("p.json", profile);
    let plan = arenite(&["plan", &path, "--json"]).json_with(0);
    assert_eq!((&plan["scratch_bytes"], &plan["arena_bytes"]), (&5120.into(), &(256 + 512 + 4096).into()));
    let small =
        temp.file("m.tgt", tgt(&[Table::new(&[("input", 512), ("inter", 512)], "0", "1").node("ABS", "0", "1", "-")]));
    let advice = arenite(&["advise", &path, "--json", "--with", &small]).json_with(0);
    // The kept input, and the two tensors of the middle operator; without the first operator's scratch, the third's.
    assert_eq!(finding(&advice, "scratch")["arena_bytes_if"], 256 + 512 + 512);
    let peak = finding(&advice, "scratch-at-peak");
    assert!(peak["why"].as_str().unwrap().starts_with("scratch is 4096 of the 4864 B at the peak"), "{peak}");
    assert_eq!(peak["arena_bytes_if"], 256 + 512 + 512, "both kernels are changed");
    // The other model needs its input and, since nothing marks ABS, its output.
    let both = finding(&advice, "one-arena");
    assert_eq!((&both["saved_bytes"], &both["arena_bytes_if"]), (&1024.into(), &(4864 - 1024).into()), "{both}");
}

/// Merges by hand what `split` says: one operator with the stripes as its scratch.
#[test]
fn stripes_applied_by_hand_take_what_was_predicted() {
    let temp = Temp::new("advise-split");
    let sizes = |between| [("input", 512), (between, 8192), ("inter", 512), ("inter", 64)];
    let pair = Table::new(&sizes("inter"), "0", "3")
        .node("CONV_2D", "0", "1", "-")
        .node("MAX_POOL_2D", "1", "2", "-")
        .node("MEAN", "2", "3", "-");
    let merged = Table::new(&sizes("unused"), "0", "3").node("CONV_POOL", "0", "2", "-").node("MEAN", "2", "3", "-");
    let (pair, merged) = (temp.file("p.tgt", tgt(&[pair])), temp.file("m.tgt", tgt(&[merged])));
    let advice = checked(&pair, &[]);
    assert_eq!(advice["arena_bytes"], 512 + 8192 + 512);
    let split = finding(&advice, "split");
    let why = split["why"].as_str().unwrap();
    assert!(why.contains("CONV_2D, MAX_POOL_2D (nodes 0 to 1) in 8 stripes with 1024 B of scratch"), "{why}");
    let applied = arenite(&["plan", &merged, "--scratch", "0=1024", "--json"]).json_with(0);
    assert_eq!((&split["arena_bytes_if"], &applied["scratch_bytes"]), (&applied["arena_bytes"], &1024.into()));
    // Without shapes nobody knows how many rows the stripes share, and the advice says so.
    assert!(split["exact"] == false && why.contains("shapes are unknown"), "{split}");
}

#[test]
fn an_order_that_needs_less_is_predicted_exactly() {
    let temp = Temp::new("advise-order");
    // Two branches that grow and shrink again: one after the other they need less than in step.
    let table = Table::new(
        &[("input", 128), ("inter", 8192), ("inter", 8192), ("inter", 128), ("inter", 128), ("inter", 128)],
        "0",
        "5",
    )
    .node("CONV_2D", "0", "1", "-")
    .node("CONV_2D", "0", "2", "-")
    .node("MEAN", "1", "3", "-")
    .node("MEAN", "2", "4", "-")
    .node("CONCATENATION", "3,4", "5", "-");
    let path = temp.file("m.tgt", tgt(&[table]));
    let advice = checked(&path, &[]);
    assert_eq!(advice["arena_bytes"], 8192 * 2 + 128 * 2);
    assert_eq!(finding(&advice, "order")["arena_bytes_if"], 8192 + 128 * 3);
    assert_eq!(finding(&advice, "order")["option"], "--order");
}

#[test]
fn pins_scratch_fusing_and_marks() {
    let temp = Temp::new("advise");
    let table =
        Table::new(&[("input", 4096), ("inter", 8192), ("inter", 8192), ("inter", 8192), ("inter", 64)], "0", "4")
            .node("CONV_2D", "0", "1", "-")
            .node("RELU", "1", "2", "-")
            .node("TANH", "2", "3", "-")
            .node("MEAN", "3", "4", "-");
    let path = temp.file("m.tgt", tgt(&[table]));
    let advice = checked(&path, &[]);
    assert_eq!(advice["arena_bytes"], 8192 * 2 + 4096);
    assert_eq!(finding(&advice, "in-place-marks")["arena_bytes_if"], 8192 + 4096 + 64);
    assert!(finding(&advice, "in-place-marks")["why"].as_str().unwrap().contains("RELU"));
    // One convolution that writes what RELU and TANH made.
    assert_eq!(finding(&advice, "fuse")["arena_bytes_if"], 8192 + 4096 + 64);
    let pinned = checked(&path, &["--pin", "1=end", "--scratch", "3=1024"]);
    assert_eq!(
        finding(&pinned, "unpin")["arena_bytes_if"],
        arenite(&["plan", &path, "--scratch", "3=1024", "--json"]).json()["arena_bytes"]
    );
    assert_eq!(
        finding(&pinned, "scratch")["arena_bytes_if"],
        arenite(&["plan", &path, "--pin", "1=end", "--json"]).json()["arena_bytes"]
    );
    let csv = temp.file("p.csv", "id,lower,upper,size\n0,0,1,8\n");
    let refused = arenite(&["advise", &csv]);
    assert!(refused.code == 2 && refused.err.contains("needs a model"), "{}", refused.err);
}
