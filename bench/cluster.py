"""Time of a fit on a cluster of worker processes beside one process, with the bytes that travel; see docs/cluster.md.

Run by hand: python bench/cluster.py [ROWS [FEATURES]]
"""

import sys
import time

import dask.array as da
import distributed
import numpy as np

from widemargin import ODMClassifier
from widemargin.dask import DaskODMClassifier


def samples(rows, features, chunk):
    """Blocks that every worker draws by itself."""
    weights = np.random.default_rng(0).normal(size=features)

    def block(seed):
        rng = np.random.default_rng(seed[0])
        X = rng.normal(size=(chunk, features))
        y = (X @ weights + 2.0 * rng.normal(size=chunk) > 0).astype(np.int64)
        return np.column_stack([X, y])

    seeds = da.arange(rows // chunk, chunks=1)
    data = seeds.map_blocks(block, chunks=((chunk,) * (rows // chunk), (features + 1,)), new_axis=1, dtype=float)
    return data[:, :features], data[:, features].astype(np.int64)


def timed(work, repeats=3):
    """The shortest of some runs, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def main(rows=1_000_000, features=50):
    """Print a table."""
    print(f"{rows} rows, {features} features")
    X, y = (part.compute(scheduler="threads") for part in samples(rows, features, rows // 8))
    for threads in (1, 2):
        clf = ODMClassifier(kernel="linear", tol=1e-6, n_jobs=threads)
        seconds, near = timed(lambda clf=clf, X=X, y=y: clf.fit(X, y))
        print(f"one process, {threads} threads: {seconds:.2f} s, objective {near.objective_:.12g}")
    del X, y
    for workers in (1, 2):
        with (
            distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
            distributed.Client(cluster) as client,
        ):
            for parts in (2, 4, 8):
                dX, dy = client.persist(list(samples(rows, features, rows // parts)))
                distributed.wait([dX, dy])
                seconds, far = timed(lambda dX=dX, dy=dy: DaskODMClassifier(client=client).fit(dX, dy))
                gap = abs(far.objective_ / near.objective_ - 1)
                each = (far.bytes_sent_ + far.bytes_received_) / far.n_questions_
                print(
                    f"{workers} workers, {parts} partitions: {seconds:.2f} s, {far.n_questions_} questions, "
                    f"{each:.0f} bytes each, objective apart {gap:.1e}, gap {far.duality_gap_:.1e}"
                )
                del dX, dy


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
