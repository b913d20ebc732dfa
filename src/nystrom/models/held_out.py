"""Predictions for rows that a ridge fit has not seen: leave-one-out by the hat matrix,
or folds.

All numbers of landmarks and all α at once, tile by tile. Residual sums are
recomputed from the rows where moments lose them to cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import EPS64, min_cholesky_ridge
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.factor import ColumnBlocks
from ..linalg.features import FeatureMap
from ..sources import Block, Source, Subset
from ..sources.output import ArraySink
from .calibration import class_indices
from .linear_map import LinearMap
from .posterior import Posterior
from .ridge import NormalEquations, add_ridge


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
        return residuals / not_own(w[:, None] * leverage)[:, :, None]


def not_own(leverage: Array) -> Array:
    """1 − H: the share of a row's value that is not by itself, at least rounding."""
    return arrays.clip_min(1 - leverage, 10 * EPS64)


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
        assert subset.targets is not None
        n_targets = subset.targets.shape[1]
        n_fits = sum(fit.coef.shape[1] for fit in self.fits) // n_targets
        sink = ArraySink((subset.n_rows, n_fits, n_targets))
        shared = (self.columns, self.fits)
        engine.map(held_out_predictions, subset, sink, shared, "held-out values")
        return sink.array

    def restrict_to(self, rows: np.ndarray) -> HeldOutSet:
        """The part of this one that is among some rows, ascending."""
        own_rows = rows if self.rows is None else np.intersect1d(self.rows, rows)
        return replace(self, rows=own_rows)


def held_out_predictions(
    block: Block, columns: CrossKernel, fits: list[PathResiduals]
) -> np.ndarray:
    """(n, sizes·a, t) of the rows of a tile, on the host."""
    assert block.targets is not None
    K, Y = columns.float64(block.X), np.asarray(block.targets)
    w = arrays.from_host(block.weights, K)
    residuals = [arrays.to_host(fit(K, Y, w)) for fit in fits]
    return Y[:, None, :] - np.concatenate(residuals, axis=1)


def leave_one_out_predictions(
    landmarks: Landmarks,
    source: Source,
    rows: np.ndarray,
    mapping: LinearMap,
    posterior: Posterior,
    engine: Engine,
    class_weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions (m, t) for some rows, ascending, their targets and their weights.

    By one fit, and as exact as a fit without each.

    A row of weight w is w rows, of which one is left out; but the weight of its class
    (k,), which weights of rows were multiplied by, is left out with it. If the row is a
    landmark, its basis function is removed too, from one of the w: for the others, of
    which there are copies, there is a value more, at the end.
    """
    copies, numbers = _rows_that_are_landmarks(landmarks, rows, posterior.root)
    shared = (
        landmarks.columns(wide=mapping.wide),
        DeviceConstant(mapping.dual),
        DeviceConstant(mapping.intercept),
        _leverage_projections(posterior),
        posterior.own,
        (copies, numbers),
        class_weights,
    )
    n_targets = mapping.dual.shape[1]
    sink = ArraySink((len(rows), 3 * n_targets + 1))
    subset, name = Subset(source, rows), "leave-one-out"
    engine.map(_leave_one_out_block, subset, sink, shared, name)
    F, kept, Y, removed = np.split(sink.array, np.arange(1, 4) * n_targets, axis=1)
    w = np.array(source.weights_of(rows), dtype=np.float64)
    rest = w[copies] - removed[copies, 0]
    copies, rest = copies[rest > 0], rest[rest > 0]
    w[copies] = removed[copies, 0]
    return (
        np.concatenate([F, kept[copies]]),
        np.concatenate([Y, Y[copies]]),
        np.concatenate([w, rest]),
    )


def _rows_that_are_landmarks(
    landmarks: Landmarks, rows: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions among the rows, ascending, and which landmarks these are.

    Landmarks that are no rows, or have no basis function, do not count.
    """
    if landmarks.indices is None:
        none = np.empty(0, dtype=np.intp)
        return none, none
    used = np.flatnonzero(root.any(axis=1))
    indices = landmarks.indices[used]
    _, positions, numbers = np.intersect1d(rows, indices, return_indices=True)
    return positions, used[numbers]


#: A projection for each different α, and the places of its targets.
LeverageProjections = list[tuple[DeviceConstant, DeviceConstant, np.ndarray]]


def _leverage_projections(posterior: Posterior) -> LeverageProjections:
    """M with ‖k_S·M − offset‖² = (z − z̄)ᵀ(G + αI)⁻¹(z − z̄)."""
    gram, projections = posterior.gram, []
    with blas_limit_for_size(len(gram)):
        for alpha in np.unique(posterior.alphas):
            M = posterior.root @ _inverse_sqrt(gram, alpha)
            constants = DeviceConstant(M), DeviceConstant(posterior.center @ M)
            targets = np.flatnonzero(posterior.alphas == alpha)
            projections.append((*constants, targets))
    return projections


def _inverse_sqrt(gram: np.ndarray, alpha: float) -> np.ndarray:
    """B with BBᵀ = (G + αI)⁻¹."""
    # An α below rounding, such as that of least squares, is raised to it.
    ridge = max(alpha, min_cholesky_ridge(gram))
    try:
        L = scipy.linalg.cholesky(add_ridge(gram, ridge), lower=True)
        return scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True).T
    except np.linalg.LinAlgError:
        # Rows that are alike leave rounding about their mean, less than 0 too.
        values, vectors = np.linalg.eigh(gram)
        cut = ridge + 2 * np.abs(values.min())
        return vectors * np.where(values > cut, 1 / np.sqrt(np.maximum(values, cut)), 0)


