"""Completes docstrings for the guide: what `python/widemargin/_docs.py` adds to them when the package is imported."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import griffe

SOURCE = Path(__file__).parent.parent / "python/widemargin/_docs.py"


def load() -> Any:
    """The module with the shared words; it needs nothing of the package."""
    spec = importlib.util.spec_from_file_location("shared_words", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# LaTeX and the letters for it, longer words before their beginnings.
SIGNS = r"""
\frac12 ½ | \frac1m (1/m) | \frac{C}{m} (C/m) | \| ‖ | \sum_i Σ | \sum_l Σ_l | \sum Σ | \max max
\min min | \exp exp | \ge ≥ | \le ≤ | \cdot · | ^\top ᵀ
\gamma γ | \lambda λ | \theta θ | \mu μ | \alpha α | \beta β
\xi ξ | \epsilon ε | \varphi φ | \delta δ | \rho ρ | ^{-1} ⁻¹ | ^2 ²
"""


def signs() -> list[tuple[str, str]]:
    """The table as pairs."""
    cells = (cell.split() for line in SIGNS.strip().splitlines() for cell in line.split(" | "))
    return [(word, letter) for word, letter in cells]


def plain(text: str) -> str:
    """Roles of Sphinx as code; formulas in letters, since a page that is read from disk sets no LaTeX."""

    def formula(match: re.Match[str]) -> str:
        words = match.group(1).replace("\n", " ")
        for sign, letter in signs():
            words = words.replace(sign, letter)
        # What is left only sets type: \\mathrm{…}, \\, and braces.
        return "`" + re.sub(r"\\[a-z]+|\\,|[{}]", "", re.sub(r" +", " ", words)) + "`"

    text = re.sub(r":math:`([^`]*)`", formula, text)
    return re.sub(r":(?:class|term|meth|func|attr|mod):`~?([^`]*)`", r"`\1`", text)


class Shared(griffe.Extension):
    """Puts the shared parameters and attributes where docstrings leave room for them."""

    def __init__(self) -> None:
        self.words = load()

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """A class has the parameters of its constructor."""
        constructor = cls.members.get("__init__")
        if constructor is not None and isinstance(constructor, griffe.Function):
            self.complete(cls, constructor.parameters)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """A function has its own."""
        self.complete(func, func.parameters)

    def complete(self, thing: griffe.Object, parameters: griffe.Parameters) -> None:
        """Fills the gaps of one docstring."""
        if thing.docstring is None:
            return
        text = thing.docstring.value
        own = {name.strip() for line in text.splitlines() if " : " in line for name in line.split(" : ")[0].split(",")}
        shared = [self.entry(p) for p in parameters if p.name in self.words.PARAMETERS and p.name not in own]
        text = text.replace("<shared parameters>", "\n".join(shared)).replace("<attributes>", self.words.ATTRIBUTES)
        thing.docstring.value = plain(text)

    def entry(self, parameter: griffe.Parameter) -> str:
        """One parameter as numpydoc has it."""
        kind, meaning = self.words.PARAMETERS[parameter.name]
        indented = meaning.replace("\n", "\n    ")
        return f"{parameter.name} : {kind}, default={parameter.default}\n    {indented}"
