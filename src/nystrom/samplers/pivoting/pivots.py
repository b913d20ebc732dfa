"""Landmarks as pivots of a Cholesky factorisation: in order, with the factor so far.

K_SS = LLᵀ in the order of choice. Row x then has the factor row f = k_xS L⁻ᵀ, and
k(x, x) − ‖f‖² is what the pivots leave of it. Everything here is float64: a pivot is
chosen by what is left, the small difference of two numbers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...cholesky import cholesky
from ...columns import Columns, diag64
from ...engines import Engine
from ...factor import Factor
from ...landmarks import Landmarks
from ...precision import FAR, residual_unit
from ...refusals import check_finite
from ...residuals import Pass, prepare, residual, residuals
from ...sources import Held, Source
from ..choosing import Work
from ..draws import fill_rows

#: Rows that a thread works on at once, outside of passes.
AT_ONCE = 512
#: A row of which more is left, as a share of k(x, x), is no copy of a pivot: what
#: distances may be off by, with a margin.
COPIED = 100 * FAR[np.dtype(np.float64)]


class Pivots:
    """The rows chosen so far, and the Cholesky factor of their kernel matrix."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.indices = np.empty(0, dtype=np.intp)
        self.points = work.source.take(self.indices)
        self.L = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def factor(self) -> Factor:
        """The factor of K_SS; rows that only fill up have no column."""
        n_pivots = self.L.shape[1]
        return Factor(self.L, np.arange(n_pivots), np.vecdot(self.L, self.L))

    @property
    def root(self) -> np.ndarray:
        """B = L⁻ᵀ, upper triangular: a row's factor row is k_xS·B."""
        return self.factor.root

    @cached_property
    def columns(self) -> Columns:
        """X ↦ k(X, pivots), in float64."""
        return Columns(self.work.kernel, self.points, wide=True)

    def factor_rows(self, X: Any) -> np.ndarray:
        """k_xS L⁻ᵀ for each row x of X."""
        self.work.ledger.evaluated(arrays.count_rows(X) * len(self))
        return self._factor_rows(X)

    def _factor_rows(self, X: Any) -> np.ndarray:
        if not len(self):
            return np.empty((arrays.count_rows(X), 0))
        K = self.columns.host(X)
        check_finite(K)
        return scipy.linalg.solve_triangular(self.L, K.T, lower=True).T

    def left_of(self, X: Any) -> np.ndarray:
        """What the pivots leave of k(x, x), for few rows."""
        if not arrays.on_host(X):
            return self._left_there(X)
        n, k = arrays.count_rows(X), len(self)
        self.work.ledger.evaluated(n * (k + 1))
        parts = [
            arrays.slice_rows(X, start, min(start + AT_ONCE, n))
            for start in range(0, n, AT_ONCE)
        ]
        taken = self.work.engine.local.each(self._taken_of, parts, n * k * k)
        diagonal = arrays.to_host(diag64(self.work.kernel, X))
        left = diagonal - np.concatenate([np.empty(0), *taken])
        left[left < self.rounding_unit(k) * np.abs(diagonal)] = 0.0
        return left

    def _taken_of(self, X: Any) -> np.ndarray:
        F = self._factor_rows(X)
        return np.vecdot(F, F)

    def _left_there(self, X: Any) -> np.ndarray:
        """The same on the device of the rows: only one number of each leaves it."""
        n, k = arrays.count_rows(X), len(self)
        self.work.ledger.evaluated(n * (k + 1))
        block, root = Held(X).block(0, n), self.columns.operand(self.root)
        left = residual(block, self.columns, root, self.rounding_unit(k))
        check_finite(left)
        return left

    def residual_matrix(self, X: Any, F: np.ndarray) -> np.ndarray:
        """What is left of kernel(X, X), for few rows with factor rows F."""
        kernel = self.work.kernel
        K = kernel.gram(X)
        self.work.ledger.evaluated(kernel.gram_evaluations(len(K)))
        check_finite(K)
        return K - F @ F.T

    def floor(
        self, X: Any, F: np.ndarray, P: np.ndarray, size: int, least: float = 0.0
    ) -> np.ndarray:
        """What must be left of each row of X for it to be one of `size` pivots.

        No copy of a pivot is one. Its kernel value may seem less than k(x, x) by more
        than rounding, as distances from one product do where they are far.
        """
        left = np.diagonal(P)
        diagonal = np.abs(left + np.vecdot(F, F))
        floor = max(self.rounding_unit(size), least) * diagonal
        if len(self) and np.any((left > floor) & (left < COPIED * diagonal)):
            both = arrays.append_rows(self.points, X)
            first = arrays.first_of_equals(arrays.widen(both))
            if first is not None:
                floor[first[len(self) :] < len(self)] = np.inf
        return floor

    def rounding_unit(self, size: int) -> float:
        """Below this share of it, what `size` pivots leave of k(x, x) is rounding.

        Of float64, also for float32 rows: these are exact numbers, and their values
        here are float64. Only values that were given may be less precise.
        """
        dtype = self.work.kernel.dtype(arrays.widen(self.points))
        return residual_unit(dtype, size)

    def add(
        self, indices: np.ndarray, X: Any = None, *, least: float = 0.0
    ) -> np.ndarray:
        """Make these rows, X, pivots, but for those of which nothing is left.

        Nothing is a share `least` of k(x, x), or rounding if that is more. Returns
        which of them they are, as places in `indices`.
        """
        if not len(indices):
            return np.empty(0, dtype=np.intp)
        X = self.work.source.take(indices) if X is None else X
        F = self.factor_rows(X)
        P = self.residual_matrix(X, F)
        floor = self.floor(X, F, P, len(self) + len(P), least)
        V, kept = cholesky(P, floor)
        self.extend(indices[kept], arrays.take_rows(X, kept), F[kept], V[kept])
        return kept

    def extend(
        self, indices: np.ndarray, X: Any, F: np.ndarray, corner: np.ndarray
    ) -> None:
        """Add pivots X with factor rows F; corner·cornerᵀ is what was left of them."""
        k, b = len(self), len(indices)
        L = np.zeros((k + b, k + b))
        L[:k, :k], L[k:, :k], L[k:, k:] = self.L, F, corner
        self.L = L
        self._become(
            np.concatenate([self.indices, indices]),
            arrays.append_rows(self.points, X) if k else X,
        )

    def shorten(self, size: int) -> None:
        """Keep the first `size` pivots."""
        self.L = self.L[:size, :size]
        self._become(self.indices[:size], arrays.slice_rows(self.points, 0, size))

    def fill(self, size: int) -> None:
        """Uniform rows up to `size`, where nothing is left to choose by.

        They add nothing to K̃, hence nothing to L: no pivot can follow.
        """
        source = self.work.source
        missing = min(size, source.n_rows) - len(self)
        if missing > 0:
            more = fill_rows(self.indices, missing, source.n_rows, self.work.seed)
            self.L = np.concatenate([self.L, np.zeros((missing, self.L.shape[1]))])
            X = source.take(more)
            self._become(
                np.concatenate([self.indices, more]),
                arrays.append_rows(self.points, X) if len(self) else X,
            )

    def _become(self, indices: np.ndarray, points: Any) -> None:
        self.indices, self.points = indices, points
        for name in ("columns", "factor"):
            self.__dict__.pop(name, None)

    def residuals(
        self, source: Source, engine: Engine, name: str = "residuals"
    ) -> np.ndarray:
        """What the pivots leave of k(x, x), for every row of a source."""
        return residuals(self.prepared(source), source, engine=engine, name=name)

    def prepared(self, source: Source) -> Pass:
        """The pass that finds what the pivots leave of the rows of a source."""
        ready = prepare(
            Columns(self.work.kernel, self.points),
            source,
            self.root,
            ledger=self.work.ledger,
            rounding=self.rounding_unit(len(self)),
        )
        if ready.widened:
            self.work.ledger.note("residuals in float64")
        return ready

    def landmarks(self, sampler: str, **facts: Any) -> Landmarks:
        """The pivots as every sampler returns them."""
        kernel, n = self.work.kernel, self.work.source.n_rows
        chosen = Landmarks(
            self.points, kernel, sampler, n, indices=self.indices, **facts
        )
        # Where the kernel makes no promise, K_SS is looked at as a whole.
        return chosen.having_factor(self.factor if kernel.traits.psd else None)
