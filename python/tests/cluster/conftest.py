"""A real cluster: a scheduler and two workers, each a process of its own."""

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster():
    """A cluster of two worker processes of one thread."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    ) as made:
        yield made


@pytest.fixture
def client(cluster):
    """A client of it."""
    with distributed.Client(cluster) as made:
        yield made
