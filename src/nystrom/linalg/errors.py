"""The relative trace error tr(K − K̃)/tr K, exact or estimated, and guarantees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import eigsh

from .. import _arrays as arrays
from .._precision import residual_rounding
from .._random import Purpose, Stream, sorted_row_sample
from .._validation import check_finite
from ..engines import Engine
from ..sources import Block, Source, Subset
from ..sources.base import multiply_weights, weighted_sum
from .cross_kernel import diag_float64, kernel_diagonal
from .residuals import ResidualPass, block_residuals, prepare_residuals, residuals

if TYPE_CHECKING:
    from ..landmarks import Landmarks


@dataclass(frozen=True)
class Guarantee:
    """A proven bound ‖K − K̃‖₂ ≤ ridge.

    More precisely, K̃ ⪯ K ⪯ K̃ + ridge·I. If rows have weights it holds for W^½KW^½, in
    which a row of weight w counts as w rows.

    Attributes
    ----------
    ridge : float
        The bound.
    probability : float
        Probability with which it holds, at least.
    algorithm : str
        Algorithm of the paper that it rests on.
    weighted : bool
        Whether rows have weights.
    """

    ridge: float
    probability: float
    weighted: bool = False
    algorithm: str = "Algorithm 2"  # the paper's, whose proof it is

    def __str__(self) -> str:
        bound = format_norm_bound(self.ridge, self.weighted)
        return f"{bound} with probability ≥ {self.probability:.4g}"


def format_norm_bound(ridge: float, weighted: bool) -> str:
    """‖K − K̃‖₂ ≤ λ as it is written, for the matrix of weighted rows too."""
    norm = "‖W^½(K − K̃)W^½‖₂" if weighted else "‖K − K̃‖₂"
    return f"{norm} ≤ {ridge:.4g}"


#: Relative accuracy asked of Lanczos, and matrices that are small enough to do without.
LANCZOS_RTOL, MAX_DENSE_SIZE = 1e-3, 64


def top_eigenpair(A: Any) -> tuple[float, np.ndarray]:
    """The largest eigenvalue of a symmetric matrix or operator, and its vector.

    0 where none is positive.
    """
    n = A.shape[0]
    if n <= MAX_DENSE_SIZE:
        dense = A @ np.eye(n)
        _, vectors = np.linalg.eigh(dense)
        # LAPACK rounds the values alone otherwise than with vectors; results keep them.
        return max(0.0, float(np.linalg.eigvalsh(dense)[-1])), vectors[:, -1]
    start = np.random.default_rng(0).standard_normal(n)
    if not np.any(A @ start):
        return 0.0, np.zeros(n)
    values, vectors = eigsh(A, k=1, which="LA", tol=LANCZOS_RTOL, v0=start)
    return max(0.0, float(values[0])), vectors[:, 0]


#: A value whose rounding may be a larger share of it is reported as a bound.
RESOLVED = 0.02


@dataclass(frozen=True)
class TraceError:
    """Relative trace error tr(K − K̃)/tr K, exact or estimated.

    It converts to float. If rounding hides the value, `at_most` is True and `value` is
    an upper bound.

    Attributes
    ----------
    value : float
        The relative trace error.
    standard_error : float
        Standard error of an estimate; 0 if all rows were used.
    n_rows : int
        Number of rows used.
    exact : bool
        Whether all rows were used.
    path : ndarray or None
        Error of every prefix of the landmarks, if known.
    rounding : float
        Bound on the rounding error of the value.
    at_most : bool
        Whether the value is an upper bound.
    """

    value: float
    standard_error: float  # 0 where all rows were used
    n_rows: int  # the rows it was computed on
    exact: bool  # whether these were all rows
    #: The same of every prefix of the landmarks, where it is known.
    path: np.ndarray | None = field(default=None, repr=False, compare=False)
    rounding: float = 0.0  # how far the value may be off, as a share of tr K too
    at_most: bool = False

    @classmethod
    def from_sums(
        cls,
        residual_trace: float,
        kernel_trace: float,
        n_rows: int,
        column_squares: np.ndarray | None = None,
        rounding: float = 0.0,
    ) -> TraceError:
        """Create an exact error from tr(K − K̃) and tr K over all rows.

        Parameters
        ----------
        residual_trace : float
            Trace of K − K̃.
        kernel_trace : float
            Trace of K.
        n_rows : int
            Number of rows.
        column_squares : ndarray or None, default=None
            Weighted sums of squares of the columns of Z, one per landmark, if the
            columns nest. They are added from the end, because small ones would be lost
            in a difference.
        rounding : float, default=0.0
            Bound on the rounding error of tr(K − K̃).

        Returns
        -------
        error : TraceError
            The error.
        """
        value = max(0.0, residual_trace) / kernel_trace if kernel_trace > 0 else 0.0
        off = float(rounding / kernel_trace) if kernel_trace > 0 else 0.0
        at_most = bool(off > RESOLVED * value)
        value = value + off if at_most else value
        path = None
        if column_squares is not None:
            tails = np.cumsum(column_squares[:0:-1])[::-1] / (
                kernel_trace if kernel_trace > 0 else 1.0
            )
            path = value + np.concatenate([tails, [0.0]])
        return cls(
            value, 0.0, n_rows, exact=True, path=path, rounding=off, at_most=at_most
        )

    def prefix(self, size: int) -> TraceError | None:
        """Return the error of the first landmarks, if it is known.

        Parameters
        ----------
        size : int
            Number of landmarks.

        Returns
        -------
        error : TraceError or None
            The error.
        """
        if self.path is None:
            return None
        value = float(self.path[size - 1])
        at_most = bool(self.rounding > RESOLVED * value)
        return replace(self, value=value, path=self.path[:size], at_most=at_most)

    @classmethod
    def from_sample(
        cls,
        residual: np.ndarray,
        diagonal: np.ndarray,
        weights: np.ndarray,
        n_rows: int,
        rounding: float = 0.0,
    ) -> TraceError:
        """Estimate the error from a uniform sample of rows.

        Parameters
        ----------
        residual : ndarray
            Residuals of the rows.
        diagonal : ndarray
            Kernel values k(x, x).
        weights : ndarray
            Weights of the rows.
        n_rows : int
            Number of all rows.
        rounding : float, default=0.0
            Share of tr K that is part of the standard error.

        Returns
        -------
        error : TraceError
            The estimate.
        """
        m = len(residual)
        residual = multiply_weights(weights, residual)
        diagonal = multiply_weights(weights, diagonal)
        total = float(diagonal.sum())
        if m == n_rows:
            return cls.from_sums(
                float(residual.sum()), total, m, rounding=rounding * total
            )
        if total <= 0:
            return cls(0.0, 0.0, m, exact=False)
        ratio = float(residual.sum() / diagonal.sum())
        standard_error = (
            float(np.std(residual - ratio * diagonal)) / np.sqrt(m) / diagonal.mean()
        )
        # Without replacement: no error remains once all rows are in.
        standard_error *= np.sqrt(1 - m / n_rows)
        standard_error = np.hypot(standard_error, rounding)
        return cls(ratio, float(standard_error), m, exact=False, rounding=rounding)

    def with_batch(
        self,
        kernel_trace: float,
        batch_residual_trace: float,
        batch_kernel_trace: float,
        n_batch_rows: int,
    ) -> TraceError:
        """Return the error after further rows of a stream.

        Parameters
        ----------
        kernel_trace : float
            Trace of K over earlier rows.
        batch_residual_trace : float
            Trace of K − K̃ over the new rows.
        batch_kernel_trace : float
            Trace of K over the new rows.
        n_batch_rows : int
            Number of new rows.

        Returns
        -------
        error : TraceError
            The error over all rows.
        """
        total = kernel_trace + batch_kernel_trace
        if total <= 0:
            return replace(self, n_rows=self.n_rows + n_batch_rows, path=None)
        old_share = kernel_trace / total
        value = old_share * self.value + max(0.0, batch_residual_trace) / total
        return replace(
            self,
            value=value,
            rounding=old_share * self.rounding,
            at_most=bool(old_share * self.rounding > RESOLVED * value),
            standard_error=old_share * self.standard_error,
            n_rows=self.n_rows + n_batch_rows,
            path=None,
        )

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.at_most:
            return f"≤ {self.value:.2g} (up to rounding)"
        if self.exact:
            return f"{self.value:.3g} (exact)"
        return f"{self.value:.3g} ± {self.standard_error:.1g} ({self.n_rows} rows)"


#: Rows on which the error is estimated where no pass over all of them gives it: about
#: so many, with a probability by the root of their residual under the first landmarks,
#: and a share of the mean. Few rows may hold most of the residual: of 230 estimates
#: from uniform rows one in nine was off by more than three standard errors, and of
#: these none.
N_ERROR_ROWS, FIRST_LANDMARKS, UNIFORM = 1024, 16, 0.1
#: Of k(x, x), where the residual under the first landmarks is 0.
MIN_RESIDUAL_RATIO = 1e-8
#: Updates of the rate, until inclusion probabilities add up to the expected rows.
MAX_RATE_UPDATES = 20
TINY = np.finfo(np.float64).tiny


def estimate_trace_error(
    landmarks: Landmarks, source: Source, engine: Engine
) -> TraceError:
    """The relative trace error from some rows; what is known already, if it is exact.

    For fits without a pass that gives it exactly. A pass with few landmarks finds the
    rows of large residuals; it is skipped where each value is a call of the user's.
    """
    if landmarks.error is not None and landmarks.error.exact:
        return landmarks.error
    rows = sorted_row_sample(source.n_rows, N_ERROR_ROWS)
    cheap = not landmarks.kernel.traits.costly and not landmarks.indefinite
    if cheap and len(rows) < source.n_rows:
        return _error_from_weighted_sample(landmarks, source, rows, engine)
    sample = Subset(source, rows)
    prepared = prepare_residuals(landmarks.columns(), sample, landmarks.factor.root)
    return TraceError.from_sample(
        residuals(prepared, sample, engine=engine, name="trace error"),
        kernel_diagonal(landmarks.kernel, sample, engine=engine),
        sample.weights,
        source.n_rows,
        residual_rounding(np.float64, len(landmarks)),
    )


def _error_from_weighted_sample(
    landmarks: Landmarks, source: Source, pilot: np.ndarray, engine: Engine
) -> TraceError:
    """From rows drawn with p = rate·w·(√residual + floor), at most 1.

    A pilot of uniform rows gives the floor and the rate.
    """
    first = landmarks[: min(FIRST_LANDMARKS, len(landmarks))]
    few = Subset(source, pilot)
    # In float64: what float32 rounds to 0 may be most of the residual.
    columns = first.columns(wide=True)
    by_first = prepare_residuals(columns, few, first.factor.root)
    block = few.block(0, few.n_rows)
    kxx = arrays.to_host(diag_float64(columns.kernel, block.X))
    sizes = _root_residuals(block.X, kxx, by_first)
    floor = max(
        UNIFORM * float(np.mean(sizes)), MIN_RESIDUAL_RATIO * float(np.mean(abs(kxx)))
    )
    share = N_ERROR_ROWS / source.n_rows
    rate = _sampling_rate(sizes + floor, block.weights, share)
    wide = landmarks.columns(wide=True)
    prepared = prepare_residuals(wide, source, landmarks.factor.root)
    shared = (by_first, floor, rate, prepared)
    sums = engine.reduce(_sampled_residuals_block, source, shared, "trace error")
    residual, variance, kernel_trace, n_drawn = (
        float(x) for x in arrays.tree_to_host(sums)
    )
    check_finite(np.array([residual, kernel_trace]))
    if kernel_trace <= 0:
        return TraceError(0.0, 0.0, int(n_drawn), exact=False)
    value = max(0.0, residual) / kernel_trace
    rounding = residual_rounding(np.float64, len(landmarks))
    spread = float(np.hypot(np.sqrt(variance) / kernel_trace, rounding))
    return TraceError(value, spread, int(n_drawn), exact=False, rounding=rounding)


def _root_residuals(X: Any, kxx: np.ndarray, by_first: ResidualPass) -> np.ndarray:
    """√(residual·k(x, x)) of each row under the first landmarks."""
    explained = arrays.to_host(by_first.B.squared_norms(by_first.columns(X)))
    return np.sqrt(np.maximum(kxx - explained, 0.0) * np.abs(kxx))


def _sampling_rate(sizes: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The rate by which a share of such rows is drawn."""
    rate = share / max(float(np.mean(weights * sizes)), TINY)
    for _ in range(MAX_RATE_UPDATES):  # others make up for probabilities cut at 1
        mean = float(np.mean(np.minimum(rate * weights * sizes, 1.0)))
        if mean <= 0:
            break
        rate *= min(share / mean, 10.0)
    return rate


def _sampled_residuals_block(
    block: Block,
    by_first: ResidualPass,
    floor: float,
    rate: float,
    prepared: ResidualPass,
) -> tuple[float, float, float, float]:
    """Σ w·residual/p over sampled rows, its variance; Σ w·k(x, x); how many rows."""
    kxx = arrays.to_host(diag_float64(prepared.columns.kernel, block.X))
    kernel_trace = float(weighted_sum(block.weights, kxx))
    sizes = _root_residuals(block.X, kxx, by_first) + floor
    p = np.minimum(rate * block.weights * sizes, 1.0)
    start, stop = block.start, block.start + len(block)
    rows = np.flatnonzero(Stream(0, Purpose.CHECK, level=2).uniforms(start, stop) < p)
    if not len(rows):
        return 0.0, 0.0, kernel_trace, 0.0
    few = Block(0, arrays.take_rows(block.X, rows), block.weights[rows])
    p = p[rows]
    residual = few.weights * block_residuals(few, prepared) / p
    variance = float((1 - p) @ residual**2)
    return float(residual.sum()), variance, kernel_trace, float(len(rows))
