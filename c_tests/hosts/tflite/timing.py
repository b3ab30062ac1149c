"""Processor time of AllocateTensors and of Invoke with the preload library, as parts of TensorFlow Lite's own.

    python timing.py --library FILE --packages DIRECTORY --models DIRECTORY... [--xnnpack] [--rounds 7]

Processes with and without the preload take turns, so that a machine whose speed changes is slow for both; each ratio is the
median over the rounds. Nothing is asserted: figures are for people.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def measure(model, xnnpack):
    """In the process that runs TensorFlow Lite: the medians of loading with the first allocation, of another allocation after
    a resize to the same shape, and of a run, in nanoseconds; None where the model does not run."""
    import tflite_runtime.interpreter as tflite
    from run_models import values
    import numpy as np
    kind = tflite.OpResolverType
    resolver = kind.AUTO if xnnpack else kind.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    load, again, run = [], [], []
    rng = np.random.default_rng(1)
    try:
        for _ in range(5):
            start = time.process_time_ns()
            i = tflite.Interpreter(model, num_threads=1, experimental_op_resolver_type=resolver)
            i.allocate_tensors()
            load.append(time.process_time_ns() - start)
        for _ in range(5):
            d = i.get_input_details()[0]
            # Resizing to the shape that it has does nothing, so it goes there and back.
            shape = [int(n) for n in d["shape"]]
            try:
                i.resize_tensor_input(d["index"], [2 * n if k == 0 else n for k, n in enumerate(shape)])
                i.resize_tensor_input(d["index"], shape)
                start = time.process_time_ns()
                i.allocate_tensors()
                again.append(time.process_time_ns() - start)
            except (RuntimeError, ValueError):
                break
        for d in i.get_input_details():
            i.set_tensor(d["index"], values(rng, d))
        begin = time.process_time_ns()
        while len(run) < 5 or (len(run) < 2000 and time.process_time_ns() - begin < 150_000_000):
            start = time.process_time_ns()
            i.invoke()
            run.append(time.process_time_ns() - start)
    except (RuntimeError, ValueError):
        return None
    return [statistics.median(x) if x else None for x in (load, again, run)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--library")
    p.add_argument("--packages")
    p.add_argument("--models", action="append", default=[])
    p.add_argument("--xnnpack", action="store_true")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--one", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        print(json.dumps(measure(a.one, a.xnnpack)))
        return
    from compare import environment, find_models
    python = os.path.join(a.packages, "venv", "bin", "python")
    print(f"{os.path.basename(a.packages)}, {'default delegates' if a.xnnpack else 'no delegates'}, {a.rounds} rounds; "
          "processor time with the preload / without")
    print(f"{'model':<48} {'load':>8} {'resize':>8} {'run':>8} {'run alone, us':>14}")
    everything = [[], [], []]
    for model in find_models(a.models):
        ratios = [[], [], []]
        alone_us = []
        for _ in range(a.rounds):
            got = []
            for env in (environment(), environment(a.library)):
                command = [python, "-W", "ignore", os.path.join(HERE, "timing.py"), "--one", model]
                done = subprocess.run(command + ["--xnnpack"] * a.xnnpack, env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
                got.append(json.loads(done.stdout) if done.stdout.strip() else None)
            if not all(got):
                break
            for r, alone, ours in zip(ratios, *got):
                if alone and ours:
                    r.append(ours / alone)
            alone_us.append(got[0][2] / 1000)
        if not alone_us:
            continue
        medians = [statistics.median(r) if r else None for r in ratios]
        for all_of_it, m in zip(everything, medians):
            if m:
                all_of_it.append(m)
        print(f"{os.path.basename(model)[:48]:<48} " + " ".join(f"{m:8.3f}" if m else f"{'-':>8}" for m in medians)
              + f" {statistics.median(alone_us):14.0f}", flush=True)
    print(f"{'median, worst':<48} " + " ".join(f"{statistics.median(e):8.3f}" for e in everything if e) + "   "
          + " ".join(f"{max(e):8.3f}" for e in everything if e))


if __name__ == "__main__":
    sys.exit(main())
