"""The search for parameters: the core's, on shared kernel matrices and from warm starts."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.validation import indexable

from . import _widemargin
from ._arrays import Samples
from ._base import MarginClassifier
from ._classifiers import ODMClassifier
from ._docs import documented
from ._parameters import MACHINES, check_choice, check_whole, is_number, is_whole, refuse

if TYPE_CHECKING:
    from typing_extensions import Self

Estimator = TypeVar("Estimator", bound=MarginClassifier)
Grid = Mapping[str, Sequence[Any] | str] | str
# Who judges lines of points elsewhere: from what the core is asked for to a function of some lines.
Judges = Callable[["_widemargin.Choices", "_widemargin.Wishes"], Callable[[list[str]], list[str]]]


@documented
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
    search_rows: int | str = "auto",
    scoring: str | None = None,
    scale: str | None = None,
    average: bool | Literal["ranks", "values"] = False,
    resume: str | os.PathLike[str] | None = None,
) -> Estimator:
    """Search the parameters of an estimator and fit the best ones.

    The same as the command ``widemargin tune``: one kernel matrix serves all points of a width, and each fit starts
    where its neighbour ended.

    Parameters
    ----------
    estimator : object
        An estimator of this package, or a pipeline that ends with one: its other steps are then fitted once, on all
        samples (features that are scaled on the training samples of each fold are asked for with `scale`). It stays as
        it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        The labels.
    sample_weight : array-like of shape (n_samples,), default=None
        A sample of weight `s` counts as `s` samples.
    fixed : iterable of str, default=()
        Parameters that are not searched, such as ``["gamma"]``; for ``grid=None`` and ``grid="paper"``.
    scoring : str or None, default=None
        By which score points are judged: one of scikit-learn's names ``"accuracy"``, ``"balanced_accuracy"``, ``"f1"``,
        ``"precision"``, ``"recall"``, ``"roc_auc"``, ``"average_precision"`` or, of more than two classes, those
        with ``"_macro"`` or ``"_ovr"`` behind it. ``None`` leaves it to `select`.
    scale : {"minmax", "maxabs", "standard", "rank"} or None, default=None
        How features are scaled, on the training samples of each fold and at last on all: the parameter `scale` that the
        best estimator shall have. ``None`` is the estimator's own.
    <shared parameters>

    Returns
    -------
    best : object
        A copy of the estimator with the best parameters, fitted on all samples. Its attribute ``search_`` says what
        was found: ``select``, ``params``, ``error``, ``loss``, ``spread``, ``runner_up``, ``at_edge`` (parameters whose
        best value is the last one tried), ``search_rows`` (how many samples they were judged on), ``first_rows``
        (on how many of these all were, if only the best on the others), ``results`` (an array for each parameter
        and each measure, one entry a point, with scikit-learn's names for `cv_results_` among them), ``best_index``,
        ``points``, ``paper_points``, ``fits``, ``fits_saved``, ``resumed``, ``shared`` and ``seconds``. With `average`
        a copy that is the average, more than two classes each against all others; `average_` says what it is made of,
        and ``search_`` has ``error``, ``search_rows``, ``fits`` and ``by`` (how samples were left out).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import SVMClassifier, tune
    >>> X, y = make_classification(random_state=0)
    >>> best = tune(SVMClassifier(kernel="linear"), X, y, grid={"C": [0.01, 1, 100]})
    >>> best.C in (0.01, 1, 100), best.search_.points
    (True, 3)
    """
    if isinstance(estimator, Pipeline):
        best = clone(estimator)
        wishes = {"grid": grid, "fixed": fixed, "select": select, "folds": folds, "repeats": repeats}
        transformed = X if len(best.steps) == 1 else best[:-1].fit_transform(X, y)
        name, last = best.steps[-1]
        more = {"search_rows": search_rows, "scoring": scoring, "scale": scale, "average": average, "resume": resume}
        best.steps[-1] = (name, tune(last, transformed, y, sample_weight, **wishes, **more))
        return best
    asked = Wishes(grid, list(fixed), select, folds, repeats, search_rows, resume, scoring)
    if average:
        return averaged(estimator, X, y, sample_weight, asked, scale, average)
    return tuned(estimator, X, y, sample_weight, asked, scale)


def tuned(
    estimator: Estimator,
    X: Samples,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    wishes: Wishes,
    scale: str | None,
    judges: Judges | None = None,
) -> Estimator:
    """A copy of the estimator with the best parameters, fitted."""
    check_estimator(estimator)
    best = clone(estimator)
    if scale is not None:
        best.set_params(scale=scale)
    found = search(best, X, y, sample_weight, wishes, judges)
    best.search_ = found
    return best.set_params(**found.params)


def averaged(
    estimator: Estimator,
    X: Samples,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    wishes: Wishes,
    scale: str | None,
    over: bool | str,
) -> Estimator:
    """A copy of the estimator that is the core's average over kernels and strengths."""
    check_estimator(estimator)
    plain, given = type(estimator)().get_params(deep=False), estimator.get_params(deep=False)
    unused = Wishes(None, [], None, 5, 1, wishes.search_rows, None)
    refuse_given(
        [
            *(name for name, value in vars(wishes).items() if value != getattr(unused, name)),
            *(name for name in (*estimator._names.values(), *ALL_AVERAGED) if given.get(name) != plain.get(name)),
        ]
    )
    best = clone(estimator).set_params(scale=scale or estimator.scale or "minmax")
    found = average_of(best, X, y, sample_weight, over, wishes.search_rows)
    best.search_ = Bunch(
        error=found["loo_error"], search_rows=found["judged_rows"], fits=found["fits"], by=best._loo_by
    )
    return best


# What an average takes all of, or has no use for.
ALL_AVERAGED = ("kernel", "gamma", "degree", "coef0", "max_iter", "multi_class", "decision_function_shape")


def refuse_given(names: Sequence[str]) -> None:
    """Refuse what an average would pass over."""
    if names:
        raise ValueError(f"an average takes all strengths and kernels, by samples left out: leave out {names[0]}")


def average_of(
    estimator: MarginClassifier,
    X: Samples,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    over: bool | str,
    search_rows: int | str,
) -> dict[str, Any]:
    """Make an estimator the core's average over kernels and strengths; returns what was found."""
    check_choice("average", "ranks" if over is True else over, ("ranks", "values"))
    how = (estimator._machine, "ranks" if over is True else str(over), rows_of_search(search_rows))
    (report,) = estimator._learn(X, y, sample_weight, lambda *samples: _widemargin.average(*samples, *how))
    found: dict[str, Any] = json.loads(report)
    return found


def check_estimator(estimator: object) -> None:
    """Refuse what has no parameters that the core could search."""
    if not isinstance(estimator, MarginClassifier):
        raise TypeError(f"tune searches the parameters of estimators of widemargin, not of {type(estimator).__name__}")


@dataclass(frozen=True)
class Wishes:
    """How to search."""

    grid: Grid | None
    fixed: list[str]
    select: str | None
    folds: int
    repeats: int
    search_rows: int | str
    resume: str | os.PathLike[str] | None
    scoring: str | None = None

    def for_core(self, names: Mapping[str, str], machine: str) -> _widemargin.Wishes:
        """The same as the core wants to hear it; `names` are the estimator's for the machine's parameters."""
        check_choice("select", self.select, ("loo-loss", "loo", "cv"), or_none=True)
        named = grid_values(self.grid)
        for name in self.fixed:
            if name in named:
                raise ValueError(f"{name} has a value, and values in grid: give it in one place")
        return {
            "grid": self.grid
            if isinstance(self.grid, str) and self.grid == "paper"
            else core_grid(named, names, machine),
            "select": self.select,
            "score": core_score(self.scoring),
            "folds": count("folds", self.folds),
            "repeats": count("repeats", self.repeats),
            "search_rows": rows_of_search(self.search_rows),
            "fixed": [core_name(name, names, machine) for name in self.fixed],
            "resume": self.resume,
        }


def search(
    estimator: MarginClassifier,
    X: Samples,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    wishes: Wishes,
    judges: Judges | None = None,
) -> Bunch:
    """Fit the best parameters; returns what was found."""
    machine = ""

    def work(
        rows: Any, codes: Any, labels: list[str], weights: Any, choices: _widemargin.Choices
    ) -> tuple[_widemargin.Model, _widemargin.Told, str]:
        nonlocal machine
        machine = choices["machine"]
        told = wishes.for_core(estimator._names_of(machine), machine)
        judge = None if judges is None else judges(choices, told)
        return _widemargin.tune(rows, codes, labels, weights, choices, told, judge)

    (report,) = estimator._learn(X, y, sample_weight, work)
    return findings(estimator, machine, json.loads(report))


# The core's scores by scikit-learn's names.
SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "roc_auc": "auc",
    "roc_auc_ovr": "auc",
    "average_precision": "average_precision",
    **{f"{name}{mean}": name for name in ("f1", "precision", "recall") for mean in ("", "_macro")},
}


