"""Kernels of the Euclidean distance: RBF, Matérn, rational quadratic.

Each is a profile of squared distances, which is applied in place; `squared_distances`
makes these, with the kernel's own constant folded in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .base import Kernel, Traits, constant
from .parameters import check_width, set_numbers, set_per_feature
from .squared_distances import DenseDistances, SparseDistances

#: Beyond this r², exp(−r) is 0 in float64 too; and r stays finite.
VANISHED = 1e6


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
