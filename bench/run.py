"""Runs the benchmark: ours and theirs in turn on the same data, then BENCHMARKS.md. Started by `cargo xtask bench`."""

import argparse
import datetime
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import growth
import report
from rows import TOLERANCE, real_rows, rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target/release/widemargin"
WORK = ROOT / "target/bench"


def fail(text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(1)


# Ours ------------------------------------------------------------------------------------------------------------


# A fit of ours that takes longer is given up, and said to be.
LONGEST = 120


def widemargin(*words, timeout=None):
    done = subprocess.run(
        [PROGRAM, *words, "--json", "--quiet"], capture_output=True, text=True, check=False, timeout=timeout
    )
    if done.returncode != 0:
        fail(f"widemargin {' '.join(map(str, words))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def train_ours(machine, folder, tol=TOLERANCE, timeout=None):
    words = [word.replace("ROWS", str(rows_in(folder))) for word in machine["words"]]
    model = WORK / "model"
    found = widemargin(
        "train",
        folder / "train.libsvm",
        model,
        "--machine",
        machine["machine"],
        *words,
        "--tol",
        str(tol),
        timeout=timeout,
    )
    return {
        "wall": found["seconds"]["train"],
        "cpu": found["processor"]["train"],
        "memory": found["peak_memory"],
        "objective": found["objective"],
        "dual": found["dual_objective"],
        "gap": found["gap"],
        "solver": found["solver"],
        "support": found["support"],
    }


def predict_ours(folder):
    found = widemargin("predict", folder / "test.libsvm", WORK / "model")
    return {
        "accuracy": found["accuracy"],
        "predict": {"wall": found["seconds"]["predict"], "cpu": found["processor"]["predict"]},
    }


def rows_in(folder):
    return int((folder / "train.shape").read_text().split()[0])


# Theirs ----------------------------------------------------------------------------------------------------------


class Peer:
    """A process of another program with the data loaded."""

    def __init__(self, program, folder):
        command = [sys.executable, ROOT / "bench/peers.py", program, folder]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def answer(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                return {"error": "it ended without an answer"}
            try:
                return json.loads(line)
            except ValueError:
                continue  # a program that talks

    def fit(self, settings):
        try:
            self.process.stdin.write(json.dumps(settings) + "\n")
            self.process.stdin.flush()
        except OSError:
            return {"error": "it has ended"}
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# A fit that takes longer is not repeated: the one that found its tolerance counts.
SLOW = 20

# Measuring -------------------------------------------------------------------------------------------------------


def smallest(results):
    """Of several rounds, the smallest of each time: what disturbs only ever adds."""
    best = dict(results[0])
    for key in ("wall", "cpu"):
        best[key] = min(r[key] for r in results)
    if "predict" in best:
        best["predict"] = {k: min(r["predict"][k] for r in results if "predict" in r) for k in ("wall", "cpu")}
    best["rounds"] = len(results)
    return best


class Turns:
    """Lets all run in turn, the slow ones less often."""

    def __init__(self, quick):
        self.rounds, self.quick = (1 if quick else 3), quick

    def run(self, entries):
        """`entries`: label → function that runs once and hands back a result."""
        results = {label: [] for label in entries}
        for number in range(self.rounds):
            for label, once in entries.items():
                spent = sum(r["wall"] for r in results[label])
                if number > 0 and (not results[label] or spent > 10):
                    continue
                found = once()
                if "error" in found:
                    print(f"    {label}: {found['error']}")
                    continue
                results[label].append(found)
                print(f"    {label}: {found['cpu']:.3f} s", flush=True)
        return {label: smallest(found) for label, found in results.items() if found}


def measure(row, folder, shape, context):
    if row["name"] == "read":
        return measure_reading(folder, context)
    if row["name"] == "search":
        return measure_search(folder, context)
    return measure_machines(row, folder, shape, context)


def measure_machines(row, folder, shape, context):
    machines, programs = row["build"](shape)
    same = next(m for m in machines if m["same"])
    reference = tight(same, folder, context)
    print(f"    reference: {reference['objective']:.6g}, gap {reference['gap']:.1e}")
    processes, notes = {}, []
    for program in {p["program"] for p in programs}:
        processes[program] = Peer(program, folder)
    ready = {program: process.answer() for program, process in processes.items()}
    entries, settings, slow = {}, {}, {}

    def ours(machine):
        def once():
            try:
                found = train_ours(machine, folder, timeout=LONGEST)
            except subprocess.TimeoutExpired:
                notes.append(f"{machine['label']} was given up after {LONGEST} seconds.")
                return {"error": f"given up after {LONGEST} seconds"}
            if machine["label"] not in seen:
                seen[machine["label"]] = predict_ours(folder)
            return {**found, **seen[machine["label"]]}

        return once

    seen = {}
    for machine in machines:
        entries[machine["label"]] = ours(machine)
    for p in programs:
        if "error" in ready[p["program"]]:
            notes.append(f"{p['label']} is missing: {ready[p['program']]['error']}.")
            continue
        chosen, note, measured = calibrate(p, processes[p["program"]], reference, folder, context)
        if note:
            notes.append(note)
        if chosen:
            settings[p["label"]] = chosen
            if measured:
                slow[p["label"]] = {**measured, "rounds": 1}
            else:
                entries[p["label"]] = lambda chosen=chosen, process=processes[p["program"]]: process.fit(chosen)
    results = {**Turns(context.quick).run(entries), **slow}
    for label, found in results.items():
        found["ours"] = label in seen
        if label in settings:
            found["tol"] = settings[label]["tol"]
            package = ready[next(p["program"] for p in programs if p["label"] == label)]
            found["version"] = f"{package['package']} {package['ready']}"
        if label == same["label"] or label in settings:
            found["excess"] = found["objective"] / reference["dual"] - 1
    for process in processes.values():
        process.close()
    return {"results": results, "notes": notes, "reference": reference}


def remembered(key, make):
    """What need not be found again in every run."""
    path = WORK / "known.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if key not in known:
        value = make()
        known = json.loads(path.read_text()) if path.exists() else {}
        known[key] = value
        path.write_text(json.dumps(known, indent=1))
    return known[key]


def tight(machine, folder, context):
    """The optimum, to judge by: the bound is a hundredth of the tolerance away, of many classes a tenth."""
    words = " ".join(machine["words"])
    tol = (0.1 if machine["machine"] == "mcsvm" else 0.01) * TOLERANCE
    return remembered(f"{folder.name} {machine['machine']} {words}", lambda: train_ours(machine, folder, tol=tol))


def calibrate(p, process, reference, folder, context):
    """The loosest tolerance that brings a program within ours of the optimum."""

    def find():
        last = None
        for tol in p["tolerances"]:
            found = process.fit({**p["settings"], "tol": tol})
            if "error" in found:
                return {"error": found["error"]}
            excess = found["objective"] / reference["dual"] - 1
            print(f"    {p['label']}, tolerance {tol:g}: {found['cpu']:.3f} s, excess {excess:.1e}", flush=True)
            last = {"tol": tol, "excess": excess}
            if found["wall"] > SLOW:
                last["measured"] = found
            # Beyond this, a further decade would take the whole run's time.
            if excess <= TOLERANCE or found["wall"] > 30:
                break
        return last

    chosen = remembered(f"{folder.name} {p['label']} {json.dumps(p['settings'])}", find)
    if "error" in chosen:
        return None, f"{p['label']} failed: {chosen['error']}.", None
    note = None
    if chosen["excess"] > TOLERANCE:
        reached = f"excess {chosen['excess']:.1e} at tolerance {chosen['tol']:g}"
        note = f"{p['label']} does not come within {TOLERANCE:g} of the optimum ({reached})."
    return {**p["settings"], "tol": chosen["tol"]}, note, chosen.get("measured")


# Reading ---------------------------------------------------------------------------------------------------------


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


def liblinear_reader(sources):
    """LIBLINEAR's own reader, timed inside its own program."""
    folder = WORK / "liblinear"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reader.cpp").write_text(READER)
    parts = [sources / "linear.cpp", sources / "newton.cpp", *sorted((sources / "blas").glob("*.c"))]
    program = folder / "reader"
    flags = ["-O3", "-fpermissive", "-w", f"-I{sources}"]
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None or not (sources / "train.c").exists():
        return None
    objects = []
    for part in parts:
        made = folder / (part.name + ".o")
        language = ["-x", "c"] if part.suffix == ".c" else []
        subprocess.run([compiler, *flags, *language, "-c", part, "-o", made], check=True)
        objects.append(made)
    subprocess.run([compiler, *flags, folder / "reader.cpp", *objects, "-o", program], check=True)
    return program


def measure_reading(folder, context):
    file = folder / "train.libsvm"

    def ours():
        found = widemargin("train", file, WORK / "model", "--machine", "mamc")
        return {"wall": found["seconds"]["read"], "cpu": found["processor"]["read"], "memory": found["peak_memory"]}

    scikit = Peer("reader", folder)
    version = scikit.answer()
    entries = {"reading": ours, "scikit-learn": lambda: scikit.fit({"file": str(file), "kind": "read"})}
    notes = []
    program = liblinear_reader(context.liblinear) if context.liblinear else None
    if program:
        entries["LIBLINEAR's reader"] = lambda: json.loads(
            subprocess.run([program, file], capture_output=True, text=True).stdout
        )
    else:
        notes.append(
            "LIBLINEAR's reader is missing: it is part of its C program, whose sources `--liblinear DIR` names."
        )
    results = Turns(context.quick).run(entries)
    scikit.close()
    for label, found in results.items():
        found["ours"], found["bytes"] = label == "reading", file.stat().st_size
    if "scikit-learn" in results:
        results["scikit-learn"]["version"] = f"scikit-learn {version.get('ready')}"
    return {"results": results, "notes": notes}


def measure_search(folder, context):
    costs = [2.0**k for k in range(-3, 8)]
    gammas = [2.0**k / 50 for k in range(-4, 1)]
    words = lambda values: ";".join(repr(v) for v in values)  # noqa: E731

    def ours():
        grid = f"c={words(costs)},gamma={words(gammas)}"
        found = widemargin(
            "tune",
            folder / "train.libsvm",
            "--machine",
            "svm",
            "--kernel",
            "rbf",
            "--grid",
            grid,
            "--select",
            "cv",
            "--folds",
            "5",
        )
        return {
            "wall": found["seconds"]["search"] + found["seconds"]["train"],
            "cpu": found["processor"]["search"],
            "memory": found["peak_memory"],
            "accuracy": found["accuracy"],
        }

    entries, notes, processes, versions = {"tune": ours}, [], [], {}
    for program, label in (("search", "GridSearchCV, LIBSVM"), ("onedal-search", "GridSearchCV, oneDAL")):
        process = Peer(program, folder)
        processes.append(process)
        versions[label] = process.answer()
        if "error" in versions[label]:
            notes.append(f"{label} is missing: {versions[label]['error']}.")
            continue
        settings = {"costs": costs, "gammas": gammas, "kind": "search"}
        entries[label] = lambda process=process, settings=settings: process.fit(settings)
    results = Turns(context.quick).run(entries)
    for label, found in results.items():
        found["ours"] = label == "tune"
        if label in versions:
            found["version"] = f"{versions[label]['package']} {versions[label]['ready']}"
    for process in processes:
        process.close()
    return {"results": results, "notes": notes}


# The run ---------------------------------------------------------------------------------------------------------


def folder_of(shape):
    return WORK / "data" / re.sub(r"[^\w.-]+", "_", shape.split("/")[-1] if shape.startswith("file:") else shape)


def make_data(shape, context):
    folder = folder_of(shape)
    subprocess.run([context.xtask, "bench-data", shape, folder], check=True)
    return folder


def build_mark():
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:12]


def read_options():
    options = argparse.ArgumentParser(prog="cargo xtask bench", allow_abbrev=False)
    options.add_argument("--xtask", required=True, help=argparse.SUPPRESS)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--data", type=lambda text: pathlib.Path(text).resolve())
    options.add_argument("--liblinear", type=lambda text: pathlib.Path(text).resolve())
    options.add_argument("--growth", action="store_true")
    options.add_argument("--again", action="store_true")
    return options.parse_args()


def chosen_rows(context):
    every = rows() + (real_rows(context.data) if context.data else [])
    wanted = [name for name in context.only.split(",") if name]
    names = [row["name"] for row in every]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        fail(f"there is no row {', '.join(unknown)}; there are {', '.join(names)}")
    return [row for row in every if not wanted or row["name"] in wanted]


def main():
    context = read_options()
    WORK.mkdir(parents=True, exist_ok=True)
    if context.growth:
        growth.measure(context, make_data, train_ours, ROOT, WORK)
        return
    store = WORK / ("quick.json" if context.quick else "measured.json")
    measured = json.loads(store.read_text()) if store.exists() else {}
    mark, begin = build_mark(), time.time()
    for row in chosen_rows(context):
        known = measured.get(row["name"])
        if known and known["build"] == mark and not context.again and not context.quick:
            print(f"{row['name']}: measured before (--again measures it again)")
            continue
        shape = row["data"][1 if context.quick else 0]
        print(f"{row['name']}: {row['title']}", flush=True)
        start = time.time()
        folder = make_data(shape, context)
        found = measure(row, folder, shape, context)
        found.update(build=mark, date=datetime.date.today().isoformat(), shape=shape, seconds=time.time() - start)
        measured[row["name"]] = found
        store.write_text(json.dumps(measured, indent=1))
        for line in report.verdicts(row, found):
            print(f"    {line}")
        print(f"    {found['seconds']:.0f} s", flush=True)
    if context.quick:
        print(f"nothing written (--quick); {time.time() - begin:.0f} s")
        return
    every = rows() + real_rows(context.data or "DIR")
    report.write(ROOT, every, measured, mark)
    print(f"BENCHMARKS.md is written; {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
