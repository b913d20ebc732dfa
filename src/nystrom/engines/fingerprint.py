"""Whether two runs are the same: digests of rows, and of what a pass is given.

Equal values have equal digests in every process, whatever they are made of. Pickles
have not: they tell apart what is stored once from what is stored twice.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..sources import Source
from ..sources.fingerprint import seen_rows

#: What is nested deeper has no say: values may refer to each other in a circle.
DEPTH = 12


def fingerprint(source: Source) -> str:
    """What the rows, weights and targets of a source are known by.

    Its own `fingerprint()` where it has one, as files do; a view of another source is
    that source and what the view adds to it.
    """
    own, inner = getattr(source, "fingerprint", None), getattr(source, "source", None)
    state = dict(vars(source))
    given = state.get("_weights"), state.get("targets")
    rows: Any
    if callable(own):
        rows = str(own())
    elif isinstance(inner, Source):
        rows = fingerprint(inner), {k: v for k, v in state.items() if k != "source"}
    else:
        rows = source.take(seen_rows(source.n_rows, 8 * (source.n_features or 1)))
    return digest(source.n_rows, source.n_features, rows, given)


def digest(*values: Any) -> str:
    """What values are known by."""
    hashed = hashlib.blake2b(digest_size=16)
    _feed(hashed, values, DEPTH)
    return hashed.hexdigest()


def _feed(hashed: Any, value: Any, depth: int) -> None:
    hashed.update(b"|")
    if depth == 0:
        return
    if isinstance(value, np.generic):
        value = value.item()
    if arrays.is_block(value):
        _feed_array(hashed, value)
        return
    named, parts = _taken_apart(value)
    hashed.update(named.encode())
    for part in parts:
        _feed(hashed, part, depth - 1)


def _feed_array(hashed: Any, value: Any) -> None:
    if sp.issparse(value):
        for part in (value.data, value.indices, value.indptr):
            _feed_array(hashed, part)
        return
    n_bytes = value.dtype.itemsize * int(np.prod(value.shape)) if value.shape else 8
    if value.shape:
        few = seen_rows(value.shape[0], max(1, n_bytes // max(1, value.shape[0])))
        value = value if len(few) == value.shape[0] else arrays.take_rows(value, few)
    host = np.ascontiguousarray(arrays.to_host(value))
    hashed.update(f"{host.dtype.str}{host.shape}{n_bytes}".encode())
    hashed.update(host.tobytes() if host.dtype.kind != "O" else repr(host).encode())


def _taken_apart(value: Any) -> tuple[str, list[Any]]:
    """What a value says of itself, and the values that it is made of."""
    kind = type(value)
    if isinstance(value, (tuple, list)):
        return f"[{len(value)}]", list(value)
    if isinstance(value, dict):
        return "{}", [
            part for key in sorted(value, key=str) for part in (key, value[key])
        ]
    if isinstance(value, Source):
        return "rows", [fingerprint(value)]
    if isinstance(value, (FunctionType, type, np.ufunc)):
        return f"{getattr(value, '__module__', '')}.{_name(value)}", _body(value)
    if isinstance(value, MethodType):
        return _name(value), [value.__self__]
    if isinstance(value, partial):
        return "partial", [value.func, value.args, value.keywords]
    if isinstance(value, (str, bytes, int, float, complex, Enum, np.dtype, type(None))):
        return repr(value), []
    named = f"{kind.__module__}.{kind.__qualname__}"
    if is_dataclass(value):
        # What follows from the rest may be there or not.
        return named, [getattr(value, f.name) for f in fields(value) if f.init]
    if kind.__reduce__ is not object.__reduce__:
        # What another process would be given, without what is at hand here.
        return named, list(value.__reduce__()[1:])
    state = getattr(value, "__dict__", {})
    made = {k for k in state if isinstance(getattr(kind, k, None), cached_property)}
    return named, [{k: v for k, v in state.items() if k not in made}]


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


def _body(function: Any) -> list[Any]:
    """What a function does and what it knows, as far as that can be said."""
    if not isinstance(function, FunctionType):
        return []
    code = function.__code__
    simple = [c for c in code.co_consts if isinstance(c, (str, int, float))]
    known = [cell.cell_contents for cell in function.__closure__ or ()]
    return [code.co_code, simple, known, function.__defaults__]
