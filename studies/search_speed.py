"""A default `tune` of ODM against scikit-learn's GridSearchCV of an SVC: processor time and held-out accuracy.

    python search_speed.py PROGRAM [DIR [HALVES]]

PROGRAM is the widemargin binary. Both search an RBF machine on 1,000 rows x 50 features: `widemargin tune` with its
defaults, and 11 values of C x 5 of gamma with 5 folds. Processor time (user and system) is that of a process of its own
for each, reading the file included; both have one thread. With DIR (a folder of two-class sets as NAME.libsvm.gz), both
are then tuned on HALVES random stratified halves of every set of at most 700 rows, features scaled to [0, 1] on the
training rows, and tested on the other halves. A table and the totals are printed as Markdown.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

COSTS = [2.0**k for k in range(-3, 15, 2)] + [2.0**k for k in (-2, 0)]
WIDTHS = [4.0**k for k in range(-2, 3)]
MOST_ROWS = 700


def grid_search(rows, labels):
    """The best of 55 points by 5 folds, fitted on all rows; gamma is a multiple of 1 / (features x variance)."""
    scaled = MinMaxScaler().fit_transform(rows)
    usual = 1.0 / (rows.shape[1] * scaled.var())
    grid = {"svc__C": COSTS, "svc__gamma": [usual * width for width in WIDTHS]}
    return GridSearchCV(make_pipeline(MinMaxScaler(), SVC(kernel="rbf")), grid, cv=5, n_jobs=1).fit(rows, labels)


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_seconds(command):
    """The processor time of a command, with one thread for everything."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    before = children_seconds()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | one)
    return children_seconds() - before


def tune(program, train, model):
    return [
        program,
        "tune",
        train,
        model,
        "--kernel",
        "rbf",
        "--scale",
        "minmax",
        "--threads",
        "1",
        "--quiet",
        "--json",
    ]


def race(program, folder):
    """Processor seconds of both on one file."""
    rows, labels = make_classification(1000, 50, n_informative=10, flip_y=0.1, random_state=0)
    train, model = str(folder / "race.libsvm"), str(folder / "race.model")
    dump_svmlight_file(rows, labels, train, zero_based=False)
    ours = processor_seconds(tune(program, train, model))
    theirs = processor_seconds([sys.executable, __file__, "--grid-search", train])
    idle = processor_seconds([sys.executable, __file__, "--grid-search"])
    return ours, theirs, idle


def accuracies(program, folder, rows, labels, halves):
    """Held-out accuracies of both on the same halves."""
    found = []
    for train, test in StratifiedShuffleSplit(halves, test_size=0.5, random_state=0).split(rows, labels):
        paths = [str(folder / name) for name in ("train.libsvm", "test.libsvm", "m.model")]
        dump_svmlight_file(rows[train], labels[train], paths[0], zero_based=False)
        dump_svmlight_file(rows[test], labels[test], paths[1], zero_based=False)
        subprocess.run(tune(program, paths[0], paths[2]), check=True, stdout=subprocess.DEVNULL)
        predict = [program, "predict", paths[1], paths[2], str(folder / "out"), "--quiet", "--json"]
        ours = json.loads(subprocess.run(predict, check=True, capture_output=True).stdout)["accuracy"]
        found.append((ours, grid_search(rows[train], labels[train]).score(rows[test], labels[test])))
    return np.array(found)


def main():
    program = sys.argv[1]
    if program == "--grid-search":
        if len(sys.argv) > 2:
            rows, labels = load_svmlight_file(sys.argv[2])
            grid_search(rows.toarray(), labels)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, theirs, idle = race(program, folder)
        print(f"processor seconds on 1000 x 50: widemargin tune {ours:.2f}, GridSearchCV {theirs:.2f}")
        ratios = f"ratio {ours / theirs:.3f}, without imports {ours / (theirs - idle):.3f}"
        print(f"(of which {idle:.2f} are imports): {ratios}")
        if len(sys.argv) < 3:
            return
        halves = int(sys.argv[3]) if len(sys.argv) > 3 else 5
        print("\n| data | rows | ODM, tune | SVC, GridSearchCV |\n|---|--:|--:|--:|")
        means = []
        for path in sorted(Path(sys.argv[2]).glob("*.libsvm.gz")):
            if path.stat().st_size > 200_000:
                continue
            rows, labels = load_svmlight_file(str(path))
            if len(np.unique(labels)) != 2 or rows.shape[0] > MOST_ROWS or rows.shape[1] > 1000:
                continue
            found = accuracies(program, folder, rows.toarray(), labels, halves)
            means.append(found.mean(axis=0))
            ours, theirs = 100 * means[-1]
            print(f"| {path.name.split('.libsvm')[0]} | {rows.shape[0]} | {ours:.2f} | {theirs:.2f} |", flush=True)
        ours, theirs = 100 * np.mean(means, axis=0)
        print(f"| average of {len(means)} | | {ours:.2f} | {theirs:.2f} |")


if __name__ == "__main__":
    main()
