"""One task of a pass: a function over a block of tiles.

Functions of a module, so that every engine can send them where the work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..sources import Source
from . import engine
from .summing import Tree, whole_sum


def count_tiles(n_rows: int) -> int:
    """How many tiles so many rows are cut into."""
    return -(-n_rows // engine.TILE)


def blocks_of_tiles(n_tiles: int, largest: int) -> Iterator[tuple[int, int]]:
    """(first tile, size): 1, 1, 1, 1, 4, … up to the largest; see `Tree` for why."""
    first = 0
    while first < n_tiles:
        size = whole_sum(first, largest)
        yield first, size
        first += size


def made_rows(
    f: Callable, source: Source, shared: tuple[Any, ...], first: int, last: int
) -> Iterator[tuple[int, Any]]:
    """(row number, f of the tile that begins there) for some tiles."""
    for tile in range(first, last):
        start = tile * engine.TILE
        # Nothing here holds what was made: a sum that has taken it in may be all there
        # is room for.
        yield start, _made(f, source, shared, start)


def _made(f: Callable, source: Source, shared: tuple[Any, ...], start: int) -> Any:
    # A result that is not finite is refused once, by whoever asked for it.
    with np.errstate(over="ignore", invalid="ignore"):
        stop = min(start + engine.TILE, source.n_rows)
        return f(source.block(start, stop), *shared)


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
        del term  # not to be held while the next one is made
    return tree.total()
