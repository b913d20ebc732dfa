"""Deviations of predictions on all rows: conjugate gradients for every few new rows.

σ̂²·(k(x,x) − kᵀ(K + αW⁻¹)⁻¹k), the variance of the Gaussian process with covariance K
and noise α, scaled; with an intercept k is about the weighted mean of the rows, and
α/Σw is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn import get_config

from ... import _arrays as arrays
from ...sources import Source
from .full import FullRidge

#: Numbers that are held at a time for each pair of a row and a new one, all told.
HELD = 12
#: New rows that are solved for at a time, at most.
MOST_ROWS = 1024


@dataclass(frozen=True, eq=False)
class FullPosterior:
    """What deviations need besides the rows."""

    weights: np.ndarray | None  # (n,) of the rows
    alphas: np.ndarray  # (t,)
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n

    def deviations(
        self, problem: FullRidge, source: Source, *, noise: bool, white: float = 0.0
    ) -> np.ndarray:
        """(m, t): the predictive standard deviation of every new row and target.

        With all of the noise α, or with the part of it that is `white`.
        """
        memory = get_config()["working_memory"] * 2**20 / 4
        few = memory / (8 * HELD * problem.rows.n_rows)
        size = int(np.clip(few, 1, MOST_ROWS))
        out = np.empty((source.n_rows, len(self.alphas)))
        for start in range(0, source.n_rows, size):
            stop = min(start + size, source.n_rows)
            X = source.rows(start, stop)
            for alpha in np.unique(self.alphas):
                variance = self._variances(problem, X, float(alpha))
                variance += alpha if noise else white
                those = self.alphas == alpha
                scaled = variance[:, None] * self.scales[those]
                out[start:stop, those] = np.sqrt(scaled)
        return out

    def _variances(self, problem: FullRidge, X: object, alpha: float) -> np.ndarray:
        blocks = problem.pairs.exact
        K = np.hstack([part.host(X) for part in blocks.parts])  # (m, n)
        whole = arrays.to_host(blocks.parts[0].diag(X))
        if problem.fit_intercept:
            whole = whole - 2 * K @ problem.shares + problem.mean @ problem.shares
            whole = whole + alpha / float(problem.rows.weights.sum())
            K -= problem.mean
        b = problem.projected(problem.root * K.T)
        found = problem.solve(b, np.full(len(K), alpha))
        explained = np.einsum("nm,nm->m", b, found.x)
        return np.maximum(whole - explained, 0.0)
