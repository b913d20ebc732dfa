"""What the stand-ins are made of: a few hidden Gaussian variables per row.

Columns are mixtures of them plus noise of their own, so they are correlated and the
kernel matrix has a spectrum that falls; a target is a smooth function of them plus
noise, so there is something to learn. All in float32, block by block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

#: Rows at a time; part of what a seed means, so never to be changed.
BLOCK_ROWS = 16384


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Standard normal numbers in float32."""
    return rng.standard_normal(shape, dtype=np.float32)


class Mixture:
    """Columns of variance 1: each a direction of the hidden variables, and noise."""

    def __init__(
        self, rng: np.random.Generator, n_hidden: int, n_columns: int, noise: float
    ) -> None:
        directions = normal(rng, n_hidden, n_columns)
        directions /= np.linalg.norm(directions, axis=0)
        self.directions = directions * np.float32(np.sqrt(1 - noise**2))
        self.noise = np.float32(noise)

    def columns(self, rng: np.random.Generator, hidden: np.ndarray) -> np.ndarray:
        """One row per row of `hidden`."""
        mixed = hidden @ self.directions
        return mixed + self.noise * normal(rng, *mixed.shape)


class SmoothScore:
    """A smooth function of the hidden variables plus noise: mean 0, variance 1."""

    def __init__(self, rng: np.random.Generator, n_hidden: int, noise: float) -> None:
        self.frequencies = normal(rng, n_hidden, 16) * np.float32(n_hidden**-0.5)
        self.phases = rng.uniform(0, 2 * np.pi, 16).astype(np.float32)
        self.noise = np.float32(noise)
        sample = self._waves(normal(rng, 4096, n_hidden))
        self.mean = sample.mean()
        self.scale = np.float32(np.sqrt(1 - noise**2)) / sample.std()

    def _waves(self, hidden: np.ndarray) -> np.ndarray:
        return np.cos(hidden @ self.frequencies + self.phases).sum(axis=1)

    def values(self, rng: np.random.Generator, hidden: np.ndarray) -> np.ndarray:
        """One number per row of `hidden`."""
        smooth = (self._waves(hidden) - self.mean) * self.scale
        return smooth + self.noise * normal(rng, len(hidden))


def shared_out(scores: np.ndarray, shares: ArrayLike) -> np.ndarray:
    """Cut normal scores into as many kinds as shares, as frequent as the shares say."""
    cumulated = np.cumsum(np.asarray(shares, dtype=float))
    bounds = ndtri(cumulated[:-1] / cumulated[-1])
    return np.searchsorted(bounds, scores)


def indicators(kinds: np.ndarray, n_kinds: int) -> np.ndarray:
    """0/1 columns, one per kind."""
    return kinds[:, None] == np.arange(n_kinds)
