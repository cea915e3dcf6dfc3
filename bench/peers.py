"""Another program at work: `peers.py PROGRAM FOLDER` loads a data set, then fits it once for each line of its standard
input (a JSON object of settings) and answers with a line of JSON: seconds, memory, objective, accuracy.

Only the fit is timed; objectives are computed here, by the formula that both sides minimise.
"""

import ctypes
import gc
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore")


def resident(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field):
                return 1024 * int(line.split()[1])
    return 0


def forget_peak():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def load(folder, name):
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
    def __enter__(self):
        forget_peak()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.memory = resident("VmHWM:")


# Objectives ------------------------------------------------------------------------------------------------------


def linear_objective(w, x, y, c, loss):
    short = np.maximum(0, 1 - y * (x @ w))
    return 0.5 * float(w @ w) + c * float((short**2 if loss == "squared" else short).sum())


def classes_objective(weights, classes, x, y, c):
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


def kernel_scores(support, coefficients, gamma, x, block=2048):
    """In single precision: good to five digits, which is all that is asked here."""
    support, x = np.asarray(support, np.float32), np.asarray(x, np.float32)
    coefficients = np.asarray(coefficients, np.float32)
    norms, out = (support**2).sum(axis=1), []
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

    def __init__(self, x, y):
        from liblinear import liblinearutil
        from liblinear.liblinear import problem

        self.util, self.y = liblinearutil, y
        self.problem = problem(y, sp.csr_matrix(x))

    def fit(self, s):
        words = f"-s {s['solver']} -c {s['c']} -e {s['tol']} -q"
        with Timed() as timed:
            model = self.util.train(self.problem, words)
        labels = np.array(model.get_labels())
        if len(labels) == 2 and s["solver"] != 4:
            w = np.array(model.get_decfun()[0])
            return timed, w * (1 if labels[0] > 0 else -1)
        w = np.ctypeslib.as_array(model.w, shape=(model.nr_feature * len(labels),)).reshape(-1, len(labels)).copy()
        return timed, w[:, np.argsort(labels)]


class Lightning:
    """Stochastic dual coordinate ascent of scikit-learn-contrib's lightning."""

    package = "sklearn-contrib-lightning"

    def __init__(self, x, y):
        from lightning.classification import SDCAClassifier

        self.kind, self.x, self.y = SDCAClassifier, x, y

    def fit(self, s):
        loss = {"squared": "squared_hinge", "hinge": "hinge"}[s["loss"]]
        # It minimises the mean loss plus alpha/2 |w|², with half of the squared hinge.
        alpha = 1 / (s["c"] * len(self.y) * (2 if s["loss"] == "squared" else 1))
        machine = self.kind(alpha=alpha, loss=loss, tol=s["tol"], max_iter=1000, random_state=0)
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, machine.coef_.ravel()


class Snapml:
    """IBM's Snap ML, on all cores."""

    package = "snapml"

    def __init__(self, x, y):
        from snapml import SupportVectorMachine

        self.kind, self.x, self.y = SupportVectorMachine, x.astype(np.float32), y

    def fit(self, s):
        loss = {"squared": "squared_hinge", "hinge": "hinge"}[s["loss"]]
        machine = self.kind(
            loss=loss, regularizer=1 / s["c"], tol=s["tol"], max_iter=1000, n_jobs=os.cpu_count(), fit_intercept=False
        )
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, np.asarray(machine.coef_, float).ravel()


class Libsvm:
    """LIBSVM inside scikit-learn."""

    package = "scikit-learn"

    def __init__(self, x, y):
        from sklearn.svm import SVC

        self.kind, self.x, self.y = SVC, x, y

    def fit(self, s):
        machine = self.kind(kernel="rbf", C=s["c"], gamma=s["gamma"], tol=s["tol"], cache_size=1000)
        with Timed() as timed:
            machine.fit(self.x, self.y)
        return timed, machine


class Onedal(Libsvm):
    """oneDAL through scikit-learn-intelex."""

    package = "scikit-learn-intelex"

    def __init__(self, x, y):
        from sklearnex.svm import SVC

        self.kind, self.x, self.y = SVC, x, y


class Search:
    """GridSearchCV over LIBSVM, one process."""

    package = "scikit-learn"
    patched = False

    def __init__(self, x, y):
        if self.patched:
            from sklearnex import patch_sklearn

            patch_sklearn(verbose=False)
        from sklearn.model_selection import GridSearchCV
        from sklearn.svm import SVC

        self.kind, self.svc, self.x, self.y = GridSearchCV, SVC, x, y

    def fit(self, s):
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

    def __init__(self, x, y):
        from sklearn.datasets import load_svmlight_file

        self.read = load_svmlight_file

    def fit(self, s):
        with Timed() as timed:
            self.read(s["file"])
        return timed, None


PROGRAMS = {
    "liblinear": Liblinear,
    "lightning": Lightning,
    "snapml": Snapml,
    "libsvm": Libsvm,
    "onedal": Onedal,
    "search": Search,
    "onedal-search": OnedalSearch,
    "reader": Reader,
}


def judge(found, settings, x, y, tests, answers):
    """Objective, accuracy and the like of what was found."""
    kind = settings["kind"]
    if kind == "linear":
        return {
            "objective": linear_objective(found, x, y, settings["c"], settings["loss"]),
            "accuracy": float((np.where(tests @ found > 0, 1, -1) == answers).mean()),
        }
    if kind == "classes":
        classes = np.unique(y)
        predicted = classes[np.asarray(tests @ found).argmax(axis=1)]
        return {
            "objective": classes_objective(found, classes, x, y, settings["c"]),
            "accuracy": float((predicted == answers).mean()),
        }
    if kind == "kernel":
        with Timed() as timed:
            predicted = found.predict(tests)
        support, c = np.asarray(found.support_vectors_), np.asarray(found.dual_coef_).ravel()
        scores = kernel_scores(support, c, settings["gamma"], x)
        norm2 = float(c @ scores[np.asarray(found.support_)])
        short = np.maximum(0, 1 - y * (scores + float(np.ravel(found.intercept_)[0])))
        return {
            "objective": 0.5 * norm2 + settings["c"] * float(short.sum()),
            "accuracy": float((predicted == answers).mean()),
            "support": len(c),
            "predict": {"wall": timed.wall, "cpu": timed.cpu},
        }
    if kind == "search":
        return {"accuracy": float(found.best_score_), "best": {k: float(v) for k, v in found.best_params_.items()}}
    return {}


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    program, folder = sys.argv[1:]
    try:
        x, y = load(folder, "train")
        tests, answers = load(folder, "test")
        import importlib.metadata

        kind = PROGRAMS[program]
        # What the interpreter and its libraries take is not the program's doing.
        held = sum(part.nbytes for part in ([x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]))
        machine = kind(x, y)
        base = resident("VmRSS:")
        say({"ready": importlib.metadata.version(kind.package), "package": kind.package})
    except Exception as error:  # whatever it is, the benchmark has to say so and go on
        say({"error": f"{type(error).__name__}: {error}"})
        return
    own_copy = program == "liblinear"
    for line in sys.stdin:
        settings = json.loads(line)
        try:
            timed, found = machine.fit(settings)
            # LIBLINEAR has a copy of its own: 16 bytes a value and a row's end. Others work on ours.
            count = x.size if isinstance(x, np.ndarray) else x.nnz
            data = 16 * (count + 2 * len(y)) if own_copy else held
            answer = {"wall": timed.wall, "cpu": timed.cpu, "memory": data + max(0, timed.memory - base)}
            answer.update(judge(found, settings, x, y, tests, answers))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)


main()
