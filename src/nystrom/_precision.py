"""Decisions between float32 and float64, and cut-offs at rounding level.

Each function answers one question, with its constant and the measurement behind it.
All cut-offs are relative to the values and to the precision they were computed in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._arrays import epsilon

EPS64 = epsilon(np.float64)

#: Probe rows, evaluated in both precisions before a pass, and on which sizes and
#: means are estimated before one.
N_PROBE_ROWS = 256


# Passes over rows: float32 as long as a few rows come out alike in both.

#: A residual pass stays in float32 while its error, root mean square over the probe
#: rows, is at most this share of the mean residual: a formula for it was off by up to
#: ten in either direction, as near points cancel.
MAX_RESIDUAL_ERROR = 0.02
#: Results (predictions, coordinates) stay in float32 while they differ by at most this
#: share, root mean square over the probe rows: coefficients of both signs cancel. What
#: it is a share of leaves the largest tenth out, which would hide all others.
MAX_RESULT_ERROR, RESULT_QUANTILE = 1e-4, 0.9


def too_few_to_probe(n_rows: int) -> bool:
    """Whether trying would cost as much as the pass in float64."""
    return n_rows <= 4 * N_PROBE_ROWS


def residuals_need_float64(
    narrow: np.ndarray, wide: np.ndarray, own_rounding: float = 0.0
) -> bool:
    """Whether residuals of the probe rows came out too differently.

    What is off by less than `own_rounding` does not show in the result.
    """
    error = np.sqrt(np.mean((narrow - wide) ** 2))
    # `not ≤`, so that nan counts as a failure.
    return not error <= max(MAX_RESIDUAL_ERROR * wide.mean(), own_rounding)


def results_need_float64(narrow: np.ndarray, wide: np.ndarray) -> bool:
    """Whether results of the probe rows, (m, t), came out too differently."""
    with np.errstate(over="ignore", invalid="ignore"):  # nan counts as different
        trimmed = np.sort(wide**2, axis=0)[: math.ceil(RESULT_QUANTILE * len(wide))]
        size = np.sqrt(np.mean(trimmed, axis=0))
        error = np.sqrt(np.mean((narrow - wide) ** 2, axis=0))
        return not bool(np.all(error <= MAX_RESULT_ERROR * size))


# What the landmarks' own kernel matrix resolves.


def eigenvalue_cutoff(eigenvalues: np.ndarray, scale: float, block_dtype: Any) -> float:
    """The eigenvalue of K_SS below which a direction is rounding.

    4·eps·√s·max kᵢᵢ: the usual s·eps·σ₁ dropped 80 of 500 good directions in float32,
    where σ₁ is up to s times max kᵢᵢ. The eigenvalues themselves are computed in
    float64, and not known better than to about eps·σ₁ of that.
    """
    blocks = 4 * epsilon(block_dtype) * scale
    solver = 4 * EPS64 * eigenvalues.max(initial=0.0)
    return float(np.sqrt(len(eigenvalues)) * max(blocks, solver))


#: A residual of k(x, x) below so many units of rounding is 0: of the kernel's
#: blocks once, and of the factor for each landmark. With 4 the features overshoot K (by
#: 4.7e-5 instead of 7e-6, Covertype), with 40 rank is lost for nothing.
ROUNDING_UNITS = 10


def residual_rounding(block_dtype: Any, n_points: int) -> float:
    """Below this share of it, what so many points leave of k(x, x) is rounding."""
    return ROUNDING_UNITS * (epsilon(block_dtype) + n_points * EPS64)


def block_residual_rounding(dtype: Any, like: Any = None) -> float:
    """The same for a block of residuals by a factor that counts as exact."""
    return ROUNDING_UNITS * epsilon(dtype, like)


#: A λ is promised where it is so many times what float32 values leave unresolved, so
#: that rounding stays within what the constants of a proof have to spare.
GUARANTEE_MARGIN = 100


def min_guaranteed_ridge(trace: float, block_dtype: Any) -> float:
    """The least λ for which ‖K − K̃‖₂ ≤ λ can be promised of values so precise.

    Factors of such values drop residuals below rounding, and all rows may
    leave that much: 1500 rows with γ = .05 left 1.7e-3 in float32, where λ was 1e-5.
    """
    return GUARANTEE_MARGIN * block_residual_rounding(block_dtype) * trace


def entry_roundoff(K: np.ndarray, block_dtype: Any) -> float:
    """The unit round-off of K's entries, also of float32 values stored as float64."""
    with np.errstate(over="ignore"):
        narrow = block_dtype == np.float32 or np.array_equal(K, K.astype(np.float32))
    return epsilon(np.float32 if narrow else np.float64)


