"""What a ridge will take, told before it is begun: landmarks and seconds.

A thousand rows, drawn uniformly, tell it. Three quarters of them stand for half of the
rows, as what is kept of the level below does, and the others are scored by them: the
rule of Algorithm 2 then says how many rows it would keep. Standing for all rows they
tell d_eff. The kernel values and the product that this takes are timed. All of it is an
estimate; where more than hundreds of rows are needed, a rough one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _arrays as arrays
from ..columns import Columns
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.clock import timed
from ..kernels import Kernel
from ..precision import least_ridge
from ..randomness import some_rows
from ..refusals import check_finite
from ..ridge_root import ridge_root, weighted
from ..scores import as_scores
from ..sources import Source
from .goal import Ridge
from .recursive.rules import PracticalRidge, TheoryRidge, Totals

#: Rows that are looked at, one of so many to be scored by the others.
LOOKED_AT, ONE_OF = 1000, 4
#: Passes over all rows with all landmarks that choosing amounts to: the levels, of
#: which the top one is half, and looks at what is left.
PASSES = 3.0
#: Multiply-adds of the small algebra, in s³.
SMALL = 4.0


@dataclass(frozen=True, repr=False)
class Forecast:
    """What it takes to choose landmarks for ‖K − K̃‖₂ ≤ ridge: an estimate.

    Attributes
    ----------
    ridge : float
        λ, as it was asked for.
    n_rows : int
        Rows that there are.
    effective_dimension : float
        d_eff(λ) = tr K(K + λI)⁻¹, about.
    n_landmarks : int
        How many landmarks there will be, about; all rows at most.
    seconds : float
        Time that choosing them will take, about, by a rate that was measured on a small
        block.
    """

    ridge: float
    n_rows: int
    effective_dimension: float
    n_landmarks: int
    seconds: float

    def __str__(self) -> str:
        whole = " (nearly all)" if self.n_landmarks > 0.8 * self.n_rows else ""
        return (
            f"ridge={self.ridge:.4g}: about {self.n_landmarks} landmarks of "
            f"{self.n_rows} rows{whole}, effective dimension about "
            f"{self.effective_dimension:.0f}, about {self.seconds:.2g} s"
        )

    def __repr__(self) -> str:
        return f"Forecast({self})"


def forecast(
    kernel: Kernel,
    source: Source,
    goal: Ridge,
    delta: float | None,
    engine: Engine,
) -> Forecast:
    """What `goal` takes, by Algorithm 2; with the theory's constants if δ is given."""
    n, ridge = source.n_rows, goal.ridge
    rows = some_rows(n, LOOKED_AT)
    fresh = np.arange(len(rows)) % ONE_OF == 0
    scored = rows[fresh]
    # Few rows are all in the sample; their scores are the exact ones.
    sample = rows if len(rows) == n else rows[~fresh]
    with blas_threads_for(LOOKED_AT):
        look = _Look.at(kernel, source, scored, sample)
        scores, exact = (look.scores(ridge, share * n) for share in (0.5, 1.0))
    rule = PracticalRidge(ridge) if delta is None else TheoryRidge(ridge, delta)
    chances = rule.chances(scores, 0)
    share = n / len(scored)
    totals = Totals(
        scores=share * float(scores.sum()),
        capped=share * float(np.minimum(1.0, scores).sum()),
        chances=share * float(chances.sum()),
        n_rows=float(n),
    )
    p = np.minimum(1.0, rule.multiple(totals, 0) * chances)
    size = min(n, max(1, round(share * float(p.sum()))))
    if goal.at_most is not None:
        size = min(size, goal.at_most)
    n_threads = getattr(engine, "n_threads", 1)
    by_row = size * (look.per_value + size / 2 * look.per_product)
    seconds = PASSES * n * by_row / n_threads + SMALL * size**3 * look.per_product
    d_eff = share * float(np.minimum(1.0, exact).sum())
    return Forecast(ridge, n, d_eff, size, seconds)


@dataclass(frozen=True, eq=False)
class _Look:
    """Rows, their kernel values with a sample, and what those took."""

    gram: np.ndarray  # (m, m) of the sample, weighted
    weights: np.ndarray  # (m,) √w of the sample
    K: np.ndarray  # (rows, m)
    diagonal: np.ndarray  # (rows,)
    row_weights: np.ndarray  # (rows,)
    per_value: float  # seconds
    per_product: float  # seconds for a multiply-add

    @classmethod
    def at(
        cls, kernel: Kernel, source: Source, scored: np.ndarray, sample: np.ndarray
    ) -> _Look:
        points, X = source.take(sample), source.take(scored)
        weights = np.sqrt(source.weights_of(sample))
        gram = weighted(kernel.gram(points), weights)
        check_finite(gram)
        columns = Columns(kernel, points)
        K, evaluating = timed(lambda: columns.host(X))
        check_finite(K)
        _, multiplying = timed(lambda: K @ gram)
        return cls(
            gram,
            weights,
            K,
            arrays.to_host(columns.diag(X)),
            source.weights_of(scored),
            evaluating / max(K.size, 1),
            multiplying / max(K.size * len(gram), 1),
        )

    def scores(self, ridge: float, n_rows: float) -> np.ndarray:
        """Of the rows, by a sample that stands for so many."""
        scale = np.sqrt(n_rows / len(self.gram))
        SKS = weighted(self.gram, np.full(len(self.gram), scale))
        B = ridge_root(SKS, scale * self.weights, max(ridge, least_ridge(SKS)))
        F = self.K @ B
        left = np.maximum(self.diagonal - np.vecdot(F, F), 0.0)
        return as_scores(left, self.row_weights, ridge)
