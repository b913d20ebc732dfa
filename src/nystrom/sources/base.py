"""The `Source` contract, and sources whose rows are in memory or computed on demand.

A source has rows and, optionally, weights (a row of weight w counts as w rows) and
targets. Only `rows` and `take` differ between kinds of storage.
"""

from __future__ import annotations

import copy
import dis
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array


def unit_weights(n_rows: int) -> np.ndarray:
    """The weights of rows that all count alike."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def are_unit_weights(weights: np.ndarray) -> bool:
    """Whether these are `ones`, or a slice of them."""
    return weights.strides == (0,) and bool(np.all(weights[:1] == 1))


def multiply_weights(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """wᵢ·vᵢ; the values themselves where all count alike."""
    if are_unit_weights(weights):
        return values
    with np.errstate(over="ignore"):  # what is not finite is refused by its user
        return weights * values


def weighted_sum(weights: np.ndarray, values: Array) -> Any:
    """Σ wᵢvᵢ, in float64: a number, or an array of one where the values are."""
    with np.errstate(over="ignore"):
        if are_unit_weights(weights):
            return arrays.sum_float64(values)
        if arrays.is_on_host(values):
            return float(weights @ values)
        return arrays.sum_float64(
            arrays.from_host(weights, values, weights.dtype) * values
        )


def weighted_row_sum(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ over the rows of values, column by column, where these are."""
    if are_unit_weights(weights):
        return arrays.namespace(values).sum(values, axis=0)
    return arrays.from_host(weights, values) @ values


