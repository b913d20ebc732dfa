"""(K̃ + αI)⁻¹V on all rows, by the landmarks' features: what preconditions K + αI.

(BBᵀ + αI)⁻¹ = (I − B(BᵀB + αI)⁻¹Bᵀ)/α with B = W^½Z, about the weighted mean where an
intercept has been taken out. B is held where it fits, else made again tile by tile.
BᵀB is of the very numbers that are held: then it is the inverse of a matrix that is
near K̃ + αI, however they were rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn import get_config

from ... import _arrays as arrays
from ...engines import Engine
from ...features import FeatureMap, Tiles
from ...landmarks import Landmarks
from ...operands import Operand
from ...precision import least_ridge
from ...sinks import ArraySink
from ...sources import Block, Source
from .all_pairs import SHARE
from .problem import with_ridge


@dataclass(frozen=True, eq=False)
class Woodbury:
    """V ↦ (K̃ + αI)⁻¹V, column by column, each with its own α."""

    source: Source  # its rows are weighted
    features: Any  # of a block: Z in float64
    factors: dict[float, tuple[float, Any]]  # α, and the factor of BᵀB + αI
    alphas: np.ndarray  # (t,)
    norm: float  # of K̃
    engine: Engine

    @classmethod
    def of(
        cls,
        landmarks: Landmarks,
        source: Source,
        alphas: np.ndarray,
        *,
        center: bool,
        engine: Engine,
    ) -> Woodbury:
        """By these landmarks, for these rows."""
        mapping = FeatureMap.for_ridge(
            landmarks, source, float(alphas.min()), center=False
        )
        tiles = Tiles.by(mapping.columns, mapping.root, None)
        features = held_features(tiles, source, mapping.rank, engine)
        name = "preconditioner"
        G, total, weight = engine.reduce(_sums, source, (features,), name)
        # Taking the mean off leaves the rounding of what it is taken off.
        norm, least = norm_of(G), least_ridge(G)
        if center:
            G = G - np.outer(total, total / weight)
        factors = {}
        for alpha in np.unique(alphas):
            # Below the rounding of G it is raised, as this only preconditions.
            mu = max(float(alpha), least)
            ridged = with_ridge(G, mu)
            factors[float(alpha)] = mu, scipy.linalg.cho_factor(ridged)
        return cls(source, features, factors, alphas, norm, engine)

    def for_alphas(self, alphas: np.ndarray) -> Woodbury:
        """The same for other columns, with some of the same α."""
        return Woodbury(
            self.source, self.features, self.factors, alphas, self.norm, self.engine
        )

    def __call__(self, V: np.ndarray) -> np.ndarray:
        root = np.sqrt(self.source.weights)[:, None]
        # As targets they travel with their rows.
        weighted = self.source.having(targets=root * V)
        name, engine = "preconditioning", self.engine.quiet()
        C = engine.reduce(_transposed, weighted, (self.features,), name)
        C, ridges = C.copy(), np.ones(len(self.alphas))
        for alpha, (mu, factor) in self.factors.items():
            those = self.alphas == alpha
            C[:, those] = scipy.linalg.cho_solve(factor, C[:, those])
            ridges[those] = mu
        sink = ArraySink(V.shape)
        engine.map(_times, self.source, sink, (self.features, Operand(C)), name)
        return (V - root * sink.array) / ridges


def norm_of(G: np.ndarray) -> float:
    """The largest eigenvalue, by so many steps of the power method as tell its size."""
    v = np.ones(len(G))
    norm = 0.0
    for _ in range(30):
        v = G @ v
        norm = float(np.linalg.norm(v))
        if not norm > 0:
            return 0.0
        v /= norm
    return norm


def held_features(tiles: Tiles, source: Source, rank: int, engine: Engine) -> Any:
    """Z of every row, in float64 or float32 if that fits; else made when asked for."""
    memory = (1 - SHARE) * get_config()["working_memory"] * 2**20
    for dtype in (np.float64, np.float32):
        if source.n_rows * rank * np.dtype(dtype).itemsize <= memory:
            sink = ArraySink((source.n_rows, rank), dtype=np.dtype(dtype))
            engine.map(_made, source, sink, (MadeFeatures(tiles),), "features")
            return HeldFeatures(sink.array)
    return MadeFeatures(tiles)


@dataclass(frozen=True, eq=False)
class HeldFeatures:
    """Z of the rows of a block, from all of it."""

    Z: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        rows = self.Z[block.start : block.start + len(block)]
        return rows.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class MadeFeatures:
    """Z of the rows of a block, made for it."""

    tiles: Tiles

    def __call__(self, block: Block) -> np.ndarray:
        return arrays.host_values(self.tiles(block.X))


def _made(block: Block, features: MadeFeatures) -> np.ndarray:
    return features(block)


def _sums(block: Block, features: Any) -> tuple[np.ndarray, np.ndarray, float]:
    w = np.ascontiguousarray(block.weights)
    B = features(block) * np.sqrt(w)[:, None]
    return B.T @ B, np.sqrt(w) @ B, float(w.sum())


def _transposed(block: Block, features: Any) -> np.ndarray:
    return features(block).T @ block.targets


def _times(block: Block, features: Any, C: Operand) -> np.ndarray:
    return features(block) @ C.values
