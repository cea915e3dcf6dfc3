"""Documentation that runs, and an import that is quick."""

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys

import pytest
from conftest import ALL, ROOT

from widemargin import ODMClassifierCV, baselines
from widemargin._base import MACHINES

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
            stated = stated if isinstance(stated, str) else stated[1]
            assert value == (stated if isinstance(value, str) else float(stated))


def test_stub_of_the_baselines():
    """The classes of the baselines are made from what the core says; the stub has to say the same."""
    tree = ast.parse((ROOT / "python/widemargin/baselines.pyi").read_text())
    stubs = {node.name: node.body[0].args for node in tree.body if isinstance(node, ast.ClassDef)}
    assert sorted(stubs) == baselines.__all__
    for name, arguments in stubs.items():
        parameters = [argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]][1:]
        defaults = [ast.literal_eval(value) for value in [*arguments.defaults, *arguments.kw_defaults]]
        expected = inspect.signature(getattr(baselines, name)).parameters
        assert dict(zip(parameters, defaults)) == {key: value.default for key, value in expected.items()}
