"""Opening the files of a set: text, plain or compressed, or arrays of NumPy.

What a file is, its first bytes say, not its name; only `.npz`, which is a zip too, is
known by what is in it.
"""

from __future__ import annotations

import gzip
import io
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from .archive import Archive, RawTable

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
#: All that reading a damaged or foreign file can raise.
UNREADABLE = (ValueError, EOFError, BadZipFile, gzip.BadGzipFile, zlib.error)


def read_paths(archive: Archive, paths: Paths) -> RawTable:
    """X and y of one or several files, one below the other in the order given."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise ValueError(f"path={paths!r} names no file; give at least one.")
    return one_below_the_other(
        [read_path(archive, Path(path).expanduser()) for path in given]
    )


def read_path(archive: Archive, path: Path) -> RawTable:
    """X and y of one file, with as many columns as the set has."""
    if not path.is_file():
        raise FileNotFoundError(
            f"path: {path} is {'a folder' if path.is_dir() else 'not there'}. Give "
            f"{how_to_give(archive)}."
        )
    try:
        X, y = _read_arrays(path) if _holds_arrays(path) else _read_texts(archive, path)
        _check_shape(archive, X, y)
    except UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read as {archive}: {error}. Give {how_to_give(archive)}."
        ) from error
    return X, y


def how_to_give(archive: Archive) -> str:
    """What `path` can be, in words."""
    names = " and ".join(file.filename for file in archive.files)
    one = "the original file" if len(archive.files) == 1 else "the original files"
    return f"{one} {names} (plain, .gz or .zip) or an .npz with arrays X and y"


def _check_shape(archive: Archive, X: np.ndarray, y: np.ndarray) -> None:
    if X.ndim != 2 or X.shape[1] != archive.n_columns:
        shape = " × ".join(map(str, X.shape))
        raise ValueError(
            f"X is {shape}, but {archive} has {archive.n_columns} columns besides the "
            "target"
        )
    if y.shape != (len(X),):
        raise ValueError(f"y has shape {y.shape}, but X has {len(X)} rows")
    if len(X) == 0:
        raise ValueError("it has no rows")


def _holds_arrays(path: Path) -> bool:
    if path.suffix == ".npz":
        return True
    if not is_zipfile(path):
        return False
    with ZipFile(path) as inside:
        return any(name.endswith(".npy") for name in inside.namelist())


def _read_arrays(path: Path) -> RawTable:
    if not is_zipfile(path):
        raise ValueError("it is not an .npz file, or was cut short")
    # Opened here, as np.load forgets to close a file that it cannot read.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        if not {"X", "y"} <= set(arrays.files):
            found = ", ".join(arrays.files) or "none"
            raise ValueError(f"it must have the arrays X and y; it has: {found}")
        return arrays["X"], arrays["y"]


def _read_texts(archive: Archive, path: Path) -> RawTable:
    """All of the set's texts in a file; a zip can hold several."""
    with ExitStack() as opened:
        texts = _texts(archive, path, opened)
        return one_below_the_other([archive.read_text(text) for text in texts])


def one_below_the_other(tables: Sequence[RawTable]) -> RawTable:
    """The tables as one; a single one is not copied."""
    if len(tables) == 1:
        return tables[0]
    X, y = zip(*tables, strict=True)
    return np.concatenate(X), np.concatenate(y)


def _texts(archive: Archive, path: Path, opened: ExitStack) -> Iterator[BinaryIO]:
    if not is_zipfile(path):
        yield _decompressed(opened.enter_context(path.open("rb")), opened)
        return
    inside = opened.enter_context(ZipFile(path))
    names = inside.namelist()
    wanted = [n for file in archive.files for n in file.names_inside if n in names]
    if not wanted and len(names) != 1:
        raise ValueError(
            f"it is a zip of {len(names)} files, none of them the set's: "
            f"{', '.join(names[:5])}"
        )
    for name in wanted or names:
        yield _decompressed(opened.enter_context(inside.open(name)), opened)


def _decompressed(stream: Any, opened: ExitStack) -> BinaryIO:
    begins = stream.read(2)
    stream.seek(0)
    if begins != b"\x1f\x8b":
        return stream
    return cast(BinaryIO, opened.enter_context(gzip.open(stream)))


def comma_separated(stream: BinaryIO, dtype: type, n_columns: int) -> np.ndarray:
    """A table of numbers without a header, n_columns wide."""
    text = io.TextIOWrapper(stream, encoding="latin-1")
    with warnings.catch_warnings():
        # That a file is empty is told by the shape.
        warnings.filterwarnings("ignore", message=".*input contained no data")
        table: np.ndarray = np.loadtxt(text, delimiter=",", dtype=dtype, ndmin=2)
    text.detach()
    if table.size == 0:
        return np.empty((0, n_columns), dtype)
    if table.shape[1] != n_columns:
        raise ValueError(
            f"its lines have {table.shape[1]} values, not {n_columns} (with the target)"
        )
    return table
