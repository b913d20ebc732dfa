"""Squared distances of a block's rows to fixed points, dense or in CSR.

All of a block come from one matrix product, [x̂, ‖x̂‖², 1] times [−2ŷ, 1, ‖ŷ‖²]ᵀ, with a
constant folded in. Rows are centred on the median of Y first: without it float32 loses
the distance of two near rows far from the origin. What a product gives too inexactly
is made anew, by differences.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from ..precision import FAR

#: Points that a median is taken of.
MIDDLE_OF = 256
#: CSR points become dense once, if they take no more bytes than this.
DENSE_POINTS = 2**27


class DenseDistances:
    """X ↦ c·‖(x − y)·scale‖² for all rows y of fixed dense points Y."""

    def __init__(self, Y: Array, c: float, scale: Any, near: bool) -> None:
        self.Y, self.c, self.scale, self.near = Y, c, scale, near
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
            return self._closer(X)
        far = _far_rows(left[:, -2], self.c)
        if len(far):
            with np.errstate(over="ignore"):
                D[far] = self._closer(X[far])
        if self.near:
            i, j = _near_pairs(D, left[:, -2], self.c)
            # From the rows themselves: centring has rounded some.
            apart = (arrays.widen(X[i]) - arrays.widen(self.Y[j])) * self.scale
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
        some = arrays.take_rows(X, rows)
        return arrays.with_rows(D, rows, self._closer(some))

    def _closer(self, X: Array) -> Array:
        """The same more exactly: in float64, and there by differences."""
        if arrays.host_dtype(X) == np.float32:
            with np.errstate(over="ignore"):
                return arrays.as_float(self(arrays.widen(X)), X.dtype)
        return self.c * arrays.squared_distances(X, arrays.widen(self.Y), self.scale)


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
        return self.c * arrays.squared_distances(X, Y, self.scale)

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
