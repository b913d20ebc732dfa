"""The `Engine` contract, fixed tiles, and the fixed tree in which their results are
summed.

Tiles are cut at multiples of TILE rows and added in an order that depends on their
number alone, so the result does not depend on threads, workers or storage.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..sources import Source
from ..sources.output import OrderedSink, Sink, open_sink


def add_terms(left: Any, right: Any) -> Any:
    """left + right, entry by entry where they are tuples.

    Arrays are added in place where they may be, since a sum of s × s matrices is a good
    part of a pass: `left` is used up. What came from a worker may be read-only.
    """
    if isinstance(left, tuple):
        return tuple(add_terms(a, b) for a, b in zip(left, right, strict=True))
    is_writable = isinstance(left, np.ndarray) and left.flags.writeable
    if is_writable and left.dtype == np.result_type(left, right):
        left += right
        return left
    return left + right


def term_bytes(term: Any) -> int:
    """The memory of a term, or of all its entries."""
    if isinstance(term, tuple):
        return sum(map(term_bytes, term))
    return getattr(term, "nbytes", 0)


#: So many neighbours are added up one after the other, then so many of their sums.
#: Fewer would be more exact, and more sums would wait for each other: with two, those
#: of a million rows were ten matrices, with four they are five.
FAN_IN = 4


def aligned_size(first: int, max_size: int) -> int:
    """How many terms from this one on may be summed apart: a power of `FAN_IN`.

    Not more than the largest, and one at the very beginning.
    """
    size = 1
    while first and first % (FAN_IN * size) == 0 and FAN_IN * size <= max_size:
        size *= FAN_IN
    return size


class SumTree:
    """Sums terms that arrive in order: ((0+1)+2)+3, the same of 4 to 7, and their sum.

    Which terms are added to which depends on their number alone, so a block of 4ʲ tiles
    that begins at a multiple of 4ʲ may be summed apart and pushed as one term. One
    sum of each size waits for the terms that it lacks.
    """

    def __init__(self, add: Callable[[Any, Any], Any] = add_terms) -> None:
        self._add = add  # of terms that are promises, say
        self._partial: list[tuple[int, Any]] = []  # (terms in it, sum)

    @classmethod
    def replace(cls, partial: Sequence[tuple[int, Any]]) -> SumTree:
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
            earlier_size, earlier = self._partial.pop()
            term = self._add(earlier, term)
            if earlier_size + size < FAN_IN * size:
                size += earlier_size
                break
            size *= FAN_IN
        self._partial.append((size, term))

    def total(self) -> Any:
        """The sum of all terms so far."""
        _, total = self._partial[-1]
        for _, earlier in reversed(self._partial[:-1]):
            total = self._add(earlier, total)
        return total


class SumSink(OrderedSink):
    """Sink that sums the results of all tiles, in the order of the tiles.

    It is for passes that compute rows and sums at once.
    """

    def __init__(self, tile: int) -> None:
        super().__init__()
        self._tile, self._tree = tile, SumTree()

    def _append(self, rows: Any) -> int:
        self._tree.push(rows)
        return self._tile

    def total(self) -> Any:
        """The sum over all tiles."""
        return self._tree.total()


#: What every engine calls: (stage, tiles done, tiles in all).
ProgressHook = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress, as for `verbose=0`."""


class ProgressHooks:
    """Several hooks as one."""

    def __init__(self, *hooks: ProgressHook) -> None:
        self.hooks = hooks

    def __call__(self, stage: str, done: int, total: int) -> None:
        for hook in self.hooks:
            hook(stage, done, total)


def report_work(hook: ProgressHook, method: str, *arguments: Any) -> None:
    """Call a method of a hook, or of several, that measures work or shows notes:
    `begin_pass`, `expect`, `count` or `note`. A plain hook hears of a note as a stage.
    """
    for each in getattr(hook, "hooks", [hook]):
        if hasattr(each, method):
            getattr(each, method)(*arguments)
        elif method == "note":
            each(*arguments, 1, 1)


def evaluations_per_row(shared: tuple[Any, ...]) -> float:
    """Kernel values per row of a pass: the points of its first cross-kernel, or 1."""
    for argument in shared:
        columns = getattr(argument, "columns", argument)
        if hasattr(columns, "evaluations_per_row"):
            return max(1, columns.evaluations_per_row)
    return 1


#: Every pass works on tiles of so many rows, cut at multiples of it. A matrix product
#: rounds differently for other shapes; with fixed tiles the same rows give the same
#: numbers for every block size, number of threads and storage.
TILE = 1024


