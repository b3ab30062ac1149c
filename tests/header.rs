//! The committed header: it is what the sources say, it reads as C documentation, and it declares what is exported.
#![cfg(feature = "capi")]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::path::PathBuf;

const HEADER: &str = include_str!("../include/arenite.h");

/// BR-51: an edited field, constant or comment must not ship with yesterday's header.
#[cfg(feature = "header")]
#[test]
fn br_51_the_committed_header_is_the_generated_one() {
    let generated = fs::read_to_string(env!("ARENITE_GENERATED_HEADER")).unwrap();
    if generated == HEADER {
        return;
    }
    let line = generated.lines().zip(HEADER.lines()).position(|(a, b)| a != b).map_or(0, |at| at + 1);
    panic!(
        "include/arenite.h is stale from line {line} on: \
         run `ARENITE_UPDATE_HEADER=1 cargo build --features header` and commit it"
    );
}

#[test]
fn the_header_reads_as_c_documentation() {
    for (at, line) in HEADER.lines().enumerate() {
        for rust in
            ["# Safety", "# Errors", "# Panics", "Option<", "Result<", "&mut ", "crate::", "[`", "`Ok`", "`None`"]
        {
            assert!(!line.contains(rust), "include/arenite.h:{}: `{rust}` is Rust talk: {line}", at + 1);
        }
        assert!(line.len() <= 140, "include/arenite.h:{}: {} characters", at + 1, line.len());
        assert!(line.is_ascii(), "include/arenite.h:{}: not ASCII: {line}", at + 1);
    }
}

#[test]
fn every_declaration_has_a_comment() {
    let lines: Vec<&str> = HEADER.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let declares =
            line.starts_with("ARENITE_NODISCARD") || (line.starts_with("void arenite_") && line.contains('('));
        if declares {
            assert!(lines[at - 1].trim_end().ends_with("*/"), "include/arenite.h:{}: no comment: {line}", at + 1);
        }
    }
}

/// The sources of the exports, in whatever depth.
fn sources() -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ffi"))]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    files
}

/// Names of the functions that the sources export.
fn exported() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in sources() {
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines().filter(|l| l.contains("pub ") && l.contains("extern \"C\" fn ")) {
            let name = line.split("extern \"C\" fn ").nth(1).unwrap();
            names.insert(name.split(['(', '<']).next().unwrap().to_owned());
        }
    }
    names.remove("arenite_inject_panic"); // tests only, deliberately not declared
    names
}

/// Names of the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in HEADER.lines().filter(|l| !l.trim_start().starts_with(['*', '/', '#'])) {
        let Some(open) = line.find('(') else { continue };
        let name = line[..open].rsplit([' ', '*']).next().unwrap();
        if name.starts_with("arenite_") {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn the_header_declares_exactly_the_exported_functions() {
    assert_eq!(exported(), declared());
    assert!(declared().contains("arenite_abi_version"));
}

/// No panic may cross the boundary: every export goes through the guard, but for those that cannot fail.
#[test]
fn every_export_is_guarded() {
    const TOTAL: [&str; 5] = [
        "arenite_abi_version",
        "arenite_version_string",
        "arenite_status_name",
        "arenite_int_array_data",
        "arenite_heap_offset",
    ];
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split("extern \"C\" fn arenite_").skip(1) {
            let name = format!("arenite_{}", part.split('(').next().unwrap());
            // The body ends where a brace stands alone at the margin.
            let body = part.split("\n}").next().unwrap();
            let has = |body: &str| body.contains("guard::call") || body.contains("handle::");
            // A body that several exports share.
            let shared = |of: &str| {
                let whole = text.split(&format!("unsafe fn {of}")).nth(1);
                body.contains(&format!("unsafe {{ {of}(")) && whole.is_some_and(|f| has(f.split("\n}").next().unwrap()))
            };
            let served = ["serve", "report", "with"].into_iter().any(shared);
            let guarded = has(body) || served || name == "arenite_inject_panic";
            assert!(guarded || TOTAL.contains(&name.as_str()), "{}: {name} is not guarded", path.display());
        }
    }
}

/// BR-60: each object says which threads may use it.
#[test]
fn br_60_every_object_states_its_thread_rule() {
    let lines: Vec<&str> = HEADER.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("typedef struct arenite_") && line.ends_with(';') {
            let start = lines[..at].iter().rposition(|l| l.starts_with("/**")).unwrap_or(at);
            assert!(lines[start..at].iter().any(|l| l.contains("Threads:")), "include/arenite.h:{}: {line}", at + 1);
        }
    }
}

#[test]
fn versions_come_from_one_source() {
    assert!(HEADER.contains(&format!("#define ARENITE_VERSION_STRING \"{}\"\n", env!("CARGO_PKG_VERSION"))));
    assert!(HEADER.contains(&format!("#define ARENITE_VERSION_MINOR {}\n", env!("CARGO_PKG_VERSION_MINOR"))));
    assert!(HEADER.contains(&format!("#define ARENITE_ABI_VERSION {}\n", arenite::ffi::arenite_abi_version())));
    // SAFETY: the function returns static text that ends in a zero.
    let running = unsafe { CStr::from_ptr(arenite::ffi::arenite_version_string()) };
    assert_eq!(running.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}
