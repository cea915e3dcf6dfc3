"""A model knows the names of its features and what its labels were."""

import subprocess
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import load_wine

import widemargin
from widemargin import ODMClassifier, SVMClassifier


@pytest.mark.parametrize(
    "labels",
    [np.array([False, True]), np.array([3, -7]), np.array([1.0, 2.0]), np.array(["1", "2"]), np.array(["a", "b"])],
)
def test_labels_come_back_as_they_were(labels, two_classes, tmp_path):
    X, y = two_classes
    y = labels[y]
    SVMClassifier().fit(X, y).save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.classes_.dtype.kind == labels.dtype.kind
    assert np.array_equal(again.classes_, np.unique(labels))
    assert again.predict(X).dtype.kind == labels.dtype.kind


def test_names_come_back(two_classes, tmp_path):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = ODMClassifier().fit(frame, y)
    model.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[frame.columns[::-1]])


def test_names_reach_the_command_line(command, two_classes, tmp_path):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = ODMClassifier().fit(frame, y)
    model.save(tmp_path / "model")
    frame[frame.columns[::-1]].to_csv(tmp_path / "shuffled.csv", index=False)
    words = [command, "predict", tmp_path / "shuffled.csv", tmp_path / "model"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert [int(label) for label in found] == model.predict(frame).tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_columns_are_named(frame):
    data = {"age": [1.0, 2.0, 3.0, 4.0], "city": ["a", "b", "a", "b"], "member": [True, False, True, True]}
    with pytest.raises(ValueError, match=r"city \(text\).*OneHotEncoder"):
        SVMClassifier().fit(frame(data), [0, 1, 0, 1])
    data.pop("city")
    assert SVMClassifier().fit(frame(data), [0, 1, 0, 1]).n_features_in_ == 2


def test_ranks_are_those_of_scipy(two_classes, tmp_path):
    X, y = two_classes
    ranks = np.apply_along_axis(rankdata, 0, X) / len(X)
    ranked = SVMClassifier(kernel="rbf", gamma=0.5, scale="rank", tol=1e-8).fit(X, y)
    plain = SVMClassifier(kernel="rbf", gamma=0.5, tol=1e-8).fit(ranks, y)
    assert np.allclose(ranked.decision_function(X), plain.decision_function(ranks), atol=1e-5)
    ranked.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.scale == "rank"
    assert np.array_equal(again.decision_function(X), ranked.decision_function(X))
    # Beyond the training samples ranks end.
    assert np.allclose(ranked.decision_function(X + 1e9), ranked.decision_function(X + 1e12))
    assert clone(ranked).scale == "rank"


def test_unlike_scales_warn_once():
    X, y = load_wine(return_X_y=True)
    with pytest.warns(UserWarning, match="very unlike scales") as told:
        SVMClassifier(kernel="rbf").fit(X, y)
    assert len([warning for warning in told if "unlike" in str(warning.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        SVMClassifier(kernel="rbf", scale="standard").fit(X, y)
        SVMClassifier(kernel="linear").fit(X, y)
