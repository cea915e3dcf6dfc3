"""What leave-one-out margins give away: averaged models, audits of labels, prediction sets, probabilities.

usage: left_out.py PROGRAM DATA_FOLDER average|audit|orders|sets|probability [--sets a,b,…] [--repeats N] [--rows M]
       [--out FILE.csv]

One half of each two-class set, of at most 300 rows (or M), is learnt from, the rest is for testing. Every line of the
output is one split; `summary FILE.csv` prints the table. Times are processor seconds.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.stats import wilcoxon
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

# Where the rule of averaging was chosen; the others are new to it.
CHOSEN_ON = """australian balloons biodeg breast breastw colic colic.ORIG german cylinder-bands diabetes
echocardiogram emotions fourclass haberman halloffame heart-c heart-h hepatitis hill-valley house-votes
liverDisorders pbseq planning promoters sleepdata sonar tokyo1 vehicle-bus vertebra wdbc""".split()
OTHERS = """advertise-1966 bank cod-rna colon-cancer covtype-20k credit-g heart ijcnn1 jml kc1 phishing
skin svmguide2 titanic vehicle-sb vehicle-pca16 wdbc-pca14 w8a a9a pol usps letter pendigits segment dna""".split()
AVERAGES = [
    ("odm average", "odm", "ranks"),
    ("odm average, values", "odm", "values"),
    ("lssvm average", "lssvm", "ranks"),
    ("l2svm average", "l2svm", "ranks"),
    ("svm average from folds", "svm", "ranks"),
    ("ldm average from folds", "ldm", "ranks"),
]
COSTS = 2.0 ** (-4 + 1.5 * np.arange(11))


def load(folder, name):
    """Rows and labels of two classes; of more, the commonest against the rest."""
    X, y = load_svmlight_file(str(folder / f"{name}.libsvm.gz"))
    labels, counts = np.unique(y, return_counts=True)
    y = np.where(y == labels[counts.argmax()], 1, -1) if len(labels) > 2 else np.where(y == labels[1], 1, -1)
    if X.shape[0] > 4000:
        chosen = np.random.default_rng(0).choice(X.shape[0], 4000, replace=False)
        X, y = X[chosen], y[chosen]
    return X.toarray(), y


def halves(y, repeat, rows):
    """Rows to learn from, at most so many, and to test."""
    size = min(rows, len(y) // 2)
    return train_test_split(np.arange(len(y)), train_size=size, random_state=1000 + repeat, stratify=y)


class Program:
    """The command, on files in a folder of its own."""

    def __init__(self, path):
        self.path, self.folder = path, Path(tempfile.mkdtemp())

    def __call__(self, *words):
        run = subprocess.run(
            [self.path, *map(str, words), "--threads", "1"], capture_output=True, text=True, cwd=self.folder
        )
        if run.returncode:
            raise RuntimeError(f"{words}: {run.stderr}")
        return run.stdout

    def data(self, name, X, y):
        dump_svmlight_file(X, y, str(self.folder / name), zero_based=False)


def views(A, B):
    """Features scaled to [0, 1], and their mid-ranks among the training rows, scaled likewise."""
    scaler = MinMaxScaler().fit(A)
    yield scaler.transform(A), scaler.transform(B), range(-2, 3)
    ranked = []
    for a, b in zip(A.T, B.T, strict=True):
        values, counts = np.unique(a, return_counts=True)
        ranks = np.cumsum(counts) - 0.5 * counts
        ranks = (ranks - ranks[0]) / max(ranks[-1] - ranks[0], 1e-12)
        ranked.append((np.interp(a, values, ranks), np.interp(b, values, ranks)))
    yield np.column_stack([r[0] for r in ranked]), np.column_stack([r[1] for r in ranked]), range(-1, 2)


def kernels(A, B, widths):
    """Kernels of the average: matrices of the training rows, and of test rows against them."""
    square, cross = cdist(A, A, "sqeuclidean"), cdist(B, A, "sqeuclidean")
    width = square.mean()
    centre = A.mean(axis=0)
    K = (A - centre) @ (A - centre).T
    yield K / np.trace(K) * len(A), (B - centre) @ (A - centre).T / np.trace(K) * len(A)
    for k in widths:
        gamma = 4.0**-k / (2 * width)
        yield np.exp(-gamma * square), np.exp(-gamma * cross)
    plain, across = cdist(A, A, "cityblock"), cdist(B, A, "cityblock")
    yield np.exp(-plain / (2 * plain.mean())), np.exp(-across / (2 * plain.mean()))


def slope_and_loss(scores, y):
    """The slope `a` of the least `sum ln(1 + exp(-a y f))`, and that sum."""
    margins = y * scores
    size = np.sqrt((margins**2).mean()) + 1e-12

    def loss(a):
        return np.logaddexp(0, -a * margins / size).sum() + 0.5e-3 * len(y) * a * a

    a = minimize_scalar(loss, bounds=(0, 50), method="bounded").x
    return a / size, np.logaddexp(0, -a * margins / size).sum()


def svm_points(views, y, folds):
    """Each SVM over a kernel matrix and a cost: accuracy in the folds, logistic loss there, scores of the test rows."""
    for A, B, widths in views:
        for K, T in kernels(A, B, widths):
            for C in COSTS:
                unseen = np.empty(len(y))
                for fit, judge in folds:
                    machine = SVC(C=C, kernel="precomputed").fit(K[np.ix_(fit, fit)], y[fit])
                    unseen[judge] = machine.decision_function(K[np.ix_(judge, fit)])
                slope, loss = slope_and_loss(unseen, y)
                scores = SVC(C=C, kernel="precomputed").fit(K, y).decision_function(T)
                yield np.mean((unseen > 0) == (y > 0)), loss, slope * scores


def averaged_scores(points):
    """The average of points by the rule of `tune --average`: weights `exp(-loss/3)`."""
    losses = np.array([loss for _, loss, _ in points])
    weights = np.exp(-(losses - losses.min()) / 3)
    return sum(w * scores for w, (_, _, scores) in zip(weights / weights.sum(), points, strict=True))


def average(program, X, y, train, test, seed):
    """Accuracy and processor time of the averages and of searched SVMs."""
    row = {}
    program.data("train", X[train], y[train])
    program.data("test", X[test], y[test])
    for name, machine, over in AVERAGES:
        found = json.loads(program("tune", "train", "m", f"--average={over}", "--machine", machine, "--json"))
        row[name] = json.loads(program("predict", "test", "m", "--json"))["accuracy"]
        row[f"{name} s"] = found["processor"]["search"]
    A, B, widths = next(views(X[train], X[test]))
    width = cdist(A, A, "sqeuclidean").mean()
    start = time.process_time()
    grid = {"C": COSTS, "gamma": [4.0**-k / (2 * width) for k in widths]}
    search = GridSearchCV(SVC(), grid, cv=5).fit(A, y[train])
    row["svm rbf s"] = time.process_time() - start
    row["svm rbf"] = search.score(B, y[test])
    folds = list(StratifiedKFold(5).split(A, y[train]))
    start, points = time.process_time(), []
    for name, view in zip(("seven", "twelve"), views(X[train], X[test]), strict=True):
        points += svm_points([view], y[train], folds)
        best = max(points, key=lambda point: point[0])
        row[f"svm {name}"] = np.mean((best[2] > 0) == (y[test] > 0))
        row[f"svm {name} average"] = np.mean((averaged_scores(points) > 0) == (y[test] > 0))
        row[f"svm {name} s"] = row[f"svm {name} average s"] = time.process_time() - start
    return row


def flip_a_tenth(labels, seed):
    """Which labels are flipped, and all of them then."""
    flipped = np.random.default_rng(seed).random(len(labels)) < 0.1
    return flipped, np.where(flipped, -labels, labels)


def score_suspicion(row, flipped, name, suspicion):
    """Writes how well an order of the rows finds the flipped ones: precision at their number, AUC."""
    row[f"{name} precision"] = flipped[np.argsort(-suspicion, kind="stable")[: flipped.sum()]].mean()
    row[f"{name} auc"] = roc_auc_score(flipped, suspicion)


def audit(program, X, y, train, test, seed):
    """How well a tenth of flipped labels is found again: precision at their number, AUC."""
    flipped, labels = flip_a_tenth(y[train], seed)
    k, row = int(flipped.sum()), {}
    if k in (0, len(train)):
        return row
    score = partial(score_suspicion, row, flipped)

    program.data("noisy", X[train], labels)
    found = json.loads(program("audit", "noisy", "--json"))
    suspicion = np.zeros(len(train))
    suspicion[[s["row"] - 1 for s in found["suspects"]]] = np.arange(len(train), 0, -1)
    score("audit", suspicion)
    row["expected"], row["flipped"] = found["expected_wrong"], k
    # What the same model would find that had learnt from the right labels: more than that lies in no order of its rows.
    program.data("right", X[train], y[train])
    right = np.zeros(len(train))
    for suspect in json.loads(program("audit", "right", "--json"))["suspects"]:
        right[suspect["row"] - 1] = suspect["label_probability"]
    score("audit taught the right labels", np.where(flipped, right, 1 - right))
    A = MinMaxScaler().fit_transform(X[train])
    others = {"svc": SVC(probability=False), "logistic": LogisticRegression(max_iter=2000)}
    from cleanlab.rank import get_label_quality_scores

    codes = (labels > 0).astype(int)
    p = cross_val_predict(others["logistic"], A, codes, cv=5, method="predict_proba")
    score("cleanlab logistic", -get_label_quality_scores(codes, p))
    from sklearn.ensemble import RandomForestClassifier

    p = cross_val_predict(RandomForestClassifier(random_state=0), A, codes, cv=5, method="predict_proba")
    score("cleanlab forest", -get_label_quality_scores(codes, p))
    f = cross_val_predict(others["svc"], A, codes, cv=5, method="decision_function")
    score("svc folds", -f * labels)
    return row


def orders(program, X, y, train, test, seed):
    """Other orders of the same rows, and models that learn again with what the first doubts."""
    flipped, labels = flip_a_tenth(y[train], seed)
    k, row = int(flipped.sum()), {}
    if k in (0, len(train)):
        return row
    score = partial(score_suspicion, row, flipped)

    def learn(weights):
        np.savetxt(program.folder / "weights", weights)
        found = {}
        for suspect in json.loads(program("audit", "noisy", "--weights", "weights", "--json"))["suspects"]:
            for key in ("label_probability", "margin", "probability"):
                found.setdefault(key, np.zeros(len(train)))[suspect["row"] - 1] = suspect[key]
        return found

    program.data("noisy", X[train], labels)
    found = learn(np.ones(len(train)))
    own, share = found["label_probability"], np.where(labels > 0, (labels > 0).mean(), (labels < 0).mean())
    mean = np.where(labels > 0, own[labels > 0].mean(), own[labels < 0].mean())
    odds = np.log(np.maximum(own, 1e-9) / np.maximum(1 - own, 1e-9))
    score("probability", -own)
    score("margin", -found["margin"])
    score("less the class's mean", mean - own)
    score("odds over those of the share", np.log(share / (1 - share)) - odds)
    once = learn(np.maximum(1 - found["probability"], 0.05))
    score("weighted once", -once["label_probability"])
    score("weighted twice", -learn(np.maximum(1 - once["probability"], 0.05))["label_probability"])
    score("without", -learn(np.where(found["probability"] > 0.5, 0.02, 1))["label_probability"])
    return row


def sets(program, X, y, train, test, seed):
    """Coverage and mean size of prediction sets at 90 %, beside split conformal prediction with the same machine."""
    row = {}
    program.data("train", X[train], y[train])
    program.data("test", X[test], y[test])
    first, second = train_test_split(train, train_size=0.5, random_state=seed, stratify=y[train])
    program.data("first", X[first], y[first])
    program.data("second", X[second], y[second])
    own = (y[test] > 0).astype(int)

    def score(name, chosen):
        held = chosen[np.arange(len(own)), own]
        row[f"{name} coverage"] = held.mean()
        row[f"{name} of the class least covered"] = min(held[own == c].mean() for c in (0, 1))
        row[f"{name} size"] = chosen.sum(axis=1).mean()

    program("tune", "train", "m", "--average")
    for name, words in (("left out", []), ("left out, by class", ["--per-class"])):
        program("predict", "test", "m", "out", "--coverage", "0.9", "--sets", "sets", *words)
        inside = [line.split() for line in (program.folder / "sets").read_text().splitlines()]
        score(name, np.array([[label in labels for label in ("-1", "1")] for labels in inside]))
    # Split conformal: half of the rows to learn from, the other half to calibrate on, never an empty set either.
    program("tune", "first", "h", "--average")
    held = {}
    for name in ("second", "test"):
        program("predict", name, "h", "out", "--probabilities", "p")
        held[name] = np.loadtxt(program.folder / "p", skiprows=1)
    misfit = np.sort(1 - held["second"][np.arange(len(second)), (y[second] > 0).astype(int)])
    place = int(np.ceil((len(second) + 1) * 0.9)) - 1
    limit = misfit[place] if place < len(misfit) else 1.0
    p = held["test"]
    score("split", (1 - p <= limit) | (p == p.max(axis=1, keepdims=True)))
    scaler = MinMaxScaler().fit(X[train])
    of = [(scaler.transform(X[part]), (y[part] > 0).astype(int)) for part in (train, first, second)]
    for name, found in mapie_sets(*of, scaler.transform(X[test])):
        score(name, found)
    return row


def mapie_sets(train, first, second, X):
    """Sets of MAPIE over an SVC with probabilities, split and by five folds, the label that it predicts in them too."""
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
    from sklearn.calibration import CalibratedClassifierCV

    peer = CalibratedClassifierCV(SVC(), ensemble=False)
    split = SplitConformalClassifier(peer.fit(*first), confidence_level=0.9, prefit=True).conformalize(*second)
    cross = CrossConformalClassifier(peer, confidence_level=0.9, cv=5).fit_conformalize(*train)
    for name, machine in (("mapie split", split), ("mapie folds", cross)):
        labels, found = machine.predict_set(X)
        yield name, found[:, :, 0] | (labels[:, None] == np.array([0, 1]))


def probability(program, X, y, train, test, seed):
    """Log loss and expected calibration error of probabilities, plain and with balanced classes."""
    row = {"share": (y[test] > 0).mean()}
    program.data("train", X[train], y[train])
    program.data("test", X[test], y[test])

    def score(name, p):
        own = np.clip(np.where(y[test] > 0, p, 1 - p), 1e-12, 1)
        row[f"{name} loss"] = -np.log(own).mean()
        bins = np.minimum((10 * p).astype(int), 9)
        gaps = [abs((p - (y[test] > 0))[bins == b].sum()) for b in range(10)]
        row[f"{name} ece"] = sum(gaps) / len(p)

    def learn(name, *words):
        program(*words)
        program("predict", "test", "m", "out", "--probabilities", "p")
        score(name, np.loadtxt(program.folder / "p", skiprows=1)[:, 1])

    for machine in ("odm", "svm"):
        words = ["train", "train", "m", "--machine", machine, "--kernel", "rbf", "--scale", "minmax"]
        learn(f"{machine} equal", *words, "--probability")
        learn(f"{machine} balanced", *words, "--probability", "--class-weight", "balanced")
        learn(f"{machine} isotonic", *words, "--probability=isotonic")
    learn("average", "tune", "train", "m", "--average")
    learn("average isotonic", "tune", "train", "m", "--average", "--probability=isotonic")
    from sklearn.calibration import CalibratedClassifierCV

    A = MinMaxScaler().fit(X[train])
    for method in ("sigmoid", "isotonic"):
        peer = CalibratedClassifierCV(SVC(), method=method, cv=5).fit(A.transform(X[train]), y[train])
        score(f"scikit-learn {method}", peer.predict_proba(A.transform(X[test]))[:, 1])
    return row


def summary(path):
    """Means over the sets, each the mean of its splits, and Wilcoxon's test of the accuracies."""
    with open(path) as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name not in ("set", "repeat", "new")]
    for group in ("all", "new"):
        chosen = [row for row in rows if group == "all" or row["new"] == "1"]
        names = sorted({row["set"] for row in chosen})
        if not names:
            continue
        values = np.array(
            [[np.mean([float(r[c]) for r in chosen if r["set"] == n and r[c]]) for c in columns] for n in names]
        )
        print(f"{group}: {len(names)} sets, {len(chosen)} splits")
        for column, mean in zip(columns, np.nanmean(values, axis=0)):
            print(f"  {column:28s} {mean:.4f}")
        place = {name: at for at, name in enumerate(columns)}
        for peer in [column for column in place if column != "odm average"]:
            if "odm average" in place:
                gain = 100 * (values[:, place["odm average"]] - values[:, place[peer]])
                p = wilcoxon(gain).pvalue if np.any(gain) else 1.0
                won, lost = np.sum(gain > 0), np.sum(gain < 0)
                print(f"  odm average − {peer}: {gain.mean():+.2f} points, {won} won, {lost} lost, p = {p:.4f}")


def main():
    """Run a study, a line a split; what a file has already is not run again."""
    if len(sys.argv) == 3 and sys.argv[1] == "summary":
        return summary(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("data", type=Path)
    parser.add_argument("study", choices=["average", "audit", "orders", "sets", "probability"])
    parser.add_argument("--sets", default=",".join([*OTHERS, *CHOSEN_ON]))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    program, done = Program(args.program), set()
    if args.out.exists():
        with args.out.open() as file:
            done = {(row["set"], row["repeat"]) for row in csv.DictReader(file)}
    for repeat in range(args.repeats):
        for name in args.sets.split(","):
            if (name, str(repeat)) in done:
                continue
            X, y = load(args.data, name)
            train, test = halves(y, repeat, args.rows)
            try:
                found = globals()[args.study](program, X, y, train, test, repeat)
            except (RuntimeError, ValueError) as error:
                print(f"{name} {repeat}: {error}", file=sys.stderr)
                continue
            row = {"set": name, "repeat": repeat, "new": int(name in OTHERS), **found}
            with args.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
            print(name, repeat, {key: round(float(value), 4) for key, value in found.items()}, flush=True)
    return None


if __name__ == "__main__":
    main()
