"""Scores of the command line against scikit-learn's, and searches that go by them."""

import json
import subprocess

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import widemargin
from widemargin import ODMClassifier, SVMClassifier, to_onnx, tune


def libsvm(path, X, y):
    lines = [f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist())) for row, label in zip(X, y)]
    path.write_text("\n".join(lines) + "\n")


def run(command, *words):
    done = subprocess.run([command, *map(str, words), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_are_those_of_scikit_learn(command, classes, tmp_path):
    X, y = make_classification(
        300,
        8,
        n_informative=6,
        n_classes=classes,
        weights={2: [0.7], 4: [0.5, 0.3, 0.1]}[classes],
        flip_y=0.2,
        random_state=classes,
    )
    libsvm(tmp_path / "train.libsvm", X[:150], y[:150])
    libsvm(tmp_path / "test.libsvm", X[150:], y[150:])
    model = tmp_path / "model"
    run(command, "train", tmp_path / "train.libsvm", model, "--probability")
    report = run(command, "predict", tmp_path / "test.libsvm", model, tmp_path / "out", "--scores", tmp_path / "scores")
    clf = widemargin.load(model)
    clf.probability = True
    truth, predicted = y[150:], np.loadtxt(tmp_path / "out").astype(int)
    assert np.array_equal(predicted, clf.predict(X[150:]))
    scores, probabilities = np.loadtxt(tmp_path / "scores"), clf.predict_proba(X[150:])
    found = report["scores"]
    two = classes == 2
    scores = scores[:, 1] - scores[:, 0] if two and scores.ndim == 2 else scores
    mean = {} if two else {"average": "macro"}
    if two:
        auc, precision = metrics.roc_auc_score(truth, scores), metrics.average_precision_score(truth, scores)
    else:
        each = [(truth == c, scores[:, c]) for c in range(classes)]
        auc = np.mean([metrics.roc_auc_score(*pair) for pair in each])
        precision = np.mean([metrics.average_precision_score(*pair) for pair in each])
    expected = {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "majority": np.bincount(truth).max() / len(truth),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, predicted),
        "f1": metrics.f1_score(truth, predicted, **mean),
        "precision": metrics.precision_score(truth, predicted, zero_division=0, **mean),
        "recall": metrics.recall_score(truth, predicted, **mean),
        "auc": auc,
        "average_precision": precision,
        "log_loss": metrics.log_loss(truth, probabilities),
        "brier": metrics.brier_score_loss(truth, probabilities[:, 1] if two else probabilities),
    }
    assert found == pytest.approx(expected, abs=1e-12)
    assert report["confusion"]["counts"] == metrics.confusion_matrix(truth, predicted).tolist()
    table = metrics.precision_recall_fscore_support(truth, predicted, zero_division=0)
    by_class = [[c["precision"], c["recall"], c["f1"], c["rows"]] for c in report["by_class"]]
    assert np.allclose(np.array(by_class).T, np.array(table))


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "recall"])
def test_a_search_goes_by_a_score(scoring):
    X, y = make_classification(200, 6, weights=[0.8], flip_y=0.1, random_state=0)
    best = tune(SVMClassifier(kernel="linear"), X, y, grid={"C": [1e-4, 0.01, 1]}, scoring=scoring)
    results = best.search_.results
    assert results["mean_test_score"].argmax() == best.search_.best_index
    assert results["rank_test_score"][best.search_.best_index] == 1
    left_out = tune(ODMClassifier(kernel="linear"), X, y, grid={"C1": [0.1, 100]}, scoring=scoring)
    assert left_out.search_.select == "loo"
    with pytest.raises(ValueError, match="scoring = best: expected"):
        tune(SVMClassifier(), X, y, scoring="best")


