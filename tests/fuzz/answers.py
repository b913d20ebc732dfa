"""What must hold of landmarks, their features and the error told, whatever the rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .dense import DISTANCES, EPS64, require

#: Rows up to which eigenvalues of n × n matrices are taken.
FEW = 300


def check_landmarks(case, landmarks):
    """As many as asked for, all different, and the rows that they say they are."""
    n, s = len(case.rows), len(landmarks)
    usable = n if case.weights is None else int(np.count_nonzero(case.weights))
    asked = case.options.get("n_landmarks")
    alone = not {"max_spectral_error", "max_trace_error", "delta", "epsilon"} & set(
        case.options
    )
    if alone and asked is not None:
        require(
            s == min(asked, usable), f"{s} landmarks of {usable}, {asked} asked for"
        )
    require(1 <= s <= (asked or s), f"{s} landmarks, at most {asked} asked for")
    require(landmarks.n_rows == n, f"n_rows is {landmarks.n_rows} of {n}")
    for name in ("weights", "probabilities", "ridge", "effective_dimension"):
        value = getattr(landmarks, name)
        if value is not None:
            require(np.all(np.isfinite(value)), f"{name} is not finite: {value}")
    if landmarks.probabilities is not None:
        p = landmarks.probabilities
        require(np.all((p > 0) & (p <= 1)), f"probabilities {p.min()} to {p.max()}")
    if landmarks.indices is None:
        return
    i, P = landmarks.indices, landmarks.points
    P = P.toarray() if sp.issparse(P) else np.asarray(P, dtype=np.float64)
    require(len(np.unique(i)) == s, "a row is a landmark twice")
    if case.weights is not None:
        require(np.all(case.weights[i] > 0), "a landmark has weight 0")
    expected = i if "matrix" in case.notes else case.rows.exact[i]
    require(np.array_equal(P, expected), "the points are not the rows of the indices")


def check_kernel(case, dense):
    """Values in float64 are the formula's."""
    if case.formula is None or not dense.finite:
        return
    rng, X = np.random.default_rng(case.seed), case.rows.exact
    size = np.sqrt(np.outer(dense.diagonal, dense.diagonal))
    size = size if size.any() else np.full_like(size, np.abs(dense.K).max())
    for _ in range(20):
        i, j = rng.integers(len(X), size=2)
        try:
            expected = case.formula(X[i], X[j])
        except OverflowError:
            continue
        found = dense.K[i, j]
        # Of a sigmoid products are the argument, whose rounding may be large.
        argument = EPS64 * float(np.abs(X[i]) @ np.abs(X[j]))
        near = abs(found - expected) <= 2e-9 * size[i, j] + 10 * argument + 1e-300
        require(near, f"k(x{i}, x{j}) = {found!r}, the formula has {expected!r}")


def check_factor(landmarks, dense, Z):
    """Z is finite, ZZᵀ ⪯ K, and no direction is lost."""
    require(np.all(np.isfinite(Z)), "features are not finite")
    require(Z.shape == dense.K_S.shape, f"features of shape {Z.shape}")
    if dense.indefinite:
        return
    rank, s = landmarks.rank, dense.size
    require(dense.least_rank <= rank <= s, f"rank {rank}, at least {dense.least_rank}")
    squares, d = np.sum(Z * Z, axis=1), dense.diagonal
    # To rows that are far smaller than all landmarks, or than the rounding of one, that
    # rounding is large.
    sizes = np.abs(np.diagonal(dense.K_SS))
    near = d >= max(1e-4 * sizes.min(), EPS64 * sizes.max())
    squares, d, Z = squares[near], d[near], Z[near]
    if not near.any() or not np.isfinite(dense.overshoot):  # float32 has no such K
        return
    over = squares - d * (1 + dense.overshoot)
    i = int(np.argmax(over))
    require(over[i] <= 0, f"k̃ = {squares[i]!r} above k = {d[i]!r} at row {i}")
    if dense.slack < 0.01:
        under = d * (1 - dense.slack) - squares - dense.left[near]
        i = int(np.argmax(under))
        require(under[i] <= 0, f"k̃ = {squares[i]!r} is too small at row {i}")
    if len(d) <= FEW and d.any():
        keep = d > 0
        root = np.sqrt(d[keep])
        K = dense.K[np.ix_(near, near)]
        left = (K - Z @ Z.T)[np.ix_(keep, keep)] / np.outer(root, root)
        least = float(np.linalg.eigvalsh(left)[0])
        # Both of a pair of rows are rounded (1.02·n·overshoot, once in 10⁵ cases).
        not_less = -2 * len(d) * dense.overshoot
        require(least >= not_less, f"K − ZZᵀ has {least!r} where k(x, x) is 1")


def check_told(dense, error, *, rounding=DISTANCES):
    """The relative trace error told is the error."""
    if error is None:
        return
    told, spread = error.value, 6 * error.standard_error
    require(np.isfinite(told) and told >= 0, f"error told: {told!r}")
    require(told <= 1 + dense.overshoot, f"error told: {told!r}, more than all of K")
    if error.path is not None:
        require(np.all(np.diff(error.path) <= 1e-12), "the error path goes up")
        require(abs(error.path[-1] - told) <= 1e-12, "the error path ends elsewhere")
    if error.exact and len(dense.K) <= FEW:
        least = dense.best - dense.overshoot - 1e-13
        require(told >= least, f"error told: {told!r}, this rank has {dense.best!r}")
    if dense.slack < 0.01:
        true = dense.share(np.maximum(dense.left, 0.0))
        # Of float32 values it is right to a fiftieth; see RESIDUAL_ERROR.
        share = 0.02 * true * (dense.unit > 1e-10)
        off = dense.slack + spread + share + rounding
        require(abs(told - true) <= off, f"error told: {told!r}, the error: {true!r}")
    elif dense.size == len(dense.K):
        off = 20 * dense.size * (dense.unit + dense.size * EPS64) + dense.overshoot
        require(told <= off, f"error told: {told!r}, and all rows are landmarks")


def check_reached(case, landmarks, dense):
    """`max_trace_error` is reached, by no more landmarks than it takes, or capped."""
    asked, error = case.options.get("max_trace_error"), landmarks.error
    if asked is None or error is None:
        return
    n = len(case.rows) if case.weights is None else np.count_nonzero(case.weights)
    capped = len(landmarks) in (case.options["n_landmarks"], n)
    exhausted = error.value <= dense.overshoot + 20 * n * dense.unit
    reached = error.value <= asked or capped or exhausted
    require(reached, f"error {error.value!r}, {asked!r} asked for, {len(landmarks)} do")
    if error.path is not None and len(landmarks) > 1 and error.value <= asked:
        one_less = float(error.path[-2])
        require(one_less > asked - 1e-12, f"one less has {one_less!r} of {asked!r}")
