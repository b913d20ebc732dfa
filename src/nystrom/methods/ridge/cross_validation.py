"""Scores of a path of α and of numbers of landmarks, from one pass over the rows.

By generalised cross-validation, leave-one-out or folds, for landmarks chosen once, from
all rows. Z nests: the leading block of one Gram matrix is that of the first landmarks,
so that fewer of them cost no further pass. Scores are mean squared errors, one per
number of landmarks, α and target; or what a measure says of the values of rows that
were held out, which takes one more pass, of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...engines.progress import expect, parts
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...moments import Moments, moments
from ...sources import Block, Source, Subset
from .held_out import Fitted, LeftOut, Part, Rotated
from .path import RIGHT
from .problem import Centered, squared_errors
from .row_residuals import residual_squares_of_rows

#: How long the scores take, in passes over all rows.
SCORING = 0.3

Split = tuple[np.ndarray, np.ndarray]
#: Errors, the less the better, of the held-out values of each part: (parts, fits[, t]).
Measure = Callable[[Sequence[Part], Source, Engine], np.ndarray]


@dataclass(frozen=True, eq=False)
class Scored:
    """What one pass told of every number of landmarks and every α."""

    landmarks: Landmarks  # the most of them
    mapping: FeatureMap
    sums: Moments
    sizes: tuple[int, ...]
    errors: np.ndarray  # (sizes, a, t) mean squared errors, or a measure's (t may be 1)
    deviations: np.ndarray | None  # (sizes, a, t) their standard errors, over folds

    def at(self, place: int) -> tuple[Landmarks, FeatureMap, Moments]:
        """Landmarks, features and sums of one of the sizes."""
        size = self.sizes[place]
        mapping, sums = _of_prefix(self.mapping, self.sums, size)
        return self.landmarks[:size], mapping, sums


def _of_prefix(
    mapping: FeatureMap, sums: Moments, size: int
) -> tuple[FeatureMap, Moments]:
    if size == len(mapping.columns):
        return mapping, sums
    mapping = mapping.of_prefix(size)
    return mapping, sums.of_columns(mapping.rank)


def score_path(
    landmarks: Landmarks,
    source: Source,
    sizes: Sequence[int],
    alphas: np.ndarray,
    splits: Sequence[Split] | str,
    engine: Engine,
    *,
    fit_intercept: bool,
    measure: Measure | None = None,
) -> Scored:
    """Scores for the first landmarks, as many as each of `sizes`, and every α."""
    least = float(alphas.min())
    mapping = FeatureMap.for_ridge(
        landmarks, source, least, center=fit_intercept, engine=engine
    )
    by_split, sums = None, None
    if measure is not None:
        summing, measuring = parts(engine.progress, 1.0, 1.0)
        with summing:
            held, sums = held_out(
                mapping, source, splits, sizes, alphas, fit_intercept, engine
            )
        with measuring:
            expect(engine.progress, len(held))
            by_split = measure(held, source, engine)
        by_split = by_split.reshape(len(held), len(sizes), len(alphas), -1)
    elif not isinstance(splits, str):
        by_split, sums = cross_validated(
            mapping, source, splits, sizes, alphas, fit_intercept, engine
        )
    deviations = None
    if by_split is not None:
        errors = by_split.mean(axis=0)
        if len(by_split) > 1:
            deviations = by_split.std(axis=0, ddof=1) / np.sqrt(len(by_split))
    else:
        expect(engine.progress, 1 if splits == "gcv" else 2)
        sums = moments(mapping, source, engine)
        prefixes = [_of_prefix(mapping, sums, size) for size in sizes]
        problems = [(m, Centered.of(part, fit_intercept)) for m, part in prefixes]
        by_name = generalised if splits == "gcv" else leave_one_out
        errors = by_name(problems, source, alphas, engine)
    assert sums is not None
    return Scored(landmarks, mapping, sums, tuple(sizes), errors, deviations)


def generalised(
    problems: Sequence[tuple[FeatureMap, Centered]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t): by generalised cross-validation, from the sums alone.

    Only where they leave nothing but rounding, as fits do that pass close to all
    targets, the rows are asked again.
    """
    squares = [problem.path.residual_squares(alphas) for _, problem in problems]
    unsure = [
        place
        for place, (_, problem) in enumerate(problems)
        if not problem.path.residuals_are_right(alphas)
    ]
    _ask_rows(squares, unsure, problems, source, alphas, engine)
    paths = [problem.path for _, problem in problems]
    return np.array([p.gcv(alphas, s) for p, s in zip(paths, squares, strict=True)])


