"""k(X, landmarks)·dual + intercept for any rows, block by block.

What every fitted method does to new rows: predictions, coordinates, scores.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from ..columns import Columns, handed_out
from ..engines import Engine, Threads
from ..landmarks import Landmarks
from ..operands import Operand
from ..precision import results_need_float64
from ..refusals import KernelNotFiniteError, check_finite
from ..sinks import ARRAY, Output
from ..sources import Block, Source
from ..tried import tried_rows

#: Points whose kernel values with a tile are made at a time: many do not fit at once.
MOST_POINTS = 4096


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ k_S(x)·dual + intercept."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)
    wide: bool  # float32 rows are evaluated in float64; the result is float32
    wide_sums: bool = False  # float32 kernel values are added up in float64

    @classmethod
    def as_precise_as_needed(
        cls,
        landmarks: Landmarks,
        source: Source,
        dual: np.ndarray,
        intercept: np.ndarray,
    ) -> LinearMap:
        """In float64 where a few rows, tried in both precisions, come out otherwise.

        Large coefficients of both signs cancel: mostly it is the sum that loses digits
        then, and the values, which cost more, may stay float32.
        """
        made = cls(dual, intercept, wide=False)
        if not landmarks.columns().narrow or not dual.size:
            return made
        rows = tried_rows(source)

        def tried(mapping: LinearMap) -> np.ndarray:
            return arrays.host_values(mapping(landmarks, rows, Threads(1)))

        exact = replace(made, wide=True)
        wanted = tried(exact)
        for cheaper in (made, replace(made, wide_sums=True)):
            # Coefficients, too, may be larger than float32 has numbers for.
            with suppress(KernelNotFiniteError):
                if not results_need_float64(tried(cheaper), wanted):
                    return cheaper
        return exact

    def __call__(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        name: str = "predictions",
        output: Output = ARRAY,
    ) -> Any:
        """The results of all rows, s kernel evaluations each."""
        first, kernel = source.given.rows(0, 1), landmarks.kernel
        like, dtype = kernel.like(first), kernel.dtype(first)
        sink = output.sink(source, self.dual.shape[1], dtype, like)
        engine.map(mapped, source, sink, self.shared(landmarks, dtype), name)
        return output.result(sink)

    def shared(self, landmarks: Landmarks, dtype: Any) -> tuple:
        """What `mapped` needs besides a block."""
        kernel, n, parts = landmarks.kernel, len(self.dual), []
        for start in range(0, max(n, 1), MOST_POINTS):
            stop = min(start + MOST_POINTS, n)
            points = arrays.slice_rows(landmarks.points, start, stop)
            dual = Operand(self.dual[start:stop])
            parts.append((Columns(kernel, points, self.wide), dual))
        return parts, Operand(self.intercept), self.wide_sums, dtype


def mapped(
    block: Block,
    parts: list[tuple[Columns, Operand]],
    intercept: Operand,
    wide_sums: bool,
    dtype: Any,
) -> Array:
    """The results of the rows of a block."""
    rows: Array = None
    for columns, dual in parts:
        K = columns(block.X)
        K = arrays.widen(K) if wide_sums else K
        some = K @ dual.beside(K)
        rows = some if rows is None else rows + some
    rows = rows + intercept.beside(rows)
    if not np.isfinite(float(arrays.namespace(rows).sum(rows))):
        check_finite(arrays.to_host(rows))
    return handed_out(rows, dtype)
