"""The search for parameters: the core's, on shared kernel matrices and from warm starts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Bunch

from . import _widemargin
from ._base import ATTRIBUTES, MACHINES, MarginClassifier, Samples, indented, parameters_text
from ._classifiers import ODM_WAYS, ODM_WAYS_MEANING, ODMClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

Estimator = TypeVar("Estimator", bound=MarginClassifier)
Grid = Mapping[str, Sequence[Any] | str] | str

GRID = """\
grid : dict, str or None, default=None
    What is tried. ``None`` goes from coarse to fine over the machine's own grid; ``"paper"`` tries every point of the
    papers' grid. A dict from parameters to lists of values tries all combinations, and so does a text in the syntax of
    the command line, such as ``"C1=2^0:2^10,D=0:0.5:0.1"``; parameters it does not name keep their value. mcODM, what
    an `ODMClassifier` is with more than two classes, is searched in its own ``lambda``, ``mu`` and ``D``.
select : {"loo-loss", "loo", "cv"} or None, default=None
    By what points are compared: the logistic loss of the leave-one-out margins in closed form, their error, or
    cross-validation. ``None`` is ``"loo-loss"`` where the machine has such margins (ODM, least squares and squared
    hinge with two classes), else ``"cv"``.
folds : int, default=5
    Folds of cross-validation; they are stratified.
repeats : int, default=1
    How often the samples are dealt into folds anew.
scale : {"minmax", "maxabs", "standard"} or None, default=None
    How features are scaled, on the training samples of each fold and at last on all; the model keeps it.
resume : str or path-like, default=None
    A log: points in it are not tried again, new ones are added. So a search that was stopped goes on."""


def tune(
    estimator: Estimator,
    X: Samples,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    grid: Grid | None = None,
    fixed: Iterable[str] = (),
    select: str | None = None,
    folds: int = 5,
    repeats: int = 1,
    scale: str | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Estimator:
    """Search the parameters of an estimator and fit the best ones.

    The same as the command ``widemargin tune``: one kernel matrix serves all points of a width, and each fit starts
    where its neighbour ended.

    Parameters
    ----------
    estimator : object
        An estimator of this package. It stays as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        The labels.
    sample_weight : array-like of shape (n_samples,), default=None
        A sample of weight `s` counts as `s` samples.
    <grid>
    fixed : iterable of str, default=()
        Parameters that are not searched, such as ``["gamma"]``; for ``grid=None`` and ``grid="paper"``.

    Returns
    -------
    best : object
        A copy of the estimator with the best parameters, fitted on all samples. Its attribute ``search_`` says what
        was found: ``select``, ``params``, ``error``, ``loss``, ``spread``, ``runner_up``, ``at_edge`` (parameters whose
        best value is the last one tried), ``results`` (an array for each parameter and each measure, one entry a
        point), ``points``, ``paper_points``, ``fits``, ``fits_saved``, ``resumed``, ``shared`` and ``seconds``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import SVMClassifier, tune
    >>> X, y = make_classification(random_state=0)
    >>> best = tune(SVMClassifier(kernel="linear"), X, y, grid={"C": [0.01, 1, 100]})
    >>> best.C in (0.01, 1, 100), best.search_.points
    (True, 3)
    """
    best = clone(estimator)
    found = search(best, X, y, sample_weight, fixed, grid, select, folds, repeats, scale, resume)
    best.search_ = found
    return best.set_params(**found.params)


tune.__doc__ = tune.__doc__.replace("<grid>", indented(GRID))


def search(estimator, X, y, sample_weight, fixed, grid, select, folds, repeats, scale, resume):
    """Fit the best parameters; returns what was found."""
    machine = None

    def work(rows, codes, labels, weights, choices):
        nonlocal machine
        machine = choices["machine"]
        names = estimator._names_of(machine)
        wishes = {
            "grid": core_grid(grid, names, machine),
            "select": select,
            "folds": count("folds", folds),
            "repeats": count("repeats", repeats),
            "scale": scale,
            "fixed": [core_name(name, names, machine) for name in fixed],
            "resume": resume,
        }
        return _widemargin.tune(rows, codes, labels, weights, choices, wishes)

    (report,) = estimator._learn(X, y, sample_weight, work)
    return findings(estimator, machine, json.loads(report))


def count(name, value):
    """A number of folds or repeats, which the core checks further."""
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name} = {value}: expected a whole number")
    return int(value)


def core_name(name, names, machine):
    """The core's name of a parameter that is searched."""
    known = {shown: core for core, shown in names.items() if core in MACHINES[machine]["searched"]}
    known["gamma"] = "gamma"
    if name not in known:
        raise ValueError(f"{name} is not searched: expected one of {', '.join(sorted(known))}")
    return known[name]


