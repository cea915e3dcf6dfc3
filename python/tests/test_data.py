"""However the samples are held, the model is the same, and nothing is copied that need not be."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import OWN
from scipy import sparse

from widemargin import LDMClassifier, ODMClassifier, SVMClassifier, tune
from widemargin._base import encode

KERNELS = ["linear", "rbf", "laplacian"]


@pytest.fixture(scope="module")
def thin():
    """Sparse samples, as a dense array."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) * (rng.random((200, 12)) < 0.3)
    return X, (X @ rng.normal(size=12) + 0.1 * rng.normal(size=200) > 0).astype(int)


@pytest.mark.parametrize("cls", OWN)
@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_is_sparse(cls, kernel, thin):
    X, y = thin
    dense = cls(kernel=kernel, tol=1e-10).fit(X, y)
    expected = dense.decision_function(X)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        model = cls(kernel=kernel, tol=1e-10).fit(form(X), y)
        assert np.allclose(model.decision_function(form(X)), expected, atol=1e-6)
        assert np.allclose(dense.decision_function(form(X)), expected, atol=1e-9)


def test_indices_of_either_width(thin):
    X, y = thin
    narrow = sparse.csr_array(X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [ODMClassifier().fit(rows, y) for rows in (narrow, wide)]
    assert np.array_equal(*[model.decision_function(narrow) for model in models])
    wide.indices[3] = -1
    with pytest.raises(ValueError, match="indices"):
        ODMClassifier().fit(wide, y)


def test_unordered_and_repeated_entries(thin):
    X, y = thin
    tidy = sparse.csr_array(X)
    rows = np.repeat(np.arange(200), np.diff(tidy.indptr))
    order = np.lexsort((-tidy.indices, rows))
    twice = [np.repeat(a[order], 2) for a in (tidy.data / 2, tidy.indices)]
    untidy = sparse.csr_array((*twice, tidy.indptr * 2), shape=X.shape)
    before = untidy.data.copy()
    expected = ODMClassifier().fit(tidy, y).decision_function(tidy)
    assert np.allclose(ODMClassifier().fit(untidy, y).decision_function(untidy), expected)
    assert np.array_equal(untidy.data, before)


@pytest.mark.parametrize("kernel", KERNELS)
def test_single_precision(kernel, two_classes):
    X, y = two_classes
    double = ODMClassifier(kernel=kernel).fit(X, y)
    single = ODMClassifier(kernel=kernel).fit(X.astype(np.float32), y)
    difference = single.decision_function(X.astype(np.float32)) - double.decision_function(X)
    assert np.abs(difference).max() < 1e-2
    if kernel != "linear":
        assert single.support_vectors_.dtype == np.float32


def test_orders_and_strides(two_classes):
    X, y = two_classes
    expected = ODMClassifier().fit(X, y).decision_function(X)
    spread = np.zeros((2 * len(y), X.shape[1]))[::2]
    spread[:] = X
    for same in (np.asfortranarray(X), spread, X.tolist(), X.astype(">f8")):
        assert np.array_equal(ODMClassifier().fit(same, y).decision_function(same), expected)


def test_read_only_and_misaligned(two_classes):
    X, y = two_classes
    expected = ODMClassifier().fit(X, y).decision_function(X)
    shifted = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    assert not shifted.flags.writeable
    assert not shifted.flags.aligned
    assert np.array_equal(ODMClassifier().fit(shifted, y).decision_function(shifted), expected)


@pytest.mark.parametrize("cls", OWN)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weight_is_repetition(cls, kernel, two_classes):
    X, y = two_classes[0][:150], two_classes[1][:150]
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    model = cls(kernel=kernel, gamma=0.05, tol=1e-10)
    weighted = model.fit(X, y, weights).decision_function(X)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).decision_function(X)
    assert np.allclose(weighted, repeated, atol=1e-5)


def test_support_counts_left_out_rows(two_classes):
    X, y = two_classes
    weights = np.ones(len(y))
    weights[::3] = 0
    model = LDMClassifier().fit(X, y, weights)
    assert np.array_equal(model.support_vectors_, X[model.support_])
    assert len(model.margins_) == np.count_nonzero(weights)


def test_class_without_weight(three_classes):
    X, y = three_classes
    model = ODMClassifier().fit(X, y, (y != "virginica").astype(float))
    assert list(model.classes_) == ["setosa", "versicolor"]
    assert set(model.predict(X)) <= {"setosa", "versicolor"}


