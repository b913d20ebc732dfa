"""‖K − K̃‖₂ ≤ λ: guarantees of the theorems, and a check where none holds.

The check is one pass that gives tr(K − K̃), an upper bound, and a sample of rows by
residual whose weighted residual matrix estimates the norm. Where it exceeds λ, the rows
on its top eigenvectors become landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import _arrays as arrays
from .._precision import block_residual_rounding, min_guaranteed_ridge
from .._random import Purpose, Stream
from .._validation import check_choice, check_finite, check_positive
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.errors import Guarantee, format_norm_bound, top_eigenpair
from ..linalg.residuals import prepare_residuals
from .base import FixedSize, Sampler, SamplingProblem, SpectralTolerance
from .weighted_sampling import KeyedSampler, WeightedSample

#: δ where the theory's constants are asked for without one.
DEFAULT_DELTA = 0.01


@dataclass(frozen=True)
class GuaranteedSampler(Sampler):
    """A sampler with the constants of a proof, or with those used in practice."""

    constants: str | None = None
    delta: float | None = None
    max_spectral_error: float | None = None

    takes: ClassVar[tuple[type, ...]] = (FixedSize, SpectralTolerance)
    #: The theorem is proven for δ below this.
    max_delta: ClassVar[float]

    def __post_init__(self) -> None:
        if self.max_spectral_error is not None:
            check_positive(self.max_spectral_error, "max_spectral_error")
        if self.constants is not None:
            check_choice(self.constants, "constants", ("theory", "practical"))
        if self.delta is not None:
            check_positive(self.delta, "delta", below=self.max_delta)
        if self.constants == "practical" and self.delta is not None:
            raise ValueError(
                f"delta={self.delta!r} belongs to constants='theory'; omit it, or "
                "drop constants='practical'."
            )

    @property
    def proven_delta(self) -> float | None:
        """Failure probability of the theory's constants; None with practical ones."""
        if self.constants == "theory" or self.delta is not None:
            return self.delta or DEFAULT_DELTA
        return None

    @property
    def label(self) -> str:
        return self.name if self.proven_delta is None else f"{self.name} (theory)"


def make_guarantee(
    problem: SamplingProblem, ridge: float, probability: float, algorithm: str
) -> Guarantee | None:
    """The guarantee of a theorem, or a note why there is none.

    Theorems are about exact numbers. Landmarks of float32 rows make K̃ and features of
    float32 values, which may be further off than λ, whatever was chosen.
    """
    kernel, source = problem.kernel, problem.source
    columns = CrossKernel(kernel, source.rows(0, 1))
    if columns.narrow:
        min_ridge = min_guaranteed_ridge(problem.trace(), columns.dtype)
        if ridge < min_ridge:
            problem.ledger.note(
                f"no guarantee: float32 values resolve ‖K − K̃‖₂ to {min_ridge:.2g}, "
                f"not to {ridge:.2g}; pass float64 rows"
            )
            return None
    return Guarantee(ridge, probability, source.is_weighted, algorithm)


#: Rows that are drawn for a check: as many as there are landmarks, at least so many.
MIN_CHECK_ROWS = 256
#: Landmarks are added until what is estimated falls to this share of λ, so that other
#: rows are likely to agree.
TARGET_SHARE = 0.8
#: Checks, each of which but the last adds landmarks.
MAX_CHECKS = 8


def ensure_spectral_error(
    ridge: float,
    landmarks: Landmarks,
    problem: SamplingProblem,
    max_landmarks: int | None,
) -> Landmarks:
    """These landmarks, and as many more as ‖K − K̃‖₂ ≤ ridge takes.

    Their `certificate` says how that is known. Where `max_landmarks` allows no more,
    `n_requested` says how many there would be.
    """
    claim = format_norm_bound(ridge, problem.source.is_weighted)
    n_first = len(landmarks)
    for round_number in range(MAX_CHECKS):
        problem.ledger.count_evaluations(
            problem.kernel.gram_evaluations(len(landmarks))
        )
        if landmarks.indefinite:  # residuals may be negative
            return landmarks
        trace, rounding, rows, weights = _sample_residual(
            landmarks, problem, round_number
        )
        n_added = len(landmarks) - n_first
        suffix = f", {n_added} landmarks added" if n_added else ""
        if trace <= ridge:
            certainty = "by the trace error" if rounding <= ridge else "to rounding"
            return landmarks.replace(certificate=f"{claim} {certainty}{suffix}")
        residual = weighted_residual_matrix(landmarks, rows, weights, problem)
        norm, positions = _find_missing(residual, ridge)
        missing = rows.take(positions)
        if not len(missing):
            estimate = f"estimated {norm / ridge:.2g} of it on {len(rows)} rows"
            return landmarks.replace(certificate=f"{claim}: {estimate}{suffix}")
        n_needed = len(landmarks) + len(missing)
        if max_landmarks is not None and n_needed > max_landmarks:
            allowed_rows = missing.take(np.arange(max_landmarks - len(landmarks)))
            return _add_rows(landmarks, allowed_rows, problem).replace(
                n_requested=n_needed
            )
        landmarks = _add_rows(landmarks, missing, problem)
    failure = f"{claim} not found in {MAX_CHECKS} checks"
    return landmarks.replace(certificate=failure)


