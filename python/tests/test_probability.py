"""Probabilities: calibrated on samples left out, right for the classes as they come, the same as the command line's."""

import pickle
import subprocess
import warnings
from functools import partial

import numpy as np
import pytest
from conftest import ALL, libsvm_text
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import widemargin
from widemargin import LDMClassifier, ODMClassifier, SVMClassifier
from widemargin.baselines import L2SVMClassifier


def agrees(model, X):
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(model.classes_))
    assert np.allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
    # The label predicted is that of the largest score: with an offset another may be more probable near the border.
    assert np.mean(model.classes_[probabilities.argmax(axis=1)] == model.predict(X)) > 0.85
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


def test_class_weights_do_not_change_what_is_probable():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 2))
    y = (rng.random(6000) < 1 / (1 + np.exp(3 - 1.5 * X[:, 0]))).astype(int)
    for cls in (ODMClassifier, SVMClassifier):
        for class_weight in (None, "balanced", {0: 1, 1: 7}):
            model = cls(kernel="linear", probability=True, class_weight=class_weight).fit(X[:3000], y[:3000])
            p = model.predict_proba(X[3000:])[:, 1]
            assert abs(p.mean() - y[3000:].mean()) < 0.02, (cls, class_weight)
            z = model.calibration_["slope"] * model.decision_function(X) + model.calibration_["offsets"][0]
            assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-z)))


def test_left_out_margins_are_those_of_refits(two_classes):
    X, y = two_classes
    X, y = X[:60], y[:60]
    model = ODMClassifier(kernel="rbf", gamma=0.1, C1=20, C2=5, D=0.2, tol=1e-10).fit(X, y)
    assert model.loo_margins_.shape == (60,)
    assert model.loo_score_ == np.mean(model.loo_margins_ > 0)
    apart = []
    for i in range(0, 60, 5):
        rest = np.arange(60) != i
        refit = ODMClassifier(kernel="rbf", gamma=0.1, C1=20 * 59 / 60, C2=5 * 59 / 60, D=0.2, tol=1e-10)
        score = refit.fit(X[rest], y[rest]).decision_function(X[i : i + 1])[0]
        apart.append(abs(score * (1 if y[i] == model.classes_[1] else -1) - model.loo_margins_[i]))
    # Exact unless another sample crosses a kink.
    assert np.median(apart) < 1e-6
    assert max(apart) < 0.3
    assert model.loo_by_ == "leave-one-out"
    plain = SVMClassifier().fit(X, y)
    for name in ("loo_margins_", "loo_score_"):
        with pytest.raises(AttributeError, match=r"leave-one-out.*probability=True"):
            getattr(plain, name)
    assert plain.loo_by_ is None


@pytest.mark.parametrize(
    "estimator",
    [
        SVMClassifier(probability=True),
        LDMClassifier(kernel="linear", probability="isotonic"),
        ODMClassifier(C1=256, C2=32, probability=True),
        SVMClassifier(multi_class="ovr", probability=True),
    ],
)
def test_margins_from_folds(estimator, command, two_classes, three_classes, tmp_path):
    """Those of the command, one a sample; with weights too."""
    X, y = three_classes if isinstance(estimator, ODMClassifier) or estimator.multi_class == "ovr" else two_classes
    X, y = X[::2], y[::2]
    for weights in (None, np.arange(len(y)) % 3 * 0.5):
        model = clone(estimator).fit(X, y, weights)
        assert model.loo_by_ == {"folds": 5}
        assert model.loo_margins_error_ is None
        assert model.loo_margins_.shape == y.shape
        assert np.isfinite(model.loo_margins_).all()
        share = np.average(model.loo_margins_ > 0, weights=weights)
        assert abs(model.loo_score_ - share) < 1e-12
        assert share > 0.8
        (tmp_path / "data").write_text(libsvm_text(X, y))
        words = [command, "train", tmp_path / "data", tmp_path / "m", "--loo", tmp_path / "loo"]
        machine = "mcodm" if isinstance(model, ODMClassifier) else model._machine
        words += ["--machine", machine, "--kernel", model.kernel, "--precision", "f64", "--storage", "dense"]
        if machine == "mcodm":
            mcodm = {"lambda": model.C1 * (1 - model.D) ** 2, "mu": model.C2 / model.C1, "theta": model.D}
            words += [word for name, value in mcodm.items() for word in (f"--{name}", repr(value))]
        if weights is not None:
            np.savetxt(tmp_path / "weights", weights)
            words += ["--weights", tmp_path / "weights"]
        subprocess.run(words, check=True, capture_output=True)
        assert np.allclose(np.loadtxt(tmp_path / "loo"), model.loo_margins_, rtol=0, atol=1e-9)