def _leave_one_out_block(
    block: Block,
    columns: CrossKernel,
    dual: DeviceConstant,
    intercept: DeviceConstant,
    projections: LeverageProjections,
    intercept_leverage: float,
    own_landmarks: tuple[np.ndarray, np.ndarray],
    class_weights: np.ndarray | None,
) -> np.ndarray:
    assert block.targets is not None
    K = columns.float64(block.X)
    Y = np.asarray(block.targets)
    F = arrays.to_host(K @ dual.to_device_of(K) + intercept.to_device_of(K))
    of_class = 1.0 if class_weights is None else class_weights[class_indices(Y)]
    removed = np.minimum(block.weights, of_class)
    values, kept = np.empty_like(F), np.empty_like(F)
    positions, numbers = own_landmarks
    ends = [block.start, block.start + len(block)]
    own = slice(*np.searchsorted(positions, ends))
    rows, numbers = positions[own] - block.start, numbers[own]
    for M, offset, target_indices in projections:
        P = K @ M.to_device_of(K) - offset.to_device_of(K)
        squares = arrays.to_host(arrays.squared_norms(P))
        fitted, y = F[:, target_indices], Y[:, target_indices]
        leverage = removed * (squares + intercept_leverage)
        kept[:, target_indices] = y - (y - fitted) / not_own(leverage)[:, None]
        values[:, target_indices] = kept[:, target_indices]
        if len(rows):
            projected = arrays.to_host(arrays.take_rows(P, rows))
            share, rest = _without(projected, M.values[numbers])
            fitted = fitted[rows]
            fitted -= share[:, None] * dual.values[np.ix_(numbers, target_indices)]
            leverage = removed[rows] * (rest + intercept_leverage)
            left_out = y[rows] - (y[rows] - fitted) / not_own(leverage)[:, None]
            values[np.ix_(rows, target_indices)] = left_out
    return np.hstack([values, kept, Y, removed[:, None]])


def _without(P: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row: what its value changes by per coefficient removed, and its leverage.

    (MMᵀ)ᵢᵢ is the variance of landmark i's coefficient, and Mᵢ·p its covariance with
    the row's value: the constraint that the coefficient is 0 is a step along Mᵢ.
    """
    squares = np.vecdot(basis, basis)
    share = np.vecdot(P, basis)
    share = np.divide(share, squares, out=np.zeros_like(share), where=squares > 0)
    rest = P - share[:, None] * basis
    return share, np.vecdot(rest, rest)
