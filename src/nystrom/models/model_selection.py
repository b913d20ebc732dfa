"""Scores of a grid of α and numbers of landmarks from one pass over the rows.

Generalized cross-validation, leave-one-out or k folds, for landmarks selected once.
Features nest, so the leading block of one Gram matrix serves every smaller number of
landmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._random import sorted_row_sample
from ..engines import Engine
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.factor import ColumnBlocks
from ..linalg.features import FeatureMap
from ..linalg.moments import Moments, moments
from ..sources import Block, Source, Subset
from ..sources.output import ArraySink
from .calibration import (
    ProbabilityLink,
    class_indices,
    fit_probability_link,
    loo_divisor,
)
from .ridge import RESIDUAL_RTOL, NormalEquations, sum_of_squared_errors


@dataclass(frozen=True, eq=False)
class PathResiduals:
    """Residuals y − ŷ of the ridge fits of one problem, for all α at once.

    With leverages they are those of rows in the fit, each left out: rᵢ/(1 − Hᵢᵢ).
    """

    basis: ColumnBlocks  # (s, r): T = k_S·basis − center
    center: DeviceConstant
    coef: DeviceConstant  # (r, a·t)
    target_mean: np.ndarray  # (t,)
    inverse: DeviceConstant | None  # (r, a): T²·inverse are the leverages
    intercept_leverage: float

    @classmethod
    def from_problem(
        cls,
        mapping: FeatureMap,
        problem: NormalEquations,
        alphas: np.ndarray,
        *,
        leave_one_out: bool,
    ) -> PathResiduals:
        """In the eigenvectors of the Gram matrix where leverages are needed."""
        basis, inverse = mapping.root, None
        center, intercept_leverage = mapping.center + problem.feature_mean, 0.0
        if leave_one_out:
            basis = basis @ problem.eigenvectors
            center = mapping.shift @ basis + problem.feature_mean @ problem.eigenvectors
            inverse = 1 / (problem.eigenvalues[:, None] + alphas)
            coefs = [problem.rotated_cross * column[:, None] for column in inverse.T]
            if problem.fit_intercept:
                intercept_leverage = 1 / problem.total_weight
        else:
            coefs = [problem.coefficients(alpha) for alpha in alphas]
        return cls(
            ColumnBlocks.from_matrix(basis),
            DeviceConstant(center),
            DeviceConstant(np.concatenate(coefs, axis=1)),
            mapping.target_shift + problem.target_mean,
            None if inverse is None else DeviceConstant(inverse),
            intercept_leverage,
        )

    def __call__(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(n, a, t): of the rows of a tile, where K is."""
        T = self.basis.product(K) - self.center.to_device_of(K)
        fitted = T @ self.coef.to_device_of(K)
        fitted = arrays.namespace(K).reshape(fitted, (Y.shape[0], -1, Y.shape[1]))
        residuals = arrays.from_host(Y - self.target_mean, K)[:, None, :] - fitted
        if self.inverse is None:
            return residuals
        leverage = T**2 @ self.inverse.to_device_of(K) + self.intercept_leverage
        return residuals / loo_divisor(w[:, None] * leverage)[:, :, None]


def fit_paths(
    problems: Sequence[tuple[FeatureMap, NormalEquations]],
    alphas: np.ndarray,
    *,
    leave_one_out: bool,
) -> list[PathResiduals]:
    """The fits of all α, for several numbers of landmarks."""
    return [
        PathResiduals.from_problem(*each, alphas, leave_one_out=leave_one_out)
        for each in problems
    ]


