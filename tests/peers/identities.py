"""Identities with other programs: the same problem, posed twice, must have the same optimum.

    python identities.py PROGRAM [NAME…]

PROGRAM is the widemargin binary; with NAMEs only the checks whose name contains one of them run. Each check is printed
with what was measured and what is allowed; the last line counts them.

Tolerances. We solve to a relative duality gap of 1e-9, the peers to 1e-8 or as far as they go. Objectives are recomputed
here from the weights, scores or dual variables that each program gives, and may differ by 1e-6 relatively (OBJECTIVE);
ours must also be what the program reports, to 1e-9 (REPORTED), and no peer may find a point below the dual objective
that we report. Of LIBSVM the dual objective is taken: it keeps its kernel matrix in single precision, which its primal
objective shows in the sixth digit. LIBLINEAR's -s 3 gives up after a fixed number of passes, so its C is kept small and
larger ones are checked against a box-constrained dual solved by scipy. All objectives are 1-strongly convex in w, so a relative gap g of an
objective P leaves decision values uncertain by sqrt(2 g P k(x, x)): they may differ by 1e-4 (VALUES), and by 1e-7
where both sides solve one linear system (EXACT).
"""

import ctypes
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from liblinear.liblinearutil import predict as liblinear_predict
from liblinear.liblinearutil import save_model as liblinear_save
from liblinear.liblinearutil import train as liblinear_train
from libsvm.svm import gen_svm_nodearray, libsvm
from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR

OBJECTIVE, REPORTED, VALUES, EXACT = 1e-6, 1e-9, 1e-4, 1e-7
TOL = "1e-9"

# ── running the program ──────────────────────────────────────────────────────────────────────────────────────────────