def weighted_row_squares(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ² over the rows of values, column by column, where these are."""
    if are_unit_weights(weights):
        return arrays.column_squared_norms(values)
    return weighted_row_sum(weights, values * values)


def weighted_mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ wᵢvᵢ/Σ wᵢ over rows of values; of all alike where none counts."""
    if are_unit_weights(weights) or not weights.any():
        return values.mean(axis=0)
    return np.average(values, axis=0, weights=weights)


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
        return named, [list(g) if _is_iterator(g) else g for g in given]
    return named, _state(value)


def _state(value: Any) -> list[Any]:
    """What a value holds, in its `__dict__` and in slots."""
    found: list[Any] = []
    state = value.__getstate__()
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            kept = {k: v for k, v in part.items() if not _follows(type(value), k)}
            found.append(kept)
        else:
            found.append(part)
    return found


def _follows(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def _is_iterator(value: Any) -> bool:
    return isinstance(value, Iterable) and hasattr(value, "__next__")


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


def _body(function: Any) -> list[Any]:
    """What a function does and what it knows, as far as that can be said."""
    if not isinstance(function, FunctionType):
        return []
    known = [_cell(cell) for cell in function.__closure__ or ()]
    defaults = [function.__defaults__, function.__kwdefaults__]
    code = function.__code__
    return [*_code(code), known, *defaults, _globals(code, function.__globals__)]


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


def _globals(code: CodeType, known: dict[str, Any]) -> dict[str, Any]:
    """Numbers, text and arrays of its module that a function reads and never sets."""
    read, written = set[str](), set[str]()
    waiting = [code]
    while waiting:
        each = waiting.pop()
        waiting += [c for c in each.co_consts if isinstance(c, CodeType)]
        for step in dis.get_instructions(each):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(step.argval)
            elif step.opname == "STORE_GLOBAL":
                written.add(step.argval)
    kinds = (*_PRINTED, np.ndarray, tuple)
    names = sorted(name for name in read - written if name in known)
    return {name: known[name] for name in names if isinstance(known[name], kinds)}


@dataclass(frozen=True)
class Block:
    """Rows of one tile of a source: where it begins, the rows, weights, targets."""

    start: int
    X: Any
    weights: np.ndarray
    targets: np.ndarray | None = None
    #: The numbers of the rows; None where they follow each other from `start` on.
    numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.weights)


class Source(ABC):
    """Rows, block by block. Only `rows` and `take` differ between kinds of storage."""

    n_rows: int
    n_features: int | None = None  # None where the rows are not vectors
    #: What the features are called, where that is known; rows in another order of them
    #: are then refused by estimators.
    feature_names: tuple[str, ...] | None = None
    #: The files that rows are read from.
    files: tuple[str, ...] = ()
    #: (n_rows, n_targets), where there are any: an array, or `Targets` that are read.
    targets: Any = None
    #: Whether some rows cost no more than their share of all: not so in a file, where
    #: rows that are wanted again are better kept.
    supports_random_access: bool = True
    #: Whether it is part of another source.
    is_subset: bool = False
    #: A few rows that were read before.
    kept: Any = None
    #: Whether blocks are of a library with threads, or a device, of its own: one of
    #: them is then worked on at a time, and may be larger.
    on_device: bool = False
    #: What its passes run on where no engine is in use: whatever `engines.using` takes.
    default_engine: Any = None
    _weights: np.ndarray | None = None

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Rows start to stop, as the kernel takes them."""

    @abstractmethod
    def take(self, indices: np.ndarray) -> Any:
        """The rows with these numbers, in this order."""

    @property
    def weights(self) -> np.ndarray:
        """(n_rows,): a row of weight w counts as w rows; 1 unless they were given."""
        return unit_weights(self.n_rows) if self._weights is None else self._weights

    @weights.setter
    def weights(self, given: np.ndarray | None) -> None:
        self._weights = given

    @property
    def is_weighted(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    @property
    def total_weight(self) -> float:
        """As how many rows all of them count."""
        return float(self.n_rows if self._weights is None else self._weights.sum())

    def weights_of(self, indices: np.ndarray) -> np.ndarray:
        """The weights of some rows."""
        if self._weights is None:
            return unit_weights(len(indices))
        return self._weights[indices]

    def block(self, start: int, stop: int) -> Block:
        """Rows start to stop with their weights and targets."""
        targets = None if self.targets is None else self.targets[start:stop]
        numbers = self.numbers(start, stop)
        weights = self.weights[start:stop]
        return Block(start, self.rows(start, stop), weights, targets, numbers)

    @property
    def original(self) -> Source:
        """The rows as they were given: results are returned in their library."""
        return self

    def numbers(self, start: int, stop: int) -> np.ndarray | None:
        """The numbers by which rows start to stop are known, if they are others."""
        return None

    def take_numbered(self, numbers: np.ndarray) -> Any:
        """The rows that are known by these numbers."""
        return self.take(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def fingerprint(self) -> str:
        """16 hexadecimal digits that other rows, weights or targets would change.

        Of many rows in memory some count; of a file its path, size and time.
        """
        width = 8 * (self.n_features or 1)
        rows = self.take(digest_row_indices(self.n_rows, width))
        shape = (type(self).__name__, self.n_rows, self.n_features)
        return digest(shape, rows, self._weights_and_targets_digest())

    def _weights_and_targets_digest(self) -> str:
        """What the fingerprint says of weights and targets."""
        indices = digest_row_indices(self.n_rows, 8)
        weights = self.weights_of(indices) if self.is_weighted else None
        targets = self.targets
        if hasattr(targets, "of"):
            targets = targets.of.fingerprint()
        elif targets is not None:
            targets = targets[indices]
        return digest(weights, targets)

    def __repr__(self) -> str:
        parts = getattr(self, "parts", None) or [self]
        kinds = {part.file.label for part in parts if hasattr(part, "file")}
        kind, where = type(self).__name__, []
        if self.files and len(kinds) == 1:
            kind = f"{kinds.pop()}Source"
        if len(self.files) == 1:
            where = [repr(os.path.basename(self.files[0]))]
        elif self.files:
            where = [f"{len(self.files)} files"]
        elif len(parts) > 1:
            where = [f"{len(parts)} sources"]
        shape = counted(getattr(self, "n_rows", 0), "row")
        if self.n_features is not None:
            shape += f" × {counted(self.n_features, 'feature')}"
        said = [*where, shape, *_targets_in_words(self.targets, self.files)]
        return f"{kind}({', '.join([*said, *['weighted'] * self.is_weighted])})"

    def replace(self, **values: Any) -> Source:
        """The same rows with other `weights` or `targets`."""
        modified = copy.copy(self)
        for name, value in values.items():
            setattr(modified, name, value)
        return modified


def counted(number: int, what: str) -> str:
    """1 row, 1,000 rows."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _targets_in_words(targets: Any, files: tuple[str, ...]) -> list[str]:
    """What a repr says of targets: their columns, or the file that they are in."""
    if targets is None:
        return []
    of = getattr(targets, "of", None)
    first = (getattr(of, "parts", None) or [of])[0]
    stored, names = getattr(first, "file", None), getattr(first, "names", None)
    if stored is None or names is None:
        return [counted(targets.shape[1] if len(targets.shape) == 2 else 1, "target")]
    if stored.path not in files:
        return [f"target in {os.path.basename(stored.path)!r}"]
    if len(names) > 3:
        return [f"{len(names)} targets"]
    texts = [repr(n) if isinstance(n, str) else f"column {n}" for n in names]
    return [f"target{'s' * (len(names) > 1)} {' and '.join(texts)}"]


def as_feature_names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """What columns are called; None unless all of them have names that are text."""
    names = tuple(columns)
    text = names and all(isinstance(name, str) for name in names)
    return tuple(map(str, names)) if text else None


class DenseRows(Source):
    """The rows of a 2-D array of any array library, in memory or memory-mapped.

    A block of a memory map, of integers or of Fortran-ordered data is copied to floats,
    row after row, when it is asked for; the whole array never is.
    """

    n_rows: int
    n_features: int | None
    on_device: bool

    def __init__(self, X: Array, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows, self.n_features = X.shape
        self.weights = weights
        self.on_device = not arrays.is_on_host(X)

    def rows(self, start: int, stop: int) -> Array:
        return arrays.as_float(self.X[start:stop, :])

    def take(self, indices: np.ndarray) -> Array:
        return arrays.as_float(arrays.take_rows(self.X, indices))


class SparseRows(Source):
    """The rows of a CSR matrix."""

    n_rows: int
    n_features: int | None

    def __init__(self, X: Any, weights: np.ndarray | None = None) -> None:
        self.X = arrays.as_canonical_csr(sp.csr_array(X))
        self.n_rows, self.n_features = X.shape
        self.weights = weights

    def rows(self, start: int, stop: int) -> Any:
        return arrays.as_float(self.X[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return arrays.as_float(self.X[indices])


class ObjectRows(Source):
    """Rows of any kind: strings, graphs, trees; the kernel knows what they are."""

    n_rows: int

    def __init__(self, X: Sequence[Any], weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows = len(X)
        self.weights = weights

    def rows(self, start: int, stop: int) -> list[Any]:
        return list(self.X[start:stop])

    def take(self, indices: np.ndarray) -> list[Any]:
        return [self.X[i] for i in indices]


class RowNumbers(Source):
    """The numbers 0 … n − 1, for a kernel that looks rows up itself (precomputed)."""

    def __init__(self, n_rows: int, weights: np.ndarray | None = None) -> None:
        self.n_rows = n_rows
        self.weights = weights

    def rows(self, start: int, stop: int) -> np.ndarray:
        return np.arange(start, stop)

    def take(self, indices: np.ndarray) -> np.ndarray:
        return np.asarray(indices)


class Targets:
    """Looks like an array of shape (n_rows, n_targets): the rows of a source.

    Parameters
    ----------
    of : Source
        Its rows are the targets.
    single : bool
        Whether they are one number per row, not a list of one: predictions then are
        too.
    names : ndarray of str or bool, or None
        What the numbers stand for, where the file has text, or true and false:
        names[number].
    """

    of: Source
    single: bool
    names: np.ndarray | None
    shape: tuple[int, int]

    def __init__(
        self, of: Source, single: bool = False, names: np.ndarray | None = None
    ) -> None:
        self.of, self.single, self.names = of, single, names
        assert of.n_features is not None
        self.shape = (of.n_rows, of.n_features)

    def with_source(self, source: Source) -> Targets:
        """The same targets of other rows."""
        return Targets(source, self.single, self.names)

    def __repr__(self) -> str:
        classes = "" if self.names is None else f", labels of {len(self.names)} classes"
        return f"Targets({counted(len(self), 'row')} × {self.shape[1]}{classes})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        """Rows by a slice or by their numbers, in float64."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            rows = self.of.rows(start, max(start, stop))
            return np.ascontiguousarray(arrays.to_host_float64(rows)[::step])
        return arrays.to_host_float64(self.of.take(np.asarray(key)))


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    arrays.check_torch_device(device)


class DeviceRows(Source):
    """The rows of another source as torch tensors on a device.

    A block is moved when it is asked for; the device never holds all rows.
    """

    on_device = True

    def __init__(self, source: Source, device: str) -> None:
        self.source, self.device = source, device
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.supports_random_access, self.files = (
            source.supports_random_access,
            source.files,
        )
        self.weights = source.weights if source.is_weighted else None
        self.targets = source.targets

    @property
    def original(self) -> Source:
        return self.source

    def rows(self, start: int, stop: int) -> Any:
        return arrays.as_torch_tensor(self.source.rows(start, stop), self.device)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.as_torch_tensor(self.source.take(indices), self.device)


class GeneratedRows(Source):
    """The rows that a function makes, chunk by chunk.

    Parameters
    ----------
    make : callable
        `make(start, stop)` gives rows start to stop as an array, always the same ones,
        whenever and wherever it is called. It is called with whole chunks: start is a
        multiple of `chunk`, and stop the next one or the number of rows. To run in
        other processes it must be picklable: a function of a module, or a value with
        `__call__`.
    n_rows, n_features : int
        The shape of all rows.
    chunk : int
        Rows that are generated at a time. Passes ask for 1024 rows from a multiple of
        1024 on, and call less often where `chunk` divides that.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks, sources
    >>> def walk(start, stop):
    ...     t = np.arange(start, stop)
    ...     return np.column_stack([np.cos(t), np.sin(t), t / 1e6])
    >>> landmarks = select_landmarks(
    ...     sources.GeneratedRows(walk, 1_000_000, 3), n_landmarks=20,
    ...     sampler="uniform", random_state=0,
    ... )
    >>> landmarks.points.shape
    (20, 3)
    """

    make: Callable[[int, int], Any]
    chunk: int
    n_rows: int
    n_features: int | None
    #: Some rows cost as much as their chunks.
    supports_random_access = False

    def __init__(
        self,
        make: Callable[[int, int], Any],
        n_rows: int,
        n_features: int,
        chunk: int = 1024,
    ) -> None:
        self.make, self.chunk = make, chunk
        self.n_rows, self.n_features = n_rows, n_features

    def rows(self, start: int, stop: int) -> Any:
        first, last = start // self.chunk, -(-stop // self.chunk)
        if last - first == 1:
            chunk_start = first * self.chunk
            return arrays.slice_rows(
                self._generate_chunk(first), start - chunk_start, stop - chunk_start
            )
        return self.take(np.arange(start, stop))

    def take(self, indices: np.ndarray) -> Any:
        order = np.argsort(indices, kind="stable")
        sorted_indices = np.asarray(indices, dtype=np.intp)[order]
        # Each chunk is generated once, and of it only what is wanted is kept.
        chunks, starts = np.unique(sorted_indices // self.chunk, return_index=True)
        pieces = [
            arrays.take_rows(self._generate_chunk(chunk), rows - chunk * self.chunk)
            for chunk, rows in zip(
                chunks, np.split(sorted_indices, starts[1:]), strict=False
            )
        ]
        if not pieces:
            return arrays.slice_rows(self._generate_chunk(0), 0, 0)
        inverse = np.empty(len(order), dtype=np.intp)
        inverse[order] = np.arange(len(order))
        return arrays.take_rows(arrays.stack_rows(pieces), inverse)

    def _generate_chunk(self, number: int) -> Any:
        start = int(number) * self.chunk
        stop = min(start + self.chunk, self.n_rows)
        rows = arrays.as_float(self.make(start, stop))
        if tuple(rows.shape) != (stop - start, self.n_features):
            raise ValueError(
                f"{self.make!r} gave rows of shape {tuple(rows.shape)} for rows "
                f"{start} to {stop}; it must be {(stop - start, self.n_features)}."
            )
        return rows
