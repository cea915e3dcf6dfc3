"""The machines to compare with, one estimator for each machine of the core that has no class of its own here.

Their parameters are the core's: `C` where a paper has a cost, `lam` for a λ.

Examples
--------
>>> from sklearn.datasets import make_classification
>>> from widemargin.baselines import LSSVMClassifier
>>> X, y = make_classification(random_state=0)
>>> LSSVMClassifier(C=10).fit(X, y).score(X, y) > 0.9
True
"""

import inspect

from ._base import ATTRIBUTES, MACHINES, MarginClassifier, indented, intercept_text, parameters_text
from ._classifiers import BY_WRAPPER, WRAPPER_MEANING, LDMClassifier

ELSEWHERE = {"odm", "mcodm", "ldm", "svm", "msvmav"}
LINEAR_ONLY = {"mdo"}
COMMON = [p for p in inspect.signature(LDMClassifier).parameters.values() if p.kind is p.KEYWORD_ONLY]

DOCUMENTATION = """{summary}.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """


def shown_name(name):
    """A parameter of the core as Python and scikit-learn call it."""
    return {"c": "C", "lambda": "lam"}.get(name, name)


def default_of(parameter):
    """The core's default as a Python value."""
    default = parameter["default"]
    return int(default) if parameter["whole"] else default


def without(machine):
    """The shared parameters that mean nothing to the machine.

    A closed form has no tolerance and no iterations.

    The largest smallest margin (FMM) is the same however often a sample counts. Fisher's discriminant takes the mean of
    each class by itself, KM-OMD a convex combination, and both put the threshold half-way between: the weight of a
    whole class does not move it.
    """
    meaningless = {"multi_class"} if machine["many"] else set()
    meaningless |= {name for name in ("tol", "max_iter") if not machine[name]}
    return meaningless | ({"class_weight"} if machine["name"] in ("fmm", "km-omd", "lda") else set())


def signature_of(machine):
    """The parameters of the machine, then those all estimators share."""
    own = [
        inspect.Parameter(shown_name(p["name"]), inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default_of(p))
        for p in machine["parameters"]
    ]
    common = [p for p in COMMON if p.name not in without(machine)]
    if machine["name"] in LINEAR_ONLY:
        common = [p.replace(default="linear") if p.name == "kernel" else p for p in common]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([itself, *own, *common])


def initialiser(signature):
    """An `__init__` of this signature that keeps what it is given."""

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature
    return __init__


def documentation(machine):
    """The docstring, from what the core says of the machine."""
    own = [
        f"{shown_name(p['name'])} : {p['domain']}, default={default_of(p)}\n    {p['help'][0].upper()}{p['help'][1:]}."
        for p in machine["parameters"]
    ]
    common = parameters_text(BY_WRAPPER, WRAPPER_MEANING, without(machine), intercept_text(machine))
    return DOCUMENTATION.format(
        summary=f"{machine['summary']} ({machine['paper']})",
        parameters="\n    ".join([*map(indented, own), common]),
        attributes=indented(ATTRIBUTES),
    )


def classifier(machine):
    """The estimator of a machine."""
    signature = signature_of(machine)
    members = {
        "__doc__": documentation(machine),
        "__init__": initialiser(signature),
        "__module__": __name__,
        "_machine": machine["name"],
        "_names": {p["name"]: shown_name(p["name"]) for p in machine["parameters"]},
    }
    return type(class_name(machine["name"]), (MarginClassifier,), members)


def class_name(machine):
    """`km-omd` is `KMOMDClassifier`."""
    return machine.replace("-", "").upper() + "Classifier"


CLASSIFIERS = {name: classifier(machine) for name, machine in MACHINES.items() if name not in ELSEWHERE}
globals().update({cls.__name__: cls for cls in CLASSIFIERS.values()})
__all__ = sorted(cls.__name__ for cls in CLASSIFIERS.values())
