"""Scores of a whole path of α: generalised cross-validation, leave-one-out, folds.

All for landmarks chosen once, from all rows. Scores are mean squared errors, one per α
and target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...moments import Moments, moments
from ...precision import EPS64
from ...sources import Block, Source, Subset
from .problem import Centered, squared_errors

Split = tuple[np.ndarray, np.ndarray]


def leave_one_out(
    mapping: FeatureMap,
    problem: Centered,
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(a, t): the mean of (rᵢ/(1 − Hᵢᵢ))², exact for fixed landmarks; a second pass."""
    path = problem.path
    rotated = mapping.root @ path.vectors
    center = mapping.shift @ rotated + problem.feature_mean @ path.vectors
    inverse = 1 / (path.values[:, None] + alphas)  # (r, a)
    coef = np.concatenate([path.cross * inverse[:, [a]] for a in range(len(alphas))], 1)
    total = source.total_weight
    own = 1 / total if problem.fit_intercept else 0.0
    mean = mapping.target_shift + problem.target_mean
    shared = (mapping.columns, rotated, center, inverse, coef, mean, own)
    squares = engine.reduce(_left_out, source, shared, "leave-one-out")
    return squares.reshape(len(alphas), -1) / total


def _left_out(
    block: Block,
    columns: Columns,
    rotated: np.ndarray,
    center: np.ndarray,
    inverse: np.ndarray,
    coef: np.ndarray,
    mean: np.ndarray,
    own: float,
) -> np.ndarray:
    assert block.targets is not None
    T = columns.host(block.X) @ rotated - center
    n, n_targets = block.targets.shape
    residuals = (block.targets - mean)[:, None, :] - (T @ coef).reshape(
        n, -1, n_targets
    )
    w = np.ascontiguousarray(block.weights)
    leverage = w[:, None] * (T**2 @ inverse + own)  # (n, a)
    # A row that the fit passes through whatever its target has no say of its own.
    left = np.maximum(1 - leverage, 10 * EPS64)
    residuals /= left[:, :, None]
    return np.einsum("i,iat,iat->at", w, residuals, residuals).ravel()


def cross_validated(
    mapping: FeatureMap,
    source: Source,
    splits: Sequence[Split],
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine,
) -> tuple[np.ndarray, Moments]:
    """(a, t): mean over the splits of the squared error on each test part; all sums.

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
    scores = [_score(train, test, alphas, fit_intercept) for train, test in pairs]
    return np.mean(scores, axis=0), total


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
