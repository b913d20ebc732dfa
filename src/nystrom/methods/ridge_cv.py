"""Scores of a whole path of α: generalised cross-validation, leave-one-out, folds.

All for landmarks chosen once, from all rows. Scores are mean squared errors, one per α
and target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..sources import Block, Source, Subset
from .moments import Evaluate, FeatureMap, Moments, moments
from .ridge import Centered, squared_errors

Split = tuple[np.ndarray, np.ndarray]


def leave_one_out(
    made: FeatureMap,
    problem: Centered,
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(a, t): the mean of (rᵢ/(1 − Hᵢᵢ))², exact for fixed landmarks; a second pass."""
    path = problem.path
    rotated = made.root @ path.vectors
    center = made.shift @ rotated + problem.feature_mean @ path.vectors
    inverse = 1 / (path.values[:, None] + alphas)  # (r, a)
    coef = np.concatenate([path.cross * inverse[:, [a]] for a in range(len(alphas))], 1)
    total = float(source.n_rows if source.weights is None else source.weights.sum())
    own = 1 / total if problem.fit_intercept else 0.0
    mean = made.target_shift + problem.target_mean
    shared = (made.evaluator(), rotated, center, inverse, coef, mean, own)
    squares = engine.reduce(_left_out, source, shared, "leave-one-out")
    return squares.reshape(len(alphas), -1) / total


def _left_out(
    block: Block,
    evaluate: Evaluate,
    rotated: np.ndarray,
    center: np.ndarray,
    inverse: np.ndarray,
    coef: np.ndarray,
    mean: np.ndarray,
    own: float,
) -> np.ndarray:
    assert block.targets is not None
    T = evaluate(block.X) @ rotated - center
    n, n_targets = block.targets.shape
    residuals = (block.targets - mean)[:, None, :] - (T @ coef).reshape(
        n, -1, n_targets
    )
    w = np.ones(n) if block.weights is None else block.weights
    leverage = w[:, None] * (T**2 @ inverse + own)  # (n, a)
    # A row that the fit passes through whatever its target has no say of its own.
    left = np.maximum(1 - leverage, 10 * arrays.epsilon(np.float64))
    residuals /= left[:, :, None]
    return np.einsum("i,iat,iat->at", w, residuals, residuals).ravel()


def cross_validated(
    made: FeatureMap,
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
        sums = [_moments_of(made, source, rows, engine) for rows in parts]
        total = _sum(sums, made, source)
        pairs: Iterable[tuple[Moments, Moments]] = (
            (
                _sum([sums[p] for p in train], made, source),
                _sum([sums[p] for p in test], made, source),
            )
            for train, test in of_split
        )
    else:
        total = moments(made, source, engine)
        pairs = (
            tuple(_moments_of(made, source, np.sort(rows), engine) for rows in split)  # type: ignore[misc]
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
    made: FeatureMap, source: Source, rows: np.ndarray, engine: Engine
) -> Moments:
    return moments(made, Subset(source, rows), engine)


def _sum(terms: Sequence[Moments], made: FeatureMap, source: Source) -> Moments:
    assert source.targets is not None
    return sum(terms, Moments.zero(made.rank, source.targets.shape[1]))


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
