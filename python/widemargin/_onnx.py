"""Models as ONNX graphs of plain operators in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ._base import MarginClassifier

if TYPE_CHECKING:
    from onnx import ModelProto

# Shifts and factors of features.
Affine = tuple[NDArray[np.float64], NDArray[np.float64]]


def to_onnx(estimator: MarginClassifier | Pipeline, dtype: DTypeLike = np.float64) -> ModelProto:
    """Convert a fitted estimator to an ONNX model.

    The graph takes ``X`` (one sample a row) and gives ``label`` and ``scores``, which are what :term:`predict` and
    :term:`decision_function` give, and with ``probability=True`` also ``probabilities``, as :term:`predict_proba`. It
    has plain operators only (ir_version 8, opset 13), all in double precision. The same as the command
    ``widemargin export``. Needs the package ``onnx``.

    Parameters
    ----------
    estimator : object
        A fitted estimator of this package, or a pipeline that ends with one, behind scikit-learn's ``StandardScaler``,
        ``MinMaxScaler`` or ``MaxAbsScaler``.
    dtype : dtype, default=numpy.float64
        Type of the input: float64 or float32.

    Returns
    -------
    model : onnx.ModelProto
        The model; ``model.SerializeToString()`` are the bytes of its file.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import ODMClassifier, to_onnx
    >>> X, y = make_classification(random_state=0)
    >>> [output.name for output in to_onnx(ODMClassifier().fit(X, y)).graph.output]
    ['label', 'scores']
    """
    import onnx

    check_is_fitted(estimator)
    before: list[Affine] = []
    if isinstance(estimator, Pipeline):
        *steps, estimator = (step for _, step in estimator.steps if step is not None and step != "passthrough")
        before = [affine(step) for step in steps]
    if not isinstance(estimator, MarginClassifier):
        raise TypeError(f"to_onnx converts estimators of widemargin, not {type(estimator).__name__}")
    estimator._refuse_gram("to_onnx converts")
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype = {dtype}: expected float64 or float32")
    name, labels = type(estimator).__name__, label_values(estimator.classes_)
    content = estimator._model.to_onnx(name, labels, dtype == np.float32, before)
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model)
    return model


def affine(step: Any) -> Affine:
    """A scaler as ``(x - shift) * factor``."""
    if isinstance(step, StandardScaler):
        width = step.n_features_in_
        shift = step.mean_ if step.with_mean else np.zeros(width)
        return shift, 1.0 / step.scale_ if step.with_std else np.ones(width)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return -step.min_ / step.scale_, step.scale_
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return np.zeros(step.n_features_in_), 1.0 / step.scale_
    known = "StandardScaler, MinMaxScaler or MaxAbsScaler without clip"
    raise ValueError(f"to_onnx converts a pipeline of {known} before the classifier, not {step}")


def label_values(classes: NDArray[Any]) -> list[Any]:
    """The labels in a type ONNX has."""
    if classes.dtype.kind in "UO":
        return [str(label) for label in classes]
    return classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64).tolist()