def squared_residuals(
    problems: Sequence[tuple[FeatureMap, NormalEquations]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
    *,
    leave_one_out: bool,
) -> np.ndarray:
    """(sizes, a, t): Σ w·r² over all rows, for several numbers of landmarks.

    The columns of the most landmarks are evaluated once.
    """
    largest = max((mapping for mapping, _ in problems), key=lambda m: len(m.columns))
    fits = fit_paths(problems, alphas, leave_one_out=leave_one_out)
    shared, name = (largest.columns, fits), "residuals"
    sums = engine.reduce(_squared_residuals_block, source, shared, name)
    return np.array(arrays.tree_to_host(sums)).reshape(len(problems), len(alphas), -1)


def _squared_residuals_block(
    block: Block, columns: CrossKernel, fits: list[PathResiduals]
) -> tuple[Array, ...]:
    assert block.targets is not None
    K = columns.float64(block.X)
    xp, w = arrays.namespace(K), arrays.from_host(block.weights, K)
    residuals = (fit(K, block.targets, w) for fit in fits)
    return tuple(xp.sum(w[:, None, None] * r * r, axis=0) for r in residuals)


@dataclass(frozen=True, eq=False)
class HeldOutSet:
    """Rows that are tested together, and fits without them for all sizes and α."""

    rows: np.ndarray | None  # None is all
    columns: CrossKernel
    fits: list[PathResiduals]  # one for each number of landmarks

    def subset_of(self, source: Source) -> Source:
        """The part of a source."""
        return source if self.rows is None else Subset(source, self.rows)

    def predict(self, source: Source, engine: Engine) -> np.ndarray:
        """(n, sizes·a, t) of all its rows: one number for each fit and target."""
        subset = self.subset_of(source)
        n_targets = subset.targets.shape[1]
        n_fits = sum(fit.coef.shape[1] for fit in self.fits) // n_targets
        sink = ArraySink((subset.n_rows, n_fits, n_targets))
        shared = (self.columns, self.fits)
        engine.map(held_out_predictions, subset, sink, shared, "held-out values")
        return sink.array


def held_out_predictions(
    block: Block, columns: CrossKernel, fits: list[PathResiduals]
) -> np.ndarray:
    """(n, sizes·a, t) of the rows of a tile, on the host."""
    assert block.targets is not None
    K, Y = columns.float64(block.X), np.asarray(block.targets)
    w = arrays.from_host(block.weights, K)
    residuals = [arrays.to_host(fit(K, Y, w)) for fit in fits]
    return Y[:, None, :] - np.concatenate(residuals, axis=1)


#: Rows that each of many links is fitted on, at most: they are only to be compared.
MAX_COMPARISON_ROWS = 2**12
#: Rows that are left out one by one, at most, unless all are asked for.
MAX_LEFT_OUT_ROWS = 10_000
#: What can be measured, and the best of it.
BEST_SCORES = {"accuracy": 1.0, "balanced_accuracy": 1.0, "log_loss": 0.0}


@dataclass(frozen=True, eq=False)
class ClassificationErrors:
    """Errors of all fits on each part, by one of `BEST_SCORES`."""

    name: str
    class_weights: np.ndarray | None  # (k,) that the weights of rows were multiplied by
    seed: int

    def __call__(
        self, parts: Sequence[HeldOutSet], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits): the best possible score less the score."""
        links = None
        if self.name == "log_loss":
            links = fit_probability_links(parts, source, self.seed, engine)
        errors = []
        for part in parts:
            shared = (part.columns, part.fits, links, self.class_weights)
            name = "held-out classes"
            sums = engine.reduce(_tally_block, part.subset_of(source), shared, name)
            errors.append(self._error(*arrays.tree_to_host(sums)))
        return np.array(errors)

    def _error(
        self, correct_weight: np.ndarray, class_totals: np.ndarray, loss: np.ndarray
    ) -> np.ndarray:
        if self.name == "log_loss":
            return loss / class_totals.sum()
        if self.name == "accuracy":
            return 1 - correct_weight.sum(axis=1) / class_totals.sum()
        present = class_totals > 0
        return 1 - (correct_weight[:, present] / class_totals[present]).mean(axis=1)


def fit_probability_links(
    parts: Sequence[HeldOutSet], source: Source, seed: int, engine: Engine
) -> list[ProbabilityLink]:
    """A link for each fit, from the held-out values of all parts together.

    With the weights of rows and classes, as the links of models are fitted.
    """
    rows = sorted_row_sample(source.n_rows, MAX_COMPARISON_ROWS, seed)
    values, targets, weights = [], [], []
    for part in parts:
        own_rows = rows if part.rows is None else np.intersect1d(part.rows, rows)
        part = replace(part, rows=own_rows)
        subset = part.subset_of(source)
        if not subset.n_rows:
            continue
        values.append(part.predict(source, engine))
        targets.append(np.asarray(subset.targets[: subset.n_rows]))
        weights.append(np.asarray(subset.weights))
    F, Y, w = (np.concatenate(each) for each in (values, targets, weights))
    return [fit_probability_link(F[:, fit], Y, w) for fit in range(F.shape[1])]


def remove_class_weights(
    Y: np.ndarray, weights: np.ndarray, class_weights: np.ndarray | None
) -> np.ndarray:
    """Weights of rows without those of their classes; 0 where a class has none."""
    if class_weights is None:
        return np.asarray(weights)
    weight_of_class = class_weights[class_indices(Y)]
    return np.divide(
        weights, weight_of_class, out=np.zeros(len(Y)), where=weight_of_class > 0
    )


def _tally_block(
    block: Block,
    columns: CrossKernel,
    fits: list[PathResiduals],
    links: list[ProbabilityLink] | None,
    class_weights: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ w of correct rows, by fit and class; of all, by class; Σ w·loss, by fit."""
    F, Y = held_out_predictions(block, columns, fits), np.asarray(block.targets)
    w = remove_class_weights(Y, block.weights, class_weights)
    class_index = class_indices(Y)
    n_classes, n_fits = max(2, Y.shape[1]), F.shape[1]
    correct_weight, loss = np.zeros((n_fits, n_classes)), np.zeros(n_fits)
    for fit in range(n_fits):
        is_correct = class_indices(F[:, fit]) == class_index
        correct_weight[fit] = np.bincount(class_index, w * is_correct, n_classes)
        if links is not None:
            loss[fit] = w @ links[fit].losses(F[:, fit], class_index)
    return correct_weight, np.bincount(class_index, w, n_classes), loss


Split = tuple[np.ndarray, np.ndarray]
Problems = list[tuple[FeatureMap, NormalEquations]]
#: Errors, the less the better, of the held-out values of each part: (parts, fits[, t]).
Measure = Callable[[Sequence[HeldOutSet], Source, Engine], np.ndarray]


@dataclass(frozen=True, eq=False)
class PathScores:
    """Scores of every number of landmarks and every α, from one pass."""

    landmarks: Landmarks  # the most of them
    mapping: FeatureMap
    sums: Moments
    sizes: tuple[int, ...]
    errors: np.ndarray  # (sizes, a, t) mean squared errors, or a measure's (t may be 1)
    standard_errors: (
        np.ndarray | None
    )  # (sizes, a, t) their standard errors, over folds

    def prefix(self, size_index: int) -> tuple[Landmarks, FeatureMap, Moments]:
        """Landmarks, features and sums of one of the sizes."""
        size = self.sizes[size_index]
        mapping = self.mapping.prefix(size)
        return self.landmarks[:size], mapping, self.sums.first_features(mapping.rank)


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
) -> PathScores:
    """Scores for the first landmarks, as many as each of `sizes`, and every α.

    `splits` are those of folds, or "gcv", "loo", or "loo of some" of the rows.
    """
    mapping = FeatureMap.for_ridge(
        landmarks, source, float(alphas.min()), center=fit_intercept, engine=engine
    )
    mappings = [mapping.prefix(size) for size in sizes]
    test_rows: list[np.ndarray | None] = [None]
    if isinstance(splits, str):
        sums = moments(mapping, source, engine)
        pairs: Iterable[tuple[Moments, Moments]] = [(sums, sums)]
    else:
        pairs, sums = moments_of_splits(mapping, source, splits, engine)
        test_rows = [np.sort(test) for _, test in splits]
    parts, squares = [], []
    for (train, test), rows in zip(pairs, test_rows, strict=True):
        problems = nested_problems(mappings, train, fit_intercept)
        if measure is not None:
            fits = fit_paths(problems, alphas, leave_one_out=rows is None)
            parts.append(HeldOutSet(rows, mappings[-1].columns, fits))
        elif rows is not None:
            subset = Subset(source, rows)
            errors = _test_squared_errors(
                problems, test, subset, alphas, engine.quiet()
            )
            squares.append(errors / test.weight)
        elif splits == "gcv":
            squares.append(gcv_errors(problems, source, alphas, engine))
        else:  # rᵢ/(1 − Hᵢᵢ), exact for fixed landmarks, in a second pass
            left_out = source
            if splits == "loo of some" and not source.is_weighted:
                few = sorted_row_sample(source.n_rows, MAX_LEFT_OUT_ROWS)
                left_out = Subset(source, few)
            errors = squared_residuals(
                problems, left_out, alphas, engine, leave_one_out=True
            )
            squares.append(errors / left_out.total_weight)
    by_split, standard_errors = np.array(squares), None
    if measure is not None:
        by_split = measure(parts, source, engine)
        by_split = by_split.reshape(len(parts), len(sizes), len(alphas), -1)
    if len(by_split) > 1:
        standard_errors = by_split.std(axis=0, ddof=1) / np.sqrt(len(by_split))
    errors = by_split.mean(axis=0)
    return PathScores(landmarks, mapping, sums, tuple(sizes), errors, standard_errors)


