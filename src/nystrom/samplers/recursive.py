"""Recursive ridge-leverage-score sampling (Musco & Musco 2017, Algorithms 2 and 3).

Level l holds about n/2ˡ rows. The sample of a level scores the rows of the next
larger one, from which a weighted sample is drawn; at the top these are the
landmarks. One pass per level, nothing of length n is kept.

A `SamplingRule` has the constants. `Theory…` follows the paper: Bernoulli halving, δ/3
per level, factors 3/2, 5 and 16·log. `Practical…` follows the authors' program: halves
of fixed size, natural logarithms, factor 1, q = log s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._precision import EPS64, entry_roundoff, is_indefinite, min_cholesky_ridge
from .._random import Purpose, Stream
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.residuals import (
    ResidualPass,
    prepare_residuals,
    residuals_to_scores,
    ridge_inverse_root,
    tail_ridge,
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
from .guarantees import GuaranteedSampler, ensure_spectral_error, make_guarantee
from .weighted_sampling import (
    BernoulliSubset,
    KeyedSampler,
    LevelMembership,
    NumberedSubset,
    SampledRows,
    WeightedSample,
    bernoulli_from_keys,
    fixed_size_from_keys,
    sample_all_rows,
)

#: The c of Algorithm 3 that the sketch of its proof asks for: 5·64·2k·log(2k/δ) ≤ s.
#: Counted as in the proof of Algorithm 2 it is 1280: docs/paper.md.
THEORY_C = 640
#: Oversampling of Algorithm 1; the proofs need 16.
OVERSAMPLING = 16.0
#: Base case of Algorithm 2: m ≤ 192·log(1/δ).
BASE_CASE_ROWS = 192
#: In practice a level of so few rows is used whole, also where s_l is less: it costs
#: nothing, and scores from more rows are better ones.
MIN_BASE_ROWS = 64
#: How many times more rows than are allowed are counted, to say how many λ asks for.
COUNTED_CAP_FACTOR = 64


class ScoreTotals(NamedTuple):
    """Sums over the rows of a level."""

    scores: float  # Σ l̃
    capped_scores: float  # Σ min(1, l̃)
    sampling_weights: float  # Σ of the rule's sampling weights
    n_rows: float

    @classmethod
    def from_scores(
        cls, scores: np.ndarray, sampling_weights: np.ndarray
    ) -> ScoreTotals:
        """Those of some rows."""
        capped = float(np.minimum(1.0, scores).sum())
        score_sum, weight_sum = float(scores.sum()), float(sampling_weights.sum())
        return cls(score_sum, capped, weight_sum, float(len(scores)))


class SamplingRule(ABC):
    """The constants of one variant of the algorithm.

    A row of a level is kept with probability min(1, c·weight). Its weight follows from
    its own score; c may need the sum of all, which is known when the pass is over.
    """

    bernoulli_levels: ClassVar[bool] = False
    min_levels: ClassVar[int] = 0

    @abstractmethod
    def max_base_rows(self, level: int) -> float:
        """A level of so few rows is used whole."""

    def n_levels(self, membership: LevelMembership) -> int:
        """Halvings until a level is used whole; with coins at most 1075."""
        level = self.min_levels
        while self._n_members(membership, level) > self.max_base_rows(level):
            level += 1
        return level

    def _n_members(self, membership: LevelMembership, level: int) -> int:
        if self.bernoulli_levels:
            return membership.count_below(0.5**level)
        return -(-membership.n_rows // 2**level)

    def members(self, membership: LevelMembership, level: int) -> np.ndarray | float:
        """The rows of a level, nested in those of larger ones.

        In the paper each belongs to level l with probability 2⁻ˡ. In practice these are
        the ⌈n/2ˡ⌉ with the smallest u: coins could leave none.
        """
        if self.bernoulli_levels:
            return membership.below(0.5**level)
        return membership.first_rows(self._n_members(membership, level))

    @abstractmethod
    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ for the scores of a level."""

    @abstractmethod
    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The sampling weight of each row."""

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """c, by which all sampling weights are multiplied."""
        return 1.0

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """What c can be at most."""
        return 1.0

    def max_kept(self, level: int) -> int | None:
        """How many rows of a level can be kept, where that is known beforehand."""
        return None

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The probability of each row of a level to be kept."""
        sampling_weights = self.sampling_weights(scores, level)
        c = self.weight_factor(ScoreTotals.from_scores(scores, sampling_weights), level)
        return np.minimum(1.0, c * sampling_weights)

    def min_sample(self) -> tuple[int, int]:
        """The fewest rows to go on with, and how many to draw uniformly below that."""
        return 0, 0  # the Bernoulli sample decides


