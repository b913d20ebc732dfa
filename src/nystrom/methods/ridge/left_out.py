"""What a ridge regression says of rows that it is fitted to, as if it were not.

The value of a row by a fit without it is y − (y − f)/(1 − h), exact for fixed
landmarks, where h, its leverage, comes from the Gram matrix that the fit has made.
"""

from __future__ import annotations

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
from .posterior import Posterior
from .problem import with_ridge

#: A projection for each different α, and the places of its targets.
Projections = list[tuple[Operand, Operand, np.ndarray]]


def left_out_values(
    landmarks: Landmarks,
    source: Source,
    rows: np.ndarray,
    mapping: LinearMap,
    posterior: Posterior,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, t) twice: the values of some rows by fits without them, and the targets.

    A row of weight w is w rows, of which one is left out.
    """
    some = Subset(source, rows)
    columns = landmarks.columns(wide=mapping.wide)
    fit = Operand(mapping.dual), Operand(mapping.intercept)
    shared = (columns, *fit, _projections(posterior), posterior.own)
    n_targets = mapping.dual.shape[1]
    sink = ArraySink((len(rows), 2 * n_targets))
    engine.map(_left_out, some, sink, shared, "leave-one-out")
    return sink.array[:, :n_targets], sink.array[:, n_targets:]


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
) -> np.ndarray:
    assert block.targets is not None
    K = columns.float64(block.X)
    Y = np.asarray(block.targets)
    F = arrays.to_host(K @ dual.beside(K) + intercept.beside(K))
    copies = np.minimum(block.weights, 1.0)
    values = np.empty_like(F)
    for M, offset, places in projections:
        squares = arrays.squared_norms(K @ M.beside(K) - offset.beside(K))
        leverage = copies * (arrays.to_host(squares) + own)
        left = np.maximum(1 - leverage, 10 * EPS64)[:, None]
        values[:, places] = Y[:, places] - (Y[:, places] - F[:, places]) / left
    return np.hstack([values, Y])
