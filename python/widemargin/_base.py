"""What every estimator does: check, call the core, keep what it tells."""

from __future__ import annotations

import json
import os
import re
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _widemargin

if TYPE_CHECKING:
    from typing_extensions import Self

MACHINES = {machine["name"]: machine for machine in json.loads(_widemargin.machines())}
Samples = ArrayLike | sparse.spmatrix | sparse.sparray
# Whether values are finite is seen by the core, on all threads.
CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}
WRAPPERS = {"ovr": "ova", "ovo": "ovo", "ecoc": "ecoc"}

PARAMETERS = """\
kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian"}, default="rbf"
    The kernel, with the formulas of :class:`sklearn.svm.SVC`; ``"laplacian"`` is ``exp(-gamma |x - z|_1)``.
gamma : {"scale", "auto"} or float, default="scale"
    The kernel's coefficient: ``"scale"`` is ``1 / (n_features * X.var())``, ``"auto"`` is ``1 / n_features``.
degree : int, default=3
    Degree of the polynomial kernel.
coef0 : float, default=0.0
    Constant of the polynomial and sigmoid kernels.
fit_intercept : bool, default=True
    Whether to fit an intercept.
intercept_scaling : float, default=None
    ``None`` leaves the intercept unregularised. A number appends a constant feature of that value instead, whose
    weight is regularised like the others.
multi_class : {MULTI_CLASS}
    How more than two classes are met: MEANING.
class_weight : dict or "balanced", default=None
    Weights of the classes, which multiply the weights of the samples.
probability : bool, default=False
    Whether to learn probabilities too, for `predict_proba`: one slope for all scores, fitted to margins of samples that
    were left out, by leave-one-out in closed form where the machine has that (ODM and least squares with two classes),
    else in five folds.
tol : float, default=1e-3
    Relative duality gap to reach.
max_iter : int, default=-1
    Most iterations of the solver; -1 leaves it to the solver.
random_state : int, RandomState instance or None, default=None
    Seed of solvers that shuffle. ``None`` is 0: the same data give the same model.
n_jobs : int, default=None
    Number of threads. ``None`` takes all cores, or what ``OMP_NUM_THREADS`` says (joblib sets it in its workers).
    The result does not depend on it.
verbose : bool, default=False
    Whether to print progress."""

ATTRIBUTES = """\
classes_ : ndarray of shape (n_classes,)
    The class labels.
coef_ : ndarray of shape (1, n_features) or (n_functions, n_features)
    Weights of the score functions; only with the linear kernel.
intercept_ : ndarray of shape (n_functions,)
    Intercepts of the score functions.
support_ : ndarray of shape (n_support,)
    Indices of the samples the model keeps; not with the linear kernel.
support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
    Those samples.
dual_coef_ : ndarray of shape (n_functions, n_support)
    Their coefficients.
objective_ : float or None
    Value of the objective, where the machine has one.
duality_gap_ : float or None
    Relative distance of the objective to the smallest value there can be: a proof of how good the fit is.
margins_ : ndarray of shape (n_samples,)
    Margin of each training sample (of those with a weight above zero).
loo_bound_ : float or None
    Upper bound on the leave-one-out error, where there is one: the intercept must be regularised or absent.
calibration_ : dict or None
    With ``probability=True`` the ``"slope"`` of the probabilities and their ``"log_loss"`` on samples left out.
norm_ : float
    Norm of the weights in the kernel's space: margins divided by it compare between machines.
n_iter_ : int
    Iterations of the solver.
n_features_in_ : int
    Number of features seen during :term:`fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if `X` had any that are strings."""


def indented(text):
    """The text as the part of a class docstring."""
    return text.replace("\n", "\n    ")


def parameters_text(multi_class, meaning, without=(), other=None):
    """The documentation of the parameters all estimators share, but for those it shall be without.

    `other` says what a parameter means where that is not what it means elsewhere.
    """
    entries = re.split(r"\n(?! )", PARAMETERS.replace("MULTI_CLASS", multi_class).replace("MEANING", meaning))
    kept = {entry.split(" :")[0]: entry for entry in entries if entry.split(" :")[0] not in without}
    for name, words in (other or {}).items():
        kept[name] = kept[name].split("\n")[0] + f"\n    {words}"
    return indented("\n".join(kept.values()))


