"""Where a method's rows go: a new array, one that is given, or a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..refusals import unknown
from .npy import NpySink
from .parquet import ParquetSink
from .sink import ArraySink, opened
from .whole_file import Layout, WholeFile
from .zarr import ZarrSink

#: How a file is written, by how its name ends.
ENDINGS: dict[str, Callable[[Path, Layout], WholeFile]] = {
    ".npy": NpySink,
    ".parquet": ParquetSink,
    ".zarr": ZarrSink,
}


@dataclass(frozen=True)
class Overwrite(os.PathLike):
    """The path of a file that may be replaced, for `out=` of any method.

    A file that exists is refused otherwise. Until the new one is complete, the old one
    stays in its place.

    Parameters
    ----------
    path : str or path
        Where the result goes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from nystrom import Nystroem, sinks
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = Nystroem(n_components=5, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/Z.npy"
    ...     _ = model.transform(X, out=path)
    ...     _ = model.transform(X[:100], out=sinks.Overwrite(path))
    ...     np.load(path).shape
    (100, 5)
    """

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@dataclass(frozen=True)
class Output:
    """What a user gave as `out`, and how the columns are called in a table.

    Parameters
    ----------
    where : None, str, Path, array or sink
        None makes an array. A path is written to by its ending, complete or not at all;
        what exists there is replaced only where it is an `Overwrite`.
    name : str
        What a column is called; several have numbers after it.
    names : sequence of str or None
        What all of them are called, where it is known.
    single : bool
        Whether there is one number per row, not a list of one.
    """

    where: Any = None
    name: str = "value"
    names: Sequence[str] | None = None
    single: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.where, (str, os.PathLike)):
            _refuse_path(Path(self.where))
            if not isinstance(self.where, Overwrite):
                _refuse_existing(Path(self.where))
        elif self.where is not None and not _takes_rows(self.where):
            raise TypeError(
                f"out={self.where!r} is not allowed; it is a path that ends in "
                f"{', '.join(ENDINGS)}, or an array to be filled."
            )

    def sink(self, source: Any, n_columns: int, dtype: Any, like: Any = None) -> Any:
        """What takes so many columns for every row of a source."""
        if isinstance(self.where, (str, os.PathLike)):
            _refuse_overwriting(Path(self.where), source.files)
        return self._sink(source.n_rows, n_columns, dtype, like)

    def _sink(self, n_rows: int, n_columns: int, dtype: Any, like: Any = None) -> Any:
        if self.where is None:
            own = dtype if like is None else arrays.own_dtype(dtype, like)
            try:
                return ArraySink((n_rows, n_columns), like, own)
            except MemoryError as error:
                raise MemoryError(
                    f"{error}. transform and predict write their rows to a file, block "
                    'by block, where they are given one: out="rows.npy".'
                ) from error
        if isinstance(self.where, (str, os.PathLike)):
            path = Path(self.where)
            known = self._numbered(n_columns) if self.names is None else self.names
            names = tuple(map(str, known))
            layout = Layout(n_rows, names, np.dtype(dtype), self.single)
            return ENDINGS[path.suffix.lower()](path, layout)
        if not arrays.is_array(self.where):
            return self.where
        shape = (n_rows,) if self.single else (n_rows, n_columns)
        if tuple(self.where.shape) != shape:
            raise ValueError(
                f"out has shape {tuple(self.where.shape)}; the rows to be put there "
                f"have shape {shape}."
            )
        filled = self.where[:, None] if self.single else self.where
        return ArraySink.into(filled)

    def result(self, sink: Any) -> Any:
        """What is handed back once the sink has all rows."""
        if self.where is None:
            return sink.array[:, 0] if self.single else sink.array
        return self.where if arrays.is_array(self.where) else sink.result

    def keep(self, rows: np.ndarray, like: Any = None) -> Any:
        """Rows that there are already, put where they are to go."""
        if self.where is None:
            return rows if like is None else arrays.from_host(rows, like, rows.dtype)
        columns = rows.reshape(len(rows), -1)
        sink = self._sink(*columns.shape, rows.dtype)
        with opened(sink):
            sink.put(0, columns)
        return self.result(sink)

    def _numbered(self, n_columns: int) -> list[str]:
        if self.single:
            return [self.name]
        return [f"{self.name}{place}" for place in range(n_columns)]


#: A new array.
ARRAY = Output()


def _takes_rows(where: Any) -> bool:
    return arrays.is_array(where) or all(
        hasattr(where, name) for name in ("open", "put", "close", "result")
    )


def _refuse_overwriting(path: Path, files: Sequence[str]) -> None:
    """Rows that are read are not replaced by what is made of them."""
    for file in files:
        if path.exists() and os.path.exists(file) and path.samefile(file):
            raise ValueError(
                f"out={str(path)!r} is the file that the rows are read from, which "
                "would be lost. Choose another name."
            )


def _refuse_existing(path: Path) -> None:
    """What is there is not lost by a name that is used twice."""
    if os.path.lexists(path):
        raise FileExistsError(
            f"out={str(path)!r} exists already. Choose another name, or replace it: "
            f"out=nystrom.sinks.Overwrite({str(path)!r})."
        )


def _refuse_path(path: Path) -> None:
    """What can be known to go wrong is said before the work begins."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise unknown(f"out={str(path)!r}: the ending", ending, list(ENDINGS))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out={str(path)!r}: there is no folder {path.parent}.")
    known = any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
    if path.is_dir() and not (ending == ".zarr" and known):
        raise FileExistsError(
            f"out={str(path)!r} is a folder that is no Zarr array; it is not "
            "overwritten. Choose another name."
        )
