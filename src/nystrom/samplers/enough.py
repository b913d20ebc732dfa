"""Whether landmarks are enough for ‖K − K̃‖₂ ≤ λ, and more of them where they are not.

In practice rows are kept by coins with less than the proofs ask for, and coins may miss
all of a cluster. So what they kept is looked at. A pass over all rows finds tr(K − K̃),
which bounds the norm, and draws rows in proportion to what is left of them. Weighted by
their chances, their part of K − K̃ has the norm of the whole on average or a larger one,
and s rows of them tell it well: each stands for at most a share tr(K − K̃)/s. Where it
is above λ, the rows that its top directions lie on become landmarks, and others are
drawn to look again.

A look is s evaluations per row, and keeps nothing with an entry for every row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import eigsh

from .. import _arrays as arrays
from ..engines.progress import expect
from ..guarantee import norm_at_most
from ..landmarks import Landmarks
from ..precision import least_residual
from ..randomness import Purpose, race_probabilities
from ..refusals import check_finite
from ..residuals import prepare
from .choosing import Work
from .racing import ByResidual, Race, Winners, race_by_residual

#: Rows that are drawn to look at: as many as there are landmarks, at least so many.
LEAST_LOOKED_AT = 256
#: Landmarks are added until what is estimated falls to this share of λ, so that other
#: rows are likely to agree.
SURELY = 0.8
#: Looks, each of which but the last adds landmarks.
MOST_LOOKS = 8
#: Relative accuracy asked of Lanczos.
TOLERANCE = 1e-3


def enough_for(
    ridge: float, landmarks: Landmarks, work: Work, largest: int | None
) -> Landmarks:
    """These landmarks, and as many more as ‖K − K̃‖₂ ≤ ridge takes.

    Their `evidence` says how that is known. Where `largest` allows no more, `n_wanted`
    says how many there would be.
    """
    claim = norm_at_most(ridge, work.source.is_weighted)
    n_first = len(landmarks)
    expect(work.engine.progress, 1)
    for turn in range(MOST_LOOKS):
        work.ledger.evaluated(work.kernel.gram_evaluations(len(landmarks)))
        if landmarks.indefinite:  # less than nothing may be left
            return landmarks
        look = Look.at(landmarks, work, turn)
        more = len(landmarks) - n_first
        after = f", {more} landmarks added" if more else ""
        if look.trace <= ridge:
            certain = "by the trace error" if look.rounding <= ridge else "to rounding"
            return landmarks.updated(evidence=f"{claim} {certain}{after}")
        norm, missing = look.norm_and_missing(ridge)
        if not len(missing):
            how = f"estimated {norm / ridge:.2g} of it on {len(look.rows)} rows"
            return landmarks.updated(evidence=f"{claim}: {how}{after}")
        wanted = len(landmarks) + len(missing)
        if largest is not None and wanted > largest:
            allowed = missing.at(np.arange(largest - len(landmarks)))
            return _with(landmarks, allowed, work).updated(n_wanted=wanted)
        landmarks = _with(landmarks, missing, work)
    unknown = f"{claim} not found in {MOST_LOOKS} looks"
    return landmarks.updated(evidence=unknown)


def _with(landmarks: Landmarks, rows: Winners, work: Work) -> Landmarks:
    """These landmarks and other rows, which are certain to be taken: p = 1."""
    assert landmarks.indices is not None
    assert landmarks.probabilities is not None
    p = np.concatenate([landmarks.probabilities, np.ones(len(rows))])
    return replace(  # without the factor of those before
        landmarks,
        points=arrays.append_rows(landmarks.points, rows.rows_of(work.source)),
        indices=np.concatenate([landmarks.indices, rows.numbers]),
        weights=1 / np.sqrt(p),
        probabilities=p,
    )


@dataclass(frozen=True)
class Look:
    """What landmarks leave: of all rows in sum, and of a few that stand for them."""

    landmarks: Landmarks
    work: Work
    trace: float  # tr(K − K̃)
    rounding: float  # rows with less left than rounding count as 0: no more in all
    rows: Winners  # drawn by what is left of them
    weights: np.ndarray  # how much each of them counts for

    @classmethod
    def at(cls, landmarks: Landmarks, work: Work, turn: int) -> Look:
        """By one pass over all rows."""
        source, factor = work.source, landmarks.factor
        size = max(LEAST_LOOKED_AT, len(landmarks))
        # The level sets it apart from other rows that errors are estimated on.
        race = Race(work.seed, Purpose.CHECK, level=1, round=turn, most=size + 1)
        ready = prepare(landmarks.columns(), source, factor.root, ledger=work.ledger)
        winners, (trace, _) = race_by_residual(
            ready,
            source,
            ByResidual(),
            race,
            engine=work.engine,
            name=f"what {len(landmarks)} landmarks leave",
        )
        unit = least_residual(ready.columns.dtype)
        rounding = unit * factor.scale * source.total_weight
        rows, weights = _weighted(winners.in_order(), size, float(trace))
        return cls(landmarks, work, float(trace), rounding, rows, weights)

    def norm_and_missing(self, ridge: float) -> tuple[float, Winners]:
        """The norm as the rows drawn tell it, and those that bring it below λ."""
        left, places = self._left(), list[int]()
        told, top = _top(left)
        norm, goal = told, ridge if told <= ridge else SURELY * ridge
        while norm > goal and len(places) < len(left):
            # What taking a row removes of the top direction.
            diagonal, gains = left.diagonal(), np.zeros(len(left))
            np.divide(top**2, diagonal, out=gains, where=diagonal > 0)
            place = int(np.argmax(gains))
            if gains[place] <= 0:  # rounding
                break
            places.append(place)
            column = left[:, place] / np.sqrt(left[place, place])
            left -= np.outer(column, column)
            left[place], left[:, place] = 0.0, 0.0
            norm, top = _top(left)
        return told, self.rows.at(np.array(places, dtype=np.intp))

    def _left(self) -> np.ndarray:
        """(q, q): what is left of K at the rows drawn, as they count."""
        kernel, ledger, q = self.work.kernel, self.work.ledger, len(self.rows)
        X = self.rows.rows_of(self.work.source)
        Z = self.landmarks.columns(wide=True).host(X) @ self.landmarks.factor.root
        left = kernel.gram(X) - Z @ Z.T
        ledger.evaluated(kernel.gram_evaluations(q) + q * len(self.landmarks))
        half = np.sqrt(self.weights)
        left *= half[:, None]
        left *= half
        check_finite(left)
        # Nothing but rounding is left of a landmark, which may still have been drawn.
        assert self.landmarks.indices is not None
        own = np.isin(self.rows.numbers, self.landmarks.indices)
        left[own], left[:, own] = 0.0, 0.0
        return left


def _weighted(winners: Winners, size: int, trace: float) -> tuple[Winners, np.ndarray]:
    """The first `size` to arrive, and how much each of them counts for.

    Scaled to what is left of all rows, which is known: the arrival of the first that
    lost would tell it less well.
    """
    limit = float(winners.arrival[size]) if len(winners) > size else np.inf
    winners = winners.at(np.arange(min(size, len(winners))))
    p = race_probabilities(winners.chances, limit)
    told = float(np.sum(winners.chances / p))
    scale = trace / told if told > 0 else 1.0
    return winners, winners.weights * scale / p


def _top(A: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest eigenvalue and its vector; 0 where none is positive."""
    if len(A) <= 32:
        values, vectors = np.linalg.eigh(A)
        return max(0.0, float(values[-1])), vectors[:, -1]
    if not A.any():
        return 0.0, np.zeros(len(A))
    start = np.random.default_rng(0).standard_normal(len(A))
    values, vectors = eigsh(A, k=1, which="LA", tol=TOLERANCE, v0=start)
    return max(0.0, float(values[0])), vectors[:, 0]
