"""Our program at work."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from kinds import GivenUp, Options, Ours, Result, Seconds
from rows import TOLERANCE

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target/release/widemargin"
WORK = ROOT / "target/bench"
# A fit of ours that takes longer is given up, and said to be; a search may take longer.
LONGEST = 120
LONGEST_SEARCH = 300


def fail(text: str) -> NoReturn:
    """Ends the run."""
    print(f"error: {text}", file=sys.stderr)
    sys.exit(1)


def build_mark() -> str:
    """Which build of ours it is."""
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:12]


def widemargin(*words: str | Path, timeout: float | None = None) -> dict[str, Any]:
    """Runs a command; returns the JSON it prints."""
    command = [PROGRAM, *words, "--json", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise GivenUp(f"given up after {timeout:g} seconds") from error
    if done.returncode != 0:
        fail(f"widemargin {' '.join(map(str, words))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rows_in(folder: Path) -> int:
    """Number of training rows."""
    return int((folder / "train.shape").read_text().split()[0])


def of_rows(word: str, rows: int) -> str:
    """A word, with `ROWS*factor` worked out."""
    if not word.startswith("ROWS"):
        return word
    return repr(rows * float(word.removeprefix("ROWS").removeprefix("*") or 1))


def train(machine: Ours, folder: Path, tol: float = TOLERANCE, timeout: float | None = None) -> Result:
    """One fit; the model stays where `predict` finds it."""
    words = [of_rows(word, rows_in(folder)) for word in machine.words]
    words = (["--machine", machine.machine] if machine.machine else []) + words
    data, model = folder / "train.libsvm", WORK / "model"
    found = widemargin("train", data, model, *words, "--tol", str(tol), timeout=timeout)
    return Result(
        wall=found["seconds"]["train"],
        cpu=found["processor"]["train"],
        memory=found["peak_memory"],
        ours=True,
        objective=found["objective"],
        dual=found["dual_objective"],
        gap=found["gap"],
        solver=found["solver"],
        support=found["support"],
    )


def tune(folder: Path, *words: str) -> Result:
    """A search with its last fit."""
    found = widemargin("tune", folder / "train.libsvm", WORK / "model", *words, timeout=LONGEST_SEARCH)
    return Result(
        wall=found["seconds"]["search"] + found["seconds"]["train"],
        cpu=found["processor"]["search"],
        memory=found["peak_memory"],
        ours=True,
        accuracy=predict(folder)[0],
    )


def predict(folder: Path) -> tuple[float, Seconds]:
    """Accuracy on rows held out, and the time it took."""
    found = widemargin("predict", folder / "test.libsvm", WORK / "model")
    return found["accuracy"], Seconds(found["seconds"]["predict"], found["processor"]["predict"])


def make_data(shape: str, options: Options) -> Path:
    """The folder with the data of a shape, made if it is not there."""
    name = shape.split("/")[-1] if shape.startswith("file:") else shape
    folder = WORK / "data" / re.sub(r"[^\w.-]+", "_", name)
    subprocess.run([options.xtask, "bench-data", shape, folder], check=True)
    return folder
