"""What passes find, as JSON and arrays: a file that holds no code.

Numbers, text, arrays, CSR matrices, tuples and lists of them, and the dataclasses that
were marked `storable`, which go by their name.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

_STORABLE: dict[str, type] = {}


class CannotStoreError(TypeError):
    """A value that has no place in such a file."""


def storable(cls: type) -> type:
    """Mark a dataclass, whose fields are storable, by its name."""
    if _STORABLE.setdefault(cls.__name__, cls) is not cls:
        raise ValueError(f"Two storable classes are called {cls.__name__}.")
    return cls


def packed(value: Any, found: list[np.ndarray]) -> Any:
    """The value as JSON; arrays are put behind those found so far."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        found.append(np.asarray(value))
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: len(found) - 1}
    if type(value) in (tuple, list):
        parts = [packed(part, found) for part in value]
        return {"tuple" if type(value) is tuple else "list": parts}
    if isinstance(value, sp.csr_array):
        parts = [value.data, value.indices, value.indptr]
        return {"csr": [packed(part, found) for part in parts], "shape": value.shape}
    name = type(value).__name__
    known = _STORABLE.get(name)
    if known is not None and type(value) is known:
        parts = [getattr(value, f.name) for f in fields(known)]
        return {"value": name, "fields": [packed(part, found) for part in parts]}
    raise CannotStoreError(f"{name} cannot be stored.")


def unpacked(tree: Any, found: list[np.ndarray]) -> Any:
    """The value that `packed` made JSON of."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return found[tree["array"]]
    if "scalar" in tree:
        return found[tree["scalar"]][()]
    if "csr" in tree:
        parts = [unpacked(part, found) for part in tree["csr"]]
        return sp.csr_array(tuple(parts), shape=tuple(tree["shape"]))
    if "value" in tree:
        parts = [unpacked(part, found) for part in tree["fields"]]
        return _STORABLE[tree["value"]](*parts)
    kind, parts = next(iter(tree.items()))
    made = [unpacked(part, found) for part in parts]
    return tuple(made) if kind == "tuple" else made
