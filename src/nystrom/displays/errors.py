"""Displays of errors and scores: error path, spectrum of K̃, scores over alpha,
coverage of predictive intervals.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import erf
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._validation import check_float, import_optional
from ..landmarks import Landmarks, check_landmarks
from .rows import (
    BaseDisplay,
    BaseRowsDisplay,
    approximation_and_ridge,
    fitted_landmarks,
)


class ErrorPathDisplay(BaseDisplay):
    """Relative trace error of the first landmark, the first two, and so on.

    Parameters
    ----------
    errors : ndarray of shape (n_landmarks,)
        Relative trace error of every number of landmarks.
    goal : float, default=None
        Target error: the smallest number of landmarks that reaches it is marked.
    name : str, default=None
        Label for the legend.

    Attributes
    ----------
    n_landmarks : int or None
        Smallest number of landmarks that reaches the goal; None without a goal, or if
        it is not reached.
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    line_ : matplotlib Line2D
        Line of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import Nystroem
    >>> from nystrom.displays import ErrorPathDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> features = Nystroem(n_components=60, random_state=0)
    >>> _ = features.fit_transform(X)
    >>> display = ErrorPathDisplay.from_estimator(features, goal=0.01)
    >>> display.n_landmarks < 60
    True
    """

    def __init__(
        self, errors: np.ndarray, *, goal: float | None = None, name: str | None = None
    ) -> None:
        self.errors = np.asarray(errors, dtype=np.float64)
        self.goal = goal
        self.name = name
        self.n_landmarks: int | None = None
        if goal is not None:
            check_float(goal, "goal", minimum=0.0)
            reached = np.flatnonzero(self.errors <= goal)
            self.n_landmarks = int(reached[0]) + 1 if len(reached) else None

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Draw the error path of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `landmarks_`, or a pipeline that ends with one.
        **options : dict
            Passed to `from_landmarks`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        return cls.from_landmarks(fitted_landmarks(estimator), **options)

    @classmethod
    def from_landmarks(
        cls,
        landmarks: Landmarks,
        *,
        goal: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the error path of landmarks.

        A pass over all rows must have computed the path: that of a fit by
        `KernelRidge`, a ridge classifier, `KernelPCA` or `KernelCCA`, that of
        `Nystroem.fit_transform`, or that of a selection with `max_trace_error`.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        goal : float, default=None
            Target error to mark.
        name : str, default=None
            Label for the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        check_landmarks(landmarks)
        path = landmarks.error_path
        if path is None:
            raise ValueError(
                "This fit did not compute the errors for fewer landmarks. Call "
                "fit_transform instead of Nystroem.fit, fit KernelRidge, KernelPCA or "
                "KernelCCA, or select landmarks with max_trace_error=. (Landmarks "
                "without an order have no such errors.)"
            )
        name = landmarks.sampler if name is None else name
        return cls(path, goal=goal, name=name).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw the error path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        sizes = np.arange(1, len(self.errors) + 1)
        # What is 0 has no place on a logarithmic axis.
        shown = np.where(self.errors > 0, self.errors, np.nan)
        (self.line_,) = ax.plot(sizes, shown, **{"label": self.name} | line)
        ax.set(
            xlabel="landmarks",
            ylabel="relative trace error, tr(K − K̃)/tr K",
            yscale="log" if np.any(self.errors > 0) else "linear",
        )
        ax.grid(alpha=0.3)
        if self.goal is not None:
            color, reached = self.line_.get_color(), self.n_landmarks
            text = f"{reached} landmarks" if reached else "not reached"
            dotted = {"color": color, "linestyle": ":", "linewidth": 1}
            ax.axhline(self.goal, label=f"{self.goal:.2g}: {text}", **dotted)
            if reached:
                ax.axvline(reached, **dotted)
        if self.name is not None or self.goal is not None:
            ax.legend()
        return self


class SpectrumDisplay(BaseRowsDisplay):
    """Eigenvalues of K̃ in descending order, with the ridge λ.

    Parameters
    ----------
    eigenvalues : ndarray of shape (rank,)
        Non-zero eigenvalues of K̃, descending.
    ridge : float
        The ridge λ.

    Attributes
    ----------
    effective_dimension : float
        Σ σᵢ/(σᵢ + λ), the effective dimension at this λ.
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    line_ : matplotlib Line2D
        Line of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> from nystrom.displays import SpectrumDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> landmarks = select_landmarks(X, n_landmarks=30, random_state=0)
    >>> display = SpectrumDisplay.from_landmarks(landmarks, X, ridge=1.0)
    >>> 0 < display.effective_dimension < 30
    True
    """

    def __init__(self, eigenvalues: np.ndarray, *, ridge: float) -> None:
        self.eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
        self.ridge = ridge
        values = self.eigenvalues
        self.effective_dimension = float(np.sum(values / (values + ridge)))

    @classmethod
    def from_landmarks(  # type: ignore[override]
        cls,
        landmarks: Landmarks,
        X: Any,
        *,
        ridge: float | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the spectrum of K̃ for the rows X.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        ridge : float, default=None
            The ridge λ. None uses the λ of the selection, otherwise the trace error
            divided by the number of landmarks.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        approximation, ridge = approximation_and_ridge(landmarks, X, ridge)
        values = arrays.to_host(approximation.eigenvalues())
        return cls(values, ridge=ridge).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw the spectrum.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        order = np.arange(1, len(self.eigenvalues) + 1)
        options = {"label": "eigenvalues of K̃"} | line
        (self.line_,) = ax.plot(order, self.eigenvalues, **options)
        label = f"λ = {self.ridge:.2g}"
        ax.axhline(self.ridge, color="C1", linestyle="--", label=label)
        dimension = self.effective_dimension
        label = f"effective dimension {dimension:.3g}"
        ax.axvline(dimension, color="C2", linestyle=":", label=label)
        ax.set(xscale="log", yscale="log", xlabel="number", ylabel="eigenvalue")
        ax.grid(alpha=0.3)
        ax.legend()
        return self


class RidgePathDisplay(BaseDisplay):
    """Scores against alpha, one line per number of landmarks, one panel per gamma.

    Parameters
    ----------
    scores : ndarray of shape (n_gammas, n_numbers, n_alphas)
        Scores; the higher the better.
    alphas : ndarray of shape (n_alphas,)
        Values of alpha.
    n_landmarks : ndarray of shape (n_numbers,)
        Numbers of landmarks.
    gammas : sequence
        Values of gamma.
    score_name : str, default="score"
        Name of the score.

    Attributes
    ----------
    best : tuple of int
        Position of the best score: gamma, number of landmarks, alpha.
    axes_ : ndarray of matplotlib Axes
        Axes of the plot, one per gamma.
    figure_ : matplotlib Figure
        Figure of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidgeCV
    >>> from nystrom.displays import RidgePathDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(500)
    >>> model = KernelRidgeCV(np.logspace(-4, 2, 7), kernel="rbf", gammas=[0.1, 1.0])
    >>> model = model.set_params(n_landmarks=[10, 40], random_state=0).fit(X, y)
    >>> len(RidgePathDisplay.from_estimator(model).axes_)
    2
    """

    axes_: list[Any]

    def __init__(
        self,
        scores: np.ndarray,
        *,
        alphas: np.ndarray,
        n_landmarks: np.ndarray,
        gammas: Any,
        score_name: str = "score",
    ) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.n_landmarks = np.asarray(n_landmarks)
        self.gammas = list(gammas)
        self.score_name = score_name
        place = np.unravel_index(np.nanargmax(self.scores), self.scores.shape)
        self.best = tuple(int(i) for i in place)

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None, **line: Any) -> Self:
        """Draw the grid of a fitted `KernelRidgeCV` or `KernelRidgeClassifierCV`.

        If each target has its own alpha, the mean over the targets is drawn.

        Parameters
        ----------
        estimator : KernelRidgeCV or KernelRidgeClassifierCV
            The fitted estimator.
        axes : sequence of matplotlib Axes, default=None
            Axes to draw on, one per gamma. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        last = estimator[-1] if hasattr(estimator, "named_steps") else estimator
        if not hasattr(last, "gammas"):
            raise TypeError(
                f"RidgePathDisplay draws a fitted KernelRidgeCV or "
                f"KernelRidgeClassifierCV, not {type(last).__name__}."
            )
        check_is_fitted(last, "scores_")
        gammas = [last.gamma_] if last.gammas is None else last.gammas_
        numbers, alphas = last.n_landmarks_path_, last.alphas_
        grid_shape = (len(gammas), len(numbers), len(alphas))
        scores = np.asarray(last.scores_).reshape(*grid_shape, -1).mean(axis=-1)
        score_name = getattr(last, "scoring", None) or "negative mean squared error"
        display = cls(
            scores,
            alphas=alphas,
            n_landmarks=numbers,
            gammas=gammas,
            score_name=str(score_name),
        )
        return display.plot(axes, **line)

    def plot(self, axes: Any = None, **line: Any) -> Self:
        """Draw the scores.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Axes to draw on, one per gamma. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        panels = self._panels(axes)
        for g, ax in enumerate(panels):
            for k, size in enumerate(self.n_landmarks):
                label = f"{size} landmarks"
                ax.plot(self.alphas, self.scores[g, k], **{"label": label} | line)
            ax.set(xscale="log", xlabel="alpha")
            if len(panels) > 1:
                gamma = self.gammas[g]  # a number, or a word such as "median"
                text = f"{gamma:.2g}" if isinstance(gamma, float) else gamma
                ax.set_title(f"gamma = {text}")
            ax.grid(alpha=0.3)
        panels[0].set_ylabel(self.score_name)
        g, k, a = self.best
        best = self.scores[self.best]
        label = f"best: {best:.4g} at alpha {self.alphas[a]:.2g}"
        panels[g].plot(self.alphas[a], best, "o", color=f"C{k}", label=label)
        panels[g].legend()
        self.axes_, self.figure_ = panels, panels[0].figure
        return self

    def _panels(self, axes: Any) -> list[Any]:
        if axes is not None:
            axes_list = list(np.atleast_1d(axes).ravel())
            if len(axes_list) != len(self.gammas):
                raise ValueError(
                    f"axes has length {len(axes_list)}, but there are "
                    f"{len(self.gammas)} gammas; give one for each."
                )
            return axes_list
        pyplot = import_optional("matplotlib.pyplot", "plot", "A display")
        _, panels = pyplot.subplots(
            1,
            len(self.gammas),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(max(6.4, 3.2 * len(self.gammas)), 4.8),
        )
        return list(panels[0])


#: The shares of the normal intervals that are drawn.
COVERAGE_LEVELS = np.linspace(0.02, 0.98, 49)


class CoverageDisplay(BaseDisplay):
    """Observed against nominal coverage of prediction intervals.

    The intervals are mean ± z·std of growing width. On the diagonal the deviations are
    right; below it they are too small, above it too large. For the probabilities of
    classifiers use `sklearn.calibration.CalibrationDisplay`.

    Parameters
    ----------
    distances : ndarray of shape (n_samples,)
        Values of `|y − mean|/std` on rows that were not used to fit the model.
    name : str, default=None
        Label for the legend.

    Attributes
    ----------
    expected : ndarray
        Nominal coverage.
    observed : ndarray
        Observed coverage.
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.
    line_ : matplotlib Line2D
        Line of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge
    >>> from nystrom.displays import CoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1000, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(1000)
    >>> model = KernelRidge(0.1, kernel="rbf", n_landmarks=40, random_state=0)
    >>> model = model.fit(X[:500], y[:500])
    >>> display = CoverageDisplay.from_estimator(model, X[500:], y[500:])
    >>> bool(abs(display.within(0.95) - 0.95) < 0.04)
    True
    """

    def __init__(self, distances: np.ndarray, *, name: str | None = None) -> None:
        self.distances = np.asarray(distances, dtype=np.float64).ravel()
        self.name = name
        self.expected = COVERAGE_LEVELS
        self.observed = np.array([self.within(level) for level in COVERAGE_LEVELS])

    def within(self, level: float) -> float:
        """Compute the share of targets inside the interval of a nominal coverage.

        Parameters
        ----------
        level : float
            Nominal coverage, such as 0.95.

        Returns
        -------
        share : float
            Observed coverage.
        """
        # A normal deviate is within ±z with probability erf(z/√2).
        return float(np.mean(erf(self.distances / np.sqrt(2)) <= level))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        noise: bool = True,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the coverage of a fitted `KernelRidge` or `KernelRidgeCV` on new rows.

        Parameters
        ----------
        estimator : KernelRidge or KernelRidgeCV
            The fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        y : array-like of shape (n_samples,)
            Targets of the rows.
        noise : bool, default=True
            Whether the deviations include the noise of new targets. Without it, they
            describe the mean, and targets with noise lie outside more often.
        name : str, default=None
            Label for the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        if not hasattr(estimator, "predict"):
            raise TypeError(
                f"{type(estimator).__name__} does not predict; CoverageDisplay needs "
                "a fitted KernelRidge, KernelRidgeCV or GaussianProcessRegressor."
            )
        mean, std = estimator.predict(X, return_std=True, noise=noise)
        return cls.from_predictions(y, mean, std, name=name, ax=ax, **line)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        mean: Any,
        std: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the coverage of given means and deviations.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets.
        mean : array-like of shape (n_samples,)
            Predicted means.
        std : array-like of shape (n_samples,)
            Predicted standard deviations.
        name : str, default=None
            Label for the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        y, mean, std = (np.asarray(part, dtype=np.float64) for part in (y, mean, std))
        if y.shape != mean.shape:
            raise ValueError(
                f"y has shape {y.shape} and mean {mean.shape}; give the targets of the "
                "rows that were predicted."
            )
        if std.ndim < y.ndim:
            std = std[:, None]  # one for all targets
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.abs(y - mean) / std
        # A deviation of 0 holds what is hit exactly, and nothing else.
        return cls(np.nan_to_num(distances, nan=0.0), name=name).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw the coverage.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line : dict
            Passed to `ax.plot`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        ax.plot([0, 1], [0, 1], ":", color="0.5")
        label = f"{self.within(0.95):.1%} within the 95 % interval"
        label = label if self.name is None else f"{self.name}: {label}"
        options = {"label": label} | line
        (self.line_,) = ax.plot(self.expected, self.observed, **options)
        ax.set(
            xlabel="share that should lie within",
            ylabel="share that does",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left")
        return self
