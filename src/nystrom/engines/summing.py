"""How the results of tiles are added up: always in the same order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np


def add(left: Any, right: Any) -> Any:
    """left + right, entry by entry where they are tuples.

    Arrays are added in place where they may be, since a sum of s × s matrices is a good
    part of a pass: `left` is used up. What came from elsewhere may be read-only.
    """
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    own = isinstance(left, np.ndarray) and left.flags.writeable
    if own and left.dtype == np.result_type(left, right):
        left += right
        return left
    return left + right


def bytes_of(term: Any) -> int:
    """The memory of a term, or of all that it is made of."""
    if isinstance(term, tuple):
        return sum(map(bytes_of, term))
    return getattr(term, "nbytes", 0)


#: So many neighbours are added up one after the other, then so many of their sums.
#: Fewer would be more exact, and more sums would wait for each other: with two, those
#: of a million rows were ten matrices, with four they are five.
FAN_IN = 4


def whole_sum(first: int, largest: int) -> int:
    """How many terms from this one on may be summed elsewhere: a power of `FAN_IN`.

    Not more than the largest, and one at the very beginning.
    """
    size = 1
    while first and first % (FAN_IN * size) == 0 and FAN_IN * size <= largest:
        size *= FAN_IN
    return size


class Tree:
    """Sums terms that arrive in order: ((0+1)+2)+3, the same of 4 to 7, and their sum.

    Which terms are added to which depends on their number alone, so a block of 4ʲ tiles
    that begins at a multiple of 4ʲ may be summed elsewhere and pushed as one term. One
    sum of each size waits for the terms that it lacks.
    """

    def __init__(self, add: Callable[[Any, Any], Any] = add) -> None:
        self._add = add  # of terms that are promises, say
        self._partial: list[tuple[int, Any]] = []  # (terms in it, sum)

    @classmethod
    def having(cls, partial: list[tuple[int, Any]]) -> Tree:
        """A sum that goes on from where another's `partial` was."""
        tree = cls()
        tree._partial = [(size, term) for size, term in partial]
        return tree

    @property
    def partial(self) -> list[tuple[int, Any]]:
        """(terms in it, sum), in order: all that is known of the terms so far."""
        return list(self._partial)

    def push(self, term: Any, size: int = 1) -> None:
        """Add the next term, itself the sum of `size` terms."""
        while self._partial and self._partial[-1][0] < FAN_IN * size:
            there, earlier = self._partial.pop()
            term = self._add(earlier, term)
            if there + size < FAN_IN * size:
                size += there
                break
            size *= FAN_IN
        self._partial.append((size, term))

    def total(self) -> Any:
        """The sum of all terms so far."""
        _, total = self._partial[-1]
        for _, earlier in reversed(self._partial[:-1]):
            total = self._add(earlier, total)
        return total


class SumSink:
    """A sink that adds up what each tile hands over, in the order of the tiles.

    For passes that make rows and sums at once.
    """

    anywhere = False

    def __init__(self, tile: int) -> None:
        self._tile, self._next = tile, 0
        self._tree, self._early = Tree(), dict[int, Any]()
        self._lock = threading.Lock()

    def open(self) -> None:
        pass

    def put(self, start: int, rows: Any) -> None:
        with self._lock:
            self._early[start] = rows
            while self._next in self._early:
                self._tree.push(self._early.pop(self._next))
                self._next += self._tile

    def close(self, complete: bool) -> None:
        pass

    def total(self) -> Any:
        """The sum over all tiles."""
        return self._tree.total()
