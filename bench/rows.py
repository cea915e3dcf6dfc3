"""What is measured: the data, our machines, the other programs, the targets.

Each other program minimises exactly what one of ours minimises (`same_as`). The rest of ours are the machines this
program is about, at the same regularisation. Linear rows are measured without an intercept, with a regularised constant
feature (``--bias 1``, LIBLINEAR's ``-B 1``) and with a free intercept, which is the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kinds import Contest, Ours, Row, Target, Theirs

TOLERANCE = 1e-3

# Tolerances that a program is offered, loosest first; it gets the first that brings its objective within TOLERANCE.
DECADES = tuple(float(f"1e-{k}") for k in range(8))
INTERCEPTS = {"none": "", "1": ", --bias 1", "free": ", free intercept"}


def ours(label: str, machine: str, *words: str) -> Ours:
    """One of our machines."""
    return Ours(label, machine, words)


def at_each_intercept(label: str, machine: str, *words: str) -> list[Ours]:
    """A machine without an intercept, with a regularised one, and with a free one."""
    return [ours(label + said, machine, *words, "--bias", kind) for kind, said in INTERCEPTS.items()]


def peer(program: str, label: str, same_as: str, tolerances: tuple[float, ...] = DECADES, **settings: Any) -> Theirs:
    """Another program."""
    return Theirs(program, label, same_as, tolerances, settings)


def target(text: str, ours: str, theirs: list[str], share: float, measure: str = "cpu") -> Target:
    """Ours at most a share of the best of theirs."""
    return Target(text, ours, tuple(theirs), share, measure)


def rows_of(shape: str) -> int:
    """Number of rows of made data."""
    return int(shape.split(":")[1])


def from_tolerance(first: float) -> tuple[float, ...]:
    """The tolerances from this one on."""
    return tuple(tol for tol in DECADES if tol <= first)


# Linear ----------------------------------------------------------------------------------------------------------


def linear_programs(loss: str, same_as: str, dense: bool) -> list[Theirs]:
    """Dual coordinate descent takes minutes where features are few and rows many, and lightning's on the squared hinge
    everywhere: they are asked only where they are meant to be used.
    """
    same = {"c": 1, "loss": loss, "kind": "linear"}
    dual, primal = (("-s 1", 1), ("-s 2", 2)) if loss == "squared" else (("-s 3", 3), None)
    solvers = [s for s in ((primal or dual,) if dense else (dual, primal)) if s]
    programs = []
    for word, number in solvers:
        label, regularised = f"LIBLINEAR {word}", same_as + INTERCEPTS["1"]
        programs.append(peer("liblinear", label, same_as, solver=number, **same))
        programs.append(peer("liblinear", f"{label} -B 1", regularised, solver=number, bias=1, **same))
    if not dense and loss == "hinge":
        programs.append(peer("lightning", "lightning SDCA", same_as, from_tolerance(1e-2), **same))
    programs.append(peer("snapml", "Snap ML", same_as, from_tolerance(1e-3), **same))
    return programs


LIBLINEAR = ["LIBLINEAR -s 1", "LIBLINEAR -s 2"]
LIBLINEAR_B = [f"{label} -B 1" for label in LIBLINEAR]
MEMORY = "memory: half of LIBLINEAR"
SINGLE = "memory with --precision f32: half of LIBLINEAR"


def squared(name: str, title: str, data: tuple[str, str], *targets: Target) -> Row:
    """The squared hinge."""

    def build(shape: str) -> Contest:
        m = rows_of(shape)
        machines = [
            *at_each_intercept("squared hinge", "l2svm", "--c", "1"),
            ours("squared hinge, --precision f32", "l2svm", "--c", "1", "--bias", "none", "--precision", "f32"),
            *at_each_intercept("ODM", "odm", "--c1", str(m), "--c2", str(m / 8), "--d", "0.2"),
        ]
        return machines, linear_programs("squared", "squared hinge", shape.startswith("dense"))

    default = [
        target("--bias 1: half of LIBLINEAR -B 1", "squared hinge, --bias 1", LIBLINEAR_B, 1 / 2),
        target("a free intercept: 1.5 times none", "squared hinge, free intercept", ["squared hinge"], 1.5),
        target("ODM, a free intercept: 1.5 times none", "ODM, free intercept", ["ODM"], 1.5),
        target(MEMORY, "squared hinge", LIBLINEAR, 1 / 2, "memory"),
        target(SINGLE, "squared hinge, --precision f32", LIBLINEAR, 1 / 2, "memory"),
    ]
    return Row(name, title, data, (*targets, *default), build)


def hinge(name: str, title: str, data: tuple[str, str], *targets: Target) -> Row:
    """The hinge."""

    def build(shape: str) -> Contest:
        machines = [*at_each_intercept("SVM", "svm", "--c", "1"), *at_each_intercept("LDM", "ldm", "--c", "1")]
        return machines, linear_programs("hinge", "SVM", shape.startswith("dense"))

    theirs, theirs_b = ["LIBLINEAR -s 3"], ["LIBLINEAR -s 3 -B 1"]
    default = [
        target("LDM: no more than LIBLINEAR -s 3", "LDM", theirs, 1.0),
        target("SVM, --bias 1: half of LIBLINEAR -s 3 -B 1", "SVM, --bias 1", theirs_b, 1 / 2),
        target("LDM, a free intercept: 0.7 of LIBLINEAR -s 3 -B 1", "LDM, free intercept", theirs_b, 0.7),
        target("a free intercept: 1.5 times none", "SVM, free intercept", ["SVM"], 1.5),
        target(MEMORY, "LDM", theirs, 1 / 2, "memory"),
    ]
    return Row(name, title, data, (*targets, *default), build)


# Kernels and classes ---------------------------------------------------------------------------------------------


def kernel(name: str, title: str, data: tuple[str, str], *targets: Target, share: float = 1 / 2) -> Row:
    """The RBF kernel of the default width: SVM with C = 1 and 10, and ODM with the same weight on all rows together,
    with the default free intercept and (C = 1) without one.
    """

    def build(shape: str) -> Contest:
        decades, same = (1e-1, 1e-2, 1e-3, 1e-4), {"gamma": "scale", "kind": "kernel"}
        programs = [
            peer("onedal", "oneDAL", "SVM", decades, c=1, **same),
            peer("onedal", "oneDAL, C = 10", "SVM, C = 10", decades, c=10, **same),
        ]
        # On one core LIBSVM takes minutes for each tolerance beyond some 20,000 rows, which say nothing new.
        if not shape.startswith(("file:", "curved:60000")):
            programs.append(peer("libsvm", "LIBSVM (scikit-learn)", "SVM", decades, c=1, **same))
        rbf = ("--kernel", "rbf")
        machines = [
            ours("SVM", "svm", "--c", "1", *rbf),
            ours("SVM, C = 10", "svm", "--c", "10", *rbf),
            odm("ODM, C1 = m", 1, rbf),
            odm("ODM, C1 = m, no intercept", 1, (*rbf, "--bias", "none")),
            odm("ODM, C1 = 10 m", 10, rbf),
            ours("ODM, all defaults", "odm", *rbf),
            ours("LDM", "ldm", "--c", "1", *rbf),
        ]
        return machines, programs

    said = {1 / 2: "half of", 1.0: "no more than"}[share]
    default = [
        target(f"SVM: {said} oneDAL", "SVM", ["oneDAL"], share),
        target(f"ODM, C1 = m: {said} oneDAL, C = 1", "ODM, C1 = m", ["oneDAL"], share),
        target(f"ODM, C1 = 10 m: {said} oneDAL, C = 10", "ODM, C1 = 10 m", ["oneDAL, C = 10"], share),
    ]
    return Row(name, title, data, (*default, *targets), build)


def odm(label: str, factor: float, words: tuple[str, ...]) -> Ours:
    """ODM whose rows count this much each, with the default ratio of C1 and C2 and the default band."""
    return ours(label, "odm", "--c1", f"ROWS*{factor:g}", "--c2", f"ROWS*{factor / 8:g}", *words)


def kernel_classes(name: str, title: str, data: tuple[str, str], *machines: Ours, share: float) -> Row:
    """Kernel machines of many classes beside oneDAL's pairs; what they minimise differs, so that it gets its default
    tolerance.
    """

    def build(_shape: str) -> Contest:
        return list(machines), [peer("onedal", "oneDAL", "", (1e-3,), c=1, gamma="scale", kind="predicts")]

    said = {1 / 2: "half of", 1.0: "no more than"}[share]
    wanted = [
        target(f"{machine.label}: {said} oneDAL (pairs)", machine.label, ["oneDAL"], share) for machine in machines
    ]
    return Row(name, title, data, tuple(wanted), build)


def classes(name: str, title: str, data: tuple[str, str]) -> Row:
    """Many classes in one problem."""

    def build(shape: str) -> Contest:
        same_as, tolerances = "Crammer-Singer SVM", from_tolerance(1e-1)
        programs = [peer("liblinear", "LIBLINEAR -s 4", same_as, tolerances, solver=4, c=1, kind="classes")]
        machines = [
            ours("Crammer-Singer SVM", "mcsvm", "--c", "1", "--bias", "none"),
            ours("mcODM", "mcodm", "--bias", "none", "--lambda", "ROWS", "--mu", "0.5", "--theta", "0.2"),
        ]
        return machines, programs

    text = "mcsvm: no more than LIBLINEAR -s 4"
    return Row(name, title, data, (target(text, "Crammer-Singer SVM", ["LIBLINEAR -s 4"], 1.0),), build)


def digits() -> Row:
    """The linear machine on features as they come, 0 to 16, beside LinearSVC's defaults."""
    file = f"file:none:{Path(__file__).resolve().parent.parent}/crates/widemargin/data/digits.libsvm.gz"

    def build(_shape: str) -> Contest:
        machines = [ours("ODM, one against all", "odm", "--multiclass", "ova"), ours("default (mcODM)", "")]
        return machines, [peer("linearsvc", "LinearSVC", "", (1e-4,), c=1, kind="predicts")]

    wanted = [target(f"{name}: twice LinearSVC", name, ["LinearSVC"], 2) for name in ("ODM, one against all",)]
    return Row("digits", "digits, 10 classes, 1,797 × 64, features of 0 to 16", (file, file), tuple(wanted), build)


