"""The picture shows the margins."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import MarginDistributionDisplay, ODMClassifier


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_two_classes(two_classes):
    X, y = two_classes
    model = ODMClassifier(kernel="linear").fit(X, y)
    display = MarginDistributionDisplay.from_estimator(model, X, y)
    assert np.allclose(display.margins, np.sort(model.margins_), atol=1e-8)
    assert display.cumulative[-1] == 1
    assert [text.get_text() for text in display.legend_.get_texts()] == ["ODMClassifier"]
    assert display.ax_.get_xlabel() == "Margin"
    errors = np.searchsorted(display.margins, 0) / len(y)
    assert errors == pytest.approx(1 - model.score(X, y))
    other = MarginDistributionDisplay.from_estimator(model, X, y, normalize=True, name="unit", ax=display.ax_)
    assert other.ax_ is display.ax_
    assert [text.get_text() for text in other.legend_.get_texts()] == ["ODMClassifier", "unit"]
    assert "norm" in other.ax_.get_xlabel()
    assert np.allclose(other.margins * model.norm_, display.margins)


def test_three_classes_in_a_pipeline(three_classes):
    X, y = three_classes
    model = make_pipeline(StandardScaler(), ODMClassifier()).fit(X, y)
    display = MarginDistributionDisplay.from_estimator(model, X, y, color="k")
    assert np.allclose(display.margins, np.sort(model[-1].margins_), atol=1e-8)
    assert display.line_.get_color() == "k"


def test_predictions():
    display = MarginDistributionDisplay.from_predictions(["a", "b"], [-2.0, -1.0], sample_weight=[3, 1])
    assert display.margins.tolist() == [-1, 2]
    assert display.cumulative.tolist() == [0.25, 1]
    assert display.legend_ is None
    with pytest.raises(ValueError, match="two classes"):
        MarginDistributionDisplay.from_predictions(["a", "b", "c"], [1, 2, 3])
    with pytest.raises(ValueError, match="not among"):
        MarginDistributionDisplay.from_predictions(["a", "c"], [1, 2], classes=["a", "b"])
