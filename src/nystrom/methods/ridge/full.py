"""Kernel ridge regression on K itself: (K + αW⁻¹)x = y for all rows, nothing left out.

Conjugate gradients on W^½KW^½ + αI, preconditioned by K̃ + αI of the landmarks: where
these leave no more than α of K, few steps are needed, whatever the rows. An intercept
is projected out: with q = W^½1/‖W^½1‖ the matrix is (I − qqᵀ)W^½KW^½(I − qqᵀ) + αI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ... import _arrays as arrays
from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...engines.progress import expect, parts
from ...kernels import Kernel
from ...landmarks import Landmarks
from ...precision import least_alpha
from ...sources import Held
from . import corrected_cg
from .all_pairs import AllPairs
from .corrected_cg import NotDefiniteError, Solution
from .woodbury import Woodbury


@dataclass(frozen=True, eq=False)
class FullFit:
    """Coefficients on all rows, and what is known about them."""

    dual: np.ndarray  # (n, t)
    intercept: np.ndarray  # (t,)
    n_steps: int
    residual: float  # the largest ‖b − Ax‖/‖b‖ of the targets
    converged: bool
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n


class FullRidge:
    """W^½KW^½ + αI of all rows, and how to solve with it."""

    def __init__(
        self,
        landmarks: Landmarks,
        rows: Held,
        alphas: np.ndarray,
        *,
        fit_intercept: bool,
        engine: Engine,
    ) -> None:
        self.alphas, self.rows, self.fit_intercept = alphas, rows, fit_intercept
        self.root = np.sqrt(rows.weights)[:, None]
        with blas_threads_for(len(landmarks)):
            self.near = Woodbury.of(
                landmarks, rows, alphas, center=fit_intercept, engine=engine.local
            )
        refuse_too_small(alphas, self.near.norm, landmarks.kernel, rows)
        self._kernel, self._engine = landmarks.kernel, engine

    @cached_property
    def pairs(self) -> AllPairs:
        """K, made when it is first needed."""
        return AllPairs(self._kernel, self.rows.points, self._engine)

    @property
    def shares(self) -> np.ndarray:
        """(n,): w/Σw."""
        return self.rows.weights / float(self.rows.weights.sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,): the weighted mean of K's rows."""
        return self.pairs.exactly(self.shares[:, None])[:, 0]

    def projected(self, V: np.ndarray) -> np.ndarray:
        """V without its share of W^½1, where there is an intercept."""
        if not self.fit_intercept:
            return V
        return V - self.root * (self.root.T @ V) / float(self.rows.weights.sum())

    def solve(
        self,
        b: np.ndarray,
        alphas: np.ndarray,
        precondition: Callable | None = None,
        tolerance: float = corrected_cg.TOLERANCE,
    ) -> Solution:
        """One solution for each column, with its α; b has been projected."""
        near = self.near.for_alphas(alphas) if precondition is None else precondition
        told = self._engine.progress
        making, stepping = parts(told, 1.0, 1.0)
        with making:
            expect(told, 1)
            pairs = self.pairs

        def product(times: Callable) -> Callable:
            def ridged(V: np.ndarray) -> np.ndarray:
                return self.projected(self.root * times(self.root * V)) + alphas * V

            return ridged

        exactly = product(pairs.exactly)
        quick = exactly if pairs.is_exact else product(pairs)
        size = np.abs(b).max(axis=0, initial=0.0)  # whose square may be no number
        size[size == 0] = 1.0
        with stepping:
            expect(told, corrected_cg.USUAL_STEPS, about=True)
            try:
                found = corrected_cg.solve(
                    quick,
                    exactly,
                    b / size,
                    lambda V: self.projected(near(V)),
                    tolerance,
                )
            except NotDefiniteError:
                raise ValueError(not_definite(self._kernel)) from None
        return replace(found, x=found.x * size)

    def fit(self, Y: np.ndarray, **options: Any) -> FullFit:
        """The coefficients for targets (n, t)."""
        target = self.projected(self.root * Y)
        found = self.solve(target, self.alphas, **options)
        dual, intercept = self.root * found.x, np.zeros(Y.shape[1])
        if self.fit_intercept:
            w = self.rows.weights
            intercept = w @ (Y - self.pairs.exactly(dual)) / w.sum()
        squares = np.einsum("nt,nt->t", target, found.x)
        n = max(float(self.rows.weights.sum()), float(len(Y)))
        return FullFit(
            dual,
            intercept,
            found.n_steps,
            float(found.residual.max(initial=0.0)),
            found.converged,
            np.maximum(squares, 0.0) / n,
        )


def refuse_too_small(
    alphas: np.ndarray, norm: float, kernel: Kernel, rows: Held
) -> None:
    """α so small that K + αI is no better known than K's rounding."""
    least = least_alpha(norm, kernel.dtype(arrays.widen(rows.rows(0, 1))))
    if alphas.min() < least:
        raise ValueError(
            f"alpha={alphas.min():.3g} is below what solver='full' can solve with: "
            f"the norm of K is about {norm:.3g}, and rounding leaves alpha >= "
            f"{least:.2g}. Raise alpha, or use solver='direct', which solves on the "
            "landmarks."
        )


def not_definite(kernel: Kernel) -> str:
    """What to say where K + αI has a direction that is not positive."""
    return (
        f"solver='full' needs a positive semi-definite kernel, and {kernel} is none on "
        "these rows. Use solver='direct', which leaves the negative part out."
    )


def not_converged(fit: FullFit) -> str:
    """What to say, and what to do about it."""
    return (
        f"Conjugate gradients on all rows did not converge: after {fit.n_steps} steps "
        f"the relative residual is {fit.residual:.2g}, not {corrected_cg.TOLERANCE:g}. "
        "Raise n_landmarks, which makes for fewer steps, or alpha."
    )
