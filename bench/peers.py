"""Another program at work: `peers.py PROGRAM FOLDER` loads a data set, then fits it once for each line of its standard
input (a JSON object of settings) and answers with a line of JSON: seconds, memory, objective, accuracy.

Only the fit is timed; objectives are computed here, by the formula that both sides minimise.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import importlib.metadata
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

warnings.filterwarnings("ignore")

Floats = NDArray[np.float64]
Samples = Floats | sp.csr_matrix


def resident(field: str) -> int:
    """Bytes in memory: now (VmRSS:) or at most (VmHWM:)."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak() -> None:
    """Begins to look for the peak anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def load(folder: str, name: str) -> tuple[Samples, Floats]:
    """Rows and labels."""
    rows, cols = (int(word) for word in Path(f"{folder}/{name}.shape").read_text().split())
    values = np.fromfile(f"{folder}/{name}.values", dtype="<f8")
    offsets = np.fromfile(f"{folder}/{name}.offsets", dtype="<i8")
    labels = np.fromfile(f"{folder}/{name}.labels", dtype="<f8")
    if len(values) == rows * cols:
        return values.reshape(rows, cols), labels
    columns = np.fromfile(f"{folder}/{name}.columns", dtype="<i4")
    offsets = offsets.astype("<i4" if len(values) < 2**31 else "<i8")
    return sp.csr_matrix((values, columns, offsets), shape=(rows, cols)), labels


class Timed:
    """The time and the memory of what is done within."""

    wall = cpu = 0.0
    memory = 0

    def __enter__(self) -> Timed:
        forget_peak()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.memory = resident("VmHWM:")


# Objectives ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Plane:
    """`w` and `b`; a regularised `b` is the weight of a constant feature 1."""

    w: Floats
    b: float = 0.0

    def scores(self, x: Samples) -> Floats:
        """w·x + b"""
        return np.asarray(x @ self.w) + self.b


def linear_objective(plane: Plane, x: Samples, y: Floats, c: float, loss: str) -> float:
    """½‖w‖² + ½b² + C Σ loss"""
    short = np.maximum(0, 1 - y * plane.scores(x))
    cost = float((short**2 if loss == "squared" else short).sum())
    return 0.5 * float(plane.w @ plane.w) + 0.5 * plane.b**2 + c * cost


def classes_objective(weights: Floats, classes: Floats, x: Samples, y: Floats, c: float) -> float:
    """Crammer and Singer's."""
    total, block = 0.0, 4096
    right = np.searchsorted(classes, y)
    for start in range(0, x.shape[0], block):
        scores = np.asarray(x[start : start + block] @ weights)
        rows = np.arange(scores.shape[0])
        own = scores[rows, right[start : start + block]]
        scores += 1
        scores[rows, right[start : start + block]] -= 1
        total += float((scores.max(axis=1) - own).sum())
    return 0.5 * float((weights**2).sum()) + c * total


def kernel_scores(support: Any, coefficients: Any, gamma: float, x: Any, block: int = 2048) -> Floats:
    """In single precision: good to five digits, which is all that is asked here."""
    support, x = np.asarray(support, np.float32), np.asarray(x, np.float32)
    coefficients = np.asarray(coefficients, np.float32)
    norms = (support**2).sum(axis=1)
    out: list[Floats] = []
    for start in range(0, len(x), block):
        part = x[start : start + block]
        distance = part @ support.T
        distance *= -2
        distance += norms
        distance += (part**2).sum(axis=1)[:, None]
        distance *= -gamma
        out.append((np.exp(distance, out=distance) @ coefficients).astype(np.float64))
    return np.concatenate(out)


# Programs --------------------------------------------------------------------------------------------------------


class Liblinear:
    """LIBLINEAR through its own Python package."""

    package = "liblinear-official"

    def __init__(self, x: Samples, y: Floats) -> None:
        from liblinear import liblinearutil
        from liblinear.liblinear import problem

        self.util, self.x, self.y = liblinearutil, sp.csr_matrix(x), y
        self.kind = problem
        self.bias, self.problem = -1.0, problem(y, self.x)

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        bias = float(s.get("bias", -1))
        if bias != self.bias:
            # The problem holds the constant feature: it is made anew, outside the time that counts.
            self.bias, self.problem = bias, self.kind(self.y, self.x, bias)
        words = f"-s {s['solver']} -c {s['c']} -e {s['tol']} -B {bias} -q"
        with Timed() as timed:
            model = self.util.train(self.problem, words)
        labels = np.array(model.get_labels())
        if len(labels) == 2 and s["solver"] != 4:
            w, b = model.get_decfun()
            sign = 1.0 if labels[0] > 0 else -1.0
            return timed, Plane(sign * np.array(w), sign * b if bias > 0 else 0.0)
        w = np.ctypeslib.as_array(model.w, shape=(model.nr_feature * len(labels),)).reshape(-1, len(labels)).copy()
        return timed, w[:, np.argsort(labels)]


