//! Unmodified programs with the library preloaded: the same output as without, and memory that stays within bounds.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, built first: cargo builds none for the tests of a package that is a shared library only.
fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Wherever cargo was told to build, and for this machine.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(root.join("Cargo.toml"));
        cargo.arg("--target-dir").arg(target).env_remove("CARGO_BUILD_TARGET");
        assert!(cargo.status().unwrap().success(), "the library could not be built");
        let path = target.join("release/libarenite_malloc.so");
        assert!(path.is_file(), "{} is missing", path.display());
        if !path.to_str().unwrap().contains([' ', ':']) {
            return path;
        }
        // The dynamic linker takes both for the end of a name.
        let plain = std::env::temp_dir().join(format!("arenite-malloc-{}", std::process::id()));
        assert!(!plain.to_str().unwrap().contains([' ', ':']), "set TMPDIR to a path without blanks");
        std::fs::create_dir_all(&plain).unwrap();
        std::fs::copy(path, plain.join("libarenite_malloc.so")).unwrap();
        plain.join("libarenite_malloc.so")
    };
    BUILT.get_or_init(build).clone()
}

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Exit code, standard output and standard error of a shell command. Of the caller's variables it sees none that change what
/// the programs here do: settings of a heap, of git (set in its hooks: a test must not write to that repository), of Python.
fn run(directory: &Path, command: &str, variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    const FOREIGN: [&str; 10] =
        ["ARENITE_", "BASH_", "ENV", "GIT_", "GLIBC_", "LD_PRELOAD", "MALLOC_", "POSIXLY_", "PYTHON", "XDG_"];
    let mut shell = Command::new("bash");
    for (name, _) in std::env::vars_os() {
        if FOREIGN.iter().any(|f| name.to_str().is_none_or(|n| n.starts_with(f))) {
            shell.env_remove(name);
        }
    }
    shell.arg("-c").arg(command).current_dir(directory).envs(variables.iter().copied()).env("LC_ALL", "C");
    let out = shell.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

fn has(program: &str) -> bool {
    let found = run(Path::new("/"), &format!("command -v {program}"), &[]).0 == Some(0);
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
    }
    found
}

/// The report's figures.
fn report(path: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|l| l.split_once(' ').unwrap()).map(|(k, v)| (k.into(), v.trim().parse().unwrap())).collect()
}

#[track_caller]
fn same(name: &str, command: &str) {
    let directory = scratch(name);
    let plain = run(&directory, command, &[]);
    assert_eq!(plain.0, Some(0), "{}", plain.2);
    let library = library();
    // As it is used, and with nearly every block in the pool.
    for min in ["65536", "4096"] {
        let variables = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_MIN", min)];
        let ours = run(&directory, command, &variables);
        assert!(ours == plain, "{command}\nwithout: {plain:?}\nwith: {ours:?}");
    }
}

#[test]
fn the_family_keeps_its_rules() {
    if !has("cc") {
        return;
    }
    let directory = scratch("family");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/family.c");
    let build = "cc -O1 -w -o family \"$SOURCE\" -lpthread -ldl";
    let built = run(&directory, build, &[("SOURCE", source.to_str().unwrap())]);
    assert_eq!(built.0, Some(0), "{}", built.2);
    let plain = run(&directory, "./family", &[]);
    assert_eq!((plain.0, plain.1.as_str()), (Some(0), "fine\n"), "the test holds for the C library: {}", plain.2);
    let library = library();
    for (min, frames) in [("65536", "1"), ("65536", "0"), ("4096", "1"), ("100M", "1")] {
        let variables = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("ARENITE_MALLOC_MIN", min),
            ("ARENITE_MALLOC_FRAMES", frames),
            ("ARENITE_MALLOC_REPORT", "report.txt"),
        ];
        let bad = if min == "100M" { "./family" } else { "./family bad" };
        let ours = run(&directory, bad, &variables);
        assert_eq!((ours.0, ours.1.as_str()), (Some(0), "fine\n"), "min {min}, frames {frames}: {}", ours.2);
        let figures = report(&directory.join("report.txt"));
        if min != "100M" {
            assert_eq!(figures["bad_frees"], 2);
            assert_eq!(ours.2.matches("no live block starts there").count(), 1, "{}", ours.2);
            let areas = figures["frame_area_bytes"];
            // Areas are kept for the next turn, and standard output keeps its buffer of 4096 bytes.
            let left = figures["pool_live_bytes"] - areas;
            assert!(left == 0 || (min == "4096" && left <= 4096), "{left} bytes leak");
        }
        assert_eq!(figures["frames"] > 0, frames == "1" && min != "100M", "{figures:?}");
    }
    // A limit on addresses: less is reserved, or nothing, and as much is left for thread stacks and the C library as it
    // needs. One heap of its own for all threads, as many would be a matter of luck under a limit with or without us.
    for kilobytes in [250_000, 300_000, 400_000] {
        let limits = format!("ulimit -S -s 8192; ulimit -v {kilobytes}; export MALLOC_ARENA_MAX=1");
        let plain = run(&directory, &format!("{limits}; ./family"), &[]);
        assert_eq!((plain.0, plain.1.as_str()), (Some(0), "fine\n"), "{kilobytes}, without: {}", plain.2);
        let variables = [("LIB", library.to_str().unwrap()), ("ARENITE_MALLOC_REPORT", "limited.txt")];
        let limited = run(&directory, &format!("{limits}; LD_PRELOAD=$LIB ./family bad"), &variables);
        assert_eq!((limited.0, limited.1.as_str()), (Some(0), "fine\n"), "{kilobytes}: {}", limited.2);
        assert_eq!(report(&directory.join("limited.txt"))["bad_frees"], 2, "the pool is in use");
    }
}

