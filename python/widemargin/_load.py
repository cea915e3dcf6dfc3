"""From a model file to a fitted estimator."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _widemargin, baselines
from ._base import MarginClassifier
from ._classifiers import LDMClassifier, MSVMAvClassifier, ODMClassifier, SVMClassifier

CLASSIFIERS: dict[str, type[MarginClassifier]] = {
    "mcodm": ODMClassifier,
    **{cls._machine: cls for cls in (ODMClassifier, LDMClassifier, MSVMAvClassifier, SVMClassifier)},
    **baselines.CLASSIFIERS,
}
WRAPPER_OF_RULE = {"sign": "ovr", "largest": "ovr", "pairs": "ovo", "codes": "ecoc"}


def load(path: str | os.PathLike[str]) -> MarginClassifier:
    """Read a model that an estimator or the command line wrote.

    Labels come back as they were (whole numbers, numbers, booleans, text), and so does `feature_names_in_`; a text
    column of a table that the command line was trained on is one feature a category, named ``column=category``. What
    only training knows (`margins_`, `loo_bound_`, `norm_`) is not in the file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator : object
        A fitted estimator of the class that belongs to the machine.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_classification
    >>> import widemargin
    >>> X, y = make_classification(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "odm.model")
    ...     widemargin.ODMClassifier(C1=10).fit(X, y).save(path)
    ...     widemargin.load(path)
    ODMClassifier(C1=10.0, C2=1.25, gamma=...)
    """
    model = _widemargin.Model.load(path)
    info = json.loads(model.info())
    estimator = unfitted(info)
    estimator._model = model
    estimator.n_features_in_ = info["features"]
    if info["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(info["feature_names"], dtype=object)
    estimator._take_over(info, info["labels"], label_values(info["labels"], info["label_kind"]))
    support = model.support_rows()
    if support is not None:
        estimator.support_ = support.astype(np.intp)
    return estimator


def unfitted(info: dict[str, Any]) -> MarginClassifier:
    """An estimator with the parameters a model was trained with."""
    machine = info["machine"]
    if machine not in CLASSIFIERS:
        raise ValueError(f"no estimator for the machine {machine} of this model")
    cls = CLASSIFIERS[machine]
    given = {**kernel_parameters(info["kernel"]), **intercept_parameters(info["bias_asked"])}
    given.update(cls._parameters_of(machine, info["parameters"]))
    calibration = info["calibration"]
    given.update(probability="isotonic" if calibration and "curves" in calibration else calibration is not None)
    given.update(scale=info["scaling"])
    if "multi_class" in cls._get_param_names() and machine != "mcodm":
        given["multi_class"] = multi_class(cls, info)
    return cls(**given)


def multi_class(cls: type[MarginClassifier], info: dict[str, Any]) -> str:
    """How the model meets more than two classes; with two, the default."""
    if len(info["labels"]) == 2:
        return cls().multi_class
    return WRAPPER_OF_RULE[info["decision"]["rule"]]


def kernel_parameters(kernel: dict[str, Any]) -> dict[str, Any]:
    """The kernel by the names of the estimators' parameters."""
    given = {name: kernel[name] for name in ("gamma", "degree", "coef0") if name in kernel}
    return {"kernel": kernel["kind"], **given}


def intercept_parameters(bias: str | dict[str, float]) -> dict[str, Any]:
    """The intercept by the names of the estimators' parameters."""
    if isinstance(bias, dict):
        return {"intercept_scaling": bias["feature"]}
    return {"fit_intercept": bias == "free"}


def label_values(labels: list[str], kind: str | None) -> NDArray[Any]:
    """Labels as what they were; as the numbers they are, if they all are, where a file does not say."""
    if kind == "boolean":
        return np.array([label.lower() == "true" for label in labels])
    if kind == "text":
        return np.array(labels)
    for number in (float,) if kind == "number" else (int, float):
        try:
            values = [number(label) for label in labels]
        except ValueError:
            continue
        if sorted(set(values)) == values:
            return np.array(values)
    return np.array(labels)
