"""A picture of a margin distribution."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, column_or_1d


class MarginDistributionDisplay:
    """Cumulative distribution of margins.

    The margin of a sample is how clearly it is on the right side: its score times ±1, or with more than two classes
    the score of its own class minus the best other one. Samples left of zero are errors; the steeper the curve, the
    smaller the variance.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
        The margins, ascending.
    cumulative : ndarray of shape (n_samples,)
        Share of the samples with a margin up to this one.
    name : str, default=None
        What the curve is called.
    normalized : bool, default=False
        Whether the margins are divided by the norm of the weights.

    Attributes
    ----------
    line_ : matplotlib Artist
        The curve.
    legend_ : matplotlib Legend or None
        The names of the curves, if this one has a name.
    zero_line_ : matplotlib Artist
        The line between errors and successes.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure around it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import MarginDistributionDisplay, ODMClassifier, SVMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> display = MarginDistributionDisplay.from_estimator(ODMClassifier().fit(X, y), X, y)
    >>> other = MarginDistributionDisplay.from_estimator(SVMClassifier().fit(X, y), X, y, ax=display.ax_)
    >>> [text.get_text() for text in other.legend_.get_texts()]
    ['ODMClassifier', 'SVMClassifier']
    """

    def __init__(self, *, margins, cumulative, name=None, normalized=False):
        self.margins = margins
        self.cumulative = cumulative
        self.name = name
        self.normalized = normalized

    @classmethod
    def from_estimator(cls, estimator, X, y, *, sample_weight=None, normalize=False, name=None, ax=None, **kwargs):
        """Draw the margins of samples under a fitted classifier.

        Parameters
        ----------
        estimator : object
            A fitted classifier with a :term:`decision_function`, or a pipeline that ends in one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        normalize : bool, default=False
            Whether to divide by the norm of the weights (`norm_`), so that curves of different machines compare.
        name : str, default=None
            What the curve is called; ``None`` takes the estimator's class.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **kwargs : dict
            For matplotlib's `step`.

        Returns
        -------
        display : MarginDistributionDisplay
            The display.
        """
        check_is_fitted(estimator)
        last = estimator[-1] if hasattr(estimator, "named_steps") else estimator
        scores = estimator.decision_function(X)
        if normalize:
            scores = scores / last.norm_
        name = type(last).__name__ if name is None else name
        display = cls._of(y, scores, sample_weight, estimator.classes_, name, normalize)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, y_true, y_score, *, sample_weight=None, classes=None, name=None, ax=None, **kwargs):
        """Draw the margins that scores mean.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels.
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            The scores, as :term:`decision_function` gives them.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the samples.
        classes : array-like of shape (n_classes,), default=None
            The labels in the order of the scores; ``None`` takes those of `y_true`, ascending.
        name : str, default=None
            What the curve is called.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **kwargs : dict
            For matplotlib's `step`.

        Returns
        -------
        display : MarginDistributionDisplay
            The display.
        """
        return cls._of(y_true, y_score, sample_weight, classes, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, y_true, y_score, sample_weight, classes, name, normalized=False):
        """The display of these scores, not yet drawn."""
        y_true, y_score = column_or_1d(y_true), np.asarray(y_score, dtype=np.float64)
        check_consistent_length(y_true, y_score)
        margins = margins_of(y_true, y_score, np.unique(y_true) if classes is None else np.asarray(classes))
        order = np.argsort(margins, kind="stable")
        weights = _check_sample_weight(sample_weight, y_score.reshape(len(y_score), -1), dtype=np.float64)[order]
        cumulative = np.cumsum(weights) / weights.sum()
        return cls(margins=margins[order], cumulative=cumulative, name=name, normalized=normalized)

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        name : str, default=None
            What the curve is called; ``None`` takes the display's name.
        **kwargs : dict
            For matplotlib's `step`.

        Returns
        -------
        display : MarginDistributionDisplay
            The display itself.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        name = self.name if name is None else name
        (self.line_,) = ax.step(self.margins, self.cumulative, **{"where": "post", "label": name, **kwargs})
        # A cumulative curve leaves this corner free.
        self.legend_ = None if name is None else ax.legend(loc="lower right")
        self.zero_line_ = ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
        margin = "Margin / norm of the weights" if self.normalized else "Margin"
        ax.set(xlabel=margin, ylabel="Share of samples with at most this margin", ylim=(-0.02, 1.02))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def margins_of(y_true, y_score, classes):
    """y f(x), or the score of the own class minus the best other one."""
    codes = np.searchsorted(classes, y_true)
    if not np.array_equal(classes[np.minimum(codes, len(classes) - 1)], y_true):
        raise ValueError("y_true has labels that are not among the classes")
    if y_score.ndim == 1:
        if len(classes) != 2:
            raise ValueError(f"one score a sample is for two classes, not {len(classes)}")
        return np.where(codes == 1, y_score, -y_score)
    if y_score.shape[1] != len(classes):
        raise ValueError(f"{y_score.shape[1]} scores a sample do not fit {len(classes)} classes")
    rows = np.arange(len(codes))
    rivals = y_score.copy()
    rivals[rows, codes] = -np.inf
    return y_score[rows, codes] - rivals.max(axis=1)
