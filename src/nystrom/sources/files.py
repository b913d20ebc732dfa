"""`open`, and what else stands for files: paths, Arrow tables and data sets, HDF5 and
Zarr arrays.

The format follows from the file name's suffix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import import_optional, unknown_name_error
from .array_files import METADATA_FILES, Hdf5File, NpyFile, ZarrFile
from .arrow import (
    COMPRESSED,
    ArrowFile,
    CsvFile,
    dataset_files,
    folder_columns,
    make_fragment,
    matrix_in_memory,
    report_conversions,
    stream_file,
)
from .base import DenseRows, Source, Targets, as_feature_names
from .tabular import (
    ClassCodes,
    ColumnNames,
    ColumnSelection,
    FileError,
    FileOptions,
    TabularFile,
    check_columns,
    distinct_texts,
    read_weights,
    select_columns,
    wrap_decoding_errors,
)
from .views import ConcatenatedRows

#: For targets and weights: an array of one dimension is one column.
FLAT = FileOptions(flat=True)

#: How a file is stored, by how its name ends.
FORMATS = {
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".zarr": "zarr",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
}


def open(
    path: Any,
    *,
    target: Any = None,
    weight: Any = None,
    columns: Any = None,
    filter: Any = None,
    dataset: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = ".",
    encoding: str = "utf8",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    verbose: int = 0,
) -> Source:
    """Open files as a source of rows.

    Files are read block by block when needed; only weights are held in memory. The
    format follows from the name: `.npy`, `.parquet`, `.csv` or `.tsv` (also compressed,
    `.csv.gz`), `.arrow` or `.feather`, `.zarr`, `.h5` or `.hdf5`. CSV files are
    converted once to a temporary file, which is removed with the source. Files must not
    change while they are in use.

    Read more in the :doc:`user guide </scaling>`.

    Parameters
    ----------
    path : str, path-like, or sequence of these and of sources
        A file, a folder of files of one format (in the order of their names), a pattern
        such as `songs/*.parquet`, or several of these; on the local disk, or in an
        object store by a URL such as "s3://bucket/songs/". Folders named `year=2025`
        add a column `year` to Parquet, CSV and Arrow files.
    target : column, sequence of columns, Path or None, default=None
        Columns to predict, so that `fit(source)` needs no y. One column of text or
        booleans is read as classes. A `Path`, or a URL such as "s3://bucket/y.npy", is
        another file with the targets of these rows.
    weight : column or None, default=None
        Column of weights. A row of weight w counts as w rows.
    columns : sequence of columns or None, default=None
        Columns to use as features, in this order. None uses all columns except target
        and weight. A column of lists, such as embeddings, gives one feature per entry.
    filter : pyarrow.compute.Expression or None, default=None
        Condition on rows of Parquet, CSV and Arrow files, such as
        `pyarrow.compute.field("year") > 2000`.
    dataset : str or None, default=None
        Array of an HDF5 or Zarr file. None if there is only one.
    delimiter : str or None, default=None
        Separator of a CSV file. None means a comma, or a tab in `.tsv` files. "detect"
        chooses comma, semicolon, tab or bar from the first line.
    header : bool, default=True
        Whether the first line of a CSV file has column names; otherwise columns have
        numbers.
    decimal : str, default="."
        Decimal separator of a CSV file, such as ",".
    encoding : str, default="utf8"
        Text encoding of a CSV file, such as "latin-1".
    storage_options : dict or None, default=None
        Options for fsspec to open a URL, such as keys and an endpoint. None uses
        pyarrow's own file systems where possible.
    filesystem : fsspec or pyarrow file system, or None, default=None
        File system of the paths.
    verbose : int, default=0
        1 shows a progress bar while CSV files are converted.

    Returns
    -------
    source : Source
        The rows. Pass it wherever X can be. It can be pickled: it holds paths, no open
        files.

    See Also
    --------
    BlockwiseTransformer : Scales the columns of files.

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
    options = FileOptions(
        dataset,
        delimiter,
        header,
        encoding,
        decimal,
        filter,
        storage_options,
        filesystem,
    )
    if not verbose:
        return _open(path, target, weight, columns, options)
    from ..engines.progress import Bar  # engines import sources

    with Bar(name="sources.open") as bar, report_conversions(bar):
        return _open(path, target, weight, columns, options)


