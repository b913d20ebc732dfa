"""The pass k(x, x) − ‖k_S(x)·B‖²: what points leave of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _arrays as arrays
from . import precision
from .column_blocks import ColumnBlocks
from .columns import Columns
from .engines import Engine
from .ledger import Ledger
from .refusals import check_finite
from .sinks import ArraySink
from .sources import Block, Source
from .tried import tried_rows


@dataclass(frozen=True)
class Pass:
    """All that the pass needs, in the precision it takes."""

    columns: Columns
    operand: ColumnBlocks
    rounding: float
    widened: bool  # float32 was tried and failed: the pass runs in float64
    ledger: Ledger


def prepare(
    columns: Columns,
    source: Source,
    B: np.ndarray,
    *,
    ledger: Ledger | None = None,
    rounding: float = 0.0,
) -> Pass:
    """Make ready for the rows of a source.

    float32 rows are worked on in float32 as long as a few rows, tried in both
    precisions, show that rounding stays well below the residuals themselves. What is
    left below `rounding`, a share of k(x, x), counts as nothing.
    """
    s, ledger = len(B), ledger or Ledger()
    widened = False
    few = columns.narrow and precision.few_to_try(source.n_rows)
    if columns.narrow and not few and s:
        ledger.evaluated(2 * precision.TRIED_ROWS * (s + 1))
        widened = _float32_fails(columns, source, B)
    columns = columns.widened() if few or widened else columns
    return Pass(columns, columns.operand(B), rounding, widened, ledger)


def residuals(ready: Pass, source: Source, *, engine: Engine, name: str) -> np.ndarray:
    """The part of k(x, x) that the points leave over, for each row x: (n,), float64."""
    sink = ArraySink((source.n_rows,))
    shared = (ready.columns, ready.operand, ready.rounding)
    engine.map(residual, source, sink, shared, name)
    ready.ledger.passed(source)
    ready.ledger.evaluated(source.n_rows * (len(ready.columns) + 1))
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return sink.array


def residual(
    block: Block, columns: Columns, B: ColumnBlocks, rounding: float = 0.0
) -> np.ndarray:
    """What the points leave of each row of a block."""
    diagonal = columns.diag(block.X)
    if not B.n_columns:  # an empty sample leaves all of k(x, x)
        return arrays.to_host(diagonal)
    K = columns(block.X)
    left = diagonal - B.squared_norms(K)
    # What is left below rounding is nothing; the mean of noise is not.
    least = max(precision.least_residual(K.dtype, K), rounding)
    left[left < least * abs(diagonal)] = 0.0
    return arrays.to_host(left)


def _float32_fails(columns: Columns, source: Source, B: np.ndarray) -> bool:
    tried = tried_rows(source)
    block = tried.block(0, tried.n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow, wide = (
            residual(block, c, c.operand(B)) for c in (columns, columns.widened())
        )
    return precision.residuals_need_float64(narrow, wide)
