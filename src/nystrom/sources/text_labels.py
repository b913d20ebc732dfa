"""A column of text as targets: classes, known by their places in a list of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .file_errors import FileError
from .fingerprint import digest
from .recent import RECENT
from .stored import Chunked, Stored

#: Text with more different values than this is no class.
MOST_CLASSES = 10_000


class TextLabels(Chunked):
    """For each row the place of its text among all that the files have."""

    def __init__(self, stored: Stored, name: Any, found: np.ndarray) -> None:
        self.stored, self.names, self.found = stored, (name,), found
        self.n_rows, self.n_features = stored.n_rows, 1
        self._dtype, self._places = np.dtype(np.float64), None
        # The same text has another place in another list of classes.
        self._key = (*self.names, "text", digest(found))

    def _rows_of(self, chunk: int) -> np.ndarray:
        bounds = self.stored.bounds[chunk : chunk + 2].tolist()
        key = (self.stored.identity, *bounds, self._key)
        return RECENT.get(key, lambda: self._places_of(chunk))

    def _places_of(self, chunk: int) -> np.ndarray:
        texts = self.stored.texts(chunk, *self.names)
        places = np.searchsorted(self.found, texts).astype(np.float64)[:, None]
        places.flags.writeable = False
        return places


def all_texts(files: Sequence[Stored], name: Any) -> np.ndarray:
    """The different texts of a column, in order: one read of it."""
    found: set[str] = set()
    for file in files:
        for chunk in range(len(file.bounds) - 1):
            found.update(np.unique(file.texts(chunk, name)).tolist())
            if len(found) > MOST_CLASSES:
                raise FileError(
                    f"{file.path}, column {name!r} holds more than {MOST_CLASSES} "
                    "different texts, which are no classes; name another target."
                )
    return np.array(sorted(found))
