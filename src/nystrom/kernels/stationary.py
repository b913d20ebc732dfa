"""Kernels of a distance: RBF, Matérn, rational quadratic, Laplacian, χ².

Those of the Euclidean distance are a profile of squared distances, applied in place;
the others sum over the features. `Mahalanobis` puts a linear map in front of one: a
distance (x − y)ᵀM(x − y) with a matrix M. `WidthGradient` differentiates kernel values
by the logarithm of their length scales, for few rows in NumPy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._validation import check_positive
from .base import (
    Kernel,
    Traits,
    check_n_features,
    check_per_feature,
    constant_diagonal,
    set_checked,
)
from .distances import DenseDistances, SparseDistances, feature_medians

#: Beyond this r², exp(−r) is 0 in float64 too; and r stays finite.
MAX_SQUARED_DISTANCE = 1e6


class EuclideanKernel(Kernel):
    """k(x, y) = profile(c·‖(x − y)·scale‖²)."""

    traits: ClassVar[Traits] = Traits(is_distance_based=True)
    #: Whether the profile needs the distance itself: the root of a rounded square is
    #: off by the root of the rounding where two rows are near.
    needs_exact_distance: bool = False

    @property
    @abstractmethod
    def _constant_and_scale(self) -> tuple[float, float | tuple[float, ...]]:
        """The constant c and the scale, one number or one per feature."""

    @abstractmethod
    def _profile(self, D: Array) -> Array:
        """The kernel from c·‖·‖², in place where possible."""

    @abstractmethod
    def _profile_and_slope(
        self, D: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The profile in place of D, and its derivative: an array times a factor.

        In NumPy, and where possible without temporary arrays. The array is `out`, or D
        where the derivative is a multiple of the profile. It is 0 for equal rows that
        have no derivative. Distances of near rows may be rounded to the other sign.
        """

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.evaluator(Y)(X)

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        c, scale = self._constant_and_scale
        check_n_features(scale, "gamma or length_scale", Y.shape[1])
        scaling: Any = 1.0
        if isinstance(scale, tuple):
            scaling = np.asarray(scale)
        else:
            c *= scale**2
        Distances = SparseDistances if sp.issparse(Y) else DenseDistances
        distances = Distances(arrays.as_float(Y), c, scaling, self.needs_exact_distance)
        return lambda X: self._profile(distances(arrays.as_float(X)))

    def diag(self, X: Any) -> Array:
        return constant_diagonal(X, 1.0)


