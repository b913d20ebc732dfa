"""Σ w(y − ŷ)² of a path of α, from the rows: one more pass.

Sums over rows tell it as the difference of two large numbers, of which nothing is right
where the fit passes close to all targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...column_blocks import ColumnBlocks
from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...operands import Operand
from ...sources import Block, Source
from .problem import Centered


def residual_squares_of_rows(
    problems: Sequence[tuple[FeatureMap, Centered]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t), each by the columns of the most landmarks, evaluated once."""
    mappings = [mapping for mapping, _ in problems]
    largest = max(mappings, key=lambda mapping: len(mapping.columns))
    fits = [_Solutions.of(mapping, problem, alphas) for mapping, problem in problems]
    found = engine.reduce(_squares, source, (largest.columns, fits), "residuals")
    return np.array(arrays.fetched(found)).reshape(len(problems), len(alphas), -1)


@dataclass(frozen=True, eq=False)
class _Solutions:
    """A ridge problem solved for all α."""

    root: ColumnBlocks
    center: Operand  # (r,) taken off every z
    coef: Operand  # (r, a·t)
    mean: np.ndarray  # (t,) of y

    @classmethod
    def of(
        cls, mapping: FeatureMap, problem: Centered, alphas: np.ndarray
    ) -> _Solutions:
        coefs = [problem.path.coefficients(alpha) for alpha in alphas]
        return cls(
            ColumnBlocks.of(mapping.root),
            Operand(mapping.center + problem.feature_mean),
            Operand(np.concatenate(coefs, axis=1)),
            mapping.target_shift + problem.target_mean,
        )

    def squares(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(a, t): Σ w·r² over the rows of a tile, where K is."""
        xp = arrays.namespace(K)
        Z = self.root.product(K) - self.center.beside(K)
        fitted = xp.reshape(Z @ self.coef.beside(K), (Y.shape[0], -1, Y.shape[1]))
        left = arrays.from_host(Y - self.mean, K)[:, None, :] - fitted
        return xp.sum(w[:, None, None] * left * left, axis=0)


def _squares(
    block: Block, columns: Columns, fits: list[_Solutions]
) -> tuple[Array, ...]:
    assert block.targets is not None
    K = columns.float64(block.X)
    w = arrays.from_host(block.weights, K)
    return tuple(fit.squares(K, block.targets, w) for fit in fits)
