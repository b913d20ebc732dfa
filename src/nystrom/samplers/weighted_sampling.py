"""Weighted sampling of rows in one pass, without storing n probabilities.

Each row gets a key from its uniform number and its weight: u/p for Bernoulli
sampling, an exponential key for a fixed size. A block returns only the rows with the
smallest keys; inclusion probabilities follow from the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._random import Purpose, Stream
from ..engines import storable
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..linalg.cross_kernel import fetch_rows
from ..linalg.residuals import ResidualPass, block_residuals
from ..sources import Block, Source, Subset
from ..sources.base import multiply_weights

#: Rows, and numbers in them, that a level may have if they are to be listed. Rows of
#: larger levels are sifted out of each tile. No result may depend on storage or on how
#: much memory there is, and so these do not.
MAX_LISTED_ROWS, MAX_LISTED_VALUES, MIN_LISTED_ROWS = 2**22, 2**27, 2**14


def max_listed_rows(source: Source) -> int:
    """How many rows of a source may be listed, or fetched and held."""
    return min(
        MAX_LISTED_ROWS,
        max(MIN_LISTED_ROWS, MAX_LISTED_VALUES // (source.n_features or 1)),
    )


def row_uniforms(block: Block, stream: Stream) -> np.ndarray:
    """The uniform number of each row of a block."""
    if block.numbers is None:
        return stream.uniforms(block.start, block.start + len(block))
    return stream.uniforms_at(block.numbers)


class NumberedSubset(Subset):
    """Some rows of another source that go on to be known by their numbers there."""

    def __init__(
        self, source: Source, numbers: np.ndarray, places: np.ndarray | None = None
    ) -> None:
        super().__init__(source, numbers if places is None else places)
        self.row_numbers = numbers

    def numbers(self, start: int, stop: int) -> np.ndarray:
        return self.row_numbers[start:stop]

    def take_numbered(self, numbers: np.ndarray) -> Any:
        return self.take(np.searchsorted(self.row_numbers, numbers))

    def subset(self, numbers: np.ndarray) -> NumberedSubset:
        """Fewer of these rows."""
        positions = self.indices[np.searchsorted(self.row_numbers, numbers)]
        return NumberedSubset(self.source, numbers, positions)


class BernoulliSubset(Source):
    """The rows of another source with u < probability, tile by tile.

    About that share of them, and no list of them anywhere: a tile of this is a subset
    of a tile of the other, which passes that sum accept.
    """

    def __init__(self, source: Source, probability: float, stream: Stream) -> None:
        self.source, self.probability, self.stream = source, probability, stream
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.supports_random_access = source.supports_random_access
        self.on_device = source.on_device
        self.weights = source.weights if source.is_weighted else None

    def block(self, start: int, stop: int) -> Block:
        block = self.source.block(start, stop)
        selected = np.flatnonzero(row_uniforms(block, self.stream) < self.probability)
        numbers = selected + start if block.numbers is None else block.numbers[selected]
        fields = ("X", "weights", "targets")
        return replace(arrays.take_fields(block, fields, selected), numbers=numbers)

    def rows(self, start: int, stop: int) -> Any:
        return self.block(start, stop).X

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(indices)


class LevelMembership:
    """u(seed, row) of the rows of a source, by which levels are nested in each other.

    A level is an array of row numbers, or the share of rows below which u is.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self.stream, self.n_rows = Stream(seed, Purpose.MEMBERSHIP), source.n_rows
        self.max_rows = max_listed_rows(source)

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray]:
        """More rows than may be listed, with their u, or all there are."""
        limit = (self.max_rows + 8 * self.max_rows**0.5 + 16) / max(1, self.n_rows)
        return self.stream.rows_below(limit, self.n_rows)

    def first_rows(self, size: int) -> np.ndarray | float:
        """The `size` rows with the smallest u, ascending."""
        if size > self.max_rows:
            return size / self.n_rows
        rows, u = self._listed
        return rows[u <= np.partition(u, size - 1)[size - 1]]

    def below(self, share: float) -> np.ndarray | float:
        """The rows with u < share, ascending."""
        if share * self.n_rows > self.max_rows:
            return share
        rows, u = self._listed
        return rows[u < share]

    def count_below(self, share: float) -> int:
        """How many these are."""
        if share * self.n_rows <= self.max_rows:
            return int(np.count_nonzero(self._listed[1] < share))
        if share >= 1:
            return self.n_rows
        return len(self.stream.rows_below(share, self.n_rows)[0])


