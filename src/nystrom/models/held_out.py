"""Predictions for rows that a ridge fit has not seen: leave-one-out by the hat matrix,
or folds.

All numbers of landmarks and all α at once, tile by tile. Residual sums are
recomputed from the rows where moments lose them to cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

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
from ..linalg.moments import Moments
from ..sources import Block, Source, Subset
from ..sources.output import ArraySink
from .calibration import class_indices
from .linear_map import LinearMap
from .posterior import Posterior
from .ridge import NormalEquations, add_ridge, dual_coefficients


@dataclass(frozen=True, eq=False)
class LeaveOneOutResiduals:
    """A ridge problem in the eigenvectors of its Gram matrix, for all α at once."""

    eigenbasis: DeviceConstant  # (s, r): T = k_S·rotated − center
    center: DeviceConstant
    inverse: DeviceConstant  # (r, a)
    coef: DeviceConstant  # (r, a·t)
    mean: np.ndarray  # (t,) of y
    own: float  # what an intercept adds to every leverage

    @classmethod
    def from_problem(
        cls,
        mapping: FeatureMap,
        problem: NormalEquations,
        alphas: np.ndarray,
        total: float,
    ) -> LeaveOneOutResiduals:
        path = problem.path
        eigenbasis = mapping.root @ path.vectors
        inverse = 1 / (path.values[:, None] + alphas)
        columns = [path.cross * inverse[:, [a]] for a in range(len(alphas))]
        return cls(
            DeviceConstant(eigenbasis),
            DeviceConstant(
                mapping.shift @ eigenbasis + problem.feature_mean @ path.vectors
            ),
            DeviceConstant(inverse),
            DeviceConstant(np.concatenate(columns, axis=1)),
            mapping.target_shift + problem.target_mean,
            1 / total if problem.fit_intercept else 0.0,
        )

    def residuals(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(n, a, t): rᵢ/(1 − Hᵢᵢ) of the rows of a tile, where K is."""
        xp = arrays.namespace(K)
        T = K[:, : len(self.eigenbasis)] @ self.eigenbasis.to_device_of(
            K
        ) - self.center.to_device_of(K)
        n, n_targets = Y.shape
        fitted = xp.reshape(T @ self.coef.to_device_of(K), (n, -1, n_targets))
        residuals = arrays.from_host(Y - self.mean, K)[:, None, :] - fitted
        leverage = w[:, None] * (
            T**2 @ self.inverse.to_device_of(K) + self.own
        )  # (n, a)
        # A row that the fit passes through whatever its target has no say of its own.
        unexplained = arrays.clip_min(1 - leverage, 10 * EPS64)
        residuals /= unexplained[:, :, None]
        return residuals


