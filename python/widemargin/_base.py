"""What every estimator does: check, call the core, keep what it tells."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _widemargin
from ._arrays import Rows, Samples, csr_of, encode, label_kind, label_text, refuse_text, rows_of
from ._gram import GramMap, is_gram
from ._parameters import (
    MACHINES,
    check_common,
    check_own,
    memory,
    probability_form,
    refuse,
    seed,
    thread_count,
    wrapper,
)

if TYPE_CHECKING:
    from typing_extensions import Self

# Whether values are finite is seen by the core, on all threads.
CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,
}
# So many values the core looks at on one thread.
FEW = 1 << 18


@dataclass(frozen=True)
class Verification:
    """What the training samples say of a fitted model, recomputed without the solvers.

    Attributes
    ----------
    objective : float or None
        Value of the objective.
    dual_objective : float or None
        Bound below which no model can come.
    gap : float or None
        Relative distance of the two.
    agrees : bool or None
        Whether that is what the model claims; ``None`` if it claims nothing that could be checked.
    reason : str or None
        Why it does not agree, or why there is nothing to agree with.
    """

    objective: float | None
    dual_objective: float | None
    gap: float | None
    agrees: bool | None
    reason: str | None


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """Base of all estimators: a machine of the core behind scikit-learn's interface.

    A subclass says which machine (``_machine``) and what its parameters are called here (``_names``).
    """

    _machine: str = ""
    _names: dict[str, str] = {}
    _model: _widemargin.Model
    # With a kernel that only Python knows: what makes features of its values.
    _gram: GramMap | None = None

    classes_: NDArray[Any]
    support_: NDArray[np.intp]
    n_support_: NDArray[np.int32]
    gamma_: float | None
    parameters_: dict[str, Any]
    objective_: float | None
    duality_gap_: float | None
    margins_: NDArray[np.float64]
    loo_bound_: float | None
    calibration_: dict[str, Any] | None
    threshold_: float | None
    _loo: NDArray[np.float64] | None = None
    _loo_accuracy: float | None = None
    _loo_error: float | None = None
    _loo_by: str | dict[str, int] | None = None
    average_: dict[str, Any]
    norm_: float
    n_iter_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples. C-ordered float64 or float32 arrays and CSR matrices are used as they are, without a copy
            (of 64-bit column indices there is one); the rest is converted.
        y : array-like of shape (n_samples,)
            The labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight `s` counts as `s` samples; 0 leaves it out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        before = getattr(self, "_model", None) if getattr(self, "warm_start", False) else None
        self._learn(X, y, sample_weight, partial(_widemargin.train, before=before))
        return self

    def decision_function(self, X: Samples) -> NDArray[np.float64]:
        """Score the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes - 1) / 2)
            Two classes: one score, positive for ``classes_[1]``. More: one score a class, of which the largest wins;
            with ``decision_function_shape="ovo"`` one a pair of classes, positive for the first.
        """
        if self._wants_pairs():
            # The core's columns are positive for the second class of a pair, scikit-learn's for the first.
            return -self._model_on(X, "columns")
        scores = self._model_on(X, "scores")
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Samples) -> NDArray[Any]:
        """Predict the labels of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Their labels.
        """
        codes = self._model_on(X, "predict")
        return self.classes_[codes]

    @available_if(lambda self: self.probability or getattr(self, "average", False) or hasattr(self, "average_"))
    def predict_proba(self, X: Samples) -> NDArray[np.float64]:
        """Predict probabilities of the classes; only with ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column a class, in the order of `classes_`. They speak of the classes as they come in the data, whatever
            `class_weight` says; as with scikit-learn's ``SVC``, the class that :term:`predict` gives, that of the
            largest score, need not be the most probable one.
        """
        probabilities = self._model_on(X, "probabilities")
        if probabilities is None:
            raise NotFittedError("predict_proba needs a model that was fitted with probability=True")
        return probabilities

    @available_if(lambda self: self.probability or getattr(self, "average", False) or hasattr(self, "average_"))
    def predict_log_proba(self, X: Samples) -> NDArray[np.float64]:
        """Predict logarithms of the probabilities of the classes; only with ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            The logarithms of what `predict_proba` gives.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_set(self, X: Samples, coverage: float = 0.9, per_class: bool = False) -> NDArray[np.bool_]:
        """Predict sets of labels that contain the true one for a share of the samples.

        A label is in the set of a sample if it is no less probable there than their own label is for that share of the
        training samples, each under a model that was fitted without it: one by one in closed form where the machine
        has it, else (with ``probability=True``) by five folds. The most probable label is always in the set.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        coverage : float, default=0.9
            The share, between 0 and 1.
        per_class : bool, default=False
            Whether to have that share in each class, not only over all samples.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes), of bool
            Whether each of `classes_` is in the set.
        """
        if not (isinstance(coverage, Real) and 0.0 < coverage < 1.0):
            raise ValueError(f"coverage = {coverage!r}: expected a number between 0 and 1")
        sets = self._model_on(X, "prediction_sets", float(coverage), bool(per_class))
        if sets is None:
            raise NotFittedError("predict_set needs a model that was fitted with probability=True")
        return sets

    @property
    def loo_margins_(self) -> NDArray[np.float64]:
        """The margin of each training sample under a model that did not see it.

        For ODM, least squares and the squared hinge each is left out in closed form, exact while no other sample
        crosses a kink of the loss. With more than ten thousand samples and a kernel, or many features, it is an
        estimate, whose standard error is `loo_margins_error_`. Other machines and kernels have the margins of the five
        folds that ``probability=True`` fits anyway. `loo_by_` says which.
        """
        check_is_fitted(self)
        if self._loo is None:
            raise AttributeError(
                "there are no margins of samples left out: in closed form (leave-one-out) they are for ODM, least "
                "squares and the squared hinge with a positive definite kernel, of thousands of samples with "
                "probability=True only; for all others fit with probability=True, which fits five folds, and at least "
                "two samples of each class"
            )
        return self._loo

    @property
    def loo_by_(self) -> str | dict[str, int] | None:
        """How samples were left out for `loo_margins_`: ``"leave-one-out"`` or ``{"folds": 5}``; None without them."""
        check_is_fitted(self)
        return self._loo_by

    @property
    def loo_margins_error_(self) -> float | None:
        """The standard error of `loo_margins_`, the root of the mean of its squares, where they are estimates."""
        check_is_fitted(self)
        return self._loo_error

    @property
    def loo_score_(self) -> float:
        """The accuracy on samples left out: the share of `loo_margins_` above zero, by weight."""
        check_is_fitted(self)
        if self._loo_accuracy is None:
            return float(np.mean(self.loo_margins_ > 0))
        return self._loo_accuracy

    def verify(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Verification:
        """Recompute objective, dual bound and gap from the training samples, and compare with what the model claims.

        The computation shares nothing with the solvers and takes its time: every kernel value is computed anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples the model was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights, as in :term:`fit`; the weights of the classes are kept in the model.

        Returns
        -------
        verification : Verification
            With `objective`, `dual_objective`, `gap`, `agrees` and `reason`.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, reset=False, **CHECKS)
        # Of a kernel that only Python knows, the features that were fitted are those of the factor, to the last bit.
        rows = self._rows(X) if self._gram is None else GramMap.fitted(self.kernel, X)[1]
        classes, codes = encode(y)
        weights = self._weights(X, sample_weight)
        labels = [label_text(label) for label in classes]
        return Verification(**json.loads(self._model.verify(rows, codes, labels, weights, thread_count(self.n_jobs))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that the command line reads as well.

        Parameters
        ----------
        path : str or path-like
            The file. It is there whole or not at all.
        """
        check_is_fitted(self)
        self._refuse_gram("save writes")
        self._model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that this class or the command line wrote.

        Labels come back as they were (whole numbers, numbers, booleans, text), and so does `feature_names_in_`.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        estimator : object
            A fitted estimator.
        """
        from ._load import load

        estimator = load(path)
        if not isinstance(estimator, cls):
            raise ValueError(f"{path}: a model of {type(estimator).__name__}, not of {cls.__name__}")
        return estimator

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the score functions."""
        weights = self._model.weights()
        if weights is None or self._gram is not None:
            raise AttributeError("coef_ is only there with the linear kernel")
        scaling = self._model.scaling()
        return weights if scaling is None else weights * scaling[1]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts of the score functions."""
        intercepts, weights, scaling = self._model.intercepts(), self._model.weights(), self._model.scaling()
        if weights is None or scaling is None:
            return intercepts
        return intercepts - weights @ (scaling[0] * scaling[1])

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients of the support vectors."""
        if self._gram is not None:
            return self._gram.coefficients(self._model.weights())
        coefficients = self._model.coefficients()
        if coefficients is None:
            raise AttributeError("dual_coef_ is not there with the linear kernel")
        return coefficients

    @property
    def support_vectors_(self) -> NDArray[Any] | sparse.csr_array:
        """The samples the model keeps (scaled, if the model scales)."""
        support = self._model.support() if self._gram is None else self._gram.samples
        if support is None:
            raise AttributeError("support_vectors_ are not there with the linear kernel or a precomputed one")
        return csr_of(support)

    @property
    def _gamma(self) -> float:
        """The kernel's coefficient where scikit-learn's SVC has it."""
        return 0.0 if self.gamma_ is None else self.gamma_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _learn(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None, work: Callable[..., Any]) -> list[Any]:
        """Check the samples, have the core do the work on them, keep what it tells; returns what is beyond training."""
        refuse_text(X)
        X, y = validate_data(self, X, y, **CHECKS)
        self._check_parameters()
        classes, codes = encode(y)
        if len(classes) < 2:
            raise ValueError(f"y has 1 class, {classes[0]}: a classifier needs at least two")
        choices = self._choices(len(classes))
        weights = self._weights(X, sample_weight)
        choices["class_weight"] = self._class_weights(y, classes, codes, weights)
        rows, gram = rows_of(X), None
        self._finite(rows, X)
        if is_gram(self.kernel):
            gram, rows = GramMap.fitted(self.kernel, X)
            # What the core sees are no columns of the samples.
            choices["columns"] = None
        else:
            self._warn_of_scales(rows)
        choices["label_kind"] = label_kind(classes)
        labels = [label_text(label) for label in classes]
        self._model, told, *more = work(rows, codes, labels, weights, choices)
        self._gram = gram
        self._take_over(json.loads(self._model.info()), labels, classes)
        self._tell(told, y)
        return more

    def _model_on(self, X: Samples, method: str, *arguments: Any) -> Any:
        """What a method of the model says of samples."""
        if not hasattr(self, "_model"):
            check_is_fitted(self)
        rows = self._rows(X if self._is_plain(X) else validate_data(self, X, reset=False, **CHECKS))
        threads = 1 if self._model.is_little(rows) else thread_count(self.n_jobs)
        return getattr(self._model, method)(rows, threads, *arguments)

    def _is_plain(self, X: object) -> bool:
        """Whether samples are an array in which `validate_data` would find nothing to say or to change.

        It takes several times as long as predicting one sample.
        """
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype == np.float64
            and X.flags.carray
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _rows(self, X: NDArray[Any] | sparse.csr_array) -> Rows:
        """Validated samples as the core borrows them, all of them numbers."""
        rows = rows_of(X)
        self._finite(rows, X)
        return rows if self._gram is None else self._gram.features(X)

    def _finite(self, rows: Rows, X: NDArray[Any] | sparse.csr_array) -> None:
        """Raise what scikit-learn raises for values that are no numbers."""
        if not _widemargin.all_finite(rows, self._threads_for(rows)):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")

    def _threads_for(self, rows: Rows) -> int:
        """Threads to look at every value: few need none, and counting cores takes longer than looking at them."""
        size = rows[3].size if isinstance(rows, tuple) else rows.size
        return 1 if size <= FEW else thread_count(self.n_jobs)

    def _warn_of_scales(self, rows: Rows) -> None:
        """Warn of a kernel that would see next to nothing but the widest features."""
        if self.kernel == "linear" or self.scale is not None:
            return
        unlike = _widemargin.unlike_scales(rows, self._threads_for(rows))
        if unlike is None:
            return
        (narrow, small), (wide, large) = unlike
        names = getattr(self, "feature_names_in_", None)
        narrow, wide = (f"feature {j}" if names is None else names[j] for j in (narrow, wide))
        warnings.warn(
            f"features are of very unlike scales: {narrow} spans {small:.4g}, {wide} spans {large:.4g}; the kernel "
            'hardly sees the narrow ones: use scale="standard", or a scaler in a pipeline',
            UserWarning,
            stacklevel=4,
        )

    def _wants_pairs(self) -> bool:
        """Whether scores are one a pair of classes."""
        check_is_fitted(self)
        return len(self.classes_) > 2 and getattr(self, "decision_function_shape", "ovr") == "ovo"

    def _refuse_gram(self, what: str) -> None:
        """Say that a model over a kernel that only Python knows cannot leave it."""
        if self._gram is not None:
            raise ValueError(f"{what} kernels the core has, not precomputed or callable ones; pickle the estimator")

    def _check_parameters(self) -> None:
        """Refuse parameters of the wrong type or value."""
        given = self.get_params(deep=False)
        check_own(self._machine, self._names, given)
        check_common(given)
        if not callable(self.kernel) and not isinstance(self.kernel, str):
            refuse("kernel", self.kernel, "a name or a callable", False)
        if is_gram(self.kernel) and given.get("scale") is not None:
            raise ValueError(f"scale = {self.scale}: expected None, the features behind this kernel are not there")
        if given.get("decision_function_shape") == "ovo" and given.get("multi_class") != "ovo":
            raise ValueError('decision_function_shape = ovo: expected ovr, or multi_class="ovo" beside it')

    def _weights(
        self, X: NDArray[Any] | sparse.csr_array, sample_weight: ArrayLike | None
    ) -> NDArray[np.float64] | None:
        """Sample weights, checked; None if all are 1."""
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _class_weights(
        self,
        y: NDArray[Any],
        classes: NDArray[Any],
        codes: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
    ) -> list[tuple[str, float]]:
        """The weight of each class; nothing if all are 1."""
        class_weight = getattr(self, "class_weight", None)
        if class_weight is None:
            return []
        if isinstance(class_weight, str) and class_weight == "balanced":
            counts = np.bincount(codes, weights, len(classes))
            present = counts > 0
            counts[~present] = 1.0
            by_class = counts[present].sum() / (present.sum() * counts)
        else:
            by_class = compute_class_weight(class_weight, classes=classes, y=y)
        return [(label_text(label), float(weight)) for label, weight in zip(classes, by_class, strict=True)]

    def _machine_and_parameters(self, n_classes: int) -> tuple[str, dict[str, Any], str]:
        """The core's machine for so many classes, its parameters, and how it meets them."""
        return self._machine, self._own_parameters(), wrapper(getattr(self, "multi_class", None))

    def _own_parameters(self) -> dict[str, Any]:
        """The parameters of the core's machine, without those that it settles by the samples."""
        values = {name: getattr(self, shown) for name, shown in self._names.items()}
        return {name: value for name, value in values.items() if value is not None}

    def _names_of(self, machine: str) -> dict[str, str]:
        """What the parameters of one of the core's machines are called here."""
        return self._names

    @classmethod
    def _parameters_of(cls, machine: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of this estimator for those of the core's machine."""
        whole = {parameter["name"] for parameter in MACHINES[machine]["parameters"] if parameter["whole"]}
        return {cls._names[name]: int(value) if name in whole else value for name, value in values.items()}

    def _choices(self, n_classes: int) -> _widemargin.Choices:
        """What the user says, as the core wants to hear it; the parameters are checked."""
        machine, parameters, multiclass = self._machine_and_parameters(n_classes)
        given = self.get_params(deep=False)
        numbers = {"degree": self.degree, "coef0": self.coef0, "tol": given.get("tol", 1e-3)}
        if given.get("max_iter", -1) != -1:
            numbers["max_iter"] = self.max_iter
        intercept = "free" if self.intercept_scaling is None else self.intercept_scaling
        return {
            "machine": machine,
            "parameters": list(parameters.items()),
            "shown": self._names_of(machine),
            "multiclass": multiclass,
            "kernel": "linear" if is_gram(self.kernel) else self.kernel,
            "gamma": self.gamma,
            "bias": intercept if self.fit_intercept else "none",
            "scale": self.scale,
            "numbers": list(numbers.items()),
            "class_weight": [],
            "probability": probability_form(self.probability),
            "columns": [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None,
            "label_kind": "text",
            "memory": memory(self.cache_size),
            "seed": seed(self.random_state),
            "threads": thread_count(self.n_jobs),
            "verbose": bool(self.verbose),
        }

    def _take_over(self, info: dict[str, Any], labels: list[str], classes: NDArray[Any]) -> None:
        """The attributes a model knows by itself; `labels` are in it what the `classes` are to the user."""
        places = {label: place for place, label in enumerate(labels)}
        self.classes_ = classes[[places[label] for label in info["labels"]]]
        certificate = info["certificate"]
        self.objective_ = certificate["objective"]
        self.duality_gap_ = certificate["gap"]
        self.n_iter_ = max(1, certificate["iterations"])
        self.calibration_ = info["calibration"]
        self.threshold_ = info["threshold"]
        self.gamma_ = info["kernel"].get("gamma")
        self.parameters_ = self._parameters_of(info["machine"], info["parameters"]) if info["parameters"] else {}
        vars(self).pop("average_", None)
        if info["average"] is not None:
            self.average_ = info["average"]

    def _tell(self, told: _widemargin.Told, y: NDArray[Any]) -> None:
        """The attributes only training knows; `y` are the samples' labels."""
        numbers = json.loads(told["numbers"])
        self.margins_ = told["margins"]
        self._loo = told["loo_margins"]
        self._loo_accuracy = None if numbers["loo_error"] is None else 1.0 - numbers["loo_error"]
        self._loo_error, self._loo_by = numbers["loo_margin_error"], numbers["loo_by"]
        self.loo_bound_ = numbers["loo_bound"]
        self.norm_ = numbers["norm"]
        self._keep_support(told["support"] if self._gram is None else np.arange(len(y)), y)
        if self.verbose:
            print(f"[widemargin] {numbers['solver']}: {self.n_iter_} iterations, gap {self.duality_gap_}")
        if not numbers["converged"]:
            warnings.warn(self._unconverged(numbers["stop"]), ConvergenceWarning, stacklevel=4)

    def _keep_support(self, support: NDArray[Any] | None, y: NDArray[Any]) -> None:
        """Which samples the model keeps, and how many of each class."""
        if support is not None:
            self.support_ = support.astype(np.intp)
            self.n_support_ = np.array([np.sum(y[self.support_] == label) for label in self.classes_], np.int32)
        else:
            for name in ("support_", "n_support_"):
                vars(self).pop(name, None)

    def _unconverged(self, stop: str) -> str:
        """What to say of a fit that is not as good as was asked for, and what helps."""
        if stop == "precision":
            gap = f"a duality gap of {self.duality_gap_} above tol = {self.tol}"
            return f"as far as rounding allows, with {gap}: scale the features, or raise tol"
        gap = "" if self.duality_gap_ is None else f" with a duality gap of {self.duality_gap_}"
        machine = MACHINES[self._machine]
        rounds = [self._names[p["name"]] for p in machine["parameters"] if p["whole"] and p["name"] in self._names]
        helps = rounds or (["max_iter"] if machine["max_iter"] else [])
        helps += ["tol"] if machine["tol"] else []
        advice = f": raise {' or '.join(helps)}" if helps else ": scale the features"
        return f"stopped after {self.n_iter_} iterations{gap}{advice}"
