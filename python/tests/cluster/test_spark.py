import os
import shutil
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification

from widemargin import ODMClassifier, SVMClassifier

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("there is no Java, which Spark needs", allow_module_level=True)

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

import widemargin.spark as ws


@pytest.fixture(scope="module")
def spark():
    """Spark with two executors, each a process of its own with Python workers of this environment."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def samples(classes=2):
    return make_classification(
        2000, 8, n_informative=5, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=classes
    )


def frame_of(spark, X, y, parts=4):
    rows = [(Vectors.dense(x), label) for x, label in zip(X.tolist(), y.tolist())]
    return spark.createDataFrame(rows, ["features", "label"]).repartition(parts)


def predictions(model, frame):
    """Each row with what is predicted for it, sorted: Spark gives the rows of a shuffled frame in any order."""
    found = model.transform(frame).select("features", "prediction").collect()
    return sorted((tuple(row["features"].toArray()), row["prediction"]) for row in found)


def test_same_optimum_transform_save_load(spark, tmp_path):
    X, y = samples()
    frame = frame_of(spark, X, y)
    model = ws.SparkODMClassifier(features_col="features", label_col="label", C1=40.0, C2=4.0).fit(frame)
    near = ODMClassifier(kernel="linear", tol=1e-8, C1=40.0, C2=4.0).fit(X, y)
    assert model.objective_ == pytest.approx(near.objective_, rel=2e-6)
    assert 0 <= model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(model.to_local().coef_, near.coef_, rtol=5e-3, atol=5e-4)
    found = model.transform(frame).select("features", "prediction", "rawPrediction").toPandas()
    back = np.array([features.toArray() for features in found["features"]])
    np.testing.assert_array_equal(found["prediction"], model.to_local().predict(back))
    scores = np.array(found["rawPrediction"].tolist())
    np.testing.assert_allclose(scores[:, 1], model.to_local().decision_function(back))
    model.write().overwrite().save(str(tmp_path / "model"))
    again = ws.SparkMarginModel.load(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.to_local().coef_, model.to_local().coef_)
    assert predictions(again, frame) == predictions(model, frame)
    estimator = ws.SparkODMClassifier(C1=8.0)
    estimator.save(str(tmp_path / "estimator"))
    read = ws.SparkODMClassifier.load(str(tmp_path / "estimator"))
    assert read.getOrDefault(read.C1) == 8.0


def test_pipeline_columns_weights_and_text_labels(spark, tmp_path):
    X, y = samples(classes=3)
    names = np.array(["ash", "birch", "cedar"])[y]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    columns = [f"x{j}" for j in range(X.shape[1])]
    rows = [(*x, label, weight) for x, label, weight in zip(X.tolist(), names.tolist(), weights.tolist())]
    frame = spark.createDataFrame(rows, [*columns, "kind", "s"]).repartition(3)
    near = SVMClassifier(kernel="linear", tol=1e-8, C=0.05, multi_class="ovr").fit(X, names, sample_weight=weights)
    machine = ws.SparkSVMClassifier(features_col=columns, label_col="kind", weight_col="s", C=0.05)
    model = machine.fit(frame)
    assert model.objective_ == pytest.approx(near.objective_, rel=2e-6)
    found = model.transform(frame).select("prediction", "kind").toPandas()
    assert np.mean(found["prediction"] == found["kind"]) == pytest.approx(near.score(X, names), abs=2e-3)
    assembled = VectorAssembler(inputCols=columns, outputCol="features")
    # Least squares ask few questions, each of which is a job of Spark.
    whole = Pipeline(stages=[assembled, ws.SparkLSSVMClassifier(label_col="kind", weight_col="s")]).fit(frame)
    whole.write().overwrite().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert predictions(again, frame) == predictions(whole, frame)


def test_what_is_wrong_is_named(spark):
    X, y = samples()
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition \d+: X contains NaN"):
        ws.SparkODMClassifier().fit(frame_of(spark, X, y))
    X[7, 2] = 0.0
    with pytest.raises(ValueError, match="1 class"):
        ws.SparkODMClassifier().fit(frame_of(spark, X, np.zeros_like(y)))
    with pytest.raises(TypeError):
        ws.SparkODMClassifier(C3=1.0)
