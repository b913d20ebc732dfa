"""Few weighted rows that stand for all rows of a stream.

Every row has luck u of its own, drawn once, and stays as long as u < p, where p falls
with its share of the ridge leverage scores; it then counts as 1/p rows. Nothing else is
random, so that errors do not add up, however often rows are let go: with equal scores
this is reservoir sampling. (Probabilities that only fall are those of Calandriello,
Lazaric & Valko, "Distributed adaptive sampling for kernel matrix approximation".)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _arrays as arrays
from .engines import Engine
from .engines.blas import blas_threads_for
from .features import FeatureMap, Tiles
from .landmarks import Landmarks
from .moments import moments
from .precision import EPS64
from .randomness import Purpose, uniforms
from .sinks import ArraySink, SplitSink
from .sources import Block, Held, Source
from .trace_error import TraceError

#: The share of the probabilities that goes by k(x, x) alone: it bounds the weights.
BY_DIAGONAL = 0.1
#: Rows that are kept per landmark.
PER_LANDMARK = 12
#: Landmarks are chosen anew once this share of all rows has come since, at the latest
#: once as many have come as are kept.
FRESH_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Rows of a stream, with what it takes to let some of them go."""

    points: Any
    numbers: np.ndarray  # of the rows in the stream
    own: np.ndarray  # the weights they came with
    luck: np.ndarray  # below `kept`
    kept: np.ndarray  # the probability of each to be here still
    targets: np.ndarray | None
    seed: int
    n_rows: int  # seen so far
    n_fresh: int  # come since landmarks were chosen
    n_choices: int = 0  # of landmarks

    @classmethod
    def of(cls, batch: Source, seed: int) -> Reservoir:
        """All rows of a first batch."""
        n = batch.n_rows
        luck = uniforms(seed, Purpose.STREAM, 0, n)
        everything = np.arange(n), batch.weights, luck, np.ones(n), batch.targets
        return cls(batch.rows(0, n), *everything, seed, n, n)._without_weightless()

    @classmethod
    def of_landmarks(cls, landmarks: Landmarks, seed: int) -> Reservoir:
        """Landmarks alone, each for its share of the rows they were chosen from."""
        s, n = len(landmarks), max(landmarks.n_rows, len(landmarks))
        numbers = np.arange(s) if landmarks.indices is None else landmarks.indices
        kept = np.full(s, s / n)
        luck = kept * uniforms(seed, Purpose.STREAM, 0, s)
        return cls(landmarks.points, numbers, np.ones(s), luck, kept, None, seed, n, 0)

    @property
    def weights(self) -> np.ndarray:
        """As how many rows of the stream each counts."""
        return self.own / self.kept

    @property
    def source(self) -> Source:
        """The rows with these weights."""
        return Held(self.points, self.weights).having(targets=self.targets)

    @property
    def is_whole(self) -> bool:
        """Whether no row was ever let go."""
        return bool(np.all(self.kept == 1))

    def __len__(self) -> int:
        return len(self.own)

    def joined(self, batch: Source) -> Reservoir:
        """With all rows of another batch."""
        new = Reservoir.of(batch, self.seed)
        stop = self.n_rows + batch.n_rows
        luck = uniforms(self.seed, Purpose.STREAM, self.n_rows, stop)
        targets = None
        if self.targets is not None and new.targets is not None:
            targets = np.concatenate([self.targets, new.targets])
        return replace(
            self,
            points=arrays.append_rows(self.points, new.points),
            numbers=np.concatenate([self.numbers, self.n_rows + new.numbers]),
            own=np.concatenate([self.own, new.own]),
            luck=np.concatenate([self.luck, luck[new.numbers]]),
            kept=np.concatenate([self.kept, new.kept]),
            targets=targets,
            n_rows=stop,
            n_fresh=self.n_fresh + batch.n_rows,
        )

    def is_due(self, size: int) -> bool:
        """Whether so many rows have come that landmarks are to be chosen anew."""
        return self.n_fresh >= min(size, FRESH_SHARE * self.n_rows)

    def looked_at(
        self, landmarks: Landmarks, engine: Engine
    ) -> tuple[Reservoir, TraceError]:
        """With as many rows as these landmarks take, and what they leave of all."""
        seen = Seen.of(landmarks, self.source, engine)
        error = self._error(seen, landmarks)
        chosen = replace(self, n_fresh=0, n_choices=self.n_choices + 1)
        size = PER_LANDMARK * len(landmarks)
        if len(self) <= size:
            return chosen, error
        return chosen._thinned(self.own * seen.chances(self.weights), size), error

    def _error(self, seen: Seen, landmarks: Landmarks) -> TraceError:
        """From rows that are no landmarks, unless these are all rows.

        Nothing is left of a landmark, but of the rows that it stands for there is.
        """
        left, whole, weights = seen.left, seen.whole, self.weights
        if landmarks.indices is not None and not self.is_whole:
            others = ~np.isin(self.numbers, landmarks.indices)
            left, whole, weights = left[others], whole[others], weights[others]
        return TraceError.of_some(left, whole, weights, self.n_rows)

    def _thinned(self, chances: np.ndarray, size: int) -> Reservoir:
        """The first to arrive; who is first of the others tells how likely they were.

        p = min(1, c·chance), where c is the arrival u/chance of the first that is let
        go: rows that are here have u < p.
        """
        with np.errstate(divide="ignore", over="ignore"):
            arrival = self.luck / chances
        order = np.lexsort((self.numbers, arrival))
        c, stay = arrival[order[size]], np.sort(order[:size])
        kept = self.kept[stay]
        if np.isfinite(c):
            kept = np.minimum(kept, c * chances[stay])
        return replace(self._at(stay), kept=kept)

    def _at(self, places: np.ndarray) -> Reservoir:
        return replace(
            self,
            points=arrays.take_rows(self.points, places),
            numbers=self.numbers[places],
            own=self.own[places],
            luck=self.luck[places],
            kept=self.kept[places],
            targets=None if self.targets is None else self.targets[places],
        )

    def _without_weightless(self) -> Reservoir:
        places = np.flatnonzero(self.own > 0)
        return self if len(places) == len(self) else self._at(places)


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows beside landmarks: leverage in their span, what is left, and k(x, x)."""

    within: np.ndarray
    left: np.ndarray
    whole: np.ndarray
    ridge: float

    @classmethod
    def of(cls, landmarks: Landmarks, source: Source, engine: Engine) -> Seen:
        """Two passes: the Gram matrix, and the scores at λ = tr(K − K̃)/s."""
        mapping = whitened(landmarks)
        sums = moments(mapping, source, engine, "Gram matrix of kept rows")
        trace, s = sums.kernel_trace, len(landmarks)
        left = trace - float(np.trace(sums.gram))
        ridge = max(left, EPS64 * s * abs(trace), np.finfo(float).tiny) / s
        with blas_threads_for(s):
            values, vectors = np.linalg.eigh(sums.gram)
        root = vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
        n = source.n_rows
        within, remains, whole = (ArraySink((n,)) for _ in range(3))
        sinks = SplitSink(within, remains, whole)
        shared = (mapping.tiles(), root)
        engine.map(_look, source, sinks, shared, "scores of kept rows")
        return cls(within.array, remains.array, whole.array, ridge)

    def chances(self, weights: np.ndarray) -> np.ndarray:
        """How likely each is to stay: by ridge leverage score, and by k(x, x)."""
        scores, whole = self.within + self.left / self.ridge, np.abs(self.whole)
        by_score = scores / max(float(weights @ scores), np.finfo(float).tiny)
        by_diagonal = whole / max(float(weights @ whole), np.finfo(float).tiny)
        return (1 - BY_DIAGONAL) * by_score + BY_DIAGONAL * by_diagonal


def whitened(
    landmarks: Landmarks, target_shift: np.ndarray | None = None
) -> FeatureMap:
    """Z in float64, made in every tile: right for sums that are carried along."""
    shift = np.zeros(1) if target_shift is None else target_shift
    columns = landmarks.columns(wide=True)
    none = np.zeros(len(landmarks))
    return FeatureMap(columns, landmarks.factor, 0.0, True, none, shift)


def _look(
    block: Block, tiles: Tiles, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    Z, whole = tiles(block.X), tiles.columns.diag(block.X)
    A = Z @ root
    left = np.maximum(whole - np.vecdot(Z, Z), 0.0)
    return np.vecdot(A, A), left, whole
