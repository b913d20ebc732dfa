"""Array helpers: NumPy, SciPy CSR, and any library of the array API standard.

Blocks of rows stay in the library and on the device of the user's array; small
matrices live on the host in float64. `to_host` and `from_host` are the only
functions that move data between the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import is_array_api_obj as is_array
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

Array = Any


def namespace(x: Array) -> Any:
    """The array library that x belongs to (NumPy for CSR blocks and row numbers)."""
    if isinstance(x, np.ndarray) or sp.issparse(x):
        return np
    return array_namespace(x)


def is_array_or_csr(x: Any) -> bool:
    """Whether x is rows of numbers: an array or CSR, not a list of objects."""
    return isinstance(x, np.ndarray) or sp.issparse(x) or is_array(x)


def is_on_host(x: Any) -> bool:
    """Whether x is NumPy's, CSR or a list: not of a library with devices."""
    return isinstance(x, np.ndarray) or not is_array(x)


def device(x: Any) -> Any:
    """Where an array is, as its library says when it makes another there."""
    return "cpu" if is_on_host(x) else array_api_compat.device(x)


def device_key(x: Any) -> tuple[str, str]:
    """Where an array is: its library and device, as a key."""
    if is_on_host(x):
        return "numpy", "cpu"
    return array_namespace(x).__name__, str(device(x))


def has_float64(x: Array) -> bool:
    """Whether the device of x can hold float64, in which sums are computed."""
    xp = array_namespace(x)
    try:
        xp.empty(1, dtype=xp.float64, device=device(x))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return False
    return True


def library_dtype(dtype: Any, like: Array) -> Any:
    """NumPy's dtype as that of the same name in the library of `like`."""
    if is_on_host(like) or not isinstance(dtype, np.dtype):
        return dtype
    return getattr(array_namespace(like), dtype.name)


def numpy_float_dtype(x: Array) -> np.dtype:
    """float32 for float32 (and half) data, float64 for all else."""
    if isinstance(x, np.ndarray):  # at once: asked for every block
        is_float32 = x.dtype.kind == "f" and x.dtype.itemsize <= 4
    else:
        is_float32 = str(x.dtype).endswith(("float32", "float16"))
    return np.dtype(np.float32 if is_float32 else np.float64)


def float_dtype(x: Array) -> Any:
    """`numpy_float_dtype` as that of x's library."""
    dtype = numpy_float_dtype(x)
    return dtype if isinstance(x, np.ndarray) else library_dtype(dtype, x)


def as_float(x: Array, dtype: Any = None) -> Array:
    """x with a floating dtype and, in NumPy, aligned and in C order.

    The layout matters: a matrix product of a Fortran-ordered block rounds
    differently, and the same rows would then give other landmarks.
    """
    if isinstance(x, np.ndarray):
        dtype = numpy_float_dtype(x) if dtype is None else dtype
        return np.require(x, dtype, ["C", "ALIGNED", "E"])
    dtype = float_dtype(x) if dtype is None else dtype
    if sp.issparse(x):
        return x.astype(dtype, copy=False)
    return array_namespace(x).astype(x, dtype, copy=False)


def as_canonical_csr(X: Any) -> Any:
    """CSR rows with sorted columns, each once, as all algebra takes them; else X.

    The caller's matrix stays as it is.
    """
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def as_aligned(x: Any) -> Any:
    """x, copied where its memory begins in the middle of a number.

    Such arrays come out of messages. NumPy works on copies of them, and a copy times
    another is not rounded as XᵀX is, on some processors.
    """
    return x.copy() if isinstance(x, np.ndarray) and not x.flags.aligned else x


def widen(x: Any) -> Any:
    """x in float64, in its own library; objects and row numbers as they are."""
    if isinstance(x, np.ndarray) or sp.issparse(x):  # at once: asked for every block
        return x if x.dtype.kind in "iu" else as_float(x, np.float64)
    if not is_array(x):
        return x
    xp = array_namespace(x)
    return x if xp.isdtype(x.dtype, "integral") else as_float(x, xp.float64)


