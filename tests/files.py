"""The same rows in files of every format."""

import h5py
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import csv, feather, parquet

from nystrom import sources


def names_of(X):
    return [f"x{j}" for j in range(X.shape[1])]


def table(X, **columns):
    named = dict(zip(names_of(X), np.asarray(X).T, strict=True))
    return pa.table({**named, **columns})


def write_npy(path, X, chunk, **columns):
    np.save(path, np.column_stack([X, *columns.values()]).astype(X.dtype))


def write_fortran(path, X, chunk, **columns):
    X = np.column_stack([X, *columns.values()]).astype(X.dtype)
    np.save(path, np.asfortranarray(X))


def write_parquet(path, X, chunk, **columns):
    parquet.write_table(table(X, **columns), path, row_group_size=chunk)


def write_csv(path, X, chunk, **columns):
    csv.write_csv(table(X, **columns), path)


def write_feather(path, X, chunk, **columns):
    feather.write_feather(table(X, **columns), path, "zstd", chunksize=chunk)


def write_arrow(path, X, chunk, **columns):
    data = table(X, **columns)
    with pa.ipc.new_file(path, data.schema) as file:
        file.write_table(data, max_chunksize=chunk)


def write_hdf5(path, X, chunk, **columns):
    with h5py.File(path, "w") as file:
        chunks = (min(chunk, len(X)), max(1, X.shape[1] // 2))
        file.create_dataset("rows/X", data=X, chunks=chunks, compression="gzip")
        for name, values in columns.items():
            file[name] = values


def write_zarr(path, X, chunk, version=3, **columns):
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    for name, values in {"X": X, **columns}.items():
        values = np.asarray(values)
        chunks = (min(chunk, len(X)), *values.shape[1:])
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)[
            :
        ] = values


def write_zarr2(path, X, chunk, **columns):
    write_zarr(path, X, chunk, version=2, **columns)


#: format: (ending, how it is written, whether columns have names)
FORMATS = {
    "npy": (".npy", write_npy, False),
    "npy, column by column": (".npy", write_fortran, False),
    "parquet": (".parquet", write_parquet, True),
    "csv": (".csv", write_csv, True),
    "feather, compressed": (".feather", write_feather, True),
    "arrow": (".arrow", write_arrow, True),
    "hdf5": (".h5", write_hdf5, True),
    "zarr 3": (".zarr", write_zarr, True),
    "zarr 2": (".zarr", write_zarr2, True),
}


def stored(folder, kind, X, chunk=777, **columns):
    """The path of rows, with further columns, in a file of some format."""
    ending, write, _ = FORMATS[kind]
    path = folder / f"rows{ending}"
    write(path, X, chunk, **columns)
    return path


def opened(folder, kind, X, chunk=777, target=None, weight=None):
    """The source of such a file."""
    given = {
        name: values
        for name, values in {"y": target, "w": weight}.items()
        if values is not None
    }
    path = stored(folder, kind, X, chunk, **given)
    by_name = FORMATS[kind][2]
    places = {name: X.shape[1] + i for i, name in enumerate(given)}
    called = {name: name if by_name else places[name] for name in given}
    return sources.open(path, target=called.get("y"), weight=called.get("w"))
