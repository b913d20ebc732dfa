"""Limits on what a model file may unpack to, checked before anything is read.

`save` stores entries uncompressed and every array once. A file that is forged
to need far more memory or time than it has bytes shows it in its list of entries, array
headers and references.
"""

from __future__ import annotations

import io
import math
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from .table import iter_nodes

#: A CSR matrix is compressed; it may become so many times as large, and small ones this
#: many bytes. (A binary column takes about a hundredth of its bytes.)
MAX_SPARSE_EXPANSION, MIN_SPARSE_LIMIT_BYTES = 250, 64 * 2**20
#: NumPy refuses headers of arrays that are longer than this.
MAX_HEADER_BYTES = 2**16


class DamagedFileError(ValueError):
    """A file that is not as `save` wrote it, or that declares more than it holds."""


def check_entries(archive: ZipFile, n_bytes: int) -> None:
    """Refuse entries that are compressed, or together larger than the file."""
    entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != ZIP_STORED:
            raise DamagedFileError(f"{entry.filename} in it is compressed")
    total_bytes = sum(max(entry.file_size, entry.compress_size) for entry in entries)
    if total_bytes > n_bytes:
        raise DamagedFileError(
            f"its entries say to have {total_bytes} bytes, and all of it has {n_bytes}"
        )


def check_schema(schema: Any) -> None:
    """Refuse values that are read, or gone through, more often than they are written.

    A value that is there twice is written twice, under one number. Numbers that stand
    for longer values would let a short file ask for endless work.
    """
    if _count_values(schema, {}) > _count_values(schema, None):
        raise DamagedFileError("its values refer to each other as save never writes it")
    ids: dict[Any, Any] = {}
    for _, node in iter_nodes(schema):
        if "file" not in node:
            continue
        name, node_id = node["file"], node.get("__id__")
        if not node_id or ids.setdefault(name, node_id) != node_id:
            raise DamagedFileError(f"{name} in it belongs to several values")


def _count_values(tree: Any, known: dict[Any, int] | None) -> int:
    """How many values there are in a tree, by their numbers where some are known."""
    if isinstance(tree, list):
        return sum(_count_values(value, known) for value in tree)
    if not isinstance(tree, dict):
        return 0
    node_id = tree.get("__id__") if known is not None and "__loader__" in tree else None
    if known is None or not node_id:
        return 1 + sum(_count_values(value, known) for value in tree.values())
    if node_id not in known:
        known[node_id] = 0  # of itself it is no part
        known[node_id] = 1 + sum(_count_values(value, known) for value in tree.values())
    return known[node_id]


def check_arrays(archive: ZipFile, schema: Any) -> None:
    """Refuse arrays that declare more, or less, than their entries have."""
    for path, node in iter_nodes(schema):
        loader, name = node["__loader__"], node.get("file")
        is_sparse = loader == "SparseMatrixNode"
        if node["__module__"].startswith("scipy.sparse") and not is_sparse:
            # Called with two numbers, such a class would make a matrix of that size.
            raise DamagedFileError(
                f"{path} in it is no sparse matrix as save writes it"
            )
        if loader == "NdArrayNode" and name is not None:
            entry = archive.getinfo(name)
            with archive.open(entry) as file:
                _check_header(file.read(MAX_HEADER_BYTES), entry.file_size, name)
        elif is_sparse:
            _check_sparse(archive.read(node["file"]), name)


def _check_header(head: bytes, entry_bytes: int, name: Any) -> None:
    file = io.BytesIO(head)
    if np.lib.format.read_magic(file) == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    declared, available = math.prod(shape) * dtype.itemsize, entry_bytes - file.tell()
    if declared != available:
        raise DamagedFileError(
            f"{name} in it declares {declared} bytes of an array, and has {available}"
        )


def _check_sparse(content: bytes, name: Any) -> None:
    with ZipFile(io.BytesIO(content)) as inside:
        entries = inside.infolist()
        total_bytes = sum(entry.file_size for entry in entries)
        limit = max(MIN_SPARSE_LIMIT_BYTES, MAX_SPARSE_EXPANSION * len(content))
        if total_bytes > limit:
            raise DamagedFileError(
                f"{name} in it unpacks from {len(content)} to {total_bytes}"
            )
        for entry in entries:
            with inside.open(entry) as file:
                head = file.read(MAX_HEADER_BYTES)
            _check_header(head, entry.file_size, f"{name}/{entry.filename}")
    matrix = sp.load_npz(io.BytesIO(content))
    # Column numbers beyond the last would be read from memory that is not the matrix's.
    matrix.check_format(full_check=True)
