"""Scores of a path of α and of numbers of landmarks, from one pass over the rows.

By generalised cross-validation, leave-one-out or folds, for landmarks chosen once, from
all rows. Z nests: the leading block of one Gram matrix is that of the first landmarks,
so that fewer of them cost no further pass. Scores are mean squared errors, one per
number of landmarks, α and target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...moments import Moments, moments
from ...operands import Operand
from ...precision import EPS64
from ...sources import Block, Source, Subset
from .problem import Centered, squared_errors
from .row_residuals import residual_squares_of_rows

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Scored:
    """What one pass told of every number of landmarks and every α."""

    landmarks: Landmarks  # the most of them
    mapping: FeatureMap
    sums: Moments
    sizes: tuple[int, ...]
    errors: np.ndarray  # (sizes, a, t) mean squared errors
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
) -> Scored:
    """Scores for the first landmarks, as many as each of `sizes`, and every α."""
    least = float(alphas.min())
    mapping = FeatureMap.for_ridge(
        landmarks, source, least, center=fit_intercept, engine=engine
    )
    deviations = None
    if not isinstance(splits, str):
        by_split, sums = cross_validated(
            mapping, source, splits, sizes, alphas, fit_intercept, engine
        )
        errors = by_split.mean(axis=0)
        if len(by_split) > 1:
            deviations = by_split.std(axis=0, ddof=1) / np.sqrt(len(by_split))
    else:
        sums = moments(mapping, source, engine)
        prefixes = [_of_prefix(mapping, sums, size) for size in sizes]
        problems = [(m, Centered.of(part, fit_intercept)) for m, part in prefixes]
        if splits == "gcv":
            errors = generalised(problems, source, alphas, engine)
        else:
            errors = leave_one_out(problems, source, alphas, engine)
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
    if unsure:
        again = [problems[place] for place in unsure]
        found = residual_squares_of_rows(again, source, alphas, engine)
        for place, those in zip(unsure, found, strict=True):
            squares[place] = those
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
    shared = (largest.columns, [_Rotated.of(*each, alphas, total) for each in problems])
    found = engine.reduce(_left_out, source, shared, "leave-one-out")
    squares = np.array(arrays.fetched(found))
    return squares.reshape(len(problems), len(alphas), -1) / total


@dataclass(frozen=True, eq=False)
class _Rotated:
    """A ridge problem in the eigenvectors of its Gram matrix, for all α at once."""

    rotated: Operand  # (s, r): T = k_S·rotated − center
    center: Operand
    inverse: Operand  # (r, a)
    coef: Operand  # (r, a·t)
    mean: np.ndarray  # (t,) of y
    own: float  # what an intercept adds to every leverage

    @classmethod
    def of(
        cls, mapping: FeatureMap, problem: Centered, alphas: np.ndarray, total: float
    ) -> _Rotated:
        path = problem.path
        rotated = mapping.root @ path.vectors
        inverse = 1 / (path.values[:, None] + alphas)
        columns = [path.cross * inverse[:, [a]] for a in range(len(alphas))]
        return cls(
            Operand(rotated),
            Operand(mapping.shift @ rotated + problem.feature_mean @ path.vectors),
            Operand(inverse),
            Operand(np.concatenate(columns, axis=1)),
            mapping.target_shift + problem.target_mean,
            1 / total if problem.fit_intercept else 0.0,
        )

    def left_out(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(a, t): Σ w·(rᵢ/(1 − Hᵢᵢ))² over the rows of a tile, where K is."""
        xp = arrays.namespace(K)
        T = K[:, : len(self.rotated)] @ self.rotated.beside(K) - self.center.beside(K)
        n, n_targets = Y.shape
        fitted = xp.reshape(T @ self.coef.beside(K), (n, -1, n_targets))
        residuals = arrays.from_host(Y - self.mean, K)[:, None, :] - fitted
        leverage = w[:, None] * (T**2 @ self.inverse.beside(K) + self.own)  # (n, a)
        # A row that the fit passes through whatever its target has no say of its own.
        left = arrays.at_least(1 - leverage, 10 * EPS64)
        residuals /= left[:, :, None]
        return xp.sum(w[:, None, None] * residuals * residuals, axis=0)


def _left_out(
    block: Block, columns: Columns, problems: list[_Rotated]
) -> tuple[Array, ...]:
    assert block.targets is not None
    K = columns.float64(block.X)
    w = arrays.from_host(block.weights, K)
    return tuple(p.left_out(K, block.targets, w) for p in problems)


def cross_validated(
    mapping: FeatureMap,
    source: Source,
    splits: Sequence[Split],
    sizes: Sequence[int],
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine,
) -> tuple[np.ndarray, Moments]:
    """(splits, sizes, a, t): the squared error on each test part; and all sums.

    Every row is visited once where the splits cut the rows into few parts (folds,
    groups, time series), and once for each train and test set otherwise.
    """
    parts, of_split = _parts(splits, source.n_rows)
    if parts is not None:
        sums = [_moments_of(mapping, source, rows, engine) for rows in parts]
        total = _sum(sums, mapping, source)
        pairs: Iterable[tuple[Moments, Moments]] = (
            (
                _sum([sums[p] for p in train], mapping, source),
                _sum([sums[p] for p in test], mapping, source),
            )
            for train, test in of_split
        )
    else:
        total = moments(mapping, source, engine)
        pairs = (
            tuple(_moments_of(mapping, source, np.sort(rows), engine) for rows in split)  # type: ignore[misc]
            for split in splits
        )
    ranks = [mapping.of_prefix(size).rank for size in sizes]
    scores = [
        [
            _score(train.of_columns(r), test.of_columns(r), alphas, fit_intercept)
            for r in ranks
        ]
        for train, test in pairs
    ]
    return np.array(scores), total


def _parts(
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
    n_parts = int(signature.max()) + 1
    if n_parts > 2 * len(splits) + 1:
        return None, []
    order = np.argsort(signature, kind="stable")
    ends = np.cumsum(np.bincount(signature, minlength=n_parts))[:-1]
    parts = np.split(order, ends)
    of_split = [
        (np.unique(signature[train]).tolist(), np.unique(signature[test]).tolist())
        for train, test in splits
    ]
    return parts, of_split


def _moments_of(
    mapping: FeatureMap, source: Source, rows: np.ndarray, engine: Engine
) -> Moments:
    return moments(mapping, Subset(source, rows), engine)


def _sum(terms: Sequence[Moments], mapping: FeatureMap, source: Source) -> Moments:
    assert source.targets is not None
    return sum(terms, Moments.zero(mapping.rank, source.targets.shape[1]))


def _score(
    train: Moments, test: Moments, alphas: np.ndarray, fit_intercept: bool
) -> np.ndarray:
    problem = Centered.of(train, fit_intercept)
    scores = []
    for alpha in alphas:
        coef = problem.path.coefficients(alpha)
        about_shift = problem.target_mean - problem.feature_mean @ coef
        scores.append(squared_errors(test, coef, about_shift) / test.weight)
    return np.array(scores)
