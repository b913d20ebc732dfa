"""The pass k(x, x) − ‖k_S(x)·B‖²: what points leave of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _arrays as arrays
from . import precision
from ._arrays import Array
from .columns import Columns
from .engines import Engine
from .ledger import Ledger
from .refusals import check_finite
from .sinks import ArraySink
from .sources import Block, Held, Source

#: A triangular factor is multiplied in so many column blocks, skipping most zeros.
COLUMN_BLOCKS = 4


@dataclass(frozen=True)
class Residuals:
    """kᵢᵢ − ‖k_iS B‖² for all rows."""

    values: np.ndarray  # (n,) float64, none negative
    widened: bool  # float32 was tried and failed: the pass ran in float64


def residuals(
    columns: Columns,
    source: Source,
    B: np.ndarray,
    *,
    engine: Engine,
    ledger: Ledger | None = None,
    triangular: bool = False,
    rounding: float = 0.0,
    name: str = "residuals",
) -> Residuals:
    """The part of k(x, x) that the points leave over, for each row x.

    float32 rows are worked on in float32 as long as a few rows, tried in both
    precisions, show that rounding stays well below the residuals themselves. What is
    left below `rounding`, a share of k(x, x), counts as nothing.
    """
    n, s = source.n_rows, len(B)
    ledger = ledger or Ledger()
    widened = False
    few = columns.narrow and precision.few_to_try(n)
    if columns.narrow and not few and s:
        ledger.evaluated(2 * precision.TRIED_ROWS * (s + 1))
        widened = _float32_fails(columns, source, B, triangular)
    columns = columns.widened() if few or widened else columns
    sink = ArraySink((n,))
    shared = (columns, _column_blocks(columns, B, triangular), rounding)
    engine.map(_residual, source, sink, shared, name)
    ledger.evaluated(n * (s + 1))
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return Residuals(sink.array, widened)


def _column_blocks(columns: Columns, B: np.ndarray, triangular: bool) -> list[Array]:
    """B in blocks of columns, each with the rows that are not 0; none if there are."""
    s, r = B.shape
    width = -(-r // COLUMN_BLOCKS) if triangular else r
    blocks = []
    for start in range(0, r, max(1, width)):
        stop = min(start + width, r)
        blocks.append(columns.like(B[: stop if triangular else s, start:stop]))
    return blocks


def _residual(
    block: Block, columns: Columns, B: list[Array], rounding: float = 0.0
) -> np.ndarray:
    diagonal = columns.diag(block.X)
    if not B:  # an empty sample leaves all of k(x, x)
        return diagonal
    K = columns(block.X)
    left = diagonal.copy()
    for part in B:
        left -= arrays.to_host(arrays.squared_norms(K[:, : part.shape[0]] @ part))
    # What is left below rounding is nothing; the mean of noise is not.
    least = max(precision.least_residual(K.dtype, K), rounding)
    left[left < least * np.abs(diagonal)] = 0.0
    return left


def _float32_fails(
    columns: Columns, source: Source, B: np.ndarray, triangular: bool
) -> bool:
    m = precision.TRIED_ROWS
    block = Held.of(source, np.arange(m) * source.n_rows // m).block(0, m)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow, wide = (
            _residual(block, c, _column_blocks(c, B, triangular))
            for c in (columns, columns.widened())
        )
    return precision.residuals_need_float64(narrow, wide)
