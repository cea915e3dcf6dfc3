"""The estimators are what scikit-learn calls one, and work inside its tools."""

import inspect
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import ALL, OWN
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import MSVMAvClassifier, ODMClassifier, ODMClassifierCV, SVMClassifier, baselines
from widemargin.baselines import LSSVMClassifier

CALIBRATED = [cls(probability=True) for cls in OWN]
EQUIVALENCE = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
VARIANTS = [
    *(cls(kernel="linear") for cls in OWN),
    ODMClassifier(kernel="linear", multi_class="ovr"),
    ODMClassifier(multi_class="ovr"),
    ODMClassifier(multi_class="ovo"),
    MSVMAvClassifier(kernel="linear", intercept_scaling=20.0),
    ODMClassifierCV(kernel="linear", multi_class="ovr", grid={"C1": [10, 1000]}),
    *CALIBRATED,
]


def excused(estimator):
    """Checks that are known to fail, none of them for an estimator as it is made by default."""
    checks = {}
    if isinstance(estimator, ODMClassifierCV) or getattr(estimator, "probability", False):
        checks.update(dict.fromkeys(EQUIVALENCE, "a repeated row may lie in two folds, one that counts twice may not"))
    if getattr(estimator, "probability", False):
        # As of SVC: with an offset the most probable class need not be the one of the largest score.
        checks["check_classifiers_train"] = "the most probable class need not be the predicted one"
    return checks


@parametrize_with_checks([*(cls() for cls in ALL), *VARIANTS], expected_failed_checks=excused)
def test_checks(estimator, check):
    check(estimator)