def test_leave_one_out_scores_are_those_of_refits():
    X, y = make_classification(40, 4, weights=[0.7], flip_y=0.1, random_state=3)
    best = tune(ODMClassifier(kernel="linear", tol=1e-9), X, y, grid={"C1": [10.0]}, scoring="roc_auc")
    refit = ODMClassifier(kernel="linear", tol=1e-9, **best.search_.params)
    scores = [
        clone(refit).fit(np.delete(X, i, 0), np.delete(y, i)).decision_function(X[i : i + 1])[0] for i in range(40)
    ]
    assert best.search_.results["mean_test_score"][0] == pytest.approx(metrics.roc_auc_score(y, scores), abs=0.01)


def test_pipelines_are_tuned_and_exported():
    runtime = pytest.importorskip("onnxruntime")
    X, y = make_classification(120, 6, random_state=0)
    X = X * [1, 10, 100, 1e3, 1e4, 1] + 5
    for steps in ([StandardScaler()], [MinMaxScaler(), StandardScaler()], []):
        pipeline = make_pipeline(*steps, ODMClassifier())
        best = tune(pipeline, X, y, grid={"C1": [1, 100]})
        assert best[-1].C1 in (1, 100)
        assert best[-1].search_.points == 2
        session = runtime.InferenceSession(to_onnx(best).SerializeToString(), providers=["CPUExecutionProvider"])
        labels, scores = session.run(["label", "scores"], {"X": X})
        expected = best.decision_function(X)
        assert np.abs(scores - expected).max() <= 1e-9 * np.abs(expected).max()
        assert np.array_equal(labels, best.predict(X))
    with pytest.raises(ValueError, match="StandardScaler, MinMaxScaler or MaxAbsScaler"):
        to_onnx(make_pipeline(MinMaxScaler(clip=True), ODMClassifier()).fit(X, y))
    with pytest.raises(TypeError, match="estimators of widemargin"):
        to_onnx(StandardScaler().fit(X))


def test_the_command_exports_what_python_does(command, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    for classes, options in ((2, []), (3, ["--kernel", "rbf"]), (3, ["-m", "svm", "--multiclass", "ovo"])):
        X, y = make_classification(120, 6, n_informative=4, n_classes=classes, random_state=0)
        libsvm(tmp_path / "data.libsvm", X, y)
        run(command, "train", tmp_path / "data.libsvm", tmp_path / "model", "--scale", "standard", *options)
        run(command, "export", tmp_path / "model", tmp_path / "model.onnx")
        clf = widemargin.load(tmp_path / "model")
        session = runtime.InferenceSession((tmp_path / "model.onnx").read_bytes(), providers=["CPUExecutionProvider"])
        labels, scores = session.run(["label", "scores"], {"X": X})
        expected = clf.decision_function(X)
        assert np.abs(scores - expected).max() <= 1e-11 * np.abs(expected).max()
        assert np.array_equal(labels, clf.predict(X))


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_clones_scale_as_the_search_did(scale):
    X, y = make_classification(150, 6, random_state=1)
    X = X * [1, 10, 100, 1e3, 1e4, 1]
    best = tune(ODMClassifier(), X, y, grid={"C1": [1, 100]}, scale=scale)
    again = clone(best).fit(X, y)
    assert np.allclose(again.decision_function(X), best.decision_function(X), rtol=1e-6)
    assert again.scale == scale


def test_a_threshold_comes_along(command, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = make_classification(300, 6, weights=[0.9], flip_y=0.1, random_state=0)
    libsvm(tmp_path / "data.libsvm", X, y)
    report = run(command, "train", tmp_path / "data.libsvm", tmp_path / "model", "--threshold", "f1")
    subprocess.run([command, "predict", tmp_path / "data.libsvm", tmp_path / "model", tmp_path / "out"], check=True)
    clf = widemargin.load(tmp_path / "model")
    assert clf.threshold_ == report["threshold"] != 0
    expected = np.loadtxt(tmp_path / "out").astype(int)
    assert np.array_equal(clf.predict(X), expected)
    assert np.array_equal(clf.predict(X), (clf.decision_function(X) > clf.threshold_).astype(int))
    session = runtime.InferenceSession(to_onnx(clf).SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(["label"], {"X": X})[0], expected)
    assert ODMClassifier().fit(X, y).threshold_ is None
