"""The machines this package is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._base import MarginClassifier
from ._docs import documented
from ._parameters import check_choice, wrapper

# C2 where it is not given, in parts of C1.
RATIO = 0.125


@documented
class ODMClassifier(MarginClassifier):
    r"""Optimal margin distribution machine.

    Minimises :math:`\frac12\|w\|^2 + \frac1m \sum_i (C_1 \max(0, 1 - D - \gamma_i)^2 +
    C_2 \max(0, \gamma_i - 1 - D)^2)` over the margins :math:`\gamma_i = y_i f(x_i)`: margins shall lie in a band
    around 1, and so have a large mean and a small variance. With more than two classes it is mcODM, with
    :math:`\lambda = C_1 (1-D)^2`, :math:`\mu = C_2 / C_1` and :math:`\theta = D` in that paper's notation.

    Parameters
    ----------
    C1 : float or None, default=None
        Cost of a margin below ``1 - D``. ``None``: the number of samples, at least 256, so that a sample counts as
        much among many as among few; for mcODM :math:`\lambda` is a sixteenth of their number, at least 64.
    C2 : float or None, default=None
        Cost of a margin above ``1 + D``; 0 leaves large margins alone. ``None``: an eighth of `C1`.
    D : float, default=0.4
        Half the width of the band of margins around 1 that cost nothing, in ``[0, 1)``.
    multi_class : {"mcodm", "ovr", "ovo", "ecoc"}, default="mcodm"
        How more than two classes are met: in one problem (mcODM; needs ``C2 <= C1``), one class against all others,
        every pair of classes, or exhaustive error-correcting codes.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Optimal margin distribution machine", IEEE TKDE 32(6), 2020.
    T. Zhang and Z.-H. Zhou, "Multi-class optimal margin distribution machine", ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import ODMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), ODMClassifier(kernel="linear")).fit(X, y)
    >>> clf.score(X, y) > 0.95
    True
    >>> clf[-1].duality_gap_ <= clf[-1].tol
    True
    """

    _machine = "odm"
    _names = {"c1": "C1", "c2": "C2", "d": "D"}

    def __init__(
        self,
        C1: float | None = None,
        C2: float | None = None,
        D: float = 0.4,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        scale: str | None = None,
        multi_class: str = "mcodm",
        decision_function_shape: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.D = D
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _machine_and_parameters(self, n_classes: int) -> tuple[str, dict[str, Any], str]:
        check_choice("multi_class", self.multi_class, ("mcodm", "ovr", "ovo", "ecoc"))
        if self.multi_class != "mcodm":
            return super()._machine_and_parameters(n_classes)
        if n_classes <= 2:
            return "odm", self._own_parameters(), wrapper("ovr")
        if self.C1 is None and self.C2 is not None:
            raise ValueError(f'C2 = {self.C2}: multi_class="mcodm" expects C1 beside it')
        C1, C2 = 1.0 if self.C1 is None else self.C1, self.C2
        if not (C1 > 0 and (C2 is None or 0 <= C2 <= C1) and 0 <= self.D < 1):
            values = f"C1 = {self.C1}, C2 = {self.C2}, D = {self.D}"
            raise ValueError(f'{values}: multi_class="mcodm" expects 0 <= C2 <= C1, C1 > 0 and 0 <= D < 1')
        parameters = {"mu": RATIO if C2 is None else C2 / C1, "theta": self.D}
        if self.C1 is not None:
            parameters["lambda"] = C1 * (1 - self.D) ** 2
        return "mcodm", parameters, wrapper(None)

    def _names_of(self, machine: str) -> dict[str, str]:
        return {"lambda": "lambda", "mu": "mu", "theta": "D"} if machine == "mcodm" else self._names

    @classmethod
    def _parameters_of(cls, machine: str, values: Mapping[str, Any]) -> dict[str, Any]:
        if machine != "mcodm":
            return super()._parameters_of(machine, values)
        cost = values["lambda"] / (1 - values["theta"]) ** 2
        return {"C1": cost, "C2": values["mu"] * cost, "D": values["theta"]}


@documented
class LDMClassifier(MarginClassifier):
    r"""Large margin distribution machine.

    Minimises :math:`\frac12\|w\|^2 + 2 \lambda_1 \mathrm{Var}(\gamma) - \lambda_2 \mathrm{mean}(\gamma) +
    C \sum_i \max(0, 1 - \gamma_i)` over the margins :math:`\gamma_i = y_i f(x_i)`: a support vector machine that
    also wants the mean of the margins large and their variance small.

    Parameters
    ----------
    C : float, default=1.0
        Cost of an error.
    lambda1 : float, default=0.03125
        Weight of the variance of the margins.
    lambda2 : float, default=0.03125
        Weight of the mean of the margins.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import LDMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> clf = LDMClassifier(kernel="linear").fit(X, y)
    >>> clf.coef_.shape
    (1, 20)
    """

    _machine = "ldm"
    _names = {"c": "C", "lambda1": "lambda1", "lambda2": "lambda2"}

    def __init__(
        self,
        C: float = 1.0,
        lambda1: float = 0.03125,
        lambda2: float = 0.03125,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        scale: str | None = None,
        multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class MSVMAvClassifier(MarginClassifier):
    r"""Minimisation of the margins' semi-variance with a large average.

    Minimises :math:`SV(w) / \mathrm{mean}(\gamma)^2` over :math:`\|w\| = 1`, where
    :math:`SV = \mathrm{mean} \max(0, \mathrm{mean}(\gamma) - \gamma)^2` counts only the margins below the mean, by
    alternating proximal steps.

    Parameters
    ----------
    alpha : float, default=64.0
        How much a round holds back from a larger mean margin. Small values end near the machine of the mean alone.
    beta : float, default=0.125
        How much a round holds back from a smaller semi-variance.
    n_rounds : int, default=100
        Rounds at most; a fit that does not come to rest by then has not converged.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Unless `intercept_scaling` is a number, an appended constant feature of 1 stands
        for it.
    tol : float, default=0.001
        The rounds end once one moves the weights by less than a millionth of this part of themselves.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    M. Qian, S. Ai, T. Zhang and W. Gao, "Margin distribution: minimising the semi-variance and maximising the
    average", IJCAI 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import MSVMAvClassifier
    >>> X, y = make_classification(random_state=0)
    >>> clf = MSVMAvClassifier().fit(X, y)
    >>> clf.score(X, y) > 0.9
    True
    """

    _machine = "msvmav"
    _names = {"alpha": "alpha", "beta": "beta", "iterations": "n_rounds"}

    def __init__(
        self,
        alpha: float = 64.0,
        beta: float = 0.125,
        n_rounds: int = 100,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        scale: str | None = None,
        multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.n_rounds = n_rounds
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class SVMClassifier(MarginClassifier):
    r"""Support vector machine: what the machines of this package are measured against.

    Minimises :math:`\frac12\|w\|^2 + C \sum_i \max(0, 1 - \gamma_i)` over the margins
    :math:`\gamma_i = y_i f(x_i)`, as :class:`sklearn.svm.SVC` does, and like it decides between more than two
    classes by votes of pairs; between equal votes the scores decide, as with its ``break_ties=True``.

    Parameters
    ----------
    C : float, default=1.0
        Cost of an error.
    multi_class : {"ovr", "ovo", "ecoc"}, default="ovo"
        How more than two classes are met: one class against all others, every pair of classes, or exhaustive
        error-correcting codes.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import SVMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> clf = SVMClassifier().fit(X, y)
    >>> len(clf.support_) == clf.dual_coef_.shape[1]
    True
    """

    _machine = "svm"
    _names = {"c": "C"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        scale: str | None = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
