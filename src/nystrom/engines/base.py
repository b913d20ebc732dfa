"""What an engine can do, and how the results of tiles are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..sinks import Sink
from ..sources import Source
from .progress import Hook

#: Every pass works on tiles of so many rows, cut at multiples of it. A matrix product
#: rounds differently for other shapes; with fixed tiles the same rows give the same
#: numbers for every block size, number of threads and storage.
TILE = 1024


class Engine(Protocol):
    """Runs one function over all tiles of a source."""

    progress: Hook  # told (stage, done, total)

    def here(self) -> Engine:
        """An engine for rows held in this process, which tells no progress."""

    def map(
        self, f: Callable, source: Source, sink: Sink, shared: tuple, stage: str = ""
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""

    def reduce(
        self, f: Callable, source: Source, shared: tuple, stage: str = ""
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, in a fixed order."""


def add(left: Any, right: Any) -> Any:
    """left + right, entry by entry where they are tuples.

    Arrays are added in place, since a sum of s × s matrices is a good part of a pass:
    `left` is used up.
    """
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray) and left.dtype == np.result_type(left, right):
        left += right
        return left
    return left + right


class Tree:
    """Sums terms that arrive in order, pairing neighbours: ((0+1)+(2+3))+….

    Which terms are added to which depends on their number alone, so a block of 2ʲ tiles
    that begins at a multiple of 2ʲ may be summed elsewhere and pushed as one term.
    """

    def __init__(self) -> None:
        self._partial: list[tuple[int, Any]] = []  # (terms in it, sum)

    def push(self, term: Any, size: int = 1) -> None:
        """Add the next term, itself the sum of `size` terms."""
        while self._partial and self._partial[-1][0] == size:
            term = add(self._partial.pop()[1], term)
            size *= 2
        self._partial.append((size, term))

    def total(self) -> Any:
        """The sum of all terms so far."""
        _, total = self._partial[-1]
        for _, earlier in reversed(self._partial[:-1]):
            total = add(earlier, total)
        return total
