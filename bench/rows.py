"""What is measured: the data, our machines, the other programs, the targets.

A row's problem is the same for both sides. Ours come first: the one named `same` minimises exactly what the others
minimise; the rest are the machines this program is about, at the same regularisation.
"""

TOLERANCE = 1e-3

# Tolerances that a program is offered, loosest first; it gets the first that brings its objective within TOLERANCE.
DECADES = [float(f"1e-{k}") for k in range(8)]


def peer(program, label, tolerances=DECADES, **settings):
    return {"program": program, "label": label, "tolerances": tolerances, "settings": settings}


def ours(label, machine, *words, same=False):
    return {"label": label, "machine": machine, "words": list(words), "same": same}


def target(text, ours, theirs, share, measure="cpu"):
    """Ours (a label) at most `share` of the best of theirs (labels) by this measure: cpu, wall, memory, predict."""
    return {"text": text, "ours": ours, "theirs": theirs, "share": share, "measure": measure}


def rows_of(shape):
    return int(shape.split(":")[1])


def from_tolerance(first):
    return [tol for tol in DECADES if tol <= first]


def linear_programs(loss, dense):
    """Dual coordinate descent takes minutes where features are few and rows many, and lightning's on the squared hinge
    everywhere: they are asked only where they are meant to be used."""
    same = {"c": 1, "loss": loss, "kind": "linear"}
    dual, primal = (("-s 1", 1), ("-s 2", 2)) if loss == "squared" else (("-s 3", 3), None)
    solvers = [s for s in ((primal or dual,) if dense else (dual, primal)) if s]
    programs = [peer("liblinear", f"LIBLINEAR {word}", solver=number, **same) for word, number in solvers]
    if not dense and loss == "hinge":
        programs.append(peer("lightning", "lightning SDCA", from_tolerance(1e-2), **same))
    programs.append(peer("snapml", "Snap ML", from_tolerance(1e-3), **same))
    return programs


def squared(name, title, data, targets):
    def build(shape):
        m, programs = rows_of(shape), linear_programs("squared", shape.startswith("dense"))
        machines = [
            ours("squared hinge", "l2svm", "--c", "1", "--bias", "none", same=True),
            ours("squared hinge, --precision f32", "l2svm", "--c", "1", "--bias", "none", "--precision", "f32"),
            ours("ODM", "odm", "--c1", str(m), "--c2", str(m / 8), "--d", "0.2", "--bias", "none"),
        ]
        return machines, programs

    return {"name": name, "title": title, "data": data, "build": build, "targets": targets}


def hinge(name, title, data, targets):
    def build(shape):
        programs = linear_programs("hinge", shape.startswith("dense"))
        machines = [
            ours("SVM", "svm", "--c", "1", "--bias", "none", same=True),
            ours("LDM", "ldm", "--c", "1", "--bias", "none"),
        ]
        return machines, programs

    return {"name": name, "title": title, "data": data, "build": build, "targets": targets}


def kernel(name, title, data, targets):
    def build(shape):
        m, gamma = rows_of(shape), 0.5 / int(shape.split(":")[2])
        decades = [1e-2, 1e-3, 1e-4]
        rbf = ["--kernel", "rbf", "--gamma", repr(gamma)]
        programs = [
            peer("onedal", "oneDAL", decades, c=1, gamma=gamma, kind="kernel"),
            peer("libsvm", "LIBSVM (scikit-learn)", decades, c=1, gamma=gamma, kind="kernel"),
        ]
        machines = [
            ours("SVM", "svm", "--c", "1", *rbf, same=True),
            ours("ODM", "odm", "--c1", str(m), "--c2", str(m / 8), "--d", "0.2", *rbf),
            ours("LDM", "ldm", "--c", "1", *rbf),
        ]
        return machines, programs

    return {"name": name, "title": title, "data": data, "build": build, "targets": targets}


def classes(name, title, data):
    def build(shape):
        programs = [peer("liblinear", "LIBLINEAR -s 4", from_tolerance(1e-1), solver=4, c=1, kind="classes")]
        machines = [
            ours("Crammer-Singer SVM", "mcsvm", "--c", "1", "--bias", "none", same=True),
            ours("mcODM", "mcodm", "--bias", "none", "--lambda", "ROWS", "--mu", "0.5", "--theta", "0.2"),
        ]
        return machines, programs

    text = "mcsvm: no more than LIBLINEAR -s 4"
    targets = [target(text, "Crammer-Singer SVM", ["LIBLINEAR -s 4"], 1.0)]
    return {"name": name, "title": title, "data": data, "build": build, "targets": targets}


LIBLINEAR = ["LIBLINEAR -s 1", "LIBLINEAR -s 2"]
DENSE = ("dense:450000:50", "dense:20000:50")
TEXT = ("text:100000:50000:75", "text:8000:50000:75")
WIDE = ("text:20000:1300000:450", "text:3000:200000:450")

MEMORY = "memory: half of LIBLINEAR"
SINGLE = "memory with --precision f32: half of LIBLINEAR"


