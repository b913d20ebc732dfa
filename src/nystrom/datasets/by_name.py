"""All sets by name, and what is done by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import adult, cod_rna, covertype, parsed_copy, year_prediction_msd
from .data_home import get_data_home
from .loading import STAND_IN, as_bunch, checked_dtype

ARCHIVES = {
    module.ARCHIVE.name: module.ARCHIVE
    for module in (adult, cod_rna, covertype, year_prediction_msd)
}


def make_stand_in(
    name: str,
    *,
    n_samples: int | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = 0,
    preprocess: bool = True,
    dtype: DTypeLike = np.float32,
    return_X_y: bool = False,
) -> Any:
    """Generated data of the shape and rough character of a set, without any network.

    Numeric columns are correlated and of unequal scales, indicator columns come in
    blocks, and the target depends smoothly on hidden variables that the columns show
    through noise. Good for trying, timing and testing; results on it say nothing about
    the set itself.

    Parameters
    ----------
    name : {'adult', 'cod_rna', 'covertype', 'year_prediction_msd'}
        The set to stand in for.
    n_samples : int, default=None
        Number of rows; None for as many as the set has.
    random_state : int, RandomState, Generator or None, default=0
        The same number gives the same data. 0 gives what the fetchers give for
        `missing="generate"`.
    preprocess : bool, default=True
        Whether columns are brought to mean 0 and variance 1.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of `data`.
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        As of the fetcher of that set, with `origin` "generated stand-in".

    Examples
    --------
    >>> from nystrom.datasets import make_stand_in
    >>> stand_in = make_stand_in("covertype", n_samples=1000)
    >>> stand_in.data.shape, stand_in.origin
    ((1000, 54), 'generated stand-in')
    """
    if name not in ARCHIVES:
        allowed = ", ".join(map(repr, ARCHIVES))
        raise ValueError(f"name={name!r} is unknown. Allowed: {allowed}.")
    archive = ARCHIVES[name]
    dtype = checked_dtype(dtype)
    if n_samples is None:
        n_samples = archive.n_rows
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ValueError(
            f"n_samples={n_samples!r} is not possible. Give a whole number from 1 on, "
            f"or None for the {archive.n_rows} rows of the set."
        )
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    table = archive.draw(int(n_samples), np.random.default_rng(random_state))
    return as_bunch(archive, table, STAND_IN, preprocess, dtype, return_X_y)


def clear_data_home(data_home: str | os.PathLike[str] | None = None) -> None:
    """Delete the downloaded files of all sets, and the folders if they are then empty.

    Whatever else is in the folders stays.

    Parameters
    ----------
    data_home : str or path, default=None
        As of `get_data_home`.

    Examples
    --------
    >>> from nystrom.datasets import clear_data_home
    >>> clear_data_home("a-folder-that-is-not-there")
    """
    home = get_data_home(data_home)
    for archive in ARCHIVES.values():
        for file in archive.files:
            for name in (file.filename, f"{file.filename}.sha256"):
                (home / archive.name / name).unlink(missing_ok=True)
        (home / archive.name / parsed_copy.FILENAME).unlink(missing_ok=True)
        _remove_if_empty(home / archive.name)
    _remove_if_empty(home)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