MEMORY = """
import resource, sys
import numpy as np
from scipy import sparse
from widemargin import ODMClassifier

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

rng = np.random.default_rng(0)
dtype, form = sys.argv[1:]
X = rng.normal(size=(1000, 50))
ODMClassifier(kernel="linear").fit(X, X[:, 0] > 0).predict(X)
X = rng.random((150_000, 100), dtype=np.float32) - np.float32(0.5)
X = X.astype(dtype, copy=False)
if form == "sparse":
    X = sparse.csr_array(X)
    X.has_canonical_format
    size = (X.data.nbytes + X.indices.nbytes) >> 20
else:
    size = X.nbytes >> 20
y = X[:, [0]].sum(axis=1) > 0
y = np.asarray(y).ravel()
before = peak()
model = ODMClassifier(kernel="linear", n_jobs=1, tol=0.1).fit(X, y)
model.predict(X)
print(size, peak() - before)
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_no_copy(dtype, form):
    answer = subprocess.run([sys.executable, "-c", MEMORY, dtype, form], capture_output=True, text=True, check=True)
    size, grown = map(int, answer.stdout.split())
    assert grown < size / 2, f"{size} MB of samples took {grown} MB more"


@pytest.mark.parametrize(
    "labels",
    [
        [3, -2, 3, 7],
        [3.0, -2.0, 3.0, 7.0],
        np.array([200, 5, 5, 0], dtype=np.uint8),
        np.array([-100, 100, 100, 27], dtype=np.int8),
        [10**15, 0, 5, 0],
        [True, False, True, False],
        ["b", "aa", "b", "c"],
        [f"{i % 20}" for i in range(60)],
        np.array(["b", "aa", "b", 1.5], dtype=object).astype(str).astype(object),
        [b"x", b"y", b"x", b"x"],
    ],
)
def test_labels_are_coded_as_numpy_would(labels):
    labels = np.array(labels)
    classes, codes = encode(labels)
    expected_classes, expected_codes = np.unique(labels, return_inverse=True)
    assert classes.dtype == expected_classes.dtype
    assert np.array_equal(classes, expected_classes)
    assert np.array_equal(codes, expected_codes)
    assert codes.dtype == np.uint32


def test_numbers_that_are_no_labels():
    with pytest.raises(ValueError, match="continuous"):
        ODMClassifier().fit(np.eye(4), [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 20001, 33333, -1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_no_number_is_found(value, place, dtype):
    X = np.random.default_rng(0).normal(size=(4000, 12)).astype(dtype)
    y = X[:, 0] > 0
    model = ODMClassifier(kernel="linear").fit(X, y)
    X.flat[place] = value
    for form in (np.array, sparse.csr_array):
        with pytest.raises(ValueError, match="Input X contains"):
            ODMClassifier(kernel="linear").fit(form(X), y)
        with pytest.raises(ValueError, match="Input X contains"):
            model.predict(form(X))


LABELS = {
    "narrow": np.array([-100, 45, 100], np.int8),
    "short": np.array([-30000, 0, 30000], np.int16),
    "int32": np.array([-(2**31), 5, 2**31 - 1], np.int32),
    "int64": np.array([-(2**63), 2**53 + 1, 2**63 - 1], np.int64),
    "near": np.array([2**63 - 3, 2**63 - 2, 2**63 - 1], np.int64),
    "uint8": np.array([0, 128, 255], np.uint8),
    "uint16": np.array([1, 2, 65535], np.uint16),
    "uint32": np.array([7, 8, 2**32 - 1], np.uint32),
    "uint64": np.array([0, 1, 2], np.uint64),
    "large": np.array([2**63 + 1, 2**63 + 2, 2**64 - 1], np.uint64),
    "float64": np.array([-1.0, 0.0, 3.0]),
    "float32": np.array([1.0, 2.0, 1e10], np.float32),
    "far": np.array([-1e15, 1.0, 1e15]),
    "text": np.array(["a", "bb", "ccc"]),
    "numerals": np.array(["01", "1", "1.0"]),
    "objects": np.array(["x", "yy", "zzz"], dtype=object),
    "whole objects": np.array([3, 5, 10**30], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_as_they_went_in(name, three_classes):
    labels = LABELS[name]
    X, names = three_classes
    codes = np.unique(names, return_inverse=True)[1]
    for some in (labels, labels[:2]):
        rows = codes < len(some)
        y = some[codes[rows]]
        for model in (ODMClassifier(kernel="linear"), SVMClassifier()):
            model.fit(X[rows], y)
            assert model.classes_.dtype == labels.dtype
            assert list(model.classes_) == sorted(some)
            predicted = model.predict(X[rows])
            assert predicted.dtype == labels.dtype
            assert (predicted == y).mean() > 0.9
        tuned = tune(SVMClassifier(kernel="linear"), X[rows], y, grid={"C": [1, 10]})
        assert tuned.search_.results["error"].min() < 0.1
        assert tuned.classes_.dtype == labels.dtype


def test_truth_values_as_labels(two_classes):
    X, y = two_classes
    predicted = ODMClassifier().fit(X, y == 1).predict(X)
    assert predicted.dtype == np.bool_
    assert (predicted == (y == 1)).mean() > 0.9


@pytest.mark.parametrize("weight", [1e-16, 1e-300, 1e16, 1e100])
def test_tiny_and_huge_weights_are_fitted_or_refused(weight, three_classes):
    X, y = three_classes
    for model in (ODMClassifier(), SVMClassifier(), ODMClassifier(kernel="linear")):
        with contextlib.suppress(ValueError, RuntimeError):
            model.fit(X, y, sample_weight=np.full(len(y), weight))
            assert np.isfinite(model.decision_function(X)).all()
