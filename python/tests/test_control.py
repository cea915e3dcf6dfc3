"""Long work can be stopped, leaves the interpreter free, and does not depend on the number of threads."""

import multiprocessing
import signal
import threading
import time

import numpy as np
import pytest

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier


@pytest.fixture(scope="module")
def much():
    """Samples whose labels are noise: training takes its time."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(6000, 20)), rng.integers(0, 2, 6000)


@pytest.fixture(autouse=True)
def heard():
    """Interrupts are heard, also where the tests run in the background of a shell, which has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt(much):
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        SVMClassifier(C=1e4, tol=1e-12).fit(*much)
    assert time.monotonic() - sent[0] < 10  # it is a tenth of a second, but the machine may be busy
    timer.join()


def test_interrupt_of_a_prediction(much):
    model = ODMClassifier().fit(*much)
    many = np.repeat(much[0], 30, axis=0)
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.predict(many)
    assert time.monotonic() - sent[0] < 10  # it is a tenth of a second, but the machine may be busy
    timer.join()


def test_interpreter_is_free(much):
    ticks = []
    done = threading.Event()

    def count():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    counter = threading.Thread(target=count)
    counter.start()
    start = time.monotonic()
    LDMClassifier(tol=1e-2).fit(much[0][:3000], much[1][:3000])
    taken = time.monotonic() - start
    done.set()
    counter.join()
    assert len(ticks) > 10 * taken


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_thread_count_does_not_matter(kernel, two_classes):
    X, y = two_classes
    scores = [ODMClassifier(kernel=kernel, n_jobs=n).fit(X, y).decision_function(X) for n in (1, 2, -1, None)]
    assert all(np.array_equal(other, scores[0]) for other in scores)


def test_from_several_threads(two_classes):
    X, y = two_classes
    expected = ODMClassifier().fit(X, y).decision_function(X)
    found = [None] * 4

    def fit(i):
        found[i] = ODMClassifier().fit(X, y).decision_function(X)

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.array_equal(scores, expected) for scores in found)


def fit_and_score(data):
    return ODMClassifier().fit(*data).score(*data)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_after_a_fork(two_classes):
    here = fit_and_score(two_classes)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(fit_and_score, (two_classes,)).get(timeout=60) == here


def test_verbose(two_classes, capsys):
    SVMClassifier(verbose=True).fit(*two_classes)
    assert "[widemargin]" in capsys.readouterr().out


def test_seeds(two_classes):
    X, y = two_classes
    scores = [SVMClassifier(random_state=s).fit(X, y).decision_function(X) for s in (None, 0, np.random.RandomState(3))]
    assert np.array_equal(scores[0], scores[1])
