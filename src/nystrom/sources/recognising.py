"""What else stands for rows: paths, and what libraries make of files."""

from __future__ import annotations

import os
from typing import Any

from .arrow_columns import Schema, as_matrix
from .hdf5 import Hdf5File
from .memory import Dense
from .opening import ENDINGS, ending_of, open, source_of
from .picking import pick
from .source import Source
from .stored import Stored
from .zarr import ZarrFile


def recognised(X: Any) -> Any:
    """The source of X where X stands for files or tables; else X as it is.

    A path does, text that names a file or has the ending of one, and a list of paths;
    Arrow tables and data sets; an open HDF5 data set or Zarr array, which is read from
    its file from then on.
    """
    if isinstance(X, os.PathLike):
        return open(X)
    if isinstance(X, str):
        named = ending_of(X) in ENDINGS or (len(X) < 4096 and os.path.exists(X))
        return open(X) if named else X
    if isinstance(X, (list, tuple)) and X:
        return open(X) if all(isinstance(x, os.PathLike) for x in X) else X
    library = type(X).__module__.partition(".")[0]
    return LIBRARIES[library](X) if library in LIBRARIES else X


def _from_arrow(X: Any) -> Any:
    if hasattr(X, "files"):
        return open(list(X.files))
    if not (hasattr(X, "schema") and hasattr(X, "num_rows") and hasattr(X, "column")):
        return X
    schema = Schema("X", X.schema)
    schema.dtype(schema.names)
    return Dense(as_matrix("X", X, schema.names, 0))


def _from_hdf5(X: Any) -> Any:
    if not hasattr(X, "shape"):
        raise ValueError(f"X is {X!r}; pass one of its data sets, X['...'].")
    if X.file.mode != "r":
        raise ValueError(
            f"{X.file.filename} is open for writing; close it and pass the path, or "
            "open it with mode 'r'."
        )
    return _whole(Hdf5File(os.path.abspath(X.file.filename), X.name))


def _from_zarr(X: Any) -> Any:
    folder = getattr(getattr(X, "store", None), "root", None)
    if folder is None or not hasattr(X, "shape"):
        return X  # in memory, or far away: as any other array
    return _whole(ZarrFile(os.path.abspath(folder), X.path or None))


def _whole(stored: Stored) -> Source:
    return source_of([stored], pick(stored, None, None, None))


LIBRARIES = {"pyarrow": _from_arrow, "h5py": _from_hdf5, "zarr": _from_zarr}
