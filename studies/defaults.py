#!/usr/bin/env python3
"""Compares the estimators without any parameter given with scikit-learn's SVC() on the small sets of a folder.

    defaults.py FOLDER [--rows N] [--repeats N]

FOLDER holds LIBSVM files (also .gz); sets of more than N rows (default 2000) are left out. Every classifier gets the
same stratified halves (default 6 repeats) and the same features, scaled to [0, 1] on the training half. Needs the
Python package. A cell is the mean test accuracy in percent; the last lines are the means over the sets, and how often
ODM is above and below SVC.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier

CLASSIFIERS = {
    "SVC()": SVC(),
    "SVMClassifier()": SVMClassifier(),
    "LDMClassifier()": LDMClassifier(),
    "ODMClassifier()": ODMClassifier(),
    "SVC linear": SVC(kernel="linear"),
    "ODM linear": ODMClassifier(kernel="linear"),
}


def small_sets(folder, most):
    """Name, samples and labels of each set that is small enough."""
    for path in sorted(folder.glob("*.libsvm*")):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            lines = sum(1 for _ in file)
        if lines <= most:
            X, y = load_svmlight_file(str(path))
            if X.shape[1] <= 5000 and np.unique(y, return_counts=True)[1].min() >= 4:
                yield path.name.split(".libsvm")[0], X.toarray(), y


def accuracies(X, y, repeats):
    """Mean test accuracy of each classifier over the same halves."""
    found = {name: [] for name in CLASSIFIERS}
    for train, test in StratifiedShuffleSplit(repeats, train_size=0.5, random_state=0).split(X, y):
        scaler = MinMaxScaler().fit(X[train])
        left, right = scaler.transform(X[train]), scaler.transform(X[test])
        for name, classifier in CLASSIFIERS.items():
            found[name].append(classifier.fit(left, y[train]).score(right, y[test]))
    return {name: 100 * np.mean(values) for name, values in found.items()}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=6)
    words = parser.parse_args()
    print(f"{'':16}{'rows':>6}{'classes':>8}" + "".join(f"{name:>17}" for name in CLASSIFIERS))
    table = []
    for name, X, y in small_sets(words.folder, words.rows):
        found = accuracies(X, y, words.repeats)
        table.append(list(found.values()))
        cells = "".join(f"{value:17.2f}" for value in found.values())
        print(f"{name:16}{len(y):6}{len(np.unique(y)):8}{cells}", flush=True)
    table = np.array(table)
    print(f"{'mean of ' + str(len(table)):30}" + "".join(f"{value:17.2f}" for value in table.mean(axis=0)))
    names = list(CLASSIFIERS)
    for ours, theirs in (("ODMClassifier()", "SVC()"), ("ODM linear", "SVC linear")):
        difference = table[:, names.index(ours)] - table[:, names.index(theirs)]
        above, below = (difference > 0).sum(), (difference < 0).sum()
        print(f"{ours} is above {theirs} on {above} sets and below on {below}")


if __name__ == "__main__":
    main()
