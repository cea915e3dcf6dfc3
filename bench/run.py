"""Runs the benchmark: ours and theirs in turn on the same data, then BENCHMARKS.md. Started by `cargo xtask bench`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import growth
import ours
import report
import store
from kinds import Measured, Options, Row
from measure import measure
from rows import real_rows, rows


def read_options() -> Options:
    """The command line."""
    options = argparse.ArgumentParser(prog="cargo xtask bench", allow_abbrev=False)
    options.add_argument("--xtask", required=True, help=argparse.SUPPRESS)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", type=lambda text: tuple(name for name in text.split(",") if name), default=())
    options.add_argument("--data", type=lambda text: Path(text).resolve())
    options.add_argument("--liblinear", type=lambda text: Path(text).resolve())
    options.add_argument("--growth", action="store_true")
    options.add_argument("--again", action="store_true")
    return Options(**vars(options.parse_args()))


def chosen_rows(options: Options) -> list[Row]:
    """The rows to measure."""
    every = rows() + (real_rows(options.data) if options.data else [])
    names = [row.name for row in every]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        ours.fail(f"there is no row {', '.join(unknown)}; there are {', '.join(names)}")
    return [row for row in every if not options.only or row.name in options.only]


def measure_row(row: Row, mark: str, options: Options) -> Measured:
    """Measures a row and says what came out."""
    print(f"{row.name}: {row.title}", flush=True)
    start, shape = time.time(), row.data[1 if options.quick else 0]
    found = measure(row, ours.make_data(shape, options), shape, options)
    found.build, found.date, found.shape, found.seconds = mark, store.today(), shape, time.time() - start
    for line in report.verdicts(row, found):
        print(f"    {line}")
    print(f"    {found.seconds:.0f} s", flush=True)
    return found


def measure_all(options: Options) -> None:
    """Measures the chosen rows and writes BENCHMARKS.md."""
    path = ours.WORK / ("quick.json" if options.quick else "measured.json")
    measured, mark, begin = store.read(path), ours.build_mark(), time.time()
    for row in chosen_rows(options):
        known = measured.get(row.name)
        if known and known.build == mark and not options.again and not options.quick:
            print(f"{row.name}: measured before, on {known.date} (--again measures it again)")
            continue
        measured[row.name] = measure_row(row, mark, options)
        store.write(path, measured)
    if options.quick:
        print(f"nothing written (--quick); {time.time() - begin:.0f} s")
        return
    report.write(ours.ROOT, rows() + real_rows(options.data or Path("DIR")), measured, mark)
    print(f"BENCHMARKS.md is written; {time.time() - begin:.0f} s")


def main() -> None:
    """Measures growth or rows."""
    options = read_options()
    ours.WORK.mkdir(parents=True, exist_ok=True)
    if options.growth:
        growth.measure(options)
    else:
        measure_all(options)


if __name__ == "__main__":
    main()
