"""Measures readers of LIBSVM text."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import ours
from kinds import GivenUp, Measured, Options, Result
from theirs import Peer

READER = """
#include <time.h>
#include <sys/resource.h>
#define main train_main
#include "train.c"
#undef main
int main(int argc, char **argv) {
    struct timespec from, to;
    bias = -1;
    clock_gettime(CLOCK_MONOTONIC, &from);
    read_problem(argv[1]);
    clock_gettime(CLOCK_MONOTONIC, &to);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    double wall = to.tv_sec - from.tv_sec + 1e-9 * (to.tv_nsec - from.tv_nsec);
    printf("{\\"wall\\": %f, \\"cpu\\": %f, \\"memory\\": %ld}", wall, cpu, used.ru_maxrss * 1024L);
    return 0;
}
"""

RunInTurn = Callable[[dict[str, Callable[[], Result]], bool, list[str]], dict[str, Result]]


def liblinear_reader(sources: Path) -> Path | None:
    """LIBLINEAR's own reader, timed inside its own program; None if it cannot be built."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None or not (sources / "train.c").exists():
        return None
    folder = ours.WORK / "liblinear"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reader.cpp").write_text(READER)
    flags = ["-O3", "-fpermissive", "-w", f"-I{sources}"]
    objects = []
    for part in [sources / "linear.cpp", sources / "newton.cpp", *sorted((sources / "blas").glob("*.c"))]:
        made = folder / (part.name + ".o")
        language = ["-x", "c"] if part.suffix == ".c" else []
        subprocess.run([compiler, *flags, *language, "-c", part, "-o", made], check=True)
        objects.append(made)
    program = folder / "reader"
    subprocess.run([compiler, *flags, folder / "reader.cpp", *objects, "-o", program], check=True)
    return program


def read_by_ours(file: Path) -> Result:
    """Our reader, before the quickest of fits."""
    found = ours.widemargin("train", file, ours.WORK / "model", "--machine", "mamc")
    seconds, processor = found["seconds"]["read"], found["processor"]["read"]
    return Result(wall=seconds, cpu=processor, memory=found["peak_memory"], ours=True)


def read_by_liblinear(program: Path, file: Path) -> Result:
    """LIBLINEAR's reader."""
    done = subprocess.run([program, file], capture_output=True, text=True, check=True)
    return Result.of(json.loads(done.stdout))


def read_by_scikit_learn(peer: Peer, file: Path) -> Result:
    """scikit-learn's reader."""
    answer = peer.fit({"file": str(file), "kind": "read"})
    if "error" in answer:
        raise GivenUp(answer["error"])
    return Result.of(answer)


def measure_reading(folder: Path, options: Options, run_in_turn: RunInTurn) -> Measured:
    """All readers on the same file."""
    file, notes = folder / "train.libsvm", []
    scikit = Peer("reader", folder)
    entries = {"reading": lambda: read_by_ours(file), "scikit-learn": lambda: read_by_scikit_learn(scikit, file)}
    program = liblinear_reader(options.liblinear) if options.liblinear else None
    if program:
        entries["LIBLINEAR's reader"] = lambda: read_by_liblinear(program, file)
    else:
        notes.append(
            "LIBLINEAR's reader is missing: it is part of its C program, whose sources `--liblinear DIR` names."
        )
    results = run_in_turn(entries, options.quick, notes)
    scikit.close()
    for result in results.values():
        result.bytes = file.stat().st_size
    if "scikit-learn" in results:
        results["scikit-learn"].version = scikit.version
    return Measured(results, notes)
