"""Affine maps of kernel values, x ↦ k(x, landmarks) @ dual + intercept, evaluated
block by block.

Every fitted model predicts, transforms or scores new rows through one `LinearMap`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import results_need_float64
from .._validation import KernelNotFiniteError, check_finite
from ..engines import Engine, Threads
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, cast_output, probe_rows
from ..sources import Block, Source
from ..sources.output import NEW_ARRAY, Output

#: Points whose kernel values with a tile are computed at once: many do not fit.
MAX_POINTS_PER_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ k_S(x)·dual + intercept."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)
    wide: bool  # float32 rows are evaluated in float64; the result is float32
    wide_sums: bool = False  # float32 kernel values are added up in float64

    @classmethod
    def with_sufficient_precision(
        cls,
        landmarks: Landmarks,
        source: Source,
        dual: np.ndarray,
        intercept: np.ndarray,
    ) -> LinearMap:
        """In float64 where the probe rows differ between the precisions.

        Large coefficients of both signs cancel: mostly it is the sum that loses digits
        then, and the values, which cost more, may stay float32.
        """
        fast = cls(dual, intercept, wide=False)
        if not landmarks.columns().narrow or not dual.size:
            return fast
        probe = probe_rows(source)

        def evaluate_probe(mapping: LinearMap) -> np.ndarray:
            return arrays.to_host_float64(mapping(landmarks, probe, Threads(1)))

        exact = replace(fast, wide=True)
        reference = evaluate_probe(exact)
        for candidate in (fast, replace(fast, wide_sums=True)):
            # Coefficients, too, may be larger than float32 has numbers for.
            with suppress(KernelNotFiniteError):
                if not results_need_float64(evaluate_probe(candidate), reference):
                    return candidate
        return exact

    def __call__(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        name: str = "predictions",
        output: Output = NEW_ARRAY,
    ) -> Any:
        """The results of all rows, s kernel evaluations each."""
        first, kernel = source.original.rows(0, 1), landmarks.kernel
        like, dtype = kernel.output_like(first), kernel.dtype(first)
        sink = output.sink(source, self.dual.shape[1], dtype, like)
        shared = self.block_arguments(landmarks, dtype)
        engine.map(apply_to_block, source, sink, shared, name)
        return output.result(sink)

    def block_arguments(self, landmarks: Landmarks, dtype: Any) -> tuple:
        """What `apply_to_block` needs besides a block."""
        kernel, n, parts = landmarks.kernel, len(self.dual), []
        for start in range(0, max(n, 1), MAX_POINTS_PER_BLOCK):
            stop = min(start + MAX_POINTS_PER_BLOCK, n)
            points = arrays.slice_rows(landmarks.points, start, stop)
            dual = DeviceConstant(self.dual[start:stop])
            parts.append((CrossKernel(kernel, points, self.wide), dual))
        return parts, DeviceConstant(self.intercept), self.wide_sums, dtype


def apply_to_block(
    block: Block,
    parts: list[tuple[CrossKernel, DeviceConstant]],
    intercept: DeviceConstant,
    wide_sums: bool,
    dtype: Any,
) -> Array:
    """The results of the rows of a block."""
    values: Array = None
    for columns, dual in parts:
        K = columns(block.X)
        K = arrays.widen(K) if wide_sums else K
        product = K @ dual.to_device_of(K)
        values = product if values is None else values + product
    values = values + intercept.to_device_of(values)
    if not np.isfinite(float(arrays.namespace(values).sum(values))):
        check_finite(arrays.to_host(values))
    return cast_output(values, dtype)
