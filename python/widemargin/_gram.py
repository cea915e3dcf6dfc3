"""Kernels that only Python knows: matrices and callables.

A machine over the matrix ``K = L L'`` is the same machine, linear, over the rows of ``L``: their inner products are
``K``. The factor comes from Cholesky's method with pivots, which ends at the rank ``r`` that rounding leaves: it takes
``n r^2`` operations, and a new sample needs its kernel values with the ``r`` pivots only. So the core solves a linear
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
# largest entry.
SLACK = 1e-8


def is_gram(kernel: object) -> bool:
    """Whether a kernel is one that only Python knows."""
    return callable(kernel) or (isinstance(kernel, str) and kernel == "precomputed")


class GramMap:
    """From kernel values with the samples that were fitted to features whose inner products they are."""

    def __init__(self, kernel: Kernel | str, samples: Any) -> None:
        self.kernel = kernel
        self.samples = samples
        # Which samples are pivots, and the factor of their kernel matrix.
        self.pivots = np.empty(0, np.intp)
        self.factor = np.empty((0, 0))
        self.n_samples = 0

    @classmethod
    def fitted(cls, kernel: Kernel | str, X: Any) -> tuple[GramMap, NDArray[np.float64]]:
        """The map of these samples, and their features."""
        gram = cls(kernel, X.copy() if callable(kernel) else None)
        gram.pivots, features = factorised(gram.values(X))
        gram.factor, gram.n_samples = features[gram.pivots], len(features)
        return gram, features

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
        values = self.values(X)[:, self.pivots]
        return np.ascontiguousarray(linalg.solve_triangular(self.factor, values.T, lower=True).T)

    def coefficients(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What weights of the features are as coefficients of the samples."""
        coefficients = np.zeros((len(weights), self.n_samples))
        coefficients[:, self.pivots] = linalg.solve_triangular(self.factor, weights.T, lower=True, trans="T").T
        return coefficients


def factorised(matrix: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The pivots of a kernel matrix ``K``, and ``L`` with ``K = L L'`` up to rounding."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a kernel matrix to fit is square, X has the shape {matrix.shape}")
    size = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > SLACK * size:
        raise ValueError("a kernel matrix to fit is symmetric, X is not")
    tol = len(matrix) * np.finfo(np.float64).eps * size
    found, order, rank, _ = linalg.lapack.dpstrf(matrix, tol=tol, lower=1)
    order = order.astype(np.intp) - 1
    features = np.empty((len(matrix), rank))
    features[order] = np.tril(found[:, :rank])
    # What is left over is zero if and only if no eigenvalue is negative.
    left = np.abs(features @ features.T - matrix).max(initial=0.0)
    if left > SLACK * size:
        lowest = linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0]
        raise ValueError(f"a kernel matrix is positive semidefinite, this one has the eigenvalue {lowest:.3g}")
    return order[:rank], features
