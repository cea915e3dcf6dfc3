"""Linear machines as estimators of `pyspark.ml`: rows stay in their partitions, only vectors travel.

>>> from widemargin.spark import SparkODMClassifier  # doctest: +SKIP
>>> model = SparkODMClassifier(features_col="features", label_col="label", C1=64.0).fit(frame)  # doctest: +SKIP
"""

from __future__ import annotations

import base64
import pickle
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import pyarrow as pa
    from pyspark import StorageLevel, TaskContext
    from pyspark.ml import Estimator, Model
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.linalg import VectorUDT
    from pyspark.ml.param import Param, Params
    from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType
except ImportError as error:  # pragma: no cover
    raise ImportError("widemargin.spark needs pyspark and pyarrow: pip install 'widemargin[spark]'") from error

from . import _parts, _widemargin
from ._base import MarginClassifier
from ._classifiers import LDMClassifier, ODMClassifier, SVMClassifier
from ._load import unfitted
from .baselines import L2SVMClassifier, LSSVMClassifier

__all__ = [
    "SparkL2SVMClassifier",
    "SparkLDMClassifier",
    "SparkLSSVMClassifier",
    "SparkMarginModel",
    "SparkODMClassifier",
    "SparkSVMClassifier",
]

# A block of rows that travels from storage to Python has at most about so many bytes.
BLOCK = 64 << 20


class Columns(Params):
    """The columns of a frame that an estimator and its model share."""

    features_col = Param(Params._dummy(), "features_col", "vector or array column, or a list of number columns")
    label_col = Param(Params._dummy(), "label_col", "labels: numbers or text")
    weight_col = Param(Params._dummy(), "weight_col", "row weights; None: all 1")
    prediction_col = Param(Params._dummy(), "prediction_col", "where predicted labels go")
    raw_prediction_col = Param(Params._dummy(), "raw_prediction_col", "where scores go, one a class")

    def _col(self, name: str) -> Any:
        return self.getOrDefault(self.getParam(name))

    def _features(self, frame: DataFrame) -> Any:
        """The features of a row as an array of numbers."""
        wanted = self._col("features_col")
        if isinstance(wanted, (list, tuple)):
            return sf.array(*[sf.col(name).cast("double") for name in wanted])
        if isinstance(frame.schema[wanted].dataType, VectorUDT):
            return vector_to_array(sf.col(wanted))
        return sf.col(wanted).cast("array<double>")


