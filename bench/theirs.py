"""Other programs at work, each in a process of its own with the data loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ours import ROOT


class Peer:
    """A process of another program."""

    def __init__(self, program: str, folder: Path) -> None:
        command = [sys.executable, ROOT / "bench/peers.py", program, folder]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        ready = self.answer()
        # Why it cannot be asked, or None.
        self.missing: str | None = ready.get("error")
        self.version = f"{ready.get('package')} {ready.get('ready')}"

    def answer(self) -> dict[str, Any]:
        """What it says next."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                return {"error": "it ended without an answer"}
            try:
                return json.loads(line)
            except ValueError:
                continue  # a program that talks

    def fit(self, settings: dict[str, Any]) -> dict[str, Any]:
        """One fit."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(settings) + "\n")
            self.process.stdin.flush()
        except OSError:
            return {"error": "it has ended"}
        return self.answer()

    def close(self) -> None:
        """Lets it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
