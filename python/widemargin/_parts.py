"""Samples in parts, each on a worker of some engine: what all engines share."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

from . import _widemargin
from ._arrays import Rows, csr_of, encode, label_kind, label_text, rows_of
from ._base import MarginClassifier
from ._gram import is_gram

Ask = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# A model over parts is as good as one over samples at hand, to this.
TOLERANCE = 1e-6
# Memories of fits that no driver ended (it was killed) leave after so many others came.
MOST_MEMORIES = 4096


class Sent:
    """What may be sent from worker to worker, and whose arrays may then arrive out of line."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: in_line(value) for name, value in state.items()})


def in_line(value: Any) -> Any:
    """The same, its arrays such that the core can borrow them."""
    if isinstance(value, tuple):
        return tuple(map(in_line, value))
    return np.require(value, requirements=["C", "A"]) if isinstance(value, np.ndarray) else value


@dataclass
class Loaded(Sent):
    """A partition as the core borrows it, with what is known of its labels."""

    number: int
    rows: Rows
    labels: NDArray[Any]
    weights: NDArray[np.float64]
    n_features: int
    # Its distinct labels, the position of each label among them, and the weight of each.
    classes: NDArray[Any] = field(init=False)
    codes: NDArray[np.uint32] = field(init=False)
    class_weights: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.classes, self.codes = encode(self.labels) if len(self.labels) else (self.labels, np.zeros(0, np.uint32))
        self.class_weights = np.bincount(self.codes, self.weights, len(self.classes))

    def nbytes(self) -> int:
        """Bytes of its samples."""
        return sum(part.nbytes for part in self.rows[1:]) if isinstance(self.rows, tuple) else self.rows.nbytes

    def about(self) -> dict[str, Any]:
        """What the driver has to know of it."""
        return {
            "number": self.number,
            "rows": len(self.labels),
            "features": self.n_features,
            "classes": self.classes,
            "class_weights": self.class_weights,
        }


@dataclass
class Part(Sent):
    """A partition that can be asked."""

    rows: Rows
    codes: NDArray[np.uint32]
    weights: NDArray[np.float64]


def load_part(X: Any, y: Any, weights: Any, number: int, columns: Sequence[Any] | None = None) -> Loaded:
    """A partition of the samples, checked; errors name it by its number."""
    try:
        X, labels = as_samples(X, columns), np.asarray(y)
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.ndim != 1 or len(labels) != X.shape[0]:
            raise ValueError(f"it has {X.shape[0]} samples, and labels of shape {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y contains NaN or infinity")
        if weights is None:
            weights = np.ones(len(labels))
        else:
            weights = np.asarray(weights, np.float64).reshape(-1)
            check_weights(weights, labels)
            if (weights == 0).any():
                X, labels, weights = X[weights > 0], labels[weights > 0], weights[weights > 0]
        rows = rows_of(X)
        if not _widemargin.all_finite(rows, 1):
            raise ValueError(f"X contains NaN or infinity, {first_wrong(X)}")
        return Loaded(number, rows, labels, np.ascontiguousarray(weights), X.shape[1])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error


def as_samples(X: Any, columns: Sequence[Any] | None) -> NDArray[Any] | sparse.csr_array:
    """Samples of a partition in a form the core can borrow; the columns of a frame in this order."""
    if hasattr(X, "columns") and columns is not None:
        missing = [column for column in columns if column not in X.columns]
        if missing or len(X.columns) != len(columns):
            raise ValueError(f"its columns are {list(X.columns)}, expected {list(columns)}")
        X = X[list(columns)].to_numpy()
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"expected samples in rows, found an array of shape {X.shape}")
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    return np.require(X, kind, ["C", "A"])


def check_weights(weights: NDArray[np.float64], labels: NDArray[Any]) -> None:
    """Refuse weights that are none."""
    if len(weights) != len(labels):
        raise ValueError(f"it has {len(labels)} labels and {len(weights)} weights")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("expected sample weights that are finite and not negative")


def first_wrong(X: NDArray[Any] | sparse.csr_array) -> str:
    """Where the first value stands that is no number."""
    if sparse.issparse(X):
        place = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row, column = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    else:
        row, column = (int(index) for index in np.argwhere(~np.isfinite(X))[0])
    return f"in its row {row}, column {column}"


