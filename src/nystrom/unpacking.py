"""What a model file may unpack to: about what it has, and nothing twice.

`save` writes entries as they are, not compressed, and every array once. A file made to
take far more memory or time than it has bytes is told from that by its list of entries,
the headers of its arrays, and how its values refer to each other, before they are read.
"""

from __future__ import annotations

import io
import math
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from .saved_names import parts

#: A CSR matrix is compressed; it may become so many times as large, and small ones this
#: many bytes. (A binary column takes about a hundredth of its bytes.)
MOST_TIMES, FEW_BYTES = 250, 64 * 2**20
#: NumPy refuses headers of arrays that are longer than this.
LONGEST_HEADER = 2**16


class UnpackingError(ValueError):
    """A file that says to hold more than it does."""


def check_entries(archive: ZipFile, length: int) -> None:
    """Refuse entries that are compressed, or together larger than the file."""
    entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != ZIP_STORED:
            raise UnpackingError(f"{entry.filename} in it is compressed")
    whole = sum(max(entry.file_size, entry.compress_size) for entry in entries)
    if whole > length:
        raise UnpackingError(
            f"its entries say to have {whole} bytes, and all of it has {length}"
        )


def check_schema(schema: Any) -> None:
    """Refuse values that are read, or gone through, more often than they are written.

    A value that is there twice is written twice, under one number. Numbers that stand
    for longer values would let a short file ask for endless work.
    """
    if _steps(schema, {}) > _steps(schema, None):
        raise UnpackingError("its values refer to each other as save never writes it")
    numbers: dict[Any, Any] = {}
    for _, part in parts(schema):
        if "file" not in part:
            continue
        name, number = part["file"], part.get("__id__")
        if not number or numbers.setdefault(name, number) != number:
            raise UnpackingError(f"{name} in it belongs to several values")


def _steps(tree: Any, known: dict[Any, int] | None) -> int:
    """How many values there are in a tree, by their numbers where some are known."""
    if isinstance(tree, list):
        return sum(_steps(value, known) for value in tree)
    if not isinstance(tree, dict):
        return 0
    number = tree.get("__id__") if known is not None and "__loader__" in tree else None
    if known is None or not number:
        return 1 + sum(_steps(value, known) for value in tree.values())
    if number not in known:
        known[number] = 0  # of itself it is no part
        known[number] = 1 + sum(_steps(value, known) for value in tree.values())
    return known[number]


def check_arrays(archive: ZipFile, schema: Any) -> None:
    """Refuse arrays that declare more, or less, than their entries have."""
    for where, part in parts(schema):
        loader, name = part["__loader__"], part.get("file")
        sparse = loader == "SparseMatrixNode"
        if _of_scipy(part) and not sparse:
            # Called with two numbers, such a class would make a matrix of that size.
            raise UnpackingError(f"{where} in it is no sparse matrix as save writes it")
        if loader == "NdArrayNode" and name is not None:
            entry = archive.getinfo(name)
            with archive.open(entry) as file:
                _check_header(file.read(LONGEST_HEADER), entry.file_size, name)
        elif sparse:
            _check_sparse(archive.read(part["file"]), name)


def _of_scipy(part: dict[str, Any]) -> bool:
    return str(part["__module__"]).startswith("scipy.sparse")


def _check_header(begins: bytes, size: int, name: Any) -> None:
    file = io.BytesIO(begins)
    version = np.lib.format.read_magic(file)
    first = version == (1, 0)
    header = np.lib.format
    read = header.read_array_header_1_0 if first else header.read_array_header_2_0
    shape, _, dtype = read(file)
    declared, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != there:
        raise UnpackingError(
            f"{name} in it declares {declared} bytes of an array, and has {there}"
        )


def _check_sparse(content: bytes, name: Any) -> None:
    with ZipFile(io.BytesIO(content)) as inside:
        entries = inside.infolist()
        whole = sum(entry.file_size for entry in entries)
        if whole > max(FEW_BYTES, MOST_TIMES * len(content)):
            raise UnpackingError(f"{name} in it unpacks from {len(content)} to {whole}")
        for entry in entries:
            with inside.open(entry) as file:
                begins = file.read(LONGEST_HEADER)
            _check_header(begins, entry.file_size, f"{name}/{entry.filename}")
    matrix = sp.load_npz(io.BytesIO(content))
    # Column numbers beyond the last would be read from memory that is not the matrix's.
    matrix.check_format(full_check=True)
