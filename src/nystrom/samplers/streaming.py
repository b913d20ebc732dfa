"""Landmarks of a stream: a reservoir of weighted rows, and updates from it.

Each row has one uniform number u and stays while u < p, where p falls with its share
of the ridge leverage scores; it then counts as 1/p rows (Calandriello, Lazaric &
Valko). An update costs O(batch·s²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._precision import EPS64, ROUNDING_UNITS
from .._random import Purpose, Stream
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.cross_kernel import diag_float64
from ..linalg.errors import TraceError
from ..linalg.features import BlockFeatures, FeatureMap
from ..linalg.moments import moments
from ..sources import Block, CachedRows, Source
from ..sources.output import ArraySink, SplitSink
from .base import StoppingRule, TraceTolerance

#: The share of the probabilities that goes by k(x, x) alone: it bounds the weights.
DIAGONAL_SHARE = 0.1
#: Rows that are kept per landmark.
ROWS_PER_LANDMARK = 12
#: Landmarks are chosen anew once this share of all rows has come since, at the latest
#: once as many have come as are kept.
MAX_NEW_SHARE = 0.25
#: What sums are divided by at least.
TINY = float(np.finfo(float).tiny)


#: The fields of a reservoir with an entry for each row.
ROW_FIELDS = (
    "points",
    "numbers",
    "row_weights",
    "uniforms",
    "probabilities",
    "targets",
)


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Rows of a stream, with what it takes to let some of them go."""

    points: Any
    numbers: np.ndarray  # of the rows in the stream
    row_weights: np.ndarray  # the weights they came with
    uniforms: np.ndarray  # below `kept`
    probabilities: np.ndarray  # the probability of each to be here still
    targets: np.ndarray | None
    seed: int
    n_rows: int  # seen so far
    n_new_rows: int  # come since landmarks were chosen
    n_selections: int = 0  # of landmarks

    @classmethod
    def from_batch(cls, batch: Source, seed: int) -> Reservoir:
        """All rows of a first batch."""
        n = batch.n_rows
        u = Stream(seed, Purpose.STREAM).uniforms(0, n)
        fields = np.arange(n), batch.weights, u, np.ones(n), batch.targets
        every_row = cls(batch.rows(0, n), *fields, seed, n, n)
        return every_row._take(np.flatnonzero(batch.weights > 0))

    @classmethod
    def from_landmarks(cls, landmarks: Landmarks, seed: int) -> Reservoir:
        """Landmarks alone, each for its share of the rows they were chosen from."""
        s, n = len(landmarks), max(landmarks.n_rows, len(landmarks))
        numbers = np.arange(s) if landmarks.indices is None else landmarks.indices
        probabilities = np.full(s, s / n)
        u = probabilities * Stream(seed, Purpose.STREAM).uniforms(0, s)
        return cls(
            landmarks.points, numbers, np.ones(s), u, probabilities, None, seed, n, 0
        )

    @property
    def weights(self) -> np.ndarray:
        """As how many rows of the stream each counts."""
        return self.row_weights / self.probabilities

    @property
    def source(self) -> Source:
        """The rows with these weights."""
        return CachedRows(self.points, self.weights).replace(targets=self.targets)

    @property
    def has_all_rows(self) -> bool:
        """Whether no row was ever let go."""
        return bool(np.all(self.probabilities == 1))

    def __len__(self) -> int:
        return len(self.row_weights)

    def with_batch(self, batch: Source) -> Reservoir:
        """With all rows of another batch."""
        n, new = self.n_rows, Reservoir.from_batch(batch, self.seed)
        u = Stream(self.seed, Purpose.STREAM).uniforms(n, n + batch.n_rows)
        new = replace(new, numbers=n + new.numbers, uniforms=u[new.numbers])
        joined = arrays.stack_fields(self, new, ROW_FIELDS)
        n_new_rows = self.n_new_rows + batch.n_rows
        return replace(joined, n_rows=n + batch.n_rows, n_new_rows=n_new_rows)

    def thinned_for(
        self, landmarks: Landmarks, engine: Engine
    ) -> tuple[Reservoir, TraceError]:
        """With as many rows as these landmarks take, and their error on all rows."""
        scores, residual, diagonal = row_leverages(landmarks, self.source, engine)
        # From rows that are no landmarks, unless these are all rows: a landmark has no
        # residual, but the rows that it stands for have.
        counted = np.ones(len(self), dtype=bool)
        if landmarks.indices is not None and not self.has_all_rows:
            counted = ~np.isin(self.numbers, landmarks.indices)
        error = TraceError.from_sample(
            residual[counted], diagonal[counted], self.weights[counted], self.n_rows
        )
        updated = replace(self, n_new_rows=0, n_selections=self.n_selections + 1)
        size = ROWS_PER_LANDMARK * len(landmarks)
        if len(self) > size:
            weights = self.row_weights * stay_weights(scores, diagonal, self.weights)
            updated = updated._thinned_to(weights, size)
        return updated, error

    def attached_to(self, landmarks: Landmarks, error: TraceError | None) -> Landmarks:
        """These landmarks, for all rows so far."""
        return landmarks.replace(
            reservoir=self,
            n_rows=self.n_rows,
            error=error,
            guarantee=None,  # what is proven is so for the rows that there were
            certificate=None,
        )

    def _thinned_to(self, sampling_weights: np.ndarray, size: int) -> Reservoir:
        """The rows with the smallest keys; the next key gives their probabilities.

        p = min(1, c·weight), where c is the key u/weight of the first that is dropped:
        rows that are here have u < p.
        """
        with np.errstate(divide="ignore", over="ignore"):
            keys = self.uniforms / sampling_weights
        order = np.lexsort((self.numbers, keys))
        threshold, selected = keys[order[size]], np.sort(order[:size])
        p = self.probabilities[selected]
        if np.isfinite(threshold):
            p = np.minimum(p, threshold * sampling_weights[selected])
        return replace(self._take(selected), probabilities=p)

    def _take(self, positions: np.ndarray) -> Reservoir:
        return arrays.take_fields(self, ROW_FIELDS, positions)


