"""Documentation that runs, and an import that is quick."""

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import ALL, ROOT

from widemargin import ODMClassifierCV, baselines
from widemargin._parameters import MACHINES

MODULES = ["", ".baselines", "._classifiers", "._load", "._onnx", "._display", "._tune"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"widemargin{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("cls", [*ALL, ODMClassifierCV])
def test_every_parameter_is_documented(cls):
    for name in cls._get_param_names():
        assert re.search(rf"\n    (\w+, )*{name}(, \w+)* : ", cls.__doc__), name


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_examples_in_the_readme(page, two_classes):
    X, y = two_classes
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {"X": X[:200], "y": y[:200], "X_new": X[200:]})


def test_tour():
    subprocess.run([sys.executable, ROOT / "examples" / "tour.py"], check=True, timeout=120, capture_output=True)


def test_import_loads_what_is_used():
    program = """
import sys, widemargin
assert not {"sklearn", "scipy", "numpy", "matplotlib", "onnx", "polars"} & set(sys.modules)
widemargin.ODMClassifier
assert not {"matplotlib", "onnx", "polars"} & set(sys.modules)
assert set(widemargin.__all__) <= set(dir(widemargin))
assert all(getattr(widemargin, name) is not None for name in widemargin.__all__)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("cls", ALL)
def test_defaults_are_those_of_the_core(cls):
    for parameter in MACHINES[cls._machine]["parameters"]:
        stated = parameter["default"] or re.search(r"default ([\d.]+)", parameter["help"] or "")
        if parameter["name"] in cls._names and stated:
            value = getattr(cls(), cls._names[parameter["name"]])
            stated = stated[1] if isinstance(stated, re.Match) else stated
            assert value == (stated if isinstance(value, str) else float(stated))


@pytest.mark.parametrize("cls", [*ALL, ODMClassifierCV])
def test_classes_are_plain(cls):
    """What a reader opens is what there is: every parameter stands, with its type, in an `__init__` that keeps it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    (init,) = [node for node in tree.body[0].body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    arguments = [*init.args.args[1:], *init.args.kwonlyargs]
    assert [argument.arg for argument in arguments] == list(inspect.signature(cls).parameters)
    assert all(argument.annotation for argument in arguments)
    assert [ast.unparse(line) for line in init.body] == [f"self.{a.arg} = {a.arg}" for a in arguments]
    assert "<" not in re.sub(r"<=?( |$)|->", "", cls.__doc__.replace("``C2 <= C1``", ""))


def test_every_baseline_is_listed():
    assert sorted(cls.__name__ for cls in baselines.CLASSIFIERS.values()) == baselines.__all__
    assert {cls._machine for cls in ALL} | {"mcodm"} == set(MACHINES)