#[test]
fn listings_shells_and_forks() {
    // Of its own: others may make and remove files in any directory of the system.
    same("ls", "rm -rf d; mkdir -p d/{1..60}; touch d/{1..60}/{1..60}; ls -aR d; ls -lR --time-style=+ d/1");
    same("bash", "for i in $(seq 300); do (x=$(echo $i | cat); echo $((x * 2))); done | cksum");
    same("pipes", "for i in $(seq 40); do seq $i 3000 | sort -r | head -n 1 & done | sort | cksum; wait");
}

#[test]
fn sort_with_threads() {
    same("sort", "seq 400000 | cksum; seq 400000 | sort -r --parallel=4 -S 40M | sort -n --parallel=2 | cksum");
}

#[test]
fn git_makes_the_same_history() {
    if has("git") {
        // Nothing goes on in the background when a command ends.
        let identity = "export GIT_AUTHOR_DATE='1 +0000' GIT_COMMITTER_DATE='1 +0000' HOME=$PWD GIT_CONFIG_NOSYSTEM=1; \
            git config --global user.email a@b; git config --global user.name c; git config --global init.defaultBranch m; \
            git config --global gc.auto 0; git config --global maintenance.auto false";
        let work = "rm -rf r; git init -q r; cd r; seq 200000 > a; git add a; git commit -qm 1; seq 3 250000 > a; \
            git commit -qam 2; git gc -q; git fsck --full; git rev-parse HEAD; git diff HEAD~1 | cksum";
        same("git", &format!("{identity}; {work}"));
    }
}

#[test]
fn a_compiler_makes_the_same_object() {
    if has("gcc") {
        let program = "echo '#include <stdio.h>\n#include <stdlib.h>\nint main(void){ puts(\"x\"); return 0; }' | sed 's/\\\\n/\\n/g'";
        same("gcc", &format!("{program} > a.c; gcc -O2 -g -c a.c -o a.o; cksum a.o; gcc a.c -o a; ./a"));
    }
}

#[test]
fn python_with_threads_processes_and_frames() {
    if !has("python3") {
        return;
    }
    let script = "
import hashlib, os, subprocess, sys, threading
def net(n):
    live, digest = [], hashlib.sha256()
    for k in range(40):
        live.append(bytearray(n * (1 + k * k % 61)))
        live[-1][::997] = bytes([k]) * len(live[-1][::997])
        if len(live) > 3:
            digest.update(live.pop(0))
    for b in live: digest.update(b)
    return digest.hexdigest()
out = {}
def work(i): out[i] = [net(70000 + 999 * i) for _ in range(6)]
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted((i, set(v)) for i, v in out.items()))
for i in range(8):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if net(80000) == net(80000) else 1)
    assert os.waitpid(pid, 0)[1] == 0
print(subprocess.run([sys.executable, '-c', 'print(len(bytes(10**7)))'], capture_output=True).stdout)
";
    let directory = scratch("python-script");
    std::fs::write(directory.join("net.py"), script).unwrap();
    // Newer versions warn of a fork where the system still counts a thread that was joined.
    same("python", &format!("python3 -W ignore '{}'", directory.join("net.py").display()));
    let library = library();
    let variables = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_REPORT", "report.txt")];
    let ours = run(&directory, "python3 -W ignore net.py", &variables);
    assert_eq!(ours.0, Some(0), "{}", ours.2);
    let figures = report(&directory.join("report.txt"));
    assert!(figures["frame_blocks_served"] > 200, "{figures:?}");
    assert_eq!(figures["bad_frees"], 0);
}

#[test]
fn a_trace_is_written() {
    let directory = scratch("trace");
    let library = library();
    let variables = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_TRACE", "sort.trace")];
    let ours = run(&directory, "seq 100000 > n; exec sort -S 10M -o sorted n", &variables);
    assert_eq!(ours.0, Some(0), "{}", ours.2);
    let trace = std::fs::read_to_string(directory.join("sort.trace")).unwrap();
    let count = |what: &str| trace.lines().filter(|l| l.starts_with(what)).count();
    assert!(count("a ") > 0 && count("a ") == count("f "), "{trace}");
}

#[test]
fn what_is_not_understood_is_said_and_does_not_matter() {
    let library = library();
    let variables = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_MIN", "64Q")];
    let ours = run(Path::new("/"), "exec /bin/echo x", &variables);
    assert_eq!((ours.0, ours.1.as_str()), (Some(0), "x\n"));
    assert!(ours.2.contains("ARENITE_MALLOC_MIN=64Q is no size"), "{}", ours.2);
    let nowhere = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_TRACE", "/nowhere/x")];
    let ours = run(Path::new("/"), "exec sort -S 30M </dev/null", &nowhere);
    assert_eq!(ours.0, Some(0));
    assert!(ours.2.contains("/nowhere/x: the trace's file") && !ours.2.contains("not complete"), "{}", ours.2);
    let off = [("LD_PRELOAD", library.to_str().unwrap()), ("ARENITE_MALLOC_DISABLE", "1")];
    assert_eq!(run(Path::new("/"), "exec sort -S 30M </dev/null", &off).0, Some(0));
}
