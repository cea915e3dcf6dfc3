"""The search for parameters finds what the command line finds."""

import json
import subprocess

import numpy as np
import pytest
from conftest import libsvm_text
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score

from widemargin import LDMClassifier, MSVMAvClassifier, ODMClassifier, ODMClassifierCV, SVMClassifier, tune
from widemargin.baselines import LSSVMClassifier


@pytest.fixture(scope="module")
def some(two_classes):
    return two_classes[0][::3], two_classes[1][::3]


@pytest.fixture(scope="module")
def data_file(some, tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "data.libsvm"
    path.write_text(libsvm_text(*some))
    return path


SEARCHES = [
    (ODMClassifier(kernel="linear"), {}, []),
    (ODMClassifier(), {"fixed": ["gamma", "D"]}, ["--gamma", "scale", "--d", "0.4", "--kernel", "rbf"]),
    (ODMClassifier(kernel="linear"), {"grid": {"C1": [1, 16], "D": "0:0.4:0.2"}}, ["--grid", "c1=1;16,d=0:0.4:0.2"]),
    (
        SVMClassifier(kernel="linear"),
        {"grid": "C=2^-2:2^2", "folds": 4, "repeats": 2},
        "--machine svm --grid c=2^-2:2^2 --folds 4 --repeats 2".split(),
    ),
    (
        LSSVMClassifier(kernel="linear"),
        {"select": "loo", "scale": "minmax"},
        "-m lssvm --select loo --scale minmax".split(),
    ),
]


@pytest.mark.parametrize(("estimator", "options", "words"), SEARCHES)
def test_same_as_the_command(estimator, options, words, command, some, data_file, tmp_path):
    if estimator.kernel == "linear":
        words = [*words, "--kernel", "linear"]
    held = ["--precision", "f64", "--storage", "dense", "--json"]
    done = subprocess.run(
        [command, "tune", data_file, tmp_path / "theirs", *held, *words], capture_output=True, check=True
    )
    theirs = json.loads(done.stdout)
    before = estimator.get_params()
    best = tune(estimator, *some, **options)
    assert estimator.get_params() == before
    assert not hasattr(estimator, "classes_")
    best.save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    found = best.search_
    assert (found.error, found.loss, found.points, found.fits) == tuple(
        theirs[name] for name in ("error", "loss", "points", "fits")
    )
    assert found.select == theirs["select"]
    assert len(found.results["error"]) == found.points
    assert {name: best.get_params()[name] for name in found.params} == found.params
    again = clone(best)
    assert np.array_equal(again.fit(*some).decision_function(some[0]), best.decision_function(some[0]))


def test_three_classes(three_classes):
    X, y = three_classes
    best = tune(ODMClassifier(kernel="linear"), X, y, grid={"lambda": [1, 100], "mu": [0.5], "D": [0.2, 0.4]})
    assert best.search_.select == "cv"
    assert best.search_.points == 4
    assert best.D in (0.2, 0.4)
    assert pytest.approx(0.5 * best.C1) == best.C2
    assert best.score(X, y) > 0.9
    with pytest.raises(ValueError, match="C1 is not searched: expected one of D, gamma, lambda, mu"):
        tune(ODMClassifier(), X, y, grid={"C1": [1]})


@pytest.mark.parametrize("cls", [LDMClassifier, MSVMAvClassifier])
def test_other_machines(cls, some):
    best = tune(cls(kernel="linear"), some[0][:80], some[1][:80])
    assert best.search_.points > 3
    assert best.score(*some) > 0.85


def test_resume(some, tmp_path):
    log = tmp_path / "log"
    first = tune(ODMClassifier(kernel="linear"), *some, resume=log)
    second = tune(ODMClassifier(kernel="linear"), *some, resume=log)
    assert first.search_.resumed == 0
    assert second.search_.resumed == second.search_.points == first.search_.points
    assert second.get_params() == first.get_params()
    with pytest.raises(ValueError, match="another search"):
        tune(ODMClassifier(kernel="linear"), some[0] * 2, some[1], resume=log)


def test_weight_is_repetition(some):
    X, y = some[0][:60], some[1][:60]
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    grid = {"C1": [1, 100], "D": [0.1, 0.3]}
    weighted = tune(ODMClassifier(kernel="linear", tol=1e-10), X, y, weights, grid=grid).search_
    rows = np.repeat(np.arange(len(y)), weights)
    repeated = tune(ODMClassifier(kernel="linear", tol=1e-10), X[rows], y[rows], grid=grid).search_
    # Leaving out a sample of weight 2 takes both copies away: other margins, but the same kind of answer.
    assert weighted.points == repeated.points == 4
    assert np.abs(weighted.results["error"] - repeated.results["error"]).max() < 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"select": "luck"}, "select = luck: expected one of None, loo-loss, loo, cv"),
        ({"scale": "log"}, "scale = log: expected one of None, minmax"),
        ({"folds": 1, "select": "cv"}, "folds = 1: expected a whole number >= 2"),
        ({"folds": 2.5}, "folds = 2.5: expected a whole number"),
        ({"repeats": 0, "select": "cv"}, "repeats = 0: expected"),
        ({"grid": {"C9": [1]}}, "C9 is not searched: expected one of C1, C2, D, gamma"),
        ({"grid": {"C1": [-1]}}, "C1 = -1: expected a number > 0"),
        ({"grid": "C1=2:1"}, "expected"),
        ({"fixed": ["tol"]}, "tol is not searched"),
        ({"fixed": ["C1"], "grid": {"C1": [1]}}, "C1 has a value, and values in grid: give it in one place"),
        ({"grid": {"gamma": [0]}}, "gamma = 0: expected numbers > 0"),
    ],
)
def test_wrong_wishes(options, words, some):
    with pytest.raises(ValueError, match=words):
        tune(ODMClassifier(), *some, **options)


