"""Kernels of the Euclidean distance: RBF, Matérn, rational quadratic.

All squared distances of a block come from one matrix product, [x̂, ‖x̂‖², 1] times
[−2ŷ, 1, ‖ŷ‖²]ᵀ, with the kernel's own constant folded in; the profile is then applied
in place. Rows are centred on the median of Y first: without it float32 loses the
distance of two near rows far from the origin.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from ..precision import FAR
from .base import Kernel, Traits, constant
from .parameters import check_width, set_numbers, set_per_feature

#: Beyond this r², exp(−r) is 0 in float64 too; and r stays finite.
VANISHED = 1e6
#: Points that a median is taken of.
MIDDLE_OF = 256
#: CSR points become dense once, if they take no more bytes than this.
DENSE_POINTS = 2**27


class DenseDistances:
    """X ↦ c·‖(x − y)·scale‖² for all rows y of fixed dense points Y."""

    def __init__(self, Y: Array, c: float, scale: Any, near: bool) -> None:
        self.c, self.scale, self.near = c, scale, near
        self._finite: dict[Any, bool] = {}
        self.center = _float32_center(Y)
        apart = arrays.widen(Y) - arrays.beside(self.center, Y)
        self.points64 = apart * arrays.beside(scale, Y) if np.ndim(scale) else apart
        with np.errstate(over="ignore"):  # of points this far the kernel is 0
            if isinstance(Y, np.ndarray):
                self.right = self._right(Y.dtype)
            else:
                self.right = arrays.as_float(self.right64, Y.dtype)

    @cached_property
    def right64(self) -> Array:
        """The right side of the product, in float64, where the points are."""
        P = self.points64
        if isinstance(P, np.ndarray):
            return self._right(np.float64)
        norms = arrays.squared_norms(P)[:, None]
        ones = arrays.namespace(P).ones_like(norms)
        blocks = [P * (-2 * self.c), ones * self.c, norms * self.c]
        return arrays.side_by_side(blocks).T

    def _right(self, dtype: Any) -> np.ndarray:
        P = self.points64
        right = np.empty((P.shape[1] + 2, len(P)), dtype)
        np.multiply(P.T, -2 * self.c, out=right[:-2], casting="same_kind")
        right[-2] = self.c
        right[-1] = self.c * np.vecdot(P, P)
        return right

    def __call__(self, X: Array) -> Array:
        X = X.toarray() if sp.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are far
            left = arrays.with_norms(X, self.center, self.scale)
            same = left.dtype == self.right.dtype
            right = self.right if same else arrays.as_float(self.right64, left.dtype)
            D = left @ right
        if not arrays.on_host(X):
            return self._with_closer_rows(D, X, left)
        if not self._all_finite(right):  # of points so far that 0·inf is among D
            return self._closer(X, left[:, :-2])
        far = _far_rows(left[:, -2], self.c)
        if len(far):
            with np.errstate(over="ignore"):
                D[far] = self._closer(X[far], left[far, :-2])
        if self.near:
            i, j = _near_pairs(D, left[:, -2], self.c)
            # From the rows themselves: centring has rounded float32 ones.
            apart = (X[i] - self.center) * self.scale - self.points64[j]
            with np.errstate(over="ignore"):
                D[i, j] = self.c * np.vecdot(apart, apart)
        return D

    def _all_finite(self, right: np.ndarray) -> bool:
        known = self._finite.get(right.dtype)
        if known is None:
            known = self._finite[right.dtype] = bool(np.isfinite(right).all())
        return known

    def _with_closer_rows(self, D: Array, X: Array, left: Array) -> Array:
        """D on a device, with rows that the product gives too inexactly made anew."""
        xp, norms = arrays.namespace(D), left[:, -2]
        inexact = ~(norms <= _far_limit(norms, self.c))
        if self.near:
            near = xp.abs(D) <= _near_limit(D, norms, self.c)[:, None]
            inexact = inexact | xp.any(near, axis=1)
        if not bool(xp.any(inexact)):  # all that leaves the device, mostly
            return D
        rows = np.flatnonzero(arrays.to_host(inexact))
        some, scaled = (arrays.take_rows(each, rows) for each in (X, left[:, :-2]))
        return arrays.with_rows(D, rows, self._closer(some, scaled))

    def _closer(self, X: Array, scaled: Array) -> Array:
        """The same more exactly: in float64, and there by differences."""
        if arrays.host_dtype(X) == np.float32:
            with np.errstate(over="ignore"):
                return arrays.as_float(self(arrays.widen(X)), X.dtype)
        return self.c * arrays.squared_distances(scaled, self.points64)


class SparseDistances:
    """The same for points in CSR: not centred, which would fill the zeros."""

    def __init__(self, Y: Any, c: float, scale: Any, near: bool) -> None:
        self.Y, self.c, self.scale, self.near = Y, c, scale, near
        wide = arrays.widen(Y)
        self.Y_norms = c * self._norms(wide)
        small = Y.shape[0] * Y.shape[1] * 8 <= DENSE_POINTS
        wide = wide.toarray() if small else wide
        # The scale goes to one side of the product, squared.
        right = wide * (np.square(scale) * (-2 * c))
        self.right64 = right if small else sp.csr_array(right)
        self.right = self.right64.astype(Y.dtype)

    def __call__(self, X: Any) -> np.ndarray:
        norms = self._norms(X)
        D = arrays.dot(X, self.right if X.dtype == self.right.dtype else self.right64)
        D += (self.c * norms)[:, None]
        D += self.Y_norms.astype(D.dtype)
        far = _far_rows(norms, self.c)
        if len(far):
            D[far] = self._closer(X[far])
        if self.near:
            i, j = _near_pairs(D, norms, self.c)
            apart = sp.csr_array(X[i]) - sp.csr_array(self.Y[j])
            D[i, j] = self.c * self._norms(arrays.widen(apart))
        return D

    def _closer(self, X: Any) -> np.ndarray:
        """The same more exactly: in float64, and there by differences of dense rows."""
        if X.dtype == np.float32:
            return self(arrays.widen(X))
        X, Y = (M.toarray() if sp.issparse(M) else M for M in (X, arrays.widen(self.Y)))
        return self.c * arrays.squared_distances(X * self.scale, Y * self.scale)

    def _norms(self, X: Any) -> np.ndarray:
        if np.ndim(self.scale):
            sparse = sp.issparse(X)
            X = sp.csr_array(X.multiply(self.scale)) if sparse else X * self.scale
        return arrays.squared_norms(X)


def _far_rows(squared_norms: Array, c: float) -> np.ndarray:
    """The rows whose distances to near points a product gives too inexactly.

    Only x's own norm counts: where y alone is far, the kernel is nearly 0.
    """
    # Written so that a norm that overflowed to inf or nan counts as far.
    return np.flatnonzero(~(squared_norms <= _far_limit(squared_norms, c)))


def _far_limit(squared_norms: Array, c: float) -> float:
    unit = 2 * abs(c) * arrays.epsilon(squared_norms.dtype, squared_norms)
    return FAR[arrays.host_dtype(squared_norms)] / unit if unit else np.inf


def _near_pairs(D: np.ndarray, squared_norms: np.ndarray, c: float) -> Any:
    """The pairs whose distance is so small that its root is mostly rounding."""
    return np.nonzero(np.abs(D) <= _near_limit(D, squared_norms, c)[:, None])


def _near_limit(D: Array, squared_norms: Array, c: float) -> Array:
    return abs(c) * arrays.epsilon(D.dtype, D) ** 0.5 * squared_norms


def middle_of(points: Array) -> np.ndarray:
    """The median of the points, of some where there are many.

    Not the mean, which one far point can carry away from all the others.
    """
    n = points.shape[0]
    rows = np.arange(0, n, -(-n // MIDDLE_OF))
    some = arrays.host_values(arrays.take_rows(points, rows))
    return np.sort(some, axis=0)[len(some) // 2]


def _float32_center(points: Array) -> np.ndarray:
    """The middle of the points, as numbers that float32 rows can subtract exactly."""
    middle = middle_of(points)
    with np.errstate(over="ignore"):
        rounded = middle.astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(rounded), rounded, middle)


class Euclidean(Kernel):
    """k(x, y) = profile(c·‖(x − y)·scale‖²)."""

    traits: ClassVar[Traits] = Traits(of_distance=True)
    #: Whether the profile needs the distance itself: the root of a rounded square is
    #: off by the root of the rounding where two rows are near.
    rooted: bool = False

    @property
    @abstractmethod
    def _distance(self) -> tuple[float, float | tuple[float, ...]]:
        """The constant c and the scale, one number or one per feature."""

    @abstractmethod
    def _profile(self, D: Array) -> Array:
        """The kernel from c·‖·‖², in place where possible."""

    @abstractmethod
    def _slope(self, D: np.ndarray) -> np.ndarray:
        """The derivative of the profile, in NumPy; 0 for equal rows if it has none."""

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.against(Y)(X)

    def against(self, Y: Any) -> Callable[[Any], Array]:
        c, scale = self._distance
        check_width(scale, "gamma or length_scale", Y.shape[1])
        scaling: Any = 1.0
        if isinstance(scale, tuple):
            scaling = np.asarray(scale)
        else:
            c *= scale**2
        Distances = SparseDistances if sp.issparse(Y) else DenseDistances
        return partial(
            _profiled, self, Distances(arrays.as_float(Y), c, scaling, self.rooted)
        )

    def diag(self, X: Any) -> Array:
        return constant(X, 1.0)


def _profiled(kernel: Euclidean, distances: Callable, X: Any) -> Array:
    return kernel._profile(distances(arrays.as_float(X)))


def _inverse(length_scale: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if isinstance(length_scale, tuple):
        return tuple(1 / length for length in length_scale)
    return 1 / length_scale


def _set_length_scale(kernel: Any) -> None:
    given = kernel.length_scale
    set_per_feature(kernel, "length_scale")
    if not np.all(np.asarray(kernel.length_scale) > 0):
        raise ValueError(f"length_scale={given!r} is not allowed; it must be > 0.")


@dataclass(frozen=True)
class RBF(Euclidean):
    """k(x, y) = exp(−Σⱼ γⱼ(xⱼ − yⱼ)²); `gamma` is one number or one per feature.

    Examples
    --------
    >>> from nystrom.kernels import RBF
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353]])
    """

    gamma: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        set_per_feature(self, "gamma")

    @property
    def _distance(self) -> tuple[float, float | tuple[float, ...]]:
        if isinstance(self.gamma, tuple):
            return -1.0, tuple(np.sqrt(self.gamma).tolist())
        return -self.gamma, 1.0

    def _profile(self, D: Array) -> Array:
        return arrays.exp_(D)

    def _slope(self, D: np.ndarray) -> np.ndarray:
        return np.exp(D)


@dataclass(frozen=True)
class Matern(Euclidean):
    """The Matérn kernel with ν = ½, 3/2 or 5/2 and d = ‖(x − y)/length_scale‖.

    ν = ½: exp(−d); ν = 3/2: (1 + r)·exp(−r), r = √3·d;
    ν = 5/2: (1 + r + r²/3)·exp(−r), r = √5·d.

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
        _set_length_scale(self)
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(
                f"nu={self.nu!r} is not available; allowed: 0.5, 1.5, 2.5 (the limit "
                "of large nu is kernels.RBF)."
            )

    @property
    def rooted(self) -> bool:  # type: ignore[override]
        return self.nu == 0.5  # the others are smooth at 0

    @property
    def _distance(self) -> tuple[float, float | tuple[float, ...]]:
        return 2 * self.nu, _inverse(self.length_scale)

    def _profile(self, D: Array) -> Array:
        r = arrays.sqrt_(D, VANISHED)
        decay = arrays.exp_(-r)
        if self.nu == 0.5:
            return decay
        factor = 1 + r if self.nu == 1.5 else 1 + r + r * r / 3
        factor *= decay
        return factor

    def _slope(self, D: np.ndarray) -> np.ndarray:
        r = np.sqrt(D)
        if self.nu == 0.5:
            steep = np.divide(1, r, out=np.zeros_like(r), where=r > 0)
            return -steep * np.exp(-r) / 2
        return -np.exp(-r) * (1 / 2 if self.nu == 1.5 else (1 + r) / 6)


@dataclass(frozen=True)
class RationalQuadratic(Euclidean):
    """k(x, y) = (1 + ‖(x − y)/length_scale‖²/(2·alpha))^(−alpha).

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
        _set_length_scale(self)
        set_numbers(self, alpha=0.0)
        if self.alpha == 0:
            raise ValueError(f"alpha={self.alpha!r} is not allowed; it must be > 0.")

    @property
    def _distance(self) -> tuple[float, float | tuple[float, ...]]:
        return 1 / (2 * self.alpha), _inverse(self.length_scale)

    def _profile(self, D: Array) -> Array:
        D += 1
        return 1 / D if self.alpha == 1 else D ** (-self.alpha)

    def _slope(self, D: np.ndarray) -> np.ndarray:
        return -self.alpha * (1 + D) ** (-self.alpha - 1)
