"""What the docstrings of all estimators share, written once.

A class is written down in full in its file, with what is its own; `@documented` puts the rest where its docstring says
``<shared parameters>`` and ``<attributes>``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

# Each parameter's type and meaning; the default is that of the signature.
PARAMETERS: dict[str, tuple[str, str]] = {
    "kernel": (
        '{"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable',
        """\
The kernel, with the formulas of :class:`sklearn.svm.SVC`; ``"laplacian"`` is ``exp(-gamma |x - z|_1)``. With
``"precomputed"``, `X` is the kernel matrix: of the samples with each other in :term:`fit`, of new samples with those
that were fitted later. A callable gets two arrays of samples and returns their kernel matrix. Both take an
eigendecomposition of the matrix: for thousands of samples, not for more.""",
    ),
    "gamma": (
        '{"scale", "auto"} or float',
        """\
The kernel's coefficient: ``"scale"`` is ``1 / (n_features * X.var())``, ``"auto"`` is ``1 / n_features``.""",
    ),
    "degree": ("int", "Degree of the polynomial kernel."),
    "coef0": ("float", "Constant of the polynomial and sigmoid kernels."),
    "fit_intercept": ("bool", "Whether to fit an intercept."),
    "intercept_scaling": (
        "float or None",
        """\
``None`` leaves the intercept unregularised. A number appends a constant feature of that value instead, whose
weight is regularised like the others.""",
    ),
    "scale": (
        '{"minmax", "maxabs", "standard", "rank"} or None',
        """\
How features are scaled, by the samples that are fitted: to the range from 0 to 1, to a largest absolute value of 1,
to mean 0 and variance 1 (sparse samples are not shifted), or to the rank among these samples by their number
(between two samples on the line through their ranks; `coef_` is then that of the ranks). The model keeps it and scales
what it predicts. ``None`` scales nothing, where the command line standardises tables.""",
    ),
    "multi_class": (
        '{"ovr", "ovo", "ecoc"}',
        """\
How more than two classes are met: one class against all others, every pair of classes, or exhaustive
error-correcting codes.""",
    ),
    "decision_function_shape": (
        '{"ovr", "ovo"}',
        """\
What `decision_function` gives for more than two classes: one score a class, or one a pair of classes, positive for
the first of them; ``"ovo"`` needs ``multi_class="ovo"``.""",
    ),
    "class_weight": (
        'dict, "balanced" or None',
        "Weights of the classes, which multiply the weights of the samples.",
    ),
    "probability": (
        'bool, "sigmoid" or "isotonic"',
        """\
Whether to learn probabilities too, for `predict_proba`: by a slope and an offset a class (``True``, ``"sigmoid"``) or
by any curve that rises with the score (``"isotonic"``), fitted to scores of samples that were left out, in closed form
where the machine has that (ODM, least squares, squared hinge), else in five folds.""",
    ),
    "tol": ("float", "Relative duality gap to reach."),
    "max_iter": ("int", "Most iterations of the solver; -1 leaves it to the solver."),
    "cache_size": (
        "float or None",
        """\
Megabytes that kernel values may take while training; ``None`` is a quarter of the memory of the machine, or of the
container.""",
    ),
    "warm_start": (
        "bool",
        """\
Whether `fit` starts from the solution of the last one, if that was of two classes and, over a kernel, of as many
samples. The solution is the same; it may be found sooner.""",
    ),
    "random_state": (
        "int, RandomState instance or None",
        "Seed of solvers that shuffle. ``None`` is 0: the same data give the same model.",
    ),
    "n_jobs": (
        "int or None",
        """\
Number of threads. ``None`` takes all cores, or what ``OMP_NUM_THREADS`` says (joblib sets it in its workers).
The result does not depend on it.""",
    ),
    "verbose": ("bool", "Whether to print progress."),
    "grid": (
        "dict, str or None",
        """\
What is tried. ``None`` goes from coarse to fine over the machine's own grid; ``"paper"`` tries every point of the
papers' grid. A dict from parameters to lists of values tries all combinations, and so does a text in the syntax of
the command line, such as ``"C1=2^0:2^10,D=0:0.5:0.1"``; parameters it does not name keep their value. mcODM, what
an `ODMClassifier` is with more than two classes, is searched in its own ``lambda``, ``mu`` and ``D``.""",
    ),
    "select": (
        '{"loo-loss", "loo", "cv"} or None',
        """\
By what points are compared: the logistic loss of the leave-one-out margins in closed form, their error, or
cross-validation. ``None`` is ``"loo-loss"`` where the machine has such margins (ODM, least squares and squared
hinge with two classes), else ``"cv"``, and where folds of all samples are affordable and leave-one-out is not.""",
    ),
    "folds": ("int", "Folds of cross-validation; they are stratified."),
    "repeats": ("int", "How often the samples are dealt into folds anew."),
    "search_rows": (
        'int, "all" or "auto"',
        """Points are judged on at most this many of the samples, drawn from each class alike; the best is fitted on
all. ``"auto"``: on as many as can be judged in about a minute; of 600 or more, without `grid`, all points are judged
on two fifths of these first and only the best on all. ``"all"``: every point on every sample.""",
    ),
    "average": (
        'bool, "ranks" or "values"',
        "Whether to average all points over twelve kernels and eleven strengths, weighted by their leave-one-out loss "
        "(of machines without a closed form the loss in five folds), "
        "instead of taking the best of one kernel. Five of the kernels see the ranks of the features; "
        '``"values"``: only the seven that see their values. '
        "Features are scaled by minmax unless `scale` says otherwise; "
        "`predict_proba` is there without `probability`.",
    ),
    "resume": (
        "str, path-like or None",
        "A log: points in it are not tried again, new ones are added. So a search that was stopped goes on.",
    ),
}

