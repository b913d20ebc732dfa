"""What a sampler returns: the rows chosen, how, at what cost, with what guarantee."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import _arrays as arrays
from .columns import Columns
from .factor import Factor, factorize
from .kernels import Kernel
from .trace_error import TraceError


@dataclass(frozen=True)
class Guarantee:
    """K̃ ⪯ K ⪯ K̃ + ridge·I, hence ‖K − K̃‖₂ ≤ ridge, with at least this probability.

    Where rows have weights it holds for W^½KW^½, in which a row of weight w counts as
    w rows.
    """

    ridge: float
    probability: float
    weighted: bool = False

    def __str__(self) -> str:
        norm = "‖W^½(K − K̃)W^½‖₂" if self.weighted else "‖K − K̃‖₂"
        return f"{norm} ≤ {self.ridge:.4g} with probability ≥ {self.probability:.4g}"


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Chosen points, with what is known about them; None where a sampler lacks a field.

    Attributes
    ----------
    points : array, CSR matrix or list
        The landmarks themselves (row numbers for a precomputed kernel).
    kernel : Kernel
        The kernel that they were chosen for.
    sampler : str
        How they were chosen.
    n_rows : int
        How many rows they were chosen from.
    indices : ndarray of int or None
        Their row numbers, in the order of choice; None for points that are not rows.
    weights : ndarray or None
        The columns of the sampling matrix S have the entry weights[j] in row
        indices[j].
    probabilities : ndarray or None
        The probability with which each was kept; where a fixed number was drawn one
        after the other, given the arrival of the first row that lost.
    ridge : float or None
        The λ of the ridge leverage scores they were drawn by.
    effective_dimension : float or None
        The estimate of d_eff(λ) = tr K(K + λI)⁻¹ that the scores add up to.
    n_kernel_evaluations : int
        Kernel evaluations made to choose them.
    guarantee : Guarantee or None
        What is proven, under the theory's constants.
    error : TraceError or None
        The relative trace error, where an estimator measured it.
    seconds : float
        Time taken to choose.
    n_wanted : int or None
        How many landmarks the ridge asked for, where a cap allowed fewer.
    max_trace_error : float or None
        The relative trace error that was asked for; `error` is the one reached.
    notes : tuple of str
        What the reader should know: a pass in float64, a fallback to uniform sampling.
    """

    points: Any
    kernel: Kernel
    sampler: str
    n_rows: int
    indices: np.ndarray | None = None
    weights: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    ridge: float | None = None
    effective_dimension: float | None = None
    n_kernel_evaluations: int = 0
    guarantee: Guarantee | None = None
    error: TraceError | None = None
    seconds: float = 0.0
    n_wanted: int | None = None
    max_trace_error: float | None = None
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def factor(self) -> Factor:
        """The factor of K_SS; computed once, when first needed."""
        block_dtype = self.kernel.dtype(self.points)
        return factorize(self.kernel.gram(self.points), block_dtype)

    @property
    def rank(self) -> int:
        """The numerical rank of K_SS: less than their number if some are redundant."""
        return self.factor.rank

    @property
    def indefinite(self) -> bool:
        """Whether the kernel is known, or was found, not to be semi-definite."""
        psd = self.kernel.traits.psd
        return self.factor.indefinite if psd is None else not psd

    def columns(self, *, wide: bool = False) -> Columns:
        """X ↦ k(X, landmarks); `wide` evaluates float32 rows in float64."""
        return Columns(self.kernel, self.points, wide)

    def updated(self, **changes: Any) -> Landmarks:
        """These landmarks with some fields changed; the factor is kept."""
        changed = replace(self, **changes)
        if "factor" in self.__dict__:
            changed.__dict__["factor"] = self.factor
        return changed

    def told(self, error: TraceError | None) -> Landmarks:
        """These landmarks with their error: an estimate does not replace an exact one.

        A trace says nothing of a kernel whose eigenvalues cancel.
        """
        if self.indefinite:
            error = None
        elif self.error is not None and self.error.exact:
            error = error if error is not None and error.exact else self.error
        return self.updated(error=error)

    def __len__(self) -> int:
        return arrays.count_rows(self.points)

    def __str__(self) -> str:
        whence = "" if self.indices is None else f" of {self.n_rows} rows"
        plural = "" if len(self) == 1 else "s"
        what = f"{len(self)} landmark{plural}{whence} by {self.sampler}"
        parts = [what, str(self.kernel)]
        if self.error is not None:
            parts.append(f"relative trace error {self.error}")
        # A fitted model has no matrix of a precomputed kernel to find it from.
        with suppress(ValueError):
            parts.append(f"rank {self.rank}")
        parts.append(f"{self.n_kernel_evaluations} kernel evaluations")
        parts.append(f"{self.seconds:.2g} s")
        if self.guarantee is not None:
            parts.append(str(self.guarantee))
        return ", ".join([*parts, *self.notes])

    def __repr__(self) -> str:
        return f"<{self}>"
