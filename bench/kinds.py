"""The things a benchmark is made of: rows, programs, targets, results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ours:
    """One of our machines at work. `ROWS` among the words stands for the number of rows, `ROWS*2` for twice that.

    Without a name it is the default machine. A search (`tune`) is timed with its last fit.
    """

    label: str
    machine: str
    words: tuple[str, ...]
    command: str = "train"


@dataclass(frozen=True)
class Theirs:
    """Another program. It minimises what ours of the label `same_as` minimises, and is judged by that optimum.

    Where that is empty nothing of ours does, and it gets the first of its tolerances.
    """

    program: str
    label: str
    same_as: str
    tolerances: tuple[float, ...]
    settings: dict[str, Any]


@dataclass(frozen=True)
class Target:
    """Ours (a label) at most `share` of the best of theirs (labels) by a measure: cpu, wall, memory, predict.

    With a `rate`, ours reads at least so many bytes a second; with `most`, it takes at most so many seconds.
    """

    text: str
    ours: str
    theirs: tuple[str, ...] = ()
    share: float = 1.0
    measure: str = "cpu"
    rate: float | None = None
    most: float | None = None


Contest = tuple[list[Ours], list[Theirs]]


@dataclass(frozen=True)
class Row:
    """A piece of work: its data (whole, and small for `--quick`), who does it, and what is wanted."""

    name: str
    title: str
    data: tuple[str, str]
    targets: tuple[Target, ...]
    build: Callable[[str], Contest] | None = None


@dataclass(frozen=True)
class Seconds:
    """Wall and processor time."""

    wall: float
    cpu: float


@dataclass
class Result:
    """What one program did."""

    wall: float
    cpu: float
    memory: int
    ours: bool = False
    objective: float | None = None
    dual: float | None = None
    gap: float | None = None
    solver: str | None = None
    support: int | None = None
    accuracy: float | None = None
    predict: Seconds | None = None
    excess: float | None = None
    tol: float | None = None
    version: str | None = None
    date: str | None = None
    bytes: int | None = None
    rounds: int = 1

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Result:
        """From what a program answered, or what was stored."""
        known = {f.name for f in dataclasses.fields(cls)}
        found = {name: value for name, value in answer.items() if name in known}
        if found.get("predict") is not None:
            found["predict"] = Seconds(**found["predict"])
        return cls(**found)


@dataclass
class Measured:
    """What was measured of a row, when, and with which build of ours."""

    results: dict[str, Result]
    notes: list[str] = field(default_factory=list)
    build: str = ""
    date: str = ""
    shape: str = ""
    seconds: float = 0.0

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Measured:
        """From its JSON."""
        known = {f.name for f in dataclasses.fields(cls)}
        found = {name: value for name, value in stored.items() if name in known}
        found["results"] = {label: Result.of(result) for label, result in stored["results"].items()}
        return cls(**found)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    xtask: str
    quick: bool
    only: tuple[str, ...]
    data: Path | None
    liblinear: Path | None
    growth: bool
    again: bool


class GivenUp(Exception):
    """A program did not end in time, or failed."""
