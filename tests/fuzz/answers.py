"""What must hold of landmarks, their features and the error told, whatever the rows."""

import numpy as np
import scipy.sparse as sp

from nystrom import approximate, leverage_scores, select_landmarks

from .dense import DISTANCES, EPS64, Dense, require

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


# The paper's functions: landmarks, K̃ as an operator, leverage scores


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