def test_pipeline_and_grid(two_classes):
    X, y = two_classes
    search = GridSearchCV(make_pipeline(StandardScaler(), ODMClassifier()), {"odmclassifier__C1": [1, 100]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.95
    assert set(search.best_estimator_[-1].get_params()) >= {"C1", "C2", "D", "kernel", "gamma"}


def test_calibration(two_classes):
    X, y = two_classes
    model = CalibratedClassifierCV(ODMClassifier(kernel="linear"), cv=3).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 2)
    assert model.score(X, y) > 0.95


def test_one_against_rest_and_all_at_once(three_classes):
    X, y = three_classes
    assert OneVsRestClassifier(ODMClassifier()).fit(X, y).score(X, y) > 0.9
    assert ODMClassifier().fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("multi_class", ["mcodm", "ovr", "ovo", "ecoc"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ways_to_meet_three_classes(three_classes, multi_class, kernel):
    X, y = three_classes
    model = ODMClassifier(kernel=kernel, multi_class=multi_class).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (len(y), 3)
    assert np.array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.7
    assert len(model.margins_) == len(y)


def test_in_parallel(two_classes):
    X, y = two_classes
    alone = cross_val_score(ODMClassifier(), X, y, cv=4)
    assert np.array_equal(cross_val_score(ODMClassifier(), X, y, cv=4, n_jobs=2), alone)


def test_under_dask(two_classes):
    distributed = pytest.importorskip("distributed")
    X, y = two_classes
    alone = cross_val_score(ODMClassifier(), X, y, cv=4)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_backend("dask"):
        assert np.array_equal(cross_val_score(ODMClassifier(), X, y, cv=4), alone)
        search = GridSearchCV(ODMClassifier(n_jobs=1), {"C1": [1, 100]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_pandas_all_the_way(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = make_pipeline(StandardScaler(), ODMClassifier(kernel="linear")).set_output(transform="pandas")
    assert list(model.fit(frame, y)[-1].feature_names_in_) == list(frame.columns)
    assert model.score(frame, y) > 0.95
    with pytest.warns(UserWarning, match="feature names"):
        model[-1].predict(X)


def test_diagram_in_a_notebook(two_classes):
    page = ODMClassifier(C1=7).fit(*two_classes)._repr_html_()
    assert "ODMClassifier" in page
    assert "C1" in page


@pytest.mark.parametrize("cls", ALL)
def test_clone_and_pickle(cls, two_classes):
    X, y = two_classes
    model = cls().set_params(random_state=3)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert vars(again).keys() == vars(model).keys()


def test_frames(two_classes):
    X, y = two_classes
    names = [f"f{j}" for j in range(X.shape[1])]
    expected = ODMClassifier().fit(X, y).decision_function(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = ODMClassifier().fit(frame, y)
        assert list(model.feature_names_in_) == names
        assert np.allclose(model.decision_function(frame), expected, atol=1e-9)
    labels = np.array(["malignant", "benign"], dtype=object)[y]
    model = ODMClassifier().fit(pd.DataFrame(X, columns=names), pd.Series(labels, dtype="category"))
    assert list(model.classes_) == ["benign", "malignant"]


def test_attributes(two_classes):
    X, y = two_classes
    linear = ODMClassifier(kernel="linear", fit_intercept=False).fit(X, y)
    assert np.allclose(X @ linear.coef_[0] + linear.intercept_[0], linear.decision_function(X))
    assert np.allclose(np.where(y == 1, 1, -1) * linear.decision_function(X), linear.margins_, atol=1e-8)
    assert linear.loo_bound_ >= 0
    assert linear.duality_gap_ <= linear.tol
    assert linear.objective_ > 0
    assert linear.n_iter_ >= 1
    assert not hasattr(linear, "support_")
    assert not hasattr(linear, "dual_coef_")
    kernel = SVMClassifier().fit(X, y)
    assert not hasattr(kernel, "coef_")
    assert kernel.dual_coef_.shape == (1, len(kernel.support_))
    assert np.array_equal(kernel.support_vectors_, X[kernel.support_])
    assert linear.fit(X, y).set_params(kernel="rbf").fit(X, y).support_.size


def test_selection_by_coefficients(two_classes):
    X, y = two_classes
    assert SelectFromModel(SVMClassifier(kernel="linear")).fit_transform(X, y).shape[1] < X.shape[1]


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_agrees_with_svc_on_many_classes(shape, kernel):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16, y[:400]
    ours = SVMClassifier(kernel=kernel, tol=1e-8, decision_function_shape=shape).fit(X, y)
    theirs = SVC(kernel=kernel, tol=1e-8, decision_function_shape=shape).fit(X, y)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) == 1.0
    if kernel == "rbf":
        assert ours._gamma == pytest.approx(theirs._gamma)


def test_support_of_each_class(two_classes, three_classes):
    X, y = two_classes
    ours, theirs = SVMClassifier(tol=1e-8).fit(X, y), SVC(tol=1e-8).fit(X, y)
    assert ours.n_support_.sum() == len(ours.support_)
    assert np.abs(ours.n_support_ - theirs.n_support_).max() <= 1
    assert ours.gamma_ == pytest.approx(1 / (X.shape[1] * X.var()))
    linear = ours.set_params(kernel="linear").fit(X, y)
    assert linear.gamma_ is None
    assert not hasattr(linear, "n_support_")
    assert len(SVMClassifier().fit(*three_classes).n_support_) == 3


@pytest.mark.parametrize("scale", ["minmax", "maxabs", "standard"])
@pytest.mark.parametrize("cls", ALL)
def test_scale_is_a_parameter(cls, scale):
    X, y = load_breast_cancer(return_X_y=True)
    scaler = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}[scale]()
    tight = {"tol": 1e-8} if "tol" in inspect.signature(cls).parameters else {}
    model = cls(scale=scale, **tight).fit(X[:200], y[:200])
    by_hand = cls(**tight).fit(scaler.fit_transform(X[:200]), y[:200])
    scores = by_hand.decision_function(scaler.transform(X))
    assert np.allclose(model.decision_function(X), scores, rtol=1e-3, atol=1e-3 * np.abs(scores).max())
    assert np.array_equal(clone(model).fit(X[:200], y[:200]).decision_function(X), model.decision_function(X))


def test_few_samples_score_as_many_do(two_classes, three_classes):
    """One by one, without threads, or thousands at once."""
    for X, y in (two_classes, three_classes):
        for model in (
            ODMClassifier(),
            ODMClassifier(kernel="linear"),
            SVMClassifier(scale="minmax"),
            LSSVMClassifier(),
        ):
            many = np.tile(X, (40, 1))
            scores = model.fit(X, y).decision_function(many)[: len(X)]
            ones = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(len(X))])
            assert np.allclose(ones, scores, rtol=1e-12, atol=1e-12)
            sparse_ones = model.decision_function(sparse.csr_array(X[:3]))
            assert np.allclose(sparse_ones, scores[:3], rtol=1e-9, atol=1e-9)


def test_one_sample_is_checked(two_classes):
    X, y = two_classes
    model = SVMClassifier().fit(X, y)
    wrong = X[:1].copy()
    wrong[0, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(wrong)
    with pytest.raises(ValueError, match="30 features"):
        model.predict(X[:1, :5])
    with pytest.raises(ValueError, match="2D array"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="minimum of 1"):
        model.predict(X[:0])
    for same in (X[:1].tolist(), X[:1].astype(np.float32), np.asfortranarray(X[:4])[:1], X[::2][:1]):
        assert np.allclose(model.decision_function(same), model.decision_function(X[:1]), atol=1e-5)


def test_memory_limit(two_classes):
    X, y = two_classes
    expected = SVMClassifier(tol=1e-8).fit(X, y).decision_function(X)
    assert np.allclose(SVMClassifier(tol=1e-8, cache_size=0.1).fit(X, y).decision_function(X), expected, atol=1e-5)


def test_every_machine_is_good_by_default(two_classes):
    X, y = two_classes
    for cls in OWN:
        for kernel in ("linear", "rbf"):
            assert cross_val_score(cls(kernel=kernel), X, y, cv=5).mean() > 0.96, (cls, kernel)


def test_agrees_with_svc(two_classes):
    X, y = two_classes
    ours = SVMClassifier(tol=1e-9).fit(X, y).decision_function(X)
    theirs = SVC(tol=1e-9).fit(X, y).decision_function(X)
    assert np.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"C1": -1}, "C1 = -1: expected a number > 0"),
        ({"D": 1.0}, r"D = 1: expected a number in \[0, 1\)"),
        ({"tol": 0}, "tol = 0: expected"),
        ({"kernel": "none such"}, "kernel = none such: expected one of linear, rbf"),
        ({"gamma": "wide"}, "gamma = wide: expected scale, auto or a number > 0"),
        ({"gamma": 0}, "gamma = 0: expected scale, auto or a number > 0"),
        ({"intercept_scaling": 0}, "intercept_scaling = 0: expected None or a number > 0"),
        ({"scale": "log"}, "scale = log: expected one of None, minmax, maxabs, standard"),
        ({"cache_size": 0}, "cache_size = 0: expected None or a number of megabytes"),
        ({"class_weight": "fair"}, "class_weight = fair: expected None, balanced or a dict"),
        ({"n_jobs": 0}, "n_jobs = 0: expected None or a whole number other than 0"),
        ({"decision_function_shape": "ovo"}, 'decision_function_shape = ovo: expected ovr, or multi_class="ovo"'),
        ({"degree": 1.5}, "degree = 1.5: expected a whole number"),
        ({"max_iter": 0}, "max_iter = 0: expected"),
        ({"intercept_scaling": -1}, "intercept_scaling = -1: expected"),
        ({"coef0": np.nan}, "coef0 = nan: expected a number"),
        ({"multi_class": "all"}, "multi_class = all: expected one of"),
    ],
)
def test_wrong_parameters(two_classes, wrong, words):
    with pytest.raises(ValueError, match=words):
        ODMClassifier(**wrong).fit(*two_classes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"C1": "1"}, "C1 = '1': expected a number > 0, not a str"),
        ({"C1": True}, "C1 = True: expected a number > 0, not a bool"),
        ({"D": None}, "D = None: expected a number in [0, 1), not a NoneType"),
        ({"probability": 0.5}, "probability = 0.5: expected True, False or one of sigmoid, isotonic, not a float"),
        ({"fit_intercept": "no"}, "fit_intercept = 'no': expected True or False, not a str"),
        ({"intercept_scaling": "1"}, "intercept_scaling = '1': expected None or a number > 0"),
        ({"tol": "1e-3"}, "tol = '1e-3': expected a number > 0, not a str"),
        ({"kernel": 3}, "kernel = 3: expected a name or a callable, not a int"),
        ({"gamma": None}, "gamma = None: expected scale, auto or a number > 0"),
        ({"degree": "3"}, "degree = '3': expected a whole number"),
        ({"max_iter": "many"}, "max_iter = 'many': expected a whole number"),
        ({"class_weight": 2.0}, "class_weight = 2.0: expected None, balanced or a dict"),
        ({"scale": True}, "scale = True: expected one of None"),
        ({"n_jobs": "all"}, "n_jobs = 'all': expected None or a whole number"),
        ({"verbose": "loud"}, "verbose = 'loud': expected True, False"),
        ({"multi_class": 1}, "multi_class = 1: expected one of mcodm, ovr"),
    ],
)
def test_parameters_of_the_wrong_type(two_classes, wrong, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        ODMClassifier(**wrong).fit(*two_classes)


def test_a_form_of_probabilities_that_is_not_known(two_classes):
    with pytest.raises(ValueError, match="probability = yes: expected True, False or one of sigmoid, isotonic"):
        ODMClassifier(probability="yes").fit(*two_classes)


@pytest.mark.parametrize("cls", ALL)
def test_domains_in_pythons_words(cls, two_classes):
    X, y = two_classes
    own = next(iter(inspect.signature(cls).parameters))
    with pytest.raises(ValueError, match=f"^{own} = -1: expected [^-]*$"):
        cls(**{own: -1}).fit(X[:40], y[:40])


def test_memory_in_pythons_words(three_classes):
    X, y = three_classes
    with pytest.raises(MemoryError, match=r"MB are allowed: raise cache_size[^-]*$"):
        ODMClassifier(cache_size=1e-3).fit(X, y)


def test_linear_only_in_pythons_words(two_classes):
    with pytest.raises(ValueError, match='mdo cannot have the rbf kernel: use kernel="linear"'):
        baselines.MDOClassifier(kernel="rbf").fit(*two_classes)


def test_too_few_iterations_are_told(two_classes):
    with pytest.warns(match="raise max_iter or tol"):
        SVMClassifier(tol=1e-12, max_iter=1).fit(*two_classes)


def test_class_weights(two_classes):
    X, y = two_classes
    weights = {0: 3.0, 1: 0.5}
    by_class = ODMClassifier(class_weight=weights).fit(X, y)
    by_sample = ODMClassifier().fit(X, y, np.where(y == 0, 3.0, 0.5))
    assert np.array_equal(by_class.decision_function(X), by_sample.decision_function(X))
    balanced = ODMClassifier(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    same = ODMClassifier(class_weight={c: len(y) / (2 * counts[c]) for c in (0, 1)}).fit(X, y)
    assert np.allclose(balanced.decision_function(X), same.decision_function(X), atol=1e-9)
