"""The score over alpha, the number of landmarks and gamma."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..optional import library
from .axes import number

#: What is scored where nothing else was asked for.
MEAN_SQUARES = "negative mean squared error"


class RidgePathDisplay:
    """Scores against alpha: a line per number of landmarks, a panel per gamma.

    Parameters
    ----------
    scores : ndarray of shape (n_gammas, n_numbers, n_alphas)
        The larger the better.
    alphas : ndarray of shape (n_alphas,)
        The ridges.
    n_landmarks : ndarray of shape (n_numbers,)
        The numbers of landmarks.
    gammas : sequence
        The widths.
    score_name : str, default="score"
        What the scores are.

    Attributes
    ----------
    best : tuple of int
        Where the best score is: gamma, number of landmarks, alpha.
    axes_, figure_
        What `plot` drew on: one for each gamma.

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
    figure_: Any

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
        """Draw what a fitted `KernelRidgeCV` or `KernelRidgeClassifierCV` has tried.

        Where each target has an alpha of its own, the mean over the targets.
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
        wanted = (len(gammas), len(numbers), len(alphas))
        scores = np.asarray(last.scores_).reshape(*wanted, -1).mean(axis=-1)
        return cls(
            scores,
            alphas=alphas,
            n_landmarks=numbers,
            gammas=gammas,
            score_name=str(getattr(last, "scoring", None) or MEAN_SQUARES),
        ).plot(axes, **line)

    def plot(self, axes: Any = None, **line: Any) -> Self:
        """Draw on axes, one for each gamma, or on new ones; more goes to `ax.plot`."""
        panels = self._panels(axes)
        for g, ax in enumerate(panels):
            for k, size in enumerate(self.n_landmarks):
                label = f"{size} landmarks"
                ax.plot(self.alphas, self.scores[g, k], **{"label": label} | line)
            ax.set(xscale="log", xlabel="alpha")
            if len(panels) > 1:
                ax.set_title(f"gamma = {_width(self.gammas[g])}")
            ax.grid(alpha=0.3)
        panels[0].set_ylabel(self.score_name)
        g, k, a = self.best
        best = self.scores[self.best]
        label = f"best: {best:.4g} at alpha {number(self.alphas[a])}"
        panels[g].plot(self.alphas[a], best, "o", color=f"C{k}", label=label)
        panels[g].legend()
        self.axes_, self.figure_ = panels, panels[0].figure
        return self

    def _panels(self, axes: Any) -> list[Any]:
        if axes is not None:
            found = list(np.atleast_1d(axes).ravel())
            if len(found) != len(self.gammas):
                raise ValueError(
                    f"axes has {len(found)}, and there are {len(self.gammas)} gammas: "
                    "one for each."
                )
            return found
        pyplot = library("matplotlib.pyplot", "plot", "A display")
        _, panels = pyplot.subplots(
            1,
            len(self.gammas),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(max(6.4, 3.2 * len(self.gammas)), 4.8),
        )
        return list(panels[0])


def _width(gamma: Any) -> str:
    return number(gamma) if isinstance(gamma, (int, float)) else str(gamma)
