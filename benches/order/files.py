#!/usr/bin/env python3
"""Real .tflite files before and after `arenite optimize`: arena inside real TensorFlow Lite, outputs compared.

    python3 benches/order/files.py --arenite target/release/arenite --python PYTHON [--micro PYTHON] FILE_OR_FOLDER...

PYTHON has tflite-runtime, ai-edge-litert or both; every runtime found there runs both files on 5 seeded inputs, one after
the other on one interpreter, with and without its default delegates. `--micro` names a Python with tflite-micro: models
whose operators it has run there too, 50 steps, with the order alone and with an offline plan. Files that gain nothing
are counted only. Folders are searched for .tflite files; archives (.task, .whl, .zip) are looked into.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

MICRO = r'''
import sys, hashlib, numpy
from tflite_micro.python.tflite_micro import runtime
one = runtime.Interpreter.from_file(sys.argv[1], arena_size=64 << 20)
one.print_allocations()
random, out = numpy.random.RandomState(1), hashlib.sha256()
for step in range(50):
    detail = one.get_input_details(0)
    kind = numpy.dtype(detail["dtype"])
    if kind.kind == "f":
        value = random.uniform(-1, 1, detail["shape"]).astype(kind)
    else:
        value = random.randint(numpy.iinfo(kind).min, numpy.iinfo(kind).max + 1, detail["shape"]).astype(kind)
    one.set_input(value, 0)
    one.invoke()
    out.update(numpy.asarray(one.get_output(0)).tobytes())
print("outputs", out.hexdigest())
'''


def models(paths):
    """Every model below the paths as (name, bytes), each content once."""
    seen = set()

    def fresh(name, data):
        key = hashlib.sha256(data).digest()
        if data[4:8] == b"TFL3" and key not in seen:
            seen.add(key)
            yield name, data

    for path in paths:
        files = [path]
        if os.path.isdir(path):
            files = sorted(os.path.join(d, f) for d, _, names in os.walk(path) for f in names)
        for file in files:
            if file.endswith(".tflite"):
                yield from fresh(os.path.basename(file), open(file, "rb").read())
            elif file.endswith((".task", ".whl", ".zip")) and zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    for name in sorted(archive.namelist()):
                        if name.endswith(".tflite"):
                            yield from fresh(os.path.basename(name), archive.read(name))


def micro(python, path):
    """Head bytes and a hash of the outputs in TensorFlow Lite Micro, or None where it cannot run the model."""
    done = subprocess.run([python, "-c", MICRO, path], capture_output=True, text=True)
    text = done.stdout + done.stderr
    head, outputs = re.search(r"head (\d+) bytes", text), re.search(r"outputs (\w+)", text)
    return (int(head[1]), outputs[1]) if head and outputs else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arenite", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--micro")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    counts, bad = collections.Counter(), []
    print("%-44s %10s %10s %6s  %s" % ("model", "planned", "after", "ratio", "arena inside the runtimes, outputs"))
    with tempfile.TemporaryDirectory() as folder:
        before, after, offline = (os.path.join(folder, n) for n in ("before.tflite", "after.tflite", "offline.tflite"))
        for name, data in models(args.paths):
            open(before, "wb").write(data)
            for old in (after, offline):
                if os.path.exists(old):
                    os.remove(old)
            command = [args.arenite, "optimize", before, "-o", after, "--json"]
            plain = subprocess.run(command, capture_output=True, text=True)
            counts["models"] += 1
            if plain.returncode:
                counts["refused"] += 1
                print("%-44s %s" % (name[:44], plain.stderr.strip().splitlines()[-1:]))
                continue
            found = json.loads(plain.stdout)
            if not found["order_changed"]:
                counts["proven to gain nothing" if found["proven"] else "nothing gained"] += 1
                continue
            counts["improved"] += 1
            os.remove(after)
            seen = subprocess.run(command + ["--verify", args.python], capture_output=True, text=True)
            notes = []
            if seen.returncode:
                notes.append(seen.stderr.strip().splitlines()[-1])
                bad.append(name)
                subprocess.run(command, capture_output=True)
            else:
                for run in json.loads(seen.stdout)["verified"]:
                    notes.append("%s %s: %s to %s, identical" % (
                        run["runtime"], run["version"], run["arena_before"], run["arena_after"]))
                counts["verified"] += 1
            if args.micro and os.path.exists(after):
                subprocess.run([args.arenite, "export", "--tflm-offline", after, "-o", offline], capture_output=True)
                three = [micro(args.micro, p) for p in (before, after, offline)]
                if all(three):
                    same = len({hashed for _, hashed in three}) == 1
                    heads = ", ".join(str(head) for head, _ in three)
                    notes.append("micro: %s, %s" % (heads, "identical" if same else "DIFFERENT"))
                    counts["verified in micro"] += same
                    bad += [] if same else [name]
            a, b = found["arena_bytes_before"], found["arena_bytes_after"]
            print("%-44s %10d %10d %6.3f  %s" % (name[:44], a, b, b / a, "; ".join(notes)), flush=True)
    print(", ".join("%s: %d" % pair for pair in counts.items()))
    if bad:
        print("not verified: " + ", ".join(bad))
    sys.exit(bool(bad))


main()
