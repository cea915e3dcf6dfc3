"""docs/growth.svg: training time of the linear machines over the number of rows, features and stored values."""

from __future__ import annotations

import json
import math

import ours
from kinds import Options, Ours

Point = tuple[int, float]
Curves = dict[str, list[Point]]
Found = list[tuple[str, Curves]]

# The cost of all rows together is the same at every size: otherwise more rows would also be a harder problem.
TOTAL = 20000

MACHINES = [
    ("ODM", ["--machine", "odm", "--c1", "TOTAL", "--c2", "TOTAL", "--d", "0.2", "--bias", "none"]),
    ("SVM", ["--machine", "svm", "--c", "SHARE", "--bias", "none"]),
    ("LDM", ["--machine", "ldm", "--c", "SHARE", "--bias", "none"]),
]


def sizes(quick: bool) -> list[tuple[str, list[tuple[int, str]]]]:
    """For each axis, numbers along it and the shapes of their data."""
    part = 8 if quick else 1
    base = 20000 // part
    return [
        ("rows", [(n, f"text:{n}:20000:40") for n in (base, 2 * base, 4 * base, 8 * base, 16 * base)]),
        ("features", [(n, f"text:{base}:{n}:60") for n in (5000, 20000, 80000, 320000, 1280000)]),
        ("stored values a row", [(n, f"text:{base}:40000:{n}") for n in (20, 40, 80, 160, 320)]),
    ]


def rows_of(shape: str) -> int:
    """Number of rows."""
    return int(shape.split(":")[1])


def settings(words: list[str], rows: int) -> tuple[str, ...]:
    """The options for so many rows."""
    values = {"TOTAL": str(TOTAL), "SHARE": repr(TOTAL / rows)}
    return tuple(values.get(word, word) for word in words)


def curves_along(axis: str, points: list[tuple[int, str]], options: Options) -> Curves:
    """The time of each machine at each point of an axis."""
    curves: Curves = {name: [] for name, _ in MACHINES}
    for n, shape in points:
        folder = ours.make_data(shape, options)
        for name, words in MACHINES:
            machine = Ours(name, words[1], settings(words[2:], rows_of(shape)))
            quickest = min(ours.train(machine, folder).cpu for _ in range(1 if options.quick else 2))
            curves[name].append((n, quickest))
            print(f"{axis} {n}, {name}: {quickest:.3f} s", flush=True)
    return curves


def measure(options: Options) -> None:
    """Measures along all axes and draws."""
    found = [(axis, curves_along(axis, points, options)) for axis, points in sizes(options.quick)]
    for axis, curves in found:
        for name, points in curves.items():
            print(f"{name} over {axis}: time grows as the power {power(points):.2f}")
    if options.quick:
        print("nothing written (--quick)")
        return
    (ours.WORK / "growth.json").write_text(json.dumps(found))
    (ours.ROOT / "docs/growth.svg").write_text(draw(found))
    print("docs/growth.svg is written; `cargo xtask bench` puts it into BENCHMARKS.md")


def power(points: list[Point]) -> float:
    """Least squares on the logarithms."""
    xs, ys = [math.log(n) for n, _ in points], [math.log(max(t, 1e-4)) for _, t in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


STYLE = """<style>
 text { font: 12px system-ui, sans-serif; fill: #24292f }
 .axis { stroke: #8c959f; fill: none } .grid { stroke: #d0d7de; stroke-dasharray: 2 3 }
 .c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 }
 .line { fill: none; stroke-width: 1.8 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { stroke: #6e7681 } .grid { stroke: #30363d }
  .c0 { stroke: #58a6ff; fill: #58a6ff } .c1 { stroke: #f0883e; fill: #f0883e } .c2 { stroke: #3fb950; fill: #3fb950 }
 }
</style>"""

# Between panels: names of the curves, and the words of the next axis.
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 220, 52, 30, 130


def draw(found: Found) -> str:
    """The picture."""
    times = [max(t, 1e-3) for _, curves in found for points in curves.values() for _, t in points]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    total = LEFT + len(found) * (WIDTH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {TOP + HEIGHT + 48}" role="img">']
    out += ["<title>Training time over rows, features and stored values, both axes logarithmic</title>", STYLE]
    for k, (axis, curves) in enumerate(found):
        out += panel(LEFT + k * (WIDTH + GAP), axis, curves, low, high)
    return "\n".join([*out, "</svg>"]) + "\n"


def panel(left: float, axis: str, curves: Curves, low: int, high: int) -> list[str]:
    """One axis."""
    every = [n for points in curves.values() for n, _ in points]
    first, last = math.log10(min(every)), math.log10(max(every))
    x = lambda n: left + WIDTH * (math.log10(n) - first) / (last - first)  # noqa: E731
    y = lambda t: TOP + HEIGHT * (high - math.log10(max(t, 1e-3))) / (high - low)  # noqa: E731
    out = [f'<text x="{left}" y="{TOP - 12}">processor seconds over {axis}</text>']
    for decade in range(low, high + 1):
        at = y(10.0**decade)
        out.append(f'<line class="grid" x1="{left}" x2="{left + WIDTH}" y1="{at:.1f}" y2="{at:.1f}"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>')
    for n in sorted(set(every)):
        label = f"{n / 1000:g}k" if n >= 1000 else str(n)
        out.append(f'<text x="{x(n):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{label}</text>')
    out.append(f'<path class="axis" d="M{left} {TOP}V{TOP + HEIGHT}H{left + WIDTH}"/>')
    ends = sorted((y(points[-1][1]), name) for name, points in curves.items())
    places, lowest = {}, -100.0
    for at, name in ends:
        lowest = max(at, lowest + 14)
        places[name] = lowest
    for k, (name, points) in enumerate(curves.items()):
        path = " ".join(f"{x(n):.1f},{y(t):.1f}" for n, t in points)
        dashes = ["", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 2"'][k % 3]
        out.append(f'<polyline class="line c{k}" points="{path}"{dashes} style="fill:none"/>')
        out += [f'<circle class="c{k}" cx="{x(n):.1f}" cy="{y(t):.1f}" r="2.5"/>' for n, t in points]
        out.append(f'<text x="{left + WIDTH + 5}" y="{places[name] + 4:.1f}">{name} ^{power(points):.2f}</text>')
    return out
