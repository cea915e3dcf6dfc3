import os
import signal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

from widemargin import ODMClassifier
from widemargin.baselines import L2SVMClassifier, LSSVMClassifier

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
wd = pytest.importorskip("widemargin.dask")

# Up to 2000 samples the kernel matrix is factored, and nobody is asked.
SAMPLES = 2400


def samples(n=SAMPLES, d=6, classes=2, seed=0):
    return make_classification(
        n, d, n_informative=4, n_redundant=1, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=seed
    )


def same_optimum(far, near, X, y, sample_weight=None):
    """The same objective, a certificate that the other's cannot break and that a second path finds, the same scores."""
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    assert 0 <= far.duality_gap_ <= 1e-6
    assert far.objective_ * (1 - far.duality_gap_) <= near.objective_ * (1 + 1e-12)
    local = far.to_local()
    np.testing.assert_allclose(local.decision_function(X), near.decision_function(X), atol=2e-2)
    assert local.verify(X, y, sample_weight).agrees


def test_same_optimum_as_one_machine(client):
    X, y = samples()
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    weights[::17] = 0.0
    kept = weights > 0
    dX, dy = da.from_array(X, chunks=(700, 5)), da.from_array(y, chunks=1000)
    machines = [
        (wd.DaskODMClassifier, ODMClassifier, {"C1": 40.0, "C2": 4.0, "D": 0.3, "class_weight": "balanced"}),
        (wd.DaskL2SVMClassifier, L2SVMClassifier, {"C": 1.0, "fit_intercept": False, "kernel": "laplacian"}),
        (wd.DaskLSSVMClassifier, LSSVMClassifier, {"C": 1.0, "intercept_scaling": 1.0}),
    ]
    for far, near, parameters in machines:
        parameters = {"kernel": "rbf", **parameters}
        clf = far(client=client, **parameters).fit(dX, dy, sample_weight=da.from_array(weights, chunks=900))
        one = near(tol=1e-8, **parameters).fit(X[kept], y[kept], sample_weight=weights[kept])
        same_optimum(clf, one, X[kept], y[kept], weights[kept])
        assert clf.n_questions_ > 2
        assert clf.bytes_received_ > X[kept].nbytes


def test_many_classes_frames_and_csr(client, tmp_path):
    X, y = samples(classes=3, seed=2)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["label"] = np.array(["ash", "birch", "cedar"])[y]
    names = list(frame.columns[:-1])
    whole = dd.from_pandas(frame, npartitions=5)
    clf = wd.DaskODMClassifier(client=client, kernel="rbf").fit(whole[names], whole["label"])
    one = ODMClassifier(kernel="rbf", multi_class="ovr", tol=1e-8).fit(frame[names], frame["label"])
    same_optimum(clf, one, frame[names], frame["label"])
    assert list(clf.feature_names_in_) == names
    clf.to_local().save(tmp_path / "model")
    again = ODMClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame[names]), clf.predict(whole[names]).compute())

    X, y = samples(seed=3)
    X[np.abs(X) < 0.6] = 0.0
    dX = da.from_array(X, chunks=(900, -1)).map_blocks(sparse.csr_array, dtype=X.dtype)
    clf = wd.DaskODMClassifier(client=client, kernel="rbf").fit(dX, da.from_array(y, chunks=900))
    same_optimum(clf, ODMClassifier(kernel="rbf", tol=1e-8).fit(X, y), X, y)


def test_what_takes_more_than_products_is_refused(client):
    X, y = samples(n=300, classes=3)
    dX, dy = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    for far in (wd.DaskSVMClassifier, wd.DaskLDMClassifier):
        with pytest.raises(ValueError, match="products with the kernel matrix"):
            far(client=client, kernel="rbf").fit(dX, dy)
    wrong = [
        ({"kernel": "sigmoid"}, "positive definite"),
        ({"kernel": "precomputed"}, "expected one that the core has"),
        ({"kernel": "rbf", "probability": True}, "probability"),
        ({"kernel": "rbf", "scale": "standard"}, "scale"),
        ({"kernel": "rbf", "multi_class": "ovo"}, "one against all"),
        ({"kernel": "rbf", "class_weight": {0: 0.0, 1: 1.0, 2: 1.0}}, "weight of 0"),
    ]
    for parameters, words in wrong:
        with pytest.raises(ValueError, match=words):
            wd.DaskODMClassifier(client=client, **parameters).fit(dX, dy)


def test_a_killed_worker_costs_a_retry(own_client, monkeypatch):
    client = own_client
    # So many that a question goes ahead of its tasks, and may be lost with a worker.
    X, y = samples(n=9000)
    dX, dy = da.from_array(X, chunks=(1500, -1)), da.from_array(y, chunks=1500)
    pids = client.run(os.getpid)
    killed = []
    ask = wd.Fit.sum

    def deadly(self, question):
        if self.questions == 3 and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)
        return ask(self, question)

    monkeypatch.setattr(wd.Fit, "sum", deadly)
    clf = wd.DaskODMClassifier(client=client, kernel="rbf").fit(dX, dy)
    assert killed
    assert clf.n_questions_ > 4
    same_optimum(clf, ODMClassifier(kernel="rbf", tol=1e-8).fit(X, y), X, y)
