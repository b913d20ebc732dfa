"""As many landmarks as a trace error takes: the shortest prefix of a sampler's order.

The set grows, doubling, from the landmarks there are. A pass over all rows gives the
error reached, and what it leaves of each row is what the next ones are chosen by. Once
the error is low enough, the squared columns of K_S L⁻ᵀ, added up over all rows, give
the error of every prefix in one more pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...column_blocks import ColumnBlocks
from ...columns import Columns, trace
from ...engines import Hook
from ...engines.progress import expect, parts
from ...landmarks import Landmarks
from ...precision import RESIDUAL_ERROR
from ...refusals import check_finite
from ...sources import Block
from ...sources import weights as row_weights
from ...trace_error import TraceError
from ..choosing import IndefiniteKernelError, Work
from ..goal import MaxTraceError
from .pivots import Pivots

#: Landmarks to begin with.
FIRST = 64
#: How many times more there will be, for all that is known at first; and the logarithm
#: of no more than that.
UNKNOWN, MOST = 8.0, 10.0


@dataclass(frozen=True)
class Reached:
    """What the landmarks so far leave of tr K."""

    error: float  # Σ w·left
    whole: float  # tr K


def until(
    make: Callable[[Work], Any], work: Work, goal: MaxTraceError, name: str
) -> Landmarks:
    """Landmarks until tr(K − K̃) ≤ tolerance·tr K, or there are as many as allowed."""
    source = work.source
    n = source.n_rows
    if work.kernel.traits.psd is False:
        raise IndefiniteKernelError
    told = work.engine.progress
    measuring, growing, shortening = parts(told, 0.02, 3.5, 1.0)
    with measuring:
        growth = make(work)
        whole = trace(work.kernel, source, engine=work.engine)
    work.ledger.evaluated(n)
    work.ledger.passed(source)
    check_finite(np.asarray(whole))
    if whole < 0:
        raise IndefiniteKernelError
    most = n if goal.at_most is None else min(goal.at_most, n)
    with growing:
        reached = _grow(growth, goal.tolerance, whole, most, told)
    error, path = reached.error, None
    if error <= goal.tolerance * whole and len(growth.pivots):
        with shortening:
            expect(told, 1)
            after = _shorten(growth.pivots, work, reached, goal.tolerance)
        error, path = float(after[-1]), after / whole
    if len(growth.pivots) == 0:  # K = 0, and any row will do
        growth.pivots.fill(1)
    known = replace(TraceError.of_all(error, whole, n), path=path)
    return growth.pivots.landmarks(name, error=known, max_trace_error=goal.tolerance)


def _grow(
    growth: Any, tolerance: float, whole: float, most: int, told: Hook
) -> Reached:
    size, times = min(FIRST, most), UNKNOWN
    while True:  # until size has doubled up to `most`
        doubling, _ = parts(told, 1.0, max(0.0, min(times, most / size) - 1))
        with doubling:
            choosing, looking = parts(told, 0.3, 1.0)
            with choosing:
                growth.grow(size)
            larger = min(2 * size, most)
            with looking:
                expect(told, 1)
                error = growth.error(larger)
        times = _times_more(size, error, tolerance * whole, whole) / 2
        if error <= tolerance * whole or growth.exhausted or size == most:
            return Reached(error, whole)
        size = larger


def _times_more(size: int, error: float, wanted: float, whole: float) -> float:
    """How many times more landmarks it takes, if the error is a power of their number.

    For who follows it alone.
    """
    if not 0 < wanted < error < whole:
        return 1.0
    exponent = math.log(wanted / whole) / math.log(error / whole) - 1
    return math.exp(min(MOST, exponent * math.log(size)))


def _shorten(
    pivots: Pivots, work: Work, reached: Reached, tolerance: float
) -> np.ndarray:
    """Keep the shortest prefix whose error is low enough; the errors up to it."""
    shared = (pivots.columns, ColumnBlocks.of(pivots.root))
    found = work.engine.reduce(_column_sums, work.source, shared, "shortest prefix")
    columns = arrays.to_host(found)
    work.ledger.evaluated(work.source.n_rows * len(pivots))
    work.ledger.passed(work.source)
    # From the end: adding up small numbers loses nothing, taking them off tr K would.
    after = reached.error + np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])
    # What is left counts as 0 where it is negative: then there is more than tr K.
    share = max(1e-6, 10 * arrays.epsilon(work.kernel.dtype(pivots.points)) ** 0.5)
    rounding = RESIDUAL_ERROR * reached.error + share * reached.whole
    if work.kernel.traits.psd is None and after[0] - reached.whole > rounding:
        raise IndefiniteKernelError
    size = max(1, int(np.flatnonzero(after <= tolerance * reached.whole)[0]))
    pivots.shorten(size)
    return after[1 : size + 1]


def _column_sums(block: Block, columns: Columns, root: ColumnBlocks) -> Array:
    F = root.product(columns.float64(block.X))
    return row_weights.squares_over_rows(block.weights, F)