def intercept_text(machine):
    """What the parameters of the intercept mean to a machine that cannot have every kind."""
    free, feature = machine["intercept"]["free"], machine["intercept"]["feature"]
    other = {}
    if free != "free":
        instead = "this machine has none" if free == "none" else "an appended constant feature of 1 stands for it"
        other["fit_intercept"] = f"Whether to fit an intercept. Unless `intercept_scaling` is a number, {instead}."
    if feature == "none":
        own = "``None`` for the machine's own threshold. With a number there is no intercept: the weight of an appended"
        other["intercept_scaling"] = f"{own}\n    feature is always 0 here."
    return other


def documented(multi_class, meaning, **other):
    """Completes a docstring with what all estimators share; `other` has parameters that mean something else here."""

    def complete(cls):
        parameters = parameters_text(multi_class, meaning, other=other)
        cls.__doc__ = cls.__doc__.replace("<parameters>", parameters).replace("<attributes>", indented(ATTRIBUTES))
        return cls

    return complete


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

    classes_: NDArray[Any]
    support_: NDArray[np.intp]
    objective_: float | None
    duality_gap_: float | None
    margins_: NDArray[np.float64]
    loo_bound_: float | None
    calibration_: dict[str, float] | None
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
        self._learn(X, y, sample_weight, _widemargin.train)
        return self

    def decision_function(self, X: Samples) -> NDArray[np.float64]:
        """Score the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one score, positive for ``classes_[1]``. More: one score a class, of which the largest wins.
        """
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

    @available_if(lambda self: self.probability)
    def predict_proba(self, X: Samples) -> NDArray[np.float64]:
        """Predict probabilities of the classes; only with ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column a class, in the order of `classes_`. The class that :term:`predict` gives is always the most
            probable one.
        """
        probabilities = self._model_on(X, "probabilities")
        if probabilities is None:
            raise NotFittedError("predict_proba needs a model that was fitted with probability=True")
        return probabilities

    @available_if(lambda self: self.probability)
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
            Their weights. The estimator's ``class_weight`` multiplies them as in :term:`fit`; set it on an estimator
            that was loaded from a file.

        Returns
        -------
        verification : Verification
            With `objective`, `dual_objective`, `gap`, `agrees` and `reason`.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, reset=False, **CHECKS)
        rows = self._finite_rows(X)
        classes, codes = encode(y)
        weights = self._weights(X, y, classes, codes, sample_weight)
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
        self._model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that this class or the command line wrote.

        Labels are text in the file: numbers come back as numbers, the rest as strings.

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
        if weights is None:
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
        coefficients = self._model.coefficients()
        if coefficients is None:
            raise AttributeError("dual_coef_ is not there with the linear kernel")
        return coefficients

    @property
    def support_vectors_(self) -> NDArray[Any] | sparse.csr_array:
        """The samples the model keeps (scaled, if the model scales)."""
        support = self._model.support()
        if support is None:
            raise AttributeError("support_vectors_ are not there with the linear kernel")
        if not isinstance(support, tuple):
            return support
        cols, offsets, columns, values = support
        return sparse.csr_array((values, columns, offsets.astype(np.int64)), shape=(len(offsets) - 1, cols))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_model")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, X, y, sample_weight, work):
        """Check the samples, have the core do the work on them, keep what it tells; returns what is beyond training."""
        X, y = validate_data(self, X, y, **CHECKS)
        rows = self._finite_rows(X)
        classes, codes = encode(y)
        if len(classes) < 2:
            raise ValueError(f"y has 1 class, {classes[0]}: a classifier needs at least two")
        weights = self._weights(X, y, classes, codes, sample_weight)
        labels = [label_text(label) for label in classes]
        choices = self._choices(len(classes))
        self._model, told, *more = work(rows, codes, labels, weights, choices)
        self._take_over(json.loads(self._model.info()), labels, classes)
        self._tell(told)
        return more

    def _model_on(self, X, method):
        check_is_fitted(self)
        rows = self._finite_rows(validate_data(self, X, reset=False, **CHECKS))
        return getattr(self._model, method)(rows, thread_count(self.n_jobs))

    def _finite_rows(self, X):
        """Validated samples as the core borrows them, all of them numbers."""
        rows = rows_of(X)
        if not _widemargin.all_finite(rows, thread_count(self.n_jobs)):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return rows

    def _weights(self, X, y, classes, codes, sample_weight):
        """Sample weights times class weights; None if all are 1."""
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        class_weight = getattr(self, "class_weight", None)
        if class_weight is None:
            return sample_weight
        if sample_weight is None:
            sample_weight = np.ones(len(y))
        if isinstance(class_weight, str) and class_weight == "balanced":
            counts = np.bincount(codes, sample_weight, len(classes))
            present = counts > 0
            counts[~present] = 1.0
            by_class = sample_weight.sum() / (present.sum() * counts)
        else:
            by_class = compute_class_weight(class_weight, classes=classes, y=y)
        return sample_weight * by_class[codes]

    def _machine_and_parameters(self, n_classes):
        """The core's machine for so many classes, its parameters, and how it meets them."""
        parameters = {name: getattr(self, shown) for name, shown in self._names.items()}
        return self._machine, parameters, wrapper(getattr(self, "multi_class", None))

    def _names_of(self, machine):
        """What the parameters of one of the core's machines are called here."""
        return self._names

    @classmethod
    def _parameters_of(cls, machine, values):
        """The parameters of this estimator for those of the core's machine."""
        whole = {parameter["name"] for parameter in MACHINES[machine]["parameters"] if parameter["whole"]}
        return {cls._names[name]: int(value) if name in whole else value for name, value in values.items()}

    def _choices(self, n_classes):
        """What the user says, as the core wants to hear it."""
        machine, parameters, multiclass = self._machine_and_parameters(n_classes)
        numbers = {"degree": self.degree, "coef0": self.coef0, "tol": getattr(self, "tol", 1e-3)}
        max_iter = getattr(self, "max_iter", None)
        if not (max_iter is None or (isinstance(max_iter, Integral) and max_iter == -1)):
            numbers["max_iter"] = max_iter
        # Checked even where there is no intercept to scale.
        scaling = "free" if self.intercept_scaling is None else self.intercept_scaling
        if self.intercept_scaling is not None and not is_positive(self.intercept_scaling):
            expected = "expected None or a number > 0 (fit_intercept=False for no intercept)"
            raise ValueError(f"intercept_scaling = {scaling}: {expected}")
        bias = scaling if self.fit_intercept else "none"
        return {
            "machine": machine,
            "parameters": list(parameters.items()),
            "shown": self._names_of(machine),
            "multiclass": multiclass,
            "kernel": str(self.kernel),
            "gamma": self.gamma,
            "bias": bias,
            "numbers": list(numbers.items()),
            "probability": bool(self.probability),
            "memory": memory(),
            "seed": seed(self.random_state),
            "threads": thread_count(self.n_jobs),
            "verbose": bool(self.verbose),
        }

    def _take_over(self, info, labels, classes):
        """The attributes a model knows by itself; `labels` are in it what the `classes` are to the user."""
        places = {label: place for place, label in enumerate(labels)}
        self.classes_ = classes[[places[label] for label in info["labels"]]]
        certificate = info["certificate"]
        self.objective_ = certificate["objective"]
        self.duality_gap_ = certificate["gap"]
        self.n_iter_ = max(1, certificate["iterations"])
        self.calibration_ = info["calibration"]

    def _tell(self, told):
        """The attributes only training knows."""
        numbers = json.loads(told["numbers"])
        self.margins_ = told["margins"]
        self.loo_bound_ = numbers["loo_bound"]
        self.norm_ = numbers["norm"]
        if told["support"] is not None:
            self.support_ = told["support"].astype(np.intp)
        elif hasattr(self, "support_"):
            del self.support_
        if self.verbose:
            print(f"[widemargin] {numbers['solver']}: {self.n_iter_} iterations, gap {self.duality_gap_}")
        if not numbers["converged"]:
            warnings.warn(self._unconverged(numbers["stop"]), ConvergenceWarning, stacklevel=4)

    def _unconverged(self, stop):
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