def epsilon(dtype: Any, like: Array = None) -> float:
    """The unit round-off (spacing at 1) of a floating dtype."""
    xp = np if like is None else namespace(like)
    return float(xp.finfo(dtype).eps)


def to_host(x: Array) -> np.ndarray:
    """The values of x as a NumPy array on the host."""
    if sp.issparse(x):
        return x.toarray()
    if isinstance(x, np.ndarray):
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
    dtype = like.dtype if dtype is None else dtype
    if sp.issparse(like) or isinstance(like, np.ndarray):
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=dtype)
    xp, dtype = array_namespace(like), library_dtype(dtype, like)
    values = np.ascontiguousarray(values)
    # torch shares memory with NumPy: it warns where it may not write, and knows no
    # steps back.
    can_share = values.flags.writeable and min(values.strides, default=0) >= 0
    values = values if can_share else values.copy()
    return xp.asarray(values, dtype=dtype, device=device(like))


def to_device_of(values: Array, like: Array, dtype: Any = None) -> Array:
    """Values of any library where `like` is; in their own precision by default."""
    dtype = values.dtype if dtype is None else dtype
    if device_key(values) != device_key(like):
        host = to_host(values)
        dtype = dtype if isinstance(dtype, np.dtype | type) else host.dtype
        return from_host(host, like, np.dtype(dtype))
    return as_float(values, library_dtype(dtype, like))


def tree_to_host(result: Any) -> Any:
    """A result of a pass on the host: arrays, and tuples of them."""
    if isinstance(result, tuple):
        return tuple(tree_to_host(each) for each in result)
    if is_on_host(result):
        return result
    values = to_host(result)
    return values if values.ndim else values[()]


def to_host_float64(x: Array) -> np.ndarray:
    """The values of x on the host, in float64."""
    return to_host(x).astype(np.float64, copy=False)


def detach(x: Array) -> Array:
    """x without the history that torch keeps of values it is to differentiate."""
    return x.detach() if hasattr(x, "detach") else x


def as_torch_tensor(x: Array, torch_device: str) -> Array:
    """Rows of any library as a torch tensor on a device."""
    import torch

    x = x if hasattr(x, "detach") else torch.from_numpy(np.array(to_host(x)))
    return x.to(torch_device, non_blocking=True)


