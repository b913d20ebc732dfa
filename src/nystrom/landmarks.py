"""Landmarks: the selected points with their kernel, factor, errors, certificate and
cost.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from . import _arrays as arrays
from .kernels import Kernel, Precomputed
from .linalg.cross_kernel import CrossKernel
from .linalg.errors import Guarantee, TraceError
from .linalg.factor import Factor, factorize


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Selected points with their kernel, errors, guarantee and cost.

    Fields that do not apply to a sampler are None.

    Attributes
    ----------
    points : array, sparse matrix or list
        The landmarks (row numbers for a precomputed kernel).
    kernel : Kernel
        The kernel for which they were selected.
    sampler : str
        The sampler.
    n_rows : int
        Number of rows from which they were selected.
    indices : ndarray of int or None
        Row numbers in the order of selection; None if the points are not rows.
    probabilities : ndarray or None
        Inclusion probability of each landmark. If a fixed number was drawn, given the
        key of the first row that was not drawn.
    ridge : float or None
        The λ of the ridge leverage scores by which they were drawn.
    effective_dimension : float or None
        Estimate of the effective dimension tr K(K + λI)⁻¹, the sum of the scores.
    n_kernel_evaluations : int
        Number of kernel evaluations of the selection.
    guarantee : Guarantee or None
        Proven bound, with the constants of the proofs.
    certificate : str or None
        How the requested ‖K − K̃‖₂ ≤ ridge was verified if it is not proven: by the
        trace error, which is certain, or by an estimate.
    error : TraceError or None
        Relative trace error, if an estimator measured it.
    seconds : float
        Time of the selection.
    n_requested : int or None
        Number of landmarks that the requested error needs, if a limit allowed fewer.
    max_trace_error : float or None
        Requested relative trace error; `error` is the one that was reached.
    reservoir : Reservoir or None
        Weighted rows that represent all rows of a stream so far.
    notes : tuple of str
        Remarks, such as a pass in float64 or a fallback to uniform sampling.
    n_passes : int
        Number of passes over all rows in the selection. Fetching rows from a source
        without random access counts as one.
    held_out : ndarray of int or None
        Row numbers, ascending, that landmarks were not moved for: a sample to calibrate
        intervals on. None if they were not moved, or for nearly all rows.
    """

    points: Any
    kernel: Kernel
    sampler: str
    n_rows: int
    indices: np.ndarray | None = None
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
    held_out: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def factor(self) -> Factor:
        """Factor of the landmarks' kernel matrix, computed when first needed."""
        # Values that were given may be less precise than the rows' kernel would be.
        dtype = self.kernel.dtype(arrays.widen(self.points))
        K = self.kernel.gram(self.points)
        return factorize(K, dtype, psd=self.kernel.traits.psd)

    @property
    def weights(self) -> np.ndarray | None:
        """Non-zero entries 1/√p of the sampling matrix S, or None.

        Column j of S has weights[j] in row indices[j].
        """
        return None if self.probabilities is None else 1 / np.sqrt(self.probabilities)

    @property
    def error_path(self) -> np.ndarray | None:
        """Relative trace error of landmarks[:1], landmarks[:2], and so on, or None.

        It is known after a pass over all rows: after `fit_transform`, after any fit
        that sums the Gram matrix, and with `max_trace_error`.
        """
        return None if self.error is None else self.error.path

    @property
    def rank(self) -> int:
        """Numerical rank of the landmarks' kernel matrix."""
        return self.factor.rank

    @property
    def indefinite(self) -> bool:
        """Whether the kernel is known to be indefinite."""
        psd = self.kernel.traits.psd
        return self.factor.indefinite if psd is None else not psd

    def columns(self, *, wide: bool = False) -> CrossKernel:
        """Return the function X ↦ k(X, landmarks).

        Parameters
        ----------
        wide : bool, default=False
            Whether to evaluate float32 rows in float64.

        Returns
        -------
        columns : CrossKernel
            Function of a block of rows.
        """
        return CrossKernel(self.kernel, self.points, wide)

    def replace(self, **changes: Any) -> Landmarks:
        """Return the landmarks with some fields changed.

        Parameters
        ----------
        **changes : dict
            New values of fields.

        Returns
        -------
        landmarks : Landmarks
            A copy.
        """
        changed = replace(self, **changes)
        return changed.with_factor(self.__dict__.get("factor"))

    def with_factor(self, factor: Factor | None) -> Landmarks:
        """Store a factor that is already known.

        Parameters
        ----------
        factor : Factor or None
            Factor of the landmarks' kernel matrix; None leaves it to be computed.

        Returns
        -------
        landmarks : Landmarks
            These landmarks.
        """
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
        """Select landmarks for all rows so far, given new rows of a stream.

        The old rows are not needed. A few of them, with weights, are kept in
        `reservoir` and represent all. New landmarks are selected when enough rows have
        arrived: a quarter of all rows so far, or twelve per landmark. The cost is O(new
        rows · s²).

        Parameters
        ----------
        new_rows : array, sparse matrix, list or Source
            New rows, of the same kind as the first.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.
        n_landmarks : int, default=None
            Number of landmarks; None keeps the current number.
        sampler : str or callable, default="auto"
            How they are selected.
        random_state : int, RandomState instance or None, default=None
            Seed of the reservoir, used if there is none yet.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        landmarks : Landmarks
            New landmarks with a reservoir; `indices` counts all rows of the stream.
            This object is unchanged.

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
        """Return the landmarks with redundant ones last.

        If there are redundant ones, the others are in the order of complete pivoting,
        so that each prefix is a good approximation.

        Returns
        -------
        landmarks : Landmarks
            A copy.
        """
        factor = self.factor
        if factor.is_nested or factor.indefinite:
            return self
        redundant = np.setdiff1d(np.arange(len(self)), factor.kept)
        order = np.concatenate([factor.kept, redundant])
        fields = ("points", "indices", "probabilities")
        reordered: Landmarks = arrays.take_fields(self, fields, order)
        nested = Factor(factor.L[order], np.arange(factor.rank), factor.diagonal[order])
        return reordered.with_factor(nested)

    def __getitem__(self, key: slice) -> Landmarks:
        """The first landmarks, as landmarks: `landmarks[:k]`. No work is done again."""
        if not isinstance(key, slice) or key.start not in (None, 0) or key.step:
            raise TypeError(
                f"landmarks[{key!r}] is not allowed; use a prefix, landmarks[:k]."
            )
        size = len(range(*key.indices(len(self))))
        if size == 0:
            raise ValueError(
                "An empty selection of landmarks is not allowed; keep at least one, "
                "landmarks[:1]."
            )
        if size == len(self):
            return self
        prefix = replace(
            self,
            points=arrays.slice_rows(self.points, 0, size),
            indices=None if self.indices is None else self.indices[:size],
            # What was drawn together is not kept with these probabilities.
            probabilities=None,
            guarantee=None,
            certificate=None,
            n_requested=None,
            error=None if self.error is None else self.error.prefix(size),
        )
        return prefix.with_factor(self.factor.prefix(size))

    def with_error(self, error: TraceError | None) -> Landmarks:
        """Return the landmarks with their error.

        An estimate does not replace an exact error, nor does a rounding bound replace a
        smaller value. Indefinite kernels have no trace error.

        Parameters
        ----------
        error : TraceError or None
            The error.

        Returns
        -------
        landmarks : Landmarks
            A copy.
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
        """Return the landmarks without the whole kernel matrix, for storing in a model.

        Returns
        -------
        landmarks : Landmarks
            A copy.
        """
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
        rows = "".join(
            f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self._summary()
        )
        return f"<table><caption>{escape(self._title())}</caption>{rows}</table>"

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
