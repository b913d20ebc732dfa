"""`open`, and what else stands for files: paths, Arrow tables and data sets, HDF5 and
Zarr arrays.

The format follows from the file name's suffix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import unknown_name_error
from .array_files import METADATA_FILES, Hdf5File, NpyFile, ZarrFile
from .arrow import ArrowIpcFile, ArrowSchema, ParquetFile, table_to_matrix
from .base import DenseRows, Source, Targets, as_feature_names
from .csv import CsvFile
from .tabular import (
    ClassCodes,
    ColumnNames,
    ColumnSelection,
    FileError,
    TabularFile,
    check_same_columns,
    distinct_texts,
    read_weights,
    select_columns,
    wrap_decoding_errors,
)
from .views import ConcatenatedRows


@dataclass(frozen=True)
class FileOptions:
    """What some formats need to be told."""

    dataset: str | None = None
    delimiter: str | None = None
    header: bool = True
    flat: bool = False  # an array of one dimension is one column


#: How a file is read, by how its name ends.
READERS: dict[str, Callable[[str, FileOptions], TabularFile]] = {
    ".npy": lambda path, options: NpyFile(path, options.flat),
    ".parquet": lambda path, _: ParquetFile(path),
    ".pq": lambda path, _: ParquetFile(path),
    ".csv": lambda path, options: CsvFile(path, options.delimiter, options.header),
    ".tsv": lambda path, options: CsvFile(path, options.delimiter, options.header),
    ".csv.gz": lambda path, options: CsvFile(path, options.delimiter, options.header),
    ".tsv.gz": lambda path, options: CsvFile(path, options.delimiter, options.header),
    ".arrow": lambda path, _: ArrowIpcFile(path),
    ".feather": lambda path, _: ArrowIpcFile(path),
    ".zarr": lambda path, options: ZarrFile(path, options.dataset),
    ".h5": lambda path, options: Hdf5File(path, options.dataset),
    ".hdf5": lambda path, options: Hdf5File(path, options.dataset),
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
    options = FileOptions(dataset, delimiter, header)
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    sources: list[Source] = []
    files: list[TabularFile] = []
    for item in paths:
        if isinstance(item, Source):
            sources.append(item)
        else:
            files += [open_file(file, options) for file in list_files(os.fspath(item))]
    if files and sources:
        raise ValueError(
            "Paths and sources are mixed; open the paths first, and give sources alone."
        )
    if files and isinstance(target, os.PathLike):
        source = source_from_files(
            files, select_columns(files[0], columns, None, weight)
        )
        target_options = FileOptions(delimiter=delimiter, header=header, flat=True)
        targets = open_targets(os.fspath(target), source, target_options)
        return source.replace(targets=targets)
    if files:
        return source_from_files(
            files, select_columns(files[0], columns, target, weight)
        )
    if any(option is not None for option in (target, weight, columns)):
        raise ValueError(
            "Columns of sources are chosen where these are opened, not when they are "
            "put one after the other."
        )
    return ConcatenatedRows(sources)


def source_from_files(
    files: Sequence[TabularFile], selection: ColumnSelection
) -> Source:
    """The chosen columns of files, one after the other."""
    for other in files[1:]:
        check_same_columns(other, selection)
    for file in files:
        if file.is_row_major:
            file.columns_read_together = tuple(
                n for n in selection.numbers if n in file.names
            )

    def columns_source(names: ColumnNames) -> Source:
        parts = [file.source(names) for file in files]
        return parts[0] if len(parts) == 1 else ConcatenatedRows(parts)

    source = columns_source(selection.features)
    source.feature_names = as_feature_names(selection.features)
    if not source.n_rows:
        raise FileError(f"{files[0].path} has no rows; at least one is needed.")
    if selection.weight:
        source.weights = read_weights(
            columns_source(selection.weight), files[0].path, *selection.weight
        )
    if selection.text:
        source.targets = _text_targets(files, *selection.targets)
    elif selection.targets:
        names = _boolean_classes(files, selection.targets) if selection.single else None
        source.targets = Targets(
            columns_source(selection.targets), selection.single, names
        )
    return source


def _boolean_classes(
    files: Sequence[TabularFile], names: ColumnNames
) -> np.ndarray | None:
    """What 0 and 1 stand for in a column of true and false."""
    is_boolean = len(names) == 1 and all(file.holds_booleans(*names) for file in files)
    return np.array([False, True]) if is_boolean else None


def _text_targets(files: Sequence[TabularFile], name: Any) -> Targets:
    """Classes that are text; true and false are these, however they are written."""
    texts = distinct_texts(files, name)
    parts: list[Source] = [ClassCodes(file, name, texts) for file in files]
    codes = parts[0] if len(parts) == 1 else ConcatenatedRows(parts)
    is_boolean = [text.lower() for text in texts.tolist()] == ["false", "true"]
    names = np.array([False, True]) if is_boolean else texts
    return Targets(codes, single=True, names=names)


def open_columns(path: Any, names: Sequence[str] | None) -> Source:
    """The rows of a path that is given alone; only these columns if it has them all."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = [
        open_file(file, FileOptions())
        for item in paths
        for file in list_files(os.fspath(item))
    ]
    has_all = names is not None and set(names) <= set(files[0].names)
    return source_from_files(
        files, select_columns(files[0], names if has_all else None, None, None)
    )


def open_targets(path: str, source: Source, options: FileOptions) -> Targets:
    """Targets in a file of their own, one for each row of a source."""
    targets = targets_in(path, options)
    if len(targets) != source.n_rows:
        raise FileError(
            f"{path} has {len(targets)} rows, but there are {source.n_rows} to have "
            "targets."
        )
    return targets