def nested_problems(
    mappings: Sequence[FeatureMap], sums: Moments, fit_intercept: bool
) -> Problems:
    """A ridge problem for each number of landmarks, from the sums of the most."""
    parts = (sums.first_features(mapping.rank) for mapping in mappings)
    problems = (NormalEquations.from_moments(part, fit_intercept) for part in parts)
    return list(zip(mappings, problems, strict=True))


def gcv_errors(
    problems: Problems, source: Source, alphas: np.ndarray, engine: Engine
) -> np.ndarray:
    """(sizes, a, t): by generalised cross-validation, from the sums alone.

    Only where cancellation leaves nothing but rounding, as in fits that pass close to
    all targets, residuals are recomputed from the rows.
    """
    squares = [problem.residual_squares(alphas) for _, problem in problems]
    inaccurate = [
        i
        for i, (_, problem) in enumerate(problems)
        if not problem.residuals_are_accurate(alphas)
    ]
    _recompute_from_rows(squares, inaccurate, problems, source, alphas, engine)
    pairs = zip(problems, squares, strict=True)
    return np.array([problem.gcv(alphas, each) for (_, problem), each in pairs])


def _test_squared_errors(
    problems: Problems,
    test: Moments,
    test_source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t): Σ w(y − ŷ)² of rows that were held out, from their sums.

    Recomputed from the rows where cancellation leaves nothing but rounding: targets
    far from 0 without an intercept, fits that pass close to all of them.
    """
    squares, inaccurate = [], []
    for i, (mapping, problem) in enumerate(problems):
        sums, errors = test.first_features(mapping.rank), []
        for alpha in alphas:
            coef = problem.coefficients(alpha)
            offset = problem.target_mean - problem.feature_mean @ coef
            errors.append(sum_of_squared_errors(sums, coef, offset))
        sums_of_squares, rounding = np.swapaxes(errors, 0, 1)
        squares.append(sums_of_squares)
        if np.any(rounding > RESIDUAL_RTOL * sums_of_squares):
            inaccurate.append(i)
    _recompute_from_rows(squares, inaccurate, problems, test_source, alphas, engine)
    return np.array(squares)


def _recompute_from_rows(
    squares: list[np.ndarray],
    inaccurate: Sequence[int],
    problems: Problems,
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> None:
    """Replace sums that cancellation made inaccurate by sums over the rows."""
    if inaccurate:
        inaccurate_problems = [problems[i] for i in inaccurate]
        recomputed = squared_residuals(
            inaccurate_problems, source, alphas, engine, leave_one_out=False
        )
        for i, errors in zip(inaccurate, recomputed, strict=True):
            squares[i] = errors


def moments_of_splits(
    mapping: FeatureMap, source: Source, splits: Sequence[Split], engine: Engine
) -> tuple[Iterable[tuple[Moments, Moments]], Moments]:
    """The sums over train and test rows of each split, and those over all rows.

    Every row is visited once where the splits cut the rows into few parts (folds,
    groups, time series), and once for each train and test set otherwise.
    """
    groups, groups_of_split = _group_rows_by_role(splits, source.n_rows)

    def moments_of(rows: np.ndarray) -> Moments:
        return moments(mapping, Subset(source, rows), engine)

    if groups is None:
        pairs: Iterable[tuple[Moments, Moments]] = (
            (moments_of(np.sort(train)), moments_of(np.sort(test)))
            for train, test in splits
        )
        return pairs, moments(mapping, source, engine)
    zero = Moments.zero(mapping.rank, source.targets.shape[1])
    sums = [moments_of(rows) for rows in groups]
    pairs = (
        (sum((sums[i] for i in train), zero), sum((sums[i] for i in test), zero))
        for train, test in groups_of_split
    )
    return pairs, sum(sums, zero)


def _group_rows_by_role(
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
    groups_of_split = [
        (np.unique(signature[train]).tolist(), np.unique(signature[test]).tolist())
        for train, test in splits
    ]
    return groups, groups_of_split