def _add_rows(
    landmarks: Landmarks, rows: WeightedSample, problem: SamplingProblem
) -> Landmarks:
    """These landmarks and other rows, with certainty: p = 1."""
    assert landmarks.indices is not None
    assert landmarks.probabilities is not None
    p = np.concatenate([landmarks.probabilities, np.ones(len(rows))])
    return replace(  # without the factor of those before
        landmarks,
        points=arrays.stack_rows([landmarks.points, rows.points_from(problem.source)]),
        indices=np.concatenate([landmarks.indices, rows.numbers]),
        probabilities=p,
    )


def _sample_residual(
    landmarks: Landmarks, problem: SamplingProblem, round_number: int
) -> tuple[float, float, WeightedSample, np.ndarray]:
    """One pass: tr(K − K̃), its rounding, rows by residual, and what they stand for.

    Residuals below rounding count as 0: no more than the rounding in all.
    """
    source, factor = problem.source, landmarks.factor
    size = max(MIN_CHECK_ROWS, len(landmarks))
    # The level sets it apart from other rows that errors are estimated on.
    stream = Stream(problem.seed, Purpose.CHECK, level=1, round=round_number)
    prepared = prepare_residuals(
        landmarks.columns(), source, factor.root, ledger=problem.ledger
    )
    sampler = KeyedSampler(stream, max_rows=size + 1)
    name = f"residuals of {len(landmarks)} landmarks"
    sample, (trace, _) = problem.sample_by_residual(prepared, source, sampler, name)
    relative_rounding = block_residual_rounding(prepared.columns.dtype)
    rounding = relative_rounding * factor.scale * source.total_weight
    rows, p = sample.fixed_size(size)
    # Scaled to the trace of all rows, which is known: the probabilities, from the
    # key of one row, estimate it less well.
    estimated_trace = float(np.sum(rows.sampling_weights / p))
    scale = float(trace) / estimated_trace if estimated_trace > 0 else 1.0
    return float(trace), rounding, rows, rows.weights * scale / p


def weighted_residual_matrix(
    landmarks: Landmarks,
    rows: WeightedSample,
    weights: np.ndarray,
    problem: SamplingProblem,
) -> np.ndarray:
    """(q, q): the weighted residual of K at the rows drawn."""
    X = rows.points_from(problem.source)
    K = arrays.to_host_float64(landmarks.columns(wide=True)(X))
    Z = K @ landmarks.factor.root
    residual = problem.gram(X) - Z @ Z.T
    problem.ledger.count_evaluations(Z.shape[0] * len(landmarks))
    root_weights = np.sqrt(weights)
    residual *= root_weights[:, None]
    residual *= root_weights
    check_finite(residual)
    # The residual of a landmark is rounding, and it may still have been drawn.
    assert landmarks.indices is not None
    is_landmark = np.isin(rows.numbers, landmarks.indices)
    residual[is_landmark], residual[:, is_landmark] = 0.0, 0.0
    return residual


def _find_missing(residual: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
    """The norm of a residual matrix, and the rows that bring it below λ; in place."""
    positions = list[int]()
    estimate, eigenvector = top_eigenpair(residual)
    norm, target = estimate, ridge if estimate <= ridge else TARGET_SHARE * ridge
    while norm > target and len(positions) < len(residual):
        # What taking a row removes of the top direction.
        diagonal, gains = residual.diagonal(), np.zeros(len(residual))
        np.divide(eigenvector**2, diagonal, out=gains, where=diagonal > 0)
        position = int(np.argmax(gains))
        if gains[position] <= 0:  # rounding
            break
        positions.append(position)
        column = residual[:, position] / np.sqrt(residual[position, position])
        residual -= np.outer(column, column)
        residual[position], residual[:, position] = 0.0, 0.0
        norm, eigenvector = top_eigenpair(residual)
    return estimate, np.array(positions, dtype=np.intp)
