"""What people are used to from scikit-learn's SVC and LinearSVC holds here too."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier

# Six points of two classes, and three more.
X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], float)
Y = np.array([1, 1, 1, 2, 2, 2])
T = np.array([[-1, -1], [2, 2], [3, 2]], float)
EXPECTED = [1, 2, 2]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(42).permutation(len(y))
    return X[order], y[order]


def linear(X, Z):
    return np.dot(X, Z.T)


def test_the_widest_margin_of_six_points():
    clf = SVMClassifier(kernel="linear").fit(X, Y)
    theirs = SVC(kernel="linear").fit(X, Y)
    assert np.allclose(clf.coef_, theirs.coef_, atol=1e-6)
    assert np.allclose(clf.intercept_, theirs.intercept_, atol=1e-6)
    assert np.array_equal(clf.predict(X), Y)
    assert np.array_equal(clf.predict(T), EXPECTED)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_iris(kernel, iris):
    clf = SVMClassifier(kernel=kernel).fit(*iris)
    assert clf.score(*iris) > 0.9
    assert hasattr(clf, "coef_") == (kernel == "linear")
    assert np.array_equal(clf.classes_, np.sort(clf.classes_))


def test_kernel_matrices_and_callables(iris):
    matrix = SVMClassifier(kernel="precomputed").fit(linear(X, X), Y)
    assert np.array_equal(matrix.predict(linear(T, X)), EXPECTED)
    with pytest.raises(ValueError, match="features"):
        matrix.predict(linear(T, X).T)
    assert np.array_equal(SVMClassifier(kernel=linear).fit(X, Y).predict(T), EXPECTED)
    samples, y = iris
    plain = SVMClassifier(kernel="linear", tol=1e-8).fit(samples, y)
    matrix = SVMClassifier(kernel="precomputed", tol=1e-8).fit(linear(samples, samples), y)
    called = SVMClassifier(kernel=linear, tol=1e-8).fit(samples, y)
    scores = plain.decision_function(samples)
    assert np.allclose(matrix.decision_function(linear(samples, samples)), scores, atol=1e-3)
    assert np.allclose(called.decision_function(samples), scores, atol=1e-3)


def test_a_matrix_of_low_rank_is_quick():
    # A fifth of a second, where eigenvalues took half a minute.
    X, y = make_classification(4000, 20, random_state=0)
    clf = SVMClassifier(kernel="precomputed").fit(linear(X, X), y)
    plain = SVMClassifier(kernel="linear").fit(X, y)
    assert clf._gram.factor.shape == (18, 18)  # two of the twenty features are combinations of others
    assert clf.objective_ == pytest.approx(plain.objective_, rel=1e-3)


def test_probabilities(iris):
    samples, y = iris
    clf = SVMClassifier(probability=True, random_state=0).fit(samples, y)
    probabilities = clf.predict_proba(samples)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(clf.classes_[probabilities.argmax(axis=1)] == y) > 0.9
    assert np.allclose(probabilities, np.exp(clf.predict_log_proba(samples)))
    assert not hasattr(SVMClassifier(), "predict_proba")


def test_decision_functions_are_what_they_say(iris):
    samples, y = iris
    clf = SVMClassifier(kernel="linear", multi_class="ovo", decision_function_shape="ovo").fit(samples, y)
    by_hand = samples @ clf.coef_.T + clf.intercept_
    assert np.allclose(-by_hand, clf.decision_function(samples))
    clf = SVMClassifier(kernel="linear").fit(X, Y)
    assert np.allclose(X @ clf.coef_[0] + clf.intercept_, clf.decision_function(X))
    assert np.array_equal(clf.classes_[(clf.decision_function(X) > 0).astype(int)], clf.predict(X))
    clf = SVMClassifier(gamma=1).fit(X, Y)
    by_hand = rbf_kernel(X, clf.support_vectors_, gamma=1) @ clf.dual_coef_[0] + clf.intercept_
    assert np.allclose(by_hand, clf.decision_function(X))


def test_shapes_of_decision_functions():
    samples, y = make_blobs(80, centers=5, random_state=0)
    for shape, columns in (("ovr", 5), ("ovo", 10)):
        ours = SVMClassifier(decision_function_shape=shape, tol=1e-9).fit(samples, y)
        theirs = SVC(decision_function_shape=shape, tol=1e-9).fit(samples, y)
        assert ours.decision_function(samples).shape == (80, columns)
        assert np.allclose(ours.decision_function(samples), theirs.decision_function(samples), atol=1e-3)
        if shape == "ovr":
            assert np.array_equal(ours.predict(samples), ours.decision_function(samples).argmax(axis=1))
    with pytest.raises(ValueError, match="decision_function_shape = ovx"):
        SVMClassifier(decision_function_shape="ovx").fit(samples, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_many_classes_are_decided_as_by_svc(kernel):
    samples, y = make_classification(400, 10, n_informative=6, n_classes=5, class_sep=0.8, random_state=1)
    ours = SVMClassifier(kernel=kernel, C=2.0, tol=1e-9).fit(samples, y)
    theirs = SVC(kernel=kernel, C=2.0, tol=1e-9, break_ties=True).fit(samples, y)
    assert np.array_equal(ours.predict(samples), theirs.predict(samples))


def test_class_weights():
    clf = SVMClassifier(class_weight={1: 0.1}).fit(X, Y)
    assert np.array_equal(clf.predict(X), [2] * 6)
    samples, y = make_classification(200, 10, weights=[0.833, 0.167], random_state=2)
    for cls in (SVMClassifier, ODMClassifier, LDMClassifier):
        weighted = cls(kernel="linear", class_weight={0: 0.1, 1: 10}).fit(samples[:100], y[:100])
        plain = cls(kernel="linear").fit(samples[:100], y[:100])
        assert (weighted.predict(samples[100:]) == 1).sum() > (plain.predict(samples[100:]) == 1).sum()


def test_balanced_class_weights(iris):
    samples, y = iris
    samples, y = samples[:, :2], y + 1
    kept = np.flatnonzero(y > 2)[::2]
    some = np.setdiff1d(np.arange(len(y)), kept)
    plain = SVMClassifier(kernel="linear").fit(samples[some], y[some])
    balanced = SVMClassifier(kernel="linear", class_weight="balanced").fit(samples[some], y[some])

    def score(clf):
        return f1_score(y, clf.predict(samples), average="macro")

    assert score(plain) <= score(balanced)


@pytest.mark.parametrize("cls", [SVMClassifier, ODMClassifier])
def test_sample_weights_pull_the_border(cls):
    samples = np.array([[-2, 0], [-1, -1], [0, -2], [0, 2], [1, 1], [2, 0]], float)
    y = np.array([1, 1, 1, 2, 2, 2])
    clf = cls(kernel="linear")
    assert clf.fit(samples, y, np.ones(6)).decision_function([[-1, 1]])[0] == pytest.approx(0, abs=1e-6)
    assert clf.fit(samples, y, [10, 0.1, 0.1, 0.1, 0.1, 10]).decision_function([[-1, 1]])[0] < 0
    assert clf.fit(samples, y, [1, 0.1, 10, 10, 0.1, 0.1]).decision_function([[-1, 1]])[0] > 0


def test_sample_weights_are_costs():
    clf = SVMClassifier(C=1.0, tol=1e-10).fit(X, Y)
    again = SVMClassifier(C=100.0, tol=1e-10).fit(X, Y, np.full(6, 0.01))
    assert np.allclose(again.decision_function(T), clf.decision_function(T), atol=1e-6)
    samples, y = make_classification(40, 5, random_state=0)
    weights = np.random.default_rng(0).integers(0, 5, 40)
    weighted = SVMClassifier(kernel="linear", tol=1e-10).fit(samples, y, weights)
    repeated = SVMClassifier(kernel="linear", tol=1e-10).fit(np.repeat(samples, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_sample_weights_that_leave_nothing_are_refused():
    clf = SVMClassifier()
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        clf.fit(X, Y, [-1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="weight"):
        clf.fit(X, Y, np.zeros(6))
    with pytest.raises(ValueError, match="label"):
        clf.fit(X, Y, [1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", -1),
        ("C", 0),
        ("C", "1"),
        ("C", None),
        ("C", np.nan),
        ("gamma", 0),
        ("gamma", -1.0),
        ("gamma", "wide"),
        ("kernel", "wide"),
        ("kernel", 3),
        ("degree", -1),
        ("degree", 1.5),
        ("coef0", np.inf),
        ("tol", 0),
        ("tol", "small"),
        ("max_iter", -2),
        ("probability", "yes"),
        ("fit_intercept", "no"),
        ("intercept_scaling", 0),
        ("cache_size", 0),
        ("class_weight", "even"),
        ("random_state", "now"),
        ("scale", "large"),
        ("verbose", "much"),
        ("n_jobs", 0),
    ],
)
def test_parameters_of_another_kind_are_refused(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        SVMClassifier(**{name: value}).fit(X, Y)


def test_samples_of_another_kind_are_refused():
    clf = SVMClassifier()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(X, Y[:5])
    clf.fit(X, Y)
    for shape in ((3, 3), (3, 1)):
        with pytest.raises(ValueError, match="features"):
            clf.predict(np.ones(shape))
    with pytest.raises(ValueError, match="2D array"):
        clf.predict(np.ones(2))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clf.fit(np.where(X > 1, np.nan, X), Y)
    with pytest.raises(ValueError, match="large"):
        SVMClassifier().fit(X * 1e300, Y)


def test_any_layout_of_samples():
    expected = SVMClassifier(kernel="linear").fit(X, Y).predict(T)
    strided = np.ones((12, 4))
    strided[::2, ::2] = X
    for samples in (np.asfortranarray(X), strided[::2, ::2], X.tolist(), X.astype(np.float32), X.astype(int)):
        assert np.array_equal(SVMClassifier(kernel="linear").fit(samples, Y).predict(T), expected)
    for container in (sparse.csr_array, sparse.csr_matrix, sparse.lil_array, sparse.coo_array, sparse.csc_matrix):
        clf = SVMClassifier(kernel="linear").fit(container(X), Y)
        assert np.array_equal(clf.predict(container(T)), expected)


def test_clones_keep_callables():
    clf = clone(SVMClassifier(kernel=linear, probability=True, random_state=0))
    clf.fit(X, Y)
    assert clf.kernel is linear
    plain = SVMClassifier(kernel="linear", probability=True, random_state=0).fit(X, Y)
    assert np.allclose(clf.predict_proba(T), plain.predict_proba(T), atol=1e-4)
    with pytest.raises(ValueError, match="kernel returned an array of shape"):
        SVMClassifier(kernel=lambda X, Z: np.array([[1.0]])).fit(X, Y)


def test_iterations_that_do_not_suffice_are_told():
    samples, y = make_classification(300, 20, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        SVMClassifier(kernel="linear", C=100.0, tol=1e-12, max_iter=1).fit(samples, y)


def test_unfitted():
    with pytest.raises(NotFittedError):
        SVMClassifier().predict(X)
    assert not hasattr(SVMClassifier(), "coef_")


def test_weights_cannot_be_set():
    clf = SVMClassifier(kernel="linear").fit(X, Y)
    with pytest.raises(AttributeError):
        clf.coef_ = np.zeros((1, 2))
    clf.coef_[0, 0] = 7.0
    assert clf.coef_[0, 0] != 7.0


def test_one_against_rest_of_scikit_learn(iris):
    samples, y = iris
    clf = OneVsRestClassifier(SVMClassifier(kernel="linear")).fit(samples, y)
    assert np.array_equal(clf.predict(samples), clf.decision_function(samples).argmax(axis=1))


def test_gamma():
    samples = np.array([[0.0], [1.0]])
    clf = SVMClassifier(gamma="scale").fit(samples, [0, 1])
    assert clf.gamma_ == pytest.approx(4.0)
    assert clf._gamma == clf.gamma_
    assert SVMClassifier(gamma="auto").fit(samples, [0, 1]).gamma_ == 1.0
    assert SVMClassifier(gamma=0.25).fit(samples, [0, 1]).gamma_ == 0.25


def test_numbers_of_support_vectors():
    samples = np.array([[0, 0], [1, 1], [0, 2], [5, 5], [6, 6], [4, 9]], float)
    clf = SVMClassifier().fit(samples, [0, 0, 0, 1, 1, 1])
    assert clf.n_support_.dtype == np.int32
    assert clf.n_support_.sum() == len(clf.support_) == len(clf.support_vectors_)


def test_a_cache_limits_memory(iris):
    samples, y = iris
    small = SVMClassifier(cache_size=1).fit(samples, y)
    assert np.array_equal(small.predict(samples), SVMClassifier().fit(samples, y).predict(samples))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", [ODMClassifier, SVMClassifier])
def test_a_warm_start_ends_at_the_same_optimum(cls, kernel, two_classes):
    X, y = two_classes
    parameter = "C1" if cls is ODMClassifier else "C"
    given = {"kernel": kernel, "scale": "standard", "tol": 1e-8}
    cold = cls(**given, **{parameter: 50.0}).fit(X, y)
    warm = cls(**given, warm_start=True, **{parameter: 49.0}).fit(X, y)
    steps = warm.n_iter_
    warm.set_params(**{parameter: 50.0}).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-7)
    assert np.allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-3)
    assert warm.verify(X, y).agrees
    # The multipliers of a loss with kinks are not kept.
    assert warm.n_iter_ <= steps or cls is SVMClassifier
    # What cannot be gone on with is begun anew.
    assert warm.fit(X[:200, :10], y[:200]).score(X[:200, :10], y[:200]) > 0.8
    assert warm.fit(X, np.arange(len(y)) % 3).classes_.tolist() == [0, 1, 2]


def test_costs_follow_the_samples(two_classes, three_classes):
    X, y = two_classes
    model = ODMClassifier().fit(X, y)
    assert model.get_params()["C1"] is None
    assert model.parameters_ == {"C1": max(256, len(y)), "C2": max(256, len(y)) / 8, "D": 0.4}
    assert ODMClassifier(C1=20).fit(X, y).parameters_ == {"C1": 20, "C2": 2.5, "D": 0.4}
    weights = np.full(len(y), 3.0)
    assert ODMClassifier().fit(X, y, weights).parameters_["C1"] == max(256, 3 * len(y))
    given = ODMClassifier(C1=20, C2=5, D=0.1).fit(*three_classes).parameters_
    assert [given[name] for name in ("C1", "C2", "D")] == pytest.approx([20, 5, 0.1])
    free = ODMClassifier(D=0.2).fit(*three_classes).parameters_
    assert (free["C1"], free["C2"] / free["C1"]) == pytest.approx((max(64, len(three_classes[1]) / 16) / 0.8**2, 0.125))
    with pytest.raises(ValueError, match=r'C2 = 5: multi_class="mcodm" expects C1 beside it'):
        ODMClassifier(C2=5).fit(*three_classes)
    assert ODMClassifier(C2=5, multi_class="ovr").fit(*three_classes).parameters_["C2"] == 5
