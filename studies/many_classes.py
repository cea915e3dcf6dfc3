"""mcODM beside Crammer and Singer's machine: accuracy on unseen rows, the same splits and the same budget for both.

    python many_classes.py PROGRAM FOLDER [NAME ...]

PROGRAM is the `widemargin` command, FOLDER holds NAME.libsvm.gz (and NAME.t.libsvm.gz where a set has test rows of its
own); NAME:rbf asks for an RBF kernel with gamma 4 in place of the linear one, and takes at most 5,000 training rows.
Sets without test rows are split 70/30, ten times if they are small. Each machine searches ten points by 5-fold
cross-validation on at most 1,500 of the training rows: values of C, or of lambda and theta; mu keeps its default.
Features are scaled to [0, 1] by the training rows (sparse sets: rows of length 1). Prints a Markdown table.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.preprocessing import normalize

NAMES = "iris wine glass svmguide2 vehicle segment dna usps pendigits letter letter:rbf shuttle news20 mnist".split()
SPARSE = {"news20"}
RBF = ["--kernel", "rbf", "--gamma", "4"]
RBF_ROWS = 5000
SEARCH_ROWS = 1500
GRIDS = {"mcodm": "lambda=2^4:2^20:*16,theta=0.2;0.6", "mcsvm": "c=2^-10:2^8:*4"}
# Rows of length 1 in many dimensions need no more.
SPARSE_GRIDS = {"mcodm": "lambda=2^8:2^16:*4,theta=0.2;0.6", "mcsvm": "c=2^-4:2^5:*2"}


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def splits(folder, name):
    """The training and test rows of each split."""
    name = name.split(":")[0]
    x, y = load_svmlight_file(str(folder / f"{name}.libsvm.gz"))
    given = folder / f"{name}.t.libsvm.gz"
    if given.exists():
        test, test_y = load_svmlight_file(str(given), n_features=x.shape[1])
        yield x, y, test, test_y
        return
    for seed in range(10 if len(y) < 3000 else 3):
        order = np.random.default_rng(seed).permutation(len(y))
        cut = int(0.7 * len(y))
        yield x[order[:cut]], y[order[:cut]], x[order[cut:]], y[order[cut:]]


def write(path, name, x, y):
    dump_svmlight_file(normalize(x) if name in SPARSE else x, y.astype(int), str(path), zero_based=False)
    return path


def accuracy(program, place, machine, name, split):
    """Test accuracy in percent."""
    x, y, test, test_y = split
    order = np.random.default_rng(1).permutation(len(y))
    few = order[:SEARCH_ROWS]
    grid = (SPARSE_GRIDS if name in SPARSE else GRIDS)[machine]
    scale = ["--scale", "none" if name in SPARSE else "minmax", *(RBF if name.endswith(":rbf") else [])]
    part = write(place / "part.svm", name, x[few], y[few])
    found = json.loads(
        run(program, "tune", part, "--machine", machine, "--select", "cv", "--grid", grid, "--json", *scale)
    )
    if name.endswith(":rbf"):
        x, y = x[order[:RBF_ROWS]], y[order[:RBF_ROWS]]
    chosen = {name: found["params"][name] for name in ("lambda", "theta", "c") if name in found["params"]}
    if "lambda" in chosen:
        # C counts for each row, lambda for all of them together.
        chosen["lambda"] *= len(y) / len(few)
    train = write(place / "train.svm", name, x, y)
    model = place / "a.model"
    run(
        program,
        "train",
        train,
        model,
        "--machine",
        machine,
        *(word for name, value in chosen.items() for word in (f"--{name}", value)),
        "--json",
        *scale,
    )
    told = json.loads(
        run(program, "predict", write(place / "test.svm", name, test, test_y), model, place / "out", "--json")
    )
    return 100 * told["accuracy"]


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    names = sys.argv[3:] or NAMES
    print("| set | splits | mcODM | Crammer-Singer | difference |\n|---|---|---|---|---|", flush=True)
    differences = []
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            rows = [
                [accuracy(program, Path(place), machine, name, split) for machine in GRIDS]
                for split in splits(folder, name)
            ]
            ours, theirs = np.mean(rows, axis=0)
            differences.append(ours - theirs)
            print(f"| {name} | {len(rows)} | {ours:.2f} | {theirs:.2f} | {ours - theirs:+.2f} |", flush=True)
    print(f"| average | | | | {np.mean(differences):+.2f} |")


if __name__ == "__main__":
    main()