def is_positive(value):
    """Whether a value is a finite number above zero."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and 0 < value < float("inf")


def label_text(label):
    """A label as a model file holds it: whole numbers without a point."""
    if isinstance(label, (float, np.floating)):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)


def wrapper(multi_class):
    """The core's name for a way to meet more than two classes; None: the machine does so itself."""
    if multi_class is not None and multi_class not in WRAPPERS:
        raise ValueError(f"multi_class = {multi_class}: expected one of {', '.join(WRAPPERS)}")
    return None if multi_class is None else WRAPPERS[multi_class]


def encode(y):
    """The classes, ascending, and each label's position among them."""
    is_whole = y.dtype.kind in "biu" or (y.dtype.kind == "f" and np.array_equal(np.trunc(y), y))
    if is_whole and np.isfinite(y).all():
        low, high = int(y.min()), int(y.max())
        if high - low < len(y):
            return encode_numbers(y, places_from(y, low), high - low)
    whole_objects = y.dtype.kind == "O" and all(isinstance(label, Integral) for label in y)
    if y.dtype.kind not in "iubUS" and not whole_objects:
        check_classification_targets(y)
    if y.dtype.kind not in "US":
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes.astype(np.uint32)
    classes = np.unique(y)
    if len(classes) > 16:
        return classes, np.searchsorted(classes, y).astype(np.uint32)
    codes = np.zeros(len(y), np.uint32)
    for code, label in enumerate(classes[1:], 1):
        codes[y == label] = code
    return classes, codes