# All -------------------------------------------------------------------------------------------------------------

DENSE = ("dense:450000:50", "dense:20000:50")
TEXT = ("text:100000:50000:75", "text:8000:50000:75")
WIDE = ("text:20000:1300000:450", "text:3000:200000:450")


def rows() -> list[Row]:
    """All that needs no data of others."""
    return [reading(), *linear_rows(), *kernel_rows(), *class_rows(), digits(), searching(), *search_rows()]


def reading() -> Row:
    """Reading text."""
    share = target("1/8 of LIBLINEAR's wall time", "reading", ["LIBLINEAR's reader"], 1 / 8, "wall")
    rate = Target("400 MB/s on two cores", "reading", rate=400e6)
    return Row("read", "Read dense 450,000 × 50 LIBSVM text", DENSE, (share, rate))


def linear_rows() -> list[Row]:
    """Dense, text and wide data."""
    half = target("half of LIBLINEAR -s 1", "squared hinge", ["LIBLINEAR -s 1"], 1 / 2)
    svm = target("SVM: half of LIBLINEAR -s 3", "SVM", ["LIBLINEAR -s 3"], 1 / 2)
    better = target("half of the better LIBLINEAR", "squared hinge", LIBLINEAR, 1 / 2)
    tenth = target("1/10 of LIBLINEAR", "squared hinge", LIBLINEAR, 1 / 10)
    third = target("1/3 of Snap ML", "squared hinge", ["Snap ML"], 1 / 3)
    return [
        squared("dense", "Dense 450,000 × 50, squared hinge", DENSE, tenth, third),
        hinge("dense-hinge", "Dense 450,000 × 50, hinge", DENSE),
        squared("text", "Text 100,000 × 50,000, 75 stored a row, squared hinge", TEXT, better),
        hinge("text-hinge", "Text 100,000 × 50,000, hinge", TEXT, svm),
        squared("wide", "Wide 20,000 × 1,300,000, 450 stored a row, squared hinge", WIDE, half),
        hinge("wide-hinge", "Wide 20,000 × 1,300,000, hinge", WIDE, svm),
    ]


