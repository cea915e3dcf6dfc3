"""What an estimator says of itself is true: convergence, intercepts, parameters."""

import json

import numpy as np
import pytest
from conftest import ALL
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import MSVMAvClassifier, SVMClassifier
from widemargin._parameters import MACHINES
from widemargin.baselines import FMMClassifier, LDAClassifier, MAMCClassifier


@pytest.mark.parametrize("cls", ALL)
def test_values_outside_their_domain_are_named(cls, two_classes):
    X, y = two_classes
    wrong = {
        "gamma": [0, -1.0, float("nan"), float("inf"), "wide"],
        "degree": [0, -1, 2.5],
        "coef0": [float("nan"), float("inf")],
        "intercept_scaling": [0, 0.0, -1, float("nan"), float("inf"), "1", True],
        "tol": [0, -1e-3, float("nan"), float("inf")],
        "max_iter": [0, -2, 1.5],
    }
    for name, values in wrong.items():
        if name not in cls._get_param_names():
            continue
        kernel = {"gamma": "rbf", "degree": "poly", "coef0": "poly"}.get(name, "linear")
        for value in values:
            with pytest.raises((ValueError, TypeError), match=f"^{name} = "):
                cls(**{"kernel": kernel, name: value}).fit(X[:40], y[:40])


def test_rounds_that_run_out_warn_and_say_what_helps(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations: raise n_rounds or tol"):
        MSVMAvClassifier(n_rounds=1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="duality gap of .*: raise rounds or tol"):
        FMMClassifier(rounds=2).fit(X, y)


def test_rounding_is_no_convergence(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="as far as rounding allows.*above tol = 1e-30.*scale the features"):
        SVMClassifier(kernel="linear", tol=1e-30).fit(X, y)


def test_closed_forms_have_no_tolerance():
    for cls in (MAMCClassifier, LDAClassifier):
        assert not {"tol", "max_iter"} & set(cls._get_param_names())


@pytest.mark.parametrize("cls", [MSVMAvClassifier, FMMClassifier, MAMCClassifier])
def test_the_intercept_is_the_one_that_is_said(cls, two_classes, tmp_path):
    X, y = two_classes
    clf = cls(kernel="linear").fit(X[:100] + 0.3, y[:100])
    info = json.loads(clf._model.info())
    assert (info["bias"], info["bias_asked"]) == (MACHINES[cls._machine]["intercept"]["free"], "free")
    constant = clf.intercept_[0] if info["bias"] == {"feature": 1.0} else 0.0
    assert np.isclose(np.hypot(np.linalg.norm(clf.coef_), constant), clf.norm_)
    assert "stands for it" in cls.__doc__ or "has none" in cls.__doc__
    clf.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.fit_intercept
    assert again.intercept_scaling is None
