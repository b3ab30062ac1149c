//! Build steps: the C side of the layout asserts, and with the feature `header` the C header.
//!
//! `ARENITE_STRICT=1` (set by CMake and CI) turns what is a warning for a Rust user into an error: no C compiler for the
//! asserts, or a committed header that no longer matches the sources.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ARENITE_STRICT");
    #[cfg(feature = "header")]
    header::check();
    // Without exported functions there is nothing for C to disagree with.
    if env::var_os("CARGO_FEATURE_CAPI").is_some() || env::var_os("CARGO_FEATURE_BARE").is_some() {
        layout::check();
    }
}

fn root() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

fn warn_or_fail(message: &str) {
    if env::var_os("ARENITE_STRICT").is_some_and(|v| v != "0") {
        eprintln!("error: {message}");
        std::process::exit(1);
    }
    println!("cargo:warning={message}");
}

/// Compiles `c_tests/layout_asserts.c`: the committed header as a C compiler lays it out must have TfLite's offsets.
mod layout {
    use super::{root, warn_or_fail};

    pub fn check() {
        println!("cargo:rerun-if-changed=c_tests/layout_asserts.c");
        println!("cargo:rerun-if-changed=include/arenite.h");
        let source = root().join("c_tests/layout_asserts.c");
        if !source.exists() {
            return; // a trimmed copy of the crate
        }
        if let Err(error) = compile(&[]) {
            return warn_or_fail(&format!("the C layout asserts were not compiled: {error}"));
        }
        // The 32-bit table too, where the compiler can; that it cannot is no error.
        let can = cc::Build::new().cargo_metadata(false).cargo_warnings(false).is_flag_supported("-m32");
        if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|a| a == "x86_64") && can.unwrap_or(false) {
            if let Err(error) = compile(&["-m32"]) {
                warn_or_fail(&format!("the C layout asserts fail with -m32: {error}"));
            }
        }
    }

    fn compile(flags: &[&str]) -> Result<(), cc::Error> {
        let mut build = cc::Build::new();
        // Freestanding: no C library is needed, which matters for -m32 and bare targets. Linked nowhere.
        build
            .cargo_metadata(false)
            .cargo_warnings(false)
            .include(root().join("include"))
            .flag_if_supported("-ffreestanding");
        for flag in flags {
            build.flag(flag);
        }
        build.file(root().join("c_tests/layout_asserts.c")).try_compile_intermediates().map(drop)
    }
}

/// Generates the header into OUT_DIR and compares it with `include/arenite.h`, which only `ARENITE_UPDATE_HEADER=1`
/// rewrites: a build must not change the sources behind the user's back.
#[cfg(feature = "header")]
mod header {
    use super::{root, warn_or_fail};
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    /// The nouns in life-cycle order; a file that is not named here comes after them, by name.
    const ORDER: [&str; 24] = [
        "version",
        "status",
        "lite",
        "lite_tables",
        "options",
        "graph",
        "planner",
        "planner_graph",
        "plan",
        "fit",
        "replan",
        "regions",
        "report",
        "arena",
        "pool",
        "pool_blocks",
        "pool_inspect",
        "pool_table",
        "pool_trace",
        "frame",
        "frame_ahead",
        "heap",
        "watch",
        "bare",
    ];
    /// Files without exports.
    const INTERNAL: [&str; 4] = ["mod", "abi", "guard", "handle"];

    pub fn check() {
        println!("cargo:rerun-if-env-changed=ARENITE_UPDATE_HEADER");
        println!("cargo:rerun-if-changed=cbindgen.toml");
        println!("cargo:rerun-if-changed=src/ffi");
        println!("cargo:rerun-if-changed=include/arenite.h");
        let generated = generate();
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("arenite.h");
        fs::write(&out, &generated).expect("OUT_DIR is writable");
        println!("cargo:rustc-env=ARENITE_GENERATED_HEADER={}", out.display());

        let committed = root().join("include/arenite.h");
        if fs::read_to_string(&committed).is_ok_and(|text| text == generated) {
            return;
        }
        if env::var_os("ARENITE_UPDATE_HEADER").is_some_and(|v| v == "1") {
            fs::create_dir_all(root().join("include")).expect("include/ can be made");
            fs::write(&committed, &generated).expect("include/arenite.h is writable");
        } else {
            warn_or_fail(
                "include/arenite.h is stale: run `ARENITE_UPDATE_HEADER=1 cargo build --features header` and commit it",
            );
        }
    }