def rows():
    return [
        {
            "name": "read",
            "title": "Read dense 450,000 × 50 LIBSVM text",
            "data": DENSE,
            "build": None,
            "targets": [
                target("1/8 of LIBLINEAR's wall time", "reading", ["LIBLINEAR's reader"], 1 / 8, "wall"),
                {"text": "400 MB/s on two cores", "ours": "reading", "rate": 400e6},
            ],
        },
        squared(
            "dense",
            "Dense 450,000 × 50, squared hinge",
            DENSE,
            [
                target("1/10 of LIBLINEAR", "squared hinge", LIBLINEAR, 1 / 10),
                target("1/3 of Snap ML", "squared hinge", ["Snap ML"], 1 / 3),
                target(MEMORY, "squared hinge", LIBLINEAR, 1 / 2, "memory"),
                target(SINGLE, "squared hinge, --precision f32", LIBLINEAR, 1 / 2, "memory"),
            ],
        ),
        hinge(
            "dense-hinge",
            "Dense 450,000 × 50, hinge",
            DENSE,
            [
                target("LDM: no more than LIBLINEAR -s 3", "LDM", ["LIBLINEAR -s 3"], 1.0),
                target(MEMORY, "LDM", ["LIBLINEAR -s 3"], 1 / 2, "memory"),
            ],
        ),
        squared(
            "text",
            "Text 100,000 × 50,000, 75 stored a row, squared hinge",
            TEXT,
            [
                target("half of the better LIBLINEAR", "squared hinge", LIBLINEAR, 1 / 2),
                target(MEMORY, "squared hinge", LIBLINEAR, 1 / 2, "memory"),
                target(SINGLE, "squared hinge, --precision f32", LIBLINEAR, 1 / 2, "memory"),
            ],
        ),
        hinge(
            "text-hinge",
            "Text 100,000 × 50,000, hinge",
            TEXT,
            [
                target("SVM: half of LIBLINEAR -s 3", "SVM", ["LIBLINEAR -s 3"], 1 / 2),
                target("LDM: no more than LIBLINEAR -s 3", "LDM", ["LIBLINEAR -s 3"], 1.0),
                target(MEMORY, "LDM", ["LIBLINEAR -s 3"], 1 / 2, "memory"),
            ],
        ),
        squared(
            "wide",
            "Wide 20,000 × 1,300,000, 450 stored a row, squared hinge",
            WIDE,
            [
                target("half of LIBLINEAR -s 1", "squared hinge", ["LIBLINEAR -s 1"], 1 / 2),
                target(MEMORY, "squared hinge", LIBLINEAR, 1 / 2, "memory"),
                target(SINGLE, "squared hinge, --precision f32", LIBLINEAR, 1 / 2, "memory"),
            ],
        ),
        hinge(
            "wide-hinge",
            "Wide 20,000 × 1,300,000, hinge",
            WIDE,
            [
                target("LDM: no more than LIBLINEAR -s 3", "LDM", ["LIBLINEAR -s 3"], 1.0),
                target(MEMORY, "LDM", ["LIBLINEAR -s 3"], 1 / 2, "memory"),
            ],
        ),
        kernel(
            "kernel-5k",
            "RBF kernel 5,000 × 50",
            ("curved:5000:50", "curved:1000:50"),
            [target("half of oneDAL", "SVM", ["oneDAL"], 1 / 2)],
        ),
        kernel(
            "kernel-20k",
            "RBF kernel 20,000 × 50",
            ("curved:20000:50", "curved:2000:50"),
            [
                target("half of oneDAL", "SVM", ["oneDAL"], 1 / 2),
                target("predict: no more than oneDAL", "SVM", ["oneDAL"], 1.0, "predict"),
            ],
        ),
        kernel(
            "kernel-60k",
            "RBF kernel 60,000 × 8",
            ("curved:60000:8", "curved:3000:8"),
            [target("half of oneDAL", "SVM", ["oneDAL"], 1 / 2)],
        ),
        classes("classes-16", "26 classes, 20,000 × 16", ("clusters:20000:16:26", "clusters:2000:16:26")),
        classes(
            "classes-780", "10 classes, 60,000 × 780, a fifth stored", ("images:60000:780:10", "images:2000:780:10")
        ),
        classes(
            "classes-sparse",
            "105 classes, 10,000 × 55,000, 160 stored a row",
            ("topics:10000:55000:160:105", "topics:1000:5000:60:20"),
        ),
        {
            "name": "search",
            "title": "Search: 55 points × 5 folds, RBF kernel, 1,000 × 50",
            "data": ("curved:1000:50", "curved:200:50"),
            "build": None,
            "targets": [
                target("1/10 of GridSearchCV", "tune", ["GridSearchCV, LIBSVM"], 1 / 10),
                target("1/10 of GridSearchCV over oneDAL", "tune", ["GridSearchCV, oneDAL"], 1 / 10),
            ],
        },
    ]


def real_rows(folder):
    """The same classes of problem on real data: letter as it comes ([−1, 1]), mnist by its largest value, news20 with
    rows of length 1."""
    names = [
        ("letter", "none", "letter, 26 classes"),
        ("mnist", "max", "mnist, 10 classes"),
        ("news20", "unit", "news20, 20 classes"),
    ]
    made = []
    for name, scaling, title in names:
        data = f"file:{scaling}:{folder}/{name}.libsvm.gz"
        made.append(classes(name, f"Real: {title}", (data, data)))
    return made
