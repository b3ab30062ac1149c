"""TensorFlow Lite wheels with and without the preload library: outputs byte for byte, arenas, planning time.

    python compare.py --library libarenite_tflite.so --packages DIRECTORY --work DIRECTORY --models DIRECTORY...

`--packages` is a directory that packages.py filled with a wheel; `--models` are searched for .tflite files to any depth.
Exit status: 0 equal and never above TFLite's arena, 1 not, 77 skipped because the packages are not there.
"""
import argparse
import glob
import hashlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def find_models(directories):
    """Every .tflite file once, also where packages ship the same one under several names."""
    found, seen = [], set()
    for directory in directories:
        paths = sorted(glob.glob(os.path.join(directory, "**", "*.tflite"), recursive=True))
        if not paths:
            print(f"no models in {directory}")
        for path in paths:
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).digest()
            if digest not in seen:
                seen.add(digest)
                found.append(path)
    return found


def run(python, script, arguments, library=None, report=None, **variables):
    """Output lines and exit status of a script."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ARENITE_") and k != "LD_PRELOAD"}
    if library:
        env["LD_PRELOAD"] = library
        if report:
            if os.path.exists(report):
                os.remove(report)
            env["ARENITE_REPORT"] = report
        env.update({f"ARENITE_{k}": v for k, v in variables.items()})
    done = subprocess.run([python, "-W", "ignore", os.path.join(HERE, script)] + arguments, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout.splitlines(), done.returncode, done.stderr


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def compare_model(python, a, path, xnnpack, batches):
    """One model in processes of its own. A row of the table, or why it does not count."""
    arguments = (["--xnnpack"] if xnnpack else []) + ["--batches", batches, path]
    ours_report, host_report = os.path.join(a.work, "ours.json"), os.path.join(a.work, "host.json")
    plain, status, _ = run(python, "run_models.py", arguments)
    if status:
        if batches != "1":
            return compare_model(python, a, path, xnnpack, "1")
        return {"skip": f"TFLite alone ends with status {status}"}
    ours, status, errors = run(python, "run_models.py", arguments, a.library, ours_report, ALIGN="64", VERIFY="1")
    if status or ours != plain:
        return {"wrong": f"status {status}\n  alone   {plain}\n  preload {ours}\n{errors[-2000:]}"}
    watched, status, errors = run(python, "run_models.py", arguments, a.library, host_report, STRATEGY="host")
    if status or watched != plain:
        return {"wrong": f"watched only: status {status}\n{errors[-2000:]}"}
    outcome = json.loads(plain[0])
    if "error" in outcome:
        return {"skip": "TFLite alone: " + outcome["error"][:100]}
    o, h = read(ours_report), read(host_report)
    if not o or not h:
        return {"wrong": f"no report was written\n{errors[-2000:]}"}
    unverified = [p for p in o["planners"] if p["verified"] < p["executes"]]
    if unverified:
        return {"wrong": f"not every plan was checked: {unverified}"}
    ours_bytes = sum(p["peak_arena_bytes"] for p in o["planners"])
    host_bytes = sum(p["peak_arena_bytes"] for p in h["planners"])
    # TFLite 2.14 counts padding in what it holds: its rule's own bytes are the fair comparison.
    rule_bytes = sum(p["peak_tflite_bytes"] for p in o["planners"])
    if not ours_bytes <= rule_bytes <= host_bytes:
        return {"wrong": f"the arena has {ours_bytes} bytes, by TFLite's rule {rule_bytes}, in TFLite {host_bytes}"}
    return {
        "batches": batches,
        "runs": sum("outputs" in s for s in outcome["steps"]),
        "partial_resets": sum(p["partial_resets"] for p in o["planners"]),
        "ours": ours_bytes, "host": host_bytes, "rule": rule_bytes,
        "ours_ns": o["planning_ns"], "host_ns": h["planning_ns"],
    }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--library", required=True)
    p.add_argument("--packages", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--models", action="append", default=[])
    a = p.parse_args()
    a.work = os.path.abspath(a.work)
    os.makedirs(a.work, exist_ok=True)
    python = os.path.join(a.packages, "venv", "bin", "python")
    if not os.path.exists(os.path.join(a.packages, "ready")):
        print(f"SKIPPED: no packages in {a.packages}")
        return 77
    made = os.path.join(a.work, "made")
    os.makedirs(made, exist_ok=True)
    subprocess.run([python, os.path.join(HERE, "make_models.py"), made], check=True)
    models = find_models(a.models + [made])

    failed = 0
    print(f"{os.path.basename(a.packages)}, alignment 64; bytes are the most each arena ever had, over all batches")
    for xnnpack in [False, True]:
        print(f"\n{'default delegates (XNNPACK)' if xnnpack else 'no delegates'}")
        print(f"{'model':<44} {'batches':>8} {'runs':>4} {'ours':>12} {'TFLite':>12} {'ratio':>7} {'planning':>9}")
        total = {"ours": 0, "rule": 0, "host": 0, "ours_ns": 0, "host_ns": 0}
        count = 0
        for path in models:
            row = compare_model(python, a, path, xnnpack, "1,3,2")
            name = os.path.basename(path)
            if "wrong" in row:
                failed += 1
                print(f"{name:<44} WRONG {row['wrong']}")
                continue
            if "skip" in row:
                print(f"{name:<44} not run: {row['skip']}")
                continue
            count += 1
            for k in total:
                total[k] += row[k]
            ratio = row["ours"] / row["rule"] if row["rule"] else 1.0
            print(f"{name:<44} {row['batches']:>8} {row['runs']:>4} {row['ours']:>12} {row['rule']:>12} {ratio:>7.4f} "
                  f"{row['ours_ns'] / max(1, row['host_ns']):>9.3f}", flush=True)
        print(f"{count} models, outputs identical; arena {total['ours']} of {total['rule']} bytes "
              f"({total['ours'] / max(1, total['rule']):.4f}; TFLite holds {total['host']}), planning time {total['ours_ns'] / max(1, total['host_ns']):.3f} "
              f"of TFLite's")
    lines, status, errors = run(python, "behaviours.py", [made], a.library, None, VERIFY="1")
    plain, _, _ = run(python, "behaviours.py", [made])
    if status or lines != plain:
        failed += 1
        print(f"\nbehaviours: WRONG, status {status}\n  alone   {plain}\n  preload {lines}\n{errors[-3000:]}")
    else:
        print(f"\nbehaviours, alone and with the preload alike:\n  " + "\n  ".join(plain))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