def coded(loaded: Loaded, classes: NDArray[Any], by_class: NDArray[np.float64] | None) -> Part:
    """A partition whose labels are positions among all classes, and whose weights are settled."""
    codes = loaded.codes
    if len(loaded.classes) < len(classes):
        codes = np.searchsorted(classes, loaded.classes).astype(np.uint32)[codes]
    weights = loaded.weights if by_class is None else loaded.weights * by_class[codes]
    if (weights > 0).all():
        return Part(loaded.rows, codes, np.ascontiguousarray(weights))
    raise ValueError(f"partition {loaded.number}: a class weight of 0 leaves no weight to some of its samples")


@dataclass
class Share(Sent):
    """All samples, and which share of the tiles of their kernel matrix is to be multiplied with here."""

    rows: Rows
    number: int
    count: int


def share_of(loaded: Sequence[Loaded], number: int, count: int) -> Share:
    """One of so many shares of the samples of all partitions."""
    return Share(rows_of(stacked(loaded)), number, count)


def stacked(loaded: Sequence[Loaded]) -> NDArray[Any] | sparse.csr_array:
    """The samples of partitions, one after the other: sparse if some are."""
    blocks = [csr_of(one.rows) for one in loaded]
    return sparse.vstack(blocks, "csr") if any(map(sparse.issparse, blocks)) else np.concatenate(blocks)


@dataclass
class Labelled(Sent):
    """All samples, with labels and weights, on which points of a search are judged."""

    rows: Rows
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None


def labelled(loaded: Sequence[Loaded]) -> Labelled:
    """The samples of all partitions as a search has them."""
    X, labels, weights = at_hand(loaded)
    return Labelled(rows_of(X), labels, weights)


def at_hand(
    loaded: Sequence[Loaded],
) -> tuple[NDArray[Any] | sparse.csr_array, NDArray[Any], NDArray[np.float64] | None]:
    """Samples, labels and weights of partitions, one after the other; no weights if all are 1."""
    weights = np.concatenate([one.weights for one in loaded])
    labels = np.concatenate([one.labels for one in loaded])
    return stacked(loaded), labels, None if (weights == 1).all() else weights


def judge(
    samples: Labelled, choices: _widemargin.Choices, wishes: _widemargin.Wishes, lines: list[str], threads: int
) -> list[str]:
    """What there is to say of lines of points of a search."""
    classes, codes = encode(samples.labels)
    labels = [label_text(label) for label in classes]
    choices = {**choices, "threads": threads}
    return _widemargin.judge_lines(samples.rows, codes, labels, samples.weights, choices, wishes, lines)


def product(share: Share, question: NDArray[Any], threads: int) -> NDArray[np.float64]:
    """What a share adds to a product with the kernel matrix."""
    return _widemargin.kernel_share(share.rows, in_line(question), share.number, share.count, threads)


# What parts remember from one question to the next, by fit and part.
_memories: dict[tuple[str, int], _widemargin.Memory] = {}
_lock = threading.Lock()


def answer(parts: Sequence[tuple[int, Part]], question: NDArray[Any], fit: str, threads: int) -> NDArray[np.float64]:
    """The sum of what some parts answer, each by its number."""
    question = in_line(question)
    total: NDArray[np.float64] | None = None
    for number, part in parts:
        with _lock:
            memory = _memories.pop((fit, number), None) or _widemargin.Memory()
            _memories[fit, number] = memory
            while len(_memories) > MOST_MEMORIES:
                _memories.pop(next(iter(_memories)))
        sums = _widemargin.part_sums(part.rows, part.codes, part.weights, question, memory, threads)
        total = sums if total is None else total + sums
    return np.zeros(0) if total is None else total


def forget(fit: str) -> None:
    """Let go of what parts remember of a fit."""
    with _lock:
        for key in [key for key in _memories if key[0] == fit]:
            del _memories[key]


