"""Models as ONNX graphs of plain operators in double precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ._base import MarginClassifier

if TYPE_CHECKING:
    from onnx import ModelProto


def to_onnx(estimator: MarginClassifier, dtype: DTypeLike = np.float64) -> ModelProto:
    """Convert a fitted estimator to an ONNX model.

    The graph takes ``X`` (one sample a row) and gives ``label`` and ``scores``, which are what :term:`predict` and
    :term:`decision_function` give, and with ``probability=True`` also ``probabilities``, as :term:`predict_proba`. It
    has plain operators only (ir_version 8, opset 13), all in double precision. Needs the package ``onnx``.

    Parameters
    ----------
    estimator : object
        A fitted estimator of this package.
    dtype : dtype, default=numpy.float64
        Type of the input: float64 or float32.

    Returns
    -------
    model : onnx.ModelProto
        The model; ``model.SerializeToString()`` are the bytes of its file.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import ODMClassifier, to_onnx
    >>> X, y = make_classification(random_state=0)
    >>> [output.name for output in to_onnx(ODMClassifier().fit(X, y)).graph.output]
    ['label', 'scores']
    """
    check_is_fitted(estimator)
    estimator._refuse_gram("to_onnx converts")
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype = {dtype}: expected float64 or float32")
    graph = Graph()
    rows = "X" if dtype == np.float64 else graph.add("Cast", "X", to=graph.onnx.TensorProto.DOUBLE)
    columns = score_columns(graph, rows, estimator._model)
    decide(graph, columns, estimator)
    if estimator.calibration_ is not None:
        add_probabilities(graph, estimator)
    return graph.model(estimator, dtype)


class Graph:
    """A graph in the making: operators and constants, each under its own name."""

    def __init__(self):
        import onnx

        self.onnx = onnx
        self.nodes = []
        self.constants = []

    def add(self, operator, *inputs, name=None, **attributes):
        """Append an operator; returns the name of its output. Inputs that are arrays become constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        name = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def constant(self, value):
        """Keep an array; returns its name."""
        name = f"constant_{len(self.constants)}"
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            array = array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, estimator, dtype):
        """The finished model, with an input of this type."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        classes = estimator.classes_
        label = types.STRING if classes.dtype.kind in "UO" else types.DOUBLE if is_float(classes) else types.INT64
        shape = ["rows"] if len(classes) == 2 else ["rows", len(classes)]
        given = types.DOUBLE if dtype == np.float64 else types.FLOAT
        outputs = [("label", label, ["rows"]), ("scores", types.DOUBLE, shape)]
        if estimator.calibration_ is not None:
            outputs.append(("probabilities", types.DOUBLE, ["rows", len(classes)]))
        graph = helper.make_graph(
            self.nodes,
            type(estimator).__name__,
            [helper.make_tensor_value_info("X", given, ["rows", estimator.n_features_in_])],
            [helper.make_tensor_value_info(*output) for output in outputs],
            self.constants,
        )
        opset = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, ir_version=8, opset_imports=opset, producer_name="widemargin")
        self.onnx.checker.check_model(model)
        return model


def is_float(array):
    """Whether an array holds floating-point numbers."""
    return array.dtype.kind == "f"


def score_columns(graph, rows, model):
    """The raw score functions."""
    if json.loads(model.info())["scaling"] == "rank":
        raise ValueError('scale = rank: ONNX has no operator that ranks; use scale="standard" or "minmax" instead')
    scaling = model.scaling()
    if scaling is not None:
        rows = graph.add("Mul", graph.add("Sub", rows, scaling[0]), scaling[1])
    weights = model.weights()
    if weights is not None:
        products = graph.add("MatMul", rows, weights.T)
    else:
        kernel = json.loads(model.info())["kernel"]
        products = graph.add("MatMul", kernel_values(graph, rows, kernel, support(model)), model.coefficients().T)
    return graph.add("Add", products, model.intercepts())


def support(model):
    """The support vectors as a dense array."""
    rows = model.support()
    if isinstance(rows, tuple):
        cols, offsets, columns, values = rows
        shape = (len(offsets) - 1, cols)
        rows = sparse.csr_array((values, columns, offsets.astype(np.int64)), shape=shape).toarray()
    return rows.astype(np.float64)


def kernel_values(graph, rows, kernel, support):
    """k(x, z) for every sample x and support vector z."""
    kind = kernel["kind"]
    if kind == "laplacian":
        return laplacian(graph, rows, kernel["gamma"], support)
    if kind == "rbf":
        return rbf(graph, rows, kernel["gamma"], support)
    if kind == "linear":
        return graph.add("MatMul", rows, support.T)
    # A factor stands in the matrix: onnxruntime would fuse one behind a product into it, in single precision.
    shifted = graph.add("Add", graph.add("MatMul", rows, kernel["gamma"] * support.T), kernel["coef0"])
    return graph.add("Tanh", shifted) if kind == "sigmoid" else graph.add("Pow", shifted, float(kernel["degree"]))


def rbf(graph, rows, gamma, support):
    """exp(-γ max(0, |x|² + |z|² - 2 x·z))"""
    norms = graph.add("ReduceSum", graph.add("Mul", rows, rows), np.array([1]), keepdims=1)
    sums = graph.add("Add", norms, (support**2).sum(axis=1))
    distances = graph.add("Add", sums, graph.add("MatMul", rows, -2.0 * support.T))
    return graph.add("Exp", graph.add("Mul", graph.add("Max", distances, 0.0), -gamma))


def laplacian(graph, rows, gamma, support):
    """exp(-γ |x - z|₁)"""
    differences = graph.add("Sub", graph.add("Unsqueeze", rows, np.array([1])), support[None])
    distances = graph.add("ReduceSum", graph.add("Abs", differences), np.array([2]), keepdims=0)
    return graph.add("Exp", graph.add("Mul", distances, -gamma))


def decide(graph, columns, estimator):
    """From raw scores to the outputs `scores` and `label`."""
    rule = json.loads(estimator._model.info())["decision"]["rule"]
    k = len(estimator.classes_)
    if k == 2:
        scores = graph.add("MatMul", columns, two_class_weights(rule), name="scores")
        code = graph.add("Cast", graph.add("Greater", scores, 0.0), to=graph.onnx.TensorProto.INT64)
    else:
        scores = {"largest": largest, "pairs": votes, "codes": code_words}[rule](graph, columns, k)
        code = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", label_values(estimator.classes_), code, name="label")


def add_probabilities(graph, estimator):
    """The softmax of the slope times the scores; of two classes, of the score and 0."""
    scores = graph.add("Mul", "scores", estimator.calibration_["slope"])
    if len(estimator.classes_) == 2:
        column = graph.add("Unsqueeze", scores, np.array([1]))
        scores = graph.add("MatMul", column, np.array([[0.0, 1.0]]))
    graph.add("Softmax", scores, name="probabilities", axis=1)


def two_class_weights(rule):
    """What makes one score of the columns of a two-class model."""
    return {"sign": np.array([1.0]), "largest": np.array([-1.0, 1.0]), "pairs": np.array([1.0])}[rule]


def label_values(classes):
    """The labels in a type ONNX has."""
    if classes.dtype.kind in "UO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype(np.float64 if is_float(classes) else np.int64)


def largest(graph, columns, k):
    """One column a class: they are the scores."""
    return graph.add("Identity", columns, name="scores")


def positive(graph, columns):
    """1 where a column is above zero, else 0."""
    return graph.add("Cast", graph.add("Greater", columns, 0.0), to=graph.onnx.TensorProto.DOUBLE)


def votes(graph, columns, k):
    """One column a pair: votes, and between equal votes the confidences c / (3 (|c| + 1))."""
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    low, high = np.zeros((len(pairs), k)), np.zeros((len(pairs), k))
    for column, (a, b) in enumerate(pairs):
        low[column, a] = high[column, b] = 1.0
    count = graph.add("Add", graph.add("MatMul", positive(graph, columns), high - low), low.sum(axis=0))
    confidence = graph.add("MatMul", columns, high - low)
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", confidence), 1.0), 3.0)
    return graph.add("Add", count, graph.add("Div", confidence, size), name="scores")


def code_words(graph, columns, k):
    """One column a bit: minus the number of bits that differ from the class's code word."""
    bits = [[c == 0 or column >> (k - 1 - c) & 1 for c in range(k)] for column in range(2 ** (k - 1) - 1)]
    code = np.array(bits, dtype=np.float64)
    matches = graph.add("MatMul", positive(graph, columns), 2.0 * code - 1.0)
    return graph.add("Sub", matches, code.sum(axis=0), name="scores")
