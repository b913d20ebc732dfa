"""What an engine can do."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ..sinks import Sink
from ..sources import Source
from .progress import Hook, silent

#: Every pass works on tiles of so many rows, cut at multiples of it. A matrix product
#: rounds differently for other shapes; with fixed tiles the same rows give the same
#: numbers for every block size, number of threads and storage.
TILE = 1024


class Engine(ABC):
    """Runs one function over all tiles of a source.

    The function is one of a module, since it may have to travel; `shared` is what it
    needs besides the tile: read-only, the same for all tiles, and nothing with an entry
    per row (weights and targets come with the tile). What the function makes, it
    returns. Results may arrive read-only.
    """

    progress: Hook = staticmethod(silent)  # told (pass, tiles done, tiles in all)

    @cached_property
    def passes(self) -> list[str]:
        """The names of the passes so far: a pass is known by its number."""
        return []

    @abstractmethod
    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""

    @abstractmethod
    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, in a fixed order."""

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """f of each item, in order: work on what is held here, which may be changed.

        So many multiply-adds it is in all, about.
        """
        return [f(item) for item in items]

    @property
    def local(self) -> Engine:
        """An engine for rows that are held in this process."""
        return self

    def telling(self, progress: Hook) -> Engine:
        """The same engine, which tells its progress to another hook."""
        passes = self.passes
        changed = copy.copy(self)
        changed.progress, changed.passes = progress, passes  # one list for both
        return changed

    def quiet(self) -> Engine:
        """The same engine, which tells no progress."""
        return self.telling(silent)