def _open(
    path: Any, target: Any, weight: Any, columns: Any, options: FileOptions
) -> Source:
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if all(isinstance(item, Source) for item in paths):
        if any(option is not None for option in (target, weight, columns)):
            raise ValueError(
                "Columns cannot be selected from open sources; select them when each "
                "source is opened."
            )
        return ConcatenatedRows([item for item in paths if isinstance(item, Source)])
    if any(isinstance(item, Source) for item in paths):
        raise ValueError(
            "Paths and sources are mixed; open the paths first, and pass sources only."
        )
    files = [f for item in paths for f in open_files(os.fspath(item), options)]
    is_file = isinstance(target, os.PathLike) or is_url(target)
    if not is_file:
        return source_from_files(files, columns, target, weight)
    source = source_from_files(files, columns, None, weight)
    target_options = replace(options, dataset=None, flat=True, row_filter=None)
    targets = targets_in(os.fspath(target), target_options)
    if len(targets) != source.n_rows:
        raise FileError(
            f"{target} has {len(targets)} rows, but there are {source.n_rows} rows "
            "that need targets."
        )
    return source.replace(targets=targets)


def source_from_files(
    files: Sequence[TabularFile],
    columns: Any = None,
    target: Any = None,
    weight: Any = None,
) -> Source:
    """The chosen columns of files, one after the other."""
    selection = select_columns(files[0], columns, target, weight)
    for further in files[1:]:
        check_columns(further, selection)
    files = [file.convert(selection) for file in files]
    for file in files:
        if file.is_row_major:
            file.columns_read_together = selection.numbers

    def columns_source(names: ColumnNames) -> Source:
        return _concatenate([file.source(names) for file in files])

    source = columns_source(selection.features)
    feature_names = files[0].feature_names(selection.features)
    source.feature_names = as_feature_names(feature_names)
    if not source.n_rows:
        raise FileError(f"{files[0].path} has no rows; at least one is needed.")
    if selection.weight:
        source.weights = read_weights(
            columns_source(selection.weight), files[0].path, *selection.weight
        )
    if selection.classes:
        source.targets = _class_targets(files, *selection.targets)
    elif selection.targets:
        source.targets = Targets(columns_source(selection.targets), selection.single)
    return source


def _concatenate(parts: list[Source]) -> Source:
    return parts[0] if len(parts) == 1 else ConcatenatedRows(parts)


def _class_targets(files: Sequence[TabularFile], name: Any) -> Targets:
    """Classes that are text; true and false are these, however they are written."""
    texts = distinct_texts(files, name)
    codes = _concatenate([ClassCodes(file, name, texts) for file in files])
    is_boolean = [text.lower() for text in texts.tolist()] == ["false", "true"]
    names = np.array([False, True]) if is_boolean else texts
    return Targets(codes, single=True, names=names)


