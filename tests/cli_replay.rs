//! `arenite replay` and the pool's recorder: what a pool writes down comes back with the same requests and the same peak.
#![cfg(feature = "cli")]

use std::process::Command;

use arenite::runtime::{Pool, PoolConfig};
use serde_json::Value;

fn replay(args: &[&str]) -> (i32, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_arenite")).arg("replay").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn object(path: &str, instances: &str) -> Value {
    let (code, out, err) = replay(&[path, "--json", "--no-times", "--instances", instances]);
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str::<Value>(&out).unwrap()["traces"][0].take()
}

#[test]
fn a_recorded_pool_is_replayed() {
    let path = file("recorded.trace", "");
    let pool = Pool::new(PoolConfig::default()).unwrap();
    pool.trace_to_file(path.as_ref()).unwrap();
    let weights = pool.alloc(50_000, 64).unwrap();
    let mut expected = 1;
    for _ in 0..3 {
        let mut frame = pool.frame_begin(9);
        let a = frame.alloc(10_000, 128).unwrap();
        let b = frame.alloc(20_000, 128).unwrap();
        // SAFETY: each is live, freed once, and nobody uses it.
        unsafe { frame.free(a) }.unwrap();
        let c = frame.alloc(10_000, 128).unwrap();
        for block in [b, c] {
            // SAFETY: as above.
            unsafe { frame.free(block) }.unwrap();
        }
        frame.end();
        expected += 6;
    }
    // SAFETY: the block is live and the new pointer is used from here on.
    let weights = unsafe { pool.realloc(Some(weights), 60_000) }.unwrap();
    pool.trace_stop().unwrap();
    // SAFETY: live, and freed once.
    unsafe { pool.free(weights) }.unwrap();
    let found = object(&path, "3");
    // The resize, and the block that was live at the end.
    assert_eq!(found["ops"], expected + 2);
    assert_eq!(found["frames"], 3);
    assert_eq!(found["peak_live_bytes"], 80_000);
    let recorded = &found["pool_recorded"];
    assert_eq!(recorded["plans"], 1, "three equal frames");
    assert_eq!(recorded["area_bytes"], 10_112 + 20_096);
    let (general, area) = (recorded["general_bytes"].as_u64().unwrap(), 10_112 + 20_096);
    assert!((60_000..=111_000).contains(&general), "{general}");
    assert_eq!(found["recommended_bytes"], general + 3 * area);
    assert!(found["times"].is_null());
}

#[test]
fn a_pool_of_the_size_given_serves_the_trace_and_times_are_printed() {
    let path = file("small.trace", "a 1 1000 64\na 2 3000 64\nf 1\na 3 900 64\nf 2\nr 3 2000\nf 3\n");
    let found = object(&path, "1");
    assert_eq!((&found["peak_live_bytes"], &found["frames"]), (&4000.into(), &0.into()));
    let bytes = found["pool"]["bytes"].as_u64().unwrap();
    assert!((4096..5000).contains(&bytes), "{bytes}");
    let (code, out, _) = replay(&[&path, &path]);
    assert_eq!((code, out.matches("ns a call").count()), (0, 2));
}

#[test]
fn bad_traces_are_named() {
    for (text, what) in [
        ("a 1 10\n", "line 1"),
        ("f 7\n", "no live block has id 7"),
        ("# nothing\n", "it holds no allocation"),
        ("a 1 18446744073709551615 64\na 2 18446744073709551615 64\n", "fit"),
    ] {
        let path = file("bad.trace", text);
        let (code, out, err) = replay(&[&path, "--no-times"]);
        assert_eq!((code, out.as_str()), (2, ""), "{text:?}");
        assert!(err.contains(&path) && err.contains(what), "{err}");
    }
    assert_eq!(replay(&["/no/such/file"]).0, 2);
    assert_eq!(replay(&[]).0, 2);
}
