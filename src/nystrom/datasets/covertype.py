"""Covertype: the kind of forest, from maps (581 012 rows, 54 columns, 7 classes)."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from .archive import Archive, ArchiveFile, NumericTable, RawTable
from .generating import BLOCK_ROWS, Mixture, SmoothScore, indicators, normal, shared_out
from .loading import load
from .original_files import Paths, comma_separated
from .preprocessing import finite_numbers, row_blocks

NUMERIC = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
)
N_AREAS, N_SOILS = 4, 40
COLUMNS = [
    *NUMERIC,
    *(f"Wilderness_Area_{i}" for i in range(1, N_AREAS + 1)),
    *(f"Soil_Type_{i}" for i in range(1, N_SOILS + 1)),
]


def fetch_covertype(
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
    """Covertype, 581012 × 54: the kind of forest from cartographic variables.

    Ten columns are numeric, the others indicators of 4 wilderness areas and 40 types of
    soil, so already in the original. The target is the class, 1 to 7.

    Parameters
    ----------
    data_home : str or path, default=None
        Where downloaded files are kept; None for `get_data_home()`.
    path : str, path or sequence of them, default=None
        The original file `covtype.data`, plain, .gz or .zip, or an .npz with arrays X
        and y, instead of the archive; of several, the rows follow each other.
        Fewer rows than the whole set are accepted, and `DESCR` says so. None for the
        public archive.
    preprocess : bool, default=True
        Whether all columns are brought to mean 0 and variance 1, as in the paper.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of `data`.
    missing : {'raise', 'generate'}, default='raise'
        What to do if the set cannot be had: raise an OSError, or warn and return the
        generated data of `make_stand_in('covertype')`.
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
        `data`, `target`, `feature_names`; class k is called `target_names[k - 1]`.
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
    >>> from nystrom.datasets import fetch_covertype
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two_rows.npz"
    ...     np.savez(path, X=np.arange(2 * 54).reshape(2, 54), y=[5, 2])
    ...     forest = fetch_covertype(path=path)
    >>> forest.data.shape, forest.target_names[forest.target[0] - 1], forest.origin
    ((2, 54), 'Aspen', 'file')
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
    """Whole numbers between commas, the class last."""
    table = comma_separated(stream, np.int16, len(COLUMNS) + 1)
    return table[:, :-1], table[:, -1]


def as_numbers(X: np.ndarray, y: np.ndarray) -> NumericTable:
    """Numbers they are; what is checked are the classes."""
    classes = finite_numbers(y, "The target of Covertype")
    if not np.isin(classes, np.arange(1, 8)).all():
        raise ValueError("The target of Covertype has values other than 1, 2, ..., 7.")
    return finite_numbers(X, "X of Covertype"), classes.astype(np.int64), [*COLUMNS]


def draw(n_rows: int, rng: np.random.Generator) -> RawTable:
    """Four hidden variables; areas, soils and classes as frequent as in the set."""
    mixture = Mixture(rng, 4, len(NUMERIC), noise=0.5)
    area_score = Mixture(rng, 4, 1, noise=0.4)
    soil_score = Mixture(rng, 4, 1, noise=0.4)
    forest_score = SmoothScore(rng, 4, noise=0.4)
    soils = rng.permutation(np.arange(1, N_SOILS + 1) ** -1.5)
    X = np.empty((n_rows, len(COLUMNS)), np.int16)
    y = np.empty(n_rows, np.int16)
    for rows in row_blocks(n_rows, BLOCK_ROWS):
        hidden = normal(rng, rows.stop - rows.start, 4)
        numeric = MEANS + SPREADS * mixture.columns(rng, hidden)
        X[rows, : len(NUMERIC)] = np.clip(np.rint(numeric), LOWEST, HIGHEST)
        area = shared_out(area_score.columns(rng, hidden)[:, 0], AREA_SHARES)
        soil = shared_out(soil_score.columns(rng, hidden)[:, 0], soils)
        X[rows, len(NUMERIC) : -N_SOILS] = indicators(area, N_AREAS)
        X[rows, -N_SOILS:] = indicators(soil, N_SOILS)
        y[rows] = 1 + shared_out(forest_score.values(rng, hidden), FOREST_SHARES)
    return X, y


# What a stand-in keeps of the set, in the order of the columns.
MEANS = np.array([2959, 156, 14, 269, 46, 2350, 212, 223, 143, 1980], np.float32)
SPREADS = np.array([280, 112, 7.5, 213, 58, 1559, 27, 20, 38, 1324], np.float32)
LOWEST = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
HIGHEST = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173])
AREA_SHARES = [260796, 29884, 253364, 36968]
FOREST_SHARES = [211840, 283301, 35754, 2747, 9493, 17367, 20510]

ARCHIVE = Archive(
    name="covertype",
    title="Covertype (forest cover type)",
    about=(
        "The kind of forest on patches of 30 m × 30 m in Roosevelt National Forest, "
        "Colorado, from cartographic variables."
    ),
    page="https://archive.ics.uci.edu/dataset/31/covertype",
    licence="CC BY 4.0",
    citation=(
        "Blackard & Dean, Comparative accuracies of artificial neural networks and "
        "discriminant analysis in predicting forest cover types from cartographic "
        "variables, Computers and Electronics in Agriculture 24, 1999"
    ),
    files=(
        ArchiveFile(
            url="https://ndownloader.figshare.com/files/5976039",
            filename="covtype.data.gz",
            sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
        ),
    ),
    n_rows=581012,
    n_columns=len(COLUMNS),
    read_text=read_text,
    as_numbers=as_numbers,
    draw=draw,
    target_names=(
        "Spruce/Fir",
        "Lodgepole Pine",
        "Ponderosa Pine",
        "Cottonwood/Willow",
        "Aspen",
        "Douglas-fir",
        "Krummholz",
    ),
)