def core_score(scoring: str | None) -> str | None:
    """The core's name of a score."""
    check_choice("scoring", scoring, tuple(SCORES), or_none=True)
    return None if scoring is None else SCORES[scoring]


def count(name: str, value: object) -> int:
    """A number of folds or repeats, which the core checks further."""
    check_whole(name, value, "a whole number", 0)
    return int(value)


def rows_of_search(value: int | str) -> str:
    """On how many samples points are judged, as the core reads it."""
    if isinstance(value, str):
        check_choice("search_rows", value, ("auto", "all"))
    else:
        check_whole("search_rows", value, "'auto', 'all' or a whole number >= 1", 1)
    return str(value)


def core_name(name: str, names: Mapping[str, str], machine: str) -> str:
    """The core's name of a parameter that is searched."""
    known = {shown: core for core, shown in names.items() if core in MACHINES[machine]["searched"]}
    known["gamma"] = "gamma"
    if name not in known:
        raise ValueError(f"{name} is not searched: expected one of {', '.join(sorted(known))}")
    return known[name]


def grid_values(grid: Grid | None) -> dict[str, Sequence[Any] | str]:
    """The values of each parameter that a grid names."""
    if grid is None or (isinstance(grid, str) and grid == "paper"):
        return {}
    if isinstance(grid, str):
        parts = [part.partition("=") for part in grid.split(",")]
        return {name.strip(): values for name, _, values in parts}
    if not isinstance(grid, Mapping):
        refuse("grid", grid, "None, a text or a dict", False)
    return dict(grid)


