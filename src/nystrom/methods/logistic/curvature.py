"""The curvature of the objective on some rows: what its steps are measured by.

Of two classes it is the Hessian, of more its diagonal blocks, one for each class. Rows
are drawn, and count for all: a step then is near Newton's, and costs no s × s product
per block of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...engines import Engine
from ...features import FeatureMap, Tiles
from ...operands import Operand
from ...precision import least_ridge
from ...randomness import some_rows
from ...sources import Block, Source, Subset
from .loss import operands, probabilities

#: Rows that are looked at, for each landmark.
ROWS = 8


@dataclass(frozen=True, eq=False)
class Curvature:
    """V ↦ H⁻¹V, class by class."""

    factors: list  # of H, (r + 1, r + 1) each
    fit_intercept: bool

    @classmethod
    def at(
        cls,
        coef: np.ndarray,
        mapping: FeatureMap,
        source: Source,
        C: float,
        fit_intercept: bool,
        engine: Engine,
        seed: int,
    ) -> Curvature:
        """I + C·Σ w·p(1 − p)·zzᵀ on drawn rows, with the intercept's row and column."""
        rows = some_rows(source.n_rows, ROWS * (mapping.rank + 1), seed)
        some = Subset(source, rows)
        scale = C * source.total_weight / some.total_weight
        shared = (mapping.tiles(), *operands(mapping, coef))
        found = arrays.fetched(engine.reduce(_curvatures, some, shared, "curvature"))
        factors = []
        for G, border, total in zip(*found, strict=True):
            if not mapping.whiten:
                G, border = mapping.root.T @ G @ mapping.root, mapping.root.T @ border
            H = np.empty((len(G) + 1, len(G) + 1))
            H[:-1, :-1], H[-1, -1] = scale * G, scale * total if fit_intercept else 1.0
            H[-1, :-1] = H[:-1, -1] = scale * border if fit_intercept else 0.0
            H[np.diag_indices(len(G))] += 1.0
            H[np.diag_indices(len(H))] += least_ridge(H)
            factors.append(scipy.linalg.cho_factor(H, lower=True, overwrite_a=True))
        return cls(factors, fit_intercept)

    def solve(self, V: np.ndarray) -> np.ndarray:
        """H⁻¹V."""
        solved = [
            scipy.linalg.cho_solve(factor, v)
            for factor, v in zip(self.factors, V.T, strict=True)
        ]
        out = np.array(solved).T
        if not self.fit_intercept:
            out[-1] = 0.0
        return out


def _curvatures(block: Block, tiles: Tiles, V: Operand, b: Operand) -> tuple:
    """For each class Σ h·zzᵀ, Σ h·z and Σ h, with h = w·p(1 − p)."""
    Z = tiles(block.X)
    F = arrays.to_host(Z @ V.beside(Z) + b.beside(Z))
    p = probabilities(F)
    p = p[:, 1:] if F.shape[1] == 1 else p
    h = p * (1 - p) * np.ascontiguousarray(block.weights)[:, None]
    grams, borders = [], []
    for column in h.T:
        scaled = Z * arrays.from_host(np.sqrt(column), Z)[:, None]
        grams.append(scaled.T @ scaled)
        borders.append(Z.T @ arrays.from_host(column, Z))
    return tuple(grams), tuple(borders), tuple(h.sum(axis=0).tolist())
