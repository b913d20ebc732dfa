"""Feature maps by name: fit, transform, and how many kernel values that took.

A map is made by `feature_map(name, gamma, s, seed)`. Ours are named by their sampler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Protocol

import numpy as np
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.kernel_approximation import RBFSampler

from nystrom import Nystroem
from nystrom.samplers import NAMES as SAMPLERS

from .plain import PlainNystroem, recursive_landmarks, rpcholesky_landmarks


class FeatureMap(Protocol):
    """What the tasks need of a method."""

    def fit(self, X: np.ndarray) -> FeatureMap: ...

    def transform(self, X: np.ndarray) -> np.ndarray: ...

    def evaluations(self, n: int) -> int:
        """Kernel values for fit and for the transform of n rows."""
        ...


class Ours(Nystroem):
    """This package, by sampler."""

    def fit(self, X, y=None):
        with warnings.catch_warnings():
            # Smooth kernels have fewer than s directions, which is no news here.
            warnings.simplefilter("ignore")
            return super().fit(X, y)

    def evaluations(self, n: int) -> int:
        s = len(self.landmarks_)
        return self.landmarks_.n_kernel_evaluations + s * s + n * s


class Uniform(SklearnNystroem):
    """scikit-learn's, a uniform draw."""

    def evaluations(self, n: int) -> int:
        s = len(self.components_)
        return s * s + n * s


class Fourier(RBFSampler):
    """scikit-learn's random Fourier features: no kernel values at all."""

    def evaluations(self, n: int) -> int:
        return 0


class Nothing:
    """Zeros, and no work: what the harness itself costs."""

    def __init__(self, s: int) -> None:
        self.s = s

    def fit(self, X: np.ndarray) -> Nothing:
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), self.s), dtype=X.dtype)

    def evaluations(self, n: int) -> int:
        return 0


def _fourier(gamma: float, s: int, seed: int) -> FeatureMap:
    return Fourier(gamma=gamma, n_components=s, random_state=seed)


def _uniform(gamma: float, s: int, seed: int) -> FeatureMap:
    return Uniform(gamma=gamma, n_components=s, random_state=seed)


PEERS: dict[str, Callable[[float, int, int], FeatureMap]] = {
    "nothing": lambda gamma, s, seed: Nothing(s),
    "fourier": _fourier,
    "sklearn": _uniform,
    "plain recursive": lambda gamma, s, seed: PlainNystroem(
        recursive_landmarks, gamma, s, seed
    ),
    "plain rpcholesky": lambda gamma, s, seed: PlainNystroem(
        rpcholesky_landmarks, gamma, s, seed
    ),
}
NAMES = [*SAMPLERS, *PEERS]


def feature_map(name: str, gamma: float, s: int, seed: int) -> FeatureMap:
    """The map of a name, not yet fitted."""
    if name in PEERS:
        return PEERS[name](gamma, s, seed)
    if name not in SAMPLERS:
        raise ValueError(f"method {name!r} is unknown; allowed: {NAMES}.")
    return Ours(gamma=gamma, n_components=s, random_state=seed, sampler=name)
