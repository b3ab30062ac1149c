# Runs two model files in every TensorFlow Lite found here and compares what they compute, byte for byte.
# Arguments: the two files, the number of seeds, 1 to look at tensors' addresses for the arena's size, else 0. Prints one line: "arenite:" and a JSON object.
import importlib
import json
import sys


def say(result):
    print("arenite:" + json.dumps(result))
    sys.exit(0)


try:
    import numpy
except ImportError:
    say({"error": "this Python has no numpy"})

MODULES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter")


def runtimes():
    """Every runtime that can be imported, with its version; all of TensorFlow only where there is no other."""
    found = []
    for name in MODULES + ("tensorflow.lite.python.interpreter",):
        if name.startswith("tensorflow") and found:
            break
        try:
            module = importlib.import_module(name)
        except Exception:
            continue
        package = name.split(".")[0]
        version = None
        try:
            from importlib import metadata
            names = metadata.packages_distributions().get(package, [package]) if hasattr(
                metadata, "packages_distributions") else [package.replace("_", "-")]
            version = metadata.version(names[0])
        except Exception:
            pass
        found.append((package, version, module))
    return found


def interpreter(module, content, plain):
    more = {}
    if plain:
        more["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = module.Interpreter(model_content=content, num_threads=1, **more)
    made.allocate_tensors()
    return made


def value(random, detail):
    shape, kind = [int(d) for d in detail["shape"]], numpy.dtype(detail["dtype"])
    if kind.kind == "f":
        return random.uniform(-1, 1, shape).astype(kind)
    if kind.kind == "b":
        return random.randint(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        if kind.itemsize <= 2:
            limits = numpy.iinfo(kind)
            return random.randint(limits.min, limits.max + 1, shape).astype(kind)
        return random.randint(0, 2, shape).astype(kind)  # often indices
    say({"error": "input %s has type %s, which cannot be made up" % (detail["name"], kind)})


def outputs(made, seed):
    random = numpy.random.RandomState(seed)
    for detail in sorted(made.get_input_details(), key=lambda d: d["name"]):
        made.set_tensor(detail["index"], value(random, detail))
    made.invoke()
    return [made.get_tensor(d["index"]).tobytes() for d in made.get_output_details()]


def signature_outputs(made, key, seed):
    random = numpy.random.RandomState(seed)
    runner = made.get_signature_runner(key)
    details = runner.get_input_details()
    given = {name: value(random, details[name]) for name in sorted(details)}
    return [v.tobytes() for _, v in sorted(runner(**given).items())]


def spans(made):
    found = {}
    for detail in made.get_tensor_details():
        if numpy.dtype(detail["dtype"]).kind not in "fiubc":
            continue  # a resource's or a string's memory cannot be looked at
        try:
            view = made.tensor(detail["index"])()
            if view.nbytes:
                found[detail["index"]] = (view.__array_interface__["data"][0], view.nbytes)
            del view
        except Exception:
            pass
    return found


def arena(module, content):
    """Bytes from the lowest to the highest tensor of the block that the inputs are in, or None. Constants have the same
    address in two interpreters of the same bytes."""
    one, two = interpreter(module, content, True), interpreter(module, content, True)
    here, there = spans(one), spans(two)
    blocks = []
    for index in sorted(here, key=lambda i: here[i]):
        start, size = here[index]
        if there.get(index, (None,))[0] == start:
            continue
        if not blocks or start > blocks[-1][1] + 64:
            blocks.append([start, start + size, set()])
        blocks[-1][1] = max(blocks[-1][1], start + size)
        blocks[-1][2].add(index)
    inputs = {d["index"] for d in one.get_input_details()}
    for start, end, members in blocks:
        if members & inputs:
            return end - start
    return None


def delegates(made):
    try:
        return sum(1 for op in made._get_ops_details() if "DELEGATE" in op["op_name"].upper())
    except Exception:
        return None


def compare(module, before, after, seeds):
    result = {"differ": None, "arena_before": None, "arena_after": None}
    if sys.argv[4] == "1":
        result["arena_before"], result["arena_after"] = arena(module, before), arena(module, after)
    for plain in (True, False):
        pair = [interpreter(module, content, plain) for content in (before, before, after)]
        if not plain:
            result["delegates_before"], result["delegates_after"] = delegates(pair[0]), delegates(pair[2])
        keys = list(pair[0].get_signature_list()) if hasattr(pair[0], "get_signature_list") else []
        runs = [lambda made, seed: outputs(made, seed)]
        if len(keys) > 1:
            runs = [lambda made, seed, key=key: signature_outputs(made, key, seed) for key in keys]
        for run in runs:
            for seed in range(1, seeds + 1):
                first, again, other = [run(made, seed) for made in pair]
                if first != again:
                    result["differ"] = "two runs of the same file differ: it is random, and cannot be compared"
                    return result
                if first != other:
                    result["differ"] = "outputs differ with seed %d%s" % (seed, "" if plain else " and delegates")
                    return result
    return result


def main():
    before, after = (open(path, "rb").read() for path in sys.argv[1:3])
    found = runtimes()
    if not found:
        say({"error": "this Python has none of ai-edge-litert, tflite-runtime, tensorflow"})
    results = []
    for package, version, module in found:
        entry = {"runtime": package, "version": version}
        try:
            entry.update(compare(module, before, after, int(sys.argv[3])))
        except Exception as error:
            entry["error"] = "%s: %s" % (type(error).__name__, error)
        results.append(entry)
    say({"runtimes": results})


main()
