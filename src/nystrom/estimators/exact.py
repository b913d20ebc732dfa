"""The one exact mode: no more rows than landmarks, and scikit-learn's own solution.

Every row is a landmark then, and K̃ = K. The import swap changes no answer on small
data, by construction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..samplers import Goal, Size
from ..samplers.draws import all_rows
from ..sources import Source
from ..trace_error import TraceError


def is_exact(goal: Goal, sampler: Any, source: Source) -> bool:
    """Whether all rows are landmarks: by their number alone, and rows of NumPy."""
    few = isinstance(goal, Size) and source.n_rows <= goal.n_landmarks
    rows = source.rows(0, 1)
    host = not arrays.is_block(rows) or arrays.namespace(rows) is np
    return few and isinstance(sampler, str) and host


def exact_landmarks(kernel: Kernel, source: Source) -> Landmarks:
    """All rows, with what it takes to evaluate K and the error that is left: none."""
    n = source.n_rows
    return all_rows(kernel, source, "exact").updated(
        error=TraceError.of_all(0.0, 1.0, n),
        n_kernel_evaluations=kernel.gram_evaluations(n),
    )
