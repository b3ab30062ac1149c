"""What the preload library writes and says: reports, recorded profiles that the command line plans, settings that it does
not understand, versions that it does not know, and a C program that gets it by link order.

    python reports.py --library FILE --cli arenite --cc cc --packages DIRECTORY --linked DIRECTORY --work DIRECTORY

`--linked`: packages with a library that exports what a C program needs to load a model (2.14 does, 2.20 does not).
"""
import argparse
import glob
import json
import os
import shutil
import struct
import subprocess
import sys

from compare import HERE, environment, run

failed = 0


def check(condition, what):
    global failed
    print(("ok     " if condition else "FAILED ") + what, flush=True)
    failed += not condition


def model_run(a, python, model, **variables):
    out, status, errors = run(python, "run_models.py", [f"{model}:1,3"], environment(a.library, **variables))
    return json.loads(out.splitlines()[0]) if out.startswith("{") else None, status, errors


def only(pattern):
    found = glob.glob(pattern)
    for path in found[1:]:
        os.remove(path)
    if not found:
        return None
    with open(found[0]) as f:
        text = f.read()
    os.remove(found[0])
    return text


def reports(a, python, made):
    model = os.path.join(made, "views.tflite")
    for extension, marks in {
        "txt": ["interpreter  subgraph", "TFLite's planner"],
        "json": ['"format": "arenite-tflite-report"', '"placed_by"'],
        "svg": ["<svg", "</svg>"],
        "html": ["<!DOCTYPE html>", "</html>"],
    }.items():
        row, status, errors = model_run(a, python, model, REPORT=os.path.join(a.work, f"seen%p.{extension}"))
        text = only(os.path.join(a.work, f"seen*.{extension}"))
        check(status == 0 and text is not None and all(m in text for m in marks), f"a report as .{extension}")
    row, status, errors = model_run(a, python, model, REPORT=os.path.join(a.work, "no", "such", "directory.json"))
    check(status == 0 and "steps" in row and "cannot write" in errors, "a report that cannot be written is said, and no more")


def settings(a, python, made):
    model = os.path.join(made, "two_inputs.tflite")
    plain = json.loads(run(python, "run_models.py", [f"{model}:1,3"], environment())[0].splitlines()[0])
    for variables, said in [({"STRATEGY": "best"}, "ARENITE_STRATEGY"), ({"ALIGN": "96"}, "ARENITE_ALIGN"),
                            ({"EFFORT": "much"}, "ARENITE_EFFORT")]:
        row, status, errors = model_run(a, python, model, **variables)
        check(said in errors and row["steps"] == plain["steps"], f"{said}={list(variables.values())[0]} is named and left out")
    for strategy in ["first-fit", "greedy-by-size", "tflm-greedy", "exact"]:
        row, status, errors = model_run(a, python, model, STRATEGY=strategy, VERIFY="1", REPORT=os.path.join(a.work, "s%p.json"))
        planners = json.loads(only(os.path.join(a.work, "s*.json")))["planners"]
        check(row["steps"] == plain["steps"] and all(p["strategy"] == strategy for p in planners), f"strategy {strategy}")
    for align in [128, 4096]:
        row, status, errors = model_run(a, python, model, ALIGN=str(align), REPORT=os.path.join(a.work, "s%p.json"))
        planners = json.loads(only(os.path.join(a.work, "s*.json")))["planners"]
        check(row["steps"] == plain["steps"] and all(p["alignment"] == align for p in planners), f"alignment {align}")


