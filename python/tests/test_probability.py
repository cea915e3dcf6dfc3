"""Probabilities: calibrated, the same as the command line's, and never at odds with predictions."""

import pickle
import subprocess

import numpy as np
import pytest
from conftest import ALL
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import widemargin
from widemargin import LDMClassifier, ODMClassifier, SVMClassifier


def agrees(model, X):
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(model.classes_))
    assert np.allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    return probabilities


@pytest.mark.parametrize("cls", ALL)
def test_two_classes(cls, two_classes):
    X, y = two_classes
    model = cls(probability=True).fit(X[::2], y[::2])
    probabilities = agrees(model, X)
    assert log_loss(y, probabilities) < 0.5  # guessing the shares of the classes has 0.66
    assert np.array_equal(np.log(probabilities), model.predict_log_proba(X))
    assert model.calibration_["slope"] > 0
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), probabilities)


@pytest.mark.parametrize("multi_class", ["mcodm", "ovr", "ovo", "ecoc"])
def test_three_classes(multi_class, three_classes):
    X, y = three_classes
    model = ODMClassifier(multi_class=multi_class, probability=True).fit(X[::2], y[::2])
    assert log_loss(y, agrees(model, X)) < 0.6


def test_calibrated_on_samples_left_out():
    # P(y = 1 | x) = 1/(1 + exp(-3 x)): what the model says should happen as often as it says.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = (rng.random(8000) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    for cls in (ODMClassifier, SVMClassifier, LDMClassifier):
        model = cls(kernel="linear", probability=True).fit(X[:400], y[:400])
        p = model.predict_proba(X[400:])[:, 1]
        for low in np.arange(0, 1, 0.2):
            inside = (p >= low) & (p < low + 0.2)
            assert abs(p[inside].mean() - y[400:][inside].mean()) < 0.12, cls


def test_scores_next_to_zero():
    # A score of 1e-300 has probability one half to every digit, and yet a side.
    model = SVMClassifier(kernel="linear", fit_intercept=False, probability=True)
    model.fit([[1.0], [-1.0], [2.0], [-2.0], [3.0], [-3.0]], [1, 0, 1, 0, 1, 0])
    agrees(model, np.array([[1e-300], [-1e-300], [0.0], [1e-17]]))


@pytest.mark.parametrize("machine", ["odm", "svm"])
def test_same_bytes_as_the_command(machine, command, two_classes, tmp_path):
    X, y = two_classes
    lines = [",".join([str(label), *map(repr, map(float, row))]) for row, label in zip(X, y)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    held = ["--label", "1", "--precision", "f64", "--storage", "dense", "--kernel", "rbf"]
    words = ["train", tmp_path / "data.csv", tmp_path / "theirs", "--machine", machine, "--probability", *held]
    subprocess.run([command, *words], check=True, capture_output=True)
    model = {"odm": ODMClassifier, "svm": SVMClassifier}[machine](probability=True).fit(X, y)
    model.save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    again = widemargin.load(tmp_path / "theirs")
    assert again.probability
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    words = ["predict", tmp_path / "data.csv", tmp_path / "ours", "--probability", tmp_path / "p", *held[:6]]
    subprocess.run([command, *words], check=True, capture_output=True)
    assert np.array_equal(np.loadtxt(tmp_path / "p"), model.predict_proba(X)[:, 1])


def test_only_when_asked_for(two_classes):
    model = ODMClassifier().fit(*two_classes)
    assert not hasattr(model, "predict_proba")
    assert model.calibration_ is None
    with pytest.raises(NotFittedError, match="probability=True"):
        model.set_params(probability=True).predict_proba(two_classes[0])