def core_grid(
    named: Mapping[str, Sequence[Any] | str], names: Mapping[str, str], machine: str
) -> list[tuple[str, str | list[Any]]] | None:
    """The grid by the core's names: values or a text of each parameter; None if it names nothing."""
    return [(core_name(name, names, machine), core_values(name, values)) for name, values in named.items()] or None


def core_values(name: str, values: Sequence[Any] | str) -> str | list[Any]:
    """The values of one parameter."""
    if isinstance(values, str):
        return values
    for value in values:
        if not is_number(value):
            refuse(name, value, "numbers in a grid's list", False)
    return list(values)


def findings(estimator: MarginClassifier, machine: str, report: dict[str, Any]) -> Bunch:
    """What was found, by the names of the estimator's parameters."""

    def params(trial: dict[str, Any]) -> dict[str, Any]:
        width = {} if trial["gamma"] is None else {"gamma": trial["gamma"]}
        return {**estimator._parameters_of(machine, trial["params"]), **width}

    best, second, trials = report["best"], report["runner_up"], report["trials"]
    points = [params(trial) for trial in trials]
    return Bunch(
        params=params(best),
        **{name: best[name] for name in ("error", "loss", "spread")},
        fold_errors=np.array(best["folds"]),
        runner_up=second and params(second),
        points=len(trials),
        results=results_table(points, trials, report["select"]),
        best_index=points.index(params(best)),
        **{name: value for name, value in report.items() if name not in ("best", "runner_up", "trials")},
    )