class Program:
    """The widemargin binary, in a folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder, self.count = Path(path).resolve(), Path(folder), 0

    def run(self, *words):
        done = subprocess.run([self.path, *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"widemargin {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def write(self, x, y, name=None):
        """Writes rows as LIBSVM text, every number to its last bit."""
        self.count += 1
        name = name or f"data{self.count}.libsvm"
        rows = (
            f"{int(label)} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(row) if v != 0.0)
            for row, label in zip(x, y)
        )
        (self.folder / name).write_text("\n".join(rows) + "\n")
        return name

    def fit(self, x, y, machine, bias="none", weights=None, **options):
        """Trains and scores the training rows; hands back what training reports, with scores and arrays added."""
        data = self.write(x, y)
        model, scores = self.folder / f"{data}.model", self.folder / f"{data}.scores"
        words = ["train", data, model, "--machine", machine, "--bias", bias, "--tol", TOL, "--json", "--quiet"]
        words += ["--features", x.shape[1]]
        if weights is not None:
            (self.folder / f"{data}.weights").write_text("".join(f"{w!r}\n" for w in map(float, weights)))
            words += ["--weights", self.folder / f"{data}.weights"]
        for name, value in options.items():
            words.append(f"--{name.replace('_', '-')}={value!r}" if isinstance(value, float) else
                         f"--{name.replace('_', '-')}={value}")
        report = json.loads(self.run(*words))
        self.run("predict", data, model, self.folder / "labels.txt", "--scores", scores, "--quiet",
                 "--features", x.shape[1])
        report["scores"] = np.loadtxt(scores, ndmin=1)
        report["arrays"] = arrays(model)
        return report

    def embedded(self, name, numbered=False):
        """A set inside the program, features scaled to [0, 1]; the larger label is +1, or labels are 0, 1, 2, …"""
        self.run("convert", name, f"{name}.libsvm", "--quiet")
        lines = [line.split() for line in (self.folder / f"{name}.libsvm").read_text().splitlines()]
        pairs = [[pair.split(":") for pair in line[1:]] for line in lines]
        x = np.zeros((len(lines), max(int(j) for row in pairs for j, _ in row)))
        for i, row in enumerate(pairs):
            for j, value in row:
                x[i, int(j) - 1] = float(value)
        low, high = x.min(axis=0), x.max(axis=0)
        labels = sorted({line[0] for line in lines})
        y = np.array([1.0 if line[0] == labels[-1] else -1.0 for line in lines])
        if numbered:
            y = np.array([float(labels.index(line[0])) for line in lines])
        return (x - low) / np.where(high > low, high - low, 1.0), y


def arrays(path):
    """The arrays of a model file (safetensors), by name."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header.pop("__metadata__")
    kinds = {"F32": "<f4", "F64": "<f8", "U32": "<u4", "U64": "<u8"}
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = np.frombuffer(body[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return found


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Counter:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, measured, allowed):
        good = bool(measured <= allowed)
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print(f"{'ok    ' if good else 'FAILED'}  {what}: {measured:.1e} (allowed {allowed:.0e})", flush=True)

    def objective(self, what, ours, theirs, reported):
        """Both objectives recomputed here, and what the program said of its own."""
        self.check(f"{what}: objectives", abs(ours - theirs) / abs(theirs), OBJECTIVE)
        self.check(f"{what}: reported objective", abs(ours - reported["objective"]) / abs(ours), REPORTED)
        # No point can lie below the dual objective, whoever finds it.
        self.check(f"{what}: certificate holds", (reported["dual_objective"] - theirs) / abs(theirs), 1e-9)

    def values(self, what, ours, theirs, allowed=VALUES):
        self.check(f"{what}: decision values", np.max(np.abs(ours - theirs)) / max(1.0, np.max(np.abs(theirs))), allowed)


# ── the formulas, written again ──────────────────────────────────────────────────────────────────────────────────────


def hinge(margins):
    return np.maximum(0, 1 - margins)


def band(margins, c1, c2, d):
    return c1 * np.maximum(0, 1 - d - margins) ** 2 + c2 * np.maximum(0, margins - 1 - d) ** 2


def insensitive(margins, epsilon):
    return np.maximum(0, np.abs(1 - margins) - epsilon)


def linear_point(report, bias):
    """(‖w‖² as it is regularised, scores) of one of our linear models."""
    weights, intercept = report["arrays"]["weights"][0], report["arrays"]["intercepts"][0]
    norm2 = weights @ weights
    if bias not in ("none", "free"):
        norm2 += (intercept / float(bias)) ** 2
    return norm2, report["scores"]


def liblinear_point(x, y, options, bias, free=False):
    """(‖w‖² as it is regularised, scores) of LIBLINEAR's model on the same rows."""
    flags = f"-q {options}" + (f" -B {bias}" if bias > 0 else "") + (" -R" if free else "")
    model = liblinear_train(y, x, flags)
    w, b = model.get_decfun(0)
    w = np.array(w)
    norm2 = w @ w + ((b / bias) ** 2 if bias > 0 and not free else 0.0)
    return norm2, x @ w + b


def liblinear_best(objective, x, y, options, bias, tries=5):
    """The lowest objective of several runs: -s 3 goes through the rows in random order and stops after 300 passes."""
    return min(objective(liblinear_point(x, y, options, bias)) for _ in range(tries))


def libsvm_predict(x, model):
    """Labels and decision values of every pair. LIBSVM's own svm_predict keeps room for one value of a -s 1 model and
    writes those of all pairs, past the end of it with more than two classes."""
    values = (ctypes.c_double * (model.get_nr_class() * (model.get_nr_class() - 1) // 2))()
    found = [(libsvm.svm_predict_values(model, gen_svm_nodearray(row)[0], values), list(values)) for row in x]
    return [label for label, _ in found], [pairs for _, pairs in found]


def libsvm_dual(peer, gram, y=None, epsilon=0.0):
    """The dual objective of scikit-learn's SVC, or of its SVR on the labels `y`."""
    a = np.zeros(len(gram))
    a[peer.support_] = peer.dual_coef_[0]
    gain = np.abs(a).sum() if y is None else y @ a - epsilon * np.abs(a).sum()
    return gain - 0.5 * a @ gram @ a


def box_dual(h, shift, upper):
    """`max Σ α − ½ (α + shift)ᵀ H (α + shift)` over the box `0 ≤ α ≤ upper`."""

    def value(a):
        product = h @ (a + shift)
        return 0.5 * (a + shift) @ product - a.sum(), product - 1

    found = minimize(value, upper / 2, jac=True, bounds=[(0, u) for u in upper], method="L-BFGS-B",
                     options=dict(maxiter=50000, maxfun=100000, ftol=1e-16, gtol=1e-9, maxcor=50))
    return -found.fun


def kernel_matrix(x, z, kind, gamma, degree=3, coef0=0.0):
    if kind == "rbf":
        return np.exp(-gamma * ((x[:, None, :] - z[None, :, :]) ** 2).sum(axis=2))
    return (gamma * x @ z.T + coef0) ** degree


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def blobs(m, d, seed, overlap=1.0):
    """Two overlapping classes; the first row is of class +1, so that LIBLINEAR and LIBSVM take +1 for positive."""
    random = np.random.default_rng(seed)
    y = np.where(random.random(m) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    x = random.normal(size=(m, d)) + np.outer(y, random.normal(size=d)) * overlap / np.sqrt(d)
    return x, y


def sparse(m, d, seed):
    """Few non-zeros a row, more features than rows."""
    random = np.random.default_rng(seed)
    x = np.where(random.random((m, d)) < 0.03, random.normal(size=(m, d)), 0.0)
    x[0, -1] = 1.0
    y = np.where(x @ random.normal(size=d) + 0.3 * random.normal(size=m) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return x, y


def positive_first(x, y):
    order = np.argsort(-y, kind="stable")
    return x[order], y[order]


# ── the checks ───────────────────────────────────────────────────────────────────────────────────────────────────────


def sets(program):
    yield "wdbc", *positive_first(*program.embedded("wdbc"))
    yield "sonar", *positive_first(*program.embedded("sonar"))
    yield "blobs", *blobs(200, 5, 1)
    yield "sparse", *sparse(120, 300, 2)


def linear_svm(program, counter):
    """svm is LIBLINEAR -s 3 (without intercept, and with the constant feature B) and LIBSVM -t 0 (free intercept)."""
    for name, x, y in sets(program):
        for c, bias in [(0.1, "none"), (0.1, "1.0"), (0.05, "0.5")]:
            what = f"svm, {name}, C {c}, bias {bias}"
            ours = program.fit(x, y, "svm", bias=bias, c=c)
            objective = lambda point: 0.5 * point[0] + c * hinge(y * point[1]).sum()
            constant = -1 if bias == "none" else float(bias)
            theirs = liblinear_best(objective, x, y, f"-s 3 -c {c} -e 1e-8", constant)
            counter.objective(what, objective(linear_point(ours, bias)), theirs, ours)
        for c, bias in [(1.0, "none"), (0.5, "2.5")]:
            what = f"svm, {name}, C {c}, bias {bias}, box dual"
            ours = program.fit(x, y, "svm", bias=bias, c=c)
            norm2, scores = linear_point(ours, bias)
            gram = x @ x.T + (0.0 if bias == "none" else float(bias) ** 2)
            theirs = box_dual(gram * np.outer(y, y), 0.0, np.full(len(y), c))
            counter.objective(what, 0.5 * norm2 + c * hinge(y * scores).sum(), theirs, ours)
        c = 1.0
        ours = program.fit(x, y, "svm", bias="free", c=c)
        theirs = libsvm_dual(SVC(kernel="linear", C=c, tol=1e-9, cache_size=500).fit(x, y), x @ x.T)
        norm2, scores = linear_point(ours, "free")
        counter.objective(f"svm, {name}, C {c}, bias free", 0.5 * norm2 + c * hinge(y * scores).sum(), theirs, ours)


def squared_svm(program, counter):
    """l2svm is LIBLINEAR -s 1 (dual) and -s 2 (primal), also with an intercept that is not regularised (-R)."""
    for name, x, y in sets(program):
        for solver, c, bias in [(1, 0.1, "none"), (2, 1.0, "none"), (2, 1.0, "1.5"), (2, 0.3, "free")]:
            what = f"l2svm, {name}, -s {solver}, C {c}, bias {bias}"
            ours = program.fit(x, y, "l2svm", bias=bias, c=c)
            constant = {"none": -1, "free": 1}.get(bias) or float(bias)
            theirs = liblinear_point(x, y, f"-s {solver} -c {c} -e 1e-8", constant, free=bias == "free")
            objective = lambda point: 0.5 * point[0] + c * (hinge(y * point[1]) ** 2).sum()
            counter.objective(what, objective(linear_point(ours, bias)), objective(theirs), ours)
            counter.values(what, ours["scores"], theirs[1])


def odm_is_regression(program, counter):
    """odm with C1 = C2 and D = ε is L2-loss support vector regression on the labels, LIBLINEAR -s 11/12 with C = C1/m."""
    for name, x, y in sets(program):
        for solver, c1, epsilon, bias in [(11, 10.0, 0.2, "none"), (12, 2.0, 0.1, "none"), (11, 50.0, 0.4, "2.0"),
                                          (11, 20.0, 0.0, "none"), (11, 5.0, 0.3, "free")]:
            what = f"odm, {name}, -s {solver}, C1 = C2 = {c1}, D {epsilon}, bias {bias}"
            ours = program.fit(x, y, "odm", bias=bias, c1=c1, c2=c1, d=epsilon)
            constant = {"none": -1, "free": 1}.get(bias) or float(bias)
            flags = f"-s {solver} -c {c1 / len(y)!r} -p {epsilon} -e 1e-8"
            theirs = liblinear_point(x, y, flags, constant, free=bias == "free")
            objective = lambda point: 0.5 * point[0] + band(y * point[1], c1, c1, epsilon).mean()
            counter.objective(what, objective(linear_point(ours, bias)), objective(theirs), ours)
            counter.values(what, ours["scores"], theirs[1])


def kernel_svm(program, counter):
    """svm and svr over kernels, with a free intercept, are LIBSVM's C-SVC and (on the labels) ε-SVR."""
    for name, x, y in [("wdbc", *positive_first(*program.embedded("wdbc"))),
                       ("sonar", *positive_first(*program.embedded("sonar"))), ("blobs", *blobs(200, 5, 1))]:
        for c, kernel in [(1.0, dict(kernel="rbf", gamma=0.5)), (20.0, dict(kernel="rbf", gamma=0.1)),
                          (0.5, dict(kernel="poly", gamma=0.2, degree=3, coef0=1.0))]:
            shape = dict(kernel)
            gram = kernel_matrix(x, x, shape.pop("kernel"), **shape)
            told = ", ".join(f"{key} {value}" for key, value in kernel.items())

            what = f"svm, {name}, C {c}, {told}"
            ours = program.fit(x, y, "svm", bias="free", c=c, **kernel)
            peer = SVC(C=c, tol=1e-9, cache_size=500, **kernel).fit(x, y)
            mine = 0.5 * ours["norm"] ** 2 + c * hinge(y * ours["scores"]).sum()
            counter.objective(what, mine, libsvm_dual(peer, gram), ours)
            counter.values(what, ours["scores"], peer.decision_function(x))

            kind = {"rbf": 2, "poly": 1}[kernel["kernel"]]
            flags = f"-q -s 0 -t {kind} -g {kernel['gamma']} -d {kernel.get('degree', 3)} -r {kernel.get('coef0', 0)}"
            values = svm_predict(y, x, svm_train(y, x, f"{flags} -c {c} -e 1e-9"), "-q")[2]
            counter.values(f"{what}, LIBSVM", ours["scores"], np.array(values)[:, 0])

            what = f"svr, {name}, C {c}, ε 0.1, {told}"
            ours = program.fit(x, y, "svr", bias="free", c=c, epsilon=0.1, **kernel)
            peer = SVR(C=c, epsilon=0.1, tol=1e-9, cache_size=500, **kernel).fit(x, y)
            mine = 0.5 * ours["norm"] ** 2 + c * insensitive(y * ours["scores"], 0.1).sum()
            counter.objective(what, mine, libsvm_dual(peer, gram, y, 0.1), ours)
            counter.values(what, ours["scores"], peer.predict(x))


def least_squares(program, counter):
    """lssvm is ridge regression on the labels: one linear system, without and with a free intercept, linear and kernel."""
    for name, x, y in sets(program):
        m, d = x.shape
        for c in (1.0, 64.0):
            ours = program.fit(x, y, "lssvm", bias="none", c=c)
            w = np.linalg.solve(np.eye(d) + 2 * c / m * x.T @ x, 2 * c / m * x.T @ y)
            theirs = 0.5 * w @ w + c * ((1 - y * (x @ w)) ** 2).mean()
            what = f"lssvm, {name}, C {c}, bias none"
            norm2, scores = linear_point(ours, "none")
            counter.objective(what, 0.5 * norm2 + c * ((1 - y * scores) ** 2).mean(), theirs, ours)
            counter.values(what, scores, x @ w, EXACT)

            gram = kernel_matrix(x, x, "rbf", 0.3)
            system = np.block([[np.zeros((1, 1)), np.ones((1, m))], [np.ones((m, 1)), gram + m / (2 * c) * np.eye(m)]])
            solution = np.linalg.solve(system, np.concatenate([[0.0], y]))
            scores = gram @ solution[1:] + solution[0]
            ours = program.fit(x, y, "lssvm", bias="free", c=c, kernel="rbf", gamma=0.3)
            counter.values(f"lssvm, {name}, C {c}, rbf, bias free", ours["scores"], scores, EXACT)


def weights_are_repetition(program, counter):
    """A row of weight s counts as s rows, and one of weight 0 as none."""
    x, y = blobs(80, 4, 3)
    weights = np.random.default_rng(4).integers(0, 4, len(y))
    weights[:2] = 1, 2
    rows = np.repeat(np.arange(len(y)), weights)
    for machine, options in [("svm", dict(c=0.7)), ("l2svm", dict(c=0.7)), ("svr", dict(c=0.5)), ("lssvm", dict(c=8.0)),
                             ("ldm", dict(lambda1=3.0, lambda2=0.5, c=0.4)),
                             ("odm-l", dict(lambda1=3.0, lambda2=0.5, c=20.0)),
                             ("odm", dict(c1=30.0, c2=5.0, d=0.3))]:
        for bias, kernel in [("none", {}), ("free", {}), ("1.5", {}), ("free", dict(kernel="rbf", gamma=0.4))]:
            what = f"weights, {machine}, bias {bias}{', rbf' if kernel else ''}"
            ours = program.fit(x, y, machine, bias=bias, weights=weights, **options, **kernel)
            repeated = program.fit(x[rows], y[rows], machine, bias=bias, **options, **kernel)
            gap = abs(ours["objective"] - repeated["objective"]) / abs(repeated["objective"])
            counter.check(f"{what}: objectives", gap, 1e-8)
            counter.values(what, ours["scores"][rows], repeated["scores"])


def class_weights(program, counter):
    """Class weights multiply C of their rows, as LIBLINEAR's -wi."""
    for name, x, y in sets(program):
        each = np.where(y > 0, 2.5, 0.4)
        for solver, machine, power in [(3, "svm", 1), (2, "l2svm", 2)]:
            c = 0.01
            ours = program.fit(x, y, machine, bias="none", c=c, class_weight="-1=0.4,1=2.5")
            objective = lambda point: 0.5 * point[0] + c * (each * hinge(y * point[1]) ** power).sum()
            theirs = liblinear_best(objective, x, y, f"-s {solver} -c {c} -e 1e-8 -w1 2.5 -w-1 0.4", -1)
            what = f"class weights, {machine}, {name}"
            counter.objective(what, objective(linear_point(ours, "none")), theirs, ours)


def notations(program, counter):
    """One machine written as another: LDM without its terms is the SVM, ODM^L is LDM, λ μ θ are C1 C2 D."""
    x, y = positive_first(*program.embedded("sonar"))
    m = len(y)
    kernel = dict(kernel="rbf", gamma=0.2)
    pairs = [
        ("ldm with λ1 = λ2 = 0 is svm", ("ldm", dict(lambda1=0.0, lambda2=0.0, c=0.8)), ("svm", dict(c=0.8))),
        ("odm-l is ldm with λ1/2, C/m", ("odm-l", dict(lambda1=4.0, lambda2=0.3, c=50.0)),
         ("ldm", dict(lambda1=2.0, lambda2=0.3, c=50.0 / m))),
        ("odm in λ, μ, θ", ("odm", {"lambda": 20.0, "mu": 0.4, "theta": 0.25}),
         ("odm", dict(c1=20.0 / 0.75**2, c2=8.0 / 0.75**2, d=0.25))),
        ("l2svm is odm with C2 = 0, D = 0, C1 = m C", ("l2svm", dict(c=0.5)), ("odm", dict(c1=0.5 * m, c2=0.0, d=0.0))),
        ("lssvm is odm with C1 = C2, D = 0", ("lssvm", dict(c=9.0)), ("odm", dict(c1=9.0, c2=9.0, d=0.0))),
    ]
    for what, (one, first), (other, second) in pairs:
        for bias in ("none", "free", "2.0"):
            for shape in ({}, kernel):
                a = program.fit(x, y, one, bias=bias, **first, **shape)
                b = program.fit(x, y, other, bias=bias, **second, **shape)
                place = f"{what}, bias {bias}{', rbf' if shape else ''}"
                counter.check(f"{place}: objectives", abs(a["objective"] - b["objective"]) / abs(b["objective"]), 1e-8)


def ldm_dual(program, counter):
    """ldm against the dual of its paper (Eq. 12), solved by scipy's L-BFGS-B in a box."""
    x, y = blobs(70, 3, 5)
    m = len(y)
    for kernel in ({}, dict(kernel="rbf", gamma=0.4)):
        gram = kernel_matrix(x, x, "rbf", 0.4) if kernel else x @ x.T
        for lambda1, lambda2, c in [(0.5, 0.1, 1.0), (20.0, 2.0, 0.3), (0.0, 1.0, 0.5)]:
            spread = 4 * lambda1 / m**2 * (m * np.eye(m) - np.outer(y, y))
            h = np.diag(y) @ gram @ np.linalg.inv(np.eye(m) + spread @ gram) @ np.diag(y)
            h = 0.5 * (h + h.T)
            theirs = box_dual(h, lambda2 / m, np.full(m, c))
            ours = program.fit(x, y, "ldm", bias="none", lambda1=lambda1, lambda2=lambda2, c=c, **kernel)
            margins = y * ours["scores"]
            mine = (0.5 * ours["norm"] ** 2 + 2 * lambda1 * margins.var() - lambda2 * margins.mean()
                    + c * hinge(margins).sum())
            what = f"ldm, {'rbf' if kernel else 'linear'}, λ1 {lambda1}, λ2 {lambda2}, C {c}"
            counter.objective(what, mine, theirs, ours)


def multi_class(program, counter):
    """mcsvm is LIBLINEAR -s 4; mcodm with two classes is odm with C1 = 2 λ/(1−θ)², C2 = μ C1, D = θ, and twice its objective."""
    for name in ("iris", "wine"):
        x, y = program.embedded(name, numbered=True)
        rows = np.arange(len(y))
        for c, bias in [(0.1, "none"), (1.0, "none"), (0.1, "1.0")]:
            ours = program.fit(x, y, "mcsvm", bias=bias, c=c)
            constant = -1 if bias == "none" else float(bias)

            def objective(weights, intercepts):
                scores = x @ weights.T + intercepts
                rivals = scores - scores[rows, y.astype(int)][:, None] + 1
                rivals[rows, y.astype(int)] = 0.0
                norm2 = (weights**2).sum() + ((intercepts / constant) ** 2).sum() * (constant > 0)
                return 0.5 * norm2 + c * rivals.max(axis=1).sum()

            # Its passes are in random order and limited: the best of three.
            theirs = np.inf
            for _ in range(3):
                model = liblinear_train(y, x, f"-q -s 4 -c {c} -e 1e-8" + (f" -B {constant}" if constant > 0 else ""))
                weights = np.array([model.get_decfun(i)[0] for i in np.argsort(model.get_labels())])
                intercepts = np.array([model.get_decfun(i)[1] for i in np.argsort(model.get_labels())])
                theirs = min(theirs, objective(weights, intercepts))
            mine = objective(ours["arrays"]["weights"], ours["arrays"]["intercepts"])
            counter.objective(f"mcsvm, {name}, C {c}, bias {bias}", mine, theirs, ours)
    x, y = program.embedded("sonar")
    for kernel in ({}, dict(kernel="rbf", gamma=0.3)):
        for bias in ("none", "free"):
            many = program.fit(x, y, "mcodm", bias=bias, **{"lambda": 8.0}, mu=0.5, theta=0.2, **kernel)
            two = program.fit(x, y, "odm", bias=bias, c1=16.0 / 0.64, c2=8.0 / 0.64, d=0.2, **kernel)
            what = f"mcodm, two classes, bias {bias}{', rbf' if kernel else ''}"
            gap = abs(2 * many["objective"] - two["objective"]) / two["objective"]
            counter.check(f"{what}: objectives", gap, 1e-8)


def foreign_models(program, counter):
    """Model files of LIBSVM and LIBLINEAR, converted, predict and score as those programs do."""

    def ours(x, model):
        program.run("convert", model, "converted.model", "--quiet")
        # Without labels, which only a score would need.
        lines = (" ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(row)) for row in x)
        (program.folder / "rows.libsvm").write_text("\n".join(lines) + "\n")
        program.run("predict", "rows.libsvm", "converted.model", "labels.txt", "--scores", "scores.txt", "--quiet")
        return np.loadtxt(program.folder / "labels.txt"), np.loadtxt(program.folder / "scores.txt")

    def check(what, x, labels, values, model, order):
        found, scores = ours(x, model)
        counter.check(f"{what}: labels", np.sum(found != labels), 0)
        if len(order) == 2 and values is not None:
            # Theirs are of the class met first, ours of the larger label.
            theirs = np.array(values)[:, 0] * (1 if order[0] > order[1] else -1)
            counter.values(what, scores[:, 1] - scores[:, 0] if scores.ndim == 2 else scores, theirs, EXACT)

    for name, numbered in [("sonar", False), ("wine", True), ("iris", True)]:
        x, y = program.embedded(name, numbered)
        for turned in (False, True):
            # Classes are numbered as they are met.
            order = np.argsort(-y if turned else y, kind="stable")
            x, y = x[order], y[order]
            for kernel in ("-t 0", "-t 1 -d 2 -g 0.5 -r 1", "-t 2 -g 0.7", "-t 3 -g 0.05 -r 0.1"):
                for kind in ("-s 0 -c 4", "-s 1 -n 0.2"):
                    model = svm_train(y, x, f"-q {kind} {kernel}")
                    svm_save_model(str(program.folder / "foreign.model"), model)
                    # Its file rounds the support vectors.
                    model = svm_load_model(str(program.folder / "foreign.model"))
                    labels, values = libsvm_predict(x, model)
                    what = f"LIBSVM {kind} {kernel}, {name}, labels from {y[0]:.0f}"
                    check(what, x, np.array(labels), values, "foreign.model", model.get_labels())
            for solver in range(8):
                for bias in ("", " -B 1", " -B 3"):
                    model = liblinear_train(y, x, f"-q -s {solver}{bias}")
                    liblinear_save(str(program.folder / "foreign.model"), model)
                    labels, _, values = liblinear_predict(y, x, model, "-q")
                    what = f"LIBLINEAR -s {solver}{bias}, {name}, labels from {y[0]:.0f}"
                    # Of Crammer's and Singer's two columns it gives one.
                    check(what, x, np.array(labels), values if solver != 4 else None, "foreign.model", model.get_labels())


CHECKS = [linear_svm, squared_svm, odm_is_regression, kernel_svm, least_squares, weights_are_repetition, class_weights,
          notations, ldm_dual, multi_class, foreign_models]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(sys.argv[1], folder)
        for check in CHECKS:
            if len(sys.argv) == 2 or any(name in check.__name__ for name in sys.argv[2:]):
                print(f"\n{check.__name__}: {check.__doc__}")
                check(program, counter)
    print(f"{counter.passed} passed, {counter.failed} failed")
    sys.exit(1 if counter.failed else 0)


if __name__ == "__main__":
    main()
