"""In which precision values are, by NumPy's name and by their own library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from .places import Array, is_block, is_numpy, namespace


def own_dtype(dtype: Any, like: Array) -> Any:
    """NumPy's dtype as that of the same name in the library of `like`."""
    xp = namespace(like)
    if xp is np or not isinstance(dtype, np.dtype):
        return dtype
    return getattr(xp, dtype.name)


def float_dtype(x: Array) -> Any:
    """float32 for float32 (and half) data, float64 for all else, in x's library."""
    xp = namespace(x)
    if xp is np:  # at once: asked for every block
        small = x.dtype.kind == "f" and x.dtype.itemsize <= 4
    else:
        small = x.dtype == xp.float32 or str(x.dtype).endswith("float16")
    return xp.float32 if small else xp.float64


def host_dtype(x: Array) -> np.dtype:
    """`float_dtype` as NumPy's."""
    wide = float_dtype(x) == namespace(x).float64
    return np.dtype(np.float64 if wide else np.float32)


def as_float(x: Array, dtype: Any = None) -> Array:
    """x with a floating dtype and, in NumPy, rows laid out one after the other.

    The layout matters: a matrix product of a Fortran-ordered block rounds
    differently, and the same rows would then give other landmarks.
    """
    dtype = float_dtype(x) if dtype is None else dtype
    if sp.issparse(x):
        return x.astype(dtype, copy=False)
    if is_numpy(x):
        return aligned(np.ascontiguousarray(x, dtype=dtype))
    return array_namespace(x).astype(x, dtype, copy=False)


def canonical(X: Any) -> Any:
    """CSR rows with sorted columns, each once, as all algebra takes them; else X.

    The caller's matrix stays as it is.
    """
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def aligned(x: Any) -> Any:
    """x, copied where its memory begins in the middle of a number.

    Such arrays come out of messages. NumPy works on copies of them, and a copy times
    another is not rounded as XᵀX is, on some processors.
    """
    return x.copy() if is_numpy(x) and not x.flags.aligned else x


def widen(x: Any) -> Any:
    """x in float64, in its own library; objects and row numbers as they are."""
    if not is_block(x):
        return x
    xp = namespace(x)
    whole = x.dtype.kind in "iu" if xp is np else xp.isdtype(x.dtype, "integral")
    return x if whole else as_float(x, xp.float64)


def epsilon(dtype: Any, like: Array = None) -> float:
    """The unit round-off (spacing at 1) of a floating dtype."""
    xp = np if like is None else namespace(like)
    return float(xp.finfo(dtype).eps)
