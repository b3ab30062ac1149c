"""What applications do with an interpreter besides running it. Prints one line per behaviour, the same with the preload
and without.

    python behaviours.py DIRECTORY_OF_MADE_MODELS
"""
import ctypes
import gc
import hashlib
import importlib.metadata
import os
import sys
import threading

import numpy as np
import tflite_runtime.interpreter as tflite
from tflite_runtime import _pywrap_tensorflow_interpreter_wrapper as wrapper

MODELS = sys.argv[1]
PLAIN = tflite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
NAMES = {d.metadata["Name"] for d in importlib.metadata.distributions()}
SHARES_WHAT_IT_KEEPS = "tflite-runtime" in NAMES
LIBRARY = ctypes.CDLL(wrapper.__file__)


def interpreter(name, resolver=PLAIN, **more):
    i = tflite.Interpreter(os.path.join(MODELS, f"{name}.tflite"), experimental_op_resolver_type=resolver, **more)
    i.allocate_tensors()
    return i


def digest(i, all_tensors=False):
    h = hashlib.sha256()
    for d in i.get_tensor_details() if all_tensors else i.get_output_details():
        try:
            h.update(i.get_tensor(d["index"]).tobytes())
        except ValueError:
            h.update(b"none")
    return h.hexdigest()[:12]


def feed(i, seed, integer=None):
    rng = np.random.default_rng(seed)
    for d in i.get_input_details():
        if d["dtype"] == np.float32:
            i.set_tensor(d["index"], rng.standard_normal(d["shape"]).astype(np.float32))
        elif d["dtype"] == np.bool_:
            i.set_tensor(d["index"], rng.integers(0, 2, d["shape"]).astype(bool))
        else:
            i.set_tensor(d["index"], np.full(d["shape"], integer if integer is not None else 2, d["dtype"]))


def changing_shapes():
    """A dynamic output of another size at every run: places after it are forgotten and found again."""
    i, out = interpreter("tiled"), []
    for n in [1, 3, 2, 5, 5, 1, 7]:
        feed(i, n, n)
        i.invoke()
        out.append(digest(i))
    return out


def loops():
    i, out = interpreter("looped"), []
    first, last, x = [d["index"] for d in i.get_input_details()]
    for n in [3, 0, 6, 1]:
        i.set_tensor(first, np.int32(0))
        i.set_tensor(last, np.int32(n))
        i.set_tensor(x, np.arange(4, dtype=np.float32).reshape(1, 4) / 8)
        i.invoke()
        out.append(digest(i))
    return out


def branches():
    i, out = interpreter("branched"), []
    flag, x = [d["index"] for d in i.get_input_details()]
    for n in [True, False, True]:
        i.set_tensor(flag, np.array([n]))
        i.set_tensor(x, np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16))
        i.invoke()
        out.append(digest(i))
    return out


def variables():
    """State survives runs, and ends with a reset of the variables or a new allocation."""
    i, out = interpreter("stateful"), []
    for n in range(6):
        feed(i, 1)
        i.invoke()
        out.append(digest(i))
        if n == 2:
            i.reset_all_variables()
        if n == 4:
            d = i.get_input_details()[0]
            i.resize_tensor_input(d["index"], [3, 8])
            i.resize_tensor_input(d["index"], [1, 8])
            i.allocate_tensors()
    return out


def inputs_set_before_a_resize():
    """Not promised by TFLite, but so with its planner: a value stays while another input is resized."""
    i = interpreter("two_inputs")
    a, b = [d["index"] for d in i.get_input_details()]
    i.set_tensor(a, np.arange(15, dtype=np.float32).reshape(3, 5))
    i.resize_tensor_input(b, [40, 7])
    i.allocate_tensors()
    i.set_tensor(b, np.ones((40, 7), np.float32))
    i.invoke()
    return digest(i)


def every_tensor_kept():
    i = interpreter("two_inputs", experimental_preserve_all_tensors=True)
    feed(i, 4)
    i.invoke()
    # TFLite 2.14 shares in place even so, and then shows a later tensor's values for an earlier one. Ours does not.
    return digest(i, all_tensors=not SHARES_WHAT_IT_KEEPS)


def memory_released():
    """The arena is given back between runs and taken again."""
    i, out = interpreter("views"), []
    release = LIBRARY._ZN6tflite4impl11Interpreter26ReleaseNonPersistentMemoryEv
    release.restype, release.argtypes = ctypes.c_int, [ctypes.c_void_p]
    for n in range(3):
        feed(i, n)
        i.invoke()
        out.append(digest(i))
        out.append(release(i._native_handle()))
        try:
            i.invoke()
        except RuntimeError as e:
            out.append(str(e).splitlines()[0][-40:])
        i.allocate_tensors()
    return out


def signatures():
    """Two entry points of one interpreter in turn, with resizes between."""
    i, out = interpreter("signed"), []
    runners = {key: i.get_signature_runner(key) for key in ("wide", "long")}
    for n in range(6):
        key = ["wide", "long"][n % 2]
        x = np.linspace(-1, n + 1, (1 + n // 2) * {"wide": 24, "long": 8}[key], dtype=np.float32)
        y = runners[key](x=x.reshape(1 + n // 2, -1))["y"]
        out.append(hashlib.sha256(y.tobytes()).hexdigest()[:12])
    return out


def ended_out_of_order():
    """Interpreters end in another order than they began, and between runs of others."""
    out, all_of_them = [], {name: interpreter(name) for name in ["views", "tiled", "two_inputs", "looped", "signed"]}
    for gone in ["tiled", "views", "signed"]:
        del all_of_them[gone]
        gc.collect()
        for name, i in all_of_them.items():
            feed(i, len(out), 2)
            i.invoke()
            out.append(digest(i))
    return out


# Two that are still there when the process ends.
LEFT = []


def left_at_the_end():
    for name in ["views", "tiled"]:
        LEFT.append(interpreter(name))
        feed(LEFT[-1], 3)
        LEFT[-1].invoke()
    return [digest(i) for i in LEFT]


def many_at_once():
    """Eight threads with interpreters of their own, made, resized, run and dropped."""
    results = [None] * 8

    def work(k):
        out = []
        for n in range(6):
            i = interpreter(["tiled", "two_inputs", "branched", "views"][(k + n) % 4])
            for m in range(3):
                feed(i, n, m + 1)
                i.invoke()
                out.append(digest(i))
            del i
        results[k] = hashlib.sha256("".join(out).encode()).hexdigest()[:12]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    return results


for behaviour in [changing_shapes, loops, branches, variables, inputs_set_before_a_resize, every_tensor_kept,
                  memory_released, signatures, ended_out_of_order, left_at_the_end, many_at_once]:
    try:
        print(behaviour.__name__, behaviour(), flush=True)
    except Exception as e:  # The same exception with and without is no difference.
        print(behaviour.__name__, type(e).__name__, str(e).splitlines()[0][:120], flush=True)
