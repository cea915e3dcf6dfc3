"""A real cluster: a scheduler and two workers, each a process of its own."""

import pytest

distributed = pytest.importorskip("distributed")


def two_workers():
    """A cluster of two worker processes of one thread."""
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
    )


@pytest.fixture(scope="module")
def client():
    """A client of a cluster that all tests share."""
    with two_workers() as cluster, distributed.Client(cluster) as made:
        yield made


@pytest.fixture
def own_client():
    """A client of a cluster that a test may damage."""
    with two_workers() as cluster, distributed.Client(cluster) as made:
        yield made
