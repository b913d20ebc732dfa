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
from types import GeneratorType
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
    kept_by_folder,
    make_fragment,
    matrix_in_memory,
    progress_hook,
    stream_file,
)
from .base import (
    DenseRows,
    Source,
    Targets,
    as_feature_names,
    check_targets_and_weights,
)
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
    path : str, path-like, object, or list of these
        A file, a folder of files of one format (in the order of their names), a pattern
        such as `songs/*.parquet`, or several of these; on the local disk, or in an
        object store by a URL such as "s3://bucket/songs/". Folders named `year=2025`
        add a column `year` to Parquet, CSV and Arrow files. Or an object: a data set or
        stream of pyarrow, a lazy frame of polars, a relation of DuckDB, an open HDF5
        file or Zarr group; or sources, which are put one after the other.
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
    from ..engines.context import set_variable  # engines import sources
    from ..engines.progress import Bar

    with Bar(name="sources.open") as bar, set_variable(progress_hook, bar):
        return _open(path, target, weight, columns, options)


def _open(
    path: Any, target: Any, weight: Any, columns: Any, options: FileOptions
) -> Source:
    is_several = isinstance(path, (Sequence, GeneratorType))
    is_several = is_several and not isinstance(path, (str, bytes))
    paths = list(path) if is_several and path else [path]
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
    files = [file for item in paths for file in _open_item(item, options)]
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


def _open_item(item: Any, options: FileOptions) -> list[TabularFile]:
    """The files of a path, or of what stands for files."""
    if isinstance(item, (str, os.PathLike)):
        return open_files(os.fspath(item), options)
    files = files_of_object(item, options.dataset)
    if files is None:
        raise TypeError(
            f"path is of type {type(item).__name__}; it is a path, a data set of "
            "pyarrow, HDF5 or Zarr, a stream, or a list of these. Pass rows that are "
            "in memory to the estimator."
        )
    if options.row_filter is not None:
        raise ValueError(
            f"filter= is for files; filter the {type(item).__name__} itself."
        )
    return files


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
        raise FileError(
            f"{files[0].path} has no rows, or none that filter= keeps; at least "
            "one is needed."
        )
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
    first = open_file(paths[0], options, filesystem, constants[0])
    files = list(zip(paths, constants, strict=True))[1:]
    if isinstance(first, ArrowFile) and options.row_filter is not None:
        fragments = [make_fragment(p, first.format, filesystem, c) for p, c in files]
        kept = kept_by_folder(fragments, first.schema, options.row_filter)
        files = [file for file in files if file[0] in kept]
    return [first, *(open_file(p, options, filesystem, c) for p, c in files)]


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
        return check_targets_and_weights(X)
    if isinstance(X, os.PathLike) or (isinstance(X, str) and _names_file(X)):
        return open_columns(X, names)
    if isinstance(X, (list, tuple)) and X:
        if all(isinstance(x, Source) for x in X):
            return ConcatenatedRows([check_targets_and_weights(x) for x in X])
        if all(isinstance(x, os.PathLike) or _is_existing_file(x) for x in X):
            return open_columns(X, names)
    table = _as_arrow_table(X)
    if table is not None:
        matrix, feature_names = matrix_in_memory(table)
        rows = DenseRows(matrix)
        rows.feature_names = as_feature_names(feature_names)
        return rows
    files = files_of_object(X)
    return X if files is None else source_from_files(files)


def _names_file(text: str) -> bool:
    """Whether text is a URL, the name of a file that is there, or ends as one does."""
    if file_format(text) is not None:
        return True
    return len(text) < 4096 and ("://" in text or os.path.exists(text))


def _is_existing_file(text: Any) -> bool:
    """Whether it is text that has the ending of a file, and there is one."""
    has_known_ending = isinstance(text, str) and file_format(text) is not None
    return has_known_ending and ("://" in text or os.path.exists(text))


def _as_arrow_table(X: Any) -> Any:
    """X as an Arrow table if it is one, or a frame with lists in its cells."""
    library = _library_of(X)
    if library == "pyarrow" and hasattr(X, "num_rows") and hasattr(X, "column"):
        return X
    if library == "polars" and hasattr(X, "to_arrow") and hasattr(X, "dtypes"):
        return X.to_arrow() if any(kind.is_nested() for kind in X.dtypes) else None
    if library == "pandas" and hasattr(X, "columns"):
        first = X.iloc[0] if len(X) else ()
        if any(isinstance(cell, (list, np.ndarray)) for cell in first):
            pyarrow = import_optional("pyarrow", "io", "Reading lists in data frames")
            return pyarrow.Table.from_pandas(X, preserve_index=False)
    return None


def _library_of(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def files_of_object(X: Any, dataset: str | None = None) -> list[TabularFile] | None:
    """The files that an object stands for, which streams are written to; None for what
    is in memory.
    """
    if _library_of(X) == "h5py":
        is_read_only = X.file.mode == "r" and os.path.isfile(X.file.filename)
        if not is_read_only:
            raise ValueError(
                f"{X!r} is not in a file on this machine that is open with mode 'r'; "
                "open it so, or close it and pass the path."
            )
        name = X.name if hasattr(X, "shape") else dataset
        return [Hdf5File(os.path.abspath(str(X.file.filename)), name)]
    if _library_of(X) == "zarr":
        folder = getattr(X.store, "root", None)
        if hasattr(X, "shape") and folder is not None and os.path.isdir(folder):
            return [ZarrFile(os.path.abspath(folder), X.path or None)]
        return [ZarrFile(str(X.store_path), dataset, X)]
    if _library_of(X) == "pyarrow" and hasattr(X, "get_fragments"):
        return [*dataset_files(X)]
    is_in_memory = hasattr(X, "to_numpy") or hasattr(X, "__array__")
    is_stream = not is_in_memory and any(hasattr(type(X), name) for name in STREAMS)
    return [stream_file(X)] if is_stream else None


#: What objects have that give Arrow columns, batch by batch.
STREAMS = ("__arrow_c_stream__", "sink_parquet", "to_reader")