    fn sources() -> Vec<PathBuf> {
        let directory = root().join("src/ffi");
        let mut names: Vec<String> = fs::read_dir(directory)
            .expect("src/ffi exists")
            .map(|entry| entry.expect("src/ffi is readable").path())
            .filter(|path| path.extension().is_some_and(|e| e == "rs"))
            .map(|path| path.file_stem().expect("a file").to_string_lossy().into_owned())
            .filter(|name| !INTERNAL.contains(&name.as_str()))
            .collect();
        names.sort_by_key(|name| (ORDER.iter().position(|o| o == name).unwrap_or(ORDER.len()), name.clone()));
        names.iter().map(|name| root().join("src/ffi").join(format!("{name}.rs"))).collect()
    }

    fn generate() -> String {
        let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml is valid");
        let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
        let text = config.after_includes.take().unwrap_or_default();
        let text = text
            .replace("@MAJOR@", &env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it"))
            .replace("@MINOR@", &env::var("CARGO_PKG_VERSION_MINOR").expect("cargo sets it"))
            .replace("@PATCH@", &env::var("CARGO_PKG_VERSION_PATCH").expect("cargo sets it"))
            .replace("@VERSION@", &version);
        config.after_includes = Some(text);
        let mut builder = cbindgen::Builder::new().with_config(config);
        for source in sources() {
            builder = builder.with_src(Path::new(&source));
        }
        let mut bytes = Vec::new();
        builder.generate().expect("src/ffi can be read by cbindgen").write(&mut bytes);
        finish(&String::from_utf8(bytes).expect("cbindgen writes UTF-8"))
    }

    /// What cbindgen cannot do: leaves out the `# Safety` sections, brackets negative constants, puts short
    /// comments on one line, has no comments that C89 does not know, and gives each noun's functions a heading.
    fn finish(text: &str) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut skipping = false;
        let mut heading = String::new();
        let mut comment = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.starts_with("* # Safety") {
                skipping = true;
                while out.last().is_some_and(|l| l.trim() == "*") {
                    out.pop();
                }
            }
            if skipping && trimmed != "*/" {
                continue;
            }
            skipping = false;
            if trimmed == "/**" {
                comment = Some(out.len());
            }
            if let Some(noun) = declared(line) {
                if noun != heading {
                    let at = comment.unwrap_or(out.len());
                    out.insert(at, format!("/* ---- {noun} {} */\n", "-".repeat(90 - noun.len())));
                    heading = noun;
                }
                comment = None;
            }
            // A comment of one line takes one line.
            if trimmed == "*/" && out.len() >= 2 && out[out.len() - 2].trim() == "/**" {
                let text = out.pop().expect("two lines are there");
                let open = out.pop().expect("two lines are there");
                out.push(format!("{} {} */", open, text.trim().trim_start_matches("* ")));
                continue;
            }
            out.push(bracketed(&old_comment(line)));
        }
        out.push(String::new());
        out.join("\n")
    }

    /// The noun of the function that this line declares.
    fn declared(line: &str) -> Option<String> {
        if line.starts_with([' ', '#', '/', '*', '}']) || line.starts_with("typedef") {
            return None;
        }
        let name = &line[line.find("arenite_").filter(|_| line.contains('('))?..line.find('(')?];
        // `arenite_status_t arenite_plan_bytes(`: the last word before the bracket.
        let name = name.rsplit([' ', '*']).next()?.strip_prefix("arenite_")?;
        let noun = name.split('_').next()?;
        Some(match noun {
            "abi" => "version".into(),
            "int" | "layout" => "layout".into(),
            noun => noun.into(),
        })
    }

    /// `#endif // __cplusplus`, of which strict C89 warns.
    fn old_comment(line: &str) -> String {
        match line.split_once("// ").filter(|_| line.starts_with(['#', '}'])) {
            Some((code, comment)) => format!("{}  /* {comment} */", code.trim_end()),
            None => line.to_owned(),
        }
    }

    fn bracketed(line: &str) -> String {
        match line.strip_prefix("#define ARENITE_").and_then(|rest| rest.split_once(" -")) {
            Some((name, number)) => format!("#define ARENITE_{name} (-{number})"),
            None => line.to_owned(),
        }
    }
}
