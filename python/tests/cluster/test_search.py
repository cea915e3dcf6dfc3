import joblib
import numpy as np
import pytest
from distributed.protocol.pickle import dumps
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from widemargin import ODMClassifier

pytest.importorskip("distributed")


def test_a_grid_on_workers_sends_the_data_once(client, monkeypatch):
    X, y = make_classification(1500, 40, n_informative=6, flip_y=0.1, random_state=0)
    grid = {"C1": [4.0, 64.0], "D": [0.1, 0.5]}

    def search():
        return GridSearchCV(ODMClassifier(n_jobs=1), grid, cv=3)

    sent = []
    submit = client.submit

    def counted(function, *arguments, **options):
        sent.append(len(dumps((arguments, options))))
        return submit(function, *arguments, **options)

    monkeypatch.setattr(client, "submit", counted)
    with joblib.parallel_config(backend="dask", client=client, scatter=[X, y]):
        far = search().fit(X, y)
    near = search().fit(X, y)
    assert len(sent) >= 2
    # Neither the twelve fits nor all of them together carry the samples.
    assert sum(sent) < X.nbytes / 4
    assert far.best_params_ == near.best_params_
    np.testing.assert_array_equal(far.cv_results_["mean_test_score"], near.cv_results_["mean_test_score"])
