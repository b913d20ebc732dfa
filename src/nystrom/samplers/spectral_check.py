"""Check of ‖K − K̃‖₂ ≤ λ on rows sampled by residual, adding landmarks until it holds.

One pass gives tr(K − K̃), an upper bound, and a sample of rows by residual whose
weighted residual matrix estimates the norm. Where it exceeds λ, the rows on its top
eigenvectors become landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import _arrays as arrays
from .._precision import block_residual_rounding
from .._random import Purpose
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.errors import format_norm_bound, top_eigenpair
from ..linalg.residuals import prepare_residuals
from .base import SamplingProblem
from .weighted_sampling import (
    KeyedSampler,
    WeightedSample,
    residual_weights,
    sample_by_residual,
)

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
        check = SpectralCheck.from_pass(landmarks, problem, round_number)
        n_added = len(landmarks) - n_first
        suffix = f", {n_added} landmarks added" if n_added else ""
        if check.trace <= ridge:
            certainty = (
                "by the trace error" if check.rounding <= ridge else "to rounding"
            )
            return landmarks.replace(certificate=f"{claim} {certainty}{suffix}")
        norm, missing = check.norm_and_missing(ridge)
        if not len(missing):
            estimate = f"estimated {norm / ridge:.2g} of it on {len(check.rows)} rows"
            return landmarks.replace(certificate=f"{claim}: {estimate}{suffix}")
        n_needed = len(landmarks) + len(missing)
        if max_landmarks is not None and n_needed > max_landmarks:
            allowed_rows = missing.take(np.arange(max_landmarks - len(landmarks)))
            return _add_rows(landmarks, allowed_rows, problem).replace(
                n_requested=n_needed
            )
        landmarks = _add_rows(landmarks, missing, problem)
    failure = f"{claim} not found in {MAX_CHECKS} looks"
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
        weights=1 / np.sqrt(p),
        probabilities=p,
    )


@dataclass(frozen=True)
class SpectralCheck:
    """The residual of landmarks: its trace, and a few weighted rows."""

    landmarks: Landmarks
    problem: SamplingProblem
    trace: float  # tr(K − K̃)
    rounding: float  # residuals below rounding count as 0: no more in all
    rows: WeightedSample  # drawn by their residual
    weights: np.ndarray  # how many rows each of them stands for

    @classmethod
    def from_pass(
        cls, landmarks: Landmarks, problem: SamplingProblem, round_number: int
    ) -> SpectralCheck:
        """By one pass over all rows."""
        source, factor = problem.source, landmarks.factor
        size = max(MIN_CHECK_ROWS, len(landmarks))
        # The level sets it apart from other rows that errors are estimated on.
        sampler = KeyedSampler(
            problem.seed, Purpose.CHECK, level=1, round=round_number, max_rows=size + 1
        )
        prepared = prepare_residuals(
            landmarks.columns(), source, factor.root, ledger=problem.ledger
        )
        sample, (trace, _) = sample_by_residual(
            prepared,
            source,
            residual_weights,
            sampler,
            engine=problem.engine,
            name=f"what {len(landmarks)} landmarks leave",
        )
        relative_rounding = block_residual_rounding(prepared.columns.dtype)
        rounding = relative_rounding * factor.scale * source.total_weight
        rows, p = sample.fixed_size(size)
        # Scaled to the trace of all rows, which is known: the probabilities, from the
        # key of one row, estimate it less well.
        estimated_trace = float(np.sum(rows.sampling_weights / p))
        scale = float(trace) / estimated_trace if estimated_trace > 0 else 1.0
        weights = rows.weights * scale / p
        return cls(landmarks, problem, float(trace), rounding, rows, weights)

    def norm_and_missing(self, ridge: float) -> tuple[float, WeightedSample]:
        """The norm as the rows drawn estimate it, and those that bring it below λ."""
        residual, positions = self._weighted_residual_matrix(), list[int]()
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
        return estimate, self.rows.take(np.array(positions, dtype=np.intp))

    def _weighted_residual_matrix(self) -> np.ndarray:
        """(q, q): the weighted residual of K at the rows drawn."""
        X = self.rows.points_from(self.problem.source)
        Z = self.landmarks.columns(wide=True).to_host(X) @ self.landmarks.factor.root
        residual = self.problem.gram(X) - Z @ Z.T
        self.problem.ledger.count_evaluations(Z.shape[0] * len(self.landmarks))
        root_weights = np.sqrt(self.weights)
        residual *= root_weights[:, None]
        residual *= root_weights
        check_finite(residual)
        # The residual of a landmark is rounding, and it may still have been drawn.
        assert self.landmarks.indices is not None
        is_landmark = np.isin(self.rows.numbers, self.landmarks.indices)
        residual[is_landmark], residual[:, is_landmark] = 0.0, 0.0
        return residual