@dataclass(frozen=True, eq=False)
class LeaveOneOutPredictor:
    """Each row by a fit without it."""

    problems: list[LeaveOneOutResiduals]  # one for each number of landmarks

    def values(self, K: Array, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(n, sizes·a, t), on the host."""
        w_on_device = arrays.from_host(w, K)
        residuals = [
            arrays.to_host(p.residuals(K, Y, w_on_device)) for p in self.problems
        ]
        return Y[:, None, :] - np.concatenate(residuals, axis=1)


@dataclass(frozen=True, eq=False)
class FoldPredictor:
    """Rows by fits to other rows."""

    dual: DeviceConstant  # (s, sizes·a·t)
    intercept: DeviceConstant

    @classmethod
    def from_moments(
        cls,
        train: Moments,
        mappings: Sequence[FeatureMap],
        alphas: np.ndarray,
        fit_intercept: bool,
    ) -> FoldPredictor:
        """From the sums over the other rows; a mapping for each number of landmarks."""
        max_landmarks, n_targets = (
            max(len(m.columns) for m in mappings),
            train.cross.shape[1],
        )
        shape = (len(mappings), len(alphas), n_targets)
        dual, intercept = np.zeros((max_landmarks, *shape)), np.zeros(shape)
        for i, mapping in enumerate(mappings):
            problem = NormalEquations.from_moments(
                train.first_features(mapping.rank), fit_intercept
            )
            for a, alpha in enumerate(alphas):
                coef = problem.path.coefficients(alpha)
                dual_of_prefix, intercept[i, a] = dual_coefficients(
                    mapping, problem, coef
                )
                dual[: len(dual_of_prefix), i, a] = dual_of_prefix
        return cls(
            DeviceConstant(dual.reshape(max_landmarks, -1)),
            DeviceConstant(intercept.reshape(-1)),
        )

    def values(self, K: Array, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(n, sizes·a, t), on the host."""
        predictions = K @ self.dual.to_device_of(K) + self.intercept.to_device_of(K)
        return arrays.to_host(predictions).reshape(len(Y), -1, Y.shape[1])


@dataclass(frozen=True, eq=False)
class HeldOutSet:
    """Rows that are tested together, and what makes their values."""

    rows: np.ndarray | None  # None is all
    columns: CrossKernel
    fits: FoldPredictor | LeaveOneOutPredictor
    n_fits: int  # sizes·a

    def subset_of(self, source: Source) -> Source:
        """The part of a source."""
        return source if self.rows is None else Subset(source, self.rows)

    def predict(self, source: Source, engine: Engine) -> np.ndarray:
        """(n, sizes·a, t) of all its rows: one number for each fit and target."""
        subset = self.subset_of(source)
        assert subset.targets is not None
        n_targets = subset.targets.shape[1]
        sink = ArraySink((subset.n_rows, self.n_fits * n_targets))
        engine.map(
            _held_out_predictions_block,
            subset,
            sink,
            (self.columns, self.fits),
            "held-out values",
        )
        return sink.array.reshape(subset.n_rows, self.n_fits, n_targets)

    def restrict_to(self, rows: np.ndarray) -> HeldOutSet:
        """The part of this one that is among some rows, ascending."""
        own_rows = rows if self.rows is None else np.intersect1d(self.rows, rows)
        return HeldOutSet(own_rows, self.columns, self.fits, self.n_fits)


def held_out_predictions(
    block: Block, columns: CrossKernel, fits: FoldPredictor | LeaveOneOutPredictor
) -> np.ndarray:
    """(n, sizes·a, t) of the rows of a tile, on the host."""
    assert block.targets is not None
    K = columns.float64(block.X)
    return fits.values(K, np.asarray(block.targets), block.weights)


def _held_out_predictions_block(
    block: Block, columns: CrossKernel, fits: FoldPredictor | LeaveOneOutPredictor
) -> np.ndarray:
    return held_out_predictions(block, columns, fits).reshape(len(block), -1)


#: A projection for each different α, and the places of its targets.
LeverageProjections = list[tuple[DeviceConstant, DeviceConstant, np.ndarray]]


@dataclass(frozen=True, eq=False)
class OwnLandmarks:
    """Which of some rows are landmarks, and which landmarks these are."""

    rows: np.ndarray  # positions among the rows, ascending
    landmarks: np.ndarray  # their numbers, of the same length

    @classmethod
    def of(cls, landmarks: Landmarks, rows: np.ndarray, root: np.ndarray) -> Self:
        """Landmarks that are no rows, or have no basis function, do not count."""
        if landmarks.indices is None:
            none = np.empty(0, dtype=np.intp)
            return cls(none, none)
        used = np.flatnonzero(root.any(axis=1))
        _, at, numbers = np.intersect1d(
            rows, landmarks.indices[used], return_indices=True
        )
        return cls(at, used[numbers])

    def within(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """The same for the rows of a block."""
        ends = [block.start, block.start + len(block)]
        first, last = np.searchsorted(self.rows, ends)
        return self.rows[first:last] - block.start, self.landmarks[first:last]


@dataclass(frozen=True, eq=False)
class LeftOutValues:
    """Values of rows by fits without them, their targets and what they count for."""

    values: np.ndarray  # (m, t)
    targets: np.ndarray  # (m, t)
    weights: np.ndarray  # (m,)


def leave_one_out_predictions(
    landmarks: Landmarks,
    source: Source,
    rows: np.ndarray,
    mapping: LinearMap,
    posterior: Posterior,
    engine: Engine,
    class_weights: np.ndarray | None = None,
) -> LeftOutValues:
    """Of some rows, in ascending order.

    A row of weight w is w rows, of which one is left out; but the weight of its class
    (k,), which weights of rows were multiplied by, is left out with it. If the row is a
    landmark, its basis function is removed too, from one of the w: for the others, of
    which there are copies, there is a value more, at the end.
    """
    subset = Subset(source, rows)
    columns = landmarks.columns(wide=mapping.wide)
    map_arguments = DeviceConstant(mapping.dual), DeviceConstant(mapping.intercept)
    own = OwnLandmarks.of(landmarks, rows, posterior.root)
    projections = _leverage_projections(posterior)
    shared = (columns, *map_arguments, projections, posterior.own, own, class_weights)
    n_targets = mapping.dual.shape[1]
    sink = ArraySink((len(rows), 3 * n_targets + 1))
    engine.map(_leave_one_out_block, subset, sink, shared, "leave-one-out")
    F, kept, Y, removed = np.split(sink.array, np.arange(1, 4) * n_targets, axis=1)
    w, copies = np.array(source.weights_of(rows), dtype=np.float64), own.rows
    rest = w[copies] - removed[copies, 0]
    copies, rest = copies[rest > 0], rest[rest > 0]
    w[copies] = removed[copies, 0]
    return LeftOutValues(
        np.concatenate([F, kept[copies]]),
        np.concatenate([Y, Y[copies]]),
        np.concatenate([w, rest]),
    )


def _leverage_projections(posterior: Posterior) -> LeverageProjections:
    """M with ‖k_S·M − offset‖² = (z − z̄)ᵀ(G + αI)⁻¹(z − z̄)."""
    gram, projections = posterior.gram, []
    with blas_limit_for_size(len(gram)):
        for alpha in np.unique(posterior.alphas):
            M = posterior.root @ _inverse_sqrt(gram, alpha)
            target_indices = np.flatnonzero(posterior.alphas == alpha)
            projections.append(
                (
                    DeviceConstant(M),
                    DeviceConstant(posterior.center @ M),
                    target_indices,
                )
            )
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
    own_landmarks: OwnLandmarks,
    class_weights: np.ndarray | None,
) -> np.ndarray:
    assert block.targets is not None
    K = columns.float64(block.X)
    Y = np.asarray(block.targets)
    F = arrays.to_host(K @ dual.to_device_of(K) + intercept.to_device_of(K))
    of_class = 1.0 if class_weights is None else class_weights[class_indices(Y)]
    removed = np.minimum(block.weights, of_class)
    values, kept = np.empty_like(F), np.empty_like(F)
    rows, numbers = own_landmarks.within(block)
    for M, offset, target_indices in projections:
        P = K @ M.to_device_of(K) - offset.to_device_of(K)
        squares = arrays.to_host(arrays.squared_norms(P))
        fitted, y = F[:, target_indices], Y[:, target_indices]
        unexplained = _not_own(squares + intercept_leverage, removed)
        kept[:, target_indices] = y - (y - fitted) / unexplained
        values[:, target_indices] = kept[:, target_indices]
        if len(rows):
            projected = arrays.to_host(arrays.take_rows(P, rows))
            share, rest = _without(projected, M.values[numbers])
            fitted = fitted[rows]
            fitted -= share[:, None] * dual.values[np.ix_(numbers, target_indices)]
            unexplained = _not_own(rest + intercept_leverage, removed[rows])
            values[np.ix_(rows, target_indices)] = (
                y[rows] - (y[rows] - fitted) / unexplained
            )
    return np.hstack([values, kept, Y, removed[:, None]])


def _not_own(leverage: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """(n, 1): the share of a row's value that is not by itself, at least rounding."""
    return np.maximum(1 - removed * leverage, 10 * EPS64)[:, None]


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


def residual_squares_from_rows(
    problems: Sequence[tuple[FeatureMap, NormalEquations]],
    source: Source,
    alphas: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    """(sizes, a, t), each by the columns of the most landmarks, evaluated once."""
    mappings = [mapping for mapping, _ in problems]
    largest = max(mappings, key=lambda mapping: len(mapping.columns))
    fits = [
        _RidgeSolutions.from_problem(mapping, problem, alphas)
        for mapping, problem in problems
    ]
    sums = engine.reduce(
        _residual_squares_block, source, (largest.columns, fits), "residuals"
    )
    return np.array(arrays.tree_to_host(sums)).reshape(len(problems), len(alphas), -1)


@dataclass(frozen=True, eq=False)
class _RidgeSolutions:
    """A ridge problem solved for all α."""

    root: ColumnBlocks
    center: DeviceConstant  # (r,) taken off every z
    coef: DeviceConstant  # (r, a·t)
    mean: np.ndarray  # (t,) of y

    @classmethod
    def from_problem(
        cls, mapping: FeatureMap, problem: NormalEquations, alphas: np.ndarray
    ) -> _RidgeSolutions:
        coefs = [problem.path.coefficients(alpha) for alpha in alphas]
        return cls(
            ColumnBlocks.from_matrix(mapping.root),
            DeviceConstant(mapping.center + problem.feature_mean),
            DeviceConstant(np.concatenate(coefs, axis=1)),
            mapping.target_shift + problem.target_mean,
        )

    def squares(self, K: Array, Y: np.ndarray, w: Array) -> Array:
        """(a, t): Σ w·r² over the rows of a tile, where K is."""
        xp = arrays.namespace(K)
        Z = self.root.product(K) - self.center.to_device_of(K)
        fitted = xp.reshape(Z @ self.coef.to_device_of(K), (Y.shape[0], -1, Y.shape[1]))
        residuals = arrays.from_host(Y - self.mean, K)[:, None, :] - fitted
        return xp.sum(w[:, None, None] * residuals * residuals, axis=0)


def _residual_squares_block(
    block: Block, columns: CrossKernel, fits: list[_RidgeSolutions]
) -> tuple[Array, ...]:
    assert block.targets is not None
    K = columns.float64(block.X)
    w = arrays.from_host(block.weights, K)
    return tuple(fit.squares(K, block.targets, w) for fit in fits)