def row_leverages(
    landmarks: Landmarks, source: Source, engine: Engine
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ridge leverage scores of rows at λ = tr(K − K̃)/s, residuals and k(x, x).

    Two passes: the Gram matrix, and the scores.
    """
    mapping = whitened_feature_map(landmarks)
    sums = moments(mapping, source, engine, "Gram matrix of kept rows")
    trace, s = sums.kernel_trace, len(landmarks)
    residual_trace = trace - float(np.trace(sums.gram))
    ridge = max(residual_trace, EPS64 * s * abs(trace), TINY) / s
    with blas_limit_for_size(s):
        values, vectors = np.linalg.eigh(sums.gram)
    root = vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
    outputs = [ArraySink((source.n_rows,)) for _ in range(3)]
    shared = (mapping.tiles(), root)
    name = "scores of kept rows"
    engine.map(_block_leverages, source, SplitSink(*outputs), shared, name)
    leverage, residual, diagonal = (output.array for output in outputs)
    return leverage + residual / ridge, residual, diagonal


def stay_weights(
    scores: np.ndarray, diagonal: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """How likely each row is to stay: by ridge leverage score, and by k(x, x)."""
    diagonal = np.abs(diagonal)
    by_score = scores / max(float(weights @ scores), TINY)
    by_diagonal = diagonal / max(float(weights @ diagonal), TINY)
    return (1 - DIAGONAL_SHARE) * by_score + DIAGONAL_SHARE * by_diagonal


def whitened_feature_map(
    landmarks: Landmarks, target_shift: np.ndarray | None = None
) -> FeatureMap:
    """Z in float64, computed in every tile: right for sums that are carried along."""
    columns = landmarks.columns(wide=True)
    return FeatureMap.whitened(columns, landmarks.factor, target_shift)


def _block_leverages(
    block: Block, tiles: BlockFeatures, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    Z, diagonal = tiles(block.X), diag_float64(tiles.columns.kernel, block.X)
    A = Z @ root
    residual = np.maximum(diagonal - np.vecdot(Z, Z), 0.0)
    return np.vecdot(A, A), residual, diagonal


#: Landmarks of a source, by a seed.
SelectFunction = Callable[[Source, int, StoppingRule], Landmarks]
#: How often a smaller error is aimed at, each time by this more than what was missed.
MAX_ATTEMPTS, TOLERANCE_MARGIN = 4, 0.95
#: Landmarks are chosen anew where a batch multiplies their error by this.
MAX_ERROR_GROWTH = 1.5


def update_from_batch(
    previous: Landmarks | None,
    batch: Source,
    choose: SelectFunction,
    goal: StoppingRule,
    *,
    seed: int,
    engine: Engine,
    min_improvement: float = 1.0,
) -> Landmarks:
    """Landmarks for all rows so far, which `choose` finds among those that are kept.

    They stay as they are until enough rows have come, or rows with too large an error,
    and where the error of new ones would not be `min_improvement` times less.
    """
    tolerance = goal.tolerance if isinstance(goal, TraceTolerance) else np.inf
    if previous is None:
        reservoir = Reservoir.from_batch(batch, seed)
    else:
        old: Reservoir = previous.reservoir
        if old is None:
            old = Reservoir.from_landmarks(previous, seed)
        reservoir = old.with_batch(batch)
        n_due = min(ROWS_PER_LANDMARK * len(previous), MAX_NEW_SHARE * reservoir.n_rows)
        if reservoir.n_new_rows < n_due:
            old_error = _error_with_batch(batch, previous, old, engine)
            if not _is_stale(previous, old_error, tolerance):
                return reservoir.attached_to(previous, old_error)
    chosen, thinned, error = _select_from_reservoir(reservoir, choose, goal, engine)
    if previous is not None and min_improvement > 1:
        old_thinned, old_error = reservoir.thinned_for(previous, engine)
        max_error = min(min_improvement * error.value, max(tolerance, error.value))
        if old_error.value <= max_error:
            return old_thinned.attached_to(previous, old_error)
    return thinned.attached_to(chosen, error)


def _select_from_reservoir(
    reservoir: Reservoir, select: SelectFunction, goal: StoppingRule, engine: Engine
) -> tuple[Landmarks, Reservoir, TraceError]:
    """Landmarks of kept rows, what is kept from now on, and their error on all rows.

    Their error on kept rows is below that on the rows that these stand for: where that
    is more than was asked for, the tolerance is lowered.
    """
    seed = (reservoir.seed + reservoir.n_selections) % 2**64
    attempt = goal
    for _ in range(MAX_ATTEMPTS):
        chosen = select(reservoir.source, seed, attempt)
        indices = chosen.indices
        chosen = chosen.replace(
            indices=None if indices is None else reservoir.numbers[indices],
            n_rows=reservoir.n_rows,
            probabilities=None,
        )
        thinned, error = reservoir.thinned_for(chosen, engine)
        if not isinstance(attempt, TraceTolerance):
            break
        assert isinstance(goal, TraceTolerance)
        chosen = chosen.replace(max_trace_error=goal.tolerance)
        if error.value <= goal.tolerance or len(chosen) == goal.at_most:
            break
        factor = TOLERANCE_MARGIN * goal.tolerance / error.value
        attempt = replace(attempt, tolerance=factor * attempt.tolerance)
    return chosen, thinned, error


def _error_with_batch(
    batch: Source, previous: Landmarks, reservoir: Reservoir, engine: Engine
) -> TraceError | None:
    """The error of landmarks on all rows: the known one, and that on a batch."""
    if previous.error is None:
        return None
    mapping = whitened_feature_map(previous)
    sums = moments(mapping, batch, engine, "rows of the batch")
    diagonal = arrays.to_host(diag_float64(mapping.columns.kernel, reservoir.points))
    residual_trace = sums.kernel_trace - float(np.trace(sums.gram))
    kernel_trace = float(reservoir.weights @ diagonal)
    error = previous.error.with_batch(
        kernel_trace, residual_trace, sums.kernel_trace, batch.n_rows
    )
    # Kept rows stand for others, whose k(x, x) may be another.
    return replace(error, exact=error.exact and reservoir.has_all_rows)


def _is_stale(previous: Landmarks, error: TraceError | None, tolerance: float) -> bool:
    """Whether the rows that have come are too much for the landmarks."""
    if previous.error is None or error is None:
        return False
    value, rounding = previous.error.value, ROUNDING_UNITS * EPS64 * len(previous)
    has_grown = error.value > max(MAX_ERROR_GROWTH * value, rounding)
    return has_grown or value <= tolerance < error.value