def check_torch_device(torch_device: Any) -> None:
    """Refuse a device that torch does not have here, and torch that is not there."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device={torch_device!r} needs torch, which is not installed. Install "
            "torch, or omit device to use NumPy."
        ) from None
    try:
        torch.empty(1, dtype=torch.float64, device=torch_device)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={torch_device!r} cannot be used here: {reason}. Use a device "
            "that torch finds on this machine and that has float64, such as 'cuda' "
            "or 'cpu'."
        ) from None


def count_rows(x: Any) -> int:
    """How many rows an array, CSR matrix or list has."""
    return x.shape[0] if hasattr(x, "shape") else len(x)


def slice_rows(x: Any, start: int, stop: int) -> Any:
    """x[start:stop], also of a list."""
    return x[start:stop, ...] if is_array(x) else x[start:stop]


def take_rows(x: Any, rows: np.ndarray) -> Any:
    """x[rows], also of a list."""
    if isinstance(x, list):
        return [x[i] for i in rows]
    if sp.issparse(x) or isinstance(x, np.ndarray):
        return x[rows]
    xp = array_namespace(x)
    return xp.take(x, xp.asarray(rows, device=device(x)), axis=0)


def replace_rows(x: Array, rows: np.ndarray, values: Array) -> Array:
    """x with some of its rows replaced; the standard has no way to write to them."""
    xp, position = array_namespace(x), np.zeros(x.shape[0], dtype=np.int64)
    position[rows] = np.arange(1, len(rows) + 1)
    chosen = xp.asarray(position, device=device(x))
    replacements = xp.take(values, xp.clip(chosen - 1, min=0), axis=0)
    return xp.where((chosen > 0)[:, None], replacements, x)


def stack_rows(blocks: list[Any]) -> Any:
    """The rows of several blocks of one kind, one after the other."""
    first = blocks[0]
    if isinstance(first, list):
        return [row for block in blocks for row in block]
    if sp.issparse(first):
        return sp.vstack(blocks, format="csr")
    return namespace(first).concat(blocks, axis=0)


def take_fields(rows: Any, names: Iterable[str], positions: np.ndarray) -> Any:
    """Some rows of a dataclass; the fields named have an entry per row, or are None."""
    fields = {name: getattr(rows, name) for name in names}
    taken = {
        name: None if values is None else take_rows(values, positions)
        for name, values in fields.items()
    }
    return replace(rows, **taken)


def stack_fields(first: Any, second: Any, names: Iterable[str]) -> Any:
    """The rows of two such dataclasses; a field that one of them lacks is None."""
    pairs = {name: [getattr(rows, name) for rows in (first, second)] for name in names}
    stacked = {
        name: None if any(v is None for v in pair) else stack_rows(pair)
        for name, pair in pairs.items()
    }
    return replace(first, **stacked)


def stack_columns(blocks: list[Array]) -> Array:
    """Blocks of the same rows as one."""
    if len(blocks) == 1:
        return blocks[0]
    return namespace(blocks[0]).concat(blocks, axis=1)


def first_occurrences(x: Any) -> np.ndarray | None:
    """For each row the place of the first one that equals it.

    None where no two are equal, or rows are no numbers.
    """
    if not is_array_or_csr(x):
        return None
    if sp.issparse(x):
        x = sp.csr_array(x, copy=True)
        x.sum_duplicates()
        x.eliminate_zeros()
        bounds = zip(x.indptr[:-1], x.indptr[1:], strict=True)
        keys = [(x.indices[a:b].tobytes(), x.data[a:b].tobytes()) for a, b in bounds]
    else:
        keys = [row.tobytes() for row in to_host(x) + 0.0]  # −0 becomes 0
    first_by_key: dict[Any, int] = {}
    first = [
        first_by_key.setdefault(key, position) for position, key in enumerate(keys)
    ]
    return None if len(first_by_key) == len(first) else np.array(first)


def dot(X: Array, Y: Array) -> Array:
    """X Yᵀ, dense, for any mix of dense and CSR blocks."""
    if not sp.issparse(X) and not sp.issparse(Y):
        return X @ Y.T
    product = X @ Y.T if sp.issparse(X) else (Y @ X.T).T
    return product.toarray() if sp.issparse(product) else np.ascontiguousarray(product)


def sum_float64(values: Array) -> Any:
    """The sum of all values, in float64; where they are."""
    if isinstance(values, np.ndarray):
        return float(values.sum(dtype=np.float64))
    xp = array_namespace(values)
    return xp.sum(values, dtype=xp.float64)


def weighted_one_hot(labels: Array, n_labels: int, weights: Array) -> Array:
    """(n, …, n_labels): the weight of each row where its label is, else 0."""
    xp = namespace(labels)
    every_label = xp.arange(n_labels, dtype=labels.dtype, device=device(labels))
    is_label = labels[..., None] == every_label
    weights = xp.reshape(weights, (-1,) + (1,) * labels.ndim)
    return xp.where(is_label, weights, xp.zeros_like(weights))


def sums_by_label(
    X: Array, labels: Array, n_labels: int, weights: Array
) -> tuple[Array, Array]:
    """Σ w·x and Σ w over the rows of each label."""
    if isinstance(X, np.ndarray):
        cells = (weights, (labels, np.arange(len(X))))
        sums = sp.csr_array(cells, shape=(n_labels, len(X))) @ X
        return sums, np.bincount(labels, weights, n_labels)
    one_hot = weighted_one_hot(labels, n_labels, weights)
    return one_hot.T @ X, array_namespace(X).sum(one_hot, axis=0)


def squared_norms(X: Array) -> Array:
    """‖x‖² of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if isinstance(X, np.ndarray):
        return np.vecdot(X, X)
    return array_namespace(X).sum(X * X, axis=1)


