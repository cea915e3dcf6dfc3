"""Models go between Python and the command line."""

import subprocess

import numpy as np
import pytest
from conftest import ALL, OWN
from sklearn.datasets import dump_svmlight_file

import widemargin
from widemargin import LDMClassifier, ODMClassifier, SVMClassifier, _widemargin


def run(command, *arguments):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def data_file(two_classes, tmp_path):
    path = tmp_path / "data.csv"
    lines = [",".join([str(label), *map(repr, map(float, row))]) for row, label in zip(*two_classes)]
    path.write_text("\n".join(lines) + "\n")
    return path


COMMANDS = [
    ("odm", ODMClassifier(kernel="linear"), ["--kernel", "linear"]),
    ("odm", ODMClassifier(C1=10, C2=3, D=0.1), ["--kernel", "rbf", "--c1", "10", "--c2", "3", "--d", "0.1"]),
    ("ldm", LDMClassifier(kernel="poly", degree=2, coef0=1.0), "--kernel poly --degree 2 --coef0 1".split()),
    ("svm", SVMClassifier(C=0.3, kernel="laplacian", gamma=0.1), "--kernel laplacian --gamma 0.1 --c 0.3".split()),
    ("svm", SVMClassifier(kernel="linear", intercept_scaling=2.0), "--kernel linear --bias 2".split()),
]


@pytest.mark.parametrize(("machine", "model", "options"), COMMANDS)
def test_same_bytes(command, machine, model, options, two_classes, tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    # Like an array, LIBSVM text has no columns that a model could know.
    lines = [
        " ".join([str(label), *(f"{j}:{float(value)!r}" for j, value in enumerate(row, 1))])
        for row, label in zip(*two_classes)
    ]
    data_file = tmp_path / "data.libsvm"
    data_file.write_text("\n".join(lines) + "\n")
    held = ["--precision", "f64", "--storage", "dense"]
    run(command, "train", data_file, theirs, "--machine", machine, *held, *options)
    model.fit(*two_classes).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_command_reads_ours(command, two_classes, tmp_path):
    X, y = two_classes
    model = ODMClassifier().fit(X, y)
    model.save(tmp_path / "model")
    dump_svmlight_file(X, y, str(tmp_path / "data"), zero_based=False)
    run(command, "predict", tmp_path / "data", tmp_path / "model", tmp_path / "labels")
    predicted = np.loadtxt(tmp_path / "labels")
    assert np.array_equal(predicted, model.predict(X))


@pytest.mark.parametrize("scale", ["none", "minmax", "maxabs", "standard"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_we_read_theirs(command, scale, kernel, two_classes, data_file, tmp_path):
    path = tmp_path / "model"
    run(command, "train", data_file, path, "--label", "1", "--kernel", kernel, "--scale", scale)
    model = widemargin.load(path)
    X, y = two_classes
    assert isinstance(model, ODMClassifier)
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) > 0.95
    if kernel == "linear":
        assert np.allclose(X @ model.coef_[0] + model.intercept_, model.decision_function(X))


@pytest.mark.parametrize("cls", ALL)
def test_there_and_back(cls, two_classes, tmp_path):
    X, y = two_classes
    model = cls(gamma=0.02, intercept_scaling=1.5).fit(X, y)
    model.save(tmp_path / "model")
    again = cls.load(tmp_path / "model")
    assert type(again) is cls
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.predict(X), model.predict(X))
    # What followed from the samples is a number in the file.
    given, expected = again.get_params(), {**model.get_params(), **model.parameters_}
    assert again.parameters_ == model.parameters_
    if expected["kernel"] == "linear":
        given["gamma"] = expected["gamma"]
    assert given == expected
    assert (again.objective_, again.n_iter_) == (model.objective_, model.n_iter_)


@pytest.mark.parametrize("multi_class", ["mcodm", "ovr", "ovo", "ecoc"])
def test_three_classes_there_and_back(multi_class, three_classes, tmp_path):
    X, y = three_classes
    model = ODMClassifier(multi_class=multi_class).fit(X, y)
    model.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.multi_class == multi_class
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("names", [[-1, 1], [1.0, 2.0], ["no", "yes"], [False, True]])
def test_labels_there_and_back(names, two_classes, tmp_path):
    X, y = two_classes
    y = np.array(names)[y]
    model = ODMClassifier().fit(X, y)
    model.save(tmp_path / "model")
    again = widemargin.load(tmp_path / "model")
    assert again.predict(X).dtype.kind == y.dtype.kind
    assert np.array_equal(again.predict(X), model.predict(X))


def test_numbers_as_text_keep_their_order(two_classes):
    X, y = two_classes
    model = ODMClassifier().fit(X, np.array(["10", "9"])[y])
    assert model.classes_.tolist() == ["10", "9"]
    assert np.array_equal(model.predict(X) == "9", model.decision_function(X) > 0)


def test_errors(two_classes, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        widemargin.load(tmp_path / "nothing")
    assert caught.value.filename == str(tmp_path / "nothing")
    (tmp_path / "foreign").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="not a usable model"):
        widemargin.load(tmp_path / "foreign")
    with pytest.raises(ValueError, match="no widemargin header"):
        _widemargin.Model(b"\x08\0\0\0\0\0\0\0{      }")
    model = OWN[0]().fit(*two_classes)
    with pytest.raises(OSError, match="such file"):
        model.save(tmp_path / "no" / "folder")
    model.save(tmp_path / "odm")
    with pytest.raises(ValueError, match="a model of ODMClassifier, not of SVMClassifier"):
        SVMClassifier.load(tmp_path / "odm")
