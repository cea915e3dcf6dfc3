"""A search that judges every point on a part of the rows, against one that judges every point on all.

    python search_part.py PROGRAM DIR [REPEATS]

PROGRAM is the widemargin binary, DIR a folder of two-class sets as NAME.libsvm.gz. Of every set of 650 rows or more and
at most 600 features, 600 to 1,000 rows (three quarters, where that is between) are drawn REPEATS times (2), and `tune
--kernel rbf --scale minmax` with its defaults and with `--search-rows all` is tested on up to 3,000 others. A table,
the means, a paired t-test over the sets and the ratio of the processor times are printed as Markdown.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.model_selection import train_test_split

LARGEST = 6_000_000  # bytes of a file


def sets(folder):
    """Name, rows and labels of the sets that are raced on."""
    for path in sorted(folder.glob("*.libsvm.gz")):
        if path.name.endswith(".t.libsvm.gz") or path.stat().st_size > LARGEST:
            continue
        with gzip.open(path) as file:
            rows, labels = load_svmlight_file(file)
        if len(np.unique(labels)) == 2 and rows.shape[0] >= 650 and rows.shape[1] <= 600:
            yield path.name.split(".libsvm")[0], rows[:60000].tocsr(), labels[:60000]


def asked(command):
    """What a command prints with --json."""
    return json.loads(subprocess.run([*command, "--quiet", "--json"], check=True, capture_output=True).stdout)


def tuned(program, paths, *words):
    """Held-out accuracy and processor seconds."""
    train, test, model = paths
    common = ["--kernel", "rbf", "--scale", "minmax", "--threads", "1"]
    found = asked([program, "tune", train, model, *common, *words])
    right = asked([program, "predict", test, model, model + ".out"])["accuracy"]
    return right, sum(found["processor"].values())


def race(program, folder, rows, labels, repeats):
    """Accuracies and seconds of both: repeats x searches x measures."""
    count = max(600, min(1000, int(0.75 * len(labels))))
    paths = [str(folder / name) for name in ("train.libsvm", "test.libsvm", "m.model")]
    found = []
    for repeat in range(repeats):
        parts = train_test_split(np.arange(len(labels)), train_size=count, random_state=100 + repeat, stratify=labels)
        for part, path in zip(parts, paths):
            dump_svmlight_file(rows[part[:3000]], labels[part[:3000]], path, zero_based=False)
        found.append([tuned(program, paths, "--search-rows", "all"), tuned(program, paths)])
    return np.array(found)


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    print("| data | all rows | a part first | time |\n|---|--:|--:|--:|")
    accuracies, seconds = [], np.zeros(2)
    with tempfile.TemporaryDirectory() as place:
        for name, rows, labels in sets(folder):
            found = race(program, Path(place), rows, labels, repeats)
            whole, part = 100 * found[:, :, 0].mean(axis=0)
            spent = found[:, :, 1].sum(axis=0)
            accuracies.append((whole, part))
            seconds += spent
            print(f"| {name} | {whole:.2f} | {part:.2f} | {spent[1] / spent[0]:.2f} |", flush=True)
    whole, part = np.array(accuracies).T
    ratio = seconds[1] / seconds[0]
    print(f"| mean of {len(whole)} | {whole.mean():.2f} | {part.mean():.2f} | {ratio:.2f} |\n")
    print(f"above on {(part > whole).sum()}, below on {(part < whole).sum()}; p = {ttest_rel(whole, part).pvalue:.2f}")


if __name__ == "__main__":
    main()