def is_indefinite(eigenvalues: np.ndarray, rounding: float = EPS64) -> bool:
    """Whether one is negative beyond rounding: −10·eps·s times the largest."""
    size = np.abs(eigenvalues).max(initial=0.0)
    limit = 10 * rounding * len(eigenvalues) * size
    return bool(eigenvalues.min(initial=0.0) < -limit)


def min_cholesky_ridge(SKS: np.ndarray) -> float:
    """The least ridge at which the Cholesky factor of SᵀKS + λI exists, rounded."""
    trace = float(np.trace(SKS))
    return max(10 * EPS64 * len(SKS) * trace, np.finfo(np.float64).tiny)


# Ridge regression: what the Gram matrix of Z must resolve is a thousandth of alpha.

#: Root mean square error of a float32 kernel value near the centre of the rows, as a
#: share of k(x, x). It grows with γ‖x − c‖²: rows in [−25, 25] with γ = 1 had 9.5e-6.
MIN_FLOAT32_NOISE = 3e-8
#: What may be missing from, or added to, the Gram matrix, as a share of alpha.
MAX_GRAM_ERROR = 1e-3


def float32_noise(narrow: np.ndarray, wide: np.ndarray, scale: float) -> float:
    """The root mean square error of float32 values, from those of the probe rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        noise = float(np.sqrt(np.mean((narrow - wide) ** 2)))
    # Few values may be right by luck; what is not finite is refused elsewhere.
    minimum = MIN_FLOAT32_NOISE * scale
    return noise if noise > minimum else minimum


def trace_needs_float64(
    narrow: np.ndarray, wide: np.ndarray, weights: np.ndarray
) -> bool:
    """Whether float32 values show in the sum of the residuals of all rows.

    By that of the probe rows, and what it would be at most if they are typical.
    """
    error = _most_in_sum(weights * (narrow - wide))
    return not error <= MAX_RESIDUAL_ERROR * float(
        np.maximum(weights * wide, 0.0).sum()
    )


def _most_in_sum(off: np.ndarray) -> float:
    """What rows such as these add up to at most: two standard errors are added."""
    return abs(float(off.sum())) + 2 * float(off.std()) * np.sqrt(len(off))


def residual_trace_rounding(
    narrow: np.ndarray, wide: np.ndarray, kxx: np.ndarray, weights: np.ndarray
) -> float:
    """How far off float32 residuals of all rows are, as a share of tr K.

    By the probe rows, if they are typical, and never less than a unit of float32.
    """
    whole = float((weights * np.abs(kxx)).sum())
    if whole <= 0:
        return 0.0
    most = _most_in_sum(weights * (narrow - wide))
    return max(most / whole, epsilon(np.float32) / 2)


def max_unresolved(wide: np.ndarray, narrow: np.ndarray, weights: np.ndarray) -> float:
    """What a factor loses of the mean row, from ‖z‖² of the probe rows by both.

    Two standard errors are added, as few rows may hold most of it.
    """
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    lost = weights * (wide - narrow)
    most = float(lost.sum()) + 2 * float(lost.std()) * np.sqrt(len(lost))
    return max(0.0, most / total)


def ridge_needs_float64(
    inverse_norm: float, unresolved: float, noise: float, n_rows: float, alpha: float
) -> bool:
    """Whether float32 kernel values, off by `noise`, would show in a ridge solution.

    `unresolved` is what float32 does not resolve of the mean row's k(x, x).
    """
    # Rounding adds to the Gram matrix, and mixes with what is in it already.
    added = n_rows * (noise * noise) * inverse_norm
    mixed = 2 * np.sqrt(alpha * added / n_rows)
    # What is lost of a landmark counts for n/s rows, and by its sum: 82 small ones made
    # 1.2e-3. Among near-copies rows lost 8 to 120 times alpha, their landmarks 1e-5.
    missing = unresolved * n_rows
    return (
        added > 4 * MAX_GRAM_ERROR * alpha
        or max(mixed, missing) > MAX_GRAM_ERROR * alpha
    )


def unwhitened_gram_error(squares: np.ndarray, inverse_diagonal: np.ndarray) -> float:
    """The norm of the rounding in rootᵀ(K_SᵀK_S)root, from the diagonals of both.

    Entries are rounded one by one, by about eps·√(aᵢaⱼ). Through the roots that has the
    Frobenius norm eps·Σ aᵢ(K_SS⁻¹)ᵢᵢ: 0.9 to 2.8 times the norm of the error on twelve
    of thirteen pairs of kernels and data. (On a cubic kernel with outliers it is far
    too small; there the whitened matrix is hardly better.) eps·‖A‖·‖K_SS⁻¹‖, as if all
    of it fell on the worst direction, was 7 to 500 times the error.
    """
    return EPS64 * float(squares @ inverse_diagonal)


def centered_gram_rounding(shift: np.ndarray, weight: float) -> float:
    """‖Σ w(z − c)(z − c)ᵀ‖ of rows that are c but for rounding."""
    noise = ROUNDING_UNITS * EPS64 * shift
    return weight * float(noise @ noise)


def is_unwhitened_gram_accurate(
    error: float, alpha: float, margin: float = 1.0
) -> bool:
    """Whether a Gram matrix with this rounding is right enough for alpha.

    Unwhitened, Covertype with γ = .002 and 800 landmarks had an eigenvalue of −0.06
    against alpha = .05.
    """
    return error <= margin * MAX_GRAM_ERROR * alpha


def gram_rounding(trace: float) -> float:
    """How far rounding gets the eigenvalues of a sum Σ zzᵀ with this trace."""
    return EPS64 * trace


def trace_rounding(
    gram_error: float,
    root: np.ndarray,
    noise: float,
    kernel_trace: float,
    total_weight: float,
) -> float:
    """How far off tr K̃ may be that was read off a Gram matrix with this rounding.

    `noise` is that of float32 kernel values, 0 where they are float64; root·rootᵀ is
    the inverse of K_SS.
    """
    rounding = 10 * EPS64 * kernel_trace + 4 * gram_error
    added = total_weight * (noise * noise) * float(np.vdot(root, root))
    return rounding + added + 2 * np.sqrt(kernel_trace * added)


#: Without a ridge the Gram matrix is right to this share of its mean eigenvalue;
#: smaller ones of K̃ are not resolved further.
GRAM_RESOLUTION = 1e-6


def min_eigenvalue_ratio(narrow: bool) -> float:
    """Components with less than this share of the largest eigenvalue are rounding."""
    return 2e-7 if narrow else 1e-12


def least_resolved_alpha(trace: float) -> float:
    """The least α that is not lost beside a kernel or Gram matrix with this trace.

    Ten units of rounding of the trace, which bounds the norm: at that, eigenvalues are
    off by a tenth of α, and with fewer by all of it.
    """
    return 10 * gram_rounding(trace)


#: The least α of (K + αI)x = y on all rows, in units of rounding of ‖K‖.
MIN_ALPHA_ROUNDING_UNITS = 100


def min_alpha(norm: float, value_dtype: Any) -> float:
    """The least α at which K + αI, of a K with this norm, is better known than K."""
    return MIN_ALPHA_ROUNDING_UNITS * epsilon(value_dtype) * norm


# Pools of rows, on which landmarks are ranked.

#: A pool of float32 rows is worked on in float32 until the trace error falls below this
#: share of tr K: rounding is then about a hundredth of the residual.
MIN_FLOAT32_TRACE_ERROR = 5e-4


def squares_fit_float32(squares: np.ndarray) -> bool:
    """Whether sums of squared distances, and what is far below, are float32 numbers."""
    return _terms_fit_float32(4 * squares.max(initial=0.0), len(squares))


def pool_fits_float32(diagonal: np.ndarray, weights: np.ndarray) -> bool:
    """Whether weighted sums of squares neither overflow nor vanish in float32."""
    with np.errstate(over="ignore"):  # what is infinite does not fit either
        size = np.abs(diagonal).max(initial=0.0) ** 2 * weights.max(initial=1.0)
    return _terms_fit_float32(size, len(diagonal))


def _terms_fit_float32(size: float, n_terms: int) -> bool:
    """Whether float32 holds a sum of terms of this size, and what is far below."""
    limits = np.finfo(np.float32)
    is_resolved = limits.tiny < size * MIN_FLOAT32_TRACE_ERROR**4
    return bool(is_resolved and size * n_terms < limits.max)


def squares_scaling_exponent(diagonal: np.ndarray) -> int:
    """The power of two that weighted squares of such values are scaled by; mostly 0."""
    largest = float(np.abs(diagonal).max(initial=0.0))
    safe = 1e-100 < largest < 1e100 or largest == 0.0
    return 0 if safe else -int(np.frexp(largest)[1])


def values_fit_float32(narrow: np.ndarray, wide: np.ndarray) -> bool:
    """Whether kernel values from rounded rows are right enough to rank by.

    A hundredth of what float32 rows may be off by, and of the residual when a pool goes
    over to float64.
    """
    error = np.abs(narrow - wide).max(initial=0.0)
    return bool(error <= 0.01 * MIN_FLOAT32_TRACE_ERROR * np.abs(wide).max(initial=0.0))


# Squared distances from one matrix product.

#: A row whose rounded distances may be off by more than this, in units of the kernel's
#: argument, is evaluated more exactly: in float64, or there by differences.
MAX_DISTANCE_ERROR = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}
