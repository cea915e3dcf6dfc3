"""BENCHMARKS.md from what was measured."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kinds import Measured, Result, Row, Target

Verdict = tuple[str, str, bool | None]


def value(found: Result, measure: str) -> float | None:
    """What was measured; the time to predict is processor time."""
    if measure == "predict":
        return found.predict.cpu if found.predict else None
    return getattr(found, measure)


def judge(target: Target, results: dict[str, Result]) -> Verdict:
    """A target's text, what was reached, and whether that is enough (None if it cannot be said)."""
    mine = results.get(target.ours)
    if mine is None:
        # Of ours nothing is missing but what took too long.
        return target.text, "given up", False
    if target.rate is not None:
        rate = (mine.bytes or 0) / mine.wall
        return target.text, f"{rate / 1e6:.0f} MB/s", rate >= target.rate
    if target.most is not None:
        return target.text, f"{seconds(mine.wall)} s", mine.wall <= target.most
    theirs = [value(results[name], target.measure) for name in target.theirs if name in results]
    best = min((number for number in theirs if number), default=None)
    number = value(mine, target.measure)
    if best is None or number is None:
        return target.text, "not measured", None
    ratio = number / best
    return target.text, f"{ratio:.3g} of it", ratio <= target.share


def judged(row: Row, found: Measured) -> list[Verdict]:
    """All targets of a row."""
    return [judge(target, found.results) for target in row.targets]


def word(met: bool | None) -> str:
    """How a verdict reads."""
    return {True: "met", False: "**not met**", None: "?"}[met]


def verdicts(row: Row, found: Measured) -> list[str]:
    """The targets as lines for a terminal."""
    return [f"{text}: {reached}, {word(met).strip('*')}" for text, reached, met in judged(row, found)]


def seconds(number: float) -> str:
    """Seconds with as many digits as mean something."""
    return f"{number:.3f}" if number < 1 else f"{number:.2f}" if number < 10 else f"{number:.1f}"


def optional(number: float | None, form: str) -> str:
    """A number, if there is one."""
    return "" if number is None else form.format(number)


def table(row: Row, found: Measured) -> list[str]:
    """The results of a row."""
    mine = next((result for result in found.results.values() if result.ours), None)
    predicts = row.name.startswith("kernel") and any(r.predict and r.support for r in found.results.values())
    head = ["program", "wall s", "cpu s", "ours/theirs", "MB", "objective", "excess", "accuracy %"]
    head += ["support rows", "predict cpu s"] if predicts else []
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for label, result in found.results.items():
        lines.append("| " + " | ".join(cells(label, result, mine, predicts)) + " |")
    return lines


def cells(label: str, result: Result, mine: Result | None, predicts: bool) -> list[str]:
    """One line of the table; `mine` is the first of ours."""
    name = f"**{label}**" if result.ours else label + optional(result.tol, " (tolerance {:g})")
    line = [
        name,
        seconds(result.wall),
        seconds(result.cpu),
        "" if result.ours or mine is None else f"{mine.cpu / result.cpu:.3g}",
        f"{result.memory / 1e6:.0f}",
        optional(result.objective, "{:.6g}"),
        optional(result.excess, "{:.1e}"),
        optional(result.accuracy and 100 * result.accuracy, "{:.2f}"),
    ]
    if predicts:
        line += [optional(result.support, "{}"), seconds(result.predict.cpu) if result.predict else ""]
    return line


def reasons(root: Path) -> dict[str, str]:
    """`bench/notes.md`: what is to be said of each row, under headings that are the rows' names."""
    text = (root / "bench/notes.md").read_text()
    parts = re.split(r"^## (\S+)\n", text, flags=re.M)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2])}


def machine() -> str:
    """The computer."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores"


INTRODUCTION = """# Benchmarks

Made by `cargo xtask bench`; do not edit. Reasons and remarks are in `bench/notes.md`, what is measured in
`bench/rows.py`.

Ours and theirs solve **the same problem** in one run, in turn; of several rounds the smallest time counts, because
what disturbs only ever adds. Only training is timed, not reading. `cpu` is processor time over all threads,
`ours/theirs` the quotient of processor times of the first of ours. Ours stop at a relative duality gap of 1e-3. Each
other program gets the loosest of the tolerances 1, 0.1, 0.01 … that brings its objective within 1e-3 of the optimum,
found beforehand; `excess` is `objective/(dual bound) − 1`, the bound from a solution of ours to 1e-5. Memory is the
peak of our process with everything in it; of theirs, their data and what training adds, without the interpreter.
Accuracy is on rows held out. The machines beside the first of ours (ODM, LDM, mcODM) have the same regularisation and
the same gap to reach; their objectives are other functions. Linear rows have no intercept where nothing is said;
`--bias 1` is a regularised constant feature, LIBLINEAR's `-B 1`; a free intercept is our default, and nothing of
theirs minimises the same. All times are of the row's date; kept from earlier runs are only tolerances, for the same
version of the program, and optima.
"""


def write(root: Path, rows: list[Row], measured: dict[str, Measured], mark: str) -> None:
    """BENCHMARKS.md."""
    notes = reasons(root)
    lines = [INTRODUCTION, *header(measured), *targets(rows, measured, mark)]
    if (root / "docs/growth.svg").exists():
        lines += ["", "## Growth", "", "![Training time over rows, features and stored values](docs/growth.svg)", ""]
        lines += [notes.get("growth", "")]
    for row in rows:
        if row.name in measured:
            lines += section(row, measured[row.name], notes.get(row.name, ""))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
    (root / "BENCHMARKS.md").write_text(text)


def header(measured: dict[str, Measured]) -> list[str]:
    """The computer, and the versions of the programs."""
    versions = sorted({r.version for found in measured.values() for r in found.results.values() if r.version})
    return [f"{machine()}. " + ", ".join(versions) + ".", ""]


def targets(rows: list[Row], measured: dict[str, Measured], mark: str) -> list[str]:
    """All targets in one table."""
    lines = ["## Targets", "", "| work | target | reached | |", "|---|---|---|---|"]
    for row in rows:
        found = measured.get(row.name)
        if found is None:
            continue
        stale = "" if found.build == mark else " †"
        lines += [
            f"| {row.title}{stale} | {text} | {reached} | {word(met)} |" for text, reached, met in judged(row, found)
        ]
    if any(found.build != mark for found in measured.values()):
        lines += ["", "† measured with an earlier build."]
    return lines


def section(row: Row, found: Measured, remark: str) -> list[str]:
    """All that is to be said of a row."""
    lines = ["", f"## {row.title}", "", f"`{row.name}`, {found.date}, data `{public(found.shape)}`.", ""]
    return [*lines, *table(row, found), "", *[text + "\n" for text in [*found.notes, remark] if text]]


def public(shape: str) -> str:
    """A shape without the folder of its file."""
    return shape.rsplit("/", 1)[-1] if shape.startswith("file:") else shape
