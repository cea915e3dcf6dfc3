"""Parameters: checked in Python's words, then said as the core wants to hear them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
from sklearn.utils import check_random_state

from . import _widemargin

MACHINES: dict[str, dict[str, Any]] = {machine["name"]: machine for machine in json.loads(_widemargin.machines())}
WRAPPERS = {"ovr": "ova", "ovo": "ovo", "ecoc": "ecoc"}
PROBABILITIES = ("sigmoid", "isotonic")
SCALES = ("minmax", "maxabs", "standard", "rank")


def is_number(value: object) -> bool:
    """Whether a value is a number; a bool is none."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; a bool is none."""
    return isinstance(value, Integral) and is_number(value)


def refuse(name: str, value: object, expected: str, of_type: bool) -> None:
    """Raise what a wrong value deserves: a ValueError if its type is right, else a TypeError."""
    if of_type:
        raise ValueError(f"{name} = {value}: expected {expected}")
    raise TypeError(f"{name} = {value!r}: expected {expected}, not a {type(value).__name__}")


def check_number(name: str, value: object, expected: str, low: float = 0.0, strict: bool = True) -> None:
    """A finite number above `low`, or from `low` on."""
    fits = is_number(value) and (value > low if strict else value >= low) and value < float("inf")
    if not fits:
        refuse(name, value, expected, is_number(value))


def check_whole(name: str, value: object, expected: str, low: int) -> None:
    """A whole number from `low` on."""
    if not (is_whole(value) and value >= low):
        refuse(name, value, expected, is_number(value))


def check_choice(name: str, value: object, choices: tuple[str, ...], or_none: bool = False) -> None:
    """One of some words."""
    if (or_none and value is None) or (isinstance(value, str) and value in choices):
        return
    words = ", ".join([*(["None"] if or_none else []), *choices])
    refuse(name, value, f"one of {words}", isinstance(value, str))


def is_flag(value: object) -> bool:
    """True or False, or the numbers 0 and 1 that others take for them."""
    return isinstance(value, (bool, np.bool_)) or (is_whole(value) and value in (0, 1))


def check_flag(name: str, value: object) -> None:
    """A flag."""
    if not is_flag(value):
        refuse(name, value, "True or False", False)


def check_probability(name: str, value: object) -> None:
    """A flag, or the form of the probabilities."""
    named = isinstance(value, str)
    if not is_flag(value) and not (named and value in PROBABILITIES):
        refuse(name, value, f"True, False or one of {', '.join(PROBABILITIES)}", named)


def probability_form(value: bool | str) -> str | None:
    """The form of the probabilities to learn, if any."""
    return value if isinstance(value, str) else "sigmoid" if value else None


def check_common(given: Mapping[str, Any]) -> None:
    """The parameters that estimators share, those that are given."""
    checks = {
        "gamma": check_gamma,
        "degree": lambda name, value: check_whole(name, value, "a whole number >= 1", 1),
        "coef0": lambda name, value: check_number(name, value, "a number", -float("inf")),
        "fit_intercept": check_flag,
        "intercept_scaling": check_intercept_scaling,
        "scale": lambda name, value: check_choice(name, value, SCALES, or_none=True),
        "decision_function_shape": lambda name, value: check_choice(name, value, ("ovr", "ovo")),
        "class_weight": check_class_weight,
        "probability": check_probability,
        "tol": lambda name, value: check_number(name, value, "a number > 0"),
        "max_iter": check_max_iter,
        "cache_size": check_cache_size,
        "warm_start": check_flag,
        "n_jobs": check_n_jobs,
        "verbose": check_verbose,
    }
    for name, check in checks.items():
        if name in given:
            check(name, given[name])


def check_gamma(name: str, value: object) -> None:
    """Two words or a positive number."""
    if isinstance(value, str):
        if value not in ("scale", "auto"):
            refuse(name, value, "scale, auto or a number > 0", True)
        return
    check_number(name, value, "scale, auto or a number > 0")


def check_intercept_scaling(name: str, value: object) -> None:
    """None or a positive number."""
    if value is not None:
        check_number(name, value, "None or a number > 0 (fit_intercept=False for no intercept)")


def check_class_weight(name: str, value: object) -> None:
    """None, "balanced" or a dict."""
    if isinstance(value, str) and value != "balanced":
        refuse(name, value, "None, balanced or a dict", True)
    if value is not None and not isinstance(value, (str, Mapping)):
        refuse(name, value, "None, balanced or a dict", False)


def check_max_iter(name: str, value: object) -> None:
    """-1 or a number of iterations."""
    if not (is_whole(value) and value == -1):
        check_whole(name, value, "a whole number >= 1, or -1", 1)


def check_cache_size(name: str, value: object) -> None:
    """None or megabytes."""
    if value is not None:
        check_number(name, value, "None or a number of megabytes > 0")


def check_n_jobs(name: str, value: object) -> None:
    """None, a number of threads, or a negative number as joblib counts."""
    if value is not None and not (is_whole(value) and value != 0):
        refuse(name, value, "None or a whole number other than 0", is_number(value))


def check_verbose(name: str, value: object) -> None:
    """A flag, or a level as other estimators have it."""
    if not isinstance(value, (bool, np.bool_)):
        check_whole(name, value, "True, False or a whole number >= 0", 0)


def check_own(machine: str, names: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """The types of a machine's own parameters; whether a number lies in its domain is seen by the core.

    ``None`` is for those that follow from the samples.
    """
    for parameter in MACHINES[machine]["parameters"]:
        shown = names.get(parameter["name"])
        if shown is None or shown not in given:
            continue
        value = given[shown]
        if value is None and parameter["settled"]:
            continue
        if parameter["domain"].startswith("one of"):
            if not isinstance(value, str):
                refuse(shown, value, parameter["domain"], False)
        elif parameter["whole"]:
            check_whole(shown, value, parameter["domain"], 1)
        elif not is_number(value):
            refuse(shown, value, parameter["domain"], False)


def wrapper(multi_class: str | None) -> str | None:
    """The core's name for a way to meet more than two classes; None: the machine does so itself."""
    if multi_class is None:
        return None
    check_choice("multi_class", multi_class, tuple(WRAPPERS))
    return WRAPPERS[multi_class]


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for a value of `n_jobs`."""
    if n_jobs is not None:
        return joblib.effective_n_jobs(n_jobs)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdigit() and int(limit) > 0 else joblib.cpu_count()


def seed(random_state: int | np.random.RandomState | None) -> int:
    """The core's seed for a value of `random_state`."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(f"random_state = {random_state!r}: expected None, a whole number or a RandomState") from error


def memory(cache_size: float | None) -> int:
    """Bytes that kernel values may take: a quarter of the machine's or the container's if not said."""
    return _widemargin.usual_memory() if cache_size is None else int(cache_size * 2**20)
