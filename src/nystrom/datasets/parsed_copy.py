"""A copy of the parsed numbers beside the archive, where the text takes long to read.

The half gigabyte of YearPredictionMSD takes more than ten seconds to parse, its copy
one. The copy is of files with certain hashes: beside other files, or damaged, it is as
if it were not there.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from .archive import RawTable

FILENAME = "parsed.npz"


def read_copy(folder: Path, hashes: list[str]) -> RawTable | None:
    """X and y, or None if there is no copy made from files with these hashes."""
    # A damaged copy can raise many things; that it can be made again is all the same.
    with (
        suppress(OSError, ValueError, KeyError, EOFError, BadZipFile),
        (folder / FILENAME).open("rb") as stream,
        np.load(stream, allow_pickle=False) as copy,
    ):
        if copy["hashes"].tolist() == hashes:
            return copy["X"], copy["y"]
    return None


def write_copy(folder: Path, hashes: list[str], table: RawTable) -> None:
    """Keep X and y if there is room; without the copy, reading takes longer."""
    X, y = table
    beside = folder / f"{FILENAME}.{uuid.uuid4().hex}"
    with suppress(OSError):
        try:
            with beside.open("wb") as stream:
                np.savez(stream, hashes=hashes, X=X, y=y)
            os.replace(beside, folder / FILENAME)
        finally:
            beside.unlink(missing_ok=True)
