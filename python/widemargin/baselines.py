r"""The machines to compare with.

Their parameters are the core's: `C` where a paper has a cost, `lam` for a λ. In the formulas
:math:`\gamma_i = y_i f(x_i)` is the margin of a sample, :math:`m` their number.

Examples
--------
>>> from sklearn.datasets import make_classification
>>> from widemargin.baselines import LSSVMClassifier
>>> X, y = make_classification(random_state=0)
>>> LSSVMClassifier(C=10).fit(X, y).score(X, y) > 0.9
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._base import MarginClassifier
from ._docs import documented


@documented
class ODMLClassifier(MarginClassifier):
    r"""Large margin distribution machine as the ODM paper writes it.

    Minimises :math:`\frac12\|w\|^2 + \lambda_1 \mathrm{Var}(\gamma) - \lambda_2 \mathrm{mean}(\gamma) + \frac{C}{m}
    \sum_i \max(0, 1 - \gamma_i)`.

    Parameters
    ----------
    lambda1 : float, default=0.03125
        Weight λ1 of the margin variance; a number >= 0.
    lambda2 : float, default=0.03125
        Weight λ2 of the margin mean; a number >= 0.
    C : float or None, default=None
        Cost C of an error; a number > 0. ``None``: the number of samples, at least 512.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Optimal margin distribution machine", IEEE TKDE 32(6), 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import ODMLClassifier
    >>> X, y = make_classification(random_state=0)
    >>> ODMLClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "odm-l"
    _names = {"lambda1": "lambda1", "lambda2": "lambda2", "c": "C"}

    def __init__(
        self,
        lambda1: float = 0.03125,
        lambda2: float = 0.03125,
        C: float | None = None,
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
        self.lambda1 = lambda1
        self.lambda2 = lambda2
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


@documented
class HuberSVMClassifier(MarginClassifier):
    r"""Support vector machine with a Huberised hinge (Wang, Zhu & Zou 2008).

    Minimises :math:`\frac12\|w\|^2 + C \sum_i \varphi(\gamma_i)`, where :math:`\varphi` is the hinge with its corner
    rounded over a stretch :math:`\delta`.

    Parameters
    ----------
    C : float, default=1.0
        Cost C of an error; a number > 0.
    delta : float, default=1.0
        Length of the rounded corner; a number > 0.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import HuberSVMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> HuberSVMClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "huber-svm"
    _names = {"c": "C", "delta": "delta"}

    def __init__(
        self,
        C: float = 1.0,
        delta: float = 1.0,
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
        self.delta = delta
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
class L2SVMClassifier(MarginClassifier):
    r"""Support vector machine with the squared hinge.

    Minimises :math:`\frac12\|w\|^2 + C \sum_i \max(0, 1 - \gamma_i)^2`.

    Parameters
    ----------
    C : float, default=1.0
        Cost C of an error; a number > 0.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import L2SVMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> L2SVMClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "l2svm"
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
class LSSVMClassifier(MarginClassifier):
    r"""Least-squares support vector machine.

    Minimises :math:`\frac12\|w\|^2 + \frac{C}{m} \sum_i (1 - \gamma_i)^2`.

    Parameters
    ----------
    C : float or None, default=None
        Cost C of an error; a number > 0. ``None``: a quarter of the number of samples, at least 64.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    J. A. K. Suykens and J. Vandewalle, "Least squares support vector machine classifiers", Neural Processing Letters
    9, 1999.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import LSSVMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> LSSVMClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "lssvm"
    _names = {"c": "C"}

    def __init__(
        self,
        C: float | None = None,
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
class SVRClassifier(MarginClassifier):
    r"""Support vector regression on the labels.

    Minimises :math:`\frac12\|w\|^2 + C \sum_i \max(0, |1 - \gamma_i| - \epsilon)`.

    Parameters
    ----------
    C : float, default=1.0
        Cost C of an error; a number > 0.
    epsilon : float, default=0.1
        Half-width ε of the band in which an error costs nothing; a number >= 0.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import SVRClassifier
    >>> X, y = make_classification(random_state=0)
    >>> SVRClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "svr"
    _names = {"c": "C", "epsilon": "epsilon"}

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.epsilon = epsilon
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
class MAMCClassifier(MarginClassifier):
    r"""Machine of the largest mean margin.

    Minimises :math:`\frac12\|w\|^2 - C\, \mathrm{mean}(\gamma)`, in closed form :math:`w = C\, \mathrm{mean}(y x)`.

    Parameters
    ----------
    C : float, default=1.0
        Scale of the scores; a number > 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Unless `intercept_scaling` is a number, this machine has none.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    K. Pelckmans, J. Suykens and B. De Moor, "A risk minimization principle for a class of Parzen estimators", NIPS
    2007.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import MAMCClassifier
    >>> X, y = make_classification(random_state=0)
    >>> MAMCClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "mamc"
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
        multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool | str = False,
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
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class KMOMDClassifier(MarginClassifier):
    r"""Kernel method for the optimisation of the margin distribution.

    Minimises :math:`\gamma^\top ((1 - \lambda) Y G Y + \lambda I) \gamma` over one simplex a class. The weight of a
    whole class does not move its threshold, which lies half-way between: there is no `class_weight`.

    Parameters
    ----------
    lam : float, default=0.1
        From the smallest margin (0) to the mean margin (1); a number in [0, 1].
    intercept_scaling : float or None, default=None
        ``None`` for the machine's own threshold. With a number there is no intercept: the weight of an appended
        feature is always 0 here.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    F. Aiolli, G. Da San Martino and A. Sperduti, "A kernel method for the optimization of the margin distribution",
    ICANN 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import KMOMDClassifier
    >>> X, y = make_classification(random_state=0)
    >>> KMOMDClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "km-omd"
    _names = {"lambda": "lam"}

    def __init__(
        self,
        lam: float = 0.1,
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
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class MDOClassifier(MarginClassifier):
    r"""Margin distribution optimisation, linear only.

    Minimises the mean of :math:`\exp(-a v^2)` for :math:`v \ge 0`, :math:`\exp(-b v)` for :math:`v < 0`, over
    :math:`v = y (w \cdot x + t) / R` with :math:`\|w\| = 1`.

    Parameters
    ----------
    a : float, default=100.0
        How fast the cost of rows on the right side falls with the margin; a number > 0.
    b : float, default=50.0
        How fast the cost of rows on the wrong side rises; a number > 0.
    kernel : {"linear"}, default="linear"
        There is no other.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    A. Garg and D. Roth, "Margin distribution and learning algorithms", ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import MDOClassifier
    >>> X, y = make_classification(random_state=0)
    >>> MDOClassifier().fit(X, y).coef_.shape
    (1, 20)
    """

    _machine = "mdo"
    _names = {"a": "a", "b": "b"}

    def __init__(
        self,
        a: float = 100.0,
        b: float = 50.0,
        *,
        kernel: str | Callable[[Any, Any], Any] = "linear",
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
        self.a = a
        self.b = b
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
class FMMClassifier(MarginClassifier):
    r"""Machine of the largest smallest margin.

    Maximises :math:`\min_i \gamma_i` over :math:`\|w\| = 1`, by dual acceleration. That is the same however often a
    sample counts: there is no `class_weight`.

    Parameters
    ----------
    rounds : int, default=1000
        Rounds at most; a whole number >= 1.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Unless `intercept_scaling` is a number, an appended constant feature of 1
        stands for it.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    Z. Ji, N. Srebro and M. Telgarsky, "Fast margin maximization via dual acceleration", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import FMMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> FMMClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "fmm"
    _names = {"rounds": "rounds"}

    def __init__(
        self,
        rounds: int = 1000,
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
        probability: bool | str = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.rounds = rounds
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class LDAClassifier(MarginClassifier):
    r"""Fisher's linear discriminant; with a kernel, the kernel Fisher discriminant.

    :math:`w = (S_w + \rho I)^{-1} (\mu_+ - \mu_-)`, with the threshold half-way between the means. The weight of a
    whole class does not move it: there is no `class_weight`.

    Parameters
    ----------
    ridge : float, default=0.0001
        What is added to each variance, as a part of the mean variance; a number > 0.
    intercept_scaling : float or None, default=None
        ``None`` for the machine's own threshold. With a number there is no intercept: the weight of an appended
        feature is always 0 here.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    S. Mika, G. Ratsch, J. Weston, B. Scholkopf and K.-R. Muller, "Fisher discriminant analysis with kernels", 1999.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin.baselines import LDAClassifier
    >>> X, y = make_classification(random_state=0)
    >>> LDAClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "lda"
    _names = {"ridge": "ridge"}

    def __init__(
        self,
        ridge: float = 0.0001,
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
        probability: bool | str = False,
        cache_size: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.ridge = ridge
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.probability = probability
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented
class MCSVMClassifier(MarginClassifier):
    r"""Support vector machine for many classes in one problem.

    Minimises :math:`\frac12 \sum_l \|w_l\|^2 + C \sum_i \max(0, 1 - \gamma_i)` over the margins by which a sample's
    own class exceeds the others.

    Parameters
    ----------
    C : float, default=1.0
        C: weight of the loss; a number > 0.
    loss : {"cs", "ww"}, default="cs"
        Cs: the best rival counts (Crammer-Singer); ww: every rival counts (Weston-Watkins); one of cs, ww.
    <shared parameters>

    Attributes
    ----------
    <attributes>

    References
    ----------
    K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", JMLR 2,
    2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.baselines import MCSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MCSVMClassifier().fit(X, y).score(X, y) > 0.8
    True
    """

    _machine = "mcsvm"
    _names = {"c": "C", "loss": "loss"}

    def __init__(
        self,
        C: float = 1.0,
        loss: str = "cs",
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        scale: str | None = None,
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
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


CLASSIFIERS: dict[str, type[MarginClassifier]] = {
    cls._machine: cls
    for cls in (
        ODMLClassifier,
        L2SVMClassifier,
        HuberSVMClassifier,
        LSSVMClassifier,
        SVRClassifier,
        MAMCClassifier,
        KMOMDClassifier,
        MDOClassifier,
        FMMClassifier,
        LDAClassifier,
        MCSVMClassifier,
    )
}
__all__ = [
    "FMMClassifier",
    "HuberSVMClassifier",
    "KMOMDClassifier",
    "L2SVMClassifier",
    "LDAClassifier",
    "LSSVMClassifier",
    "MAMCClassifier",
    "MCSVMClassifier",
    "MDOClassifier",
    "ODMLClassifier",
    "SVRClassifier",
]
