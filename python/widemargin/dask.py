"""Machines on the workers of a dask cluster.

Of linear ones partitions stay where they are, and only vectors travel. With a kernel every worker gets all samples
once, and multiplies with its share of the kernel matrix. For a search every worker gets all samples once, and judges
lines of points.

>>> from widemargin.dask import DaskODMClassifier  # doctest: +SKIP
>>> clf = DaskODMClassifier(C1=64).fit(X, y)  # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

try:
    import dask
    import dask.array as da
    import distributed
except ImportError as error:  # pragma: no cover
    raise ImportError("widemargin.dask needs dask and distributed: pip install 'widemargin[dask]'") from error

from . import _parts, _tune, _widemargin
from ._base import MarginClassifier
from ._classifiers import LDMClassifier, ODMClassifier, SVMClassifier
from ._parameters import is_whole
from .baselines import HuberSVMClassifier, L2SVMClassifier, LSSVMClassifier

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "DaskHuberSVMClassifier",
    "DaskL2SVMClassifier",
    "DaskLDMClassifier",
    "DaskLSSVMClassifier",
    "DaskODMClassifier",
    "DaskODMClassifierCV",
    "DaskSVMClassifier",
    "tune",
]

# Questions of more bytes are sent to each worker once, ahead of the tasks.
LARGE = 1 << 16
# So many answers are added up by one task where there are more.
FAN_IN = 16
# So many times a question is asked again whose answer was lost with a worker.
RETRIES = 3
# Seconds without scheduler, or without any worker, after which a fit is given up.
PATIENCE = 30.0


class DaskMarginClassifier:
    """Base of the estimators of this module."""

    _local: type[MarginClassifier]

    def __init__(self, client: distributed.Client | None = None, **parameters: Any) -> None:
        self._make(parameters)
        self.client = client
        self._parameters = parameters

    def _make(self, parameters: dict[str, Any]) -> Any:
        """The ordinary estimator with these parameters."""
        return _parts.local_estimator(self._local, parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The client and the parameters of the ordinary estimator.

        Parameters
        ----------
        deep : bool, default=True
            Not used: no parameter is an estimator.

        Returns
        -------
        parameters : dict
            Parameters by name.
        """
        return {"client": self.client, **self._make(self._parameters).get_params(deep=False)}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **parameters : dict
            Parameters by name.

        Returns
        -------
        self : object
            This estimator.
        """
        if "client" in parameters:
            self.client = parameters.pop("client")
        self._make({**self._parameters, **parameters})
        self._parameters = {**self._parameters, **parameters}
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine to partitions, which stay on their workers; with a kernel, each worker gets all of them.

        Parameters
        ----------
        X : dask array, dask dataframe or array-like of shape (n_samples, n_features)
            The samples. Blocks may be numpy arrays of any number type or sparse matrices. The columns of a frame may
            stand in another order in each partition.
        y : dask array, series or array-like of shape (n_samples,)
            The labels, in partitions as `X`.
        sample_weight : dask array, series or array-like of shape (n_samples,), default=None
            A sample of weight `s` counts as `s` samples; 0 leaves it out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        client, local = client_or_current(self.client), self._make(self._parameters)
        with self._way(local)(client) as fit:
            known, columns = fit.take(X, y, sample_weight, getattr(local, "class_weight", None))
            fit.train(local, known, columns)
            self.n_questions_ = fit.questions
            self.bytes_sent_, self.bytes_received_ = fit.sent, fit.received
        self._fitted = local
        self.solver_ = json.loads(local._model.info())["certificate"]["solver"]
        return self

    def predict(self, X: Any) -> Any:
        """Predict the labels of samples.

        Parameters
        ----------
        X : dask array, dask dataframe or array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : dask array, dask series or ndarray of shape (n_samples,)
            Their labels, in partitions as `X`.
        """
        local = self.to_local()
        return on_partitions(local, "predict", X, local.classes_.dtype, 1)

    def decision_function(self, X: Any) -> Any:
        """Score the samples.

        Parameters
        ----------
        X : dask array, dask dataframe or array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : dask array or ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one score, positive for ``classes_[1]``. More: one score a class, of which the largest wins.
        """
        local = self.to_local()
        width = len(local.classes_)
        return on_partitions(local, "decision_function", X, np.dtype(np.float64), 1 if width == 2 else width)

    def score(self, X: Any, y: Any) -> float:
        """The share of samples that are predicted right.

        Parameters
        ----------
        X : dask array, dask dataframe or array-like of shape (n_samples, n_features)
            The samples.
        y : dask array, series or array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        accuracy : float
            Mean accuracy.
        """
        found, labels = dask.compute(self.predict(X), y)
        return float(np.mean(np.asarray(found) == np.asarray(labels)))

    def to_local(self) -> MarginClassifier:
        """The ordinary estimator with the fitted model: pickles, saves, predicts without a cluster.

        Returns
        -------
        estimator : object
            A fitted estimator. What lies with the samples (`margins_`) it does not have.
        """
        if not hasattr(self, "_fitted"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._fitted

    def __getattr__(self, name: str) -> Any:
        # What is fitted is the ordinary estimator's: classes_, coef_, objective_, duality_gap_, …
        if name.endswith("_") and not name.startswith("_") and "_fitted" in vars(self):
            return getattr(self._fitted, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())
        return f"{type(self).__name__}({words})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "client": None}

    @staticmethod
    def _way(local: Any) -> type[Fit]:
        """How it is fitted, once its parameters are checked."""
        local._check_parameters()
        return Fit if local.kernel == "linear" else KernelFit


def client_or_current(client: distributed.Client | None) -> distributed.Client:
    """The given client, or the current one."""
    if client is not None:
        return client
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError("there is no dask client: make a distributed.Client first, or pass client=") from None


class DaskODMClassifier(DaskMarginClassifier):
    """Optimal margin distribution machine on a dask cluster; see `widemargin.ODMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.ODMClassifier`, where the kernel is linear, ``multi_class="ovr"`` and ``tol=1e-6`` unless
        said otherwise.
    """

    _local = ODMClassifier


class DaskLDMClassifier(DaskMarginClassifier):
    """Large margin distribution machine on a dask cluster; see `widemargin.LDMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.LDMClassifier`, where the kernel is linear and ``tol=1e-6`` unless said otherwise.
    """

    _local = LDMClassifier


class DaskSVMClassifier(DaskMarginClassifier):
    """Support vector machine on a dask cluster; see `widemargin.SVMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.SVMClassifier`, where the kernel is linear and ``tol=1e-6`` unless said otherwise.
    """

    _local = SVMClassifier


class DaskL2SVMClassifier(DaskMarginClassifier):
    """Squared hinge loss on a dask cluster; see `widemargin.baselines.L2SVMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.baselines.L2SVMClassifier`, where the kernel is linear and ``tol=1e-6`` unless said
        otherwise.
    """

    _local = L2SVMClassifier


class DaskLSSVMClassifier(DaskMarginClassifier):
    """Least squares on a dask cluster; see `widemargin.baselines.LSSVMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.baselines.LSSVMClassifier`, where the kernel is linear and ``tol=1e-6`` unless said
        otherwise.
    """

    _local = LSSVMClassifier


class DaskHuberSVMClassifier(DaskMarginClassifier):
    """Huberised hinge loss on a dask cluster; see `widemargin.baselines.HuberSVMClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.baselines.HuberSVMClassifier`, where the kernel is linear and ``tol=1e-6`` unless said
        otherwise.
    """

    _local = HuberSVMClassifier


class DaskODMClassifierCV(DaskMarginClassifier):
    """Search for the parameters of ODM on a dask cluster; see `widemargin.ODMClassifierCV`.

    Every worker gets all samples once and judges lines of points, each by itself; the client fits the best point.
    The points, their scores, the choice and the model are those of `widemargin.ODMClassifierCV`.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; by default the current client.
    **parameters : dict
        Those of `widemargin.ODMClassifierCV`, with its defaults; `cache_size` is what each worker may take. Where
        scikit-learn would judge the points (`scoring`, a splitter `cv`), and with `average`, they are refused.
    """

    _local = _tune.ODMClassifierCV

    def _make(self, parameters: dict[str, Any]) -> _tune.ODMClassifierCV:
        return self._local(**parameters)

    @staticmethod
    def _way(local: Any) -> type[Fit]:
        ODMClassifier(**_tune.plain_parameters(local))._check_parameters()
        _parts.refuse_gram(local)
        if local.scoring is not None or not (local.cv is None or is_whole(local.cv)):
            raise ValueError(
                "scoring and splitters are scikit-learn's: expected None and a number of folds, or a GridSearchCV "
                "under joblib's dask backend"
            )
        if local.average:
            raise ValueError(
                f"average = {local.average!r}: expected False, points of an average are judged on 600 samples, which "
                "takes less time than to send them"
            )
        return SearchFit


def tune(
    estimator: _tune.Estimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    client: distributed.Client | None = None,
    grid: _tune.Grid | None = None,
    fixed: Iterable[str] = (),
    select: str | None = None,
    folds: int = 5,
    repeats: int = 1,
    search_rows: int | str = "auto",
    scoring: str | None = None,
    scale: str | None = None,
    resume: Any = None,
) -> _tune.Estimator:
    """Search the parameters of an estimator on a dask cluster and fit the best ones here; see `widemargin.tune`.

    Every worker gets all samples once and judges lines of points, each by itself. The points, their scores, the choice
    and the model are those of `widemargin.tune`.

    Parameters
    ----------
    estimator : object
        An estimator of this package; it stays as it is. `cache_size` is what each worker may take.
    X : dask array, dask dataframe or array-like of shape (n_samples, n_features)
        The samples.
    y : dask array, series or array-like of shape (n_samples,)
        The labels, in partitions as `X`.
    sample_weight : dask array, series or array-like of shape (n_samples,), default=None
        A sample of weight `s` counts as `s` samples; 0 leaves it out.
    client : distributed.Client, default=None
        The cluster; by default the current client.
    grid, fixed, select, folds, repeats, search_rows, scoring, scale, resume : object
        As in `widemargin.tune`. ``search_rows="auto"`` takes as many samples as one processor judges in about a minute:
        with more processors say how many.

    Returns
    -------
    best : object
        A copy of the estimator with the best parameters, fitted on all samples, with the attribute ``search_``.
    """
    _tune.check_estimator(estimator)
    estimator._check_parameters()
    _parts.refuse_gram(estimator)
    wishes = _tune.Wishes(grid, list(fixed), select, folds, repeats, search_rows, resume, scoring)
    with SearchFit(client_or_current(client)) as fit:
        _, columns = fit.take(X, y, sample_weight, None)
        samples, labels, weights = _parts.at_hand(fit.near)
        return _tune.tuned(estimator, _parts.named(samples, columns), labels, weights, wishes, scale, fit.judges)


class Fit:
    """One fit on a cluster: one future a worker holds all its partitions and is asked again and again."""

    def __init__(self, client: distributed.Client) -> None:
        self.client = client
        self.name = f"widemargin-{uuid.uuid4().hex}"
        self.loaded: list[distributed.Future] = []
        # A worker's partitions, and the worker.
        self.shards: list[tuple[distributed.Future, str]] = []
        self.numbers = itertools.count()
        self.questions = self.sent = self.received = 0

    def __enter__(self) -> Fit:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.loaded, self.shards = [], []
        # Memories that cannot be reached are gone, or go when others need their place.
        lost = kind is not None and issubclass(kind, OSError)
        if self.client.status == "running" and not lost:
            self.client.run(_parts.forget, self.name, on_error="ignore")

    def take(self, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> tuple[_parts.Known, Sequence[Any] | None]:
        """Have the workers take samples; what is known of all of them, and the columns of a frame."""
        blocks, columns = aligned(X, y, sample_weight, len(self.client.nthreads()))
        about = self.load(blocks, columns)
        known = _parts.know(about, class_weight)
        self.settle(known, about)
        return known, columns

    def load(self, blocks: Sequence[tuple[Any, Any, Any]], columns: Sequence[Any] | None) -> list[dict[str, Any]]:
        """Have every partition loaded where it is; what is known of each."""
        delayed = [
            dask.delayed(_parts.load_part, pure=False)(X, y, weights, number, columns)
            for number, (X, y, weights) in enumerate(blocks)
        ]
        self.loaded = self.client.compute(delayed, optimize_graph=False)
        homes = self.at_homes(range(len(self.loaded)))
        about = [
            self.client.submit(all_about, [self.loaded[n] for n in numbers], key=self.key("about"), **at_home(home))
            for home, numbers in homes
        ]
        return sorted(itertools.chain(*self.gather(about)), key=lambda one: one["number"])

    def at_homes(self, numbers: Iterable[int]) -> list[tuple[str, list[int]]]:
        """The workers, each with those of the loaded partitions that it holds."""
        has = self.or_lost(lambda: self.finished(self.loaded, "ALL_COMPLETED") and self.client.who_has(self.loaded))
        homes: dict[str, list[int]] = {}
        for number in numbers:
            workers = sorted(has.get(self.loaded[number].key) or ())
            homes.setdefault(workers[0] if workers else "", []).append(number)
        return sorted(homes.items())

    def settle(self, known: _parts.Known, about: Sequence[dict[str, Any]]) -> None:
        """Put the partitions of each worker together."""
        for home, numbers in self.at_homes(one["number"] for one in about if one["rows"]):
            parts = [self.loaded[number] for number in numbers]
            shard = self.client.submit(
                settled, numbers, parts, known.classes, known.by_class, key=self.key("shard"), **at_home(home)
            )
            self.shards.append((shard, home))
        # The shards hold what they need of them.
        self.loaded = []

    def train(self, local: MarginClassifier, known: _parts.Known, columns: Sequence[Any] | None) -> None:
        """Fit the ordinary estimator by asking the workers."""
        _parts.fit_local(local, known, self.ask, columns)

    def ask(self, question: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of all workers' answers; a question that was lost on its way to one of them is asked again."""
        self.questions += 1
        for left in reversed(range(RETRIES)):
            try:
                return self.sum(question)
            except Lost:
                raise
            except (distributed.CancelledError, OSError) as error:
                if not left or self.client.status != "running":
                    raise lost(NO_SCHEDULER) from error
                time.sleep(1.0)
        raise lost(NO_SCHEDULER)

    def sum(self, question: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of all workers' answers."""
        self.sent += question.nbytes * len(self.shards)
        sent: Any = question
        if question.nbytes > LARGE:
            sent = self.client.scatter(question, broadcast=len(self.shards) > 1, hash=False)
        answers = [
            self.client.submit(self.answered, shard, sent, self.name, key=self.key("answer"), **at_home(home))
            for shard, home in self.shards
        ]
        while len(answers) > FAN_IN:
            groups = [answers[i : i + FAN_IN] for i in range(0, len(answers), FAN_IN)]
            answers = [self.client.submit(_parts.add_up, group, key=self.key("sum")) for group in groups]
        found = self.collect(answers)
        self.received += sum(one.nbytes for one in found)
        return _parts.add_up(found)

    @staticmethod
    def answered(shard: Sequence[tuple[int, _parts.Part]], question: NDArray[Any], fit: str) -> NDArray[np.float64]:
        """What the partitions of this worker answer, on its threads."""
        return _parts.answer(shard, question, fit, own_threads())

    def key(self, what: str) -> str:
        """A name for a task."""
        return f"{self.name}-{what}-{next(self.numbers)}"

    def gather(self, futures: list[distributed.Future]) -> list[Any]:
        """The results, or an error that says why there are none."""
        return self.or_lost(lambda: self.collect(futures))

    @staticmethod
    def or_lost(work: Callable[[], Any]) -> Any:
        """What the work finds, or an error that says that the cluster was lost."""
        try:
            return work()
        except Lost:
            raise
        except (distributed.CancelledError, OSError) as error:
            raise lost(NO_SCHEDULER) from error

    def collect(self, futures: list[distributed.Future]) -> list[Any]:
        """The results."""
        self.finished(futures, "ALL_COMPLETED")
        return self.client.gather(futures, errors="raise")

    def finished(self, futures: list[distributed.Future], when: str) -> set[distributed.Future]:
        """Those that are finished; a scheduler that is lost, or workers that do not come back, are not waited for."""
        lost_since: float | None = None
        while True:
            try:
                return distributed.wait(futures, timeout=1.0, return_when=when).done
            except TimeoutError:
                pass
            why = self.trouble()
            if why is None:
                lost_since = None
            elif lost_since is None:
                lost_since = time.monotonic()
            elif time.monotonic() - lost_since > PATIENCE:
                raise lost(f"{why} for {PATIENCE:.0f} seconds")

    def trouble(self) -> str | None:
        """What keeps the cluster from answering, if anything does."""
        if self.client.status != "running":
            return "no scheduler was reached"
        if not self.client.nthreads():
            return "there was no worker"
        return None


class KernelFit(Fit):
    """One fit with a kernel: every worker holds all samples, and multiplies with a share of their kernel matrix."""

    def settle(self, known: _parts.Known, about: Sequence[dict[str, Any]]) -> None:
        """Have every worker put all samples together, and fetch them."""
        self.loaded = [one for number, one in enumerate(self.loaded) if about[number]["rows"]]
        homes = sorted(self.client.nthreads())
        for number, home in enumerate(homes):
            # Not one copy for all: the scheduler would take what it believes to be too many of it from the workers.
            arguments = (self.loaded, number, len(homes))
            shard = self.client.submit(self.held, *arguments, key=self.key("share"), **at_home(home))
            self.shards.append((shard, home))
        self.near = self.gather(self.loaded)
        rows = sum(one.nbytes() for one in self.near)
        self.sent, self.received = rows * len(homes), rows
        distributed.wait([shard for shard, _ in self.shards])
        self.loaded = []

    @staticmethod
    def held(loaded: Sequence[_parts.Loaded], number: int, count: int) -> Any:
        """What one of so many workers holds."""
        return _parts.share_of(loaded, number, count)

    def train(self, local: MarginClassifier, known: _parts.Known, columns: Sequence[Any] | None) -> None:
        """Fit the ordinary estimator, the products with the kernel matrix made by the workers."""
        _parts.fit_kernel(local, self.near, self.ask, columns)

    @staticmethod
    def answered(share: _parts.Share, question: NDArray[Any], fit: str) -> NDArray[np.float64]:
        """What the share of this worker adds to a product, on its threads."""
        return _parts.product(share, question, own_threads())


class SearchFit(KernelFit):
    """One search: every worker holds all samples, and judges some lines of points at a time."""

    @staticmethod
    def held(loaded: Sequence[_parts.Loaded], number: int, count: int) -> Any:
        """What each worker holds."""
        return _parts.labelled(loaded)

    def train(self, local: _tune.ODMClassifierCV, known: _parts.Known, columns: Sequence[Any] | None) -> None:
        """Fit the ordinary estimator, the points judged by the workers."""
        X, y, weights = _parts.at_hand(self.near)
        local._search(_parts.named(X, columns), y, weights, self.judges)

    def judges(self, choices: _widemargin.Choices, wishes: _widemargin.Wishes) -> Callable[[list[str]], list[str]]:
        """Who judges lines of a search for this."""
        return partial(self.judge, choices, {**wishes, "resume": None})

    def judge(self, choices: _widemargin.Choices, wishes: _widemargin.Wishes, lines: list[str]) -> list[str]:
        """What there is to say of each line; some that were lost on their way are judged again."""
        # Lines that follow each other have matrices in common; two tasks a worker even out who is done first.
        size = -(-len(lines) // (2 * len(self.shards)))
        tasks = [lines[i : i + size] for i in range(0, len(lines), size)]
        self.questions += len(tasks)
        left, waiting, free = RETRIES, list(range(len(tasks)))[::-1], list(self.shards)
        judged: dict[int, list[str]] = {}
        running: dict[distributed.Future, tuple[int, tuple[distributed.Future, str]]] = {}
        while len(judged) < len(tasks):
            while waiting and free:
                number, (shard, home) = waiting.pop(), free.pop()
                arguments = (shard, choices, wishes, tasks[number])
                future = self.client.submit(judged_there, *arguments, key=self.key("lines"), **at_home(home))
                self.sent += sum(map(len, tasks[number]))
                running[future] = number, (shard, home)
            try:
                for future in self.finished(list(running), "FIRST_COMPLETED"):
                    judged[running[future][0]] = future.result()
                    free.append(running.pop(future)[1])
            except Lost:
                raise
            except (distributed.CancelledError, OSError) as error:
                left -= 1
                if not left or self.client.status != "running":
                    raise lost(NO_SCHEDULER) from error
                time.sleep(1.0)
                waiting += [number for number, _ in running.values()]
                free += [shard for _, shard in running.values()]
                running.clear()
        found = [line for number in range(len(tasks)) for line in judged[number]]
        self.received += sum(map(len, found))
        return found


def judged_there(
    samples: _parts.Labelled, choices: _widemargin.Choices, wishes: _widemargin.Wishes, lines: list[str]
) -> list[str]:
    """What there is to say of lines of points, by the threads of this worker."""
    return _parts.judge(samples, choices, wishes, lines, own_threads())


# Why most fits are given up.
NO_SCHEDULER = "the scheduler was lost, and with it the partitions"


class Lost(ConnectionError):
    """A fit was given up."""


def lost(reason: str) -> Lost:
    """An error that says why a fit was given up."""
    return Lost(f"the fit was given up: {reason}. Nothing was learnt; fit again once the cluster is back")


def at_home(home: str) -> dict[str, Any]:
    """Where a task should run: with its data, but anywhere if that worker is gone."""
    return {"workers": [home], "allow_other_workers": True} if home else {}


def all_about(loaded: Sequence[_parts.Loaded]) -> list[dict[str, Any]]:
    """What the driver has to know of the partitions of a worker."""
    return [one.about() for one in loaded]


def settled(
    numbers: Sequence[int],
    loaded: Sequence[_parts.Loaded],
    classes: NDArray[Any],
    by_class: NDArray[np.float64] | None,
) -> list[tuple[int, _parts.Part]]:
    """The partitions of a worker, ready to be asked."""
    return [(number, _parts.coded(one, classes, by_class)) for number, one in zip(numbers, loaded)]


def own_threads() -> int:
    """Threads of the worker that this runs on."""
    try:
        return max(1, distributed.get_worker().state.nthreads)
    except ValueError:
        return 1


def aligned(
    X: Any, y: Any, sample_weight: Any, workers: int
) -> tuple[list[tuple[Any, Any, Any]], Sequence[Any] | None]:
    """The blocks of samples, labels and weights that belong together, and the columns of a frame."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        columns = list(X.columns)
        samples = X.to_delayed()
        lengths = None
    else:
        columns = list(X.columns) if hasattr(X, "columns") else None
        if not isinstance(X, da.Array):
            X = np.asarray(X) if columns is not None or not hasattr(X, "shape") else X
            X = da.from_array(X, chunks=(-(-X.shape[0] // max(1, workers)), -1), asarray=False)
        X = X.rechunk({1: -1})
        samples, lengths = list(X.to_delayed()[:, 0]), X.chunks[0]
    labels = blocks_of(y, lengths, len(samples), "y")
    weights = (
        [None] * len(samples)
        if sample_weight is None
        else blocks_of(sample_weight, lengths, len(samples), "sample_weight")
    )
    return list(zip(samples, labels, weights)), columns


def blocks_of(values: Any, lengths: tuple[Any, ...] | None, count: int, name: str) -> list[Any]:
    """The blocks of labels or weights, cut where the samples are."""
    if hasattr(values, "to_delayed") and not isinstance(values, da.Array):
        blocks = list(values.to_delayed())
    else:
        if not isinstance(values, da.Array):
            values = da.from_array(np.asarray(values).reshape(-1), chunks=-1)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        known = lengths is not None and not any(np.isnan(length) for length in (*lengths, *values.chunks[0]))
        if known and values.shape[0] != sum(lengths):
            raise ValueError(f"X has {sum(lengths)} samples, {name} has {values.shape[0]}")
        if known and values.chunks[0] != lengths:
            values = values.rechunk((lengths,))
        blocks = list(values.to_delayed())
    if len(blocks) != count:
        raise ValueError(f"X has {count} partitions, {name} has {len(blocks)}: cut them alike")
    return blocks


def on_partitions(local: MarginClassifier, method: str, X: Any, dtype: Any, width: int) -> Any:
    """What a method of the estimator says of samples, partition by partition where there are any."""
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1})
        if width == 1:
            return X.map_blocks(called, method=method, local=local, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
        chunks = (X.chunks[0], (width,))
        meta = np.empty((0, 0), dtype)
        return X.map_blocks(called, method=method, local=local, chunks=chunks, dtype=dtype, meta=meta)
    if hasattr(X, "map_partitions"):
        blocks = [
            da.from_delayed(
                dask.delayed(called)(block, local=local, method=method),
                shape=(np.nan,) if width == 1 else (np.nan, width),
                dtype=dtype,
                meta=np.empty((0,) * (1 if width == 1 else 2), dtype),
            )
            for block in X.to_delayed()
        ]
        return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)
    return getattr(local, method)(X)


def called(block: Any, local: MarginClassifier, method: str) -> NDArray[Any]:
    """What a method of the estimator says of one block."""
    names = getattr(local, "feature_names_in_", None)
    X = _parts.as_samples(block, None if names is None or not hasattr(block, "columns") else list(names))
    if X.shape[0] == 0:
        scores = method == "decision_function"
        width = len(local.classes_) if scores and len(local.classes_) > 2 else None
        return np.empty((0,) if width is None else (0, width), np.float64 if scores else local.classes_.dtype)
    if names is not None:
        import pandas

        return getattr(local, method)(pandas.DataFrame(X, columns=names))
    return getattr(local, method)(X)
