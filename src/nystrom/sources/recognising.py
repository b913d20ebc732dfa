"""What else stands for rows: paths, and what libraries make of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .arrow_columns import Schema, as_matrix
from .hdf5 import Hdf5File
from .memory import Dense
from .opening import ENDINGS, ending_of, source_of, with_columns
from .picking import pick
from .source import Source, names_among
from .stacked import Stacked
from .stored import Stored
from .zarr import ZarrFile


def recognised(X: Any, names: Sequence[str] | None = None) -> Any:
    """The source of X where X stands for files or tables; else X as it is.

    A path does, text that names a file or has the ending of one, and a list of paths,
    of names of files that are there, or of sources;
    Arrow tables and data sets; an open HDF5 data set or Zarr array, which is read from
    its file from then on. Of a path that is given alone the columns with these `names`
    are read, if there are any, whatever else the files hold.
    """
    if isinstance(X, os.PathLike):
        return with_columns(X, names)
    if isinstance(X, str):
        named = ending_of(X) in ENDINGS or (len(X) < 4096 and os.path.exists(X))
        return with_columns(X, names) if named else X
    if isinstance(X, (list, tuple)) and X:
        if all(isinstance(x, Source) for x in X):
            return Stacked(X)
        paths = all(isinstance(x, os.PathLike) or _is_file(x) for x in X)
        return with_columns(X, names) if paths else X
    library = type(X).__module__.partition(".")[0]
    return LIBRARIES[library](X) if library in LIBRARIES else X


def _is_file(text: Any) -> bool:
    """Whether it is text that has the ending of a file, and there is one."""
    named = isinstance(text, str) and ending_of(text) in ENDINGS
    return named and os.path.exists(text)


def _from_arrow(X: Any) -> Any:
    if hasattr(X, "files"):
        return with_columns(list(X.files), None)
    if not (hasattr(X, "schema") and hasattr(X, "num_rows") and hasattr(X, "column")):
        return X
    schema = Schema("X", X.schema)
    schema.dtype(schema.names)
    rows = Dense(as_matrix("X", X, schema.names, 0))
    rows.feature_names = names_among(schema.names)
    return rows


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
