import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier
from widemargin.baselines import HuberSVMClassifier, L2SVMClassifier, LSSVMClassifier

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
wd = pytest.importorskip("widemargin.dask")
distributed = pytest.importorskip("distributed")

MACHINES = [
    (wd.DaskODMClassifier, ODMClassifier, {"C1": 40.0, "C2": 4.0, "D": 0.3}),
    (wd.DaskLDMClassifier, LDMClassifier, {"C": 0.02, "lambda1": 16.0, "lambda2": 4.0}),
    (wd.DaskSVMClassifier, SVMClassifier, {"C": 0.02}),
    (wd.DaskL2SVMClassifier, L2SVMClassifier, {"C": 0.02}),
    (wd.DaskLSSVMClassifier, LSSVMClassifier, {"C": 0.02}),
    (wd.DaskHuberSVMClassifier, HuberSVMClassifier, {"C": 0.02}),
]


def samples(n=3000, d=12, classes=2, seed=0):
    return make_classification(
        n, d, n_informative=6, n_redundant=2, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=seed
    )


def same_optimum(far, near, X, y):
    """The same objective, a certificate that the other's objective cannot break, the same predictions."""
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-6)
    assert 0 <= far.duality_gap_ <= 1e-6
    assert far.objective_ * (1 - far.duality_gap_) <= near.objective_ * (1 + 1e-12)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=5e-3, atol=5e-4)
    scores = far.to_local().decision_function(X)
    np.testing.assert_allclose(scores, near.decision_function(X), atol=1e-2)


def test_same_optimum_as_one_machine(client):
    X, y = samples()
    dX, dy = da.from_array(X, chunks=(700, 5)), da.from_array(y, chunks=1000)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    weights[::17] = 0.0
    intercepts = [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0, "class_weight": "balanced"}]
    for number, (far, near, parameters) in enumerate(MACHINES):
        for more in (intercepts[0], intercepts[1 + number % 2]):
            clf = far(client=client, **parameters, **more).fit(dX, dy, sample_weight=da.from_array(weights, chunks=900))
            one = near(kernel="linear", tol=1e-8, **parameters, **more).fit(X, y, sample_weight=weights)
            same_optimum(clf, one, X, y)


def test_against_scikit_learn(client):
    X, y = samples(seed=3)
    dX, dy = da.from_array(X, chunks=(800, -1)), da.from_array(y, chunks=800)
    squared = wd.DaskL2SVMClassifier(client=client, C=0.1, fit_intercept=False, tol=1e-10).fit(dX, dy)
    other = LinearSVC(C=0.1, fit_intercept=False, tol=1e-10, max_iter=100000).fit(X, y)
    np.testing.assert_allclose(squared.coef_, other.coef_, atol=1e-5)
    # Here the mean of the squares times C, there half of alpha on the norm.
    ridge = RidgeClassifier(alpha=len(y) / 10, fit_intercept=False).fit(X, y)
    least = wd.DaskLSSVMClassifier(client=client, C=5.0, fit_intercept=False, tol=1e-12).fit(dX, dy)
    np.testing.assert_allclose(least.coef_.ravel(), ridge.coef_.ravel(), atol=1e-8)


def test_many_classes_one_against_all(client):
    X, y = samples(classes=4)
    names = np.array(["ash", "birch", "cedar", "dogwood"])[y]
    dX, dy = da.from_array(X, chunks=(900, -1)), da.from_array(names, chunks=900)
    for far, near, parameters in MACHINES[:3]:
        clf = far(client=client, **parameters).fit(dX, dy)
        more = {"multi_class": "ovr"} if "multi_class" in near._get_param_names() else {}
        one = near(kernel="linear", tol=1e-8, **more, **parameters).fit(X, names)
        same_optimum(clf, one, X, names)
        np.testing.assert_array_equal(clf.predict(dX).compute(), clf.to_local().predict(X))
        assert clf.decision_function(dX).compute().shape == (len(y), 4)
        assert clf.score(dX, dy) == np.mean(clf.to_local().predict(X) == names)