class Engine(ABC):
    """Base class of engines, which run one function over all tiles of a source.

    A subclass implements `map` and `reduce`. The function is defined at the top level
    of a module, because it may run in another process. `shared` is read-only, the same
    for all tiles, and has nothing with an entry per row; weights and targets come with
    the tile.
    """

    #: Called with (pass, tiles done, tiles in all).
    progress: ProgressHook = staticmethod(silent)

    @cached_property
    def passes(self) -> list[str]:
        """Names of the passes so far."""
        return []

    def begin_pass(self, name: str, n_rows: int, shared: tuple[Any, ...]) -> None:
        """Record the start of a pass.

        Parameters
        ----------
        name : str
            Name of the pass, for progress and checkpoints.
        n_rows : int
            Number of rows.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        """
        self.passes.append(name)
        if self.progress is not silent:
            evaluations = n_rows * evaluations_per_row(shared)
            report_work(self.progress, "begin_pass", name, evaluations)
            self.progress(name, 0, count_tiles(n_rows))

    @abstractmethod
    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Apply a function to all tiles and write its rows to a sink.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        sink : sink
            Receives the rows of the results.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.
        """

    @abstractmethod
    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """Apply a function to all tiles and sum the results in a fixed order.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.

        Returns
        -------
        total : object
            The sum, an array or a tuple of arrays.
        """

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """Apply a function to each item of a list, in order.

        Parameters
        ----------
        f : callable
            The function.
        items : sequence
            The items, held in this process.
        multiply_adds : float
            Approximate work of all items, in multiply-adds.

        Returns
        -------
        results : list
            One result per item.
        """
        return [f(item) for item in items]

    @property
    def local(self) -> Engine:
        """Engine for rows that are held in this process."""
        return self

    def with_progress(self, progress: ProgressHook) -> Engine:
        """Return the same engine with another progress hook.

        Parameters
        ----------
        progress : callable
            Called with (pass, tiles done, tiles in total).

        Returns
        -------
        engine : Engine
            A copy.
        """
        passes = self.passes
        modified = copy.copy(self)
        modified.progress, modified.passes = progress, passes  # one list for both
        return modified

    def quiet(self) -> Engine:
        """Return the same engine without progress.

        Returns
        -------
        engine : Engine
            A copy.
        """
        return self.with_progress(silent)


def count_tiles(n_rows: int) -> int:
    """How many tiles so many rows are cut into."""
    return -(-n_rows // TILE)


def tile_blocks(n_tiles: int, max_size: int) -> list[tuple[int, int, int]]:
    """(first tile, end, size) of blocks of 1, 1, 1, 1, 4, … tiles, up to the largest.

    The last may have fewer than its size, which is its place in a `SumTree`.
    """
    blocks, first = [], 0
    while first < n_tiles:
        size = aligned_size(first, max_size)
        blocks.append((first, min(first + size, n_tiles), size))
        first += size
    return blocks


@dataclass(frozen=True, eq=False)
class Pass:
    """A function of all tiles of a source, whose results are summed or are rows.

    Rows are put into the sink; without one, as in other processes, they are returned.
    """

    f: Callable
    source: Any  # a Source, or what it is rebuilt from at a worker
    shared: tuple[Any, ...]
    is_sum: bool
    sink: Sink | None = None

    def apply(self, start: int, stop: int) -> Any:
        """f of the rows of a tile."""
        # A result that is not finite is refused once, by the caller.
        with np.errstate(over="ignore", invalid="ignore"):
            block = self.source.block(start, min(stop, self.source.n_rows))
            return self.f(block, *self.shared)

    def run(self, first: int, last: int) -> Any:
        """The sum over some tiles, or (row number, rows) of each that no sink has."""
        return self._sum(first, last) if self.is_sum else self._map(first, last)

    def _map(self, first: int, last: int) -> list[tuple[int, Any]]:
        results = []
        for start in range(first * TILE, last * TILE, TILE):
            rows = self.apply(start, start + TILE)
            if self.sink is None:
                results.append((start, rows))
            else:
                self.sink.put(start, rows)
        return results

    def _sum(self, first: int, last: int) -> Any:
        if self.source.on_device:  # there they are worked on as one
            return self.apply(first * TILE, last * TILE)
        tree = SumTree()
        for start in range(first * TILE, last * TILE, TILE):
            # Nothing here holds the term: the sum that it was added to may be all
            # there is room for.
            tree.push(self.apply(start, start + TILE))
        return tree.total()


def results_in_order(
    submit: Callable[..., Any], calls: Iterable[tuple[Any, ...]], window: int
) -> Generator[Any, None, None]:
    """What submitted calls return, in order; a window of them runs at a time, so that
    results never pile up.
    """
    waiting: deque[Any] = deque()  # futures
    try:
        for call in calls:
            waiting.append(submit(*call))
            if len(waiting) >= window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class BlockEngine(Engine):
    """Runs blocks of tiles in its workers, and sums or stores their results here."""

    @abstractmethod
    def _max_tiles(self, source: Source) -> int:
        """The most tiles of a block."""

    @abstractmethod
    def _results(
        self, work: Pass, blocks: list[tuple[int, int, int]]
    ) -> Generator[Any, None, None]:
        """What `run` returns for each block of tiles, in order."""

    def _run(self, work: Pass, name: str) -> Generator[tuple[int, Any], None, None]:
        """(size of the block, result) of each block of tiles, in order."""
        n_tiles = count_tiles(work.source.n_rows)
        blocks = tile_blocks(n_tiles, self._max_tiles(work.source))
        self.begin_pass(name, work.source.n_rows, work.shared)
        with closing(self._results(work, blocks)) as results:
            for _, last, size in blocks:
                yield size, next(results)
                self.progress(name, last, n_tiles)

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Apply a function to all tiles and write its rows to a sink.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        sink : sink
            Receives the rows of the results.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.
        """
        run = self._run(Pass(f, source, shared, False, sink), name)
        with open_sink(sink), closing(run) as results:
            for _, rows_of_tiles in results:
                for start, rows in rows_of_tiles:
                    sink.put(start, rows)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """Apply a function to all tiles and sum the results in a fixed order.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.

        Returns
        -------
        total : object
            The sum, an array or a tuple of arrays.
        """
        tree, run = SumTree(), self._run(Pass(f, source, shared, True), name)
        # Closed also when Ctrl-C arrives here: threads end, BLAS gets its threads back.
        with closing(run) as results:
            for size, term in results:
                tree.push(term, size)
                del term  # not to be held while the next one is computed
        return tree.total()
