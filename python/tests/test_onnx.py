"""Exported models say what ours say."""

import numpy as np
import pytest
from conftest import OWN
from scipy import sparse

import widemargin
from widemargin import MSVMAvClassifier, ODMClassifier, SVMClassifier, to_onnx

runtime = pytest.importorskip("onnxruntime")
KERNELS = ["linear", "rbf", "poly", "sigmoid", "laplacian"]


def same(model, X, within=1e-11):
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    labels, scores = session.run(["label", "scores"], {"X": X})
    expected = model.decision_function(X)
    assert np.abs(scores - expected).max() <= within * np.abs(expected).max()
    assert np.array_equal(labels, model.predict(X))


@pytest.mark.parametrize("cls", OWN)
@pytest.mark.parametrize("kernel", KERNELS)
def test_two_classes(cls, kernel, two_classes):
    X, y = two_classes
    if cls is MSVMAvClassifier and kernel == "sigmoid":
        pytest.skip("MSVMAv needs a positive semi-definite kernel, and says so")
    # A kernel that is not positive semidefinite bears no large costs.
    own = {"C1": 256} if cls is ODMClassifier else {}
    same(cls(kernel=kernel, gamma=0.01, **own).fit(X, y), X)


@pytest.mark.parametrize("multi_class", ["mcodm", "ovr", "ovo", "ecoc"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_three_classes(multi_class, kernel, three_classes):
    X, y = three_classes
    same(ODMClassifier(kernel=kernel, gamma=0.01, multi_class=multi_class).fit(X, y), X)


@pytest.mark.parametrize("average", ["ranks", "values"])
def test_averages(average, two_classes, three_classes):
    """Sums over several kernels, some of which see ranks."""
    for X, y in (two_classes, three_classes):
        X = np.column_stack([np.exp(0.1 * X[:, :4]), X[:, 0] > np.median(X[:, 0]), np.ones(len(X))])
        one_by_one = widemargin.ODMClassifierCV(average=average).fit(X, y)
        by_folds = widemargin.tune(SVMClassifier(), X, y, average=average)
        for model in (one_by_one, by_folds):
            assert average == "values" or any(k.get("on_ranks") for k in model.average_["kernels"])
            # A rank between two values that lie close multiplies what rounding did to their difference.
            same(model, np.vstack([X, X * 1.7 - 0.3]), within=1e-9)


def test_ranks(three_classes):
    X, y = three_classes
    same(ODMClassifier(kernel="rbf", scale="rank").fit(X, y), np.vstack([X, X * 1.7 - 0.3]), within=1e-9)


def test_isotonic_probabilities(two_classes, three_classes):
    for X, y in (two_classes, three_classes):
        model = ODMClassifier(kernel="rbf", probability="isotonic").fit(X, y)
        session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
        (probabilities,) = session.run(["probabilities"], {"X": 1.3 * X})
        assert np.abs(probabilities - model.predict_proba(1.3 * X)).max() < 1e-7


@pytest.mark.parametrize("names", [[-1, 1], [1.0, 2.0], ["no", "yes"], [False, True]])
def test_labels(names, two_classes):
    X, y = two_classes
    same(ODMClassifier().fit(X, np.array(names)[y]), X)


@pytest.mark.parametrize("kernel", KERNELS[:2])
def test_probabilities(kernel, two_classes, three_classes):
    for X, y in (two_classes, three_classes):
        model = ODMClassifier(kernel=kernel, probability=True).fit(X, y)
        same(model, X)
        session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
        (probabilities,) = session.run(["probabilities"], {"X": X})
        assert np.abs(probabilities - model.predict_proba(X)).max() < 1e-9


def test_input_in_single_precision(two_classes):
    X, y = two_classes
    X = X.astype(np.float32)
    model = ODMClassifier().fit(X, y)
    bytes = to_onnx(model, np.float32).SerializeToString()
    session = runtime.InferenceSession(bytes, providers=["CPUExecutionProvider"])
    labels, scores = session.run(["label", "scores"], {"X": X})
    assert np.abs(scores - model.decision_function(X)).max() < 1e-9
    assert np.array_equal(labels, model.predict(X))
    with pytest.raises(ValueError, match="dtype = int64: expected float64 or float32"):
        to_onnx(model, np.int64)


def test_sparse_and_single(two_classes):
    X, y = two_classes
    same(ODMClassifier().fit(sparse.csr_array(X), y), X)
    same(ODMClassifier().fit(X.astype(np.float32), y), X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scaled(command, kernel, two_classes, tmp_path):
    import subprocess

    X, y = two_classes
    np.savetxt(tmp_path / "data.csv", np.column_stack([y, X]), delimiter=",")
    options = ["--label", "1", "--scale", "standard", "--kernel", kernel]
    subprocess.run([command, "train", tmp_path / "data.csv", tmp_path / "model", *options], check=True)
    same(widemargin.load(tmp_path / "model"), X)
