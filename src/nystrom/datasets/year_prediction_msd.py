"""YearPredictionMSD: the year of a song, from its sound (515 345 rows, 90 columns)."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from .archive import Archive, ArchiveFile, NumericTable, RawTable
from .generating import BLOCK_ROWS, Mixture, SmoothScore, normal
from .loading import load
from .original_files import Paths, comma_separated
from .preprocessing import finite_numbers, row_blocks

N_AVERAGES, N_COVARIANCES = 12, 78
COLUMNS = [
    *(f"timbre_average_{i}" for i in range(1, N_AVERAGES + 1)),
    *(f"timbre_covariance_{i}" for i in range(1, N_COVARIANCES + 1)),
]
#: How the published file begins, after the year 2001.
FIRST_VALUES = (49.94357, 21.47114, 73.07750)
YEARS = (1922, 2011)


def fetch_year_prediction_msd(
    *,
    data_home: str | os.PathLike[str] | None = None,
    path: Paths | None = None,
    preprocess: bool = True,
    dtype: DTypeLike = np.float32,
    missing: str = "raise",
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
    return_X_y: bool = False,
) -> Any:
    """YearPredictionMSD, 515345 × 90: the year of a song from its timbre.

    12 columns are averages, 78 covariances, of the timbre of the song's segments. The
    target is the year. The archive names the first 463715 rows for training and the
    last 51630, by other artists, for testing.

    No hash of the archive's file is known to us. A download is checked by its shape,
    its first row and the range of the years, and its own sha256 is kept beside it, so
    that a later change is noticed. The numbers are kept there too, as the text takes
    long to read.

    Parameters
    ----------
    data_home : str or path, default=None
        Where downloaded files are kept; None for `get_data_home()`.
    path : str, path or sequence of them, default=None
        The original file `YearPredictionMSD.txt`, plain, .gz or .zip, or an .npz with
        arrays X and y, instead of the archive; of several, the rows follow each other.
        Fewer rows than the whole set are accepted, and `DESCR` says so. None for the
        public archive.
    preprocess : bool, default=True
        Whether all columns are brought to mean 0 and variance 1, as in the paper.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of `data`.
    missing : {'raise', 'generate'}, default='raise'
        What to do if the set cannot be had: raise an OSError, or warn and return the
        generated data of `make_stand_in('year_prediction_msd')`.
    download_if_missing : bool, default=True
        Whether the network may be used if the set is not in `data_home`.
    n_retries : int, default=3
        How often a failed download is tried again.
    delay : float, default=1.0
        Seconds between tries.
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        `data`, `target` (the years, in float64), `feature_names`.
        `origin` is "download", "cache", "file" or "generated stand-in"; `n_rows_whole`
        is the number of rows of the whole set, and `DESCR` a text about it.

    Raises
    ------
    OSError
        If the set cannot be had, or is not the one expected.
    ValueError
        If a file given as `path` is not one of this set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nystrom.datasets import fetch_year_prediction_msd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two_songs.npz"
    ...     np.savez(path, X=np.arange(2.0 * 90).reshape(2, 90), y=[1969, 2001])
    ...     songs = fetch_year_prediction_msd(path=path)
    >>> songs.data.shape, songs.target.tolist(), songs.n_rows_whole
    ((2, 90), [1969.0, 2001.0], 515345)
    """
    return load(
        ARCHIVE,
        data_home=data_home,
        path=path,
        preprocess=preprocess,
        dtype=dtype,
        missing=missing,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
        return_X_y=return_X_y,
    )


def read_text(stream: BinaryIO) -> RawTable:
    """Numbers between commas, the year first."""
    table = comma_separated(stream, np.float64, len(COLUMNS) + 1)
    return table[:, 1:], table[:, 0]


def as_numbers(X: np.ndarray, y: np.ndarray) -> NumericTable:
    """Numbers they are."""
    years = finite_numbers(y, "The target of YearPredictionMSD").astype(np.float64)
    return finite_numbers(X, "X of YearPredictionMSD"), years, [*COLUMNS]


def differs_in(X: np.ndarray, y: np.ndarray) -> str:
    """In place of the file's hash, which nobody has published."""
    if y[0] != 2001 or tuple(X[0, :3]) != FIRST_VALUES:
        return f"its first row begins with {y[0]:g}, {X[0, 0]}, not 2001, 49.94357"
    if y.min() < YEARS[0] or y.max() > YEARS[1]:
        return f"it has years from {y.min():g} to {y.max():g}, not within {YEARS}"
    return ""


def draw(n_rows: int, rng: np.random.Generator) -> RawTable:
    """Twelve hidden variables; the covariances have long tails, most years are late."""
    n_hidden = 12
    mixture = Mixture(rng, n_hidden, len(COLUMNS), noise=0.5)
    year_score = SmoothScore(rng, n_hidden, noise=0.6)
    # As in the set, the first covariances vary a hundred times as much as the last.
    spreads = np.concatenate(
        [np.geomspace(50, 5, N_AVERAGES), np.geomspace(1800, 15, N_COVARIANCES)]
    ).astype(np.float32)
    X = np.empty((n_rows, len(COLUMNS)), np.float32)
    y = np.empty(n_rows, np.float32)
    for rows in row_blocks(n_rows, BLOCK_ROWS):
        n_block = rows.stop - rows.start
        hidden = normal(rng, n_block, n_hidden)
        block = mixture.columns(rng, hidden)
        # A loud song has large covariances all over.
        block[:, N_AVERAGES:] *= np.exp(np.float32(0.4) * normal(rng, n_block, 1))
        X[rows] = block * spreads
        years = 2011 - 9.6 * np.exp(0.6 * year_score.values(rng, hidden))
        y[rows] = np.clip(np.rint(years), *YEARS)
    return X, y


ARCHIVE = Archive(
    name="year_prediction_msd",
    title="YearPredictionMSD",
    about=(
        "The year of release of songs, mostly western and commercial, from averages "
        "and covariances of their timbre; a part of the Million Song Dataset."
    ),
    page="https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
    licence="CC BY 4.0; the terms of the Million Song Dataset apply to its source",
    citation=(
        "Bertin-Mahieux, Ellis, Whitman & Lamere, The Million Song Dataset, ISMIR 2011"
    ),
    files=(
        ArchiveFile(
            url="https://archive.ics.uci.edu/ml/machine-learning-databases/00203/"
            "YearPredictionMSD.txt.zip",
            filename="YearPredictionMSD.txt.zip",
            sha256=None,
        ),
    ),
    n_rows=515345,
    n_columns=len(COLUMNS),
    read_text=read_text,
    as_numbers=as_numbers,
    draw=draw,
    differs_in=differs_in,
    keeps_parsed=True,
)
