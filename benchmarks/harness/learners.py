"""Models by name, for peers that are no feature maps: kernel ridge regression whole.

A peer that is not installed raises `MissingError`; its cases are skipped with a word.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from nystrom import KernelRidge


class MissingError(Exception):
    """A peer is not here."""


class Falkon:
    """falkon.Falkon: uniform centres, preconditioned conjugate gradients."""

    def __init__(self, gamma: float, alpha: float, s: int, seed: int) -> None:
        import falkon
        import torch

        kernel = falkon.kernels.GaussianKernel(sigma=float(np.sqrt(0.5 / gamma)))
        self.options = {"kernel": kernel, "M": s, "seed": seed}
        self.alpha, self.make, self.tensor = alpha, falkon.Falkon, torch.from_numpy

    def fit(self, X: np.ndarray, y: np.ndarray) -> Falkon:
        # Its penalty is per row; it has no intercept.
        self.mean = y.mean()
        self.model = self.make(penalty=self.alpha / len(X), **self.options)
        targets = (y - self.mean).astype(X.dtype)[:, None]
        self.model.fit(self.tensor(X), self.tensor(targets))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(self.tensor(X)).numpy() + self.mean


class KeOps:
    """pykeops: conjugate gradients on the whole K, which is never stored."""

    def __init__(self, gamma: float, alpha: float, s: int, seed: int) -> None:
        from pykeops.numpy import LazyTensor

        self.gamma, self.alpha, self.lazy = gamma, alpha, LazyTensor

    def _kernel(self, X: np.ndarray, Y: np.ndarray):
        x, y = self.lazy(X[:, None, :]), self.lazy(Y[None, :, :])
        return (-self.gamma * ((x - y) ** 2).sum(-1)).exp()

    def fit(self, X: np.ndarray, y: np.ndarray) -> KeOps:
        self.X, self.mean = X, y.mean()
        targets = np.ascontiguousarray((y - self.mean).astype(X.dtype)[:, None])
        self.dual = self._kernel(X, X).solve(targets, alpha=self.alpha, eps=1e-4)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._kernel(X, self.X) @ self.dual + self.mean


class CuML:
    """cuml.kernel_ridge.KernelRidge: the whole K, on a GPU."""

    def __init__(self, gamma: float, alpha: float, s: int, seed: int) -> None:
        from cuml.kernel_ridge import KernelRidge as Theirs

        options = {"kernel": "rbf", "gamma": gamma, "output_type": "numpy"}
        self.model = Theirs(alpha=alpha, **options)

    def fit(self, X: np.ndarray, y: np.ndarray) -> CuML:
        self.mean = y.mean()
        self.model.fit(X, y - self.mean)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X) + self.mean


def _ours(gamma: float, alpha: float, s: int, seed: int) -> KernelRidge:
    params = {"kernel": "rbf", "gamma": gamma, "alpha": alpha, "random_state": seed}
    return KernelRidge(**params, n_landmarks=s, fit_intercept=True)


#: The model, and the package that it needs.
MODELS: dict[str, tuple[Callable, str]] = {
    "KernelRidge": (_ours, "nystrom"),
    "falkon": (Falkon, "falkon"),
    "pykeops": (KeOps, "pykeops"),
    "cuml": (CuML, "cuml"),
}


def model(name: str, gamma: float, alpha: float, s: int, seed: int):
    """The model of a name, not yet fitted."""
    make, package = MODELS[name]
    if find_spec(package) is None:
        raise MissingError(f"{package} is not installed")
    return make(gamma, alpha, s, seed)
