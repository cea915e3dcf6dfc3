"""Kernels that only Python knows: matrices and callables.

A machine over a kernel matrix ``K = U S U'`` is the same machine, linear, over the features ``U S^(1/2)``: their inner
products are ``K``. A new sample with kernel values ``k`` has the features ``k U S^(-1/2)``. So the core solves a linear
problem, with the same certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

Kernel = Callable[[Any, Any], Any]
# A matrix that rounding alone keeps from being symmetric, or positive semidefinite, is close to one by this part of its
# largest entry or eigenvalue.
SLACK = 1e-8


def is_gram(kernel: object) -> bool:
    """Whether a kernel is one that only Python knows."""
    return callable(kernel) or (isinstance(kernel, str) and kernel == "precomputed")


class GramMap:
    """From kernel values with the samples that were fitted to features whose inner products they are."""

    def __init__(self, kernel: Kernel | str, samples: Any) -> None:
        self.kernel = kernel
        self.samples = samples
        self.basis = np.empty((0, 0))

    @classmethod
    def fitted(cls, kernel: Kernel | str, X: Any) -> tuple[GramMap, NDArray[np.float64]]:
        """The map of these samples, and their features."""
        gram = cls(kernel, X.copy() if callable(kernel) else None)
        values = gram.values(X)
        gram.basis = basis_of(values)
        return gram, np.ascontiguousarray(values @ gram.basis)

    def values(self, X: Any) -> NDArray[np.float64]:
        """The kernel values of samples with those that were fitted."""
        values = X if self.samples is None else self.kernel(X, self.samples)
        values = values.toarray() if sparse.issparse(values) else values
        values = np.asarray(values, dtype=np.float64)
        if self.samples is not None and values.shape != (X.shape[0], self.samples.shape[0]):
            expected = (X.shape[0], self.samples.shape[0])
            raise ValueError(f"kernel returned an array of shape {values.shape}: expected {expected}")
        if not np.isfinite(values).all():
            raise ValueError("the kernel matrix contains NaN or infinity")
        return values

    def features(self, X: Any) -> NDArray[np.float64]:
        """The features of samples."""
        return np.ascontiguousarray(self.values(X) @ self.basis)


def basis_of(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """``U S^(-1/2)`` of a kernel matrix, over its eigenvalues above rounding."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a kernel matrix to fit is square, X has the shape {matrix.shape}")
    size = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > SLACK * size:
        raise ValueError("a kernel matrix to fit is symmetric, X is not")
    values, vectors = linalg.eigh(0.5 * (matrix + matrix.T))
    largest = values.max(initial=0.0)
    if values.min(initial=0.0) < -SLACK * largest:
        raise ValueError(f"a kernel matrix is positive semidefinite, this one has the eigenvalue {values.min():.3g}")
    kept = values > largest * len(values) * np.finfo(np.float64).eps
    return vectors[:, kept] / np.sqrt(values[kept])