def test_frames_and_their_columns(client):
    X, y = samples(n=1200, d=8)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    frame["label"] = np.where(y == 1, "yes", "no")
    whole = dd.from_pandas(frame, npartitions=4)
    names = list(frame.columns[:8])
    clf = wd.DaskODMClassifier(client=client).fit(whole[names], whole["label"])
    one = ODMClassifier(kernel="linear", tol=1e-8).fit(frame.iloc[:, :8], frame["label"])
    same_optimum(clf, one, frame.iloc[:, :8], frame["label"])
    assert list(clf.feature_names_in_) == names
    found = clf.predict(whole[names]).compute()
    np.testing.assert_array_equal(found, one.predict(frame.iloc[:, :8]))

    # Partitions whose columns stand in another order.
    def turned(part, partition_info=None):
        return part[part.columns[::-1]] if partition_info and partition_info["number"] % 2 else part

    mixed = whole[names].map_partitions(turned, meta=frame.iloc[:0, :8], enforce_metadata=False)
    again = wd.DaskODMClassifier(client=client).fit(mixed, whole["label"])
    np.testing.assert_allclose(again.coef_, clf.coef_, rtol=1e-8, atol=1e-10)

    def renamed(part, partition_info=None):
        return part.rename(columns={"x3": "other"}) if partition_info and partition_info["number"] == 2 else part

    foreign = whole[names].map_partitions(renamed, meta=frame.iloc[:0, :8], enforce_metadata=False)
    with pytest.raises(ValueError, match=r"partition 2.*other"):
        wd.DaskODMClassifier(client=client).fit(foreign, whole["label"])


def test_blocks_of_csr_and_single_precision(client):
    X, y = samples(n=1500, d=30)
    X[np.abs(X) < 0.8] = 0.0
    dX = da.from_array(X, chunks=(400, -1)).map_blocks(sparse.csr_array, dtype=X.dtype)
    clf = wd.DaskODMClassifier(client=client).fit(dX, da.from_array(y, chunks=400))
    one = ODMClassifier(kernel="linear", tol=1e-8).fit(sparse.csr_array(X), y)
    same_optimum(clf, one, X, y)
    np.testing.assert_array_equal(clf.predict(dX).compute(), one.predict(X))
    single = X.astype(np.float32)
    kinds = [single[:400], single[400:800].astype(np.float64), np.asfortranarray(single[800:])]
    mixed = da.concatenate([da.from_array(kind, chunks=-1) for kind in kinds], allow_unknown_chunksizes=True)
    clf = wd.DaskODMClassifier(client=client).fit(mixed, y)
    same_optimum(clf, ODMClassifier(kernel="linear", tol=1e-8).fit(single, y), single, y)


def test_uneven_empty_and_single_class_partitions(client):
    X, y = samples(n=1000)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    cuts = ((1, 0, 300, 2, 0, 697), (X.shape[1],))
    pieces = np.split(np.arange(1000), np.cumsum(cuts[0])[:-1])
    dX = da.concatenate([da.from_array(X[p], chunks=(max(len(p), 1), -1)) for p in pieces])
    dy = da.concatenate([da.from_array(y[p], chunks=max(len(p), 1)) for p in pieces])
    clf = wd.DaskSVMClassifier(client=client, C=0.05).fit(dX, dy)
    same_optimum(clf, SVMClassifier(kernel="linear", tol=1e-8, C=0.05).fit(X, y), X, y)


def test_what_is_wrong_is_named(client):
    X, y = samples(n=800)
    X[650, 3] = np.nan
    dX, dy = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    with pytest.raises(ValueError, match=r"partition 3: X contains NaN or infinity, in its row 50, column 3"):
        wd.DaskODMClassifier(client=client).fit(dX, dy)
    X[650, 3] = 0.0
    dX = da.from_array(X, chunks=(200, -1))
    wrong = y.astype(float)
    wrong[250] = np.nan
    with pytest.raises(ValueError, match="partition 1: y contains NaN"):
        wd.DaskODMClassifier(client=client).fit(dX, da.from_array(wrong, chunks=200))
    with pytest.raises(ValueError, match="1 class"):
        wd.DaskODMClassifier(client=client).fit(dX, da.zeros(800, chunks=200))
    with pytest.raises(ValueError, match="800 samples, y has 700"):
        wd.DaskODMClassifier(client=client).fit(dX, dy[:700])
    with pytest.raises(ValueError, match="weights"):
        wd.DaskODMClassifier(client=client).fit(dX, dy, sample_weight=-da.ones(800, chunks=200))
    with pytest.raises(ValueError, match="C1 = -1"):
        wd.DaskODMClassifier(client=client, C1=-1).fit(dX, dy)
    with pytest.raises(TypeError):
        wd.DaskODMClassifier(client=client, C3=1)


