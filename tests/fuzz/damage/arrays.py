"""Damage to one array of a model file, with checksums that are right."""

from __future__ import annotations

import io
import pickle
import struct
import warnings
import zipfile
from functools import cache, wraps

import numpy as np

from .archive import entries_of, flipped, some, zipped


def one_array(change):
    """The change, made to one of the arrays; to none where there is none."""

    @wraps(change)
    def changed(rng, data):
        entries = entries_of(data)
        arrays = [name for name in entries if name.endswith(".npy")]
        if not arrays:
            return flipped(rng, data)
        name = some(rng, arrays)
        entries[name] = change(rng, entries[name])
        return zipped(entries)

    return changed


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def with_header(content, **changes) -> bytes:
    """An array whose header says something else."""
    file = io.BytesIO(content)
    np.lib.format.read_magic(file)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    descr = np.lib.format.dtype_to_descr(dtype)
    said = {"descr": descr, "fortran_order": fortran, "shape": shape, **changes}
    text = repr(said).encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + file.read()


@one_array
def declares_more(rng, content):
    """A shape with far more entries than there are."""
    n = 10 ** int(rng.integers(3, 19))
    shapes = [(n,), (n, n), (n, 3), (2**62,), (-1,), (n, 0), ()]
    return with_header(content, shape=some(rng, shapes))


@one_array
def other_shape(rng, content):
    array = np.load(io.BytesIO(content))
    ways = [
        lambda a: a[:-1],
        lambda a: a[None],
        lambda a: a.T,
        np.ravel,
        lambda a: a[:0],
        lambda a: a[..., :1],
        lambda a: np.concatenate([a, a]),
        lambda a: np.zeros(()),
    ]
    return saved(some(rng, ways)(np.atleast_1d(array)))


@one_array
def other_type(rng, content):
    array = np.load(io.BytesIO(content))
    kind = some(rng, ["f2", "f4", "c16", "i1", "u8", "?", "S3", "U2", "M8[s]", "f8,i4"])
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return saved(np.asarray(array).astype(kind))
    except (TypeError, ValueError):
        return with_header(content, descr=kind)


@one_array
def a_pickle(rng, content):
    """A header that says that a pickle follows, or a pickle alone."""
    changed = with_header(content, descr="|O") if rng.random() < 0.7 else b""
    return changed + pickle.dumps([print])


@one_array
def other_values(rng, content):
    array = np.array(np.load(io.BytesIO(content)))
    value = some(rng, [np.nan, np.inf, -1.0, 1e300, 0.0, 2.0**40])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if array.size and array.dtype.kind in "fiu":
            flat = array.reshape(-1)
            flat[rng.integers(array.size)] = np.full(1, value).astype(array.dtype)[0]
    return saved(array)


@one_array
def broken(rng, content):
    return flipped(rng, content)[: rng.integers(1, len(content) + 1)]


def sparse_bomb(rng, data):
    """A CSR matrix that unpacks to far more than it has."""
    return with_sparse(rng, data, empty_rows(9_000_000))  # 72 MB


@cache
def empty_rows(n) -> bytes:
    """So many rows without entries, compressed."""
    pieces = {
        "format": saved(np.array(b"csr")),
        "shape": saved(np.array([n, 1])),
        "indptr": saved(np.zeros(n + 1, np.int64)),
        "indices": saved(np.zeros(0, np.int64)),
        "data": saved(np.zeros(0)),
    }
    return zipped({f"{k}.npy": v for k, v in pieces.items()}, zipfile.ZIP_DEFLATED)


def sparse_out_of_range(rng, data):
    """A CSR matrix with columns that it does not have, or pieces that do not fit."""
    far = int(some(rng, [3, 10**4, 10**9, -1, -(10**9)]))
    pieces = {
        "format": saved(np.array(b"csr")),
        "shape": saved(np.array([2, 3])),
        "indptr": saved(np.array([0, 1, 2])[: rng.integers(2, 4)]),
        "indices": saved(np.array([0, far])),
        "data": saved(np.ones(int(rng.integers(1, 4)))),
    }
    return with_sparse(rng, data, zipped({f"{k}.npy": v for k, v in pieces.items()}))


def with_sparse(rng, data, matrix) -> bytes:
    """The file with a matrix in place of one of its arrays."""
    entries = entries_of(data)
    arrays = [name for name in entries if name.endswith(".npy")]
    if not arrays:
        return flipped(rng, data)
    name = some(rng, arrays)
    said = entries["schema.json"].decode()
    array = '"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"'
    csr = '"__class__": "csr_array", "__module__": "scipy.sparse._csr", "__loader__": '
    mine = f', "type": "numpy", "file": "{name}"'
    said = said.replace(
        array + mine, f'{csr}"SparseMatrixNode", "type": "scipy", "file": "{name}"'
    )
    entries["schema.json"], entries[name] = said.encode(), matrix
    return zipped(entries)


WAYS = [
    declares_more,
    other_shape,
    other_type,
    a_pickle,
    other_values,
    broken,
    sparse_bomb,
    sparse_out_of_range,
]
