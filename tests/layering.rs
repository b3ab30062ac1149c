//! The direction of dependencies: reads every import and path and fails on an arrow that the design does not have.
//!
//! ```text
//! error <- units <- planner <- graph          core <- runtime <- ffi, shims
//!                   planner <- heap           core <- model <- advise      core <- view <- ffi, shims
//! ```
//!
//! The command line may use everything but `ffi`. What only tests use is no dependency.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CORE: [&str; 5] = ["error", "units", "planner", "graph", "heap"];

/// The modules each module may use besides itself.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let core_and = |more: &[&'static str]| [&CORE[..], more].concat();
    BTreeMap::from([
        ("lib", vec![]),
        ("error", vec![]),
        ("units", vec!["error"]),
        ("planner", vec!["error", "units"]),
        ("graph", vec!["error", "units", "planner"]),
        ("heap", vec!["error", "units", "planner"]),
        ("runtime", core_and(&[])),
        ("model", core_and(&[])),
        ("view", core_and(&[])),
        ("advise", core_and(&["model"])),
        ("ffi", core_and(&["runtime", "view"])),
        ("bin", core_and(&["runtime", "model", "view", "advise"])),
        ("shims", core_and(&["runtime", "view"])),
    ])
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target" && n != "tests") {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// The code of a file: comments, text and character literals blanked, so that braces and paths in them do not count.
fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    let keep_lines = |out: &mut Vec<u8>, skipped: &[u8]| out.extend(skipped.iter().filter(|&&b| b == b'\n'));
    while i < bytes.len() {
        let rest = &text[i..];
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |n| n + 2)
        } else if let Some(n) = raw_string(rest) {
            n
        } else if rest.starts_with('"') {
            string(rest)
        } else if rest.starts_with('\'') {
            char_literal(rest)
        } else {
            0
        };
        if skip > 0 {
            keep_lines(&mut out, &bytes[i..i + skip]);
            i += skip;
        } else {
            out.push(bytes[i]);
            i += 1;
            while i < bytes.len() && !text.is_char_boundary(i) {
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn string(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut i = 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or(rest.len(), |n| 2 + hashes + n + end.len()))
}

/// Length of a character literal, 0 for a lifetime.
fn char_literal(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[2..].find('\'').map_or(0, |n| n + 3).max(if rest.starts_with("'\\''") { 4 } else { 0 }),
        Some(_) => chars.next().filter(|&(_, c)| c == '\'').map_or(0, |(n, _)| n + 1),
        None => 0,
    }
}

/// The code without what `#[cfg(test)]` or `#[cfg(all(test, ...))]` stands before.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|m| out.find(m)).min() {
        let item = &out[start..];
        // The item ends with its block, or at a semicolon before any block.
        let end = match (item.find('{'), item.find(';')) {
            (Some(open), semicolon) if semicolon.is_none_or(|s| s > open) => {
                let mut depth = 0usize;
                let close = item[open..].bytes().position(|b| {
                    match b {
                        b'{' => depth += 1,
                        b'}' => depth -= 1,
                        _ => {}
                    }
                    depth == 0
                });
                close.map_or(item.len(), |n| open + n + 1)
            }
            (_, Some(semicolon)) => semicolon + 1,
            _ => item.len(),
        };
        out.replace_range(start..start + end, "");
    }
    out
}

/// The modules at the crate's root that paths behind `prefix` (`crate::`, `arenite::`) name, braces included.
fn named_behind(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(prefix) {
        let start = from + at;
        from = start + prefix.len();
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = code[from..].trim_start();
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut word, mut first) = (1usize, String::new(), true);
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => first = true,
                    c if depth == 1 && first && (c.is_alphanumeric() || c == '_') => word.push(c),
                    c if depth == 1 && c.is_whitespace() && word.is_empty() => {}
                    _ => first &= depth != 1,
                }
                if (!first || c == ',' || depth == 0) && !word.is_empty() {
                    names.push(std::mem::take(&mut word));
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

/// The module of a file and how many modules deep it is: `src/planner/check.rs` is `planner`, 2.
fn place(path: &Path) -> (String, usize) {
    let inside = path.strip_prefix(root()).unwrap();
    let parts: Vec<String> =
        inside.with_extension("").components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    if parts[0] == "shims" {
        return ("shims".into(), usize::MAX);
    }
    let depth = parts.len() - 1 - usize::from(parts.last().is_some_and(|p| p == "mod"));
    (parts[1].clone(), depth)
}

fn arrows(text: &str, module: &str, depth: usize) -> Vec<String> {
    let code = without_tests(&code(text));
    // In the command line and the shims `crate::` is their own crate.
    let outside = matches!(module, "bin" | "shims");
    let mut names = named_behind(&code, if outside { "arenite::" } else { "crate::" });
    if !outside {
        // `super::` as often as the file is deep is the root too.
        names.extend(named_behind(&code, &"super::".repeat(depth)));
    }
    names.sort();
    names.dedup();
    names
}

#[test]
fn every_arrow_is_in_the_design() {
    let allowed = allowed();
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("shims"), &mut files);
    let mut wrong = Vec::new();
    for path in &files {
        let (module, depth) = place(path);
        let Some(may_use) = allowed.get(module.as_str()) else {
            wrong.push(format!("{}: the module `{module}` is not in the design", path.display()));
            continue;
        };
        for name in arrows(&fs::read_to_string(path).unwrap(), &module, depth) {
            if allowed.contains_key(name.as_str()) && name != module && !may_use.contains(&name.as_str()) {
                wrong.push(format!("{}: `{module}` uses `{name}`", path.display()));
            }
        }
    }
    assert!(files.len() > 10, "the sources were found");
    assert!(wrong.is_empty(), "arrows that the design does not have:\n{}", wrong.join("\n"));
}

#[test]
fn the_core_is_safe_by_proof_and_knows_no_std() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    for path in files {
        let (module, depth) = place(&path);
        if !CORE.contains(&module.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = without_tests(&code(&text));
        // A module's own file is enough: what is forbidden there cannot be allowed again further in.
        let forbids = depth > 1 || code.contains("#![forbid(unsafe_code)]");
        assert!(forbids, "{}: no forbid(unsafe_code)", path.display());
        let std = named_behind(&code, "std::");
        assert!(std.is_empty(), "{}: uses std::{std:?}", path.display());
    }
}

/// The verifier must not be wrong in the same way as the planner.
#[test]
fn the_verifier_shares_no_code_with_the_strategies() {
    let text = fs::read_to_string(root().join("src/planner/check.rs")).unwrap();
    let code = without_tests(&code(&text));
    for part in ["strategy", "greedy", "indexed", "search"] {
        assert!(!code.contains(&format!("{part}::")), "check.rs uses {part}");
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let text = r##"
        use crate::{error::Error, planner::{plan::Plan, problem}, units};
        fn f() { let x = "crate::model::y"; let c = '"'; let e = '\''; crate::heap::g::<'a>(); } // crate::runtime
        /* crate::view */
        pub(in crate::ffi) use super::super::advise::lever;
        const R: &str = r#"crate::bin " "#;
        #[cfg(test)]
        mod tests { use crate::shims; fn g() { if true { } } }
        use crate::graph;
    "##;
    assert_eq!(arrows(text, "planner", 2), ["advise", "error", "ffi", "graph", "heap", "planner", "units"]);
    assert_eq!(arrows("use arenite::{runtime, ffi};", "shims", usize::MAX - 1), ["ffi", "runtime"]);
}
