"""Time of fits on a cluster of worker processes beside one process, with the bytes that travel; see docs/cluster.md.

Run by hand: python bench/cluster.py [linear | kernel | search] [ROWS [FEATURES]]
"""

import contextlib
import itertools
import os
import sys
import time
from typing import NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np

import widemargin.dask
from widemargin import ODMClassifier, ODMClassifierCV, _parts, _widemargin
from widemargin.dask import DaskODMClassifier, DaskODMClassifierCV, KernelFit


def drawn(seed, chunk, features):
    """Samples and labels of one block."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(chunk, features))
    weights = np.random.default_rng(0).normal(size=features)
    return X, (X @ weights + 2.0 * rng.normal(size=chunk) > 0).astype(np.int64)


def samples(rows, features, chunk):
    """Blocks that every worker draws by itself, samples and labels each in arrays of their own."""
    seeds, lengths = da.arange(rows // chunk, chunks=1), (chunk,) * (rows // chunk)
    X = seeds.map_blocks(
        lambda seed: drawn(seed[0], chunk, features)[0], chunks=(lengths, (features,)), new_axis=1, dtype=float
    )
    return X, seeds.map_blocks(lambda seed: drawn(seed[0], chunk, features)[1], chunks=(lengths,), dtype=np.int64)


KEEPING = {False: "", True: " that keep memory"}
# Other programs on the machine make a run longer, never shorter.
REPEATS = 5


class Cost(NamedTuple):
    """Seconds of a run: by the clock, and of processors, which other programs do not lengthen as they do the first."""

    clock: float
    here: float
    worker: float
    workers: float

    def __str__(self):
        words = f"{self.clock:.2f} s, {self.here:.2f} s of this process"
        return words + (f", {self.worker:.2f} s of a worker" if self.workers else "")

    @property
    def processors(self):
        """Seconds of all processes."""
        return self.here + self.workers


def timed(work, client=None):
    """The least that some runs cost, each figure by itself, and the last result."""
    costs, result = [], None
    for _ in range(REPEATS):
        before = {} if client is None else client.run(time.process_time)
        clock, here = time.perf_counter(), time.process_time()
        result = work()
        clock, here = time.perf_counter() - clock, time.process_time() - here
        after = {} if client is None else client.run(time.process_time)
        spent = [after[worker] - before[worker] for worker in after] or [0.0]
        costs.append((clock, here, max(spent), sum(spent)))
    return Cost(*map(min, zip(*costs))), result


# By this dask has workers give memory back at once; None lets them keep what they will soon need again.
TRIM = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"


@contextlib.contextmanager
def cluster(workers, keep=False):
    """A client of so many worker processes of one thread, which keep memory or, as dask has them, give it back."""
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    # An earlier cluster has left it in the environment of this process.
    os.environ.pop(TRIM.rpartition(".")[2], None)
    setting = dask.config.set({TRIM: None}) if keep else contextlib.nullcontext()
    with setting, distributed.LocalCluster(n_workers=workers, **options) as made, distributed.Client(made) as client:
        # The first argument of a LocalCluster is its name: a table of other workers than it says is worse than none.
        assert list(client.nthreads().values()) == [1] * workers
        yield client


def load():
    """How busy the machine is beside all this."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def linear(rows=1_000_000, features=50):
    """Print a table: partitions that stay on their workers."""
    print(f"linear: {rows} rows, {features} features, {load()}")
    # The same rows for every number of partitions: they are drawn in eighths.
    X, y = (part.compute(scheduler="threads") for part in samples(rows, features, rows // 8))
    alone = None
    for threads in (1, 2):
        clf = ODMClassifier(kernel="linear", tol=1e-6, n_jobs=threads)
        cost, near = timed(lambda clf=clf, X=X, y=y: clf.fit(X, y))
        alone = alone or cost
        print(f"one process, {threads} threads: {cost}, objective {near.objective_:.12g}, {load()}")
    Xs, ys = np.array_split(X, 8), np.array_split(y, 8)
    direct, _ = timed(lambda Xs=Xs, ys=ys: no_engine(Xs, ys))
    print(f"one process, 1 threads, 8 partitions asked without an engine: {direct}, {load()}")
    del X, y, Xs, ys
    for workers, keep in itertools.product((1, 2), (False, True)):
        with cluster(workers, keep) as client:
            for parts in (2, 4, 8):
                blocks = samples(rows, features, rows // 8)
                cut = (blocks[0].rechunk((rows // parts, -1)), blocks[1].rechunk(rows // parts))
                dX, dy = client.persist(list(cut))
                distributed.wait([dX, dy])
                cost, far = timed(lambda dX=dX, dy=dy: DaskODMClassifier(client=client).fit(dX, dy), client)
                gap = abs(far.objective_ / near.objective_ - 1)
                each = (far.bytes_sent_ + far.bytes_received_) / far.n_questions_
                print(
                    f"{workers} workers{KEEPING[keep]}, {parts} partitions: {cost}, "
                    f"{cost.processors / alone.processors:.2f} times one process's, "
                    f"{cost.processors / direct.processors:.2f} times that without an engine, "
                    f"{far.n_questions_} questions, {each:.0f} bytes each, objective apart {gap:.1e}, "
                    f"gap {far.duality_gap_:.1e}, {load()}"
                )
                del dX, dy


def no_engine(Xs, ys):
    """The same questions to the same partitions, all of them in this process."""
    loaded = [_parts.load_part(X, y, None, number) for number, (X, y) in enumerate(zip(Xs, ys))]
    known = _parts.know([one.about() for one in loaded], None)
    parts = [(one.number, _parts.coded(one, known.classes, None)) for one in loaded]
    local = _parts.local_estimator(ODMClassifier, {})
    _parts.fit_local(local, known, lambda question: _parts.answer(parts, question, "here", 1), None)
    _parts.forget("here")


def kernel_rate(X, double):
    """Kernel values that one thread computes and multiplies with in a second."""
    n, features = X.shape
    head = [1.0, 1.0 / features, 0.0, 0.0, 0.0, float(double), 1e-5]
    question = np.concatenate([head, np.random.default_rng(1).normal(size=n)])
    cost, _ = timed(lambda: _widemargin.kernel_share(X, question, 0, 1, 1))
    return n * (n + 1) / 2 / cost.here


class Watched(KernelFit):
    """A fit that keeps which of its products are in double precision."""

    double: list = []

    def ask(self, question):
        """A product."""
        self.double.append(bool(question[5]))
        return super().ask(question)


def kernel(rows=12_000, features=50):
    """Print a table: every worker multiplies with its share of the kernel matrix."""
    print(f"kernel: {rows} rows, {features} features, {load()}")
    X, y = (part.compute(scheduler="threads") for part in samples(rows, features, rows // 8))
    rates = [kernel_rate(X, double) for double in (False, True)]
    print(f"kernel values a second and thread: {rates[0]:.3g} in single precision, {rates[1]:.3g} in double, {load()}")
    widemargin.dask.KernelFit = Watched
    dX, dy = da.from_array(X, chunks=(rows // 4, -1)), da.from_array(y, chunks=rows // 4)
    for tol in (1e-3, 1e-6):
        cost, near = timed(lambda tol=tol: ODMClassifier(kernel="rbf", tol=tol, n_jobs=2).fit(X, y))
        print(f"one process, 2 threads, tol {tol}: {cost}, objective {near.objective_:.12g}, {load()}")
        for workers in (1, 2):
            with cluster(workers) as client:
                clf = DaskODMClassifier(client=client, kernel="rbf", tol=tol, n_jobs=2)
                Watched.double.clear()
                cost, far = timed(lambda clf=clf: clf.fit(dX, dy), client)
                told(workers, tol, cost, far, near, rates, rows)


def told(workers, tol, cost, far, near, rates, rows):
    """Print one line of the table, with what the model of the cost says of a worker."""
    double = Watched.double[: far.n_questions_]
    model = sum(rows * (rows + 1) / 2 / (workers * rates[one]) for one in double)
    apart = abs(far.objective_ / near.objective_ - 1)
    print(
        f"{workers} workers, tol {tol}: {cost}, where the model says {model:.2f} s; {far.n_questions_} products "
        f"({sum(double)} in double precision), {far.bytes_sent_:.3g} bytes sent, {far.bytes_received_:.3g} received, "
        f"objective apart {apart:.1e}, gap {far.duality_gap_:.1e}, {load()}"
    )


def search(rows=1_200, features=20):
    """Print a table: every worker judges lines of points."""
    print(f"search: {rows} rows, {features} features, {load()}")
    X, y = drawn(1, rows, features)
    cost, near = timed(lambda: ODMClassifierCV(n_jobs=1).fit(X, y))
    print(f"one process, 1 threads: {cost}, {near.search_.points} points, {near.search_.fits} fits, {load()}")
    for workers, keep in itertools.product((1, 2), (False, True)):
        with cluster(workers, keep) as client:
            clf = DaskODMClassifierCV(client=client, n_jobs=1)
            away, far = timed(lambda clf=clf: clf.fit(X, y), client)
            same = far.search_.params == near.search_.params and far.objective_ == near.objective_
            print(
                f"{workers} workers{KEEPING[keep]}: {away}, "
                f"{away.processors / cost.processors:.2f} times one process's, {far.n_questions_} tasks, "
                f"{far.bytes_sent_:.3g} bytes sent, {far.bytes_received_:.3g} received, "
                f"{'the same' if same else 'ANOTHER'} choice and objective, {load()}"
            )


if __name__ == "__main__":
    what, *sizes = sys.argv[1:] or ["linear"]
    {"linear": linear, "kernel": kernel, "search": search}[what](*map(int, sizes))