def kernel_rows() -> list[Row]:
    """Small, middling and large kernel matrices."""
    predict = target("predict: no more than oneDAL", "SVM", ["oneDAL"], 1.0, "predict")
    ova = odm("ODM, one against all", 1, ("--kernel", "rbf", "--multiclass", "ova"))
    clusters = ("clusters:10000:50:10", "clusters:2000:50:10")
    return [
        kernel("kernel-5k", "RBF kernel 5,000 × 50", ("curved:5000:50", "curved:1000:50")),
        kernel("kernel-20k", "RBF kernel 20,000 × 50", ("curved:20000:50", "curved:2000:50"), predict),
        kernel("kernel-60k", "RBF kernel 60,000 × 8", ("curved:60000:8", "curved:3000:8")),
        kernel_classes("kernel-classes", "RBF kernel, 10 classes, 10,000 × 50", clusters, ova, share=1 / 2),
    ]


def class_rows() -> list[Row]:
    """Few, many and sparse features."""
    images, topics = (
        ("images:60000:780:10", "images:2000:780:10"),
        ("topics:10000:55000:160:105", "topics:1000:5000:60:20"),
    )
    return [
        classes("classes-16", "26 classes, 20,000 × 16", ("clusters:20000:16:26", "clusters:2000:16:26")),
        classes("classes-780", "10 classes, 60,000 × 780, a fifth stored", images),
        classes("classes-sparse", "105 classes, 10,000 × 55,000, 160 stored a row", topics),
    ]


