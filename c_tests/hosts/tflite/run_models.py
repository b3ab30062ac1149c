"""Runs models in the TensorFlow Lite of this Python, and says what came out. Started by compare.py, with and without the
preload; on its own:  python run_models.py [--xnnpack] model.tflite:1,3...

One JSON line per model, each run in a process of its own: {"model", "batches", "steps": [{"batch", "outputs": sha256,
"shapes"}], "error", "pid", "status"}.
"""
import argparse
import gc
import hashlib
import json
import os
import sys

import numpy as np
import tflite_runtime.interpreter as tflite


def values(rng, detail):
    shape, dtype = detail["shape"], detail["dtype"]
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    # Whole numbers may be sizes and counts; bytes are pixels and samples.
    return rng.integers(0, 100 if np.dtype(dtype).itemsize == 1 else 4, shape).astype(dtype)


def invoke(interpreter, seed, runs):
    """Runs with fresh seeded inputs, several times: state kept between runs shows in the later ones."""
    digest = hashlib.sha256()
    shapes = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], values(rng, detail))
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            try:
                out = interpreter.get_tensor(detail["index"])
            except ValueError as e:
                digest.update(str(e).encode())
                continue
            # Of strings an array only holds addresses.
            digest.update(repr(out.tolist()).encode() if out.dtype.hasobject else out.tobytes())
            if run == 0:
                shapes.append(list(out.shape))
    return digest.hexdigest()[:16], shapes


def resize(interpreter, original, batch):
    for detail in original:
        shape = [int(n) for n in detail["shape"]]
        if not shape:
            continue
        shape[0] *= batch
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()


def run(path, xnnpack, batches, threads):
    kind = tflite.OpResolverType
    resolver = kind.AUTO if xnnpack else kind.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tflite.Interpreter(path, num_threads=threads, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    original = interpreter.get_input_details()
    steps = []
    first = True
    for batch in batches:
        step = {"batch": batch}
        try:
            if not first or batch != 1:
                resize(interpreter, original, batch)
            step["outputs"], step["shapes"] = invoke(interpreter, batch, 2)
        except (RuntimeError, ValueError) as e:
            # Models that cannot be resized say so with and without the preload.
            step["error"] = str(e).splitlines()[0][:200]
            interpreter = tflite.Interpreter(path, num_threads=threads, experimental_op_resolver_type=resolver)
            interpreter.allocate_tensors()
        steps.append(step)
        first = False
    return steps


def in_a_child(row, work):
    """Runs `work` in a process of its own, which has the imports already; what it added to `row`, and its exit status."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            work(row)
        except (RuntimeError, ValueError) as e:
            row["error"] = str(e).splitlines()[0][:200]
        gc.collect()
        with os.fdopen(write, "w") as f:
            json.dump(row, f)
        # Not os._exit: the preload library writes its report when a process ends.
        sys.exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    _, status = os.waitpid(pid, 0)
    return dict(json.loads(text) if text else row, pid=pid, status=status)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--xnnpack", action="store_true")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("models", nargs="+", help="path, or path:batches")
    a = p.parse_args()
    for model in a.models:
        path, _, batches = model.partition(":")
        batches = [int(b) for b in (batches or "1").split(",")]
        row = {"model": path, "batches": batches}

        def work(row):
            row["steps"] = run(path, a.xnnpack, batches, a.threads)

        sys.stdout.flush()
        print(json.dumps(in_a_child(row, work)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
