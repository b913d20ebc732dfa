"""The curvature of the objective on a sample of the rows: what steps are measured by.

H = I + C·Σ w·(diag p − ppᵀ) ⊗ zzᵀ; the intercept is one more entry of z, without the I.
For two classes it is factored. For more its blocks on the diagonal are, one for each
class, and conjugate gradients on the sample do the rest: what is held are features of
a few rows for each landmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...engines import TILE
from ...features import FeatureMap, Tiles
from ...operands import Operand
from ...precision import least_ridge
from ...sources import Source
from .loss import probabilities

#: Rows that are looked at, for each landmark: of two classes, and of more, where their
#: features are held.
ROWS, HELD_ROWS = 64, 16
#: Conjugate gradients end at this share of the right-hand side, or after so many steps.
TOLERANCE, MOST_STEPS = 1e-2, 50


def rows_to_look_at(n_landmarks: int, n_columns: int) -> int:
    """How many rows the sample is to have."""
    return (n_landmarks + 1) * (ROWS if n_columns == 1 else HELD_ROWS)


@dataclass(frozen=True, eq=False)
class Curvature:
    """V ↦ H⁻¹V."""

    factors: list[tuple]  # of the blocks of H on its diagonal
    ridge: np.ndarray  # (q,) 1, and 0 for the intercept
    Z: Any  # (m, q) of the sample, where its rows are; None for two classes
    P: np.ndarray  # (m, t) probabilities there
    w: np.ndarray  # (m,) C times the weights

    @classmethod
    def at(
        cls,
        coef: np.ndarray,
        mapping: FeatureMap,
        sample: Source,
        C: float,
        fit_intercept: bool,
    ) -> Curvature:
        """At some coefficients, on rows that count for all."""
        q, t = mapping.rank + bool(fit_intercept), coef.shape[1]
        tiles, W = Tiles.by(mapping.columns, mapping.root, None), Operand(coef[:-1])
        grams: list[Any] = [0.0] * t
        held = []
        for start in range(0, sample.n_rows, TILE):
            block = sample.block(start, min(start + TILE, sample.n_rows))
            Z = tiles(block.X)
            F = arrays.host_values(Z @ W.beside(Z)) + coef[-1]
            P = probabilities(F)
            P = P[:, 1:] if t == 1 else P
            w = C * block.weights
            if fit_intercept:
                one = arrays.from_host(np.ones((len(F), 1)), Z)
                Z = arrays.side_by_side([Z, one])
            for k, p in enumerate(P.T):
                h = np.sqrt(w * p * (1 - p))
                B = Z * arrays.from_host(h, Z)[:, None]
                grams[k] = grams[k] + B.T @ B
            if t > 1:
                held.append((Z, P, w))
        ridge = np.ones(q)
        ridge[mapping.rank :] = 0.0
        factors = [_factor(arrays.host_values(H), ridge) for H in grams]
        if t == 1:
            return cls(factors, ridge, None, np.empty((0, 1)), np.empty(0))
        Zs, Ps, ws = zip(*held, strict=True)
        Z = arrays.stack_rows(list(Zs))
        return cls(factors, ridge, Z, np.concatenate(Ps), np.concatenate(ws))

    def solve(self, V: np.ndarray) -> np.ndarray:
        """H⁻¹V, for V and the result (r + 1, t)."""
        out, q = np.zeros_like(V), len(self.ridge)
        out[:q] = self._blockwise(V[:q]) if self.Z is None else self._by_cg(V[:q])
        return out

    def _blockwise(self, V: np.ndarray) -> np.ndarray:
        solved = [
            scipy.linalg.cho_solve(factor, v, check_finite=False)
            for factor, v in zip(self.factors, V.T, strict=True)
        ]
        return np.array(solved).T

    def _contrasts(self, V: np.ndarray) -> np.ndarray:
        """What is added to all classes alike changes no probability: without it."""
        solved = self._blockwise(V)
        return solved - solved.mean(axis=1, keepdims=True)

    def _by_cg(self, V: np.ndarray) -> np.ndarray:
        x, r = np.zeros_like(V), V - V.mean(axis=1, keepdims=True)
        z = self._contrasts(r)
        p, rho = z.copy(), float(np.vdot(r, z))
        goal = TOLERANCE**2 * rho
        for _ in range(MOST_STEPS):
            Hp = self._times(p)
            length = rho / float(np.vdot(p, Hp)) if rho > 0 else 0.0
            x += length * p
            r -= length * Hp
            z = self._contrasts(r)
            before, rho = rho, float(np.vdot(r, z))
            if rho <= goal:
                break
            p = z + rho / before * p
        return x

    def _times(self, V: np.ndarray) -> np.ndarray:
        """HV."""
        Z = self.Z
        U = arrays.host_values(Z @ arrays.from_host(V, Z)) * self.P
        U -= self.P * U.sum(axis=1, keepdims=True)
        U *= self.w[:, None]
        return (
            arrays.host_values(Z.T @ arrays.from_host(U, Z)) + self.ridge[:, None] * V
        )


def _factor(H: np.ndarray, ridge: np.ndarray) -> tuple:
    H[np.diag_indices(len(H))] += ridge + least_ridge(H)
    # H is its own transpose, which is where LAPACK finds it.
    return scipy.linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)