#: The fields of a sample with an entry for each row.
ROW_FIELDS = ("numbers", "keys", "sampling_weights", "weights", "points")


@storable
@dataclass(frozen=True)
class WeightedSample:
    """The rows with the smallest keys, with what is needed of them."""

    numbers: np.ndarray
    keys: np.ndarray
    sampling_weights: np.ndarray
    weights: np.ndarray
    points: Any  # None where the source has random access
    max_rows: int | None  # so many are remembered

    def __len__(self) -> int:
        return len(self.numbers)

    def __add__(self, other: WeightedSample) -> WeightedSample:
        joined: WeightedSample = arrays.stack_fields(self, other, ROW_FIELDS)
        return joined.first(self.max_rows)

    def first(self, size: int | None) -> WeightedSample:
        """Those with the smallest keys; of equal ones those with the smaller number."""
        if size is None or len(self) <= size:
            return self
        threshold = np.partition(self.keys, size - 1)[size - 1]
        positions = np.flatnonzero(self.keys <= threshold)
        if len(positions) > size:
            order = np.lexsort((self.numbers[positions], self.keys[positions]))
            positions = np.sort(positions[order[:size]])
        return self.take(positions)

    def below(self, threshold: float) -> WeightedSample:
        """Those with keys below the threshold."""
        return self.take(np.flatnonzero(self.keys < threshold))

    def sorted_by_key(self) -> WeightedSample:
        """The same, the smallest key first."""
        return self.take(np.lexsort((self.numbers, self.keys)))

    def take(self, positions: np.ndarray) -> WeightedSample:
        """Some of them."""
        return arrays.take_fields(self, ROW_FIELDS, positions)

    def fixed_size(self, size: int) -> tuple[WeightedSample, np.ndarray]:
        """The first `size`, in order, and the probability of each to be among them.

        Given the key of the next one, where there is one.
        """
        ordered = self.sorted_by_key()
        threshold = float(ordered.keys[size]) if len(self) > size else np.inf
        selected = ordered.take(np.arange(min(size, len(self))))
        if np.isinf(threshold):
            return selected, np.ones(len(selected))
        with np.errstate(over="ignore"):
            return selected, -np.expm1(-selected.sampling_weights * threshold)

    def points_from(self, source: Source) -> Any:
        """The rows themselves."""
        return (
            source.take_numbered(self.numbers) if self.points is None else self.points
        )


@dataclass(frozen=True)
class KeyedSampler:
    """The keys of rows, and how many are remembered.

    In Bernoulli sampling the key of a row of weight p is u/p: below 1 with probability
    p, and below c with probability min(1, c·p), so that a common factor may stay open
    until all weights are known. Otherwise it is −log(1 − u)/p, an exponential key, and
    the s smallest are a draw of one row after the other ∝ p.
    """

    stream: Stream
    bernoulli: bool = False
    max_rows: int | None = None
    max_key: float = np.inf  # rows with larger keys are dropped

    def sample_block(
        self, block: Block, sampling_weights: np.ndarray, carry_points: bool
    ) -> WeightedSample:
        """The rows of a tile with the smallest keys."""
        u = row_uniforms(block, self.stream)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            keys = (u if self.bernoulli else -np.log1p(-u)) / sampling_weights
        positions = np.flatnonzero((sampling_weights > 0) & (keys <= self.max_key))
        numbers = block.numbers
        candidates = WeightedSample(
            positions + block.start if numbers is None else numbers[positions],
            keys[positions],
            sampling_weights[positions],
            block.weights[positions],
            None,
            self.max_rows,
        )
        sample = candidates.first(self.max_rows)
        if not carry_points:
            return sample
        kept_positions = positions[np.searchsorted(candidates.numbers, sample.numbers)]
        return replace(sample, points=arrays.take_rows(block.X, kept_positions))

    def sample(self, sampling_weights: np.ndarray) -> WeightedSample:
        """Those of rows 0, 1, …, whose weights are all known."""
        return self.sample_block(
            Block(0, None, np.ones(len(sampling_weights))), sampling_weights, False
        )