def test_parameters_and_pickles(client):
    X, y = samples(n=400)
    clf = wd.DaskODMClassifier(C1=8)
    assert clf.get_params()["C1"] == 8
    assert clf.set_params(D=0.1).get_params()["D"] == 0.1
    with pytest.raises(AttributeError):
        clf.objective_  # noqa: B018
    clf.fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.to_local().predict(X))
    assert clf.classes_.tolist() == [0, 1]


def killed_after(worker_pid, seconds):
    def kill():
        time.sleep(seconds)
        os.kill(worker_pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("case", [0, 2])
def test_a_killed_worker_costs_a_retry(own_client, case, monkeypatch):
    client = own_client
    far, near, parameters = MACHINES[case]
    X, y = samples(n=20000, d=20)
    dX, dy = da.from_array(X, chunks=(2500, -1)), da.from_array(y, chunks=2500)
    pids = client.run(os.getpid)
    killed = []
    ask = wd.Fit.ask

    def deadly(self, question):
        # In the middle of training, while the question is on its way.
        if self.questions == 4 and not killed:
            killed.append(killed_after(next(iter(pids.values())), 0.0))
        return ask(self, question)

    monkeypatch.setattr(wd.Fit, "ask", deadly)
    clf = far(client=client, **parameters).fit(dX, dy)
    assert killed
    assert set(client.run(os.getpid).values()) != set(pids.values())
    same_optimum(clf, near(kernel="linear", tol=1e-8, **parameters).fit(X, y), X, y)


SCHEDULER = """
import numpy as np, dask.array as da, os, signal, sys, threading, time
from distributed import Client
import widemargin.dask as wd
wd.PATIENCE = 5.0
if __name__ == "__main__":
    client = Client(sys.argv[1], timeout=20)
    rng = np.random.default_rng(0)
    X = da.from_array(rng.normal(size=(4000, 8)), chunks=(1000, -1))
    y = da.from_array(rng.integers(0, 2, 4000), chunks=1000)
    name = {"fit": "ask", "search": "judge"}[sys.argv[3]]
    work = getattr(wd.SearchFit, name)
    def deadly(self, *question):
        if self.questions >= 2:
            os.kill(int(sys.argv[2]), signal.SIGKILL)
        return work(self, *question)
    setattr(wd.Fit if name == "ask" else wd.SearchFit, name, deadly)
    if name == "ask":
        clf = wd.DaskODMClassifier(client=client)
    else:
        clf = wd.DaskODMClassifierCV(client=client, search_rows=200)
    try:
        clf.fit(X, y)
    except ConnectionError as error:
        print("given up:", error)
        os._exit(7)
    os._exit(0)
"""


@pytest.mark.parametrize("what", ["fit", "search"])
def test_a_lost_scheduler_ends_in_an_error(tmp_path, what):
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    address = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(address)], stderr=subprocess.DEVNULL)
    worker = None
    try:
        deadline = time.monotonic() + 60
        while not address.exists() or not address.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        url = json.loads(address.read_text())["address"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", url, "--nthreads", "1", "--no-dashboard"],
            stderr=subprocess.DEVNULL,
        )
        script = tmp_path / "driver.py"
        script.write_text(SCHEDULER)
        found = subprocess.run(
            [sys.executable, str(script), url, str(scheduler.pid), what], capture_output=True, text=True, timeout=120
        )
        assert found.returncode == 7, found.stderr
        assert "given up" in found.stdout
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.kill()
                process.wait()