def leave_one_out(
    problems: Sequence[tuple[FeatureMap, Centered]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t): the mean of (rᵢ/(1 − Hᵢᵢ))², exact for fixed landmarks.

    In a second pass, which evaluates the columns of the most landmarks once for all.
    """
    mappings = [mapping for mapping, _ in problems]
    largest = max(mappings, key=lambda mapping: len(mapping.columns))
    total = source.total_weight
    shared = (largest.columns, [Rotated.of(*each, alphas, total) for each in problems])
    found = engine.reduce(_left_out, source, shared, "leave-one-out")
    squares = np.array(arrays.fetched(found))
    return squares.reshape(len(problems), len(alphas), -1) / total


def _left_out(
    block: Block, columns: Columns, problems: list[Rotated]
) -> tuple[Array, ...]:
    """(a, t) of each problem: Σ w·(rᵢ/(1 − Hᵢᵢ))² over the rows of a tile."""
    assert block.targets is not None
    K = columns.float64(block.X)
    xp, w = arrays.namespace(K), arrays.from_host(block.weights, K)
    left = (p.residuals(K, block.targets, w) for p in problems)
    return tuple(xp.sum(w[:, None, None] * r * r, axis=0) for r in left)


def cross_validated(
    mapping: FeatureMap,
    source: Source,
    splits: Sequence[Split],
    sizes: Sequence[int],
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine,
) -> tuple[np.ndarray, Moments]:
    """(splits, sizes, a, t): the squared error on each test part; and all sums."""
    summing, scoring = parts(engine.progress, 1.0, SCORING)
    with summing:
        pairs, total = sums_of_splits(mapping, source, splits, engine)
    mappings = [mapping.of_prefix(size) for size in sizes]
    scores = []
    with scoring:
        for number, (train, test) in enumerate(pairs):
            engine.progress("scores of alphas", number, len(splits))
            problems = [
                (m, Centered.of(train.of_columns(m.rank), fit_intercept))
                for m in mappings
            ]
            held = Subset(source, np.sort(splits[number][1]))
            found = _squares(problems, test, held, alphas, engine.quiet())
            scores.append(found / test.weight)
    return np.array(scores), total


def _squares(
    problems: Sequence[tuple[FeatureMap, Centered]],
    test: Moments,
    held: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t): Σ w(y − ŷ)² of rows that were held out, from their sums.

    The rows themselves are asked where these leave nothing but rounding: targets far
    from 0 without an intercept, fits that pass close to all of them.
    """
    squares, unsure = [], []
    for place, (mapping, problem) in enumerate(problems):
        sums, found = test.of_columns(mapping.rank), []
        for alpha in alphas:
            coef = problem.path.coefficients(alpha)
            about_shift = problem.target_mean - problem.feature_mean @ coef
            found.append(squared_errors(sums, coef, about_shift))
        of_sums, rounding = (np.array(each) for each in zip(*found, strict=True))
        squares.append(of_sums)
        if np.any(rounding > RIGHT * of_sums):
            unsure.append(place)
    _ask_rows(squares, unsure, problems, held, alphas, engine)
    return np.array(squares)


def _ask_rows(
    squares: list[np.ndarray],
    unsure: Sequence[int],
    problems: Sequence[tuple[FeatureMap, Centered]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> None:
    """Put what the rows leave in the place of what sums leave nothing right of."""
    if not unsure:
        return
    again = [problems[place] for place in unsure]
    found = residual_squares_of_rows(again, source, alphas, engine)
    for place, those in zip(unsure, found, strict=True):
        squares[place] = those


def held_out(
    mapping: FeatureMap,
    source: Source,
    splits: Sequence[Split] | str,
    sizes: Sequence[int],
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine,
) -> tuple[list[Part], Moments]:
    """What makes the values of rows by fits without them; and all sums."""
    mappings = [mapping.of_prefix(size) for size in sizes]
    columns, n_fits = mappings[-1].columns, len(sizes) * len(alphas)
    if isinstance(splits, str):
        expect(engine.progress, 1)
        sums, total = moments(mapping, source, engine), source.total_weight
        problems = [
            Rotated.of(m, Centered.of(part, fit_intercept), alphas, total)
            for m, part in (_of_prefix(mapping, sums, size) for size in sizes)
        ]
        return [Part(None, columns, LeftOut(problems), n_fits)], sums
    pairs, sums = sums_of_splits(mapping, source, splits, engine)
    held = []
    for (train, _), (_, rows) in zip(pairs, splits, strict=True):
        fits = Fitted.to(train, mappings, alphas, fit_intercept)
        held.append(Part(np.sort(rows), columns, fits, n_fits))
    return held, sums


def sums_of_splits(
    mapping: FeatureMap, source: Source, splits: Sequence[Split], engine: Engine
) -> tuple[Iterable[tuple[Moments, Moments]], Moments]:
    """The sums over train and test rows of each split, and those over all rows.

    Every row is visited once where the splits cut the rows into few parts (folds,
    groups, time series), and once for each train and test set otherwise.
    """
    groups, of_split = _groups(splits, source.n_rows)
    if groups is not None:
        expect(engine.progress, len(groups))
        sums = [_moments_of(mapping, source, rows, engine) for rows in groups]
        pairs: Iterable[tuple[Moments, Moments]] = (
            (
                _sum([sums[p] for p in train], mapping, source),
                _sum([sums[p] for p in test], mapping, source),
            )
            for train, test in of_split
        )
        return pairs, _sum(sums, mapping, source)
    pairs = (
        tuple(_moments_of(mapping, source, np.sort(rows), engine) for rows in split)  # type: ignore[misc]
        for split in splits
    )
    return pairs, moments(mapping, source, engine)


def _groups(
    splits: Sequence[Split], n_rows: int
) -> tuple[list[np.ndarray] | None, list[tuple[list[int], list[int]]]]:
    """Rows grouped by the splits they train and test in, if there are few groups."""
    signature = np.zeros(n_rows, dtype=np.int64)
    for train, test in splits:
        if len(np.unique(train)) != len(train) or len(np.unique(test)) != len(test):
            return None, []  # a row that counts twice
        role = np.zeros(n_rows, dtype=np.int64)
        role[train] += 1
        role[test] += 2
        _, signature = np.unique(signature * 4 + role, return_inverse=True)
    n_groups = int(signature.max()) + 1
    if n_groups > 2 * len(splits) + 1:
        return None, []
    order = np.argsort(signature, kind="stable")
    ends = np.cumsum(np.bincount(signature, minlength=n_groups))[:-1]
    groups = np.split(order, ends)
    of_split = [
        (np.unique(signature[train]).tolist(), np.unique(signature[test]).tolist())
        for train, test in splits
    ]
    return groups, of_split


def _moments_of(
    mapping: FeatureMap, source: Source, rows: np.ndarray, engine: Engine
) -> Moments:
    return moments(mapping, Subset(source, rows), engine)


def _sum(terms: Sequence[Moments], mapping: FeatureMap, source: Source) -> Moments:
    assert source.targets is not None
    return sum(terms, Moments.zero(mapping.rank, source.targets.shape[1]))
