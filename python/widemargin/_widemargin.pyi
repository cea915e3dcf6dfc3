from collections.abc import Callable
from os import PathLike
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64] | NDArray[np.float32]
# A C-ordered array, or columns, row offsets, column of each value and values of a CSR matrix.
Rows = Floats | tuple[int, NDArray[np.uint64], NDArray[np.uint32], Floats]

class Choices(TypedDict):
    machine: str
    parameters: list[tuple[str, Any]]
    shown: dict[str, str]
    multiclass: str | None
    kernel: str
    gamma: Any
    bias: Any
    scale: str | None
    numbers: list[tuple[str, Any]]
    class_weight: list[tuple[str, float]]
    probability: str | None
    columns: list[str] | None
    label_kind: str
    memory: int
    seed: int
    threads: int
    verbose: bool

class Wishes(TypedDict):
    grid: str | list[tuple[str, str | list[Any]]] | None
    select: str | None
    score: str | None
    folds: int
    repeats: int
    search_rows: str
    fixed: list[str]
    resume: str | PathLike[str] | None

class Told(TypedDict):
    numbers: str
    margins: NDArray[np.float64]
    loo_margins: NDArray[np.float64] | None
    support: NDArray[np.uint64] | None

__version__: str

class Model:
    def __new__(cls, bytes: bytes) -> Model: ...
    @classmethod
    def load(cls, path: str | PathLike[str]) -> Model: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def to_onnx(
        self,
        name: str,
        labels: list[int] | list[float] | list[str],
        single: bool,
        before: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
    ) -> bytes: ...
    def info(self) -> str: ...
    def is_little(self, rows: Rows) -> bool: ...
    def columns(self, rows: Rows, threads: int) -> NDArray[np.float64]: ...
    def scores(self, rows: Rows, threads: int) -> NDArray[np.float64]: ...
    def predict(self, rows: Rows, threads: int) -> NDArray[np.uint32]: ...
    def probabilities(self, rows: Rows, threads: int) -> NDArray[np.float64] | None: ...
    def prediction_sets(
        self, rows: Rows, threads: int, coverage: float, per_class: bool
    ) -> NDArray[np.bool_] | None: ...
    def intercepts(self) -> NDArray[np.float64]: ...
    def weights(self) -> NDArray[np.float64] | None: ...
    def coefficients(self) -> NDArray[np.float64] | None: ...
    def support(self) -> Rows | None: ...
    def support_rows(self) -> NDArray[np.uint64] | None: ...
    def verify(
        self,
        rows: Rows,
        codes: NDArray[np.uint32],
        labels: list[str],
        weights: NDArray[np.float64] | None,
        threads: int,
    ) -> str: ...
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...

def machines() -> str: ...
def all_finite(rows: Rows, threads: int) -> bool: ...
def usual_memory() -> int: ...
def unlike_scales(rows: Rows, threads: int) -> tuple[tuple[int, float], tuple[int, float]] | None: ...
def train(
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
    before: Model | None = None,
) -> tuple[Model, Told]: ...
def tune(
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
    wishes: Wishes,
    judge: Callable[[list[str]], list[str]] | None = None,
) -> tuple[Model, Told, str]: ...
def judge_lines(
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
    wishes: Wishes,
    lines: list[str],
) -> list[str]: ...
def average(
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
    averaged: str,
    over: str,
    search_rows: str,
) -> tuple[Model, Told, str]: ...
def audit(
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
    chosen: bool,
    named: int,
) -> str: ...

class Memory:
    def __new__(cls) -> Memory: ...

def part_sums(
    rows: Rows,
    codes: NDArray[np.uint32],
    weights: NDArray[np.float64],
    question: NDArray[np.float64],
    memory: Memory,
    threads: int,
) -> NDArray[np.float64]: ...
def train_parts(
    ask: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    labels: list[str],
    features: int,
    rows: int,
    choices: Choices,
) -> tuple[Model, str]: ...
def kernel_share(
    rows: Rows, question: NDArray[np.float64], share: int, shares: int, threads: int
) -> NDArray[np.float64]: ...
def train_kernel(
    ask: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    rows: Rows,
    codes: NDArray[np.uint32],
    labels: list[str],
    weights: NDArray[np.float64] | None,
    choices: Choices,
) -> tuple[Model, Told]: ...
