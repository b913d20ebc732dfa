"""kernel="precomputed": values that are given, of training rows and of new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .base import Kernel, Traits


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """K itself: the points are row numbers, and k(i, j) = matrix[i, j]."""

    matrix: Any = None
    traits: ClassVar[Traits] = Traits(psd=None, by_number=True)

    def like(self, X: Any) -> Any:
        if self.matrix is None:
            raise ValueError(
                "A precomputed kernel matrix is not part of a fitted model, so nothing "
                "can be evaluated here; pass it to approximate(K, landmarks)."
            )
        return self.matrix

    def __call__(self, X: Any, Y: Any) -> Array:
        rows, columns = np.asarray(X), np.asarray(Y)
        if arrays.namespace(self.matrix) is np:
            return arrays.as_float(self.matrix[np.ix_(rows, columns)])
        block = arrays.take_rows(self.matrix, rows)
        return arrays.as_float(arrays.take_rows(block.T, columns).T)

    def diag(self, X: Any) -> Array:
        rows = np.asarray(X)
        if arrays.namespace(self.matrix) is np:
            return arrays.as_float(self.matrix[rows, rows])
        diagonal = arrays.namespace(self.matrix).linalg.diagonal(self.matrix)
        return arrays.as_float(arrays.take_rows(diagonal, rows))

    def gram(self, Y: Any) -> np.ndarray:
        K = arrays.to_host(self(Y, Y)).astype(np.float64)
        return (K + K.T) / 2

    def gram_evaluations(self, n_points: int) -> int:
        return n_points * n_points

    def __str__(self) -> str:
        return "precomputed"


@dataclass(frozen=True, eq=False)
class NewRows(Precomputed):
    """Kernel values of new rows with training rows: k(x, x) is not among them."""

    def diag(self, X: Any) -> Array:
        raise ValueError(
            "This needs k(x, x) of new rows, which the kernel values with training "
            "rows do not tell (kernel='precomputed'). Fit with a kernel and rows."
        )


@dataclass(frozen=True, eq=False)
class AtLandmarks:
    """Kernel values of new rows with the landmarks alone, for kernel="precomputed".

    New rows come as their kernel values with all training rows, (n_samples,
    n_training), of which few columns are looked at. Whoever makes only those says so by
    this wrapper, since the width of a matrix does not tell what its columns are.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_landmarks)
        k(x, s) for each new row x and each landmark s, in the order of
        `landmarks_.indices`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge, kernels
    >>> X = np.random.default_rng(0).standard_normal((600, 3))
    >>> K, y = kernels.RBF(0.1)(X, X), np.sin(X[:, 0])
    >>> model = KernelRidge(kernel="precomputed", n_landmarks=50, random_state=0)
    >>> model = model.fit(K[:500, :500], y[:500])
    >>> values = K[500:, model.landmarks_.indices]
    >>> predicted = model.predict(kernels.AtLandmarks(values))
    >>> bool((predicted == model.predict(K[500:, :500])).all())
    True
    """

    values: Any