def core_grid(grid, names, machine):
    """The grid by the core's names: the values of each parameter, or a text that says them."""
    if grid is None or (isinstance(grid, str) and grid == "paper"):
        return grid
    if isinstance(grid, str):
        parts = [part.partition("=") for part in grid.split(",")]
        grid = {name.strip(): values for name, _, values in parts}
    axes = [(core_name(name, names, machine), values) for name, values in grid.items()]
    return [(name, values if isinstance(values, str) else list(values)) for name, values in axes]


def findings(estimator, machine, report):
    """What was found, by the names of the estimator's parameters."""

    def params(trial):
        width = {} if trial["gamma"] is None else {"gamma": trial["gamma"]}
        return {**estimator._parameters_of(machine, trial["params"]), **width}

    best, second, trials = report["best"], report["runner_up"], report["trials"]
    points = [params(trial) for trial in trials]
    results = {f"param_{name}": np.array([point[name] for point in points]) for name in points[0]}
    results.update({name: np.array([trial[name] for trial in trials]) for name in ("error", "loss", "spread")})
    return Bunch(
        params=params(best),
        **{name: best[name] for name in ("error", "loss", "spread")},
        fold_errors=np.array(best["folds"]),
        runner_up=second and params(second),
        points=len(trials),
        results=results,
        **{name: value for name, value in report.items() if name not in ("best", "runner_up", "trials")},
    )


class ODMClassifierCV(ODMClassifier):
    """Optimal margin distribution machine that finds its parameters.

    Fitting searches `C1`, `C2`, `D` and the kernel's `gamma`, as far as they are not given, by leave-one-out margins in
    closed form or by cross-validation, and fits the best on all samples.

    Parameters
    ----------
    C1, C2, D : float or None, default=None
        Parameters of :class:`ODMClassifier`; ``None`` has them searched.
    gamma : {"scale", "auto"}, float or None, default=None
        The kernel's coefficient; ``None`` has it searched.
    <grid>
    <parameters>

    Attributes
    ----------
    C1_, C2_, D_, gamma_ : float
        The best parameters (`gamma_` is None with the linear kernel).
    best_params_ : dict
        The same.
    best_score_ : float
        Share of the samples left out that the best parameters predict.
    cv_results_ : dict of ndarray
        An entry a point: ``param_C1``, …, ``error``, ``loss``, ``spread``.
    search_ : Bunch
        All that :func:`tune` tells.
    <attributes>

    See Also
    --------
    tune : The same for any estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import ODMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ODMClassifierCV(scale="minmax", kernel="linear").fit(X, y)
    >>> clf.best_score_ > 0.95
    True
    """

    def __init__(
        self,
        C1: float | None = None,
        C2: float | None = None,
        D: float | None = None,
        *,
        grid: Grid | None = None,
        select: str | None = None,
        folds: int = 5,
        repeats: int = 1,
        scale: str | None = None,
        resume: str | os.PathLike[str] | None = None,
        kernel: str = "rbf",
        gamma: str | float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        multi_class: str = "mcodm",
        class_weight: Mapping[Any, float] | str | None = None,
        probability: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.D = D
        self.grid = grid
        self.select = select
        self.folds = folds
        self.repeats = repeats
        self.scale = scale
        self.resume = resume
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Search the parameters and fit the best ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            The labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight `s` counts as `s` samples; 0 leaves it out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = [name for name in ("C1", "C2", "D", "gamma") if getattr(self, name) is not None]
        wishes = self.grid, self.select, self.folds, self.repeats, self.scale, self.resume
        # Without a value of their own, parameters have that of the plain machine until the search has found a better.
        with_values = ODMClassifier(**plain_parameters(self))
        found = search(with_values, X, y, sample_weight, given, *wishes)
        self._adopt(with_values)
        self.search_, self.best_params_, self.cv_results_ = found, found.params, found.results
        self.best_score_ = 1.0 - found.error
        self.C1_, self.C2_, self.D_ = (found.params[name] for name in ("C1", "C2", "D"))
        self.gamma_ = found.params.get("gamma")
        return self

    def _adopt(self, fitted):
        """Take over all that fitting left in another estimator."""
        for name in [name for name in vars(self) if name == "_model" or name.endswith("_")]:
            delattr(self, name)
        for name, value in vars(fitted).items():
            if name == "_model" or name.endswith("_"):
                setattr(self, name, value)


def plain_parameters(estimator):
    """Those of the parameters of an `ODMClassifierCV` that an `ODMClassifier` has and that are given."""
    names = ODMClassifier._get_param_names()
    return {name: getattr(estimator, name) for name in names if getattr(estimator, name) is not None}


ODMClassifierCV.__doc__ = (
    ODMClassifierCV.__doc__.replace("<grid>", indented(GRID))
    .replace("<parameters>", parameters_text(ODM_WAYS, ODM_WAYS_MEANING, {"gamma"}))
    .replace("<attributes>", indented(ATTRIBUTES))
)
