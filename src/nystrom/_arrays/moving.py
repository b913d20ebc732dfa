"""The border between the host and devices: nothing crosses it elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from .floats import as_float, own_dtype
from .places import Array, is_numpy, on_host, place


def to_host(x: Array) -> np.ndarray:
    """The values of x as a NumPy array on the host."""
    if sp.issparse(x):
        return x.toarray()
    if is_numpy(x):
        return x
    if hasattr(x, "detach"):  # torch
        return x.detach().cpu().numpy()
    if hasattr(x, "get"):  # cupy
        return x.get()
    host = np.from_dlpack(x)
    # Some libraries (and NumPy 2.0 for all of them) lend what may not be written to.
    return host if host.flags.writeable else host.copy()


def from_host(values: np.ndarray, like: Array, dtype: Any = None) -> Array:
    """Host values in the library and on the device of `like`, with its dtype.

    A dtype that is NumPy's stands for the one of the same name there. What is too large
    for it becomes infinite.
    """
    dtype = own_dtype(like.dtype if dtype is None else dtype, like)
    if sp.issparse(like) or is_numpy(like):
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=dtype)
    xp = array_namespace(like)
    values = np.ascontiguousarray(values)
    # torch shares memory with NumPy: it warns where it may not write, and knows no
    # steps back.
    shared = values.flags.writeable and min(values.strides, default=0) >= 0
    values = values if shared else values.copy()
    return xp.asarray(values, dtype=dtype, device=device(like))


def beside(values: Array, like: Array, dtype: Any = None) -> Array:
    """Values of any library where `like` is; in their own precision unless told."""
    dtype = values.dtype if dtype is None else dtype
    if place(values) != place(like):
        host = to_host(values)
        dtype = dtype if isinstance(dtype, np.dtype | type) else host.dtype
        return from_host(host, like, np.dtype(dtype))
    return as_float(values, own_dtype(dtype, like))


def fetched(result: Any) -> Any:
    """A result of a pass on the host: arrays, and tuples of them."""
    if isinstance(result, tuple):
        return tuple(fetched(each) for each in result)
    if on_host(result):
        return result
    values = to_host(result)
    return values if values.ndim else values[()]


def host_values(x: Array) -> np.ndarray:
    """The values of x on the host, in float64."""
    return to_host(x).astype(np.float64, copy=False)


def detached(x: Array) -> Array:
    """x without the history that torch keeps of values it is to differentiate."""
    return x.detach() if hasattr(x, "detach") else x


def torch_tensor(x: Array, where: str) -> Array:
    """Rows of any library as a torch tensor on a device."""
    import torch

    x = x if hasattr(x, "detach") else torch.from_numpy(np.array(to_host(x)))
    return x.to(where, non_blocking=True)


def check_torch_device(where: Any) -> None:
    """Refuse a device that torch does not have here, and torch that is not there."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device={where!r} needs torch, which is not installed; pip install torch, "
            "or leave device out to work in NumPy."
        ) from None
    try:
        torch.empty(1, dtype=torch.float64, device=where)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={where!r} cannot be used here: {reason}. It takes a device that "
            "torch has on this machine, with float64, such as 'cuda'; 'cpu' is always "
            "there."
        ) from None
