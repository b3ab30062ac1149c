"""TensorFlow Lite Micro, as its wheel has it, with its greedy planner, with arenite's, and with offline plans: outputs byte
for byte, and the bytes of the arena.

    python run.py --host libtflm_host.so [--cli arenite] --work DIRECTORY --models DIRECTORY...

Exit status: 0 all outputs equal and never more arena than with the greedy planner, 1 not.
"""
import argparse
import contextlib
import ctypes
import glob
import hashlib
import os
import subprocess
import sys

import numpy as np
from tflite_micro.python.tflite_micro import _runtime, runtime
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

PLENTY = 64 << 20


@contextlib.contextmanager
def silent():
    """Standard error of C code to nowhere: the library says why an arena is too small."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def host_library(path):
    lib = ctypes.CDLL(path)
    lib.tflm_open.restype = ctypes.c_void_p
    lib.tflm_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    lib.tflm_close.argtypes = [ctypes.c_void_p]
    lib.tflm_used.restype, lib.tflm_used.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
    lib.tflm_tensor.restype = ctypes.c_void_p
    lib.tflm_tensor.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]
    lib.tflm_invoke.argtypes = [ctypes.c_void_p]
    return lib


class Model:
    def __init__(self, path):
        self.name = os.path.basename(path)
        with open(path, "rb") as f:
            self.data = f.read()
        model = runtime.convert_bytearray_to_object(self.data)
        graph = model.subgraphs[0]
        self.resources = runtime.count_resource_variables(self.data)
        self.tensors = sum(len(g.tensors) for g in model.subgraphs)
        self.inputs, self.outputs = [
            [(tuple(graph.tensors[t].shape), graph.tensors[t].type) for t in side] for side in (graph.inputs, graph.outputs)]
        self.quantized = any(t.type == schema.TensorType.INT8 for t in graph.tensors)

    def feed(self, run):
        """The same bytes for every way of running. Floats are kept small."""
        rng = np.random.default_rng([7, run])
        out = []
        for shape, kind in self.inputs:
            n = int(np.prod(shape))
            if kind == schema.TensorType.FLOAT32:
                out.append(rng.standard_normal(n).astype(np.float32).reshape(shape))
            elif kind == schema.TensorType.INT8:
                out.append(rng.integers(-128, 128, n, dtype=np.int8).reshape(shape))
            elif kind == schema.TensorType.INT16:
                out.append(rng.integers(-2000, 2000, n, dtype=np.int16).reshape(shape))
            else:
                raise ValueError(f"inputs of type {kind}")
        return out


RUNS = 3


def stock(model):
    """Through the wheel's own Python interface."""
    with silent():
        i = runtime.Interpreter.from_bytes(model.data, arena_size=PLENTY)
    digest = hashlib.sha256()
    for run in range(RUNS):
        for k, value in enumerate(model.feed(run)):
            i.set_input(value, k)
        i.invoke()
        for k in range(len(model.outputs)):
            digest.update(i.get_output(k).tobytes())
    return digest.hexdigest()[:16]


class Host:
    def __init__(self, lib, library):
        self.lib, self.library = lib, library.encode()

    def open(self, model, arena, ours):
        return self.lib.tflm_open(self.library, model.data, arena, ours, model.resources)

    def view(self, run, output, index):
        size = ctypes.c_size_t()
        at = self.lib.tflm_tensor(run, output, index, ctypes.byref(size))
        return (ctypes.c_char * size.value).from_address(at)

    def outputs(self, model, ours):
        with silent():
            run = self.open(model, PLENTY, ours)
        if not run:
            return None, 0
        digest = hashlib.sha256()
        for n in range(RUNS):
            for k, value in enumerate(model.feed(n)):
                to = self.view(run, 0, k)
                assert len(to) == value.nbytes, "the library's tensors are not laid out as known"
                to[:] = value.tobytes()
            if self.lib.tflm_invoke(run):
                return None, 0
            for k in range(len(model.outputs)):
                digest.update(self.view(run, 1, k)[:])
        used = self.lib.tflm_used(run)
        self.lib.tflm_close(run)
        return digest.hexdigest()[:16], used

    def smallest(self, model, ours, most):
        """The smallest arena, to 16 bytes, in which the model can be allocated."""
        low, high = 0, (most + 65536) // 16
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits(model, ours, middle * 16) else (middle, high)
        return high * 16

    def fits(self, model, ours, arena):
        """In a process of its own: some kernels of the library crash where the arena is too small."""
        child = os.fork()
        if child == 0:
            with silent():
                os._exit(0 if self.open(model, arena, ours) else 1)
        return os.waitpid(child, 0)[1] == 0


