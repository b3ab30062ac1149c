"""TensorFlow Lite wheels with and without the preload library: outputs byte for byte, arenas, planning time.

    python compare.py --library libarenite_tflite.so --packages DIRECTORY --work DIRECTORY --models DIRECTORY...

`--packages` is a directory that packages.py filled with a wheel; `--models` are searched for .tflite files to any depth.
Exit status: 0 equal and never above TFLite's arena, 1 not.
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


def environment(library=None, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ARENITE_") and k != "LD_PRELOAD"}
    if library:
        env["LD_PRELOAD"] = library
        env.update({f"ARENITE_{k}": v for k, v in variables.items()})
    return env


def run(python, script, arguments, env):
    """Output, exit status and standard error of a script."""
    done = subprocess.run([python, "-W", "ignore", os.path.join(HERE, script)] + arguments, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout, done.returncode, done.stderr


def run_models(a, python, models, xnnpack, env):
    """A row per model; the script runs each in a process of its own."""
    out, status, errors = run(python, "run_models.py", (["--xnnpack"] if xnnpack else []) + models, env)
    if status:
        sys.exit(f"run_models.py: status {status}\n{errors[-3000:]}")
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return rows, errors


def report_of(a, row):
    try:
        with open(os.path.join(a.work, f"report{row['pid']}.json")) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def outcome(row):
    return {k: row.get(k) for k in ["steps", "error", "status"]}


def judge(plain, ours, watched, o, h):
    """A row of the table, or what is wrong, or why it does not count."""
    if outcome(ours) != outcome(plain):
        return {"wrong": f"\n  alone   {outcome(plain)}\n  preload {outcome(ours)}"}
    if outcome(watched) != outcome(plain):
        return {"wrong": f"watched only\n  alone   {outcome(plain)}\n  preload {outcome(watched)}"}
    if plain["status"]:
        return {"skip": f"TFLite alone ends with status {plain['status']}"}
    if "error" in plain:
        return {"skip": "TFLite alone: " + plain["error"][:100]}
    if not o or not h:
        return {"wrong": "no report was written"}
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
        "batches": ",".join(map(str, plain["batches"])),
        "runs": sum("outputs" in s for s in plain["steps"]),
        "ours": ours_bytes, "host": host_bytes, "rule": rule_bytes,
        "ours_ns": o["planning_ns"], "host_ns": h["planning_ns"],
        # What XNNPACK asked for: outside the planner's arena.
        "xnnpack": [(r["xnnpack"] or {"peak_bytes": 0})["peak_bytes"] for r in (o, h)],
    }


def compare(a, python, models, xnnpack):
    """Prints a table; how many models are wrong."""
    print(f"\n{'default delegates (XNNPACK)' if xnnpack else 'no delegates'}")
    print(f"{'model':<44} {'batches':>8} {'runs':>4} {'ours':>12} {'TFLite':>12} {'ratio':>7} {'planning':>9}"
          + (f" {'XNNPACK ours':>13} {'alone':>12}" if xnnpack else ""))
    alone = environment()
    plain, _ = run_models(a, python, [f"{m}:1,3,2" for m in models], xnnpack, alone)
    # Some models crash TFLite when they are resized; those are run as they are.
    crashed = [m for m, row in zip(models, plain) if row["status"]]
    if crashed:
        again = {row["model"]: row for row in run_models(a, python, crashed, xnnpack, alone)[0]}
        plain = [again.get(row["model"], row) for row in plain]
    wanted = [f"{row['model']}:{','.join(map(str, row['batches']))}" for row in plain]
    report = os.path.join(a.work, "report%p.json")
    ours, errors = run_models(a, python, wanted, xnnpack, environment(a.library, REPORT=report, ALIGN="64", VERIFY="1"))
    ours_reports = [report_of(a, row) for row in ours]
    watched, _ = run_models(a, python, wanted, xnnpack, environment(a.library, REPORT=report, STRATEGY="host"))
    total = {"ours": 0, "rule": 0, "host": 0, "ours_ns": 0, "host_ns": 0}
    count = failed = 0
    for p, o, w, o_report in zip(plain, ours, watched, ours_reports):
        row = judge(p, o, w, o_report, report_of(a, w))
        name = os.path.basename(p["model"])
        if "wrong" in row:
            failed += 1
            print(f"{name:<44} WRONG {row['wrong']}\n{errors[-2000:]}")
        elif "skip" in row:
            print(f"{name:<44} not run: {row['skip']}")
        else:
            count += 1
            for k in total:
                total[k] += row[k]
            ratio = row["ours"] / row["rule"] if row["rule"] else 1.0
            print(f"{name:<44} {row['batches']:>8} {row['runs']:>4} {row['ours']:>12} {row['rule']:>12} {ratio:>7.4f} "
                  f"{row['ours_ns'] / max(1, row['host_ns']):>9.3f}"
                  + (f" {row['xnnpack'][0]:>13} {row['xnnpack'][1]:>12}" if xnnpack else ""))
    print(f"{count} models, outputs identical; arena {total['ours']} of {total['rule']} bytes "
          f"({total['ours'] / max(1, total['rule']):.4f}; TFLite holds {total['host']}), planning time "
          f"{total['ours_ns'] / max(1, total['host_ns']):.3f} of TFLite's", flush=True)
    return failed if count else failed + 1


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
    made = os.path.join(a.work, "made")
    os.makedirs(made, exist_ok=True)
    subprocess.run([python, os.path.join(HERE, "make_models.py"), made], check=True)
    models = find_models(a.models + [made])

    print(f"{os.path.basename(a.packages)}, alignment 64; bytes are the most each arena ever had, over all batches")
    failed = sum(compare(a, python, models, xnnpack) for xnnpack in [False, True])
    lines, status, errors = run(python, "behaviours.py", [made], environment(a.library, VERIFY="1"))
    plain, _, _ = run(python, "behaviours.py", [made], environment())
    if status or lines != plain:
        failed += 1
        print(f"\nbehaviours: WRONG, status {status}\nalone\n{plain}\npreload\n{lines}\n{errors[-3000:]}")
    else:
        print(f"\nbehaviours, alone and with the preload alike:\n{plain}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
