"""Recursive ridge-leverage-score sampling (Musco & Musco 2017, Algorithms 2 and 3).

Level l holds about n/2ˡ rows. The sample of a level scores the rows of the next
larger one, from which a weighted sample is drawn; at the top these are the
landmarks. One pass per level, nothing of length n is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._precision import entry_roundoff, is_indefinite
from .._random import Purpose, uniform_row_sample, uniforms_at
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.residuals import (
    ResidualPass,
    prepare_residuals,
    residuals_to_scores,
    ridge_inverse_root,
    sampled_leverage_scores,
    weighted_gram,
)
from ..sources import Source
from .base import (
    FixedSize,
    IndefiniteKernelError,
    Sampler,
    SamplingProblem,
    SpectralTolerance,
    StoppingRule,
)
from .leverage import GuaranteedSampler, make_guarantee
from .recursive_rules import (
    LevelMembership,
    PracticalRidge,
    PracticalSize,
    SamplingRule,
    ScoreTotals,
    TheoryRidge,
    TheorySize,
    min_theory_size,
    n_halvings,
)
from .spectral_check import ensure_spectral_error
from .weighted_sampling import (
    BernoulliSubset,
    KeyedSampler,
    NumberedSubset,
    SampledRows,
    WeightedSample,
    bernoulli_from_keys,
    fixed_size_from_keys,
    sample_all_rows,
    sample_by_residual,
)


@dataclass(frozen=True, kw_only=True)
class LevelSample(SampledRows):
    """The weighted sample of a level, with the weights of the rows themselves."""

    row_weights: np.ndarray

    @property
    def column_weights(self) -> np.ndarray:
        """The entries of S for the matrix W^½KW^½."""
        return self.weights * np.sqrt(self.row_weights)


@dataclass(frozen=True)
class ScoreWeights:
    """Sampling weights of rows by their scores: the rule's, or min(1, l̃) for None."""

    rule: SamplingRule | None
    level: int
    ridge: float

    def __call__(
        self, residual: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = residuals_to_scores(residual, weights, self.ridge)
        if self.rule is None:
            sampling_weights = np.minimum(1.0, scores)
        else:
            sampling_weights = self.rule.sampling_weights(scores, self.level)
        totals = ScoreTotals.from_scores(scores, sampling_weights)
        return sampling_weights, np.array(
            [totals.scores, totals.capped_scores, totals.sampling_weights]
        )


@dataclass(frozen=True)
class Level:
    """One level: its rows, the sample below that scores them, λ, and the pass."""

    problem: SamplingProblem
    rule: SamplingRule
    level: int
    rows: Source
    sample: LevelSample
    ridge: float
    residual_pass: ResidualPass

    @property
    def name(self) -> str:
        """What its pass is called."""
        return f"scores, level {self.level}"

    @cached_property
    def scores(self) -> np.ndarray:
        """l̃ of every row: a vector, for levels of few rows."""
        engine, name = self.problem.engine, self.name
        return sampled_leverage_scores(
            self.residual_pass, self.rows, self.ridge, engine=engine, name=name
        )

    @property
    def probabilities(self) -> np.ndarray:
        """Each row's to be kept."""
        return self.rule.probabilities(self.scores, self.level)

    def sample_bernoulli(self) -> tuple[WeightedSample, ScoreTotals, float]:
        """A Bernoulli sample with probabilities min(1, c·weight), sums, and c.

        They are in no order; rows with keys of c or more may be among them.
        """
        sampler = KeyedSampler(
            self.problem.seed,
            Purpose.KEEP,
            # Every level has random numbers of its own: reused, 1/√p would be
            # wrong.
            self.level,
            bernoulli=True,
            max_rows=self.rule.max_kept(self.level),
            max_key=self.rule.max_weight_factor(self.rows.n_rows, self.level),
        )
        sample, totals = self._sample(self.rule, sampler)
        return sample, totals, self.rule.weight_factor(totals, self.level)

    def sample_fixed_size(self, size: int) -> tuple[WeightedSample, ScoreTotals]:
        """`size` rows drawn one after the other ∝ min(1, l̃), and the next one.

        There are fewer where that many have no score.
        """
        sampler = KeyedSampler(self.problem.seed, Purpose.DRAW, max_rows=size + 1)
        return self._sample(None, sampler)

    def _sample(
        self, rule: SamplingRule | None, sampler: KeyedSampler
    ) -> tuple[WeightedSample, ScoreTotals]:
        sample, sums = sample_by_residual(
            self.residual_pass,
            self.rows,
            ScoreWeights(rule, self.level, self.ridge),
            sampler,
            engine=self.problem.engine,
            name=self.name,
        )
        return sample, ScoreTotals(*sums)


def run_recursion(problem: SamplingProblem, rule: SamplingRule) -> Level | None:
    """The last level of the recursion, not yet passed over.

    None where there is nothing to halve: then every row is a landmark.
    """
    top, float64_levels = None, []
    for top in iterate_levels(problem, rule):
        float64_levels += [str(top.level)] if top.residual_pass.widened else []
    if float64_levels:
        problem.ledger.note(f"float64 scores on level {', '.join(float64_levels)}")
    return top


def iterate_levels(problem: SamplingProblem, rule: SamplingRule) -> Iterator[Level]:
    """All levels from the smallest to level 0, the whole data set."""
    if problem.kernel.traits.psd is False:
        raise IndefiniteKernelError
    membership = LevelMembership(problem.source, problem.seed)
    n_levels = rule.n_levels(membership)
    if n_levels == 0:
        return
    members = [rule.members(membership, level) for level in range(1, n_levels + 1)]
    del membership
    sources = _level_sources(problem, members)
    base = sources[-1]
    sample = LevelSample(
        members[-1],  # type: ignore[arg-type]  # the smallest level is always listed
        np.ones(base.n_rows),
        points=base.take(np.arange(base.n_rows)),
        row_weights=base.weights,
    )
    for level in range(n_levels - 1, -1, -1):
        rows = sources[level - 1] if level else problem.source
        scored_level = _make_level(problem, rows, sample, rule, level)
        yield scored_level
        if level:
            sample = _sample_level(scored_level)


def _level_sources(
    problem: SamplingProblem, members: list[np.ndarray | float]
) -> list[Source]:
    """The levels as sources; rows that must be fetched are fetched once for all."""
    source, sources, listed = problem.source, list[Source](), None
    for rows in members:
        if not isinstance(rows, np.ndarray):
            stream = problem.seed, Purpose.MEMBERSHIP
            sources.append(BernoulliSubset(source, rows, *stream))
            continue
        listed = problem.fetch(rows) if listed is None else listed.subset(rows)
        sources.append(listed)
    return sources


def _make_level(
    problem: SamplingProblem,
    rows: Source,
    sample: LevelSample,
    rule: SamplingRule,
    level: int,
) -> Level:
    kernel = problem.kernel
    K = problem.gram(sample.points) if len(sample.indices) else np.zeros((0, 0))
    SKS = weighted_gram(K, sample.column_weights)
    check_finite(SKS)
    # Where the kernel makes no promise, look before its scores are believed.
    if kernel.traits.psd is None:
        rounding = entry_roundoff(K, kernel.dtype(sample.points))
        if is_indefinite(np.linalg.eigvalsh(SKS), rounding):
            raise IndefiniteKernelError
    ridge = rule.ridge(SKS, level)
    B = ridge_inverse_root(SKS, sample.column_weights, ridge)
    columns = CrossKernel(kernel, sample.points)
    prepared = prepare_residuals(columns, rows, B, ledger=problem.ledger)
    return Level(problem, rule, level, rows, sample, ridge, prepared)


def _sample_level(level: Level) -> LevelSample:
    """A Bernoulli sample of the level; a uniform one where that is too small."""
    sample, totals, weight_factor = level.sample_bernoulli()
    selected = sample.below(weight_factor)
    p = np.minimum(1.0, weight_factor * selected.sampling_weights)
    min_size, n_uniform = level.rule.min_sample()
    if len(selected) < min(min_size, int(totals.n_rows)):
        return _sample_level_uniformly(level, n_uniform, int(totals.n_rows))
    order = np.argsort(selected.numbers)
    selected, p = selected.take(order), p[order]
    points = selected.points_from(level.rows)
    return LevelSample(selected.numbers, p, points=points, row_weights=selected.weights)


def _sample_level_uniformly(level: Level, size: int, n_rows: int) -> LevelSample:
    """The rows of a level with the smallest random numbers."""
    rows, seed = level.rows, level.problem.seed
    size = min(size, n_rows)
    if isinstance(rows, NumberedSubset):
        uniforms = uniforms_at(seed, Purpose.KEEP, rows.row_numbers, level.level)
        numbers = np.sort(rows.row_numbers[np.argsort(uniforms, kind="stable")[:size]])
        row_weights = rows.weights_of(np.searchsorted(rows.row_numbers, numbers))
    else:
        # The rows with the smallest numbers of their own belong to every level.
        source = level.problem.source
        first = uniform_row_sample(seed, Purpose.MEMBERSHIP, source.n_rows, size)
        numbers = np.sort(first)
        row_weights = source.weights_of(numbers)
    p, points = np.full(size, size / n_rows), rows.take_numbered(numbers)
    return LevelSample(numbers, p, points=points, row_weights=row_weights)


@dataclass(frozen=True)
class Recursive(GuaranteedSampler):
    """Recursive ridge leverage score sampling, Algorithms 2 and 3 of the paper.

    Parameters
    ----------
    constants : {"practical", "theory"} or None
        None means theory if `delta` is given, practical otherwise. The theory's
        constants come with a guarantee and select many more landmarks.
    delta : float or None
        The guarantee fails with probability at most 3·delta. Below 1/32.
    max_spectral_error : float or None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`;
        `n_landmarks` is then an upper limit. With practical constants the bound is
        checked by one more pass, and landmarks are added if needed. None derives λ from
        `n_landmarks`.

    See Also
    --------
    PooledGreedy : The default sampler: smaller error, no guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> proven = samplers.Recursive(delta=0.01)
    >>> options = {"gamma": 0.1, "max_spectral_error": 20.0, "random_state": 0}
    >>> print(select_landmarks(X, sampler=proven, **options).guarantee)
    ‖K − K̃‖₂ ≤ 20 with probability ≥ 0.97
    """

    name = "recursive"
    inverse_max_delta = 32

    def choose(self, problem: SamplingProblem, goal: StoppingRule) -> Landmarks:
        delta = self.proven_delta
        if isinstance(goal, SpectralTolerance):
            ridge, cap = goal.max_spectral_error, goal.at_most
            rule: PracticalRidge | TheoryRidge = PracticalRidge(ridge, cap)
            if delta is not None:
                rule = TheoryRidge(ridge, delta)
            return select_by_ridge(problem, rule, cap, self.label)
        assert isinstance(goal, FixedSize)
        size = goal.n_landmarks
        if delta is None:
            return select_by_size(problem, size, PracticalSize(size), self.label)
        return select_by_size_theory(problem, TheorySize(size, delta), self.label)


@dataclass(frozen=True)
class Accelerated(Sampler):
    """Algorithm 3 with smaller samples below the top level (section 5.2.1).

    Levels below the top have ⌈√((ns + s³)/4n)⌉ rows; the paper has no 4, the authors'
    program does. The selection costs about as much as evaluating the landmarks' columns
    once. There is no guarantee, and it may miss small clusters.

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

    def choose(self, problem: SamplingProblem, goal: FixedSize) -> Landmarks:
        s = goal.n_landmarks
        rule = PracticalSize(accelerated_level_size(problem.source.n_rows, s))
        return select_by_size(problem, s, rule, self.label)


def accelerated_level_size(n: int, s: int) -> int:
    """⌈√((ns + s³)/4n)⌉, at most s."""
    return min(s, math.ceil(math.sqrt((n * s + s**3) / (4 * n))))


def select_by_size(
    problem: SamplingProblem, n_landmarks: int, rule: PracticalSize, name: str
) -> Landmarks:
    """Algorithm 3, practical: exactly `n_landmarks` rows, drawn ∝ min(1, l̃)."""
    top = run_recursion(problem, rule)
    assert top is not None  # practical levels halve at least once
    weighted_sample, totals = top.sample_fixed_size(n_landmarks)
    sample = fixed_size_from_keys(
        weighted_sample, n_landmarks, problem.source.n_rows, problem.seed
    )
    return problem.landmarks(sample, name, **_landmark_fields(top, totals))


def select_by_size_theory(
    problem: SamplingProblem, rule: TheorySize, name: str
) -> Landmarks:
    """Algorithm 3 with the proof's constants: at most 2s rows, a random number."""
    n = problem.source.n_rows
    # Coins may need one level more than halves do.
    min_size = min_theory_size(rule.delta, n_halvings(n, rule.sample_size) + 1)
    if rule.sample_size < min_size:
        raise ValueError(
            f"n_landmarks={rule.sample_size} is too few for the theory's constants "
            f"with delta={rule.delta}: for {n} rows the proof of Algorithm 3 needs at "
            f"least {min_size}. Use more landmarks, a larger delta, "
            "max_spectral_error=..., or constants='practical'."
        )
    top = run_recursion(problem, rule)
    assert top is not None  # there are more rows than landmarks
    weighted_sample, totals, weight_factor = top.sample_bernoulli()
    sample = bernoulli_from_keys(weighted_sample, weight_factor, n, problem.seed)
    # In the proof λ' ≤ λ̃, and the rows are drawn by overestimates for λ'.
    guarantee = make_guarantee(problem, top.ridge, 1 - 3 * rule.delta, "Algorithm 3")
    fields = _landmark_fields(top, totals) | {"guarantee": guarantee}
    return problem.landmarks(sample, name, **fields)


def select_by_ridge(
    problem: SamplingProblem,
    rule: PracticalRidge | TheoryRidge,
    max_landmarks: int | None,
    name: str,
) -> Landmarks:
    """Algorithm 2: as many rows as λ asks for, at most `largest`."""
    needs_check = isinstance(rule, PracticalRidge)
    top, n = run_recursion(problem, rule), problem.source.n_rows
    if top is None:  # so few rows that all are landmarks
        sample = sample_all_rows(n, max_landmarks, problem.seed)
        fields: dict[str, Any] = {"ridge": rule.fixed_ridge}
    else:
        weighted_sample, totals, weight_factor = top.sample_bernoulli()
        cap = max_landmarks, totals.scores
        sample = bernoulli_from_keys(
            weighted_sample, weight_factor, n, problem.seed, *cap
        )
        fields = _landmark_fields(top, totals)
    is_guaranteed = not sample.n_requested and fields["ridge"] <= rule.fixed_ridge
    if isinstance(rule, TheoryRidge) and is_guaranteed:
        probability = 1 - 3 * rule.delta
        fields["guarantee"] = make_guarantee(
            problem, rule.fixed_ridge, probability, "Algorithm 2"
        )
    landmarks = problem.landmarks(sample, name, **fields)
    if needs_check and not sample.n_requested and top is not None:
        return ensure_spectral_error(
            rule.fixed_ridge, landmarks, problem, max_landmarks
        )
    return landmarks


def _landmark_fields(top: Level, totals: ScoreTotals) -> dict[str, Any]:
    return {"ridge": top.ridge, "effective_dimension": totals.capped_scores}