def open_columns(path: Any, names: Sequence[str] | None) -> Source:
    """The rows of a path that is given alone; only these columns if it has them all."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = [f for p in paths for f in open_files(os.fspath(p), FileOptions())]
    columns = None if names is None else _columns_of_features(files[0], names)
    return source_from_files(files, columns)


def _columns_of_features(file: TabularFile, names: Sequence[str]) -> list[Any] | None:
    """The columns that have these features, in this order; None where some are not
    there. A list is a column of several features.
    """
    features = {file.feature_names((name,)): name for name in file.names}
    columns, rest = list[Any](), tuple(names)
    while rest:
        fitting = [f for f in features if rest[: len(f)] == f]
        if not fitting:
            return None
        columns.append(features[fitting[0]])
        rest = rest[len(fitting[0]) :]
    return columns


def targets_in(path: str, options: FileOptions = FLAT) -> Targets:
    """All that a file holds, as targets: numbers, or one column of classes."""
    files = open_files(path, options)
    name, *others = files[0].names
    if not others and files[0].holds_classes(name):
        selection = ColumnSelection((), (name,), (), single=True, classes=True)
        for file in files:
            check_columns(file, selection)
        return _class_targets([file.convert(selection) for file in files], name)
    rows = source_from_files(files)
    return Targets(rows, rows.n_features == 1)


def values_in(path: str) -> np.ndarray:
    """All that a file holds, in memory: (n,) of one column, else (n, columns).

    `.npy` files as they are stored; others in float64, whole numbers as such where the
    file says so.
    """
    files = open_files(path, FLAT)
    if isinstance(files[0], NpyFile):
        with wrap_decoding_errors(files[0]), files[0].open() as file:
            return np.load(file, allow_pickle=False)
    targets = targets_in(path)
    values = targets[: len(targets)]
    values = values[:, 0] if targets.single else values
    if targets.names is not None:
        return targets.names[values.astype(int)]
    dtype = np.result_type(*(file.dtype(file.names) for file in files))
    return values.astype(dtype) if dtype.kind in "biu" else values


def open_files(path: str, options: FileOptions) -> list[TabularFile]:
    """A file, the files of a folder, or those that fit a pattern."""
    filesystem, inner = find_filesystem(path, options)
    if filesystem is not None and file_format(inner) == "zarr":
        if options.filesystem is not None:
            raise ValueError(
                f"{path}: Zarr arrays in a store are opened by a URL, with "
                "storage_options={...} instead of filesystem=."
            )
        zarr = import_optional("zarr", "zarr", "Reading Zarr arrays")
        root = zarr.open(path, mode="r", storage_options=options.storage_options)
        return [ZarrFile(path, options.dataset, root)]
    paths, base = list_files(inner, filesystem)
    constants = folder_columns(paths, base)
    return [
        open_file(file, options, filesystem, columns)
        for file, columns in zip(paths, constants, strict=True)
    ]


def open_file(
    path: str, options: FileOptions, filesystem: Any, constants: dict[str, Any]
) -> TabularFile:
    """A file, by how its name ends."""
    kind, row_filter = file_format(path), options.row_filter
    if kind is None:
        raise unknown_name_error(
            f"{path} cannot be read: the ending", Path(path).suffix, list(FORMATS)
        )
    if kind == "csv":
        return CsvFile(path, options, filesystem, constants)
    if kind in ("parquet", "ipc"):
        fragment = make_fragment(path, kind, filesystem, constants)
        return ArrowFile(fragment, row_filter=row_filter)
    if row_filter is not None:
        raise ValueError(
            f"{path}: filter= is for Parquet, CSV and Arrow files; convert the file, "
            "or omit filter=."
        )
    if kind == "hdf5":
        return Hdf5File(path, options.dataset, filesystem)
    if kind == "npy":
        return NpyFile(path, options.flat, filesystem)
    return ZarrFile(path, options.dataset)


def is_url(text: Any) -> bool:
    """Whether a path is in a store, such as "s3://bucket/rows.npy"."""
    return isinstance(text, str) and "://" in text


def find_filesystem(path: str, options: FileOptions) -> tuple[Any, str]:
    """Where a path is (None: on the local disk), and what it is called there."""
    filesystem, given = options.filesystem, options.storage_options
    if "://" not in path and filesystem is None and given is None:
        return None, path
    fs = import_optional("pyarrow.fs", "io", "Reading from a store")
    if filesystem is None and given is None:
        with suppress(ValueError, ImportError):  # a scheme that pyarrow does not know
            filesystem, path = fs.FileSystem.from_uri(path)
    if filesystem is None:
        fsspec = import_optional("fsspec", "remote", f"Reading {path}")
        filesystem, path = fsspec.core.url_to_fs(path, **(given or {}))
    if hasattr(filesystem, "_strip_protocol"):  # one of fsspec's
        path = filesystem._strip_protocol(path)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(RangeReads(filesystem)))
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    return None if is_local else filesystem, path.partition("://")[2] or path


#: Bytes that files of fsspec read ahead; by themselves some of them read 50 MB.
READ_AHEAD_BYTES = 2**20


class RangeReads:
    """A file system of fsspec whose files read little more than they are asked for."""

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    def __getattr__(self, name: str) -> Any:
        if name == "filesystem":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.filesystem, name)

    def open(self, path: str, mode: str = "rb") -> Any:
        """An open file."""
        return self.filesystem.open(path, mode, block_size=READ_AHEAD_BYTES)


def list_files(path: str, filesystem: Any = None) -> tuple[list[str], str]:
    """The file itself, or the files of a folder or of a pattern in the order of their
    names; and the folder, below which names may be columns.
    """
    path = os.path.abspath(path) if filesystem is None else path.rstrip("/")
    is_pattern = any(sign in path for sign in "*?[") and not os.path.exists(path)
    base = os.path.dirname(re.split(r"[*?\[]", path)[0]) if is_pattern else path
    found = _walk(base, filesystem)
    if found == [path]:
        return found, path
    # "rows.parquet" may be a folder: other libraries write such.
    found = [f for f in found if file_format(f) and not _is_hidden(f[len(base) :])]
    if is_pattern:
        regex = re.compile(_pattern_regex(path))
        found = [file for file in found if regex.fullmatch(file)]
    if not found:
        raise FileNotFoundError(
            f"{path} does not exist, or holds no file that ends in "
            f"{', '.join(FORMATS)}."
        )
    if len({file_format(file) for file in found}) > 1:
        raise FileError(f"{path} has files of several formats; it must be one.")
    return found, base


def _walk(path: str, filesystem: Any) -> list[str]:
    """The file of this name, or all files in a folder, in the order of their names."""
    if filesystem is not None:
        fs = import_optional("pyarrow.fs", "io", "Reading from a store")
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return [path]
        selector = fs.FileSelector(path, allow_not_found=True, recursive=True)
        files = filesystem.get_file_info(selector)
        return sorted(file.path for file in files if file.type == fs.FileType.File)
    if os.path.isfile(path) or (file_format(path) == "zarr" and os.path.exists(path)):
        return [path]
    return sorted(str(file) for file in Path(path).rglob("*") if file.is_file())


def _pattern_regex(pattern: str) -> str:
    """A pattern of names as a regular expression: * is within a folder, ** is not."""
    parts = re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", pattern)
    signs = {"*": "[^/]*", "?": "[^/]", "**": ".*", "**/": "(?:.*/)?"}
    return "".join(
        signs.get(part) or (part if part.startswith("[") else re.escape(part))
        for part in parts
    )


def _is_hidden(file: str) -> bool:
    """Whether a file, or a folder that it is in, is no part of the data by its name."""
    return any(part[0] in "._" for part in Path(file.strip("/")).parts)


def file_format(path: str) -> str | None:
    """How a file is stored, by how its name ends; a folder may be a Zarr array by any
    name.
    """
    if any(os.path.exists(os.path.join(path, name)) for name in METADATA_FILES):
        return "zarr"
    stem, suffix = os.path.splitext(path.lower())
    if suffix in COMPRESSED and stem.endswith((".csv", ".tsv")):
        return "csv"
    return FORMATS.get(suffix)


def infer_source(X: Any, names: Sequence[str] | None = None) -> Any:
    """Return the source of X if X stands for files or tables, else X.

    Paths, lists of paths and sources, Arrow tables, data sets and streams, lazy frames
    of polars, relations of DuckDB, open HDF5 data sets and Zarr arrays stand for files
    or tables.

    Parameters
    ----------
    X : object
        Anything that an estimator accepts as X.
    names : sequence of str or None, default=None
        Columns to read from a path, if the file has them all.

    Returns
    -------
    X : object
        A source, or X itself.
    """
    if isinstance(X, Source):
        return _with_matrix_targets(X)
    if isinstance(X, os.PathLike) or (isinstance(X, str) and _names_file(X)):
        return open_columns(X, names)
    if isinstance(X, (list, tuple)) and X:
        if all(isinstance(x, Source) for x in X):
            return ConcatenatedRows([_with_matrix_targets(x) for x in X])
        if all(isinstance(x, os.PathLike) or _is_existing_file(x) for x in X):
            return open_columns(X, names)
    library = type(X).__module__.partition(".")[0]
    if library in CONVERTERS:
        return CONVERTERS[library](X)
    is_frame = hasattr(X, "to_numpy") or hasattr(X, "__array__")
    if hasattr(X, "__arrow_c_stream__") and not is_frame:
        return source_from_files([stream_file(X)])
    return X


def _with_matrix_targets(source: Source) -> Source:
    """The source; a vector of targets is one number per row."""
    targets = source.targets
    if isinstance(targets, np.ndarray) and targets.ndim == 1:
        return source.replace(targets=Targets(DenseRows(targets[:, None]), single=True))
    return source


def _names_file(text: str) -> bool:
    """Whether text is a URL, the name of a file that is there, or ends as one does."""
    if file_format(text) is not None:
        return True
    return len(text) < 4096 and ("://" in text or os.path.exists(text))


def _is_existing_file(text: Any) -> bool:
    """Whether it is text that has the ending of a file, and there is one."""
    has_known_ending = isinstance(text, str) and file_format(text) is not None
    return has_known_ending and ("://" in text or os.path.exists(text))


def _from_arrow(X: Any) -> Any:
    if hasattr(X, "get_fragments"):
        return source_from_files(dataset_files(X))
    if hasattr(X, "read_next_batch"):
        return source_from_files([stream_file(X)])
    if not (hasattr(X, "schema") and hasattr(X, "num_rows") and hasattr(X, "column")):
        return X
    matrix, names = matrix_in_memory(X)
    rows = DenseRows(matrix)
    rows.feature_names = as_feature_names(names)
    return rows


def _from_polars(X: Any) -> Any:
    """Lazy frames are written out; frames with lists are Arrow tables."""
    if hasattr(X, "sink_parquet"):
        return source_from_files([stream_file(X)])
    nested = [kind for kind in getattr(X, "dtypes", ()) if kind.is_nested()]
    return _from_arrow(X.to_arrow()) if nested else X


def _from_hdf5(X: Any) -> Any:
    is_read_only = hasattr(X, "shape") and X.file.mode == "r"
    if not (is_read_only and os.path.isfile(X.file.filename)):
        raise ValueError(
            f"X is {X!r}; pass a data set, file['...'], of a file on this machine that "
            "is open with mode 'r', or close it and pass the path."
        )
    path = os.path.abspath(str(X.file.filename))
    return source_from_files([Hdf5File(path, X.name)])


def _from_zarr(X: Any) -> Any:
    if not hasattr(X, "shape"):
        raise ValueError(f"X is {X!r}; pass one of its arrays, X['...'].")
    folder = getattr(X.store, "root", None)
    if folder is None or not os.path.isdir(folder):
        return source_from_files([ZarrFile(str(X.store_path), None, X)])
    return source_from_files([ZarrFile(os.path.abspath(folder), X.path or None)])


CONVERTERS = {
    "pyarrow": _from_arrow,
    "polars": _from_polars,
    "h5py": _from_hdf5,
    "zarr": _from_zarr,
}
