"""What the two ridge searches share: every width, number of landmarks and alpha."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..edge.showing import bar_for
from ..edge.widths import width_from_data
from ..engines import Engine
from ..engines.progress import parts
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..methods.ridge.cross_validation import Measure, Scored, Split, score_path
from ..methods.ridge.fit import RidgeFit, finish
from ..refusals import switch
from ..samplers import Size
from ..sources import Source
from .callbacks import CallbackTask
from .folds import check_weights
from .grids import (
    LEAST_ROWS,
    WIDTHS,
    alphas_for,
    is_list,
    sizes_given,
    warn_at_end,
    widths_given,
)
from .on_landmarks import in_library_of
from .ridge_base import OnRidge


@dataclass(frozen=True, eq=False)
class Search:
    """How what is tried is judged."""

    splits: list[Split] | str
    measure: Measure | None  # None: squared errors
    top: float  # scores are this, less the errors


@dataclass(frozen=True, eq=False)
class Chosen:
    """The best of all, fitted to all rows."""

    landmarks: Landmarks
    fit: RidgeFit
    alphas: np.ndarray  # (t,) with white noise of the kernel
    source: Source
    engine: Engine


class OnGrids(OnRidge):
    """The base of KernelRidgeCV and KernelRidgeClassifierCV."""

    alphas: Any
    gammas: Any
    cv: Any
    prefer_fewer: bool
    alpha_per_target: bool = False
    gamma_: Any
    gammas_: list[Any]
    n_landmarks_: int
    scores_: np.ndarray
    n_landmarks_path_: np.ndarray
    alphas_: np.ndarray
    alpha_: float | np.ndarray
    best_score_: float | np.ndarray

    def _searched(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any,
        task: CallbackTask,
        search: Search,
        ravel: bool,
    ) -> Chosen:
        """Try everything, fit with the best, and keep the scores."""
        resolved = partial(self._resolved, X, task, sample_weight)
        switch(self.prefer_fewer, "prefer_fewer")
        folds = not isinstance(search.splits, str) and len(search.splits) > 1
        sizes = sizes_given(self, folds)
        gammas = widths_given(self.gamma, self.gammas, self.kernel)
        if gammas is None:
            _, source, engine = resolved(gamma=1.0)
            preparing, _ = parts(engine.progress, 0.02, 1.0)
            with preparing:
                scale = width_from_data("scale", self.kernel, source, engine)
            gammas = [scale * width for width in WIDTHS]
        self.gammas_ = list(gammas)
        best, alphas = None, None
        curves: list[np.ndarray] = []  # sums of other widths are not kept
        each = parts(bar_for(self.verbose), *[1.0] * len(gammas))
        for gamma, part in zip(gammas, each, strict=True):
            with part:
                kernel, source, engine = resolved(gamma=gamma, targets=Y)
                if alphas is None:
                    alphas = alphas_for(self.alphas, kernel, source)
                scored = self._scored(kernel, source, sizes, alphas, search, engine)
            curves.append(scored.errors)
            least = self._least(scored.errors).min()
            if best is None or least < self._least(best.errors).min():
                best, self.gamma_ = scored, gamma
        assert best is not None
        assert alphas is not None
        place = self._choose_size(best)
        landmarks, mapping, sums = best.at(place)
        chosen = self._choose_alphas(alphas, best.errors[place], Y.shape[1])
        intercept, white = bool(self.fit_intercept), self._white_noise()
        fit = finish(
            landmarks, mapping, sums, source, chosen + white, intercept, engine
        )
        self._keep_scores(
            landmarks, alphas, chosen, best, place, curves, search.top, ravel
        )
        if source.n_rows >= LEAST_ROWS:
            self._warn_at_ends(alphas, gammas, best, place, curves)
        return Chosen(landmarks, fit, chosen + white, source, engine)

    def _scored(
        self,
        kernel: Kernel,
        source: Source,
        sizes: list[int] | None,
        alphas: np.ndarray,
        search: Search,
        engine: Engine,
    ) -> Scored:
        if not isinstance(search.splits, str):
            check_weights(source, search.splits)
        goal = None if sizes is None else Size(sizes[-1])
        landmarks = self._chosen(kernel, source, engine, goal, passes_after=1.5)
        if sizes is None:
            sizes = [len(landmarks)]
        else:
            landmarks = landmarks.in_nested_order()
            if landmarks.indefinite:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks!r}: the first landmarks of several "
                    f"cannot be told apart for {kernel}, which is not positive "
                    "semi-definite; give one number."
                )
            sizes = sorted({min(size, len(landmarks)) for size in sizes})
        return score_path(
            landmarks,
            source,
            sizes,
            alphas + self._white_noise(),
            search.splits,
            engine,
            fit_intercept=bool(self.fit_intercept),
            measure=search.measure,
        )

    def _least(self, errors: np.ndarray) -> np.ndarray:
        """(sizes,): the least error that the alphas allow."""
        if self.alpha_per_target:
            return errors.min(axis=1).mean(axis=1)
        return errors.mean(axis=2).min(axis=1)

    def _choose_size(self, scored: Scored) -> int:
        """The place of the best number of landmarks, or of the fewest as good."""
        least = self._least(scored.errors)
        best = int(np.argmin(least))
        if not self.prefer_fewer or scored.deviations is None:
            return best
        alpha = np.argmin(scored.errors[best].mean(axis=1))
        allowed = least[best] + scored.deviations[best, alpha].mean()
        return int(np.flatnonzero(least <= allowed)[0])

    def _choose_alphas(
        self, alphas: np.ndarray, errors: np.ndarray, n_targets: int
    ) -> np.ndarray:
        """(t,): of equally good ones the largest, which shrinks most."""
        order = np.argsort(-alphas, kind="stable")
        alphas, errors = alphas[order], errors[order]
        if self.alpha_per_target:
            return alphas[np.argmin(errors, axis=0)]
        return np.full(n_targets, alphas[np.argmin(errors.mean(axis=1))])

    def _keep_scores(
        self,
        landmarks: Landmarks,
        alphas: np.ndarray,
        chosen: np.ndarray,
        best: Scored,
        place: int,
        curves: list[np.ndarray],
        top: float,
        ravel: bool,
    ) -> None:
        errors = np.array(curves)
        by_target = self.alpha_per_target and not ravel
        scores = top - (errors if by_target else errors.mean(axis=3))
        if not is_list(self.n_landmarks):
            scores = scores[:, 0]
        one = self.gammas is None or isinstance(self.gammas, str)
        scores = scores[0] if one and len(curves) == 1 else scores
        library = partial(in_library_of, landmarks)
        self.alphas_, self.scores_ = library(alphas), library(scores)
        own = best.errors[place]
        if by_target:
            self.alpha_ = library(chosen)
            self.best_score_ = library(top - own.min(axis=0))
        else:
            self.alpha_ = float(chosen[0])
            self.best_score_ = float(top - own.mean(axis=1).min())
        self.n_landmarks_ = len(landmarks)
        self.n_landmarks_path_ = library(np.array(best.sizes))

    def _warn_at_ends(
        self,
        alphas: np.ndarray,
        gammas: list[Any],
        best: Scored,
        place: int,
        curves: list[np.ndarray],
    ) -> None:
        """Say in which direction to go on, where the best is at the end of a grid."""
        errors, doubt = best.errors[place], best.deviations
        spread = np.zeros_like(errors) if doubt is None else doubt[place]
        if not self.alpha_per_target:
            errors, spread = errors.mean(axis=1)[:, None], spread.mean(axis=1)[:, None]
        given = self.alphas is not None
        for own, apart in zip(errors.T, spread.T, strict=True):
            there = float(apart[np.argmin(own)])
            if warn_at_end("alphas", list(alphas), own, there, given=given):
                break  # once is enough
        widths = np.array([self._least(curve).min() for curve in curves])
        doubt_there = float(spread.ravel()[np.argmin(errors)])
        given = not isinstance(self.gammas, str)
        warn_at_end("gammas", gammas, widths, doubt_there, given=given)
