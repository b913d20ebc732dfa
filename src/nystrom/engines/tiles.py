"""One task of a pass: a function over a block of tiles.

Functions of a module, so that every engine can send them where the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..sources import Source
from . import engine
from .summing import Tree


def count_tiles(n_rows: int) -> int:
    """How many tiles so many rows are cut into."""
    return -(-n_rows // engine.TILE)


def blocks_of_tiles(n_tiles: int, largest: int) -> Iterator[tuple[int, int]]:
    """(first tile, size): 1, 1, 2, 4, … tiles up to the largest; see `Tree` for why."""
    first, size = 0, 1
    while first < n_tiles:
        yield first, size
        first += size
        size = min(first, largest)


def made_rows(
    f: Callable, source: Source, shared: tuple[Any, ...], first: int, last: int
) -> Iterator[tuple[int, Any]]:
    """(row number, f of the tile that begins there) for some tiles."""
    for tile in range(first, last):
        start, stop = tile * engine.TILE, (tile + 1) * engine.TILE
        # A result that is not finite is refused once, by whoever asked for it.
        with np.errstate(over="ignore", invalid="ignore"):
            rows = f(source.block(start, min(stop, source.n_rows)), *shared)
        yield start, rows


def partial_sum(
    f: Callable, source: Source, shared: tuple[Any, ...], first: int, last: int
) -> Any:
    """The sum of f over some tiles; on a device these are worked on as one."""
    if source.on_device:
        start, stop = first * engine.TILE, min(last * engine.TILE, source.n_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return f(source.block(start, stop), *shared)
    tree = Tree()
    for _, term in made_rows(f, source, shared, first, last):
        tree.push(term)
    return tree.total()
