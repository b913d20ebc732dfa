"""Squared distances of the rows of a block to fixed points, dense or CSR.

One matrix product per block, centred on the median of the points. Entries that the
product gives too inexactly are recomputed by differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import MAX_DISTANCE_ERROR

#: Points whose median is used.
MAX_MEDIAN_POINTS = 256
#: CSR points become dense once, if they take no more bytes than this.
MAX_DENSE_BYTES = 2**27


class DenseDistances:
    """X ↦ c·‖(x − y)·scale‖² for all rows y of fixed dense points Y."""

    def __init__(self, Y: Array, c: float, scale: Any, refine_near: bool) -> None:
        self.Y, self.c, self.scale, self.refine_near = Y, c, scale, refine_near
        # The center is of numbers that float32 rows can subtract exactly.
        median = feature_medians(Y)
        with np.errstate(over="ignore"):
            rounded = median.astype(np.float32).astype(np.float64)
        self.center = np.where(np.isfinite(rounded), rounded, median)
        points = arrays.widen(Y) - arrays.from_host(self.center, Y, median.dtype)
        if np.ndim(scale):
            points = points * arrays.from_host(scale, Y, scale.dtype)
        self.points64 = points
        self._right_by_dtype: dict[Any, tuple[Array, bool]] = {}

    def _right(self, dtype: Any) -> tuple[Array, bool]:
        """The right side [−2ŷ, 1, ‖ŷ‖²]·c of the product; on the host, if it is finite.

        Computed in float64, where the points are.
        """
        if dtype not in self._right_by_dtype:
            P, c, xp = self.points64, self.c, arrays.namespace(self.points64)
            with np.errstate(over="ignore"):  # of points this far the kernel is 0
                norms = arrays.squared_norms(P)[:, None]
                blocks = [P * (-2 * c), xp.ones_like(norms) * c, norms * c]
                right = arrays.as_float(xp.concat(blocks, axis=1).T, dtype)
            is_finite = bool(np.isfinite(right).all()) if xp is np else True
            self._right_by_dtype[dtype] = right, is_finite
        return self._right_by_dtype[dtype]

    def __call__(self, X: Array) -> Array:
        X = X.toarray() if sp.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are far
            left = _augment_with_norms(X, self.center, self.scale)
            right, is_finite = self._right(left.dtype)
            D = left @ right
        if not arrays.is_on_host(X):
            return self._replace_inexact_rows(D, X, left)
        if not is_finite:  # of points so far that 0·inf is among D
            return self._recompute_rows(X)
        norms = left[:, -2]
        # Written so that a norm that overflowed to inf or nan counts as far.
        far = np.flatnonzero(~(norms <= _far_limit(norms, self.c)))
        if len(far):
            with np.errstate(over="ignore"):
                D[far] = self._recompute_rows(X[far])
        if self.refine_near:
            i, j = _near_pairs(D, norms, self.c)
            # From the rows themselves: centring has rounded some.
            differences = (arrays.widen(X[i]) - arrays.widen(self.Y[j])) * self.scale
            with np.errstate(over="ignore"):
                D[i, j] = self.c * np.vecdot(differences, differences)
        return D

    def _replace_inexact_rows(self, D: Array, X: Array, left: Array) -> Array:
        """D on a device, with rows that the product gives too inexactly recomputed."""
        xp, norms = arrays.namespace(D), left[:, -2]
        inexact = ~(norms <= _far_limit(norms, self.c))
        if self.refine_near:
            near = xp.abs(D) <= _near_limit(D, norms, self.c)[:, None]
            inexact = inexact | xp.any(near, axis=1)
        if not bool(xp.any(inexact)):  # all that leaves the device, mostly
            return D
        rows = np.flatnonzero(arrays.to_host(inexact))
        inexact_rows = arrays.take_rows(X, rows)
        return arrays.replace_rows(D, rows, self._recompute_rows(inexact_rows))

    def _recompute_rows(self, X: Array) -> Array:
        """The same more exactly: in float64, and there by differences."""
        if arrays.numpy_float_dtype(X) == np.float32:
            with np.errstate(over="ignore"):
                return arrays.as_float(self(arrays.widen(X)), X.dtype)
        return self.c * arrays.squared_distances(X, arrays.widen(self.Y), self.scale)


def _augment_with_norms(X: Array, center: np.ndarray, scale: Any) -> Array:
    """[x̂, ‖x̂‖², 1] for x̂ = scale·(x − center), row by row."""
    n, d = X.shape
    if isinstance(X, np.ndarray):
        out = np.empty((n, d + 2), dtype=X.dtype)
        np.subtract(X, center.astype(X.dtype, copy=False), out=out[:, :d])
        if np.ndim(scale):
            out[:, :d] *= scale.astype(X.dtype, copy=False)
        np.vecdot(out[:, :d], out[:, :d], out=out[:, d])
        out[:, d + 1] = 1
        return out
    Xc = X - arrays.from_host(center, X)
    if np.ndim(scale):
        Xc = Xc * arrays.from_host(scale, X)
    norms = arrays.squared_norms(Xc)[:, None]
    return arrays.stack_columns([Xc, norms, arrays.namespace(X).ones_like(norms)])


class SparseDistances:
    """The same for points in CSR: not centred, which would fill the zeros."""

    def __init__(self, Y: Any, c: float, scale: Any, refine_near: bool) -> None:
        self.Y, self.c, self.scale, self.refine_near = Y, c, scale, refine_near
        wide = arrays.widen(Y)
        self.Y_norms = c * self._norms(wide)
        small = Y.shape[0] * Y.shape[1] * 8 <= MAX_DENSE_BYTES
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
        far = np.flatnonzero(~(norms <= _far_limit(norms, self.c)))
        if len(far):
            D[far] = self._recompute_rows(X[far])
        if self.refine_near:
            i, j = _near_pairs(D, norms, self.c)
            differences = sp.csr_array(X[i]) - sp.csr_array(self.Y[j])
            D[i, j] = self.c * self._norms(arrays.widen(differences))
        return D

    def _recompute_rows(self, X: Any) -> np.ndarray:
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


def _far_limit(squared_norms: Array, c: float) -> float:
    """Beyond this ‖x‖² a product gives the distances to near points too inexactly.

    Only x's own norm counts: where y alone is far, the kernel is nearly 0.
    """
    dtype = arrays.numpy_float_dtype(squared_norms)
    unit = 2 * abs(c) * float(np.finfo(dtype).eps)
    return MAX_DISTANCE_ERROR[dtype] / unit if unit else np.inf


def _near_pairs(D: np.ndarray, squared_norms: np.ndarray, c: float) -> Any:
    """The pairs whose distance is so small that its root is mostly rounding."""
    return np.nonzero(np.abs(D) <= _near_limit(D, squared_norms, c)[:, None])


def _near_limit(D: Array, squared_norms: Array, c: float) -> Array:
    return abs(c) * arrays.epsilon(D.dtype, D) ** 0.5 * squared_norms


def feature_medians(points: Array) -> np.ndarray:
    """The median of the points, of some where there are many.

    Not the mean, which one far point can carry away from all the others.
    """
    step = -(-points.shape[0] // MAX_MEDIAN_POINTS)
    sample = np.sort(arrays.to_host(points[::step, :]), axis=0)
    return sample[len(sample) // 2].astype(np.float64)