@dataclass(frozen=True)
class PracticalSize(SamplingRule):
    """Algorithm 3 in practice: s_l rows per level, λ from rank k ≈ s_l/(4·log s_l)."""

    sample_size: int  # s_l
    min_levels: ClassVar[int] = 1

    @property
    def q(self) -> float:
        """Oversampling; s = 1 would make it 0."""
        return math.log(max(2, self.sample_size))

    @property
    def k(self) -> int:
        """The rank whose tail makes λ."""
        return math.ceil(self.sample_size / (4 * self.q))

    def max_base_rows(self, level: int) -> float:
        """s_l rows, or 64."""
        return max(self.sample_size, MIN_BASE_ROWS)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k)

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, q·l̃), before `weight_factor` limits their sum."""
        return np.minimum(1.0, self.q * scores)

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """1, or less where the weights add up to more than 2·s_l."""
        return _capped_factor(2 * self.sample_size, 1.0, totals)

    def max_kept(self, level: int) -> int | None:
        """Twice s_l, and what chance may add."""
        return _count_bound(2 * self.sample_size)

    def min_sample(self) -> tuple[int, int]:
        """k + 1 rows, without which there is no tail; else s_l uniform ones."""
        return self.k + 1, self.sample_size


@dataclass(frozen=True)
class TheorySize(SamplingRule):
    """Algorithm 3 with the constants of its proof."""

    sample_size: int
    delta: float
    oversampling: float = OVERSAMPLING
    bernoulli_levels: ClassVar[bool] = True

    def max_base_rows(self, level: int) -> float:
        """s rows."""
        return self.sample_size

    def k(self, level: int) -> int:
        """The largest k with c·k·log(2k/δ_l) ≤ s."""
        return theory_rank(self.sample_size, self.delta / 3**level)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ̃ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k(level))

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 16·(5·l̃)·log(2k/δ_l))."""
        log = math.log(2 * self.k(level) * 3**level / self.delta)
        return np.minimum(1.0, self.oversampling * 5 * scores * log)


def theory_rank(sample_size: int, delta: float) -> int:
    """The largest k with c·k·log(2k/δ) ≤ s; 0 where even k = 1 is too much."""
    k = 0
    while THEORY_C * (k + 1) * math.log(2 * (k + 1) / delta) <= sample_size:
        k += 1
    return k


def min_theory_size(delta: float, n_levels: int) -> int:
    """The smallest s for which k ≥ 1 on every level."""
    return math.ceil(THEORY_C * math.log(2 * 3**n_levels / delta))


@dataclass(frozen=True)
class PracticalRidge(SamplingRule):
    """Algorithm 2 in practice: λ given, p = min(1, 2·l̃·max(1, log Σl̃)).

    Without the 2, ‖K − K̃‖₂ exceeds λ in up to a third of the seeds on real data.
    """

    fixed_ridge: float
    max_landmarks: int | None = None  # the user's cap on the number of landmarks

    def max_base_rows(self, level: int) -> float:
        """The base case, whatever δ would be."""
        return BASE_CASE_ROWS

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, min_cholesky_ridge(SKS))

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """2·l̃."""
        return 2 * scores

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """max(1, log Σl̃); less where a level would keep more than twice the cap."""
        log = max(1.0, math.log(max(1.0, totals.scores)))
        if self.max_landmarks and level:
            return _capped_factor(2 * self.max_landmarks, log, totals)
        return log

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return max(1.0, math.log(n_rows / EPS64))

    def max_kept(self, level: int) -> int | None:
        """Twice the cap, and what chance may add; at the top many more are counted."""
        if self.max_landmarks is None:
            return None
        return _count_bound(
            2 * self.max_landmarks if level else COUNTED_CAP_FACTOR * self.max_landmarks
        )

    def min_sample(self) -> tuple[int, int]:
        """One row."""
        return 1, 1


@dataclass(frozen=True)
class TheoryRidge(SamplingRule):
    """Algorithm 2: λ and δ given, the constants of its proof."""

    fixed_ridge: float
    delta: float
    oversampling: float = OVERSAMPLING
    bernoulli_levels: ClassVar[bool] = True

    def max_base_rows(self, level: int) -> float:
        """192·log(1/δ_l)."""
        return BASE_CASE_ROWS * math.log(3**level / self.delta)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, min_cholesky_ridge(SKS))

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """16·l̃, with l̃ = 3/2 of the sample's score."""
        return self.oversampling * 1.5 * scores

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """log(Σl̃/δ_l)."""
        return math.log(max(1.0, 1.5 * totals.scores) * 3**level / self.delta)

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return math.log(1.5 * n_rows / EPS64 * 3**level / self.delta)


def bernoulli_probabilities(
    scores: np.ndarray, delta: float, oversampling: float = OVERSAMPLING
) -> np.ndarray:
    """Algorithm 1's min(1, 16·l̃·log(Σl̃/δ)); a sum below 1 would make p negative."""
    log = math.log(max(1.0, float(scores.sum())) / delta)
    return np.minimum(1.0, oversampling * scores * log)


def _capped_factor(max_sum: float, weight_factor: float, totals: ScoreTotals) -> float:
    """The factor, or less where weights would add up to more than `max_sum`."""
    return (
        min(weight_factor, max_sum / totals.sampling_weights)
        if totals.sampling_weights > 0
        else weight_factor
    )


def _count_bound(expected: float) -> int:
    """More than so many expected rows will ever be."""
    return math.ceil(expected + 10 * math.sqrt(expected) + 20)


