"""Recursive ridge-leverage-score sampling: Algorithms 2 and 3, and the faster variant.

With `ridge` the number of landmarks follows from λ (Algorithm 2), without it λ follows
from the number (Algorithm 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Guarantee, Landmarks
from ..sources import Source
from .draws import all_rows, as_landmarks, at_most_rows, exactly, kept_by_coins
from .options import check_delta, check_ridge, uses_theory
from .recursion import Climbed, IndefiniteKernelError, climb
from .rules import (
    PracticalRidge,
    PracticalSize,
    TheoryRidge,
    TheorySize,
    halvings,
    least_theory_size,
)
from .uniform import uniform_instead

#: δ where the theory's constants are asked for without one.
DEFAULT_DELTA = 0.01


@dataclass(frozen=True)
class Recursive:
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
        most a cap. None: λ follows from `n_landmarks`.
    """

    constants: str | None = None
    delta: float | None = None
    ridge: float | None = None

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        check_delta(self.delta, 1 / 32, "1/32")
        uses_theory(self.constants, self.delta)

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        theory = uses_theory(self.constants, self.delta)
        delta = self.delta or DEFAULT_DELTA
        # One BLAS thread for the small algebra too: the number of threads must not
        # change a single bit of what decides.
        with single_threaded_blas():
            if self.ridge is not None:
                rule: PracticalRidge | TheoryRidge = (
                    TheoryRidge(self.ridge, delta)
                    if theory
                    else PracticalRidge(self.ridge, n_landmarks)
                )
                return by_ridge(kernel, source, rule, n_landmarks, seed, engine)
            assert n_landmarks is not None
            if theory:
                proven = TheorySize(n_landmarks, delta)
                return by_size_theory(kernel, source, proven, seed, engine)
            return by_size(
                kernel, source, n_landmarks, n_landmarks, seed, engine, "recursive"
            )


@dataclass(frozen=True)
class Accelerated:
    """Algorithm 3 with ⌈√((ns + s³)/4n)⌉ rows on the levels below the top.

    Choosing then costs about as much as evaluating the landmarks' columns once. A
    heuristic: no theorem, and practical constants only.
    """

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        assert n_landmarks is not None
        n, s = source.n_rows, n_landmarks
        level_size = min(s, math.ceil(math.sqrt((n * s + s**3) / (4 * n))))
        with single_threaded_blas():
            return by_size(kernel, source, s, level_size, seed, engine, "accelerated")


def by_size(
    kernel: Kernel,
    source: Source,
    n_landmarks: int,
    level_size: int,
    seed: int,
    engine: Engine,
    name: str,
) -> Landmarks:
    """Algorithm 3, practical: exactly `n_landmarks` rows, drawn ∝ min(1, l̃)."""
    if n_landmarks >= source.n_rows:
        return all_rows(kernel, source, name)
    try:
        rule = PracticalSize(level_size)
        climbed = climb(kernel, source, rule, seed=seed, engine=engine)
    except IndefiniteKernelError as found:
        spent = found.n_evaluations
        return uniform_instead(kernel, source, n_landmarks, seed, name, spent)
    assert climbed.top is not None
    drawn = exactly(n_landmarks, np.minimum(1.0, climbed.top.scores), seed)
    return as_landmarks(drawn, kernel, source, name, **_facts(climbed))


def by_size_theory(
    kernel: Kernel, source: Source, rule: TheorySize, seed: int, engine: Engine
) -> Landmarks:
    """Algorithm 3 with the proof's constants: at most 2s rows, a random number."""
    name, n = "recursive (theory)", source.n_rows
    if rule.sample_size >= n:
        return all_rows(kernel, source, name)
    # Coins may need one level more than halves do.
    least = least_theory_size(rule.delta, halvings(n, rule.sample_size) + 1)
    if rule.sample_size < least:
        raise ValueError(
            f"n_landmarks={rule.sample_size} is too few for the theory's constants "
            f"with delta={rule.delta}: for {n} rows the proof of Algorithm 3 needs at "
            f"least {least}. Use more landmarks, a larger delta, ridge=..., or "
            "constants='practical'."
        )
    try:
        climbed = climb(kernel, source, rule, seed=seed, engine=engine)
    except IndefiniteKernelError as found:
        size, spent = rule.sample_size, found.n_evaluations
        return uniform_instead(kernel, source, size, seed, name, spent)
    assert climbed.top is not None
    kept = kept_by_coins(climbed.top.probabilities, seed)
    # In the proof λ' ≤ λ̃, and the rows are drawn by overestimates for λ'.
    weighted = source.weights is not None
    guarantee = Guarantee(climbed.top.ridge, 1 - 3 * rule.delta, weighted)
    return as_landmarks(
        kept, kernel, source, name, guarantee=guarantee, **_facts(climbed)
    )


def by_ridge(
    kernel: Kernel,
    source: Source,
    rule: PracticalRidge | TheoryRidge,
    largest: int | None,
    seed: int,
    engine: Engine,
) -> Landmarks:
    """Algorithm 2: as many rows as λ asks for, at most `largest`."""
    theory = isinstance(rule, TheoryRidge)
    name = "recursive (theory)" if theory else "recursive"
    n = source.n_rows
    try:
        climbed = climb(kernel, source, rule, seed=seed, engine=engine)
    except IndefiniteKernelError as found:
        if largest is not None:
            spent = found.n_evaluations
            return uniform_instead(kernel, source, largest, seed, name, spent)
        raise ValueError(
            f"ridge={rule.fixed_ridge} has no meaning for {kernel}, which is not "
            "positive semi-definite; give n_landmarks instead."
        ) from None
    top = climbed.top
    p = top.probabilities if top else np.ones(n)
    d_eff = float(top.scores.sum()) if top else np.inf
    kept = at_most_rows(kept_by_coins(p, seed, d_eff), p, largest, seed)
    facts = _facts(climbed) if top else {"ridge": rule.fixed_ridge}
    if (
        isinstance(rule, TheoryRidge)
        and not kept.n_wanted
        and facts["ridge"] <= rule.fixed_ridge
    ):
        weighted = source.weights is not None
        proven = Guarantee(rule.fixed_ridge, 1 - 3 * rule.delta, weighted)
        facts["guarantee"] = proven
    return as_landmarks(kept, kernel, source, name, **facts)


def _facts(climbed: Climbed) -> dict:
    top = climbed.top
    assert top is not None
    return {
        "ridge": top.ridge,
        "effective_dimension": float(np.minimum(1.0, top.scores).sum()),
        "n_kernel_evaluations": climbed.n_evaluations,
        "notes": climbed.notes,
    }