def column_squared_norms(X: Array) -> Array:
    """Σ x² of each column."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->j", X, X)
    return array_namespace(X).sum(X * X, axis=0)


def exp_(x: Array) -> Array:
    """exp(x), in place where the library can."""
    return np.exp(x, out=x) if isinstance(x, np.ndarray) else array_namespace(x).exp(x)


def clip_min(x: Array, minimum: float) -> Array:
    """The larger of x and a number, entry by entry."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, minimum)
    return array_namespace(x).clip(x, min=minimum)


def sqrt_(x: Array, maximum: float) -> Array:
    """The root of x clipped to [0, maximum], in place where the library can."""
    if isinstance(x, np.ndarray):
        np.clip(x, 0, maximum, out=x)
        return np.sqrt(x, out=x)
    xp = array_namespace(x)
    return xp.sqrt(xp.clip(x, min=0.0, max=maximum))


def squared_distances(X: Array, Y: Array, scale: float | np.ndarray) -> Array:
    """Σⱼ ((xⱼ − yⱼ)·scaleⱼ)² for all pairs of rows; a scale is 1, or one per feature.

    Slow, and exact where a product is not. Differences come first: whatever is done to
    rows before them rounds the rows.
    """
    if isinstance(X, np.ndarray) and np.ndim(scale) == 0:
        return cdist(X, Y, "sqeuclidean")
    total: Array = 0.0
    for j, feature_scale in enumerate(np.broadcast_to(scale, X.shape[1]).tolist()):
        difference = (X[:, j, None] - Y[None, :, j]) * feature_scale
        total = total + difference * difference
    return total


def cityblock(X: Array, Y: Array) -> Array:
    """Σⱼ |xⱼ − yⱼ| for all pairs of rows, in X's dtype."""
    if sp.issparse(X) or sp.issparse(Y):
        return manhattan_distances(_as_csr_int32(X), _as_csr_int32(Y)).astype(
            X.dtype, copy=False
        )
    if isinstance(X, np.ndarray):
        return cdist(X, Y, "cityblock").astype(X.dtype, copy=False)
    xp = array_namespace(X)
    total = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        total += xp.abs(X[:, j, None] - Y[None, :, j])
    return total


def _as_csr_int32(X: Any) -> Any:
    """CSR with 32-bit indices, enough for a block; scikit-learn asks for them.

    All of it a copy: scikit-learn sorts the values in place.
    """
    X = sp.csr_array(X)
    index, pointer = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data.copy(), index, pointer), shape=X.shape)


def additive_chi2(X: Array, Y: Array) -> Array:
    """−Σⱼ (xⱼ − yⱼ)²/(xⱼ + yⱼ) for all pairs of rows, 0/0 being 0."""
    if isinstance(X, np.ndarray):
        # scikit-learn's loop takes no read-only rows, such as those of a memory map.
        return additive_chi2_kernel(*(np.require(A, requirements="W") for A in (X, Y)))
    xp = array_namespace(X)
    total = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        difference = X[:, j, None] - Y[None, :, j]
        sums = X[:, j, None] + Y[None, :, j]
        sums = xp.where(sums == 0, xp.ones_like(sums), sums)
        total -= difference * difference / sums
    return total


class DeviceConstant:
    """A small array on the host, with a copy on every device that needs it.

    It is copied once, not for every block. Other processes get what is on the
    host, and bring it to devices of their own.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._copies: dict[Any, Array] = {}

    def to_device_of(self, block: Array, dtype: Any = None) -> Array:
        """In the library, on the device and in the precision of a block, or another."""
        dtype = block.dtype if dtype is None else library_dtype(dtype, block)
        key = (*device_key(block), str(dtype))
        if key not in self._copies:
            self._copies[key] = from_host(self.values, block, dtype)
        return self._copies[key]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the values."""
        return self.values.shape

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceConstant, (self.values,)
