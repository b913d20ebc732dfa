"""From a set's name to what the user gets, the same way for all sets."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from .archive import Archive, RawTable
from .data_home import get_data_home
from .downloading import read_archive
from .original_files import Paths, read_paths
from .preprocessing import standardised

STAND_IN = "generated stand-in"
WHENCE = {
    "download": "downloaded now",
    "cache": "read from files downloaded before",
    "file": "read from the files given as path",
    STAND_IN: "generated",
}


def load(
    archive: Archive,
    *,
    data_home: str | os.PathLike[str] | None,
    path: Paths | None,
    preprocess: bool,
    dtype: DTypeLike,
    missing: str,
    download_if_missing: bool,
    n_retries: int,
    delay: float,
    return_X_y: bool,
) -> Any:
    """What all the fetchers do; their docstrings say what the arguments mean."""
    if missing not in ("raise", "generate"):
        raise ValueError(
            f"missing={missing!r} is unknown. Allowed: 'raise', 'generate'."
        )
    if not isinstance(n_retries, (int, np.integer)) or n_retries < 0:
        raise ValueError(f"n_retries={n_retries!r} is not a whole number from 0 on.")
    if not delay >= 0:
        raise ValueError(f"delay={delay!r} is not a number of seconds from 0 on.")
    dtype = checked_dtype(dtype)
    if path is not None:
        table, origin = read_paths(archive, path), "file"
    else:
        try:
            table, origin = read_archive(
                archive,
                get_data_home(data_home) / archive.name,
                download_if_missing=download_if_missing,
                n_retries=n_retries,
                delay=delay,
            )
        except OSError as error:
            if missing == "raise":
                raise
            warnings.warn(
                f"{archive} is replaced by generated data of the same shape, as "
                f'missing="generate": results on them are not results on {archive}. '
                f"Reason: {error}",
                stacklevel=3,
            )
            table = archive.draw(archive.n_rows, np.random.default_rng(0))
            origin = STAND_IN
    return as_bunch(archive, table, origin, preprocess, dtype, return_X_y)


def checked_dtype(dtype: DTypeLike) -> np.dtype:
    """float32 or float64."""
    try:
        # np.dtype(None) is float64, but nobody means that by None.
        checked = np.dtype(np.void if dtype is None else dtype)
    except TypeError:
        checked = np.dtype(np.void)
    if checked.type not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not possible. Allowed: float32, float64.")
    return checked


def as_bunch(
    archive: Archive,
    table: RawTable,
    origin: str,
    preprocess: bool,
    dtype: np.dtype,
    return_X_y: bool,
) -> Any:
    """The Bunch, or X and y alone, of what was read or generated."""
    X, y, feature_names = archive.as_numbers(*table)
    # For a column of integers, mean and variance are exact only before rounding.
    data = standardised(X, dtype) if preprocess else np.ascontiguousarray(X, dtype)
    if return_X_y:
        return data, y
    bunch = Bunch(
        data=data,
        target=y,
        feature_names=feature_names,
        DESCR=_description(archive, data, origin, preprocess),
        origin=origin,
        n_rows_whole=archive.n_rows,
    )
    if archive.target_names is not None:
        bunch.target_names = list(archive.target_names)
    return bunch


def _description(
    archive: Archive, data: np.ndarray, origin: str, preprocess: bool
) -> str:
    n_rows, n_columns = data.shape
    rows = f"{n_rows} rows, {n_columns} columns"
    if n_rows < archive.n_rows and origin != STAND_IN:
        rows += f"; this is a part: the whole set has {archive.n_rows} rows"
    done = archive.preprocessing if preprocess else "none, columns are not scaled"
    title = archive.title
    if origin == STAND_IN:
        title = (
            f"This is a generated stand-in for {archive}, not the data: no value in it "
            f"was measured.\n\nWhat it stands for: {archive}"
        )
    lines = [
        title,
        "",
        archive.about,
        "",
        f"Rows: {rows}.",
        f"Origin: {origin} ({WHENCE[origin]}).",
        f"Preprocessing: {done}.",
        f"Archive: {archive.page}",
        *(f"File: {file.url}" for file in archive.files),
        f"Licence, as listed there: {archive.licence}",
        f"Cite: {archive.citation}",
    ]
    return "\n".join(lines) + "\n"
