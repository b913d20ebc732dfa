"""A digest of any value: arrays, functions with what they know, and objects.

Checkpoints and caches know by it what belongs to other data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import _arrays as arrays

#: Rows of more bytes in all are known by so many of them.
MAX_FULL_DIGEST_BYTES, N_DIGEST_ROWS = 2**24, 256
#: What is nested deeper has no say: Python's stack has an end.
DEPTH = 200

#: Values that print as what they are.
_PRINTED = (str, bytes, int, float, complex, Enum, np.dtype, type(None))


def digest(*values: Any) -> str:
    """16 hexadecimal digits that other values would change."""
    return _digest(list(values), {}, DEPTH).hex()


def digest_row_indices(n_rows: int, bytes_per_row: int) -> np.ndarray:
    """The numbers of the rows that a digest is of: all, or some, evenly spaced."""
    if n_rows * bytes_per_row <= MAX_FULL_DIGEST_BYTES or n_rows <= N_DIGEST_ROWS:
        return np.arange(n_rows)
    return np.arange(N_DIGEST_ROWS) * (n_rows - 1) // (N_DIGEST_ROWS - 1)


def _digest(value: Any, known: dict[int, tuple[Any, bytes]], depth: int) -> bytes:
    """The digest of a value. `known` has those of all that it was met in, or with.

    By their ids, which are no others' as long as the values are kept.
    """
    if depth == 0:
        return b"deep"
    if id(value) in known:
        return known[id(value)][1]
    known[id(value)] = value, b"circle"
    hashed = hashlib.blake2b(digest_size=8)
    if arrays.is_array_or_csr(value) and not isinstance(value, np.generic):
        parts = _hash_array(hashed, value)
    else:
        named, parts = _decompose(value)
        hashed.update(named.encode("utf-8", "surrogatepass"))
    found = [_digest(part, known, depth - 1) for part in parts]
    if isinstance(value, (set, frozenset)):  # in another order in every process
        found.sort()
    for each in found:
        hashed.update(b"|" + each)
    known[id(value)] = value, hashed.digest()
    return hashed.digest()


def _hash_array(hashed: Any, value: Any) -> list[Any]:
    """Hash an array, or some of its rows; return the parts that it holds."""
    if sp.issparse(value):
        hashed.update(f"{value.format}{value.shape}".encode())
        if value.format != "csr":
            value = value.tocsr()
        return [value.data, value.indices, value.indptr]
    n_bytes = value.dtype.itemsize * int(np.prod(value.shape)) if value.shape else 8
    shape = tuple(value.shape)
    if shape:
        few = digest_row_indices(shape[0], max(1, n_bytes // max(1, shape[0])))
        value = value if len(few) == shape[0] else arrays.take_rows(value, few)
    host = np.ascontiguousarray(arrays.to_host(value))
    hashed.update(f"{host.dtype.str}{shape}".encode())
    if host.dtype.hasobject or host.dtype.kind == "T":  # its bytes are addresses
        return host.ravel().tolist()
    hashed.update(host.tobytes())
    return []


def _decompose(value: Any) -> tuple[str, list[Any]]:
    """The name and kind of a value, and the values that it consists of."""
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if isinstance(value, (tuple, list)):
        return f"[{len(value)}]", list(value)
    if isinstance(value, dict):
        return "{}", [
            part for key in sorted(value, key=str) for part in (key, value[key])
        ]
    if isinstance(value, (set, frozenset)):
        return "set", list(value)
    if hasattr(kind, "fingerprint") and hasattr(value, "n_rows"):  # a source
        return "rows", [value.fingerprint()]
    if isinstance(value, (FunctionType, type, np.ufunc)):
        return f"{getattr(value, '__module__', '')}.{_name(value)}", _body(value)
    if isinstance(value, MethodType):
        return _name(value), [value.__self__]
    if isinstance(value, partial):
        return "partial", [value.func, value.args, value.keywords]
    if isinstance(value, _PRINTED):
        return repr(value), []
    named = f"{kind.__module__}.{kind.__qualname__}"
    if is_dataclass(value):
        # What follows from the rest may be there or not; what `==` passes over has no
        # say.
        names = [f.name for f in fields(value) if f.init and f.compare]
        return named, [getattr(value, name) for name in names]
    if kind.__reduce__ is not object.__reduce__:
        # What another process would be given, without caches of this one.
        _, *given = value.__reduce__()
        return named, [list(g) if isinstance(g, Iterator) else g for g in given]
    return named, _state(value)


def _state(value: Any) -> list[Any]:
    """What a value holds, in its `__dict__` and in slots, without what follows."""
    found: list[Any] = []
    state = value.__getstate__()
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            part = {
                name: held
                for name, held in part.items()
                if not isinstance(getattr(type(value), name, None), cached_property)
            }
        found.append(part)
    return found


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


def _body(function: Any) -> list[Any]:
    """What a function does and what it knows, as far as that can be said."""
    if not isinstance(function, FunctionType):
        return []
    known = [_cell(cell) for cell in function.__closure__ or ()]
    defaults = [function.__defaults__, function.__kwdefaults__]
    return [*_code(function.__code__), known, *defaults]


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _code(code: CodeType) -> list[Any]:
    """What is done, with the names and the constants of it."""
    constants = [
        _code(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    ]
    return [code.co_code, code.co_names, constants]