#: (residuals, weights of rows) ↦ (sampling weights, sums that the pass is asked for)
WeightFunction = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def residual_weights(
    row_residuals: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weight times residual of each row; and the sum of that."""
    row_residuals = multiply_weights(weights, row_residuals)
    return row_residuals, np.array([row_residuals.sum()])


def sample_block_by_residual(
    block: Block,
    prepared: ResidualPass,
    weight_function: WeightFunction,
    sampler: KeyedSampler,
    carry_points: bool,
) -> tuple[WeightedSample, np.ndarray]:
    """A sample of the rows of a tile by their residual, sums, and how many rows."""
    # A tile of a subset may have no rows.
    row_residuals = block_residuals(block, prepared) if len(block) else np.empty(0)
    sampling_weights, sums = weight_function(row_residuals, block.weights)
    sample = sampler.sample_block(block, sampling_weights, carry_points)
    return sample, np.append(sums, float(len(block)))


@dataclass(frozen=True)
class SampledRows:
    """Rows with the probabilities they were drawn with."""

    indices: np.ndarray
    probabilities: np.ndarray
    n_requested: int | None = None  # how many there would be without the cap
    points: Any = None  # the rows themselves, where the draw has them
    row_weights: np.ndarray | float = 1.0  # the weights of the rows themselves

    @classmethod
    def all_of(cls, n_rows: int) -> SampledRows:
        """Every row."""
        return cls(np.arange(n_rows), np.ones(n_rows))

    @property
    def weights(self) -> np.ndarray:
        """1/√p: column j of S has the entry weights[j] in row indices[j]."""
        return 1 / np.sqrt(self.probabilities)

    @property
    def column_weights(self) -> np.ndarray:
        """The entries of S for the matrix W^½KW^½."""
        return self.weights * np.sqrt(self.row_weights)

    def as_landmarks(
        self, kernel: Kernel, source: Source, name: str, **fields: Any
    ) -> Landmarks:
        """These rows of a source as landmarks."""
        return Landmarks(
            fetch_rows(source, self.indices) if self.points is None else self.points,
            kernel,
            name,
            source.n_rows,
            indices=self.indices,
            probabilities=self.probabilities,
            n_requested=self.n_requested,
            **fields,
        )


def sample_fixed_size(size: int, scores: np.ndarray, seed: int) -> SampledRows:
    """`size` rows one after the other ∝ scores; where those run out, uniform ones."""
    sampler = KeyedSampler(Stream(seed, Purpose.DRAW), max_rows=size + 1)
    return fixed_size_from_keys(sampler.sample(scores), size, len(scores), seed)


def fixed_size_from_keys(
    sample: WeightedSample, size: int, n_rows: int, seed: int
) -> SampledRows:
    """The `size` rows with the smallest keys, and uniform ones if these are fewer."""
    selected, p = sample.fixed_size(size)
    n_missing = size - len(selected)
    if n_missing == 0:
        return SampledRows(selected.numbers, p, points=selected.points)
    other_rows = sample_other_rows(selected.numbers, n_missing, n_rows, seed)
    p = np.concatenate([p, np.full(n_missing, n_missing / (n_rows - len(selected)))])
    return SampledRows(np.concatenate([selected.numbers, other_rows]), p)


def sample_other_rows(
    selected: np.ndarray, size: int, n_rows: int, seed: int
) -> np.ndarray:
    """`size` other rows, drawn uniformly, in order of the draw."""
    first = Stream(seed, Purpose.FILL).sample_rows(size + len(selected), n_rows)
    return first[~np.isin(first, selected)][:size]


def sample_uniformly(source: Source, size: int, seed: int) -> SampledRows:
    """`size` rows, all if there are no more; ∝ their weights where they have any."""
    n = source.n_rows
    if size >= n:
        return SampledRows.all_of(n)
    if not source.is_weighted:
        rows = Stream(seed, Purpose.DRAW).sample_rows(size, n)
        return SampledRows(rows, np.full(size, size / n))
    return sample_fixed_size(size, source.weights, seed)


def inclusion_probabilities_with_sum(
    sampling_weights: np.ndarray, size: float
) -> np.ndarray:
    """Probabilities ∝ weights, none above 1, that add up to `size` where they can."""
    certain = np.zeros(len(sampling_weights), dtype=bool)
    if np.count_nonzero(sampling_weights) <= size:
        return (sampling_weights > 0).astype(np.float64)
    while True:  # each time one more is certain, and at most `size` can be
        # By a power of two: their sum neither overflows nor vanishes.
        others = sampling_weights[~certain]
        power = -np.frexp(others.max())[1]
        total = float(np.ldexp(others, power, out=others).sum())
        del others  # one number per row is what a draw may hold beside its result
        with np.errstate(over="ignore"):  # of those that are certain
            p = np.ldexp(sampling_weights, power)
            p *= (size - np.count_nonzero(certain)) / total
        newly_certain = (p >= 1) & ~certain
        p[certain] = 1.0
        if not newly_certain.any():
            return p
        certain |= newly_certain


def sample_bernoulli(
    p: np.ndarray,
    seed: int,
    max_landmarks: int | None = None,
    effective_dimension: float = np.inf,
) -> SampledRows:
    """Each row with its own probability; see `bernoulli_from_keys`."""
    sampler = KeyedSampler(Stream(seed, Purpose.KEEP), bernoulli=True)
    return bernoulli_from_keys(
        sampler.sample(p), 1.0, len(p), seed, max_landmarks, effective_dimension
    )


def bernoulli_from_keys(
    sample: WeightedSample,
    weight_factor: float,
    n_rows: int,
    seed: int,
    max_landmarks: int | None = None,
    effective_dimension: float = np.inf,
) -> SampledRows:
    """Each row with probability min(1, factor·weight), ascending; at least one.

    Where more are kept than `max_landmarks`, those with the smallest keys: with a
    smaller factor, just so many are.
    """
    selected = sample.below(weight_factor)
    if len(selected) == 0 or effective_dimension < 0.5:
        # d_eff < ½ means λ > ‖K‖, and any row will do.
        if not len(sample):
            return SampledRows(
                sample_other_rows(selected.numbers, 1, n_rows, seed), np.ones(1)
            )
        first = sample.sorted_by_key().take(np.arange(1))
        return SampledRows(first.numbers, np.ones(1), points=first.points)
    n_requested = None
    if max_landmarks is not None and len(selected) > max_landmarks:
        n_requested = len(selected)
        selected = selected.sorted_by_key()
        if n_requested == sample.max_rows:  # there would be more than were remembered
            surplus = weight_factor / float(selected.keys[-1])
            n_requested = min(n_rows, math.ceil(n_requested * surplus))
        weight_factor = float(selected.keys[max_landmarks])
        selected = selected.take(np.arange(max_landmarks))
    selected = selected.take(np.argsort(selected.numbers))
    p = np.minimum(1.0, weight_factor * selected.sampling_weights)
    return SampledRows(selected.numbers, p, n_requested, selected.points)


def sample_all_rows(n_rows: int, max_landmarks: int | None, seed: int) -> SampledRows:
    """Every row, or `max_landmarks` of them."""
    if max_landmarks is None or max_landmarks >= n_rows:
        return SampledRows.all_of(n_rows)
    sample = sample_fixed_size(max_landmarks, np.ones(n_rows), seed)
    return SampledRows(sample.indices, sample.probabilities, n_requested=n_rows)
