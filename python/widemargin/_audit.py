"""Which labels are probably wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from . import _widemargin
from ._arrays import Samples, encode, label_text, rows_of
from ._base import CHECKS, MarginClassifier
from ._classifiers import ODMClassifier
from ._gram import is_gram

NAMED = 20


@dataclass
class LabelAudit:
    """What an audit found.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Indices of the samples (of those with a weight above zero), the most suspicious first.
    probability : ndarray of shape (n_samples,)
        The probability that a sample's label is wrong; zero of samples without a weight.
    label_probability : ndarray of shape (n_samples,)
        The probability of the label a sample has, by a model that did not see the sample: `order` is by it. NaN of
        samples without a weight.
    margin : ndarray of shape (n_samples,)
        By how much that label leads the best other one there; NaN of samples without a weight.
    likely : ndarray of shape (n_samples,)
        The most probable label of each sample.
    expected_wrong : float
        The number of labels expected to be wrong: the sum of the probabilities, samples counted by their weight.
    influence : ndarray of shape (n_samples,)
        By how much the margin of a sample falls when it is left out of the model.
    contradicted_by : dict
        For the first suspects, the nearest samples that have the likely label.
    model : str
        What the labels were judged by.
    by : str
        Whether samples were left out one by one or in folds.
    """

    order: NDArray[np.intp]
    probability: NDArray[np.float64]
    likely: NDArray[Any]
    expected_wrong: float
    influence: NDArray[np.float64] = field(repr=False)
    contradicted_by: dict[int, list[int]] = field(repr=False)
    model: str
    by: str
    label_probability: NDArray[np.float64] = field(repr=False)
    margin: NDArray[np.float64] = field(repr=False)


def audit(
    X: Samples,
    y: ArrayLike,
    estimator: MarginClassifier | None = None,
    sample_weight: ArrayLike | None = None,
) -> LabelAudit:
    """Find the samples whose label is probably wrong.

    Every sample is scored by a model that did not see it: left out one by one in closed form where the machine has it
    (ODM, least squares, squared hinge), else by five folds. Samples that speak for another label as clearly as samples
    with that label do tell what share of the labels is wrong, and with it how probable that is for each.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Their labels.
    estimator : estimator of this package, default=None
        What to judge by. By default the averaged ODM of up to 1500 samples, beyond that an ODM with an RBF kernel whose
        parameters are searched.
    sample_weight : array-like of shape (n_samples,), default=None
        A sample of weight `s` counts as `s` samples; 0 leaves it out.

    Returns
    -------
    audit : LabelAudit
        With `order`, `probability`, `label_probability`, `margin`, `likely`, `expected_wrong`, `influence` and
        `contradicted_by`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import audit
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> y[7] = 1 - y[7]
    >>> 7 in audit(X, y).order[:15]
    True
    """
    plain = ODMClassifier() if estimator is None else clone(estimator)
    X, y = validate_data(plain, X, y, **CHECKS)
    plain._check_parameters()
    if is_gram(plain.kernel):
        raise ValueError("audit knows kernels the core has, not precomputed or callable ones")
    classes, codes = encode(y)
    if len(classes) < 2:
        raise ValueError(f"y has 1 class, {classes[0]}: an audit needs at least two")
    weights = plain._weights(X, sample_weight)
    choices = plain._choices(len(classes))
    choices["class_weight"] = plain._class_weights(y, classes, codes, weights)
    rows, labels = rows_of(X), [label_text(label) for label in classes]
    plain._finite(rows, X)
    found = json.loads(_widemargin.audit(rows, codes, labels, weights, choices, estimator is not None, NAMED))
    suspects = found["suspects"]
    order = np.array([suspect["row"] for suspect in suspects], np.intp)
    probability, influence = np.zeros(len(y)), np.zeros(len(y))
    probability[order] = [suspect["probability"] for suspect in suspects]
    influence[order] = [suspect["influence"] for suspect in suspects]
    label_probability, margin = np.full(len(y), np.nan), np.full(len(y), np.nan)
    label_probability[order] = [suspect["label_probability"] for suspect in suspects]
    margin[order] = [suspect["margin"] for suspect in suspects]
    places = {label: place for place, label in enumerate(labels)}
    likely = y.copy()
    likely[order] = classes[[places[suspect["likely"]] for suspect in suspects]]
    by = found["by"]
    return LabelAudit(
        order,
        probability,
        likely,
        found["expected_wrong"],
        influence,
        {s["row"]: s["contradicted_by"] for s in suspects[:NAMED]},
        found["model"],
        by if isinstance(by, str) else f"{by['folds']} folds",
        label_probability,
        margin,
    )
