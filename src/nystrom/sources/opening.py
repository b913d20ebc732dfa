"""Files as sources: which format is which."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..refusals import unknown
from .arrow_ipc import ArrowFile
from .csv import CsvFile
from .file_errors import FileError, decoding
from .hdf5 import Hdf5File
from .npy import NpyFile
from .parquet import ParquetFile
from .picking import Picked, check_same, pick, weights_of
from .source import Source, names_among
from .stacked import Stacked
from .stored import Names, Stored
from .targets import Targets
from .text_labels import TextLabels, all_texts
from .zarr import METADATA, ZarrFile


@dataclass(frozen=True)
class Options:
    """What some formats need to be told."""

    dataset: str | None = None
    delimiter: str | None = None
    header: bool = True
    flat: bool = False  # an array of one dimension is one column


#: How a file is read, by how its name ends.
ENDINGS: dict[str, Callable[[str, Options], Stored]] = {
    ".npy": lambda path, told: NpyFile(path, told.flat),
    ".parquet": lambda path, _: ParquetFile(path),
    ".pq": lambda path, _: ParquetFile(path),
    ".csv": lambda path, told: CsvFile(path, told.delimiter, told.header),
    ".tsv": lambda path, told: CsvFile(path, told.delimiter, told.header),
    ".csv.gz": lambda path, told: CsvFile(path, told.delimiter, told.header),
    ".tsv.gz": lambda path, told: CsvFile(path, told.delimiter, told.header),
    ".arrow": lambda path, _: ArrowFile(path),
    ".feather": lambda path, _: ArrowFile(path),
    ".zarr": lambda path, told: ZarrFile(path, told.dataset),
    ".h5": lambda path, told: Hdf5File(path, told.dataset),
    ".hdf5": lambda path, told: Hdf5File(path, told.dataset),
}


def open(
    path: Any,
    *,
    target: Any = None,
    weight: Any = None,
    columns: Any = None,
    dataset: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> Source:
    """The rows of a file, of the files of a folder, or of several one after the other.

    What a file has is read block by block, whenever it is needed; nothing is held but
    the weights. It must not change meanwhile. The format is told by the name: `.npy`,
    `.parquet`, `.csv` or `.csv.gz`, `.arrow` or `.feather`, `.zarr`, `.h5` or `.hdf5`.

    Parameters
    ----------
    path : str, Path, or sequence of them and of sources
        A file, a folder of files of one format (in the order of their names), or
        several of these.
    target : column, sequence of columns, Path or None
        What is to be predicted: `fit(source)` then needs no y. A name alone gives one
        number per row, a sequence as many as it has. One column of text in Parquet, CSV
        or Arrow files is classes, for `KernelRidgeClassifier`, and so is one of true
        and false. A `Path` is another file, with the targets of these rows.
    weight : column or None
        A row of weight w counts as w rows. Held as a vector, 8 bytes a row.
    columns : sequence of columns or None
        The features, in this order. None: all columns but target and weight.
    dataset : str or None
        Which array of an HDF5 or Zarr file; None where there is but one.
    delimiter : str or None
        What is between the values of a CSV file. None: a comma, in `.tsv` a tab.
    header : bool
        Whether the first line of a CSV file names the columns; else they have numbers.

    Returns
    -------
    source : Source
        Goes wherever X does, and may be pickled: it holds paths, no open files.

    Notes
    -----
    A column is a name in tables (Parquet, CSV, Arrow) and a number in arrays (`.npy`,
    HDF5, Zarr), where -1 is the last; a name stands for another array in the same HDF5
    or Zarr file.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from nystrom import KernelRidge, sources
    >>> path = Path(tempfile.mkdtemp()) / "rows.npy"
    >>> X = np.random.default_rng(0).standard_normal((2000, 3))
    >>> np.save(path, np.column_stack([X, np.sin(X[:, 0])]))
    >>> source = sources.open(path, target=-1)
    >>> source.n_rows, source.n_features
    (2000, 3)
    >>> model = KernelRidge(kernel="rbf", gamma=0.1, alpha=1e-3, n_landmarks=100)
    >>> model = model.set_params(random_state=0).fit(source)
    >>> bool(np.abs(model.predict(source) - np.sin(X[:, 0])).max() < 0.1)
    True
    """
    options = Options(dataset, delimiter, header)
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    stacked: list[Source] = []
    files: list[Stored] = []
    for each in given:
        if isinstance(each, Source):
            stacked.append(each)
        else:
            files += [stored(file, options) for file in files_in(os.fspath(each))]
    if files and stacked:
        raise ValueError(
            "Paths and sources are mixed; open the paths first, and give sources alone."
        )
    if files and isinstance(target, os.PathLike):
        source = source_of(files, pick(files[0], columns, None, weight))
        apart = Options(delimiter=delimiter, header=header, flat=True)
        targets = targets_apart(os.fspath(target), source, apart)
        return source.having(targets=targets)
    if files:
        return source_of(files, pick(files[0], columns, target, weight))
    if any(named is not None for named in (target, weight, columns)):
        raise ValueError(
            "Columns of sources are chosen where these are opened, not when they are "
            "put one after the other."
        )
    return Stacked(stacked)


def source_of(files: Sequence[Stored], picked: Picked) -> Source:
    """The chosen columns of files, one after the other."""
    for further in files[1:]:
        check_same(further, picked)
    for file in files:
        if file.by_rows:
            file.together = tuple(n for n in picked.numbers if n in file.names)

    def of(names: Names) -> Source:
        parts = [file.source(names) for file in files]
        return parts[0] if len(parts) == 1 else Stacked(parts)

    source = of(picked.features)
    source.feature_names = names_among(picked.features)
    if not source.n_rows:
        raise FileError(f"{files[0].path} has no rows; at least one is needed.")
    if picked.weight:
        source.weights = weights_of(of(picked.weight), files[0].path, *picked.weight)
    if picked.text:
        source.targets = _labels(files, *picked.targets)
    elif picked.targets:
        names = _truth(files, picked.targets) if picked.single else None
        source.targets = Targets(of(picked.targets), picked.single, names)
    return source


def _truth(files: Sequence[Stored], names: Names) -> np.ndarray | None:
    """What 0 and 1 stand for in a column of true and false."""
    truth = len(names) == 1 and all(file.holds_truth(*names) for file in files)
    return np.array([False, True]) if truth else None


def _labels(files: Sequence[Stored], name: Any) -> Targets:
    """Classes that are text; true and false are these, however they are written."""
    found = all_texts(files, name)
    parts: list[Source] = [TextLabels(file, name, found) for file in files]
    whole = parts[0] if len(parts) == 1 else Stacked(parts)
    truth = [text.lower() for text in found.tolist()] == ["false", "true"]
    names = np.array([False, True]) if truth else found
    return Targets(whole, single=True, names=names)


def with_columns(path: Any, names: Sequence[str] | None) -> Source:
    """The rows of a path that is given alone; only these columns if it has them all."""
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = [
        stored(file, Options()) for each in given for file in files_in(os.fspath(each))
    ]
    known = names is not None and set(names) <= set(files[0].names)
    return source_of(files, pick(files[0], names if known else None, None, None))


def targets_apart(path: str, source: Source, options: Options) -> Targets:
    """Targets in a file of their own, one for each row of a source."""
    targets = targets_in(path, options)
    if len(targets) != source.n_rows:
        raise FileError(
            f"{path} has {len(targets)} rows, but there are {source.n_rows} to have "
            "targets."
        )
    return targets


def targets_in(path: str, options: Options) -> Targets:
    """All that a file holds, as targets: numbers, or one column of text."""
    files = [stored(file, options) for file in files_in(path)]
    names = files[0].names
    if len(names) == 1 and files[0].holds_text(names[0]):
        for further in files[1:]:
            check_same(further, Picked((), names, (), single=True, text=True))
        return _labels(files, names[0])
    rows = source_of(files, pick(files[0], None, None, None))
    return Targets(rows, rows.n_features == 1, _truth(files, names))


def values_in(path: str) -> np.ndarray:
    """All that a file holds, in memory: (n,) of one column, else (n, columns).

    `.npy` files as they are stored; others in float64, whole numbers as such where the
    file says so.
    """
    if ending_of(path) == ".npy":
        found = NpyFile(path, flat=True)
        with decoding(path, found.stamp, path, 0):
            return np.load(path, allow_pickle=False)
    targets = targets_in(path, Options(flat=True))
    values = targets[: len(targets)]
    values = values[:, 0] if targets.single else values
    if targets.names is not None:
        return targets.names[values.astype(int)]
    files = [stored(file, Options(flat=True)) for file in files_in(path)]
    dtype = np.result_type(*(file.dtype(file.names) for file in files))
    return values.astype(dtype) if dtype.kind in "iu" else values


def stored(path: str, options: Options) -> Stored:
    """A file, by how its name ends."""
    ending = ending_of(path)
    if ending not in ENDINGS:
        raise unknown(f"{path} cannot be read: the ending", ending, list(ENDINGS))
    return ENDINGS[ending](path, options)


def files_in(path: str) -> list[str]:
    """The file itself, or the files of a folder in the order of their names."""
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist.")
    if not os.path.isdir(path) or ending_of(path) == ".zarr":
        return [path]  # "rows.parquet" may be a folder: other libraries write such
    inside = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
    shown = [file for file in inside if not _is_hidden(os.path.relpath(file, path))]
    known = [file for file in shown if ending_of(file) in ENDINGS]
    if len({ending_of(file) for file in known}) != 1:
        raise FileError(
            f"{path} is a folder with files of {len({*map(ending_of, known)})} formats "
            f"that are known ({', '.join(ENDINGS)}); it must be one."
        )
    return known


def _is_hidden(file: str) -> bool:
    """Whether a file, or a folder that it is in, is no part of the data by its name."""
    return any(part[0] in "._" for part in Path(file).parts)


def ending_of(path: str) -> str:
    """How a name ends, in small letters; a folder may be a Zarr array by any name."""
    if any(os.path.exists(os.path.join(path, name)) for name in METADATA):
        return ".zarr"
    begin, ending = os.path.splitext(path.lower())
    return os.path.splitext(begin)[1] + ending if ending == ".gz" else ending
