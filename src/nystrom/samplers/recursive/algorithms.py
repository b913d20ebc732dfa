"""Recursive ridge-leverage-score sampling: Algorithms 2 and 3, and the faster variant.

With `ridge` the number of landmarks follows from λ (Algorithm 2), without it λ follows
from the number (Algorithm 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...engines.progress import parts
from ...landmarks import Landmarks
from ..choosing import Sampler, Work
from ..draws import all_drawn, as_landmarks, drawn_by_coins, drawn_first
from ..enough import enough_for
from ..goal import Goal, Ridge, Size
from ..theory import WithTheory, promised
from .levels import Level, climb
from .rules import (
    PracticalRidge,
    PracticalSize,
    TheoryRidge,
    TheorySize,
    Totals,
    halvings,
    least_theory_size,
)


@dataclass(frozen=True)
class Recursive(WithTheory):
    """Recursive RLS-Nyström sampling (Algorithms 2 and 3).

    Parameters
    ----------
    constants : {"practical", "theory"} or None
        None: theory if `delta` is given, else practical. Theory's constants come with a
        guarantee and take many more landmarks.
    delta : float or None
        The guarantee fails with probability at most 3·delta; below 1/32.
    ridge : float or None
        λ > 0: choose as many landmarks as ‖K − K̃‖₂ ≤ λ takes; `n_landmarks` is then at
        most a cap. With practical constants that is estimated by a pass over all rows,
        and landmarks are added where they are not enough. None: λ follows from
        `n_landmarks`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> proven = samplers.Recursive(delta=0.01)
    >>> options = {"gamma": 0.1, "ridge": 20.0, "random_state": 0}
    >>> print(select_landmarks(X, sampler=proven, **options).guarantee)
    ‖K − K̃‖₂ ≤ 20 with probability ≥ 0.97
    """

    name = "recursive"
    delta_below = 32

    def choose(self, work: Work, goal: Goal) -> Landmarks:
        delta = self.proven_delta
        if isinstance(goal, Ridge):
            if delta is None:
                rule = PracticalRidge(goal.ridge, goal.at_most)
                return by_ridge(work, rule, goal.at_most, self.label)
            return by_ridge(
                work, TheoryRidge(goal.ridge, delta), goal.at_most, self.label
            )
        assert isinstance(goal, Size)
        if delta is None:
            n = goal.n_landmarks
            return by_size(work, n, PracticalSize(n), self.label)
        return by_size_theory(work, TheorySize(goal.n_landmarks, delta), self.label)


@dataclass(frozen=True)
class Accelerated(Sampler):
    """Algorithm 3 with ⌈√((ns + s³)/4n)⌉ rows on the levels below the top.

    Section 5.2.1 has no 4; the authors' program does.

    Choosing then costs about as much as evaluating the landmarks' columns once. A
    heuristic: no theorem, and practical constants only.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Accelerated(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'accelerated')
    """

    name = "accelerated"

    def choose(self, work: Work, goal: Size) -> Landmarks:
        n, s = work.source.n_rows, goal.n_landmarks
        level_size = min(s, math.ceil(math.sqrt((n * s + s**3) / (4 * n))))
        return by_size(work, s, PracticalSize(level_size), self.label)


def by_size(work: Work, n_landmarks: int, rule: PracticalSize, name: str) -> Landmarks:
    """Algorithm 3, practical: exactly `n_landmarks` rows, drawn ∝ min(1, l̃)."""
    top = climb(work, rule)
    assert top is not None  # practical levels halve at least once
    winners, totals = top.first(n_landmarks)
    drawn = drawn_first(winners, n_landmarks, work.source.n_rows, work.seed)
    return as_landmarks(drawn, work.kernel, work.source, name, **_facts(top, totals))


def by_size_theory(work: Work, rule: TheorySize, name: str) -> Landmarks:
    """Algorithm 3 with the proof's constants: at most 2s rows, a random number."""
    n = work.source.n_rows
    # Coins may need one level more than halves do.
    least = least_theory_size(rule.delta, halvings(n, rule.sample_size) + 1)
    if rule.sample_size < least:
        raise ValueError(
            f"n_landmarks={rule.sample_size} is too few for the theory's constants "
            f"with delta={rule.delta}: for {n} rows the proof of Algorithm 3 needs at "
            f"least {least}. Use more landmarks, a larger delta, ridge=..., or "
            "constants='practical'."
        )
    top = climb(work, rule)
    assert top is not None  # there are more rows than landmarks
    winners, totals, c = top.coins()
    kept = drawn_by_coins(winners, c, n, work.seed)
    # In the proof λ' ≤ λ̃, and the rows are drawn by overestimates for λ'.
    guarantee = promised(work, top.ridge, 1 - 3 * rule.delta, "Algorithm 3")
    facts = _facts(top, totals) | {"guarantee": guarantee}
    return as_landmarks(kept, work.kernel, work.source, name, **facts)


def by_ridge(
    work: Work, rule: PracticalRidge | TheoryRidge, largest: int | None, name: str
) -> Landmarks:
    """Algorithm 2: as many rows as λ asks for, at most `largest`."""
    looks = isinstance(rule, PracticalRidge)
    climbing, looking = parts(work.engine.progress, 1.0, float(looks))
    with climbing:
        top = climb(work, rule)
        if top is None:  # so few rows that all are taken
            kept = all_drawn(work.source.n_rows, largest, work.seed)
            facts: dict[str, Any] = {"ridge": rule.fixed_ridge}
        else:
            winners, totals, c = top.coins()
            n = work.source.n_rows
            kept = drawn_by_coins(winners, c, n, work.seed, largest, totals.scores)
            facts = _facts(top, totals)
    held = not kept.n_wanted and facts["ridge"] <= rule.fixed_ridge
    if isinstance(rule, TheoryRidge) and held:
        probability = 1 - 3 * rule.delta
        facts["guarantee"] = promised(
            work, rule.fixed_ridge, probability, "Algorithm 2"
        )
    landmarks = as_landmarks(kept, work.kernel, work.source, name, **facts)
    if looks and not kept.n_wanted and top is not None:
        with looking:
            return enough_for(rule.fixed_ridge, landmarks, work, largest)
    return landmarks


def _facts(top: Level, totals: Totals) -> dict[str, Any]:
    return {"ridge": top.ridge, "effective_dimension": totals.capped}
