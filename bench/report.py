"""BENCHMARKS.md from what was measured."""

import os
import pathlib
import re


def value(found, measure):
    if measure == "predict":
        return found["predict"]["cpu"] if "predict" in found else None
    return found.get(measure)


def judged(row, found):
    """For each target of a row: its text, what was reached, whether that is enough (None if it cannot be said)."""
    results, out = found["results"], []
    for target in row["targets"]:
        mine = results.get(target["ours"])
        if mine is None:
            continue
        if "rate" in target:
            rate = mine["bytes"] / mine["wall"]
            out.append((target["text"], f"{rate / 1e6:.0f} MB/s", rate >= target["rate"]))
            continue
        theirs = [value(results[name], target["measure"]) for name in target["theirs"] if name in results]
        theirs = [v for v in theirs if v]
        if not theirs:
            out.append((target["text"], "not measured", None))
            continue
        ratio = value(mine, target["measure"]) / min(theirs)
        out.append((target["text"], f"{ratio:.3g} of it", ratio <= target["share"]))
    return out


def word(met):
    return {True: "met", False: "**not met**", None: "?"}[met]


def verdicts(row, found):
    return [f"{text}: {reached}, {word(met).strip('*')}" for text, reached, met in judged(row, found)]


def seconds(number):
    return f"{number:.3f}" if number < 1 else f"{number:.2f}" if number < 10 else f"{number:.1f}"


def optional(found, key, form):
    return form.format(found[key]) if found.get(key) is not None else ""


def table(row, found):
    results = found["results"]
    mine = next((r for r in results.values() if r["ours"]), None)
    has_predict = any("predict" in r and r.get("support") for r in results.values()) and row["name"].startswith(
        "kernel"
    )
    head = ["program", "wall s", "cpu s", "ours/theirs", "MB", "objective", "excess", "accuracy %"]
    if has_predict:
        head += ["support rows", "predict cpu s"]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for label, r in results.items():
        name = f"**{label}**" if r["ours"] else label + (f" (tolerance {r['tol']:g})" if "tol" in r else "")
        cells = [
            name,
            seconds(r["wall"]),
            seconds(r["cpu"]),
            "" if r["ours"] else f"{mine['cpu'] / r['cpu']:.3g}",
            f"{r['memory'] / 1e6:.0f}",
            optional(r, "objective", "{:.6g}"),
            optional(r, "excess", "{:.1e}"),
            f"{100 * r['accuracy']:.2f}" if r.get("accuracy") is not None else "",
        ]
        if has_predict:
            cells += [optional(r, "support", "{}"), seconds(r["predict"]["cpu"])]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def reasons(root):
    """`bench/notes.md`: what is to be said of each row, under headings that are the rows' names."""
    text = (root / "bench/notes.md").read_text()
    parts = re.split(r"^## (\S+)\n", text, flags=re.M)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2])}


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores"


INTRODUCTION = """# Benchmarks

Made by `cargo xtask bench`; do not edit. Reasons and remarks are in `bench/notes.md`, what is measured in `bench/rows.py`.

Ours and theirs solve **the same problem** in one run, in turn; of several rounds the smallest time counts, because what
disturbs only ever adds. Only training is timed, not reading. `cpu` is processor time over all threads, `ours/theirs` the
quotient of processor times of the first of ours. Ours stop at a relative duality gap of 1e-3. Each other program gets the
loosest of the tolerances 1, 0.1, 0.01 … that brings its objective within 1e-3 of the optimum, found beforehand; `excess`
is `objective/(dual bound) − 1`, the bound from a solution of ours to 1e-5. Memory is the peak of our process with
everything in it; of theirs, their data and what training adds, without the interpreter. Accuracy is on rows held out.
The machines beside the first of ours (ODM, LDM, mcODM) have the same regularisation and the same gap to reach; their
objectives are other functions.
"""  # noqa: E501


def write(root, rows, measured, mark):
    notes, lines = reasons(root), [INTRODUCTION]
    versions = sorted({r["version"] for m in measured.values() for r in m["results"].values() if "version" in r})
    lines += [f"{machine()}. " + ", ".join(versions) + ".", "", "## Targets", ""]
    lines += ["| work | target | reached | |", "|---|---|---|---|"]
    for row in rows:
        if row["name"] in measured:
            stale = "" if measured[row["name"]]["build"] == mark else " †"
            for text, reached, met in judged(row, measured[row["name"]]):
                lines.append(f"| {row['title']}{stale} | {text} | {reached} | {word(met)} |")
    if any(m["build"] != mark for m in measured.values()):
        lines += ["", "† measured with an earlier build."]
    if (root / "docs/growth.svg").exists():
        lines += ["", "## Growth", "", "![Training time over rows, features and stored values](docs/growth.svg)", ""]
        lines += [notes.get("growth", "")]
    for row in rows:
        found = measured.get(row["name"])
        if found is None:
            continue
        lines += [
            "",
            f"## {row['title']}",
            "",
            f"`{row['name']}`, {found['date']}, data `{public(found['shape'])}`.",
            "",
        ]
        lines += table(row, found)
        remarks = [*found["notes"], notes.get(row["name"], "")]
        lines += ["", *[text + "\n" for text in remarks if text]]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
    (root / "BENCHMARKS.md").write_text(text)


def public(shape):
    return shape.rsplit("/", 1)[-1] if shape.startswith("file:") else shape
