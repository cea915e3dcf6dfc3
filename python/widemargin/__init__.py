"""Margin-distribution learning behind scikit-learn's interface.

A support vector machine maximises the smallest margin; the machines here shape the whole distribution of margins.

>>> from sklearn.datasets import load_breast_cancer
>>> from widemargin import ODMClassifier
>>> X, y = load_breast_cancer(return_X_y=True)
>>> ODMClassifier(kernel="rbf").fit(X, y).score(X, y) > 0.9
True
"""

from ._classifiers import LDMClassifier, MSVMAvClassifier, ODMClassifier, SVMClassifier
from ._display import MarginDistributionDisplay
from ._load import load
from ._onnx import to_onnx
from ._widemargin import __version__

__all__ = [
    "LDMClassifier",
    "MSVMAvClassifier",
    "MarginDistributionDisplay",
    "ODMClassifier",
    "SVMClassifier",
    "__version__",
    "load",
    "to_onnx",
]
