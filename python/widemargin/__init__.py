"""Margin-distribution learning behind scikit-learn's interface.

A support vector machine maximises the smallest margin; the machines here shape the whole distribution of margins.

>>> from sklearn.datasets import load_breast_cancer
>>> from widemargin import ODMClassifier
>>> X, y = load_breast_cancer(return_X_y=True)
>>> ODMClassifier(kernel="rbf").fit(X, y).score(X, y) > 0.9
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._widemargin import __version__

if TYPE_CHECKING:
    from . import baselines
    from ._audit import LabelAudit, audit
    from ._classifiers import LDMClassifier, MSVMAvClassifier, ODMClassifier, SVMClassifier
    from ._display import MarginDistributionDisplay
    from ._load import load
    from ._onnx import to_onnx
    from ._tune import ODMClassifierCV, tune

__all__ = [
    "LDMClassifier",
    "LabelAudit",
    "MSVMAvClassifier",
    "MarginDistributionDisplay",
    "ODMClassifier",
    "ODMClassifierCV",
    "SVMClassifier",
    "__version__",
    "audit",
    "baselines",
    "load",
    "to_onnx",
    "tune",
]

_HOME = {
    "LDMClassifier": "_classifiers",
    "LabelAudit": "_audit",
    "MSVMAvClassifier": "_classifiers",
    "MarginDistributionDisplay": "_display",
    "ODMClassifier": "_classifiers",
    "ODMClassifierCV": "_tune",
    "SVMClassifier": "_classifiers",
    "audit": "_audit",
    "load": "_load",
    "to_onnx": "_onnx",
    "tune": "_tune",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: scikit-learn, which takes its time, only then."""
    if name == "baselines":
        return import_module(".baselines", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
