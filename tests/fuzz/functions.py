"""The paper's functions: landmarks, K̃ as an operator, leverage scores."""

from __future__ import annotations

import numpy as np

from nystrom import approximate, leverage_scores, select_landmarks

from .answers import (
    FEW,
    check_factor,
    check_kernel,
    check_landmarks,
    check_reached,
    check_told,
)
from .dense import DISTANCES, Dense, require


def check_functions(case):
    """Landmarks, and all that K̃ has to say."""
    options = {k: v for k, v in case.options.items() if k != "epsilon"}
    landmarks = select_landmarks(
        case.original, **case.kernel, **options, sample_weight=case.weights
    )
    check_landmarks(case, landmarks)
    dense = Dense.of(case, landmarks)
    check_kernel(case, dense)
    approximation = approximate(case.original, landmarks, sample_weight=case.weights)
    Z = np.asarray(approximation.features(), dtype=np.float64)
    check_factor(landmarks, dense, Z)
    if dense.indefinite:
        return
    check_told(dense, approximation.relative_trace_error)
    check_told(dense, landmarks.error)
    check_reached(case, landmarks, dense)
    check_products(case, approximation, dense, Z)
    check_spectral_error(approximation, dense, Z)
    check_scores(case, dense, landmarks)


def check_products(case, approximation, dense, Z):
    """Diagonal, products, eigenvalues and solutions are those of ZZᵀ."""
    rng = np.random.default_rng(case.seed)
    off = (dense.overshoot + 1e-12) * float(dense.diagonal.sum())
    apart = np.abs(approximation.diagonal() - np.sum(Z * Z, axis=1))
    require(np.all(apart <= off), f"diagonal off by {apart.max()!r} of {off!r}")
    v = rng.standard_normal(len(Z))
    apart = np.linalg.norm(approximation @ v - Z @ (Z.T @ v)) / np.linalg.norm(v)
    require(apart <= off, f"K̃v off by {apart!r}, {off!r} is rounding")
    if len(Z) > FEW:
        return
    values, vectors = approximation.eigh(3)
    require(np.all(np.isfinite(vectors)), "eigenvectors are not finite")
    expected = np.linalg.eigvalsh(Z @ Z.T)[::-1][: len(values)]
    apart = np.abs(values - expected).max(initial=0.0)
    require(apart <= off, f"eigenvalues off by {apart!r}, {off!r} is rounding")
    ridge = 1e-2 * float(dense.diagonal.mean())
    if off < 0.1 * ridge:
        x = approximation.solve(v, ridge)
        apart = np.linalg.norm(Z @ (Z.T @ x) + ridge * x - v) / np.linalg.norm(v)
        require(apart <= 10 * off / ridge + 1e-9, f"solve leaves {apart!r} of b")


def check_spectral_error(approximation, dense, Z):
    """Bounds of ‖W^½(K − ZZᵀ)W^½‖₂ are on its two sides."""
    if len(Z) > FEW:
        return
    error = approximation.spectral_error()
    root = np.sqrt(dense.weights)
    true = float(np.linalg.eigvalsh((dense.K - Z @ Z.T) * np.outer(root, root))[-1])
    off = 2 * (dense.overshoot + DISTANCES) * dense.trace
    require(error.lower <= true + off, f"spectral error {error.lower!r} > {true!r}")
    require(error.upper >= true - off, f"spectral error {error.upper!r} < {true!r}")


def check_scores(case, dense, landmarks):
    """Ridge leverage scores: exact ones, and those from the landmarks."""
    if len(dense.K) > FEW or not dense.trace > 0:
        return
    rng = np.random.default_rng(case.seed)
    root = np.sqrt(dense.weights)
    K = dense.K * np.outer(root, root)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    ridge = float(values[-1] * 10.0 ** rng.uniform(-6, 1))
    if not 1e-290 < ridge < 1e290:
        return
    about = {"ridge": ridge, "sample_weight": case.weights}
    exact = np.asarray(leverage_scores(case.original, **case.kernel, **about))
    expected = (vectors**2) @ (values / (values + ridge))
    trace, unit = float(np.trace(K)), max(dense.unit, DISTANCES)
    off = 20 * len(K) * unit * trace / ridge + 1e-9
    require(np.all((exact >= 0) & (exact <= 1 + 1e-9)), f"leverage scores {exact}")
    apart = float(np.abs(exact - expected).max())
    require(apart <= off, f"leverage scores off by {apart!r}, {off!r} is rounding")
    found = np.asarray(leverage_scores(case.original, landmarks=landmarks, **about))
    require(np.all((found >= 0) & (found <= 1 + 1e-9)), f"sampled scores {found}")
    if landmarks.weights is None and landmarks.indices is not None:
        under = float((exact - found).max())
        off += dense.overshoot * trace / ridge
        require(under <= off, f"sampled scores are below exact ones by {under!r}")
