"""The curvature of the objective on a sample of the rows: what steps are measured by.

H = I + C·Σ w·(diag p − ppᵀ) ⊗ zzᵀ; the intercept is one more entry of z, without the I.
For two classes it is factored. For more its blocks on the diagonal are, one for each
class, and conjugate gradients on the sample do the rest: what is held are features of
a few rows for each landmark. These are the same at all coefficients, and the factors
are good enough for a while: to look at another place is to make new probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...engines import TILE
from ...features import FeatureMap, Tiles
from ...precision import EPS64
from ...sources import Source
from .loss import probabilities

#: Rows that are looked at, for each landmark: of two classes, and of more, where their
#: features are held.
ROWS, HELD_ROWS = 64, 16
#: Conjugate gradients end at this share of the right-hand side, or after so many steps:
#: with ten times as exact directions as many steps were made down.
TOLERANCE, MOST_STEPS = 0.1, 50
#: Added to the diagonal, as a share of it, for each column: what rounding may take.
ROUNDING = 4 * EPS64
#: Factors with which they took more than this are made anew at the next place.
FEW_STEPS = 10

Solve = Callable[[np.ndarray], np.ndarray]  # V ↦ H⁻¹V


def rows_to_look_at(n_landmarks: int, n_columns: int) -> int:
    """How many rows the sample is to have."""
    return (n_landmarks + 1) * (ROWS if n_columns == 1 else HELD_ROWS)


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of the sample."""

    Z: Any  # (m, q) where the rows are, the last column 1 with an intercept
    w: np.ndarray  # (m,) C times the weights

    def times(self, V: np.ndarray) -> np.ndarray:
        """ZV, for V (q, t)."""
        return arrays.host_values(self.Z @ arrays.from_host(V, self.Z))

    def transposed(self, U: np.ndarray) -> np.ndarray:
        """ZᵀU, for U (m, t)."""
        return arrays.host_values(self.Z.T @ arrays.from_host(U, self.Z))

    def gram(self, w: np.ndarray) -> Any:
        """Σ w·zzᵀ, where the rows are."""
        B = self.Z * arrays.from_host(np.sqrt(w), self.Z)[:, None]
        return B.T @ B


@dataclass(eq=False)
class Curvature:
    """H on rows that count for all, at one place after the other."""

    mapping: FeatureMap
    sample: Source
    C: float
    fit_intercept: bool
    _factors: list[tuple] = field(default_factory=list, init=False)
    _n_steps: int = field(default=0, init=False)  # with these factors, at most

    def at(self, coef: np.ndarray) -> Solve:
        """V ↦ H⁻¹V at some coefficients, for V and the result (r + 1, t)."""
        coef = coef[: len(self.ridge)]
        if coef.shape[1] == 1:
            grams: Any = 0.0
            for part in self._parts():
                p = probabilities(part.times(coef))[:, 1]
                grams = grams + part.gram(part.w * p * (1 - p))
            factor = self._factored(grams)
            return partial(self._padded, partial(_solved, factor))
        P = [probabilities(part.times(coef)) for part in self._held]
        if not self._factors or self._n_steps > FEW_STEPS:
            self._factors, self._n_steps = self._blocks(P), 0
        return partial(self._padded, partial(self._by_cg, P))

    @cached_property
    def _whole(self) -> float:
        return self.C * self.sample.total_weight

    @cached_property
    def ridge(self) -> np.ndarray:
        """(q,) 1, and 0 for the intercept."""
        return np.append(np.ones(self.mapping.rank), [0.0] * bool(self.fit_intercept))

    def _parts(self) -> Iterator[Part]:
        tiles = Tiles.by(self.mapping.columns, self.mapping.root, None)
        for start in range(0, self.sample.n_rows, TILE):
            block = self.sample.block(start, min(start + TILE, self.sample.n_rows))
            Z = tiles(block.X)
            if self.fit_intercept:
                one = arrays.from_host(np.ones((len(block), 1)), Z)
                Z = arrays.side_by_side([Z, one])
            yield Part(Z, self.C * block.weights)

    @cached_property
    def _held(self) -> list[Part]:
        return list(self._parts())

    def _blocks(self, P: list[np.ndarray]) -> list[tuple]:
        """The factor of the block of each class."""
        found = []
        for k in range(P[0].shape[1]):
            pairs = zip(self._held, (each[:, k] for each in P), strict=True)
            found.append(
                self._factored(sum(own.gram(own.w * p * (1 - p)) for own, p in pairs))
            )
        return found

    def _factored(self, gram: Any) -> tuple:
        H = arrays.host_values(gram)
        diagonal = np.einsum("ii->i", H)
        # Each column by its own size: one for all would hide those of small features.
        # An intercept has no curvature where all is certain; then that of little doubt.
        least = ROUNDING * len(H) * np.maximum(diagonal, self._whole * (1 - self.ridge))
        diagonal += self.ridge + np.maximum(least, np.finfo(np.float64).tiny)
        # H is its own transpose, which is where LAPACK finds it.
        return scipy.linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)

    def _padded(self, solve: Solve, V: np.ndarray) -> np.ndarray:
        """The row of the intercept is there where it is none, too."""
        out, q = np.zeros_like(V), len(self.ridge)
        out[:q] = solve(V[:q])
        return out

    def _contrasts(self, V: np.ndarray) -> np.ndarray:
        """Block by block; without what is added to all classes alike, which is none."""
        pairs = zip(self._factors, V.T, strict=True)
        found = np.array([_solved(factor, v) for factor, v in pairs]).T
        return found - found.mean(axis=1, keepdims=True)

    def _by_cg(self, P: list[np.ndarray], V: np.ndarray) -> np.ndarray:
        x, r = np.zeros_like(V), V - V.mean(axis=1, keepdims=True)
        z = self._contrasts(r)
        p, rho = z.copy(), float(np.vdot(r, z))
        goal = TOLERANCE**2 * rho
        for step in range(MOST_STEPS):
            self._n_steps = max(self._n_steps, step + 1)
            Hp = self._times(P, p)
            curved = float(np.vdot(p, Hp))
            if not (rho > 0 and curved > 0):
                break
            length = rho / curved
            x += length * p
            r -= length * Hp
            z = self._contrasts(r)
            before, rho = rho, float(np.vdot(r, z))
            if rho <= goal:
                break
            p = z + rho / before * p
        return x

    def _times(self, P: list[np.ndarray], V: np.ndarray) -> np.ndarray:
        """HV."""
        out = self.ridge[:, None] * V
        for part, own in zip(self._held, P, strict=True):
            U = part.times(V) * own
            U -= own * U.sum(axis=1, keepdims=True)
            out += part.transposed(part.w[:, None] * U)
        return out


def _solved(factor: tuple, V: np.ndarray) -> np.ndarray:
    return scipy.linalg.cho_solve(factor, V, check_finite=False)