def offline(cli, path, work):
    out = os.path.join(work, os.path.basename(path))
    done = subprocess.run([cli, "export", "--tflm-offline", path, "-o", out], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return (out if done.returncode == 0 and os.path.exists(out) else None), done.stdout.strip()


def plan_bytes(path):
    """The offsets' entry in a file: how long it is, and how far the plan reaches."""
    with open(path, "rb") as f:
        data = f.read()
    model = runtime.convert_bytearray_to_object(data)
    for m in model.metadata or []:
        if m.name in (b"OfflineMemoryAllocation", "OfflineMemoryAllocation"):
            entry = bytes(model.buffers[m.buffer].data)
            words = np.frombuffer(entry, "<i4")
            assert words[2] == len(words) - 3 == sum(len(g.tensors) for g in model.subgraphs)
            return len(entry), int(np.sum(words[3:] >= 0))
    return 0, 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--host", required=True)
    p.add_argument("--cli")
    p.add_argument("--work", required=True)
    p.add_argument("--models", action="append", default=[])
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    host = Host(host_library(a.host), _runtime.__file__)
    paths, seen, failed = [], set(), 0
    for directory in a.models:
        for path in sorted(glob.glob(os.path.join(directory, "**", "*.tflite"), recursive=True)):
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).digest()
            if digest not in seen and os.path.getsize(path) < 8 << 20:
                seen.add(digest)
                paths.append(path)
    no_offline = None if a.cli else "no --cli"
    print("TensorFlow Lite Micro: arena in use, and the smallest arena that can be allocated in, in bytes")
    print(f"{'model':<38} {'greedy':>9} {'ours':>9} {'offline':>9}  {'smallest':>9} {'ours':>9} {'offline':>9}  plan entry")
    total = [0] * 6
    for path in paths:
        try:
            model = Model(path)
            alone = stock(model)
        except Exception as e:
            reason = str(e).splitlines()[0] if str(e) else type(e).__name__
            print(f"{os.path.basename(path):<38} not run by TensorFlow Lite Micro: {reason[:80]}")
            continue
        greedy, used = host.outputs(model, 0)
        ours, ours_used = host.outputs(model, 1)
        row = [used, ours_used, None, host.smallest(model, 0, used), host.smallest(model, 1, used), None]
        wrong = []
        if greedy != alone or ours != alone:
            wrong.append(f"outputs: stock {alone}, greedy {greedy}, ours {ours}")
        if ours_used > used:
            wrong.append("more arena than with the greedy planner")
        entry = ""
        if a.cli and no_offline is None:
            planned, said = offline(a.cli, path, a.work)
            if planned is None and ("--tflm-offline" in said or "unrecognized" in said or "unexpected" in said):
                no_offline = said.splitlines()[0]
            elif planned is None:
                wrong.append(f"no offline plan: {said}")
            else:
                fixed = Model(planned)
                result, row[2] = host.outputs(fixed, 0)
                row[5] = host.smallest(fixed, 0, used)
                if result != alone or stock(fixed) != alone:
                    wrong.append(f"outputs with the offline plan: stock {alone}, planned {result}")
                mixed, _ = host.outputs(fixed, 1)
                if mixed != alone:
                    wrong.append("outputs with the offline plan and our planner for the rest")
                entry = "{} bytes, {} of {} tensors".format(*plan_bytes(planned), model.tensors)
                if row[2] > used:
                    # The file does not say what kernels ask for; the library places that around the plan.
                    entry += "; above greedy: scratch does not fit in it"
        cells = ["-" if b is None else str(b) for b in row]
        print(f"{model.name:<38} {cells[0]:>9} {cells[1]:>9} {cells[2]:>9}  {cells[3]:>9} {cells[4]:>9} {cells[5]:>9}  {entry}"
              + "".join(f"\n  WRONG {w}" for w in wrong), flush=True)
        failed += bool(wrong)
        total = [t + (b or 0) for t, b in zip(total, row)]
    print(f"{'together':<38} {total[0]:>9} {total[1]:>9} {total[2]:>9}  {total[3]:>9} {total[4]:>9} {total[5]:>9}")
    if no_offline:
        print(f"offline plans were not tried: {no_offline}")
    print("outputs identical" if not failed else f"{failed} models WRONG")
    return 1 if failed or not any(total) else 0


if __name__ == "__main__":
    sys.exit(main())
