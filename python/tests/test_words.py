"""Documentation that runs, and an import that is quick."""

import doctest
import importlib
import subprocess
import sys

import pytest
from conftest import ALL, ROOT

MODULES = ["", ".baselines", "._classifiers", "._load", "._onnx", "._display"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"widemargin{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("cls", ALL)
def test_every_parameter_is_documented(cls):
    for name in cls._get_param_names():
        assert f"\n    {name} : " in cls.__doc__, name


def test_tour():
    subprocess.run([sys.executable, ROOT / "examples" / "tour.py"], check=True, timeout=120, capture_output=True)


def test_import_is_quick():
    program = """
import time, sklearn.utils.validation, sklearn.base, sklearn.utils.multiclass, sklearn.utils.class_weight
start = time.perf_counter()
import widemargin
print(time.perf_counter() - start)
import sys
assert not {"matplotlib", "onnx", "polars"} & set(sys.modules)
"""
    times = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(3)]
    assert min(times) < 0.3
