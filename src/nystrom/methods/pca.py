"""Principal components of Z, which are those of K̃ (the paper's appendix on kernel PCA).

The paper's X = (SᵀKS)⁺SᵀK̃^½W̃ is root·V here, V being eigenvectors of the Gram matrix:
the same span, without a root of K̃ and also for landmarks that are not rows. Taking the
mean off Z gives HK̃H exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import eigsh
from sklearn.utils.extmath import randomized_svd

from .. import _arrays as arrays
from ..engines import Engine
from ..landmarks import Landmarks, TraceError
from ..randomness import some_rows
from ..sources import Source
from .moments import (
    TRIED_ROWS,
    Evaluate,
    FeatureMap,
    feature_map,
    moments,
    trace_error,
)
from .ridge import Centered

#: The Gram matrix is right to this share of its mean eigenvalue; smaller ones of K̃ are
#: not resolved further.
RESOLUTION = 1e-6
#: With fewer components than this, and more landmarks than that, Lanczos is faster.
FEW_COMPONENTS, MANY_LANDMARKS = 10, 200


@dataclass(frozen=True, eq=False)
class Components:
    """Directions, as coefficients of kernel values with the landmarks."""

    dual: np.ndarray  # (s, k): (k_S(x) − center)·dual are the coordinates of x
    center: np.ndarray  # (s,), 0 where nothing is taken off
    values: np.ndarray  # (k,) eigenvalues of K̃, or of HK̃H, descending
    total: float  # the trace of K, or of HKH as far as K̃ knows the mean
    error: TraceError
    wide: bool

    @property
    def offset(self) -> np.ndarray:
        """What the coordinates of k_S alone have to be reduced by."""
        return self.center @ self.dual


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
    made = resolving_map(landmarks, source, center=center)
    sums = moments(made, source, engine)
    problem = Centered.of(sums, center)
    k = min(made.rank, made.rank if n_components is None else n_components)
    values, vectors = leading_eigenpairs(
        problem.gram, k, solver, seed, tol, max_iter, iterated_power
    )
    mean = np.zeros(len(made.shift))
    if center:
        # Any vector of kernel values with the same rootᵀ stands for the mean.
        z = made.shift @ made.root + problem.feature_mean
        mean = (made.root * made.factor.eigenvalues[: made.rank]) @ z
    _, error = trace_error(made, sums)
    mean_z = mean @ made.root
    total = sums.kernel_trace - sums.weight * float(mean_z @ mean_z)
    return Components(made.root @ vectors, mean, values, total, error, made.wide)


def resolving_map(landmarks: Landmarks, source: Source, *, center: bool) -> FeatureMap:
    """The feature map for methods without a ridge: right to a share of tr K/s.

    Of tr HKH/s where the mean is taken off, which may be far less.
    """
    total = float(source.n_rows if source.weights is None else source.weights.sum())
    share = _mean_square(landmarks, source, center) * total / max(1, len(landmarks))
    return feature_map(landmarks, source, 1e3 * RESOLUTION * share, center=center)


def _mean_square(landmarks: Landmarks, source: Source, center: bool) -> float:
    """The mean of ‖φ(x)‖², or of ‖φ(x) − mean‖², on a few rows."""
    kernel, points = landmarks.kernel, landmarks.points
    evaluate = Evaluate(kernel, kernel.against(arrays.widen(points)), wide=True)
    X = source.take(some_rows(source.n_rows, TRIED_ROWS))
    whole = float(np.mean(evaluate.diag(X)))
    if not center:
        return whole
    mean = np.mean(evaluate(X) @ landmarks.factor.for_blocks(np.float64).root, axis=0)
    return max(whole - float(mean @ mean), arrays.epsilon(np.float64) * whole)


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
        values, vectors = scipy.linalg.eigh(G, subset_by_index=(r - k, r - 1))
    elif solver == "arpack":
        start = np.random.default_rng(seed).uniform(-1, 1, r)
        values, vectors = eigsh(G, k, which="LA", tol=tol, maxiter=max_iter, v0=start)
    else:
        vectors, values, _ = randomized_svd(
            G, k, n_iter=iterated_power, random_state=seed % 2**32
        )
    order = np.argsort(values)[::-1]
    return np.maximum(values[order], 0.0), vectors[:, order]
