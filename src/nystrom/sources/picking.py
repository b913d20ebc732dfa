"""Which columns of a file are features, targets and weights."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from ..refusals import unknown
from .file_errors import FileError, place
from .source import Source
from .stored import Names, Stored

#: Rows whose weights are read at a time.
ROWS = 2**16


@dataclass(frozen=True)
class Picked:
    """The columns of a file by what they are for."""

    features: Names
    targets: Names
    weight: Names  # one, or none
    single: bool  # the target was named alone, not in a list
    text: bool = False  # the target is text

    @property
    def all(self) -> Names:
        """Every column that is read."""
        return (*self.features, *self.targets, *self.weight)

    @property
    def numbers(self) -> Names:
        """Every column that is read as numbers."""
        return (*self.features, *(() if self.text else self.targets), *self.weight)


def pick(stored: Stored, columns: Any, target: Any, weight: Any) -> Picked:
    """The columns that are asked for; all that are left are features."""
    single = target is not None and not _several(target)
    targets = _known(stored, target)
    weights = _known(stored, weight)
    if len(weights) > 1:
        raise ValueError(f"weight={weight!r} is not allowed; name one column.")
    if columns is None:
        features = tuple(
            name for name in stored.names if name not in (*targets, *weights)
        )
    else:
        features = _known(stored, columns)
    if not features:
        raise FileError(f"{stored.path} has no column left for features.")
    text = single and stored.holds_text(*targets)
    picked = Picked(features, targets, weights, single, text)
    for name in picked.all:
        if picked.all.count(name) > 1 or stored.names.count(name) > 1:
            raise _twice(stored, name)
    for name in picked.numbers:
        stored.dtype((name,))  # refuses what is no number
    return picked


def _twice(stored: Stored, name: Any) -> ValueError:
    if stored.names.count(name) > 1:
        return ValueError(
            f"{stored.path} has several columns {name!r}; give them other names."
        )
    return ValueError(
        f"Column {name!r} of {stored.path} is asked for twice; a column is a feature, "
        "a target or the weight."
    )


def check_same(stored: Stored, picked: Picked) -> None:
    """A further file must have the columns of the first."""
    for name in picked.all:
        _known(stored, name)
    for name in picked.numbers:
        stored.dtype((name,))
    if picked.text and not stored.holds_text(*picked.targets):
        raise FileError(
            f"{stored.path}, column {picked.targets[0]!r} holds no text, as it does in "
            "the files before; write all of them alike."
        )


def _several(names: Any) -> bool:
    if isinstance(names, Set):
        raise ValueError(
            f"Columns are named by {names!r}, which has no order; list them."
        )
    return isinstance(names, Iterable) and not isinstance(names, str)


def _known(stored: Stored, names: Any) -> Names:
    """Names of columns, as the file has them."""
    if names is None:
        return ()
    given = tuple(names) if _several(names) else (names,)
    return tuple(_one(stored, name) for name in given)


def _one(stored: Stored, name: Any) -> Any:
    width = len(stored.names)
    if isinstance(name, Integral) and not isinstance(name, bool):
        name = int(name)
        if name < 0 and name + width in stored.names:
            return name + width
    if stored.has(name):
        return name
    kind = f"{stored.path}: column"
    if stored.names == tuple(range(width)):
        raise ValueError(
            f"{kind}={name!r} is unknown; columns of this file are the numbers 0 to "
            f"{width - 1}{stored.also}."
        )
    hint = stored.hint(name)
    if hint:
        raise ValueError(f"{kind}={name!r} is unknown; {hint}")
    raise unknown(kind, name, [str(known) for known in stored.names])


def weights_of(source: Source, path: str, name: Any) -> np.ndarray:
    """The weights of all rows, held as one vector: 8 bytes a row."""
    weights = np.empty(source.n_rows)
    for start in range(0, source.n_rows, ROWS):
        part = source.rows(start, min(start + ROWS, source.n_rows))[:, 0]
        weights[start : start + len(part)] = part
        if part.min() < 0:
            row = start + int(part.argmin())
            raise FileError(
                f"{place(path, name, row)}: the weight {part.min():g} is negative; a "
                "row of weight w counts as w rows."
            )
    if not weights.any():
        raise FileError(
            f"{path}, column {name!r}: all weights are 0; a row of weight w counts as "
            "w rows."
        )
    return weights
