import os
import signal

import numpy as np
import pandas as pd
import pytest
from distributed.protocol.pickle import dumps
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

import widemargin
from widemargin import LDMClassifier, ODMClassifier, ODMClassifierCV, SVMClassifier
from widemargin.baselines import L2SVMClassifier

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
wd = pytest.importorskip("widemargin.dask")


def samples(n=400, d=6, classes=2, seed=0):
    return make_classification(
        n, d, n_informative=4, n_redundant=1, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=seed
    )


def same_search(far, near):
    """The same points with the same scores, the same choice."""
    assert far.params == near.params
    assert far.results["params"] == near.results["params"]
    for name in ("error", "loss", "spread"):
        np.testing.assert_array_equal(far.results[name], near.results[name])
    assert (far.select, far.fits, far.search_rows) == (near.select, near.fits, near.search_rows)


def same_model(far, near, X):
    np.testing.assert_array_equal(far.decision_function(X), near.decision_function(X))
    assert (far.objective_, far.duality_gap_) == (near.objective_, near.duality_gap_)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": "linear", "select": "cv", "folds": 3, "class_weight": "balanced"},
        {"scale": "standard", "search_rows": 200, "probability": True},
        {"grid": {"C1": [1, 64], "C2": [1, 8], "D": [0.1, 0.2, 0.4, 0.6], "gamma": [0.1, 1.0]}, "cv": 3},
    ],
)
def test_the_same_choice_and_model_as_one_machine(client, parameters):
    X, y = samples()
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    far = wd.DaskODMClassifierCV(client=client, **parameters)
    far.fit(da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=100), da.from_array(weights, chunks=400))
    near = ODMClassifierCV(**parameters).fit(X, y, weights)
    same_search(far.search_, near.search_)
    same_model(far.to_local(), near, X)
    assert isinstance(far.to_local(), ODMClassifierCV)
    assert (far.C1_, far.best_score_) == (near.C1_, near.best_score_)
    if parameters.get("probability"):
        np.testing.assert_array_equal(far.to_local().predict_proba(X), near.predict_proba(X))


@pytest.mark.parametrize(
    ("estimator", "classes", "wishes"),
    [
        (SVMClassifier(kernel="rbf"), 2, {"folds": 3}),
        (LDMClassifier(kernel="linear"), 2, {"folds": 3, "scoring": "roc_auc"}),
        (L2SVMClassifier(kernel="rbf"), 3, {"folds": 3, "fixed": ["gamma"]}),
        (ODMClassifier(kernel="linear", max_iter=50), 3, {"grid": {"mu": [0.1, 0.5], "D": [0.1, 0.4]}, "folds": 3}),
    ],
)
def test_any_estimator_can_be_searched(client, estimator, classes, wishes):
    X, y = samples(n=300, classes=classes, seed=2)
    names = np.array(["ash", "birch", "cedar"])[y]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(label=names)
    whole = dd.from_pandas(frame, npartitions=3)
    columns = list(frame.columns[:-1])
    far = wd.tune(estimator, whole[columns], whole["label"], client=client, **wishes)
    near = widemargin.tune(estimator, frame[columns], names, **wishes)
    same_search(far.search_, near.search_)
    same_model(far, near, frame[columns])
    assert list(far.feature_names_in_) == columns


def test_the_data_are_sent_once(client, monkeypatch):
    X, y = make_classification(500, 1500, n_informative=6, flip_y=0.1, random_state=0)
    dX, dy = client.persist([da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)])
    before, sent = [], []
    settle, submit = wd.SearchFit.settle, client.submit

    def settled(self, known, about):
        settle(self, known, about)
        before.append(moved(client))

    def counted(function, *arguments, **options):
        sent.append(len(dumps((arguments, options))))
        return submit(function, *arguments, **options)

    monkeypatch.setattr(wd.SearchFit, "settle", settled)
    monkeypatch.setattr(client, "submit", counted)
    clf = wd.DaskODMClassifierCV(client=client).fit(dX, dy)
    assert clf.n_questions_ > 10
    assert clf.bytes_sent_ < 3 * X.nbytes
    # Neither all tasks together carry the samples, nor do workers send each other any once they have them.
    assert sum(sent) < X.nbytes / 2
    assert moved(client) - before[0] < X.nbytes / 10


def moved(client):
    """Bytes that workers sent each other so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_a_log_goes_on_on_a_cluster(client, tmp_path):
    X, y = samples(n=200)
    wishes = {"grid": {"C1": [1, 16, 64], "gamma": [0.1, 1.0]}, "resume": tmp_path / "log"}
    near = widemargin.tune(ODMClassifier(), X, y, **wishes)
    lines = (tmp_path / "log").read_text().splitlines()
    (tmp_path / "log").write_text("\n".join(lines[:4]) + "\n")
    far = wd.tune(ODMClassifier(), X, y, client=client, **wishes)
    assert far.search_.resumed == 3
    assert far.search_.params == near.search_.params
    same_model(far, near, X)
    assert len((tmp_path / "log").read_text().splitlines()) == len(lines)


def test_a_killed_worker_costs_a_retry(own_client, monkeypatch):
    client = own_client
    X, y = samples(n=900)
    pids = client.run(os.getpid)
    waits = []
    finished = wd.SearchFit.finished

    def deadly(self, futures, when):
        # Two lines are judged, two are at work, others wait.
        waits.append(when)
        if waits.count("FIRST_COMPLETED") == 3:
            assert len(futures) == 2
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return finished(self, futures, when)

    monkeypatch.setattr(wd.SearchFit, "finished", deadly)
    far = wd.DaskODMClassifierCV(client=client).fit(X, y)
    assert waits.count("FIRST_COMPLETED") > 3
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != set(pids.values())
    near = ODMClassifierCV().fit(X, y)
    same_search(far.search_, near.search_)
    same_model(far.to_local(), near, X)


def test_what_a_cluster_does_not_search_is_told(client):
    X, y = samples(n=100)
    wrong = [
        ({"scoring": "f1"}, "GridSearchCV"),
        ({"cv": StratifiedKFold(3)}, "GridSearchCV"),
        ({"average": True}, "600 samples"),
        ({"kernel": "precomputed"}, "expected one that the core has"),
        ({"C1": -1}, "C1 = -1"),
        ({"grid": {"C9": [1]}}, "C9 is not searched"),
        ({"folds": 1, "select": "cv"}, "folds = 1"),
    ]
    for parameters, words in wrong:
        with pytest.raises(ValueError, match=words):
            wd.DaskODMClassifierCV(client=client, **parameters).fit(X, y)
    X[70, 2] = np.nan
    with pytest.raises(ValueError, match="partition 1: X contains NaN"):
        wd.tune(SVMClassifier(), da.from_array(X, chunks=(50, -1)), y, client=client)
    with pytest.raises(TypeError, match="estimators of widemargin"):
        wd.tune(object(), X, y, client=client)
