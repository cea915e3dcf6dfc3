"""A second opinion on fitted models."""

import numpy as np
import pytest
from conftest import ALL
from sklearn.base import clone

import widemargin
from widemargin import LDMClassifier, ODMClassifier, SVMClassifier

CERTIFIED = [
    ODMClassifier(),
    ODMClassifier(kernel="linear", fit_intercept=False),
    ODMClassifier(class_weight="balanced", kernel="linear"),
    LDMClassifier(kernel="linear", intercept_scaling=2.0),
    SVMClassifier(),
    SVMClassifier(kernel="poly", coef0=1.0, tol=1e-6),
    SVMClassifier(kernel="linear", class_weight={0: 2.0}),
]


@pytest.mark.parametrize("model", CERTIFIED)
def test_agrees(model, two_classes):
    X, y = two_classes
    weights = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.5)
    for given in (None, weights):
        fitted = clone(model).fit(X, y, sample_weight=given)
        found = fitted.verify(X, y, sample_weight=given)
        assert found.agrees is True, found
        assert found.reason is None
        assert found.objective == pytest.approx(fitted.objective_, rel=1e-6)
        assert found.gap <= fitted.duality_gap_ + 1e-6
        assert found.dual_objective <= found.objective


@pytest.mark.parametrize("model", CERTIFIED[:2])
def test_files_can_be_verified(model, two_classes, tmp_path):
    X, y = two_classes
    fitted = clone(model).fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = widemargin.load(tmp_path / "model")
    assert loaded.verify(X, y) == fitted.verify(X, y)
    if fitted.kernel != "linear":
        assert np.array_equal(loaded.support_, fitted.support_)


def test_many_classes(three_classes):
    X, y = three_classes
    for model in (ODMClassifier(), SVMClassifier(multi_class="ovo"), SVMClassifier(kernel="linear")):
        assert model.fit(X, y).verify(X, y).agrees is True


def test_other_samples_do_not_agree(two_classes):
    X, y = two_classes
    model = SVMClassifier().fit(X, y)
    for samples, labels, weights in [
        (X + 0.1, y, None),
        (X, y[::-1], None),
        (X[1:], y[1:], None),
        (X, y, np.linspace(1, 2, len(y))),
    ]:
        found = model.verify(samples, labels, sample_weight=weights)
        assert found.agrees is False
        assert "not the rows the model was trained on" in found.reason


@pytest.mark.parametrize("estimator", ALL)
def test_every_estimator_can_be_asked(estimator, two_classes):
    X, y = two_classes
    found = estimator().fit(X, y).verify(X, y)
    assert found.agrees is not False, found
    assert (found.gap is None) or found.gap >= 0
