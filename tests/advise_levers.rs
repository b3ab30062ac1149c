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
    assert_eq!(finding(&advice, "split")["exact"], false, "an estimate says so");
    for nothing in ["unpin", "batch", "one-arena", "scratch", "fuse", "strategy"] {
        let f = finding(&advice, nothing);
        assert_eq!(f["saved_bytes"], 0);
        assert!(f["why"].as_str().unwrap().starts_with("does nothing here"), "{f}");
    }
    let text = arenite(&["advise"]).out;
    for part in ["saves", "why:", "next:", "how:", "Levers that save nothing here:"] {
        assert!(text.contains(part), "{part} in {text}");
    }
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
