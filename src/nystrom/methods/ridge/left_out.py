"""What a ridge regression says of rows that it is fitted to, as if it were not.

The value of a row by a fit without it is y − (y − f)/(1 − h), exact for fixed
landmarks, where h, its leverage, comes from the Gram matrix that the fit has made.

A row that is a landmark leaves as both. Otherwise its basis function stays, and the
other rows, where it is small, determine its coefficient: with little ridge the value at
the landmark itself is then far off, as no value of a new row is. New rows have no basis
function of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...columns import Columns
from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...landmarks import Landmarks
from ...operands import Operand
from ...precision import EPS64, least_ridge
from ...sinks import ArraySink
from ...sources import Block, Source, Subset
from ..linear_map import LinearMap
from ..link import classes_of
from .posterior import Posterior
from .problem import with_ridge

#: A projection for each different α, and the places of its targets.
Projections = list[tuple[Operand, Operand, np.ndarray]]


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


def left_out_values(
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
    some = Subset(source, rows)
    columns = landmarks.columns(wide=mapping.wide)
    fit = Operand(mapping.dual), Operand(mapping.intercept)
    own = OwnLandmarks.of(landmarks, rows, posterior.root)
    projections = _projections(posterior)
    shared = (columns, *fit, projections, posterior.own, own, class_weights)
    n_targets = mapping.dual.shape[1]
    sink = ArraySink((len(rows), 3 * n_targets + 1))
    engine.map(_left_out, some, sink, shared, "leave-one-out")
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


def _projections(posterior: Posterior) -> Projections:
    """M with ‖k_S·M − offset‖² = (z − z̄)ᵀ(G + αI)⁻¹(z − z̄)."""
    gram, found = posterior.gram, []
    with blas_threads_for(len(gram)):
        for alpha in np.unique(posterior.alphas):
            M = posterior.root @ _inverse_root(gram, alpha)
            places = np.flatnonzero(posterior.alphas == alpha)
            found.append((Operand(M), Operand(posterior.center @ M), places))
    return found


def _inverse_root(gram: np.ndarray, alpha: float) -> np.ndarray:
    """B with BBᵀ = (G + αI)⁻¹."""
    # An α below rounding, such as that of least squares, is raised to it.
    ridge = max(alpha, least_ridge(gram))
    try:
        L = scipy.linalg.cholesky(with_ridge(gram, ridge), lower=True)
        return scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True).T
    except np.linalg.LinAlgError:
        # Rows that are alike leave rounding about their mean, less than 0 too.
        values, vectors = np.linalg.eigh(gram)
        cut = ridge + 2 * np.abs(values.min())
        return vectors * np.where(values > cut, 1 / np.sqrt(np.maximum(values, cut)), 0)


def _left_out(
    block: Block,
    columns: Columns,
    dual: Operand,
    intercept: Operand,
    projections: Projections,
    own: float,
    own_landmarks: OwnLandmarks,
    class_weights: np.ndarray | None,
) -> np.ndarray:
    assert block.targets is not None
    K = columns.float64(block.X)
    Y = np.asarray(block.targets)
    F = arrays.to_host(K @ dual.beside(K) + intercept.beside(K))
    of_class = 1.0 if class_weights is None else class_weights[classes_of(Y)]
    removed = np.minimum(block.weights, of_class)
    values, kept = np.empty_like(F), np.empty_like(F)
    rows, numbers = own_landmarks.within(block)
    for M, offset, places in projections:
        P = K @ M.beside(K) - offset.beside(K)
        squares = arrays.to_host(arrays.squared_norms(P))
        fitted, y = F[:, places], Y[:, places]
        left = _not_own(squares + own, removed)
        kept[:, places] = y - (y - fitted) / left
        values[:, places] = kept[:, places]
        if len(rows):
            projected = arrays.to_host(arrays.take_rows(P, rows))
            share, rest = _without(projected, M.values[numbers])
            fitted = fitted[rows]
            fitted -= share[:, None] * dual.values[np.ix_(numbers, places)]
            left = _not_own(rest + own, removed[rows])
            values[np.ix_(rows, places)] = y[rows] - (y[rows] - fitted) / left
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
