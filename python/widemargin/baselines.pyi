from collections.abc import Mapping
from typing import Any

import numpy as np

from ._base import MarginClassifier

CLASSIFIERS: dict[str, type[MarginClassifier]]
__all__: list[str]

class ODMLClassifier(MarginClassifier):
    def __init__(
        self,
        lambda1: float = 0.03125,
        lambda2: float = 0.03125,
        C: float = 512.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class L2SVMClassifier(MarginClassifier):
    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class LSSVMClassifier(MarginClassifier):
    def __init__(
        self,
        C: float = 64.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class SVRClassifier(MarginClassifier):
    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class MAMCClassifier(MarginClassifier):
    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class KMOMDClassifier(MarginClassifier):
    def __init__(
        self,
        lam: float = 0.1,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class MDOClassifier(MarginClassifier):
    def __init__(
        self,
        a: float = 10.0,
        b: float = 2.0,
        *,
        kernel: str = "linear",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class FMMClassifier(MarginClassifier):
    def __init__(
        self,
        rounds: int = 1000,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class LDAClassifier(MarginClassifier):
    def __init__(
        self,
        ridge: float = 0.0001,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "ovr",
        probability: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...

class MCSVMClassifier(MarginClassifier):
    def __init__(
        self,
        C: float = 1.0,
        loss: str = "cs",
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 0.001,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None: ...
