"""Some of the rows, which go on to be known by their numbers.

A row's luck is u(seed, row): it must be found again in whatever part the row is seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..ledger import Ledger
from ..randomness import Purpose, first_rows, uniforms, uniforms_at
from ..sources import Block, Held, Source, Subset
from ..tried import fetch

#: Rows, and numbers in them, that a level may have if they are to be listed. Rows of
#: larger levels are sifted out of each tile. No result may depend on storage or on how
#: much memory there is, and so these do not.
MOST_ROWS, MOST_NUMBERS, FEW_ROWS = 2**22, 2**27, 2**14


def most_rows(source: Source) -> int:
    """How many rows of a source may be listed, or fetched and held."""
    return min(MOST_ROWS, max(FEW_ROWS, MOST_NUMBERS // (source.n_features or 1)))


def some_of(
    source: Source,
    size: int,
    seed: int,
    purpose: Purpose,
    round: int,
    *,
    engine: Engine,
    ledger: Ledger,
) -> Source:
    """Rows drawn uniformly: exactly `size` where they may be listed, else about."""
    n = source.n_rows
    if size >= n:
        return source
    if size <= most_rows(source):
        rows = np.sort(first_rows(seed, purpose, n, size, round=round))
        return Part.of(source, rows, engine, ledger)
    return Sifted(source, size / n, seed, purpose, round)


def luck(
    block: Block, seed: int, purpose: Purpose, level: int = 0, round: int = 0
) -> np.ndarray:
    """u(seed, …) of each row of a block, by its number."""
    if block.numbers is None:
        stop = block.start + len(block)
        return uniforms(seed, purpose, block.start, stop, level, round)
    return uniforms_at(seed, purpose, block.numbers, level, round)


class Part(Subset):
    """Some rows of another source that go on to be known by their numbers there."""

    def __init__(
        self, source: Source, numbers: np.ndarray, places: np.ndarray | None = None
    ) -> None:
        super().__init__(source, numbers if places is None else places)
        self.known_as = numbers

    @classmethod
    def of(
        cls, source: Source, numbers: np.ndarray, engine: Engine, ledger: Ledger
    ) -> Part:
        """These rows; where they are not at hand they are fetched, in one pass."""
        if source.at_hand:
            return cls(source, numbers)
        weights = source.weights_of(numbers) if source.is_weighted else None
        ledger.fetched(source)
        held = Held(fetch(source, numbers, engine), weights)
        return cls(held, numbers, np.arange(len(numbers)))

    def numbers(self, start: int, stop: int) -> np.ndarray:
        return self.known_as[start:stop]

    def numbered(self, numbers: np.ndarray) -> Any:
        return self.take(np.searchsorted(self.known_as, numbers))

    def renumbered(self) -> Subset:
        """The same rows as a source of their own, known by their places in it."""
        return Subset(self.source, self.indices)

    def part(self, numbers: np.ndarray) -> Part:
        """Fewer of these rows."""
        places = self.indices[np.searchsorted(self.known_as, numbers)]
        return Part(self.source, numbers, places)


class Sifted(Source):
    """The rows of another source with u(seed, …, row) < share, tile by tile.

    As many as `share` of them, about, and no list of them anywhere: a tile of this is
    what is left of a tile of the other, which a pass that adds up does not mind.
    """

    def __init__(
        self, source: Source, share: float, seed: int, purpose: Purpose, round: int = 0
    ) -> None:
        self.source, self.share = source, share
        self.stream = (seed, purpose, 0, round)
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.at_hand, self.on_device = source.at_hand, source.on_device
        self.weights = source.weights if source.is_weighted else None

    def block(self, start: int, stop: int) -> Block:
        whole = self.source.block(start, stop)
        kept = np.flatnonzero(luck(whole, *self.stream) < self.share)
        numbers = kept + start if whole.numbers is None else whole.numbers[kept]
        return Block(
            start,
            arrays.take_rows(whole.X, kept),
            whole.weights[kept],
            None if whole.targets is None else whole.targets[kept],
            numbers,
        )

    def rows(self, start: int, stop: int) -> Any:
        return self.block(start, stop).X

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(indices)