class SparkMarginClassifier(Columns, Estimator, MLReadable, MLWritable):
    """Base of the estimators of this module."""

    _local: type[MarginClassifier]

    def __init__(
        self,
        features_col: str | list[str] = "features",
        label_col: str = "label",
        *,
        weight_col: str | None = None,
        prediction_col: str = "prediction",
        raw_prediction_col: str = "rawPrediction",
        **parameters: Any,
    ) -> None:
        super().__init__()
        columns = {
            "features_col": features_col,
            "label_col": label_col,
            "weight_col": weight_col,
            "prediction_col": prediction_col,
            "raw_prediction_col": raw_prediction_col,
        }
        local = _parts.local_estimator(self._local, parameters)
        defaults = _parts.local_estimator(self._local, {}).get_params(deep=False)
        self._setDefault(**defaults)
        self._set(**columns)
        self._set(**{name: value for name, value in local.get_params(deep=False).items() if name in parameters})

    def setParams(self, **parameters: Any) -> SparkMarginClassifier:
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
        self._set(**parameters)
        return self

    def write(self) -> MLWriter:
        """What saves it.

        Returns
        -------
        writer : pyspark.ml.util.MLWriter
            With `save`.
        """
        return DefaultParamsWriter(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """What loads it.

        Returns
        -------
        reader : pyspark.ml.util.MLReader
            With `load`.
        """
        return DefaultParamsReader(cls)

    def _fit(self, dataset: DataFrame) -> SparkMarginModel:
        names = self._local._get_param_names()
        local = _parts.local_estimator(self._local, {name: self._col(name) for name in names})
        local._check_parameters()
        weight = self._col("weight_col")
        columns = [self._features(dataset).alias("x"), sf.col(self._col("label_col")).alias("y")]
        columns.append((sf.lit(1.0) if weight is None else sf.col(weight).cast("double")).alias("s"))
        chosen = dataset.select(*columns)
        packed = chosen.mapInArrow(packer(BLOCK), "number bigint, about binary, part binary")
        packed = packed.persist(StorageLevel.MEMORY_AND_DISK)
        fit = f"widemargin-{uuid.uuid4().hex}"
        try:
            about = [pickle.loads(row["about"]) for row in packed.select("about").collect()]
            wrong = [one["wrong"] for one in about if "wrong" in one]
            if wrong:
                raise ValueError(wrong[0])
            known = _parts.know(sorted(about, key=lambda one: one["number"]), getattr(local, "class_weight", None))
            features = self._col("features_col")
            order = list(features) if isinstance(features, (list, tuple)) else None
            _parts.fit_local(local, known, asker(packed, known, fit), order)
        finally:
            packed.unpersist()
        model = SparkMarginModel._of(local)
        return self._copyValues(model, {})


def with_parameters(cls: type[SparkMarginClassifier]) -> type[SparkMarginClassifier]:
    """Give the estimator a `Param` for each parameter of the ordinary one."""
    for name in cls._local._get_param_names():
        setattr(cls, name, Param(Params._dummy(), name, f"{name} of {cls._local.__name__}"))
    return cls


@with_parameters
class SparkODMClassifier(SparkMarginClassifier):
    """Optimal margin distribution machine on Spark; see `widemargin.ODMClassifier`.

    Parameters
    ----------
    features_col : str or list of str, default="features"
        A column of vectors or arrays, or columns of numbers.
    label_col : str, default="label"
        The labels: numbers or text.
    weight_col : str, default=None
        Row weights.
    prediction_col : str, default="prediction"
        Where `transform` of the model puts predicted labels.
    raw_prediction_col : str, default="rawPrediction"
        Where it puts scores, one a class.
    **parameters : dict
        Those of `widemargin.ODMClassifier`, where the kernel is linear, ``multi_class="ovr"`` and ``tol=1e-6`` unless
        said otherwise.
    """

    _local = ODMClassifier


@with_parameters
class SparkLDMClassifier(SparkMarginClassifier):
    """Large margin distribution machine on Spark; see `widemargin.LDMClassifier` and `SparkODMClassifier`."""

    _local = LDMClassifier


@with_parameters
class SparkSVMClassifier(SparkMarginClassifier):
    """Support vector machine on Spark; see `widemargin.SVMClassifier` and `SparkODMClassifier`."""

    _local = SVMClassifier


@with_parameters
class SparkL2SVMClassifier(SparkMarginClassifier):
    """Squared hinge loss on Spark; see `widemargin.baselines.L2SVMClassifier` and `SparkODMClassifier`."""

    _local = L2SVMClassifier


@with_parameters
class SparkLSSVMClassifier(SparkMarginClassifier):
    """Least squares on Spark; see `widemargin.baselines.LSSVMClassifier` and `SparkODMClassifier`."""

    _local = LSSVMClassifier


class SparkMarginModel(Columns, Model, MLReadable, MLWritable):
    """A fitted machine that transforms frames."""

    def __init__(self) -> None:
        super().__init__()
        self._fitted: MarginClassifier | None = None

    @classmethod
    def _of(cls, local: MarginClassifier) -> SparkMarginModel:
        model = cls()
        model._fitted = local
        return model

    def to_local(self) -> MarginClassifier:
        """The ordinary estimator with the fitted model.

        Returns
        -------
        estimator : object
            A fitted estimator.
        """
        if self._fitted is None:
            raise ValueError("this model is not fitted: fit an estimator, or load a model")
        return self._fitted

    @property
    def objective_(self) -> float:
        """Value of the objective."""
        return self.to_local().objective_

    @property
    def duality_gap_(self) -> float:
        """Relative duality gap."""
        return self.to_local().duality_gap_

    def _transform(self, dataset: DataFrame) -> DataFrame:
        local = self.to_local()
        text = local.classes_.dtype.kind in "USO"
        kind = StructType(
            [
                StructField("label", StringType() if text else DoubleType()),
                StructField("scores", array_of_doubles()),
            ]
        )
        found = sf.pandas_udf(predictor(local, text), kind)(self._features(dataset))
        name = f"widemargin_{uuid.uuid4().hex}"
        out = dataset.withColumn(name, found)
        out = out.withColumn(self._col("prediction_col"), sf.col(f"{name}.label"))
        out = out.withColumn(self._col("raw_prediction_col"), sf.col(f"{name}.scores"))
        return out.drop(name)

    def write(self) -> MLWriter:
        """What saves it.

        Returns
        -------
        writer : pyspark.ml.util.MLWriter
            With `save`.
        """
        return ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """What loads it.

        Returns
        -------
        reader : pyspark.ml.util.MLReader
            With `load`.
        """
        return ModelReader()


class ModelWriter(MLWriter):
    """Saves a model: its columns, and the bytes of its model file."""

    def __init__(self, instance: SparkMarginModel) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        """Write it to this folder.

        Parameters
        ----------
        path : str
            The folder.
        """
        local = self.instance.to_local()
        classes = [value.item() if isinstance(value, np.generic) else value for value in local.classes_]
        model = base64.b64encode(local._model.to_bytes()).decode()
        extra = {"model": model, "classes": classes, "names": list(getattr(local, "feature_names_in_", [])) or None}
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession, extraMetadata=extra)