def profiles(a, python, made):
    for model in sorted(glob.glob(os.path.join(made, "*.tflite"))):
        name = os.path.basename(model)
        profile, report = os.path.join(a.work, "profile.json"), os.path.join(a.work, "r%p.json")
        for old in glob.glob(os.path.join(a.work, "profile*")):
            os.remove(old)
        out, _, _ = run(python, "run_models.py", [f"{model}:1"], environment(a.library, RECORD=profile, REPORT=report))
        planners = json.loads(only(os.path.join(a.work, "r*.json")))["planners"]
        with open(profile) as f:
            recorded = json.load(f)
        done = subprocess.run([a.cli, "plan", profile, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ok = done.returncode == 0 and recorded["format"] == "arenite-profile"
        said = done.stderr.strip()
        if ok:
            plan = json.loads(done.stdout)
            ok = plan["scratch_bytes"] or name != "stateful.tflite"  # SVDF asks for some
            said = f"{plan['arena_bytes']} bytes planned, {plan['scratch_bytes']} of scratch"
            # One graph whose sizes are all known: the command line plans the very same problem.
            if len(recorded["subgraphs"]) == 1 and planners[-1]["planned_whole"]:
                planned, held = [-(-b // plan["alignment"]) for b in (plan["arena_bytes"], planners[-1]["arena_bytes"])]
                ok = ok and planned == held
                said += f", {planners[-1]['arena_bytes']} in the runtime"
        check(ok, f"the profile of {name}: {said}")


def grow_symbol(path, name, bytes_more):
    """Makes a symbol of a 64-bit ELF library larger, as another version of a class would."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    for s in sections:
        if s[1] != 11:  # SHT_DYNSYM
            continue
        names = sections[s[6]][4]
        for i in range(s[4], s[4] + s[5], 24):
            start = names + struct.unpack_from("<I", data, i)[0]
            if data[start:data.index(0, start)] == name.encode():
                struct.pack_into("<Q", data, i + 16, struct.unpack_from("<Q", data, i + 16)[0] + bytes_more)
                with open(path, "wb") as f:
                    f.write(data)
                return True
    return False


def unknown_versions(a, python, made):
    """The same library, made to look like a version with one more virtual function."""
    source = glob.glob(os.path.join(a.packages, "venv", "lib", "*", "site-packages", "tflite_runtime"))[0]
    model = f"{os.path.join(made, 'two_inputs.tflite')}:1,3"
    for what, symbol in {"planner": "_ZTVN6tflite12ArenaPlannerE", "graph": "_ZTVN6tflite15InterpreterInfoE"}.items():
        patched = os.path.join(a.work, f"other_{what}")
        shutil.rmtree(patched, ignore_errors=True)
        shutil.copytree(source, os.path.join(patched, "tflite_runtime"))
        grown = grow_symbol(glob.glob(os.path.join(patched, "tflite_runtime", "_pywrap*.so"))[0], symbol, 8)
        report = os.path.join(a.work, "unknown.json")
        if os.path.exists(report):
            os.remove(report)
        env = dict(environment(a.library, VERIFY="1", REPORT=report), PYTHONPATH=patched)
        ours, status, errors = run(python, "run_models.py", ["--xnnpack", model], env)
        alone, _, _ = run(python, "run_models.py", ["--xnnpack", model], dict(environment(), PYTHONPATH=patched))
        steps = [json.loads(o.splitlines()[0]).get("steps") for o in (alone, ours)]
        said = [line for line in errors.splitlines() if line.startswith("arenite:")]
        check(grown and status == 0 and steps[0] and steps[0] == steps[1] and len(said) == 1 and not os.path.exists(report)
              and "own planner stays in charge" in said[0], f"another {what} class: {said}")


def link_order(a, made):
    python = os.path.join(a.linked, "venv", "bin", "python")
    home = os.path.join(os.path.abspath(a.linked), "venv", "lib", "*", "site-packages", "tflite_runtime")
    wheel = glob.glob(os.path.join(home, "_pywrap*.so"))[0]
    # The wheel's library asks for Python's symbols, which nothing here calls.
    undefined = subprocess.run(["nm", "-D", "--undefined-only", wheel], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in undefined.splitlines()}
    stubs = os.path.join(a.work, "python_stubs.c")
    with open(stubs, "w") as f:
        f.writelines(f"char {n}[256];\n" for n in sorted(names) if n.startswith(("Py", "_Py")))
    ask = ("import tflite_runtime.interpreter as t, sys; i = t.Interpreter(sys.argv[1]); i.allocate_tensors(); "
           "[print(d['index'], int(d['shape'].prod()) * 4) for d in (i.get_input_details()[0], i.get_output_details()[0])]")
    model = os.path.join(made, "views.tflite")
    tensors = subprocess.run([python, "-W", "ignore", "-c", ask, model], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=environment(), text=True, check=True).stdout.split()
    results = {}
    for order, libraries in {"ours first": [a.library, wheel], "alone": [wheel]}.items():
        program = os.path.join(a.work, "link_order_" + order.split()[0])
        subprocess.run([a.cc, "-std=c11", "-Wall", os.path.join(HERE, "link_order.c"), stubs, "-o", program, "-rdynamic",
                        "-Wl,--no-as-needed"] + libraries + [f"-Wl,-rpath,{os.path.dirname(l)}" for l in libraries], check=True)
        report = os.path.join(a.work, "linked.json")
        if os.path.exists(report):
            os.remove(report)
        done = subprocess.run([program, model] + tensors, env=dict(environment(), ARENITE_REPORT=report, ARENITE_VERIFY="1"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        results[order] = (done.returncode, done.stdout.strip(), os.path.exists(report))
        if done.returncode:
            print(done.stderr[-1000:])
    ours, alone = results["ours first"], results["alone"]
    check(ours[0] == alone[0] == 0 and ours[1] == alone[1] != "" and ours[2] and not alone[2],
          f"a C program linked with the library first gets its planner, same outputs ({ours[1]})")


def main():
    p = argparse.ArgumentParser()
    for name in ["library", "cli", "cc", "packages", "linked", "work"]:
        p.add_argument("--" + name, required=True)
    a = p.parse_args()
    a.work = os.path.abspath(a.work)
    python = os.path.join(a.packages, "venv", "bin", "python")
    made = os.path.join(a.work, "made")
    os.makedirs(made, exist_ok=True)
    subprocess.run([python, os.path.join(HERE, "make_models.py"), made], check=True)
    reports(a, python, made)
    settings(a, python, made)
    profiles(a, python, made)
    unknown_versions(a, python, made)
    link_order(a, made)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