def test_a_class_of_one_sample_has_no_margins_from_folds(three_classes):
    X, y = three_classes[0][:101], three_classes[1][:101]
    model = SVMClassifier(probability=True).fit(X, y)
    assert model.predict_proba(X).shape == (101, 3)
    with pytest.raises(AttributeError, match="two samples of each class"):
        _ = model.loo_margins_


def test_prediction_sets(two_classes, three_classes):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
    for coverage in (0.8, 0.9):
        sets = ODMClassifier(kernel="linear").fit(X[:400], y[:400]).predict_set(X[400:], coverage=coverage)
        assert sets.shape == (2600, 2)
        assert sets.dtype == bool
        assert sets.any(axis=1).all()
        assert abs(sets[np.arange(2600), y[400:]].mean() - coverage) < 0.05
    X, y = three_classes
    sets = ODMClassifier(multi_class="ovr").fit(X, y).predict_set(X, per_class=True)
    assert sets.shape == (len(X), 3)
    with pytest.raises(NotFittedError, match="probability=True"):
        SVMClassifier().fit(*two_classes).predict_set(two_classes[0])
    assert SVMClassifier(probability=True).fit(*two_classes).predict_set(two_classes[0]).any(axis=1).all()
    for wrong in (0, 1, -1, "much", None):
        with pytest.raises(ValueError, match="coverage"):
            ODMClassifier().fit(*two_classes).predict_set(two_classes[0], coverage=wrong)


def test_average_and_audit(two_classes, three_classes, tmp_path):
    for X, y in (two_classes, three_classes):
        model = widemargin.ODMClassifierCV(average=True).fit(X, y)
        assert model.score(X, y) > 0.8
        assert 0.5 < model.best_score_ <= 1
        assert abs(sum(kernel["weight"] for kernel in model.average_["kernels"]) - 1) < 1e-9
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
        assert model.predict_set(X).shape == (len(X), len(model.classes_))
        model.save(tmp_path / "m")
        assert np.array_equal(widemargin.load(tmp_path / "m").decision_function(X), model.decision_function(X))
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    X, y = two_classes
    flipped = np.arange(0, len(y), 17)
    wrong = y.copy()
    wrong[flipped] = np.where(y[flipped] == y.min(), y.max(), y.min())
    for estimator in (None, SVMClassifier(), ODMClassifier(kernel="rbf")):
        found = widemargin.audit(X, wrong, estimator)
        assert sorted(found.order) == list(range(len(y)))
        assert np.all(np.diff(found.probability[found.order]) <= 0)
        assert abs(found.expected_wrong - found.probability.sum()) < 1e-6
        assert np.isin(found.order[: len(flipped)], flipped).mean() > 0.4
        assert found.likely.shape == y.shape
        assert np.all(np.diff(found.label_probability[found.order]) >= 0)
        assert found.margin[found.order[0]] < 0 < found.margin[found.order[-1]]
    weighted = widemargin.audit(X, wrong, sample_weight=np.where(np.arange(len(y)) == 3, 0.0, 1.0))
    assert np.isnan(weighted.label_probability[3])
    assert np.isnan(weighted.margin).sum() == 1