ATTRIBUTES = """\
classes_ : ndarray of shape (n_classes,)
    The class labels.
coef_ : ndarray of shape (1, n_features) or (n_functions, n_features)
    Weights of the score functions; only with the linear kernel.
intercept_ : ndarray of shape (n_functions,)
    Intercepts of the score functions.
support_ : ndarray of shape (n_support,)
    Indices of the samples the model keeps; not with the linear kernel.
n_support_ : ndarray of shape (n_classes,)
    How many of them there are of each class.
support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
    Those samples.
dual_coef_ : ndarray of shape (n_functions, n_support)
    Their coefficients.
gamma_ : float or None
    The kernel's coefficient, as a number; ``None`` of a kernel that has none.
objective_ : float or None
    Value of the objective, where the machine has one.
duality_gap_ : float or None
    Relative distance of the objective to the smallest value there can be: a proof of how good the fit is.
margins_ : ndarray of shape (n_samples,)
    Margin of each training sample (of those with a weight above zero).
loo_bound_ : float or None
    Upper bound on the leave-one-out error, where there is one: the intercept must be regularised or absent.
calibration_ : dict or None
    With `probability` the ``"slope"`` and ``"offsets"`` of the probabilities, of isotonic ones the ``"curves"``, and
    their ``"log_loss"`` on samples left out.
loo_margins_ : ndarray of shape (n_samples,)
    Margin of each training sample under a model that did not see it: of ODM, least squares and the squared hinge each
    left out in closed form (of thousands of samples with `probability` only), of all others, with `probability`, from
    five folds.
loo_by_ : str, dict or None
    Which: ``"leave-one-out"`` or ``{"folds": 5}``.
loo_margins_error_ : float or None
    Their standard error where they are estimates: of more than 10,000 samples with a kernel or many features.
loo_score_ : float
    The share of them above zero, by weight.
norm_ : float
    Norm of the weights in the kernel's space: margins divided by it compare between machines.
n_iter_ : int
    Iterations of the solver.
n_features_in_ : int
    Number of features seen during :term:`fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if `X` had any that are strings."""


def documented(thing: Documented) -> Documented:
    """Complete the docstring of a class or function with what it shares with others."""
    words = inspect.getdoc(thing) or ""
    own = {name.strip() for line in words.splitlines() if " : " in line for name in line.split(" : ")[0].split(",")}
    shared = [
        entry(name, parameter.default)
        for name, parameter in inspect.signature(thing).parameters.items()
        if name in PARAMETERS and name not in own
    ]
    words = words.replace("<shared parameters>", "\n".join(shared)).replace("<attributes>", ATTRIBUTES)
    thing.__doc__ = "\n    ".join(words.splitlines()).replace("\n    \n", "\n\n") + "\n    "
    return thing


def entry(name: str, default: object) -> str:
    """One parameter as numpydoc has it."""
    kind, meaning = PARAMETERS[name]
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    indented = meaning.replace("\n", "\n    ")
    return f"{name} : {kind}, default={shown}\n    {indented}"