class ModelReader(MLReader[Any]):
    """Loads a model."""

    def load(self, path: str) -> SparkMarginModel:
        """Read it from this folder.

        Parameters
        ----------
        path : str
            The folder.

        Returns
        -------
        model : SparkMarginModel
            The model.
        """
        import json

        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        core = _widemargin.Model(base64.b64decode(metadata["model"]))
        info = json.loads(core.info())
        local = unfitted(info)
        local._model, local.n_features_in_ = core, info["features"]
        if metadata["names"]:
            local.feature_names_in_ = np.asarray(metadata["names"], dtype=object)
        local._take_over(info, info["labels"], np.asarray(metadata["classes"]))
        model = SparkMarginModel._of(local)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def array_of_doubles() -> Any:
    """Spark's type of an array of numbers."""
    from pyspark.sql.types import ArrayType

    return ArrayType(DoubleType())


Batches = Iterator["pa.RecordBatch"]


def packer(block: int) -> Callable[[Batches], Batches]:
    """What makes blocks of a partition's rows, pickled."""

    def pack(batches: Batches) -> Batches:
        partition = TaskContext.get().partitionId()
        waiting: list[pa.RecordBatch] = []
        size = made = 0

        def packed() -> pa.RecordBatch:
            number = partition + made * 2**20
            part = b""
            try:
                table = pa.Table.from_batches(waiting)
                X, y, s = columns_of(table)
                loaded = _parts.load_part(X, y, s, partition)
                loaded.number = number
                about, part = loaded.about(), pickle.dumps(loaded, protocol=5)
            except ValueError as error:
                about = {"number": number, "rows": 0, "wrong": str(error)}
            return pa.RecordBatch.from_arrays(
                [
                    pa.array([number], pa.int64()),
                    pa.array([pickle.dumps(about)], pa.binary()),
                    pa.array([part], pa.binary()),
                ],
                ["number", "about", "part"],
            )

        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= block:
                yield packed()
                waiting, size, made = [], 0, made + 1
        if waiting:
            yield packed()

    return pack


def columns_of(table: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Features, labels and weights of a batch."""
    x = table.column("x").combine_chunks()
    x = x.chunk(0) if isinstance(x, pa.ChunkedArray) else x
    if x.null_count:
        raise ValueError("a row has no features (null)")
    rows = len(x)
    values = x.flatten()
    if values.null_count:
        raise ValueError("X contains null")
    numbers = values.to_numpy(zero_copy_only=False)
    lengths = np.diff(x.offsets.to_numpy())
    if rows and (lengths != lengths[0]).any():
        raise ValueError(f"rows have different numbers of features: {lengths.min()} and {lengths.max()}")
    y, s = table.column("y"), table.column("s")
    if y.null_count or s.null_count:
        raise ValueError("a row has no label or no weight (null)")
    width = int(lengths[0]) if rows else 0
    return numbers.reshape(rows, width), y.to_numpy(), s.to_numpy()


def asker(packed: DataFrame, known: _parts.Known, fit: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """What asks every partition and adds up."""
    blocks = packed.select("number", "part")

    def ask(question: NDArray[np.float64]) -> NDArray[np.float64]:
        numbers = question.tobytes()

        def answers(batches: Batches) -> Batches:
            asked = np.frombuffer(numbers, np.float64)
            for batch in batches:
                for number, part in zip(batch.column("number").to_pylist(), batch.column("part")):
                    loaded = pickle.loads(part.as_buffer())
                    if len(loaded.labels) == 0:
                        continue
                    coded = _parts.coded(loaded, known.classes, known.by_class)
                    sums = _parts.answer([(number, coded)], asked, fit, 1)
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([number], pa.int64()), pa.array([sums.tobytes()], pa.binary())], ["number", "sums"]
                    )

        found = blocks.mapInArrow(answers, "number bigint, sums binary").collect()
        ordered = sorted(found, key=lambda row: row["number"])
        return _parts.add_up([np.frombuffer(row["sums"], np.float64) for row in ordered])

    return ask


def predictor(local: MarginClassifier, text: bool) -> Callable[[Any], Any]:
    """What predicts a series of feature arrays."""

    def predict(features: Any) -> Any:
        import pandas as pd

        X = np.asarray(features.tolist(), dtype=np.float64).reshape(len(features), -1)
        if not len(features):
            return pd.DataFrame({"label": [], "scores": []})
        names = getattr(local, "feature_names_in_", None)
        samples = X if names is None else pd.DataFrame(X, columns=names)
        scores = local.decision_function(samples)
        labels = local.predict(samples)
        scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
        labels = labels.astype(str) if text else labels.astype(np.float64)
        return pd.DataFrame({"label": labels, "scores": list(scores)})

    # Spark reads the types of a function's arguments from its annotations.
    import pandas as pd

    predict.__annotations__ = {"features": pd.Series, "return": pd.DataFrame}
    return predict
