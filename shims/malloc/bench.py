#!/usr/bin/env python3
"""Memory and time of Python programs under several allocators, preloaded into the same interpreter.

    python3 -m venv v && v/bin/pip install onnxruntime rapidocr-onnxruntime opencv-python-headless numpy torch
    apt-get install libmimalloc2.0 libjemalloc2            # those that are missing are left out
    cargo build --release --manifest-path shims/malloc/Cargo.toml
    v/bin/python shims/malloc/bench.py [--rounds 3] [workload...]

One row for each workload and allocator, medians over the rounds, allocators taking turns:
  loaded   resident MiB before the first run
  first    peak resident MiB of the first run (where frames are recorded)
  second   of the second one (where they are recognised)
  later    of all runs after that
  CPU s    user and system time of all runs, loading left out
  same     whether the outputs are the same bytes as under glibc
"""
import argparse
import hashlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SYSTEM = pathlib.Path("/usr/lib/x86_64-linux-gnu")
ALLOCATORS = {
    "glibc": None,
    "mimalloc": SYSTEM / "libmimalloc.so.2",
    "jemalloc": SYSTEM / "libjemalloc.so.2",
    "arenite": HERE / "target/release/libarenite_malloc.so",
}


# ---- the workloads: each returns a function that runs once and gives its outputs as bytes --------------------------------

def detector(sizes, arena=False):
    import numpy as np
    import onnxruntime as ort
    import rapidocr_onnxruntime

    model = pathlib.Path(rapidocr_onnxruntime.__file__).parent / "models/ch_PP-OCRv4_det_infer.onnx"
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = arena
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    image = np.random.default_rng(1).random((1, 3, 960, 960), dtype=np.float32)

    def run(turn):
        height, width = sizes[turn % len(sizes)]
        cut = np.ascontiguousarray(image[:, :, :height, :width])
        return session.run(None, {name: cut})[0].tobytes()

    return run


def opencv():
    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    frame = np.random.default_rng(2).integers(0, 255, (1080, 1920, 3), dtype=np.uint8)

    def run(turn):
        digest = hashlib.md5()
        for _ in range(5):
            small = cv2.resize(frame, (1280, 720), interpolation=cv2.INTER_AREA)
            blurred = cv2.GaussianBlur(small, (9, 9), 2.0)
            grey = cv2.cvtColor(blurred, cv2.COLOR_BGR2GRAY)
            edges = cv2.Canny(grey, 50, 150)
            smooth = cv2.bilateralFilter(grey, 5, 30, 30)
            warped = cv2.warpAffine(frame, np.float32([[0.9, 0.1, 5], [-0.1, 0.9, 9]]), (1920, 1080))
            pyramid = cv2.pyrDown(cv2.pyrDown(warped.astype(np.float32)))
            for part in (edges, smooth, pyramid):
                digest.update(part.tobytes())
        return digest.digest()

    return run


def array():
    import numpy as np

    rng = np.random.default_rng(3)
    weights = [rng.standard_normal((512, 512), dtype=np.float32) for _ in range(8)]
    batches = [rng.standard_normal((n, 512), dtype=np.float32) for n in (2000, 3000, 4000)]

    def run(turn):
        x = batches[turn % 3]
        for w in weights:
            y = x * 0.5 + np.abs(x)
            x = np.maximum(y - y.mean(axis=1, keepdims=True), 0) + np.add(x, w[0])
        return x.tobytes()

    return run


def torch_net():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(4)
    layers, width = [], 3
    for wide in (32, 64, 128):
        layers += [torch.nn.Conv2d(width, wide, 3, 2, 1), torch.nn.BatchNorm2d(wide), torch.nn.ReLU(),
                   torch.nn.Conv2d(wide, wide, 3, 1, 1), torch.nn.ReLU()]
        width = wide
    convolutions = torch.nn.Sequential(*layers).eval()
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    images = [torch.rand(1, 3, n, n) for n in (256, 384, 512)]

    def run(turn):
        with torch.no_grad():
            x = convolutions(images[turn % 3])
            return encoder(x.flatten(2).transpose(1, 2)[:, ::4]).numpy().tobytes()

    return run


SHAPES = [(640, 640), (960, 960), (320, 640), (480, 800), (736, 736), (960, 544)]
WORKLOADS = {
    "detector-640": (lambda: detector([(640, 640)]), 8),
    "detector-960": (lambda: detector([(960, 960)]), 6),
    "detector-six-shapes": (lambda: detector(SHAPES), 18),
    "opencv": (opencv, 8),
    "numpy": (array, 18),
    "torch": (torch_net, 18),
}
# The engine's own arena and pattern, under glibc: what a user has by default.
DEFAULTS = {
    "detector-640": (lambda: detector([(640, 640)], True), 8),
    "detector-960": (lambda: detector([(960, 960)], True), 6),
    "detector-six-shapes": (lambda: detector(SHAPES, True), 18),
}


# ---- one process ---------------------------------------------------------------------------------------------------------

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def restart_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def child(name, default):
    make, runs = (DEFAULTS if default else WORKLOADS)[name]
    run = make()
    loaded, peaks, digest = status("VmRSS"), [], hashlib.md5()
    before = resource.getrusage(resource.RUSAGE_SELF)
    for turn in range(runs):
        restart_peak()
        digest.update(run(turn))
        peaks.append(status("VmHWM"))
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {"loaded": loaded, "first": peaks[0], "second": peaks[1], "later": max(peaks[2:]), "cpu": cpu}
    print(json.dumps({**figures, "digest": digest.hexdigest()}))


# ---- all of them ---------------------------------------------------------------------------------------------------------

def measure(name, library, default):
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = str(library)
    command = [sys.executable, __file__, "--child", name] + (["--default"] if default else [])
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{name} under {library}: exit status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="workload", help=", ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=WORKLOADS, help=argparse.SUPPRESS)
    parser.add_argument("--default", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child, arguments.default)
    unknown = set(arguments.workloads) - set(WORKLOADS)
    if unknown:
        parser.error(f"no workload {sorted(unknown)[0]}; there are {', '.join(WORKLOADS)}")
    present = {k: v for k, v in ALLOCATORS.items() if v is None or v.exists()}
    for name in set(ALLOCATORS) - set(present):
        print(f"SKIPPED: {name} is not installed ({ALLOCATORS[name]})")
    print(f"{'workload':<20} {'allocator':<14} {'loaded':>7} {'first':>7} {'second':>7} {'later':>7} {'CPU s':>7}  same")
    for name in arguments.workloads or WORKLOADS:
        settings = [(k, v, False) for k, v in present.items()]
        if name in DEFAULTS:
            settings.insert(0, ("engine's own", None, True))
        results = {label: [] for label, _, _ in settings}
        for _ in range(arguments.rounds):
            for label, library, default in settings:
                results[label].append(measure(name, library, default))
        expected = results["glibc"][0]["digest"]
        for label, _, _ in settings:
            rows = results[label]
            middle = {k: statistics.median(r[k] for r in rows) for k in ("loaded", "first", "second", "later", "cpu")}
            same = "yes" if all(r["digest"] == expected for r in rows) else "NO"
            print(f"{name:<20} {label:<14} {middle['loaded']:7.1f} {middle['first']:7.1f} {middle['second']:7.1f} "
                  f"{middle['later']:7.1f} {middle['cpu']:7.2f}  {same}", flush=True)


if __name__ == "__main__":
    main()
