"""Landmarks: the selected points with their kernel, factor, errors, certificate and
cost.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import _arrays as arrays
from ._html import html_table
from .kernels import Kernel, Precomputed
from .linalg.cross_kernel import CrossKernel
from .linalg.errors import Guarantee, TraceError
from .linalg.factor import Factor, factorize


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
        after the other, given the key of the first row that was not.
    ridge : float or None
        The λ of the ridge leverage scores they were drawn by.
    effective_dimension : float or None
        The estimate of d_eff(λ) = tr K(K + λI)⁻¹ that the scores add up to.
    n_kernel_evaluations : int
        Kernel evaluations of the selection.
    guarantee : Guarantee or None
        What is proven, under the theory's constants.
    certificate : str or None
        How ‖K − K̃‖₂ ≤ ridge is known where it was asked for and is not proven: by the
        trace error, which is certain, or by an estimate.
    error : TraceError or None
        The relative trace error, where an estimator measured it.
    seconds : float
        Time of the selection.
    n_requested : int or None
        How many landmarks the ridge asked for, where a cap allowed fewer.
    max_trace_error : float or None
        The relative trace error that was asked for; `error` is the one reached.
    reservoir : Reservoir or None
        Few weighted rows that stand for all rows so far, where landmarks are chosen
        from a stream of them.
    notes : tuple of str
        What the reader should know: a pass in float64, a fallback to uniform sampling.
    n_passes : int
        Passes over all rows in the selection. Rows that are fetched from a source
        without random access, such as a file, count as one.
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
    n_requested: int | None = None
    max_trace_error: float | None = None
    reservoir: Any = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=())
    n_passes: int = 0
    certificate: str | None = None

    @cached_property
    def factor(self) -> Factor:
        """The factor of K_SS, as float64 resolves it; computed when first needed."""
        # Values that were given may be less precise than the rows' kernel would be.
        dtype = self.kernel.dtype(arrays.widen(self.points))
        K = self.kernel.gram(self.points)
        return factorize(K, dtype, psd=self.kernel.traits.psd)

    @property
    def error_path(self) -> np.ndarray | None:
        """(n_landmarks,): the relative trace error of landmarks[:1], landmarks[:2], ….

        Exact, where a pass over all rows found it: after `fit_transform`, after any fit
        that sums the Gram matrix, and with `max_trace_error`; else None.
        """
        return None if self.error is None else self.error.path

    @property
    def rank(self) -> int:
        """The numerical rank of K_SS: less than their number if some are redundant."""
        return self.factor.rank

    @property
    def indefinite(self) -> bool:
        """Whether the kernel is known, or was found, not to be semi-definite."""
        psd = self.kernel.traits.psd
        return self.factor.indefinite if psd is None else not psd

    def columns(self, *, wide: bool = False) -> CrossKernel:
        """X ↦ k(X, landmarks); `wide` evaluates float32 rows in float64."""
        return CrossKernel(self.kernel, self.points, wide)

    def replace(self, **changes: Any) -> Landmarks:
        """These landmarks with some fields changed; the factor is kept."""
        changed = replace(self, **changes)
        return changed.with_factor(self.__dict__.get("factor"))

    def with_factor(self, factor: Factor | None) -> Landmarks:
        """These landmarks, with the factor of K_SS where it is known already."""
        if factor is not None:
            self.__dict__["factor"] = factor
        return self

    def update(
        self,
        new_rows: Any,
        *,
        sample_weight: Any = None,
        n_landmarks: int | None = None,
        sampler: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Landmarks:
        """Landmarks for all rows so far, old ones and new ones, in O(new rows · s²).

        The old rows are not needed. Few of them, weighted, are kept in `reservoir` and
        stand for all; landmarks that have none yet stand for their rows themselves. New
        landmarks are chosen once enough rows have come: a quarter of all so far, or
        twelve per landmark.

        Parameters
        ----------
        new_rows : array, CSR matrix, list or Source
            Rows that came since, as those the landmarks were chosen from.
        sample_weight : array-like of shape (n_new_rows,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.
        n_landmarks : int, default=None
            How many; None: as many as there are.
        sampler : str or callable, default="auto"
            How they are chosen.
        random_state : int, RandomState instance or None, default=None
            Which rows are kept; only used where there is no reservoir yet.
        n_jobs : int, default=None
            Threads.

        Returns
        -------
        landmarks : Landmarks
            With a reservoir; `indices` count all rows of the stream. These here stay as
            they are.

        Examples
        --------
        >>> import numpy as np
        >>> from nystrom import select_landmarks
        >>> rng = np.random.default_rng(0)
        >>> first, second = rng.standard_normal((2, 500, 3))
        >>> landmarks = select_landmarks(first, n_landmarks=20, random_state=0)
        >>> landmarks = landmarks.update(second, random_state=0)
        >>> len(landmarks), landmarks.n_rows
        (20, 1000)
        """
        from .estimators import _inputs, _problem

        caller = "Landmarks.update"
        _problem.check_streamable(self.kernel, sampler, caller)
        batch = _problem.KernelProblem.from_params(
            _inputs.check_rows(new_rows),
            self.kernel,
            caller=caller,
            sample_weight=sample_weight,
            n_jobs=n_jobs,
        )
        return _problem.update_landmarks(
            self,
            batch,
            _problem.FixedSize(len(self) if n_landmarks is None else n_landmarks),
            sampler,
            random_state=random_state,
            caller=caller,
        )

    def in_nested_order(self) -> Landmarks:
        """Redundant landmarks last, for landmarks that were drawn in no order.

        Where some are, those before them are in the order of complete pivoting, so that
        each prefix is a good one and the factor nests.
        """
        factor = self.factor
        if factor.is_nested or factor.indefinite:
            return self
        redundant = np.setdiff1d(np.arange(len(self)), factor.kept)
        order = np.concatenate([factor.kept, redundant])
        fields = (self.indices, self.weights, self.probabilities)
        indices, weights, probabilities = (
            None if values is None else values[order] for values in fields
        )
        reordered = replace(
            self,
            points=arrays.take_rows(self.points, order),
            indices=indices,
            weights=weights,
            probabilities=probabilities,
        )
        nested = Factor(factor.L[order], np.arange(factor.rank), factor.diagonal[order])
        return reordered.with_factor(nested)

    def __getitem__(self, key: slice) -> Landmarks:
        """The first landmarks, as landmarks: `landmarks[:k]`. No work is done again."""
        if not isinstance(key, slice) or key.start not in (None, 0) or key.step:
            raise TypeError(
                f"landmarks[{key!r}] is not allowed; a prefix is, landmarks[:k]."
            )
        size = len(range(*key.indices(len(self))))
        if size == 0:
            raise ValueError("No landmarks are left; take at least one, landmarks[:1].")
        if size == len(self):
            return self
        prefix = replace(
            self,
            points=arrays.slice_rows(self.points, 0, size),
            indices=None if self.indices is None else self.indices[:size],
            # What was drawn together is not kept with these probabilities.
            weights=None,
            probabilities=None,
            guarantee=None,
            certificate=None,
            n_requested=None,
            error=None if self.error is None else self.error.prefix(size),
        )
        return prefix.with_factor(self.factor.prefix(size))

    def with_error(self, error: TraceError | None) -> Landmarks:
        """These landmarks with their error: an estimate does not replace an exact one.

        Nor does a bound that rounding leaves replace a smaller value.

        A trace says nothing of a kernel whose eigenvalues cancel.
        """
        if self.indefinite:
            return self.replace(error=None)
        if self.error is not None and self.error.exact:
            if error is None or not error.exact:
                return self
            if error.at_most and self.error.value < error.value:
                return self
        return self.replace(error=error)

    def without_kernel_matrix(self) -> Landmarks:
        """These landmarks as part of a model, which the whole of K is not."""
        if not isinstance(self.kernel, Precomputed):
            return self
        return self.replace(kernel=Precomputed())

    def __len__(self) -> int:
        return arrays.count_rows(self.points)

    def _summary(self) -> list[tuple[str, str]]:
        """What there is to say, with its name: the text and the table say the same."""
        entries = [("kernel", str(self.kernel))]
        if self.error is not None:
            entries.append(("relative trace error", str(self.error)))
        # A fitted model has no matrix of a precomputed kernel to find it from.
        with suppress(ValueError):
            entries.append(("rank", str(self.rank)))
        entries.append(("kernel evaluations", str(self.n_kernel_evaluations)))
        entries.append(("seconds", f"{self.seconds:.2g}"))
        if self.guarantee is not None:
            entries.append(("guarantee", str(self.guarantee)))
        if self.certificate is not None:
            entries.append(("certificate", self.certificate))
        return [*entries, *(("note", note) for note in self.notes)]

    def _title(self) -> str:
        origin = "" if self.indices is None else f" of {self.n_rows} rows"
        plural = "" if len(self) == 1 else "s"
        return f"{len(self)} landmark{plural}{origin} by {self.sampler}"

    def __str__(self) -> str:
        parts = [_format_entry(name, value) for name, value in self._summary()]
        return ", ".join([self._title(), *parts])

    def _repr_html_(self) -> str:
        figure = "" if self.error is None else self.error.path_svg()
        return html_table(self._title(), self._summary(), figure)

    def __repr__(self) -> str:
        return f"<{self}>"


def _format_entry(name: str, value: str) -> str:
    if name in ("relative trace error", "rank"):
        return f"{name} {value}"
    if name == "kernel evaluations":
        return f"{value} {name}"
    return f"{value} s" if name == "seconds" else value


def check_landmarks(landmarks: Any) -> None:
    """Refuse what is no value of that name."""
    if not isinstance(landmarks, Landmarks):
        raise TypeError(
            f"landmarks is a {type(landmarks).__name__}; pass what select_landmarks "
            "returned, or an estimator's landmarks_. Row numbers and points become "
            "landmarks by select_landmarks(X, sampler=...)."
        )
