"""Runs models in the TensorFlow Lite of this Python, and says what came out. Started by compare.py, with and without the
preload; on its own:  python run_models.py [--xnnpack] [--batches 1,3] [--no-hash] model.tflite...

One JSON line per model: {"model", "steps": [{"batch", "outputs": sha256, "shapes"}], "error"}.
"""
import argparse
import gc
import hashlib
import json
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
            digest.update(out.tobytes())
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--xnnpack", action="store_true")
    p.add_argument("--batches", default="1")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    for path in a.models:
        row = {"model": path}
        try:
            row["steps"] = run(path, a.xnnpack, [int(b) for b in a.batches.split(",")], a.threads)
        except (RuntimeError, ValueError) as e:
            row["error"] = str(e).splitlines()[0][:200]
        gc.collect()
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