def searching() -> Row:
    """A grid of an SVM."""
    targets = (
        target("1/10 of GridSearchCV", "tune", ["GridSearchCV, LIBSVM"], 1 / 10),
        target("1/10 of GridSearchCV over oneDAL", "tune", ["GridSearchCV, oneDAL"], 1 / 10),
        target("all defaults: 1/10 of GridSearchCV", "tune, all defaults", ["GridSearchCV, LIBSVM"], 1 / 10),
    )
    title = "Search: 55 points × 5 folds, RBF kernel, 1,000 × 50"
    return Row("search", title, ("curved:1000:50", "curved:200:50"), targets)


def waiting(name: str, title: str, data: tuple[str, str], most: float, *words: str) -> Row:
    """A default search: nothing of others does the same, so that what counts is how long one waits."""
    usual = Ours("tune " + " ".join(words) if words else "tune", "", words, "tune")
    return Row(name, title, data, (Target(f"at most {most:g} s", usual.label, most=most),), lambda _: ([usual], []))


def search_rows() -> list[Row]:
    """Default searches over many rows and over many features."""
    rbf = ("--kernel", "rbf")
    return [
        waiting("tune-15k", "Default search, 15,000 × 20", ("curved:15000:20", "curved:500:20"), 180, *rbf),
        waiting("tune-features", "Default search, 5,000 × 3,000", ("dense:5000:3000", "dense:200:300"), 180),
    ]


def real_rows(folder: Path) -> list[Row]:
    """The same kinds of problem on real data: letter as it comes ([−1, 1]), mnist by its largest value, news20 with
    rows of length 1; under a kernel each feature divided by its largest value.
    """

    def data(name: str, scaling: str) -> tuple[str, str]:
        file = f"file:{scaling}:{folder}/{name}.libsvm.gz"
        return file, file

    made = [
        classes(name, f"Real: {name}, {count} classes", data(name, scaling))
        for name, scaling, count in (("letter", "none", 26), ("mnist", "max", 10), ("news20", "unit", 20))
    ]
    for name in ("a9a", "ijcnn1", "w8a", "cod-rna"):
        made.append(kernel(f"kernel-{name}", f"Real: {name}, RBF kernel", data(name, "columns"), share=1.0))
    for name, count in (("connect-4", 3), ("mnist", 10)):
        usual = ours("default", "mcodm", "--kernel", "rbf")
        title = f"Real: {name}, {count} classes, RBF kernel, all defaults"
        made.append(kernel_classes(f"kernel-{name}", title, data(name, "max"), usual, share=1.0))
    for name in ("a9a", "w8a", "cod-rna", "ijcnn1", "skin"):
        title = f"Real: default search on {name}"
        made.append(waiting(f"tune-{name}", title, data(name, "columns"), 180, "--kernel", "rbf"))
    for kernel_name, words in (("linear", ()), ("rbf", ("--kernel", "rbf"))):
        title = f"Real: default search on covtype-20k, 7 classes, {kernel_name}"
        made.append(waiting(f"tune-covtype-{kernel_name}", title, data("covtype-20k", "columns"), 60, *words))
    return made