class Lightning:
    """Stochastic dual coordinate ascent of scikit-learn-contrib's lightning."""

    package = "sklearn-contrib-lightning"

    def __init__(self, x: Samples, y: Floats) -> None:
        from lightning.classification import SDCAClassifier

        self.kind, self.x, self.y = SDCAClassifier, x, y

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        loss = {"squared": "squared_hinge", "hinge": "hinge"}[s["loss"]]
        # It minimises the mean loss plus alpha/2 |w|², with half of the squared hinge.
        alpha = 1 / (s["c"] * len(self.y) * (2 if s["loss"] == "squared" else 1))
        machine = self.kind(alpha=alpha, loss=loss, tol=s["tol"], max_iter=1000, random_state=0)
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, Plane(machine.coef_.ravel())


class Snapml:
    """IBM's Snap ML, on all cores."""

    package = "snapml"

    def __init__(self, x: Samples, y: Floats) -> None:
        from snapml import SupportVectorMachine

        self.kind, self.x, self.y = SupportVectorMachine, x.astype(np.float32), y

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        loss = {"squared": "squared_hinge", "hinge": "hinge"}[s["loss"]]
        machine = self.kind(
            loss=loss, regularizer=1 / s["c"], tol=s["tol"], max_iter=1000, n_jobs=os.cpu_count(), fit_intercept=False
        )
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, Plane(np.asarray(machine.coef_, float).ravel())


def dense(x: Samples) -> Floats:
    """Rows as oneDAL is quickest with them, as long as that is not large."""
    small = not isinstance(x, np.ndarray) and 8 * x.shape[0] * x.shape[1] < 2**30
    return x.toarray() if small else x


class Libsvm:
    """LIBSVM inside scikit-learn."""

    package = "scikit-learn"

    def __init__(self, x: Samples, y: Floats) -> None:
        from sklearn.svm import SVC

        self.kind, self.x, self.y = SVC, dense(x), y

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        machine = self.kind(kernel="rbf", C=s["c"], gamma=s["gamma"], tol=s["tol"], cache_size=1000)
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, machine


class LinearSvc:
    """LIBLINEAR inside scikit-learn, one class against all others, with its defaults."""

    package = "scikit-learn"

    def __init__(self, x: Samples, y: Floats) -> None:
        from sklearn.svm import LinearSVC

        self.kind, self.x, self.y = LinearSVC, dense(x), y

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        machine = self.kind(C=s["c"], tol=s["tol"])
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, machine


class Onedal(Libsvm):
    """oneDAL through scikit-learn-intelex."""

    package = "scikit-learn-intelex"

    def __init__(self, x: Samples, y: Floats) -> None:
        from sklearnex.svm import SVC

        self.kind, self.x, self.y = SVC, dense(x), y


class Search:
    """GridSearchCV over LIBSVM, one process."""

    package = "scikit-learn"
    patched: ClassVar[bool] = False

    def __init__(self, x: Samples, y: Floats) -> None:
        if self.patched:
            from sklearnex import patch_sklearn

            patch_sklearn(verbose=False)
        from sklearn.model_selection import GridSearchCV
        from sklearn.svm import SVC

        self.kind, self.svc, self.x, self.y = GridSearchCV, SVC, x, y

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        grid = {"C": s["costs"], "gamma": s["gammas"]}
        search = self.kind(self.svc(), grid, cv=5)
        with Timed() as timed:
            search.fit(self.x, self.y)
        return timed, search


class OnedalSearch(Search):
    """GridSearchCV over oneDAL."""

    package = "scikit-learn-intelex"
    patched = True


class Reader:
    """scikit-learn's reader of LIBSVM text."""

    package = "scikit-learn"

    def __init__(self, x: Samples, y: Floats) -> None:
        from sklearn.datasets import load_svmlight_file

        self.read = load_svmlight_file

    def fit(self, s: dict[str, Any]) -> tuple[Timed, Any]:
        """One fit."""
        with Timed() as timed:
            self.read(s["file"])
        return timed, None


PROGRAMS: dict[str, Any] = {
    "liblinear": Liblinear,
    "lightning": Lightning,
    "snapml": Snapml,
    "libsvm": Libsvm,
    "linearsvc": LinearSvc,
    "onedal": Onedal,
    "search": Search,
    "onedal-search": OnedalSearch,
    "reader": Reader,
}


def accuracy(predicted: Any, answers: Floats) -> float:
    """Share of right answers."""
    return float((np.asarray(predicted) == answers).mean())


