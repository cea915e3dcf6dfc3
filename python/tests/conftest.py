"""What the tests share."""

import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import baselines

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
OWN = [widemargin.ODMClassifier, widemargin.LDMClassifier, widemargin.MSVMAvClassifier, widemargin.SVMClassifier]
ALL = [*OWN, *baselines.CLASSIFIERS.values()]


@pytest.fixture(scope="session")
def two_classes():
    """Scaled samples of two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def three_classes():
    """Scaled samples of three classes, with names."""
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="session")
def command():
    """The command line program."""
    path = Path(os.environ.get("WIDEMARGIN", ROOT / "target" / "release" / "widemargin"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


def libsvm_text(X, y):
    """Rows as LIBSVM text, every value as it is."""
    rows = (" ".join([str(label), *(f"{j}:{float(v)!r}" for j, v in enumerate(row, 1))]) for row, label in zip(X, y))
    return "\n".join(rows) + "\n"