def score_weights(
    residual: np.ndarray,
    weights: np.ndarray,
    rule: SamplingRule | None,
    level: int,
    ridge: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Sampling weights of rows by their scores, and totals of these.

    The weights are the rule's, or min(1, l̃) for None.
    """
    scores = residuals_to_scores(residual, weights, ridge)
    if rule is None:
        sampling_weights = np.minimum(1.0, scores)
    else:
        sampling_weights = rule.sampling_weights(scores, level)
    totals = ScoreTotals.from_scores(scores, sampling_weights)
    return sampling_weights, np.array(totals[:3])


@dataclass(frozen=True)
class Level:
    """One level: its rows, the sample below that scores them, λ, and the pass."""

    problem: SamplingProblem
    rule: SamplingRule
    level: int
    rows: Source
    sample: SampledRows
    ridge: float
    residual_pass: ResidualPass

    @cached_property
    def scores(self) -> np.ndarray:
        """l̃ of every row: a vector, for levels of few rows."""
        name = f"scores, level {self.level}"
        residual = self.problem.residuals(self.residual_pass, self.rows, name)
        return residuals_to_scores(residual, self.rows.weights, self.ridge)

    @property
    def probabilities(self) -> np.ndarray:
        """Each row's to be kept."""
        return self.rule.probabilities(self.scores, self.level)

    def sample_bernoulli(self) -> tuple[WeightedSample, ScoreTotals, float]:
        """A Bernoulli sample with probabilities min(1, c·weight), sums, and c.

        They are in no order; rows with keys of c or more may be among them.
        """
        sampler = KeyedSampler(
            # Every level has random numbers of its own: reused, 1/√p would be wrong.
            Stream(self.problem.seed, Purpose.KEEP, self.level),
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
        stream = Stream(self.problem.seed, Purpose.DRAW)
        return self._sample(None, KeyedSampler(stream, max_rows=size + 1))

    def _sample(
        self, rule: SamplingRule | None, sampler: KeyedSampler
    ) -> tuple[WeightedSample, ScoreTotals]:
        sample, sums = self.problem.sample_by_residual(
            self.residual_pass,
            self.rows,
            sampler,
            f"scores, level {self.level}",
            partial(score_weights, rule=rule, level=self.level, ridge=self.ridge),
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
    stream = membership.stream
    del membership  # and its list of rows
    # Rows that must be fetched are fetched once for all levels.
    sources, listed = list[Source](), None
    for rows in members:
        if isinstance(rows, np.ndarray):
            listed = problem.fetch(rows) if listed is None else listed.subset(rows)
            sources.append(listed)
        else:
            sources.append(BernoulliSubset(problem.source, rows, stream))
    base = sources[-1]
    sample = SampledRows(
        members[-1],  # type: ignore[arg-type]  # the smallest level is always listed
        np.ones(base.n_rows),
        points=base.take(np.arange(base.n_rows)),
        row_weights=base.weights,
    )
    for level in range(n_levels - 1, -1, -1):
        source = sources[level - 1] if level else problem.source
        scored_level = _make_level(problem, source, sample, rule, level)
        yield scored_level
        if level:
            sample = _sample_level(scored_level)


def _make_level(
    problem: SamplingProblem,
    rows: Source,
    sample: SampledRows,
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


def _sample_level(level: Level) -> SampledRows:
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
    return SampledRows(selected.numbers, p, points=points, row_weights=selected.weights)


def _sample_level_uniformly(level: Level, size: int, n_rows: int) -> SampledRows:
    """The rows of a level with the smallest random numbers."""
    rows, seed = level.rows, level.problem.seed
    size = min(size, n_rows)
    if isinstance(rows, NumberedSubset):
        u = Stream(seed, Purpose.KEEP, level.level).uniforms_at(rows.row_numbers)
        numbers = np.sort(rows.row_numbers[np.argsort(u, kind="stable")[:size]])
        row_weights = rows.weights_of(np.searchsorted(rows.row_numbers, numbers))
    else:
        # The rows with the smallest numbers of their own belong to every level.
        source = level.problem.source
        stream = Stream(seed, Purpose.MEMBERSHIP)
        numbers = np.sort(stream.sample_rows(size, source.n_rows))
        row_weights = source.weights_of(numbers)
    p, points = np.full(size, size / n_rows), rows.take_numbered(numbers)
    return SampledRows(numbers, p, points=points, row_weights=row_weights)


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
    max_delta = 1 / 32

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

    Levels below the top have ⌈√((ns + s³)/4n)⌉ rows; the 4 is in the authors' program,
    not in the paper. The selection takes fewer kernel evaluations than the features.
    There is no guarantee, and it may miss small clusters.

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
    n_halvings = max(0, math.ceil(math.log2(n / rule.sample_size)))
    min_size = min_theory_size(rule.delta, n_halvings + 1)
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
    if isinstance(rule, TheoryRidge) or sample.n_requested or top is None:
        return landmarks
    return ensure_spectral_error(rule.fixed_ridge, landmarks, problem, max_landmarks)


def _landmark_fields(top: Level, totals: ScoreTotals) -> dict[str, Any]:
    return {"ridge": top.ridge, "effective_dimension": totals.capped_scores}
