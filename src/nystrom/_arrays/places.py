"""Whose array it is, and where: NumPy's, CSR, or a library's with devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj

Array = Any


def is_array(x: Any) -> bool:
    """Whether x is an array of a library that follows the array API standard."""
    return is_array_api_obj(x)


def is_numpy(x: Any) -> bool:
    """Whether x is NumPy's own, for which there is often a faster form."""
    return isinstance(x, np.ndarray)


def namespace(x: Array) -> Any:
    """The array library that x belongs to (NumPy for CSR blocks and row numbers)."""
    if is_numpy(x) or sp.issparse(x):
        return np
    return array_namespace(x)


def is_block(x: Any) -> bool:
    """Whether x is rows of numbers: an array or CSR, not a list of objects."""
    return is_numpy(x) or sp.issparse(x) or is_array_api_obj(x)


def on_host(x: Any) -> bool:
    """Whether x is NumPy's, CSR or a list: not of a library with devices."""
    return is_numpy(x) or not is_array_api_obj(x)


def place(x: Any) -> tuple[str, str]:
    """Where an array is: its library and device, as a key."""
    if on_host(x):
        return "numpy", "cpu"
    return array_namespace(x).__name__, str(device(x))


def has_float64(x: Array) -> bool:
    """Whether the device of x can hold float64, in which sums are taken."""
    xp = array_namespace(x)
    try:
        xp.empty(1, dtype=xp.float64, device=device(x))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return False
    return True