def svc_average(X, y, X_test):
    """The average from folds over seven kernels, by scikit-learn: scores, and the mean loss in the folds."""
    A, B = (MinMaxScaler().fit(X).transform(Z) for Z in (X, X_test))
    square = cdist(A, A, "sqeuclidean")
    centre = A.mean(axis=0)
    size = ((A - centre) ** 2).sum(axis=1).mean()
    maps = [lambda S, T: (S - centre) @ (T - centre).T / size]
    maps += [partial(rbf_kernel, gamma=4.0**-k / (2 * square.mean())) for k in range(-2, 3)]
    maps += [partial(laplacian_kernel, gamma=0.5 / cdist(A, A, "cityblock").mean())]
    signs, points = np.where(y == y.max(), 1, -1), []
    for kernel in maps:
        K, T = kernel(A, A), kernel(B, A)
        for C in 2.0 ** (-4 + 1.5 * np.arange(11)):
            f = cross_val_predict(SVC(C=C, kernel="precomputed"), K, signs, cv=5, method="decision_function")
            g = signs * f / np.sqrt((f**2).mean())
            a = minimize_scalar(
                lambda a, g=g: np.logaddexp(0, -a * g).mean() + 0.5e-3 * a * a, bounds=(0, 50), method="bounded"
            ).x
            scores = SVC(C=C, kernel="precomputed").fit(K, signs).decision_function(T)
            slope = a / np.sqrt((f**2).mean())
            points.append((np.logaddexp(0, -a * g).sum(), slope * f, slope * scores))
    losses = np.array([loss for loss, _, _ in points])
    weights = np.exp((losses.min() - losses) / 3)
    weights /= weights.sum()
    unseen = sum(w * f for w, (_, f, _) in zip(weights, points, strict=True))
    return sum(w * f for w, (_, _, f) in zip(weights, points, strict=True)), np.logaddexp(0, -signs * unseen).mean()


def test_an_average_from_folds_is_near_that_of_svcs(two_classes):
    X, y = two_classes
    model = widemargin.tune(SVMClassifier(), X[:200], y[:200], average="values")
    assert model.search_.by == {"folds": 5}
    scores, loss = svc_average(X[:200], y[:200], X[200:])
    right = np.mean((scores > 0) == (y[200:] == y.max()))
    assert abs(model.score(X[200:], y[200:]) - right) < 0.015
    assert abs(model.average_["loo_log_loss"] - loss) < 0.02
    assert np.corrcoef(model.decision_function(X[200:]), scores)[0, 1] > 0.99


def test_averages_of_other_machines(two_classes, three_classes, command, tmp_path):
    X, y = two_classes
    for estimator in (SVMClassifier(), LDMClassifier(), L2SVMClassifier(), ODMClassifier()):
        for samples, labels in ((X[:200], y[:200]), three_classes):
            model = widemargin.tune(estimator, samples, labels, average=True)
            folds = isinstance(estimator, (SVMClassifier, LDMClassifier))
            assert model.search_.by == model.loo_by_ == ({"folds": 5} if folds else "leave-one-out")
            assert abs(1 - model.search_.error - model.loo_score_) < 1e-12
            assert model.score(samples, labels) > 0.9
            assert abs(sum(kernel["weight"] for kernel in model.average_["kernels"]) - 1) < 1e-9
            assert np.allclose(model.predict_proba(samples).sum(axis=1), 1)
            assert model.scale == "minmax"
            model.save(tmp_path / "m")
            again = widemargin.load(tmp_path / "m")
            assert type(again) is type(estimator)
            assert again.average_ == model.average_
            assert np.array_equal(again.decision_function(samples), model.decision_function(samples))
    # The same as the command's, to the byte.
    (tmp_path / "data").write_text(libsvm_text(X, y))
    words = ["--average", "--machine", "svm", "--precision", "f64", "--storage", "dense"]
    subprocess.run([command, "tune", tmp_path / "data", tmp_path / "theirs", *words], check=True, capture_output=True)
    widemargin.tune(SVMClassifier(), X, y, average=True).save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    # A plain fit is no average any more.
    model.fit(X, y)
    assert not hasattr(model, "average_")
    assert not hasattr(model, "predict_proba")


def test_tune_refuses_what_an_average_would_ignore(two_classes):
    X, y = two_classes
    for given in ({"C": 3.0}, {"kernel": "linear"}, {"gamma": 0.1}, {"multi_class": "ecoc"}):
        with pytest.raises(ValueError, match=next(iter(given))):
            widemargin.tune(SVMClassifier(**given), X, y, average=True)
    for given in (
        {"grid": {"C": [1]}},
        {"fixed": ["C"]},
        {"select": "cv"},
        {"folds": 3},
        {"scoring": "f1"},
        {"repeats": 2},
    ):
        with pytest.raises(ValueError, match=next(iter(given))):
            widemargin.tune(SVMClassifier(), X, y, average=True, **given)
    with pytest.raises(ValueError, match="average = all"):
        widemargin.tune(SVMClassifier(), X, y, average="all")
    with pytest.raises(ValueError, match="each against all others"):
        widemargin.tune(widemargin.MSVMAvClassifier(), X, y, average=True)