def results_table(points: list[dict[str, Any]], trials: list[dict[str, Any]], select: str) -> dict[str, Any]:
    """All points as scikit-learn's `cv_results_` has them, and the core's own measures.

    Scores are shares of samples that are predicted. The ranks are by the measure that decided. A point that could not
    win any more has no score in the folds it was spared, and the mean is an upper bound; ``dropped`` says which, and
    which were judged on a part of the samples only. They come last.
    """
    measured = ("error", "loss", "spread", "dropped")
    table: dict[str, Any] = {name: np.array([trial[name] for trial in trials]) for name in measured}
    table["params"] = points
    for name in points[0]:
        table[f"param_{name}"] = np.ma.MaskedArray([point[name] for point in points])
    n_folds = max(len(trial["folds"]) for trial in trials)
    for fold in range(n_folds if not any("cost" in trial for trial in trials) else 0):
        scores = [1.0 - trial["folds"][fold] if fold < len(trial["folds"]) else np.nan for trial in trials]
        table[f"split{fold}_test_score"] = np.array(scores)
    by_metric = any("cost" in trial for trial in trials)
    if by_metric:
        # A point at which the numbers broke down has no score.
        table["cost"] = np.array([trial.get("cost", np.nan) for trial in trials])
    table["mean_test_score"] = 1.0 - (table["cost"] if by_metric else table["error"])
    table["std_test_score"] = table["spread"] if select == "cv" else np.full(len(trials), np.nan)
    decisive = ("cost", "loss") if by_metric else ("loss", "error") if select == "loo-loss" else ("error", "loss")
    measures = ("dropped", *decisive)
    decided = list(zip(*(np.nan_to_num(table[name], nan=np.inf).tolist() for name in measures)))
    ascending = sorted(set(decided))
    table["rank_test_score"] = np.array([1 + bisect_left(ascending, pair) for pair in decided], dtype=np.int32)
    return table


