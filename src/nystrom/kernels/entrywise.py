"""Kernels of entry-by-entry differences: Laplacian, χ² and additive χ²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .base import (
    Kernel,
    Traits,
    check_n_features,
    constant_diagonal,
    set_gamma,
    set_per_feature,
)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """Laplacian kernel, exp(−Σⱼ γⱼ|xⱼ − yⱼ|).

    Parameters
    ----------
    gamma : float or sequence of float
        Inverse width, one number or one per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Laplacian
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Laplacian(gamma=0.5)(x, Y).round(4)
    array([[1.    , 0.2231]])
    """

    gamma: float | tuple[float, ...] = 1.0
    traits: ClassVar[Traits] = Traits(is_distance_based=True)

    def __post_init__(self) -> None:
        set_per_feature(self, "gamma")

    def __call__(self, X: Any, Y: Any) -> Array:
        X = arrays.as_float(X)
        Y = arrays.as_float(Y, X.dtype)
        check_n_features(self.gamma, "gamma", X.shape[1])
        if isinstance(self.gamma, tuple):
            X, Y = (scale_features(rows, np.asarray(self.gamma)) for rows in (X, Y))
            return arrays.exp_(-arrays.cityblock(X, Y))
        return arrays.exp_(arrays.cityblock(X, Y) * -self.gamma)

    def diag(self, X: Any) -> Array:
        return constant_diagonal(X, 1.0)


def scale_features(X: Array, scale: np.ndarray) -> Array:
    """Each feature times its own number, or all times one, in X's precision."""
    if sp.issparse(X):
        return sp.csr_array(X.multiply(scale)).astype(X.dtype)
    return X * arrays.from_host(scale, X)


def _as_histograms(X: Any, dtype: Any = None) -> Array:
    """X as a dense float block without negative entries."""
    if sp.issparse(X):
        raise ValueError(
            "The chi2 and additive_chi2 kernels take dense rows only; call "
            "X.toarray(), or use a kernel that takes CSR rows, such as 'rbf'."
        )
    X = arrays.as_float(X, dtype)
    if X.shape[0] and float(arrays.namespace(X).min(X)) < 0:
        raise ValueError(
            "X contains negative values, and the chi2 kernels are for histograms: "
            "rows with entries >= 0. Use another kernel, or shift or clip the data."
        )
    return X


@dataclass(frozen=True)
class Chi2(Kernel):
    """Exponential chi-squared kernel, exp(−gamma·Σⱼ (xⱼ − yⱼ)²/(xⱼ + yⱼ)).

    Parameters
    ----------
    gamma : float
        Inverse width.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Chi2
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Chi2(gamma=0.5)(x, Y).round(4)
    array([[1.    , 0.5134]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        set_gamma(self)

    def __call__(self, X: Any, Y: Any) -> Array:
        X = _as_histograms(X)
        K = arrays.additive_chi2(X, _as_histograms(Y, X.dtype))
        K *= self.gamma
        return arrays.exp_(K)

    def diag(self, X: Any) -> Array:
        return constant_diagonal(X, 1.0)


@dataclass(frozen=True)
class AdditiveChi2(Kernel):
    """Additive chi-squared kernel, −Σⱼ (xⱼ − yⱼ)²/(xⱼ + yⱼ).

    It is conditionally positive definite, with diagonal 0.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import AdditiveChi2
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> AdditiveChi2()(x, Y).round(4)
    array([[-0.    , -1.3333]])
    """

    traits: ClassVar[Traits] = Traits(psd=False)

    def __call__(self, X: Any, Y: Any) -> Array:
        X = _as_histograms(X)
        return arrays.additive_chi2(X, _as_histograms(Y, X.dtype))

    def diag(self, X: Any) -> Array:
        return constant_diagonal(X, 0.0)
