"""Kernels that only Python knows: matrices and callables."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier, to_onnx, tune

GAMMA = 0.02


def kernel(X, Z):
    return rbf_kernel(X, Z, gamma=GAMMA)


@pytest.mark.parametrize("cls", [ODMClassifier, LDMClassifier, SVMClassifier])
def test_same_as_the_core(cls, two_classes):
    X, y = two_classes
    train, test = slice(0, 300), slice(300, None)
    core = cls(gamma=GAMMA, tol=1e-8).fit(X[train], y[train])
    called = cls(kernel=kernel, tol=1e-8).fit(X[train], y[train])
    matrix = cls(kernel="precomputed", tol=1e-8).fit(kernel(X[train], X[train]), y[train])
    scores = core.decision_function(X[test])
    assert np.allclose(called.decision_function(X[test]), scores, atol=1e-4)
    assert np.allclose(matrix.decision_function(kernel(X[test], X[train])), scores, atol=1e-4)
    assert called.objective_ == pytest.approx(core.objective_, rel=1e-6)
    assert called.duality_gap_ <= 1e-8
    assert called.verify(X[train], y[train]).agrees
    by_hand = kernel(X[test], X[train]) @ matrix.dual_coef_[0] + matrix.intercept_[0]
    assert np.allclose(by_hand, scores, atol=1e-4)
    assert np.array_equal(called.support_vectors_, X[train])
    assert not hasattr(called, "coef_")
    assert matrix.n_support_.sum() == 300


def test_three_classes_as_svc(three_classes):
    X, y = three_classes
    K = laplacian_kernel(X)
    ours = SVMClassifier(kernel="precomputed", tol=1e-8).fit(K, y)
    theirs = SVC(kernel="precomputed", tol=1e-8).fit(K, y)
    assert np.allclose(ours.decision_function(K), theirs.decision_function(K), atol=1e-3)
    assert np.array_equal(ours.predict(K), theirs.predict(K))


def test_in_folds_and_searches(two_classes):
    X, y = two_classes
    X, y = X[::2], y[::2]
    K = kernel(X, X)
    by_matrix = cross_val_score(ODMClassifier(kernel="precomputed"), K, y, cv=3)
    assert np.allclose(by_matrix, cross_val_score(ODMClassifier(gamma=GAMMA), X, y, cv=3), atol=0.02)
    search = GridSearchCV(ODMClassifier(kernel="precomputed"), {"C1": [1, 100]}, cv=3).fit(K, y)
    assert search.best_score_ > 0.9
    best = tune(ODMClassifier(kernel="precomputed"), K, y, grid={"C1": [1, 100]})
    assert best.score(K, y) > 0.9


def test_pickle_and_refit(two_classes):
    X, y = two_classes
    model = SVMClassifier(kernel=kernel).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    expected = SVMClassifier().fit(X, y).decision_function(X)
    assert np.array_equal(model.set_params(kernel="rbf").fit(X, y).decision_function(X), expected)


def test_sparse_samples(two_classes):
    X, y = two_classes
    # Values of sparse rows are rounded otherwise: the same only as far as both are solved.
    model = SVMClassifier(kernel=kernel, tol=1e-9)
    expected = model.fit(X, y).decision_function(X)
    assert np.allclose(model.fit(sparse.csr_array(X), y).decision_function(X), expected, atol=1e-4)


def test_what_is_refused(two_classes, tmp_path):
    X, y = two_classes
    K = kernel(X, X)
    with pytest.raises(ValueError, match="square"):
        SVMClassifier(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="symmetric"):
        SVMClassifier(kernel="precomputed").fit(K + np.triu(np.ones_like(K), 1), y)
    with pytest.raises(ValueError, match="positive semidefinite"):
        SVMClassifier(kernel="precomputed").fit(K - 5 * np.eye(len(y)), y)
    with pytest.raises(ValueError, match="kernel returned an array of shape"):
        SVMClassifier(kernel=lambda X, Z: np.ones(3)).fit(X, y)
    with pytest.raises(ValueError, match="scale = minmax: expected None"):
        SVMClassifier(kernel="precomputed", scale="minmax").fit(K, y)
    model = SVMClassifier(kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match="pickle the estimator"):
        model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="pickle the estimator"):
        to_onnx(model)