def add_up(answers: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of answers, in their order; those of no parts at all count for nothing."""
    answers = [one for one in answers if one.size]
    return np.sum(answers, axis=0) if answers else np.zeros(0)


@dataclass
class Known:
    """What the driver knows of all samples."""

    classes: NDArray[Any]
    n_features: int
    n_rows: int
    # The weight of each class that its samples' weights are multiplied by.
    by_class: NDArray[np.float64] | None


def know(about: Sequence[Mapping[str, Any]], class_weight: Any) -> Known:
    """From what is known of each partition to what is known of all."""
    filled = [one for one in about if one["rows"]]
    if not filled:
        raise ValueError("there are no samples: every partition is empty")
    widths = {one["features"]: one["number"] for one in reversed(filled)}
    if len(widths) > 1:
        words = " and ".join(f"{width} (partition {number})" for width, number in sorted(widths.items()))
        raise ValueError(f"partitions have different numbers of features: {words}")
    kinds = {one["classes"].dtype.kind in "US" for one in filled}
    if len(kinds) > 1:
        raise ValueError("labels are text in some partitions and numbers in others")
    classes = np.unique(np.concatenate([one["classes"] for one in filled]))
    if len(classes) < 2:
        raise ValueError(f"y has 1 class, {classes[0]}: a classifier needs at least two")
    weights = np.zeros(len(classes))
    for one in filled:
        weights[np.searchsorted(classes, one["classes"])] += one["class_weights"]
    by_class = None
    if isinstance(class_weight, str):
        by_class = weights.sum() / (len(classes) * weights)
    elif class_weight is not None:
        by_class = compute_class_weight(class_weight, classes=classes, y=classes)
    return Known(classes, next(iter(widths)), sum(one["rows"] for one in filled), by_class)


def fit_local(estimator: MarginClassifier, known: Known, ask: Ask, names: Sequence[Any] | None) -> dict[str, Any]:
    """Fit the ordinary estimator by asking parts; returns what else the core tells."""
    estimator._check_parameters()
    choices = estimator._choices(len(known.classes))
    if choices["probability"]:
        raise ValueError("probability = True: expected False, probabilities need samples that are at hand")
    choices["label_kind"] = label_kind(known.classes)
    labels = [label_text(label) for label in known.classes]
    model, told = _widemargin.train_parts(ask, labels, known.n_features, known.n_rows, choices)
    estimator._model = model
    estimator.n_features_in_ = known.n_features
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    estimator._take_over(json.loads(model.info()), labels, known.classes)
    numbers = json.loads(told)
    estimator.norm_, estimator.loo_bound_ = numbers["norm"], None
    if not numbers["converged"]:
        warnings.warn(estimator._unconverged(numbers["stop"]), ConvergenceWarning, stacklevel=4)
    return numbers


def fit_kernel(
    estimator: MarginClassifier, loaded: Sequence[Loaded], ask: Ask, names: Sequence[Any] | None
) -> MarginClassifier:
    """Fit the ordinary estimator to samples that are at hand, asking for products with their kernel matrix."""
    refuse_gram(estimator)
    if estimator.probability:
        raise ValueError("probability = True: expected False, folds are not fitted on a cluster")
    X, y, weights = at_hand(loaded)
    estimator._learn(named(X, names), y, weights, partial(_widemargin.train_kernel, ask))
    return estimator


def refuse_gram(estimator: MarginClassifier) -> None:
    """Refuse a kernel that only this process knows."""
    if is_gram(estimator.kernel):
        raise ValueError(f"kernel = {estimator.kernel!r}: expected one that the core has, workers know no other")


def named(X: NDArray[Any] | sparse.csr_array, names: Sequence[Any] | None) -> Any:
    """Samples with the names of their features, if they have any."""
    if names is None or sparse.issparse(X):
        return X
    import pandas

    return pandas.DataFrame(X, columns=list(names))


def local_estimator(cls: type[MarginClassifier], parameters: Mapping[str, Any]) -> MarginClassifier:
    """The ordinary estimator: linear, one against all, to `TOLERANCE`, unless the parameters say otherwise."""
    defaults: dict[str, Any] = {"kernel": "linear", "tol": TOLERANCE}
    if "multi_class" in cls._get_param_names():
        defaults["multi_class"] = "ovr"
    return cls(**{**defaults, **parameters})
