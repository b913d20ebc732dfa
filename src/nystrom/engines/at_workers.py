"""What the tasks of a pass do where they are done: in another process, most often."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..sinks import Sink
from ..sources import Source
from .blas import single_threaded_blas
from .summing import add
from .tiles import made_rows, partial_sum
from .travelling import AsItIs, Parcel, Part, Window, bounds


@dataclass(frozen=True, eq=False)
class Work:
    """What all tasks of a pass share: it goes once to each worker.

    With a sink, which takes rows from anywhere, rows are put away there.
    """

    f: Callable
    parcel: Parcel | AsItIs
    shared: tuple[Any, ...]
    sink: Sink | None = None

    @cached_property
    def opened(self) -> Sink | None:
        """The sink, ready for rows in this process."""
        if self.sink is not None:
            self.sink.open()
        return self.sink


def summed(work: Work, first: int, last: int, part: Part | None, *chunks: Any) -> Any:
    """The sum over tiles first to last."""
    source = _source(work, first, part, chunks)
    with single_threaded_blas():
        return partial_sum(work.f, source, work.shared, first, last)


def made(
    work: Work, first: int, last: int, part: Part | None, *chunks: Any
) -> list[Any]:
    """(row number, rows) of each tile; none where they were put away."""
    source, sink = _source(work, first, part, chunks), work.opened
    with single_threaded_blas():
        rows = made_rows(work.f, source, work.shared, first, last)
        if sink is None:
            return list(rows)
        for start, some in rows:
            sink.put(start, some)
        return []


def added(left: Any, right: Any) -> Any:
    """left + right; neither is changed, as a task may be run again."""
    return add(copy.deepcopy(left), right)


def _source(work: Work, first: int, part: Part | None, chunks: Sequence[Any]) -> Source:
    start, _ = bounds(first, first, work.parcel.n_rows)
    return work.parcel.unpacked(part, [Window(start, rows) for rows in chunks])
