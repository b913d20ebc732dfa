"""Principal components of Z, which are those of K̃ (the paper's appendix on kernel PCA).

The paper's X = (SᵀKS)⁺SᵀK̃^½W̃ is root·V here, V being eigenvectors of the Gram matrix:
the same span, without a root of K̃ and also for landmarks that are not rows. Taking the
mean off Z gives HK̃H exactly.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.utils.extmath import randomized_svd

from ..approximation import told_error
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.progress import expect
from ..features import FeatureMap
from ..landmarks import Landmarks
from ..moments import Moments, moments
from ..precision import least_component
from ..sources import Source
from ..trace_error import TraceError
from .ridge.problem import Centered

#: With fewer components than this, and more landmarks than that, Lanczos is faster.
FEW_COMPONENTS, MANY_LANDMARKS = 10, 200
#: Restarts that ARPACK has at least.
LEAST_RESTARTS = 50


@dataclass(frozen=True, eq=False)
class Components:
    """Directions, as coefficients of kernel values with the landmarks."""

    dual: np.ndarray  # (s, k): k_S(x)·dual − offset are the coordinates of x
    offset: np.ndarray  # (k,), 0 where no mean is taken off
    values: np.ndarray  # (k,) eigenvalues of K̃, or of HK̃H, descending
    total: float  # the trace of K, or of HKH as far as K̃ knows the mean
    error: TraceError | None
    sizes: np.ndarray  # numbers of landmarks, ascending, the last all of them …
    shares: np.ndarray  # (sizes, k) … and what the components have of the trace


def components(
    landmarks: Landmarks,
    source: Source,
    n_components: int | None,
    engine: Engine,
    *,
    center: bool,
    solver: str = "auto",
    seed: int = 0,
    tol: float = 0.0,
    max_iter: int | None = None,
    iterated_power: int | str = "auto",
) -> Components:
    """The leading components; as many as K̃ has rank for None."""
    mapping = FeatureMap.resolving(landmarks, source, center=center)
    expect(engine.progress, 1)
    sums = moments(mapping, source, engine)
    engine.progress("components", 0, 1)
    problem = Centered.of(sums, center)
    rank, root = mapping.rank, mapping.root
    k = min(rank, rank if n_components is None else n_components)
    with blas_threads_for(rank):
        values, vectors = leading_eigenpairs(
            problem.gram, k, solver, seed, tol, max_iter, iterated_power
        )
    mean = np.zeros(len(root))
    if center:
        # Any vector of kernel values with the same rootᵀ stands for the mean.
        mean = mapping.factor.values_with_root(mapping.center + problem.feature_mean)
    mean_z = mean @ root
    total = sums.kernel_trace - sums.weight * float(mean_z @ mean_z)
    path = variance_path(mapping, problem, sums, values)
    least = least_component(mapping.columns.narrow)
    # What is rounding beside the largest eigenvalue counts as 0.
    values = np.where(values > least * values.max(initial=0.0), values, 0.0)
    dual = (root @ vectors) * (values > 0)
    error = told_error(landmarks, mapping, sums, source, engine)
    return Components(dual, mean @ dual, values, total, error, *path)


def variance_path(
    mapping: FeatureMap, problem: Centered, sums: Moments, of_all: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the components of the first landmarks alone have of the whole trace.

    For all landmarks, half of them, a quarter, …: eigenvalues of leading blocks of the
    one Gram matrix. All that together takes a seventh of what the whole one does, whose
    eigenvalues are known.
    """
    s, n_components = len(mapping.columns), max(1, len(of_all))
    sizes = [s]
    while mapping.factor.is_nested and sizes[-1] // 2 >= n_components:
        sizes.append(sizes[-1] // 2)
    mean = mapping.center + problem.feature_mean
    shares = np.zeros((len(sizes), n_components))
    for row, size in enumerate(sizes):
        r = mapping.factor.prefix(size).rank if size < s else mapping.rank
        total = sums.kernel_trace
        if problem.fit_intercept:
            total -= sums.weight * float(mean[:r] @ mean[:r])
        k = min(n_components, r)
        if k and total > 0:
            values = of_all
            if size < s:
                block = problem.gram[:r, :r]
                values = np.maximum(_largest(block, k)[0][::-1], 0.0)
            shares[row, :k] = values / total
    return np.array(sizes[::-1]), shares[::-1]


def leading_eigenpairs(
    G: np.ndarray,
    k: int,
    solver: str,
    seed: int,
    tol: float,
    max_iter: int | None,
    iterated_power: int | str,
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of G ⪰ 0, descending, and eigenvectors."""
    r = len(G)
    if solver == "auto":
        lanczos = r > MANY_LANDMARKS and k < FEW_COMPONENTS
        solver = "arpack" if lanczos else "dense"
    if k == 0:
        return np.zeros(0), np.zeros((r, 0))
    if solver == "dense" or k >= r:
        values, vectors = _largest(G, k)
    elif solver == "arpack":
        values, vectors = _by_lanczos(G, k, seed, tol, max_iter)
    else:
        vectors, values, _ = randomized_svd(
            G, k, n_iter=iterated_power, random_state=seed % 2**32
        )
    order = np.argsort(values)[::-1]
    return np.maximum(values[order], 0.0), vectors[:, order]


def _by_lanczos(
    G: np.ndarray, k: int, seed: int, tol: float, max_iter: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The same by ARPACK; by LAPACK where that fails, many being as good as equal.

    From half as many restarts as G has rows on LAPACK would have been faster; ARPACK's
    own limit is twenty times that, which took a minute for a thousand rows.
    """
    start = np.random.default_rng(seed).uniform(-1, 1, len(G))
    max_iter = max(LEAST_RESTARTS, len(G) // 2) if max_iter is None else max_iter
    try:
        return eigsh(G, k, which="LA", tol=tol, maxiter=max_iter, v0=start)
    except ArpackError:
        return _largest(G, k)


def _largest(G: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of G, ascending, and eigenvectors.

    LAPACK's way to some of them may fail, or find fewer, where many are as good as
    equal; that to all of them does not.
    """
    r = len(G)
    with suppress(np.linalg.LinAlgError):
        values, vectors = scipy.linalg.eigh(G, subset_by_index=(r - k, r - 1))
        if len(values) == k:
            return values, vectors
    values, vectors = np.linalg.eigh(G)
    return values[r - k :], vectors[:, r - k :]