def _reciprocal(length_scale: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if isinstance(length_scale, tuple):
        return tuple(1 / length for length in length_scale)
    return 1 / length_scale


@dataclass(frozen=True)
class RBF(EuclideanKernel):
    """Gaussian kernel, exp(−Σⱼ γⱼ(xⱼ − yⱼ)²).

    Parameters
    ----------
    gamma : float or sequence of float
        Inverse width, one number or one per feature.

    Examples
    --------
    >>> from nystrom.kernels import RBF
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353]])
    """

    gamma: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        set_checked(self, "gamma", check_per_feature)

    @property
    def _constant_and_scale(self) -> tuple[float, float | tuple[float, ...]]:
        if isinstance(self.gamma, tuple):
            return -1.0, tuple(np.sqrt(self.gamma).tolist())
        return -self.gamma, 1.0

    def _profile(self, D: Array) -> Array:
        return arrays.exp_(D)

    def _profile_and_slope(
        self, D: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, float]:
        np.minimum(D, 0.0, out=D)
        return np.exp(D, out=D), 1.0


@dataclass(frozen=True)
class Matern(EuclideanKernel):
    """Matérn kernel with ν = 1/2, 3/2 or 5/2.

    With d = ‖(x − y)/length_scale‖ it is exp(−d) for ν = 1/2; (1 + r)·exp(−r), r =
    √3·d, for ν = 3/2; and (1 + r + r²/3)·exp(−r), r = √5·d, for ν = 5/2.

    Parameters
    ----------
    length_scale : float or sequence of float
        Length scale, one number or one per feature.
    nu : {0.5, 1.5, 2.5}
        Smoothness ν.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Matern
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Matern(length_scale=2.0, nu=2.5)(x, Y).round(4)
    array([[1.    , 0.4583]])
    """

    length_scale: float | tuple[float, ...] = 1.0
    nu: float = 1.5

    def __post_init__(self) -> None:
        set_checked(self, "length_scale", check_per_feature, positive=True)
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(
                f"nu={self.nu!r} is not available; allowed: 0.5, 1.5, 2.5 (the limit "
                "of large nu is kernels.RBF)."
            )

    @property
    def needs_exact_distance(self) -> bool:  # type: ignore[override]
        return self.nu == 0.5  # the others are smooth at 0

    @property
    def _constant_and_scale(self) -> tuple[float, float | tuple[float, ...]]:
        return 2 * self.nu, _reciprocal(self.length_scale)

    def _profile(self, D: Array) -> Array:
        r = arrays.sqrt_(D, MAX_SQUARED_DISTANCE)
        decay = arrays.exp_(-r)
        if self.nu == 0.5:
            return decay
        if self.nu == 2.5:
            r = 1 + r + r * r / 3
        else:
            r += 1
        r *= decay
        return r

    def _profile_and_slope(
        self, D: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, float]:
        r = arrays.sqrt_(D, MAX_SQUARED_DISTANCE)
        decay = np.exp(np.negative(r, out=out), out=out)
        if self.nu == 0.5:
            slope = np.divide(decay, r, out=np.zeros_like(r), where=r > 0)
            D[...], out[...] = decay, slope
            return out, -0.5
        if self.nu == 1.5:
            r += 1
            r *= decay  # (1 + r)·exp(−r), of derivative −exp(−r)/2 by r²
            return decay, -0.5
        linear = (1 + r) * decay
        r *= r
        r *= decay
        r /= 3
        r += linear
        out[...] = linear
        return out, -1 / 6


@dataclass(frozen=True)
class RationalQuadratic(EuclideanKernel):
    """Rational quadratic kernel, (1 + ‖(x − y)/length_scale‖²/(2·alpha))^(−alpha).

    Parameters
    ----------
    length_scale : float or sequence of float
        Length scale, one number or one per feature.
    alpha : float
        Scale mixture parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import RationalQuadratic
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> RationalQuadratic(length_scale=2.0)(x, Y).round(4)
    array([[1.    , 0.6154]])
    """

    length_scale: float | tuple[float, ...] = 1.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        set_checked(self, "length_scale", check_per_feature, positive=True)
        set_checked(self, "alpha", check_positive)

    @property
    def _constant_and_scale(self) -> tuple[float, float | tuple[float, ...]]:
        return 1 / (2 * self.alpha), _reciprocal(self.length_scale)

    def _profile(self, D: Array) -> Array:
        D += 1
        return 1 / D if self.alpha == 1 else D ** (-self.alpha)

    def _profile_and_slope(
        self, D: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, float]:
        np.maximum(D, 0.0, out=D)
        D += 1
        np.reciprocal(D, out=out)
        np.power(D, -self.alpha, out=D) if self.alpha != 1 else np.copyto(D, out)
        out *= D
        return out, -self.alpha


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
        set_checked(self, "gamma", check_per_feature)

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
        set_checked(self, "gamma", check_positive)

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


@dataclass(frozen=True, eq=False)
class Mahalanobis(Kernel):
    """A kernel of linearly transformed rows, kernel(xT, yT).

    It depends on (x − y)ᵀM(x − y) with M = TTᵀ.

    Parameters
    ----------
    kernel : Kernel
        A kernel of a distance, such as `RBF` or `Matern`.
    transform : array-like of shape (n_features, n_components)
        The linear map T. With gamma="matrix", estimators learn it from the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import RBF, Mahalanobis
    >>> kernel = Mahalanobis(RBF(1.0), [[1.0], [1.0]])  # the sum of two features
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[2.0, 1.0], [1.0, 3.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    kernel: Kernel
    transform: Any

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(
                f"kernel={self.kernel!r} is not a kernel; pass one of a distance, such "
                "as kernels.RBF(1.0)."
            )
        if not self.kernel.traits.is_distance_based:
            raise ValueError(
                f"{self.kernel} is not a kernel of a distance; use one that is, such "
                "as kernels.RBF or kernels.Matern."
            )
        T = np.array(self.transform, dtype=np.float64)
        if T.ndim != 2 or not T.size or not np.isfinite(T).all() or not T.any():
            raise ValueError(
                f"transform has shape {T.shape}; it must be a matrix (n_features, "
                "n_components) of finite numbers, not all of them 0."
            )
        T.flags.writeable = False
        object.__setattr__(self, "transform", T)

    @property
    def traits(self) -> Traits:
        return self.kernel.traits

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mahalanobis)
            and self.kernel == other.kernel
            and np.array_equal(self.transform, other.transform)
        )

    def __hash__(self) -> int:
        return hash((self.kernel, self.transform.tobytes()))

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.evaluator(Y)(X)

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        n_features = len(self.transform)
        if Y.shape[1] != n_features:
            raise ValueError(
                f"transform maps {n_features} features, but rows have {Y.shape[1]}."
            )
        # Distances do not depend on the origin; products are exact near it.
        center = None if sp.issparse(Y) else DeviceConstant(feature_medians(Y))
        T = DeviceConstant(self.transform)

        def map_rows(X: Any) -> Array:
            X = X.toarray() if sp.issparse(X) and center is not None else X
            X = arrays.as_float(X)
            if center is None:
                return np.asarray(X @ self.transform.astype(X.dtype))
            return (X - center.to_device_of(X)) @ T.to_device_of(X)

        evaluate = self.kernel.evaluator(map_rows(arrays.widen(Y)))
        return lambda X: arrays.as_float(evaluate(map_rows(X)), arrays.float_dtype(X))

    def diag(self, X: Any) -> Array:
        return self.kernel.diag(X)

    def dtype(self, X: Any) -> np.dtype:
        return self.kernel.dtype(X)

    def __str__(self) -> str:
        shape = " × ".join(map(str, self.transform.shape))
        return f"Mahalanobis({self.kernel}, transform={shape})"


#: Σ Gᵢₖ ∂kᵢₖ/∂log tⱼ for each j, given G.
GradientFunction = Callable[[np.ndarray], np.ndarray]


def has_width_gradient(kernel: Kernel) -> bool:
    """Whether gradients by the length scales of this kernel are known."""
    return isinstance(kernel, (EuclideanKernel, Laplacian))


def width_exponent(kernel: Kernel) -> int:
    """How δⱼ grows with the scale of feature j: a square, or as that itself."""
    return 2 if isinstance(kernel, EuclideanKernel) else 1


class WidthGradient:
    """Rows with the first of them, under a kernel whose widths change.

    With `per_feature` there is one t per feature, else one for all.
    """

    def __init__(self, kernel: Any, X: Any, n_first: int, *, per_feature: bool) -> None:
        self.kernel, self.per_feature = kernel, per_feature
        self.is_squared = isinstance(kernel, EuclideanKernel)
        c, scale = (
            kernel._constant_and_scale if self.is_squared else (-1.0, kernel.gamma)
        )
        self.sign = np.sign(c)
        feature_scale = np.sqrt(np.abs(c)) * np.asarray(scale)
        self.X = scale_features(X, feature_scale)
        self.Y = arrays.slice_rows(self.X, 0, n_first)
        self._unit_distances = None if per_feature else self._distances(np.ones(1))

    def values_and_gradient(self, t: np.ndarray) -> tuple[np.ndarray, GradientFunction]:
        """The kernel's values, and what a change of log t does to a sum of them."""
        unit = self._unit_distances
        A = self._distances(t) if unit is None else t[0] * unit
        A *= self.sign
        K, factor = A.copy(), 1.0
        if self.is_squared:
            slope, factor = self.kernel._profile_and_slope(K, np.empty_like(A))
        else:
            slope = np.exp(K, out=K)

        def gradient(G: np.ndarray) -> np.ndarray:
            M = G * slope
            M *= factor
            if not self.per_feature:
                return np.array([np.vdot(M, A)])
            return self.sign * t * self._weighted_difference_sums(M)

        return K, gradient

    def _distances(self, t: np.ndarray) -> np.ndarray:
        """Σⱼ tⱼδⱼ without its sign."""
        if not self.is_squared:
            return arrays.cityblock(
                scale_features(self.X, t), scale_features(self.Y, t)
            )
        X, Y = (scale_features(rows, np.sqrt(t)) for rows in (self.X, self.Y))
        A = arrays.dot(X, Y)
        A *= -2
        A += arrays.squared_norms(X)[:, None]
        A += arrays.squared_norms(Y)
        np.fill_diagonal(A, 0.0)  # not rounding, of which Matérn takes the root
        return np.maximum(A, 0.0, out=A)

    def _weighted_difference_sums(self, M: np.ndarray) -> np.ndarray:
        """Σ Mᵢₖ δⱼ(xᵢ, yₖ) for each feature j."""
        X, Y = self.X, self.Y
        if self.is_squared:
            mixed = np.einsum("ij,ij->j", M @ Y, X)
            return M.sum(axis=1) @ X**2 + M.sum(axis=0) @ Y**2 - 2 * mixed
        return np.array(
            [
                np.vdot(M, np.abs(np.subtract.outer(X[:, j], Y[:, j])))
                for j in range(X.shape[1])
            ]
        )