def judge_linear(plane: Plane, s: dict[str, Any], data: Data) -> dict[str, Any]:
    """Objective and accuracy of a linear machine."""
    return {
        "objective": linear_objective(plane, data.x, data.y, s["c"], s["loss"]),
        "accuracy": accuracy(np.where(plane.scores(data.tests) > 0, 1, -1), data.answers),
    }


def judge_classes(weights: Floats, s: dict[str, Any], data: Data) -> dict[str, Any]:
    """Objective and accuracy of Crammer and Singer's machine."""
    classes = np.unique(data.y)
    return {
        "objective": classes_objective(weights, classes, data.x, data.y, s["c"]),
        "accuracy": accuracy(classes[np.asarray(data.tests @ weights).argmax(axis=1)], data.answers),
    }


def judge_kernel(found: Any, s: dict[str, Any], data: Data) -> dict[str, Any]:
    """Objective, accuracy, support rows and time to predict of a kernel machine."""
    with Timed() as timed:
        predicted = found.predict(dense(data.tests))
    support, c = np.asarray(found.support_vectors_), np.asarray(found.dual_coef_).ravel()
    x = dense(data.x)
    gamma = 1 / (x.shape[1] * x.var()) if s["gamma"] == "scale" else s["gamma"]
    scores = kernel_scores(support, c, gamma, x)
    norm2 = float(c @ scores[np.asarray(found.support_)])
    short = np.maximum(0, 1 - data.y * (scores + float(np.ravel(found.intercept_)[0])))
    return {
        "objective": 0.5 * norm2 + s["c"] * float(short.sum()),
        "accuracy": accuracy(predicted, data.answers),
        "support": len(c),
        "predict": {"wall": timed.wall, "cpu": timed.cpu},
    }


def judge_predictions(found: Any, s: dict[str, Any], data: Data) -> dict[str, Any]:
    """Accuracy and time to predict of a machine of many classes."""
    with Timed() as timed:
        predicted = found.predict(dense(data.tests))
    return {
        "accuracy": accuracy(predicted, data.answers),
        "support": len(found.support_) if hasattr(found, "support_") else None,
        "predict": {"wall": timed.wall, "cpu": timed.cpu},
    }


def judge_search(found: Any, s: dict[str, Any], data: Data) -> dict[str, Any]:
    """Accuracy of the best point, fitted on all rows, on those held out."""
    return {"accuracy": accuracy(found.predict(dense(data.tests)), data.answers)}


JUDGES = {
    "linear": judge_linear,
    "classes": judge_classes,
    "kernel": judge_kernel,
    "predicts": judge_predictions,
    "search": judge_search,
}


@dataclasses.dataclass
class Data:
    """Rows to train on and rows held out."""

    x: Samples
    y: Floats
    tests: Samples
    answers: Floats

    def stored(self) -> int:
        """Number of stored values."""
        return self.x.size if isinstance(self.x, np.ndarray) else self.x.nnz

    def held(self) -> int:
        """Bytes of the training rows."""
        parts = [self.x] if isinstance(self.x, np.ndarray) else [self.x.data, self.x.indices, self.x.indptr]
        return sum(part.nbytes for part in parts)


def say(answer: dict[str, Any]) -> None:
    """Answers."""
    print(json.dumps(answer), flush=True)


def answer_to(settings: dict[str, Any], machine: Any, data: Data, base: int) -> dict[str, Any]:
    """Fits once. What the interpreter and its libraries take, `base`, is not the program's doing."""
    timed, found = machine.fit(settings)
    # LIBLINEAR has a copy of its own: 16 bytes a value and a row's end. Others work on ours.
    copied = isinstance(machine, Liblinear)
    held = 16 * (data.stored() + 2 * len(data.y)) if copied else data.held()
    answer = {"wall": timed.wall, "cpu": timed.cpu, "memory": held + max(0, timed.memory - base)}
    judge = JUDGES.get(settings["kind"])
    return {**answer, **(judge(found, settings, data) if judge else {})}


def main() -> None:
    """Loads, says that it is ready, and fits as often as it is asked."""
    program, folder = sys.argv[1:]
    try:
        data = Data(*load(folder, "train"), *load(folder, "test"))
        kind = PROGRAMS[program]
        machine = kind(data.x, data.y)
        base = resident("VmRSS:")
        say({"ready": importlib.metadata.version(kind.package), "package": kind.package})
    except Exception as error:
        # Whatever it is, the benchmark has to say so and go on.
        say({"error": f"{type(error).__name__}: {error}"})
        return
    for line in sys.stdin:
        try:
            say(answer_to(json.loads(line), machine, data, base))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


main()