def test_an_average_refuses_what_it_would_ignore(two_classes):
    X, y = two_classes
    for given in (
        {"C1": 4.0},
        {"gamma": 0.1},
        {"grid": {"C1": [1, 2]}},
        {"select": "cv"},
        {"cv": 3},
        {"scoring": "f1"},
        {"kernel": "precomputed"},
    ):
        with pytest.raises(ValueError, match=next(iter(given))):
            widemargin.ODMClassifierCV(average=True, **given).fit(X, y)
    with pytest.raises(ValueError, match="groups"):
        widemargin.ODMClassifierCV(average=True).fit(X, y, groups=np.zeros(len(y)))
    with warnings.catch_warnings():
        # Features are scaled anyway.
        warnings.simplefilter("error")
        few = widemargin.ODMClassifierCV(average=True, search_rows=40).fit(X * np.logspace(0, 4, X.shape[1]), y)
    assert few.average_ != widemargin.ODMClassifierCV(average=True).fit(X, y).average_
    with pytest.raises(ValueError, match="search_rows"):
        widemargin.ODMClassifierCV(average=True, search_rows="some").fit(X, y)


@pytest.mark.parametrize("machine", ["odm", "svm"])
def test_same_bytes_as_the_command(machine, command, two_classes, tmp_path):
    X, y = two_classes
    (tmp_path / "data.libsvm").write_text(libsvm_text(X, y))
    held = ["--precision", "f64", "--storage", "dense", "--kernel", "rbf"]
    words = ["train", tmp_path / "data.libsvm", tmp_path / "theirs", "--machine", machine, "--probability", *held]
    subprocess.run([command, *words], check=True, capture_output=True)
    model = {"odm": ODMClassifier, "svm": SVMClassifier}[machine](probability=True).fit(X, y)
    model.save(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    again = widemargin.load(tmp_path / "theirs")
    assert again.probability
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    words = ["predict", tmp_path / "data.libsvm", tmp_path / "ours", "--probabilities", tmp_path / "p", *held[:4]]
    subprocess.run([command, *words], check=True, capture_output=True)
    assert np.array_equal(np.loadtxt(tmp_path / "p", skiprows=1), model.predict_proba(X))


def test_only_when_asked_for(two_classes):
    model = ODMClassifier().fit(*two_classes)
    assert not hasattr(model, "predict_proba")
    assert model.calibration_ is None
    with pytest.raises(NotFittedError, match="probability=True"):
        model.set_params(probability=True).predict_proba(two_classes[0])


def test_isotonic(two_classes, three_classes):
    """The curve is scikit-learn's isotonic regression of Platt's targets on scores of samples left out."""
    X, y = two_classes
    model = ODMClassifier(kernel="rbf", gamma=0.05, probability="isotonic").fit(X, y)
    scores = model.loo_margins_ * (2 * y - 1)
    counts = np.bincount(y)
    targets = np.where(y == 1, (counts[1] + 1) / (counts[1] + 2), 1 / (counts[0] + 2))
    curve = IsotonicRegression(out_of_bounds="clip").fit(scores, targets)
    expected = curve.predict(model.decision_function(X))
    assert np.allclose(model.predict_proba(X)[:, 1], expected, rtol=0, atol=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    many = SVMClassifier(probability="isotonic").fit(*three_classes)
    assert np.allclose(many.predict_proba(three_classes[0]).sum(axis=1), 1)
    average = widemargin.ODMClassifierCV(average=True, probability="isotonic").fit(X, y)
    assert "curves" in average.calibration_
    assert "curves" not in ODMClassifier(probability=True).fit(X, y).calibration_
    with pytest.raises(ValueError, match="isotonic"):
        ODMClassifier(probability="platt").fit(X, y)


def test_thousands_of_samples_have_leave_one_out_margins_when_asked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=2000) > 0).astype(int)
    model = ODMClassifier(kernel="rbf", probability=True).fit(X, y)
    assert model.loo_margins_.shape == (2000,)
    assert model.loo_margins_error_ is None
