"""What is kept from run to run: with the date, and the versions it belongs to."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kinds import Measured
from ours import WORK


def today() -> str:
    """The date."""
    return datetime.date.today().isoformat()


def remembered(what: str, version: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What need not be found again while the version stays the same: tolerances and optima, no times."""
    path = WORK / "known.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if known.get(what, {}).get("version") != version:
        known[what] = {**make(), "date": today(), "version": version}
        path.write_text(json.dumps(known, indent=1))
    return known[what]


def read(path: Path) -> dict[str, Measured]:
    """What was measured before."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    return {name: Measured.of(found) for name, found in stored.items()}


def write(path: Path, measured: dict[str, Measured]) -> None:
    """Keeps what was measured."""
    stored = {name: dataclasses.asdict(found) for name, found in measured.items()}
    path.write_text(json.dumps(stored, indent=1))