def targets_in(path: str, options: FileOptions) -> Targets:
    """All that a file holds, as targets: numbers, or one column of text."""
    files = [open_file(file, options) for file in list_files(path)]
    names = files[0].names
    if len(names) == 1 and files[0].holds_text(names[0]):
        for further in files[1:]:
            check_same_columns(
                further, ColumnSelection((), names, (), single=True, text=True)
            )
        return _text_targets(files, names[0])
    rows = source_from_files(files, select_columns(files[0], None, None, None))
    return Targets(rows, rows.n_features == 1, _boolean_classes(files, names))


def values_in(path: str) -> np.ndarray:
    """All that a file holds, in memory: (n,) of one column, else (n, columns).

    `.npy` files as they are stored; others in float64, whole numbers as such where the
    file says so.
    """
    if file_suffix(path) == ".npy":
        found = NpyFile(path, allow_1d=True)
        with wrap_decoding_errors(path, found.stamp, path, 0):
            return np.load(path, allow_pickle=False)
    targets = targets_in(path, FileOptions(flat=True))
    values = targets[: len(targets)]
    values = values[:, 0] if targets.single else values
    if targets.names is not None:
        return targets.names[values.astype(int)]
    files = [open_file(file, FileOptions(flat=True)) for file in list_files(path)]
    dtype = np.result_type(*(file.dtype(file.names) for file in files))
    return values.astype(dtype) if dtype.kind in "iu" else values


def open_file(path: str, options: FileOptions) -> TabularFile:
    """A file, by how its name ends."""
    suffix = file_suffix(path)
    if suffix not in READERS:
        raise unknown_name_error(
            f"{path} cannot be read: the ending", suffix, list(READERS)
        )
    return READERS[suffix](path, options)


def list_files(path: str) -> list[str]:
    """The file itself, or the files of a folder in the order of their names."""
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist.")
    if not os.path.isdir(path) or file_suffix(path) == ".zarr":
        return [path]  # "rows.parquet" may be a folder: other libraries write such
    paths = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
    visible = [file for file in paths if not _is_hidden(os.path.relpath(file, path))]
    readable = [file for file in visible if file_suffix(file) in READERS]
    if len({file_suffix(file) for file in readable}) != 1:
        raise FileError(
            f"{path} is a folder with files of {len({*map(file_suffix, readable)})} "
            "formats "
            f"that are known ({', '.join(READERS)}); it must be one."
        )
    return readable


def _is_hidden(file: str) -> bool:
    """Whether a file, or a folder that it is in, is no part of the data by its name."""
    return any(part[0] in "._" for part in Path(file).parts)


def file_suffix(path: str) -> str:
    """How a name ends, in small letters; a folder may be a Zarr array by any name."""
    if any(os.path.exists(os.path.join(path, name)) for name in METADATA_FILES):
        return ".zarr"
    stem, suffix = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] + suffix if suffix == ".gz" else suffix


def infer_source(X: Any, names: Sequence[str] | None = None) -> Any:
    """The source of X where X stands for files or tables; else X as it is.

    A path does, text that names a file or has the ending of one, and a list of paths,
    of names of files that are there, or of sources;
    Arrow tables and data sets; an open HDF5 data set or Zarr array, which is read from
    its file from then on. Of a path that is given alone the columns with these `names`
    are read, if there are any, whatever else the files hold.
    """
    if isinstance(X, os.PathLike):
        return open_columns(X, names)
    if isinstance(X, str):
        is_file_name = file_suffix(X) in READERS or (
            len(X) < 4096 and os.path.exists(X)
        )
        return open_columns(X, names) if is_file_name else X
    if isinstance(X, (list, tuple)) and X:
        if all(isinstance(x, Source) for x in X):
            return ConcatenatedRows(X)
        are_paths = all(isinstance(x, os.PathLike) or _is_existing_file(x) for x in X)
        return open_columns(X, names) if are_paths else X
    library = type(X).__module__.partition(".")[0]
    return CONVERTERS[library](X) if library in CONVERTERS else X


def _is_existing_file(text: Any) -> bool:
    """Whether it is text that has the ending of a file, and there is one."""
    has_known_suffix = isinstance(text, str) and file_suffix(text) in READERS
    return has_known_suffix and os.path.exists(text)


def _from_arrow(X: Any) -> Any:
    if hasattr(X, "files"):
        return open_columns(list(X.files), None)
    if not (hasattr(X, "schema") and hasattr(X, "num_rows") and hasattr(X, "column")):
        return X
    schema = ArrowSchema("X", X.schema)
    schema.dtype(schema.names)
    rows = DenseRows(table_to_matrix("X", X, schema.names, 0))
    rows.feature_names = as_feature_names(schema.names)
    return rows


def _from_hdf5(X: Any) -> Any:
    if not hasattr(X, "shape"):
        raise ValueError(f"X is {X!r}; pass one of its data sets, X['...'].")
    if X.file.mode != "r":
        raise ValueError(
            f"{X.file.filename} is open for writing; close it and pass the path, or "
            "open it with mode 'r'."
        )
    return _all_columns_source(Hdf5File(os.path.abspath(X.file.filename), X.name))


def _from_zarr(X: Any) -> Any:
    folder = getattr(getattr(X, "store", None), "root", None)
    if folder is None or not hasattr(X, "shape"):
        return X  # in memory, or far away: as any other array
    return _all_columns_source(ZarrFile(os.path.abspath(folder), X.path or None))


def _all_columns_source(file: TabularFile) -> Source:
    return source_from_files([file], select_columns(file, None, None, None))


CONVERTERS = {"pyarrow": _from_arrow, "h5py": _from_hdf5, "zarr": _from_zarr}
