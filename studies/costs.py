#!/usr/bin/env python3
"""How large a cost is best, by the number of rows: held-out accuracy over costs that are so many times the rows.

    costs.py PROGRAM FOLDER [--rows 300,1000] [--sets a9a,…] [--kernels linear,rbf] [--out FILE.jsonl]
    costs.py summary FILE.jsonl

FOLDER holds LIBSVM files (`.libsvm.gz`). So many random rows of a set are learnt from, features divided by their
largest absolute value there; up to 6,000 others are for testing. Sets of two classes are met by ODM at `C1 = f m`,
`C2 = C1/8`, `D = 0.4`, others by mcODM at `λ = f m`; both at the costs of few rows too (256 and 64; `f = 0`), beside
the SVM at `C = 1`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.sparse import diags
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

TWO = "a9a ijcnn1 cod-rna w8a phishing skin bank kc1 jml pol german tokyo1 sleepdata hill-valley titanic".split()
MANY = "covtype-20k letter pendigits usps shuttle connect-4 segment dna protein-val mnist".split()
SHARES = {"odm": (0, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 8), "mcodm": (0, 1 / 64, 1 / 16, 1 / 4, 1, 4, 16)}
TESTED = 6000
LONGEST = 200


def samples(folder: Path, name: str, rows: int):
    """The rows of each draw, training and test rows scaled alike."""
    X, y = load_svmlight_file(str(folder / f"{name}.libsvm.gz"))
    for seed in range((2 if rows < 2000 else 1) if X.shape[0] >= 1.3 * rows else 0):
        order = np.random.RandomState(seed).permutation(X.shape[0])
        train, test = order[:rows], order[rows : rows + TESTED]
        largest = abs(X[train]).max(axis=0).toarray().ravel()
        scale = diags(1 / np.where(largest > 0, largest, 1.0))
        yield seed, (X[train] @ scale, y[train]), (X[test] @ scale, y[test])


def accuracy(program: str, place: Path, *words: str) -> float:
    """Of a model with these options on the test rows, in percent; not a number if it takes too long."""
    train, test, model = (str(place / name) for name in ("train.libsvm", "test.libsvm", "model"))
    quiet = {"capture_output": True, "text": True, "check": True, "timeout": LONGEST}
    try:
        subprocess.run([program, "train", train, model, *words, "--quiet"], **quiet)
    except subprocess.TimeoutExpired:
        return float("nan")
    found = subprocess.run([program, "predict", test, model, "--json", "--quiet"], **quiet)
    return 100 * json.loads(found.stdout)["accuracy"]


def machine_words(machine: str, cost: float) -> list[str]:
    """The options of a machine at a cost."""
    if machine == "odm":
        return ["-m", "odm", "--c1", repr(cost), "--c2", repr(cost / 8), "--d", "0.4"]
    return ["-m", "mcodm", "--lambda", repr(cost)]


def measure(words: argparse.Namespace) -> None:
    """Write a line a set, draw and kernel."""
    with tempfile.TemporaryDirectory() as folder, open(words.out, "a") as out:
        place = Path(folder)
        for name in words.sets:
            for rows in words.rows:
                for seed, train, test in samples(Path(words.folder), name, rows):
                    dump_svmlight_file(*train, str(place / "train.libsvm"), zero_based=False)
                    dump_svmlight_file(*test, str(place / "test.libsvm"), zero_based=False)
                    machine, few = ("odm", 256.0) if len(np.unique(train[1])) == 2 else ("mcodm", 64.0)
                    for kernel in words.kernels:
                        found = {"svm": accuracy(words.program, place, "--kernel", kernel, "-m", "svm")}
                        for share in SHARES[machine]:
                            options = machine_words(machine, share * rows if share else few)
                            found[f"{share:.3g}"] = accuracy(words.program, place, "--kernel", kernel, *options)
                        about = {"set": name, "rows": rows, "seed": seed, "kernel": kernel, "machine": machine}
                        print(json.dumps({**about, "accuracy": found}), file=out, flush=True)


def summary(path: str) -> None:
    """Print the mean over sets of the mean over draws, a table a machine and kernel."""
    tables = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for line in Path(path).read_text().splitlines():
        found = json.loads(line)
        tables[found["machine"], found["kernel"]][found["rows"]][found["set"]].append(found["accuracy"])
    for (machine, kernel), by_rows in sorted(tables.items()):
        columns = ["svm", *(f"{share:.3g}" for share in SHARES[machine])]
        print(f"\n{machine}, {kernel}\n| rows | sets | " + " | ".join(columns) + " |")
        print("|--:|--:|" + "--:|" * len(columns))
        for rows, by_set in sorted(by_rows.items()):
            means = [[np.mean([draw[c] for draw in draws]) for c in columns] for draws in by_set.values()]
            print(f"| {rows} | {len(means)} | " + " | ".join(f"{mean:.2f}" for mean in np.mean(means, axis=0)) + " |")


def main() -> None:
    """Measure, or sum up."""
    if sys.argv[1:2] == ["summary"]:
        return summary(sys.argv[2])
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--rows", type=lambda text: [int(number) for number in text.split(",")], default=[300, 1000])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=TWO + MANY)
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=["linear", "rbf"])
    parser.add_argument("--out", default="costs.jsonl")
    return measure(parser.parse_args())


if __name__ == "__main__":
    main()
