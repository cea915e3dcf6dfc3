#!/usr/bin/env python3
"""Trains every machine, linear and with an RBF kernel, on every small two-class set of a folder and prints a table.

    sweep.py PROGRAM FOLDER [--rows N] [--machines a,b,…]

PROGRAM is the command `widemargin`; FOLDER holds LIBSVM files (also .gz). Sets with more than two classes or more than
N rows (default 2000) are left out. A cell is the training accuracy in percent, or what went wrong. The last line is
`N passed, M failed`; the exit status is 0 if none failed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

MACHINES = "odm ldm odm-l svm l2svm lssvm svr msvmav mamc km-omd mdo fmm lda mcodm mcsvm".split()
LINEAR_ONLY = {"mdo"}


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=600)


def small_sets(program, folder, most):
    for path in sorted(folder.glob("*.libsvm*")):
        told = run(program, "info", "--json", "--quiet", str(path))
        if told.returncode:
            raise SystemExit(f"{path.name}: {told.stderr.strip()}")
        facts = json.loads(told.stdout)
        if facts["rows"] < most and len(facts["classes"]) == 2:
            yield path


def cell(program, path, machine, kernel, model):
    words = ["--machine", machine, "--kernel", kernel, "--scale", "minmax", "--json", "--quiet"]
    trained = run(program, "train", *words, str(path), str(model))
    if trained.returncode:
        return None, trained.stderr.strip().splitlines()[-1]
    predicted = run(program, "predict", "--json", "--quiet", str(path), str(model))
    if predicted.returncode:
        return None, predicted.stderr.strip().splitlines()[-1]
    return f"{100 * json.loads(predicted.stdout)['accuracy']:.1f}", None


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    machines = option("--machines", ",".join(MACHINES)).split(",")
    columns = [(m, k) for m in machines for k in ("linear", "rbf") if k == "linear" or m not in LINEAR_ONLY]
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as work:
        for kernel in ("linear", "rbf"):
            these = [m for m, k in columns if k == kernel]
            print(f"\n{kernel:16s}" + "".join(f"{m:>8s}" for m in these))
            for path in small_sets(program, folder, int(option("--rows", "2000"))):
                name = path.name.split(".libsvm")[0]
                line = f"{name:16s}"
                for machine in these:
                    value, wrong = cell(program, path, machine, kernel, pathlib.Path(work) / "model")
                    passed += wrong is None
                    if wrong:
                        failures.append(f"{name} {machine} {kernel}: {wrong}")
                    line += f"{value or 'FAIL':>8s}"
                print(line, flush=True)
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures or not passed else 0


sys.exit(main())