def places_from(y, low):
    """How far whole numbers are above the lowest of them, which a narrow type may have no room for."""
    if y.dtype.kind == "b":
        return y.astype(np.intp) - low
    if y.dtype.kind == "i":
        return y.astype(np.int64) - low
    return (y - y.dtype.type(low)).astype(np.intp)


def encode_numbers(y, places, last):
    """As `encode`, for labels whose `places` are numbers from 0 to `last`: without sorting them."""
    is_there = np.zeros(last + 1, dtype=bool)
    is_there[places] = True
    labels = np.zeros(last + 1, dtype=y.dtype)
    labels[places] = y
    code_at = np.zeros(last + 1, dtype=np.uint32)
    code_at[is_there] = np.arange(is_there.sum())
    return labels[is_there], code_at[places]


def rows_of(X):
    """Validated samples as the core borrows them."""
    if not sparse.issparse(X):
        return np.require(X, requirements=["C", "A"])
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = np.require(X.data, requirements=["C", "A"])
    return X.shape[1], offsets_of(X.indptr), columns_of(X.indices, X.shape[1]), values


def offsets_of(indptr):
    """Row offsets as 64-bit unsigned numbers; a copy only of 32-bit ones."""
    return np.require(indptr, np.int64, ["C", "A"]).view(np.uint64)


def columns_of(indices, n_features):
    """Column indices as 32-bit unsigned numbers; a copy only of 64-bit ones."""
    if indices.dtype == np.int32:
        return np.require(indices, requirements=["C", "A"]).view(np.uint32)
    if n_features >= 2**32 or (indices.size and (indices.min() < 0 or indices.max() >= n_features)):
        raise ValueError("the sparse matrix should have column indices from 0 to n_features - 1, below 2**32")
    return np.ascontiguousarray(indices, dtype=np.uint32)


def thread_count(n_jobs):
    """Number of threads for a value of `n_jobs`."""
    if n_jobs is not None:
        return joblib.effective_n_jobs(n_jobs)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdigit() and int(limit) > 0 else joblib.cpu_count()


def seed(random_state):
    """The core's seed for a value of `random_state`."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def memory():
    """Bytes that kernel rows may take: a quarter of the machine's, as on the command line."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):
        return 2 << 30
