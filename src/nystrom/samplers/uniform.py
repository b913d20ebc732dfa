"""Uniform sampling, ∝ sample weights: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._random import Purpose, uniform_row_sample
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.residuals import block_residuals
from ..sources import Block
from ..sources.base import weighted_sum
from .base import FixedSize, SamplingProblem
from .pivoting import GrowingSampler
from .weighted_sampling import KeyedSampler, sample_uniformly

#: Rows that become pivots together.
BATCH_ROWS = 128
#: Powers of rounding that a residual must exceed, as a share of k(x, x): at first, and
#: for rows that were skipped.
ROUNDING_POWERS = (0.5, 0.75, 1.0)


@dataclass(unsafe_hash=True)
class Uniform(GrowingSampler):
    """Uniform sampling; proportional to the weights if rows have weights.

    With `max_trace_error`, rows become pivots in the order of the draw. Rows with a
    residual near rounding are skipped until all other rows have been used.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Uniform(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'uniform')
    """

    name = "uniform"
    needs_psd = False
    is_ordered = False

    def choose(self, problem: SamplingProblem, goal: Any) -> Landmarks:
        if isinstance(goal, FixedSize):  # as they come: nothing to evaluate
            problem.ledger.count_fetch(problem.source)
            sample = sample_uniformly(problem.source, goal.n_landmarks, problem.seed)
            return problem.landmarks(sample, self.name)
        return super().choose(problem, goal)

    def _set_up(self) -> None:
        kernel, source = self.problem.kernel, self.problem.source
        value_dtype = kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.min_residual_shares = [
            arrays.epsilon(value_dtype) ** power for power in ROUNDING_POWERS
        ]
        self.order = np.empty(0, dtype=np.intp)
        self.skipped: list[np.ndarray] = []
        self.n_seen = 0

    def grow(self, size: int) -> None:
        """Add pivots until there are `size`, or every residual is rounding.

        Parameters
        ----------
        size : int
            Number of pivots.
        """
        # Ends: rows are seen once for each of the powers.
        while len(self.pivots) < size and not self.exhausted:
            n_next = min(BATCH_ROWS, size - len(self.pivots))
            rows = self._next_rows(n_next)
            selected = self.pivots.add(rows, min_share=self.min_residual_shares[0])
            self.skipped.append(np.delete(rows, selected))
            if len(rows) < n_next:
                self._retry_skipped()

    def _retry_skipped(self) -> None:
        """Begin anew with the rows that were skipped, and less to exceed."""
        self.order, self.n_seen = np.concatenate(self.skipped), 0
        self.skipped = []
        self.exhausted = len(self.min_residual_shares) == 1 or not len(self.order)
        self.min_residual_shares = self.min_residual_shares[1:]

    def _next_rows(self, size: int) -> np.ndarray:
        """The next rows of the draw, which is extended as it is needed."""
        begin, self.n_seen = self.n_seen, self.n_seen + size
        source, seed = self.problem.source, self.problem.seed
        is_first_round = len(self.min_residual_shares) == len(ROUNDING_POWERS)
        if is_first_round and len(self.order) < min(self.n_seen, source.n_rows):
            n_drawn = 2 * self.n_seen
            if source.is_weighted:
                sampler = KeyedSampler(seed, Purpose.DRAW, max_rows=n_drawn)
                self.order = sampler.sample(source.weights).sorted_by_key().numbers
            else:
                self.order = uniform_row_sample(
                    seed, Purpose.DRAW, source.n_rows, n_drawn
                )
        return self.order[begin : self.n_seen]

    def error(self, size: int) -> float:
        """Compute tr(K − K̃) by a pass over all rows, before growing to `size`.

        Parameters
        ----------
        size : int
            Number of pivots to come.

        Returns
        -------
        error : float
            The trace error.
        """
        source, prepared = (
            self.problem.source,
            self.pivots.residual_pass(self.problem.source),
        )
        shared = (prepared.columns, prepared.operand, prepared.rounding)
        name = f"trace error at {len(self.pivots)} landmarks"
        residual_trace = float(
            self.problem.engine.reduce(_block_residual_trace, source, shared, name)
        )
        n_evaluations = source.n_rows * (len(self.pivots) + 1)
        self.problem.ledger.count_pass(source, n_evaluations)
        check_finite(np.asarray(residual_trace))
        return residual_trace


def _block_residual_trace(block: Block, *shared: Any) -> float:
    return weighted_sum(block.weights, block_residuals(block, *shared))
