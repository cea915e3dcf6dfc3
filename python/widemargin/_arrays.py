"""Samples and labels as the core borrows them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

Samples = ArrayLike | sparse.spmatrix | sparse.sparray
Rows = NDArray[Any] | tuple[int, NDArray[np.uint64], NDArray[np.uint32], NDArray[Any]]


def label_text(label: object) -> str:
    """A label as a model file holds it: whole numbers without a point."""
    if isinstance(label, (float, np.floating)):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)


def label_kind(classes: NDArray[Any]) -> str:
    """What a model file says the labels are, so that they come back as such."""
    if classes.dtype.kind == "O" and all(isinstance(label, (bool, np.bool_)) for label in classes):
        return "boolean"
    if classes.dtype.kind == "O" and all(isinstance(label, Integral) for label in classes):
        return "whole"
    return {"b": "boolean", "i": "whole", "u": "whole", "f": "number"}.get(classes.dtype.kind, "text")


def refuse_text(X: object) -> None:
    """Name the columns of a data frame that hold text or times, which are no features by themselves."""
    names, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if names is None or dtypes is None:
        return
    wrong = [f"{name} ({kind})" for name, dtype in zip(names, dtypes) if (kind := not_numbers(X, name, dtype))]
    if wrong:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(wrong)}. Encode text first, for example with "
            "scikit-learn's OneHotEncoder in a ColumnTransformer, make numbers of times, or leave the columns out"
        )


def not_numbers(X: Any, name: Any, dtype: Any) -> str | None:
    """What the column of a data frame holds, if that is no number or truth value."""
    kind = getattr(dtype, "kind", None)
    if kind is None:
        # A type of polars.
        text = str(dtype)
        if text.startswith(("Date", "Time", "Duration")):
            return "times"
        return "text" if text.startswith(("String", "Utf8", "Categorical", "Enum")) else None
    if kind in "mM":
        return "times"
    if kind != "O":
        return None
    column = X[name]
    if getattr(column, "ndim", 1) != 1:
        return None
    return "text" if any(isinstance(value, str) for value in column) else None


def encode(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The classes, ascending, and each label's position among them."""
    is_whole = y.dtype.kind in "biu" or (y.dtype.kind == "f" and np.array_equal(np.trunc(y), y))
    if is_whole and np.isfinite(y).all():
        low, high = int(y.min()), int(y.max())
        if high - low < len(y):
            return encode_numbers(y, places_from(y, low), high - low)
    whole_objects = y.dtype.kind == "O" and all(isinstance(label, Integral) for label in y)
    if y.dtype.kind not in "iubUS" and not whole_objects:
        check_classification_targets(y)
    if y.dtype.kind not in "US":
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes.astype(np.uint32)
    classes = np.unique(y)
    if len(classes) > 16:
        return classes, np.searchsorted(classes, y).astype(np.uint32)
    codes = np.zeros(len(y), np.uint32)
    for code, label in enumerate(classes[1:], 1):
        codes[y == label] = code
    return classes, codes


def places_from(y: NDArray[Any], low: int) -> NDArray[Any]:
    """How far whole numbers are above the lowest of them, which a narrow type may have no room for."""
    if y.dtype.kind == "b":
        return y.astype(np.intp) - low
    if y.dtype.kind == "i":
        return y.astype(np.int64) - low
    return (y - y.dtype.type(low)).astype(np.intp)


def encode_numbers(y: NDArray[Any], places: NDArray[Any], last: int) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """As `encode`, for labels whose `places` are numbers from 0 to `last`: without sorting them."""
    is_there = np.zeros(last + 1, dtype=bool)
    is_there[places] = True
    labels = np.zeros(last + 1, dtype=y.dtype)
    labels[places] = y
    code_at = np.zeros(last + 1, dtype=np.uint32)
    code_at[is_there] = np.arange(is_there.sum())
    return labels[is_there], code_at[places]


def rows_of(X: NDArray[Any] | sparse.csr_array) -> Rows:
    """Validated samples as the core borrows them."""
    if not sparse.issparse(X):
        return np.require(X, requirements=["C", "A"])
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = np.require(X.data, requirements=["C", "A"])
    return X.shape[1], offsets_of(X.indptr), columns_of(X.indices, X.shape[1]), values


def offsets_of(indptr: NDArray[Any]) -> NDArray[np.uint64]:
    """Row offsets as 64-bit unsigned numbers; a copy only of 32-bit ones."""
    return np.require(indptr, np.int64, ["C", "A"]).view(np.uint64)


def columns_of(indices: NDArray[Any], n_features: int) -> NDArray[np.uint32]:
    """Column indices as 32-bit unsigned numbers; a copy only of 64-bit ones."""
    if indices.dtype == np.int32:
        return np.require(indices, requirements=["C", "A"]).view(np.uint32)
    if n_features >= 2**32 or (indices.size and (indices.min() < 0 or indices.max() >= n_features)):
        raise ValueError("the sparse matrix should have column indices from 0 to n_features - 1, below 2**32")
    return np.ascontiguousarray(indices, dtype=np.uint32)


def csr_of(rows: Rows) -> NDArray[Any] | sparse.csr_array:
    """The core's samples as an array or a CSR array."""
    if not isinstance(rows, tuple):
        return rows
    cols, offsets, columns, values = rows
    return sparse.csr_array((values, columns, offsets.astype(np.int64)), shape=(len(offsets) - 1, cols))
