"""Cod-RNA: is a pair of sequences a non-coding RNA? (331 152 rows, 8 columns)"""

from __future__ import annotations

import hashlib
import os
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from .archive import Archive, ArchiveFile, NumericTable, RawTable
from .generating import Mixture, SmoothScore, normal
from .loading import load
from .original_files import Paths
from .preprocessing import finite_numbers

COLUMNS = [
    "free_energy_change",
    "shorter_length",
    *(f"{base}_frequency_{i}" for i in (1, 2) for base in "AUC"),
]
#: Of the whole set: X in float32, row by row, then y in int8, little-endian.
SHA256_OF_VALUES = "fa999cc9b379998ddef8f8015ef02b0d7b92dde95902d0440bfafd56fd27d7c5"
#: Of the set's 331152 rows, 257425 are distinct.
SHARE_OF_DISTINCT_ROWS = 257425 / 331152


def fetch_cod_rna(
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
    """Cod-RNA, 331152 × 8: non-coding RNA found by the energy of its folding.

    The columns are ten times the change of free energy, the length of the shorter
    sequence, and the frequencies of A, U and C in both. The target is +1 or −1. The
    first 59535 rows are the training file of the archive, the others its test file, raw
    and not scaled. Rows occur more than once: that is so in the original.

    No hashes of the archive's files are known to us. A download is checked by the hash
    of the numbers in it, and its own sha256 is kept beside it.

    Parameters
    ----------
    data_home : str or path, default=None
        Where downloaded files are kept; None for `get_data_home()`.
    path : str, path or sequence of them, default=None
        The original files `cod-rna` and `cod-rna.t`, in this order, plain, .gz or .zip,
        or an .npz with arrays X and y, instead of the archive.
        Fewer rows than the whole set are accepted, and `DESCR` says so. None for the
        public archive.
    preprocess : bool, default=True
        Whether all columns are brought to mean 0 and variance 1, as in the paper.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of `data`.
    missing : {'raise', 'generate'}, default='raise'
        What to do if the set cannot be had: raise an OSError, or warn and return the
        generated data of `make_stand_in('cod_rna')`.
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
        `data`, `target`, `feature_names`.
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
    >>> from nystrom.datasets import fetch_cod_rna
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three_rows"
    ...     _ = path.write_text("-1 1:-766 2:128 3:0.14\\n1 1:-420 2:92\\n1 8:0.25\\n")
    ...     rna = fetch_cod_rna(path=path, preprocess=False)
    >>> rna.data.shape, rna.target.tolist(), rna.data[1, :3].tolist()
    ((3, 8), [-1, 1, 1], [-420.0, 92.0, 0.0])
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
    """Lines of `label column:value ...`, columns from 1; what is not named is 0."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(stream, n_features=len(COLUMNS), zero_based=False)
    return X.toarray(), y


def as_numbers(X: np.ndarray, y: np.ndarray) -> NumericTable:
    """Numbers they are; what is checked are the labels."""
    labels = finite_numbers(y, "The target of Cod-RNA")
    if not np.isin(labels, (-1, 1)).all():
        raise ValueError("The target of Cod-RNA has values other than -1 and 1.")
    return finite_numbers(X, "X of Cod-RNA"), labels.astype(np.int64), [*COLUMNS]


def differs_in(X: np.ndarray, y: np.ndarray) -> str:
    """By the hash of the numbers; those of the files nobody has published."""
    digest = hashlib.sha256(X.astype("<f4", order="C").tobytes())
    digest.update(y.astype(np.int8).tobytes())
    if digest.hexdigest() != SHA256_OF_VALUES:
        return f"the sha256 of its values is {digest.hexdigest()}"
    return ""


def draw(n_rows: int, rng: np.random.Generator) -> RawTable:
    """Three hidden variables, and rows that occur more than once."""
    n_distinct = max(1, round(n_rows * SHARE_OF_DISTINCT_ROWS))
    hidden = normal(rng, n_distinct, 3)
    mixed = Mixture(rng, 3, len(COLUMNS), noise=0.5).columns(rng, hidden)
    length = np.clip(np.rint(94 + 21 * mixed[:, 1]), 67, 133)
    X = np.empty((n_distinct, len(COLUMNS)), np.float32)
    # A longer sequence folds with more energy.
    X[:, 0] = np.minimum(0, np.rint(-4.7 * length + 155 * mixed[:, 0]))
    X[:, 1] = length
    bases = np.rint(np.clip(0.24 + 0.045 * mixed[:, 2:], 0.08, 0.45) * length[:, None])
    X[:, 2:] = (bases / length[:, None]).round(6)
    y = np.where(SmoothScore(rng, 3, noise=0.3).values(rng, hidden) > 0.43, 1, -1)
    again = rng.integers(0, n_distinct, n_rows - n_distinct)
    order = rng.permutation(np.concatenate([np.arange(n_distinct), again]))
    return X[order], y[order].astype(np.int8)


_FOLDER = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

ARCHIVE = Archive(
    name="cod_rna",
    title="Cod-RNA",
    about=(
        "Whether a pair of sequences is a non-coding RNA, from the free energy of its "
        "common secondary structure, its length and its composition."
    ),
    page="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    licence="none stated; for research, citing the paper",
    citation=(
        "Uzilov, Keegan & Mathews, Detection of non-coding RNAs on the basis of "
        "predicted secondary structure formation free energy change, BMC "
        "Bioinformatics 7:173, 2006"
    ),
    files=(
        ArchiveFile(url=f"{_FOLDER}cod-rna", filename="cod-rna", sha256=None),
        ArchiveFile(url=f"{_FOLDER}cod-rna.t", filename="cod-rna.t", sha256=None),
    ),
    n_rows=331152,
    n_columns=len(COLUMNS),
    read_text=read_text,
    as_numbers=as_numbers,
    draw=draw,
    differs_in=differs_in,
)