@documented
class ODMClassifierCV(ODMClassifier):
    """Optimal margin distribution machine that finds its parameters.

    Fitting searches `C1`, `C2`, `D` and the kernel's `gamma`, as far as they are not given, by leave-one-out margins in
    closed form or by cross-validation, and fits the best on all samples.

    Parameters
    ----------
    C1, C2, D : float or None, default=None
        Parameters of :class:`ODMClassifier`; ``None`` has them searched. A parameter with a value cannot be in `grid`.
    gamma : {"scale", "auto"}, float or None, default=None
        The kernel's coefficient; ``None`` has it searched.
    multi_class : {"mcodm", "ovr", "ovo", "ecoc"}, default="mcodm"
        How more than two classes are met, as in :class:`ODMClassifier`.
    cv : int, splitter, iterable or None, default=None
        How samples are left out, as in :class:`sklearn.model_selection.GridSearchCV`. ``None`` leaves it to `select`,
        `folds` and `repeats`; a number is as many folds with ``select="cv"``. Anything else has the points of the
        search (or those of a `grid` that is a dict) judged by scikit-learn, one fit for each point and fold.
    scoring : str, callable or None, default=None
        By what points are judged, as in :class:`sklearn.model_selection.GridSearchCV`, which then does it; ``None``
        leaves it to `select`.
    <shared parameters>

    Attributes
    ----------
    C1_, C2_, D_ : float
        The best parameters; the best `gamma` is in `gamma_`.
    best_params_ : dict
        The same.
    best_index_ : int
        Its place in `cv_results_`.
    best_score_ : float
        Share of the samples left out that the best parameters predict, or what `scoring` says of them.
    cv_results_ : dict of ndarray
        An entry a point, by scikit-learn's names: ``params``, ``param_C1``, …, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score`` and, with folds, ``split0_test_score``, …; without `scoring` also
        ``error``, ``loss``, ``spread``, and no times, because fits share their work.
    average_ : dict
        With ``average=True`` the ``"kernels"`` with their weights, the number of ``"points"`` and the
        ``"loo_log_loss"``; the attributes of a search (but `best_score_`) are then not there.
    search_ : Bunch
        All that :func:`tune` tells of the core's search; not if scikit-learn judges the points of a `grid`.
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
        search_rows: int | str = "auto",
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        resume: str | os.PathLike[str] | None = None,
        average: bool | Literal["ranks", "values"] = False,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: str | float | None = None,
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
        self.grid = grid
        self.select = select
        self.folds = folds
        self.repeats = repeats
        self.search_rows = search_rows
        self.cv = cv
        self.scoring = scoring
        self.resume = resume
        self.average = average
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

    def fit(
        self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Search the parameters and fit the best ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            The labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight `s` counts as `s` samples; 0 leaves it out.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples for a splitter `cv` that asks for them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.average:
            if groups is not None:
                raise ValueError("groups are for a splitter, and an average has none")
            return self._average(X, y, sample_weight)
        if groups is not None and (self.cv is None or is_whole(self.cv)):
            raise ValueError("groups are for a splitter: give one as cv, such as GroupKFold()")
        if self.scoring is None and (self.cv is None or is_whole(self.cv)):
            return self._search(X, y, sample_weight)
        return self._search_by_scikit_learn(X, y, sample_weight, groups)

    def _given(self) -> list[str]:
        """The parameters that are not searched."""
        return [name for name in ("C1", "C2", "D", "gamma") if getattr(self, name) is not None]

    def _average(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        """The core's average over kernels and strengths."""
        given = [
            *self._given(),
            *(name for name in ("grid", "select", "cv", "scoring", "resume") if getattr(self, name) is not None),
        ]
        given += ["kernel"] if self.kernel != "rbf" else []
        refuse_given(given)
        plain = ODMClassifier(**{"scale": "minmax", **plain_parameters(self)})
        found = average_of(plain, X, y, sample_weight, self.average, self.search_rows)
        self._adopt(plain)
        self.best_params_, self.best_score_ = {}, 1.0 - found["loo_error"]
        return self

    def _search(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None, judges: Judges | None = None) -> Self:
        """The core's search."""
        select, folds = (self.select, self.folds) if self.cv is None else ("cv", self.cv)
        wishes = Wishes(self.grid, self._given(), select, folds, self.repeats, self.search_rows, self.resume)
        # Without a value of their own, parameters have that of the plain machine until the search has found a better.
        plain = ODMClassifier(**plain_parameters(self))
        found = search(plain, X, y, sample_weight, wishes, judges)
        self._adopt(plain)
        self.search_ = found
        return self._keep(found.params, found.results, found.best_index, 1.0 - found.error)

    def _search_by_scikit_learn(
        self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> Self:
        """GridSearchCV over the points of a grid, or over those that the core's search comes by."""
        plain = ODMClassifier(**plain_parameters(self))
        named, found = grid_values(self.grid), None
        if named and not isinstance(self.grid, str):
            both = [name for name in self._given() if name in named]
            if both:
                raise ValueError(f"{both[0]} has a value, and values in grid: give it in one place")
            points: Any = {name: list(values) for name, values in named.items()}
        else:
            wishes = Wishes(
                self.grid, self._given(), self.select, self.folds, self.repeats, self.search_rows, self.resume
            )
            found = search(plain, X, y, sample_weight, wishes)
            points = [{name: [value] for name, value in point.items()} for point in found.results["params"]]
        judge = GridSearchCV(clone(plain), points, cv=self.cv, scoring=self.scoring)
        X, y, sample_weight = indexable(X, y, sample_weight)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        judge.fit(X, y, groups=groups, **weights)
        self._adopt(judge.best_estimator_)
        if found is not None:
            self.search_ = found
        return self._keep(judge.best_params_, judge.cv_results_, judge.best_index_, judge.best_score_)

    def _keep(self, params: dict[str, Any], results: dict[str, Any], place: int, score: float) -> Self:
        """The attributes of a search."""
        self.best_params_, self.cv_results_, self.best_index_, self.best_score_ = params, results, place, score
        self.C1_, self.C2_, self.D_ = (self.parameters_[name] for name in ("C1", "C2", "D"))
        return self

    def _adopt(self, fitted: ODMClassifier) -> None:
        """Take over all that fitting left in another estimator."""

        def is_fitted(name: str) -> bool:
            return name in ("_model", "_gram", "_loo", "_loo_accuracy", "_loo_error", "_loo_by") or name.endswith("_")

        for name in [name for name in vars(self) if is_fitted(name)]:
            delattr(self, name)
        for name, value in vars(fitted).items():
            if is_fitted(name):
                setattr(self, name, value)


def plain_parameters(estimator: ODMClassifierCV) -> dict[str, Any]:
    """Those of the parameters of an `ODMClassifierCV` that an `ODMClassifier` has and that are given."""
    names = ODMClassifier._get_param_names()
    return {name: getattr(estimator, name) for name in names if getattr(estimator, name) is not None}
