"""Values of rows by fits without them: all numbers of landmarks and every α at once.

A part is the rows that one fit is tested on, all of them where each is left out by
itself. Its values are made tile by tile; what they are worth is for others to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...moments import Moments
from ...operands import Operand
from ...precision import EPS64
from ...sinks import ArraySink
from ...sources import Block, Source, Subset
from .problem import Centered, on_landmarks


@dataclass(frozen=True, eq=False)
class Rotated:
    """A ridge problem in the eigenvectors of its Gram matrix, for all α at once."""

    rotated: Operand  # (s, r): T = k_S·rotated − center
    center: Operand
    inverse: Operand  # (r, a)
    coef: Operand  # (r, a·t)
    mean: np.ndarray  # (t,) of y
    own: float  # what an intercept adds to every leverage

    @classmethod
    def of(
        cls, mapping: FeatureMap, problem: Centered, alphas: np.ndarray, total: float
    ) -> Rotated:
        path = problem.path
        rotated = mapping.root @ path.vectors
        inverse = 1 / (path.values[:, None] + alphas)
        columns = [path.cross * inverse[:, [a]] for a in range(len(alphas))]
        return cls(
            Operand(rotated),
            Operand(mapping.shift @ rotated + problem.feature_mean @ path.vectors),
            Operand(inverse),
            Operand(np.concatenate(columns, axis=1)),
            mapping.target_shift + problem.target_mean,
            1 / total if problem.fit_intercept else 0.0,
        )

    def residuals(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(n, a, t): rᵢ/(1 − Hᵢᵢ) of the rows of a tile, where K is."""
        xp = arrays.namespace(K)
        T = K[:, : len(self.rotated)] @ self.rotated.beside(K) - self.center.beside(K)
        n, n_targets = Y.shape
        fitted = xp.reshape(T @ self.coef.beside(K), (n, -1, n_targets))
        residuals = arrays.from_host(Y - self.mean, K)[:, None, :] - fitted
        leverage = w[:, None] * (T**2 @ self.inverse.beside(K) + self.own)  # (n, a)
        # A row that the fit passes through whatever its target has no say of its own.
        left = arrays.at_least(1 - leverage, 10 * EPS64)
        residuals /= left[:, :, None]
        return residuals


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Each row by a fit without it."""

    problems: list[Rotated]  # one for each number of landmarks

    def values(self, K: Array, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(n, sizes·a, t), on the host."""
        there = arrays.from_host(w, K)
        left = [arrays.to_host(p.residuals(K, Y, there)) for p in self.problems]
        return Y[:, None, :] - np.concatenate(left, axis=1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Rows by fits to other rows."""

    dual: Operand  # (s, sizes·a·t)
    intercept: Operand

    @classmethod
    def to(
        cls,
        train: Moments,
        mappings: Sequence[FeatureMap],
        alphas: np.ndarray,
        fit_intercept: bool,
    ) -> Fitted:
        """From the sums over the other rows; a mapping for each number of landmarks."""
        most, n_targets = max(len(m.columns) for m in mappings), train.cross.shape[1]
        shape = (len(mappings), len(alphas), n_targets)
        dual, intercept = np.zeros((most, *shape)), np.zeros(shape)
        for i, mapping in enumerate(mappings):
            problem = Centered.of(train.of_columns(mapping.rank), fit_intercept)
            for a, alpha in enumerate(alphas):
                coef = problem.path.coefficients(alpha)
                of_first, intercept[i, a] = on_landmarks(mapping, problem, coef)
                dual[: len(of_first), i, a] = of_first
        return cls(Operand(dual.reshape(most, -1)), Operand(intercept.reshape(-1)))

    def values(self, K: Array, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(n, sizes·a, t), on the host."""
        found = K @ self.dual.beside(K) + self.intercept.beside(K)
        return arrays.to_host(found).reshape(len(Y), -1, Y.shape[1])


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that are tested together, and what makes their values."""

    rows: np.ndarray | None  # None is all
    columns: Columns
    fits: Fitted | LeftOut
    n_fits: int  # sizes·a

    def of(self, source: Source) -> Source:
        """The part of a source."""
        return source if self.rows is None else Subset(source, self.rows)

    def values(self, source: Source, engine: Engine) -> np.ndarray:
        """(n, sizes·a, t) of all its rows: one number for each fit and target."""
        part = self.of(source)
        assert part.targets is not None
        n_targets = part.targets.shape[1]
        sink = ArraySink((part.n_rows, self.n_fits * n_targets))
        engine.map(_values, part, sink, (self.columns, self.fits), "held-out values")
        return sink.array.reshape(part.n_rows, self.n_fits, n_targets)

    def among(self, rows: np.ndarray) -> Part:
        """The part of this one that is among some rows, ascending."""
        own = rows if self.rows is None else np.intersect1d(self.rows, rows)
        return Part(own, self.columns, self.fits, self.n_fits)


def values_of(block: Block, columns: Columns, fits: Fitted | LeftOut) -> np.ndarray:
    """(n, sizes·a, t) of the rows of a tile, on the host."""
    assert block.targets is not None
    K = columns.float64(block.X)
    return fits.values(K, np.asarray(block.targets), block.weights)


def _values(block: Block, columns: Columns, fits: Fitted | LeftOut) -> np.ndarray:
    return values_of(block, columns, fits).reshape(len(block), -1)
