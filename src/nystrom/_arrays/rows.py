"""Rows of any kind, counted, taken and put together: arrays, CSR, lists of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from .moving import to_host
from .places import Array, is_array, is_block, is_numpy


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
    if sp.issparse(x) or is_numpy(x):
        return x[rows]
    xp = array_namespace(x)
    return xp.take(x, xp.asarray(rows, device=device(x)), axis=0)


def with_rows(x: Array, rows: np.ndarray, values: Array) -> Array:
    """x with some of its rows replaced; the standard has no way to write to them."""
    xp, place = array_namespace(x), np.zeros(x.shape[0], dtype=np.int64)
    place[rows] = np.arange(1, len(rows) + 1)
    chosen = xp.asarray(place, device=device(x))
    theirs = xp.take(values, xp.clip(chosen - 1, min=0), axis=0)
    return xp.where((chosen > 0)[:, None], theirs, x)


def take_columns(x: Array, columns: np.ndarray) -> Array:
    """x[:, columns]."""
    if is_numpy(x):
        return np.take(x, columns, axis=1)
    xp = array_namespace(x)
    return xp.take(x, xp.asarray(columns, device=device(x)), axis=1)


def append_rows(x: Any, more: Any) -> Any:
    """The rows of x, and after them those of another of its kind."""
    return stack_rows([x, more])


def stack_rows(blocks: list[Any]) -> Any:
    """The rows of several blocks of one kind, one after the other."""
    first = blocks[0]
    if isinstance(first, list):
        return [row for block in blocks for row in block]
    if sp.issparse(first):
        return sp.vstack(blocks, format="csr")
    if is_numpy(first):
        return np.concatenate(blocks)
    return array_namespace(first).concat(blocks, axis=0)


def side_by_side(blocks: list[Array]) -> Array:
    """Blocks of the same rows as one."""
    if len(blocks) == 1:
        return blocks[0]
    if is_numpy(blocks[0]):
        return np.concatenate(blocks, axis=1)
    return array_namespace(blocks[0]).concat(blocks, axis=1)


def first_of_equals(x: Any) -> np.ndarray | None:
    """For each row the place of the first one that equals it.

    None where no two are equal, or rows are no numbers.
    """
    if not is_block(x):
        return None
    if sp.issparse(x):
        x = sp.csr_array(x, copy=True)
        x.sum_duplicates()
        x.eliminate_zeros()
        bounds = zip(x.indptr[:-1], x.indptr[1:], strict=True)
        keys = [(x.indices[a:b].tobytes(), x.data[a:b].tobytes()) for a, b in bounds]
    else:
        keys = [row.tobytes() for row in to_host(x) + 0.0]  # −0 becomes 0
    seen: dict[Any, int] = {}
    first = [seen.setdefault(key, place) for place, key in enumerate(keys)]
    return None if len(seen) == len(first) else np.array(first)
