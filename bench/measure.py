"""Measures a row: ours and theirs in turn on the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ours
from kinds import GivenUp, Measured, Options, Ours, Result, Row, Seconds, Theirs
from reading import measure_reading
from rows import TOLERANCE
from store import remembered, today
from theirs import Peer

# A fit that takes longer is not repeated: the one that found its tolerance counts.
SLOW = 20
# Beyond so many seconds, a further decade of the tolerance would take the whole run's time.
TOO_SLOW = 30
# Of a program that has taken so many seconds there are no more rounds.
ENOUGH = 10

Once = Callable[[], Result]


def measure(row: Row, folder: Path, shape: str, options: Options) -> Measured:
    """All that is to be measured of a row."""
    if row.name == "read":
        return measure_reading(folder, options, run_in_turn)
    if row.name == "search":
        return measure_search(folder, options)
    if row.build is None:
        ours.fail(f"nobody is said to do {row.name}")
    machines, programs = row.build(shape)
    return Machines(machines, programs, folder, options.quick).measure()


def smallest(results: list[Result]) -> Result:
    """Of several rounds, the smallest of each time: what disturbs only ever adds."""
    predicts = [result.predict for result in results if result.predict]
    predict = Seconds(min(p.wall for p in predicts), min(p.cpu for p in predicts)) if predicts else None
    wall, cpu = min(r.wall for r in results), min(r.cpu for r in results)
    return replace(results[0], wall=wall, cpu=cpu, predict=predict, rounds=len(results), date=today())


def run_in_turn(entries: dict[str, Once], quick: bool, notes: list[str]) -> dict[str, Result]:
    """Lets all run in turn, the slow ones less often; who fails is noted."""
    results: dict[str, list[Result]] = {label: [] for label in entries}
    for number in range(1 if quick else 3):
        for label, once in entries.items():
            spent = sum(result.wall for result in results[label])
            if number > 0 and (not results[label] or spent > ENOUGH):
                continue
            try:
                found = once()
            except GivenUp as error:
                print(f"    {label}: {error}")
                notes.append(f"{label}: {error}.")
                continue
            results[label].append(found)
            print(f"    {label}: {found.cpu:.3f} s", flush=True)
    return {label: smallest(found) for label, found in results.items() if found}


def answered(answer: dict[str, Any]) -> Result:
    """What a program answered, unless it failed."""
    if "error" in answer:
        raise GivenUp(answer["error"])
    return Result.of(answer)


@dataclass
class Calibrated:
    """The settings a program is run with, and a fit with them that is not worth repeating."""

    settings: dict[str, Any]
    slow: Result | None = None


class Machines:
    """Our machines and other programs on one data set."""

    def __init__(self, machines: list[Ours], programs: list[Theirs], folder: Path, quick: bool) -> None:
        self.machines, self.programs, self.folder, self.quick = machines, programs, folder, quick
        self.notes: list[str] = []
        self.peers: dict[str, Peer] = {}
        self.predicted: dict[str, tuple[float, Seconds]] = {}

    def measure(self) -> Measured:
        """Everything."""
        same = sorted({program.same_as for program in self.programs if program.same_as})
        optima = {label: self.optimum(label) for label in same}
        self.peers = {name: Peer(name, self.folder) for name in sorted({p.program for p in self.programs})}
        try:
            return self.measure_with(optima)
        finally:
            for peer in self.peers.values():
                peer.close()

    def measure_with(self, optima: dict[str, dict[str, Any]]) -> Measured:
        """All in turn, with the optima known."""
        entries: dict[str, Once] = {machine.label: self.fit_of_ours(machine) for machine in self.machines}
        calibrated = {p.label: self.calibrated(p, optima) for p in self.programs}
        slow: dict[str, Result] = {}
        for program in self.programs:
            found = calibrated[program.label]
            if found is None:
                continue
            if found.slow:
                slow[program.label] = replace(found.slow, date=today())
            else:
                entries[program.label] = self.fit_of_theirs(program, found.settings)
        results = {**run_in_turn(entries, self.quick, self.notes), **slow}
        for program in self.programs:
            found, result = calibrated[program.label], results.get(program.label)
            if found and result:
                result.tol, result.version = found.settings["tol"], self.peers[program.program].version
                if program.same_as:
                    result.excess = excess_of(result, optima[program.same_as]["dual"])
        for label, optimum in optima.items():
            if label in results:
                results[label].excess = excess_of(results[label], optimum["dual"])
        return Measured(results, self.notes)

    def machine(self, label: str) -> Ours:
        """Ours of a label."""
        return next(machine for machine in self.machines if machine.label == label)

    def optimum(self, label: str) -> dict[str, Any]:
        """The optimum, to judge by: the bound is a hundredth of the tolerance away, of many classes a tenth."""
        machine = self.machine(label)
        tol = (0.1 if machine.machine == "mcsvm" else 0.01) * TOLERANCE

        def find() -> dict[str, Any]:
            found = ours.train(machine, self.folder, tol)
            return {"objective": found.objective, "dual": found.dual, "gap": found.gap}

        what = f"{self.folder.name} {machine.machine} {' '.join(machine.words)}"
        # A bound stays a bound, whichever build found it.
        found = remembered(what, "a bound of any build", find)
        print(f"    optimum of {label}: {found['objective']:.6g}, gap {found['gap']:.1e}")
        return found

    def fit_of_ours(self, machine: Ours) -> Once:
        """A fit, and the first time predictions."""

        def once() -> Result:
            if machine.command == "tune":
                return ours.tune(self.folder, *machine.words)
            found = ours.train(machine, self.folder, timeout=ours.LONGEST)
            if machine.label not in self.predicted:
                self.predicted[machine.label] = ours.predict(self.folder)
            found.accuracy, found.predict = self.predicted[machine.label]
            return found

        return once

    def fit_of_theirs(self, program: Theirs, settings: dict[str, Any]) -> Once:
        """A fit of another program."""
        return lambda: answered(self.peers[program.program].fit(settings))

    def calibrated(self, program: Theirs, optima: dict[str, dict[str, Any]]) -> Calibrated | None:
        """The loosest tolerance that brings a program within ours of the optimum; None, with a note, if it fails."""
        peer = self.peers[program.program]
        if peer.missing:
            self.notes.append(f"{program.label} is missing: {peer.missing}.")
            return None
        if not program.same_as:
            return Calibrated({**program.settings, "tol": program.tolerances[0]})
        bound = optima[program.same_as]["dual"]
        measured: list[Result] = []

        def find() -> dict[str, Any]:
            chosen: dict[str, Any] = {}
            for tol in program.tolerances:
                found = answered(peer.fit({**program.settings, "tol": tol}))
                chosen = {"tol": tol, "excess": excess_of(found, bound)}
                print(
                    f"    {program.label}, tolerance {tol:g}: {found.cpu:.3f} s, excess {chosen['excess']:.1e}",
                    flush=True,
                )
                measured[:] = [found] if found.wall > SLOW else []
                if chosen["excess"] <= TOLERANCE or found.wall > TOO_SLOW:
                    break
            return chosen

        what = f"{self.folder.name} {program.label} {sorted(program.settings.items())}"
        try:
            chosen = remembered(what, peer.version, find)
        except GivenUp as error:
            self.notes.append(f"{program.label} failed: {error}.")
            return None
        if chosen["excess"] > TOLERANCE:
            reached = f"excess {chosen['excess']:.1e} at tolerance {chosen['tol']:g}"
            self.notes.append(f"{program.label} does not come within {TOLERANCE:g} of the optimum ({reached}).")
        return Calibrated({**program.settings, "tol": chosen["tol"]}, measured[0] if measured else None)


def excess_of(found: Result, bound: float) -> float:
    """How far above the optimum, as a part of it."""
    return (found.objective if found.objective is not None else float("nan")) / bound - 1


# Search ----------------------------------------------------------------------------------------------------------

COSTS = [2.0**k for k in range(-3, 8)]
GAMMAS = [2.0**k / 50 for k in range(-4, 1)]
SEARCHES = {"GridSearchCV, LIBSVM": "search", "GridSearchCV, oneDAL": "onedal-search"}


def measure_search(folder: Path, options: Options) -> Measured:
    """The same grid by all, and what our search does by default."""
    entries: dict[str, Once] = {
        "tune": lambda: search_of_ours(folder),
        "tune, all defaults": lambda: ours.tune(folder, "--kernel", "rbf"),
    }
    notes: list[str] = []
    peers = {label: Peer(program, folder) for label, program in SEARCHES.items()}
    settings = {"costs": COSTS, "gammas": GAMMAS, "kind": "search"}
    for label, peer in peers.items():
        if peer.missing:
            notes.append(f"{label} is missing: {peer.missing}.")
        else:
            entries[label] = lambda peer=peer: answered(peer.fit(settings))
    results = run_in_turn(entries, options.quick, notes)
    for label, peer in peers.items():
        if label in results:
            results[label].version = peer.version
        peer.close()
    return Measured(results, notes)


def search_of_ours(folder: Path) -> Result:
    """Our search over the same grid."""
    costs, gammas = (";".join(map(repr, values)) for values in (COSTS, GAMMAS))
    words = ["--machine", "svm", "--kernel", "rbf", "--select", "cv", "--folds", "5"]
    return ours.tune(folder, *words, "--grid", f"c={costs},gamma={gammas}")