def test_left_out_where_there_is_no_closed_form(some):
    with pytest.raises(ValueError, match='use select="cv"'):
        tune(SVMClassifier(), *some, select="loo")


def test_classifier_that_tunes_itself(some):
    X, y = some
    model = ODMClassifierCV(kernel="linear", D=0.2).fit(X, y)
    best = tune(ODMClassifier(kernel="linear", D=0.2), X, y, fixed=["D"])
    assert np.array_equal(model.decision_function(X), best.decision_function(X))
    assert model.D_ == model.D == 0.2
    assert (model.C1, model.gamma_) == (None, None)
    assert model.best_params_ == {"C1": model.C1_, "C2": model.C2_, "D": 0.2}
    assert model.best_score_ == 1 - model.search_.error > 0.9
    assert np.array_equal(model.cv_results_["param_C1"], model.search_.results["param_C1"])
    assert cross_val_score(ODMClassifierCV(), X, y, cv=3).mean() > 0.9
    kernel = ODMClassifierCV(probability=True).fit(X, y)
    assert kernel.gamma_ > 0
    assert kernel.predict_proba(X).shape == (len(y), 2)


def test_scale_comes_with_the_estimator():
    """Raw features: what was found with a scaling is the same after a clone, and in folds."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::3], y[::3]
    best = tune(ODMClassifier(), X, y, scale="standard")
    assert best.scale == "standard"
    assert np.array_equal(clone(best).fit(X, y).decision_function(X), best.decision_function(X))
    assert cross_val_score(best, X, y, cv=4).mean() > 0.94
    same = tune(ODMClassifier(scale="standard"), X, y)
    assert same.search_.params == best.search_.params


def test_a_grid_means_what_it_says(some):
    assert tune(ODMClassifier(C1=5, kernel="linear"), *some, grid={"C1": [1]}).C1 == 1
    for wishes in ({}, {"scoring": "roc_auc"}):
        with pytest.raises(ValueError, match="C1 has a value, and values in grid: give it in one place"):
            ODMClassifierCV(C1=5, grid={"C1": [1]}, **wishes).fit(*some)
    with pytest.raises(TypeError, match="C1 = '1': expected numbers"):
        tune(ODMClassifier(), *some, grid={"C1": ["1"]})


SCIKIT_LEARN_NAMES = {"params", "mean_test_score", "std_test_score", "rank_test_score", "split0_test_score"}


def test_results_have_scikit_learns_names(some):
    X, y = some
    grid = {"C1": [1, 100], "D": [0.1, 0.3]}
    model = ODMClassifierCV(kernel="linear", grid=grid, cv=4).fit(X, y)
    results = model.cv_results_
    assert set(results) >= {*SCIKIT_LEARN_NAMES, "split3_test_score", "param_C1", "param_D"}
    assert all(len(values) == 4 for values in results.values())
    assert results["rank_test_score"][model.best_index_] == 1
    assert results["params"][model.best_index_] == model.best_params_
    assert results["mean_test_score"][model.best_index_] == pytest.approx(model.best_score_)
    assert model.search_.select == "cv"
    left_out = ODMClassifierCV(kernel="linear", grid=grid).fit(X, y).cv_results_
    assert set(left_out) >= SCIKIT_LEARN_NAMES - {"split0_test_score"}


def test_scoring_and_splitters(some):
    X, y = some
    grid = {"C1": [0.01, 100], "D": [0.1, 0.3]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = ODMClassifierCV(kernel="linear", grid=grid, cv=folds, scoring="roc_auc").fit(X, y)
    theirs = GridSearchCV(ODMClassifier(kernel="linear"), grid, cv=folds, scoring="roc_auc").fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert (theirs.best_params_["C1"], theirs.best_params_["D"]) == (ours.C1_, ours.D_)
    assert ours.C2_ == ours.C1_ / 8
    free = ODMClassifierCV(kernel="linear", scoring="neg_log_loss", probability=True, cv=3, D=0.2).fit(X[:80], y[:80])
    assert free.D_ == 0.2
    assert len(free.cv_results_["mean_test_score"]) == free.search_.points > 3
    groups = np.arange(len(y)) // 4
    by_group = ODMClassifierCV(kernel="linear", grid=grid, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert by_group.best_score_ > 0.9
    with pytest.raises(ValueError, match="groups are for a splitter"):
        ODMClassifierCV().fit(X, y, groups=groups)
